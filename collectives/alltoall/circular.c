/* SPDX-License-Identifier: MIT
 * Circular alltoall: in round i rank r sends to r+i and receives from r-i, so that no two ranks
 * send to one at a time. Cost: (P-1) (L + m/B), blocks of m. ATCC (Vadhiyar 2001), table 1. */
#include "collectives/alltoall/alltoall.h"

void gci_emit_alltoall_circular(struct gci_builder *b, const struct gci_coll *c)
{
	int i, n = b->nranks;

	gci_copy_some(b, gci_out_block(c, b->rank, b->rank), gci_in_block(c, b->rank, b->rank));
	for (i = 1; i < n; i++) {
		int to = (b->rank + i) % n, from = (b->rank - i + n) % n;

		gci_round(b);
		gci_send_some(b, to, gci_tag(0, 0), gci_in_block(c, b->rank, to));
		gci_recv_some(b, from, gci_tag(0, 0), gci_out_block(c, b->rank, from));
	}
}
