/* SPDX-License-Identifier: MIT
 * Sequential bcast, also called a flat tree: the root sends to every rank in turn.
 * Cost: L + (P-1) M/B, the root's link being used P-1 times. ATCC (Vadhiyar 2001), table 1. */
#include "collectives/bcast/bcast.h"

void gci_emit_bcast_sequential(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_slice all = gci_vector(c, gci_bcast_buffer(b, c));
	int r;

	if (b->rank != c->root)
		gci_recv_some(b, c->root, gci_tag(0, 0), all);
	for (r = 1; b->rank == c->root && r < b->nranks; r++)
		gci_send_some(b, (c->root + r) % b->nranks, gci_tag(0, 0), all);
}
