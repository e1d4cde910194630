/* SPDX-License-Identifier: MIT
 * The frame header: what travels before every payload on a data connection. Pure.
 *
 *	struct gci_frame f = {.type = GCI_FRAME_DATA, .epoch = 1, .source = me, .key = key,
 *		.length = n, .digest = d};
 *	f.nbytes = piece;
 *	f.crc = gci_crc32c(0, payload, piece);
 *	gci_frame_encode(&f, head);
 *	...
 *	rc = gci_frame_decode(head, &f, &e);
 *
 * 76 bytes, little-endian:
 *
 *	 0 u16 0x4347  2 u8 version   3 u8 type   4 u32 epoch     8 u32 source   12 u32 comm
 *	16 u32 tag    20 u64 seq                 28 u64 length   36 u64 offset
 *	44 u32 nbytes 48 u64 digest              56 u32 crc of the payload
 *	60 u32 ack    64 u16 flags   66 u16 id   68 u16 back     70 u16 nback
 *	72 u32 crc of the 72 bytes before
 *
 *	HELLO	opens a connection, see below
 *	DATA	`nbytes` of payload follow: bytes offset .. offset + nbytes of a message; its crc
 *		is 0 between ranks whose HELLOs say that payload is not checked
 *	CREDIT	a receive is posted: the sender may send the message
 *	BYE	no DATA and no CREDIT follow on this connection
 *	ACK	only its `ack` counts
 *	PAD	as much payload, which means nothing (endpoint.c)
 *	LOST	connection number `comm` of stream `tag` was lost after `length` whole frames
 *	BACK	only its `back` and `nback` count
 *	WAIT	the sender waits for the credit of this message
 *
 * Only HELLO, DATA and PAD have a payload. `ack` is how many DATA, CREDIT, LOST, BACK and WAIT
 * frames of the other direction of this connection have come whole, modulo 2^32; 0 where nothing
 * is replayed (see replay.h). A DATA frame that took allowance has the flag EAGER and gives its
 * message a number, `id`. DATA, CREDIT and BACK give the allowance of `nback` such numbers back,
 * from `back` on. A message of more than 16 KiB that is complete is acknowledged unless all of its
 * frames have LATER. An ACK with ASK asks about all frames before it. */
#ifndef GCI_TRANSPORT_FRAME_H
#define GCI_TRANSPORT_FRAME_H

#include "base/error.h"
#include "transport/transport.h"

#include <stdint.h>

#define GCI_FRAME_HEAD_NBYTES 76
#define GCI_FRAME_VERSION     5

enum gci_frame_type {
	GCI_FRAME_HELLO = 1,
	GCI_FRAME_DATA,
	GCI_FRAME_CREDIT,
	GCI_FRAME_BYE,
	GCI_FRAME_ACK,
	GCI_FRAME_LOST,
	GCI_FRAME_PAD,
	GCI_FRAME_BACK,
	GCI_FRAME_WAIT,
};

#define GCI_FRAME_PAD_NBYTES (32u << 10) /* most payload of a PAD */

/* Flags. */
#define GCI_FRAME_ASK   1u /* the sender waits for an acknowledgement of this */
#define GCI_FRAME_EAGER 2u /* it was not asked for, and has an id */
#define GCI_FRAME_LATER 4u /* nobody waits for this message's acknowledgement yet */

struct gci_frame {
	enum gci_frame_type type;
	uint32_t epoch;
	uint32_t source; /* rank */
	struct gci_tp_key key;
	uint64_t length; /* of the whole message */
	uint64_t offset; /* of the payload in it */
	uint64_t digest;
	uint32_t nbytes; /* payload */
	uint32_t crc;    /* of the payload */
	uint32_t ack;
	uint16_t flags;
	uint16_t id; /* with EAGER */
	uint16_t back, nback;
};

void gci_frame_encode(const struct gci_frame *f, uint8_t head[GCI_FRAME_HEAD_NBYTES]);

/* 0 and a consistent *f; GCOLL_ERR_CORRUPT if the header's own sum is wrong, or GCOLL_ERR_PROTO,
 * with the reason in `e`. Of a DATA frame, offset + nbytes <= length holds, and nbytes is 0 only
 * if length is. */
int gci_frame_decode(
	const uint8_t head[GCI_FRAME_HEAD_NBYTES], struct gci_frame *f, struct gci_error *e);

/* ---- The first frame on a data connection, in both directions: the sender's rank, the stream, and a
 * proof that the sender knows the job's secret. Pure.
 *
 *	gci_hello_encode(&h, secret, bytes);		// the connecting side
 *	rc = gci_hello_decode(bytes, secret, &h, &e);	// the accepting side; then it answers
 *
 * The token is checked before anything else is believed. It is an HMAC-SHA-256 of the rest of the
 * HELLO, with a key derived from the secret, the epoch and the pair (secret.h), so one
 * connection's token opens no other, and no field can be changed. An eavesdropper can replay a
 * HELLO: each incarnation of a stream takes one connection only.
 *
 * 108 bytes: a frame header of type HELLO whose fields have other meanings, then the token.
 *
 *	 4 u32 epoch          8 u32 from (rank)   12 u32 to (rank)    16 u32 stream
 *	20 u64 size          28 u64 eager_nbytes  36 u64 streams      44 u32 32 (the token's bytes)
 *	48 u64 flags, below  56 u32 crc of the token                  60 u32 life (connection number)
 *	76 token
 *
 * size, eager_nbytes and streams are below 2^32; flags has no bit but those of GCI_HELLO_FLAGS.
 * Everything else is 0. */

#define GCI_HELLO_TOKEN_NBYTES 32
#define GCI_HELLO_NBYTES       (76 + GCI_HELLO_TOKEN_NBYTES)

/* Settings of the link that both sides must have alike: name, bit, the noun of the error for two
 * sides that differ, and whether the setting is "on" where the bit is set. A new bit needs a row
 * here and a line in hello_to (tcp_conn.c). A bit without a row is refused: the sender's release is
 * another one, and would send what this one misreads. */
#define GCI_HELLO_FLAGS(X)                                                                       \
	X(UNCHECKED, 0, "checksums", 0)  /* payload has no checksums */                          \
	X(REPLAY, 1, "replay", 1)        /* unacknowledged frames are sent again after a loss */ \
	X(ENCRYPTED, 2, "encryption", 1) /* this connection is TLS */

enum gci_hello_flag {
#define GCI_HELLO_BIT(name, bit, noun, on) GCI_HELLO_##name = 1 << (bit),
	GCI_HELLO_FLAGS(GCI_HELLO_BIT)
#undef GCI_HELLO_BIT
#define GCI_HELLO_BIT(name, bit, noun, on) | 1 << (bit)
		GCI_HELLO_KNOWN = 0 GCI_HELLO_FLAGS(GCI_HELLO_BIT),
#undef GCI_HELLO_BIT
};

struct gci_hello {
	uint32_t epoch;
	uint32_t from, to; /* ranks */
	uint32_t stream;
	uint32_t life; /* connection number of the stream, from 1; 0: no replay on this link */
	/* Settings in which both sides must agree. */
	uint32_t streams;
	uint32_t eager_nbytes;
	uint32_t size;  /* ranks in the job */
	uint64_t flags; /* GCI_HELLO_UNCHECKED, ... */
};

/* 0, or GCOLL_ERR_NOMEM. */
int gci_hello_encode(
	const struct gci_hello *h, const uint8_t secret[32], uint8_t out[GCI_HELLO_NBYTES]);

/* 0 and *h if the bytes are a HELLO made with this secret, and with known flags. Any other status is
 * a stranger's, with the reason in `e`. Whether the contents suit the receiver is for the caller to
 * say. */
int gci_hello_decode(const uint8_t bytes[GCI_HELLO_NBYTES], const uint8_t secret[32],
	struct gci_hello *h, struct gci_error *e);

#endif
