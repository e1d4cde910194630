/* SPDX-License-Identifier: MIT */
#include "transport/frame.h"

#include "base/buf.h"
#include "base/crc32c.h"
#include "transport/secret.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#define MAGIC 0x4347u /* "GC" */

/* Places in the header. */
enum {
	AT_MAGIC = 0,
	AT_VERSION = 2,
	AT_TYPE = 3,
	AT_EPOCH = 4,
	AT_SOURCE = 8,
	AT_COMM = 12,
	AT_TAG = 16,
	AT_SEQ = 20,
	AT_LENGTH = 28,
	AT_OFFSET = 36,
	AT_NBYTES = 44,
	AT_DIGEST = 48,
	AT_CRC = 56,
	AT_ACK = 60,
	AT_FLAGS = 64,
	AT_ID = 66,
	AT_BACK = 68,
	AT_NBACK = 70,
	AT_HEAD_CRC = 72,
};

void gci_frame_encode(const struct gci_frame *f, uint8_t head[GCI_FRAME_HEAD_NBYTES])
{
	head[AT_MAGIC] = MAGIC & 0xff;
	head[AT_MAGIC + 1] = MAGIC >> 8;
	head[AT_VERSION] = GCI_FRAME_VERSION;
	head[AT_TYPE] = (uint8_t)f->type;
	gci_store_u32(head + AT_EPOCH, f->epoch);
	gci_store_u32(head + AT_SOURCE, f->source);
	gci_store_u32(head + AT_COMM, f->key.comm);
	gci_store_u32(head + AT_TAG, f->key.tag);
	gci_store_u64(head + AT_SEQ, f->key.seq);
	gci_store_u64(head + AT_LENGTH, f->length);
	gci_store_u64(head + AT_OFFSET, f->offset);
	gci_store_u32(head + AT_NBYTES, f->nbytes);
	gci_store_u64(head + AT_DIGEST, f->digest);
	gci_store_u32(head + AT_CRC, f->crc);
	gci_store_u32(head + AT_ACK, f->ack);
	gci_store_u16(head + AT_FLAGS, f->flags);
	gci_store_u16(head + AT_ID, f->id);
	gci_store_u16(head + AT_BACK, f->back);
	gci_store_u16(head + AT_NBACK, f->nback);
	gci_store_u32(head + AT_HEAD_CRC, gci_crc32c(0, head, AT_HEAD_CRC));
}

static int check(const struct gci_frame *f, struct gci_error *e)
{
	int fits = f->offset <= f->length && f->nbytes <= f->length - f->offset;
	int carries = f->type == GCI_FRAME_DATA || f->type == GCI_FRAME_CREDIT ||
		      f->type == GCI_FRAME_BACK;

	if (f->nback && !carries)
		return gci_error_set(e, GCOLL_ERR_PROTO,
			"frame of type %u that gives allowance back", (unsigned)f->type);
	switch (f->type) {
	case GCI_FRAME_HELLO:
		if (f->nbytes != GCI_HELLO_TOKEN_NBYTES)
			break;
		return 0;
	case GCI_FRAME_DATA:
		if (!fits || f->nbytes > GCI_TP_FRAME_NBYTES || (!f->nbytes && f->length))
			break;
		return 0;
	case GCI_FRAME_CREDIT:
	case GCI_FRAME_BACK:
	case GCI_FRAME_WAIT:
	case GCI_FRAME_BYE:
	case GCI_FRAME_ACK:
		if (f->nbytes)
			break;
		return 0;
	case GCI_FRAME_PAD:
		if (!f->nbytes || f->nbytes > GCI_FRAME_PAD_NBYTES)
			break;
		return 0;
	case GCI_FRAME_LOST:
		if (f->nbytes || f->key.tag >= GCI_TP_MAX_STREAMS || f->length > UINT32_MAX)
			break;
		return 0;
	default:
		return gci_error_set(
			e, GCOLL_ERR_PROTO, "frame of unknown type %u", (unsigned)f->type);
	}
	return gci_error_set(e, GCOLL_ERR_PROTO,
		"frame of type %u with %u bytes at offset %llu of %llu", (unsigned)f->type,
		f->nbytes, (unsigned long long)f->offset, (unsigned long long)f->length);
}

int gci_frame_decode(
	const uint8_t head[GCI_FRAME_HEAD_NBYTES], struct gci_frame *f, struct gci_error *e)
{
	/* The sum first: a flipped bit is corruption, whichever field it hits. */
	if (gci_load_u32(head + AT_HEAD_CRC) != gci_crc32c(0, head, AT_HEAD_CRC))
		return gci_error_set(e, GCOLL_ERR_CORRUPT, "frame header with a wrong checksum");
	if ((head[AT_MAGIC] | head[AT_MAGIC + 1] << 8) != MAGIC)
		return gci_error_set(e, GCOLL_ERR_PROTO, "not a gridcoll frame");
	if (head[AT_VERSION] != GCI_FRAME_VERSION)
		return gci_error_set(e, GCOLL_ERR_PROTO,
			"frame of protocol version %u, expected %u", head[AT_VERSION],
			GCI_FRAME_VERSION);
	f->type = head[AT_TYPE];
	f->epoch = gci_load_u32(head + AT_EPOCH);
	f->source = gci_load_u32(head + AT_SOURCE);
	f->key.comm = gci_load_u32(head + AT_COMM);
	f->key.tag = gci_load_u32(head + AT_TAG);
	f->key.seq = gci_load_u64(head + AT_SEQ);
	f->length = gci_load_u64(head + AT_LENGTH);
	f->offset = gci_load_u64(head + AT_OFFSET);
	f->nbytes = gci_load_u32(head + AT_NBYTES);
	f->digest = gci_load_u64(head + AT_DIGEST);
	f->crc = gci_load_u32(head + AT_CRC);
	f->ack = gci_load_u32(head + AT_ACK);
	f->flags = gci_load_u16(head + AT_FLAGS);
	f->id = gci_load_u16(head + AT_ID);
	f->back = gci_load_u16(head + AT_BACK);
	f->nback = gci_load_u16(head + AT_NBACK);
	if (f->flags & ~(GCI_FRAME_ASK |
			       (f->type == GCI_FRAME_DATA ? GCI_FRAME_EAGER | GCI_FRAME_LATER : 0)))
		return gci_error_set(e, GCOLL_ERR_PROTO, "frame with unknown flags 0x%x", f->flags);
	return check(f, e);
}

/* ---- HELLO */

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
		.digest = h->flags,
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
	if (f.length > UINT32_MAX || f.offset > UINT32_MAX || f.key.seq > UINT32_MAX)
		return gci_error_set(e, GCOLL_ERR_PROTO, "a hello with impossible values");
	if (f.digest & ~(uint64_t)GCI_HELLO_KNOWN)
		return gci_error_set(e, GCOLL_ERR_PROTO,
			"a hello with unknown flags 0x%llx, expected none but 0x%x: the peer has "
			"another release of gridcoll",
			(unsigned long long)(f.digest & ~(uint64_t)GCI_HELLO_KNOWN),
			(unsigned)GCI_HELLO_KNOWN);
	*h = (struct gci_hello){.epoch = f.epoch,
		.from = f.source,
		.to = f.key.comm,
		.stream = f.key.tag,
		.life = f.ack,
		.streams = (uint32_t)f.offset,
		.eager_nbytes = (uint32_t)f.length,
		.size = (uint32_t)f.key.seq,
		.flags = f.digest};
	return 0;
}
