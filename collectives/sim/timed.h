/* SPDX-License-Identifier: MIT
 * Whether the SENDs of a packing go as soon as they can, or when they are due. All at once meet at their
 * receivers' ports, overrun their queues, and what comes from far then waits for what comes from near: each
 * SEND at its time in the plan keeps to what the ports take. Only where senders have to idle for it that could go on, simulations say no. */
#ifndef GCI_COLLECTIVES_SIM_TIMED_H
#define GCI_COLLECTIVES_SIM_TIMED_H

#include "collectives/planner/packed.h"
#include "collectives/sim/sim.h"

/* As gci_packed_make, with `timed` unless that is clearly more. `a` has GCI_PACKS. Each simulation takes most_steps
 * at most (0: no limit); what takes more is not timed. */
int gci_timed_make(struct gci_packed **out, const struct gci_simnet *net,
	const struct gci_algorithm *a, const struct gci_coll *c, uint64_t nbytes,
	uint64_t most_steps);

#endif
