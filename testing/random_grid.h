/* SPDX-License-Identifier: MIT
 * Random grids, for what has to hold on networks that nobody has chosen. */
#ifndef GCI_TESTING_RANDOM_GRID_H
#define GCI_TESTING_RANDOM_GRID_H

#include "base/buf.h"
#include "base/prng.h"

#define GCI_RANDOM_CLUSTERS 64

/* Appends a grid file: so many clusters, at most GCI_RANDOM_CLUSTERS (0: 2 to 8), of about `nhosts` hosts together (0: 1 to 12 each) with NICs of 500
 * Mbit/s to 10 Gbit/s, each pair with a link of its own of 0.3 to 5 times the slower NIC and 0.5 to 40 ms, a quarter
 * of them slower one way. The same state of `r` makes the same file. */
void gci_random_grid(struct gci_prng *r, unsigned nclusters, unsigned nhosts, struct gci_buf *out);

/* Likewise clusters whose paths share what they pass: 1 to 4 switches with 300 Mbit/s to 10 Gbit/s between
 * them, each cluster with a link to one, to two, or to another cluster; half of them with uplinks of 0.7 to 3 NICs,
 * a sixth with a first host whose NIC is slower. */
void gci_random_switched_grid(
	struct gci_prng *r, unsigned nclusters, unsigned nhosts, struct gci_buf *out);

#endif
