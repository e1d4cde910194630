/* SPDX-License-Identifier: MIT
 * How operations of a communicator are decided, and the thread that makes packings which take longer than the
 * operation that asks first (gci_decide_without):
 *
 *	rc = gci_planning_decide(c, &coll, number, &d);
 *	...
 *	gci_planning_free(c);		// waits for the thread
 *
 * The first operation runs without the packing, and the next of its kind and size waits for what is left of the
 * making; it makes it itself if the thread was at another one. So all ranks agree without a word, however fast each
 * of them is. An alltoallv waits at once: its counts get to ranks while others' later operations begin. */
#ifndef GCI_COMM_PLANNING_H
#define GCI_COMM_PLANNING_H

#include "comm/comm.h"

/* How operation `number` of `c` runs `coll`, whose topology is the communicator's; NULL:
 * how those later than the first do. As gci_decide. */
int gci_planning_decide(
	gcoll_comm *c, const struct gci_coll *coll, const uint64_t *number, struct gci_decision *d);

void gci_planning_free(gcoll_comm *c);

#endif
