/* SPDX-License-Identifier: MIT
 * Offsets of the ranks' clocks from rank 0's, by Cristian's method (1989): the shortest of several
 * round trips, the remote clock being read half-way. Off by at most half that round trip. */
#include "tools/bench.h"

#include <stdio.h>

#define ROUNDS     5
#define MOST_RANKS 256 /* it takes a round trip of everybody's for each */

/* One round trip between ranks 0 and r. On rank 0: its length, and rank r's offset. */
static int round_trip(gcoll_comm *c, int r, uint64_t *rtt_ns, int64_t *offset_ns)
{
	uint64_t before = gci_wall_ns(), there = 0, after;
	int rc = gcoll_bcast(&before, 1, GCOLL_UINT64, 0, c);

	there = gci_wall_ns();
	if (!rc)
		rc = gcoll_bcast(&there, 1, GCOLL_UINT64, r, c);
	after = gci_wall_ns();
	*rtt_ns = after - before;
	*offset_ns = (int64_t)(there - before - (after - before) / 2);
	return rc;
}

static int offset_of(gcoll_comm *c, int r, uint64_t *rtt_ns, int64_t *offset_ns)
{
	uint64_t rtt = 0;
	int64_t offset = 0;
	int i, rc = 0;

	*rtt_ns = UINT64_MAX;
	*offset_ns = 0;
	for (i = 0; i < ROUNDS && !rc; i++) {
		rc = round_trip(c, r, &rtt, &offset);
		if (rtt < *rtt_ns) {
			*rtt_ns = rtt;
			*offset_ns = offset;
		}
	}
	return rc;
}

int gct_bench_clocks(struct gct_bench *b)
{
	gcoll_comm *c = b->own;
	uint64_t rtt = 0, longest = 0, widest = 0, offset_bits;
	int64_t offset = 0;
	int r, rc = 0;

	if (b->lab.backend || c->size > MOST_RANKS)
		return 0;
	rc = gcoll_comm_set(c, "bcast", "sequential");
	for (r = 1; r < c->size && !rc; r++) {
		rc = offset_of(c, r, &rtt, &offset);
		offset_bits = (uint64_t)offset;
		if (!rc)
			rc = gcoll_bcast(&offset_bits, 1, GCOLL_UINT64, 0, c);
		if (r == c->rank)
			b->offset_ns = (int64_t)offset_bits;
		longest = rtt > longest ? rtt : longest;
		if ((uint64_t)(offset < 0 ? -offset : offset) > widest)
			widest = (uint64_t)(offset < 0 ? -offset : offset);
	}
	b->clock_offset_ns = widest;
	b->clock_error_ns = longest / 2;
	return rc;
}
