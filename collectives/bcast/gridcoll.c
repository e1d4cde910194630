/* SPDX-License-Identifier: MIT
 * The product's bcast: a pipeline for long messages, a tree for short ones. */
#include "collectives/bcast/bcast.h"
#include "collectives/models/cost.h"

void gci_emit_bcast_gridcoll(struct gci_builder *b, const struct gci_coll *c)
{
	uint64_t nbytes = c->count * c->esize;

	if (gci_cost_path(c, nbytes) < gci_cost_tree(c, nbytes))
		gci_emit_bcast_pipeline(b, c);
	else
		gci_emit_bcast_tree(b, c);
}
