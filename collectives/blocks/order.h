/* SPDX-License-Identifier: MIT
 * The one tree by which operands are combined when the order of reduction is fixed, so that a
 * result's bits depend neither on the algorithm nor on the message's size nor on timing.
 *
 * A range of n things is combined as first half OP second half, the first half being the larger by
 * at most one; each half in the same way. The things are the members of a cluster in the order of
 * ranks, and then the clusters in the order of their numbers: each cluster's result is made inside
 * of it, so the tree is as hierarchical as the grid. Where OP is not commutative and some cluster's
 * ranks are not consecutive, the things are all ranks, and clusters do not count. */
#ifndef GCI_COLLECTIVES_BLOCKS_ORDER_H
#define GCI_COLLECTIVES_BLOCKS_ORDER_H

#include "collectives/coll.h"

/* Where the second half of [a, z) begins. */
static inline int gci_middle(int a, int z)
{
	return a + (z - a + 1) / 2;
}

/* True if the clusters' ranks stand one after the other: cluster order is rank order then. */
int gci_topo_in_rank_order(const struct gci_topo *t);

/* True if the tree of c->order is over all ranks in one, not by clusters. */
static inline int gci_order_is_flat(const struct gci_coll *c)
{
	return c->order == GCI_RANK_ORDER && !gci_topo_in_rank_order(c->topo);
}

/* One inner node of the tree: what `other` has is taken in by `lead`, who then stands for both. */
struct gci_join {
	int lead, other; /* ranks */
	int other_first; /* other's is the left operand */
};

#define GCI_MAX_JOINS 64

/* The joins that `rank` takes part in, leaves first, when `root` is to have the result; in the last
 * one of every other rank it is `other`. Of a half without the root, the member at the root's place
 * in its own half leads, so that different roots spread the work. `flat`: over all ranks in one.
 * Returns their number. Cost: O(log P). */
int gci_joins(const struct gci_topo *t, int flat, int rank, int root,
	struct gci_join joins[GCI_MAX_JOINS]);

#endif
