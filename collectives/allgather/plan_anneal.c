/* SPDX-License-Identifier: MIT
 * A broadcast tree improved by simulated annealing inside the bounds of its pools (the ClusteredSA
 * trees that Gupta 2007, 6 compares with; its details are ours). A step gives a host another parent
 * in the same surroundings, or two hosts change places in the order of sending. What is made
 * smaller is the time when the last host has the block, and a little the mean of all. Integers
 * only, and seeded by the block's number: every rank anneals alike. */
#include "collectives/allgather/planner.h"

#include "base/mem.h"
#include "base/prng.h"

#include <string.h>

#define ROUNDS  160
#define COOLING 32 /* a 32nd each round */
#define HOT     16 /* at first a step for the worse costs about a 16th of the tree's time */

struct annealing {
	const struct gci_planning *w;
	const struct gci_pools *pools;
	int block, n;
	struct gci_tree *tree;
	int *pool;             /* [host]: the lowest one it is in */
	uint64_t *send, *have; /* [host] */
	int *best_host, *best_parent;
	uint64_t cost, best_cost;
	struct gci_prng prng;
};

/* Time of the tree with nothing else going on. A host receives once, before it sends: so the two
 * models of hosts agree. */
static uint64_t cost_of(struct annealing *a)
{
	const struct gci_tree *tree = a->tree;
	uint64_t nbytes = a->w->nbytes[a->block], last = 0, sum = 0;
	int i;

	a->send[a->block] = a->have[a->block] = 0;
	for (i = 1; i < a->n; i++) {
		int to = tree->host[i], from = tree->parent[to];
		const struct gci_wire *path = gci_net_path(a->w->net, from, to);
		uint64_t start = gci_later(a->send[from], a->have[from]);

		a->send[from] = start + gci_path_busy_ns(path, nbytes);
		a->have[to] = start + gci_path_transfer_ns(path, nbytes);
		a->send[to] = 0;
		last = gci_later(last, a->have[to]);
		sum += a->have[to] / (uint64_t)a->n;
	}
	return last + sum;
}

/* The smallest pool that has both; sub-pools have higher numbers than the pool they are in. */
static int common_pool(const struct annealing *a, int x, int y)
{
	int p = a->pool[x], q = a->pool[y];

	while (p != q)
		if (p > q)
			p = a->pools->pool[p].parent;
		else
			q = a->pools->pool[q].parent;
	return p;
}

/* With probability 2^-(worse / heat). */
static int accepted(struct annealing *a, uint64_t worse, uint64_t heat)
{
	uint64_t p, times = worse / heat;

	if (times > 63)
		return 0;
	p = UINT64_MAX >> times;
	p -= (uint64_t)((unsigned __int128)(p / 2) * (worse % heat) / heat);
	return gci_prng_next(&a->prng) <= p;
}

/* The tree has changed: true if it stays so. */
static int judge(struct annealing *a, uint64_t heat)
{
	uint64_t cost = cost_of(a);

	if (cost > a->cost && !accepted(a, cost - a->cost, heat))
		return 0;
	a->cost = cost;
	if (cost < a->best_cost) {
		a->best_cost = cost;
		memcpy(a->best_host, a->tree->host, (size_t)a->n * sizeof(int));
		memcpy(a->best_parent, a->tree->parent, (size_t)a->n * sizeof(int));
	}
	return 1;
}

static int pick(struct annealing *a, int from, int n)
{
	return from + (int)gci_prng_below(&a->prng, (uint64_t)n);
}

/* The edge to a host enters the pools that have it but not its parent: the same ones as before if
 * the smallest pool around both is the same. */
static void change_parent(struct annealing *a, uint64_t heat)
{
	int i = pick(a, 1, a->n - 1), host = a->tree->host[i];
	int old = a->tree->parent[host], parent = a->tree->host[pick(a, 0, i)];

	if (parent == old || common_pool(a, host, parent) != common_pool(a, host, old))
		return;
	a->tree->parent[host] = parent;
	if (!judge(a, heat))
		a->tree->parent[host] = old;
}

static void swap(struct gci_tree *tree, int i, int k)
{
	int host = tree->host[i];

	tree->host[i] = tree->host[k];
	tree->host[k] = host;
}

static void change_order(struct annealing *a, uint64_t heat)
{
	struct gci_tree *tree = a->tree;
	int i = pick(a, 1, a->n - 2), k = pick(a, i + 1, a->n - i - 1), j;

	for (j = i; j < k; j++) /* parents stay before their children */
		if (tree->parent[tree->host[j + 1]] == tree->host[i] ||
			tree->parent[tree->host[k]] == tree->host[j])
			return;
	swap(tree, i, k);
	if (!judge(a, heat))
		swap(tree, i, k);
}

static void anneal(struct annealing *a)
{
	uint64_t heat;
	int round, i, k;

	for (i = 0; i < a->pools->n; i++)
		for (k = 0; k < a->pools->pool[i].n; k++)
			a->pool[a->pools->host[a->pools->pool[i].first + k]] = i;
	a->cost = cost_of(a);
	a->best_cost = a->cost + 1;
	heat = a->cost / HOT + 1;
	judge(a, heat);
	for (round = 0; round < ROUNDS; round++) {
		if (gci_prng_below(&a->prng, 2))
			change_parent(a, heat);
		else
			change_order(a, heat);
		heat -= heat / COOLING;
	}
	memcpy(a->tree->host, a->best_host, (size_t)a->n * sizeof(int));
	memcpy(a->tree->parent, a->best_parent, (size_t)a->n * sizeof(int));
}

int gci_tree_anneal(const struct gci_planning *w, const struct gci_pools *pools, int block,
	struct gci_tree *tree)
{
	size_t n = (size_t)w->net->nhosts;
	struct annealing a = {
		.w = w, .pools = pools, .block = block, .n = w->net->nhosts, .tree = tree};
	int rc = GCOLL_ERR_NOMEM;

	if (n < 3) /* there is but one tree */
		return 0;
	a.prng.state = (uint64_t)block;
	a.pool = gci_calloc(n, sizeof(*a.pool));
	a.send = gci_calloc(n, sizeof(*a.send));
	a.have = gci_calloc(n, sizeof(*a.have));
	a.best_host = gci_calloc(n, sizeof(*a.best_host));
	a.best_parent = gci_calloc(n, sizeof(*a.best_parent));
	if (a.pool && a.send && a.have && a.best_host && a.best_parent) {
		anneal(&a);
		rc = 0;
	}
	gci_free(a.pool);
	gci_free(a.send);
	gci_free(a.have);
	gci_free(a.best_host);
	gci_free(a.best_parent);
	return rc;
}
