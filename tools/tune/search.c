/* SPDX-License-Identifier: MIT
 * Searches by measuring, in step on all ranks: what is measured is the same on all of them, and so
 * is what each search asks next. What is simulated, rank 0 simulates, and tells. */
#include "base/clock.h"
#include "base/mem.h"
#include "collectives/models/magpie.h"
#include "tools/tune/tune.h"

#include <string.h>

#define SAME 50 /* a fiftieth */

struct asked {
	struct gct_tune *t;
	const struct gct_tune_case *c;
};

static int cost(void *ctx, const struct gci_candidate *how, struct gci_trial *trial)
{
	struct asked *a = ctx;

	if (!a->t->bench.comm)
		return gct_tune_simulate(a->t, &a->t->net, &a->c->coll, how, trial);
	return gct_tune_measure(a->t, a->c, how, trial);
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
		return gci_comm_error(GCOLL_ERR_NOMEM, "out of memory");
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
	struct gci_trial trial;
	uint64_t i;
	int rc = methods ? share(t, c->kind, list, n)
			 : gci_comm_error(GCOLL_ERR_NOMEM, "out of memory");

	for (i = 0; i < n && !rc; i++) {
		methods[i] = (struct gci_method){list[i], 1};
		rc = gct_tune_measure(t, c, &list[i], &trial);
	}
	/* One that makes TCP lose packets slows down the next for a while: backwards, too. */
	for (i = n; i > 0 && n > 1 && !rc; i--)
		rc = gct_tune_measure_again(t, c, &list[i - 1]);
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
	int rc = list ? 0 : gci_comm_error(GCOLL_ERR_NOMEM, "out of memory");

	if (!rc && gct_tune_is_first(t))
		rc = gct_tune_rank(t, c, ranked);
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
	struct gct_tune_space space;
	struct asked asked = {t, c};
	struct gci_search s;
	int rc;

	if (a->search == GCT_SIMULATE)
		return simulate_first(t, c, a);
	a->predicted = !t->bench.comm;
	rc = gct_tune_space_init(&space, t, c, 0);
	s = gct_tune_space_search(&space, c, cost, &asked);
	if (!rc && a->search == GCT_PIPELINE)
		rc = gct_tune_pipeline(t, c, &s, a);
	else if (!rc)
		rc = searches[a->search](&s, &a->r);
	gct_tune_space_free(&space);
	return rc;
}
