/* SPDX-License-Identifier: MIT
 * The product's reduce: a pipeline for long messages, or all links between many clusters where
 * these are slow, and a tree for short ones, and for others where the order of reduction is fixed.
 */
#include "collectives/models/cost.h"
#include "collectives/reduce/reduce.h"

void gci_emit_reduce_gridcoll(struct gci_builder *b, const struct gci_coll *c)
{
	uint64_t nbytes = gci_cost_nbytes(c);
	uint64_t path = gci_cost_path(c, nbytes), tree = gci_cost_tree(c, nbytes);
	int spread;

	if (c->order != GCI_ANY_ORDER)
		path = GCI_NEVER;
	if (gci_cost_spread(c, nbytes, path < tree ? path : tree, &spread))
		b->failed = 1;
	else if (spread)
		gci_emit_reduce_spread(b, c);
	else if (path < tree)
		gci_emit_reduce_pipeline(b, c);
	else
		gci_emit_reduce_clusters(b, c);
}
