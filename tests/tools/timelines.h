/* SPDX-License-Identifier: MIT
 * Timelines made by hand: of a grid of a few clusters, what a test says each rank did. */
#ifndef GCI_TESTS_TOOLS_TIMELINES_H
#define GCI_TESTS_TOOLS_TIMELINES_H

#include "tests/test.h"

#include "tools/lib/timeline.h"

struct made {
	struct gci_grid grid;
	struct gci_topo topo;
	struct gct_timeline timeline;
	const char **names, **clusters;
};

/* So many clusters "c0", "c1", ... of so many hosts "c0h0", ..., 1 Gbit/s and 10 ms apart. */
void made_grid(struct made *m, int nclusters, int nhosts);
void made_free(struct made *m);

/* A message: its SEND, and its RECV, which comes as much later as the link delays. */
void made_message(struct made *m, int from, int to, uint32_t tag, uint64_t nbytes,
	uint64_t ready_ns, uint64_t from_ns, uint64_t to_ns);
void made_compute(struct made *m, int rank, uint64_t from_ns, uint64_t to_ns);

#endif
