/* SPDX-License-Identifier: MIT
 * Findings: made, sorted, and told to people and programs. */
#include "base/mem.h"
#include "base/options.h"
#include "base/units.h"
#include "tools/doctor/impl.h"
#include "tools/lib/json_out.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- findings */

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

size_t gct_report_count(const struct gct_report *r, enum gct_level l)
{
	size_t i, n = 0;

	for (i = 0; i < r->n; i++)
		n += r->list[i].level == l;
	return n;
}

/* ---- Findings for programs. */

/* A key that is missing says that there is nothing to say. */
static void set_text(json_t *object, const char *key, const char *text, int *failed)
{
	if (text)
		gct_json_set(object, key, json_string(text), failed);
}

static json_t *finding_json(const struct gct_finding *g, int *failed)
{
	json_t *o = json_object();

	gct_json_set(o, "id", json_string(g->id), failed);
	gct_json_set(o, "level", json_string(gct_level_name(g->level)), failed);
	set_text(o, "what", g->what, failed);
	set_text(o, "is", g->is, failed);
	set_text(o, "should", g->should, failed);
	set_text(o, "why", g->why, failed);
	set_text(o, "command", g->command, failed);
	set_text(o, "sysctl", g->line, failed);
	return o;
}

static json_t *link_json(const struct gct_need *l, int *failed)
{
	json_t *o = json_object();

	gct_json_set(o, "link", json_string(l->name), failed);
	gct_json_set(o, "rate_bps", gct_json_whole(l->flight.bps), failed);
	gct_json_set(o, "rtt_ns", gct_json_whole(l->flight.rtt_ns), failed);
	gct_json_set(o, "in_flight_bytes", gct_json_whole(l->flight.nbytes), failed);
	gct_json_set(o, "streams", gct_json_whole(l->flight.streams), failed);
	gct_json_set(o, "stream_bytes", gct_json_whole(l->flight.stream_nbytes), failed);
	return o;
}

static void fill(json_t *o, const struct gct_report *r, const struct gct_needs *n,
	const struct gct_facts *f, int *failed)
{
	json_t *links = json_array(), *findings = json_array();
	size_t i;

	for (i = 0; i < n->nlinks; i++)
		gct_json_append(links, link_json(&n->links[i], failed), failed);
	for (i = 0; i < r->n; i++)
		gct_json_append(findings, finding_json(&r->list[i], failed), failed);
	gct_json_set(o, "version", json_integer(1), failed);
	gct_json_set(o, "host", json_string(f->host), failed);
	gct_json_set(o, "kernel", json_string(f->kernel), failed);
	if (n->has_grid)
		gct_json_set(o, "grid", json_string(n->file), failed);
	gct_json_set(o, "problems", gct_json_whole(gct_report_count(r, GCT_PROBLEM)), failed);
	gct_json_set(o, "advice", gct_json_whole(gct_report_count(r, GCT_ADVICE)), failed);
	gct_json_set(o, "links", links, failed);
	gct_json_set(o, "findings", findings, failed);
}

int gct_doctor_json(const struct gct_report *r, const struct gct_needs *n,
	const struct gct_facts *f, struct gci_buf *out)
{
	json_t *o = json_object();
	int failed = 0;

	fill(o, r, n, f, &failed);
	return gct_json_print(o, failed, out);
}

/* ---- Findings for people. */

#define INDENT     9 /* behind "problem  " */
#define MOST_LINKS 12

static const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

static void print_links(const struct gct_needs *n, FILE *out)
{
	char rate[16], t[16], all[16], each[16];
	size_t i;

	if (!n->nlinks)
		return;
	fprintf(out, "\n%-30s %10s %8s %9s %7s %9s\n", "in flight of a pair of ranks", "rate",
		"RTT", "together", "streams", "each");
	for (i = 0; i < n->nlinks && i < MOST_LINKS; i++) {
		const struct gci_flight *f = &n->links[i].flight;

		fprintf(out, "  %-28s %10s %8s %9s %7" PRIu32 " %9s\n", n->links[i].name,
			f->bps ? gci_format_rate(f->bps, rate, sizeof(rate)) : "?",
			f->rtt_ns ? gci_format_time(f->rtt_ns, t, sizeof(t)) : "?",
			f->nbytes ? gci_format_bytes(f->nbytes, all, sizeof(all)) : "?", f->streams,
			f->stream_nbytes ? gci_format_bytes(f->stream_nbytes, each, sizeof(each))
					 : "?");
	}
	if (n->nlinks > MOST_LINKS)
		fprintf(out, "  and %zu more\n", n->nlinks - MOST_LINKS);
}

static void print_fine(const struct gct_finding *g, FILE *out)
{
	int at = fprintf(out, "%-*s%-36s ", INDENT, gct_level_name(g->level), g->what);

	const char *what = g->level == GCT_FINE ? g->is : g->why;

	gci_print_wrapped(out, what ? what : "could not be read", at, at);
}

static void print_finding(const struct gct_finding *g, FILE *out)
{
	int at = fprintf(
		out, "%-*s%s: %s", INDENT, gct_level_name(g->level), g->what, g->is ? g->is : "?");

	if (g->should)
		at += fprintf(out, ", should be");
	fputc(' ', out);
	gci_print_wrapped(out, g->should ? g->should : "", at + 1, INDENT);
	fprintf(out, "%*s", INDENT, "");
	gci_print_wrapped(out, g->why ? g->why : "", INDENT, INDENT);
	if (g->command)
		fprintf(out, "%*s$ %s\n", INDENT, "", g->command);
}

static void print_lines(const struct gct_report *r, FILE *out)
{
	size_t i, n = 0;

	for (i = 0; i < r->n; i++) {
		if (!r->list[i].line)
			continue;
		if (!n++)
			fprintf(out,
				"\nTo stay after a boot, in /etc/sysctl.d/90-gridcoll.conf:\n");
		fprintf(out, "  %s\n", r->list[i].line);
	}
}

static void print_sum(const struct gct_report *r, FILE *out)
{
	size_t problems = gct_report_count(r, GCT_PROBLEM);
	size_t unchecked = gct_report_count(r, GCT_NOT_KNOWN);

	fprintf(out, "%zu problem%s, %zu more to improve, %zu ok", problems, plural(problems),
		gct_report_count(r, GCT_ADVICE), gct_report_count(r, GCT_FINE));
	if (unchecked)
		fprintf(out, ", %zu unknown", unchecked);
	fputc('\n', out);
}

void gct_doctor_text(
	const struct gct_report *r, const struct gct_needs *n, const struct gct_facts *f, FILE *out)
{
	size_t i;

	fprintf(out, "%s, Linux %s", *f->host ? f->host : "this host",
		*f->kernel ? f->kernel : "?");
	if (n->has_grid)
		fprintf(out, ", for %s%s", n->file,
			n->own_cluster < 0 ? " (not one of its hosts: all links count)" : "");
	fputc('\n', out);
	print_links(n, out);
	fputc('\n', out);
	for (i = 0; i < r->n; i++)
		if (r->list[i].level == GCT_PROBLEM || r->list[i].level == GCT_ADVICE)
			print_finding(&r->list[i], out);
		else
			print_fine(&r->list[i], out);
	print_lines(r, out);
	fputc('\n', out);
	print_sum(r, out);
}

void gct_doctor_lines(const struct gct_report *r, const char *host, FILE *out)
{
	size_t i;

	for (i = 0; i < r->n; i++) {
		const struct gct_finding *g = &r->list[i];

		if (g->level != GCT_PROBLEM && g->level != GCT_ADVICE)
			continue;
		fprintf(out, "%s: %s: %s: %s", host, gct_level_name(g->level), g->what,
			g->is ? g->is : "?");
		if (g->command)
			fprintf(out, ": %s", g->command);
		fputc('\n', out);
	}
	fprintf(out, "%s: ", host);
	print_sum(r, out);
}
