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
 *	 0 u16 magic   2 u8 version   3 u8 type   4 u32 epoch     8 u32 source   12 u32 comm
 *	16 u32 tag    20 u64 seq                 28 u64 length   36 u64 offset
 *	44 u32 nbytes 48 u64 digest              56 u32 crc of the payload
 *	60 u32 ack    64 u16 flags   66 u16 id   68 u16 back     70 u16 nback
 *	72 u32 crc of the 72 bytes before
 *
 *	HELLO	opens a connection, see hello.h
 *	DATA	`nbytes` of payload follow: bytes offset .. offset + nbytes of a message; its crc
 *		is 0 between ranks whose HELLOs say that payload is not checked
 *	CREDIT	the message is waited for
 *	BYE	no DATA and no CREDIT follow on this connection
 *	ACK	only its `ack` counts
 *	PAD	as much payload, which means nothing (endpoint_pad.c)
 *	LOST	stream `tag` was lost in its life number `comm`, after `length` whole frames
 *	BACK	only its `back` and `nback` count
 *	WAIT	the message waits for its credit
 *
 * Only HELLO, DATA and PAD have a payload. `ack` is how many DATA, CREDIT, LOST, BACK and WAIT
 * frames of the other direction of this connection have come whole, modulo 2^32; 0 where nothing
 * is replayed (see replay.h). A DATA frame that took allowance has the flag EAGER and gives its
 * message a number, `id`. DATA, CREDIT and BACK give the allowance of `nback` such numbers back,
 * from `back` on. */
#ifndef GCI_TRANSPORT_FRAME_H
#define GCI_TRANSPORT_FRAME_H

#include "base/error.h"
#include "transport/transport.h"

#define GCI_FRAME_HEAD_NBYTES 76
#define GCI_FRAME_VERSION     4

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

#endif
