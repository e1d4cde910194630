/* SPDX-License-Identifier: MIT
 * Turns of what goes over a link that is slower than its senders' NICs: no more is under way than
 * keeps the link busy. The rest would stand in the link's buffer. What that cannot hold is lost,
 * and acknowledgements and credits of what goes the other way would wait behind it, for longer
 * than TCP's time-out.
 *
 * Where data goes one way, the receiver asks in turns:
 *
 *	gci_inflow_init(&f, &route, receivers, nmessages, segment_nbytes);
 *	receiver:	gci_recv(...);
 *			gci_inflow_ask(&f, b);
 *	sender:		gci_send(...);
 *			if (gci_inflow_waits(&f, nth))
 *				gci_patient(b);
 *	gci_inflow_free(&f);
 *
 * Where it goes both ways, credits would come in bursts, each behind the other way's data, and
 * leave the link idle between them. There each message that comes lets one go:
 *
 *			gci_recv(...);
 *			gci_inflow_note(&f, b);
 *			gci_send(...);		// the other way
 *			gci_inflow_answer(&f, b); */
#ifndef GCI_COLLECTIVES_BLOCKS_INFLOW_H
#define GCI_COLLECTIVES_BLOCKS_INFLOW_H

#include "collectives/blocks/route.h"

struct gci_inflow {
	uint64_t most;    /* messages under way over the link */
	uint32_t share;   /* of one receiver; 0: no turns */
	uint32_t *latest; /* [share]: this rank's latest RECVs, a ring */
	uint64_t n;       /* RECVs so far */
};

/* At most `nmessages` by a route, dealt to so many of its receivers. There are no turns where its
 * senders cannot fill the link. Allocates nothing yet. */
void gci_inflow_init(struct gci_inflow *f, const struct gci_route *r, int receivers,
	uint64_t nmessages, uint64_t segment_nbytes);
void gci_inflow_free(struct gci_inflow *f);

/* The latest step is a RECV of the route. Without memory, b->failed. */
void gci_inflow_note(struct gci_inflow *f, struct gci_builder *b);

/* The same, and it is asked for in its turn. */
void gci_inflow_ask(struct gci_inflow *f, struct gci_builder *b);

/* True if the sender of the route's nth message (from 0) has to wait for that. */
int gci_inflow_waits(const struct gci_inflow *f, uint64_t nth);

/* The latest step is a SEND the other way. It waits until what comes next of the route is as many
 * messages behind as may be under way; at a rank that has not noted so many, for nothing. */
void gci_inflow_answer(const struct gci_inflow *f, struct gci_builder *b);

#endif
