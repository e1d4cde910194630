/* SPDX-License-Identifier: MIT
 * Chain bcast: rank r receives from r-1 and sends to r+1, counted from the root; with segments, a
 * pipeline that ignores clusters.
 * Cost: M/B + (P-2) m/B + the path's latencies, for segments of m. ATCC (Vadhiyar 2001), table 1.
 */
#include "collectives/bcast/bcast.h"

void gci_emit_bcast_chain(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_group g = gci_group_all(c, b->rank, c->root);
	struct gci_slice all = gci_vector(c, gci_bcast_buffer(b, c));

	if (g.me > 0)
		gci_recv_some(b, gci_group_rank(&g, g.me - 1), gci_tag(0, 0), all);
	if (g.me + 1 < g.n)
		gci_send_some(b, gci_group_rank(&g, g.me + 1), gci_tag(0, 0), all);
}
