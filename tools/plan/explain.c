/* SPDX-License-Identifier: MIT */
#include "tools/plan/explain.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/units.h"
#include "tools/lib/gantt.h"
#include "tools/lib/json_out.h"
#include "tools/lib/tools.h"
#include "tools/plan/impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- a recorded run and a simulation as timelines of the same steps */

static int not_the_same(const struct gct_trace_window *w, const char *name, struct gci_error *e)
{
	return gci_error_set(e, GCOLL_ERR_PARSE,
		"%s: rank %d's %u steps of window %u are not those of this algorithm on this grid",
		name, w->rank, w->nsteps, w->window);
}

static int join_window(struct gct_timeline *actual, const struct gct_timeline *predicted,
	const struct gct_trace_window *w, const char *name, struct gci_error *e)
{
	uint32_t i;

	/* Windows in the middle of a long message are not simulated. */
	if (!gct_timeline_find(predicted, w->rank, w->window, 0))
		return 0;
	if (gct_timeline_find(predicted, w->rank, w->window, w->nsteps))
		return not_the_same(w, name, e);
	for (i = 0; i < w->nsteps; i++) {
		const struct gct_span *p = gct_timeline_find(predicted, w->rank, w->window, i);
		struct gct_span s;

		if (!p)
			return not_the_same(w, name, e);
		s = *p;
		s.ready_ns = s.from_ns = w->at[2 * i];
		s.to_ns = w->at[2 * i + 1];
		gct_timeline_add(actual, &s);
	}
	return 0;
}

/* When the first byte of a message can have come: its sender had begun, and was asked for what is
 * too long to be sent unasked. */
static uint64_t first_byte(const struct gct_timeline *t, const struct gci_simnet *net,
	const struct gct_span *send, const struct gct_span *recv)
{
	const int *cluster = t->topo->cluster;
	int n = t->topo->nclusters, from = cluster[send->rank], to = cluster[recv->rank];
	const struct gci_simnet_link *link = &net->links[from * n + to];
	uint64_t begun = send->ready_ns,
		 asked = recv->ready_ns + net->links[to * n + from].latency_ns;

	if (recv->nbytes > link->eager_nbytes && asked > begun)
		begun = asked;
	return begun + link->latency_ns;
}

/* A RECV was recorded from when it was asked for: its bytes came later. */
static void mend_starts(struct gct_timeline *actual, const struct gci_simnet *net)
{
	size_t i;

	for (i = 0; i < actual->n; i++) {
		struct gct_span *s = &actual->spans[i];
		uint64_t first;

		if (gct_span_lane(s) != GCT_LANE_RECV || !s->other)
			continue;
		first = first_byte(actual, net, &actual->spans[s->other - 1], s);
		if (first > s->from_ns)
			s->from_ns = first < s->to_ns ? first : s->to_ns;
	}
}

static int same_step_twice(const struct gct_timeline *t)
{
	size_t i;

	for (i = 1; i < t->n; i++)
		if (t->spans[i].rank == t->spans[i - 1].rank &&
			t->spans[i].window == t->spans[i - 1].window &&
			t->spans[i].step == t->spans[i - 1].step)
			return 1;
	return 0;
}

int gct_explain_join(struct gct_timeline *actual, const struct gct_timeline *predicted,
	const struct gci_simnet *net, const struct gct_trace *t, const char *name,
	struct gci_error *e)
{
	size_t i;
	int rc = 0;

	*actual = (struct gct_timeline){.topo = predicted->topo, .esize = predicted->esize};
	for (i = 0; i < t->nwindows && !rc; i++)
		rc = join_window(actual, predicted, &t->windows[i], name, e);
	if (!rc && (actual->failed || gct_timeline_sort(actual)))
		rc = gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	if (!rc && (actual->n != predicted->n || same_step_twice(actual)))
		rc = gci_error_set(e, GCOLL_ERR_PARSE,
			"%s: %zu steps, "
			"expected each of the %zu of this algorithm on this grid once",
			name, actual->n, predicted->n);
	if (rc) {
		gct_timeline_free(actual);
		return rc;
	}
	mend_starts(actual, net);
	return 0;
}

/* ---- what is said of them */

/* "2 kyoto > tokyo", "1 inside kyoto", "3 over WANs", "computing" */
void gct_explain_part_name(const struct gct_part *p, const char *const *clusters, char out[64])
{
	if (!p->phase)
		snprintf(out, 64, "copies, reductions");
	else if (p->from < 0)
		snprintf(out, 64, "%u %s", p->phase, p->wan ? "over WANs" : "inside clusters");
	else if (p->from == p->to)
		snprintf(out, 64, "%u inside %.20s", p->phase, clusters[p->from]);
	else
		snprintf(out, 64, "%u %.20s > %.20s", p->phase, clusters[p->from], clusters[p->to]);
}

static double off_percent(uint64_t is, uint64_t was)
{
	return was ? ((double)is / (double)was - 1) * 100 : 0;
}

static void put_head(const struct gct_explain_report *r, struct gci_buf *out)
{
	const struct gct_trace *t = r->trace;
	char how[GCI_CANDIDATE_NBYTES], bytes[16], was[16], is[16];

	gci_candidate_print(&t->how, how);
	gci_buf_printf(out, "%s of %s by %s on %d ranks\n%s\n", gci_kind_name(t->kind),
		gci_format_bytes(r->nbytes, bytes, 16), how, t->nranks, r->basis);
	if (t->dilation > 1)
		gci_buf_printf(out, "run in a lab dilated by %u: times are divided by that\n",
			t->dilation);
	gci_buf_printf(out, "\npredicted %s, measured %s: %+.1f %%\n",
		gci_format_time(r->predicted_ns / t->dilation, was, 16),
		gci_format_time(t->ns / t->dilation, is, 16), off_percent(t->ns, r->predicted_ns));
	if (r->left_out)
		gci_buf_printf(out,
			"below without %u window%s in the middle, "
			"whose steps are not simulated one by one\n",
			r->left_out, r->left_out > 1 ? "s" : "");
}

static void put_when(
	const struct gct_explain_report *r, const struct gct_when *w, struct gci_buf *out)
{
	char t[3][16];
	uint32_t k = r->trace->dilation;

	gci_buf_printf(out, " %7s %7s %7s", gci_format_time(w->start_ns / k, t[0], 16),
		gci_format_time(w->end_ns / k, t[1], 16),
		gci_format_time(w->busy_ns / k, t[2], 16));
}

static void put_worst(const struct gct_explain_report *r, struct gci_buf *out)
{
	const struct gct_explanation *x = r->x;
	uint32_t k = r->trace->dilation;
	char name[64], was[16], is[16];
	const struct gct_part *p;

	if (x->worst < 0) {
		gci_buf_printf(out, "\nno phase takes longer or shorter than predicted by more "
				    "than 2 %% of the whole\n");
	} else {
		p = &x->parts[x->worst];
		gct_explain_part_name(p, r->clusters, name);
		gci_buf_printf(out,
			"\nthey part most in \"%s\": it takes %s from start to end,\n"
			"where %s was predicted\n",
			name, gci_format_time((p->actual.end_ns - p->actual.start_ns) / k, is, 16),
			gci_format_time(
				(p->predicted.end_ns - p->predicted.start_ns) / k, was, 16));
	}
	if (x->late_rank >= 0)
		gci_buf_printf(out, "of all ranks, rank %d (%s) is farthest off: it ends %s %s\n",
			x->late_rank, r->trace->hosts[x->late_rank],
			gci_format_time((uint64_t)llabs(x->late_ns) / k, was, 16),
			x->late_ns < 0 ? "early" : "late");
}

void gct_explain_text(const struct gct_explain_report *r, struct gci_buf *out)
{
	char name[64], bytes[16];
	size_t i;

	put_head(r, out);
	gci_buf_printf(out, "\n%-20s %8s  %-23s %-23s\n%-20s %8s %7s %7s %7s %7s %7s %7s\n", "", "",
		"     predicted", "     actual", "phase", "bytes", "start", "end", "busy", "start",
		"end", "busy");
	for (i = 0; i < r->x->n; i++) {
		const struct gct_part *p = &r->x->parts[i];

		gct_explain_part_name(p, r->clusters, name);
		gci_buf_printf(out, "%-20s %8s", name, gci_format_bytes(p->nbytes, bytes, 16));
		put_when(r, &p->predicted, out);
		put_when(r, &p->actual, out);
		gci_buf_printf(out, "\n");
	}
	put_worst(r, out);
}

static json_t *when_json(const struct gct_when *w, uint32_t k)
{
	return json_pack("{s:I, s:I, s:I}", "start_ns", (json_int_t)(w->start_ns / k), "end_ns",
		(json_int_t)(w->end_ns / k), "busy_ns", (json_int_t)(w->busy_ns / k));
}

static json_t *part_json(const struct gct_explain_report *r, const struct gct_part *p)
{
	char name[64];

	gct_explain_part_name(p, r->clusters, name);
	return json_pack("{s:s, s:i, s:b, s:I, s:I, s:o, s:o}", "name", name, "phase",
		(int)p->phase, "wan", p->wan, "messages", (json_int_t)p->nmessages, "bytes",
		(json_int_t)p->nbytes, "predicted", when_json(&p->predicted, r->trace->dilation),
		"actual", when_json(&p->actual, r->trace->dilation));
}

int gct_explain_json(const struct gct_explain_report *r, struct gci_buf *out)
{
	const struct gct_trace *t = r->trace;
	json_t *parts = json_array(), *root;
	char how[GCI_CANDIDATE_NBYTES];
	int failed = 0;
	size_t i;

	gci_candidate_print(&t->how, how);
	for (i = 0; i < r->x->n; i++)
		gct_json_append(parts, part_json(r, &r->x->parts[i]), &failed);
	root = json_pack("{s:i, s:s, s:s, s:I, s:i, s:I, s:s, s:I, s:I, s:i, s:i, s:I, s:o}",
		"version", 1, "operation", gci_kind_name(t->kind), "algorithm", how, "bytes",
		(json_int_t)r->nbytes, "ranks", t->nranks, "dilation", (json_int_t)t->dilation,
		"basis", r->basis, "predicted_ns", (json_int_t)(r->predicted_ns / t->dilation),
		"measured_ns", (json_int_t)(t->ns / t->dilation), "worst_phase", r->x->worst,
		"late_rank", r->x->late_rank, "late_ns",
		(json_int_t)(r->x->late_ns / (int64_t)t->dilation), "phases", parts);
	return gct_json_print(root, failed, out);
}

/* ---- parts of a run, beside each other */

/* A span's part as a number, and what it adds to that. */
struct item {
	uint32_t part;
	int rank;
	uint64_t from_ns, to_ns;
};

struct parts {
	const struct gct_timeline *t;
	uint32_t phases; /* that messages have, a bit for each */
	int npairs;      /* of clusters that are told apart */
};

/* Parts are numbered by phase and pair of clusters; 0 is computing. */
static uint32_t part_of(const struct parts *p, const struct gct_span *s)
{
	const struct gci_topo *topo = p->t->topo;
	uint32_t phase = gct_span_phase(s), pair;
	int from, to;

	if (gct_span_lane(s) == GCT_LANE_COMPUTE)
		return 0;
	from = topo->cluster[s->kind == GCI_STEP_SEND ? s->rank : s->peer];
	to = topo->cluster[s->kind == GCI_STEP_SEND ? s->peer : s->rank];
	pair = p->npairs == 2 ? (uint32_t)(from != to) : (uint32_t)(from * topo->nclusters + to);
	phase = (uint32_t)__builtin_popcount(p->phases & ((1u << phase) - 1));
	return 1 + phase * (uint32_t)p->npairs + pair;
}

static void describe(const struct parts *p, uint32_t number, struct gct_part *part)
{
	int n = p->t->topo->nclusters, pair;

	part->from = part->to = -1;
	if (!number)
		return;
	pair = (int)(number - 1) % p->npairs;
	part->phase = 1 + (number - 1) / (uint32_t)p->npairs;
	part->wan = p->npairs == 2 ? pair : pair / n != pair % n;
	if (p->npairs != 2) {
		part->from = pair / n;
		part->to = pair % n;
	}
}

static int by_part(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->part != y->part)
		return x->part < y->part ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->from_ns != y->from_ns)
		return x->from_ns < y->from_ns ? -1 : 1;
	return x->to_ns < y->to_ns ? -1 : x->to_ns > y->to_ns;
}

/* Items of one part, from `list` on: their times. Returns how many there are. */
static size_t sum_up(const struct item *list, size_t n, struct gct_when *when)
{
	uint64_t busy = 0, nranks = 0, until = 0;
	size_t i;

	when->start_ns = list->from_ns;
	for (i = 0; i < n && list[i].part == list->part; i++) {
		if (!i || list[i].rank != list[i - 1].rank) {
			nranks++;
			until = 0;
		}
		if (list[i].to_ns > until) {
			busy += list[i].to_ns - (list[i].from_ns > until ? list[i].from_ns : until);
			until = list[i].to_ns;
		}
		when->start_ns =
			list[i].from_ns < when->start_ns ? list[i].from_ns : when->start_ns;
		when->end_ns = list[i].to_ns > when->end_ns ? list[i].to_ns : when->end_ns;
	}
	when->busy_ns = busy / nranks;
	return i;
}

/* Receives, copies and reductions; SENDs are the other side of the former. */
static size_t list_items(const struct parts *p, const struct gct_timeline *t, struct item *items)
{
	size_t i, n = 0;

	for (i = 0; i < t->n; i++) {
		const struct gct_span *s = &t->spans[i];

		if (s->kind != GCI_STEP_SEND)
			items[n++] = (struct item){part_of(p, s), s->rank, s->from_ns, s->to_ns};
	}
	if (n)
		qsort(items, n, sizeof(*items), by_part);
	return n;
}

static int by_start(const void *a, const void *b)
{
	const struct gct_part *x = a, *y = b;

	if (x->predicted.start_ns != y->predicted.start_ns)
		return x->predicted.start_ns < y->predicted.start_ns ? -1 : 1;
	return x->phase < y->phase ? -1 : x->phase > y->phase;
}

static void find_worst(struct gct_explanation *x, uint64_t whole_ns)
{
	uint64_t most = whole_ns / 50;
	size_t i;

	x->worst = -1;
	for (i = 0; i < x->n; i++) {
		const struct gct_part *p = &x->parts[i];
		uint64_t was = p->predicted.end_ns - p->predicted.start_ns;
		uint64_t is = p->actual.end_ns - p->actual.start_ns;
		uint64_t off = was > is ? was - is : is - was;

		if (off <= most)
			continue;
		most = off;
		x->worst = (int)i;
	}
}

static void find_late_rank(struct gct_explanation *x, const struct gct_timeline *predicted,
	const struct gct_timeline *actual)
{
	uint64_t was = 0, is = 0;
	size_t i;

	x->late_rank = -1;
	for (i = 0; i < actual->n; i++) {
		const struct gct_span *s = &actual->spans[i], *p = &predicted->spans[i];
		int last = i + 1 == actual->n || actual->spans[i + 1].rank != s->rank;

		was = p->to_ns > was ? p->to_ns : was;
		is = s->to_ns > is ? s->to_ns : is;
		if (!last)
			continue;
		if (x->late_rank < 0 || llabs((int64_t)(is - was)) > llabs(x->late_ns)) {
			x->late_rank = s->rank;
			x->late_ns = (int64_t)(is - was);
		}
		was = is = 0;
	}
}

/* Adds up the messages of each part, whose numbers are in `numbers`. */
static void count(struct gct_explanation *x, const uint32_t *numbers, const struct parts *p)
{
	size_t i, k;

	for (i = 0; i < p->t->n; i++) {
		const struct gct_span *s = &p->t->spans[i];
		uint32_t number = part_of(p, s);

		if (s->kind == GCI_STEP_SEND)
			continue;
		for (k = 0; numbers[k] != number; k++)
			;
		x->parts[k].nmessages++;
		x->parts[k].nbytes += s->nbytes;
	}
}

static int collect(struct gct_explanation *x, const struct parts *p,
	const struct gct_timeline *actual, struct item *was, struct item *is)
{
	size_t n = list_items(p, p->t, was), i, k;
	uint32_t *numbers;

	list_items(p, actual, is);
	for (i = 0; i < n; i++)
		x->n += !i || was[i].part != was[i - 1].part;
	x->parts = gci_calloc(x->n, sizeof(*x->parts));
	numbers = gci_calloc(x->n, sizeof(*numbers));
	if (!x->parts || !numbers) {
		gci_free(numbers);
		return GCOLL_ERR_NOMEM;
	}
	for (i = k = 0; i < n; k++) {
		numbers[k] = was[i].part;
		describe(p, was[i].part, &x->parts[k]);
		sum_up(is + i, n - i, &x->parts[k].actual);
		i += sum_up(was + i, n - i, &x->parts[k].predicted);
	}
	count(x, numbers, p);
	gci_free(numbers);
	return 0;
}

int gct_explain_compare(struct gct_explanation *x, const struct gct_timeline *predicted,
	const struct gct_timeline *actual)
{
	int n = predicted->topo->nclusters * predicted->topo->nclusters, rc = GCOLL_ERR_NOMEM;
	struct parts p = {predicted, 0, n > GCT_MOST_PAIRS ? 2 : n};
	struct item *was = gci_calloc(predicted->n, sizeof(*was));
	struct item *is = gci_calloc(predicted->n, sizeof(*is));
	size_t i;

	*x = (struct gct_explanation){.parts = NULL};
	for (i = 0; i < predicted->n; i++)
		if (gct_span_lane(&predicted->spans[i]) != GCT_LANE_COMPUTE)
			p.phases |= 1u << gct_span_phase(&predicted->spans[i]);
	if (was && is)
		rc = collect(x, &p, actual, was, is);
	gci_free(was);
	gci_free(is);
	if (rc) {
		gct_explain_free(x);
		return rc;
	}
	if (x->n)
		qsort(x->parts, x->n, sizeof(*x->parts), by_start);
	find_worst(x, gct_timeline_end(predicted));
	find_late_rank(x, predicted, actual);
	return 0;
}

void gct_explain_free(struct gct_explanation *x)
{
	gci_free(x->parts);
	x->parts = NULL;
	x->n = 0;
}

/* ---- gridcoll plan --explain: reads a recorded run, predicts the same, prints both. */

#define MOST_STEPS (1u << 21)

struct explaining {
	const struct gct_plan_options *o;
	struct gct_trace trace;
	struct gct_site site;
	struct gci_coll coll;
	struct gct_timeline predicted, actual;
	struct gci_sim_result result;
	struct gct_explanation x;
	struct gct_explain_report report;
};

static int read_trace(struct explaining *x)
{
	struct gci_buf text = {0};
	struct gci_error e = {0};
	int rc = gci_file_read(x->o->explain, GCT_TRACE_MOST_NBYTES, &text, &e);

	if (!rc)
		rc = gct_trace_parse(&x->trace, gci_buf_cstr(&text), text.len, x->o->explain, &e);
	gci_buf_free(&text);
	return rc ? gct_plan_wrong_file(&e) : 0;
}

static int check_site(struct explaining *x)
{
	if (x->site.topo_digest == x->trace.topo_digest)
		return 0;
	return gct_wrong("plan",
		"%s was recorded on another grid than %s, or one dilated otherwise: "
		"expected the same",
		x->o->explain, x->o->run.grid ? x->o->run.grid : "the lab's");
}

static int predict(struct explaining *x)
{
	const struct gct_trace *t = &x->trace;
	struct gci_error e = {0};
	const char *why;
	int rc;

	x->coll = (struct gci_coll){.kind = t->kind,
		.topo = &x->site.topo,
		.count = t->count,
		.esize = t->esize,
		.root = t->root};
	why = gci_ineligible(t->how.algorithm, &x->coll);
	if (why)
		return gct_wrong("plan", "%s: %s %s", x->o->explain, t->how.algorithm->name, why);
	rc = gct_way_simulate(
		&x->site.net, &x->coll, &t->how, MOST_STEPS, &x->predicted, &x->result);
	if (rc == GCOLL_ERR_INVAL || (!rc && x->predicted.cut))
		return gct_wrong("plan", "%s: more than %u steps", x->o->explain, MOST_STEPS);
	if (!rc)
		rc = gct_explain_join(
			&x->actual, &x->predicted, &x->site.net, t, x->o->explain, &e);
	if (e.status)
		return gct_plan_complain(&e);
	if (!rc)
		rc = gct_explain_compare(&x->x, &x->predicted, &x->actual);
	return rc ? gct_plan_nomem() : 0;
}

static int write_chart(struct explaining *x)
{
	char how[GCI_CANDIDATE_NBYTES], bytes[16], time[16], title[200];
	struct gct_gantt g = {.timeline = &x->actual,
		.title = title,
		.subtitle = x->o->explain,
		.names = (const char *const *)x->trace.hosts,
		.clusters = x->site.clusters,
		.dilation = x->trace.dilation};
	struct gci_error e = {0};
	struct gci_buf svg = {0};
	int rc;

	gci_candidate_print(&x->trace.how, how);
	snprintf(title, sizeof(title), "%s of %s by %s: measured %s", gci_kind_name(x->coll.kind),
		gci_format_bytes(x->report.nbytes, bytes, 16), how,
		gci_format_time(x->trace.ns / x->trace.dilation, time, 16));
	rc = gct_gantt_print(&g, &svg) ? gct_plan_nomem() : 0;
	if (!rc && gci_file_write(x->o->gantt, &svg, &e))
		rc = gct_plan_complain(&e);
	gci_buf_free(&svg);
	return rc;
}

static uint64_t size_of(const struct gci_coll *c)
{
	uint64_t n = gci_kind_has_vector(c->kind) ? 1 : (uint64_t)c->topo->nranks;

	return n * c->count * c->esize;
}

/* Windows of which nothing was simulated step by step. */
static uint32_t windows_left_out(const struct explaining *x)
{
	uint32_t i, n = 0;

	for (i = 0; x->result.extrapolated && i < x->result.nwindows; i++)
		n += !gct_timeline_find(&x->predicted, x->coll.root, i, 0);
	return n;
}

static int report(struct explaining *x)
{
	struct gci_buf out = {0};
	int rc = 0;

	x->report = (struct gct_explain_report){.trace = &x->trace,
		.x = &x->x,
		.clusters = x->site.clusters,
		.nbytes = size_of(&x->coll),
		.predicted_ns = x->result.ns,
		.left_out = windows_left_out(x),
		.basis = x->site.basis};
	if (x->o->gantt)
		rc = write_chart(x);
	if (!rc && x->o->json)
		rc = gct_explain_json(&x->report, &out) ? gct_plan_nomem() : 0;
	else if (!rc)
		gct_explain_text(&x->report, &out);
	if (!rc && out.failed)
		rc = gct_plan_nomem();
	if (!rc)
		fputs(gci_buf_cstr(&out), stdout);
	gci_buf_free(&out);
	return rc;
}

int gct_explain(const struct gct_plan_options *o)
{
	struct explaining x = {.o = o};
	struct gct_site_wish wish = {.run = &o->run, .params = o->params};
	int rc = read_trace(&x);

	if (!rc) {
		wish.dilation = x.trace.dilation;
		wish.streams = o->streams ? o->streams : x.trace.streams;
		wish.hosts = (const char *const *)x.trace.hosts;
		wish.nhosts = x.trace.nranks;
		wish.topo_digest = x.trace.topo_digest;
		rc = gct_site_make(&x.site, &wish);
	}
	if (!rc)
		rc = check_site(&x);
	if (!rc)
		rc = predict(&x);
	if (!rc)
		rc = report(&x);
	gct_explain_free(&x.x);
	gct_timeline_free(&x.predicted);
	gct_timeline_free(&x.actual);
	gci_sim_result_free(&x.result);
	gct_site_free(&x.site);
	gct_trace_free(&x.trace);
	return rc;
}
