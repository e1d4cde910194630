/* SPDX-License-Identifier: MIT
 * Between secure.c (one connection) and secure_ctx.c (what all of them share: settings, keys, and
 * how OpenSSL gets its bytes). */
#ifndef GCI_TRANSPORT_SECURE_IMPL_H
#define GCI_TRANSPORT_SECURE_IMPL_H

#include "base/buf.h"
#include "base/u64set.h"
#include "transport/secure.h"

#include <openssl/ssl.h>

struct gci_secure_ctx {
	struct gci_secure_config config;
	SSL_CTX *ssl;
	BIO_METHOD *bio;
	/* Hellos that were made with a key of ours, by their random: the last ones, and those
	 * before them. */
	struct gci_u64set heard, heard_before;
};

struct gci_secure {
	struct gci_secure_ctx *ctx;
	SSL *ssl;
	struct gci_secure_name name;
	uint8_t identity[GCI_SECURE_IDENTITY];
	gci_secure_take *take;
	void *user;
	ssize_t took;       /* what `take` said last, if no number of bytes; else 1 */
	size_t ntaken;      /* before it was ready */
	struct gci_buf out; /* encrypted */
	size_t gone;        /* of it, sent */
	uint8_t *gather;    /* small pieces, to make one record of; NULL: none needed yet */
	uint64_t nrecords;  /* with this key */
	unsigned nrekeys;
	int ready, connects;
	int short_of_memory;
	int shown; /* see gci_secure_has_shown */
	int wide;  /* OpenSSL's buffer is one for data, not only for a handshake */
};

#define GCI_SECURE_READ (128u << 10) /* taken at a time */

/* Whether the hello with this random has served, and that it has: 0 or -1. */
int gci_secure_was_heard(const struct gci_secure_ctx *ctx, const uint8_t *random);
int gci_secure_hear(struct gci_secure_ctx *ctx, const uint8_t *random);

/* OpenSSL's last reason, or `otherwise`. */
const char *gci_secure_why(const char *otherwise);

#endif
