/* SPDX-License-Identifier: MIT
 * Gather up a flat tree (sequential), a chain, or a binary tree: a rank receives the blocks of its
 * children's subtrees, one child after the other, so that no two senders meet at its NIC, and hands
 * all of them to its parent. In segments it is the same for each segment of every block, so that a
 * rank hands on one while it receives the next.
 *
 * Cost, M being all blocks in k segments: sequential (P-1) (L + M/PB); chain
 * (P-1) (L + M/2kB) + M/B; binary log2 P L + (1 + 1/k) M/B, its root receiving two halves.
 * ATCC (Vadhiyar 2001), table 1. */
#include "base/clock.h"
#include "collectives/blocks/blocks.h"
#include "collectives/blocks/phases.h"
#include "collectives/blocks/subtree.h"
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

static struct gci_cut segments_of(const struct gci_coll *c, const struct gci_plogp *p)
{
	struct gci_magpie m;

	gci_magpie_init(&m, p);
	return gci_cut_of(c, gci_magpie_segment(&m, c));
}

/* Turns at this rank's NIC: what is received in one turn is asked for when the turn before is over
 * but for `ahead` elements, which are on their way by then. */
struct turns {
	struct gci_builder *b;
	uint64_t ahead;
	uint64_t left; /* elements of this turn */
	uint32_t gate, next;
	int has_gate, has_next;
};

/* Begins a turn of so many elements. */
static void turn(struct turns *t, uint64_t elements)
{
	if (t->has_next) {
		t->gate = t->next;
		t->has_gate = 1;
	}
	t->has_next = 0;
	t->left = elements;
}

/* `step` has just been emitted and receives so many of them. */
static void turn_step(struct turns *t, uint32_t step, uint64_t elements)
{
	if (t->has_gate)
		gci_after(t->b, t->gate);
	t->left -= elements;
	if (!t->has_next && t->left <= t->ahead) {
		t->next = step;
		t->has_next = 1;
	}
}

/* Elements that one pair of ranks has under way in a round trip from cluster `from` to `to`. */
static uint64_t in_flight(const struct gci_coll *c, int from, int to)
{
	uint64_t ns = 2 * gci_topo_link(c->topo, from, to)->delay_ns;
	uint64_t bps = gci_pair_bps(c->topo, from, to);

	return (uint64_t)((unsigned __int128)bps * ns / 8 / GCI_NS_PER_S / c->esize) + 1;
}

static void receive_cluster(struct gci_builder *b, const struct gci_coll *c,
	const struct gci_cut *cut, struct turns *turns, int cluster)
{
	int i;
	uint64_t q;

	for (i = 0; i < gci_topo_size(c->topo, cluster); i++) {
		int from = gci_topo_members(c->topo, cluster)[i];
		struct gci_slice s = gci_out_block(c, b->rank, from);

		if (from == c->root)
			continue;
		turn(turns, s.length);
		for (q = 0; q < gci_cut_count(cut, s.length); q++) {
			struct gci_slice part = gci_cut_slice(cut, s, q);
			uint32_t step = gci_recv(b, from, gci_tag(0, (uint32_t)q), part);

			turn_step(turns, step, part.length);
		}
	}
}

/* Clusters are dealt to lanes; in a lane they take turns, the root's own last. */
static void receive_all(struct gci_builder *b, const struct gci_coll *c, const struct gci_cut *cut,
	const struct gci_plogp *p)
{
	int n = c->topo->nclusters, home = c->topo->cluster[c->root], lane, k;
	uint64_t fill = gci_nic_bps(c->topo, home) / p->wan_bps, ahead = 2 * cut->segment;
	int lanes = !fill ? 1 : fill < (unsigned)n ? (int)fill : n;

	for (k = 0; k < n; k++)
		if (k != home && in_flight(c, k, home) > ahead)
			ahead = in_flight(c, k, home);
	for (lane = 1; lane <= lanes; lane++) {
		struct turns turns = {.b = b, .ahead = ahead};

		for (k = lane; k <= n; k += lanes)
			receive_cluster(b, c, cut, &turns, (home + k) % n);
	}
	gci_copy_some(b, gci_out_block(c, b->rank, b->rank), gci_in_block(c, b->rank, b->rank));
}

static void gci_emit_gather_magpie_segmented(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_plogp p = gci_plogp(c->topo);
	struct gci_cut cut = segments_of(c, &p);
	struct gci_slice mine;
	uint64_t q, n;

	if (b->rank == c->root) {
		receive_all(b, c, &cut, &p);
		return;
	}
	mine = gci_in_block(c, b->rank, b->rank);
	n = gci_cut_count(&cut, mine.length);
	for (q = 0; q < n; q++)
		gci_send(b, c->root, gci_tag(0, (uint32_t)q), gci_cut_slice(&cut, mine, q));
}

/* ---- the algorithms */

const struct gci_algorithm gci_gathers[] = {
	{GCI_GATHER, "packed", "packing of paths: blocks over the links that have time for them",
		GCI_PACKS, 0, gci_emit_packed, gci_estimate_packed},
	{GCI_GATHER, "binomial", "binomial tree over all ranks", 0, 0, gci_emit_gather_binomial,
		gci_estimate_binomial},
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
