/* SPDX-License-Identifier: MIT
 * When to look who has come to a listening socket: at once, unless many of those who came lately
 * were not of the job. Then every GCI_TURN_NS at most, since to look costs more than to turn one
 * away, and all who came meanwhile share that. The kernel keeps them until then, and nobody who is
 * of the job waits for longer. Pure.
 *
 *	wait_ns = gci_turns_wait(&turns, now_ns);	// 0: accept; else ask again then
 *	...
 *	gci_turns_refused(&turns, now_ns);		// somebody was turned away, or has gone
 *
 * All zero is ready for use. */
#ifndef GCI_TRANSPORT_TURNS_H
#define GCI_TRANSPORT_TURNS_H

#include "base/clock.h"

#define GCI_TURN_NS        (20 * GCI_NS_PER_MS)
#define GCI_TURN_LASTS_NS  GCI_NS_PER_MS        /* in which all who come are let in */
#define GCI_TURNS_APART_NS (20 * GCI_NS_PER_MS) /* so many refusals are nothing: 50 a second */
#define GCI_TURNS_FEW      16                   /* or so many at once */

struct gci_turns {
	uint64_t began_ns;   /* the last turn */
	uint64_t crowded_ns; /* when as few have come as should, if nobody comes from now on */
};

void gci_turns_refused(struct gci_turns *t, uint64_t now_ns);

uint64_t gci_turns_wait(struct gci_turns *t, uint64_t now_ns);

#endif
