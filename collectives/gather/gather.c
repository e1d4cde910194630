/* SPDX-License-Identifier: MIT
 * Gather up a flat tree (sequential), a chain, or a binary tree: a rank receives the blocks of its
 * children's subtrees, one child after the other, so that no two senders meet at its NIC, and hands
 * all of them to its parent. In segments it is the same for each segment of every block, so that a
 * rank hands on one while it receives the next.
 *
 * Cost, M being all blocks in k segments: sequential (P-1) (L + M/PB); chain
 * (P-1) (L + M/2kB) + M/B; binary log2 P L + (1 + 1/k) M/B, its root receiving two halves.
 * ATCC (Vadhiyar 2001), table 1. */
#include "collectives/blocks/blocks.h"
#include "collectives/blocks/path.h"
#include "collectives/blocks/phases.h"
#include "collectives/blocks/route.h"
#include "collectives/blocks/subtree.h"
#include "collectives/models/cost.h"
#include "collectives/models/magpie.h"
#include "collectives/planner/packed.h"
#include "collectives/tuner/formulas.h"

static void gather(struct gci_builder *b, const struct gci_coll *c, enum gci_tree_shape shape)
{
	struct gci_group g = gci_group_all(c, b->rank, c->root);
	struct gci_subtree s = gci_subtree_of(shape, g.n, g.me);
	struct gci_shelf in = gci_shelf_in(), mine = in;
	int child, end;
	size_t before;

	if (s.parent < 0)
		mine = gci_shelf_out();
	else if (s.z - s.a > 1)
		mine = gci_shelf_tmp(b, c, &g, s.a, s.z);
	gci_copy_blocks(b, c, &g, &mine, &in, g.me, g.me + 1);
	for (child = s.a + 1; child < s.z; child = end) {
		end = gci_subtree_end(&s, child);
		before = b->nsteps;
		gci_recv_blocks(b, c, &g, child, gci_tag(0, 0), &mine, child, end);
		if (b->nsteps > before)
			gci_fence(b, (uint32_t)b->nsteps - 1);
	}
	if (s.parent >= 0)
		gci_send_blocks(b, c, &g, s.parent, gci_tag(0, 0), &mine, s.a, s.z);
}

static void gci_emit_gather_sequential(struct gci_builder *b, const struct gci_coll *c)
{
	gather(b, c, GCI_TREE_FLAT);
}

static void gci_emit_gather_chain(struct gci_builder *b, const struct gci_coll *c)
{
	gather(b, c, GCI_TREE_CHAIN);
}

static void gci_emit_gather_binary(struct gci_builder *b, const struct gci_coll *c)
{
	gather(b, c, GCI_TREE_BINARY);
}

/* ---- Binomial gather, the scatter turned round: the first of a range's second half gives what it
 * has collected to the first of the range.
 * Cost: ceil(log2 P) L + (P-1)/P M/B, M being all blocks. ATCC (Vadhiyar 2001), table 1. */

static void gci_emit_gather_binomial(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_group g = gci_group_all(c, b->rank, c->root);
	struct gci_shelf in = gci_shelf_in(), out = gci_shelf_out();

	gci_gather_blocks(b, c, &g, &in, b->rank == c->root ? &out : NULL, 0);
}

/* ---- The product's gather. One member of each far cluster collects its blocks, in segments, one
 * rank after the other; the root takes in its own cluster's blocks in the same way, and then the
 * far ones, which are ready by then: no two senders ever meet at a NIC, and the WAN's delay is
 * hidden behind the root's own cluster. Where one connection carries less than a NIC (flow_rate),
 * or when asked for, several members send, to several of the root's cluster, who pass on to the
 * root.
 *
 * Cost, M being all blocks: (P-1)/P M/B + L where the far blocks are asked for a round trip ahead.
 * Bound (DESIGN.md): (P-1)/P M/B. */

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

static void gci_emit_gather_relay(struct gci_builder *b, const struct gci_coll *c)
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

/* ---- MagPIe's original gather: each cluster's coordinator collects its blocks, and sends them to
 * the root in one message. Who receives large messages takes them one after the other.
 * Cost: (h-1)/h M'/B + the sum over the other clusters of M'/W + 2L, M' being a cluster's blocks
 * and W its link's rate; for short messages 2 L + P o. MagPIe (Kielmann 2001), 3.3. */

enum { LAN, WAN };

struct magpie {
	struct gci_builder *b;
	const struct gci_coll *c;
	struct gci_group all; /* ranks by clusters */
};

/* The blocks of members [a, z) from member `peer`; what follows waits for them if they are large.
 */
static void receive_blocks(
	struct magpie *m, int peer, uint32_t phase, const struct gci_shelf *to, int a, int z)
{
	uint64_t length = gci_blocks_len(m->c, &m->all, a, z);

	gci_recv_blocks(m->b, m->c, &m->all, peer, gci_tag(phase, 0), to, a, z);
	if (length * m->c->esize > GCI_MAGPIE_WAITS_NBYTES)
		gci_round(m->b);
}

/* `holder` collects the blocks of cluster `cluster`. */
static void in_cluster(struct magpie *m, int cluster, int holder, const struct gci_shelf *mine)
{
	const struct gci_topo *t = m->c->topo;
	struct gci_shelf in = gci_shelf_in();
	int i, me = m->all.me;

	if (me != holder) {
		gci_send_blocks(m->b, m->c, &m->all, holder, gci_tag(LAN, 0), &in, me, me + 1);
		return;
	}
	gci_copy_blocks(m->b, m->c, &m->all, mine, &in, me, me + 1);
	for (i = t->first[cluster]; i < t->first[cluster + 1]; i++)
		if (i != holder)
			receive_blocks(m, i, LAN, mine, i, i + 1);
}

static void gci_emit_gather_magpie(struct gci_builder *b, const struct gci_coll *c)
{
	const struct gci_topo *t = c->topo;
	struct magpie m = {b, c, gci_group_by_clusters(c, b->rank)};
	int home = t->cluster[c->root], mine = t->cluster[b->rank], k;
	int root = t->first[home] + t->index[c->root],
	    holder = mine == home ? root : t->first[mine];
	int first = t->first[mine], end = t->first[mine + 1];
	struct gci_shelf shelf = b->rank == c->root ? gci_shelf_out() : gci_shelf_in();

	if (b->rank != c->root && m.all.me == holder && end - first > 1)
		shelf = gci_shelf_tmp(b, c, &m.all, first, end);
	in_cluster(&m, mine, holder, &shelf);
	if (b->rank != c->root && m.all.me == holder)
		gci_send_blocks(b, c, &m.all, root, gci_tag(WAN, 0), &shelf, first, end);
	for (k = 1; b->rank == c->root && k < t->nclusters; k++) {
		int from = (home + k) % t->nclusters;

		receive_blocks(&m, t->first[from], WAN, &shelf, t->first[from], t->first[from + 1]);
	}
}

/* ---- MagPIe's segmented gather: every rank sends to the root itself, in segments, and the root
 * takes them in from all clusters at a time. With k segments of m of each block, P_w clusters and
 * P_l ranks in the largest,
 *
 * 	T = (k-1) g + max(L_w + P_l g_w(m), max(L_l, o) + P_w P_l r)
 * 	g = max(P_l g_w(m), P_w P_l r + o)
 *
 * where receiving takes the root r = s(m); and k, if the caller leaves it open, is the best by this
 * formula (collectives/models/magpie.h). MagPIe (Kielmann 2001), 3.3; s, g and L as in
 * collectives/models/plogp.h.
 *
 * The paper's contention inside the receiving node is kept out: the root takes in from no more
 * clusters at a time than fill its NIC, and from one rank of each, the next being asked for a round
 * trip ahead. */

static struct gci_route_segments segments_of(const struct gci_coll *c, const struct gci_plogp *p)
{
	struct gci_magpie m;

	gci_magpie_init(&m, p);
	return gci_route_segments_of(c, gci_magpie_segment(&m, c));
}

static void receive_cluster(struct gci_builder *b, const struct gci_coll *c,
	const struct gci_route_segments *cut, struct gci_turns *turns, int cluster)
{
	int i;
	uint64_t q;

	for (i = 0; i < gci_topo_size(c->topo, cluster); i++) {
		int from = gci_topo_members(c->topo, cluster)[i];
		struct gci_slice s = gci_out_block(c, b->rank, from);

		if (from == c->root)
			continue;
		gci_turn(turns, s.length);
		for (q = 0; q < gci_route_count(cut, s.length); q++) {
			struct gci_slice part = gci_route_slice(cut, s, q);
			uint32_t step = gci_recv(b, from, gci_tag(0, (uint32_t)q), part);

			gci_turn_step(turns, step, part.length, 1);
		}
	}
}

/* Clusters are dealt to lanes; in a lane they take turns, the root's own last. */
static void receive_all(struct gci_builder *b, const struct gci_coll *c,
	const struct gci_route_segments *cut, const struct gci_plogp *p)
{
	int n = c->topo->nclusters, home = c->topo->cluster[c->root], lane, k;
	uint64_t fill = gci_nic_bps(c->topo, home) / p->wan_bps, ahead = 2 * cut->segment;
	int lanes = !fill ? 1 : fill < (unsigned)n ? (int)fill : n;

	for (k = 0; k < n; k++)
		if (k != home && gci_wan_in_flight(c, k, home) > ahead)
			ahead = gci_wan_in_flight(c, k, home);
	for (lane = 1; lane <= lanes; lane++) {
		struct gci_turns turns = {.b = b, .ahead = ahead};

		for (k = lane; k <= n; k += lanes)
			receive_cluster(b, c, cut, &turns, (home + k) % n);
	}
	gci_copy_some(b, gci_out_block(c, b->rank, b->rank), gci_in_block(c, b->rank, b->rank));
}

static void gci_emit_gather_magpie_segmented(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_plogp p = gci_plogp(c->topo);
	struct gci_route_segments cut = segments_of(c, &p);
	struct gci_slice mine;
	uint64_t q, n;

	if (b->rank == c->root) {
		receive_all(b, c, &cut, &p);
		return;
	}
	mine = gci_in_block(c, b->rank, b->rank);
	n = gci_route_count(&cut, mine.length);
	for (q = 0; q < n; q++)
		gci_send(b, c->root, gci_tag(0, (uint32_t)q), gci_route_slice(&cut, mine, q));
}

/* ---- The product's gather: by relays for long blocks, brought together on the way for short
 * ones. */

static void gci_emit_gather_gridcoll(struct gci_builder *b, const struct gci_coll *c)
{
	uint64_t nbytes = gci_total(c) * c->esize;

	if (gci_cost_relay(c, nbytes) < gci_cost_binomial(c, nbytes))
		gci_emit_gather_relay(b, c);
	else
		gci_emit_gather_magpie(b, c);
}

/* ---- the algorithms */

const struct gci_algorithm gci_gathers[] = {
	{GCI_GATHER, "gridcoll", "relay, or magpie for short blocks, by a cost formula",
		GCI_USES_SENDERS | GCI_USES_SEGMENT | GCI_CAPS_SENDERS, 0, gci_emit_gather_gridcoll,
		gci_estimate_relay_or_clusters},
	{GCI_GATHER, "packed", "packing of paths: blocks over the links that have time for them",
		GCI_PACKS, 0, gci_emit_packed, gci_estimate_packed},
	{GCI_GATHER, "binomial", "binomial tree over all ranks", 0, 0, gci_emit_gather_binomial,
		gci_estimate_binomial},
	{GCI_GATHER, "relay", "by one member of each cluster, one sender at a time",
		GCI_USES_SENDERS | GCI_USES_SEGMENT | GCI_CAPS_SENDERS, 0, gci_emit_gather_relay,
		gci_estimate_relay},
	{GCI_GATHER, "sequential", "the root receives from each rank in turn",
		GCI_USES_SEGMENT | GCI_BY_SEGMENT, 0, gci_emit_gather_sequential,
		gci_estimate_flat},
	{GCI_GATHER, "chain", "rank to rank, with the blocks of all before",
		GCI_USES_SEGMENT | GCI_BY_SEGMENT, 0, gci_emit_gather_chain, gci_estimate_chain},
	{GCI_GATHER, "binary", "binary tree over all ranks", GCI_USES_SEGMENT | GCI_BY_SEGMENT, 0,
		gci_emit_gather_binary, gci_estimate_binary},
	{GCI_GATHER, "magpie", "in each cluster, then from each in turn", GCI_CAPS_SENDERS, 0,
		gci_emit_gather_magpie, gci_estimate_clusters},
	{GCI_GATHER, "magpie-segmented", "from each rank in segments, clusters at a time",
		GCI_USES_SEGMENT, 0, gci_emit_gather_magpie_segmented, gci_estimate_flat},
	{GCI_GATHER, NULL, NULL, 0, 0, NULL, NULL},
};
