/* SPDX-License-Identifier: MIT */
#include "transport/hello.h"

#include "base/buf.h"
#include "base/crc32c.h"
#include "transport/frame.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <string.h>

static int make_token(
	const uint8_t secret[32], const struct gci_frame *f, uint8_t token[GCI_HELLO_TOKEN_NBYTES])
{
	static const char label[] = "gridcoll data 2";
	uint8_t text[sizeof(label) - 1 + 32 + 16], *p = text;
	unsigned len = GCI_HELLO_TOKEN_NBYTES;
	int ok;

	memcpy(p, label, sizeof(label) - 1);
	p += sizeof(label) - 1;
	memcpy(p, secret, 32);
	gci_store_u32(p + 32, f->source);
	gci_store_u32(p + 36, f->key.comm);
	gci_store_u32(p + 40, f->key.tag);
	gci_store_u32(p + 44, f->ack);
	ok = EVP_Digest(text, sizeof(text), token, &len, EVP_sha256(), NULL);
	OPENSSL_cleanse(text, sizeof(text));
	return ok ? 0 : GCOLL_ERR_NOMEM;
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
		.digest = h->unchecked | h->replay << 1,
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
		f.digest > 3)
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
		.replay = (uint32_t)f.digest >> 1};
	return 0;
}
