/* SPDX-License-Identifier: MIT
 * The parameterized LogP model of a grid, from which MagPIe's algorithms take their segments and
 * trees (Kielmann 2001, 2.1 and 3): the gap g(m) between two messages of m bytes in a row, the time
 * s(m) that a message keeps its sender, and the latency L; for the WAN and for the LANs. The
 * paper's heuristics take all links to be like the slowest. Integers: all ranks find the same. */
#ifndef GCI_COLLECTIVES_MODELS_PLOGP_H
#define GCI_COLLECTIVES_MODELS_PLOGP_H

#include "collectives/coll.h"
#include "collectives/models/cost.h"

struct gci_plogp {
	uint64_t nic_bps, wan_bps;           /* the slowest */
	uint64_t lan_delay_ns, wan_delay_ns; /* L: the longest */
	int nclusters, most;                 /* P_w, and P_l: members of the largest cluster */
};

struct gci_plogp gci_plogp(const struct gci_topo *t);

/* g of a LAN, which is also s: over the WAN, too, a sender has to wait for its own NIC only. */
uint64_t gci_plogp_lan_gap(const struct gci_plogp *p, uint64_t nbytes);

/* g of the WAN; 0 where there is none. */
uint64_t gci_plogp_wan_gap(const struct gci_plogp *p, uint64_t nbytes);

/* Completion time with k segments. */
typedef uint64_t gci_plogp_cost(const void *ctx, uint64_t k);

/* In how many segments, of at least one element and at most so many segments, `cost` is least, as
 * far as the paper's search finds it: halving, then climbing by steps of 1 and 5. 3.1.1. */
uint64_t gci_plogp_segments(uint64_t count, uint64_t most, gci_plogp_cost *cost, const void *ctx);

/* Steps that one rank's default schedule may have. */
#define GCI_PLOGP_MOST_STEPS 8192

#endif
