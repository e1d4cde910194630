/* SPDX-License-Identifier: MIT
 * Part of gridcoll.h: how operations that do not wait come to their end, and a loop of the
 * program's own. */
#ifndef GRIDCOLL_REQUESTS_H
#define GRIDCOLL_REQUESTS_H

#include "gridcoll/gridcoll.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Begins a prepared operation, which must not be under way. */
GCOLL_API int gcoll_start(gcoll_req *req);

/* Waits for the end of *req, frees it, sets *req to NULL and returns the operation's status. One
 * that was made by an _init function is not freed but may be started again. *req == NULL, and one
 * that was not started, are legal and done. */
GCOLL_API int gcoll_wait(gcoll_req **req);

/* Makes what progress is possible without waiting. *done tells whether *req has ended; if so, all
 * is as after gcoll_wait. */
GCOLL_API int gcoll_test(gcoll_req **req, int *done);

/* Frees a prepared operation and sets *req to NULL; GCOLL_ERR_INVAL while it is under way. NULL
 * and *req == NULL are legal. */
GCOLL_API int gcoll_req_free(gcoll_req **req);

/* Called once the request is over, with its status; gcoll_last_error() has the words. By whatever
 * makes progress: from within gcoll_wait, gcoll_test, gcoll_progress and the blocking forms of any
 * request, by the progress thread, or by the program's loop. It may begin operations, set callbacks
 * and free requests and communicators; what would wait, gcoll_progress and gcoll_finalize it must
 * not call (GCOLL_ERR_INVAL). Callbacks are called one at a time. */
typedef void gcoll_done_fn(int status, void *ctx);

/* `fn` is called, once, instead of gcoll_wait or gcoll_test: at the earliest from the next call
 * that makes progress, at the latest in gcoll_finalize, with GCOLL_ERR_ABORTED if the request is
 * cancelled. The request is then as after gcoll_wait; so *req is set to NULL, but for one that was
 * made by an _init function: that one may also be given its callback before it is started, and
 * keeps it. */
GCOLL_API int gcoll_on_done(gcoll_req **req, gcoll_done_fn *fn, void *ctx);

/* ---- a loop of the program's own
 * For a world with neither progress_thread nor uv_loop:
 *
 *	struct pollfd p[] = {{.fd = gcoll_comm_fd(world), .events = POLLIN}, ...};
 *	for (;;) {
 *		... begin operations ...
 *		ns = gcoll_comm_timeout_ns(world);	// right before the wait, always
 *		poll(p, n, ns == GCOLL_NEVER ? -1 : (int)((ns + 999999) / 1000000));
 *		if (gcoll_progress(world, 0))
 *			break;
 *	} */

#define GCOLL_NEVER UINT64_MAX

/* Readable, for poll, select or epoll, when gcoll_progress has something to do. The same for all
 * communicators made from one world, as long as that lives; never read, written or closed by the
 * program. gcoll_comm_shrink closes it, and the new world has another one, perhaps of the same
 * number: who uses epoll adds it again. Negative: a GCOLL_ERR_*, as of a world that was shrunk. */
GCOLL_API int gcoll_comm_fd(gcoll_comm *c);

/* How long the program may wait for that, from now, until it calls gcoll_progress; GCOLL_NEVER. 0:
 * it must not wait, there is something to do now. Holds until the next call of the library. */
GCOLL_API uint64_t gcoll_comm_timeout_ns(gcoll_comm *c);

/* Makes progress of all operations, of whatever communicator: what can be done now, or, when there
 * is nothing, what comes within timeout_ns (0: does not wait). Returns when something was done. 0,
 * or the error that has ended the job. With a progress thread it does nothing else. */
GCOLL_API int gcoll_progress(gcoll_comm *c, uint64_t timeout_ns);

#ifdef __cplusplus
}
#endif

#endif
