/* SPDX-License-Identifier: MIT
 * Ring reduce-scatter: the block of rank r sets out from r+1 and gathers every rank's part on its
 * way round to r.
 * Cost: (P-1) (L + m/B), blocks of m. For commutative operations. */
#include "collectives/reduce_scatter/reduce_scatter.h"

void gci_emit_reduce_scatter_ring(struct gci_builder *b, const struct gci_coll *c)
{
	int n = b->nranks, right = (b->rank + 1) % n, left = (b->rank - 1 + n) % n, i;
	uint64_t most = 0, at[2];
	struct gci_slice in = gci_in_block(c, b->rank, b->rank);

	if (n == 1) {
		gci_copy_some(b, gci_out_block(c, b->rank, b->rank), in);
		return;
	}
	for (i = 0; i < n; i++)
		if (i != b->rank && gci_block_len(c, i, i) > most)
			most = gci_block_len(c, i, i);
	at[0] = gci_tmp(b, n > 2 ? most : 0);
	at[1] = gci_tmp(b, n > 3 ? most : 0);
	for (i = 1; i < n; i++) {
		int give = (b->rank - i + n) % n, take = (b->rank - i - 1 + 2 * n) % n;
		struct gci_slice src = gci_in_block(c, b->rank, take), dst = src;

		in = gci_in_block(c, b->rank, give);
		if (i > 1)
			in = gci_slice(GCI_TMP, at[i % 2], in.length);
		gci_send_some(b, right, gci_tag(0, (uint32_t)give), in);
		dst = i == n - 1 ? gci_out_block(c, b->rank, take)
				 : gci_slice(GCI_TMP, at[(i + 1) % 2], src.length);
		if (src.length)
			gci_recv_reduce(b, left, gci_tag(0, (uint32_t)take), dst, src, 1);
	}
}
