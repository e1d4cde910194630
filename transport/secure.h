/* SPDX-License-Identifier: MIT
 * TLS 1.3 for one connection, without I/O: bytes in, bytes out. The handshake is OpenSSL's, the
 * records of data behind it are ours (records.h).
 *
 *	rc = gci_secure_ctx_create(&ctx, &config, &e);		// one for all connections
 *	rc = gci_secure_create(&s, ctx, &name, take, user, &e);	// the side that connects
 *	rc = gci_secure_create(&s, ctx, NULL, take, user, &e);	// the other side
 *	rc = gci_secure_shake(s, &e);				// 0: call it again when more came
 *	n = gci_secure_write(s, iov, niov, 0, &e);		// once it has said 1
 *	p = gci_secure_out(s, &nbytes);				// after each call: to be sent
 *	gci_secure_sent(s, nbytes);
 *	n = gci_secure_read(s, iov, niov, &e);
 *	gci_secure_free(s);
 *
 * Both sides know the job's secret. The key of a connection is derived from it, the epoch and both
 * ends' numbers, and used as an external PSK (RFC 8446, 2.2) together with a fresh Diffie-Hellman
 * exchange: a recording cannot be decrypted by one who learns the secret later. The side that
 * connects sends both ranks in the clear, as the PSK's identity; without the key it gets no
 * further, and no key of one pair opens another. Neither tickets nor early data: nothing of a
 * handshake can be used twice. A hello that was heard before is refused before it costs a key
 * exchange; the last `most_heard` are remembered at least, and twice as many at most. An older one
 * that was recorded can be replayed once, and leads no further than that without the key. Whether a
 * hello was made with the key is known before OpenSSL gets to see it. One cipher,
 * TLS_AES_128_GCM_SHA256.
 *
 * Keys are replaced after `rekey_records` in a direction, far ahead of AES-GCM's limit of 2^24.5
 * (RFC 8446, 5.5). Behind the handshake no alert is sent for an error, the connection ends; nor a
 * close_notify at the end: the protocol above has its own (BYE of streams and of the control
 * connection), and without it the connection was cut off.
 *
 * `take` hands over what has come: up to n bytes into buf, returns how many, 0 for the end of the
 * connection, or a negative errno, -EAGAIN when there is nothing now. Until the peer is
 * authenticated no more than GCI_SECURE_MAX_HANDSHAKE bytes are taken. */
#ifndef GCI_TRANSPORT_SECURE_H
#define GCI_TRANSPORT_SECURE_H

#include "base/error.h"
#include "transport/secret.h"

#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

#define GCI_SECURE_MAX_HANDSHAKE 4096
#define GCI_SECURE_BATCH         (144u << 10) /* most bytes that one write takes */
#define GCI_SECURE_LAUNCHER      UINT32_MAX   /* in place of a rank */
#define GCI_SECURE_HELLO         0x16         /* what a TLS connection begins with */
#define GCI_SECURE_IDENTITY      24
#define GCI_SECURE_NO_KEY        (-2)
#define GCI_SECURE_FIRST         512 /* the first record of one of ours is no longer */

struct gci_secure;
struct gci_secure_ctx;

/* The connecting and the accepting rank. */
struct gci_secure_name {
	uint32_t epoch;
	uint32_t client, server; /* ranks */
};

struct gci_secure_config {
	uint8_t secret[GCI_SECRET_NBYTES];
	uint32_t epoch;
	uint32_t self;          /* our rank, or GCI_SECURE_LAUNCHER */
	uint32_t size;          /* ranks in the job */
	uint64_t rekey_records; /* under one key, at most and if 0: 2^22 */
	uint32_t most_heard;    /* hellos that are remembered, at least; 0: 2^16 */
};

typedef ssize_t gci_secure_take(void *user, void *buf, size_t n);

/* GCOLL_ERR_SYS with OpenSSL's reason, or _NOMEM. */
int gci_secure_ctx_create(
	struct gci_secure_ctx **ctx, const struct gci_secure_config *config, struct gci_error *e);
void gci_secure_ctx_free(struct gci_secure_ctx *ctx); /* after all connections */

/* What a stranger's first bytes are, before anything is made for it: 1, a hello that was made with
 * the key of a rank that may call us, and not heard before; 0, not whole yet; GCI_SECURE_NO_KEY, a
 * hello that names such a rank, but was not made with its key; -1, no hello of ours, or out of
 * memory. Reads no byte behind the hello. */
int gci_secure_glance(const struct gci_secure_ctx *ctx, const uint8_t *bytes, size_t n);

/* `name`: the connecting side's; NULL: the other's. `ctx` outlives it. */
int gci_secure_create(struct gci_secure **s, struct gci_secure_ctx *ctx,
	const struct gci_secure_name *name, gci_secure_take *take, void *user, struct gci_error *e);
void gci_secure_free(struct gci_secure *s);

/* To a stranger's first bytes, which `take` is to hand over once more: 1, *s is made; 0, not whole
 * yet; GCI_SECURE_NO_KEY, to be answered with gci_secure_alert, or -1, with the reason, when they
 * are no hello of ours, or there is no memory. */
int gci_secure_answer(struct gci_secure **s, struct gci_secure_ctx *ctx, const uint8_t *bytes,
	size_t n, gci_secure_take *take, void *user, struct gci_error *e);

/* That the hello was not made with the key (RFC 8446, 6). */
#define GCI_SECURE_ALERT 7
extern const uint8_t gci_secure_alert[GCI_SECURE_ALERT];

/* 1: both sides have shown their key; 0: not yet; a negative errno (0 as the connection's end is
 * -ECONNRESET; -EPROTO: what came is no handshake with our key) with the reason in `e`. There may
 * be bytes to be sent all the same. */
int gci_secure_shake(struct gci_secure *s, struct gci_error *e);
int gci_secure_is_ready(const struct gci_secure *s);

/* The accepting side's: the peer has sent a hello made with its rank's key and not seen before. It
 * may still be a replay: the rest of the handshake shows that the peer has the key. */
int gci_secure_has_shown(const struct gci_secure *s);

/* The ranks at both ends, once it is ready. */
struct gci_secure_name gci_secure_name(const struct gci_secure *s);

/* Encrypts up to GCI_SECURE_BATCH bytes behind the first `skip`; how many, or a negative errno.
 * Nothing may be left to be sent of what was encrypted before. */
ssize_t gci_secure_write(
	struct gci_secure *s, const struct iovec *iov, int niov, size_t skip, struct gci_error *e);

/* What is to be sent: NULL and 0 if nothing is. */
const uint8_t *gci_secure_out(const struct gci_secure *s, size_t *nbytes);
void gci_secure_sent(struct gci_secure *s, size_t nbytes);

/* Decrypts into the iovecs, as much as has come; calls `take` for more only when all of what was
 * taken has been handed out, but for a part of a record. How many bytes, 0 at the end, or a
 * negative errno: -EAGAIN, what `take` said, or -EBADMSG: a record that was not made with the
 * connection's key, or a message that is none of data, from then on for ever. Memory of the iovecs
 * behind those bytes may have been written to. */
ssize_t gci_secure_read(
	struct gci_secure *s, const struct iovec *iov, int niov, struct gci_error *e);

/* True if a part of a record has come, or of the server's side of the handshake, which it sends all
 * at once, and not all of it. After -EAGAIN. */
int gci_secure_is_midway(const struct gci_secure *s);

/* How often our side has replaced its key. */
unsigned gci_secure_nrekeys(const struct gci_secure *s);

/* An identity's bytes and back: 0, or -1 if it is none. What comes is a stranger's word. */
void gci_secure_identity(const struct gci_secure_name *name, uint8_t out[GCI_SECURE_IDENTITY]);
int gci_secure_identify(const uint8_t *bytes, size_t n, struct gci_secure_name *name);

#endif
