/* SPDX-License-Identifier: MIT
 * Allgather then operate: all vectors go to all ranks by dissemination, and each rank evaluates the
 * tree of a fixed order for itself. For short messages.
 * Cost: ceil(log2 P) L + (P-1) M/B, and P vectors of TMP. ATCC (Vadhiyar 2001), table 1. */
#include "collectives/allreduce/allreduce.h"

struct vectors {
	const struct gci_coll *c;
	uint64_t at; /* TMP: of this rank's own, then the next rank's, and so on round to the one
			before */
};

static struct gci_slice slots(const struct vectors *x, int first, int n)
{
	return gci_slice(GCI_TMP, x->at + x->c->count * (unsigned)first, x->c->count * (unsigned)n);
}

static struct gci_slice bring(struct gci_fold *f, int leaf, int slot)
{
	int n = f->b->nranks;

	(void)slot;
	return slots(f->ctx, (leaf - f->b->rank + n) % n, 1);
}

static void disseminate(struct gci_builder *b, const struct vectors *x)
{
	int n = b->nranks, have, m;
	uint32_t round = 0;

	for (have = 1; have < n; have += m, round++) {
		m = have < n - have ? have : n - have;
		gci_send(b, (b->rank - have + n) % n, gci_tag(0, round), slots(x, 0, m));
		gci_recv(b, (b->rank + have) % n, gci_tag(0, round), slots(x, have, m));
	}
}

void gci_emit_allreduce_allgather(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_slice in = gci_vector(c, gci_input(c, b->rank));
	struct vectors x = {.c = c};
	struct gci_fold f = {.b = b,
		.t = c->topo,
		.leaves = gci_order_is_flat(c) ? GCI_FOLD_RANKS : GCI_FOLD_BY_CLUSTERS,
		.mine = b->rank,
		.own = in,
		.result = gci_vector(c, GCI_OUT),
		.bring = bring,
		.ctx = &x};

	if (!c->count)
		return;
	if (b->nranks > 1) {
		x.at = gci_tmp(b, c->count * (unsigned)b->nranks);
		gci_copy(b, slots(&x, 0, 1), in);
	}
	disseminate(b, &x);
	gci_fold(&f);
}
