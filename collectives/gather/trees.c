/* SPDX-License-Identifier: MIT
 * Gather up a flat tree (sequential), a chain, or a binary tree: a rank receives the blocks of its
 * children's subtrees, one child after the other, so that no two senders meet at its NIC, and hands
 * all of them to its parent. In segments it is the same for each segment of every block, so that a
 * rank hands on one while it receives the next.
 *
 * Cost, M being all blocks in k segments: sequential (P-1) (L + M/PB); chain
 * (P-1) (L + M/2kB) + M/B; binary log2 P L + (1 + 1/k) M/B, its root receiving two halves.
 * ATCC (Vadhiyar 2001), table 1. */
#include "collectives/blocks/subtree.h"
#include "collectives/gather/gather.h"

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

void gci_emit_gather_sequential(struct gci_builder *b, const struct gci_coll *c)
{
	gather(b, c, GCI_TREE_FLAT);
}

void gci_emit_gather_chain(struct gci_builder *b, const struct gci_coll *c)
{
	gather(b, c, GCI_TREE_CHAIN);
}

void gci_emit_gather_binary(struct gci_builder *b, const struct gci_coll *c)
{
	gather(b, c, GCI_TREE_BINARY);
}
