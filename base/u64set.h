/* SPDX-License-Identifier: MIT
 * A set of 64-bit numbers.
 *
 *	struct gci_u64set seen = {0};
 *	if (gci_u64set_has(&seen, x)) ...
 *	rc = gci_u64set_add(&seen, x);
 *	gci_u64set_free(&seen); */
#ifndef GCI_BASE_U64SET_H
#define GCI_BASE_U64SET_H

#include <stddef.h>
#include <stdint.h>

struct gci_u64set {
	uint64_t *slots; /* 0: free */
	size_t n, cap;   /* cap: 0 or a power of two */
	int has_zero;
};

int gci_u64set_has(const struct gci_u64set *s, uint64_t x);
/* 0, also if it is there already, or -1: out of memory. */
int gci_u64set_add(struct gci_u64set *s, uint64_t x);
void gci_u64set_free(struct gci_u64set *s);

#endif
