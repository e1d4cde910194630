/* SPDX-License-Identifier: MIT
 * Allreduce up a tree and down again, ATCC (Vadhiyar 2001), table 1. By segments the way down of
 * one overlaps the way up of the next.
 *	chain		Cost: 2 (P-1) (L + M/B), with segments of m 2 M/B + 2 (P-2) m/B + latencies
 *	binary		Cost: 4 ceil(log2 P) (L + M/B), with segments 3 M/B + the depth's part: two
 *			vectors come in from below and one from above
 *	binomial	Cost: 2 ceil(log2 P) (L + M/B)
 *	reduce-bcast	the same along the canonical tree (collectives/blocks/order.h), by
 *			clusters unless the order of ranks forbids. Cost: 2 ceil(log2 C) L +
 *			2 ceil(log2 P) M/B */
#include "collectives/allreduce/allreduce.h"

enum { UP, DOWN };

static void up_and_down(struct gci_builder *b, const struct gci_coll *c, gci_tree *tree)
{
	struct gci_group g = gci_group_all(c, b->rank, 0);
	struct gci_slice out = gci_vector(c, GCI_OUT);

	gci_reduce_up(b, &g, tree, gci_vector(c, gci_input(c, b->rank)), out, gci_tag(UP, 0));
	gci_bcast_down(b, &g, tree, out, gci_tag(DOWN, 0));
}

void gci_emit_allreduce_chain(struct gci_builder *b, const struct gci_coll *c)
{
	up_and_down(b, c, gci_chain);
}

void gci_emit_allreduce_binary(struct gci_builder *b, const struct gci_coll *c)
{
	up_and_down(b, c, gci_binary);
}

void gci_emit_allreduce_binomial(struct gci_builder *b, const struct gci_coll *c)
{
	up_and_down(b, c, gci_binomial);
}

void gci_emit_allreduce_reduce_bcast(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_slice out = gci_vector(c, GCI_OUT);
	int flat = gci_order_is_flat(c);

	gci_reduce_canonical(
		b, c, flat, 0, gci_vector(c, gci_input(c, b->rank)), out, gci_tag(UP, 0));
	gci_bcast_canonical(b, c, flat, 0, out, gci_tag(DOWN, 0));
}
