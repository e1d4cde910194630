/* SPDX-License-Identifier: MIT
 * The data path by readiness, and which one it is to be. */
#include "transport/path.h"

#include "base/log.h"
#include "transport/tcp_impl.h"

#include <errno.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>

/* ---- The data path by readiness: uv_poll, readv and sendmsg. Nothing is ever in flight. */

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

	while (c->tls.engine || moved < GCI_PATH_TURN_NBYTES) {
		niov = gci_stream_in(&c->stream, iov);
		room = iov[0].iov_len + (niov > 1 ? iov[1].iov_len : 0);
		n = gci_conn_recv(c, iov, niov);
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			gci_conn_finished(c, n ? errno : 0);
			return;
		}
		if (gci_conn_received(c, (size_t)n) || (!c->tls.engine && (size_t)n < room))
			return;
		moved += (size_t)n;
	}
}

/* A kernel takes up to 64 KiB more than the buffer holds. Once that is full the socket is not writable, and
 * tells when it is. */
static int fit_window(struct gci_conn *c, struct iovec *iov, int niov, size_t *offered)
{
	uint64_t window = c->tcp->peers[c->peer]->window_nbytes, room;
	int waits = 0;

	if (!window || !*offered || ioctl(c->fd, SIOCOUTQ, &waits) || waits < 0)
		return niov;
	room = (uint64_t)waits < window ? window - (uint64_t)waits : 0;
	if (*offered <= room)
		return niov;
	*offered = (size_t)room;
	return gci_pace_trim(iov, niov, room);
}

/* Takes frames and offers them to the socket, once. Returns the bytes that it took; what it did not
 * take, or what pacing keeps back until others have begun, waits for the socket. */
static size_t send_some(struct gci_conn *c)
{
	struct iovec iov[GCI_STREAM_OUT];
	size_t all, offered, n;
	int niov = gci_conn_offer(c, iov, gci_stream_out(&c->stream, iov), &all, &offered);

	niov = fit_window(c, iov, niov, &offered);
	n = gci_conn_send(c, iov, niov, offered);
	if (n) {
		gci_stream_sent(&c->stream, n);
		gci_conn_spent(c, n, offered < all);
	}
	c->blocked |= offered < all && !c->pace.paused;
	return n;
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
		if (n && !alone)
			gci_tcp_dirty(t, t->peers[c->peer]);
		if (n && (!alone || !gci_stream_has_more(&c->stream)))
			break;
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
	.halt = nothing_at_all,
};

/* ---- Which data path. */

static const char *const names[] = {"auto", "poll", "uring"};

int gci_data_path_parse(const char *name, enum gci_data_path *out)
{
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (strcmp(name, names[i]) != 0)
			continue;
		*out = (enum gci_data_path)i;
		return 0;
	}
	return GCOLL_ERR_INVAL;
}

void gci_path_open(struct gci_tcp *t, enum gci_data_path which)
{
	char why[GCI_PATH_WHY] = "";

	t->path_open = 1;
	t->path = &gci_path_poll;
	if (which == GCI_DATA_PATH_URING && !gci_path_uring.open(t, why))
		t->path = &gci_path_uring;
	if (which == GCI_DATA_PATH_URING && t->path != &gci_path_uring)
		gci_log(GCI_LOG_WARN, "data path: uring cannot be used (%s); using poll", why);
	else
		gci_log(GCI_LOG_INFO, "data path: %s%s", t->path->name,
			which == GCI_DATA_PATH_AUTO ? " (auto)" : "");
}
