/* SPDX-License-Identifier: MIT
 * Flat bcast: the root sends every segment to every rank in turn.
 * Cost: L + (P-1) M/B, the root's link being used P-1 times. MagPIe (Kielmann 2001), 3. */
#include "collectives/blocks.h"

void gci_emit_bcast_flat(struct gci_builder *b, const struct gci_coll *c)
{
	uint64_t i, n = gci_nsegments(c->count, c->segment);
	int r;

	gci_set_lengths(b, c);
	for (i = 0; i < n; i++) {
		struct gci_slice s = gci_segment(gci_bcast_buffer(b, c), c->count, c->segment, i);

		if (b->rank != c->root) {
			gci_recv_some(b, c->root, gci_tag(0, (uint32_t)i), s);
			continue;
		}
		for (r = 1; r < b->nranks; r++)
			gci_send_some(b, (c->root + r) % b->nranks, gci_tag(0, (uint32_t)i), s);
	}
}
