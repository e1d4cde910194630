/* SPDX-License-Identifier: MIT
 * How long a call may wait.
 *
 * Only time that was spent waiting in this rank's calls counts, and only while no byte comes or
 * goes; so neither a rank that computes nor an operation that is slow but moves runs into it.
 *
 * A plain time-out ends whatever has waited for so long, be the other rank stuck or late: nobody
 * here can tell. Automatic deadlines spare the late ones. They look at messages that were taken up
 * alone: the receiver gave its credit, or the sender has begun. Nothing but the network and the two
 * ranks' progress stands between such a message and its end, whatever ranks have not come yet. How
 * long it may stand still follows from the prediction of its operation, of as much of that as is
 * under way at once. */
#ifndef GCI_COMM_DEADLINE_H
#define GCI_COMM_DEADLINE_H

#include "comm/engine.h"

#define GCI_DEADLINE_FLOOR_NS (10 * GCI_NS_PER_S) /* of "auto" */
#define GCI_DEADLINE_SLACK    8 /* predictions err by a few percent; cross traffic does not */

/* The shortest wait that can be too long. */
static inline uint64_t gci_deadline_least(const struct gci_engine *e)
{
	return e->settings.floor_ns ? e->settings.floor_ns : e->settings.op_timeout_ns;
}

/* How long from now it may be waited without looking at deadlines: never 0. */
uint64_t gci_deadline_left(const struct gci_engine *e);

/* After each progress, which began at `since_ns` (0: it is not counted): counts, and fails the
 * engine in the end. */
void gci_deadline_count(struct gci_engine *e, uint64_t since_ns);

#endif
