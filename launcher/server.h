/* SPDX-License-Identifier: MIT
 * The control server: the rendezvous state machine on sockets of a libuv loop.
 *
 *	rc = gci_server_open(&s, loop, &config, &place, on_change, user, &e);
 *	... tell the ranks: port s.port
 *	gci_rdv_exited(s.rdv, rank, code, signal, gci_now_ns());
 *	gci_server_kick(&s);		// after each call on s.rdv
 */
#ifndef GCI_LAUNCHER_SERVER_H
#define GCI_LAUNCHER_SERVER_H

#include "launcher/rendezvous.h"
#include "transport/address.h"
#include "transport/secure.h"
#include "transport/unauthenticated.h"

#include <uv.h>

struct gci_server {
	struct gci_rdv *rdv;
	uv_loop_t *loop;
	uv_tcp_t listener;
	uv_timer_t timer;
	uv_idle_t room;   /* the next connection waits for a place */
	uv_timer_t retry; /* ... for memory, or its turn */
	struct gci_backoff backoff;
	uint16_t port;
	struct gci_secure_ctx *secure; /* NULL: ranks come without TLS */
	void (*on_change)(void *user); /* something happened: look at the verdict */
	void *user;
};

/* Where it listens. */
struct gci_server_place {
	const char *ip;    /* NULL: all addresses */
	const char *netns; /* inside of this network namespace; NULL: ours */
	struct gci_ports ports;
	int tls; /* the ranks come by it: nobody is heard without */
};

int gci_server_open(struct gci_server *s, uv_loop_t *loop, const struct gci_rdv_config *config,
	const struct gci_server_place *at, void (*on_change)(void *user), void *user,
	struct gci_error *e);

/* Sends and closes what the state machine wants, and sets the timer anew. */
void gci_server_kick(struct gci_server *s);

#endif
