/* SPDX-License-Identifier: MIT
 * How every rank's block gets to all ranks with each WAN link crossed once and each NIC used once
 * for each byte: the product's allgather. Walked backwards, with sums on the way, it is its
 * reduce-scatter.
 *
 * A block is passed round the ring of its own cluster. One member, its gateway, also hands it to
 * each other cluster, where it enters the ring at some member and goes round to the one before:
 *
 *	k1 -> k2 -> k3 -> k4			block of k1; k4 is its gateway,
 *	                  k4 => t1 -> t2 -> t3 -> t4	t1 is where it enters
 *
 * Where a block enters a cluster, all but the member before are about to pass it on, so that member
 * is free to be the gateway for the cluster's own blocks: all NICs carry the same.
 *
 * Where one pair of hosts gets less than a NIC puts out (flow_rate), or when asked for, the blocks
 * of a cluster are dealt to several gateways, and their segments to several entries. */
#ifndef GCI_COLLECTIVES_BLOCKS_ROUTE_H
#define GCI_COLLECTIVES_BLOCKS_ROUTE_H

#include "collectives/blocks/blocks.h"

/* The way of a cluster's blocks to another cluster, or, walked backwards, of the other's sums to
 * them. */
struct gci_route {
	const struct gci_topo *topo;
	int from, to; /* as walked forwards */
	int gateways, entries;
};

struct gci_route gci_route(const struct gci_coll *c, int from, int to);

/* The rank of cluster `from` that hands over (or takes in) segment q of the block of its member
 * `index`. */
int gci_route_gateway(const struct gci_route *r, int index, uint64_t q);

/* The place in cluster `to` where that segment enters (or leaves). */
int gci_route_entry(const struct gci_route *r, int index, uint64_t q);

/* What its gateways and entries together carry. */
uint64_t gci_route_bps(const struct gci_route *r);

/* Elements that one pair of ranks has under way in a round trip from cluster `from` to `to`. */
uint64_t gci_wan_in_flight(const struct gci_coll *c, int from, int to);

/* Segments of a block. */
struct gci_route_segments {
	uint64_t segment; /* elements */
	uint32_t most;    /* of any block */
};

/* The same, of so many elements each. */
struct gci_route_segments gci_route_segments_of(const struct gci_coll *c, uint64_t segment);

/* Segment q of a block that stands in `block`. */
static inline struct gci_slice gci_route_slice(
	const struct gci_route_segments *s, struct gci_slice block, uint64_t q)
{
	uint64_t at = q * s->segment, left = block.length - at;

	return gci_slice(block.buffer, block.offset + at, left < s->segment ? left : s->segment);
}

static inline uint64_t gci_route_count(const struct gci_route_segments *s, uint64_t length)
{
	return length ? (length - 1) / s->segment + 1 : 0;
}

/* Turns at this rank's NIC: what is received in one turn is asked for when the turn before is over
 * but for `ahead` elements, which are on their way by then. */
struct gci_turns {
	struct gci_builder *b;
	uint64_t ahead;
	uint64_t left; /* elements of this turn */
	uint32_t gate, next;
	int has_gate, has_next;
};

/* Begins a turn of so many elements. */
void gci_turn(struct gci_turns *t, uint64_t elements);

/* `step` has just been emitted and receives so many of them; `wait`: in its turn. */
void gci_turn_step(struct gci_turns *t, uint32_t step, uint64_t elements, int wait);

#endif
