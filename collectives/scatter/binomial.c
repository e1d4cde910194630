/* SPDX-License-Identifier: MIT
 * Binomial scatter by recursive halving: who holds the blocks of members [a, z) gives the second
 * half of them to its first.
 * Cost: ceil(log2 P) L + (P-1)/P M/B, M being all blocks. ATCC (Vadhiyar 2001), table 1. */
#include "collectives/scatter/scatter.h"

void gci_emit_scatter_binomial(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_group g = gci_group_all(c, b->rank, c->root);
	struct gci_shelf mine = gci_shelf_in(), out = gci_shelf_out();
	int a = 0, z = g.n;

	while (z - a > 1) {
		int mid = gci_middle(a, z);

		if (g.me == a) {
			gci_send_blocks(b, c, &g, mid, gci_tag(0, 0), &mine, mid, z);
		} else if (g.me == mid) {
			mine = z - mid > 1 ? gci_shelf_tmp(b, c, &g, mid, z) : out;
			gci_recv_blocks(b, c, &g, a, gci_tag(0, 0), &mine, mid, z);
		}
		if (g.me < mid)
			z = mid;
		else
			a = mid;
	}
	if (gci_has_out(c, b->rank))
		gci_copy_blocks(b, c, &g, &out, &mine, g.me, g.me + 1);
}
