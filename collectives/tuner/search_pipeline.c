/* SPDX-License-Identifier: MIT
 * ATCC's pipeline method (Vadhiyar 2004, 4.2, figure 5), and the pairwise test for saturation that
 * tells where it can be used. */
#include "base/clock.h"
#include "base/mem.h"
#include "collectives/tuner/search_impl.h"

#include <string.h>

#define SATURATED_PERCENT 120

/* ---- the longest path of a tree */

static int is_towards_root(enum gci_kind kind)
{
	return kind == GCI_REDUCE || kind == GCI_GATHER;
}

/* Whom this rank has its data from, or hands it to; -1: nobody, -2: several. */
static int parent_in(const struct gci_sched *s, enum gci_kind kind)
{
	int parent = -1;
	uint32_t i;

	for (i = 0; i < s->nsteps; i++) {
		const struct gci_step *step = &s->steps[i];
		int sends = step->kind == GCI_STEP_SEND;
		int receives = step->kind == GCI_STEP_RECV || step->kind == GCI_STEP_RECV_REDUCE;

		if (is_towards_root(kind) ? !sends : !receives)
			continue;
		if (parent >= 0 && parent != step->peer)
			return -2;
		parent = step->peer;
	}
	return parent;
}

/* parent[rank], the root's -1. False if it is no tree. */
static int find_parents(
	const struct gci_algorithm *a, const struct gci_coll *c, int *parent, int *is_tree)
{
	int r, n = c->topo->nranks;

	*is_tree = gci_kind_has_root(c->kind) && !gci_ineligible(a, c);
	for (r = 0; r < n && *is_tree; r++) {
		struct gci_sched s;

		if (gci_emit(a, c, r, &s))
			return GCOLL_ERR_NOMEM;
		parent[r] = parent_in(&s, c->kind);
		*is_tree = r == c->root ? parent[r] == -1 : parent[r] >= 0;
		gci_sched_free(&s);
	}
	return 0;
}

/* Edges from the root; -1: in a circle. */
static int depth_of(const int *parent, int n, int r)
{
	int depth = 0;

	for (; parent[r] >= 0 && depth <= n; r = parent[r])
		depth++;
	return depth <= n ? depth : -1;
}

int gci_tree_path(const struct gci_algorithm *a, const struct gci_coll *c, int *ranks, int *n)
{
	int *parent = gci_calloc((size_t)c->topo->nranks, sizeof(*parent));
	int r, i, depth, is_tree = 0, deepest = c->root, most = 0;
	int rc = parent ? find_parents(a, c, parent, &is_tree) : GCOLL_ERR_NOMEM;

	*n = 0;
	for (r = 0; r < c->topo->nranks && !rc && is_tree; r++) {
		depth = depth_of(parent, c->topo->nranks, r);
		is_tree = depth >= 0;
		if (depth > most) {
			most = depth;
			deepest = r;
		}
	}
	if (!rc && is_tree) {
		*n = most + 1;
		for (r = deepest, i = most; i >= 0; r = parent[r], i--)
			ranks[i] = r;
	}
	gci_free(parent);
	return rc;
}

/* ---- saturation */

/* Rank i with the one `distance` further on; each rank in one pair. */
static int make_pairs(int nranks, int distance, int *from, int *to)
{
	int i, n = 0;

	for (i = 0; i + distance < nranks; i++)
		if (i % (2 * distance) < distance) {
			from[n] = i;
			to[n++] = i + distance;
		}
	return n;
}

/* The first of the pairs between these two clusters? */
static int is_first_of_its_kind(const struct gci_topo *t, const int *from, const int *to, int i)
{
	int k;

	for (k = 0; k < i; k++)
		if (t->cluster[from[k]] == t->cluster[from[i]] &&
			t->cluster[to[k]] == t->cluster[to[i]])
			return 0;
	return 1;
}

static uint64_t time_pairs(
	struct gci_asking *a, const struct gci_pipeline *p, const int *from, const int *to, int n)
{
	struct gci_trial t = {.ns = GCI_NEVER};

	if (!a->rc)
		a->rc = p->pairs(p->ctx, from, to, n, &t);
	if (!a->rc)
		gci_ask_count(a, &t);
	return t.ns;
}

/* Does it take all of these pairs longer at once than the slowest of them alone? */
static int saturates(
	struct gci_asking *a, const struct gci_pipeline *p, const int *from, const int *to, int n)
{
	uint32_t percent = p->saturated_percent ? p->saturated_percent : SATURATED_PERCENT;
	uint64_t alone = 0, together, ns;
	int i;

	for (i = 0; i < n; i++) {
		if (!is_first_of_its_kind(p->coll->topo, from, to, i))
			continue;
		ns = time_pairs(a, p, from + i, to + i, 1);
		alone = ns > alone ? ns : alone;
	}
	if (n < 2)
		return 0;
	together = time_pairs(a, p, from, to, n);
	return (unsigned __int128)together * 100 > (unsigned __int128)alone * percent;
}

/* Neighbours, and ranks half of all apart. */
static int bears_all_pairs(struct gci_asking *a, const struct gci_pipeline *p, int *from, int *to)
{
	int n = p->coll->topo->nranks, half = n / 2;

	if (n < 2)
		return 1;
	if (saturates(a, p, from, to, make_pairs(n, 1, from, to)))
		return 0;
	return half < 2 || !saturates(a, p, from, to, make_pairs(n, half, from, to));
}

/* ---- the method */

/* The best segment for a chain along this path. */
static uint64_t best_segment(
	struct gci_asking *a, const struct gci_pipeline *p, size_t m, const int *ranks, int n)
{
	uint64_t best_ns = GCI_NEVER, best = 0;
	size_t i;

	for (i = 0; i < gci_asking_nsegments(a, m) && !a->rc; i++) {
		uint64_t segment = gci_asking_segment(a, m, i);
		struct gci_trial t = {.ns = GCI_NEVER};

		a->rc = p->path(p->ctx, ranks, n, segment, &t);
		if (a->rc)
			break;
		gci_ask_count(a, &t);
		if (!i || t.ns < best_ns) {
			best_ns = t.ns;
			best = segment;
		}
	}
	return best;
}

static void try_method(struct gci_asking *a, const struct gci_pipeline *p, size_t m, int *ranks)
{
	const struct gci_method *method = &a->s->methods[m];
	uint64_t segment = method->how.segment_nbytes;
	int n = 0;

	if (!method->fixed)
		a->rc = gci_tree_path(method->how.algorithm, p->coll, ranks, &n);
	if (!a->rc && n > 1)
		segment = best_segment(a, p, m, ranks, n);
	gci_ask(a, m, segment);
}

int gci_search_pipeline(const struct gci_search *s, const struct gci_pipeline *p,
	struct gci_search_result *r, int *applies)
{
	struct gci_asking a = gci_asking_begin(s, r);
	size_t m, n = (size_t)p->coll->topo->nranks;
	int *from = gci_calloc(n, sizeof(*from)), *to = gci_calloc(n, sizeof(*to));

	*applies = 0;
	if (!from || !to)
		a.rc = GCOLL_ERR_NOMEM;
	if (!a.rc)
		*applies = bears_all_pairs(&a, p, from, to) && !a.rc;
	for (m = 0; m < s->nmethods && *applies && !a.rc; m++)
		try_method(&a, p, m, from);
	gci_free(from);
	gci_free(to);
	return a.rc;
}
