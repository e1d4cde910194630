/* SPDX-License-Identifier: MIT */
#include "transport/hello.h"

#include "base/crc32c.h"
#include "transport/derive.h"
#include "transport/frame.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

/* Of the header as it stands without a sum of the token. */
static int make_token(
	const uint8_t secret[32], const struct gci_frame *f, uint8_t token[GCI_HELLO_TOKEN_NBYTES])
{
	const uint32_t pair[] = {f->epoch, f->source, f->key.comm};
	uint8_t key[32], head[GCI_FRAME_HEAD_NBYTES];
	struct gci_frame bare = *f;
	unsigned len = GCI_HELLO_TOKEN_NBYTES;
	int rc = gci_derive(secret, "gridcoll data 3", pair, 3, key);

	bare.crc = 0;
	gci_frame_encode(&bare, head);
	if (!rc && !HMAC(EVP_sha256(), key, sizeof(key), head, sizeof(head), token, &len))
		rc = GCOLL_ERR_NOMEM;
	OPENSSL_cleanse(key, sizeof(key));
	return rc;
}

int gci_hello_encode(
	const struct gci_hello *h, const uint8_t secret[32], uint8_t out[GCI_HELLO_NBYTES])
{
	uint8_t *token = out + GCI_FRAME_HEAD_NBYTES;
	struct gci_frame f = {.type = GCI_FRAME_HELLO,
		.epoch = h->epoch,
		.source = h->from,
		.key = {.comm = h->to, .tag = h->stream, .seq = h->size},
		.length = h->eager_nbytes,
		.offset = h->streams,
		.digest = h->unchecked | h->replay << 1 | h->encrypted << 2,
		.ack = h->life,
		.nbytes = GCI_HELLO_TOKEN_NBYTES};
	int rc = make_token(secret, &f, token);

	if (rc)
		return rc;
	f.crc = gci_crc32c(0, token, GCI_HELLO_TOKEN_NBYTES);
	gci_frame_encode(&f, out);
	return 0;
}

int gci_hello_decode(const uint8_t bytes[GCI_HELLO_NBYTES], const uint8_t secret[32],
	struct gci_hello *h, struct gci_error *e)
{
	uint8_t expected[GCI_HELLO_TOKEN_NBYTES];
	struct gci_frame f;
	int rc = gci_frame_decode(bytes, &f, e);

	if (rc)
		return rc;
	if (f.type != GCI_FRAME_HELLO)
		return gci_error_set(e, GCOLL_ERR_PROTO, "the first frame is no hello");
	rc = make_token(secret, &f, expected);
	if (rc)
		return gci_error_set(e, rc, "out of memory");
	if (CRYPTO_memcmp(expected, bytes + GCI_FRAME_HEAD_NBYTES, sizeof(expected)))
		return gci_error_set(e, GCOLL_ERR_PROTO, "a hello with a wrong token");
	if (f.length > UINT32_MAX || f.offset > UINT32_MAX || f.key.seq > UINT32_MAX ||
		f.digest > 7)
		return gci_error_set(e, GCOLL_ERR_PROTO, "a hello with impossible values");
	*h = (struct gci_hello){.epoch = f.epoch,
		.from = f.source,
		.to = f.key.comm,
		.stream = f.key.tag,
		.life = f.ack,
		.streams = (uint32_t)f.offset,
		.eager_nbytes = (uint32_t)f.length,
		.size = (uint32_t)f.key.seq,
		.unchecked = f.digest & 1,
		.replay = (uint32_t)f.digest >> 1 & 1,
		.encrypted = (uint32_t)f.digest >> 2};
	return 0;
}
