/* SPDX-License-Identifier: MIT
 * Binomial reduce along the canonical tree (collectives/order.h): over all ranks in one, or by
 * clusters where the order of reduction asks for it.
 * Cost: ceil(log2 P) (L + M/B). ATCC (Vadhiyar 2001), table 1. */
#include "collectives/reduce/reduce.h"

/* The result of this rank's subtree stands in `acc`, and so at the root in OUT. */
static void reduce_along(struct gci_builder *b, const struct gci_coll *c, int flat)
{
	struct gci_slice in = gci_vector(c, gci_input(c, b->rank)), acc = in;
	struct gci_join joins[GCI_MAX_JOINS];
	int i, n = gci_joins(c->topo, flat, b->rank, c->root, joins);

	if (!c->count)
		return;
	if (b->rank == c->root)
		acc.buffer = GCI_OUT;
	else if (n > 1)
		acc = gci_slice(GCI_TMP, gci_tmp(b, c->count), c->count);
	if (b->nranks == 1)
		gci_copy_some(b, acc, in);
	for (i = 0; i < n; i++) {
		if (joins[i].other == b->rank) {
			gci_send(b, joins[i].lead, gci_tag(0, 0), in);
		} else {
			gci_recv_reduce(
				b, joins[i].other, gci_tag(0, 0), acc, in, joins[i].other_first);
			in = acc;
		}
	}
}

void gci_emit_reduce_binomial(struct gci_builder *b, const struct gci_coll *c)
{
	reduce_along(b, c, c->order == GCI_ANY_ORDER || gci_order_is_flat(c));
}
