/* SPDX-License-Identifier: MIT
 * What the pipeline method asks for: chains along a few ranks, and pairs. Measured in communicators
 * of those ranks, while the others have one each of their own, in which nothing has to be moved. */
#include "base/clock.h"
#include "base/mem.h"
#include "tools/tune/tune.h"

#include <stdio.h>
#include <string.h>

struct asked {
	struct gct_tune *t;
	const struct gct_tune_case *c;
};

static int out_of_memory(void)
{
	return gci_comm_error(GCOLL_ERR_NOMEM, "out of memory");
}

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

int gct_tune_pipeline(struct gct_tune *t, const struct gct_tune_case *c, struct gci_search *s,
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
