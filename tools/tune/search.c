/* SPDX-License-Identifier: MIT
 * Searches for the best way to run a case, in step on all ranks: what is measured is the same on all
 * of them, and so is what each search asks next. What is simulated, rank 0 simulates, and tells. It
 * prints nothing but the table of gct_tune_compare. */
#include "base/clock.h"
#include "base/mem.h"
#include "base/units.h"
#include "collectives/models/magpie.h"
#include "collectives/tuner/estimate.h"
#include "tools/lib/progress.h"
#include "tools/tune/tune.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MOST_CANDIDATES 64
#define SAME            50 /* a fiftieth */

struct asked {
	struct gct_tune *t;
	const struct gct_tune_case *c;
};

/* Where a search looks: the algorithms asked for, or all, with segments of powers of two. */
struct space {
	struct gci_method *methods;
	size_t nmethods, cap;
	uint64_t segments[GCI_MOST_SEGMENTS];
	size_t nsegments;
};

static int out_of_memory(void)
{
	return gci_comm_error(GCOLL_ERR_NOMEM, "out of memory");
}

/* ---- where it looks */

static int add_method(struct space *s, const struct gci_candidate *how, int fixed)
{
	if (gci_grow(&s->methods, &s->cap, s->nmethods + 1, sizeof(*s->methods)))
		return out_of_memory();
	s->methods[s->nmethods++] = (struct gci_method){*how, fixed};
	return 0;
}

/* In all segments, unless it says one or uses none; and with its own choice, where it has one. */
static int add_algorithm(struct space *s, const struct gci_candidate *how)
{
	unsigned traits = how->algorithm->traits;
	int fixed = how->segment_nbytes || !(traits & GCI_USES_SEGMENT);
	int rc = add_method(s, how, fixed);

	if (!rc && !fixed && !(traits & GCI_BY_SEGMENT))
		rc = add_method(s, how, 1);
	return rc;
}

static int add_asked(struct space *s, const struct gct_tune *t, enum gci_kind kind)
{
	struct gci_candidate how;
	struct gci_error e = {0};
	int i, rc = 0;

	for (i = 0; i < t->o.nalgorithms && !rc; i++) {
		if (gci_candidate_parse(&how, kind, t->o.algorithms[i], &e))
			return gci_comm_error(e.status, "%s", e.text);
		rc = add_algorithm(s, &how);
	}
	return rc;
}

/* Plans for the whole grid take long to make, and are their own search. */
static int add_all(struct space *s, const struct gci_coll *c)
{
	const struct gci_algorithm *a;
	int rc = 0;

	gci_each_algorithm (a) {
		const struct gci_candidate how = {.algorithm = a};

		if (!rc && a->kind == c->kind && !gci_ineligible(a, c) && !(a->traits & GCI_PLANS))
			rc = add_algorithm(s, &how);
	}
	return rc;
}

static int add_promising(struct space *s, const struct gct_tune *t, const struct gci_coll *c)
{
	struct gci_candidate *list;
	size_t i, n;
	int rc = gci_candidates(&t->net, c, MOST_CANDIDATES, &list, &n);

	if (rc)
		return gci_comm_error(rc, "out of memory");
	for (i = 0; i < n && !rc; i++)
		rc = add_method(s, &list[i], 1);
	gci_free(list);
	return rc;
}

static int space_init(
	struct space *s, const struct gct_tune *t, const struct gct_tune_case *c, int listed)
{
	memset(s, 0, sizeof(*s));
	s->nsegments = gci_segment_sizes(&c->coll, t->o.least_segment, s->segments);
	if (t->o.nalgorithms)
		return add_asked(s, t, c->kind);
	return listed ? add_promising(s, t, &c->coll) : add_all(s, &c->coll);
}

static void space_free(struct space *s)
{
	gci_free(s->methods);
	memset(s, 0, sizeof(*s));
}

static struct gci_search space_search(
	const struct space *s, const struct gct_tune_case *c, gci_search_cost *cost, void *ctx)
{
	return (struct gci_search){.methods = s->methods,
		.nmethods = s->nmethods,
		.segments = s->segments,
		.nsegments = s->nsegments,
		.count = c->coll.count,
		.esize = c->coll.esize,
		.cost = cost,
		.ctx = ctx};
}

/* ---- what a candidate costs: by simulation, and by measuring. Nothing is asked twice for a case: a
 * search that comes later is told what it would have found out, and what that would have taken. */

static struct gct_known *known(const struct gct_tune *t, const struct gci_candidate *how)
{
	size_t i;

	for (i = 0; i < t->nknown; i++)
		if (gci_candidate_same(&t->known[i].how, how))
			return &t->known[i];
	return NULL;
}

/* An entry for what is not known yet. */
static struct gct_known *add_known(struct gct_tune *t, const struct gci_candidate *how)
{
	if (gci_grow(&t->known, &t->known_cap, t->nknown + 1, sizeof(*t->known)))
		return NULL;
	t->known[t->nknown] = (struct gct_known){*how, {.ns = GCI_NEVER}, 0};
	return &t->known[t->nknown++];
}

uint32_t gct_tune_streams(const struct gct_tune *t)
{
	/* A job was told of them; it may have been by other means, too. */
	return t->bench.comm ? t->bench.comm->engine->settings.streams : (uint32_t)t->o.streams;
}

int gct_tune_net(const struct gct_tune *t, const struct gci_topo *topo, struct gci_simnet *net)
{
	if (gci_simnet_init(net, topo, t->has_params ? &t->params : NULL))
		return out_of_memory();
	gci_simnet_streams(net, gct_tune_streams(t));
	return 0;
}

int gct_tune_simulate(const struct gct_tune *t, const struct gci_simnet *net,
	const struct gci_coll *c, const struct gci_candidate *how, struct gci_trial *trial)
{
	const struct gci_predict_limits limits = {.most_steps = GCT_MOST_STEPS};
	uint64_t from = gci_now_ns();
	int rc;

	if (gct_progress_is_due()) {
		char text[GCI_CANDIDATE_NBYTES];

		gci_candidate_print(how, text);
		gct_progress("%s: simulating %s", gci_kind_name(c->kind), text);
	}
	rc = gci_predict(net, c, how, &limits, &trial->ns);

	if (rc && rc != GCOLL_ERR_INVAL)
		return out_of_memory();
	if (rc)
		trial->ns = GCI_NEVER;
	trial->runs = 1;
	/* Times are shown divided by the dilation; this one is of no network. */
	trial->spent_ns = (gci_now_ns() - from) * t->dilation;
	return 0;
}

static int measure_new(struct gct_tune *t, const struct gct_tune_case *c,
	const struct gci_candidate *how, uint64_t enough_ns, struct gct_known *k)
{
	struct gct_bench_result r = {
		.kind = c->kind, .iterations = t->o.iterations, .enough_ns = enough_ns};
	char text[GCI_CANDIDATE_NBYTES];
	uint64_t i;
	int rc;

	gci_candidate_print(how, text);
	snprintf(r.algorithm, sizeof(r.algorithm), "%s", text);
	gct_bench_shape(&t->bench, &r, c->asked_nbytes);
	r.ns = gci_calloc(r.iterations, sizeof(*r.ns));
	if (!r.ns)
		return out_of_memory();
	rc = gcoll_comm_set(t->bench.comm, gci_kind_name(c->kind), text);
	if (!rc)
		rc = gct_bench_measure(&t->bench, &r);
	if (!rc) {
		k->first_ns = r.cold_ns;
		k->trial.ns = r.iterations ? gct_bench_median(&r) : r.cold_ns;
		k->trial.runs = r.iterations + 1;
		k->trial.spent_ns = r.cold_ns;
		for (i = 0; i < r.iterations; i++)
			k->trial.spent_ns += r.ns[i];
	}
	gci_free(r.ns);
	return rc;
}

static int is_told_by_one_run(const struct gct_known *k, uint64_t enough_ns)
{
	return enough_ns && k->first_ns > enough_ns;
}

static int measure_known(struct gct_tune *t, const struct gct_tune_case *c,
	const struct gci_candidate *how, struct gci_trial *trial)
{
	uint64_t enough_ns = trial->enough_ns;
	struct gct_known *k = known(t, how);
	int is_new = !k, rc = 0;

	if (is_new)
		k = add_known(t, how);
	if (!k)
		return out_of_memory();
	if (is_new ? !gci_ineligible(how->algorithm, &c->coll)
		   : k->trial.runs == 1 && !is_told_by_one_run(k, enough_ns))
		rc = measure_new(t, c, how, enough_ns, k);
	*trial = k->trial;
	if (is_told_by_one_run(k, enough_ns))
		*trial = (struct gci_trial){k->first_ns, k->first_ns, 1, 0};
	return rc;
}

static int measure_again(
	struct gct_tune *t, const struct gct_tune_case *c, const struct gci_candidate *how)
{
	struct gct_known *before = known(t, how), again = {0};
	int rc;

	if (!before || before->trial.ns == GCI_NEVER)
		return 0;
	rc = measure_new(t, c, how, 0, &again);
	if (rc)
		return rc;
	if (again.trial.ns < before->trial.ns)
		before->trial.ns = again.trial.ns;
	before->trial.runs += again.trial.runs;
	before->trial.spent_ns += again.trial.spent_ns;
	return 0;
}

/* ---- ranked by simulation */

static int simulate(void *ctx, const struct gci_candidate *how, struct gci_trial *trial)
{
	struct asked *a = ctx;

	return gct_tune_simulate(a->t, &a->t->net, &a->c->coll, how, trial);
}

/* Equal times stay as they were found: the default first. */
static void sort(struct gci_tried *list, size_t n)
{
	size_t i, k;

	for (i = 1; i < n; i++) {
		struct gci_tried x = list[i];

		for (k = i; k && list[k - 1].ns > x.ns; k--)
			list[k] = list[k - 1];
		list[k] = x;
	}
}

static int rank_by_simulation(
	struct gct_tune *t, const struct gct_tune_case *c, struct gci_search_result *r)
{
	struct space space;
	struct asked asked = {t, c};
	struct gci_search s;
	int rc = space_init(&space, t, c, 1);

	memset(r, 0, sizeof(*r));
	s = space_search(&space, c, simulate, &asked);
	if (!rc)
		rc = gci_search_exhaustive(&s, r);
	sort(r->tried, r->ntried);
	space_free(&space);
	return rc;
}

/* ---- what the pipeline method asks for: chains along a few ranks, and pairs. Measured in communicators
 * of those ranks, while the others have one each of their own, in which nothing has to be moved. */

/* ---- by measuring */

/* This kind's chain in b->comm's part of the job: all ranks start at the same time, and the last
 * one of all parts counts. */
static int measure_parts(struct gct_tune *t, gcoll_comm *part, enum gci_kind kind, uint64_t nbytes,
	const char *chain, struct gci_trial *trial)
{
	struct gct_bench b = t->bench;
	struct gct_bench_result r = {.kind = kind, .iterations = t->o.iterations};
	uint64_t i;
	int rc = gcoll_comm_set(part, gci_kind_name(kind), chain);

	b.comm = part;
	b.root = 0;
	gct_bench_shape(&b, &r, nbytes);
	r.ns = gci_calloc(r.iterations, sizeof(*r.ns));
	if (!r.ns)
		rc = out_of_memory();
	snprintf(r.algorithm, sizeof(r.algorithm), "%s", chain);
	if (!rc)
		rc = gct_bench_measure(&b, &r);
	t->bench.seed = b.seed;
	if (!rc) {
		*trial = (struct gci_trial){.ns = gct_bench_median(&r),
			.spent_ns = r.cold_ns,
			.runs = r.iterations + 1};
		for (i = 0; i < r.iterations; i++)
			trial->spent_ns += r.ns[i];
	}
	gci_free(r.ns);
	return rc;
}

/* ranks[] in this order; the others for themselves. */
static int split_path(struct gct_tune *t, const int *ranks, int n, gcoll_comm **part)
{
	int i, me = t->bench.comm->rank;

	for (i = 0; i < n && ranks[i] != me; i++)
		;
	return gcoll_comm_split(t->bench.own, i < n ? 0 : 1 + me, i, part);
}

static int measure_path(
	void *ctx, const int *ranks, int n, uint64_t segment_nbytes, struct gci_trial *trial)
{
	struct asked *a = ctx;
	struct gci_candidate how = {.algorithm = gci_algorithm_find(a->c->kind, "chain"),
		.segment_nbytes = segment_nbytes};
	uint64_t nbytes = a->c->nbytes;
	char text[GCI_CANDIDATE_NBYTES];
	gcoll_comm *part = NULL;
	int rc = split_path(a->t, ranks, n, &part);

	/* As many blocks as this part has ranks, each as long as before. */
	if (!rc && !gci_kind_has_vector(a->c->kind))
		nbytes = nbytes / (uint64_t)a->t->topo->nranks * (uint64_t)part->size;
	gci_candidate_print(&how, text);
	if (!rc)
		rc = measure_parts(a->t, part, a->c->kind, nbytes, text, trial);
	gcoll_comm_free(&part);
	return rc;
}

static uint64_t pair_nbytes(const struct gct_tune_case *c)
{
	uint64_t nbytes = c->coll.count * c->coll.esize;

	return nbytes > GCT_PAIR_NBYTES ? nbytes : GCT_PAIR_NBYTES;
}

static int measure_pairs(void *ctx, const int *from, const int *to, int n, struct gci_trial *trial)
{
	struct asked *a = ctx;
	gcoll_comm *part = NULL;
	int i, rc, me = a->t->bench.comm->rank;

	for (i = 0; i < n && from[i] != me && to[i] != me; i++)
		;
	rc = gcoll_comm_split(a->t->bench.own, i < n ? i : n + me, i < n && to[i] == me, &part);
	if (!rc)
		rc = measure_parts(a->t, part, GCI_BCAST, pair_nbytes(a->c), "chain", trial);
	gcoll_comm_free(&part);
	return rc;
}

/* ---- by simulation */

static int simulate_path(
	void *ctx, const int *ranks, int n, uint64_t segment_nbytes, struct gci_trial *trial)
{
	struct asked *a = ctx;
	struct gci_candidate how = {.algorithm = gci_algorithm_find(a->c->kind, "chain"),
		.segment_nbytes = segment_nbytes};
	struct gci_coll c = a->c->coll;
	struct gci_topo topo;
	struct gci_simnet net;
	int rc;

	if (gci_topo_sub(&topo, a->t->topo, ranks, n))
		return out_of_memory();
	c.topo = &topo;
	c.root = 0;
	rc = gct_tune_net(a->t, &topo, &net);
	if (rc) {
		gci_topo_free(&topo);
		return rc;
	}
	rc = gct_tune_simulate(a->t, &net, &c, &how, trial);
	gci_simnet_free(&net);
	gci_topo_free(&topo);
	return rc;
}

/* An alltoall in which only these pairs have something for each other. */
static int simulate_pairs(void *ctx, const int *from, const int *to, int n, struct gci_trial *trial)
{
	struct asked *a = ctx;
	size_t p = (size_t)a->t->topo->nranks;
	uint64_t *counts = gci_calloc(p * p, sizeof(*counts));
	struct gci_candidate how = {.algorithm = gci_algorithm_find(GCI_ALLTOALL, "circular")};
	struct gci_coll c = {
		.kind = GCI_ALLTOALL, .topo = a->t->topo, .esize = 1, .counts = counts};
	int i, rc;

	if (!counts)
		return out_of_memory();
	for (i = 0; i < n; i++)
		counts[(size_t)from[i] * p + (size_t)to[i]] = pair_nbytes(a->c);
	rc = gct_tune_simulate(a->t, &a->t->net, &c, &how, trial);
	gci_free(counts);
	return rc;
}

/* ---- both */

static int by_pipeline(struct gct_tune *t, const struct gct_tune_case *c, struct gci_search *s,
	struct gct_tune_answer *a)
{
	struct asked asked = {t, c};
	struct gci_pipeline p = {.coll = &c->coll,
		.path = t->bench.comm ? measure_path : simulate_path,
		.pairs = t->bench.comm ? measure_pairs : simulate_pairs,
		.ctx = &asked};
	int applies = 0, rc;

	a->r.best_ns = GCI_NEVER;
	if (!gci_algorithm_find(c->kind, "chain")) {
		a->why_not = "there is no chain for this operation";
		return 0;
	}
	rc = gci_search_pipeline(s, &p, &a->r, &applies);
	if (!rc && !applies)
		a->why_not = "pairs of ranks slow each other down";
	return rc;
}

/* ---- searches */

static int cost(void *ctx, const struct gci_candidate *how, struct gci_trial *trial)
{
	struct asked *a = ctx;

	if (!a->t->bench.comm)
		return gct_tune_simulate(a->t, &a->t->net, &a->c->coll, how, trial);
	return measure_known(a->t, a->c, how, trial);
}

typedef int search_fn(const struct gci_search *s, struct gci_search_result *r);

static search_fn *const searches[GCT_NSEARCHES] = {[GCT_EXHAUSTIVE] = gci_search_exhaustive,
	[GCT_HALVING] = gci_search_halving,
	[GCT_MGD] = gci_search_mgd,
	[GCT_SMGD] = gci_search_smgd};

/* ---- the best of a simulation, measured */

/* Rank 0's ways, in text, are everybody's. */
static int share(struct gct_tune *t, enum gci_kind kind, struct gci_candidate *list, size_t n)
{
	gcoll_comm *comm = t->bench.own;
	struct gci_error e = {0};
	char(*text)[GCI_CANDIDATE_NBYTES] = gci_calloc(n, sizeof(*text));
	size_t i;
	int rc;

	if (!text)
		return out_of_memory();
	for (i = 0; i < n && !comm->rank; i++)
		gci_candidate_print(&list[i], text[i]);
	rc = gcoll_bcast(text, n * sizeof(*text), GCOLL_BYTE, 0, comm);
	for (i = 0; i < n && !rc; i++) {
		text[i][GCI_CANDIDATE_NBYTES - 1] = 0;
		if (gci_candidate_parse(&list[i], kind, text[i], &e))
			rc = gci_comm_error(e.status, "%s", e.text);
	}
	gci_free(text);
	return rc;
}

/* Predictions this near are the same: fewer, larger messages are the safer way then. */
static int is_as_good(const struct gci_tried *x, const struct gci_tried *best)
{
	return x->ns != GCI_NEVER && (x->ns - best->ns) <= best->ns / SAME;
}

static uint64_t segment_of(const struct gci_tried *x)
{
	int whole = !x->how.segment_nbytes && x->how.algorithm->traits & GCI_BY_SEGMENT;

	return whole ? UINT64_MAX : x->how.segment_nbytes;
}

const struct gci_tried *gct_tune_prefer(const struct gci_search_result *ranked, size_t i)
{
	const struct gci_tried *best = &ranked->tried[i], *found = best, *x;

	for (x = best + 1; x < ranked->tried + ranked->ntried && is_as_good(x, best); x++)
		if (x->how.algorithm == best->how.algorithm && best->how.segment_nbytes &&
			segment_of(x) > segment_of(found))
			found = x;
	return found;
}

static int has_algorithm(const struct gci_candidate *list, size_t n, const struct gci_algorithm *a)
{
	while (n && list[n - 1].algorithm != a)
		n--;
	return n != 0;
}

static int has(const struct gci_candidate *list, size_t n, const struct gci_candidate *how)
{
	while (n && !gci_candidate_same(&list[n - 1], how))
		n--;
	return n != 0;
}

/* The best few, and `usual` if there is one. Predictions err more between algorithms than between
 * segments: first the best of each algorithm, then what else is fast. */
static size_t pick(const struct gct_tune *t, const struct gci_search_result *ranked,
	const struct gci_candidate *usual, struct gci_candidate *list)
{
	const struct gci_tried *x = ranked->tried;
	size_t i, n = 0;

	for (i = 0; i < ranked->ntried && n < t->o.measure; i++)
		if (x[i].ns != GCI_NEVER && !has_algorithm(list, n, x[i].how.algorithm))
			list[n++] = gct_tune_prefer(ranked, i)->how;
	for (i = 0; i < ranked->ntried && n < t->o.measure; i++)
		if (x[i].ns != GCI_NEVER && gct_tune_prefer(ranked, i) == &x[i] &&
			!has(list, n, &x[i].how))
			list[n++] = x[i].how;
	if (usual->algorithm)
		list[n++] = *usual;
	return n;
}

static int measure_list(struct gct_tune *t, const struct gct_tune_case *c,
	struct gci_candidate *list, uint64_t n, struct gci_search_result *r)
{
	struct gci_method *methods = gci_calloc(n, sizeof(*methods));
	struct asked asked = {t, c};
	struct gci_search s = {.methods = methods, .nmethods = n, .cost = cost, .ctx = &asked};
	struct gci_trial trial = {0};
	uint64_t i;
	int rc = methods ? share(t, c->kind, list, n) : out_of_memory();

	for (i = 0; i < n && !rc; i++) {
		methods[i] = (struct gci_method){list[i], 1};
		rc = measure_known(t, c, &list[i], &trial);
	}
	/* One that makes TCP lose packets slows down the next for a while: backwards, too. */
	for (i = n; i > 0 && n > 1 && !rc; i--)
		rc = measure_again(t, c, &list[i - 1]);
	if (!rc)
		rc = gci_search_exhaustive(&s, r);
	gci_free(methods);
	return rc;
}

int gct_tune_best(struct gct_tune *t, const struct gct_tune_case *c,
	const struct gci_candidate *usual, struct gci_search_result *ranked,
	struct gci_search_result *measured)
{
	struct gci_candidate *list = gci_calloc(t->o.measure + 1, sizeof(*list));
	uint64_t n = 0;
	int rc = list ? 0 : out_of_memory();

	if (!rc && gct_tune_is_first(t))
		rc = rank_by_simulation(t, c, ranked);
	if (!rc && t->bench.comm && t->o.measure) {
		if (gct_tune_is_first(t))
			n = pick(t, ranked, usual, list);
		rc = gcoll_bcast(&n, 1, GCOLL_UINT64, 0, t->bench.own);
		if (!rc)
			rc = measure_list(t, c, list, n, measured);
	}
	gci_free(list);
	return rc;
}

int gct_tune_usual(struct gct_tune *t, const struct gct_tune_case *c, struct gci_candidate *usual)
{
	struct gci_decision how;
	int rc = gci_decide(&t->decider, &c->coll, &how);

	if (rc)
		return gci_comm_error(rc, "%s: nothing can run it", gci_kind_name(c->kind));
	*usual = how.how;
	return 0;
}

/* As a search of its own: what was simulated counts, too. */
static int simulate_first(
	struct gct_tune *t, const struct gct_tune_case *c, struct gct_tune_answer *a)
{
	struct gci_search_result ranked = {.best_ns = GCI_NEVER}, measured = {.best_ns = GCI_NEVER};
	struct gci_candidate usual = {.algorithm = NULL};
	int rc = t->o.nalgorithms ? 0 : gct_tune_usual(t, c, &usual);

	if (!rc)
		rc = gct_tune_best(t, c, &usual, &ranked, &measured);
	if (!t->bench.comm || !t->o.measure) {
		a->r = ranked;
		a->predicted = 1;
		gci_search_result_free(&measured);
		return rc;
	}
	a->r = measured;
	a->r.spent_ns += ranked.spent_ns;
	gci_search_result_free(&ranked);
	return rc;
}

int gct_tune_search(struct gct_tune *t, const struct gct_tune_case *c, struct gct_tune_answer *a)
{
	struct space space;
	struct asked asked = {t, c};
	struct gci_search s;
	int rc;

	if (a->search == GCT_SIMULATE)
		return simulate_first(t, c, a);
	a->predicted = !t->bench.comm;
	rc = space_init(&space, t, c, 0);
	s = space_search(&space, c, cost, &asked);
	if (!rc && a->search == GCT_PIPELINE)
		rc = by_pipeline(t, c, &s, a);
	else if (!rc)
		rc = searches[a->search](&s, &a->r);
	space_free(&space);
	return rc;
}

/* ---- how near predictions of the best segment come, as Vadhiyar 2004 has it in table 3: for each
 * algorithm the best segment as measured, the best by MagPIe's formulas and by our simulation, and
 * what the operation takes in those. */

static int measure_one(void *ctx, const struct gci_candidate *how, struct gci_trial *trial)
{
	struct asked *a = ctx;

	return measure_known(a->t, a->c, how, trial);
}

enum { MAGPIE, SIMULATION, NMODELS };

/* One algorithm. */
struct row {
	const struct gci_method *method;
	struct gci_tried best;            /* as measured */
	uint64_t segment[NMODELS];        /* predicted; 0: not */
	struct gci_trial actual[NMODELS]; /* what these take */
};

/* The paper's formulas are of bcasts down these trees. */
static uint64_t by_magpie(
	const struct gct_tune *t, const struct gct_tune_case *c, const struct gci_algorithm *a)
{
	static const char *const shapes[GCI_MAGPIE_NSHAPES] = {
		"sequential", "chain", "binary", "binomial"};
	struct gci_plogp p = gci_plogp_measured(t->topo, t->has_params ? &t->params : NULL);
	enum gci_layer layer = t->topo->nclusters > 1 ? GCI_WAN : GCI_LAN;
	int i;

	for (i = 0; c->kind == GCI_BCAST && i < GCI_MAGPIE_NSHAPES; i++)
		if (!strcmp(shapes[i], a->name))
			return gci_magpie_tree_segment(
				&p, layer, (enum gci_magpie_shape)i, t->topo->nranks, c->nbytes);
	return 0;
}

/* On rank 0; the others are told. */
static int predict_row(
	struct gct_tune *t, const struct gct_tune_case *c, struct gci_search *s, struct row *row)
{
	struct asked asked = {t, c};
	struct gci_search_result r = {.best_ns = GCI_NEVER};
	int rc = 0;

	s->cost = simulate;
	s->ctx = &asked;
	if (gct_tune_is_first(t)) {
		rc = gci_search_exhaustive(s, &r);
		row->segment[SIMULATION] = r.best_ns != GCI_NEVER ? r.best.segment_nbytes : 0;
		row->segment[MAGPIE] = by_magpie(t, c, row->method->how.algorithm);
	}
	gci_search_result_free(&r);
	return rc ? rc : gcoll_bcast(row->segment, NMODELS, GCOLL_UINT64, 0, t->bench.own);
}

static int fill_row(struct gct_tune *t, const struct gct_tune_case *c, const struct space *space,
	struct row *row)
{
	struct asked asked = {t, c};
	struct gci_search s = space_search(space, c, measure_one, &asked);
	struct gci_search_result r;
	int m, rc;

	s.methods = row->method;
	s.nmethods = 1;
	rc = gci_search_exhaustive(&s, &r);
	row->best = (struct gci_tried){r.best, r.best_ns};
	gci_search_result_free(&r);
	if (!rc)
		rc = predict_row(t, c, &s, row);
	for (m = 0; m < NMODELS && !rc; m++) {
		struct gci_candidate how = row->method->how;

		how.segment_nbytes = row->segment[m];
		if (how.segment_nbytes)
			rc = measure_known(t, c, &how, &row->actual[m]);
	}
	return rc;
}

static const char *segment_text(uint64_t nbytes, char out[16])
{
	if (!nbytes)
		snprintf(out, 16, "-");
	else
		gci_format_bytes(nbytes, out, 16);
	return out;
}

static const char *ratio_text(const struct row *row, int model, char out[16])
{
	snprintf(out, 16, "-");
	if (row->segment[model] && row->best.ns && row->best.ns != GCI_NEVER)
		snprintf(out, 16, "%.2f", (double)row->actual[model].ns / (double)row->best.ns);
	return out;
}

static void print_row(const struct gct_tune *t, const struct row *row)
{
	char best[16], ns[16], segment[NMODELS][16], ratio[NMODELS][16];

	gct_progress_end();
	if (row->best.ns == GCI_NEVER) {
		printf("%-18s cannot run it\n", row->method->how.algorithm->name);
		return;
	}
	printf("%-18s %9s %9s %9s %9s %8s %8s\n", row->method->how.algorithm->name,
		segment_text(row->best.how.segment_nbytes, best),
		gci_format_time(row->best.ns / t->dilation, ns, 16),
		segment_text(row->segment[MAGPIE], segment[MAGPIE]),
		segment_text(row->segment[SIMULATION], segment[SIMULATION]),
		ratio_text(row, MAGPIE, ratio[MAGPIE]),
		ratio_text(row, SIMULATION, ratio[SIMULATION]));
	fflush(stdout);
}

int gct_tune_compare(struct gct_tune *t, const struct gct_tune_case *c)
{
	struct space space;
	size_t i;
	int rc = space_init(&space, t, c, 0);

	if (!rc && gct_tune_is_first(t)) {
		printf("%-18s %19s %9s %9s %17s\n%-18s %9s %9s %9s %9s %8s %8s\n", "",
			"best as measured", "MagPIe's", "simulated", "time there / best",
			"algorithm", "segment", "time", "segment", "segment", "MagPIe", "simul.");
	}
	for (i = 0; i < space.nmethods && !rc; i++) {
		struct row row = {.method = &space.methods[i]};

		if (row.method->fixed)
			continue;
		rc = fill_row(t, c, &space, &row);
		if (!rc && gct_tune_is_first(t))
			print_row(t, &row);
	}
	space_free(&space);
	return rc;
}
