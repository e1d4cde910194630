/* SPDX-License-Identifier: MIT
 * Gather then operate: every rank sends its vector to the root, which combines them along the tree
 * of a fixed order.
 * Cost: L + (P-1) M/B. ATCC (Vadhiyar 2001), table 1. The root asks for one vector at a time, as
 * flows that meet at its NIC only hinder each other; it combines while they come, so that it holds
 * O(log P) of them and not P. */
#include "collectives/reduce/reduce.h"

struct incoming {
	const struct gci_coll *c;
	uint64_t tmp;
};

static struct gci_slice bring(struct gci_fold *f, int leaf, int slot)
{
	const struct incoming *x = f->ctx;
	uint64_t n = x->c->count, at = x->tmp + (unsigned)slot * n;

	if (f->b->tmp_len < at + n)
		f->b->tmp_len = at + n;
	gci_round(f->b);
	gci_recv(f->b, leaf, gci_tag(0, 0), gci_slice(GCI_TMP, at, n));
	return gci_slice(GCI_TMP, at, n);
}

static void join(
	struct gci_fold *f, int leaf, struct gci_slice dst, struct gci_slice src, int swapped)
{
	gci_round(f->b);
	gci_recv_reduce(f->b, leaf, gci_tag(0, 0), dst, src, swapped);
}

void gci_emit_reduce_gather(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_slice in = gci_vector(c, gci_input(c, b->rank));
	struct incoming x = {c, b->tmp_len};
	struct gci_fold f = {.b = b,
		.t = c->topo,
		.leaves = gci_order_is_flat(c) ? GCI_FOLD_RANKS : GCI_FOLD_BY_CLUSTERS,
		.mine = b->rank,
		.own = in,
		.result = gci_vector(c, GCI_OUT),
		.bring = bring,
		.join = join,
		.ctx = &x};

	if (!c->count)
		return;
	if (b->rank == c->root)
		gci_fold(&f);
	else
		gci_send(b, c->root, gci_tag(0, 0), in);
}
