/* SPDX-License-Identifier: MIT
 * A vector reduced in a fixed order (blocks/order.h), cut into one share per member of a group so
 * that all work at the same time; what allreduce and reduce of long messages begin with:
 *
 *	gci_share_cut(&x, b, c, group, where);
 *	gci_share_reduce(&x, span, ...);	// x.at: the member's share of the group's result
 *	gci_share_send(&x, ...);		// to other clusters, cut there in their own way
 *	gci_share_combine(&x, ...);		// with those of other clusters: in x.to
 */
#ifndef GCI_COLLECTIVES_BLOCKS_SHARES_H
#define GCI_COLLECTIVES_BLOCKS_SHARES_H

#include "collectives/blocks/reduction.h"

struct gci_share {
	struct gci_builder *b;
	const struct gci_coll *c;
	struct gci_group g;
	struct gci_parts p;  /* one per member */
	struct gci_slice at; /* where this member's part stands by now */
	struct gci_slice to; /* where its result belongs */
};

/* This rank must be a member of `g`. `out`: this member's part belongs at its place in OUT; else in
 * room that is made for it in TMP, followed by that for parts up to `end`. Returns where element 0
 * of the vector would stand there (below 0, perhaps: see gci_stage.base). */
uint64_t gci_share_cut(struct gci_share *x, struct gci_builder *b, const struct gci_coll *c,
	struct gci_group g, int out, int end);

/* Every member's part becomes that of the group. `last`: nothing is to be combined with it, and it
 * ends in x->to. Tags: `phase`, number of the part. */
void gci_share_reduce(struct gci_share *x, enum gci_span span, int last, uint32_t phase);

/* Which clusters get what this one made, and how they cut it: gci_group_cluster(.., first). */
struct gci_share_target {
	int only;  /* one cluster, or -1: all */
	int first; /* its first member, if it is only one */
};

/* Sends this cluster's result to other clusters, by as many members as may send to all of them;
 * others forward theirs to those. Takes two phases. */
void gci_share_send(struct gci_share *x, struct gci_share_target target, uint32_t phase);

/* The canonical combination of what clusters have sent, and the own one: in x->to. */
void gci_share_combine(struct gci_share *x, struct gci_share_target target, uint32_t phase);

#endif
