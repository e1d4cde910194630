/* SPDX-License-Identifier: MIT
 * The product's bcast: segments along a path through all ranks (collectives/path.h).
 *
 * Cost: M/B + L + (P-2) (m/B + o) for segments of m. Bound (DESIGN.md): M/B + L, approached for
 * P m << M; what keeps us from it is the filling of the path. */
#include "base/clock.h"
#include "collectives/bcast/bcast.h"
#include "collectives/path.h"

void gci_emit_bcast_pipeline(struct gci_builder *b, const struct gci_coll *c)
{
	uint64_t segment = c->segment ? c->segment : gci_pipeline_segment(c, c->count);
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

/* Predicted times in integer nanoseconds, equal on every rank. */
static uint64_t pipeline_ns(const struct gci_coll *c)
{
	const struct gci_topo *t = c->topo;
	int order[GCI_GRID_MAX_CLUSTERS];
	uint64_t bps = UINT64_MAX, ns = 0, nbytes = c->count * c->esize;
	int i;

	gci_topo_chain(t, t->cluster[c->root], order);
	for (i = 0; i < t->nclusters; i++) {
		if (gci_nic_bps(t, i) < bps)
			bps = gci_nic_bps(t, i);
		if (i)
			ns += gci_topo_link(t, order[i - 1], order[i])->delay_ns;
		ns += gci_topo_link(t, i, i)->delay_ns * (unsigned)gci_topo_size(t, i);
	}
	ns += (unsigned)t->nranks *
	      (gci_transfer_ns(gci_pipeline_segment(c, c->count) * c->esize, bps) +
		      GCI_MESSAGE_COST_NS);
	return ns + gci_transfer_ns(nbytes, bps);
}

static uint64_t tree_ns(const struct gci_coll *c)
{
	const struct gci_topo *t = c->topo;
	int i, rounds = 0, home = t->cluster[c->root];
	uint64_t once, far = 0;

	for (i = 0; i < t->nclusters; i++) {
		if (gci_topo_link(t, home, i)->delay_ns > far)
			far = gci_topo_link(t, home, i)->delay_ns;
		while (1 << rounds < gci_topo_size(t, i))
			rounds++;
	}
	rounds += t->nclusters - 1;
	once = gci_transfer_ns(c->count * c->esize, gci_nic_bps(t, home)) + GCI_MESSAGE_COST_NS +
	       gci_topo_link(t, home, home)->delay_ns;
	return far + (unsigned)rounds * once;
}

/* The default: whichever the formulas above prefer. */
void gci_emit_bcast_gridcoll(struct gci_builder *b, const struct gci_coll *c)
{
	if (pipeline_ns(c) < tree_ns(c))
		gci_emit_bcast_pipeline(b, c);
	else
		gci_emit_bcast_tree(b, c);
}
