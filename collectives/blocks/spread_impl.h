/* SPDX-License-Identifier: MIT
 * What segments' ways from a root (spread.c) and sums' ways (spread_sums.c) have in common. */
#ifndef GCI_COLLECTIVES_BLOCKS_SPREAD_IMPL_H
#define GCI_COLLECTIVES_BLOCKS_SPREAD_IMPL_H

#include "collectives/blocks/inflow.h"
#include "collectives/blocks/spread.h"

/* Round a cluster, from an owner's cluster to another, up a cluster's tree, to where operands meet,
 * and from there to the root's cluster. */
enum { GCI_SPREAD_DOWN, GCI_SPREAD_OVER, GCI_SPREAD_UP, GCI_SPREAD_ACROSS, GCI_SPREAD_BACK };

/* Between this rank's cluster and another. */
struct gci_spread_flows {
	struct gci_inflow out; /* bcast: from the root's cluster */
	struct gci_inflow in;
};

struct gci_slice gci_spread_slice(const struct gci_spread_segment *s, enum gci_buffer buffer);

/* Who sends by this route in this turn, and who receives. */
int gci_spread_sender(const struct gci_route *r, uint64_t turn);
int gci_spread_receiver(const struct gci_route *r, uint64_t turn);

/* To or from a rank of another cluster, in turns (inflow.h): in bcast the root's cluster is asked
 * for what it has from the beginning; of sums, operands wait for what comes from where they go. */
void gci_spread_send_far(const struct gci_spread *x, const struct gci_spread_segment *s,
	uint32_t phase, int peer, struct gci_slice at);
void gci_spread_recv_far(const struct gci_spread *x, const struct gci_spread_segment *s,
	uint32_t phase, int peer, struct gci_slice at);

/* A segment's way through this rank's cluster: `first`, then the others in the order of members
 * from `second` on. */
struct gci_spread_ring {
	const int *members;
	int n, first, second; /* members; places */
	int at;               /* which this rank is, of n */
};

struct gci_spread_ring gci_spread_round(const struct gci_spread *x, int first, int second);

/* The way begins at `first`, who has it, or gets it from rank `from` if that is not -1. */
void gci_spread_take(const struct gci_spread *x, const struct gci_spread_segment *s,
	const struct gci_spread_ring *r, int from, struct gci_slice at);
void gci_spread_pass_on(const struct gci_spread *x, const struct gci_spread_segment *s,
	const struct gci_spread_ring *r, struct gci_slice at);

/* From the owner's cluster to all others that have not got it: each begins with the next one. */
void gci_spread_hand_to_all(const struct gci_spread *x, const struct gci_spread_segment *s, int has,
	struct gci_slice at);

#endif
