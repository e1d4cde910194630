/* SPDX-License-Identifier: MIT
 * A world on the program's own libuv loop: while the loop runs, operations make progress, without a
 * call of ours.
 *
 *	rc = gci_loop_open(e, uv_loop);		// sets e->loop
 *	gci_loop_hold(e);			// something was begun: the loop stays alive for it
 *	uv_run(uv_loop, UV_RUN_DEFAULT);
 *	gci_loop_close(e);			// after the transport was freed; not within uv_run
 *
 * Around the loop's wait for the network stand a uv_prepare_t, which hands over what is to be sent
 * and sees to it that the loop does not wait too long, and a uv_check_t, which takes what has come
 * and calls callbacks. */
#ifndef GCI_COMM_LOOP_H
#define GCI_COMM_LOOP_H

#include "comm/engine.h"

/* `uv_loop` is a uv_loop_t. 0, or GCOLL_ERR_NOMEM. */
int gci_loop_open(struct gci_engine *e, void *uv_loop);

/* These do nothing without a loop. */
void gci_loop_hold(struct gci_engine *e);
void gci_loop_close(struct gci_engine *e);

/* True while the loop is in the part of its turn in which it looks at sockets, and calls back for
 * them: it must not be run from there once more. */
int gci_loop_looks(const struct gci_engine *e);

/* True while it is, and in another thread than this one. */
int gci_loop_is_elsewhere(const struct gci_engine *e);

#endif
