/* SPDX-License-Identifier: MIT
 * A vector's segments on their way between many clusters, by all links (collectives/blocks/deal.h):
 * what bcast, reduce and allreduce by all links are made of.
 *
 *	struct gci_spread x;
 *	struct gci_spread_segment s;
 *
 *	gci_spread_start(&x, b, c);
 *	while (gci_spread_next(&x, &s))
 *		gci_spread_from_root(&x, &s, GCI_OUT);
 *	gci_spread_end(&x);
 *
 * In a cluster a segment goes round the ring of its members, from where it enters to the one
 * before. Which members speak with which cluster is route.h's: no more than its cap. In the
 * root's cluster the ring begins such that a segment's gateway is the last of it, who passes it
 * on to nobody else, so that no NIC there carries it twice. Sums are made up the canonical tree
 * (order.h) of each cluster, and of the clusters at their owner: the order of operands is fixed. */
#ifndef GCI_COLLECTIVES_BLOCKS_SPREAD_H
#define GCI_COLLECTIVES_BLOCKS_SPREAD_H

#include "collectives/blocks/deal.h"
#include "collectives/blocks/reduction.h"
#include "collectives/blocks/route.h"

struct gci_spread_flows;

struct gci_spread {
	struct gci_builder *b;
	const struct gci_coll *c;
	int home, mine, index; /* the root's cluster or -1; this rank's, and its place there */
	uint64_t segment, nsegments, next;
	struct gci_deal deal;
	struct gci_route *to, *from;    /* [cluster]: from this rank's cluster, to it */
	struct gci_spread_flows *flows; /* [cluster] */
};

/* Segment q of the vector. */
struct gci_spread_segment {
	uint32_t q;
	int owner;    /* cluster */
	uint64_t nth; /* of its segments */
	uint64_t at, length;
};

/* Elements of a segment where c->segment says nothing. */
uint64_t gci_spread_size(const struct gci_coll *c);

void gci_spread_start(struct gci_spread *x, struct gci_builder *b, const struct gci_coll *c);
void gci_spread_end(struct gci_spread *x);

/* One after the other; 0 when there are no more, or memory is out (b->failed). */
int gci_spread_next(struct gci_spread *x, struct gci_spread_segment *s);

/* In bcast: from the root, who has it in `buffer`, to all. */
void gci_spread_from_root(
	struct gci_spread *x, const struct gci_spread_segment *s, enum gci_buffer buffer);

/* Every rank has an operand in `in`. They are combined; afterwards the rank that this returns, of
 * the owner's cluster, has the result in *result: in `out`, or with GCI_NBUFFERS in TMP. */
int gci_spread_combine(struct gci_spread *x, const struct gci_spread_segment *s, enum gci_buffer in,
	enum gci_buffer out, struct gci_slice *result);

/* From that rank to all, in OUT. */
void gci_spread_to_all(struct gci_spread *x, const struct gci_spread_segment *s, int rank);

/* From that rank, who has it in `result`, to the root's OUT. */
void gci_spread_to_root(struct gci_spread *x, const struct gci_spread_segment *s, int rank,
	struct gci_slice result);

#endif
