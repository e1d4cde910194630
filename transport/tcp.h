/* SPDX-License-Identifier: MIT
 * The transport over TCP sockets, on libuv.
 *
 *	struct gci_address at;
 *	struct gci_ports any = {0};
 *	struct gci_reach mine;
 *	int fd = -1;
 *	gci_address_make(&at, "10.1.0.3", 0);
 *	rc = gci_tcp_listen(&at, 1, &any, 0, &fd, &mine, &e);
 *	... tell the others `mine`, learn theirs ...
 *	rc = gci_tcp_create(&tp, &config, &tcp, &e);		// takes over fd
 *
 * The lower rank of a pair connects; but where one of them is behind a firewall that lets nobody in,
 * that one does. Both sides name the pair when they need it (isend, irecv, connect), so no one waits
 * for a connection that nobody opens.
 *
 * Several addresses: connections of a pair run between the addresses of both sides that belong
 * together, in turn (gci_reach_pair), so that all network cards carry alike. Which card a packet
 * leaves by is the host's routing: it takes a route, or a rule by source address, for each.
 *
 * A loop of the caller's may be shared by several transports. progress of any of them runs it, and
 * with it the others' sockets and their `piece`; `done` is called in a transport's own progress
 * only. After free, run the loop once more before uv_loop_close: handles close in it.
 *
 * Or the caller runs the loop: then no one needs to call progress, if gci_tcp_turn is called before
 * and after the loop looks at its sockets (uv_prepare_t, uv_check_t), and the loop is not left to
 * wait while timeout_ns says 0.
 *
 * Silence: keepalive watches idle connections; those with bytes under way fail when the kernel of
 * the other side has not answered for dead_ns. A program that is alive but does not call progress
 * is not silent, however long it takes. A peer that dies before its connection is open is not
 * noticed here by the higher rank, which only waits to be connected to: the control connection
 * tells, and gci_tp_fail. */
#ifndef GCI_TRANSPORT_TCP_H
#define GCI_TRANSPORT_TCP_H

#include "base/clock.h"
#include "transport/address.h"
#include "transport/reach.h"
#include "transport/secret.h"
#include "transport/transport.h"

#include <uv.h>

#define GCI_TCP_SECRET_NBYTES GCI_SECRET_NBYTES
#define GCI_TCP_CONNECT_NS    (10 * GCI_NS_PER_S)
#define GCI_TCP_STRANGER_NS   (5 * GCI_NS_PER_S)
#define GCI_TCP_HALF_HELLO    4 /* times as long is a plain hello's rest waited for */

struct gci_tcp_config {
	int listen_fd; /* from gci_tcp_listen; owned from create on, also on failure */
	const struct gci_reach *reach; /* of every rank; copied */
	/* Of every rank: 0, or the number of the firewall that it is behind. Only ranks behind the same
	 * one can connect to it. NULL: all 0; copied. */
	const uint32_t *behind;
	/* Our own addresses, those of reach[rank]. NULL: those, with neither scopes nor networks,
	 * and connections leave as the kernel's routes say. Copied. */
	const struct gci_own *own;
	uint8_t secret[GCI_TCP_SECRET_NBYTES]; /* the job's; strangers are turned away */
	uv_loop_t *loop;                       /* shared with others, or NULL for one of our own */
	int unref;                   /* our handles do not keep the loop of others alive */
	uint64_t connect_timeout_ns; /* for a peer's streams together; 0: GCI_TCP_CONNECT_NS */
	/* For the HELLO, from addresses that no rank has, or by TLS. From a rank's address a plain hello
	 * that has begun has GCI_TCP_HALF_HELLO times as long, as a network may be cut, and one
	 * that has not as long as it likes. 0: GCI_TCP_STRANGER_NS. */
	uint64_t stranger_ns;
	uint64_t rekey_records; /* of TLS under one key; 0: secure.h's */
};

/* Listens at `n` addresses (1 .. GCI_REACH_MAX), all at the same port out of the range; see
 * gci_listen for `turn` and the errors. Tells in *reach what the others need to know. */
int gci_tcp_listen(const struct gci_address *at, unsigned n, const struct gci_ports *ports,
	uint32_t turn, int *fd, struct gci_reach *reach, struct gci_error *e);

/* The data path in use: "poll" or "uring"; "" as long as no peer was needed. `tp` is a TCP one. */
const char *gci_tcp_path(const struct gci_tp *tp);

int gci_tcp_create(struct gci_tp **tp, const struct gci_tp_config *config,
	const struct gci_tcp_config *tcp, struct gci_error *e);

/* Calls what is due, and hands over what is to be sent, without looking at the network. */
void gci_tcp_turn(struct gci_tp *tp);

#endif
