/* SPDX-License-Identifier: MIT
 * Rough costs by which the product's own algorithms choose between a long way that carries much and
 * a short one that is over soon. Integer nanoseconds from the grid alone, equal on every rank. */
#ifndef GCI_COLLECTIVES_MODELS_COST_H
#define GCI_COLLECTIVES_MODELS_COST_H

#include "base/clock.h"
#include "collectives/coll.h"

/* What a message costs besides its bytes. */
#define GCI_MESSAGE_COST_NS (30 * GCI_NS_PER_US)

/* Bytes of the vector by which an algorithm is chosen. */
static inline uint64_t gci_cost_nbytes(const struct gci_coll *c)
{
	return (c->like ? c->like : c->count) * c->esize;
}

/* nbytes in segments along a path through all ranks (collectives/blocks/path.h) from or to c->root.
 */
uint64_t gci_cost_path(const struct gci_coll *c, uint64_t nbytes);

/* nbytes whole down, or up, a tree: from the root to each cluster, binomial in each. */
uint64_t gci_cost_tree(const struct gci_coll *c, uint64_t nbytes);

/* Sets *yes if nbytes in segments over all links between at least three clusters
 * (collectives/blocks/spread.h) are faster than another way, which takes `other_ns` and yet has
 * each cluster get all over one link. 0 or GCOLL_ERR_NOMEM. */
int gci_cost_spread(const struct gci_coll *c, uint64_t nbytes, uint64_t other_ns, int *yes);

/* All ranks' blocks, nbytes in all, each by messages of its own between it and the root. */
uint64_t gci_cost_relay(const struct gci_coll *c, uint64_t nbytes);

/* The same brought together on the way, as binomial trees in clusters do. */
uint64_t gci_cost_binomial(const struct gci_coll *c, uint64_t nbytes);

/* All ranks' blocks, nbytes in all, round the clusters' rings (collectives/blocks/route.h). */
uint64_t gci_cost_rings(const struct gci_coll *c, uint64_t nbytes);

/* The same by way of each cluster's first rank: up and down a tree, and from each to each. */
uint64_t gci_cost_coordinators(const struct gci_coll *c, uint64_t nbytes);

#endif
