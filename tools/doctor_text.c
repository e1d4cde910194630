/* SPDX-License-Identifier: MIT
 * Findings for people. */
#include "base/units.h"
#include "tools/doctor.h"
#include "tools/tools.h"

#include <inttypes.h>
#include <string.h>

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

	gct_wrapped(out, what ? what : "could not be read", at, at);
}

static void print_finding(const struct gct_finding *g, FILE *out)
{
	int at = fprintf(
		out, "%-*s%s: %s", INDENT, gct_level_name(g->level), g->what, g->is ? g->is : "?");

	if (g->should)
		at += fprintf(out, ", should be");
	fputc(' ', out);
	gct_wrapped(out, g->should ? g->should : "", at + 1, INDENT);
	fprintf(out, "%*s", INDENT, "");
	gct_wrapped(out, g->why ? g->why : "", INDENT, INDENT);
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
