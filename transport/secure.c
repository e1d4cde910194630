/* SPDX-License-Identifier: MIT
 * One connection. OpenSSL never blocks in it: what it writes goes to a buffer, and what it reads is
 * there or not. */
#include "transport/secure.h"

#include "base/mem.h"
#include "transport/secure_impl.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <string.h>

#define RECORD_NBYTES SSL3_RT_MAX_PLAIN_LENGTH
#define REKEY_RECORDS (1ull << 22)

/* OpenSSL's objects, with ours behind the BIO. 0 or -1. */
static int make_ssl(struct gci_secure *s)
{
	BIO *bio;

	s->ssl = SSL_new(s->ctx->ssl);
	bio = BIO_new(s->ctx->bio);
	if (!s->ssl || !bio) {
		BIO_free(bio);
		return -1;
	}
	BIO_set_data(bio, s);
	BIO_set_init(bio, 1);
	SSL_set_bio(s->ssl, bio, bio); /* which owns it now */
	if (s->connects) {
		SSL_set_connect_state(s->ssl);
		SSL_set_verify(s->ssl, SSL_VERIFY_PEER, NULL); /* no certificate will do */
	} else {
		SSL_set_accept_state(s->ssl);
	}
	return SSL_set_app_data(s->ssl, s) ? 0 : -1;
}

int gci_secure_create(struct gci_secure **out, struct gci_secure_ctx *ctx,
	const struct gci_secure_name *name, gci_secure_take *take, void *user, struct gci_error *e)
{
	struct gci_secure *s = gci_calloc(1, sizeof(*s));

	*out = NULL;
	if (!s)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory for TLS");
	s->ctx = ctx;
	s->take = take;
	s->user = user;
	if (name) {
		s->connects = 1;
		s->name = *name;
		gci_secure_identity(name, s->identity);
	}
	if (make_ssl(s)) {
		ERR_clear_error();
		gci_secure_free(s);
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory for TLS");
	}
	*out = s;
	return 0;
}

int gci_secure_answer(struct gci_secure **s, struct gci_secure_ctx *ctx, const uint8_t *bytes,
	size_t n, gci_secure_take *take, void *user, struct gci_error *e)
{
	int looks = gci_secure_glance(ctx, bytes, n);

	if (looks < 0)
		gci_error_set(e, GCOLL_ERR_PROTO, "TLS: no hello of this job");
	if (looks <= 0)
		return looks;
	return gci_secure_create(s, ctx, NULL, take, user, e) ? -1 : 1;
}

void gci_secure_free(struct gci_secure *s)
{
	if (!s)
		return;
	SSL_free(s->ssl);
	gci_buf_free(&s->out);
	if (s->gather)
		OPENSSL_cleanse(s->gather, RECORD_NBYTES);
	gci_free(s->gather);
	gci_free(s);
}

/* What has ended a call of OpenSSL's without success: -EAGAIN, 0 for the end, or an errno. */
static ssize_t reason(struct gci_secure *s, int otherwise, struct gci_error *e)
{
	ssize_t rc = s->took;

	if (s->out.failed || s->short_of_memory)
		rc = -ENOMEM;
	else if (rc > 0)
		rc = -otherwise;
	if (rc == -otherwise)
		gci_error_set(e, GCOLL_ERR_PROTO, "TLS: %s", gci_secure_why("no reason given"));
	else if (rc < 0 && rc != -EAGAIN)
		gci_error_set(e, GCOLL_ERR_SYS, "TLS: %s", strerror((int)-rc));
	ERR_clear_error();
	return rc;
}

/* Once our FINISHED has gone out, the hello was made with the key that it names. */
static void look_who_called(struct gci_secure *s)
{
	uint8_t bytes[SSL3_RANDOM_SIZE] = {0};

	if (s->connects || s->shown || !SSL_session_reused(s->ssl) ||
		!SSL_get_finished(s->ssl, bytes, sizeof(bytes)))
		return;
	if (SSL_get_client_random(s->ssl, bytes, sizeof(bytes)) == sizeof(bytes))
		s->shown = !gci_secure_hear(s->ctx, bytes);
}

/* A stranger's buffer holds one record; data is taken in larger pieces. Not as long as the buffer
 * has anything in it. */
static void widen(struct gci_secure *s)
{
	SSL_set_default_read_buffer_len(s->ssl, GCI_SECURE_READ);
	s->wide = SSL_free_buffers(s->ssl);
}

int gci_secure_shake(struct gci_secure *s, struct gci_error *e)
{
	ssize_t rc;
	int done;

	if (s->ready)
		return 1;
	ERR_clear_error();
	s->took = 1;
	done = SSL_do_handshake(s->ssl) == 1;
	look_who_called(s);
	if (!done) {
		if (s->took > 0 && s->ntaken == GCI_SECURE_MAX_HANDSHAKE)
			gci_error_set(e, GCOLL_ERR_PROTO, "TLS: a handshake of more than %d bytes",
				GCI_SECURE_MAX_HANDSHAKE);
		rc = reason(s, EPROTO, e);
		if (!rc)
			gci_error_set(e, GCOLL_ERR_PEER, "closed in the middle of a handshake");
		return rc == -EAGAIN ? 0 : rc ? (int)rc : -ECONNRESET;
	}
	/* A server that does not know the key may show a certificate, and a client of none at all
	 * would believe it. */
	if (!SSL_session_reused(s->ssl)) {
		gci_error_set(e, GCOLL_ERR_PROTO, "TLS: the peer has not shown the job's key");
		return -EPROTO;
	}
	s->ready = 1;
	return 1;
}

int gci_secure_is_ready(const struct gci_secure *s)
{
	return s->ready;
}

int gci_secure_has_shown(const struct gci_secure *s)
{
	return s->shown;
}

struct gci_secure_name gci_secure_name(const struct gci_secure *s)
{
	return s->name;
}

int gci_secure_is_midway(const struct gci_secure *s)
{
	return SSL_has_pending(s->ssl) || (s->connects && s->ntaken && !s->ready);
}

unsigned gci_secure_nrekeys(const struct gci_secure *s)
{
	return s->nrekeys;
}

/* One record. */
static int seal(struct gci_secure *s, const void *data, size_t n)
{
	uint64_t most = s->ctx->config.rekey_records;
	size_t done = 0;

	if (s->nrecords >= (most ? most : REKEY_RECORDS)) {
		/* Goes out ahead of the record, under the old key. */
		if (!SSL_key_update(s->ssl, SSL_KEY_UPDATE_NOT_REQUESTED))
			return -1;
		s->nrecords = 0;
		s->nrekeys++;
	}
	s->nrecords++;
	return SSL_write_ex(s->ssl, data, n, &done) && done == n ? 0 : -1;
}

ssize_t gci_secure_write(
	struct gci_secure *s, const struct iovec *iov, int niov, size_t skip, struct gci_error *e)
{
	size_t taken = 0, fill = 0, at, n;
	int i, rc = 0;

	ERR_clear_error();
	s->took = 1;
	if (!s->gather) {
		s->gather = gci_calloc(1, RECORD_NBYTES);
		if (!s->gather) {
			gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory for TLS");
			return -ENOMEM;
		}
	}
	for (i = 0; i < niov && !rc; i++) {
		at = skip < iov[i].iov_len ? skip : iov[i].iov_len;
		skip -= at;
		for (; at < iov[i].iov_len && taken < GCI_SECURE_BATCH && !rc; at += n) {
			const uint8_t *p = (const uint8_t *)iov[i].iov_base + at;

			n = iov[i].iov_len - at;
			if (n > GCI_SECURE_BATCH - taken)
				n = GCI_SECURE_BATCH - taken;
			if (n > RECORD_NBYTES - fill)
				n = RECORD_NBYTES - fill;
			taken += n;
			if (n == RECORD_NBYTES) {
				rc = seal(s, p, n);
				continue;
			}
			memcpy(s->gather + fill, p, n);
			fill += n;
			if (fill == RECORD_NBYTES) {
				rc = seal(s, s->gather, fill);
				fill = 0;
			}
		}
	}
	if (fill && !rc)
		rc = seal(s, s->gather, fill);
	return rc ? reason(s, EBADMSG, e) : (ssize_t)taken;
}

const uint8_t *gci_secure_out(const struct gci_secure *s, size_t *nbytes)
{
	*nbytes = s->out.len - s->gone;
	return *nbytes ? s->out.data + s->gone : NULL;
}

void gci_secure_sent(struct gci_secure *s, size_t nbytes)
{
	s->gone += nbytes;
	if (s->gone == s->out.len)
		s->gone = s->out.len = 0;
}

ssize_t gci_secure_read(
	struct gci_secure *s, const struct iovec *iov, int niov, struct gci_error *e)
{
	size_t total = 0, at, n;
	int i;

	ERR_clear_error();
	s->took = 1;
	if (!s->wide)
		widen(s);
	for (i = 0; i < niov; i++)
		for (at = 0; at < iov[i].iov_len; at += n, total += n)
			if (!SSL_read_ex(s->ssl, (uint8_t *)iov[i].iov_base + at,
				    iov[i].iov_len - at, &n))
				return total ? (ssize_t)total : reason(s, EBADMSG, e);
	return (ssize_t)total;
}
