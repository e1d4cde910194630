/* SPDX-License-Identifier: MIT
 * A connection's bytes: plain, or through TLS where its link is encrypted. The kernel's socket is
 * touched here only, but for io_uring (path_uring.c), which takes plain connections. */
#include "base/log.h"
#include "transport/gcm.h"
#include "transport/tcp_impl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define FEW_NBYTES 512

/* For the engine: what the socket has, as much as others leave us in this turn. */
static ssize_t take(void *user, void *buf, size_t n)
{
	struct gci_conn *c = user;
	ssize_t got;

	if (c->first_at < c->nfirst) {
		n = n < c->nfirst - c->first_at ? n : c->nfirst - c->first_at;
		memcpy(buf, c->greeting + c->first_at, n);
		c->first_at += n;
		return (ssize_t)n;
	}
	if (c->drained || c->taken_nbytes >= GCI_PATH_TURN_NBYTES)
		return -EAGAIN;
	do {
		got = recv(c->fd, buf, n, 0);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	c->taken_nbytes += (size_t)got;
	c->midway_ns = 0;
	c->drained = got && (size_t)got < n; /* the poll tells when there is more */
	return got;
}

static ssize_t recv_secure(struct gci_conn *c, const struct iovec *iov, int niov)
{
	struct gci_error e = {0};
	ssize_t n;

	n = gci_secure_read(c->secure, iov, niov, &e);
	if (n >= 0)
		return n;
	if (n == -EBADMSG)
		gci_log(GCI_LOG_WARN, "rank %d: from rank %d: %s", c->tcp->tp.config.rank, c->peer,
			e.text);
	errno = (int)-n;
	return -1;
}

ssize_t gci_conn_recv(struct gci_conn *c, const struct iovec *iov, int niov)
{
	ssize_t n;

	if (c->secure)
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

	iov.iov_base = (void *)(uintptr_t)gci_secure_out(c->secure, &iov.iov_len);
	while (iov.iov_len) {
		n = send_once(c, &iov, 1, iov.iov_len);
		if (n < 0) {
			c->blocked = !c->send_error;
			return 0;
		}
		gci_secure_sent(c->secure, (size_t)n);
		iov.iov_base = (void *)(uintptr_t)gci_secure_out(c->secure, &iov.iov_len);
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
		if (!c->sealed_nbytes)
			n = gci_secure_write(c->secure, iov, niov, gone, &e);
		if (n < 0) {
			gci_log(GCI_LOG_WARN, "rank %d: to rank %d: %s", c->tcp->tp.config.rank,
				c->peer, e.text);
			gci_conn_send_failed(c, (int)-n);
			break;
		}
		c->sealed_nbytes += (size_t)n;
		if (!c->sealed_nbytes || !push(c))
			break;
		gone += c->sealed_nbytes;
		c->sealed_nbytes = 0;
	} while (1);
	return gone;
}

size_t gci_conn_send(struct gci_conn *c, const struct iovec *iov, int niov, size_t nbytes)
{
	ssize_t n;

	if (c->secure)
		return send_secure(c, iov, niov);
	if (!nbytes)
		return 0;
	n = send_once(c, iov, niov, nbytes);
	if (!c->send_error && (n < 0 || (size_t)n < nbytes))
		c->blocked = 1;
	return n > 0 ? (size_t)n : 0;
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
			t->path == &gci_path_poll ? ""
						  : "; connections with it are polled, "
						    "not io_uring's");
	OPENSSL_cleanse(&config, sizeof(config));
	return t->secure;
}

int gci_conn_secure(struct gci_conn *c, struct gci_error *e)
{
	struct gci_tcp *t = c->tcp;
	struct gci_secure_name name = {.epoch = t->tp.config.epoch,
		.client = (uint32_t)t->tp.config.rank,
		.server = (uint32_t)c->peer};
	struct gci_secure_ctx *ctx = context(t, e);

	return ctx ? gci_secure_create(&c->secure, ctx, &name, take, c, e) : e->status;
}

int gci_conn_answer(struct gci_conn *c, struct gci_error *e)
{
	const struct iovec alert = {(void *)(uintptr_t)gci_secure_alert, GCI_SECURE_ALERT};
	struct gci_secure_ctx *ctx = context(c->tcp, e);
	int rc = ctx ? gci_secure_answer(&c->secure, ctx, c->greeting, c->ngreeting, take, c, e)
		     : -1;

	/* A rank of another job, perhaps, that should know why. */
	if (rc == GCI_SECURE_NO_KEY)
		offer(c->fd, &alert, 1, alert.iov_len);
	if (rc <= 0)
		return rc;
	c->nfirst = c->ngreeting;
	c->ngreeting = 0;
	return 1;
}

int gci_conn_shake(struct gci_conn *c, struct gci_error *e)
{
	int rc = gci_secure_shake(c->secure, e);

	/* A few hundred bytes, the first ones on a socket: its buffer takes them whole. */
	if (!push(c) && rc >= 0)
		rc = c->send_error ? -c->send_error : -ENOBUFS;
	return rc;
}

int gci_conn_holds(const struct gci_conn *c)
{
	return c->sealed_nbytes > 0;
}
