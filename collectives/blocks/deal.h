/* SPDX-License-Identifier: MIT
 * A vector's segments dealt to clusters, so that all links between clusters share the work and not
 * only those of one path. The cluster that a segment is dealt to is its owner:
 *
 *	bcast		the root's cluster sends the segment to its owner, which sends it to all
 *			others
 *	reduce		all clusters send theirs to the owner, which sends the sum to the root's
 *	allreduce	all clusters send theirs to the owner, which sends the sum to all
 *
 *	rc = gci_deal_init(&d, c);
 *	for (q = 0; q < nsegments; q++) {
 *		nth = gci_deal_count(&d, owner = gci_deal_next(&d)) - 1;
 *		...
 *	}
 *	gci_deal_free(&d);
 *
 * Each segment goes to the cluster by which the slowest link would be done first, counting what
 * was dealt before: equal links get equal numbers, in turns, others as many as their rates allow.
 * Of bcast and reduce the root's own cluster can be an owner: then it deals with all itself, which
 * is only worth it where links between the others are slow. So the first n of many segments are
 * dealt as n segments are. */
#ifndef GCI_COLLECTIVES_BLOCKS_DEAL_H
#define GCI_COLLECTIVES_BLOCKS_DEAL_H

#include "collectives/coll.h"

struct gci_dealt; /* to one cluster */

struct gci_deal {
	int n, home;          /* clusters; the root's, or -1 */
	uint64_t *pair_ns;    /* allreduce: [a * n + b], of a segment, the slower way; else NULL */
	struct gci_dealt *to; /* [cluster] */
	uint64_t slowest_ns;  /* of a segment, of all pairs */
	uint64_t busy_ns;     /* of the busiest link */
};

/* 0 or GCOLL_ERR_NOMEM. Cost: O(C^2). */
int gci_deal_init(struct gci_deal *d, const struct gci_coll *c);
void gci_deal_free(struct gci_deal *d);

/* Begins again, with an operation of the same kind on the same topology. */
void gci_deal_start(struct gci_deal *d, const struct gci_coll *c);

/* The owner of the next segment. Cost: O(C). */
int gci_deal_next(struct gci_deal *d);

/* Segments that were dealt to this cluster so far. */
uint64_t gci_deal_count(const struct gci_deal *d, int cluster);

/* How many ranks of this cluster take in what others send it as an owner: as many as links that
 * are busy all at once, or connections, ask for. */
int gci_deal_width(const struct gci_deal *d, int cluster);

/* Begins again, too: time of all links, by rates alone, for a vector of so many bytes. */
uint64_t gci_deal_ns(struct gci_deal *d, const struct gci_coll *c, uint64_t nbytes);

#endif
