/* SPDX-License-Identifier: MIT
 * Checksums of ranges of memory, kept from when their bytes came until they are sent on: so the
 * sum that the origin made travels with them, and a forwarder whose memory has changed is found
 * out. Pure.
 *
 *	struct gci_sums s = {0};
 *	gci_sums_put(&s, buf, n, crc);			// has come, and was checked
 *	rc = gci_sums_get(&s, buf + a, m, &crc);	// is sent on, cut as one likes
 *	rc = gci_sums_copy(&s, to, buf, n);		// memmove, and its sums
 *	gci_sums_forget(&s, buf, n);			// other bytes come there: a new origin
 *	gci_sums_free(&s);
 *
 * Where ranges are sent on whole, nothing is summed again. A range that is cut is summed once, by
 * parts, and the parts' sums must join to the one it came with. What has no sum is summed as it
 * goes out: its origin is here.
 *
 * Lack of memory makes it forget, which loses protection and nothing else. */
#ifndef GCI_TRANSPORT_SUMS_H
#define GCI_TRANSPORT_SUMS_H

#include <stddef.h>
#include <stdint.h>

struct gci_sum {
	uintptr_t at;
	uint32_t nbytes, crc;
};

struct gci_sums {
	struct gci_sum *v; /* by place; they do not overlap */
	size_t n, cap;
};

/* In place of all that overlaps it. nbytes 0: nothing to keep. */
void gci_sums_put(struct gci_sums *s, const void *at, uint32_t nbytes, uint32_t crc);

/* 0 and the CRC32C of the range, made of the sums that its bytes came with. GCOLL_ERR_CORRUPT: a
 * range that had to be cut is not what came. */
int gci_sums_get(struct gci_sums *s, const void *at, size_t nbytes, uint32_t *crc);

/* memmove; whatever has a sum is checked where it is now. 0 or GCOLL_ERR_CORRUPT. */
int gci_sums_copy(struct gci_sums *s, void *to, const void *from, size_t nbytes);

void gci_sums_forget(struct gci_sums *s, const void *at, size_t nbytes);

void gci_sums_free(struct gci_sums *s);

#endif
