/* SPDX-License-Identifier: MIT
 * A ring of io_uring for messages on sockets: operations that are begun, handed to the kernel in
 * batches, and reaped. Knows nothing of connections (path_uring.c does).
 *
 *	rc = gci_uring_open(&u, why);
 *	op.fd = fd; op.send = 1; op.msg = ...;		// memory stays until it has ended
 *	gci_uring_begin(&u, &op);
 *	rc = gci_uring_submit(&u);			// all that were begun, in one call
 *	gci_uring_reap(&u);
 *	while ((op = gci_uring_next(&u)))
 *		... op->res: bytes, or a negative errno ...
 *	gci_uring_cancel(&u, &op); gci_uring_end(&u, &op);	// not in flight any more
 *	gci_uring_close(&u);				// when nothing is in flight
 *
 * event_fd becomes readable when something completes, but between gci_uring_quiet(&u, 1) and
 * (&u, 0), when the caller looks by itself; what completed meanwhile makes it readable at the end.
 *
 * Any thread may use it, one at a time, so the rings are neither SINGLE_ISSUER nor DEFER_TASKRUN.
 * An operation is carried on in the thread that began it whenever that one is in the kernel. When
 * such a thread ends, what it began completes with -ECANCELED: begin it again. */
#ifndef GCI_TRANSPORT_URING_H
#define GCI_TRANSPORT_URING_H

#include "base/list.h"
#include "transport/path.h"

#include <liburing.h>
#include <stdint.h>
#include <sys/socket.h>

enum gci_uring_state { GCI_URING_IDLE, GCI_URING_BEGUN, GCI_URING_FLIGHT, GCI_URING_DONE };

struct gci_uring_op {
	/* Set before it is begun. */
	struct msghdr msg;
	int fd;
	int send;  /* sendmsg; else recvmsg */
	int later; /* nothing is expected to be there (or to fit) yet: do not try first */
	void *user;

	/* Set when it is done. */
	int res;
	int more; /* of a receive: there was more to read */

	struct gci_list link;
	enum gci_uring_state state;
};

struct gci_uring {
	struct io_uring ring;
	int event_fd;
	int can_wait; /* the kernel knows `later` */
	struct gci_list begun, done;
};

/* 0, or -errno and the reason. */
int gci_uring_open(struct gci_uring *u, char why[GCI_PATH_WHY]);
void gci_uring_close(struct gci_uring *u);

void gci_uring_begin(struct gci_uring *u, struct gci_uring_op *op);

/* 0, or -errno: the kernel takes nothing any more. */
int gci_uring_submit(struct gci_uring *u);

/* Moves what completed to where gci_uring_next finds it. No system call. */
void gci_uring_reap(struct gci_uring *u);

/* The next operation that is done, idle again; NULL: none. */
struct gci_uring_op *gci_uring_next(struct gci_uring *u);

void gci_uring_quiet(struct gci_uring *u, int quiet);

/* Gives an operation up, whatever its state; what it did is forgotten. Then gci_uring_end waits
 * until the kernel has let go of its memory. Other operations that complete meanwhile are kept. */
void gci_uring_cancel(struct gci_uring *u, struct gci_uring_op *op);
void gci_uring_end(struct gci_uring *u, struct gci_uring_op *op);

#endif
