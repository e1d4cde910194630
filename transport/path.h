/* SPDX-License-Identifier: MIT
 * A data path: how the bytes of the TCP backend's connections get between sockets and streams.
 * Connecting, accepting and the HELLOs are not its business (tcp_conn.c, tcp_peers.c).
 *
 *	rc = path->attach(c);		// the connection has its peer and its stream
 *	path->write(c);			// there may be something to send
 *	path->start(c);			// both HELLOs are checked: read, too
 *	path->flush(t);			// before the loop waits, unless it is NULL
 *	path->detach(c);		// before the socket is closed
 *
 * Contract
 * - Memory that a stream names (stream.h) is touched by the kernel between `write` or `start` and
 *   `detach` or `halt` only: after these nothing is in flight, so requests can be given back and
 *   a lost stream's frames be sent by another.
 * - c->blocked says that the connection cannot take more now; the function that sets it also clears
 *   it, and writes on then.
 * - What ends a connection goes to gci_conn_finished; what failed while sending to
 *   c->send_error, since reading finds the reason, behind what had arrived before. */
#ifndef GCI_TRANSPORT_PATH_H
#define GCI_TRANSPORT_PATH_H

#include "transport/transport.h"

#define GCI_PATH_TURN_NBYTES (1u << 20) /* moved at a time before others get their turn */
#define GCI_PATH_WHY         160

struct gci_tcp;
struct gci_conn;

struct gci_path_ops {
	const char *name;
	/* 0, or a negative errno and the reason why it is not to be had. */
	int (*open)(struct gci_tcp *t, char why[GCI_PATH_WHY]);
	/* Nothing is attached any more. */
	void (*close)(struct gci_tcp *t);
	/* 0, or GCOLL_ERR_NOMEM. */
	int (*attach)(struct gci_conn *c);
	void (*detach)(struct gci_conn *c);
	void (*start)(struct gci_conn *c);
	/* Sends, and sees to it that it goes on until there is nothing left to send or the
	 * connection is blocked. */
	void (*write)(struct gci_conn *c);
	/* The events of libuv that the path wants of the socket, besides those of greeting. */
	int (*events)(const struct gci_conn *c);
	/* They have come. */
	void (*ready)(struct gci_conn *c, int events);
	/* Hands over to the kernel what write and start have only noted. NULL: they do so. */
	void (*flush)(struct gci_tcp *t);
	void (*halt)(struct gci_tcp *t);
};

/* Opens the transport's path, and says in the log which it is and why: a warning if `which` was
 * asked for by name and is not to be had. There is always one. */
void gci_path_open(struct gci_tcp *t, enum gci_data_path which);

#define GCI_DATA_PATH_EXPECTED "auto, poll or uring"

/* 0 or GCOLL_ERR_INVAL. */
int gci_data_path_parse(const char *name, enum gci_data_path *out);

/* Whether io_uring is to be had here: 0, or a negative errno and the reason. Opens a ring. */
int gci_uring_probe(char why[GCI_PATH_WHY]);

/* Readiness: the loop polls the sockets, and they are read and written when they say so. */
extern const struct gci_path_ops gci_path_poll;

/* io_uring: reads and writes are submitted ahead, and the kernel completes them. One ring
 * per transport. */
extern const struct gci_path_ops gci_path_uring;

#endif
