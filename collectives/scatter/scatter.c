/* SPDX-License-Identifier: MIT
 * Scatter down a flat tree (sequential), a chain, or a binary tree: a rank receives the blocks of
 * its subtree and hands on those of its children. In segments it is the same for each segment of
 * every block, so that a rank hands on one while it receives the next.
 *
 * Cost, M being all blocks in k segments: sequential L + (P-1)/P M/B; chain
 * (P-1) (L + M/2kB) + M/B; binary log2 P L + (1 + 1/k) M/B, its root sending two halves.
 * ATCC (Vadhiyar 2001), table 1. */
#include "base/mem.h"
#include "collectives/blocks/blocks.h"
#include "collectives/blocks/path.h"
#include "collectives/blocks/phases.h"
#include "collectives/blocks/route.h"
#include "collectives/blocks/subtree.h"
#include "collectives/models/cost.h"
#include "collectives/models/magpie.h"
#include "collectives/planner/packed.h"
#include "collectives/tuner/formulas.h"

static void scatter(struct gci_builder *b, const struct gci_coll *c, enum gci_tree_shape shape)
{
	struct gci_group g = gci_group_all(c, b->rank, c->root);
	struct gci_subtree s = gci_subtree_of(shape, g.n, g.me);
	struct gci_shelf mine = gci_shelf_in(), out = gci_shelf_out();
	int child, end;

	if (s.parent >= 0) {
		mine = s.z - s.a > 1 ? gci_shelf_tmp(b, c, &g, s.a, s.z) : out;
		gci_recv_blocks(b, c, &g, s.parent, gci_tag(0, 0), &mine, s.a, s.z);
	}
	for (child = s.a + 1; child < s.z; child = end) {
		end = gci_subtree_end(&s, child);
		gci_send_blocks(b, c, &g, child, gci_tag(0, 0), &mine, child, end);
	}
	if (gci_has_out(c, b->rank))
		gci_copy_blocks(b, c, &g, &out, &mine, g.me, g.me + 1);
}

static void gci_emit_scatter_sequential(struct gci_builder *b, const struct gci_coll *c)
{
	scatter(b, c, GCI_TREE_FLAT);
}

static void gci_emit_scatter_chain(struct gci_builder *b, const struct gci_coll *c)
{
	scatter(b, c, GCI_TREE_CHAIN);
}

static void gci_emit_scatter_binary(struct gci_builder *b, const struct gci_coll *c)
{
	scatter(b, c, GCI_TREE_BINARY);
}

/* ---- Binomial scatter by recursive halving: who holds the blocks of members [a, z) gives the
 * second half of them to its first.
 * Cost: ceil(log2 P) L + (P-1)/P M/B, M being all blocks. ATCC (Vadhiyar 2001), table 1. */

static void gci_emit_scatter_binomial(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_group g = gci_group_all(c, b->rank, c->root);
	struct gci_shelf in = gci_shelf_in(), out = gci_shelf_out();

	gci_scatter_blocks(b, c, &g, &in, gci_has_out(c, b->rank) ? &out : NULL, 0);
}

/* ---- The product's scatter: far clusters first. The root sends a cluster's blocks, in segments,
 * to one member of it, who passes them on to the others as they come; then to its own cluster's
 * ranks. So the root's NIC is never idle, and one well warmed connection crosses the WAN instead of
 * one per rank. Where one connection carries less than a NIC (flow_rate), or when asked for,
 * members of the root's cluster take over shares of the blocks and send them straight to where they
 * belong.
 *
 * Cost, M being all blocks: (P-1)/P M/B + h m/B for segments of m, L hidden by the root's own
 * cluster. Bound (DESIGN.md): (P-1)/P M/B. */

/* A block's way: the root, who sends it over the WAN, who takes it in, its owner. */
#define WAY 4

static void find_way(const struct gci_coll *c, const struct gci_route *r, int index, int way[WAY])
{
	const struct gci_topo *t = c->topo;
	int n = gci_topo_size(t, r->from), at = t->index[c->root] + index % r->gateways;

	way[0] = c->root;
	way[1] = gci_topo_members(t, r->from)[at % n];
	way[3] = gci_topo_members(t, r->to)[index];
	way[2] = r->entries > 1 ? way[3] : *gci_topo_members(t, r->to);
}

/* This rank's legs of the way, if it is on it. The root's steps come one after the other. */
static void walk_way(struct gci_builder *b, const struct gci_coll *c,
	const struct gci_route_segments *cut, const int way[WAY])
{
	int owner = way[WAY - 1], leg, mine = -1;
	struct gci_slice s = {.length = gci_block_len(c, c->root, owner), .buffer = GCI_TMP};
	uint64_t q, n = gci_route_count(cut, s.length);

	for (leg = 0; leg < WAY; leg++)
		if (way[leg] == b->rank)
			mine = leg;
	if (mine < 0)
		return;
	if (b->rank == c->root)
		s = gci_in_block(c, b->rank, owner);
	else if (b->rank == owner)
		s = gci_out_block(c, b->rank, b->rank);
	else
		s.offset = gci_tmp(b, s.length);
	for (q = 0; q < n; q++)
		for (leg = 0; leg + 1 < WAY; leg++) {
			uint32_t tag = gci_tag((uint32_t)leg, gci_route_number(cut, owner, q));
			struct gci_slice part = gci_route_slice(cut, s, q);

			if (way[leg] == way[leg + 1])
				continue;
			if (way[leg + 1] == b->rank)
				gci_recv(b, way[leg], tag, part);
			if (way[leg] == b->rank)
				gci_send(b, way[leg + 1], tag, part);
		}
}

static void far_cluster(struct gci_builder *b, const struct gci_coll *c,
	const struct gci_route_segments *cut, int to)
{
	struct gci_route r = gci_route(c, c->topo->cluster[c->root], to);
	int i, way[WAY];

	/* The one who takes the blocks in has no need to pass on its own: that comes last. */
	for (i = gci_topo_size(c->topo, to) - 1; i >= 0; i--) {
		find_way(c, &r, i, way);
		walk_way(b, c, cut, way);
	}
}

/* The root's own cluster waits for the WAN, where that takes all the root can send. */
static void near_cluster(struct gci_builder *b, const struct gci_coll *c,
	const struct gci_route_segments *cut, int far_fills)
{
	const struct gci_topo *t = c->topo;
	int home = t->cluster[c->root], i;
	size_t far = b->nsteps;

	if (t->cluster[b->rank] != home)
		return;
	for (i = 0; i < gci_topo_size(t, home); i++) {
		int rank = gci_topo_members(t, home)[i];
		int way[WAY] = {c->root, c->root, c->root, rank};

		if (rank == c->root)
			continue;
		if (b->rank == c->root && far && far_fills)
			gci_fence(b, (uint32_t)far - 1);
		walk_way(b, c, cut, way);
	}
}

static void gci_emit_scatter_relay(struct gci_builder *b, const struct gci_coll *c)
{
	const struct gci_topo *t = c->topo;
	struct gci_route_segments cut = gci_route_segments(c);
	int home = t->cluster[c->root], k, far_fills = 1;

	for (k = 1; k < t->nclusters; k++) {
		int to = (home + k) % t->nclusters;

		far_fills &= gci_pair_bps(t, home, to) >= gci_nic_bps(t, home) / 2;
		if (t->cluster[b->rank] == home || t->cluster[b->rank] == to)
			far_cluster(b, c, &cut, to);
	}
	near_cluster(b, c, &cut, far_fills);
	if (b->rank == c->root && gci_has_out(c, b->rank))
		gci_copy_some(
			b, gci_out_block(c, b->rank, b->rank), gci_in_block(c, b->rank, b->rank));
}

/* ---- MagPIe's original scatter: the root sends all of a cluster's blocks to its coordinator in
 * one message, who hands them to their owners. As in its bcast, what follows a large message over
 * the WAN waits for its acknowledgement.
 * Cost: the sum over the other clusters of M'/W + 2L, M' being a cluster's blocks and W its link's
 * rate, + (h-1)/h M'/B; for short messages 2 L + P o. MagPIe (Kielmann 2001), 3.2. */

enum { WAN, ACK, LAN };

struct magpie {
	struct gci_builder *b;
	const struct gci_coll *c;
	struct gci_group all; /* ranks by clusters */
	int first, end;       /* members of the cluster in question */
};

static void look_at(struct magpie *m, int cluster)
{
	m->first = m->c->topo->first[cluster];
	m->end = m->c->topo->first[cluster + 1];
}

static int waits(const struct magpie *m)
{
	uint64_t length = gci_blocks_len(m->c, &m->all, m->first, m->end);

	return length * m->c->esize > GCI_MAGPIE_WAITS_NBYTES;
}

static void to_coordinator(struct magpie *m)
{
	int rank = gci_group_rank(&m->all, m->first);
	struct gci_shelf in = gci_shelf_in();

	gci_send_blocks(m->b, m->c, &m->all, m->first, gci_tag(WAN, 0), &in, m->first, m->end);
	if (!waits(m))
		return;
	gci_recv(m->b, rank, gci_tag(ACK, 0), gci_slice(GCI_TMP, 0, 0));
	gci_round(m->b);
}

static void from_root(struct magpie *m, int root, const struct gci_shelf *to)
{
	gci_recv_blocks(m->b, m->c, &m->all, root, gci_tag(WAN, 0), to, m->first, m->end);
	if (!waits(m))
		return;
	gci_round(m->b);
	gci_send(m->b, m->c->root, gci_tag(ACK, 0), gci_slice(GCI_TMP, 0, 0));
}

/* `holder` has the blocks of its cluster. */
static void in_cluster(struct magpie *m, int holder, const struct gci_shelf *mine)
{
	int i;

	for (i = m->first; m->all.me == holder && i < m->end; i++)
		if (i != holder)
			gci_send_blocks(m->b, m->c, &m->all, i, gci_tag(LAN, 0), mine, i, i + 1);
	if (m->all.me != holder)
		gci_recv_blocks(m->b, m->c, &m->all, holder, gci_tag(LAN, 0), mine, m->all.me,
			m->all.me + 1);
}

static void gci_emit_scatter_magpie(struct gci_builder *b, const struct gci_coll *c)
{
	const struct gci_topo *t = c->topo;
	struct magpie m = {.b = b, .c = c, .all = gci_group_by_clusters(c, b->rank)};
	int home = t->cluster[c->root], mine = t->cluster[b->rank], k;
	int root = t->first[home] + t->index[c->root],
	    holder = mine == home ? root : t->first[mine];
	struct gci_shelf in = gci_shelf_in(), out = gci_shelf_out(), shelf = out;

	for (k = 1; b->rank == c->root && k < t->nclusters; k++) {
		look_at(&m, (home + k) % t->nclusters);
		to_coordinator(&m);
	}
	look_at(&m, mine);
	if (b->rank == c->root) {
		shelf = in;
	} else if (m.all.me == holder) {
		if (m.end - m.first > 1)
			shelf = gci_shelf_tmp(b, c, &m.all, m.first, m.end);
		from_root(&m, root, &shelf);
	}
	in_cluster(&m, holder, &shelf);
	if (m.all.me == holder && gci_has_out(c, b->rank))
		gci_copy_blocks(b, c, &m.all, &out, &shelf, holder, holder + 1);
}

/* ---- MagPIe's segmented scatter: the root sends to every rank itself, in rounds; in each it sends
 * one segment to the first rank of each cluster, then to the second, and so on, so that all WAN
 * links work at a time. With k segments of m of each block, P_w clusters and P_l ranks in the
 * largest,
 *
 * 	T = (k-1) g + (P_l - 1) a + (P_w - 1) s(m) + L_w + g_w(m)
 * 	g = P_l a + o,  a = max(g_w(m), (P_w - 1) s(m) + s(m))
 *
 * and k, if the caller leaves it open, is the best by this formula (collectives/models/magpie.h).
 * MagPIe (Kielmann 2001), 3.2; s, g and L as in collectives/models/plogp.h. */

static struct gci_route_segments segments_of(const struct gci_coll *c, const struct gci_plogp *p)
{
	struct gci_magpie m;

	gci_magpie_init(&m, p);
	return gci_route_segments_of(c, gci_magpie_segment(&m, c));
}

/* Segment q of all blocks, cluster after cluster in turns, the root's own last in each turn. */
static void send_round(struct gci_builder *b, const struct gci_coll *c,
	const struct gci_route_segments *cut, const struct gci_slice *blocks, uint32_t q, int most)
{
	const struct gci_topo *t = c->topo;
	int i, k, home = t->cluster[c->root];

	for (i = 0; i < most; i++)
		for (k = 1; k <= t->nclusters; k++) {
			int cluster = (home + k) % t->nclusters, to;

			if (i >= gci_topo_size(t, cluster))
				continue;
			to = gci_topo_members(t, cluster)[i];
			if (to != c->root && q < gci_route_count(cut, blocks[to].length))
				gci_send(b, to, gci_tag(0, q), gci_route_slice(cut, blocks[to], q));
		}
}

static void send_all(
	struct gci_builder *b, const struct gci_coll *c, const struct gci_route_segments *cut)
{
	struct gci_slice *blocks = gci_calloc((size_t)b->nranks, sizeof(*blocks));
	int i, most = 0;
	uint32_t q;

	if (!blocks) {
		b->failed = 1;
		return;
	}
	for (i = 0; i < b->nranks; i++)
		blocks[i] = gci_in_block(c, b->rank, i);
	for (i = 0; i < c->topo->nclusters; i++)
		if (gci_topo_size(c->topo, i) > most)
			most = gci_topo_size(c->topo, i);
	for (q = 0; q < cut->most && !b->failed; q++)
		send_round(b, c, cut, blocks, q, most);
	if (gci_has_out(c, b->rank))
		gci_copy_some(b, gci_out_block(c, b->rank, b->rank), blocks[b->rank]);
	gci_free(blocks);
}

static void gci_emit_scatter_magpie_segmented(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_plogp p = gci_plogp(c->topo);
	struct gci_route_segments cut = segments_of(c, &p);
	struct gci_slice mine;
	uint64_t q, n;

	if (b->rank == c->root) {
		send_all(b, c, &cut);
		return;
	}
	mine = gci_out_block(c, b->rank, b->rank);
	n = gci_route_count(&cut, mine.length);
	for (q = 0; q < n; q++)
		gci_recv(b, c->root, gci_tag(0, (uint32_t)q), gci_route_slice(&cut, mine, q));
}

/* ---- The product's scatter: by relays for long blocks, brought together on the way for short
 * ones. */

static void gci_emit_scatter_gridcoll(struct gci_builder *b, const struct gci_coll *c)
{
	uint64_t nbytes = gci_total(c) * c->esize;

	if (gci_cost_relay(c, nbytes) < gci_cost_binomial(c, nbytes))
		gci_emit_scatter_relay(b, c);
	else
		gci_emit_scatter_magpie(b, c);
}

/* ---- the algorithms */

const struct gci_algorithm gci_scatters[] = {
	{GCI_SCATTER, "gridcoll", "relay, or magpie for short blocks, by a cost formula",
		GCI_USES_SENDERS | GCI_USES_SEGMENT | GCI_CAPS_SENDERS, 0,
		gci_emit_scatter_gridcoll, gci_estimate_relay_or_clusters},
	{GCI_SCATTER, "packed", "packing of paths: blocks over the links that have time for them",
		GCI_PACKS, 0, gci_emit_packed, gci_estimate_packed},
	{GCI_SCATTER, "binomial", "binomial tree over all ranks", 0, 0, gci_emit_scatter_binomial,
		gci_estimate_binomial},
	{GCI_SCATTER, "relay", "far clusters first, by one member who passes on",
		GCI_USES_SENDERS | GCI_USES_SEGMENT | GCI_CAPS_SENDERS, 0, gci_emit_scatter_relay,
		gci_estimate_relay},
	{GCI_SCATTER, "sequential", "the root sends to each rank in turn",
		GCI_USES_SEGMENT | GCI_BY_SEGMENT | GCI_CAPS_SENDERS, 0,
		gci_emit_scatter_sequential, gci_estimate_flat},
	{GCI_SCATTER, "chain", "rank to rank, the blocks of all that follow",
		GCI_USES_SEGMENT | GCI_BY_SEGMENT, 0, gci_emit_scatter_chain, gci_estimate_chain},
	{GCI_SCATTER, "binary", "binary tree over all ranks", GCI_USES_SEGMENT | GCI_BY_SEGMENT, 0,
		gci_emit_scatter_binary, gci_estimate_binary},
	{GCI_SCATTER, "magpie", "to each cluster in turn, then in each of them", GCI_CAPS_SENDERS,
		0, gci_emit_scatter_magpie, gci_estimate_clusters},
	{GCI_SCATTER, "magpie-segmented", "to each rank in segments, clusters in turns",
		GCI_USES_SEGMENT | GCI_CAPS_SENDERS, 0, gci_emit_scatter_magpie_segmented,
		gci_estimate_flat},
	{GCI_SCATTER, NULL, NULL, 0, 0, NULL, NULL},
};
