/* SPDX-License-Identifier: MIT
 * Binomial gather, the scatter turned round: the first of a range's second half gives what it has
 * collected to the first of the range.
 * Cost: ceil(log2 P) L + (P-1)/P M/B, M being all blocks. ATCC (Vadhiyar 2001), table 1. */
#include "collectives/blocks/phases.h"
#include "collectives/gather/gather.h"

void gci_emit_gather_binomial(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_group g = gci_group_all(c, b->rank, c->root);
	struct gci_shelf in = gci_shelf_in(), out = gci_shelf_out();

	gci_gather_blocks(b, c, &g, &in, b->rank == c->root ? &out : NULL, 0);
}
