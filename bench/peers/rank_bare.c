/* SPDX-License-Identifier: MIT
 * What sockets alone make of a bcast: a pipeline of all ranks in their order, so over each link between
 * clusters once, one connection a hop. Each rank passes on what has come, when epoll says that it may.
 * No frames, no checksums, no encryption, and nothing is known of the network. */
#include "bench/peers/rank.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CALL_NBYTES (256u << 10) /* most of one call */
#define OPEN_NAPS   6000         /* of 10 ms, until the next rank listens */

static struct {
	int rank, size, epoll;
	int before, next; /* connections; -1: none */
} all = {.before = -1, .next = -1, .epoll = -1};

static int failed(const char *what)
{
	fprintf(stderr, "bare: %s: %s\n", what, strerror(errno));
	return -1;
}

/* This host's address: its first interface that is up and not the loopback. */
static struct in_addr own_address(const struct gcb_place *p)
{
	struct in_addr a = {htonl(INADDR_LOOPBACK)};
	struct ifaddrs *list = NULL, *i;

	if (p->one_net || getifaddrs(&list))
		return a;
	for (i = list; i; i = i->ifa_next)
		if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET && i->ifa_flags & IFF_UP &&
			!(i->ifa_flags & IFF_LOOPBACK)) {
			a = ((struct sockaddr_in *)(void *)i->ifa_addr)->sin_addr;
			break;
		}
	freeifaddrs(list);
	return a;
}

/* A listening socket, whose address DIR/bare-RANK has. */
static int listen_here(const struct gcb_place *p)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = own_address(p)};
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char path[300], hidden[310];
	FILE *f;

	snprintf(path, sizeof(path), "%s/bare-%d", p->dir, p->rank);
	snprintf(hidden, sizeof(hidden), "%s.new", path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, 1) ||
		getsockname(fd, (struct sockaddr *)&a, &len))
		return failed("listening");
	f = fopen(hidden, "we");
	if (!f)
		return failed(hidden);
	fwrite(&a, sizeof(a), 1, f);
	if (fclose(f) || rename(hidden, path))
		return failed(path);
	return fd;
}

static int connect_to_next(const struct gcb_place *p)
{
	const struct timespec nap = {0, 10000000};
	struct sockaddr_in a;
	char path[300];
	FILE *f = NULL;
	size_t n;
	int i, one = 1;

	snprintf(path, sizeof(path), "%s/bare-%d", p->dir, p->rank + 1);
	for (i = 0; i < OPEN_NAPS && !(f = fopen(path, "re")); i++)
		nanosleep(&nap, NULL);
	if (!f)
		return failed(path);
	n = fread(&a, sizeof(a), 1, f);
	fclose(f);
	all.next = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (n != 1 || all.next < 0 || connect(all.next, (struct sockaddr *)&a, sizeof(a)))
		return failed("connecting");
	setsockopt(all.next, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return 0;
}

static int open_bare(struct gcb_place *p)
{
	int l = p->rank ? listen_here(p) : -1, one = 1, rc = p->rank && l < 0 ? -1 : 0;

	all.rank = p->rank;
	all.size = p->size;
	all.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!rc && p->rank < p->size - 1)
		rc = connect_to_next(p);
	if (!rc && p->rank) {
		all.before = accept4(l, NULL, NULL, SOCK_CLOEXEC);
		if (all.before < 0)
			rc = failed("accepting");
		else
			setsockopt(all.before, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	}
	if (l >= 0)
		close(l);
	return rc;
}

/* Bytes that a call moved; 0: it would block. */
static ssize_t moved(ssize_t n, const char *what)
{
	if (n > 0)
		return n;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	errno = n ? errno : ECONNRESET;
	return failed(what);
}

static size_t part(uint64_t nbytes)
{
	return nbytes < CALL_NBYTES ? (size_t)nbytes : CALL_NBYTES;
}

/* Watches a socket only while there is something to do. */
static int watch(int fd, uint32_t events, uint32_t *watched)
{
	struct epoll_event ev = {.events = events, .data = {.fd = fd}};
	int op = !*watched ? EPOLL_CTL_ADD : events ? EPOLL_CTL_MOD : EPOLL_CTL_DEL;

	if (events == *watched)
		return 0;
	*watched = events;
	return epoll_ctl(all.epoll, op, fd, &ev) ? failed("epoll_ctl") : 0;
}

static int bcast(void *buf, uint64_t nbytes)
{
	uint64_t come = all.before < 0 ? nbytes : 0, gone = all.next < 0 ? nbytes : 0;
	uint32_t in = 0, out = 0;
	struct epoll_event ev[2];
	char *data = buf;
	ssize_t n;
	int rc = 0;

	while (!rc && (come < nbytes || gone < nbytes)) {
		n = 0;
		if (come < nbytes) {
			n = moved(recv(all.before, data + come, part(nbytes - come), MSG_DONTWAIT),
				"recv");
			come += n > 0 ? (uint64_t)n : 0;
		}
		if (n >= 0 && gone < come) {
			ssize_t sent = moved(send(all.next, data + gone, part(come - gone),
						     MSG_DONTWAIT | MSG_NOSIGNAL),
				"send");

			gone += sent > 0 ? (uint64_t)sent : 0;
			n = sent < 0 ? sent : n + sent;
		}
		if (n < 0)
			rc = -1;
		if (n)
			continue;
		if (all.before >= 0)
			rc = watch(all.before, come < nbytes ? EPOLLIN : 0, &in);
		if (all.next >= 0 && !rc)
			rc = watch(all.next, gone < come ? EPOLLOUT : 0, &out);
		if (!rc && epoll_wait(all.epoll, ev, 2, -1) < 0 && errno != EINTR)
			rc = failed("epoll_wait");
	}
	if (in)
		rc |= watch(all.before, 0, &in);
	if (out)
		rc |= watch(all.next, 0, &out);
	return rc;
}

static int pass(int from, int to)
{
	char token = 0;

	if (from >= 0 && recv(from, &token, 1, MSG_WAITALL) != 1)
		return failed("recv");
	if (to >= 0 && send(to, &token, 1, MSG_NOSIGNAL) != 1)
		return failed("send");
	return 0;
}

/* A token to the last rank, and back. */
static int barrier(void)
{
	return pass(all.before, all.next) || pass(all.next, all.before) ? -1 : 0;
}

static void close_bare(void)
{
	if (all.before >= 0)
		close(all.before);
	if (all.next >= 0)
		close(all.next);
	close(all.epoll);
}

const struct gcb_lib gcb_lib_bare = {.name = "sockets",
	.open = open_bare,
	.bcast = bcast,
	.barrier = barrier,
	.close = close_bare};
