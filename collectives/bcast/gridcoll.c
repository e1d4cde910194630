/* SPDX-License-Identifier: MIT
 * The product's bcast: a pipeline for long messages, or all links between many
 * clusters where these are slow, and a tree for short ones. */
#include "collectives/bcast/bcast.h"
#include "collectives/models/cost.h"

void gci_emit_bcast_gridcoll(struct gci_builder *b, const struct gci_coll *c)
{
	uint64_t nbytes = gci_cost_nbytes(c);
	uint64_t path = gci_cost_path(c, nbytes), tree = gci_cost_tree(c, nbytes);
	int spread;

	if (gci_cost_spread(c, nbytes, path < tree ? path : tree, &spread))
		b->failed = 1;
	else if (spread)
		gci_emit_bcast_spread(b, c);
	else if (path < tree)
		gci_emit_bcast_pipeline(b, c);
	else
		gci_emit_bcast_tree(b, c);
}
