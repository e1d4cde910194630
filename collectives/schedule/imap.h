/* SPDX-License-Identifier: MIT
 * A map from disjoint intervals [lo, hi) of uint64_t to a pair of values. The builder keeps last
 * writers in it, the verifier what each element holds. A treap (Seidel and Aragon 1996): every
 * operation costs O(log n) per interval touched, and memory grows with intervals, not elements.
 *
 *	struct gci_imap m;
 *	gci_imap_init(&m);
 *	gci_imap_set(&m, 0, 100, (struct gci_ival){1, 2});
 *	gci_imap_each(&m, 50, 200, 0, print_one, NULL);		// one call: [50, 100)
 *	gci_imap_free(&m);
 */
#ifndef GCI_COLLECTIVES_SCHEDULE_IMAP_H
#define GCI_COLLECTIVES_SCHEDULE_IMAP_H

#include "base/prng.h"

#include <stddef.h>
#include <stdint.h>

struct gci_ival {
	uint64_t a, b;
};

struct gci_imap_node {
	uint64_t lo, hi;
	struct gci_ival v;
	uint64_t priority;
	int32_t left, right; /* node numbers; 0: none */
};

struct gci_imap {
	struct gci_imap_node *nodes; /* number 0 is not used */
	size_t n, cap;
	int32_t root, unused; /* head of a list of free nodes, through `left` */
	int32_t last;         /* the node that was found or set latest; 0: none */
	struct gci_prng prng;
	int failed; /* out of memory at some time */
};

void gci_imap_init(struct gci_imap *m);
void gci_imap_free(struct gci_imap *m);

/* [lo, hi) holds `v` from now on, whatever was there. */
void gci_imap_set(struct gci_imap *m, uint64_t lo, uint64_t hi, struct gci_ival v);

/* Calls fn for each piece of [lo, hi) in order, cut to it; fn may change *v, not the map. With
 * `fill`, gaps are first filled with *fill; without, they are passed over. Stops when fn returns
 * non-zero, and returns that; GCOLL_ERR_NOMEM when out of memory. */
int gci_imap_each(struct gci_imap *m, uint64_t lo, uint64_t hi, const struct gci_ival *fill,
	int (*fn)(void *ctx, uint64_t lo, uint64_t hi, struct gci_ival *v), void *ctx);

#endif
