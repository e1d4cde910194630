/* SPDX-License-Identifier: MIT
 * One connection, and its handshake. OpenSSL never blocks in it: what it writes goes to a buffer,
 * and what it reads is there or not. */
#include "transport/secure.h"

#include "base/mem.h"
#include "transport/secure_impl.h"

#include <errno.h>
#include <openssl/err.h>
#include <string.h>

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
	s->traffic = gci_secret_alloc(2 * sizeof(*s->traffic));
	if (!s->traffic || make_ssl(s)) {
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
		gci_error_set(e, GCOLL_ERR_PROTO, "TLS: no hello %s",
			looks == GCI_SECURE_NO_KEY ? "with the job's key" : "of this job");
	if (looks <= 0)
		return looks;
	return gci_secure_create(s, ctx, NULL, take, user, e) ? -1 : 1;
}

void gci_secure_free(struct gci_secure *s)
{
	if (!s)
		return;
	SSL_free(s->ssl);
	gci_secure_end_data(s);
	gci_buf_free(&s->out);
	gci_secret_free(s->traffic);
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

/* The handshake's work is done: its secrets go on, and OpenSSL's memory goes. */
static int finish(struct gci_secure *s, struct gci_error *e)
{
	int rc = gci_secure_begin_data(s, e);

	SSL_free(s->ssl);
	s->ssl = NULL;
	gci_secret_free(s->traffic);
	s->traffic = NULL;
	s->ready = !rc;
	return rc ? rc : 1;
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
	return finish(s, e);
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
	if (s->ready)
		return s->hi > s->lo;
	return s->ssl && (SSL_has_pending(s->ssl) || (s->connects && s->ntaken));
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
