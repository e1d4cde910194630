/* SPDX-License-Identifier: MIT
 * What a connection by TLS and its context are made of: secure.c, and tests that look inside. */
#ifndef GCI_TRANSPORT_SECURE_IMPL_H
#define GCI_TRANSPORT_SECURE_IMPL_H

#include "base/buf.h"
#include "base/u64set.h"
#include "transport/records.h"
#include "transport/secure.h"

#include <openssl/ssl.h>

struct gci_secure_ctx {
	struct gci_secure_config config; /* its secret is there: */
	uint8_t *secret;
	SSL_CTX *ssl;
	BIO_METHOD *bio;
	/* Hellos that were made with a key of ours, by their random: the last ones, and those
	 * before them. */
	struct gci_u64set heard, heard_before;
};

struct gci_secure {
	struct gci_secure_ctx *ctx;
	struct gci_secure_name name;
	gci_secure_take *take;
	void *user;
	struct gci_buf out; /* encrypted */
	size_t gone;        /* of it, sent */
	int ready, connects;
	int short_of_memory;
	int shown; /* see gci_secure_has_shown */

	/* The handshake, up to `ready`. */
	SSL *ssl;
	uint8_t identity[GCI_SECURE_IDENTITY];
	ssize_t took; /* what `take` said last, if no number of bytes; else 1 */
	size_t ntaken;
	uint8_t (*traffic)[GCI_RECORD_SECRET]; /* the client's secret, and the server's */
	int has_traffic[2];

	/* Data, from then on. */
	struct gci_records tx, rx;
	unsigned nrekeys;
	int asked;  /* the peer wants us to replace our key */
	int ended;  /* the peer has said that no more comes */
	int broken; /* 0, or the negative errno for which nothing goes on */
	const char *why;
	uint8_t *in; /* [lo, hi) of GCI_SECURE_IN bytes are not opened; NULL: none needed yet */
	size_t lo, hi;
	uint8_t *spill; /* of a record, what there was no room for; NULL: none needed yet */
	size_t spill_lo, spill_hi;
};

#define GCI_SECURE_IN ((128u << 10) + GCI_RECORD_WHOLE)

/* OpenSSL's last reason, or `otherwise`. */
const char *gci_secure_why(const char *otherwise);

#endif
