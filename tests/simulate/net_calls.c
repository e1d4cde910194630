/* SPDX-License-Identifier: MIT
 * Sockets as system calls see them. */
#include "tests/simulate/net_impl.h"

#include "tests/simulate/heap.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/tcp.h>
#include <string.h>

#define PORTS 128

static struct file *listeners[PORTS];

struct listener *net_listener(const struct sockaddr_in *at)
{
	struct file *f = listeners[ntohs(at->sin_port) % PORTS];
	struct listener *l = f ? f->more : NULL;

	return l && f->fd >= 0 && l->listens && l->local.sin_addr.s_addr == at->sin_addr.s_addr
		       ? l
		       : NULL;
}

void net_forget_listeners(void)
{
	memset(listeners, 0, sizeof(listeners));
}

/* ---- listening */

static uint32_t listener_ready(struct file *f)
{
	return ((struct listener *)f->more)->nqueue ? EPOLLIN : 0;
}

static void listener_close(struct file *f)
{
	struct listener *l = f->more;

	listeners[ntohs(l->local.sin_port) % PORTS] = NULL;
	while (l->nqueue) {
		struct stream *s = l->queue[--l->nqueue];

		s->closed = 1;
		net_put(s, RST, NULL, 0, 0);
	}
}

int net_bind(struct file *f, const struct sockaddr *addr)
{
	struct stream *s = f->more;

	memcpy(&s->local, addr, sizeof(s->local));
	return 0;
}

/* The socket becomes another sort of file. */
int net_listen(struct file *f)
{
	struct stream *s = f->more;
	struct sockaddr_in local = s->local;
	struct listener *l = heap_calloc(1, sizeof(*l));

	gci_list_del(&s->all);
	heap_free(s);
	if (!local.sin_port)
		local.sin_port = htons((uint16_t)(NET_FIRST_PORT + f->process->rank));
	l->local = local;
	l->listens = 1;
	l->deaf = f->process->rank == OS_LAUNCHER ? 0 : net_faults.deaf;
	f->kind = FILE_LISTENER;
	f->more = l;
	f->ready = listener_ready;
	f->close = listener_close;
	f->free = NULL;
	listeners[ntohs(local.sin_port) % PORTS] = f;
	return 0;
}

/* ---- connections */

static uint32_t stream_ready(struct file *f)
{
	const struct stream *s = f->more;
	uint32_t is = 0;

	if (net_unread(s) || s->eof || s->state == RESET)
		is |= EPOLLIN;
	if ((s->state == OPEN && (s->vain || s->flight_nbytes < s->buffer_nbytes * 2 / 3)) ||
		s->state == RESET)
		is |= EPOLLOUT;
	if (s->state == IDLE || (s->state == RESET && !s->error) || (s->eof && s->shut))
		is |= EPOLLHUP;
	if (s->error)
		is |= EPOLLERR;
	return is;
}

static void stream_close(struct file *f)
{
	struct stream *s = f->more;

	s->closed = 1;
	if (!s->other)
		return;
	if (s->vain) {
		/* what ends it is on its way already */
	} else if (net_unread(s) ||
		   s->aborts) { /* so does Linux: what was not sent yet is gone, too */
		net_cut_short(s);
		net_put(s, RST, NULL, 0, 0);
	} else if (!s->shut) {
		net_put(s, FIN, NULL, 0, 0);
	}
	s->shut = 1;
}

static void stream_free(void *more)
{
	struct stream *s = more;

	while (!gci_list_empty(&s->flight)) {
		struct segment *g = gci_container(s->flight.next, struct segment, link);

		gci_list_del(&g->link);
		heap_free(g);
	}
	heap_free(s->in);
}

static struct stream *new_stream(struct file **file)
{
	struct file *f = file_new(FILE_STREAM, sizeof(struct stream));

	f->ready = stream_ready;
	f->close = stream_close;
	f->free = stream_free;
	*file = f;
	return net_stream_new(f);
}

int net_socket(int flags)
{
	struct file *f;

	new_stream(&f);
	f->blocks = !(flags & SOCK_NONBLOCK);
	return f->fd;
}

/* The other end of a call, which waits to be accepted; NULL: there is no room. */
struct stream *net_incoming(struct stream *from, struct listener *l)
{
	struct file *listening = listeners[ntohs(l->local.sin_port) % PORTS], *f;
	struct stream *s;

	if (l->nqueue == (int)(sizeof(l->queue) / sizeof(*l->queue)))
		return NULL;
	s = new_stream(&f);
	s->host = listening->process->host;
	s->rank = listening->process->rank;
	s->local = l->local;
	s->remote = from->local;
	s->state = OPEN;
	s->other = from;
	from->other = s;
	s->inner = from->inner = s->rank != OS_LAUNCHER && from->rank != OS_LAUNCHER;
	l->queue[l->nqueue++] = s;
	file_changed(listening);
	return s;
}

int net_connect(struct file *f, const struct sockaddr *addr)
{
	struct stream *s = f->more;
	struct sockaddr_in to;

	memcpy(&to, addr, sizeof(to));
	if (!s->local.sin_port)
		s->local = net_address(s->host, (uint16_t)(f->fd | 0x8000));
	net_connect_at(s, &to);
	errno = EINPROGRESS;
	if (!f->blocks)
		return -1;
	while (s->state == CONNECTING)
		os_wait(GCI_NEVER);
	if (s->state == OPEN)
		return 0;
	errno = s->error;
	s->error = 0;
	return -1;
}

int net_accept(struct file *f, struct sockaddr *addr, socklen_t *len, int flags)
{
	struct listener *l = f->more;
	struct stream *s;
	int i;

	errno = EAGAIN;
	if (!l->nqueue)
		return -1;
	errno = EMFILE;
	if (l->deaf) {
		l->deaf--;
		return -1;
	}
	s = l->queue[0];
	for (i = 1; i < l->nqueue; i++)
		l->queue[i - 1] = l->queue[i];
	l->nqueue--;
	s->file->process = os_current;
	s->file->blocks = !(flags & SOCK_NONBLOCK);
	gci_list_push(&os_current->files, &s->file->link);
	memcpy(addr, &s->remote, sizeof(s->remote));
	*len = sizeof(s->remote);
	return s->file->fd;
}

int net_name(struct file *f, int of_peer, struct sockaddr *addr, socklen_t *len)
{
	const struct stream *s = f->more;
	const struct listener *l = f->more;
	const struct sockaddr_in *a = f->kind == FILE_LISTENER ? &l->local
				      : of_peer                ? &s->remote
							       : &s->local;

	memcpy(addr, a, sizeof(*a));
	*len = sizeof(*a);
	return 0;
}

/* ---- options */

static void tcp_info(const struct stream *s, struct tcp_info *i)
{
	int waits = s->window_closed || !s->other;
	uint64_t acked = s->window_closed ? os_now : s->acked_ns;

	i->tcpi_state = s->state == RESET ? 7 : 0; /* TCP_CLOSE */
	i->tcpi_unacked = !waits && s->flight_nbytes;
	i->tcpi_probes = (uint8_t)s->window_closed;
	i->tcpi_last_ack_recv = (uint32_t)((os_now - acked) / GCI_NS_PER_MS);
	i->tcpi_last_data_recv = (uint32_t)((os_now - s->heard_ns) / GCI_NS_PER_MS);
	i->tcpi_snd_mss = 1448;
	i->tcpi_rtt = (uint32_t)(2 * net_config.far_ns / GCI_NS_PER_US);
}

int net_getsockopt(struct file *f, int level, int name, void *value, socklen_t *len)
{
	struct stream *s = f->more;
	struct tcp_info info = {0};
	int number = 0;

	if (level == IPPROTO_TCP && name == TCP_INFO) {
		tcp_info(s, &info);
		*len = *len < sizeof(info) ? *len : (socklen_t)sizeof(info);
		memcpy(value, &info, *len);
		return 0;
	}
	if (level == SOL_SOCKET && name == SO_ERROR) {
		number = s->error;
		s->error = 0;
	}
	memset(value, 0, *len);
	memcpy(value, &number, *len < sizeof(number) ? *len : sizeof(number));
	return 0;
}

int net_setsockopt(struct file *f, int level, int name, const void *value, socklen_t len)
{
	struct stream *s = f->more;
	struct timeval t;
	uint32_t number = 0;

	if (f->kind != FILE_STREAM)
		return 0;
	memcpy(&number, value, len < sizeof(number) ? len : sizeof(number));
	if (level == SOL_SOCKET && name == SO_RCVTIMEO) {
		memcpy(&t, value, sizeof(t));
		s->receive_timeout_ns =
			(uint64_t)t.tv_sec * GCI_NS_PER_S + (uint64_t)t.tv_usec * 1000;
	} else if (level == SOL_SOCKET && name == SO_LINGER) {
		s->aborts = number != 0; /* l_linger is 0 */
	} else if (level == IPPROTO_TCP && name == TCP_KEEPIDLE) {
		s->keep_idle_s = number;
	} else if (level == IPPROTO_TCP && name == TCP_KEEPINTVL) {
		s->keep_interval_s = number;
	} else if (level == IPPROTO_TCP && name == TCP_KEEPCNT) {
		s->keep_count = number;
	}
	return 0;
}

/* ---- bytes */

static size_t total(const struct iovec *iov, int niov)
{
	size_t n = 0;
	int i;

	for (i = 0; i < niov; i++)
		n += iov[i].iov_len;
	return n;
}

/* 0 with nothing to wait for, or -1 with errno. */
static int await_bytes(struct file *f, int flags)
{
	struct stream *s = f->more;
	uint64_t end = s->receive_timeout_ns ? os_now + s->receive_timeout_ns : GCI_NEVER;

	while (!net_unread(s) && !s->eof && s->state == OPEN) {
		errno = EAGAIN;
		if (!f->blocks || flags & MSG_DONTWAIT || os_now >= end)
			return -1;
		os_wait(end);
	}
	if (net_unread(s) || !s->error)
		return 0;
	errno = s->error;
	s->error = 0;
	return -1;
}

ssize_t net_receive(struct file *f, const struct iovec *iov, int niov, int flags)
{
	struct stream *s = f->more;
	size_t n, at = 0, part;
	int i;

	errno = EINTR;
	if (os_chance(100) || await_bytes(f, flags))
		return -1;
	n = net_unread(s) < total(iov, niov) ? net_unread(s) : total(iov, niov);
	if (n > 1 && os_chance(6))
		n = (size_t)os_between(1, n);
	for (i = 0; at < n; i++, at += part) {
		part = iov[i].iov_len < n - at ? iov[i].iov_len : n - at;
		memcpy(iov[i].iov_base, s->in + s->in_lo + at, part);
	}
	if (flags & MSG_PEEK)
		return (ssize_t)n;
	s->in_lo += n;
	if (n && s->other->window_closed) {
		s->other->window_closed = 0;
		net_pump(s->other);
	}
	return (ssize_t)n;
}

ssize_t net_send(struct file *f, const struct iovec *iov, int niov, int flags)
{
	struct stream *s = f->more;
	size_t n = total(iov, niov), room;

	errno = EINTR;
	if (os_chance(100))
		return -1;
	errno = s->error;
	if (s->error) {
		s->error = 0;
		return -1;
	}
	errno = EPIPE;
	if (s->state != OPEN || s->shut)
		return -1;
	while (s->flight_nbytes >= s->buffer_nbytes && !s->vain) {
		errno = EAGAIN;
		if (!f->blocks || flags & MSG_DONTWAIT || s->state != OPEN)
			return -1;
		os_wait(GCI_NEVER);
	}
	room = s->vain ? n : s->buffer_nbytes - s->flight_nbytes;
	n = n < room ? n : room;
	net_put(s, DATA, iov, niov, n);
	return (ssize_t)n;
}

int net_shutdown(struct file *f, int how)
{
	struct stream *s = f->more;

	errno = ENOTCONN;
	if (!s->other || s->state != OPEN)
		return -1;
	if (how != SHUT_RD && !s->shut) {
		net_put(s, FIN, NULL, 0, 0);
		s->shut = 1;
	}
	if (how != SHUT_WR)
		s->eof = 1;
	return 0;
}
