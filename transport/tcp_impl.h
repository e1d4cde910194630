/* SPDX-License-Identifier: MIT
 * What the files of the TCP backend share: tcp.c (the transport's operations, progress, deadlines and the
 * end); tcp_conn.c and tcp_peers.c, two halves of one thing (a connection and its bytes, plain or by TLS;
 * connections that are made, come in, are lost and made again); path.c and path_uring.c (path.h); tcp_pace.c
 * (rates). */
#ifndef GCI_TRANSPORT_TCP_IMPL_H
#define GCI_TRANSPORT_TCP_IMPL_H

#include "base/u64set.h"
#include "transport/address.h"
#include "transport/frame.h"
#include "transport/pace.h"
#include "transport/path.h"
#include "transport/poller.h"
#include "transport/secure.h"
#include "transport/sockopt.h"
#include "transport/stream.h"
#include "transport/tcp.h"
#include "transport/unauthenticated.h"

#include <openssl/crypto.h>

enum gci_conn_state {
	GCI_CONN_CONNECTING,
	GCI_CONN_GREETING, /* the peer's HELLO has not come, or not all of it */
	GCI_CONN_OPEN,
	GCI_CONN_LEFT, /* the peer has said BYE */
	GCI_CONN_LOST, /* until gci_tcp_bury */
	GCI_CONN_CLOSED,
};

struct gci_tcp;

struct gci_conn {
	struct gci_watched watched;
	struct gci_tcp *tcp;
	struct gci_list link; /* of tcp->conns; when CLOSED, of tcp->closed */
	enum gci_conn_state state;
	int fd;
	int peer;               /* -1: a stranger, until its HELLO is checked */
	int again;              /* in place of one that was lost */
	int probes;             /* 1 + the rank whose life it is to show; it has no other use */
	int mute;               /* LOST, and this was no sign of life */
	uint64_t deadline_ns;   /* CONNECTING, and strangers */
	uint64_t open_ns;       /* since when it is OPEN */
	uint64_t silent_ns;     /* since when sent bytes are unanswered; 0: they are not */
	struct gci_conn_hello { /* until it is OPEN */
		int stranger;   /* it came, and is counted in nstrangers */
		struct gci_unauth_place place;   /* while others may want it */
		uint8_t bytes[GCI_SECURE_FIRST]; /* a stranger's first ones, then its HELLO */
		size_t n;
		size_t nfirst, first_at; /* of the former, what TLS takes before the socket's */
	} hello;

	const struct gci_path_ops *path;
	void *moves;              /* the path's, while attached */
	struct gci_stream stream; /* once peer >= 0 */
	int blocked;              /* takes no more now, see path.h */
	size_t turn_nbytes;       /* sent in this turn */
	int send_error;           /* errno; reading tells the rest */
	int shut;                 /* our goodbye is out */
	struct gci_conn_pace {
		int starts;           /* gci_sockopt_has_started is still to be asked */
		int pads;             /* the socket is set for padding: gci_sockopt_unsent */
		int busy;             /* counts in its group's */
		int begun;            /* in this turn, with a packet that is hardly any */
		int waited;           /* for its place among those that begin at the same time */
		int paused;           /* until its group's bucket has room */
		struct gci_wire wire; /* mss_nbytes 0: nobody has asked yet */
		uint32_t priority;    /* SO_PRIORITY as we have set it */
		uint64_t socket_rate; /* SO_MAX_PACING_RATE, the same; 0: we have not */
	} pace;
	struct gci_conn_tls {
		struct gci_secure *engine; /* NULL: the connection is plain */
		size_t sealed_nbytes;      /* of frames, encrypted but not sent whole */
		size_t taken_nbytes;       /* off the socket, in this turn */
		int drained;               /* the socket has no more in this turn */
		uint64_t midway_ns; /* since when a record stands still half way; 0: none does */
	} tls;
};

/* Connections that share a rate. */
struct gci_pace_group {
	struct gci_pace pace;
	struct gci_bucket bucket; /* BY_US */
	unsigned busy;            /* connections that have something to send */
	int is_own;               /* a peer's own */
	int ends;                 /* when it has nothing to send */
};

struct gci_pacer {
	struct gci_pace_group groups[GCI_PACE_GROUPS];
	struct gci_pace_group *own; /* by rank, of peers with a rate of their own; NULL: none has */
	uv_timer_t timer;           /* of buckets */
	uint64_t looked_ns;
	unsigned npaused;
};

struct gci_tcp_peer {
	struct gci_conn *conns[GCI_TP_MAX_STREAMS];
	unsigned nconns, nleft;
	unsigned turn;          /* the stream that may send first */
	uint64_t window_nbytes; /* bytes under way by each connection, at most; 0: any */
	struct gci_list dirty;  /* of tcp->dirty: has something to send */
	int rank;
	uint8_t attempt[GCI_TP_MAX_STREAMS]; /* of gci_reach_pair, that each stream is at */
	uint8_t redials[GCI_TP_MAX_STREAMS]; /* see gci_conn_redial */

	/* Of lost streams. */
	uint64_t again_ns;           /* when to try again; 0: there is nothing to try */
	uint64_t pause_ns;           /* between tries */
	uint64_t alive_ns;           /* the last sign of life while all streams are lost */
	unsigned ntries;             /* since then */
	char cause[160];             /* of the last loss */
	unsigned nheld, held_stream; /* losses that are not warned of yet; the first one's */
	uint64_t held_ns;
	char held_cause[160];
	int warned; /* of a loss that still lasts: its end is a warning, too */
	unsigned nprobes;
};

struct gci_tcp {
	struct gci_tp tp;
	struct gci_ep ep;
	const struct gci_path_ops *path;
	const struct gci_path_ops *polled; /* of connections by TLS */
	int path_open;                     /* else `path` is only a stand-in */
	void *path_state;                  /* the path's */
	uint8_t *secret;                   /* of GCI_TCP_SECRET_NBYTES */
	struct gci_secure_ctx *secure;     /* NULL: no connection needed it yet */
	uint64_t rekey_records;
	struct gci_sockopts sockopts;
	struct gci_pacer *pacer; /* NULL: nothing was ever paced */

	struct gci_reach *reach; /* by rank */
	uint32_t *behind;        /* the same; NULL: all 0 */
	struct gci_own own;
	struct gci_tcp_peer **peers; /* by rank; NULL: not needed yet */
	uint64_t *windows; /* [rank]: those of peers that were not needed yet; NULL: any */
	struct gci_list dirty;
	struct gci_list conns;
	struct gci_list closed; /* closed connections that callers may still name */
	uint64_t connect_timeout_ns;
	unsigned nconnecting;
	int said_detour; /* that an address leads nowhere */

	struct gci_tcp_door { /* where others come in */
		uv_poll_t listen;
		int listen_fd;
		uv_timer_t accept_again; /* runs while nobody is accepted */
		struct gci_backoff backoff;
		uint64_t stranger_ns;
		unsigned nstrangers;
		struct gci_unauth unauth;     /* strangers from addresses that no rank has */
		struct gci_unauth neighbours; /* from those that one has */
		struct gci_u64set homes;      /* the latter, as numbers */
		int said_files;               /* that descriptors are short */
		int refuses;                  /* warned that none is taken: so is the end of that */
	} door;

	struct gci_tcp_loss {
		unsigned nlost;  /* connections in state LOST */
		unsigned nagain; /* peers with again_ns */
		uint64_t told_ns;
		unsigned
			untold; /* losses that were not warned of though they might be, since told_ns */
	} loss;

	/* Connections are watched by the poller. A loop of our own is watched by it, too, and runs
	 * only when it has something to do; the caller's loop watches the poller. */
	struct gci_tcp_turn {
		struct gci_poller poller;
		struct gci_watched loop_watched;
		uv_poll_t poller_watched;
		uv_loop_t *loop;
		uv_loop_t own_loop;
		int unref;        /* the loop lives as long as the caller wants */
		uv_timer_t timer; /* of progress in the caller's loop */
		uv_timer_t watch;
		uv_timer_cb on_watch;
		uv_close_cb on_closed; /* of each handle whose data is the transport */
		uv_async_t async;
		int woken;                /* by gci_tp_wake: the next wait must not wait */
		uint64_t watch_period_ns; /* for silence; 0: nobody asked */
		unsigned unlooked;        /* progress has not looked at the sockets so many times */
		unsigned nhandles;        /* libuv's, not closed yet */
	} turn;

	int stopping;
	int halted; /* failed: nothing is read any more */
	int freed;
};

/* What has something to send is looked at before progress waits. */
static inline void gci_tcp_dirty(struct gci_tcp *t, struct gci_tcp_peer *p)
{
	if (!p->dirty.next)
		gci_list_push(&t->dirty, &p->dirty);
}

/* Any handle but `timer`, when it is made. */
static inline void gci_tcp_new_handle(struct gci_tcp *t, uv_handle_t *h)
{
	if (t->turn.unref)
		uv_unref(h);
}

/* tcp_conn.c */
/* Whether a peer's HELLO says what ours says; 0 or the endpoint's failure. */
int gci_tcp_disagree(struct gci_tcp *t, const struct gci_hello *h);
/* The descriptor is its own from now on; NULL: out of memory, and it is closed. */
struct gci_conn *gci_conn_new(struct gci_tcp *t, int fd);
/* Attaches a connection to its place among the peer's, as this life of the stream; 0 or the
 * endpoint's failure. */
int gci_conn_attach(struct gci_conn *c, struct gci_tcp_peer *p, unsigned index, uint32_t life);
int gci_conn_send_hello(struct gci_conn *c, int peer, unsigned index, uint32_t life);
/* Both HELLOs are checked. */
void gci_conn_open(struct gci_conn *c);
/* True if the path's write may send something. */
static inline int gci_conn_writable(const struct gci_conn *c)
{
	return c && c->peer >= 0 && !c->blocked && !c->pace.paused && !c->send_error &&
	       (!c->tls.engine || gci_secure_is_ready(c->tls.engine)) &&
	       (c->state == GCI_CONN_GREETING || c->state == GCI_CONN_OPEN ||
		       (c->state == GCI_CONN_LEFT && c->tcp->stopping && !c->shut));
}
/* For the path: bytes were sent, or could not be. */
void gci_conn_wrote(struct gci_conn *c);
/* Bytes have come to where gci_stream_in() said. 0, or nothing more is to be read. */
int gci_conn_received(struct gci_conn *c, size_t n);
/* For the path: reading has come to the end; with `error` an errno, 0: it was closed. */
void gci_conn_finished(struct gci_conn *c, int error);
/* What happens when the poll says so; also used when a deadline has passed, since the poll may
 * only not have been asked. */
void gci_conn_event(struct gci_conn *c, int events);
void gci_conn_poll(struct gci_conn *c);
/* Its memory lives until gci_tcp_reap. */
void gci_conn_close(struct gci_conn *c);
void gci_tcp_free_closed(struct gci_tcp *t);
/* Frees closed connections; from where nobody can name one. */
static inline void gci_tcp_reap(struct gci_tcp *t)
{
	if (!gci_list_empty(&t->closed))
		gci_tcp_free_closed(t);
}

/* As readv; -1 with errno. Through TLS, to be called until EAGAIN: the poll does not report
 * again what TLS has already taken from the socket. */
ssize_t gci_conn_recv(struct gci_conn *c, const struct iovec *iov, int niov);
/* Before reading, when the poll has said that there is something. */
static inline void gci_conn_turn(struct gci_conn *c)
{
	c->tls.taken_nbytes = 0;
	c->tls.drained = 0;
}
/* How much of it, `nbytes` in all, was sent; sets c->blocked and c->send_error. If something sealed is left,
 * it goes on with what was offered before, and tells of that: niov may be 0. */
size_t gci_conn_send(struct gci_conn *c, const struct iovec *iov, int niov, size_t nbytes);
/* Nothing more can be sent, for this errno: reading comes to the end, if it would not by itself,
 * and tells of it behind what had arrived before. */
void gci_conn_send_failed(struct gci_conn *c, int error);

/* tcp_peers.c */
/* Whether it is for us to connect to this rank, and not for it. */
int gci_tcp_calls(const struct gci_tcp *t, int rank);
/* Begins to connect stream `index` to a higher rank; `again`: in place of a lost connection. */
void gci_conn_connect(struct gci_tcp *t, struct gci_tcp_peer *p, unsigned index, int again);
/* It could not be connected, for this errno: another way is tried, if there is one. */
void gci_conn_unreachable(struct gci_conn *c, int error);
/* The accepting side has hung up before it read the HELLO, as it does to silent connections when others
 * want their places. True if the connection is made once more. */
int gci_conn_redial(struct gci_conn *c);
/* Where stream `index` of a peer is, or would be, connected to. Returns `text`. */
const char *gci_conn_where(
	const struct gci_tcp *t, int rank, unsigned index, char text[GCI_ADDRESS_TEXT]);

void gci_tcp_accept_start(struct gci_tcp *t);
/* Collects the addresses that ranks may connect from: before the first connection. 0 or -1: out of
 * memory. */
int gci_tcp_expect(struct gci_tcp *t);
/* It is gone, if it was one. */
void gci_tcp_unknown(struct gci_conn *c);
/* Closes an unauthenticated connection, and logs `why`. */
void gci_tcp_turn_away(struct gci_conn *c, const char *why);
/* All of a stranger's HELLO has come. */
void gci_tcp_greeted(struct gci_conn *c);

/* The connection is lost, which the endpoint survives. Nothing is read or written any more; the
 * rest is gci_tcp_bury's, since this may be called from within a path. */
void gci_conn_lost(struct gci_conn *c, const char *cause);
void gci_tcp_bury_lost(struct gci_tcp *t);
/* Closes what is lost, and begins to make it again. */
static inline void gci_tcp_bury(struct gci_tcp *t)
{
	if (t->loss.nlost && !t->halted)
		gci_tcp_bury_lost(t);
}
void gci_tcp_on_close(void *user, int peer, const struct gci_life *life);
static inline void gci_tcp_alive(struct gci_tcp_peer *p, uint64_t now)
{
	p->alive_ns = now;
	p->ntries = 0;
}
/* The stream is there again. */
void gci_tcp_restored(struct gci_conn *c);
/* The peer has gone in order, as far as streams were there to say so. */
int gci_tcp_has_left(const struct gci_tcp *t, const struct gci_tcp_peer *p);
void gci_tcp_left(struct gci_tcp *t, struct gci_tcp_peer *p);
/* Looks at deadlines in time. */
void gci_tcp_watch(struct gci_tcp *t);
/* Makes the tries that are due, and gives up a peer that does not answer. */
void gci_tcp_try_again(struct gci_tcp *t, uint64_t now);

/* tcp_pace.c */
void gci_tcp_pace(struct gci_tp *tp, uint32_t group, const struct gci_pace *pace);
void gci_tcp_pace_peer(struct gci_tp *tp, int peer, uint64_t bps, uint32_t burst_nbytes);
void gci_tcp_window_peer(struct gci_tp *tp, int peer, uint64_t nbytes);
uint64_t gci_conn_paced_room(struct gci_conn *c, uint64_t nbytes);
void gci_conn_paced_spent(struct gci_conn *c, uint64_t nbytes, int more);
/* Before each attempt to send: how many bytes of nbytes the path may offer to the socket. 0: none
 * now; the path's write is called again. */
static inline uint64_t gci_conn_room(struct gci_conn *c, uint64_t nbytes)
{
	return c->tcp->pacer ? gci_conn_paced_room(c, nbytes) : UINT64_MAX;
}
/* From padding to data, or the other way. */
void gci_conn_set_pads(struct gci_conn *c);
/* Whether its first congestion control has done its work. */
void gci_conn_look_at_start(struct gci_conn *c);
/* What the path may offer of what the stream has: how many iovecs, the last one cut, perhaps; of
 * *all bytes, *offered. */
static inline int gci_conn_offer(
	struct gci_conn *c, struct iovec *iov, int niov, size_t *all, size_t *offered)
{
	uint64_t room;

	if (niov && c->stream.out[0].pad != c->pace.pads)
		gci_conn_set_pads(c);
	if (c->pace.starts && niov)
		gci_conn_look_at_start(c);
	*offered = *all = gci_pace_nbytes(iov, niov);
	room = *all ? gci_conn_room(c, *all) : 0;
	if (*all <= room)
		return niov;
	*offered = (size_t)room;
	return gci_pace_trim(iov, niov, room);
}
/* So many went; there is more, which the path did not offer. */
static inline void gci_conn_spent(struct gci_conn *c, uint64_t nbytes, int more)
{
	if (c->tcp->pacer)
		gci_conn_paced_spent(c, nbytes, more);
}
/* It is closed, or carries nothing any more. */
void gci_conn_unpace(struct gci_conn *c);
/* With a pacer, every now and then, while there is something to do: counts busy connections. */
void gci_tcp_pace_look(struct gci_tcp *t);
void gci_tcp_pace_free(struct gci_tcp *t);

#endif
