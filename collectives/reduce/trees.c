/* SPDX-License-Identifier: MIT
 * Reduce up a tree; all but `gather` of ATCC (Vadhiyar 2001), table 1, run by segments too, of m.
 *	chain		rank to rank, towards the root. Cost: (P-1) (L + M/B), with segments
 *			M/B + (P-2) m/B + the path's latencies
 *	binary		Cost: 2 ceil(log2 P) (L + M/B), with segments 2 M/B + the depth's part
 *	binomial	the canonical tree (collectives/blocks/order.h), over all ranks in one, or
 *			by clusters where the order asks for it. Cost: ceil(log2 P) (L + M/B)
 *	clusters	the canonical tree by clusters: one rank of each speaks for it, so every
 *			WAN link is crossed once. Cost: ceil(log2 C) (L + M/B) + ceil(log2 h) M/B */
#include "collectives/reduce/reduce.h"

static struct gci_slice accumulator(struct gci_builder *b, const struct gci_coll *c, int needed)
{
	if (b->rank == c->root)
		return gci_vector(c, GCI_OUT);
	return gci_slice(GCI_TMP, needed ? gci_tmp(b, c->count) : 0, c->count);
}

static void up_tree(struct gci_builder *b, const struct gci_coll *c, gci_tree *tree)
{
	struct gci_group g = gci_group_all(c, b->rank, c->root);
	int parent, children[32];
	struct gci_slice acc = accumulator(b, c, tree(&g, &parent, children) > 0);

	gci_reduce_up(b, &g, tree, gci_vector(c, gci_input(c, b->rank)), acc, gci_tag(0, 0));
}

void gci_emit_reduce_chain(struct gci_builder *b, const struct gci_coll *c)
{
	up_tree(b, c, gci_chain);
}

void gci_emit_reduce_binary(struct gci_builder *b, const struct gci_coll *c)
{
	up_tree(b, c, gci_binary);
}

static void up_canonical(struct gci_builder *b, const struct gci_coll *c, int flat)
{
	struct gci_join joins[GCI_MAX_JOINS];
	int n = gci_joins(c->topo, flat, b->rank, c->root, joins);

	gci_reduce_canonical(b, c, flat, c->root, gci_vector(c, gci_input(c, b->rank)),
		accumulator(b, c, n > 1), gci_tag(0, 0));
}

void gci_emit_reduce_binomial(struct gci_builder *b, const struct gci_coll *c)
{
	up_canonical(b, c, c->order == GCI_ANY_ORDER || gci_order_is_flat(c));
}

void gci_emit_reduce_clusters(struct gci_builder *b, const struct gci_coll *c)
{
	up_canonical(b, c, 0);
}
