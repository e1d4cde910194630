/* SPDX-License-Identifier: MIT */
#include "base/units.h"
#include "netem/cpu.h"
#include "tools/bench.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

static uint64_t median(const struct gct_bench_result *r)
{
	uint64_t n = r->iterations;

	return n % 2 ? r->ns[n / 2] : (r->ns[n / 2 - 1] + r->ns[n / 2]) / 2;
}

static const char *time_text(uint64_t ns, uint32_t dilation, char out[16])
{
	return gci_format_time(ns / dilation, out, 16);
}

void gct_bench_print_header(const struct gct_bench *b, const struct gct_bench_options *o)
{
	const struct gci_topo *t = &b->comm->topo;
	struct gci_tp_link link = {.streams = 1};
	char rate[16], delay[16];
	int c;

	printf("%d ranks in %d cluster%s:", t->nranks, t->nclusters, t->nclusters > 1 ? "s" : "");
	for (c = 0; c < t->nclusters; c++)
		printf("%s%d", c ? " + " : " ", gci_topo_size(t, c));
	if (t->nic_bps[0])
		printf(", NICs %s", gci_format_rate(t->nic_bps[0] * b->lab.dilation, rate, 16));
	if (t->nclusters > 1) {
		const struct gci_link *l = gci_topo_link(t, 0, 1);

		printf(", WAN %s",
			l->rate_bps ? gci_format_rate(l->rate_bps * b->lab.dilation, rate, 16)
				    : "of unknown rate");
		printf(" and %s one way", time_text(l->delay_ns, b->lab.dilation, delay));
		gci_engine_tp_config(b->comm->engine)
			.link(b->comm->engine, gci_topo_members(t, 1)[0], &link);
	}
	printf("\ndilation k = %u%s%s%s, %u stream%s per WAN peer%s, %" PRIu64
	       " warm iteration%s\n",
		b->lab.dilation, b->lab.backend ? " (lab: " : "",
		b->lab.backend ? b->lab.backend : "", b->lab.backend ? ")" : "", link.streams,
		link.streams > 1 ? "s" : "", b->lab.backend ? ", MTU 1500" : "", o->iterations,
		o->iterations > 1 ? "s" : "");
	if (b->lab.dilation > 1)
		printf("times are measured times divided by k\n");
	if (b->clock_error_ns)
		printf("clocks are up to %s from rank 0's, give or take %s; times allow for that\n",
			gci_format_time(b->clock_offset_ns, rate, 16),
			gci_format_time(b->clock_error_ns, delay, 16));
}

static void print_columns(void)
{
	printf("\n%-9s %9s  %-26s %8s %8s %8s %8s %7s %10s %10s %5s\n", "operation", "bytes",
		"algorithm", "first", "min", "median", "max", "x limit", "WAN bytes", "schedule",
		"CPU");
}

void gct_bench_print(const struct gct_bench *b, const struct gct_bench_result *r, int first)
{
	char t[5][16], bytes[16], wan[16], sched[16], ratio[16] = "-", cpu[16] = "-";
	uint32_t k = b->lab.dilation;

	if (first)
		print_columns();
	if (r->limit_ns)
		snprintf(ratio, sizeof(ratio), "%.2f", (double)median(r) / (double)r->limit_ns);
	if (r->cpu_percent >= 0)
		snprintf(cpu, sizeof(cpu), "%d%%%s", r->cpu_percent,
			r->cpu_percent > GCI_CPU_BUSY_PERCENT && b->lab.backend ? "!" : "");
	printf("%-9s %9s  %-26s %8s %8s %8s %8s %7s %10s %10s %5s\n", gci_kind_name(r->kind),
		gci_format_bytes(r->nbytes, bytes, 16), r->algorithm,
		time_text(r->cold_ns, k, t[0]), time_text(r->ns[0], k, t[1]),
		time_text(median(r), k, t[2]), time_text(r->ns[r->iterations - 1], k, t[3]), ratio,
		r->has_wan ? gci_format_bytes(r->wan_nbytes, wan, 16) : "-",
		b->comm->topo.nclusters > 1 ? gci_format_bytes(r->schedule_wan_nbytes, sched, 16)
					    : "-",
		cpu);
	fflush(stdout);
}

void gct_bench_print_limit(const struct gct_bench *b, const struct gct_bench_result *r)
{
	char t[16], bytes[16];

	if (r->limit_ns)
		printf("%-9s %9s  %-26s %8s %8s %8s %8s %7s\n", gci_kind_name(r->kind),
			gci_format_bytes(r->nbytes, bytes, 16), "(physical limit)", "", "",
			time_text(r->limit_ns, b->lab.dilation, t), "", "1.00");
}

void gct_bench_print_footer(const struct gct_bench *b, const struct gct_bench_result *r, int n)
{
	int i, busy = 0, late = 0;

	for (i = 0; i < n; i++)
		busy |= b->lab.backend && r[i].cpu_percent > GCI_CPU_BUSY_PERCENT;
	for (i = 0; i < n; i++)
		late |= r[i].late_ns > GCI_NS_PER_MS && r[i].late_ns > r[i].ns[0] / 10;
	printf("\nfirst: the first operation of its row (opens connections that none before "
	       "needed); "
	       "x limit: of the median\nWAN bytes: payload per operation by the WAN interfaces' "
	       "counters; schedule: what the algorithm must move\nevery result was verified on "
	       "every rank\n");
	if (late)
		printf("some ranks began more than a tenth of the operation's time late: their "
		       "machines "
		       "are busy\n");
	if (busy)
		printf("! the machine's CPU was busy more than %d %% of the time: these figures "
		       "are "
		       "the CPU's,\n  not the network's; a larger dilation tells more\n",
			GCI_CPU_BUSY_PERCENT);
}

static json_t *result_json(const struct gct_bench *b, const struct gct_bench_result *r)
{
	json_t *times = json_array();
	uint64_t i;

	for (i = 0; i < r->iterations; i++)
		json_array_append_new(times, json_integer((json_int_t)r->ns[i]));
	return json_pack("{s:s, s:I, s:s, s:I, s:o, s:I, s:I, s:I, s:I, s:b, s:i, s:I, s:I}",
		"operation", gci_kind_name(r->kind), "bytes", (json_int_t)r->nbytes, "algorithm",
		r->algorithm, "first_ns", (json_int_t)r->cold_ns, "warm_ns", times, "median_ns",
		(json_int_t)median(r), "limit_ns", (json_int_t)r->limit_ns, "wan_bytes",
		(json_int_t)r->wan_nbytes, "schedule_wan_bytes", (json_int_t)r->schedule_wan_nbytes,
		"wan_measured", r->has_wan, "cpu_percent", r->cpu_percent, "dilation",
		(json_int_t)b->lab.dilation, "late_ns", (json_int_t)r->late_ns);
}

int gct_bench_write_json(
	const struct gct_bench *b, const struct gct_bench_result *r, int n, const char *path)
{
	json_t *list = json_array(), *root;
	int i, rc;

	for (i = 0; i < n; i++)
		json_array_append_new(list, result_json(b, &r[i]));
	root = json_pack("{s:i, s:i, s:I, s:s, s:o}", "version", 1, "ranks", b->comm->size,
		"dilation", (json_int_t)b->lab.dilation, "lab",
		b->lab.backend ? b->lab.backend : "", "results", list);
	rc = root ? json_dump_file(root, path, JSON_INDENT(1)) : -1;
	json_decref(root);
	return rc ? gci_comm_error(GCOLL_ERR_IO, "%s: cannot be written", path) : 0;
}
