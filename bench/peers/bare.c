/* SPDX-License-Identifier: MIT
 * What the kernel alone makes of it: sockets, send and recv that never block, epoll where there is
 * nothing to do. */
#include "bench/peers/pair.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define CALL_NBYTES (1u << 20) /* most of one call */

struct bare {
	struct gcb_pair *p;
	int fd, epoll;
};

static struct sockaddr_in address(const struct gcb_pair *p, int rank, uint16_t port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};

	inet_pton(AF_INET, gcb_pair_ip(p, rank), &a.sin_addr);
	return a;
}

static int accept_one(struct bare *b)
{
	struct sockaddr_in a = address(b->p, 1, 0);
	socklen_t len = sizeof(a);
	char text[16];
	int l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (l < 0 || bind(l, (struct sockaddr *)&a, sizeof(a)) || listen(l, 1) ||
		getsockname(l, (struct sockaddr *)&a, &len)) {
		if (l >= 0)
			close(l);
		return -1;
	}
	snprintf(text, sizeof(text), "%u", ntohs(a.sin_port));
	gcb_pair_tell(b->p, text);
	b->fd = accept4(l, NULL, NULL, SOCK_CLOEXEC);
	close(l);
	return b->fd < 0 ? -1 : 0;
}

static int connect_one(struct bare *b)
{
	const char *port = gcb_pair_told(b->p);
	struct sockaddr_in a;

	if (!port)
		return -1;
	a = address(b->p, 1, (uint16_t)atoi(port));
	b->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return b->fd < 0 || connect(b->fd, (struct sockaddr *)&a, sizeof(a)) ? -1 : 0;
}

static int open_bare(struct bare *b, struct gcb_pair *p)
{
	struct epoll_event ev = {.events = p->rank ? EPOLLIN : EPOLLOUT};
	int one = 1;

	*b = (struct bare){p, -1, -1};
	if (p->rank ? accept_one(b) : connect_one(b))
		return gcb_pair_fail(p, "cannot connect: %s", strerror(errno));
	setsockopt(b->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	fcntl(b->fd, F_SETFL, O_NONBLOCK);
	if (p->rounds)
		ev.events = EPOLLIN;
	b->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (b->epoll < 0 || epoll_ctl(b->epoll, EPOLL_CTL_ADD, b->fd, &ev))
		return gcb_pair_fail(p, "no epoll: %s", strerror(errno));
	return 0;
}

static void close_bare(struct bare *b)
{
	if (b->epoll >= 0)
		close(b->epoll);
	if (b->fd >= 0)
		close(b->fd);
}

static int await(struct bare *b)
{
	struct epoll_event ev;

	while (epoll_wait(b->epoll, &ev, 1, -1) < 0)
		if (errno != EINTR)
			return -1;
	return 0;
}

/* All of it, one way. */
static int move(struct bare *b, uint8_t *data, uint64_t nbytes)
{
	uint64_t rest, at = 0;
	ssize_t n;

	while (at < nbytes) {
		rest = nbytes - at < CALL_NBYTES ? nbytes - at : CALL_NBYTES;
		n = b->p->rank ? recv(b->fd, data + at, rest, 0)
			       : send(b->fd, data + at, rest, MSG_NOSIGNAL);
		if (n > 0)
			at += (uint64_t)n;
		else if (n == 0 || errno != EAGAIN || await(b))
			return gcb_pair_fail(
				b->p, "the connection broke: %s", n ? strerror(errno) : "its end");
	}
	return 0;
}

static int stream_side(struct gcb_pair *p)
{
	uint64_t warm = p->nbytes < GCB_WARM_NBYTES ? p->nbytes : GCB_WARM_NBYTES;
	uint8_t *data = p->rank ? p->to : p->from;
	struct bare b;
	int rc = open_bare(&b, p);

	if (!rc)
		rc = move(&b, data, warm);
	if (!rc)
		rc = gcb_pair_begin(p);
	if (!rc)
		rc = move(&b, data, p->nbytes);
	if (!rc)
		gcb_pair_end(p);
	close_bare(&b);
	return rc;
}

/* One message, whole. */
static int pass(struct bare *b, int sends, uint8_t *data)
{
	size_t nbytes = (size_t)b->p->nbytes, at = 0;
	ssize_t n;

	if (sends) {
		n = send(b->fd, data, nbytes, MSG_NOSIGNAL);
		return n == (ssize_t)nbytes ? 0 : gcb_pair_fail(b->p, "send: %s", strerror(errno));
	}
	while (at < nbytes) {
		if (await(b))
			return gcb_pair_fail(b->p, "epoll: %s", strerror(errno));
		n = recv(b->fd, data + at, nbytes - at, 0);
		if (n <= 0 && (n == 0 || errno != EAGAIN))
			return gcb_pair_fail(b->p, "recv: %s", n ? strerror(errno) : "its end");
		at += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int bounce(struct bare *b, uint64_t rounds)
{
	uint8_t data[GCB_MAX_BOUNCE_NBYTES] = {0};
	uint64_t i;
	int rc = 0;

	for (i = 0; i < 2 * rounds && !rc; i++)
		rc = pass(b, (i & 1) == (uint64_t)b->p->rank, data);
	return rc;
}

static int pingpong_side(struct gcb_pair *p)
{
	struct bare b;
	int rc = open_bare(&b, p);

	if (!rc)
		rc = bounce(&b, GCB_WARM_ROUNDS);
	if (!rc)
		rc = gcb_pair_begin(p);
	if (!rc)
		rc = bounce(&b, p->rounds);
	if (!rc)
		gcb_pair_end(p);
	close_bare(&b);
	return rc;
}

const struct gcb_way gcb_bare_stream = {.name = "bare",
	.what = "send and recv of 1 MiB, epoll when they would block",
	.side = stream_side,
	.checks = 1};
const struct gcb_way gcb_bare_pingpong = {
	.name = "bare", .what = "epoll, recv, send", .side = pingpong_side};
