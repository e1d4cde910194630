/* SPDX-License-Identifier: MIT
 * Single ways to break a schedule: for tests of the verifier. */
#ifndef GCI_TESTS_MUTATIONS_H
#define GCI_TESTS_MUTATIONS_H

#include "tests/collectives/scheds.h"

/* A kind of mutation: applies its k-th variant at a step of a rank. Returns 1 when done, 0 when
 * it does not apply there, -1 when there are no more variants. */
struct mutation {
	const char *name;
	int (*apply)(struct scheds *x, int rank, uint32_t step, uint32_t k);
	unsigned long made, rejected, harmless;
	/* Of a sample of the rejected ones: what the oracle found wrong, too. */
	unsigned long sampled, found;
};

extern struct mutation mutations[]; /* all kinds, ended by one without a name */

#endif
