/* SPDX-License-Identifier: MIT
 * Two ends of TLS, without any socket:
 *
 *	open_pair(&w, &right, &right, &zero_to_one);
 *	assert_int_equal(shake(&w), 1);
 *	... gci_secure_write(w.end[0], ...), carry(&w, 0), gci_secure_read(w.end[1], ...) ...
 *	close_pair(&w); */
#ifndef GCI_TESTS_TRANSPORT_SECURE_PAIR_H
#define GCI_TESTS_TRANSPORT_SECURE_PAIR_H

#include "tests/test.h"

#include "transport/secure.h"

/* What is on its way in one direction. */
struct pipe {
	uint8_t bytes[4 << 20];
	size_t lo, hi;
	size_t piece; /* most that is handed over at a time */
	int ended;
};

/* [0] connects. */
struct pair {
	struct gci_secure_ctx *ctx[2];
	struct gci_secure *end[2];
	struct pipe *to[2];
	struct gci_error e[2];
};

/* What both should have: ranks 0 and 1 of a job of two. */
extern const struct gci_secure_config right;
extern const struct gci_secure_name zero_to_one;

void open_pair(struct pair *w, const struct gci_secure_config *client,
	const struct gci_secure_config *server, const struct gci_secure_name *name);
void close_pair(struct pair *w);

/* A new accepting end, which has heard nothing yet. */
void accept_anew(struct pair *w);

void put(struct pipe *p, const void *bytes, size_t n);

/* Passes on what an end has for the other. */
void carry(struct pair *w, int from);

/* Goes on until both are ready, or one has failed: 1 or that one's status. */
int shake(struct pair *w);

#endif
