/* SPDX-License-Identifier: MIT
 * Ring allreduce: part r of the vector sets out from rank r+1, gathers every rank's operand on its
 * way round to r, and goes round once more. For commutative operations.
 * Cost: 2 (P-1) (L + M/PB), the bound of its bandwidth (DESIGN.md: 2 (P-1)/P M/B) but for
 * latencies, as long as no part waits for the WAN. */
#include "collectives/allreduce/allreduce.h"

enum { REDUCE_SCATTER, ALLGATHER };

void gci_emit_allreduce_ring(struct gci_builder *b, const struct gci_coll *c)
{
	int n = b->nranks, right = (b->rank + 1) % n, left = (b->rank - 1 + n) % n, i;
	enum gci_buffer input = gci_input(c, b->rank);
	struct gci_parts p = gci_parts_of(c, n);

	if (n == 1)
		gci_copy_some(b, gci_vector(c, GCI_OUT), gci_vector(c, input));
	for (i = 1; i < n; i++) {
		int give = (b->rank - i + n) % n, take = (give - 1 + n) % n;
		struct gci_slice dst = gci_parts_slice(&p, GCI_OUT, take, take + 1);

		gci_send_some(b, right, gci_tag(REDUCE_SCATTER, (uint32_t)give),
			gci_parts_slice(&p, i > 1 ? GCI_OUT : input, give, give + 1));
		if (dst.length)
			gci_recv_reduce(b, left, gci_tag(REDUCE_SCATTER, (uint32_t)take), dst,
				gci_parts_slice(&p, input, take, take + 1), 1);
	}
	for (i = 1; i < n; i++) {
		int give = (b->rank - i + 1 + n) % n, take = (give - 1 + n) % n;

		gci_send_some(b, right, gci_tag(ALLGATHER, (uint32_t)give),
			gci_parts_slice(&p, GCI_OUT, give, give + 1));
		gci_recv_some(b, left, gci_tag(ALLGATHER, (uint32_t)take),
			gci_parts_slice(&p, GCI_OUT, take, take + 1));
	}
}
