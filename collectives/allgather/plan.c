/* SPDX-License-Identifier: MIT
 * The network that plans are made for, from what the grid tells.
 *
 * The parameters of Gupta 2007, 4, for a message of m bytes: latency, the one-way delay; bandwidth,
 * the least of both NICs, the link's rate, and what its connections get; os(m), the time for which
 * the sender's NIC and the link are taken up: m over the less of these two rates, so that a host
 * whose connections are slow can feed several; g(m) = m / bandwidth. As g(m) is shorter than the
 * transfer, a receiver is busy for longer than the link to it: CommLinkAvailTime never decides and
 * is left out. */
#include "collectives/allgather/plan.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/prng.h"
#include "collectives/allgather/planner.h"

#include <string.h>

static int gci_plan_min3(struct gci_planning *w, const struct gci_pools *pools, int first, int end);
static int gci_plan_flat(struct gci_planning *w, const struct gci_pools *pools, int first, int end);
static int gci_tree_anneal(const struct gci_planning *w, const struct gci_pools *pools, int block,
	struct gci_tree *tree);
static void gci_planning_reset(struct gci_planning *w);
static int gci_greedy_run(struct gci_greedy *g);

#define UNKNOWN_BPS 1000000000ull /* a NIC or link that the grid says nothing of */
#define MAX_BPS     (1ull << 50)  /* sums over all hosts fit in 64 bits */

/* The less of two rates, where 0 is one that is not known. */
static uint64_t less(uint64_t a, uint64_t b)
{
	return !a || (b && b < a) ? b : a;
}

/* In 2^-20 ns; 1448 of 1514 bytes in a packet are payload. */
static uint64_t byte_time(uint64_t bps)
{
	return (uint64_t)((((unsigned __int128)8 * GCI_NS_PER_S * 1514 / 1448) << 20) / bps);
}

struct gci_wire gci_path_of(uint64_t bps, uint64_t busy_bps, uint64_t latency_ns, int far)
{
	if (latency_ns > GCI_PATH_MAX_NS)
		latency_ns = GCI_PATH_MAX_NS;
	if (bps > MAX_BPS)
		bps = MAX_BPS;
	if (busy_bps > MAX_BPS)
		busy_bps = MAX_BPS;
	return (struct gci_wire){bps, latency_ns, byte_time(bps), byte_time(busy_bps), far};
}

static struct gci_wire path_between(const struct gci_topo *t, int a, int b)
{
	const struct gci_link *l = gci_topo_link(t, a, b);
	uint64_t out = t->nic_bps[a], bps;

	if (a != b)
		out = less(out, l->rate_bps);
	bps = less(out, t->nic_bps[b]);
	if (a != b)
		bps = less(bps,
			(l->flow_rate_bps < MAX_BPS ? l->flow_rate_bps : MAX_BPS) * l->streams);
	if (!bps)
		bps = UNKNOWN_BPS;
	return gci_path_of(bps, out > bps ? out : bps, l->delay_ns, a != b);
}

int gci_net_of(struct gci_net *net, const struct gci_topo *t)
{
	size_t n = (size_t)t->nclusters;
	int a, b;

	net->nhosts = t->nranks;
	net->nclasses = t->nclusters;
	net->class_of = gci_calloc((size_t)t->nranks, sizeof(*net->class_of));
	net->path = gci_calloc(n * n, sizeof(*net->path));
	if (!net->class_of || !net->path) {
		gci_net_free(net);
		return GCOLL_ERR_NOMEM;
	}
	memcpy(net->class_of, t->cluster, (size_t)t->nranks * sizeof(*net->class_of));
	for (a = 0; a < t->nclusters; a++)
		for (b = 0; b < t->nclusters; b++)
			net->path[a * t->nclusters + b] = path_between(t, a, b);
	return 0;
}

void gci_net_free(struct gci_net *net)
{
	gci_free(net->class_of);
	gci_free(net->path);
	memset(net, 0, sizeof(*net));
}

int gci_net_pools(struct gci_pools *p, const struct gci_net *net)
{
	size_t i, n = (size_t)net->nclasses;
	uint64_t *bps = gci_calloc(n * n, sizeof(*bps));
	struct gci_bandwidths b = {net->nhosts, net->nclasses, net->class_of, bps, 0};
	int rc = GCOLL_ERR_NOMEM;

	if (bps) {
		for (i = 0; i < n * n; i++)
			bps[i] = net->path[i].bps;
		rc = gci_pools_make(p, &b);
	}
	gci_free(bps);
	return rc;
}

/* ---- An allgather from N broadcast trees (Gupta 2007, 6.1). The trees are either greedy ones, as
 * in Mateescu 2005: always the transfer that would be complete first, pools or not; or clustered
 * ones, that enter each pool once, annealed. Each is made as if it were alone. Then a
 * "min based" order for all of them: of the transfers whose sender has the block, always the one
 * that would end first.
 *
 * Alike hosts are many equals for a tree that is made alone, and all trees would run through the
 * same ones; so of equals each block prefers others. */

struct combining {
	struct gci_planning *w;
	int *parent; /* [block * nhosts + host]; -1: not sent to */
	int next;    /* the host that the best transfer of the block looked at last goes to */
};

static uint64_t best_tree(void *ctx, int block)
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

static int take_tree(void *ctx, int block, uint64_t end_ns)
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

/* N broadcast trees in one. */
static int gci_plan_trees(struct gci_planning *w, const struct gci_pools *pools, int annealed)
{
	size_t n = (size_t)w->net->nhosts;
	struct combining c = {.w = w, .parent = gci_calloc(n * n, sizeof(int))};
	struct gci_greedy g = {
		.nblocks = w->net->nhosts, .best = best_tree, .take = take_tree, .ctx = &c};
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

/* ---- Min3-Allgather: Gupta 2007, figures 3 to 7. In each pool of the tree, from the root on,
 * every block goes to one host of every sub-pool: always the transfer that would end first, over
 * all blocks, sub-pools, and pairs of a host that has the block and one that wants it.
 *
 * FindMin's loops over pairs of hosts are over pairs of classes here: of the sources in one class
 * the one that could send first is the best, of a pool's hosts in one class the one that could
 * receive first. Which two hosts these are is asked for only when the transfer is chosen, and then
 * in the order of figure 4, so that the plan is the same as the paper's. In place of
 * UpdateAfterSched MinTime has lower bounds, for each block (gci_greedy) and in it for each
 * sub-pool: hosts only ever get busier, and a new source is asked at once. Cost: O(transfers x
 * hosts) where the bounds are near. */

/* A sub-pool's hosts of one class. */
struct face {
	int class;
	uint64_t recv_at; /* of the host that is free first */
};

struct level {
	struct gci_planning *w;
	int first_block;
	const int *host; /* of the input pool, sub-pool by sub-pool */
	int nhosts, npools;
	int *first;      /* [sub-pool], npools + 1 of them: in host[] */
	int *pool_of;    /* [host of the network] */
	int *first_face; /* [sub-pool], npools + 1 of them */
	struct face *face;
	int *source;          /* [block * npools ..]: Sources, in the order in which they came */
	int *nsources;        /* [block] */
	unsigned char *done;  /* [block * npools + sub-pool]: not in DestPools */
	uint64_t *bound;      /* [block] */
	uint64_t *pool_bound; /* [block * npools + sub-pool]: MinTime is this or later */
	int *last;            /* [block]: MinDestPool when it was looked at before */
	uint64_t *ready;      /* [class]: when the first source in it could send; GCI_NEVER
			       * between two looks at a block */
	int *classes;         /* those that have sources; scratch */
	int best;             /* MinDestPool of the block that was looked at last */
};

static void level_free(struct level *l)
{
	gci_free(l->first);
	gci_free(l->pool_of);
	gci_free(l->first_face);
	gci_free(l->face);
	gci_free(l->source);
	gci_free(l->nsources);
	gci_free(l->done);
	gci_free(l->bound);
	gci_free(l->pool_bound);
	gci_free(l->last);
	gci_free(l->ready);
	gci_free(l->classes);
}

static int level_alloc(struct level *l, int nblocks)
{
	size_t n = (size_t)l->nhosts, p = (size_t)l->npools, b = (size_t)nblocks;
	size_t nc = (size_t)l->w->net->nclasses;

	l->first = gci_calloc(p + 1, sizeof(*l->first));
	l->pool_of = gci_calloc((size_t)l->w->net->nhosts, sizeof(*l->pool_of));
	l->first_face = gci_calloc(p + 1, sizeof(*l->first_face));
	l->face = gci_calloc(n, sizeof(*l->face));
	l->source = gci_calloc(b * p, sizeof(*l->source));
	l->nsources = gci_calloc(b, sizeof(*l->nsources));
	l->done = gci_calloc(b * p, 1);
	l->bound = gci_calloc(b, sizeof(*l->bound));
	l->pool_bound = gci_calloc(b * p, sizeof(*l->pool_bound));
	l->last = gci_calloc(b, sizeof(*l->last));
	l->ready = gci_calloc(nc, sizeof(*l->ready));
	l->classes = gci_calloc(nc, sizeof(*l->classes));
	return l->first && l->pool_of && l->first_face && l->face && l->source && l->nsources &&
			       l->done && l->bound && l->pool_bound && l->last && l->ready &&
			       l->classes
		       ? 0
		       : GCOLL_ERR_NOMEM;
}

static int class_of(const struct level *l, int host)
{
	return l->w->net->class_of[host];
}

/* When the first host of a class in a sub-pool could receive. */
static uint64_t least_recv(const struct level *l, int pool, int class)
{
	uint64_t least = GCI_NEVER;
	int i;

	for (i = l->first[pool]; i < l->first[pool + 1]; i++)
		if (class_of(l, l->host[i]) == class && l->w->recv_at[l->host[i]] < least)
			least = l->w->recv_at[l->host[i]];
	return least;
}

static void make_faces(struct level *l)
{
	int p, i, k, n = 0;

	for (p = 0; p < l->npools; p++) {
		l->first_face[p] = n;
		for (i = l->first[p]; i < l->first[p + 1]; i++) {
			int class = class_of(l, l->host[i]);

			l->pool_of[l->host[i]] = p;
			for (k = l->first_face[p]; k < n && l->face[k].class != class; k++)
				;
			if (k == n)
				l->face[n++] = (struct face){class, least_recv(l, p, class)};
		}
	}
	l->first_face[p] = n;
}

/* After `host` sent or received. */
static void renew_face(struct level *l, int host)
{
	int k, p = l->pool_of[host];

	for (k = l->first_face[p]; k < l->first_face[p + 1]; k++)
		if (l->face[k].class == class_of(l, host))
			l->face[k].recv_at = least_recv(l, p, l->face[k].class);
}

/* When the block could come from a new source at the earliest. */
static void lower_bounds(struct level *l, int block, int host)
{
	uint64_t *bound = l->pool_bound + (size_t)block * (size_t)l->npools, end;
	uint64_t ready = gci_ready_at(l->w, l->first_block + block, host);
	int p, k;

	for (p = 0; p < l->npools; p++)
		for (k = l->first_face[p]; k < l->first_face[p + 1] && ready < bound[p]; k++) {
			end = gci_later(ready, l->face[k].recv_at) +
			      gci_transfer_time(l->w, l->first_block + block, class_of(l, host),
				      l->face[k].class);
			bound[p] = end < bound[p] ? end : bound[p];
		}
}

static void add_source(struct level *l, int block, int host)
{
	size_t row = (size_t)block * (size_t)l->npools;

	l->source[row + (size_t)l->nsources[block]++] = host;
	l->done[row + (size_t)l->pool_of[host]] = 1;
	lower_bounds(l, block, host);
}

/* Figure 3: one host of the pool has the block. */
static void init_sched(struct level *l, int nblocks)
{
	const struct gci_planning *w = l->w;
	int b, i;

	make_faces(l);
	for (i = 0; i < w->net->nclasses; i++)
		l->ready[i] = GCI_NEVER;
	for (b = 0; b < nblocks; b++) {
		const uint64_t *have =
			w->have_at + (size_t)(l->first_block + b) * (size_t)w->net->nhosts;

		if (!w->nbytes[l->first_block + b])
			l->bound[b] = GCI_NEVER;
		for (i = 0; i < l->nhosts; i++)
			if (have[l->host[i]] != GCI_NEVER) {
				add_source(l, b, l->host[i]);
				break;
			}
	}
}

/* Fills ready[] for the classes with sources of the block; returns their number. */
static int sources_by_class(struct level *l, int block)
{
	const int *source = l->source + (size_t)block * (size_t)l->npools;
	int i, n = 0;

	for (i = 0; i < l->nsources[block]; i++) {
		uint64_t at = gci_ready_at(l->w, l->first_block + block, source[i]);
		int class = class_of(l, source[i]);

		if (l->ready[class] == GCI_NEVER)
			l->classes[n++] = class;
		if (at < l->ready[class])
			l->ready[class] = at;
	}
	return n;
}

/* Figure 4: when the block could be at some host of a sub-pool. */
static uint64_t find_min(const struct level *l, int block, int pool, int nclasses)
{
	uint64_t min = GCI_NEVER, start, end;
	int k, i;

	for (k = l->first_face[pool]; k < l->first_face[pool + 1]; k++)
		for (i = 0; i < nclasses; i++) {
			start = gci_later(l->ready[l->classes[i]], l->face[k].recv_at);
			if (start >= min)
				continue;
			end = start + gci_transfer_time(l->w, l->first_block + block, l->classes[i],
					      l->face[k].class);
			min = end < min ? end : min;
		}
	return min;
}

/* Figure 5, lines 6 to 11. The sub-pool that was the best before is a measure that most others do
 * not come near. */
static uint64_t best(void *ctx, int block)
{
	struct level *l = ctx;
	size_t row = (size_t)block * (size_t)l->npools;
	const unsigned char *done = l->done + row;
	uint64_t *bound = l->pool_bound + row, min = GCI_NEVER, measure = GCI_NEVER - 1;
	int p = l->last[block], nclasses = sources_by_class(l, block);

	if (!done[p])
		measure = find_min(l, block, p, nclasses);
	for (p = 0; p < l->npools; p++) {
		if (done[p] || bound[p] > measure || bound[p] >= min)
			continue;
		bound[p] = find_min(l, block, p, nclasses);
		if (bound[p] < min) {
			min = bound[p];
			l->best = p;
		}
	}
	while (nclasses > 0)
		l->ready[l->classes[--nclasses]] = GCI_NEVER;
	l->last[block] = l->best;
	return min;
}

/* Figure 5, lines 19 to 22; of the pairs of hosts that make it by end_ns the first in the order of
 * figure 4. */
static int take(void *ctx, int block, uint64_t end_ns)
{
	struct level *l = ctx;
	const int *source = l->source + (size_t)block * (size_t)l->npools;
	int i, k, rc, from = -1, to = -1;

	for (i = 0; i < l->nsources[block] && from < 0; i++)
		for (k = l->first[l->best]; k < l->first[l->best + 1] && from < 0; k++)
			if (gci_total_time(l->w, l->first_block + block, source[i], l->host[k]) ==
				end_ns) {
				from = source[i];
				to = l->host[k];
			}
	rc = gci_planning_add(l->w, l->first_block + block, from, to);
	add_source(l, block, to);
	renew_face(l, from);
	renew_face(l, to);
	return rc;
}

/* Figures 3 to 6 for the input pool whose sub-pools are set in l->first[]. */
static int schedule_input_pool(struct level *l, int nblocks)
{
	struct gci_greedy g = {nblocks, l->bound, best, take, l};

	init_sched(l, nblocks);
	return gci_greedy_run(&g);
}

/* Figure 7, without the recursion: pools stand in the list after the one they are in. */
static int gci_plan_min3(struct gci_planning *w, const struct gci_pools *pools, int first, int end)
{
	int i, k, rc = 0;

	for (i = 0; i < pools->n && !rc; i++) {
		const struct gci_pool *pool = &pools->pool[i];
		int inner = pool->nchildren;
		struct level l = {.w = w, .first_block = first};

		if (pool->n == 1)
			continue;
		l.host = pools->host + pool->first;
		l.nhosts = pool->n;
		l.npools = inner ? inner : pool->n;
		rc = level_alloc(&l, end - first);
		for (k = 0; k < l.npools && !rc; k++)
			l.first[k] = inner ? pools->pool[pool->child + k].first - pool->first : k;
		if (!rc) {
			l.first[k] = pool->n;
			rc = schedule_input_pool(&l, end - first);
		}
		level_free(&l);
	}
	return rc;
}

/* The same over hosts as if there were no pools: for one block, its earliest-completion tree. */
static int gci_plan_flat(struct gci_planning *w, const struct gci_pools *pools, int first, int end)
{
	struct gci_pool root = {.n = pools->pool[0].n, .parent = -1};
	struct gci_pools flat = {&root, 1, pools->host};

	return gci_plan_min3(w, &flat, first, end);
}

/* ---- A broadcast tree improved by simulated annealing inside the bounds of its pools (the
 * ClusteredSA trees that Gupta 2007, 6 compares with; its details are ours). A step gives a host
 * another parent in the same surroundings, or two hosts change places in the order of sending. What
 * is made smaller is the time when the last host has the block, and a little the mean of all.
 * Integers only, and seeded by the block's number: every rank anneals alike. */

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

/* Improves the tree of `block` by simulated annealing; no pool is entered more often than before.
 * 0 or GCOLL_ERR_NOMEM. */
static int gci_tree_anneal(const struct gci_planning *w, const struct gci_pools *pools, int block,
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

/* ---- The hosts while a plan is being made (Gupta 2007, 4), and the greedy loop of all
 * planners. */

static int all_alike(const uint64_t *nbytes, int n)
{
	while (--n > 0 && nbytes[n] == nbytes[0])
		;
	return n == 0;
}

static void fill_times(struct gci_planning *w)
{
	int a, b, n = w->net->nclasses;

	for (a = 0; a < n; a++)
		for (b = 0; b < n; b++)
			w->time[b * n + a] =
				gci_path_transfer_ns(&w->net->path[a * n + b], w->nbytes[0]);
}

int gci_planning_start(struct gci_planning *w, const struct gci_net *net, const uint64_t *nbytes,
	struct gci_plan *plan, int half_duplex)
{
	size_t n = (size_t)net->nhosts, nc = (size_t)net->nclasses;
	int alike = all_alike(nbytes, net->nhosts);

	*w = (struct gci_planning){.net = net, .nbytes = nbytes, .plan = plan};
	w->send_at = gci_calloc(n, sizeof(*w->send_at));
	w->recv_at = half_duplex ? w->send_at : gci_calloc(n, sizeof(*w->recv_at));
	w->have_at = gci_calloc(n * n, sizeof(*w->have_at));
	w->time = alike ? gci_calloc(nc * nc, sizeof(*w->time)) : NULL;
	if (!w->send_at || !w->recv_at || !w->have_at || (alike && !w->time)) {
		gci_planning_end(w);
		return GCOLL_ERR_NOMEM;
	}
	if (alike)
		fill_times(w);
	gci_planning_reset(w);
	return 0;
}

static void gci_planning_reset(struct gci_planning *w)
{
	size_t n = (size_t)w->net->nhosts, i;

	w->plan->n = 0;
	w->plan->end_ns = 0;
	memset(w->send_at, 0, n * sizeof(*w->send_at));
	memset(w->recv_at, 0, n * sizeof(*w->recv_at));
	for (i = 0; i < n * n; i++)
		w->have_at[i] = i % (n + 1) ? GCI_NEVER : 0;
}

void gci_planning_end(struct gci_planning *w)
{
	if (w->recv_at != w->send_at)
		gci_free(w->recv_at);
	gci_free(w->send_at);
	gci_free(w->have_at);
	gci_free(w->time);
	memset(w, 0, sizeof(*w));
}

int gci_planning_add(struct gci_planning *w, int block, int from, int to)
{
	const struct gci_wire *path = gci_net_path(w->net, from, to);
	struct gci_plan *plan = w->plan;
	struct gci_transfer t = {.from = from, .to = to, .block = block};

	if (gci_grow(&plan->transfers, &plan->cap, plan->n + 1, sizeof(t)))
		return GCOLL_ERR_NOMEM;
	t.start_ns = gci_later(gci_ready_at(w, block, from), w->recv_at[to]);
	t.free_ns = t.start_ns + gci_path_busy_ns(path, w->nbytes[block]);
	t.end_ns = t.start_ns + gci_path_transfer_ns(path, w->nbytes[block]);
	w->send_at[from] = t.free_ns;
	w->recv_at[to] = t.end_ns;
	w->have_at[(size_t)block * (size_t)w->net->nhosts + (size_t)to] = t.end_ns;
	plan->transfers[plan->n++] = t;
	plan->end_ns = gci_later(plan->end_ns, t.end_ns);
	return 0;
}

/* The first of the blocks whose bound is the least; -1: nothing is left. */
static int in_front(const struct gci_greedy *g)
{
	uint64_t least = GCI_NEVER;
	int i, block = -1;

	for (i = 0; i < g->nblocks; i++)
		if (g->bound[i] < least) {
			least = g->bound[i];
			block = i;
		}
	return block;
}

static int gci_greedy_run(struct gci_greedy *g)
{
	int block, rc = 0;

	while (!rc && (block = in_front(g)) >= 0) {
		uint64_t end_ns = g->best(g->ctx, block);

		if (end_ns == g->bound[block] && end_ns != GCI_NEVER)
			rc = g->take(g->ctx, block, end_ns);
		else
			g->bound[block] = end_ns;
	}
	return rc;
}

static int has_bytes(const struct gci_net *net, const uint64_t *nbytes)
{
	int i;

	for (i = 0; i < net->nhosts; i++)
		if (nbytes[i])
			return net->nhosts > 1;
	return 0;
}

int gci_plan_make(struct gci_plan *plan, const struct gci_net *net, const uint64_t *nbytes,
	enum gci_planner how, int half_duplex)
{
	struct gci_pools pools;
	struct gci_planning w;
	int rc;

	memset(plan, 0, sizeof(*plan));
	if (!has_bytes(net, nbytes))
		return 0;
	rc = gci_net_pools(&pools, net);
	if (rc)
		return rc;
	rc = gci_planning_start(&w, net, nbytes, plan, half_duplex);
	if (!rc && how == GCI_PLAN_MIN3)
		rc = gci_plan_min3(&w, &pools, 0, net->nhosts);
	else if (!rc)
		rc = gci_plan_trees(&w, &pools, how == GCI_PLAN_TREES_ANNEALED);
	gci_planning_end(&w);
	gci_pools_free(&pools);
	if (rc)
		gci_plan_free(plan);
	return rc;
}

void gci_plan_free(struct gci_plan *plan)
{
	gci_free(plan->transfers);
	memset(plan, 0, sizeof(*plan));
}
