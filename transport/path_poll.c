/* SPDX-License-Identifier: MIT
 * The data path by readiness: uv_poll, readv and sendmsg. Nothing is ever in flight. */
#include "transport/path.h"
#include "transport/tcp_impl.h"

#include <errno.h>
#include <string.h>

#define FEW_NBYTES 512

static int opened(struct gci_tcp *t, char why[GCI_PATH_WHY])
{
	(void)t;
	(void)why;
	return 0;
}

static int attach(struct gci_conn *c)
{
	(void)c;
	return 0;
}

static void nothing(struct gci_conn *c)
{
	(void)c;
}

static void nothing_at_all(struct gci_tcp *t)
{
	(void)t;
}

static int events(const struct gci_conn *c)
{
	int wanted = c->state == GCI_CONN_OPEN ? UV_READABLE : 0;

	if (c->blocked && !c->send_error)
		wanted |= UV_WRITABLE;
	return wanted;
}

static void receive(struct gci_conn *c)
{
	struct iovec iov[GCI_STREAM_IN];
	size_t moved = 0, room;
	ssize_t n;
	int niov;

	while (moved < GCI_PATH_TURN_NBYTES) {
		niov = gci_stream_in(&c->stream, iov);
		room = iov[0].iov_len + (niov > 1 ? iov[1].iov_len : 0);
		n = niov > 1 ? readv(c->fd, iov, niov)
			     : recv(c->fd, iov[0].iov_base, iov[0].iov_len, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			gci_conn_finished(c, n ? errno : 0);
			return;
		}
		if (gci_stream_received(&c->stream, (size_t)n) || (size_t)n < room)
			return;
		moved += (size_t)n;
	}
}

/* Few bytes are put together: that costs less than the kernel's way through many pieces. */
static ssize_t offer(int fd, struct iovec *iov, int niov, size_t nbytes)
{
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = (size_t)niov};
	uint8_t few[FEW_NBYTES];
	size_t at = 0;
	int i;

	if (nbytes > sizeof(few))
		return sendmsg(fd, &msg, MSG_NOSIGNAL);
	for (i = 0; i < niov; at += iov[i++].iov_len)
		memcpy(few + at, iov[i].iov_base, iov[i].iov_len);
	return send(fd, few, nbytes, MSG_NOSIGNAL);
}

/* Takes frames and offers them to the socket, once. Returns the bytes that it took; what it did not
 * take waits for the socket. */
static size_t send_some(struct gci_conn *c)
{
	struct iovec iov[GCI_STREAM_OUT];
	int niov = gci_stream_out(&c->stream, iov);
	size_t all = gci_pace_nbytes(iov, niov), offered;
	ssize_t n;

	niov = all ? gci_pace_trim(iov, niov, gci_conn_room(c)) : 0;
	offered = gci_pace_nbytes(iov, niov);
	if (!offered)
		return 0;
	do {
		n = offer(c->fd, iov, niov, offered);
	} while (n < 0 && errno == EINTR);
	if (n < 0 && errno != EAGAIN) {
		c->send_error = errno;
		return 0;
	}
	if (n > 0) {
		gci_stream_sent(&c->stream, (size_t)n);
		gci_conn_spent(c, (size_t)n, offered < all);
	}
	if (n < 0 || (size_t)n < offered)
		c->blocked = 1;
	return n > 0 ? (size_t)n : 0;
}

/* Of several streams each takes a little in turn: a socket's buffer has room for much more than
 * goes out at once, and a stream that took it all would leave the others idle. */
static void send_in_turn(struct gci_conn *c)
{
	struct gci_tcp *t = c->tcp;
	int alone = t->ep.peers[c->peer]->link.streams == 1;
	size_t n = 1;

	while (n && gci_conn_writable(c)) {
		n = send_some(c);
		c->turn_nbytes += n;
		if (c->turn_nbytes >= GCI_PATH_TURN_NBYTES) {
			c->turn_nbytes = 0;
			c->blocked = 1; /* the loop brings us back when others had their turn */
		}
		if (n && !alone) {
			gci_tcp_dirty(t, t->peers[c->peer]);
			break;
		}
	}
	gci_conn_wrote(c);
}

static void ready(struct gci_conn *c, int what)
{
	if (c->state == GCI_CONN_OPEN && what & UV_READABLE)
		receive(c);
	if (gci_ep_status(&c->tcp->ep) || !(what & UV_WRITABLE) || c->state == GCI_CONN_CLOSED)
		return;
	c->blocked = 0;
	send_in_turn(c);
}

const struct gci_path_ops gci_path_poll = {
	.name = "poll",
	.open = opened,
	.close = nothing_at_all,
	.attach = attach,
	.detach = nothing,
	.start = nothing,
	.write = send_in_turn,
	.events = events,
	.ready = ready,
	.flush = nothing_at_all,
	.halt = nothing_at_all,
};
