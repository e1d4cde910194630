/* SPDX-License-Identifier: MIT
 * The product's allreduce: parts reduced, traded and gathered for long messages, or all links
 * between many clusters where these are slow, and a tree for short ones. All keep the fixed order
 * where it is asked for. */
#include "collectives/allreduce/allreduce.h"
#include "collectives/models/cost.h"

void gci_emit_allreduce_gridcoll(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_coll rooted = *c;
	uint64_t nbytes = gci_cost_nbytes(c), tree, parts = gci_cost_rings(c, nbytes);
	int spread;

	/* Long where twice the vector takes longer by a tree, up and down, than in parts. */
	rooted.root = 0;
	tree = gci_cost_tree(&rooted, nbytes);
	if (gci_cost_spread(&rooted, nbytes, tree < parts ? tree : parts, &spread))
		b->failed = 1;
	else if (spread)
		gci_emit_allreduce_spread(b, c);
	else if (tree <= parts)
		gci_emit_allreduce_tree(b, c);
	else if (c->order == GCI_ANY_ORDER)
		gci_emit_allreduce_rabenseifner_mod(b, c);
	else
		gci_emit_allreduce_ordered_mod(b, c);
}
