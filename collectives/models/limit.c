/* SPDX-License-Identifier: MIT
 * Bounds that hold for any algorithm, one end of the wire at a time: what a NIC, or all links into
 * or out of a cluster together, must move at least, and of that what comes from, or goes to, places
 * at least so far away can only be complete after the way there as well.
 *
 * Where a place needs something of several others it may get the sum of it (their blocks) or one
 * for all (their operands, reduced on the way); where it gives something to several others it must
 * give each its own (blocks), or one for all (copies are made on the way). */
#include "collectives/models/limit.h"

#include "base/clock.h"
#include "collectives/blocks/layout.h"

static uint64_t max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Rates of a file may be anything. */
static uint64_t plus(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* At the payload rate of TCP over Ethernet with packets of 1500 bytes. */
static uint64_t payload_ns(uint64_t nbytes, uint64_t bps)
{
	return (uint64_t)((unsigned __int128)nbytes * 8 * GCI_NS_PER_S * 1514 / 1448 / bps);
}

/* One end: a rank's NIC, or, with rank -1, all of a cluster's links. */
struct end {
	const struct gci_coll *c;
	int rank, cluster;
	int out;                                  /* which direction */
	uint64_t bps;                             /* 0: unknown */
	uint64_t distance[GCI_GRID_MAX_CLUSTERS]; /* ns, from or to each cluster */
	uint64_t nbytes[GCI_GRID_MAX_CLUSTERS];   /* that must come from, or go to it */
};

/* All blocks that cluster k's ranks own, but not that of `but`. */
static uint64_t blocks_of(const struct gci_coll *c, int k, int but)
{
	const int *member = gci_topo_members(c->topo, k);
	int i, n = gci_topo_size(c->topo, k);
	uint64_t sum = 0;

	if (!c->counts)
		return (uint64_t)(n - (but >= 0 && c->topo->cluster[but] == k)) * c->count;
	for (i = 0; i < n; i++)
		sum += member[i] == but ? 0 : c->counts[member[i]];
	return sum;
}

/* What cluster `from`, or only `rank` of it, gives to cluster `to` in an alltoall. */
static uint64_t pairs(const struct gci_coll *c, int from, int to, int sender, int receiver)
{
	const struct gci_topo *t = c->topo;
	const int *f = gci_topo_members(t, from), *g = gci_topo_members(t, to);
	int i, k, nf = gci_topo_size(t, from), ng = gci_topo_size(t, to);
	uint64_t sum = 0;

	for (i = 0; i < nf; i++)
		for (k = 0; k < ng; k++)
			if ((sender < 0 || f[i] == sender) && (receiver < 0 || g[k] == receiver) &&
				f[i] != g[k])
				sum += gci_block_len(c, f[i], g[k]);
	return sum;
}

/* Elements that must come into this end from cluster k. */
static uint64_t must_come(const struct end *e, int k)
{
	const struct gci_coll *c = e->c;
	int root_is_there = c->topo->cluster[c->root] == k && e->rank != c->root;
	int root_is_here =
		e->rank < 0 ? c->topo->cluster[c->root] == e->cluster : e->rank == c->root;
	uint64_t own = e->rank < 0                            ? blocks_of(c, e->cluster, -1)
		       : c->counts && c->kind != GCI_ALLTOALL ? c->counts[e->rank]
							      : c->count;

	switch (c->kind) {
	case GCI_BCAST:
		return root_is_there ? c->count : 0;
	case GCI_REDUCE:
		return root_is_here ? c->count : 0;
	case GCI_ALLREDUCE:
		return c->count;
	case GCI_REDUCE_SCATTER:
		return own;
	case GCI_SCATTER:
		return root_is_there ? own : 0;
	case GCI_GATHER:
		return root_is_here ? blocks_of(c, k, e->rank) : 0;
	case GCI_ALLGATHER:
		return blocks_of(c, k, e->rank);
	case GCI_ALLTOALL:
		return pairs(c, k, e->cluster, -1, e->rank);
	default:
		return 0;
	}
}

/* Elements that must go out of this end to cluster k: the other way round, in most kinds those of
 * the opposite operation. */
static uint64_t must_go(const struct end *e, int k)
{
	static const enum gci_kind opposite[GCI_NKINDS] = {[GCI_BCAST] = GCI_REDUCE,
		[GCI_REDUCE] = GCI_BCAST,
		[GCI_ALLREDUCE] = GCI_ALLREDUCE,
		[GCI_REDUCE_SCATTER] = GCI_ALLGATHER,
		[GCI_SCATTER] = GCI_GATHER,
		[GCI_GATHER] = GCI_SCATTER,
		[GCI_ALLGATHER] = GCI_REDUCE_SCATTER,
		[GCI_BARRIER] = GCI_BARRIER};
	struct gci_coll c = *e->c;
	struct end back = {.c = &c, .rank = e->rank, .cluster = e->cluster};

	if (c.kind == GCI_ALLTOALL)
		return pairs(&c, e->cluster, k, e->rank, -1);
	c.kind = opposite[c.kind];
	return must_come(&back, k);
}

/* What belongs to several others comes, or goes, separately. */
static int adds_up(enum gci_kind kind, int out)
{
	if (kind == GCI_REDUCE_SCATTER)
		return out;
	if (kind == GCI_ALLGATHER)
		return !out;
	return kind == GCI_SCATTER || kind == GCI_GATHER || kind == GCI_ALLTOALL;
}

/* Shortest ways from cluster `at` to all others, or (`back`) from all others to it; to itself the
 * delay inside of it. Dijkstra's. */
static void distances(const struct gci_topo *t, int at, int back, uint64_t *d)
{
	char done[GCI_GRID_MAX_CLUSTERS] = {0};
	int i, k, n = t->nclusters;

	for (i = 0; i < n; i++)
		d[i] = i == at ? 0 : GCI_NEVER;
	for (i = 0; i < n; i++) {
		int next = -1;

		for (k = 0; k < n; k++)
			if (!done[k] && (next < 0 || d[k] < d[next]))
				next = k;
		done[next] = 1;
		for (k = 0; k < n; k++)
			if (k != next)
				d[k] = min(d[k],
					d[next] + gci_topo_link(t, back ? k : next, back ? next : k)
							  ->delay_ns);
	}
	d[at] = gci_topo_link(t, at, at)->delay_ns;
}

/* For each distance: the way, and what must come from there or farther off, one after the other. */
static uint64_t bound(const struct end *e)
{
	int i, k, n = e->c->topo->nclusters, sum = adds_up(e->c->kind, e->out);
	uint64_t longest = 0;

	for (i = 0; i < n; i++) {
		uint64_t nbytes = 0;

		for (k = 0; k < n; k++)
			if (e->distance[k] >= e->distance[i])
				nbytes = sum ? nbytes + e->nbytes[k] : max(nbytes, e->nbytes[k]);
		if (e->nbytes[i])
			longest = max(longest,
				e->distance[i] + (e->bps ? payload_ns(nbytes, e->bps) : 0));
	}
	return longest;
}

static int is_alone(const struct end *e)
{
	return e->rank < 0 || gci_topo_size(e->c->topo, e->cluster) == 1;
}

/* Both directions of one end; its rates are set. */
static uint64_t both_ways(struct end *e, uint64_t in_bps, uint64_t out_bps)
{
	const struct gci_topo *t = e->c->topo;
	uint64_t longest = 0;
	int k;

	for (e->out = 0; e->out < 2; e->out++) {
		e->bps = e->out ? out_bps : in_bps;
		distances(t, e->cluster, !e->out, e->distance);
		for (k = 0; k < t->nclusters; k++) {
			int nobody = k == e->cluster && is_alone(e);

			e->nbytes[k] = nobody ? 0 : (e->out ? must_go(e, k) : must_come(e, k));
			e->nbytes[k] *= e->c->esize;
		}
		longest = max(longest, bound(e));
	}
	return longest;
}

/* The most that gets from one cluster to another: the link's rate, and with a limit for each
 * connection that of all there can be. 0: unknown. */
static uint64_t link_bps(const struct gci_topo *t, int from, int to, uint32_t streams)
{
	const struct gci_link *l = gci_topo_link(t, from, to);
	uint64_t n = streams ? streams : l->streams;
	unsigned __int128 most = (unsigned __int128)l->flow_rate_bps * n *
				 (unsigned)gci_topo_size(t, from) * (unsigned)gci_topo_size(t, to);
	uint64_t all = most > UINT64_MAX ? UINT64_MAX : (uint64_t)most;

	return !l->rate_bps ? all : !all ? l->rate_bps : min(l->rate_bps, all);
}

/* The wire that a cluster's bytes to another pass first, or (in) that those from it pass last. */
static int end_wire(const struct gci_topo *t, int cluster, int other, int out)
{
	const int *wires;
	int n = out ? gci_topo_route(t, cluster, other, &wires)
		    : gci_topo_route(t, other, cluster, &wires);

	return wires[out ? 0 : n - 1];
}

/* All links of a cluster in one direction together, as far as they part from each other; 0 when one of them is
 * unknown. */
static uint64_t sum_bps(const struct gci_topo *t, int cluster, int out, uint32_t streams)
{
	uint64_t bps, sum = 0;
	int k, i, wire, n = t->nclusters;

	for (k = 0; k < n; k++) {
		uint64_t links = 0;

		wire = k == cluster ? -1 : end_wire(t, cluster, k, out);
		for (i = 0; wire >= 0 && i < n; i++) {
			if (i == cluster || end_wire(t, cluster, i, out) != wire)
				continue;
			if (i < k)
				break; /* the wire has been counted with that one */
			bps = out ? link_bps(t, cluster, i, streams)
				  : link_bps(t, i, cluster, streams);
			if (!bps)
				return 0;
			links = plus(links, bps);
		}
		if (wire < 0 || i < n)
			continue;
		bps = t->wires[wire].rate_bps;
		sum = plus(sum, bps ? min(bps, links) : links);
	}
	return sum;
}

/* An allreduce moves each element 2 (n - 1) times among n places, however it goes: Patarasu and
 * Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of workstations". */
static uint64_t everything(const struct gci_coll *c, uint32_t streams)
{
	const struct gci_topo *t = c->topo;
	uint64_t nbytes = 2 * c->count * c->esize, nics = 0, links = 0, bps;
	uint64_t p = (uint64_t)t->nranks - 1, n = (uint64_t)t->nclusters - 1, longest;
	int k, known = 1;

	for (k = 0; k < t->nranks; k++)
		nics = plus(nics, t->rank_nic_bps[k]);
	for (k = 0; k < t->nclusters; k++) {
		bps = sum_bps(t, k, 1, streams);
		known &= bps != 0;
		links = plus(links, bps);
	}
	longest = payload_ns(nbytes, nics) * p;
	return n && known ? max(longest, payload_ns(nbytes, links) * n) : longest;
}

static uint64_t farthest(const struct gci_topo *t)
{
	uint64_t d[GCI_GRID_MAX_CLUSTERS], longest = 0;
	int i, k;

	for (i = 0; i < t->nclusters; i++) {
		distances(t, i, 0, d);
		for (k = 0; k < t->nclusters; k++)
			if (k != i || gci_topo_size(t, i) > 1)
				longest = max(longest, d[k]);
	}
	return longest;
}

uint64_t gci_limit_ns(const struct gci_coll *c, uint32_t streams)
{
	const struct gci_topo *t = c->topo;
	uint64_t longest = 0;
	int r, k;

	if (t->nranks == 1)
		return 0;
	if (c->kind == GCI_BARRIER)
		return farthest(t);
	for (r = 0; r < t->nranks; r++)
		if (!t->rank_nic_bps[r])
			return 0;
	for (r = 0; r < t->nranks; r++) {
		struct end e = {.c = c, .rank = r, .cluster = t->cluster[r]};

		/* Without counts, the first two of a cluster stand for the others that are like them. */
		if (c->counts || r == c->root || t->index[r] < 2 ||
			t->rank_nic_bps[r] !=
				t->rank_nic_bps[gci_topo_members(t, e.cluster)[t->index[r] - 1]])
			longest =
				max(longest, both_ways(&e, t->rank_nic_bps[r], t->rank_nic_bps[r]));
	}
	for (k = 0; t->nclusters > 1 && k < t->nclusters; k++) {
		struct end e = {.c = c, .rank = -1, .cluster = k};

		longest = max(longest,
			both_ways(&e, sum_bps(t, k, 0, streams), sum_bps(t, k, 1, streams)));
	}
	return c->kind == GCI_ALLREDUCE ? max(longest, everything(c, streams)) : longest;
}
