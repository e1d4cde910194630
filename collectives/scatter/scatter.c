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
#include "collectives/blocks/phases.h"
#include "collectives/blocks/subtree.h"
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

static struct gci_cut segments_of(const struct gci_coll *c, const struct gci_plogp *p)
{
	struct gci_magpie m;

	gci_magpie_init(&m, p);
	return gci_cut_of(c, gci_magpie_segment(&m, c));
}

/* Segment q of all blocks, cluster after cluster in turns, the root's own last in each turn. */
static void send_round(struct gci_builder *b, const struct gci_coll *c, const struct gci_cut *cut,
	const struct gci_slice *blocks, uint32_t q, int most)
{
	const struct gci_topo *t = c->topo;
	int i, k, home = t->cluster[c->root];

	for (i = 0; i < most; i++)
		for (k = 1; k <= t->nclusters; k++) {
			int cluster = (home + k) % t->nclusters, to;

			if (i >= gci_topo_size(t, cluster))
				continue;
			to = gci_topo_members(t, cluster)[i];
			if (to != c->root && q < gci_cut_count(cut, blocks[to].length))
				gci_send(b, to, gci_tag(0, q), gci_cut_slice(cut, blocks[to], q));
		}
}

static void send_all(struct gci_builder *b, const struct gci_coll *c, const struct gci_cut *cut)
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
	struct gci_cut cut = segments_of(c, &p);
	struct gci_slice mine;
	uint64_t q, n;

	if (b->rank == c->root) {
		send_all(b, c, &cut);
		return;
	}
	mine = gci_out_block(c, b->rank, b->rank);
	n = gci_cut_count(&cut, mine.length);
	for (q = 0; q < n; q++)
		gci_recv(b, c->root, gci_tag(0, (uint32_t)q), gci_cut_slice(&cut, mine, q));
}

/* ---- the algorithms */

const struct gci_algorithm gci_scatters[] = {
	{GCI_SCATTER, "packed", "packing of paths: blocks over the links that have time for them",
		GCI_PACKS, 0, gci_emit_packed, gci_estimate_packed},
	{GCI_SCATTER, "binomial", "binomial tree over all ranks", 0, 0, gci_emit_scatter_binomial,
		gci_estimate_binomial},
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
