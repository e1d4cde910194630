/* SPDX-License-Identifier: MIT
 * Chain bcast: rank r receives from r-1 and sends to r+1, counted from the root; with segments, a
 * pipeline that ignores clusters.
 * Cost: M/B + (P-2) m/B + the path's latencies, for segments of m. MagPIe (Kielmann 2001), 3. */
#include "collectives/blocks.h"

void gci_emit_bcast_chain(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_group g = gci_group_all(c, b->rank, c->root);
	uint64_t i, n = gci_nsegments(c->count, c->segment);

	gci_set_lengths(b, c);
	for (i = 0; i < n; i++) {
		struct gci_slice s = gci_segment(gci_bcast_buffer(b, c), c->count, c->segment, i);

		if (g.me > 0)
			gci_recv_some(b, gci_group_rank(&g, g.me - 1), gci_tag(0, (uint32_t)i), s);
		if (g.me + 1 < g.n)
			gci_send_some(b, gci_group_rank(&g, g.me + 1), gci_tag(0, (uint32_t)i), s);
	}
}
