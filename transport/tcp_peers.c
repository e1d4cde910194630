/* SPDX-License-Identifier: MIT
 * Connections with other ranks: those that come in, are made, and are made again when they are lost.
 * This file and tcp_conn.c (one connection, and its bytes) are two halves of one thing and call each other
 * (tcp_impl.h). */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/prng.h"
#include "transport/address.h"
#include "transport/tcp_impl.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void gci_tcp_tried(struct gci_tcp *t, struct gci_tcp_peer *p, int error);
static void gci_tcp_replace(struct gci_conn *c);

/* ---- When to look at connections again. */

#define SHORT_MS 200
#define AGAIN_MS 50 /* while something is to be connected again */

void gci_tcp_watch(struct gci_tcp *t)
{
	uint64_t ms = t->turn.watch_period_ns / GCI_NS_PER_MS;

	if (t->door.nstrangers || t->nconnecting)
		ms = ms && ms < SHORT_MS ? ms : SHORT_MS;
	if (t->loss.nagain)
		ms = ms && ms < AGAIN_MS ? ms : AGAIN_MS;
	if (t->halted || !ms ||
		(uv_is_active((uv_handle_t *)&t->turn.watch) &&
			uv_timer_get_due_in(&t->turn.watch) <= ms))
		return;
	uv_update_time(t->turn.loop);
	uv_timer_start(&t->turn.watch, t->turn.on_watch, ms, 0);
}

/* ---- Connections that come in. Anyone can connect: until a connection has shown that it knows the
 * job's secret it is a stranger. There are few of them at a time, those who are silent give way to
 * those who come, and nothing they do is more than a line in the log. Whoever comes from an address
 * that no rank has does not take the places of those that do. */

#define ACCEPT_AGAIN_NS (100 * GCI_NS_PER_MS)
#define TURN_ACCEPTS    16
#define MOST_NEIGHBOURS 4096

/* One socket for several addresses listens on all there are; see on_own_address(). */
int gci_tcp_listen(const struct gci_address *at, unsigned n, const struct gci_ports *ports,
	uint32_t turn, int *fd, struct gci_reach *reach, struct gci_error *e)
{
	struct gci_address all = at[0], one;
	unsigned i, six = 0;
	int rc;

	for (i = 0; i < n; i++)
		six += at[i].any.sa_family == AF_INET6;
	if (n > 1 && gci_address_make(&all, six ? "::" : "0.0.0.0", 0))
		return gci_error_set(e, GCOLL_ERR_SYS, "no address to listen at");
	rc = gci_listen(&all, ports, turn, fd, e);
	memset(reach, 0, sizeof(*reach));
	for (i = 0; i < n && !rc; i++) {
		one = at[i];
		gci_address_set_port(&one, gci_address_port(&all));
		gci_reach_add(reach, &one);
	}
	return rc;
}

/* Whether the connection came to an address that the others were told of. Those that were left
 * out, on purpose, take none. */
static int on_own_address(const struct gci_tcp *t, int fd)
{
	const struct gci_reach *own = &t->reach[t->tp.config.rank];
	struct gci_address a = {.len = sizeof(a.v6)};
	struct gci_reach here;
	unsigned i;

	if (own->n < 2)
		return 1; /* we listen at that one only */
	if (getsockname(fd, &a.any, &a.len))
		return 0;
	here = gci_reach_of(&a);
	for (i = 0; i < own->n && here.n; i++)
		if ((own->six >> i & 1) == here.six && !memcmp(own->ip[i], here.ip[0], 16))
			return 1;
	return 0;
}

/* An address that reach.h knows, as a number. */
static uint64_t home(const struct gci_reach *r, unsigned i)
{
	return gci_digest_bytes(r->six >> i & 1, r->ip[i], sizeof(r->ip[i]));
}

/* Ranks may all call at once, with all their streams. */
static unsigned most_neighbours(const struct gci_tcp *t)
{
	uint64_t callers = (uint64_t)(t->behind ? t->tp.config.size : t->tp.config.rank);
	uint64_t most = GCI_UNAUTH_MOST + callers * GCI_TP_MAX_STREAMS;
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files))
		return GCI_UNAUTH_MOST;
	if (most > files.rlim_cur / 4)
		most = files.rlim_cur / 4;
	if (most > MOST_NEIGHBOURS)
		most = MOST_NEIGHBOURS;
	return most < GCI_UNAUTH_MOST ? GCI_UNAUTH_MOST : (unsigned)most;
}

int gci_tcp_expect(struct gci_tcp *t)
{
	uint64_t seed = gci_digest_bytes(gci_now_ns(), t->secret, GCI_TCP_SECRET_NBYTES);
	unsigned k;
	int i;

	gci_unauth_init(&t->door.unauth, GCI_UNAUTH_MOST, seed);
	gci_unauth_init(&t->door.neighbours, most_neighbours(t), seed);
	for (i = 0; i < t->tp.config.size; i++)
		for (k = 0; k < t->reach[i].n; k++)
			if (gci_u64set_add(&t->door.homes, home(&t->reach[i], k)))
				return -1;
	return 0;
}

/* The connection that gives way may have sent its HELLO meanwhile: that is read first. False: there is
 * none. */
static int one_gives_way(struct gci_unauth *unauth, const char *why)
{
	struct gci_unauth_place *p = gci_unauth_gives_way(unauth);
	struct gci_conn *c;

	if (!p)
		return 0;
	c = gci_container(p, struct gci_conn, hello.place);
	gci_conn_event(c, UV_READABLE);
	if (p->unauth)
		gci_tcp_turn_away(c, why);
	return 1;
}

static void make_way(struct gci_tcp *t, struct gci_unauth *unauth)
{
	while (gci_unauth_is_full(unauth) && !gci_ep_status(&t->ep))
		one_gives_way(unauth, "others want its place");
}

static void stranger(struct gci_tcp *t, int fd, const struct gci_address *a)
{
	struct gci_reach from = gci_reach_of(a); /* all that have none are one source */
	struct gci_unauth *unauth;
	struct gci_conn *c;

	unauth = from.n && gci_u64set_has(&t->door.homes, home(&from, 0)) ? &t->door.neighbours
									  : &t->door.unauth;
	make_way(t, unauth);
	c = gci_conn_new(t, fd);
	if (!c)
		return;
	if (gci_ep_status(&t->ep)) { /* the HELLO of the one that gave way has failed the job */
		gci_conn_close(c);
		return;
	}
	t->door.nstrangers++;
	c->hello.stranger = 1;
	gci_unauth_enter(unauth, &c->hello.place, from.ip[0]);
	c->deadline_ns = gci_now_ns() + t->door.stranger_ns;
	gci_conn_event(c, UV_READABLE); /* most speak at once, and most strangers are gone then */
	gci_tcp_watch(t);
}

/* A stranger is none any more, or gone. */
static void gci_tcp_known(struct gci_conn *c)
{
	gci_unauth_leave(&c->hello.place);
	c->tcp->door.nstrangers -= c->hello.stranger;
	c->hello.stranger = 0;
}

void gci_tcp_unknown(struct gci_conn *c)
{
	if (c->hello.stranger)
		gci_backoff_refused(&c->tcp->door.backoff, gci_now_ns());
	gci_tcp_known(c);
}

static void on_accept_again(uv_timer_t *timer)
{
	if (!gci_fork_is_child())
		gci_tcp_accept_start(timer->data);
}

/* The socket stays readable: to wait for it would spin. */
static void pause_accepting(struct gci_tcp *t, uint64_t ns)
{
	uv_poll_stop(&t->door.listen);
	uv_update_time(t->turn.loop);
	uv_timer_start(&t->door.accept_again, on_accept_again,
		(ns + GCI_NS_PER_MS - 1) / GCI_NS_PER_MS, 0);
}

/* Without descriptors a silent unauthenticated connection gives way to the new one, first one from an
 * address that no rank has. True if one was closed: a rank's stays open. */
static int shed(struct gci_tcp *t)
{
	const struct gci_list *last = t->closed.prev;

	while (!gci_ep_status(&t->ep) && t->closed.prev == last)
		if (!one_gives_way(t->door.unauth.n ? &t->door.unauth : &t->door.neighbours,
			    "no descriptors are left"))
			return 0;
	return 1;
}

/* accept failed: for lack of descriptors or memory, or because the connection is over already. */
static void accept_failed(struct gci_tcp *t)
{
	int error = errno, files = error == EMFILE || error == ENFILE;

	if (error == EAGAIN || error == EINTR || error == ECONNABORTED)
		return;
	if (files && !gci_fd_is_ready(t->door.listen_fd, POLLIN))
		return; /* the kernel looks for a descriptor first: nobody else has come */
	t->door.refuses |= !files || !t->door.said_files;
	gci_log(files && t->door.said_files ? GCI_LOG_INFO : GCI_LOG_WARN,
		"cannot take a connection now: %s; trying again%s", strerror(error),
		error == EMFILE ? ", raise the limit of open files (ulimit -n)" : "");
	t->door.said_files |= files;
	if (files && shed(t))
		return;
	pause_accepting(t, ACCEPT_AGAIN_NS);
}

static void accepted(struct gci_tcp *t)
{
	if (t->door.refuses)
		gci_log(GCI_LOG_WARN, "takes connections again");
	t->door.refuses = 0;
}

static void accept_all(struct gci_tcp *t)
{
	struct gci_address a;
	int i, fd;

	for (i = 0; i < TURN_ACCEPTS && !gci_ep_status(&t->ep); i++) {
		a.len = sizeof(a.v6);
		fd = accept4(t->door.listen_fd, &a.any, &a.len, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0) {
			accept_failed(t);
			return;
		}
		accepted(t);
		if (on_own_address(t, fd))
			stranger(t, fd, &a);
		else
			close(fd);
	}
}

static void on_listen(uv_poll_t *poll, int status, int events)
{
	struct gci_tcp *t = poll->data;
	uint64_t wait_ns = gci_backoff_wait(&t->door.backoff, gci_now_ns());

	(void)status;
	(void)events;
	if (gci_fork_is_child())
		return;
	if (wait_ns) {
		pause_accepting(t, wait_ns);
		return;
	}
	accept_all(t);
	if (t->path->flush)
		t->path->flush(t);
	gci_tcp_reap(t);
}

void gci_tcp_accept_start(struct gci_tcp *t)
{
	if (t->halted || uv_is_active((uv_handle_t *)&t->door.accept_again))
		return;
	if (!uv_is_active((uv_handle_t *)&t->door.listen))
		uv_poll_start(&t->door.listen, UV_READABLE, on_listen);
}

void gci_tcp_turn_away(struct gci_conn *c, const char *why)
{
	struct gci_address a = {.len = sizeof(a.v6)};
	char text[GCI_ADDRESS_TEXT];

	if (gci_log_enabled(GCI_LOG_INFO)) {
		if (getpeername(c->fd, &a.any, &a.len))
			a.len = 0;
		gci_address_format(&a, text);
		gci_log(GCI_LOG_INFO, "turned away a connection from %s: %s", text, why);
	}
	gci_conn_close(c);
}

static void set_options(struct gci_conn *c, const struct gci_tcp_peer *p)
{
	const struct gci_tp_link *link = &c->tcp->ep.peers[p->rank]->link;

	gci_sockopt_data(&c->tcp->sockopts, c->fd, p->rank, link);
	c->pace.starts = gci_sockopt_start(&c->tcp->sockopts, c->fd, link);
}

/* The rank and the encryption that a HELLO claims must be those of the TLS session, or of none. */
static int is_as_named(const struct gci_conn *c, const struct gci_hello *h)
{
	int encrypted = !!(h->flags & GCI_HELLO_ENCRYPTED);

	if (!c->tls.engine)
		return !encrypted;
	return encrypted && gci_secure_name(c->tls.engine).client == h->from;
}

/* A HELLO of a job whose links are open shows no secret: only where ours are, too. */
static int is_open(const struct gci_tcp *t, const uint8_t *greeting, struct gci_hello *h)
{
	static const uint8_t none[GCI_TCP_SECRET_NBYTES];
	struct gci_tp_link link = {0};

	if (gci_hello_decode(greeting, none, h, NULL) || h->from >= (uint32_t)t->tp.config.size)
		return 0;
	t->tp.config.link(t->tp.config.user, (int)h->from, &link);
	return link.open;
}

/* The peer may have lost a connection that looks whole from here. True if the stream has none. */
static int make_room(struct gci_tcp *t, const struct gci_tcp_peer *p, const struct gci_hello *h)
{
	struct gci_conn *old = p->conns[h->stream];

	if (h->flags & GCI_HELLO_REPLAY && h->life < gci_ep_next_life(&t->ep, p->rank, h->stream))
		return 0; /* and has lost this one, too */
	if (old && old->stream.life)
		gci_tcp_replace(old);
	return !p->conns[h->stream] && !gci_ep_status(&t->ep);
}

void gci_tcp_greeted(struct gci_conn *c)
{
	struct gci_tcp *t = c->tcp;
	struct gci_tcp_peer *p;
	struct gci_error e = {0};
	struct gci_hello h;

	if (gci_hello_decode(c->hello.bytes, t->secret, &h, &e) &&
		!is_open(t, c->hello.bytes, &h)) {
		gci_tcp_turn_away(c, e.text);
		return;
	}
	if (h.epoch != t->tp.config.epoch || h.to != (uint32_t)t->tp.config.rank ||
		h.from == h.to || h.from >= (uint32_t)t->tp.config.size ||
		gci_tcp_calls(t, (int)h.from) || !is_as_named(c, &h)) {
		gci_tcp_turn_away(c, "it is of this job, but not for here");
		return;
	}
	if (!gci_ep_peer(&t->ep, (int)h.from) ||
		gci_conn_send_hello(c, (int)h.from, h.stream, h.life) || gci_tcp_disagree(t, &h)) {
		gci_conn_close(c);
		return;
	}
	p = t->peers[h.from];
	if (!p || !make_room(t, p, &h)) {
		gci_tcp_turn_away(c, "that stream is connected already");
		return;
	}
	if (gci_conn_attach(c, p, h.stream, h.life)) {
		gci_conn_close(c);
		return;
	}
	gci_tcp_known(c);
	set_options(c, p);
	t->ep.peers[p->rank]->stats.streams++;
	gci_conn_open(c);
	gci_tcp_dirty(t, p);
	gci_tcp_watch(t);
}

/* ---- Making connections: between which addresses, and what to do when that leads nowhere. */

#define MOST_REDIALS 20

/* Whether a firewall keeps rank a from connecting to rank b. */
static int is_kept_out(const struct gci_tcp *t, int a, int b)
{
	return t->behind && t->behind[b] && t->behind[b] != t->behind[a];
}

int gci_tcp_calls(const struct gci_tcp *t, int rank)
{
	int self = t->tp.config.rank;

	if (is_kept_out(t, self, rank))
		return 0;
	return is_kept_out(t, rank, self) || self < rank;
}

/* Both ends of a stream. */
static int ends(const struct gci_tcp *t, const struct gci_tcp_peer *p, unsigned index,
	struct gci_address *from, struct gci_address *to)
{
	uint32_t turn = gci_reach_turn((uint32_t)t->tp.config.rank, (uint32_t)p->rank) + index;

	return gci_reach_pair(&t->own, &t->reach[p->rank], turn, p->attempt[index], from, to);
}

const char *gci_conn_where(
	const struct gci_tcp *t, int rank, unsigned index, char text[GCI_ADDRESS_TEXT])
{
	struct gci_address from, to;

	ends(t, t->peers[rank], index, &from, &to);
	gci_address_format(&to, text);
	return text;
}

#define WAY_TEXT (2 * GCI_ADDRESS_TEXT + 8)

/* "10.1.0.2:5000", or with our end "10.1.0.2:5000 from 10.1.0.1". */
static const char *way(
	const struct gci_tcp *t, const struct gci_tcp_peer *p, unsigned index, char text[WAY_TEXT])
{
	char there[GCI_ADDRESS_TEXT], here[GCI_ADDRESS_TEXT];
	struct gci_address from, to;

	ends(t, p, index, &from, &to);
	gci_address_format(&to, there);
	gci_address_ip(&from, here);
	snprintf(text, WAY_TEXT, "%s%s%s", there, t->own.leave_from ? " from " : "",
		t->own.leave_from ? here : "");
	return text;
}

/* Of what a peer's streams may take together, each of the ways that they can go gets its part. */
static uint64_t patience_ns(const struct gci_tcp *t, int rank)
{
	return t->connect_timeout_ns / gci_reach_npairs(&t->own, &t->reach[rank]);
}

static const char *cause(const struct gci_conn *c, int error, char *text, size_t size)
{
	if (error == ETIMEDOUT && gci_now_ns() >= c->deadline_ns)
		snprintf(text, size, "no answer within %.1f s",
			(double)patience_ns(c->tcp, c->peer) / (double)GCI_NS_PER_S);
	else
		snprintf(text, size, "%s", strerror(error));
	return text;
}

/* A way led nowhere: the next one, if there is another. */
static void go_another_way(struct gci_conn *c, int error)
{
	struct gci_tcp *t = c->tcp;
	struct gci_tcp_peer *p = t->peers[c->peer];
	char bad[WAY_TEXT], good[WAY_TEXT], why[80];
	unsigned index = c->stream.index;

	cause(c, error, why, sizeof(why));
	way(t, p, index, bad);
	if (p->attempt[index] + 1u >= gci_reach_npairs(&t->own, &t->reach[p->rank])) {
		gci_ep_fail(&t->ep, GCOLL_ERR_PEER, p->rank,
			"cannot connect to rank %d at %s: %s%s", p->rank, bad, why,
			p->attempt[index] ? ", nor by any other way" : "");
		return;
	}
	p->attempt[index]++;
	gci_log(t->said_detour ? GCI_LOG_INFO : GCI_LOG_WARN,
		"rank %d: cannot connect to rank %d at %s: %s; trying %s", t->tp.config.rank,
		p->rank, bad, why, way(t, p, index, good));
	t->said_detour = 1;
	gci_conn_close(c);
	gci_conn_connect(t, p, index, 0);
}

void gci_conn_unreachable(struct gci_conn *c, int error)
{
	struct gci_tcp *t = c->tcp;

	if (c->again || c->probes) {
		struct gci_tcp_peer *p = t->peers[c->probes ? c->probes - 1 : c->peer];

		gci_conn_close(c);
		gci_tcp_tried(t, p, error);
	} else {
		go_another_way(c, error);
	}
}

int gci_conn_redial(struct gci_conn *c)
{
	struct gci_tcp *t = c->tcp;
	struct gci_tcp_peer *p = t->peers[c->peer];
	unsigned index = c->stream.index;

	/* Where a loss is survived, that is one. */
	if (c->stream.life || p->redials[index] >= MOST_REDIALS)
		return 0;
	p->redials[index]++;
	if (c->state != GCI_CONN_CONNECTING)
		t->ep.peers[c->peer]->stats.streams--;
	gci_log(GCI_LOG_INFO, "rank %d: rank %d has hung up at once; calling it again",
		t->tp.config.rank, p->rank);
	gci_conn_close(c);
	gci_conn_connect(t, p, index, 0);
	return 1;
}

/* Begins to connect; -1 with errno. The kernel picks the port when it knows both ends, so that one
 * address has ports for as many connections as there are peers. */
static int dial(const struct gci_tcp *t, int fd, const struct gci_address *from,
	const struct gci_address *to)
{
	int yes = 1;

	if (t->own.leave_from) {
		setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof(yes));
		if (bind(fd, &from->any, from->len))
			return -1;
	}
	if (connect(fd, &to->any, to->len) && errno != EINPROGRESS && errno != EINTR)
		return -1;
	return 0;
}

/* A connection to `to`, not attached yet; NULL: failed. */
static struct gci_conn *new_caller(struct gci_tcp *t, int rank, const struct gci_address *to)
{
	int fd = socket(to->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0) {
		gci_ep_fail(&t->ep, GCOLL_ERR_SYS, -1, "no socket for a connection to rank %d: %s",
			rank, strerror(errno));
		return NULL;
	}
	return gci_conn_new(t, fd);
}

static void call(
	struct gci_conn *c, int rank, const struct gci_address *from, const struct gci_address *to)
{
	struct gci_tcp *t = c->tcp;

	c->state = GCI_CONN_CONNECTING;
	t->nconnecting++;
	c->deadline_ns = gci_now_ns() + patience_ns(t, rank);
	if (dial(t, c->fd, from, to)) {
		gci_conn_unreachable(c, errno);
		return;
	}
	gci_conn_poll(c);
	gci_tcp_watch(t);
}

void gci_conn_connect(struct gci_tcp *t, struct gci_tcp_peer *p, unsigned index, int again)
{
	struct gci_address from, to;
	struct gci_conn *c;

	ends(t, p, index, &from, &to);
	c = new_caller(t, p->rank, &to);
	if (!c)
		return;
	c->again = again;
	if (gci_conn_attach(c, p, index, gci_ep_next_life(&t->ep, p->rank, index))) {
		gci_conn_close(c);
		return;
	}
	set_options(c, p);
	call(c, p->rank, &from, &to);
}

/* Connects to any rank, only to learn whether somebody is there. */
static void gci_conn_probe(struct gci_tcp *t, struct gci_tcp_peer *p)
{
	struct gci_address from, to;
	struct gci_conn *c;

	/* Any of the cards may be what was lost. */
	ends(t, p, p->nprobes++ % t->ep.peers[p->rank]->link.streams, &from, &to);
	c = new_caller(t, p->rank, &to);
	if (!c)
		return;
	c->probes = 1 + p->rank;
	call(c, p->rank, &from, &to);
}

/* ---- Connections that are lost, on links with replay: the connecting side connects again. As long as any
 * stream to the peer is left it tries for ever; when all are lost, until the peer is known to be
 * dead: nobody listens at its port any more, or the network gives no sign of it for dead_ns. The
 * higher rank, which waits to be connected to, looks for the same signs by connecting to the
 * peer's port and closing at once. */

#define FIRST_PAUSE_NS (50 * GCI_NS_PER_MS)
#define MOST_PAUSE_NS  (2 * GCI_NS_PER_S)
#define LEAST_TRIES    8
#define TELL_NS        GCI_NS_PER_S /* between two warnings */
#define REMEDY         64           /* bytes of text */

/* A peer that was killed, or leaves since the job ends, closes its connections before the launcher can
 * say what is wrong. So a loss is warned of when the job goes on: when the peer has made the connection
 * again with us, or tries have been in vain for a while. */
static void hold_warning(const struct gci_conn *c, const char *cause)
{
	struct gci_tcp *t = c->tcp;
	struct gci_tcp_peer *p = t->peers[c->peer];

	gci_log(GCI_LOG_INFO, "rank %d: lost stream %u to rank %d: %s", t->tp.config.rank,
		c->stream.index, c->peer, cause);
	/* One that never was there is not missed: the peer may be leaving. */
	if (t->stopping || c->state != GCI_CONN_OPEN)
		return;
	if (!p->nheld++) {
		p->held_ns = gci_now_ns();
		p->held_stream = c->stream.index;
		snprintf(p->held_cause, sizeof(p->held_cause), "%s", cause);
	}
}

/* Streams whose connections have had the peer's HELLO. */
static unsigned nopen(const struct gci_tcp *t, const struct gci_tcp_peer *p)
{
	unsigned i, n = 0;

	for (i = 0; i < t->ep.peers[p->rank]->link.streams; i++)
		n += p->conns[i] && p->conns[i]->state == GCI_CONN_OPEN;
	return n;
}

/* What the transport does about a lost stream. */
static const char *remedy(const struct gci_tcp *t, const struct gci_tcp_peer *p, char text[REMEDY])
{
	unsigned left = nopen(t, p);
	const char *again =
		gci_tcp_calls(t, p->rank) ? "reconnecting" : "waiting for it to connect";

	if (left)
		snprintf(text, REMEDY, "using the other %u, %s", left, again);
	else
		snprintf(text, REMEDY, "none is left, %s", again);
	return text;
}

/* Warns of the losses held for this peer, if any: `next` says what follows. True if it was said. */
static int warn(struct gci_tcp *t, struct gci_tcp_peer *p, uint64_t now, const char *next)
{
	unsigned others = t->loss.untold + p->nheld - 1;
	char more[48] = "";

	if (!p->nheld)
		return 0;
	t->loss.untold += p->nheld;
	p->nheld = 0;
	if (t->loss.told_ns && now - t->loss.told_ns < TELL_NS)
		return 0;
	if (others)
		snprintf(more, sizeof(more), " (and %u others before)", others);
	t->loss.told_ns = now;
	t->loss.untold = 0;
	gci_log(t->stopping ? GCI_LOG_INFO : GCI_LOG_WARN,
		"rank %d: lost stream %u of %u to rank %d (%s); %s%s", t->tp.config.rank,
		p->held_stream, t->ep.peers[p->rank]->link.streams, p->rank, p->held_cause, next,
		more);
	return 1;
}

void gci_conn_lost(struct gci_conn *c, const char *cause)
{
	struct gci_tcp *t = c->tcp;
	struct gci_tcp_peer *p = t->peers[c->peer];

	if (c->state == GCI_CONN_LOST || c->state == GCI_CONN_CLOSED || gci_ep_status(&t->ep))
		return;
	snprintf(p->cause, sizeof(p->cause), "%s", cause);
	hold_warning(c, cause);
	if (c->state != GCI_CONN_OPEN)
		c->mute = 1;
	c->state = GCI_CONN_LOST;
	c->blocked = 0;
	t->loss.nlost++;
	gci_conn_poll(c);
}

void gci_tcp_on_close(void *user, int peer, const struct gci_life *life)
{
	struct gci_tcp *t = user;
	unsigned i;

	for (i = 0; i < t->ep.peers[peer]->link.streams; i++) {
		struct gci_conn *c = t->peers[peer]->conns[i];

		if (c && c->stream.life == life)
			gci_conn_lost(c, "the peer has lost it");
	}
}

int gci_tcp_has_left(const struct gci_tcp *t, const struct gci_tcp_peer *p)
{
	const struct gci_ep_peer *e = t->ep.peers[p->rank];

	if (e->replay) /* its goodbye says that nothing is missing */
		return e->leaving && !e->stats.streams;
	return p->nleft == e->link.streams;
}

static void set_again(struct gci_tcp *t, struct gci_tcp_peer *p, uint64_t at_ns)
{
	t->loss.nagain += !p->again_ns;
	t->loss.nagain -= !at_ns;
	p->again_ns = at_ns;
}

void gci_tcp_left(struct gci_tcp *t, struct gci_tcp_peer *p)
{
	set_again(t, p, 0);
	if (!t->stopping)
		gci_ep_left(&t->ep, p->rank);
}

/* Nobody answers any more. */
static void give_up(struct gci_tcp *t, struct gci_tcp_peer *p, const char *why)
{
	if (gci_tcp_has_left(t, p))
		gci_tcp_left(t, p);
	else
		gci_ep_fail(&t->ep, GCOLL_ERR_PEER, p->rank, "rank %d died: %s; then %s", p->rank,
			p->cause, why);
}

static int alone(const struct gci_tcp *t, const struct gci_tcp_peer *p)
{
	return !t->ep.peers[p->rank]->stats.streams;
}

static uint64_t limit_ns(const struct gci_tcp *t, const struct gci_tcp_peer *p)
{
	uint64_t dead_ns = t->ep.peers[p->rank]->link.dead_ns;

	return dead_ns ? dead_ns : t->connect_timeout_ns;
}

/* That one or two tries are in vain must not decide. Nor that time has passed in which we have not
 * tried: the program may have computed. */
static int is_dead(const struct gci_tcp *t, const struct gci_tcp_peer *p, uint64_t now)
{
	return alone(t, p) && p->ntries >= LEAST_TRIES && now - p->alive_ns >= limit_ns(t, p);
}

static uint64_t most_pause_ns(const struct gci_tcp *t, const struct gci_tcp_peer *p)
{
	uint64_t ns = limit_ns(t, p) / LEAST_TRIES;

	return ns < MOST_PAUSE_NS ? ns : MOST_PAUSE_NS;
}

/* Begins to connect all that are missing, or to look whether the peer is there. */
static void try_peer(struct gci_tcp *t, struct gci_tcp_peer *p, uint64_t now)
{
	char next[REMEDY];
	unsigned i;

	if (is_dead(t, p, now)) {
		give_up(t, p, "it did not answer");
		return;
	}
	if (now - p->held_ns >= MOST_PAUSE_NS && warn(t, p, now, remedy(t, p, next)))
		p->warned = 1;
	p->ntries++;
	p->pause_ns = p->pause_ns ? 2 * p->pause_ns : FIRST_PAUSE_NS;
	if (p->pause_ns > most_pause_ns(t, p))
		p->pause_ns = most_pause_ns(t, p);
	set_again(t, p, now + p->pause_ns);
	if (!gci_tcp_calls(t, p->rank)) {
		/* What a firewall answers says nothing of the peer. */
		if (alone(t, p) && (!t->behind || !t->behind[p->rank]))
			gci_conn_probe(t, p);
		return;
	}
	for (i = 0; i < t->ep.peers[p->rank]->link.streams && !gci_ep_status(&t->ep); i++)
		if (!p->conns[i] && p->again_ns)
			gci_conn_connect(t, p, i, 1);
}

/* An attempt to connect, or to probe, has ended; `error` an errno or 0. */
static void gci_tcp_tried(struct gci_tcp *t, struct gci_tcp_peer *p, int error)
{
	if (!error)
		gci_tcp_alive(p, gci_now_ns());
	if (error == ECONNREFUSED && alone(t, p) && p->again_ns)
		give_up(t, p, "nobody listened at its port");
}

void gci_tcp_try_again(struct gci_tcp *t, uint64_t now)
{
	int i;

	for (i = 0; i < t->tp.config.size && t->loss.nagain && !gci_ep_status(&t->ep); i++)
		if (t->peers[i] && t->peers[i]->again_ns && now >= t->peers[i]->again_ns)
			try_peer(t, t->peers[i], now);
}

static void bury(struct gci_conn *c, uint64_t now)
{
	struct gci_tcp *t = c->tcp;
	struct gci_tcp_peer *p = t->peers[c->peer];

	t->loss.nlost--;
	t->ep.peers[c->peer]->stats.streams--;
	if (!c->mute || !p->alive_ns) /* the first one may be lost in its greeting */
		gci_tcp_alive(p, now);
	if (c->open_ns && now - c->open_ns > MOST_PAUSE_NS)
		p->pause_ns = 0; /* it was good for a while: worth a try at once */
	gci_conn_close(c);
	if (gci_ep_status(&t->ep))
		return;
	if (gci_tcp_has_left(t, p))
		gci_tcp_left(t, p);
	else
		set_again(t, p, now + p->pause_ns);
}

/* The peer has made a new connection in place of this one. */
static void gci_tcp_replace(struct gci_conn *c)
{
	gci_conn_lost(c, "the peer has connected it again");
	if (c->state == GCI_CONN_LOST)
		bury(c, gci_now_ns());
}

void gci_tcp_bury_lost(struct gci_tcp *t)
{
	uint64_t now = gci_now_ns();
	struct gci_list *it, *next;

	for (it = t->conns.next; it != &t->conns && !gci_ep_status(&t->ep); it = next) {
		struct gci_conn *c = gci_container(it, struct gci_conn, link);

		next = it->next;
		if (c->state == GCI_CONN_LOST)
			bury(c, now);
	}
	gci_tcp_try_again(t, now);
	gci_tcp_watch(t);
}

/* One that is being connected may yet fail, and is tried again then. */
static int all_open(const struct gci_tcp *t, const struct gci_tcp_peer *p)
{
	unsigned i;

	for (i = 0; i < t->ep.peers[p->rank]->link.streams; i++)
		if (!p->conns[i] || p->conns[i]->state == GCI_CONN_CONNECTING)
			return 0;
	return 1;
}

void gci_tcp_restored(struct gci_conn *c)
{
	struct gci_tcp *t = c->tcp;
	struct gci_tcp_peer *p = t->peers[c->peer];

	t->ep.peers[c->peer]->stats.restored++;
	if (p->again_ns && all_open(t, p))
		set_again(t, p, 0);
	warn(t, p, gci_now_ns(), "it is connected again");
	if (p->warned && nopen(t, p) == t->ep.peers[c->peer]->link.streams) {
		p->warned = 0;
		gci_log(t->stopping ? GCI_LOG_INFO : GCI_LOG_WARN,
			"rank %d: every lost stream to rank %d is connected again",
			t->tp.config.rank, c->peer);
	}
	gci_log(GCI_LOG_INFO, "rank %d: stream %u to rank %d is there again", t->tp.config.rank,
		c->stream.index, c->peer);
}
