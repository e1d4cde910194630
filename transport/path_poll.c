/* SPDX-License-Identifier: MIT
 * The data path by readiness: uv_poll, readv and sendmsg. Nothing is ever in flight. */
#include "transport/path.h"
#include "transport/tcp_impl.h"

#include <errno.h>

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
		n = readv(c->fd, iov, niov);
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

static void send_all(struct gci_conn *c)
{
	struct iovec iov[GCI_STREAM_OUT];
	struct msghdr msg = {.msg_iov = iov};
	size_t moved = 0, offered;
	ssize_t n;
	int i;

	while (moved < GCI_PATH_TURN_NBYTES && gci_conn_writable(c)) {
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
	if (moved >= GCI_PATH_TURN_NBYTES) /* the loop brings us back when others had their turn */
		c->blocked = 1;
	gci_conn_wrote(c);
}

static void ready(struct gci_conn *c, int what)
{
	if (c->state == GCI_CONN_OPEN && what & UV_READABLE)
		receive(c);
	if (gci_ep_status(&c->tcp->ep) || !(what & UV_WRITABLE) || c->state == GCI_CONN_CLOSED)
		return;
	c->blocked = 0;
	send_all(c);
}

const struct gci_path_ops gci_path_poll = {
	.name = "poll",
	.open = opened,
	.close = nothing_at_all,
	.attach = attach,
	.detach = nothing,
	.start = nothing,
	.write = send_all,
	.events = events,
	.ready = ready,
	.flush = nothing_at_all,
	.halt = nothing_at_all,
};
