/* SPDX-License-Identifier: MIT
 * A stranger's first bytes, a ClientHello (RFC 8446, 4.1.2), before OpenSSL sees any of them: it
 * takes what our keys were used for. That costs a few hashes, and OpenSSL ten times as much to find
 * the same. */
#include "transport/secret.h"
#include "transport/secure_impl.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <string.h>

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

int gci_secure_was_heard(const struct gci_secure_ctx *ctx, const uint8_t *random)
{
	uint64_t number = gci_load_u64(random);

	return gci_u64set_has(&ctx->heard, number) || gci_u64set_has(&ctx->heard_before, number);
}

int gci_secure_hear(struct gci_secure_ctx *ctx, const uint8_t *random)
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
