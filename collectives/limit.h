/* SPDX-License-Identifier: MIT
 * What the physics allows: a lower bound for any algorithm on a topology. */
#ifndef GCI_COLLECTIVES_LIMIT_H
#define GCI_COLLECTIVES_LIMIT_H

#include "collectives/coll.h"

/* Nanoseconds that operation `c` (its parameters do not matter) takes at least: the largest of
 * what the busiest NIC and the busiest link must move at their payload rates (rate x 1448/1514:
 * TCP over Ethernet with 1500-byte packets), plus the one-way delay where no order of work hides
 * it. 0 when the topology does not tell the rates. */
uint64_t gci_limit_ns(const struct gci_coll *c);

#endif
