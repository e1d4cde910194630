/* SPDX-License-Identifier: MIT
 * The transport over TCP sockets, on libuv.
 *
 *	int fd = -1;
 *	char addr[64];
 *	rc = gci_tcp_listen("10.1.0.3", 0, 0, &fd, addr, &e);	// any port
 *	... tell the others `addr`, learn theirs ...
 *	rc = gci_tcp_create(&tp, &config, &tcp, &e);		// takes over fd
 *
 * Who connects: the lower rank of a pair. Both sides name the pair when they need it (isend,
 * irecv, connect), so no one waits for a connection that nobody opens.
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

#include "transport/transport.h"

#include <uv.h>

#define GCI_TCP_ADDR_NBYTES   64
#define GCI_TCP_SECRET_NBYTES 32

struct gci_tcp_config {
	int listen_fd;            /* from gci_tcp_listen; owned from create on, also on failure */
	const char *const *addrs; /* of every rank, "IP:PORT" or "[IP]:PORT"; copied */
	uint8_t secret[GCI_TCP_SECRET_NBYTES]; /* the job's; strangers are turned away */
	uv_loop_t *loop;                       /* shared with others, or NULL for one of our own */
	int unref;              /* our handles do not keep the loop of others alive */
	const char *congestion; /* TCP_CONGESTION for peers with several streams; NULL: default */
	uint64_t connect_timeout_ns; /* for a peer's streams together; 0: 10 s */
};

/* Listens on `ip` (numeric, v4 or v6; NULL: all addresses) at the first free port of
 * port_lo..port_hi (0, 0: any) and writes "IP:PORT" to `addr`; with NULL its IP is "[::]", in
 * place of which the caller tells the others one that leads here. */
int gci_tcp_listen(const char *ip, uint16_t port_lo, uint16_t port_hi, int *fd,
	char addr[GCI_TCP_ADDR_NBYTES], struct gci_error *e);

/* The data path in use: "poll" or "uring"; "" as long as no peer was needed. `tp` is a TCP one. */
const char *gci_tcp_path(const struct gci_tp *tp);

int gci_tcp_create(struct gci_tp **tp, const struct gci_tp_config *config,
	const struct gci_tcp_config *tcp, struct gci_error *e);

/* Calls what is due, and hands over what is to be sent, without looking at the network. */
void gci_tcp_turn(struct gci_tp *tp);

#endif
