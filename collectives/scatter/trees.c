/* SPDX-License-Identifier: MIT
 * Scatter down a flat tree (sequential), a chain, or a binary tree: a rank receives the blocks of
 * its subtree and hands on those of its children. In segments it is the same for each segment of
 * every block, so that a rank hands on one while it receives the next.
 *
 * Cost, M being all blocks in k segments: sequential L + (P-1)/P M/B; chain
 * (P-1) (L + M/2kB) + M/B; binary log2 P L + (1 + 1/k) M/B, its root sending two halves.
 * ATCC (Vadhiyar 2001), table 1. */
#include "collectives/blocks/subtree.h"
#include "collectives/scatter/scatter.h"

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

void gci_emit_scatter_sequential(struct gci_builder *b, const struct gci_coll *c)
{
	scatter(b, c, GCI_TREE_FLAT);
}

void gci_emit_scatter_chain(struct gci_builder *b, const struct gci_coll *c)
{
	scatter(b, c, GCI_TREE_CHAIN);
}

void gci_emit_scatter_binary(struct gci_builder *b, const struct gci_coll *c)
{
	scatter(b, c, GCI_TREE_BINARY);
}
