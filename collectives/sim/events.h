/* SPDX-License-Identifier: MIT
 * The simulator's calendar: events by time, and those of one time in the order they were made. */
#ifndef GCI_COLLECTIVES_SIM_EVENTS_H
#define GCI_COLLECTIVES_SIM_EVENTS_H

#include <stddef.h>
#include <stdint.h>

enum gci_event_kind {
	GCI_EV_START,   /* rank calls the operation */
	GCI_EV_DUE,     /* a SEND may go */
	GCI_EV_POST,    /* a SEND's overhead is over: the message is offered */
	GCI_EV_CREDIT,  /* the sender learns that the receiver waits for a message */
	GCI_EV_NIC,     /* rank's NIC can send again */
	GCI_EV_WIRE,    /* the first byte of a piece is at a wire on its way */
	GCI_EV_ARRIVE,  /* the same, at the receiver's NIC */
	GCI_EV_ARRIVED, /* all of a message is with the receiver */
	GCI_EV_DONE     /* a step is over */
};

struct gci_ev {
	uint64_t ns, seq;
	uint64_t last_ns; /* WIRE, ARRIVE: of the piece's last byte, if nothing else comes in */
	uint32_t nbytes;  /* WIRE, ARRIVE */
	int leg;          /* WIRE: which of its way */
	int rank;         /* whose; of a message, the receiver's */
	uint32_t window, step; /* DONE: of the step; of a message, its number */
	enum gci_event_kind kind;
};

struct gci_events {
	struct gci_ev *heap;
	size_t n, cap;
	/* Those of this very moment, in order: later than what the heap has of it. */
	struct gci_ev *soon;
	size_t soon_at, nsoon, soon_cap;
	uint64_t now;
	uint64_t seq;
	int failed; /* out of memory at some time */
};

void gci_events_push(struct gci_events *q, struct gci_ev e);

/* The one that is likely to be next; NULL: none. */
static inline const struct gci_ev *gci_events_next(const struct gci_events *q)
{
	return q->soon_at < q->nsoon ? &q->soon[q->soon_at] : q->n ? &q->heap[0] : NULL;
}

#endif
