/* SPDX-License-Identifier: MIT
 * What the verifier is checked against: all ranks' schedules are run with real values, element by
 * element, in random interleavings, and the result is compared with the naive answer. Knows
 * nothing of the readiness core, of interval maps or of symbols.
 *
 *	struct oracle *o = oracle_new(&x);
 *	for (seed = 0; seed < 100; seed++)
 *		if ((what = oracle_run(o, seed)))
 *			puts(what);			// "deadlock", "wrong value", ...
 *	oracle_free(o);
 */
#ifndef GCI_TESTS_ORACLE_H
#define GCI_TESTS_ORACLE_H

#include "tests/collectives/scheds.h"

struct oracle;

/* NULL when a step is malformed or a message has no counterpart. `x` must outlive it. */
struct oracle *oracle_new(const struct scheds *x);
void oracle_free(struct oracle *o);

/* One run; NULL, or what went wrong. Bit 0 of the seed keeps some steps back for long, bit 1 lets
 * the network buffer some messages; without it a SEND ends with its RECV. */
const char *oracle_run(struct oracle *o, uint64_t seed);

#endif
