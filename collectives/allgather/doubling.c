/* SPDX-License-Identifier: MIT
 * Recursive doubling: partners exchange all that they have, at twice the distance in every round.
 * Here over halves of the ranks, so that any number of them works; where a half has a rank more
 * than the other, one rank of the smaller serves two.
 * Cost: ceil(log2 P) L + (P-1)/P M/B for powers of two, else up to twice the data at some ranks; M
 * being all blocks. Min3 (Gupta 2007), 2. */
#include "collectives/allgather/allgather.h"
#include "collectives/blocks/phases.h"

void gci_emit_allgather_doubling(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_group g = gci_group_all(c, b->rank, 0);
	struct gci_units u = gci_units_members(&g);
	struct gci_shelf in = gci_shelf_in(), out = gci_shelf_out();

	gci_copy_blocks(b, c, &g, &out, &in, g.me, g.me + 1);
	gci_allgather_units(b, c, &u, &out, 0);
}
