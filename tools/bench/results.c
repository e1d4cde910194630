/* SPDX-License-Identifier: MIT */
#include "base/median.h"
#include "base/mem.h"
#include "base/units.h"
#include "netem/cpu.h"
#include "tools/bench/bench.h"
#include "tools/lib/cases.h"
#include "tools/lib/json_out.h"
#include "tools/lib/model_files.h"
#include "tools/report/report.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static int gct_bench_write_json(
	const struct gct_bench *b, const struct gct_bench_result *r, int n, const char *path);

/* ---- What the simulator says of the cases that are measured. */

struct gct_bench_predictor {
	struct gci_simnet net;
	struct gci_params params;
	int measured; /* params were read */
};

void gct_bench_predict_end(struct gct_bench_predictor *p)
{
	if (!p)
		return;
	gci_simnet_free(&p->net);
	if (p->measured)
		gci_params_free(&p->params);
	gci_free(p);
}

/* params: a parameters file, or NULL; one of another grid is complained of, and the grid alone has to
 * do. NULL with the reason: out of memory, or it is no such file. */
static struct gct_bench_predictor *predict_begin(
	const struct gct_bench *b, const char *params, struct gci_error *e)
{
	struct gct_bench_predictor *p = gci_calloc(1, sizeof(*p));

	if (!p) {
		gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
		return NULL;
	}
	if (params)
		p->measured = !gct_read_params(params, b->comm->engine->job.grid, &p->params, e);
	if (e->status && e->status != GCOLL_ERR_INVAL) {
		e->status = e->status == GCOLL_ERR_NOMEM ? e->status : GCOLL_ERR_INVAL;
		gct_bench_predict_end(p);
		return NULL;
	}
	if (e->status) /* measured on another grid */
		fprintf(stderr, "gridcoll bench: %s\nPredictions are from the grid file alone.\n",
			e->text);
	gci_error_clear(e);
	if (gci_simnet_init(&p->net, &b->comm->topo, p->measured ? &p->params : NULL)) {
		gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
		gct_bench_predict_end(p);
		return NULL;
	}
	gci_simnet_streams(&p->net, b->comm->engine->settings.streams);
	return p;
}

uint64_t gct_bench_predict(
	struct gct_bench_predictor *p, const struct gci_coll *c, const struct gci_candidate *how)
{
	uint64_t ns;

	return gci_predict(&p->net, c, how, NULL, &ns) ? 0 : ns;
}

/* ---- The files that bench writes: results, a recorded run, pictures; and all that a report is
 * made from. */

/* DIR/NAME */
static char *report_path(const struct gct_bench_options *o, const char *name)
{
	return gci_asprintf("%s/%s", o->report, name);
}

static int nomem(void)
{
	return gci_comm_error(GCOLL_ERR_NOMEM, "out of memory");
}

static int make_directory(const struct gct_bench_options *o)
{
	char *path;
	int rc;

	if (mkdir(o->report, 0777) && errno != EEXIST)
		return gci_comm_error(GCOLL_ERR_IO, "--report %s: %s", o->report, strerror(errno));
	path = report_path(o, "report.html");
	rc = path ? gct_try_to_write(path) : nomem();
	gci_free(path);
	return rc;
}

static int open_own(struct gct_bench *b, const struct gct_bench_options *o)
{
	struct gci_error e = {0};
	int rc = 0;

	if (o->json)
		rc = gct_try_to_write(o->json);
	if (!rc && o->trace)
		rc = gct_try_to_write(o->trace);
	if (!rc && o->report)
		rc = make_directory(o);
	if (rc || !o->predict)
		return rc;
	b->predictor = predict_begin(b, o->params, &e);
	return b->predictor ? 0 : gci_comm_error(e.status, "%s", e.text);
}

int gct_bench_files_open(struct gct_bench *b, const struct gct_bench_options *o)
{
	if (o->wan_tolerance != UINT64_MAX && !b->lab.nlinks)
		return gci_comm_error(GCOLL_ERR_INVAL,
			"--wan-tolerance: no WAN link is counted here, expected a lab's");
	b->wants_course = o->report && b->comm->engine->job.grid->nclusters > 1;
	return b->comm->rank ? 0 : open_own(b, o);
}

/* A report has one run of each operation: of the first algorithm at the largest size. */
static int is_reported(const struct gct_bench_options *o, const struct gct_bench_result *r)
{
	int i;

	if (!o->report || r->column)
		return 0;
	for (i = 0; i < o->nsizes; i++)
		if (r->kind != GCI_BARRIER && o->sizes[i] > r->asked_nbytes)
			return 0;
	return 1;
}

int gct_bench_files_begin(
	struct gct_bench *b, const struct gct_bench_options *o, const struct gct_bench_result *r)
{
	*b->report_trace = '\0';
	if (o->trace) {
		b->trace_file = o->trace;
	} else if (is_reported(o, r)) {
		snprintf(b->report_trace, sizeof(b->report_trace), "%s/%s.trace", o->report,
			gci_kind_name(r->kind));
		b->trace_file = b->report_trace;
	} else {
		return 0;
	}
	b->trace = gct_bench_trace_begin(b);
	return b->trace ? 0 : nomem();
}

void gct_bench_files_end(struct gct_bench *b)
{
	gct_bench_trace_end(b->trace);
	b->trace = NULL;
}

static int write_grid(const struct gct_bench *b, const char *path)
{
	struct gci_buf text = {0};
	int rc;

	gci_grid_print(b->comm->engine->job.grid, &text);
	rc = text.failed ? nomem() : gct_write(path, &text);
	gci_buf_free(&text);
	return rc;
}

static int write_report(struct gct_bench *b, const struct gct_bench_options *o,
	const struct gct_bench_result *r, int n)
{
	char *grid = report_path(o, "grid"), *json = report_path(o, "bench.json");
	char *page = report_path(o, "report.html");
	struct gci_error e = {0};
	int rc = grid && json && page ? write_grid(b, grid) : nomem();

	if (!rc)
		rc = gct_bench_write_json(b, r, n, json);
	if (!rc && gct_html_write(o->report, page, &e))
		rc = gci_comm_error(e.status, "--report: %s", e.text);
	if (!rc)
		printf("report: %s\n", page);
	gci_free(grid);
	gci_free(json);
	gci_free(page);
	return rc;
}

int gct_bench_files_write(struct gct_bench *b, const struct gct_bench_options *o,
	const struct gct_bench_result *r, int n)
{
	int rc = o->json ? gct_bench_write_json(b, r, n, o->json) : 0;

	return rc || !o->report ? rc : write_report(b, o, r, n);
}

/* ---- what bench prints, and its JSON */

#define NAME_WIDTH 14

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

	printf("%d rank%s in %d cluster%s:", t->nranks, t->nranks > 1 ? "s" : "", t->nclusters,
		t->nclusters > 1 ? "s" : "");
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
		gci_comm_tp_config(b->comm->engine)
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
		printf("clocks are up to %s from rank 0's, give or take %s;\n"
		       "times allow for that\n",
			gci_format_time(b->clock_offset_ns, rate, 16),
			gci_format_time(b->clock_error_ns, delay, 16));
	fflush(stdout);
}

/* The bound is the same for all algorithms. */
void gct_bench_print_group(const struct gct_bench *b, const struct gct_bench_result *r)
{
	struct gci_coll coll = gct_bench_coll(b, r);
	uint64_t limit = gci_bound_ns(&coll, b->comm->engine->settings.streams);
	char t[16], bytes[16];

	printf("\n%s", gci_kind_name(r->kind));
	if (r->kind != GCI_BARRIER)
		printf(" of %s", gci_format_bytes(r->nbytes, bytes, 16));
	if (r->nbytes != r->asked_nbytes)
		printf(" (%d equal blocks; %" PRIu64 " bytes asked)", b->comm->size,
			r->asked_nbytes);
	if (limit)
		printf(", physical limit %s", time_text(limit, b->lab.dilation, t));
	printf("\n%-*s %7s %7s %7s %7s %5s", NAME_WIDTH, "algorithm", "first", "min", "median",
		"max", "x lim");
	if (b->predictor)
		printf(" %9s %4s %6s %4s\n", "predicted", "off", "resent", "CPU");
	else
		printf(" %7s %4s %6s %4s\n", "WAN", "seen", "resent", "CPU");
}

/* How far the prediction is from the median, in percent. */
static double error_of(const struct gct_bench_result *r)
{
	return 100 * ((double)r->predicted_ns / (double)gct_bench_median(r) - 1);
}

static void print_seen(const struct gct_bench_result *r, char *text, size_t size)
{
	uint64_t all = r->schedule_wan_nbytes;

	snprintf(text, size, "-");
	if (r->has_wan && all)
		snprintf(text, size, "%.0f%%", (double)r->wan_nbytes * 100 / (double)all);
}

/* Whether it is a lab, and the processor's figure then. */
static int is_busy(const struct gct_bench *b, const struct gct_bench_result *r)
{
	return b->lab.backend && r->cpu_percent > gci_cpu_most_percent(b->lab.backend);
}

/* A long one has a line of its own: the figures stay in their columns. */
static void print_name(const char *name)
{
	printf("%s%s%-*s", name, strlen(name) > NAME_WIDTH ? "\n" : "",
		strlen(name) > NAME_WIDTH ? NAME_WIDTH : (int)(NAME_WIDTH - strlen(name)), "");
}

void gct_bench_print(const struct gct_bench *b, const struct gct_bench_result *r)
{
	char t[4][16], wan[16] = "-", seen[16], ratio[16] = "-", cpu[16] = "-", resent[24];
	uint32_t k = b->lab.dilation;

	if (r->not_run[0]) {
		print_name(r->algorithm);
		printf(" not run: %s\n", r->not_run);
		return;
	}
	if (r->limit_ns)
		snprintf(ratio, sizeof(ratio), "%.2f",
			(double)gct_bench_median(r) / (double)r->limit_ns);
	if (r->cpu_percent >= 0)
		snprintf(cpu, sizeof(cpu), "%d%%%s", r->cpu_percent, is_busy(b, r) ? "!" : "");
	if (b->comm->topo.nclusters > 1)
		gci_format_bytes(r->schedule_wan_nbytes, wan, 16);
	print_seen(r, seen, sizeof(seen));
	snprintf(resent, sizeof(resent), "%llu",
		(unsigned long long)(b->comm->topo.nclusters > 1 ? r->wan_resent : r->resent));
	print_name(r->algorithm);
	printf(" %7s %7s %7s %7s %5s", time_text(r->cold_ns, k, t[0]), time_text(r->ns[0], k, t[1]),
		time_text(gct_bench_median(r), k, t[2]),
		time_text(r->ns[r->iterations - 1], k, t[3]), ratio);
	if (b->predictor)
		printf(" %9s %+3.0f%% %6s %4s\n", time_text(r->predicted_ns, k, t[0]), error_of(r),
			resent, cpu);
	else
		printf(" %7s %4s %6s %4s\n", wan, seen, resent, cpu);
	fflush(stdout);
}

/* Where predictions are good for something: 256 KiB and more have bytes to count, not only
 * overheads. */
static void print_errors(const struct gct_bench_result *r, int n)
{
	double *off = gci_calloc((size_t)n, sizeof(*off)), large = 0;
	const struct gct_bench_result *worst = NULL;
	char bytes[16];
	int i, k = 0;

	for (i = 0; off && i < n; i++) {
		if (r[i].not_run[0] || !r[i].predicted_ns)
			continue;
		off[k++] = fabs(error_of(&r[i]));
		if (r[i].nbytes >= 256u << 10 && off[k - 1] >= large) {
			large = off[k - 1];
			worst = &r[i];
		}
	}
	if (k)
		printf("\npredictions: %d, off by %.1f%% (median)", k, gci_median(off, (size_t)k));
	if (worst)
		printf(", at most %.1f%% from 256KiB (%s of %s by %s)", large,
			gci_kind_name(worst->kind), gci_format_bytes(worst->nbytes, bytes, 16),
			worst->algorithm);
	printf("\n");
	gci_free(off);
}

void gct_bench_print_footer(const struct gct_bench *b, const struct gct_bench_result *r, int n)
{
	int i, busy = 0, late = 0;

	for (i = 0; i < n; i++)
		busy |= !r[i].not_run[0] && is_busy(b, &r[i]);
	for (i = 0; i < n; i++)
		late |= !r[i].not_run[0] && r[i].late_ns > GCI_NS_PER_MS &&
			r[i].late_ns > r[i].ns[0] / 10;
	if (b->predictor)
		print_errors(r, n);
	printf("\nfirst: the row's first operation; connections are new where neither rows before,"
	       "\nstart signals nor warming up needed them; x lim: median over limit; %s"
	       "\n%s; resent: TCP segments sent again%s,"
	       "\nin all warm iterations\nevery result was verified on every rank\n",
		b->predictor ? "off: of" : "WAN: what the",
		b->predictor ? "the prediction from the median"
			     : "algorithm moves between clusters, per operation; "
			       "seen: by the WAN interfaces'\ncounters, of that",
		b->comm->topo.nclusters > 1 ? " between clusters" : "");
	if (late)
		printf("some ranks began more than a tenth of the operation's time late: "
		       "their machines are busy\n");
	if (busy)
		printf("! the machine's CPU was busy more than %d %% of the time: "
		       "these figures are the CPU's,\n"
		       "  not the network's; a larger dilation tells more\n",
			gci_cpu_most_percent(b->lab.backend));
	gct_bench_print_sockets(b);
}

static json_t *result_json(const struct gct_bench *b, const struct gct_bench_result *r)
{
	json_t *times = json_array();
	uint64_t i;

	if (r->not_run[0]) {
		json_decref(times);
		return json_pack("{s:s, s:I, s:s, s:s, s:s}", "operation", gci_kind_name(r->kind),
			"bytes", (json_int_t)r->nbytes, "algorithm", r->algorithm, "asked",
			r->asked_algorithm, "not_run", r->not_run);
	}
	for (i = 0; i < r->iterations; i++)
		json_array_append_new(times, json_integer((json_int_t)r->ns[i]));
	return json_pack(
		"{s:s, s:I, s:s, s:s, s:I, s:o, s:I, s:I, s:I, s:I, s:b, s:i, s:I, s:I, s:I, s:I, "
		"s:I, s:o*}",
		"operation", gci_kind_name(r->kind), "bytes", (json_int_t)r->nbytes, "algorithm",
		r->algorithm, "asked", r->asked_algorithm, "first_ns", (json_int_t)r->cold_ns,
		"warm_ns", times, "median_ns", (json_int_t)gct_bench_median(r), "limit_ns",
		(json_int_t)r->limit_ns, "wan_bytes", (json_int_t)r->wan_nbytes,
		"schedule_wan_bytes", (json_int_t)r->schedule_wan_nbytes, "wan_measured",
		r->has_wan, "cpu_percent", r->cpu_percent, "dilation", (json_int_t)b->lab.dilation,
		"late_ns", (json_int_t)r->late_ns, "predicted_ns", (json_int_t)r->predicted_ns,
		"resent_segments", (json_int_t)r->resent, "wan_resent_segments",
		(json_int_t)r->wan_resent, "course", gct_bench_course_json(b, r));
}

static int gct_bench_write_json(
	const struct gct_bench *b, const struct gct_bench_result *r, int n, const char *path)
{
	json_t *list = json_array(), *root;
	struct gci_buf text = {0};
	int i, rc;

	for (i = 0; i < n; i++)
		json_array_append_new(list, result_json(b, &r[i]));
	root = json_pack("{s:i, s:i, s:I, s:s, s:o, s:o}", "version", 1, "ranks", b->comm->size,
		"dilation", (json_int_t)b->lab.dilation, "lab",
		b->lab.backend ? b->lab.backend : "", "results", list, "sockets",
		gct_bench_sockets_json(b));
	rc = gct_json_print(root, 0, &text);
	if (!rc)
		rc = gct_write(path, &text);
	gci_buf_free(&text);
	return rc;
}
