/* SPDX-License-Identifier: MIT
 * Bytes over time, in bins of equal length: a ring of the newest ones.
 *
 *	struct gci_bins b;
 *
 *	rc = gci_bins_init(&b, 10 * GCI_NS_PER_MS, 1024);
 *	gci_bins_add(&b, from_ns, to_ns, nbytes);	// spread evenly
 *	gci_bins_get(&b, from_ns / b.bin_ns);
 *	gci_bins_free(&b);
 *
 * A bin's number is its beginning divided by its length, so bins of the same length from several
 * places belong together by their numbers. What is older than the ring reaches back is counted in
 * `missed`. */
#ifndef GCI_BASE_BINS_H
#define GCI_BASE_BINS_H

#include <stdint.h>

struct gci_bins {
	uint64_t bin_ns;
	uint64_t *at;
	uint32_t cap;
	uint64_t end; /* behind the newest bin; the ring reaches from end - cap to here */
	uint64_t missed;
};

/* 0 or -1: out of memory. */
int gci_bins_init(struct gci_bins *b, uint64_t bin_ns, uint32_t cap);
void gci_bins_free(struct gci_bins *b);

/* Puts nbytes into one bin. A number far ahead of all others makes the ring forget them. */
void gci_bins_put(struct gci_bins *b, uint64_t number, uint64_t nbytes);

/* Spreads nbytes over the time from `from_ns` to `to_ns`, as evenly as whole numbers allow; none
 * are lost by rounding. */
void gci_bins_add(struct gci_bins *b, uint64_t from_ns, uint64_t to_ns, uint64_t nbytes);

/* 0 where nothing is known. */
uint64_t gci_bins_get(const struct gci_bins *b, uint64_t number);

/* The sum of bins from `first` to before `end`. */
uint64_t gci_bins_sum(const struct gci_bins *b, uint64_t first, uint64_t end);

#endif
