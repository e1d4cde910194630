/* SPDX-License-Identifier: MIT */
#include "collectives/blocks/path.h"

#include "base/clock.h"

#define ASSUMED_NIC_BPS 1000000000ull
#define LOOPBACK_BPS    10000000000ull /* of one of a few pairs of ranks at a time */
#define SEGMENT_LEAST   (16u << 10)
/* Over loopback a message costs as much processor time as so many bytes of it, and the processors
 * are what there is to share. */
#define LOOPBACK_LEAST (256u << 10)
#define SEGMENT_MOST   (1u << 20)

static struct gci_path_ring ring_of(const struct gci_coll *c, int rank, int cluster)
{
	const struct gci_topo *t = c->topo;
	struct gci_path_ring r = {gci_topo_members(t, cluster), gci_topo_size(t, cluster), -1, -1};

	if (t->cluster[c->root] == cluster) {
		r.skip = t->index[c->root];
		r.n--;
	}
	if (t->cluster[rank] == cluster && rank != c->root)
		r.me = t->index[rank] - (r.skip >= 0 && t->index[rank] > r.skip);
	return r;
}

static int ring_rank(const struct gci_path_ring *r, int place)
{
	return r->ranks[place + (r->skip >= 0 && place >= r->skip)];
}

/* Lane `lane` of `lanes` enters a ring here, and leaves it one place before. */
static int entry(const struct gci_path_ring *r, int lane, int lanes)
{
	return (int)((int64_t)lane * r->n / lanes);
}

static int leave(const struct gci_path_ring *r, int lane, int lanes)
{
	return (entry(r, lane, lanes) + r->n - 1) % r->n;
}

/* Senders that the link needs to carry all that the root's NIC moves: where one connection gets no
 * more than flow_rate, several hosts must share the work. */
static int needed_senders(const struct gci_coll *c, int from, int to)
{
	uint64_t nic = gci_nic_bps(c->topo, from), pair = gci_pair_bps(c->topo, from, to), n;

	if (c->senders || gci_topo_link(c->topo, from, to)->senders)
		return gci_coll_senders(c, from, to);
	if (!gci_topo_link(c->topo, from, to)->flow_rate_bps)
		return 1;
	n = (nic - 1) / pair + 1;
	return n < (unsigned)gci_coll_senders(c, from, to) ? (int)n : gci_coll_senders(c, from, to);
}

void gci_path_find(struct gci_path *p, const struct gci_coll *c, int rank, int wan_out)
{
	const struct gci_topo *t = c->topo;
	int order[GCI_GRID_MAX_CLUSTERS];
	int i, at = 0, lanes = t->nranks;

	gci_topo_chain(t, t->cluster[c->root], order);
	while (order[at] != t->cluster[rank])
		at++;
	*p = (struct gci_path){.rank = rank, .root = c->root};
	p->mine = ring_of(c, rank, order[at]);
	p->has_before = at > 0;
	p->has_after = at + 1 < t->nclusters;
	if (p->has_before)
		p->before = ring_of(c, rank, order[at - 1]);
	if (p->has_after)
		p->after = ring_of(c, rank, order[at + 1]);
	/* One number of lanes for the whole path. */
	for (i = 0; i + 1 < t->nclusters; i++) {
		int n = wan_out ? needed_senders(c, order[i], order[i + 1])
				: needed_senders(c, order[i + 1], order[i]);

		lanes = n < lanes ? n : lanes;
	}
	p->lanes = t->nclusters > 1 ? lanes : 1;
}

int gci_path_before(const struct gci_path *p, int lane)
{
	if (p->rank == p->root)
		return -1;
	if (p->mine.me != entry(&p->mine, lane, p->lanes))
		return ring_rank(&p->mine, (p->mine.me + p->mine.n - 1) % p->mine.n);
	if (!p->has_before || !p->before.n)
		return p->root;
	return ring_rank(&p->before, leave(&p->before, lane, p->lanes));
}

int gci_path_after(const struct gci_path *p, int lane)
{
	const struct gci_path_ring *r = &p->mine;

	if (p->rank == p->root && r->n)
		return ring_rank(r, entry(r, lane, p->lanes));
	if (p->rank != p->root && r->me != leave(r, lane, p->lanes))
		return ring_rank(r, (r->me + 1) % r->n);
	if (!p->has_after)
		return -1;
	return ring_rank(&p->after, entry(&p->after, lane, p->lanes));
}

uint64_t gci_nic_bps(const struct gci_topo *t, int cluster)
{
	if (t->nic_bps[cluster])
		return t->nic_bps[cluster];
	return t->one_host ? LOOPBACK_BPS : ASSUMED_NIC_BPS;
}

uint64_t gci_pair_bps(const struct gci_topo *t, int from, int to)
{
	const struct gci_link *l = gci_topo_link(t, from, to);
	uint64_t a = gci_nic_bps(t, from), b = gci_nic_bps(t, to), least = a < b ? a : b;
	uint64_t flows = l->flow_rate_bps * l->streams;

	if (l->rate_bps && l->rate_bps < least)
		least = l->rate_bps;
	return flows && flows < least ? flows : least;
}

uint64_t gci_transfer_ns(uint64_t nbytes, uint64_t bps)
{
	unsigned __int128 ns = (unsigned __int128)nbytes * 8 * GCI_NS_PER_S / bps;

	return ns < UINT64_MAX ? (uint64_t)ns : UINT64_MAX;
}

uint64_t gci_pipeline_segment(const struct gci_coll *c, uint64_t count)
{
	uint64_t m = count * c->esize / (32u * (unsigned)c->topo->nranks);
	uint64_t s = c->topo->one_host ? LOOPBACK_LEAST : SEGMENT_LEAST;

	while (s < m && s < SEGMENT_MOST)
		s *= 2;
	return s > c->esize ? s / c->esize : 1;
}
