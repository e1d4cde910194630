/* SPDX-License-Identifier: MIT
 * Rough times of all algorithms by closed formulas, to tell which are worth simulating. Far cheaper
 * than a simulation, as no schedule is made: O(1), or O(P) for trees over all ranks.
 *
 *	struct gci_estimator e;
 *
 *	rc = gci_estimator_init(&e, &net, &coll);
 *	if (!rc)
 *		ns = gci_estimate(&e, &how);
 *	gci_estimator_free(&e);
 *
 * In integers: all ranks find the same. */
#ifndef GCI_COLLECTIVES_TUNER_ESTIMATE_H
#define GCI_COLLECTIVES_TUNER_ESTIMATE_H

#include "collectives/tuner/candidate.h"

/* A network in a few figures: the slowest of everything; with a root, of the links to its cluster
 * and from it. */
struct gci_estimator {
	const struct gci_simnet *net;
	const struct gci_coll *c;
	uint64_t nbytes;     /* of the vector, or of all blocks (alltoall: of one rank's) */
	uint64_t nic_bps;    /* a host's */
	uint64_t wan_bps;    /* all that gets from one cluster to another; GCI_NEVER: no limit */
	uint64_t pair_bps;   /* of that, what one pair of ranks gets */
	uint64_t lan_ns;     /* from rank to rank in a cluster, with what a message costs */
	uint64_t wan_ns;     /* from cluster to cluster */
	uint64_t message_ns; /* what a message costs its sender or its receiver, if that is more */
	unsigned nranks, nclusters, most;  /* `most`: ranks in a cluster */
	unsigned deep, deep_in;            /* rounds of halving over all ranks; over a cluster's */
	unsigned across;                   /* of those over all, how many cross clusters */
	unsigned senders;                  /* of a pair of clusters, as the grid has it */
	struct gci_estimate_place *places; /* scratch: [rank] */
	uint64_t *crossing;                /* [from * nclusters + to] */
};

/* `net` and `c` (without parameters) must outlive it. 0 or GCOLL_ERR_NOMEM. */
int gci_estimator_init(
	struct gci_estimator *e, const struct gci_simnet *net, const struct gci_coll *c);
void gci_estimator_free(struct gci_estimator *e);

/* By the formula that its row in the kind's table names. One without is taken for as fast as a NIC,
 * so that a simulation tells. */
uint64_t gci_estimate(const struct gci_estimator *e, const struct gci_candidate *how);

#endif
