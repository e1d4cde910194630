/* SPDX-License-Identifier: MIT
 * One connection, and its bytes. This file and tcp_peers.c are two halves of one thing and call each other
 * (tcp_impl.h): there connections are made, come in, are lost and made again. */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "transport/records.h"
#include "transport/tcp_impl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- A connection's bytes: plain, or through TLS where its link is encrypted. The kernel's socket is
 * touched here only, but for io_uring (path_uring.c), which takes plain connections. */

#define FEW_NBYTES 512

/* For the engine: what the socket has, as much as others leave us in this turn. */
static ssize_t take(void *user, void *buf, size_t n)
{
	struct gci_conn *c = user;
	ssize_t got;

	if (c->hello.first_at < c->hello.nfirst) {
		n = n < c->hello.nfirst - c->hello.first_at ? n
							    : c->hello.nfirst - c->hello.first_at;
		memcpy(buf, c->hello.bytes + c->hello.first_at, n);
		c->hello.first_at += n;
		return (ssize_t)n;
	}
	if (c->tls.drained || c->tls.taken_nbytes >= GCI_PATH_TURN_NBYTES)
		return -EAGAIN;
	do {
		got = recv(c->fd, buf, n, 0);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	c->tls.taken_nbytes += (size_t)got;
	c->tls.midway_ns = 0;
	c->tls.drained = got && (size_t)got < n; /* the poll tells when there is more */
	return got;
}

static ssize_t recv_secure(struct gci_conn *c, const struct iovec *iov, int niov)
{
	struct gci_error e = {0};
	ssize_t n;

	n = gci_secure_read(c->tls.engine, iov, niov, &e);
	if (n >= 0)
		return n;
	if (n == -EBADMSG)
		gci_log(GCI_LOG_WARN,
			"rank %d: from rank %d: %s; closing this connection for a new one",
			c->tcp->tp.config.rank, c->peer, e.text);
	errno = (int)-n;
	return -1;
}

ssize_t gci_conn_recv(struct gci_conn *c, const struct iovec *iov, int niov)
{
	ssize_t n;

	if (c->tls.engine)
		return recv_secure(c, iov, niov);
	do {
		n = niov > 1 ? readv(c->fd, iov, niov)
			     : recv(c->fd, iov[0].iov_base, iov[0].iov_len, 0);
	} while (n < 0 && errno == EINTR);
	return n;
}

/* Few bytes are put together: that costs less than the kernel's way through many pieces. */
static ssize_t offer(int fd, const struct iovec *iov, int niov, size_t nbytes)
{
	struct msghdr msg = {.msg_iov = (struct iovec *)(uintptr_t)iov, .msg_iovlen = (size_t)niov};
	uint8_t few[FEW_NBYTES];
	size_t at = 0;
	int i;

	if (nbytes > sizeof(few))
		return sendmsg(fd, &msg, MSG_NOSIGNAL);
	for (i = 0; i < niov; at += iov[i++].iov_len)
		memcpy(few + at, iov[i].iov_base, iov[i].iov_len);
	return send(fd, few, nbytes, MSG_NOSIGNAL);
}

void gci_conn_send_failed(struct gci_conn *c, int error)
{
	c->send_error = error;
	shutdown(c->fd, SHUT_RDWR);
}

/* -1 with errno, or how much the socket took. */
static ssize_t send_once(struct gci_conn *c, const struct iovec *iov, int niov, size_t nbytes)
{
	ssize_t n;

	do {
		n = offer(c->fd, iov, niov, nbytes);
	} while (n < 0 && errno == EINTR);
	if (n < 0 && errno != EAGAIN)
		gci_conn_send_failed(c, errno);
	return n;
}

/* Sends what is encrypted. True if nothing of it is left. */
static int push(struct gci_conn *c)
{
	struct iovec iov;
	ssize_t n;

	iov.iov_base = (void *)(uintptr_t)gci_secure_out(c->tls.engine, &iov.iov_len);
	while (iov.iov_len) {
		n = send_once(c, &iov, 1, iov.iov_len);
		if (n < 0) {
			c->blocked = !c->send_error;
			return 0;
		}
		gci_secure_sent(c->tls.engine, (size_t)n);
		iov.iov_base = (void *)(uintptr_t)gci_secure_out(c->tls.engine, &iov.iov_len);
	}
	return 1;
}

/* What was encrypted together counts as sent when all of it is: until then the frames stand where
 * they stood, and are not given out again. */
static size_t send_secure(struct gci_conn *c, const struct iovec *iov, int niov)
{
	struct gci_error e = {0};
	size_t gone = 0;
	ssize_t n;

	do {
		n = 0;
		if (!c->tls.sealed_nbytes)
			n = gci_secure_write(c->tls.engine, iov, niov, gone, &e);
		if (n < 0) {
			gci_log(GCI_LOG_WARN,
				"rank %d: to rank %d: %s; closing this connection for a new one",
				c->tcp->tp.config.rank, c->peer, e.text);
			gci_conn_send_failed(c, (int)-n);
			break;
		}
		c->tls.sealed_nbytes += (size_t)n;
		if (!c->tls.sealed_nbytes || !push(c))
			break;
		gone += c->tls.sealed_nbytes;
		c->tls.sealed_nbytes = 0;
	} while (1);
	return gone;
}

size_t gci_conn_send(struct gci_conn *c, const struct iovec *iov, int niov, size_t nbytes)
{
	ssize_t n;

	if (c->tls.engine)
		return send_secure(c, iov, niov);
	if (!nbytes)
		return 0;
	n = send_once(c, iov, niov, nbytes);
	if (!c->send_error && (n < 0 || (size_t)n < nbytes))
		c->blocked = 1;
	return n > 0 ? (size_t)n : 0;
}

/* The HELLO of this side. */
static struct gci_hello hello_to(const struct gci_tcp *t, int peer, unsigned index)
{
	const struct gci_tp_link *link = &t->ep.peers[peer]->link;

	return (struct gci_hello){.epoch = t->tp.config.epoch,
		.from = (uint32_t)t->tp.config.rank,
		.to = (uint32_t)peer,
		.stream = index,
		.streams = link->streams,
		.eager_nbytes = link->eager_nbytes,
		.size = (uint32_t)t->tp.config.size,
		.flags = (link->unchecked ? GCI_HELLO_UNCHECKED : 0u) |
			 (link->replay_nbytes ? GCI_HELLO_REPLAY : 0u) |
			 (link->encrypted ? GCI_HELLO_ENCRYPTED : 0u)};
}

/* What a peer's HELLO is made with: the job's secret, or zeros where the link is open. */
static const uint8_t *secret_of(const struct gci_tcp *t, int peer)
{
	static const uint8_t none[GCI_TCP_SECRET_NBYTES];

	return t->ep.peers[peer]->link.open ? none : t->secret;
}

/* ", checksums on, replay off, ..."; without the nouns: ", on, off, ...". */
static const char *flags_text(uint64_t flags, int nouns, char *text, size_t size)
{
	static const struct {
		uint64_t bit;
		const char *noun;
		int on;
	} rows[] = {
#define GCI_HELLO_ROW(name, bit, noun, on) {GCI_HELLO_##name, noun " ", on},
		GCI_HELLO_FLAGS(GCI_HELLO_ROW)
#undef GCI_HELLO_ROW
	};
	size_t i, n = 0;

	for (i = 0; i < sizeof(rows) / sizeof(*rows) && n < size; i++)
		n += (size_t)snprintf(text + n, size - n, ", %s%s", nouns ? rows[i].noun : "",
			!(flags & rows[i].bit) == !rows[i].on ? "on" : "off");
	return text;
}

int gci_tcp_disagree(struct gci_tcp *t, const struct gci_hello *h)
{
	struct gci_hello own = hello_to(t, (int)h->from, h->stream);
	char there[160], here[80];

	if (h->streams == own.streams && h->eager_nbytes == own.eager_nbytes &&
		h->size == own.size && h->stream < own.streams && h->flags == own.flags)
		return 0;
	return gci_ep_fail(&t->ep, GCOLL_ERR_MISMATCH, (int)h->from,
		"rank %u and rank %d disagree: %u streams, %u eager bytes, %u ranks%s there; "
		"%u, %u, %u%s here",
		h->from, t->tp.config.rank, h->streams, h->eager_nbytes, h->size,
		flags_text(h->flags, 1, there, sizeof(there)), own.streams, own.eager_nbytes,
		own.size, flags_text(own.flags, 0, here, sizeof(here)));
}

/* The transport's, made when the first connection needs it. */
static struct gci_secure_ctx *context(struct gci_tcp *t, struct gci_error *e)
{
	struct gci_secure_config config = {.epoch = t->tp.config.epoch,
		.self = (uint32_t)t->tp.config.rank,
		.size = (uint32_t)t->tp.config.size,
		.rekey_records = t->rekey_records};

	if (t->secure)
		return t->secure;
	memcpy(config.secret, t->secret, sizeof(config.secret));
	if (!gci_secure_ctx_create(&t->secure, &config, e))
		gci_log(GCI_LOG_INFO, "TLS 1.3 in user space, TLS_AES_128_GCM_SHA256%s",
			t->path == t->polled ? ""
					     : "; connections with it are polled, "
					       "not io_uring's");
	OPENSSL_cleanse(&config, sizeof(config));
	return t->secure;
}

/* TLS begins, to the peer: 0, or an error to be told. */
static int gci_conn_secure(struct gci_conn *c, struct gci_error *e)
{
	struct gci_tcp *t = c->tcp;
	struct gci_secure_name name = {.epoch = t->tp.config.epoch,
		.client = (uint32_t)t->tp.config.rank,
		.server = (uint32_t)c->peer};
	struct gci_secure_ctx *ctx = context(t, e);

	return ctx ? gci_secure_create(&c->tls.engine, ctx, &name, take, c, e) : e->status;
}

/* A stranger's first bytes are those of TLS; begins it when that makes sense. 1: it has begun; 0:
 * more is to come; -1 with the reason. */
static int gci_conn_answer(struct gci_conn *c, struct gci_error *e)
{
	const struct iovec alert = {(void *)(uintptr_t)gci_secure_alert, GCI_SECURE_ALERT};
	struct gci_secure_ctx *ctx = context(c->tcp, e);
	int rc =
		ctx ? gci_secure_answer(&c->tls.engine, ctx, c->hello.bytes, c->hello.n, take, c, e)
		    : -1;

	/* A rank of another job, perhaps, that should know why. */
	if (rc == GCI_SECURE_NO_KEY)
		offer(c->fd, &alert, 1, alert.iov_len);
	if (rc <= 0)
		return rc;
	c->hello.nfirst = c->hello.n;
	c->hello.n = 0;
	return 1;
}

/* Goes on with its handshake; see gci_secure_shake. */
static int gci_conn_shake(struct gci_conn *c, struct gci_error *e)
{
	int rc = gci_secure_shake(c->tls.engine, e);

	/* A few hundred bytes, the first ones on a socket: its buffer takes them whole. */
	if (!push(c) && rc >= 0)
		rc = c->send_error ? -c->send_error : -ENOBUFS;
	return rc;
}

static int gci_conn_holds(const struct gci_conn *c)
{
	return c->tls.sealed_nbytes > 0;
}

/* ---- The connection: greet, then bytes between the socket and the stream. */

/* Trying to read or write finds an error that is pending, behind what had arrived before. */
static void on_ready(struct gci_watched *w, int events)
{
	struct gci_conn *c = gci_container(w, struct gci_conn, watched);

	gci_conn_event(c, events);
	if (c->tcp->path->flush)
		c->tcp->path->flush(c->tcp);
}

struct gci_conn *gci_conn_new(struct gci_tcp *t, int fd)
{
	struct gci_conn *c = gci_calloc(1, sizeof(*c));

	if (!c) {
		close(fd);
		gci_ep_fail(&t->ep, GCOLL_ERR_NOMEM, -1, "out of memory for a connection");
		return NULL;
	}
	c->watched = (struct gci_watched){.fd = fd, .ready = on_ready};
	c->tcp = t;
	c->fd = fd;
	c->peer = -1;
	c->state = GCI_CONN_GREETING;
	gci_list_push(&t->conns, &c->link);
	return c;
}

void gci_tcp_free_closed(struct gci_tcp *t)
{
	while (!gci_list_empty(&t->closed)) {
		struct gci_conn *c = gci_container(t->closed.next, struct gci_conn, link);

		gci_list_del(&c->link);
		gci_free(c);
	}
}

void gci_conn_close(struct gci_conn *c)
{
	struct gci_tcp *t = c->tcp;

	if (c->state == GCI_CONN_CLOSED)
		return;
	if (c->state == GCI_CONN_CONNECTING)
		t->nconnecting--;
	gci_tcp_unknown(c);
	if (c->peer >= 0) {
		gci_conn_unpace(c);
		c->path->detach(c);
		if (c->state == GCI_CONN_CONNECTING)
			gci_stream_unbegin(&c->stream);
		else if (c->state == GCI_CONN_LOST)
			gci_stream_lose(&c->stream);
		t->peers[c->peer]->conns[c->stream.index] = NULL;
		t->peers[c->peer]->nconns--;
		gci_stream_deinit(&c->stream);
	}
	gci_secure_free(c->tls.engine);
	c->tls.engine = NULL;
	c->state = GCI_CONN_CLOSED;
	gci_taps_remove(t->tp.config.taps, c->fd);
	gci_list_del(&c->link);
	gci_list_push(&t->closed, &c->link);
	gci_poller_watch(&t->turn.poller, &c->watched, 0);
	close(c->fd);
}

/* Waits for what there is to wait for. */
void gci_conn_poll(struct gci_conn *c)
{
	int rc, events = c->state == GCI_CONN_GREETING ? UV_READABLE : 0;

	if (c->tcp->halted || c->state == GCI_CONN_CLOSED)
		return;
	if (c->state == GCI_CONN_CONNECTING)
		events = UV_WRITABLE;
	else if (c->peer >= 0)
		events |= c->path->events(c);
	rc = gci_poller_watch(&c->tcp->turn.poller, &c->watched, events);
	if (rc)
		gci_ep_fail(&c->tcp->ep, GCOLL_ERR_SYS, -1, "a connection cannot be watched: %s",
			strerror(-rc));
}

int gci_conn_attach(struct gci_conn *c, struct gci_tcp_peer *p, unsigned index, uint32_t life)
{
	struct gci_tcp *t = c->tcp;

	if (gci_stream_init(&c->stream, &t->ep, p->rank, index, life))
		return gci_ep_status(&t->ep);
	c->peer = p->rank;
	c->stream.bye = t->stopping;
	c->path = t->ep.peers[p->rank]->link.encrypted ? t->polled : t->path;
	if (c->path->attach(c)) {
		gci_stream_deinit(&c->stream);
		c->peer = -1;
		return gci_ep_fail(&t->ep, GCOLL_ERR_NOMEM, -1, "out of memory for a connection");
	}
	p->conns[index] = c;
	p->nconns++;
	if (p->window_nbytes && !gci_sockopt_window(c->fd, p->window_nbytes))
		p->window_nbytes = 0;
	return 0;
}

/* The number of its life; 0: its link has no replay. */
static uint32_t gci_conn_life(const struct gci_conn *c)
{
	return c->stream.life ? c->stream.life->number : 0;
}

void gci_conn_open(struct gci_conn *c)
{
	c->state = GCI_CONN_OPEN;
	c->open_ns = gci_now_ns();
	c->path->start(c);
	gci_taps_add(c->tcp->tp.config.taps, c->fd, c->peer, c->stream.index);
	if (gci_conn_life(c) > 1)
		gci_tcp_restored(c);
}

int gci_conn_send_hello(struct gci_conn *c, int peer, unsigned index, uint32_t life)
{
	struct gci_hello h = hello_to(c->tcp, peer, index);
	uint8_t bytes[GCI_HELLO_NBYTES];
	struct iovec iov = {.iov_base = bytes, .iov_len = sizeof(bytes)};

	h.life = life;
	if (gci_hello_encode(&h, secret_of(c->tcp, peer), bytes))
		return gci_ep_fail(&c->tcp->ep, GCOLL_ERR_NOMEM, -1, "out of memory for a hello");
	/* The first bytes on a socket: its buffer takes them whole. */
	if (gci_conn_send(c, &iov, 1, sizeof(bytes)) != sizeof(bytes) && !c->send_error)
		gci_conn_send_failed(c, ENOBUFS);
	return 0;
}

/* Says who we are; frames may follow at once. */
static void introduce(struct gci_conn *c)
{
	if (!gci_conn_send_hello(c, c->peer, c->stream.index, gci_conn_life(c)))
		gci_tcp_dirty(c->tcp, c->tcp->peers[c->peer]);
}

/* Of a peer that was there, its next connection may only be damaged, or its port somebody else's by
 * now: that is no worse than no answer. */
static void not_ours(struct gci_conn *c, const char *why)
{
	char where[GCI_ADDRESS_TEXT], text[240];

	snprintf(text, sizeof(text), "whoever listens at %s is not rank %d of this job: %.100s",
		gci_conn_where(c->tcp, c->peer, c->stream.index, where), c->peer, why);
	if (c->again && c->stream.life)
		gci_conn_lost(c, text);
	else
		gci_ep_fail(&c->tcp->ep, GCOLL_ERR_PROTO, c->peer, "%s", text);
}

/* The handshake of TLS. True once HELLOs may be exchanged. */
static int shake(struct gci_conn *c)
{
	struct gci_error e = {0};
	int rc;

	if (!c->tls.engine || gci_secure_is_ready(c->tls.engine))
		return 1;
	rc = gci_conn_shake(c, &e);
	if (gci_secure_has_shown(c->tls.engine))
		gci_unauth_leave(&c->hello.place);
	if (rc > 0 && c->peer >= 0)
		introduce(c);
	else if (rc < 0 && c->peer < 0)
		gci_tcp_turn_away(c, e.text);
	else if (rc == -EPROTO)
		not_ours(c, e.text);
	else if (rc < 0)
		gci_conn_finished(c, rc == -ECONNRESET ? 0 : -rc);
	return rc > 0 && !gci_ep_status(&c->tcp->ep);
}

/* The other side says nothing before we do. */
static int hung_up(const struct gci_conn *c)
{
	char byte;
	ssize_t n = recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	return !n || (n < 0 && errno == ECONNRESET);
}

static void connected(struct gci_conn *c)
{
	struct gci_tcp *t = c->tcp;
	struct gci_error e = {0};
	int error = 0;
	socklen_t len = sizeof(error);

	if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &len))
		error = errno;
	if (error || c->probes) {
		gci_conn_unreachable(c, error);
		return;
	}
	if (hung_up(c) && gci_conn_redial(c))
		return;
	t->nconnecting--;
	c->state = GCI_CONN_GREETING;
	if (!c->again) /* what is lost before the peer's HELLO comes is counted from here */
		gci_tcp_alive(t->peers[c->peer], gci_now_ns());
	t->ep.peers[c->peer]->stats.streams++;
	if (!t->ep.peers[c->peer]->link.encrypted)
		introduce(c);
	else if (gci_conn_secure(c, &e))
		gci_ep_fail(&t->ep, e.status, -1, "%s", e.text);
	else
		shake(c);
	if (!gci_ep_status(&t->ep))
		gci_conn_poll(c);
}

int gci_conn_received(struct gci_conn *c, size_t n)
{
	int rc = gci_stream_received(&c->stream, n);

	if (rc == GCI_STREAM_LOST)
		gci_conn_lost(c, c->tcp->ep.refusal);
	return rc;
}

void gci_conn_finished(struct gci_conn *c, int error)
{
	struct gci_tcp *t = c->tcp;
	struct gci_tcp_peer *p = t->peers[c->peer];
	char addr[GCI_ADDRESS_TEXT], text[160];
	int rc;

	if (c->state == GCI_CONN_LOST)
		return;
	if (error == EBADMSG && !t->stopping &&
		gci_ep_refuse(&t->ep, c->peer, c->stream.life, NULL, "TLS records") != GCI_EP_LOST)
		return;
	error = error ? error : c->send_error; /* which may have taken it from the socket */
	snprintf(text, sizeof(text), "connection to %s %s%s",
		gci_conn_where(t, c->peer, c->stream.index, addr),
		error ? "failed: " : "closed without a goodbye", error ? strerror(error) : "");
	if (c->stream.life && !c->stream.bye_seen) {
		c->mute = error == ETIMEDOUT; /* the kernel has waited long enough */
		gci_conn_lost(c, text);
		return;
	}
	t->ep.peers[c->peer]->stats.streams--;
	rc = t->stopping ? 0 : gci_stream_end(&c->stream, text, error != 0);
	if (rc)
		return;
	if (!c->stream.bye_seen || c->stream.life)
		c->shut = 1; /* there is nobody to say goodbye to */
	c->state = GCI_CONN_LEFT;
	c->blocked = 0;
	gci_conn_poll(c);
	p->nleft++;
	if (gci_tcp_has_left(t, p))
		gci_tcp_left(t, p);
}

/* A stranger that begins as TLS does. */
static int calls_tls(const struct gci_conn *c)
{
	return c->peer < 0 && !c->tls.engine && c->hello.n && *c->hello.bytes == GCI_SECURE_HELLO;
}

/* Reads more of the greeting, and not a byte beyond a HELLO. True if there was something. */
static int read_greeting(struct gci_conn *c)
{
	size_t most = calls_tls(c) ? sizeof(c->hello.bytes) : GCI_HELLO_NBYTES;
	struct iovec rest = {.iov_base = c->hello.bytes + c->hello.n, .iov_len = most - c->hello.n};
	ssize_t n = gci_conn_recv(c, &rest, 1);

	if (n > 0)
		c->hello.n += (size_t)n;
	else if (n < 0 && errno == EAGAIN)
		return 0;
	else if (c->peer < 0)
		gci_conn_close(c);
	else
		gci_conn_finished(c, n ? errno : 0);
	return n > 0;
}

static void greet(struct gci_conn *c)
{
	struct gci_hello h, own;
	struct gci_error e = {0};

	do {
		if (!shake(c) || !read_greeting(c))
			return;
		if (calls_tls(c) && gci_conn_answer(c, &e) < 0) {
			gci_tcp_turn_away(c, e.text);
			return;
		}
	} while (calls_tls(c) || c->hello.n < GCI_HELLO_NBYTES);
	if (c->peer < 0) {
		gci_tcp_greeted(c);
		return;
	}
	own = hello_to(c->tcp, c->peer, c->stream.index);
	own.life = gci_conn_life(c);
	if (gci_hello_decode(c->hello.bytes, secret_of(c->tcp, c->peer), &h, &e) == GCOLL_ERR_NOMEM)
		gci_ep_fail(&c->tcp->ep, GCOLL_ERR_NOMEM, -1, "out of memory for a hello");
	else if (e.status || h.from != own.to || h.to != own.from || h.stream != own.stream ||
		 h.epoch != own.epoch || h.life != own.life)
		not_ours(c, e.status ? e.text : "it answers for another connection");
	else if (!gci_tcp_disagree(c->tcp, &h))
		gci_conn_open(c);
}

void gci_conn_set_pads(struct gci_conn *c)
{
	c->pace.pads = c->stream.out[0].pad;
	gci_sockopt_unsent(c->fd, &c->tcp->ep.peers[c->peer]->link, c->pace.pads ? 1 : 0);
}

void gci_conn_look_at_start(struct gci_conn *c)
{
	c->pace.starts = !gci_sockopt_has_started(c->fd, &c->tcp->ep.peers[c->peer]->link);
}

void gci_conn_wrote(struct gci_conn *c)
{
	/* Our half of the connection ends behind the goodbye, or, where we must go on to
	 * acknowledge, behind the peer's, too. */
	if (c->stream.bye_sent && !c->shut && !gci_conn_holds(c) &&
		(!c->stream.life || c->stream.bye_seen)) {
		c->shut = 1;
		shutdown(c->fd, SHUT_WR);
	}
	gci_conn_poll(c);
}

void gci_conn_event(struct gci_conn *c, int events)
{
	if (c->state == GCI_CONN_CONNECTING) {
		connected(c);
		return;
	}
	gci_conn_turn(c);
	if (c->state == GCI_CONN_GREETING && events & UV_READABLE) {
		greet(c);
		/* The socket tells of the rest by itself, but not of what TLS has taken from it. */
		if (!c->tls.engine || c->state != GCI_CONN_OPEN)
			events &= ~UV_READABLE;
	}
	if (gci_ep_status(&c->tcp->ep))
		return;
	if (c->state != GCI_CONN_CLOSED && c->peer >= 0)
		c->path->ready(c, events);
	gci_conn_poll(c);
}
