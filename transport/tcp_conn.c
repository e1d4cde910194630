/* SPDX-License-Identifier: MIT
 * One connection: connect, greet, then bytes between the socket and the stream. */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "transport/tcp_impl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TURN_NBYTES (1u << 20) /* moved at a time before others get their turn */

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct gci_conn *c = poll->data;

	/* libuv has stopped the poll: an error is pending on the socket. Trying to read or write
	 * finds it, behind what had arrived before. */
	if (status < 0) {
		c->events = 0;
		events = UV_READABLE | UV_WRITABLE;
	}
	gci_conn_event(c, events);
}

struct gci_conn *gci_conn_new(struct gci_tcp *t, int fd)
{
	struct gci_conn *c = gci_calloc(1, sizeof(*c));

	if (!c || uv_poll_init(t->loop, &c->poll, fd)) {
		gci_free(c);
		gci_ep_fail(&t->ep, GCOLL_ERR_NOMEM, -1, "out of memory for a connection");
		return NULL;
	}
	c->poll.data = c;
	c->tcp = t;
	c->fd = fd;
	c->peer = -1;
	c->state = GCI_CONN_GREETING;
	t->nhandles++;
	gci_list_push(&t->conns, &c->link);
	return c;
}

static void on_closed(uv_handle_t *h)
{
	struct gci_conn *c = h->data;
	struct gci_tcp *t = c->tcp;

	gci_free(c);
	gci_tcp_handle_closed(t);
}

void gci_conn_close(struct gci_conn *c)
{
	struct gci_tcp *t = c->tcp;

	if (c->state == GCI_CONN_CLOSED)
		return;
	if (c->state == GCI_CONN_CONNECTING)
		t->nconnecting--;
	if (c->peer < 0) {
		t->nstrangers--;
		if (!t->freed)
			gci_tcp_accept_start(t);
	} else {
		t->peers[c->peer]->conns[c->stream.index] = NULL;
		gci_stream_deinit(&c->stream);
	}
	c->state = GCI_CONN_CLOSED;
	gci_list_del(&c->link);
	uv_close((uv_handle_t *)&c->poll, on_closed);
	close(c->fd);
}

/* Waits for what there is to wait for. */
void gci_conn_poll(struct gci_conn *c)
{
	int events = 0;

	if (c->tcp->halted || c->state == GCI_CONN_CLOSED)
		return;
	if (c->state == GCI_CONN_CONNECTING)
		events = UV_WRITABLE;
	else if (c->state != GCI_CONN_LEFT)
		events = UV_READABLE;
	if (c->blocked && c->state != GCI_CONN_CONNECTING && !c->send_error)
		events |= UV_WRITABLE;
	if (events == c->events)
		return;
	c->events = events;
	if (events)
		uv_poll_start(&c->poll, events, on_poll);
	else
		uv_poll_stop(&c->poll);
}

int gci_conn_attach(struct gci_conn *c, struct gci_tcp_peer *p, unsigned index)
{
	struct gci_tcp *t = c->tcp;

	if (gci_stream_init(&c->stream, &t->ep, p->rank, index))
		return gci_ep_fail(&t->ep, GCOLL_ERR_NOMEM, -1, "out of memory for a connection");
	c->peer = p->rank;
	c->stream.bye = t->stopping;
	p->conns[index] = c;
	p->nconns++;
	return 0;
}

static const char *where(const struct gci_tcp *t, int rank, char text[GCI_ADDRESS_TEXT])
{
	gci_address_format(&t->addrs[rank], text);
	return text;
}

static void cannot_connect(struct gci_conn *c, const char *why)
{
	char text[GCI_ADDRESS_TEXT];

	gci_ep_fail(&c->tcp->ep, GCOLL_ERR_PEER, c->peer, "cannot connect to rank %d at %s: %s",
		c->peer, where(c->tcp, c->peer, text), why);
}

void gci_conn_connect(struct gci_tcp *t, struct gci_tcp_peer *p, unsigned index)
{
	const struct gci_address *a = &t->addrs[p->rank];
	int fd = socket(a->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct gci_conn *c;

	if (fd < 0) {
		gci_ep_fail(&t->ep, GCOLL_ERR_SYS, -1, "no socket for a connection to rank %d: %s",
			p->rank, strerror(errno));
		return;
	}
	c = gci_conn_new(t, fd);
	if (!c) {
		close(fd);
		return;
	}
	t->nstrangers++; /* until it is attached; closing it takes it off */
	if (gci_conn_attach(c, p, index)) {
		gci_conn_close(c);
		return;
	}
	t->nstrangers--;
	gci_sockopt_data(fd, p->rank, &t->ep.peers[p->rank]->link, t->congestion, &t->said);
	c->state = GCI_CONN_CONNECTING;
	t->nconnecting++;
	c->deadline_ns = gci_now_ns() + t->connect_timeout_ns;
	if (connect(fd, &a->any, a->len) && errno != EINPROGRESS && errno != EINTR) {
		cannot_connect(c, strerror(errno));
		return;
	}
	gci_conn_poll(c);
	gci_tcp_watch(t);
}

int gci_conn_send_hello(struct gci_conn *c, int peer, unsigned index)
{
	struct gci_hello h = gci_tcp_hello(c->tcp, peer, index);
	uint8_t bytes[GCI_HELLO_NBYTES];

	if (gci_hello_encode(&h, c->tcp->secret, bytes))
		return gci_ep_fail(&c->tcp->ep, GCOLL_ERR_NOMEM, -1, "out of memory for a hello");
	/* The first bytes on a socket: its buffer takes them whole. If not, reading finds out. */
	if (send(c->fd, bytes, sizeof(bytes), MSG_NOSIGNAL) != (ssize_t)sizeof(bytes))
		c->send_error = errno ? errno : ENOBUFS;
	return 0;
}

static void connected(struct gci_conn *c)
{
	struct gci_tcp *t = c->tcp;
	int error = 0;
	socklen_t len = sizeof(error);

	if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &len))
		error = errno;
	if (error) {
		cannot_connect(c, strerror(error));
		return;
	}
	t->nconnecting--;
	c->state = GCI_CONN_GREETING;
	t->ep.peers[c->peer]->stats.streams++;
	if (gci_conn_send_hello(c, c->peer, c->stream.index))
		return;
	gci_tcp_dirty(t, t->peers[c->peer]);
	gci_conn_poll(c);
}

static void finished(struct gci_conn *c, const char *cause)
{
	struct gci_tcp *t = c->tcp;
	struct gci_tcp_peer *p = t->peers[c->peer];
	char addr[GCI_ADDRESS_TEXT], text[160];

	snprintf(text, sizeof(text), "connection to %s %s%s", where(t, c->peer, addr),
		cause ? "failed: " : "closed without a goodbye", cause ? cause : "");
	t->ep.peers[c->peer]->stats.streams--;
	if (t->stopping && !c->stream.bye_seen)
		c->shut = 1; /* there is nobody to say goodbye to */
	else if (gci_stream_end(&c->stream, text))
		return;
	c->state = GCI_CONN_LEFT;
	c->blocked = 0;
	gci_conn_poll(c);
	if (++p->nleft == t->ep.peers[c->peer]->link.streams && !t->stopping)
		gci_ep_left(&t->ep, c->peer);
}

/* After a read of `n` <= 0 bytes: the socket's error. Sending may have taken it. */
static const char *why(const struct gci_conn *c, ssize_t n)
{
	if (n)
		return strerror(errno);
	return c->send_error ? strerror(c->send_error) : NULL;
}

/* Reads the peer's HELLO and not a byte more. */
static void greet(struct gci_conn *c)
{
	char text[GCI_ADDRESS_TEXT];
	ssize_t n = recv(c->fd, c->greeting + c->ngreeting, sizeof(c->greeting) - c->ngreeting, 0);
	struct gci_hello h, own;
	struct gci_error e = {0};

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0 && c->peer < 0) {
		gci_conn_close(c);
		return;
	}
	if (n <= 0) {
		finished(c, why(c, n));
		return;
	}
	c->ngreeting += (size_t)n;
	if (c->ngreeting < sizeof(c->greeting))
		return;
	if (c->peer < 0) {
		gci_tcp_greeted(c);
		return;
	}
	own = gci_tcp_hello(c->tcp, c->peer, c->stream.index);
	if (gci_hello_decode(c->greeting, c->tcp->secret, &h, &e) || h.from != own.to ||
		h.to != own.from || h.stream != own.stream || h.epoch != own.epoch)
		gci_ep_fail(&c->tcp->ep, GCOLL_ERR_PROTO, c->peer,
			"whoever listens at %s is not rank %d of this job: %.100s",
			where(c->tcp, c->peer, text), c->peer,
			e.status ? e.text : "it answers for another connection");
	else if (!gci_tcp_disagree(c->tcp, &h))
		c->state = GCI_CONN_OPEN;
}

static void receive(struct gci_conn *c)
{
	struct iovec iov[GCI_STREAM_IN];
	size_t moved = 0, room;
	ssize_t n;
	int niov;

	while (moved < TURN_NBYTES) {
		niov = gci_stream_in(&c->stream, iov);
		room = iov[0].iov_len + (niov > 1 ? iov[1].iov_len : 0);
		n = readv(c->fd, iov, niov);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			finished(c, why(c, n));
			return;
		}
		if (gci_stream_received(&c->stream, (size_t)n) || (size_t)n < room)
			return;
		moved += (size_t)n;
	}
}

int gci_conn_writable(const struct gci_conn *c)
{
	return c && c->peer >= 0 && !c->blocked && !c->send_error &&
	       (c->state == GCI_CONN_GREETING || c->state == GCI_CONN_OPEN ||
		       (c->state == GCI_CONN_LEFT && c->tcp->stopping && !c->shut));
}

static void after_write(struct gci_conn *c)
{
	/* Our half of the connection ends behind the goodbye. */
	if (c->stream.bye_sent && !c->shut) {
		c->shut = 1;
		shutdown(c->fd, SHUT_WR);
	}
	gci_conn_poll(c);
}

void gci_conn_write(struct gci_conn *c)
{
	struct iovec iov[GCI_STREAM_OUT];
	struct msghdr msg = {.msg_iov = iov};
	size_t moved = 0, offered;
	ssize_t n;
	int i;

	while (moved < TURN_NBYTES && gci_conn_writable(c)) {
		int niov = gci_stream_out(&c->stream, iov);

		if (!niov)
			break;
		msg.msg_iovlen = (size_t)niov;
		for (i = 0, offered = 0; i < niov; i++)
			offered += iov[i].iov_len;
		n = sendmsg(c->fd, &msg, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN) {
			c->send_error = errno;
			break;
		}
		if (n > 0)
			gci_stream_sent(&c->stream, (size_t)n);
		if (n < 0 || (size_t)n < offered)
			c->blocked = 1;
		moved += n > 0 ? (size_t)n : 0;
	}
	if (moved >= TURN_NBYTES) /* the loop brings us back when others had their turn */
		c->blocked = 1;
	after_write(c);
}

void gci_conn_event(struct gci_conn *c, int events)
{
	if (c->state == GCI_CONN_CONNECTING) {
		connected(c);
		return;
	}
	if (c->state == GCI_CONN_GREETING && events & UV_READABLE)
		greet(c);
	else if (c->state == GCI_CONN_OPEN && events & UV_READABLE)
		receive(c);
	if (gci_ep_status(&c->tcp->ep))
		return;
	if (events & UV_WRITABLE && c->state != GCI_CONN_CLOSED && c->peer >= 0) {
		c->blocked = 0;
		gci_conn_write(c);
	}
	gci_conn_poll(c);
}
