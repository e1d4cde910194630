/* SPDX-License-Identifier: MIT
 * Binomial gather, the scatter turned round: the first of a range's second half gives what it has
 * collected to the first of the range.
 * Cost: ceil(log2 P) L + (P-1)/P M/B, M being all blocks. ATCC (Vadhiyar 2001), table 1. */
#include "collectives/gather/gather.h"

void gci_emit_gather_binomial(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_group g = gci_group_all(c, b->rank, c->root);
	struct gci_shelf in = gci_shelf_in(), mine = in;
	struct {
		int a, z;
	} rounds[32];
	int n = 0, a = 0, z = g.n, end;

	while (z - a > 1) {
		int mid = gci_middle(a, z);

		rounds[n].a = a;
		rounds[n++].z = z;
		if (g.me < mid)
			z = mid;
		else
			a = mid;
	}
	/* Of the ranges this member is the first of, the largest. */
	for (end = n; end > 0 && rounds[end - 1].a == g.me;)
		end--;
	if (b->rank == c->root)
		mine = gci_shelf_out();
	else if (end < n)
		mine = gci_shelf_tmp(b, c, &g, g.me, rounds[end].z);
	gci_copy_blocks(b, c, &g, &mine, &in, g.me, g.me + 1);
	while (n-- > 0) {
		int mid = gci_middle(rounds[n].a, rounds[n].z);

		if (g.me == rounds[n].a)
			gci_recv_blocks(b, c, &g, mid, gci_tag(0, 0), &mine, mid, rounds[n].z);
		else if (g.me == mid)
			gci_send_blocks(
				b, c, &g, rounds[n].a, gci_tag(0, 0), &mine, mid, rounds[n].z);
	}
}
