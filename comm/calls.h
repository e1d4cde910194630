/* SPDX-License-Identifier: MIT
 * What this process called last: so that it can be told, here or on a peer that called something
 * else, also when the operation is over.
 *
 *	struct gci_calls calls;
 *	gci_calls_init(&calls);
 *	gci_calls_note(&calls, comm_id, number, &sign);
 *	if (gci_calls_find(&calls, comm_id, number, &sign))
 *		gci_sign_print(&sign, text, sizeof(text));
 *	gci_calls_free(&calls);
 *
 * Threads: one notes, any finds. */
#ifndef GCI_COMM_CALLS_H
#define GCI_COMM_CALLS_H

#include "collectives/coll.h"

#include <pthread.h>

#define GCI_CALLS_KEPT 64

/* An operation in short. Its strings are constants. */
struct gci_sign {
	enum gci_kind kind;
	const char *name;      /* for users, when not the kind's; or NULL */
	const char *algorithm; /* or NULL */
	enum gcoll_type type;
	enum gcoll_op op;
	uint32_t esize;
	uint64_t count;  /* of one block, or of all if their lengths differ */
	uint32_t blocks; /* a digest of these lengths */
	int has_counts, root;
};

/* As in "reduce of 64 int32 to rank 0 with sum by binomial", or "allgatherv of 64 int32 in blocks
 * #3f2a9c01 by ring". */
void gci_sign_print(const struct gci_sign *s, char *out, size_t size);

struct gci_calls {
	pthread_mutex_t lock;
	struct gci_noted_call {
		uint32_t comm;
		int set;
		uint64_t op;
		struct gci_sign sign;
	} kept[GCI_CALLS_KEPT]; /* [op modulo]: of any communicator */
};

void gci_calls_init(struct gci_calls *c);
void gci_calls_free(struct gci_calls *c);

void gci_calls_note(struct gci_calls *c, uint32_t comm, uint64_t op, const struct gci_sign *sign);

/* 1 with *sign, or 0: never called, or long ago. */
int gci_calls_find(struct gci_calls *c, uint32_t comm, uint64_t op, struct gci_sign *sign);

#endif
