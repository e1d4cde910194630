/* SPDX-License-Identifier: MIT */
#include "base/mem.h"
#include "tools/doctor_impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *gct_level_name(enum gct_level l)
{
	static const char *const names[] = {"ok", "advice", "problem", "unknown"};

	return names[l];
}

struct gct_finding *gct_finding(
	struct gct_report *r, enum gct_level level, const char *id, const char *what)
{
	struct gct_finding *f = &r->spare;

	if (r->failed || gci_grow(&r->list, &r->cap, r->n + 1, sizeof(*r->list)))
		r->failed = 1;
	else
		f = &r->list[r->n++];
	*f = (struct gct_finding){.level = level, .id = id};
	gct_say(r, &f->what, "%s", what);
	return f;
}

void gct_say(struct gct_report *r, char **at, const char *fmt, ...)
{
	char text[600];
	va_list ap;

	if (r->failed)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	gci_free(*at);
	*at = gci_strdup(text);
	r->failed = !*at;
}

void gct_unsay(char **at)
{
	gci_free(*at);
	*at = NULL;
}

void gct_say_sysctl(struct gct_report *r, struct gct_finding *f, const char *value)
{
	gct_say(r, &f->should, "%s", value);
	gct_say(r, &f->command, "sysctl -w %s=%s%s%s", f->what, strchr(value, ' ') ? "'" : "",
		value, strchr(value, ' ') ? "'" : "");
	gct_say(r, &f->line, "%s = %s", f->what, value);
}

void gct_report_free(struct gct_report *r)
{
	size_t i;

	for (i = 0; i < r->n; i++) {
		struct gct_finding *f = &r->list[i];

		gci_free(f->what);
		gci_free(f->is);
		gci_free(f->should);
		gci_free(f->why);
		gci_free(f->command);
		gci_free(f->line);
	}
	gci_free(r->list);
	memset(r, 0, sizeof(*r));
}

static int rank(enum gct_level l)
{
	static const int ranks[] = {3, 1, 0, 2};

	return ranks[l];
}

/* Worst first, else in the order of the checks. */
static void sort(struct gct_report *r)
{
	size_t i, k;

	for (i = 1; i < r->n; i++) {
		struct gct_finding f = r->list[i];

		for (k = i; k && rank(r->list[k - 1].level) > rank(f.level); k--)
			r->list[k] = r->list[k - 1];
		r->list[k] = f;
	}
}

int gct_doctor_check(const struct gct_facts *f, const struct gct_needs *n, struct gct_report *r)
{
	gct_check_buffers(f, n, r);
	gct_check_tcp(f, n, r);
	gct_check_nics(f, n, r);
	gct_check_host(f, n, r);
	sort(r);
	return r->failed ? GCOLL_ERR_NOMEM : 0;
}

size_t gct_report_count(const struct gct_report *r, enum gct_level l)
{
	size_t i, n = 0;

	for (i = 0; i < r->n; i++)
		n += r->list[i].level == l;
	return n;
}
