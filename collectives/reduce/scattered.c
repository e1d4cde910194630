/* SPDX-License-Identifier: MIT
 * Reduce of long messages: a reduce-scatter, and a gather of the parts to the root.
 *	rabenseifner	recursive halving over all ranks. Cost: 2 ceil(log2 P) L + 2 (P-1)/P M/B.
 *			ATCC (Vadhiyar 2001), table 1; for commutative operations
 *	ordered		the same volume along the canonical tree (collectives/blocks/order.h),
 *			every rank leading the tree of its own part
 *	ordered-mod	that in each cluster; the others' parts go to the root's cluster by n
 *			senders, are combined there, and gathered. Cost: L + (C-1) M/nB +
 *			2 (h-1)/h M/B. The WAN is crossed once by each cluster's result
 *
 * Bound (DESIGN.md): L + M/B; what keeps them from it is that parts are gathered only when all is
 * reduced. */
#include "collectives/blocks/shares.h"
#include "collectives/blocks/stage.h"
#include "collectives/reduce/reduce.h"

enum { REDUCE, COUNTER, FORWARD, GATHER };

void gci_emit_reduce_rabenseifner(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_group g = gci_group_all(c, b->rank, c->root);
	struct gci_parts p = gci_parts_of(c, g.n);
	enum gci_buffer in = gci_input(c, b->rank);
	struct gci_stage s = {&g, &p, GCI_OUT, 0, GCI_NBUFFERS};

	if (g.n == 1) {
		gci_copy_some(b, gci_vector(c, GCI_OUT), gci_vector(c, in));
		return;
	}
	if (g.me) {
		struct gci_slice room = gci_reduce_scatter_range(&g, &p);

		s.buffer = GCI_TMP;
		s.base = room.offset - gci_tmp(b, room.length);
	}
	gci_reduce_scatter(b, &g, &p, in, s.buffer, s.base, REDUCE);
	gci_collect(b, &s, gci_tag(GATHER, 0));
}

/* Gathers the group's parts at member 0, the root; this member's is in its place. */
static void gather_shares(const struct gci_share *x, uint64_t base)
{
	struct gci_stage s = {&x->g, &x->p, x->to.buffer, base, GCI_NBUFFERS};

	gci_collect(x->b, &s, gci_tag(GATHER, 0));
}

void gci_emit_reduce_ordered(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_group g = gci_group_all(c, b->rank, c->root);
	struct gci_share x;
	uint64_t base = gci_share_cut(&x, b, c, g, !g.me, gci_collect_end(g.n, g.me));

	gci_share_reduce(&x, gci_order_is_flat(c) ? GCI_SPAN_FLAT : GCI_SPAN_ALL, 1, REDUCE);
	gather_shares(&x, base);
}

void gci_emit_reduce_ordered_mod(struct gci_builder *b, const struct gci_coll *c)
{
	const struct gci_topo *t = c->topo;
	int home = t->cluster[c->root], mine = t->cluster[b->rank];
	struct gci_share_target target = {home, t->index[c->root]};
	struct gci_group g = gci_group_cluster(c, mine, b->rank, mine == home ? target.first : 0);
	int alone = t->nclusters == 1;
	struct gci_share x;
	uint64_t base;

	if (mine != home) {
		gci_share_cut(&x, b, c, g, 1, g.me + 1);
		gci_share_reduce(&x, GCI_SPAN_CLUSTER, 0, REDUCE);
		gci_share_send(&x, target, COUNTER);
		return;
	}
	base = gci_share_cut(&x, b, c, g, !g.me, gci_collect_end(g.n, g.me));
	gci_share_reduce(&x, GCI_SPAN_CLUSTER, alone, REDUCE);
	if (!alone)
		gci_share_combine(&x, target, COUNTER);
	gather_shares(&x, base);
}
