/* SPDX-License-Identifier: MIT
 * Min3-Allgather: Gupta 2007, figures 3 to 7. In each pool of the tree, from the root on, every
 * block goes to one host of every sub-pool: always the transfer that would end first, over all
 * blocks, sub-pools, and pairs of a host that has the block and one that wants it.
 *
 * FindMin's loops over pairs of hosts are over pairs of classes here: of the sources in one class
 * the one that could send first is the best, of a pool's hosts in one class the one that could
 * receive first. Which two hosts these are is asked for only when the transfer is chosen, and then
 * in the order of figure 4, so that the plan is the same as the paper's. In place of
 * UpdateAfterSched MinTime has lower bounds, for each block (gci_greedy) and in it for each
 * sub-pool: hosts only ever get busier, and a new source is asked at once. Cost: O(transfers x
 * hosts) where the bounds are near. */
#include "collectives/allgather/planner.h"

#include "base/mem.h"

#include <string.h>

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
int gci_plan_min3(struct gci_planning *w, const struct gci_pools *pools, int first, int end)
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

int gci_plan_flat(struct gci_planning *w, const struct gci_pools *pools, int first, int end)
{
	struct gci_pool root = {.n = pools->pool[0].n, .parent = -1};
	struct gci_pools flat = {&root, 1, pools->host};

	return gci_plan_min3(w, &flat, first, end);
}
