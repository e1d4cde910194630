/* SPDX-License-Identifier: MIT
 * The product's bcast: a pipeline of segments along a path through all ranks, cluster by cluster,
 * so that every NIC takes in and puts out each byte once, and every WAN link on the path carries
 * it once.
 *
 * One WAN sender is enough where its NIC and its connections carry the root's rate; where they do
 * not (flow_rate), or when asked for, the segments are dealt to n lanes, one per sender. In the
 *root's cluster all lanes run round the same ring of its other members, but enter and leave it at
 *different places; the member where lane j leaves sends its segments over the WAN, where lane j
 *enters the next cluster's ring at its own place, and so on:
 *
 *	root -> k3 -> k4 -> k2 => t1 -> t2 -> t3 -> t4		lane 0
 *	root -> k4 -> k2 -> k3 => t3 -> t4 -> t1 -> t2		lane 1
 *
 * Cost: M/B + L + (P-2) (m/B + o) for segments of m. Bound (DESIGN.md): M/B + L, approached for
 * P m << M; what keeps us from it is the filling of the path. */
#include "base/clock.h"
#include "collectives/bcast/bcast.h"

/* When a grid file says nothing. */
#define ASSUMED_NIC_BPS 1000000000ull
#define MESSAGE_COST_NS (30 * GCI_NS_PER_US)
#define SEGMENT_LEAST   (16u << 10)
#define SEGMENT_MOST    (1u << 20)

/* One cluster's ring and where a lane enters and leaves it. */
struct ring {
	const int *ranks;
	int n, skip; /* members; index of the root, which stands outside, or -1 */
	int me;      /* place of this rank in the ring, or -1 */
};

static struct ring ring_of(const struct gci_builder *b, const struct gci_coll *c, int cluster)
{
	const struct gci_topo *t = c->topo;
	struct ring r = {gci_topo_members(t, cluster), gci_topo_size(t, cluster), -1, -1};

	if (t->cluster[c->root] == cluster) {
		r.skip = t->index[c->root];
		r.n--;
	}
	if (t->cluster[b->rank] == cluster && b->rank != c->root)
		r.me = t->index[b->rank] - (r.skip >= 0 && t->index[b->rank] > r.skip);
	return r;
}

static int ring_rank(const struct ring *r, int place)
{
	return r->ranks[place + (r->skip >= 0 && place >= r->skip)];
}

/* Lane `lane` of `lanes` enters a ring here, and leaves it one place before. */
static int entry(const struct ring *r, int lane, int lanes)
{
	return (int)((int64_t)lane * r->n / lanes);
}

static int leave(const struct ring *r, int lane, int lanes)
{
	return (entry(r, lane, lanes) + r->n - 1) % r->n;
}

struct path {
	struct ring before, mine, after; /* of the previous, this rank's and the next cluster */
	int has_before, has_after;
	int lanes;
};

static uint64_t nic_bps(const struct gci_coll *c, int cluster)
{
	uint64_t bps = c->topo->nic_bps[cluster];

	return bps ? bps : ASSUMED_NIC_BPS;
}

/* Senders that the link needs to carry all that the root's NIC puts out: where one connection gets
 * no more than flow_rate, several hosts must share the work. */
static int needed_senders(const struct gci_coll *c, int from, int to)
{
	const struct gci_link *l = gci_topo_link(c->topo, from, to);
	uint64_t streams = l->streams ? l->streams : GCI_DEFAULT_STREAMS, n;

	if (c->senders || l->senders || !l->flow_rate_bps)
		return c->senders || l->senders ? gci_coll_senders(c, from, to) : 1;
	n = (nic_bps(c, from) - 1) / (l->flow_rate_bps * streams) + 1;
	return n < (unsigned)gci_coll_senders(c, from, to) ? (int)n : gci_coll_senders(c, from, to);
}

static void find_path(const struct gci_builder *b, const struct gci_coll *c, struct path *p)
{
	const struct gci_topo *t = c->topo;
	int order[GCI_GRID_MAX_CLUSTERS];
	int i, at = 0, lanes;

	gci_topo_chain(t, t->cluster[c->root], order);
	while (order[at] != t->cluster[b->rank])
		at++;
	p->mine = ring_of(b, c, order[at]);
	p->has_before = at > 0;
	p->has_after = at + 1 < t->nclusters;
	if (p->has_before)
		p->before = ring_of(b, c, order[at - 1]);
	if (p->has_after)
		p->after = ring_of(b, c, order[at + 1]);
	/* One number of lanes for the whole path. */
	lanes = t->nranks;
	for (i = 0; i + 1 < t->nclusters; i++) {
		int n = needed_senders(c, order[i], order[i + 1]);

		lanes = n < lanes ? n : lanes;
	}
	p->lanes = t->nclusters > 1 ? lanes : 1;
}

/* Who hands lane `lane`'s segments to this rank; -1 at the root. */
static int previous(const struct gci_coll *c, const struct path *p, int rank, int lane)
{
	if (rank == c->root)
		return -1;
	if (p->mine.me != entry(&p->mine, lane, p->lanes))
		return ring_rank(&p->mine, (p->mine.me + p->mine.n - 1) % p->mine.n);
	if (!p->has_before || !p->before.n)
		return c->root;
	return ring_rank(&p->before, leave(&p->before, lane, p->lanes));
}

/* Whom this rank hands them to; -1 at the end of the path. */
static int next(const struct gci_coll *c, const struct path *p, int rank, int lane)
{
	const struct ring *r = &p->mine;

	if (rank == c->root && r->n)
		return ring_rank(r, entry(r, lane, p->lanes));
	if (rank != c->root && r->me != leave(r, lane, p->lanes))
		return ring_rank(r, (r->me + 1) % r->n);
	if (!p->has_after)
		return -1;
	return ring_rank(&p->after, entry(&p->after, lane, p->lanes));
}

static uint64_t transfer_ns(uint64_t nbytes, uint64_t bps)
{
	return (uint64_t)((unsigned __int128)nbytes * 8 * GCI_NS_PER_S / bps);
}

/* Bytes of a segment such that filling the path costs about 1/32 of the message's own time. */
static uint64_t segment_nbytes(const struct gci_coll *c)
{
	uint64_t m = c->count * c->esize / (32u * (unsigned)c->topo->nranks), s = SEGMENT_LEAST;

	while (s < m && s < SEGMENT_MOST)
		s *= 2;
	return s;
}

void gci_emit_bcast_pipeline(struct gci_builder *b, const struct gci_coll *c)
{
	uint64_t segment = c->segment ? c->segment : segment_nbytes(c) / c->esize;
	uint64_t i, n = gci_nsegments(c->count, segment);
	struct path p;

	find_path(b, c, &p);
	for (i = 0; i < n; i++) {
		struct gci_slice s = gci_segment(gci_bcast_buffer(b, c), c->count, segment, i);
		int lane = (int)(i % (unsigned)p.lanes);
		int from = previous(c, &p, b->rank, lane), to = next(c, &p, b->rank, lane);

		if (from >= 0)
			gci_recv_some(b, from, gci_tag(0, (uint32_t)i), s);
		if (to >= 0)
			gci_send_some(b, to, gci_tag(0, (uint32_t)i), s);
	}
}

/* Predicted times in integer nanoseconds, equal on every rank. */
static uint64_t pipeline_ns(const struct gci_coll *c)
{
	const struct gci_topo *t = c->topo;
	int order[GCI_GRID_MAX_CLUSTERS];
	uint64_t bps = UINT64_MAX, ns = 0;
	int i;

	gci_topo_chain(t, t->cluster[c->root], order);
	for (i = 0; i < t->nclusters; i++) {
		if (nic_bps(c, i) < bps)
			bps = nic_bps(c, i);
		if (i)
			ns += gci_topo_link(t, order[i - 1], order[i])->delay_ns;
		ns += gci_topo_link(t, i, i)->delay_ns * (unsigned)gci_topo_size(t, i);
	}
	ns += (unsigned)t->nranks * (transfer_ns(segment_nbytes(c), bps) + MESSAGE_COST_NS);
	return ns + transfer_ns(c->count * c->esize, bps);
}

static uint64_t tree_ns(const struct gci_coll *c)
{
	const struct gci_topo *t = c->topo;
	int i, rounds = 0, home = t->cluster[c->root];
	uint64_t once, far = 0;

	for (i = 0; i < t->nclusters; i++) {
		if (gci_topo_link(t, home, i)->delay_ns > far)
			far = gci_topo_link(t, home, i)->delay_ns;
		while (1 << rounds < gci_topo_size(t, i))
			rounds++;
	}
	rounds += t->nclusters - 1;
	once = transfer_ns(c->count * c->esize, nic_bps(c, home)) + MESSAGE_COST_NS +
	       gci_topo_link(t, home, home)->delay_ns;
	return far + (unsigned)rounds * once;
}

/* The default: whichever the formulas above prefer. */
void gci_emit_bcast_gridcoll(struct gci_builder *b, const struct gci_coll *c)
{
	if (pipeline_ns(c) < tree_ns(c))
		gci_emit_bcast_pipeline(b, c);
	else
		gci_emit_bcast_tree(b, c);
}
