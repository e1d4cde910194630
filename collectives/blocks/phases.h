/* SPDX-License-Identifier: MIT
 * Phases over groups of ranks that algorithms on blocks are composed of: binomial scatter, gather
 * and bcast, exchanges between holders of units, and blocks bundled into one message. Like those of
 * blocks.h they emit the steps of the builder's rank, and none for ranks outside the group. */
#ifndef GCI_COLLECTIVES_BLOCKS_PHASES_H
#define GCI_COLLECTIVES_BLOCKS_PHASES_H

#include "collectives/blocks/blocks.h"

/* All ranks, cluster by cluster: cluster k is members [topo->first[k], topo->first[k + 1]). */
struct gci_group gci_group_by_clusters(const struct gci_coll *c, int rank);

/* Binomial bcast of a slice from member 0; every member names its own slice of that length. */
void gci_bcast(
	struct gci_builder *b, const struct gci_group *g, struct gci_slice data, uint32_t tag);

/* The same for all blocks of an allgather, which stand in member 0's OUT: in one message where the
 * layout allows it. Takes the tags of one phase. */
void gci_bcast_all(
	struct gci_builder *b, const struct gci_coll *c, const struct gci_group *g, uint32_t phase);

/* Binomial scatter by recursive halving: member 0 has the blocks of all on `from`, every member
 * gets its own on `to`. `from` does not matter elsewhere; `to` may be NULL for member 0. */
void gci_scatter_blocks(struct gci_builder *b, const struct gci_coll *c, const struct gci_group *g,
	const struct gci_shelf *from, const struct gci_shelf *to, uint32_t phase);

/* The reverse: every member has its block on `from`, member 0 gets all on `to`. What others collect
 * for it they keep on their `to`, or in TMP where that is NULL. */
void gci_gather_blocks(struct gci_builder *b, const struct gci_coll *c, const struct gci_group *g,
	const struct gci_shelf *from, const struct gci_shelf *to, uint32_t phase);

/* Blocks of a group in units, each held by its first member: unit i is the blocks of members
 * [first[i], first[i + 1]). */
struct gci_units {
	const struct gci_group *g;
	const int *first; /* n + 1 of them; NULL: unit i is member i */
	int n;
	int me; /* the unit that the builder's rank holds, or -1 */
};

static inline struct gci_units gci_units_members(const struct gci_group *g)
{
	return (struct gci_units){g, NULL, g->n, g->me};
}

/* Clusters, each held by its first rank; `g` is gci_group_by_clusters(). */
struct gci_units gci_units_clusters(const struct gci_coll *c, const struct gci_group *g, int rank);

static inline int gci_unit_first(const struct gci_units *u, int i)
{
	return u->first ? u->first[i] : i;
}

/* Every holder has its unit on `shelf`; afterwards all have all units there. By recursive doubling
 * over halves, for any n: ceil(log2 n) rounds, and one more message in each for the partner of an
 * odd unit's holder. */
void gci_allgather_units(struct gci_builder *b, const struct gci_coll *c, const struct gci_units *u,
	const struct gci_shelf *shelf, uint32_t phase);

/* Slices brought together for one message, in the order in which they are added. Where they stand
 * one after the other anyway, nothing is copied. */
struct gci_bundle {
	struct gci_builder *b;
	struct gci_slice run;  /* not copied yet */
	uint64_t length;       /* of all, told at the start */
	uint64_t base, copied; /* in TMP, once there is more than one run */
	int in_tmp;
};

void gci_bundle_start(struct gci_bundle *u, struct gci_builder *b, uint64_t length);

/* The same, put together at `base` of TMP, which is set apart already. */
void gci_bundle_at(struct gci_bundle *u, struct gci_builder *b, uint64_t base, uint64_t length);

void gci_bundle_add(struct gci_bundle *u, struct gci_slice s);

/* Where all of it stands now. */
struct gci_slice gci_bundle_end(struct gci_bundle *u);

#endif
