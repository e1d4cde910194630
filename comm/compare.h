/* SPDX-License-Identifier: MIT
 * The results of an allreduce compared (setting "compare"): after it the ranks gather the CRC32Cs
 * of what each of them has. What no checksum of a message finds (a processor that computes wrongly,
 * memory that changes, ranks that were built differently) ends in GCOLL_ERR_CORRUPT on every rank.
 *
 *	v = gci_compare_create(c, done, user);
 *	rc = gci_compare_prepare(v, &op);	// before op starts: its number is the next one
 *	...
 *	rc = gci_compare_start(v);		// when op is over
 *
 * One thread. */
#ifndef GCI_COMM_COMPARE_H
#define GCI_COMM_COMPARE_H

#include "comm/op.h"

struct gci_compare;

/* done(user, 0 or the status of a failure) is called from progress, or from gci_compare_start.
 * NULL: out of memory. */
struct gci_compare *gci_compare_create(
	gcoll_comm *c, void (*done)(void *user, int status), void *user);

/* For an operation that has its own number. `of` must live until the comparison is over. 0 or the
 * status of a failure. */
int gci_compare_prepare(struct gci_compare *v, const struct gci_op *of);

/* 0 or the status of a failure (done is not called then). */
int gci_compare_start(struct gci_compare *v);

/* When it is not under way, or after the transport was freed. NULL is legal. */
void gci_compare_free(struct gci_compare *v);

/* Whether n ranks' results, by their CRC32Cs, are one. If not, 0 with the first rank in *odd that
 * has another than more than half of the ranks, and that one's in *most; where no more than half
 * have the same, *odd is -1. */
int gci_compare_same(const uint32_t *crcs, int n, int *odd, uint32_t *most);

#endif
