/* SPDX-License-Identifier: MIT
 * How fast each pair of ranks in different clusters needs to send, as the simulator has it: what a
 * sender that is alone may not exceed where many meet. Behind a long round trip nobody learns in time
 * that a receiver's port overflows, so senders keep to that from the first byte on.
 *
 * Pure, and in integers: all who ask the same find the same. */
#ifndef GCI_COLLECTIVES_TUNER_RATES_H
#define GCI_COLLECTIVES_TUNER_RATES_H

#include "collectives/sim/sim.h"

/* What rank `rank` may send to each: bps[nranks], on the wire, bits per second; 0: at will, since its own NIC
 * keeps it from sending too much. That is what comes through; or, where several send to one port or by one
 * link at the same time, the most of the operation that goes there within a round trip, or within a
 * quarter of the time that it goes on for, and a tenth more; its part by what there is to send, where that
 * is too much for the port or the link. A pair that works in several phases has the fastest of their rates.
 * Of an operation with more steps than `most_steps` a shorter one tells; what cannot be simulated is
 * taken as if each were alone.
 * 0 or GCOLL_ERR_NOMEM. */
int gci_rates(const struct gci_simnet *net, const struct gci_algorithm *a, const struct gci_coll *c,
	int rank, uint64_t most_steps, uint64_t *bps);

#endif
