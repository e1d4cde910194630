/* SPDX-License-Identifier: MIT
 * Binary bcast: every rank passes on to two others; members 2i+1 and 2i+2, counted from the root,
 * are the children of member i. With segments, a pipeline at half the NIC's rate, but a short one.
 * Cost: 2 log2 P (M/B + o), in segments of m about 2 M/B + 2 log2 P (m/B + o) + the path's
 * latencies, o being the cost of a message. ATCC (Vadhiyar 2001), table 1. */
#include "collectives/bcast/bcast.h"

void gci_emit_bcast_binary(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_group g = gci_group_all(c, b->rank, c->root);
	struct gci_slice all = gci_vector(c, gci_bcast_buffer(b, c));
	int parent, children[32];
	int k, nchildren = gci_binary(&g, &parent, children);

	if (parent >= 0)
		gci_recv_some(b, gci_group_rank(&g, parent), gci_tag(0, 0), all);
	for (k = 0; k < nchildren; k++)
		gci_send_some(b, gci_group_rank(&g, children[k]), gci_tag(0, 0), all);
}
