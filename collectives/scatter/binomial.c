/* SPDX-License-Identifier: MIT
 * Binomial scatter by recursive halving: who holds the blocks of members [a, z) gives the second
 * half of them to its first.
 * Cost: ceil(log2 P) L + (P-1)/P M/B, M being all blocks. ATCC (Vadhiyar 2001), table 1. */
#include "collectives/blocks/phases.h"
#include "collectives/scatter/scatter.h"

void gci_emit_scatter_binomial(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_group g = gci_group_all(c, b->rank, c->root);
	struct gci_shelf in = gci_shelf_in(), out = gci_shelf_out();

	gci_scatter_blocks(b, c, &g, &in, gci_has_out(c, b->rank) ? &out : NULL, 0);
}
