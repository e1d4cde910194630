/* SPDX-License-Identifier: MIT
 * The product's reduce: a pipeline for long messages, a tree for short ones and where the order of
 * reduction is fixed. */
#include "collectives/models/cost.h"
#include "collectives/reduce/reduce.h"

void gci_emit_reduce_gridcoll(struct gci_builder *b, const struct gci_coll *c)
{
	uint64_t nbytes = c->count * c->esize;

	if (c->order == GCI_ANY_ORDER && gci_cost_path(c, nbytes) < gci_cost_tree(c, nbytes))
		gci_emit_reduce_pipeline(b, c);
	else
		gci_emit_reduce_clusters(b, c);
}
