/* SPDX-License-Identifier: MIT
 * MagPIe's formulas (Kielmann 2001, 3): when the last rank has all of an operation that is done in
 * k segments of m bytes,
 *
 *	T = (k - 1) gamma(m) + lambda(m)
 *
 * gamma being the time from one segment to the next, and lambda what one takes to all ranks.
 *
 *	struct gci_plogp p = gci_plogp(topo);
 *	struct gci_magpie m;
 *
 *	gci_magpie_init(&m, &p);
 *	ns = gci_magpie_bcast(&m, nbytes, 64, 0).ns;	// of 64 segments, down the best trees
 *	ns = gci_magpie_ns(&m, coll);			// of coll->segment, or the best one
 *
 * Pure. Upper bounds, as in the paper, in integer nanoseconds; k is at least 1. */
#ifndef GCI_COLLECTIVES_MODELS_MAGPIE_H
#define GCI_COLLECTIVES_MODELS_MAGPIE_H

#include "collectives/models/plogp.h"

/* d: most children that a node has; h: edges from the root to the farthest leaf. */
struct gci_magpie_tree {
	int degree, height;
};

#define GCI_MAGPIE_MOST_TREES 20 /* heights of trees of degree 2 or more, and the chain */

/* Of each height of a tree of n nodes the one of least degree: rising degrees. 3.1.1. */
struct gci_magpie_trees {
	struct gci_magpie_tree of[GCI_MAGPIE_MOST_TREES];
	int n, nnodes;
};

struct gci_magpie {
	struct gci_plogp p;
	struct gci_magpie_trees wan, lan; /* of the clusters, and of the largest one's members */
};

void gci_magpie_init(struct gci_magpie *m, const struct gci_plogp *p);

/* ---- bcast (3.1) */

struct gci_magpie_bcast {
	struct gci_magpie_tree wan, lan;
	uint64_t ns;
};

/* Coordinators pass segments on as they come, first to others and then in their cluster; down the
 * trees for which T is least, the WAN's being of this degree, 0: any. 3.1.2. */
struct gci_magpie_bcast gci_magpie_bcast(
	const struct gci_magpie *m, uint64_t nbytes, uint64_t k, uint32_t wan_degree);

/* T on one layer alone, down the best tree, which goes to *tree unless that is NULL. 3.1.1. */
uint64_t gci_magpie_layer_ns(const struct gci_magpie *m, enum gci_layer layer, uint64_t nbytes,
	uint64_t k, struct gci_magpie_tree *tree);

/* The WAN in k_wan segments, and after it the LANs in k_lan. 3.1.2. */
uint64_t gci_magpie_bcast_sequential_ns(
	const struct gci_magpie *m, uint64_t nbytes, uint64_t k_wan, uint64_t k_lan);

/* ---- operations on blocks of nbytes each */

/* The root sends to every rank itself, cluster after cluster in turns. 3.2. */
uint64_t gci_magpie_scatter_ns(const struct gci_plogp *p, uint64_t nbytes, uint64_t k);

/* Every rank sends to the root itself. 3.3; but that to receive a message takes the root no less
 * than its NIC needs, max(or, g_l), as 3.4 has it: where or alone is counted, many who send at a
 * time make for the errors of figure 10. */
uint64_t gci_magpie_gather_ns(const struct gci_plogp *p, uint64_t nbytes, uint64_t k);

/* Coordinators exchange what they have of nbytes each. 3.4. 0 in a single cluster. */
uint64_t gci_magpie_exchange_ns(const struct gci_plogp *p, uint64_t nbytes, uint64_t k);

/* A gather in each cluster, the exchange in k segments, and in each cluster bcasts of those
 * segments, down binomial trees as in the paper's LANs; one phase after the other. 3.4. */
uint64_t gci_magpie_allgather_ns(const struct gci_plogp *p, uint64_t nbytes, uint64_t k);

/* ---- whole operations */

/* c->segment, or the elements of the vector, or of an average block, in a segment for which T is
 * least, as far as the paper's search finds it and a schedule may have so many steps. */
uint64_t gci_magpie_segment(const struct gci_magpie *m, const struct gci_coll *c);

/* MagPIe's segmented way to do `c`: bcast, scatter, gather or allgather, in segments of
 * gci_magpie_segment(). Of blocks of different lengths the average one counts. UINT64_MAX for other
 * kinds. */
uint64_t gci_magpie_ns(const struct gci_magpie *m, const struct gci_coll *c);

/* Its original way, without segments: an isend of more than GCI_MAGPIE_WAITS_NBYTES waits until
 * the other end has the message, so that WAN links are used one after the other (2, 3.1). In
 * gathers it is the receiver who waits, for what is more than the transport's allowance. Bcast,
 * scatter and gather; UINT64_MAX for other kinds. */
uint64_t gci_magpie_original_ns(const struct gci_magpie *m, const struct gci_coll *c);

#define GCI_MAGPIE_WAITS_NBYTES (64u << 10)

/* ---- trees over the ranks of one layer, as Vadhiyar 2004 (4.3, table 3) compares them */

enum gci_magpie_shape {
	GCI_MAGPIE_FLAT,
	GCI_MAGPIE_CHAIN,
	GCI_MAGPIE_BINARY,
	GCI_MAGPIE_BINOMIAL,
	GCI_MAGPIE_NSHAPES
};

/* d and h of this tree of n nodes. */
struct gci_magpie_tree gci_magpie_tree_of(enum gci_magpie_shape shape, int n);

/* T of a bcast of nbytes to n ranks in segments of so many bytes; 0: in one. Exact for the flat
 * tree. Of the others all nodes count as if they had d children, and all leaves as if they were h
 * edges away: far too much for a binomial tree, whose far leaves are below nodes of few children.
 */
uint64_t gci_magpie_tree_ns(const struct gci_plogp *p, enum gci_layer layer,
	enum gci_magpie_shape shape, int n, uint64_t nbytes, uint64_t segment_nbytes);

/* The segment, in bytes, for which that is least, as far as MagPIe's search finds it; there are no
 * more than GCI_PLOGP_MOST_STEPS of them. */
uint64_t gci_magpie_tree_segment(const struct gci_plogp *p, enum gci_layer layer,
	enum gci_magpie_shape shape, int n, uint64_t nbytes);

#endif
