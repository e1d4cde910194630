/* SPDX-License-Identifier: MIT */
#include "base/units.h"
#include "tools/markup.h"
#include "tools/report_impl.h"

#include <stdarg.h>
#include <string.h>

void gct_put(struct gct_page *p, const char *text)
{
	gct_markup_text(p->out, text);
}

void gct_putf(struct gct_page *p, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	gct_put(p, text);
}

char *gct_size_text(uint64_t nbytes, char out[24])
{
	static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
	unsigned i = 0;

	while (nbytes >= 1024 && nbytes % 1024 == 0 && i < 5) {
		nbytes /= 1024;
		i++;
	}
	if (nbytes < 1024)
		snprintf(out, 24, "%u %s", (unsigned)nbytes, names[i]);
	else
		gci_format_bytes(nbytes << 10 * i, out, 24);
	return out;
}

char *gct_case_text(enum gci_kind kind, uint64_t nbytes, char out[48])
{
	char size[24];

	snprintf(out, 48, "%s%s%s", gci_kind_name(kind), nbytes ? " of " : "",
		nbytes ? gct_size_text(nbytes, size) : "");
	return out;
}

char *gct_case_time(const struct gct_html_case *c, uint64_t ns, char out[16])
{
	return gci_format_time(ns / c->dilation, out, 16);
}

double gct_case_bps(const struct gct_html_case *c, uint64_t ns)
{
	return ns ? (double)c->nbytes * 8e9 * c->dilation / (double)ns : 0;
}

int gct_case_has_rate(const struct gct_html_case *c)
{
	return !c->not_run && c->nbytes && c->median_ns;
}

int gct_same_curve(const struct gct_html_case *a, const struct gct_html_case *b)
{
	return a->kind == b->kind && a->source == b->source && !strcmp(a->asked, b->asked);
}

static int has_kind(const struct gct_html *r, enum gci_kind kind, int not_of)
{
	size_t i;

	for (i = 0; i < r->ncases; i++)
		if (r->cases[i].kind == kind && r->cases[i].source != not_of)
			return 1;
	return 0;
}

void gct_put_curve(struct gct_page *p, const struct gct_html_case *c)
{
	if (!strcmp(c->asked, "auto"))
		gct_put(p, "gridcoll's choice");
	else
		gct_put(p, c->asked);
	if (has_kind(p->r, c->kind, c->source))
		gct_putf(p, " (%.60s)", p->r->sources[c->source].name);
}

uint64_t gct_largest(const struct gct_html *r, enum gci_kind kind)
{
	uint64_t most = 0;
	size_t i;

	for (i = 0; i < r->ncases; i++)
		if (r->cases[i].kind == kind && !r->cases[i].not_run && r->cases[i].nbytes > most)
			most = r->cases[i].nbytes;
	return most;
}

void gct_put_none(struct gct_page *p, const char *what, const char *command)
{
	gci_buf_printf(p->out, "<p class=\"none\">%s. Try <code>", what);
	gct_put(p, command);
	gci_buf_printf(p->out, "</code></p>\n");
}
