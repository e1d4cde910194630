/* SPDX-License-Identifier: MIT
 * What rank 0 says before, meanwhile and at the end, and the parameters file. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/units.h"
#include "collectives/models/params_json.h"
#include "collectives/models/ramp.h"
#include "netem/cpu.h"
#include "tools/cases.h"
#include "tools/probe.h"
#include "tools/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const char *cluster_name(const struct gct_probe *p, int cluster)
{
	return p->grid->clusters[p->comm->topo.in_grid[cluster]].name;
}

static void link_name(const struct gct_probe *p, int from, int to, char *out, size_t size)
{
	if (from == to)
		snprintf(out, size, "%s", cluster_name(p, from));
	else
		snprintf(out, size, "%s > %s", cluster_name(p, from), cluster_name(p, to));
}

void gct_probe_print_plan(const struct gct_probe *p)
{
	char t[16], bytes[16];
	size_t i, n = 0;

	for (i = 0; i < p->nlinks; i++)
		n += p->links[i].last >= 0;
	printf("%d ranks in %d cluster%s: %zu link%s, one after the other, in at most %s",
		p->comm->size, p->comm->topo.nclusters, p->comm->topo.nclusters > 1 ? "s" : "", n,
		n == 1 ? "" : "s", gci_format_time(p->all.ns, t, sizeof(t)));
	if (p->dilation > 1)
		printf(" (%s", gci_format_time(p->all.ns / p->dilation, t, sizeof(t)));
	if (p->dilation > 1)
		printf(" x %u, for the lab's dilation)", p->dilation);
	printf(" and %s\n", gci_format_bytes(p->all.nbytes, bytes, sizeof(bytes)));
	fflush(stdout);
}

void gct_probe_progress(const struct gct_probe *p, const char *what, int from, int to)
{
	char name[160], t[16], bytes[16];

	link_name(p, from, to, name, sizeof(name));
	gct_progress("%s %s, after %s and %s", what, name,
		gci_format_time(gci_now_ns() - p->began_ns, t, sizeof(t)),
		gci_format_bytes(p->nbytes, bytes, sizeof(bytes)));
}

/* ---- the table */

static void print_time(const struct gct_probe *p, uint64_t ns)
{
	char t[16];

	printf(" %7s", gci_format_time(ns / p->dilation, t, sizeof(t)));
}

static void print_rate(const struct gct_probe *p, const struct gci_params_rate *r, size_t n)
{
	size_t knee = n ? gci_ramp_knee(r, n) : 0;
	char rate[16];

	if (!n)
		printf(" %9s %3s", "-", "-");
	else
		printf(" %9s %3u", gci_format_rate(r[knee].bps * p->dilation, rate, sizeof(rate)),
			r[knee].streams);
}

/* In a lab, all hosts share one machine's CPUs. */
static int is_busy(const struct gct_probe *p, const struct gct_probed *l)
{
	return p->lab.backend && l->cpu_percent > gci_cpu_most_percent(p->lab.backend);
}

static void print_link(const struct gct_probe *p, const struct gct_probed *l)
{
	struct gci_params_point at[2];
	char name[160];

	link_name(p, l->from, l->to, name, sizeof(name));
	printf("%-16s", name);
	if (!l->link.npoints) {
		printf(" not measured: %s\n",
			l->last < 0 ? "it has one rank only" : "not enough time or bytes");
		return;
	}
	gci_params_at(&l->link, 64u << 10, &at[0]);
	gci_params_at(&l->link, 1u << 20, &at[1]);
	print_time(p, l->link.latency_ns);
	print_time(p, l->link.points[0].gap_ns);
	print_time(p, at[0].os_ns);
	print_time(p, at[0].or_ns);
	print_time(p, at[0].gap_ns);
	print_time(p, at[1].gap_ns);
	if (l->err_ppm < 1000000)
		printf(" %4.1f%%", (double)l->err_ppm / 1e4);
	else
		printf(" %5s", "?"); /* of one time */
	print_rate(p, l->link.rates, l->link.nrates);
	print_rate(p, l->senders, l->nsenders);
	printf("%s%s\n", l->limits ? " *" : "", is_busy(p, l) ? " !" : "");
}

static void print_isends(const struct gct_probe *p)
{
	size_t i, k;
	char name[160], size[16];

	printf("\nisends in a row: how many until one has to wait, then how many between those\n");
	for (i = 0; i < p->nlinks; i++) {
		const struct gci_params_link *l = &p->links[i].link;

		link_name(p, p->links[i].from, p->links[i].to, name, sizeof(name));
		for (k = 0; k < l->nisends; k++) {
			const struct gci_params_isend *s = &l->isends[k];

			printf("%-16s %7s: %s", k ? "" : name,
				gci_format_bytes(s->nbytes, size, sizeof(size)),
				s->immediate ? "" : "blocking,");
			print_time(p, s->os_start_ns);
			if (!s->immediate) {
				printf(" each\n");
				continue;
			}
			if (s->os_spike_ns == s->os_start_ns) {
				printf(", no pattern in %u\n", s->initial);
				continue;
			}
			printf(", %u times, then", s->initial);
			print_time(p, s->os_spike_ns);
			printf(" each %u, else", s->mid + 1);
			print_time(p, s->os_mid_ns);
			printf("\n");
		}
	}
}

void gct_probe_print(const struct gct_probe *p)
{
	int one_way = p->nlinks && p->links[0].one_way;
	uint32_t limits = 0;
	int busy = 0;
	size_t i;

	gct_progress_end();
	printf("\n%-16s %7s %7s %7s %7s %7s %7s %5s %9s %3s %9s %3s\n", "link", "L", "g(0)",
		"os 64K", "or 64K", "g 64K", "g 1M", "+-", "a pair", "str", "pairs", "snd");
	for (i = 0; i < p->nlinks; i++) {
		print_link(p, &p->links[i]);
		limits |= p->links[i].limits;
		busy |= is_busy(p, &p->links[i]);
	}
	print_isends(p);
	printf("\nL: %s; +-: half of the 90 %% confidence interval of g at the largest size;\n"
	       "a pair, str: what one pair of hosts gets, with the fewest streams that reach 95 %% "
	       "of it;\npairs, snd: pairs that send at once, "
	       "the fewest that reach 95 %% of their most\n",
		one_way ? "one way, by the lab's one clock"
			: "half a round trip, since the hosts' clocks may differ");
	if (limits)
		printf("* the %s did not suffice for all: other sizes than these are estimates\n",
			limits == GCT_OUT_OF_TIME    ? "time"
			: limits == GCT_OUT_OF_BYTES ? "bytes"
						     : "time and the bytes");
	if (busy)
		printf("! the machine's CPU was busy more than %d %% of the time: "
		       "these figures are the CPU's,\n"
		       "  not the network's; a larger dilation tells more\n",
			gci_cpu_most_percent(p->lab.backend));
	if (p->dilation > 1)
		printf("times are measured times divided by %u, rates multiplied\n", p->dilation);
}

void gct_probe_print_cost(const struct gct_probe *p)
{
	char t[16], bytes[16];

	printf("took %s and %s\n", gci_format_time(gci_now_ns() - p->started_ns, t, sizeof(t)),
		gci_format_bytes(p->nbytes, bytes, sizeof(bytes)));
}

/* ---- the file */

static void date_of(char out[32])
{
	time_t now = time(NULL);
	struct tm tm;

	gmtime_r(&now, &tm);
	strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

static int copy_senders(const struct gct_probed *l, struct gci_params_link *out)
{
	if (!l->nsenders)
		return 0;
	out->senders = gci_calloc(l->nsenders, sizeof(*out->senders));
	if (!out->senders)
		return GCOLL_ERR_NOMEM;
	memcpy(out->senders, l->senders, l->nsenders * sizeof(*out->senders));
	out->nsenders = l->nsenders;
	return 0;
}

/* Moves the links' lists. */
static int make_params(const struct gct_probe *p, struct gci_params *out)
{
	const int *in_grid = p->comm->topo.in_grid;
	char date[32];
	size_t i;

	date_of(date);
	if (gci_params_init(out, p->grid, date))
		return gci_comm_error(GCOLL_ERR_NOMEM, "out of memory for parameters");
	for (i = 0; i < p->nlinks; i++) {
		struct gct_probed *l = &p->links[i];
		struct gci_params_link *to = gci_params_link(out, in_grid[l->from], in_grid[l->to]);

		*to = l->link;
		memset(&l->link, 0, sizeof(l->link));
		if (copy_senders(l, to)) {
			gci_params_free(out);
			return gci_comm_error(GCOLL_ERR_NOMEM, "out of memory for parameters");
		}
		if (l->one_way)
			out->latency = GCI_LATENCY_ONE_WAY;
	}
	gci_params_undilate(out, p->dilation);
	return 0;
}

int gct_probe_write(const struct gct_probe *p)
{
	struct gci_params params;
	struct gci_buf b = {0};
	int rc = make_params(p, &params);

	if (rc)
		return rc;
	gci_params_print(&params, &b);
	gci_params_free(&params);
	rc = gct_write(p->file, &b);
	gci_buf_free(&b);
	return rc;
}
