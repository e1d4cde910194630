/* SPDX-License-Identifier: MIT */
#include "collectives/blocks/deal.h"

#include "base/clock.h"
#include "base/mem.h"
#include "collectives/blocks/route.h"

#include <string.h>

#define UNIT_NBYTES (64u << 10) /* of a segment, for the sake of rates */
#define SCALE       4096
#define ROUNDS      4 /* segments for each cluster tell of all */

struct gci_dealt {
	uint64_t count;
	uint64_t home_ns; /* between the root's cluster and it, in the direction of the vector */
	uint64_t rest_ns; /* the slowest of what it does alone */
	uint64_t next_ns; /* allreduce: of the busiest of its links, with one segment more */
	/* Of those by whom the busiest link would be as busy, who has less is preferred: the sum of
	 * its links' times; of allreduce how much that of all links' squared times grows, which
	 * evens them out. */
	uint64_t weight;
	int width;
};

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t unit_ns(uint64_t bps)
{
	return gci_transfer_ns(UNIT_NBYTES, bps) + 1;
}

static uint64_t sum_up(uint64_t sum, uint64_t ns)
{
	return sum > GCI_NEVER - ns ? GCI_NEVER : sum + ns;
}

/* What a cluster takes in for others' segments, and puts out for its own, passes its NICs too. */
static uint64_t port_ns(const struct gci_topo *t, int cluster)
{
	uint64_t most = t->nclusters > 2 ? (unsigned)t->nclusters - 2 : 0;

	return unit_ns(gci_nic_bps(t, cluster)) * most / (unsigned)gci_topo_size(t, cluster);
}

/* Of bcast the owner's way from the root's cluster counts, and those to the others; of reduce the
 * reverse. Between the root's and any other owner nothing else goes, but where the former is an
 * owner itself. */
static void look_at_rooted(struct gci_deal *d, int away, int a, int b, uint64_t ns)
{
	int owner = away ? a : b, other = away ? b : a;

	if (owner == d->home) {
		d->to[other].home_ns = ns;
		d->to[other].weight = sum_up(d->to[other].weight, ns);
	} else if (!away || other != d->home) {
		d->to[owner].rest_ns = larger(d->to[owner].rest_ns, ns);
		d->to[owner].weight = sum_up(d->to[owner].weight, ns);
	}
}

/* Of allreduce both of a pair send the other its operands, and its own segments' sums. */
static void look_at_pair(struct gci_deal *d, int a, int b, uint64_t ns)
{
	uint64_t *there = &d->pair_ns[a * d->n + b], *back = &d->pair_ns[b * d->n + a];

	*there = *back = larger(ns, *back);
	d->slowest_ns = larger(ns, d->slowest_ns);
}

static uint64_t links_into(struct gci_deal *d, const struct gci_coll *c, int to)
{
	uint64_t bps, sum = 0;
	int from;

	for (from = 0; from < d->n; from++) {
		struct gci_route r;
		int lanes;

		if (from == to)
			continue;
		r = gci_route(c, from, to);
		bps = gci_route_bps(&r);
		lanes = r.entries / r.gateways;
		d->to[to].width = lanes > d->to[to].width ? lanes : d->to[to].width;
		sum = sum_up(sum, bps);
		if (d->pair_ns)
			look_at_pair(d, from, to, unit_ns(bps));
		else
			look_at_rooted(d, c->kind == GCI_BCAST, from, to, unit_ns(bps));
	}
	return sum;
}

/* Operands of other clusters meet those of its own members, of which the one who leads their tree
 * takes in one for each of its levels. */
static void look_at_cluster(struct gci_deal *d, const struct gci_coll *c, int k)
{
	struct gci_dealt *x = &d->to[k];
	int size = gci_topo_size(c->topo, k), level;
	uint64_t bps = links_into(d, c, k), n = d->n > 1 ? bps / (unsigned)(d->n - 1) : 0;

	for (level = 1; level < size; level *= 2)
		bps = sum_up(bps, n);
	x->rest_ns = larger(x->rest_ns, port_ns(c->topo, k));
	n = bps / gci_nic_bps(c->topo, k) + 1;
	if ((unsigned)x->width < n)
		x->width = n < (unsigned)size ? (int)n : size;
	if (k == d->home)
		x->weight = GCI_NEVER;
}

/* Of the slowest of all is SCALE. */
static uint64_t squared(const struct gci_deal *d, int a, int b)
{
	uint64_t x = (uint64_t)((unsigned __int128)d->pair_ns[a * d->n + b] * SCALE /
				larger(d->slowest_ns, 1));

	return x * x;
}

/* Cluster k of an allreduce, when nothing is dealt yet. */
static void find_first(struct gci_deal *d, int k)
{
	struct gci_dealt *x = &d->to[k];
	int i;

	x->next_ns = x->rest_ns;
	for (i = 0; i < d->n; i++)
		if (i != k) {
			x->next_ns = larger(x->next_ns, d->pair_ns[k * d->n + i]);
			x->weight += squared(d, k, i);
		}
}

/* When cluster `owner` of an allreduce has got one more: what that means to the links of k. */
static void more_for(struct gci_deal *d, int k, int owner)
{
	struct gci_dealt *x = &d->to[k];
	int i;

	if (k != owner) {
		x->weight += 2 * squared(d, k, owner);
		x->next_ns = larger(x->next_ns,
			(x->count + d->to[owner].count + 1) * d->pair_ns[k * d->n + owner]);
		return;
	}
	x->next_ns = (x->count + 1) * x->rest_ns;
	for (i = 0; i < d->n; i++)
		if (i != k) {
			x->weight += 2 * squared(d, k, i);
			x->next_ns = larger(x->next_ns,
				(x->count + d->to[i].count + 1) * d->pair_ns[k * d->n + i]);
		}
}

/* When the busiest link of bcast or reduce would be done with one segment more for cluster k. */
static uint64_t next_rooted(const struct gci_deal *d, int k)
{
	const struct gci_dealt *x = &d->to[k];
	uint64_t ns = (x->count + 1) * x->rest_ns;
	int i;

	if (k != d->home)
		return larger(ns, (x->count + d->to[d->home].count + 1) * x->home_ns);
	for (i = 0; i < d->n; i++)
		ns = larger(ns, (x->count + d->to[i].count + 1) * d->to[i].home_ns);
	return ns;
}

int gci_deal_init(struct gci_deal *d, const struct gci_coll *c)
{
	size_t n = (size_t)c->topo->nclusters;

	*d = (struct gci_deal){.n = c->topo->nclusters};
	d->to = gci_calloc(n, sizeof(*d->to));
	if (!gci_kind_has_root(c->kind))
		d->pair_ns = gci_calloc(n * n, sizeof(*d->pair_ns));
	if (!d->to || (!gci_kind_has_root(c->kind) && !d->pair_ns)) {
		gci_deal_free(d);
		return GCOLL_ERR_NOMEM;
	}
	gci_deal_start(d, c);
	return 0;
}

void gci_deal_start(struct gci_deal *d, const struct gci_coll *c)
{
	size_t n = (size_t)d->n;
	int k;

	d->home = d->pair_ns ? -1 : c->topo->cluster[c->root];
	d->busy_ns = d->slowest_ns = 0;
	memset(d->to, 0, n * sizeof(*d->to));
	if (d->pair_ns)
		memset(d->pair_ns, 0, n * n * sizeof(*d->pair_ns));
	for (k = 0; k < d->n; k++)
		look_at_cluster(d, c, k);
	for (k = 0; k < d->n && d->pair_ns; k++)
		find_first(d, k);
}

void gci_deal_free(struct gci_deal *d)
{
	gci_free(d->pair_ns);
	gci_free(d->to);
	*d = (struct gci_deal){.n = 0};
}

int gci_deal_next(struct gci_deal *d)
{
	uint64_t ns, best_ns = 0;
	int k, best = -1;

	for (k = 0; k < d->n; k++) {
		ns = d->home < 0 ? d->to[k].next_ns : next_rooted(d, k);
		if (best < 0 || ns < best_ns ||
			(ns == best_ns && d->to[k].weight < d->to[best].weight)) {
			best = k;
			best_ns = ns;
		}
	}
	d->to[best].count++;
	d->busy_ns = larger(d->busy_ns, best_ns);
	for (k = 0; k < d->n && d->home < 0; k++)
		more_for(d, k, best);
	return best;
}

uint64_t gci_deal_count(const struct gci_deal *d, int cluster)
{
	return d->to[cluster].count;
}

int gci_deal_width(const struct gci_deal *d, int cluster)
{
	return d->to[cluster].width;
}

uint64_t gci_deal_ns(struct gci_deal *d, const struct gci_coll *c, uint64_t nbytes)
{
	unsigned i, n = ROUNDS * (unsigned)d->n;

	gci_deal_start(d, c);
	for (i = 0; i < n; i++)
		gci_deal_next(d);
	return (uint64_t)((unsigned __int128)d->busy_ns * nbytes / UNIT_NBYTES / n);
}
