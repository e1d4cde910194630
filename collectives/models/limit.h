/* SPDX-License-Identifier: MIT
 * What the physics allows: a lower bound for any algorithm on a topology. */
#ifndef GCI_COLLECTIVES_MODELS_LIMIT_H
#define GCI_COLLECTIVES_MODELS_LIMIT_H

#include "collectives/coll.h"

/* Nanoseconds that operation `c` (its algorithm's parameters do not matter) takes at least: the
 * largest of what any NIC, and all links into or out of any cluster, must move at their payload
 * rates (rate x 1448/1514: TCP over Ethernet with 1500-byte packets), together with the one-way
 * delay where no order of work hides it. `streams`: connections per pair of ranks, which count
 * where a link limits each (flow_rate); 0: as the grid says, or the default. 0 when the topology
 * does not tell the rates, and when nothing has to be moved. Cost: O(P), with counts O(P^2). */
uint64_t gci_limit_ns(const struct gci_coll *c, uint32_t streams);

#endif
