/* SPDX-License-Identifier: MIT
 * Threads of control that take turns on one real thread, each with a stack of its own, so that a
 * program that blocks can be run in simulated time.
 *
 *	f = fiber_new(fn, arg);
 *	fiber_enter(f);			// runs fn(arg) until that calls fiber_leave, or returns
 *	if (!fiber_over(f))
 *		fiber_enter(f);		// goes on behind fiber_leave
 *	fiber_free(f);			// wherever it stands: it goes no further */
#ifndef GCI_TESTS_SIMULATE_FIBER_H
#define GCI_TESTS_SIMULATE_FIBER_H

struct fiber;

struct fiber *fiber_new(void (*fn)(void *arg), void *arg);
void fiber_enter(struct fiber *f);
void fiber_leave(void);
int fiber_over(const struct fiber *f);
void fiber_free(struct fiber *f);

#endif
