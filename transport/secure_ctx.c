/* SPDX-License-Identifier: MIT
 * What is OpenSSL's: its settings, the PSK of a connection, and a BIO between it and the
 * connection's buffers. */
#include "base/mem.h"
#include "transport/secure_impl.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <string.h>

#define MAGIC "gridcoll tls"

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

int gci_secure_psk(const struct gci_secure_ctx *ctx, const struct gci_secure_name *name,
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

int gci_secure_is_for_us(const struct gci_secure_ctx *ctx, const struct gci_secure_name *name)
{
	return name->epoch == ctx->config.epoch && name->server == ctx->config.self &&
	       name->client < ctx->config.size;
}

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
