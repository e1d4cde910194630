/* SPDX-License-Identifier: MIT
 * The product's allreduce: parts reduced, traded and gathered for long messages, a tree for short
 * ones. Both keep the fixed order where it is asked for. */
#include "collectives/allreduce/allreduce.h"
#include "collectives/models/cost.h"

void gci_emit_allreduce_gridcoll(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_coll rooted = *c;
	uint64_t nbytes = c->count * c->esize;

	/* Long where twice the vector takes longer by a tree, up and down, than in parts. */
	rooted.root = 0;
	if (gci_cost_tree(&rooted, nbytes) <= gci_cost_rings(c, nbytes))
		gci_emit_allreduce_tree(b, c);
	else if (c->order == GCI_ANY_ORDER)
		gci_emit_allreduce_rabenseifner_mod(b, c);
	else
		gci_emit_allreduce_ordered_mod(b, c);
}
