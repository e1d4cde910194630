/* SPDX-License-Identifier: MIT
 * Options of data sockets, by the kind of link they are on; and what the kernel made of them.
 *
 *	struct gci_sockopts o = {0};		// one for all sockets of a transport
 *	gci_sockopt_data(&o, fd, peer, &link);	// before connect, after accept
 *	...
 *	gci_sockopt_look(fd, &stats.socket);	// any time later */
#ifndef GCI_TRANSPORT_SOCKOPT_H
#define GCI_TRANSPORT_SOCKOPT_H

#include "transport/sockbuf.h"
#include "transport/taps.h"
#include "transport/transport.h"

#include <stdint.h>

#ifndef SO_BUF_LOCK /* Linux 5.15 */
#define SO_BUF_LOCK 72
#endif
#define GCI_SEND_LOCKED    1 /* SOCK_SNDBUF_LOCK: the kernel leaves the buffer as it is */
#define GCI_RECEIVE_LOCKED 2

#define GCI_SOCKOPT_KINDS 16 /* of links that are logged */

struct gci_sockopts {
	struct gci_sockmax max;
	int knows_max;
	uint64_t told[GCI_SOCKOPT_KINDS]; /* kinds of links whose options are in the log already */
	unsigned ntold;
	int warned;    /* bits: of what, once each */
	int may_start; /* 1: a socket may begin with reno and go on with cubic, -1: it may not */
};

/* Sets what can be set on the TCP socket `fd` of a connection to `peer`. What was set and what the
 * kernel made of it is in the log at level info, once for each kind of link; what it refuses and
 * what slows the link down, with the sysctl that is in the way, is a warning, once.
 *
 * SO_RCVBUF after accept is early enough on Linux: the window scale offered in the handshake
 * follows net.core.rmem_max and tcp_rmem, unless the listening socket has a buffer of its own. */
void gci_sockopt_data(struct gci_sockopts *o, int fd, int peer, const struct gci_tp_link *link);

/* How much waits in a socket that TCP cannot send yet: what keeps the link busy, or at most `most` bytes,
 * unless that is 0, since data would have to wait behind it. */
void gci_sockopt_unsent(int fd, const struct gci_tp_link *link, uint32_t most);

/* At most so many bytes are under way, or wait; 0: as many as the kernel thinks right. True if that is so now:
 * nothing changes where the kernel could not undo it (before Linux 5.15). */
int gci_sockopt_window(int fd, uint64_t nbytes);

/* Cubic leaves slow start as soon as round trips grow (HyStart, Ha and Rhee 2011), and where hosts send both
 * ways they grow since acknowledgements wait behind data at the other end, not since the path is full.
 * A connection that left at 40 segments takes a second to get to the 400 that its link needs. So where
 * it is known what that is, a connection begins with reno, which leaves slow start for losses only, and
 * goes on with cubic once its window is as large, or something was lost.
 *
 * Returns 1 where it has begun so: gci_sockopt_has_started is to be asked now and then from the first
 * byte on, until it returns 1. 0: nothing was changed. */
int gci_sockopt_start(struct gci_sockopts *o, int fd, const struct gci_tp_link *link);
int gci_sockopt_has_started(int fd, const struct gci_tp_link *link);

/* Of a control connection, once it is open: what is said goes at once, and what was lost goes again
 * soon. After a link that was mute for seconds TCP's time-outs have doubled so often that two lost
 * packets more would be taken for the death of the peer; for so few packets the kernel can
 * double them later (Linux, Documentation/networking/tcp-thin). */
void gci_sockopt_control(int fd);

/* Whether the end of file that was read, or EPIPE, stands for a reset: the kernel reports one once, and
 * another call may have got the report. An end in order may be taken for one if a reset has followed it. */
int gci_sockopt_was_reset(int fd);

/* Whether this process may use the congestion control `name`: 0, or GCOLL_ERR_INVAL with those
 * that it may. */
int gci_sockopt_congestion(const char *name, struct gci_error *e);

/* Adds what an open TCP socket looks like now to `s`: of several, the smallest buffers and
 * segments, the longest round trip, and sums of the rest. */
void gci_sockopt_look(int fd, struct gci_tp_socket *s);

/* What has gone through an open TCP socket so far, and how it is doing: all of `f` but whose it is.
 * Leaves what the kernel does not tell. */
void gci_sockopt_flow(int fd, struct gci_flow *f);

#endif
