/* SPDX-License-Identifier: MIT
 * Allgather as a gather to rank 0 and a bcast from it, both binomial; with segments, the gather of
 * one runs beside the bcast of those before.
 * Cost: 2 ceil(log2 P) L + (P-1)/P M/B + ceil(log2 P) M/B, M being all blocks. */
#include "collectives/allgather/allgather.h"
#include "collectives/blocks/phases.h"

enum { GATHER, BCAST };

void gci_emit_allgather_gather_bcast(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_group g = gci_group_all(c, b->rank, 0);
	struct gci_shelf in = gci_shelf_in(), out = gci_shelf_out();

	/* All blocks get to OUT anyway: what is collected on the way may stand there. */
	gci_gather_blocks(b, c, &g, &in, &out, GATHER);
	gci_bcast_all(b, c, &g, BCAST);
}
