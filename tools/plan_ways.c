/* SPDX-License-Identifier: MIT */
#include "tools/plan_ways.h"

#include "base/mem.h"
#include "collectives/tuner/candidates.h"
#include "tools/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST_CANDIDATES 16 /* of the tuner's */
#define MOST_ROUGH      32 /* with no time left: part of what all may cost, for each */

struct gct_way *gct_ways_find(const struct gct_ways *w, const struct gci_candidate *how)
{
	size_t i;

	for (i = 0; i < w->n; i++)
		if (gci_candidate_same(&w->list[i].how, how))
			return &w->list[i];
	return NULL;
}

int gct_ways_add(struct gct_ways *w, const struct gci_candidate *how)
{
	if (gct_ways_find(w, how))
		return 0;
	if (gci_grow(&w->list, &w->cap, w->n + 1, sizeof(*w->list)))
		return GCOLL_ERR_NOMEM;
	w->list[w->n] = (struct gct_way){.how = *how, .number = (uint32_t)w->n};
	w->n++;
	return 0;
}

int gct_ways_add_all(struct gct_ways *w)
{
	const struct gci_algorithm *a;
	struct gci_candidate *list;
	size_t i, n;
	int rc = gci_candidates(w->net, w->coll, MOST_CANDIDATES, &list, &n);

	for (i = 0; !rc && i < n; i++)
		rc = gct_ways_add(w, &list[i]);
	if (!rc || n)
		gci_free(list);
	gci_each_algorithm (a) {
		const struct gci_candidate how = {.algorithm = a};

		if (!rc && a->kind == w->coll->kind)
			rc = gct_ways_add(w, &how);
	}
	return rc;
}

void gct_way_progress(const struct gci_coll *c, const struct gci_candidate *how)
{
	char text[GCI_CANDIDATE_NBYTES];

	if (!gct_progress_is_due())
		return;
	gci_candidate_print(how, text);
	gct_progress("%s: simulating %s", gci_kind_name(c->kind), text);
}

int gct_way_simulate(const struct gci_simnet *net, const struct gci_coll *coll,
	const struct gci_candidate *how, uint64_t most_steps, struct gct_timeline *t,
	struct gci_sim_result *r)
{
	struct gci_coll c = *coll;
	struct gci_sim_op op = {.algorithm = how->algorithm,
		.coll = &c,
		.most_steps = most_steps,
		.trace = gct_timeline_event,
		.ctx = t};
	int rc;

	gci_candidate_apply(how, &c);
	t->topo = net->topo;
	t->esize = c.esize;
	rc = gci_simulate(net, &op, r);
	if (!rc)
		rc = t->failed ? GCOLL_ERR_NOMEM : gct_timeline_sort(t);
	if (rc) {
		gct_timeline_free(t);
		gci_sim_result_free(r);
	}
	return rc;
}

/* What simulating may cost, in steps. */
struct effort {
	uint64_t each, left, rough;
};

/* From the first segments, without a reason. */
static int predict(struct gct_ways *w, struct gct_way *way, struct effort *e)
{
	uint64_t spent = 0;
	const struct gci_predict_limits limits = {
		.most_steps = e->rough / MOST_ROUGH, .spent = &spent};
	int rc = GCOLL_ERR_INVAL;

	if (e->left)
		rc = gci_predict(w->net, w->coll, &way->how, &limits, &way->ns);
	e->left -= spent < e->left ? spent : e->left;
	if (rc == GCOLL_ERR_INVAL)
		snprintf(way->why_not, sizeof(way->why_not), "not simulated: too many steps");
	return rc == GCOLL_ERR_INVAL ? 0 : rc;
}

static int simulate(struct gct_ways *w, struct gct_way *way, struct effort *e)
{
	const char *why = gci_ineligible(way->how.algorithm, w->coll);
	struct gct_timeline t = {.topo = NULL};
	struct gci_sim_result r;
	int rc;

	if (why) {
		snprintf(way->why_not, sizeof(way->why_not), "cannot run it: %s", why);
		return 0;
	}
	gct_way_progress(w->coll, &way->how);
	rc = gct_way_simulate(
		w->net, w->coll, &way->how, e->each < e->left ? e->each : e->left, &t, &r);
	if (rc == GCOLL_ERR_INVAL)
		return predict(w, way, e);
	if (rc)
		return rc;
	way->ns = r.ns;
	e->left -= r.nsteps < e->left ? r.nsteps : e->left;
	if (!t.cut) {
		rc = gct_facts_find(&way->facts, w->net, &t, &r);
		way->has_facts = !rc;
	}
	gct_timeline_free(&t);
	gci_sim_result_free(&r);
	return rc;
}

static int by_time(const void *a, const void *b)
{
	const struct gct_way *x = a, *y = b;

	if (!*x->why_not != !*y->why_not)
		return *x->why_not ? 1 : -1;
	if (x->ns != y->ns)
		return x->ns < y->ns ? -1 : 1;
	return x->number < y->number ? -1 : 1;
}

void gct_ways_sort(struct gct_ways *w)
{
	if (w->n)
		qsort(w->list, w->n, sizeof(*w->list), by_time);
}

const struct gct_way *gct_ways_known(const struct gct_ways *w)
{
	size_t i;

	for (i = 0; i < w->n; i++)
		if (w->list[i].has_facts)
			return &w->list[i];
	return NULL;
}

int gct_ways_simulate(struct gct_ways *w, uint64_t each, uint64_t all)
{
	/* The tuner's favourites, which come first, leave something for the others. */
	struct effort e = {.each = each, .left = all, .rough = all};
	size_t i;
	int rc = 0;

	for (i = 0; i < w->n && !rc; i++) {
		rc = simulate(w, &w->list[i], &e);
		if (e.each > e.left / 4)
			e.each = e.left / 4;
	}
	gct_ways_sort(w);
	return rc;
}

void gct_ways_free(struct gct_ways *w)
{
	gci_free(w->list);
	w->list = NULL;
	w->n = w->cap = 0;
}
