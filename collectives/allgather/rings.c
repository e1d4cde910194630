/* SPDX-License-Identifier: MIT
 * The product's allgather: blocks in segments, round the ring of their cluster, over each WAN link
 * once, and round the rings of the other clusters (collectives/blocks/route.h).
 *
 * Cost, M being all blocks: (P-1)/P M/B + (h-1) m/B for segments of m, and what of 2 L is not
 * hidden behind the local ring. Bound (DESIGN.md): (P-1)/P M/B. Where the WAN fills a NIC it waits
 * until the local ring is done but for a round trip's worth: two senders at one NIC are slower than
 * one after the other. */
#include "collectives/allgather/allgather.h"
#include "collectives/blocks/path.h"
#include "collectives/blocks/route.h"

enum { LOCAL, WAN, REMOTE };

struct walk {
	struct gci_builder *b;
	const struct gci_coll *c;
	struct gci_route_segments cut;
	int mine, index, n; /* this rank's cluster, its place there, members */
	const int *members;
	struct gci_turns turns;
	unsigned char patient[GCI_GRID_MAX_CLUSTERS]; /* [cluster]: what we send there */
};

static int next_in_ring(const struct walk *w)
{
	return w->members[(w->index + 1) % w->n];
}

static int previous_in_ring(const struct walk *w)
{
	return w->members[(w->index + w->n - 1) % w->n];
}

static void send_over_wan(
	const struct walk *w, const struct gci_route *r, int index, uint64_t q, struct gci_slice s)
{
	gci_send(w->b, gci_topo_members(r->topo, r->to)[gci_route_entry(r, index, q)],
		gci_tag(WAN, gci_route_number(&w->cut, w->members[index], q)), s);
	if (w->patient[r->to])
		gci_patient(w->b);
}

/* Hands a segment of this cluster's member `index` to the clusters this rank is its gateway to. The
 * nearest by number comes last: it asks for us last. */
static void hand_over(const struct walk *w, int index, uint64_t q, struct gci_slice s)
{
	const struct gci_topo *t = w->c->topo;
	int k;

	for (k = 1; k < t->nclusters; k++) {
		int to = (w->mine + t->nclusters - k) % t->nclusters;
		struct gci_route r = gci_route(w->c, w->mine, to);

		if (gci_route_gateway(&r, index, q) == w->b->rank)
			send_over_wan(w, &r, index, q, s);
	}
}

static void local_block(struct walk *w, int index)
{
	int rank = w->members[index], last = (index + w->n - 1) % w->n == w->index;
	struct gci_slice own = gci_in_block(w->c, w->b->rank, w->b->rank);
	struct gci_slice block = gci_out_block(w->c, w->b->rank, rank);
	uint64_t q, n = gci_route_count(&w->cut, block.length);

	for (q = 0; q < n; q++) {
		struct gci_slice s = gci_route_slice(&w->cut, block, q);
		uint32_t tag = gci_tag(LOCAL, gci_route_number(&w->cut, rank, q));

		if (rank == w->b->rank) {
			s = gci_route_slice(&w->cut, own, q);
		} else {
			gci_turn_step(&w->turns, gci_recv(w->b, previous_in_ring(w), tag, s),
				s.length, 0);
		}
		if (!last)
			gci_send(w->b, next_in_ring(w), tag, s);
		hand_over(w, index, q, s);
	}
}

static uint64_t sum_of_blocks(const struct walk *w, int cluster)
{
	struct gci_group g = {
		gci_topo_members(w->c->topo, cluster), gci_topo_size(w->c->topo, cluster), 0, -1};

	return gci_blocks_len(w->c, &g, 0, g.n);
}

/* The largest of all routes to here. */
static uint64_t most_in_flight(const struct walk *w)
{
	const struct gci_topo *t = w->c->topo;
	uint64_t most = 0;
	int from;

	for (from = 0; from < t->nclusters; from++) {
		uint64_t n = from == w->mine ? 0 : gci_wan_in_flight(w->c, from, w->mine);

		most = n > most ? n : most;
	}
	return most;
}

/* Blocks of cluster `to` go round its own ring for longer than ours take over the WAN: what came
 * unasked would meet them at the NICs where it enters. */
static int is_patient(const struct walk *w, int to)
{
	const struct gci_topo *t = w->c->topo;
	struct gci_route r = gci_route(w->c, w->mine, to);
	uint64_t ns = gci_transfer_ns(sum_of_blocks(w, to) * w->c->esize, gci_nic_bps(t, to));

	return gci_wan_fills_nic(t, w->mine, to, r.entries) &&
	       ns > gci_topo_link(t, w->mine, to)->delay_ns;
}

static void local_ring(struct walk *w)
{
	int s;

	gci_turn(
		&w->turns, sum_of_blocks(w, w->mine) - gci_block_len(w->c, w->b->rank, w->b->rank));
	for (s = 0; s < w->n; s++)
		local_block(w, (w->index - s + w->n) % w->n);
}

/* One segment of a block of another cluster. */
static void remote_segment(struct walk *w, const struct gci_route *r, int index, uint64_t q,
	struct gci_slice s, int wait)
{
	int entry = gci_route_entry(r, index, q), over_wan = entry == w->index;
	int rank = gci_topo_members(r->topo, r->from)[index];
	int peer = over_wan ? gci_route_gateway(r, index, q) : previous_in_ring(w);
	uint32_t number = gci_route_number(&w->cut, rank, q), step;

	step = gci_recv(w->b, peer, gci_tag(over_wan ? WAN : REMOTE, number), s);
	gci_turn_step(&w->turns, step, s.length, over_wan && wait);
	if ((w->index + 1) % w->n != entry)
		gci_send(w->b, next_in_ring(w), gci_tag(REMOTE, number), s);
}

static void remote_blocks(struct walk *w, int from)
{
	struct gci_route r = gci_route(w->c, from, w->mine);
	int wait = gci_wan_fills_nic(w->c->topo, from, w->mine, r.entries), index;
	uint64_t q;

	gci_turn(&w->turns, sum_of_blocks(w, from));
	for (index = 0; index < gci_topo_size(w->c->topo, from); index++) {
		int rank = gci_topo_members(w->c->topo, from)[index];
		struct gci_slice block = gci_out_block(w->c, w->b->rank, rank);

		for (q = 0; q < gci_route_count(&w->cut, block.length); q++)
			remote_segment(w, &r, index, q, gci_route_slice(&w->cut, block, q), wait);
	}
}

void gci_emit_allgather_rings(struct gci_builder *b, const struct gci_coll *c)
{
	const struct gci_topo *t = c->topo;
	struct walk w = {.b = b,
		.c = c,
		.cut = gci_route_segments(c),
		.mine = t->cluster[b->rank],
		.index = t->index[b->rank],
		.turns = {.b = b}};
	int k;

	w.n = gci_topo_size(t, w.mine);
	w.members = gci_topo_members(t, w.mine);
	w.turns.ahead = most_in_flight(&w);
	for (k = 1; k < t->nclusters; k++) {
		int to = (w.mine + k) % t->nclusters;

		w.patient[to] = (unsigned char)is_patient(&w, to);
	}
	gci_copy_some(b, gci_out_block(c, b->rank, b->rank), gci_in_block(c, b->rank, b->rank));
	local_ring(&w);
	for (k = 1; k < t->nclusters; k++)
		remote_blocks(&w, (w.mine + k) % t->nclusters);
}
