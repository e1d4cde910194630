/* SPDX-License-Identifier: MIT
 * What the formulas share. */
#ifndef GCI_COLLECTIVES_TUNER_ESTIMATE_IMPL_H
#define GCI_COLLECTIVES_TUNER_ESTIMATE_IMPL_H

#include "base/clock.h"
#include "collectives/grid/topo.h"
#include "collectives/tuner/estimate.h"

enum gci_estimate_tree {
	GCI_ESTIMATE_FLAT, /* over all ranks, from the root on in the order of ranks */
	GCI_ESTIMATE_CHAIN,
	GCI_ESTIMATE_BINARY,
	GCI_ESTIMATE_BINOMIAL,
	GCI_ESTIMATE_CLUSTERS /* the root to each far cluster, and binomial trees in all */
};

/* A place in a tree; parents come before their children. */
struct gci_estimate_place {
	int rank, parent;
	int first;         /* where its cluster begins */
	uint64_t weight;   /* blocks for it and all below; 1 of a vector */
	uint64_t busy_ns;  /* what its messages of one segment cost it */
	uint64_t nic_ns;   /* and its NIC, meanwhile */
	uint64_t sent_ns;  /* when it has handed on the first */
	uint64_t pair_ns;  /* what the connection to it from its parent needs for a segment */
	uint64_t after_ns; /* after its parent it has a segment */
	uint64_t least_ns; /* at which it has it at the earliest: a long one waits for credit */
	uint64_t at_ns;    /* when it has the first */
};

struct gci_estimate_walk {
	enum gci_estimate_tree tree;
	uint64_t nbytes;   /* of the vector, or of all ranks' blocks if `blocks` */
	uint64_t segments; /* at least 1 */
	int blocks;
};

/* Down from c->root, or up to it: the first segment's way to the farthest rank, and what the
 * busiest NIC, connection or link has to move after it. */
uint64_t gci_estimate_tree_ns(const struct gci_estimator *e, const struct gci_estimate_walk *w);

/* Of a rate that may be unknown or without limit: 0. */
static inline uint64_t gci_estimate_transfer_ns(uint64_t nbytes, uint64_t bps)
{
	return bps && bps != GCI_NEVER ? gci_transfer_ns(nbytes, bps) : 0;
}

#endif
