/* SPDX-License-Identifier: MIT
 * The verifier: proves, symbolically and over all ranks, that a set of schedules does what its
 * operation promises, for any data, any timing, and a network that buffers nothing.
 *
 *	const struct gci_sched *scheds[P] = {...};		// one per rank
 *	rc = gci_verify(scheds, &coll, 0, &report, &e);
 *	if (rc)
 *		puts(e.text);	// "rank 3 step 7 RECV: ..."
 *
 * Rejected, each with its own kind of fault:
 *  - slices out of bounds, writes to IN, dependencies that are not earlier steps, edges that differ
 *    backwards and forwards;
 *  - messages to oneself or to no rank, two with one (source, destination, tag), unmatched ones,
 *    lengths that differ between the two sides;
 *  - two accesses to one element of which one writes, without an order between them; a step whose
 *    source and destination overlap in part;
 *  - deadlock when a SEND ends only with its RECV (rendezvous);
 *  - reads of undefined data;
 *  - operands at different offsets, a contribution counted twice;
 *  - a result that is undefined, incomplete or wrong, or stands next to where it should; results
 *    whose order of operands, and so whose bits, differ between ranks, or from the order that was
 *    asked for; a barrier that some rank can leave too early;
 *  - more distinct senders between two clusters than allowed. */
#ifndef GCI_TESTING_VERIFY_H
#define GCI_TESTING_VERIFY_H

#include "collectives/coll.h"

enum gci_fault {
	GCI_FAULT_NONE,
	GCI_FAULT_SHAPE,     /* malformed step, bounds, write to IN */
	GCI_FAULT_DUPLICATE, /* (source, destination, tag) twice */
	GCI_FAULT_UNMATCHED,
	GCI_FAULT_LENGTH,
	GCI_FAULT_RACE,
	GCI_FAULT_DEADLOCK,
	GCI_FAULT_UNDEFINED,
	GCI_FAULT_OFFSET,  /* reduces elements of different positions */
	GCI_FAULT_TWICE,   /* a contribution counted twice */
	GCI_FAULT_RESULT,  /* undefined, missing or wrong result */
	GCI_FAULT_BITS,    /* order of reduction differs between ranks */
	GCI_FAULT_BARRIER, /* a rank can leave before another has come */
	GCI_FAULT_SENDERS,
	GCI_FAULT_LIMIT, /* too large to prove, or out of memory */
};

struct gci_verify_report {
	enum gci_fault fault;
	uint64_t nsteps, nmessages;
	uint64_t wan_elements;      /* that crossed between clusters, all pairs */
	uint64_t most_out, most_in; /* elements the busiest rank sends, receives */
};

/* Most steps of one rank that can be proved: the order of steps is kept as a bit matrix. */
#define GCI_VERIFY_MAX_STEPS 32768

/* scheds[r] is rank r's. `check_senders`: at most gci_coll_senders() distinct ranks may send
 * between each ordered pair of clusters. Returns 0, GCOLL_ERR_VERIFY or GCOLL_ERR_NOMEM; the
 * report (may be NULL) is filled as far as it was found. */
int gci_verify(const struct gci_sched *const *scheds, const struct gci_coll *c, int check_senders,
	struct gci_verify_report *report, struct gci_error *e);

#endif
