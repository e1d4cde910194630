/* SPDX-License-Identifier: MIT
 * The product's reduce-scatter: rings for long blocks, trees by clusters for short ones and where
 * the order of reduction is fixed. */
#include "collectives/models/cost.h"
#include "collectives/reduce_scatter/reduce_scatter.h"

void gci_emit_reduce_scatter_gridcoll(struct gci_builder *b, const struct gci_coll *c)
{
	uint64_t nbytes = gci_total(c) * c->esize;

	if (c->order == GCI_ANY_ORDER &&
		gci_cost_rings(c, nbytes) < gci_cost_coordinators(c, nbytes))
		gci_emit_reduce_scatter_rings(b, c);
	else
		gci_emit_reduce_scatter_clusters(b, c);
}
