/* SPDX-License-Identifier: MIT
 * Ring allgather: in round i every rank passes the block of rank r-i on to its right neighbour.
 * Cost: (P-1) (L + m/B), blocks of m. Min3 (Gupta 2007), 2. */
#include "collectives/allgather/allgather.h"

void gci_emit_allgather_ring(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_group g = gci_group_all(c, b->rank, b->rank);
	struct gci_shelf in = gci_shelf_in(), out = gci_shelf_out();
	int i;

	gci_copy_blocks(b, c, &g, &out, &in, 0, 1);
	for (i = 0; i < g.n - 1; i++) {
		int give = (g.n - i) % g.n, take = g.n - 1 - i;
		/* Numbered by the ranks they are of: members are counted from another rank here
		 * than there. */
		uint32_t gives = (uint32_t)gci_group_rank(&g, give);
		uint32_t takes = (uint32_t)gci_group_rank(&g, take);
		struct gci_slice own = i ? gci_out_block(c, b->rank, (int)gives)
					 : gci_in_block(c, b->rank, b->rank);

		gci_send_some(b, gci_group_rank(&g, 1), gci_tag(0, gives), own);
		gci_recv_some(b, gci_group_rank(&g, g.n - 1), gci_tag(0, takes),
			gci_out_block(c, b->rank, (int)takes));
	}
}
