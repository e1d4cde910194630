/* SPDX-License-Identifier: MIT
 * The first frame on a data connection, in both directions: who is speaking, for which stream,
 * and the proof that it knows the job's secret. Pure.
 *
 *	gci_hello_encode(&h, secret, bytes);		// the connecting side
 *	rc = gci_hello_decode(bytes, secret, &h, &e);	// the accepting side; then it answers
 *
 * The token is checked before anything else is believed. It is an HMAC-SHA-256 of the rest of the
 * HELLO, with a key derived from the secret, the epoch and the pair (derive.h), so one
 * connection's token opens no other, and nothing of what it says can be changed. Who sees one can
 * send it again: a stream's life takes one connection only. */
#ifndef GCI_TRANSPORT_HELLO_H
#define GCI_TRANSPORT_HELLO_H

#include "base/error.h"

#include <stdint.h>

#define GCI_HELLO_TOKEN_NBYTES 32
#define GCI_HELLO_NBYTES       (76 + GCI_HELLO_TOKEN_NBYTES)

struct gci_hello {
	uint32_t epoch;
	uint32_t from, to; /* ranks */
	uint32_t stream;
	uint32_t life; /* which of the stream's connections this is; 0 where nothing is replayed */
	/* What both sides must say alike. */
	uint32_t streams;
	uint32_t eager_nbytes;
	uint32_t size;      /* ranks in the job */
	uint32_t unchecked; /* 1: payload has no checksums */
	uint32_t replay;    /* 1: lost streams are made up for */
	uint32_t encrypted; /* 1: it comes by TLS, as all on this connection does */
};

/* 0, or GCOLL_ERR_NOMEM. */
int gci_hello_encode(
	const struct gci_hello *h, const uint8_t secret[32], uint8_t out[GCI_HELLO_NBYTES]);

/* 0 and *h if the bytes are a HELLO made with this secret. Any other status is a stranger's, with
 * the reason in `e`. Whether the contents suit the receiver is for the caller to say. */
int gci_hello_decode(const uint8_t bytes[GCI_HELLO_NBYTES], const uint8_t secret[32],
	struct gci_hello *h, struct gci_error *e);

#endif
