/* SPDX-License-Identifier: MIT
 * What the verifier's tests of broken schedules share. Each test begins with a set that is proved
 * right, so that it is the one thing broken in it that is found. */
#ifndef GCI_TESTS_VERIFY_CASES_H
#define GCI_TESTS_VERIFY_CASES_H

#include "tests/test.h"

#include "tests/collectives/scheds.h"

#define IN(offset, length)  gci_slice(GCI_IN, offset, length)
#define OUT(offset, length) gci_slice(GCI_OUT, offset, length)
#define TMP(offset, length) gci_slice(GCI_TMP, offset, length)

/* The content of a barrier's messages. */
static const struct gci_slice nothing = {0, 0, GCI_OUT};

void assert_fine(struct scheds *x);

/* `where` and `what` stand in the text. */
void assert_fault(struct scheds *x, enum gci_fault fault, const char *where, const char *what);

/* The same for a set that is still to be built; frees it. */
void assert_built_fine(struct scheds *x);
void assert_built_fault(
	struct scheds *x, enum gci_fault fault, const char *where, const char *what);

/* Bcast of 10 elements: 0 -> 1 -> 2 -> ... Proved. */
void make_chain(struct scheds *x, int n);

/* Allreduce of 10 elements: 1 and 2 send to 0, which adds them up, in this order, and sends the
 * sum back. Rank 0's steps: 0 adds 1's, 1 adds 2's, 2 and 3 send. Others: 0 sends, 1 receives.
 * Proved. */
void make_star(struct scheds *x);

/* An algorithm's, of 24 elements. Proved. */
void emit(struct scheds *x, enum gci_kind kind, const char *name, const int *sizes);

/* Takes away the edge of `step` to `earlier`. */
void drop_edge(struct gci_sched *s, uint32_t step, uint32_t earlier);

#endif
