/* SPDX-License-Identifier: MIT
 * The data path by io_uring: at most one receive and one send in flight per connection, into and
 * out of the memory that its stream names.
 *
 * Measured over loopback, Linux 6.18, CPU time against readiness within one run, on a busy machine
 * (bench_stream, bench_pingpong): 0 to 9 % more per byte, and 10 % (two processors) to 28 % (one)
 * more per round trip of 8 bytes, since each wake-up costs a second epoll_wait (the first one ends
 * with EINTR) and a read of the eventfd. So it is not the default.
 *
 * Not used, and why. SENDMSG_ZC: over loopback and veth the kernel copies all the same (each of
 * 1000 notifications said so), for 3 to 12 % less CPU over loopback and 7 % more over veth; over a
 * card it would hold the one send in flight for a round trip. MSG_WAITALL for sends, RECV and SEND
 * in place of RECVMSG and SENDMSG where one buffer is enough: no difference.
 * Fixed buffers: requests' memory is the program's, and would have to be locked (RLIMIT_MEMLOCK is
 * 8 MiB as a rule) for each operation anew. */
#include "base/mem.h"
#include "transport/tcp_impl.h"
#include "transport/uring.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#define TURNS 4 /* of operations that end at once, before others get their turn */

/* Of a transport. */
struct ring {
	struct gci_uring uring;
	struct gci_watched watched; /* its event_fd */
	struct gci_tcp *tcp;
};

/* Of a connection. */
struct moves {
	struct gci_uring_op rx, tx;
	struct iovec in[GCI_STREAM_IN], out[GCI_STREAM_OUT];
	size_t room;         /* of the receive in flight */
	size_t all, offered; /* to the send in flight: by the stream, and of that by us */
};

static struct gci_uring *uring_of(const struct gci_tcp *t)
{
	return &((struct ring *)t->path_state)->uring;
}

static void receive(struct gci_conn *c)
{
	struct moves *m = c->moves;
	int n = gci_stream_in(&c->stream, m->in);

	m->room = m->in[0].iov_len + (n > 1 ? m->in[1].iov_len : 0);
	m->rx.msg.msg_iovlen = (size_t)n;
	gci_uring_begin(uring_of(c->tcp), &m->rx);
}

static void send_some(struct gci_conn *c)
{
	struct moves *m = c->moves;
	int n;

	if (gci_conn_writable(c) && m->tx.state == GCI_URING_IDLE) {
		n = gci_conn_offer(
			c, m->out, gci_stream_out(&c->stream, m->out), &m->all, &m->offered);
		m->tx.msg.msg_iovlen = (size_t)n;
		if (n) {
			gci_uring_begin(uring_of(c->tcp), &m->tx);
			c->blocked = 1;
		}
	}
	gci_conn_wrote(c);
}

/* Nothing was moved, for no fault of the connection's. */
static int try_again(int res)
{
	return res == -EAGAIN || res == -EINTR || res == -ECANCELED;
}

static void received(struct gci_conn *c, struct gci_uring_op *op)
{
	struct moves *m = c->moves;

	if (c->state != GCI_CONN_OPEN) /* lost, by the peer's word or the send's */
		return;
	if (try_again(op->res)) {
		op->later = 1;
		receive(c);
		return;
	}
	if (op->res <= 0) {
		gci_conn_finished(c, -op->res);
		return;
	}
	op->later = !op->more && (size_t)op->res < m->room;
	if (!gci_conn_received(c, (size_t)op->res))
		receive(c);
}

static void sent(struct gci_conn *c, struct gci_uring_op *op)
{
	struct moves *m = c->moves;

	op->later = op->res < 0 || (size_t)op->res < m->offered;
	c->blocked = 0;
	if (op->res > 0) {
		gci_stream_sent(&c->stream, (size_t)op->res);
		gci_conn_spent(c, (size_t)op->res, m->offered < m->all);
	} else if (!try_again(op->res)) {
		gci_conn_send_failed(c, -op->res);
	}
	send_some(c);
}

static void handle(struct gci_tcp *t)
{
	struct gci_uring_op *op;

	while (!gci_ep_status(&t->ep) && (op = gci_uring_next(uring_of(t)))) {
		if (op->send)
			sent(op->user, op);
		else
			received(op->user, op);
	}
}

static void flush(struct gci_tcp *t)
{
	struct gci_uring *u = uring_of(t);
	int turn, rc = 0;

	if (t->halted || gci_ep_status(&t->ep))
		return;
	gci_uring_quiet(u, 1);
	for (turn = 0; turn < TURNS && !rc; turn++) {
		rc = gci_uring_submit(u);
		gci_uring_reap(u);
		if (gci_list_empty(&u->done))
			break;
		handle(t);
	}
	if (!rc)
		rc = gci_uring_submit(u);
	gci_uring_quiet(u, 0);
	if (rc)
		gci_ep_fail(&t->ep, GCOLL_ERR_SYS, -1, "io_uring takes no more work: %s",
			strerror(-rc));
}

static void on_event(struct gci_watched *w, int what)
{
	struct ring *r = gci_container(w, struct ring, watched);
	eventfd_t count;

	(void)what;
	eventfd_read(r->uring.event_fd, &count);
	flush(r->tcp);
}

static int attach(struct gci_conn *c)
{
	struct moves *m = gci_calloc(1, sizeof(*m));

	if (!m)
		return GCOLL_ERR_NOMEM;
	m->rx.fd = m->tx.fd = c->fd;
	m->rx.user = m->tx.user = c;
	m->rx.msg.msg_iov = m->in;
	m->tx.msg.msg_iov = m->out;
	m->tx.send = 1;
	m->rx.later = 1;
	c->moves = m;
	return 0;
}

static void halt(struct gci_tcp *t)
{
	struct gci_uring *u = uring_of(t);
	struct gci_list *it;
	int round;

	for (round = 0; round < 2; round++)
		gci_list_each (it, &t->conns) {
			struct moves *m = gci_container(it, struct gci_conn, link)->moves;

			if (m && !round) {
				gci_uring_cancel(u, &m->rx);
				gci_uring_cancel(u, &m->tx);
			} else if (m) {
				gci_uring_end(u, &m->rx);
				gci_uring_end(u, &m->tx);
			}
		}
	gci_poller_watch(&t->turn.poller, &((struct ring *)t->path_state)->watched, 0);
}

static void detach(struct gci_conn *c)
{
	struct gci_uring *u = uring_of(c->tcp);
	struct moves *m = c->moves;

	gci_uring_cancel(u, &m->rx);
	gci_uring_cancel(u, &m->tx);
	gci_uring_end(u, &m->rx);
	gci_uring_end(u, &m->tx);
	gci_free(m);
	c->moves = NULL;
}

/* All is done by the ring, none by polling the socket. */
static int events(const struct gci_conn *c)
{
	(void)c;
	return 0;
}

static void ready(struct gci_conn *c, int what)
{
	(void)c;
	(void)what;
}

static int open_path(struct gci_tcp *t, char why[GCI_PATH_WHY])
{
	struct ring *r = gci_calloc(1, sizeof(*r));
	int rc;

	if (!r) {
		snprintf(why, GCI_PATH_WHY, "out of memory");
		return -ENOMEM;
	}
	rc = gci_uring_open(&r->uring, why);
	if (rc) {
		gci_free(r);
		return rc;
	}
	r->watched = (struct gci_watched){.fd = r->uring.event_fd, .ready = on_event};
	rc = gci_poller_watch(&t->turn.poller, &r->watched, UV_READABLE);
	if (rc) {
		snprintf(why, GCI_PATH_WHY, "its event cannot be polled: %s", strerror(-rc));
		gci_uring_close(&r->uring);
		gci_free(r);
		return rc;
	}
	r->tcp = t;
	t->path_state = r;
	return 0;
}

static void close_path(struct gci_tcp *t)
{
	struct ring *r = t->path_state;

	t->path_state = NULL;
	gci_poller_watch(&t->turn.poller, &r->watched, 0);
	gci_uring_close(&r->uring);
	gci_free(r);
}

const struct gci_path_ops gci_path_uring = {
	.name = "uring",
	.open = open_path,
	.close = close_path,
	.attach = attach,
	.detach = detach,
	.start = receive,
	.write = send_some,
	.events = events,
	.ready = ready,
	.flush = flush,
	.halt = halt,
};
