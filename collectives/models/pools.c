/* SPDX-License-Identifier: MIT
 * The pool tree of Gupta 2007, 5.1. All bandwidths are sorted and put into bands of 10 %; what is
 * in a band counts as its maximum, and the maxima, from the lowest, are thresholds. A pool falls
 * into sub-pools at the first threshold that does not hold it together. The paper does not say in
 * which order hosts join a pool: here the one with the best average to those in it comes next. Of
 * the two directions between two hosts the slower counts, so that a pool is good both ways. */
#include "collectives/models/pools.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

struct forming {
	const struct gci_bandwidths *b;
	struct gci_pools *p;
	uint64_t *threshold; /* rising */
	int nthresholds;
	int *level;     /* [pool]: thresholds that are done with */
	uint64_t *both; /* [class * nclasses + class]: bandwidth, as its band's maximum */
	uint64_t *sum;  /* [host]: bandwidth to the members of the group that is being formed */
	int *group;     /* [host]: number of its group, or one of these */
	int *order;     /* [host], scratch */
};

enum { FREE = -1, REJECTED = -2 };

static int compare_rates(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static int class_of(const struct gci_bandwidths *b, int host)
{
	return b->class_of ? b->class_of[host] : host;
}

/* The bandwidth between two hosts of these classes, in the worse direction. */
static uint64_t worse(const struct gci_bandwidths *w, int a, int b)
{
	uint64_t there = w->bps[a * w->nclasses + b];
	uint64_t back = w->bps[b * w->nclasses + a];

	return there < back ? there : back;
}

/* `all` sorted: the maximum of each band moves to threshold[]. */
static void find_thresholds(struct forming *f, const uint64_t *all, int n)
{
	uint64_t base = 0;
	int i;

	for (i = 0; i < n; i++) {
		if (!i || (unsigned __int128)all[i] * 10 > (unsigned __int128)base * 11) {
			base = all[i];
			f->nthresholds++;
		}
		f->threshold[f->nthresholds - 1] = all[i];
	}
}

static uint64_t band_of(const struct forming *f, uint64_t bps)
{
	int lo = 0, hi = f->nthresholds - 1;

	while (lo < hi) {
		int mid = (lo + hi) / 2;

		if (f->threshold[mid] < bps)
			lo = mid + 1;
		else
			hi = mid;
	}
	return f->threshold[lo];
}

/* Bandwidths between all pairs of hosts; pairs of classes have them all. */
static int sort_bandwidths(struct forming *f)
{
	const struct gci_bandwidths *w = f->b;
	int a, b, n = 0, nc = w->nclasses, rc = GCOLL_ERR_NOMEM;
	uint64_t *all = gci_calloc((size_t)nc * (size_t)nc, sizeof(*all));
	int *size = gci_calloc((size_t)nc, sizeof(*size));

	if (all && size) {
		for (a = 0; a < w->nhosts; a++)
			size[class_of(w, a)]++;
		for (a = 0; a < nc; a++)
			for (b = 0; b < nc; b++)
				if (size[a] && size[b] && (a != b || size[a] > 1))
					all[n++] = w->bps[a * nc + b];
		qsort(all, (size_t)n, sizeof(*all), compare_rates);
		find_thresholds(f, all, n);
		for (a = 0; a < nc; a++)
			for (b = 0; f->nthresholds && b < nc; b++)
				f->both[a * nc + b] = band_of(f, worse(w, a, b));
		rc = 0;
	}
	gci_free(size);
	gci_free(all);
	return rc;
}

static uint64_t between(const struct forming *f, int a, int b)
{
	return f->both[class_of(f->b, a) * f->b->nclasses + class_of(f->b, b)];
}

/* Would every member of the group, of `size`, still reach the threshold with `host` in it? */
static int members_agree(const struct forming *f, const struct gci_pool *pool, int group, int size,
	int host, uint64_t threshold)
{
	int i;

	for (i = pool->first; i < pool->first + pool->n; i++) {
		int h = f->p->host[i];

		if (f->group[h] == group &&
			f->sum[h] + between(f, h, host) < threshold * (uint64_t)size)
			return 0;
	}
	return 1;
}

/* Sums of members are over the others, so `host` adds nothing to its own. */
static void join(struct forming *f, const struct gci_pool *pool, int group, int host)
{
	int i;

	for (i = pool->first; i < pool->first + pool->n; i++)
		if (f->p->host[i] != host)
			f->sum[f->p->host[i]] += between(f, f->p->host[i], host);
	f->group[host] = group;
}

/* The host outside of any group with the best average to this one; -1: none reaches it. */
static int next_host(
	const struct forming *f, const struct gci_pool *pool, int size, uint64_t threshold)
{
	int i, best = -1;

	for (i = pool->first; i < pool->first + pool->n; i++) {
		int h = f->p->host[i];

		if (f->group[h] == FREE && (best < 0 || f->sum[h] > f->sum[best]))
			best = h;
	}
	return best >= 0 && f->sum[best] >= threshold * (uint64_t)size ? best : -1;
}

static void form_group(
	struct forming *f, const struct gci_pool *pool, int group, int host, uint64_t threshold)
{
	int i, size;

	for (i = pool->first; i < pool->first + pool->n; i++) {
		f->sum[f->p->host[i]] = 0;
		if (f->group[f->p->host[i]] == REJECTED)
			f->group[f->p->host[i]] = FREE;
	}
	for (size = 0; host >= 0; host = next_host(f, pool, size, threshold)) {
		if (!members_agree(f, pool, group, size, host, threshold)) {
			f->group[host] = REJECTED;
			continue;
		}
		join(f, pool, group, host);
		size++;
	}
}

/* Puts the pool's hosts into groups; returns their number. */
static int split(struct forming *f, const struct gci_pool *pool, uint64_t threshold)
{
	int i, ngroups = 0;

	for (i = pool->first; i < pool->first + pool->n; i++)
		f->group[f->p->host[i]] = FREE;
	for (i = pool->first; i < pool->first + pool->n; i++)
		if (f->group[f->p->host[i]] < 0)
			form_group(f, pool, ngroups++, f->p->host[i], threshold);
	return ngroups;
}

/* The groups become sub-pools; in each, hosts keep their order. */
static void add_children(struct forming *f, int parent, int ngroups, int level)
{
	struct gci_pools *p = f->p;
	int g, i, at = p->pool[parent].first, first = at, n = p->pool[parent].n;

	p->pool[parent].child = p->n;
	p->pool[parent].nchildren = ngroups;
	memcpy(f->order, p->host + first, (size_t)n * sizeof(int));
	for (g = 0; g < ngroups; g++) {
		struct gci_pool *child = &p->pool[p->n];

		f->level[p->n++] = level;
		child->first = at;
		child->parent = parent;
		for (i = 0; i < n; i++)
			if (f->group[f->order[i]] == g)
				p->host[at++] = f->order[i];
		child->n = at - child->first;
		child->threshold_bps = child->n > 1 ? f->threshold[level - 1] : 0;
	}
}

/* What a pool must reach to hold together at a threshold. */
static uint64_t least_of(const struct forming *f, int level)
{
	return f->threshold[level] - f->threshold[level] / 100 * (uint64_t)f->b->slack;
}

static void divide(struct forming *f, int number)
{
	struct gci_pool *pool = &f->p->pool[number];
	int level, ngroups;

	for (level = f->level[number]; level < f->nthresholds && pool->n > 1; level++) {
		ngroups = split(f, pool, least_of(f, level));
		if (ngroups == pool->n)
			return;
		if (ngroups > 1) {
			add_children(f, number, ngroups, level + 1);
			return;
		}
		pool->threshold_bps = f->threshold[level];
	}
}

int gci_pools_make(struct gci_pools *p, const struct gci_bandwidths *b)
{
	size_t n = (size_t)b->nhosts, nc = (size_t)b->nclasses;
	struct forming f = {.b = b, .p = p};
	int i, rc = GCOLL_ERR_NOMEM;

	memset(p, 0, sizeof(*p));
	p->pool = gci_calloc(2 * n, sizeof(*p->pool)); /* every inner one has two or more below */
	p->host = gci_calloc(n, sizeof(*p->host));
	f.threshold = gci_calloc(nc * nc, sizeof(*f.threshold));
	f.both = gci_calloc(nc * nc, sizeof(*f.both));
	f.level = gci_calloc(2 * n, sizeof(*f.level));
	f.sum = gci_calloc(n, sizeof(*f.sum));
	f.group = gci_calloc(n, sizeof(*f.group));
	f.order = gci_calloc(n, sizeof(*f.order));
	if (p->pool && p->host && f.threshold && f.both && f.level && f.sum && f.group && f.order)
		rc = sort_bandwidths(&f);
	for (i = 0; !rc && i < b->nhosts; i++)
		p->host[i] = i;
	if (!rc) {
		p->n = 1;
		p->pool[0].n = b->nhosts;
		p->pool[0].parent = -1;
	}
	for (i = 0; !rc && i < p->n; i++)
		divide(&f, i);
	gci_free(f.threshold);
	gci_free(f.both);
	gci_free(f.level);
	gci_free(f.sum);
	gci_free(f.group);
	gci_free(f.order);
	if (rc)
		gci_pools_free(p);
	return rc;
}

void gci_pools_free(struct gci_pools *p)
{
	gci_free(p->pool);
	gci_free(p->host);
	memset(p, 0, sizeof(*p));
}

/* The pool's ancestor, or itself, that `depth` splits make. */
static int ancestor(const struct gci_pools *p, int pool, int depth)
{
	int d = 0, i;

	for (i = pool; p->pool[i].parent >= 0; i = p->pool[i].parent)
		d++;
	for (; d > depth; d--)
		pool = p->pool[pool].parent;
	return pool;
}

int gci_pools_cut(const struct gci_pools *p, int depth, int *cluster_of)
{
	int i, h, n = 0, all = p->pool[0].n;

	for (i = 0; i < p->n; i++)
		for (h = 0; !p->pool[i].nchildren && h < p->pool[i].n; h++)
			cluster_of[p->host[p->pool[i].first + h]] = -1 - ancestor(p, i, depth);
	/* From the numbers of pools, below 0, to those of clusters. */
	for (h = 0; h < all; h++) {
		int pool = cluster_of[h];

		if (pool >= 0)
			continue;
		for (i = h; i < all; i++)
			if (cluster_of[i] == pool)
				cluster_of[i] = n;
		n++;
	}
	return n;
}
