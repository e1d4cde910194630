/* SPDX-License-Identifier: MIT
 * What the oracle's two halves share: oracle.c runs schedules, oracle_result.c knows the answer. */
#ifndef GCI_TESTS_ORACLE_IMPL_H
#define GCI_TESTS_ORACLE_IMPL_H

#include "base/prng.h"
#include "collectives/schedule/schedule.h"

struct gci_coll;

/* A sum, which does not care for order, and a hash of the order in which it was made. */
struct value {
	uint64_t sum, hash;
};

static inline struct value combine(struct value left, struct value right)
{
	return (struct value){left.sum + right.sum, gci_digest(left.hash, right.hash)};
}

/* One value per rank, combined in the fixed order that c->order asks for. */
struct value oracle_fold(const struct gci_coll *c, const struct value *v);

/* A rank's buffers as they are at one time. */
struct contents {
	struct value *buf[GCI_NBUFFERS];
	uint64_t out_len;
};

/* What OUT of `rank` holds in the end, given what all ranks' buffers held at first: NULL if it is
 * right, else what is wrong. `first_out` is OUT of the first rank, in the end: in allreduce its
 * bits are everybody's. */
const char *oracle_check(const struct gci_coll *c, const struct contents *at_first, int rank,
	const struct value *out, const struct value *first_out);

#endif
