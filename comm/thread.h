/* SPDX-License-Identifier: MIT
 * The progress thread: moves data and calls callbacks while the program computes. It sleeps on the
 * transport's descriptor, outside of the gate, so that calls of the program come in between.
 *
 *	rc = gci_thread_start(e);	// sets e->thread
 *	rc = gci_enter(e);		// begins public calls that look at more than constants
 *	...
 *	gci_leave(e);			// unless rc
 *	gci_thread_stop(e, leave);
 *
 * Without a thread there is no gate (but see comm/warm.h), and one thread at a time may be in a call. */
#ifndef GCI_COMM_THREAD_H
#define GCI_COMM_THREAD_H

#include "comm/engine.h"
#include "comm/gate.h"
#include "comm/warm.h"

struct gci_thread {
	struct gci_engine *engine;
	struct gci_gate gate;
	pthread_t id;
	int quit;
	void (*last)(struct gci_engine *e);
	uint64_t rounds; /* how often it has looked whether there is something to do */
};

/* 0, or GCOLL_ERR_NOMEM or _SYS with the reason in *err. */
int gci_thread_start(struct gci_engine *e, struct gci_error *err);

/* Waits for its end. It calls `last`, if that is not NULL, as the last thing it does: what it has
 * in flight with io_uring would not survive it. False: there is no thread. */
int gci_thread_stop(struct gci_engine *e, void (*last)(struct gci_engine *e));

/* After something was begun or failed inside of the gate: the thread looks at it. */
static inline void gci_thread_nudge(struct gci_engine *e)
{
	if (e->thread)
		gci_tp_wake(e->tp);
}

/* Around what looks at more than constants. */
static inline void gci_lock(struct gci_engine *e)
{
	if (e->thread)
		gci_gate_enter(&e->thread->gate);
	else if (e->warm)
		gci_warm_enter(e);
}

static inline void gci_unlock(struct gci_engine *e)
{
	if (e->thread)
		gci_gate_leave(&e->thread->gate);
	else if (e->warm)
		gci_warm_leave(e);
}

/* Around each public call, also while it sleeps, calls back, and is called from there: 0, or with
 * gcoll_last_error() set GCOLL_ERR_FORKED, in a child by fork, or GCOLL_ERR_INVAL: another thread is
 * in a call, or runs the program's loop, which only one may at a time without a progress thread. */
int gci_begin_call(struct gci_engine *e);
void gci_end_call(struct gci_engine *e);

/* Sets gcoll_last_error(); returns GCOLL_ERR_FORKED. */
int gci_forked(void) __attribute__((cold));

/* Both. */
static inline int gci_enter(struct gci_engine *e)
{
	int rc = gci_begin_call(e);

	if (!rc)
		gci_lock(e);
	return rc;
}

static inline void gci_leave(struct gci_engine *e)
{
	gci_unlock(e);
	gci_end_call(e);
}

#endif
