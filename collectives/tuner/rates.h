/* SPDX-License-Identifier: MIT
 * How fast each rank needs to send to each other, as the simulator has it. Behind a long round trip nobody
 * learns in time that a link's queue or a receiver's port overflows, so ranks send to other clusters no faster
 * than the operation needs, from the first byte on. Inside a cluster TCP learns soon, but by filling the port
 * until it overflows; so where a port takes such rates at the same time, near senders have little under way.
 *
 * Pure, and in integers: all who ask the same find the same. */
#ifndef GCI_COLLECTIVES_TUNER_RATES_H
#define GCI_COLLECTIVES_TUNER_RATES_H

#include "collectives/sim/sim.h"

struct gci_rates {
	uint64_t *bps;           /* [rank]: on the wire, bits per second, at most; 0: at will */
	uint64_t *window_nbytes; /* [rank]: under way, at most; 0: any */
};

/* How rank `rank` may send, into both arrays of `out`. To another cluster: what a pair sends, over the time for
 * which it does, and as much more as keeps the simulated operation from taking noticeably longer, but no more than
 * its part of the port and of the wires, by what all send there while it does. At
 * will where it meets nobody or needs nearly all of its path; where its own NIC does not keep it to its path's
 * rate, at that. A pair that works in several phases has the fastest of their rates.
 * Of an operation with more steps than `most_steps` a shorter one tells; what cannot be simulated is
 * taken as if each were alone. O(pairs x pairs of one link or port).
 * 0 or GCOLL_ERR_NOMEM. */
int gci_rates(const struct gci_simnet *net, const struct gci_algorithm *a, const struct gci_coll *c,
	int rank, uint64_t most_steps, const struct gci_rates *out);

/* Where each SEND has its time: windows alone, into zeros, as all of a cluster may send to one another at once. */
void gci_rates_near(const struct gci_topo *t, int rank, const struct gci_rates *out);

/* Where pairs go at even rates (gci_packed_is_even): those, with the windows of gci_rates_near, into zeros. 0 or
 * GCOLL_ERR_NOMEM. */
int gci_rates_even(const struct gci_coll *c, int rank, const struct gci_rates *out);

/* *paced_ns: what the operation takes at the rates that all ranks have, *ns at will; of one with more steps than
 * `most_steps` (0: no limit) both are of a shorter one. 0, GCOLL_ERR_INVAL or GCOLL_ERR_NOMEM. */
int gci_rates_ns(const struct gci_simnet *net, const struct gci_algorithm *a,
	const struct gci_coll *c, uint64_t most_steps, uint64_t *paced_ns, uint64_t *ns);

#endif
