/* SPDX-License-Identifier: MIT
 * An allgather from N broadcast trees (Gupta 2007, 6.1). The trees are either greedy ones, as in
 * Mateescu 2005: always the transfer that would be complete first, pools or not; or clustered ones,
 * that enter each pool once, annealed (plan_anneal.c). Each is made as if it were alone. Then a
 * "min based" order for all of them: of the transfers whose sender has the block, always the one
 * that would end first.
 *
 * Alike hosts are many equals for a tree that is made alone, and all trees would run through the
 * same ones; so of equals each block prefers others. */
#include "collectives/allgather/planner.h"

#include "base/mem.h"

#include <string.h>

struct combining {
	struct gci_planning *w;
	int *parent; /* [block * nhosts + host]; -1: not sent to */
	int next;    /* the host that the best transfer of the block looked at last goes to */
};

static uint64_t best(void *ctx, int block)
{
	struct combining *c = ctx;
	int n = c->w->net->nhosts, host;
	const int *parent = c->parent + (size_t)block * (size_t)n;
	const uint64_t *have = c->w->have_at + (size_t)block * (size_t)n;
	uint64_t min = GCI_NEVER, at;

	for (host = 0; host < n; host++) {
		if (parent[host] < 0 || have[host] != GCI_NEVER || have[parent[host]] == GCI_NEVER)
			continue;
		at = gci_total_time(c->w, block, parent[host], host);
		if (at < min) {
			min = at;
			c->next = host;
		}
	}
	return min;
}

static int take(void *ctx, int block, uint64_t end_ns)
{
	struct combining *c = ctx;
	int n = c->w->net->nhosts;

	(void)end_ns;
	return gci_planning_add(
		c->w, block, c->parent[(size_t)block * (size_t)n + (size_t)c->next], c->next);
}

/* `alone` is a plan for this block only. */
static void read_tree(const struct gci_plan *alone, int block, struct gci_tree *tree)
{
	size_t i;

	tree->host[0] = block;
	tree->parent[block] = -1;
	for (i = 0; i < alone->n; i++) {
		tree->host[i + 1] = alone->transfers[i].to;
		tree->parent[alone->transfers[i].to] = alone->transfers[i].from;
	}
}

/* The hosts of the lowest pools, each turned by the block's number. */
static void turn(const struct gci_pools *pools, int block, int *host)
{
	int i, k;

	for (i = 0; i < pools->n; i++) {
		const struct gci_pool *p = &pools->pool[i];

		for (k = 0; k < p->n && !p->nchildren; k++)
			host[p->first + k] = pools->host[p->first + (k + block) % p->n];
	}
}

static int make_tree(struct gci_planning *alone, const struct gci_pools *pools, int block,
	int annealed, struct gci_tree *tree)
{
	int rc;

	gci_planning_reset(alone);
	rc = annealed ? gci_plan_min3(alone, pools, block, block + 1)
		      : gci_plan_flat(alone, pools, block, block + 1);
	if (rc)
		return rc;
	read_tree(alone->plan, block, tree);
	return annealed && alone->plan->n ? gci_tree_anneal(alone, pools, block, tree) : 0;
}

static int make_trees(
	struct gci_planning *w, const struct gci_pools *pools, int annealed, int *parents)
{
	size_t n = (size_t)w->net->nhosts;
	struct gci_plan plan = {0};
	struct gci_planning alone;
	struct gci_pools turned = *pools;
	struct gci_tree tree = {.host = gci_calloc(n, sizeof(int))};
	int block,
		rc = gci_planning_start(&alone, w->net, w->nbytes, &plan, w->recv_at == w->send_at);

	turned.host = gci_calloc(n, sizeof(int));
	if (!tree.host || !turned.host)
		rc = GCOLL_ERR_NOMEM;
	memset(parents, 0xff, n * n * sizeof(int));
	for (block = 0; block < w->net->nhosts && !rc; block++) {
		tree.parent = parents + (size_t)block * n;
		turn(pools, block, turned.host);
		rc = make_tree(&alone, &turned, block, annealed, &tree);
	}
	gci_planning_end(&alone);
	gci_plan_free(&plan);
	gci_free(tree.host);
	gci_free(turned.host);
	return rc;
}

int gci_plan_trees(struct gci_planning *w, const struct gci_pools *pools, int annealed)
{
	size_t n = (size_t)w->net->nhosts;
	struct combining c = {.w = w, .parent = gci_calloc(n * n, sizeof(int))};
	struct gci_greedy g = {.nblocks = w->net->nhosts, .best = best, .take = take, .ctx = &c};
	int rc = GCOLL_ERR_NOMEM;

	g.bound = gci_calloc(n, sizeof(*g.bound));
	if (c.parent && g.bound)
		rc = make_trees(w, pools, annealed, c.parent);
	if (!rc)
		rc = gci_greedy_run(&g);
	gci_free(c.parent);
	gci_free(g.bound);
	return rc;
}
