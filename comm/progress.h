/* SPDX-License-Identifier: MIT
 * The thread that makes progress: the program's own, in its calls; a thread of ours, which moves data
 * and calls callbacks while the program computes; or the program's own libuv loop.
 *
 *	rc = gci_thread_start(e, &err);		// or
 *	rc = gci_loop_open(e, uv_loop);
 *	...
 *	rc = gci_enter(e);		// begins public calls that look at more than constants
 *	...
 *	gci_leave(e);			// unless rc
 *	...
 *	gci_thread_stop(e, leave);
 *	gci_loop_close(e);		// after the transport was freed; not within uv_run
 *
 * The thread sleeps on the transport's descriptor, outside of the gate, so that calls of the program
 * come in between. Without it there is no gate (but see callers.shared in engine.h), and one thread at a
 * time may be in a call.
 *
 * Around the loop's wait for the network stand a uv_prepare_t, which hands over what is to be sent and
 * sees to it that the loop does not wait too long, and a uv_check_t, which takes what has come and calls
 * callbacks. */
#ifndef GCI_COMM_PROGRESS_H
#define GCI_COMM_PROGRESS_H

#include "comm/engine.h"

struct gci_thread {
	struct gci_engine *engine;
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
	if (e->callers.thread)
		gci_tp_wake(e->tp);
}

/* `uv_loop` is a uv_loop_t. 0, or GCOLL_ERR_NOMEM. */
int gci_loop_open(struct gci_engine *e, void *uv_loop);

/* Something was begun: the loop stays alive for it. Nothing without a loop; so the next. */
void gci_loop_hold(struct gci_engine *e);
void gci_loop_close(struct gci_engine *e);

/* Around each public call, also while it sleeps, calls back, and is called from there: 0, or with
 * gcoll_last_error() set GCOLL_ERR_FORKED, in a child by fork, or GCOLL_ERR_INVAL: another thread is
 * in a call, or runs the program's loop, which only one may at a time without a progress thread. */
int gci_begin_call(struct gci_engine *e);
void gci_end_call(struct gci_engine *e);

/* Sets gcoll_last_error(); returns GCOLL_ERR_FORKED. */
int gci_forked(void) __attribute__((cold));

/* Both that and the gate. */
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

/* Refuses, with GCOLL_ERR_INVAL, to wait from within a callback. */
int gci_may_wait(const struct gci_engine *e);

#endif
