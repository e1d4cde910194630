/* SPDX-License-Identifier: MIT
 * Connections by TLS: what all of them share, what a stranger says first, their handshake and their data. */
#include "transport/secure.h"

#include "base/mem.h"
#include "transport/secret.h"
#include "transport/secure_impl.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <string.h>

/* ---- What is OpenSSL's: its settings, the PSK of a connection, and a BIO between it and the
 * connection's buffers. */

#define GCI_SECURE_PSK 32
#define MAGIC          "gridcoll tls"

_Static_assert(sizeof(MAGIC) - 1 + 3 * 4 == GCI_SECURE_IDENTITY, "a magic and three numbers");

const char *gci_secure_why(const char *otherwise)
{
	const char *why = ERR_reason_error_string(ERR_peek_last_error());

	return why ? why : otherwise;
}

void gci_secure_identity(const struct gci_secure_name *name, uint8_t out[GCI_SECURE_IDENTITY])
{
	uint8_t *p = out + sizeof(MAGIC) - 1;

	memcpy(out, MAGIC, sizeof(MAGIC) - 1);
	gci_store_u32(p, name->epoch);
	gci_store_u32(p + 4, name->client);
	gci_store_u32(p + 8, name->server);
}

int gci_secure_identify(const uint8_t *bytes, size_t n, struct gci_secure_name *name)
{
	const uint8_t *p = bytes + sizeof(MAGIC) - 1;

	if (n != GCI_SECURE_IDENTITY || memcmp(bytes, MAGIC, sizeof(MAGIC) - 1) != 0)
		return -1;
	name->epoch = gci_load_u32(p);
	name->client = gci_load_u32(p + 4);
	name->server = gci_load_u32(p + 8);
	return name->client != name->server ? 0 : -1;
}

/* ---- keys */

/* The key of a connection: 0, or GCOLL_ERR_NOMEM. The caller wipes it. */
static int gci_secure_psk(const struct gci_secure_ctx *ctx, const struct gci_secure_name *name,
	uint8_t key[GCI_SECURE_PSK])
{
	const uint32_t numbers[] = {name->epoch, name->client, name->server};

	return gci_derive(ctx->secret, "gridcoll tls 1", numbers, 3, key);
}

/* The session that stands for the PSK of this connection; NULL: out of memory. */
static SSL_SESSION *make_session(struct gci_secure *s)
{
	static const uint8_t cipher_id[] = {0x13, 0x01}; /* TLS_AES_128_GCM_SHA256 */
	const SSL_CIPHER *cipher = SSL_CIPHER_find(s->ssl, cipher_id);
	SSL_SESSION *session = SSL_SESSION_new();
	uint8_t key[GCI_SECURE_PSK];
	int ok = session && cipher;

	ok = ok && !gci_secure_psk(s->ctx, &s->name, key);
	ok = ok && SSL_SESSION_set1_master_key(session, key, sizeof(key)) &&
	     SSL_SESSION_set_cipher(session, cipher) &&
	     SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION);
	OPENSSL_cleanse(key, sizeof(key));
	if (ok)
		return session;
	s->short_of_memory = 1;
	SSL_SESSION_free(session);
	return NULL;
}

/* The connecting side's. `md` is given when the server has asked for another hello: ours is the
 * only hash there is. */
static int on_use(
	SSL *ssl, const EVP_MD *md, const uint8_t **id, size_t *nbytes, SSL_SESSION **session)
{
	struct gci_secure *s = SSL_get_app_data(ssl);

	*session = NULL;
	if (md && !EVP_MD_is_a(md, "SHA256"))
		return 0;
	*session = make_session(s);
	*id = s->identity;
	*nbytes = sizeof(s->identity);
	return *session != NULL;
}

/* Whether a rank of this job's, in this epoch, calls us; as far as the name says. */
static int gci_secure_is_for_us(
	const struct gci_secure_ctx *ctx, const struct gci_secure_name *name)
{
	return name->epoch == ctx->config.epoch && name->server == ctx->config.self &&
	       name->client < ctx->config.size;
}

/* ---- A stranger's first bytes, a ClientHello (RFC 8446, 4.1.2), before OpenSSL sees any of them: it
 * takes what our keys were used for. That costs a few hashes, and OpenSSL ten times as much to find
 * the same. */

#define RECORD_HEAD  5
#define MESSAGE_HEAD 4
#define RANDOM_AT    (RECORD_HEAD + MESSAGE_HEAD + 2)
#define AGE          4
#define HASH         SHA256_DIGEST_LENGTH
#define BINDERS      (2 + 1 + HASH)
#define TAIL         (2 + GCI_SECURE_IDENTITY + AGE + BINDERS) /* of the last extension */
#define LEAST_HELLO  (RANDOM_AT + 32 + TAIL)
#define MOST_HEARD   (1u << 16) /* twice as many take 2 MiB */

/* Fatal: decrypt_error. */
const uint8_t gci_secure_alert[GCI_SECURE_ALERT] = {21, 3, 3, 0, 2, 2, 51};

/* Whether the hello with this random has served, and that it has: 0 or -1. */
static int gci_secure_was_heard(const struct gci_secure_ctx *ctx, const uint8_t *random)
{
	uint64_t number = gci_load_u64(random);

	return gci_u64set_has(&ctx->heard, number) || gci_u64set_has(&ctx->heard_before, number);
}

static int gci_secure_hear(struct gci_secure_ctx *ctx, const uint8_t *random)
{
	size_t most = ctx->config.most_heard ? ctx->config.most_heard : MOST_HEARD;

	if (ctx->heard.n >= most) {
		gci_u64set_free(&ctx->heard_before);
		ctx->heard_before = ctx->heard;
		ctx->heard = (struct gci_u64set){0};
	}
	return gci_u64set_add(&ctx->heard, gci_load_u64(random));
}

/* What the binder's key is made of: 4.2.11.2 and 7.1. 0, or -1: out of memory. */
static int binder_key(
	const struct gci_secure_ctx *ctx, const struct gci_secure_name *name, uint8_t key[HASH])
{
	static const uint8_t zeros[HASH];
	uint8_t psk[GCI_SECURE_PSK], early[HASH], base[HASH], nothing[HASH];
	int ok = !gci_secure_psk(ctx, name, psk);

	ok = ok && HMAC(EVP_sha256(), zeros, sizeof(zeros), psk, sizeof(psk), early, NULL);
	ok = ok && SHA256(zeros, 0, nothing);
	ok = ok && !gci_derive_label(early, "ext binder", nothing, HASH, base, HASH);
	ok = ok && !gci_derive_label(base, "finished", NULL, 0, key, HASH);
	OPENSSL_cleanse(psk, sizeof(psk));
	OPENSSL_cleanse(early, sizeof(early));
	OPENSSL_cleanse(base, sizeof(base));
	return ok ? 0 : -1;
}

/* Whether the hello of n bytes ends with an HMAC of all before; -1: there is no memory to tell. */
static int is_bound(const struct gci_secure_ctx *ctx, const struct gci_secure_name *name,
	const uint8_t *hello, size_t n)
{
	static const uint8_t begin[] = {0, 1 + HASH, HASH};
	const uint8_t *binders = hello + n - BINDERS;
	uint8_t key[HASH], hash[HASH], binder[HASH];
	int ok, same = 0;

	if (memcmp(binders, begin, sizeof(begin)) != 0)
		return 0;
	ok = !binder_key(ctx, name, key) && SHA256(hello, n - BINDERS, hash) &&
	     HMAC(EVP_sha256(), key, sizeof(key), hash, sizeof(hash), binder, NULL);
	if (ok)
		same = !CRYPTO_memcmp(binder, binders + sizeof(begin), sizeof(binder));
	OPENSSL_cleanse(key, sizeof(key));
	OPENSSL_cleanse(binder, sizeof(binder));
	return ok ? same : -1;
}

/* A record's header, a handshake message's, a version, what the client made up, and more; at the
 * end, as the last extension must be, its one PSK. */
int gci_secure_glance(const struct gci_secure_ctx *ctx, const uint8_t *bytes, size_t n)
{
	static const uint8_t begin[] = {GCI_SECURE_HELLO, 3};
	struct gci_secure_name name;
	const uint8_t *tail;
	size_t nbytes;
	int bound;

	if (memcmp(bytes, begin, n < sizeof(begin) ? n : sizeof(begin)) != 0)
		return -1;
	if (n < RECORD_HEAD)
		return 0;
	nbytes = RECORD_HEAD + (size_t)(bytes[3] << 8 | bytes[4]);
	if (nbytes > GCI_SECURE_FIRST || nbytes < LEAST_HELLO)
		return -1;
	if (n < nbytes)
		return 0;
	tail = bytes + nbytes - TAIL;
	if (tail[0] || tail[1] != GCI_SECURE_IDENTITY ||
		gci_secure_identify(tail + 2, GCI_SECURE_IDENTITY, &name) ||
		!gci_secure_is_for_us(ctx, &name) || gci_secure_was_heard(ctx, bytes + RANDOM_AT))
		return -1;
	bound = is_bound(ctx, &name, bytes + RECORD_HEAD, nbytes - RECORD_HEAD);
	return bound ? bound : GCI_SECURE_NO_KEY;
}

/* ---- OpenSSL asks for keys */

/* The accepting side's: whoever calls says who it is. No session: nobody that we know. */
static int on_find(SSL *ssl, const uint8_t *id, size_t nbytes, SSL_SESSION **session)
{
	struct gci_secure *s = SSL_get_app_data(ssl);
	struct gci_secure_name name;

	*session = NULL;
	if (gci_secure_identify(id, nbytes, &name) || !gci_secure_is_for_us(s->ctx, &name))
		return 1;
	s->name = name;
	*session = make_session(s);
	return *session != NULL;
}

/* A line of OpenSSL's log of keys: the secrets of data are taken out of it. */
static void on_secret(const SSL *ssl, const char *line)
{
	static const char *const labels[] = {
		"CLIENT_TRAFFIC_SECRET_0 ", "SERVER_TRAFFIC_SECRET_0 "};
	struct gci_secure *s = SSL_get_app_data(ssl);
	const char *hex = strrchr(line, ' ');
	size_t n;
	int i;

	for (i = 0; i < 2; i++)
		if (!strncmp(line, labels[i], strlen(labels[i])))
			s->has_traffic[i] = OPENSSL_hexstr2buf_ex(s->traffic[i],
						    sizeof(s->traffic[i]), &n, hex + 1, '\0') &&
					    n == sizeof(s->traffic[i]);
}

/* Before anything else is done for it: a hello that has served is somebody else's by now. */
static int on_hello(SSL *ssl, int *alert, void *user)
{
	const struct gci_secure_ctx *ctx = user;
	const uint8_t *random;
	size_t n = SSL_client_hello_get0_random(ssl, &random);

	if (n >= 8 && !gci_secure_was_heard(ctx, random))
		return SSL_CLIENT_HELLO_SUCCESS;
	*alert = SSL_AD_HANDSHAKE_FAILURE;
	return SSL_CLIENT_HELLO_ERROR;
}

/* ---- bytes */

static int bio_read(BIO *bio, char *buf, int size)
{
	struct gci_secure *s = BIO_get_data(bio);
	size_t n = (size_t)size;

	BIO_clear_retry_flags(bio);
	if (n > GCI_SECURE_MAX_HANDSHAKE - s->ntaken)
		n = GCI_SECURE_MAX_HANDSHAKE - s->ntaken;
	if (!n)
		return -1;
	s->took = s->take(s->user, buf, n);
	if (s->took == -EAGAIN)
		BIO_set_retry_read(bio);
	if (s->took <= 0)
		return s->took ? -1 : 0;
	n = (size_t)s->took;
	s->ntaken += n;
	s->took = 1;
	return (int)n;
}

static int bio_write(BIO *bio, const char *buf, int size)
{
	struct gci_secure *s = BIO_get_data(bio);

	BIO_clear_retry_flags(bio);
	gci_buf_put(&s->out, buf, (size_t)size);
	return s->out.failed ? -1 : size;
}

static long bio_ctrl(BIO *bio, int cmd, long num, void *ptr)
{
	(void)bio;
	(void)num;
	(void)ptr;
	return cmd == BIO_CTRL_FLUSH;
}

static BIO_METHOD *make_bio(void)
{
	BIO_METHOD *m = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "gridcoll");

	if (m && BIO_meth_set_read(m, bio_read) && BIO_meth_set_write(m, bio_write) &&
		BIO_meth_set_ctrl(m, bio_ctrl))
		return m;
	BIO_meth_free(m);
	return NULL;
}

/* ---- settings */

static int configure(struct gci_secure_ctx *ctx)
{
	SSL_CTX *ssl = ctx->ssl;

	if (!SSL_CTX_set_min_proto_version(ssl, TLS1_3_VERSION) ||
		!SSL_CTX_set_max_proto_version(ssl, TLS1_3_VERSION) ||
		!SSL_CTX_set_ciphersuites(ssl, "TLS_AES_128_GCM_SHA256") ||
		!SSL_CTX_set1_groups_list(ssl, "X25519:P-256") || !SSL_CTX_set_num_tickets(ssl, 0))
		return -1;
	SSL_CTX_set_options(
		ssl, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	/* In particular no PSK without Diffie-Hellman; nor a pretence of TLS 1.2. */
	SSL_CTX_clear_options(ssl, SSL_OP_ALLOW_NO_DHE_KEX | SSL_OP_ENABLE_MIDDLEBOX_COMPAT);
	SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_max_early_data(ssl, 0);
	SSL_CTX_set_read_ahead(ssl, 0); /* what follows the handshake is not OpenSSL's */
	SSL_CTX_set_keylog_callback(ssl, on_secret);
	SSL_CTX_set_psk_use_session_callback(ssl, on_use);
	SSL_CTX_set_psk_find_session_callback(ssl, on_find);
	SSL_CTX_set_client_hello_cb(ssl, on_hello, ctx);
	return 0;
}

int gci_secure_ctx_create(
	struct gci_secure_ctx **out, const struct gci_secure_config *config, struct gci_error *e)
{
	struct gci_secure_ctx *ctx = gci_calloc(1, sizeof(*ctx));

	*out = NULL;
	if (!ctx)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory for TLS");
	ctx->config = *config;
	OPENSSL_cleanse(ctx->config.secret, sizeof(ctx->config.secret));
	ctx->secret = gci_secret_alloc(sizeof(config->secret));
	if (!ctx->secret) {
		gci_secure_ctx_free(ctx);
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory for TLS");
	}
	memcpy(ctx->secret, config->secret, sizeof(config->secret));
	ERR_clear_error();
	ctx->bio = make_bio();
	ctx->ssl = SSL_CTX_new(TLS_method());
	if (!ctx->bio || !ctx->ssl || configure(ctx)) {
		gci_error_set(e, GCOLL_ERR_SYS, "no TLS 1.3 with AES-128-GCM by OpenSSL: %s",
			gci_secure_why("out of memory"));
		ERR_clear_error();
		gci_secure_ctx_free(ctx);
		return GCOLL_ERR_SYS;
	}
	*out = ctx;
	return 0;
}

void gci_secure_ctx_free(struct gci_secure_ctx *ctx)
{
	if (!ctx)
		return;
	SSL_CTX_free(ctx->ssl);
	BIO_meth_free(ctx->bio);
	gci_u64set_free(&ctx->heard);
	gci_u64set_free(&ctx->heard_before);
	gci_secret_free(ctx->secret);
	gci_free(ctx);
}

/* ---- What follows a handshake: data in records, from the caller's memory to a batch that is sent, and
 * from what was taken to the caller's memory; and the few messages of TLS among them. */

#define REKEY_RECORDS    (1ull << 22)
#define CLOSE_NOTIFY     0
#define KEY_UPDATE       24
#define KEY_UPDATE_BYTES 5
#define MOST_CONTROL     8 /* of a message that is no data, as much as is looked at */

/* From the handshake on: the keys of data are those it has agreed upon. 0, or a negative errno. */
static int gci_secure_begin_data(struct gci_secure *s, struct gci_error *e)
{
	if (!s->has_traffic[0] || !s->has_traffic[1] || SSL_has_pending(s->ssl)) {
		gci_error_set(e, GCOLL_ERR_PROTO, "TLS: the handshake did not end where it should");
		return -EPROTO;
	}
	if (!gci_records_init(&s->tx, s->traffic[!s->connects], 1) &&
		!gci_records_init(&s->rx, s->traffic[s->connects], 0))
		return 0;
	ERR_clear_error();
	gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory for TLS");
	return -ENOMEM;
}

static void gci_secure_end_data(struct gci_secure *s)
{
	gci_records_deinit(&s->tx);
	gci_records_deinit(&s->rx);
	if (s->spill)
		OPENSSL_cleanse(s->spill, GCI_RECORD_NBYTES);
	gci_free(s->spill);
	gci_free(s->in);
}

unsigned gci_secure_nrekeys(const struct gci_secure *s)
{
	return s->nrekeys;
}

static size_t iov_nbytes(const struct iovec *iov, int niov)
{
	size_t n = 0;
	int i;

	for (i = 0; i < niov; i++)
		n += iov[i].iov_len;
	return n;
}

/* Nothing goes on. Returns `rc`. */
static int broken(struct gci_secure *s, int rc, const char *why, struct gci_error *e)
{
	s->broken = rc;
	s->why = why;
	if (rc == -ENOMEM)
		gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory for TLS");
	else
		gci_error_set(e, GCOLL_ERR_PROTO, "TLS: %s", why);
	ERR_clear_error();
	return rc;
}

/* ---- out */

/* 0 or a negative errno. */
static int seal(struct gci_secure *s, enum gci_record_type type, const struct iovec *iov, int niov,
	size_t skip, size_t n)
{
	ssize_t nbytes =
		gci_records_seal(&s->tx, type, iov, niov, skip, n, s->out.data + s->out.len);

	if (nbytes < 0)
		return (int)nbytes;
	s->out.len += (size_t)nbytes;
	return 0;
}

/* A new key, when this one has served long enough. That it comes is said with the old one. */
static int renew(struct gci_secure *s)
{
	uint8_t update[KEY_UPDATE_BYTES] = {KEY_UPDATE, 0, 0, 1, 0 /* yours may stay */};
	const struct iovec iov = {update, sizeof(update)};
	uint64_t most = s->ctx->config.rekey_records;
	int rc;

	if (!most || most > REKEY_RECORDS)
		most = REKEY_RECORDS;
	if (!s->asked && s->tx.keys->nrecords < most)
		return 0;
	rc = seal(s, GCI_RECORD_HANDSHAKE, &iov, 1, 0, sizeof(update));
	if (rc || gci_records_renew(&s->tx))
		return rc ? rc : -ENOMEM;
	s->asked = 0;
	s->nrekeys++;
	return 0;
}

ssize_t gci_secure_write(
	struct gci_secure *s, const struct iovec *iov, int niov, size_t skip, struct gci_error *e)
{
	const size_t frame = GCI_RECORD_HEAD + GCI_RECORD_TAIL, update = frame + KEY_UPDATE_BYTES;
	size_t all = iov_nbytes(iov, niov), done, n;
	int rc = s->broken;

	all = skip < all ? all - skip : 0;
	if (all > GCI_SECURE_BATCH) /* a short rest goes along, not with a system call of its own */
		all = GCI_SECURE_BATCH - GCI_RECORD_NBYTES;
	if (!gci_buf_room(&s->out, all + (all / GCI_RECORD_NBYTES + 1) * (frame + update)))
		rc = -ENOMEM;
	for (done = 0; done < all && !rc; done += n) {
		n = all - done < GCI_RECORD_NBYTES ? all - done : GCI_RECORD_NBYTES;
		rc = renew(s);
		if (!rc)
			rc = seal(s, GCI_RECORD_DATA, iov, niov, skip + done, n);
	}
	if (rc)
		return broken(s, rc, s->broken ? s->why : "nothing more can be encrypted", e);
	return (ssize_t)all;
}

/* ---- in */

/* Takes what has come. 1, 0 for the end, or a negative errno. */
static int refill(struct gci_secure *s, struct gci_error *e)
{
	ssize_t got;

	if (!s->in)
		s->in = gci_reallocarray(NULL, GCI_SECURE_IN, 1);
	if (!s->in)
		return broken(s, -ENOMEM, NULL, e);
	if (s->lo)
		memmove(s->in, s->in + s->lo, s->hi - s->lo);
	s->hi -= s->lo;
	s->lo = 0;
	got = s->take(s->user, s->in + s->hi, GCI_SECURE_IN - s->hi);
	if (got > 0)
		s->hi += (size_t)got;
	else if (got < 0 && got != -EAGAIN)
		gci_error_set(e, GCOLL_ERR_SYS, "TLS: %s", strerror((int)-got));
	return got > 0 ? 1 : (int)got;
}

/* A message of TLS itself. As step. */
static int control(struct gci_secure *s, int type, const uint8_t *p, size_t n, struct gci_error *e)
{
	static const uint8_t update[KEY_UPDATE_BYTES - 1] = {KEY_UPDATE, 0, 0, 1};

	if (type == GCI_RECORD_ALERT && n == 2 && p[1] == CLOSE_NOTIFY) {
		s->ended = 1;
		return 0;
	}
	if (type == GCI_RECORD_ALERT && n == 2)
		return broken(s, -EBADMSG, "the peer has ended the connection by an alert", e);
	if (type != GCI_RECORD_HANDSHAKE || n != KEY_UPDATE_BYTES ||
		memcmp(p, update, sizeof(update)) != 0 || p[4] > 1)
		return broken(s, -EBADMSG, "a message that has no place behind the handshake", e);
	if (gci_records_renew(&s->rx))
		return broken(s, -ENOMEM, NULL, e);
	s->asked |= p[4];
	return 1;
}

/* Copies n bytes between the iovecs, behind their first `skip`, and a buffer. */
static void copy(const struct iovec *iov, size_t skip, uint8_t *buf, size_t n, int out)
{
	size_t off, k;

	for (; n; iov++, n -= k, buf += k) {
		off = skip < iov->iov_len ? skip : iov->iov_len;
		skip -= off;
		k = iov->iov_len - off < n ? iov->iov_len - off : n;
		if (out)
			memcpy((uint8_t *)iov->iov_base + off, buf, k);
		else
			memcpy(buf, (uint8_t *)iov->iov_base + off, k);
	}
}

/* Opens the record that stands at s->lo: where data goes, if there is room for all of it. */
static int open_record(struct gci_secure *s, size_t nbytes, const struct iovec *iov, int niov,
	size_t room, size_t *total, struct gci_error *e)
{
	const struct iovec spill = {s->spill, GCI_RECORD_NBYTES};
	const uint8_t *record = s->in + s->lo;
	int fits = gci_records_room(nbytes) <= room - *total, type = 0;
	size_t skip = fits ? *total : 0;
	uint8_t bytes[MOST_CONTROL];
	ssize_t n;

	if (!fits) {
		iov = &spill;
		niov = 1;
	}
	n = gci_records_open(&s->rx, record, nbytes, iov, niov, skip, &type);
	if (n < 0)
		return broken(s, (int)n, "a record that was not made with the connection's key", e);
	s->lo += nbytes;
	if (type != GCI_RECORD_DATA) {
		copy(iov, skip, bytes, (size_t)n < sizeof(bytes) ? (size_t)n : sizeof(bytes), 0);
		return control(s, type, bytes, (size_t)n, e);
	}
	if (fits) {
		*total += (size_t)n;
	} else {
		s->spill_lo = 0;
		s->spill_hi = (size_t)n;
	}
	return 1;
}

/* One step towards `room` bytes. 1: go on; 0: the end; a negative errno. */
static int step(struct gci_secure *s, const struct iovec *iov, int niov, size_t room, size_t *total,
	struct gci_error *e)
{
	size_t n = s->spill_hi - s->spill_lo;
	ssize_t nbytes;

	if (n) {
		if (n > room - *total)
			n = room - *total;
		copy(iov, *total, s->spill + s->spill_lo, n, 1);
		s->spill_lo += n;
		*total += n;
		return 1;
	}
	if (s->ended)
		return 0;
	if (s->broken)
		return broken(s, s->broken, s->why, e);
	nbytes = s->in ? gci_records_glance(s->in + s->lo, s->hi - s->lo) : 0;
	if (nbytes < 0)
		return broken(s, -EBADMSG, "what came is no record", e);
	if (!nbytes || (size_t)nbytes > s->hi - s->lo)
		return refill(s, e);
	if (!s->spill && gci_records_room((size_t)nbytes) > room - *total) {
		s->spill = gci_reallocarray(NULL, GCI_RECORD_NBYTES, 1);
		if (!s->spill)
			return broken(s, -ENOMEM, NULL, e);
	}
	return open_record(s, (size_t)nbytes, iov, niov, room, total, e);
}

ssize_t gci_secure_read(
	struct gci_secure *s, const struct iovec *iov, int niov, struct gci_error *e)
{
	const size_t room = iov_nbytes(iov, niov);
	size_t total = 0;
	int rc = 1;

	while (total < room && rc > 0)
		rc = step(s, iov, niov, room, &total, total ? NULL : e);
	return total || rc > 0 ? (ssize_t)total : rc;
}

/* ---- One connection, and its handshake. OpenSSL never blocks in it: what it writes goes to a buffer,
 * and what it reads is there or not. */

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
