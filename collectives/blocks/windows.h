/* SPDX-License-Identifier: MIT
 * Windows: a schedule covers so much of a message; a longer one repeats it, a few at a time. Of
 * operations on blocks a window is a part of every block: the same elements of equal ones, the same
 * fraction of blocks of different lengths.
 *
 *	gci_windows_cut(&w, &coll, GCI_WINDOW_NBYTES);
 *	gci_windows_segment(&coll, &w);
 *	for (i = 0; i < w.n; i++) {
 *		struct gci_coll part = gci_window_of(&w, &coll, i);
 *		...	// its buffers begin gci_window_at(&w, i) elements later
 *	} */
#ifndef GCI_COLLECTIVES_BLOCKS_WINDOWS_H
#define GCI_COLLECTIVES_BLOCKS_WINDOWS_H

#include "collectives/coll.h"

#define GCI_WINDOW_NBYTES (32u << 20) /* of a message, that one schedule covers */
#define GCI_WINDOWS       3           /* at once, at least, of a longer message */
#define GCI_MOST_WINDOWS  64

struct gci_windows {
	uint64_t n;
	uint64_t window; /* elements of the vector or of each block; 0: by parts (counts[]) */
	uint64_t most;   /* elements that one window has in all */
};

/* Cuts `c`, the whole message, and sets its stride or parts for it. */
void gci_windows_cut(struct gci_windows *w, struct gci_coll *c, uint64_t window_nbytes);

/* Makes c->segment, where it is set, long enough that tags suffice and memory stays bounded. */
void gci_windows_segment(struct gci_coll *c, const struct gci_windows *w);

/* Window number i. */
struct gci_coll gci_window_of(const struct gci_windows *w, const struct gci_coll *c, uint64_t i);

/* How many are under way at once on a rank: a window ends when its peers have what they asked for, so as many as the
 * longest way holds of what its fastest end sends during a round trip, and one that begins and one that ends. Memory
 * bounds those that need some, `tmp_nbytes` each. */
int gci_windows_at_once(const struct gci_windows *w, const struct gci_coll *c, uint64_t tmp_nbytes);

static inline uint64_t gci_window_at(const struct gci_windows *w, uint64_t i)
{
	return i * w->window;
}

#endif
