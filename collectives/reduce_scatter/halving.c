/* SPDX-License-Identifier: MIT
 * Recursive halving, for any number of ranks: in each round the ranks of one half give their
 * counterparts in the other what that half is going to own, and go on with their own half. The last
 * rank of a half that is larger by one gives its share to the other's first rank and is given none.
 * For commutative operations.
 * Cost: ceil(log2 P) L + (P-1) m/B, blocks of m; where P is no power of two, up to twice that for
 * ranks that stand in for others. Rabenseifner (1997), of Matsuda 2006, 2.3. */
#include "collectives/reduce_scatter/reduce_scatter.h"

struct halving {
	struct gci_group g;
	struct gci_shelf at; /* the partial results */
	struct gci_shelf tmp, out;
	int a, z;
};

static void next_round(struct gci_builder *b, const struct gci_coll *c, struct halving *h)
{
	const struct gci_group *g = &h->g;
	int mid = gci_middle(h->a, h->z), low = g->me < mid;
	int odd = mid - h->a > h->z - mid ? mid - 1 : -1;
	int other = low ? mid + (g->me - h->a) : h->a + (g->me - mid);
	int keep = low ? h->a : mid, keep_end = low ? mid : h->z;
	struct gci_shelf to = keep_end - keep > 1 ? h->tmp : h->out;

	gci_round(b);
	gci_send_blocks(
		b, c, g, g->me == odd ? mid : other, 0, &h->at, low ? mid : h->a, low ? h->z : mid);
	if (g->me != odd) {
		gci_recv_reduce_blocks(b, c, g, other, 0, &to, &h->at, !low, keep, keep_end);
		h->at = to;
	}
	if (g->me == mid && odd >= 0)
		gci_recv_reduce_blocks(b, c, g, odd, 0, &h->at, &h->at, 1, keep, keep_end);
	h->a = keep;
	h->z = keep_end;
}

void gci_emit_reduce_scatter_halving(struct gci_builder *b, const struct gci_coll *c)
{
	struct halving h = {.g = gci_group_all(c, b->rank, 0),
		.at = gci_shelf_in(),
		.out = gci_shelf_out(),
		.z = b->nranks};
	int mid = gci_middle(0, h.z), low = h.g.me < mid;

	if (h.z == 1) {
		gci_copy_blocks(b, c, &h.g, &h.out, &h.at, 0, 1);
		return;
	}
	if (h.z > 2)
		h.tmp = gci_shelf_tmp(b, c, &h.g, low ? 0 : mid, low ? mid : h.z);
	while (h.z - h.a > 1)
		next_round(b, c, &h);
}
