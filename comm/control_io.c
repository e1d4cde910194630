/* SPDX-License-Identifier: MIT */
#include "comm/control_io.h"

#include "base/clock.h"
#include "base/units.h"
#include "transport/sockopt.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <openssl/crypto.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define JOIN_PATIENCE (30 * GCI_NS_PER_S)

static int local_ip(int fd, char *ip)
{
	struct gci_address a = {.len = sizeof(a.v6)};

	if (getsockname(fd, &a.any, &a.len))
		return -1;
	gci_address_ip(&a, ip);
	return 0;
}

static int connect_to(const struct sockaddr *to, socklen_t len, uint64_t patience_ns)
{
	/* The launcher beats from HELLO on: so long a silence is its end. */
	const struct timeval patience = {.tv_sec = (time_t)(patience_ns / GCI_NS_PER_S),
		.tv_usec = (suseconds_t)(patience_ns % GCI_NS_PER_S / 1000)};
	int fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0), why;

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (!connect(fd, to, len)) {
		gci_sockopt_control(fd);
		return fd;
	}
	why = errno;
	close(fd);
	errno = why;
	return -1;
}

/* "HOST:PORT": at the first of its addresses that answers. */
static int connect_by_name(const char *rendezvous, struct gci_error *e)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL, *it;
	const char *colon = strrchr(rendezvous, ':');
	char host[256];
	uint64_t port;
	int rc, fd = -1;

	if (!colon || colon == rendezvous || (size_t)(colon - rendezvous) >= sizeof(host) ||
		strcspn(rendezvous, ":[]/") != (size_t)(colon - rendezvous) ||
		gci_parse_uint(colon + 1, 65535, &port) || !port) {
		gci_error_set(e, GCOLL_ERR_INVAL,
			"GRIDCOLL_RENDEZVOUS=%s, expected HOST:PORT, IP:PORT or [IP]:PORT",
			rendezvous);
		return -1;
	}
	snprintf(host, sizeof(host), "%.*s", (int)(colon - rendezvous), rendezvous);
	rc = getaddrinfo(host, colon + 1, &hints, &list);
	if (rc) {
		gci_error_set(e, GCOLL_ERR_SYS, "cannot reach the launcher at %s: %s", rendezvous,
			gai_strerror(rc));
		return -1;
	}
	for (it = list; it && fd < 0; it = it->ai_next)
		fd = connect_to(it->ai_addr, it->ai_addrlen, JOIN_PATIENCE);
	if (fd < 0)
		gci_error_errno(e, "cannot reach the launcher at %s", rendezvous);
	freeaddrinfo(list);
	return fd;
}

static int open_socket(const char *rendezvous, struct gci_error *e)
{
	struct gci_address a;
	int fd;

	if (gci_address_parse(&a, rendezvous))
		return connect_by_name(rendezvous, e);
	fd = connect_to(&a.any, a.len, JOIN_PATIENCE);
	if (fd < 0)
		gci_error_errno(e, "cannot reach the launcher at %s", rendezvous);
	return fd;
}

int gci_control_io_open(struct gci_control_io *io, const char *rendezvous,
	char ip[GCI_ADDRESS_TEXT], struct gci_error *e)
{
	*io = (struct gci_control_io){
		.fd = open_socket(rendezvous, e), .patience_ns = JOIN_PATIENCE};
	if (io->fd < 0)
		return e->status ? e->status : GCOLL_ERR_SYS;
	io->peer.len = sizeof(io->peer.v6);
	if (!local_ip(io->fd, ip) && !getpeername(io->fd, &io->peer.any, &io->peer.len))
		return 0;
	gci_error_errno(e, "joining the job");
	gci_control_io_close(io);
	return GCOLL_ERR_SYS;
}

static ssize_t take(void *user, void *buf, size_t n)
{
	struct gci_control_io *io = user;
	ssize_t got;

	do
		got = recv(io->fd, buf, n, io->flags);
	while (got < 0 && errno == EINTR);
	if (got > 0) { /* it may be enough: no more waiting */
		io->flags |= MSG_DONTWAIT;
		io->got = 1;
	}
	if (!got && gci_sockopt_was_reset(io->fd)) {
		got = -1;
		errno = ECONNRESET;
	}
	io->hung_up |= got == 0 || (got < 0 && errno == ECONNRESET);
	return got < 0 ? -errno : got;
}

/* Sends what is encrypted: 0, or -1 with errno. */
static int push(struct gci_control_io *io, int flags)
{
	const uint8_t *p;
	size_t left;
	ssize_t n;

	while ((p = gci_secure_out(io->tls, &left)) != NULL) {
		n = send(io->fd, p, left, flags | MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		gci_secure_sent(io->tls, (size_t)n);
	}
	return 0;
}

/* True if something can be read. */
static int wait_until(int fd, uint64_t end_ns)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	uint64_t now = gci_now_ns();
	int n;

	for (; now < end_ns; now = gci_now_ns()) {
		n = poll(&p, 1, (int)((end_ns - now) / GCI_NS_PER_MS) + 1);
		if (n > 0 || (n < 0 && errno != EINTR))
			return n > 0;
	}
	return 0;
}

static int shake_hands(struct gci_control_io *io, struct gci_error *e)
{
	const uint64_t end_ns = gci_now_ns() + io->patience_ns;
	struct gci_error why = {0};
	int rc = gci_secure_create(&io->tls, io->ctx, &io->name, take, io, e);

	if (rc)
		return rc;
	io->flags = MSG_DONTWAIT;
	do {
		rc = gci_secure_shake(io->tls, &why);
		if (push(io, 0) && rc >= 0)
			return gci_error_errno(e, "joining the job");
	} while (!rc && wait_until(io->fd, end_ns));
	if (rc == 1)
		return 0;
	io->heard = rc < 0 && io->got && !io->hung_up;
	return gci_error_set(e, GCOLL_ERR_PROTO, "whoever listens at the launcher's address: %s",
		rc ? why.text : "it does not answer");
}

int gci_control_io_secure(struct gci_control_io *io, const uint8_t secret[GCI_SECRET_NBYTES],
	uint32_t rank, uint32_t size, struct gci_error *e)
{
	struct gci_secure_config config = {.epoch = 1, .self = rank, .size = size};
	int rc;

	io->name =
		(struct gci_secure_name){.epoch = 1, .client = rank, .server = GCI_SECURE_LAUNCHER};
	memcpy(config.secret, secret, sizeof(config.secret));
	rc = gci_secure_ctx_create(&io->ctx, &config, e);
	OPENSSL_cleanse(&config, sizeof(config));
	return rc ? rc : shake_hands(io, e);
}

int gci_control_io_again(struct gci_control_io *io)
{
	const struct linger now = {.l_onoff = 1};
	struct gci_error e = {0};

	gci_secure_free(io->tls);
	io->tls = NULL;
	if (io->fd >= 0) {
		/* An end in order would be ours, for whoever may still hear of it. */
		setsockopt(io->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
		close(io->fd);
	}
	io->fd = connect_to(&io->peer.any, io->peer.len, io->patience_ns);
	if (io->fd < 0 || !io->ctx || !shake_hands(io, &e))
		return io->fd < 0 ? -1 : 0;
	errno = ECONNRESET; /* whatever was wrong with the handshake, the next one may do */
	return -1;
}

ssize_t gci_control_io_recv(struct gci_control_io *io, void *buf, size_t n, int flags)
{
	struct iovec iov = {.iov_base = buf, .iov_len = n};
	ssize_t got;

	if (!io->tls) {
		do /* SO_RCVTIMEO lets every signal end it, SA_RESTART or not */
			got = recv(io->fd, buf, n, flags);
		while (got < 0 && errno == EINTR);
		io->heard |= got > 0;
		if (got || !gci_sockopt_was_reset(io->fd))
			return got;
		errno = ECONNRESET;
		return -1;
	}
	do {
		io->flags = flags;
		io->got = 0;
		got = gci_secure_read(io->tls, &iov, 1, NULL);
	} while (got == -EAGAIN && io->got && !(flags & MSG_DONTWAIT));
	io->heard |= got > 0;
	if (got >= 0)
		return got;
	errno = (int)-got;
	return -1;
}

ssize_t gci_control_io_send(struct gci_control_io *io, const void *data, size_t n, int flags)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)data, .iov_len = n};
	ssize_t taken;

	if (!io->tls)
		return send(io->fd, data, n, flags | MSG_NOSIGNAL);
	if (push(io, flags))
		return -1;
	taken = gci_secure_write(io->tls, &iov, 1, 0, NULL);
	if (taken < 0) {
		errno = (int)-taken;
		return -1;
	}
	/* What does not go now is held. */
	return push(io, flags) && errno != EAGAIN ? -1 : taken;
}

int gci_control_io_holds(const struct gci_control_io *io)
{
	size_t n = 0;

	if (io->tls)
		gci_secure_out(io->tls, &n);
	return n > 0;
}

void gci_control_io_close(struct gci_control_io *io)
{
	gci_secure_free(io->tls);
	gci_secure_ctx_free(io->ctx);
	if (io->fd >= 0) {
		shutdown(io->fd, SHUT_RDWR); /* children by fork may have it as well */
		close(io->fd);
	}
	io->fd = -1;
	io->tls = NULL;
	io->ctx = NULL;
}
