/* SPDX-License-Identifier: MIT
 * What the algorithms that reduce are composed of, beside collectives/blocks/blocks.h: vectors on
 * their way up and down a tree, parts that go up the one tree of a fixed order each to an owner of
 * its own, and the evaluation of that tree in one place. */
#ifndef GCI_COLLECTIVES_BLOCKS_REDUCTION_H
#define GCI_COLLECTIVES_BLOCKS_REDUCTION_H

#include "collectives/blocks/blocks.h"

/* A tree over a group, as this rank sees it: gci_binomial and the like. */
typedef int gci_tree(const struct gci_group *g, int *parent, int children[32]);

/* Every member has a vector in `in`; afterwards member 0 has the result in `acc`. A member with
 * children needs `acc` too, which may be `in`. For commutative operations. */
void gci_reduce_up(struct gci_builder *b, const struct gci_group *g, gci_tree *tree,
	struct gci_slice in, struct gci_slice acc, uint32_t tag);

/* The vector of member 0 goes down the tree. */
void gci_bcast_down(struct gci_builder *b, const struct gci_group *g, gci_tree *tree,
	struct gci_slice all, uint32_t tag);

/* As gci_reduce_up, along the canonical tree (collectives/blocks/order.h) that `root` leads: `flat`
 * over all ranks in one, else by clusters. Returns the number of joins this rank takes part in; all
 * but the last one, and at the root that one too, need `acc`. */
void gci_reduce_canonical(struct gci_builder *b, const struct gci_coll *c, int flat, int root,
	struct gci_slice in, struct gci_slice acc, uint32_t tag);

/* The way back down the same tree. */
void gci_bcast_canonical(struct gci_builder *b, const struct gci_coll *c, int flat, int root,
	struct gci_slice all, uint32_t tag);

/* One of many parts that are reduced at the same time, each with a root of its own. */
struct gci_item {
	int root;            /* rank */
	struct gci_slice at; /* this rank's operand; in the end, what it made of it */
	struct gci_slice
		to; /* where the first result goes; buffer GCI_NBUFFERS: somewhere in TMP */
	struct gci_join end; /* the last of the joins that this rank takes part in */
	uint8_t njoins;      /* their number */
};

enum gci_span {
	GCI_SPAN_FLAT,    /* the tree over all ranks in one */
	GCI_SPAN_ALL,     /* the tree by clusters */
	GCI_SPAN_CLUSTER, /* only the part of it inside this rank's cluster */
};

/* Takes n items up the canonical tree, all of a level in one round, so that hardly ever two ranks
 * send to one. Roots that differ by place spread the work: (n-1)/n of all items leaves each of n
 * ranks, the volume of recursive halving. In the end `at` is the result at an item's root; with
 * GCI_SPAN_CLUSTER the cluster's, at the member that leads it for that root. Tags are tag + item
 * number. */
void gci_reduce_items(struct gci_builder *b, const struct gci_coll *c, enum gci_span span,
	struct gci_item *items, int n, uint32_t tag);

/* The member that leads `cluster` for this root in the tree by clusters. */
static inline int gci_leader(const struct gci_topo *t, int cluster, int root)
{
	return gci_topo_members(t, cluster)[t->index[root] % gci_topo_size(t, cluster)];
}

/* The canonical tree evaluated in one place. The leaves are ranks, or clusters whose results are
 * made already. */
struct gci_fold {
	struct gci_builder *b;
	const struct gci_topo *t;
	enum { GCI_FOLD_RANKS, GCI_FOLD_BY_CLUSTERS, GCI_FOLD_CLUSTERS } leaves;
	int mine;                /* this rank's own leaf, */
	struct gci_slice own;    /* where it stands, */
	struct gci_slice result; /* and where the result goes; may be the same */
	/* Emits what brings the leaf to slot number `slot` of TMP, or to any other place that may
	 * be overwritten, and returns this. No more than O(log P) slots are in use at a time. */
	struct gci_slice (*bring)(struct gci_fold *f, int leaf, int slot);
	/* Or emits dst = src OP leaf (swapped: leaf OP src) at once; may be NULL. */
	void (*join)(struct gci_fold *f, int leaf, struct gci_slice dst, struct gci_slice src,
		int swapped);
	const void *ctx;
};

void gci_fold(struct gci_fold *f);

#endif
