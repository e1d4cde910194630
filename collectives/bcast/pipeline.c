/* SPDX-License-Identifier: MIT
 * The product's bcast: segments along a path through all ranks (collectives/blocks/path.h).
 *
 * Cost: M/B + L + (P-2) (m/B + o) for segments of m. Bound (DESIGN.md): M/B + L, approached for
 * P m << M; what keeps us from it is the filling of the path. */
#include "collectives/bcast/bcast.h"
#include "collectives/blocks/path.h"

void gci_emit_bcast_pipeline(struct gci_builder *b, const struct gci_coll *c)
{
	uint64_t whole = c->like ? c->like : c->count;
	uint64_t segment = c->segment ? c->segment : gci_pipeline_segment(c, whole);
	uint64_t i, n = gci_nsegments(c->count, segment);
	struct gci_path p;

	gci_path_find(&p, c, b->rank, 1);
	for (i = 0; i < n; i++) {
		struct gci_slice s = gci_segment(gci_bcast_buffer(b, c), c->count, segment, i);
		int lane = (int)(i % (unsigned)p.lanes);
		int from = gci_path_before(&p, lane), to = gci_path_after(&p, lane);

		if (from >= 0)
			gci_recv_some(b, from, gci_tag(0, (uint32_t)i), s);
		if (to >= 0)
			gci_send_some(b, to, gci_tag(0, (uint32_t)i), s);
	}
}
