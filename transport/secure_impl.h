/* SPDX-License-Identifier: MIT
 * Between secure.c (connections: handshake, data, and what all of them share) and secure_hello.c (what a stranger
 * says first). */
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

#define GCI_SECURE_PSK 32

/* The key of a connection: 0, or GCOLL_ERR_NOMEM. The caller wipes it. */
int gci_secure_psk(const struct gci_secure_ctx *ctx, const struct gci_secure_name *name,
	uint8_t key[GCI_SECURE_PSK]);
/* Whether a rank of this job's, in this epoch, calls us; as far as the name says. */
int gci_secure_is_for_us(const struct gci_secure_ctx *ctx, const struct gci_secure_name *name);

#define GCI_SECURE_IN ((128u << 10) + GCI_RECORD_WHOLE)

/* Whether the hello with this random has served, and that it has: 0 or -1. */
int gci_secure_was_heard(const struct gci_secure_ctx *ctx, const uint8_t *random);
int gci_secure_hear(struct gci_secure_ctx *ctx, const uint8_t *random);

/* OpenSSL's last reason, or `otherwise`. */
const char *gci_secure_why(const char *otherwise);

#endif
