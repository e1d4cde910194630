/* SPDX-License-Identifier: MIT
 * What the files of the TCP backend share: tcp.c (the transport's operations), tcp_conn.c (one
 * connection), tcp_accept.c (connections that come in), tcp_watch.c (deadlines), and the data
 * paths (path.h). */
#ifndef GCI_TRANSPORT_TCP_IMPL_H
#define GCI_TRANSPORT_TCP_IMPL_H

#include "transport/address.h"
#include "transport/hello.h"
#include "transport/path.h"
#include "transport/sockopt.h"
#include "transport/stream.h"
#include "transport/tcp.h"

enum gci_conn_state {
	GCI_CONN_CONNECTING,
	GCI_CONN_GREETING, /* the peer's HELLO has not come, or not all of it */
	GCI_CONN_OPEN,
	GCI_CONN_LEFT, /* the peer has said BYE */
	GCI_CONN_CLOSED,
};

struct gci_tcp;

struct gci_conn {
	uv_poll_t poll;
	struct gci_tcp *tcp;
	struct gci_list link; /* of tcp->conns */
	enum gci_conn_state state;
	int fd;
	int peer;           /* -1: a stranger, until its HELLO is checked */
	int events;         /* that poll waits for */
	int blocked;        /* takes no more now, see path.h */
	size_t turn_nbytes; /* sent in this turn */
	int send_error;     /* errno; reading tells the rest */
	int shut;           /* our goodbye is out */
	uint8_t greeting[GCI_HELLO_NBYTES];
	size_t ngreeting;
	uint64_t deadline_ns;     /* CONNECTING, and strangers */
	uint64_t silent_ns;       /* since when sent bytes are unanswered; 0: they are not */
	struct gci_stream stream; /* once peer >= 0 */
	void *moves;              /* the path's, while attached */
};

struct gci_tcp_peer {
	struct gci_conn *conns[GCI_TP_MAX_STREAMS];
	unsigned nconns, nleft;
	unsigned turn;         /* the stream that may send first */
	struct gci_list dirty; /* of tcp->dirty: has something to send */
	int rank;
};

struct gci_tcp {
	struct gci_tp tp;
	struct gci_ep ep;
	const struct gci_path_ops *path;
	int path_open;    /* else `path` is only a stand-in */
	void *path_state; /* the path's */
	uint8_t secret[GCI_TCP_SECRET_NBYTES];
	char *congestion;
	uint64_t connect_timeout_ns;
	struct gci_reach *reach; /* by rank */
	struct gci_address own[GCI_REACH_MAX];
	int bind_source;             /* connections leave from `own` */
	struct gci_tcp_peer **peers; /* by rank; NULL: not needed yet */
	struct gci_list dirty;
	struct gci_list conns;
	unsigned nstrangers, nconnecting;
	struct gci_sockopt_said said;

	uv_loop_t *loop;
	uv_loop_t own_loop;
	int unref;        /* the loop lives as long as the caller wants */
	uv_timer_t timer; /* of progress */
	uv_timer_t watch;
	uv_async_t async;
	uv_poll_t listen;
	int listen_fd;
	uint64_t accept_again_ns; /* accept failed for lack of something; 0: it did not */
	uint64_t watch_period_ns; /* for silence; 0: nobody asked */

	unsigned unlooked; /* progress has not looked at the sockets so many times */
	int stopping;
	int halted; /* failed: nothing is read any more */
	int freed;
	unsigned nhandles; /* libuv's, not closed yet */
};

/* tcp_conn.c */
struct gci_conn *gci_conn_new(struct gci_tcp *t, int fd);
/* Begins to connect stream `index` to a higher rank. */
void gci_conn_connect(struct gci_tcp *t, struct gci_tcp_peer *p, unsigned index);
/* Where stream `index` of a peer is, or would be, connected to. Returns `text`. */
const char *gci_conn_where(
	const struct gci_tcp *t, int rank, unsigned index, char text[GCI_ADDRESS_TEXT]);
/* Attaches a connection to its place among the peer's; 0 or the endpoint's failure. */
int gci_conn_attach(struct gci_conn *c, struct gci_tcp_peer *p, unsigned index);
int gci_conn_send_hello(struct gci_conn *c, int peer, unsigned index);
/* Both HELLOs are checked. */
void gci_conn_open(struct gci_conn *c);
/* True if the path's write may send something. */
int gci_conn_writable(const struct gci_conn *c);
/* For the path: bytes were sent, or could not be. */
void gci_conn_wrote(struct gci_conn *c);
/* For the path: reading has come to the end; with `error` an errno, 0: it was closed. */
void gci_conn_finished(struct gci_conn *c, int error);
/* What happens when the poll says so; also used when a deadline has passed, since the poll may
 * only not have been asked. */
void gci_conn_event(struct gci_conn *c, int events);
void gci_conn_poll(struct gci_conn *c);
void gci_conn_close(struct gci_conn *c);

/* tcp_accept.c */
void gci_tcp_accept_start(struct gci_tcp *t);
/* All of a stranger's HELLO has come. */
void gci_tcp_greeted(struct gci_conn *c);

/* tcp_watch.c */
void gci_tcp_watch(struct gci_tcp *t);

/* tcp.c */
void gci_tcp_dirty(struct gci_tcp *t, struct gci_tcp_peer *p);
/* Any handle but `timer`, when it is made. */
void gci_tcp_new_handle(struct gci_tcp *t, uv_handle_t *h);
void gci_tcp_handle_closed(struct gci_tcp *t);
/* Whether a peer's HELLO says what ours says; 0 or the endpoint's failure. */
int gci_tcp_disagree(struct gci_tcp *t, const struct gci_hello *h);
struct gci_hello gci_tcp_hello(const struct gci_tcp *t, int peer, unsigned index);

#endif
