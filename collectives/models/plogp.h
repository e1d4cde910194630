/* SPDX-License-Identifier: MIT
 * The parameterized LogP model of a grid (Kielmann 2001, 2.1), from which MagPIe's formulas
 * (collectives/models/magpie.h) are made: two networks, the LANs and the WAN, in which all links
 * are like the slowest, as the paper's heuristics take them.
 *
 *	struct gci_plogp p = gci_plogp(topo);
 *	struct gci_plogp_times w = gci_plogp_at(&p, GCI_WAN, nbytes);
 *
 *	ns = 6 * w.send_ns + w.recv_ns;		// to seven others, until the last has it
 *
 * Integers: all ranks find the same. Sums and products that no number holds become UINT64_MAX. */
#ifndef GCI_COLLECTIVES_MODELS_PLOGP_H
#define GCI_COLLECTIVES_MODELS_PLOGP_H

#include "base/clock.h"
#include "collectives/coll.h"
#include "collectives/models/params.h"

/* What a message costs besides its bytes. */
#define GCI_MESSAGE_COST_NS (30 * GCI_NS_PER_US)

enum gci_layer { GCI_LAN, GCI_WAN };

struct gci_plogp {
	uint64_t nic_bps, wan_bps;               /* the slowest */
	uint64_t lan_delay_ns, wan_delay_ns;     /* L: the longest */
	int nclusters, most;                     /* P_w, and P_l: members of the largest cluster */
	const struct gci_params_link *lan, *wan; /* measured; NULL: from the rates. Not owned */
};

/* From the grid alone. */
struct gci_plogp gci_plogp(const struct gci_topo *t);

/* With the curves measured of the link whose gap is the longest for GCI_PLOGP_LONG_NBYTES, over the
 * WAN and within clusters of several ranks, and the longest latencies measured; where nothing was,
 * from the grid. `params`, of the grid that `t` was made from, must outlive the result; NULL:
 * gci_plogp(). */
struct gci_plogp gci_plogp_measured(const struct gci_topo *t, const struct gci_params *params);

#define GCI_PLOGP_LONG_NBYTES (1u << 20)

/* What a message of some size takes. */
struct gci_plogp_times {
	uint64_t latency_ns;   /* L */
	uint64_t gap_ns;       /* g: from one to the next on the same link */
	uint64_t os_ns, or_ns; /* what it keeps its sender, and its receiver, busy for */
	uint64_t send_ns;      /* s: until the sender can send the next one elsewhere */
	uint64_t recv_ns;      /* r = L + g: until the receiver has it */
};

/* Unless measured, a gap is the time of the bytes and GCI_MESSAGE_COST_NS, which is also os and or.
 * All 0 for the WAN of a single cluster. */
struct gci_plogp_times gci_plogp_at(
	const struct gci_plogp *p, enum gci_layer layer, uint64_t nbytes);

/* Completion time with k segments. */
typedef uint64_t gci_plogp_cost(const void *ctx, uint64_t k);

/* In how many segments, of at least one element and at most so many segments, `cost` is least, as
 * far as the paper's search finds it: halving, then climbing by steps of 1 and 5. 3.1.1. */
uint64_t gci_plogp_segments(uint64_t count, uint64_t most, gci_plogp_cost *cost, const void *ctx);

/* Steps that one rank's default schedule may have. */
#define GCI_PLOGP_MOST_STEPS 8192

static inline uint64_t gci_ns_plus(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static inline uint64_t gci_ns_times(uint64_t n, uint64_t ns)
{
	uint64_t product;

	return __builtin_mul_overflow(n, ns, &product) ? UINT64_MAX : product;
}

#endif
