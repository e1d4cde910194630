/* SPDX-License-Identifier: MIT
 * The product's gather. One member of each far cluster collects its blocks, in segments, one rank
 * after the other; the root takes in its own cluster's blocks in the same way, and then the far
 * ones, which are ready by then: no two senders ever meet at a NIC, and the WAN's delay is hidden
 * behind the root's own cluster. Where one connection carries less than a NIC (flow_rate), or when
 * asked for, several members send, to several of the root's cluster, who pass on to the root.
 *
 * Cost, M being all blocks: (P-1)/P M/B + L where the far blocks are asked for a round trip ahead.
 * Bound (DESIGN.md): (P-1)/P M/B. */
#include "collectives/blocks/route.h"
#include "collectives/gather/gather.h"

/* A block's way: its owner, who sends it over the WAN, who takes it in, the root. */
#define WAY     4
#define WAN_LEG 1

#define LAN_AHEAD 2 /* segments of the next rank that are asked for while the last ones come */

/* What a switch's port surely holds of two flows that meet there. */
#define PORT_NBYTES (384u << 10)

struct relay {
	struct gci_builder *b;
	const struct gci_coll *c;
	struct gci_route_segments cut;
	/* Ranks of one cluster take turns; and so do clusters, at the root. */
	struct gci_turns ranks, clusters;
	int wait;         /* this cluster has to */
	uint64_t unasked; /* elements of it that go over the WAN before the root asks for them */
	uint64_t before;  /* elements that the root takes in before it */
};

static void find_way(const struct gci_coll *c, const struct gci_route *r, int index, int way[WAY])
{
	const struct gci_topo *t = c->topo;
	int n = gci_topo_size(t, r->from), home = gci_topo_size(t, r->to);
	int at = t->index[c->root] + (r->entries > r->gateways ? index % home : 0);

	way[0] = gci_topo_members(t, r->from)[index];
	way[1] = r->gateways == n ? way[0] : gci_topo_members(t, r->from)[index % r->gateways];
	way[2] = gci_topo_members(t, r->to)[at % home];
	way[3] = c->root;
}

static void receive(struct relay *w, int from, uint32_t tag, struct gci_slice s)
{
	int near = w->c->topo->cluster[from] == w->c->topo->cluster[w->b->rank];
	uint32_t step = gci_recv(w->b, from, tag, s);

	if (near)
		gci_turn_step(&w->ranks, step, s.length, 1);
	if (w->b->rank == w->c->root)
		gci_turn_step(&w->clusters, step, s.length, w->wait);
}

/* A segment has been sent over the WAN: at once, or when its turn comes. */
static void go_or_wait(struct relay *w, uint64_t elements)
{
	if (elements <= w->unasked) {
		w->unasked -= elements;
		return;
	}
	w->unasked = 0;
	gci_patient(w->b);
}

/* This rank's legs of the way, if it is on it. */
static void walk_way(struct relay *w, const int way[WAY])
{
	struct gci_builder *b = w->b;
	int owner = way[0], leg, mine = -1;
	struct gci_slice s = {.length = gci_block_len(w->c, owner, owner), .buffer = GCI_TMP};
	uint64_t q, n = gci_route_count(&w->cut, s.length);

	for (leg = 0; leg < WAY; leg++)
		if (way[leg] == b->rank)
			mine = leg;
	if (mine < 0)
		return;
	if (b->rank == owner)
		s = gci_in_block(w->c, b->rank, b->rank);
	else if (b->rank == w->c->root)
		s = gci_out_block(w->c, b->rank, owner);
	else
		s.offset = gci_tmp(b, s.length);
	gci_turn(&w->ranks, s.length);
	for (q = 0; q < n; q++)
		for (leg = 0; leg + 1 < WAY; leg++) {
			uint32_t tag = gci_tag((uint32_t)leg, gci_route_number(&w->cut, owner, q));
			struct gci_slice part = gci_route_slice(&w->cut, s, q);

			if (way[leg] == way[leg + 1])
				continue;
			if (way[leg + 1] == b->rank)
				receive(w, way[leg], tag, part);
			if (way[leg] == b->rank)
				gci_send(b, way[leg + 1], tag, part);
			if (way[leg] == b->rank && leg == WAN_LEG)
				go_or_wait(w, part.length);
		}
}

static uint64_t sum_of_blocks(const struct relay *w, int cluster)
{
	const struct gci_topo *t = w->c->topo;
	struct gci_group g = {gci_topo_members(t, cluster), gci_topo_size(t, cluster), 0, -1};

	return gci_blocks_len(w->c, &g, 0, g.n);
}

/* Short messages go unasked, and would meet what the root takes in before them at its port, which
 * loses what it cannot hold. So only what arrives when that is over, or nearly; or what fills the
 * port until the first that was asked for can be there, a round trip after the beginning. */
static uint64_t unasked(const struct relay *w, int from, int home)
{
	uint64_t round_trip = gci_wan_in_flight(w->c, from, home), way = round_trip / 2, n;
	uint64_t room = PORT_NBYTES / w->c->esize;

	if (!w->wait || w->before <= way)
		return UINT64_MAX;
	n = w->before < round_trip ? round_trip - w->before : 0;
	return w->before - way > room && n > room ? room : n;
}

static void far_cluster(struct relay *w, int from)
{
	const struct gci_topo *t = w->c->topo;
	int home = t->cluster[w->c->root], i, way[WAY];
	struct gci_route r = gci_route(w->c, from, home);

	w->wait = gci_wan_fills_nic(t, from, home, 1);
	w->unasked = unasked(w, from, home);
	gci_turn(&w->clusters, sum_of_blocks(w, from));
	for (i = 0; i < gci_topo_size(t, from); i++) {
		find_way(w->c, &r, i, way);
		walk_way(w, way);
	}
}

static void near_cluster(struct relay *w)
{
	const struct gci_topo *t = w->c->topo;
	int home = t->cluster[w->c->root], i;

	w->wait = 0;
	gci_turn(&w->clusters, w->before);
	for (i = 0; i < gci_topo_size(t, home); i++) {
		int rank = gci_topo_members(t, home)[i];
		int way[WAY] = {rank, w->c->root, w->c->root, w->c->root};

		if (rank != w->c->root)
			walk_way(w, way);
	}
}

void gci_emit_gather_relay(struct gci_builder *b, const struct gci_coll *c)
{
	const struct gci_topo *t = c->topo;
	struct relay w = {.b = b, .c = c, .cut = gci_route_segments(c)};
	int home = t->cluster[c->root], mine = t->cluster[b->rank], k;

	w.ranks = (struct gci_turns){.b = b, .ahead = LAN_AHEAD * w.cut.segment};
	w.clusters = (struct gci_turns){.b = b};
	for (k = 0; k < t->nclusters; k++)
		if (k != home && w.clusters.ahead < gci_wan_in_flight(c, k, home))
			w.clusters.ahead = gci_wan_in_flight(c, k, home);
	if (b->rank == c->root)
		gci_copy_some(
			b, gci_out_block(c, b->rank, b->rank), gci_in_block(c, b->rank, b->rank));
	w.before = sum_of_blocks(&w, home) - gci_block_len(c, c->root, c->root);
	if (mine == home)
		near_cluster(&w);
	for (k = 1; k < t->nclusters; k++) {
		int from = (home + k) % t->nclusters;

		if (mine == home || mine == from)
			far_cluster(&w, from);
		w.before += sum_of_blocks(&w, from);
	}
}
