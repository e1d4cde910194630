/* SPDX-License-Identifier: MIT
 * The product's reduce-scatter: the product's allgather (collectives/blocks/route.h) walked
 * backwards. In each other cluster a block's sum is made along the ring up to where it would have
 * entered, goes over the WAN once to its gateway, and joins the sum that goes round its own
 * cluster's ring.
 *
 * Cost, M being all blocks: (P-1)/P M/B + L + (h-1) m/B for segments of m. Bound (DESIGN.md):
 * (P-1)/P M/B; L can only be hidden behind the local rings where gateways are not the bottleneck.
 * For commutative operations. */
#include "base/mem.h"
#include "collectives/blocks/route.h"
#include "collectives/reduce_scatter/reduce_scatter.h"

enum { LOCAL, WAN, REMOTE };

#define LATEST 8

struct walk {
	struct gci_builder *b;
	const struct gci_coll *c;
	struct gci_route_segments cut;
	int mine, index, n; /* this rank's cluster, its place there, members */
	const int *members;
	struct gci_slice *sums; /* [place]: of this cluster's blocks */
	int fills;              /* what comes over some WAN fills the NIC */
	/* The local ring waits for this step, one of the last that came for other clusters or
	 * from them: sums that have far to go come first. */
	uint32_t gate;
	int has_gate;
	uint32_t latest[LATEST]; /* the last such steps, round */
	uint32_t nlatest;
};

static int next_in_ring(const struct walk *w)
{
	return w->members[(w->index + 1) % w->n];
}

static int previous_in_ring(const struct walk *w)
{
	return w->members[(w->index + w->n - 1) % w->n];
}

/* Where the sums of a block are made: the result at its owner, else TMP. `sums`: there are any. */
static struct gci_slice place_of_sums(const struct walk *w, int rank, int sums)
{
	uint64_t length = gci_block_len(w->c, rank, rank);

	if (rank == w->b->rank)
		return gci_out_block(w->c, rank, rank);
	return gci_slice(GCI_TMP, sums ? gci_tmp(w->b, length) : 0, length);
}

/* A block of another cluster: from the member before the entry, round the ring, to the entry. */
static void remote_block(struct walk *w, const struct gci_route *r, int index)
{
	int rank = gci_topo_members(r->topo, r->from)[index];
	struct gci_slice in = gci_in_block(w->c, w->b->rank, rank);
	struct gci_slice acc = place_of_sums(w, rank, w->n > 1);
	uint64_t q;

	for (q = 0; q < gci_route_count(&w->cut, in.length); q++) {
		int entry = gci_route_entry(r, index, q);
		struct gci_slice own = gci_route_slice(&w->cut, in, q), sum = own;
		uint32_t number = gci_route_number(&w->cut, rank, q);

		if ((w->index + 1) % w->n != entry) {
			sum = gci_route_slice(&w->cut, acc, q);
			w->latest[w->nlatest++ % LATEST] = gci_recv_reduce(
				w->b, next_in_ring(w), gci_tag(REMOTE, number), sum, own, 0);
		}
		if (w->index == entry)
			gci_send(w->b, gci_route_gateway(r, index, q), gci_tag(WAN, number), sum);
		else
			gci_send(w->b, previous_in_ring(w), gci_tag(REMOTE, number), sum);
	}
}

static void remote_blocks(struct walk *w, int other)
{
	struct gci_route r = gci_route_backwards(w->c, other, w->mine);
	int index;

	for (index = 0; index < gci_topo_size(w->c->topo, other); index++)
		remote_block(w, &r, index);
}

/* True if this rank takes in segment q of the sums that cluster `from` made for this cluster's
 * member `index`. */
static int takes_in(const struct walk *w, int from, int index, uint64_t q)
{
	struct gci_route r = gci_route_backwards(w->c, w->mine, from);

	return gci_route_gateway(&r, index, q) == w->b->rank;
}

/* Where the sum of a local segment stands once the clusters at distances [k, nclusters) are in. */
static struct gci_slice sum_so_far(const struct walk *w, int k, int index, uint64_t q)
{
	int nclusters = w->c->topo->nclusters;
	struct gci_slice in = gci_in_block(w->c, w->b->rank, w->members[index]);

	for (; k < nclusters; k++)
		if (takes_in(w, (w->mine + k) % nclusters, index, q))
			return gci_route_slice(&w->cut, w->sums[index], q);
	return gci_route_slice(&w->cut, in, q);
}

/* Adds what comes from `peer` to `sum`, in `to`. Where other clusters' come before it, it has a
 * place of its own to come to, so that it is asked for at once and not when those are in. */
static uint32_t add(
	struct walk *w, int peer, uint32_t tag, struct gci_slice to, struct gci_slice sum)
{
	struct gci_slice place;
	uint32_t step;

	if (sum.buffer != to.buffer || sum.offset != to.offset)
		return gci_recv_reduce(w->b, peer, tag, to, sum, 0);
	place = gci_slice(GCI_TMP, gci_tmp(w->b, to.length), to.length);
	step = gci_recv(w->b, peer, tag, place);
	gci_reduce(w->b, to, place, 0);
	return step;
}

/* Takes in what the cluster at distance k has made for this cluster, where this rank is the
 * gateway. */
static void take_in(struct walk *w, int k)
{
	int from = (w->mine + k) % w->c->topo->nclusters, index;
	struct gci_route r = gci_route_backwards(w->c, w->mine, from);
	uint64_t q;

	w->fills |= gci_wan_fills_nic(w->c->topo, from, w->mine, r.gateways);
	for (index = 0; index < w->n; index++)
		for (q = 0; q < gci_route_count(&w->cut, w->sums[index].length); q++) {
			struct gci_slice to = gci_route_slice(&w->cut, w->sums[index], q);
			uint32_t number = gci_route_number(&w->cut, w->members[index], q);

			if (gci_route_gateway(&r, index, q) != w->b->rank)
				continue;
			w->latest[w->nlatest++ % LATEST] = add(w,
				gci_topo_members(r.topo, from)[gci_route_entry(&r, index, q)],
				gci_tag(WAN, number), to, sum_so_far(w, k + 1, index, q));
		}
}

/* A block of this cluster: from its owner's predecessor round to the owner. */
static void local_block(struct walk *w, int index)
{
	int rank = w->members[index], first = (w->index + 1) % w->n == index;
	uint64_t q;

	for (q = 0; q < gci_route_count(&w->cut, w->sums[index].length); q++) {
		uint32_t tag = gci_tag(LOCAL, gci_route_number(&w->cut, rank, q));
		struct gci_slice to = gci_route_slice(&w->cut, w->sums[index], q);
		struct gci_slice sum = sum_so_far(w, 1, index, q);

		if (!first) {
			gci_recv_reduce(w->b, next_in_ring(w), tag, to, sum, 0);
			sum = to;
			if (w->has_gate)
				gci_after(w->b, w->gate);
		}
		if (index != w->index)
			gci_send(w->b, previous_in_ring(w), tag, sum);
	}
}

static void local_ring(struct walk *w)
{
	const struct gci_topo *t = w->c->topo;
	int k;

	for (k = 0; k < w->n; k++)
		w->sums[k] = place_of_sums(w, w->members[k], w->n > 1 || t->nclusters > 1);
	for (k = t->nclusters - 1; k > 0; k--)
		take_in(w, k);
	w->has_gate = w->fills && w->nlatest;
	w->gate = w->latest[w->nlatest < LATEST ? 0 : w->nlatest % LATEST];
	for (k = w->n - 1; k >= 0; k--)
		local_block(w, (w->index - k + w->n) % w->n);
}

void gci_emit_reduce_scatter_rings(struct gci_builder *b, const struct gci_coll *c)
{
	const struct gci_topo *t = c->topo;
	struct walk w = {.b = b,
		.c = c,
		.cut = gci_route_segments(c),
		.mine = t->cluster[b->rank],
		.index = t->index[b->rank]};
	int k;

	w.n = gci_topo_size(t, w.mine);
	w.members = gci_topo_members(t, w.mine);
	w.sums = gci_calloc((size_t)w.n, sizeof(*w.sums));
	if (!w.sums)
		b->failed = 1;
	if (b->nranks == 1)
		gci_copy_some(
			b, gci_out_block(c, b->rank, b->rank), gci_in_block(c, b->rank, b->rank));
	for (k = t->nclusters - 1; k > 0 && w.sums; k--)
		remote_blocks(&w, (w.mine + k) % t->nclusters);
	if (b->nranks > 1 && w.sums)
		local_ring(&w);
	gci_free(w.sums);
}
