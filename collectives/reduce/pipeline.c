/* SPDX-License-Identifier: MIT
 * The product's reduce: the bcast's pipeline (collectives/blocks/path.h) walked backwards. Every
 * rank takes each segment in from the one behind it, adds its own, and passes it on towards the
 * root.
 *
 * Cost: M/B + L + (P-2) (m/B + o) for segments of m, and the time of reducing where that is not
 * hidden. Bound (DESIGN.md): M/B + L, approached for P m << M. For commutative operations. */
#include "collectives/blocks/path.h"
#include "collectives/reduce/reduce.h"

void gci_emit_reduce_pipeline(struct gci_builder *b, const struct gci_coll *c)
{
	uint64_t segment = c->segment ? c->segment : gci_pipeline_segment(c, c->count);
	uint64_t i, n = gci_nsegments(c->count, segment);
	enum gci_buffer in = gci_input(c, b->rank);
	int at_root = b->rank == c->root;
	struct gci_path p;

	gci_path_find(&p, c, b->rank, 0);
	if (b->nranks == 1)
		gci_copy_some(b, gci_slice(GCI_OUT, 0, c->count), gci_slice(in, 0, c->count));
	else if (!at_root)
		gci_tmp(b, c->count);
	for (i = 0; i < n; i++) {
		struct gci_slice own = gci_segment(in, c->count, segment, i), acc = own;
		int lane = (int)(i % (unsigned)p.lanes);
		int to = gci_path_before(&p, lane), from = gci_path_after(&p, lane);
		uint32_t tag = gci_tag(0, (uint32_t)i);

		if (from >= 0 && own.length) {
			acc.buffer = at_root ? GCI_OUT : GCI_TMP;
			gci_recv_reduce(b, from, tag, acc, own, 0);
		}
		if (to >= 0)
			gci_send_some(b, to, tag, acc);
	}
}
