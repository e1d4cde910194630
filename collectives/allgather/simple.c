/* SPDX-License-Identifier: MIT
 * Every rank sends its block to every other. `simple` starts all transfers at once, in the order of
 * ranks, so that the low ranks are everybody's first; `spreading` meets the rank at distance i in
 * round i.
 * Cost: (P-1) (L + m/B), blocks of m. Min3 (Gupta 2007), 2. */
#include "collectives/allgather/allgather.h"

static void send_own(struct gci_builder *b, const struct gci_coll *c, int to)
{
	gci_send_some(b, to, gci_tag(0, 0), gci_in_block(c, b->rank, b->rank));
}

static void recv_theirs(struct gci_builder *b, const struct gci_coll *c, int from)
{
	gci_recv_some(b, from, gci_tag(0, 0), gci_out_block(c, b->rank, from));
}

static void copy_own(struct gci_builder *b, const struct gci_coll *c)
{
	gci_copy_some(b, gci_out_block(c, b->rank, b->rank), gci_in_block(c, b->rank, b->rank));
}

void gci_emit_allgather_simple(struct gci_builder *b, const struct gci_coll *c)
{
	int r;

	for (r = 0; r < b->nranks; r++)
		if (r != b->rank)
			send_own(b, c, r);
	for (r = 0; r < b->nranks; r++)
		if (r != b->rank)
			recv_theirs(b, c, r);
	copy_own(b, c);
}

void gci_emit_allgather_spreading(struct gci_builder *b, const struct gci_coll *c)
{
	int i, n = b->nranks;

	copy_own(b, c);
	for (i = 1; i < n; i++) {
		gci_round(b);
		send_own(b, c, (b->rank + i) % n);
		recv_theirs(b, c, (b->rank - i + n) % n);
	}
}
