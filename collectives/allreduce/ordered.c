/* SPDX-License-Identifier: MIT
 * Allreduce of long messages in a fixed order: a reduce-scatter along the canonical tree
 * (collectives/blocks/order.h), every rank leading the tree of its own part, then an allgather.
 *	ordered		over all ranks. Cost: 2 ceil(log2 P) L + 2 (P-1)/P M/B
 *	ordered-mod	in each cluster; the clusters trade their parts by n senders, and combine
 *			them by that tree too. Cost: L + (C-1) M/nB + 2 (h-1)/h M/B, and
 *			(h-n)/hn M/B for what is forwarded: that of the modified Rabenseifner
 *			algorithm (Matsuda 2006, 2.3), whose halves begin with the farthest rank
 *			and so are in no order
 *
 * Bound (DESIGN.md): 2 (P-1)/P M/B. It is the WAN, when it is slower than h NICs, that keeps
 * `ordered-mod` from it: nothing is reduced or gathered meanwhile. */
#include "collectives/allreduce/allreduce.h"
#include "collectives/blocks/shares.h"

enum { REDUCE, COUNTER, FORWARD, ALLGATHER };

void gci_emit_allreduce_ordered(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_share x;

	gci_share_cut(&x, b, c, gci_group_all(c, b->rank, 0), 1, b->rank + 1);
	gci_share_reduce(&x, gci_order_is_flat(c) ? GCI_SPAN_FLAT : GCI_SPAN_ALL, 1, REDUCE);
	gci_allgather(b, &x.g, &x.p, GCI_NBUFFERS, ALLGATHER);
}

void gci_emit_allreduce_ordered_mod(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_group g = gci_group_cluster(c, c->topo->cluster[b->rank], b->rank, 0);
	struct gci_share_target all = {-1, 0};
	int alone = c->topo->nclusters == 1;
	struct gci_share x;

	gci_share_cut(&x, b, c, g, 1, g.me + 1);
	gci_share_reduce(&x, GCI_SPAN_CLUSTER, alone, REDUCE);
	if (!alone && x.at.buffer == GCI_OUT && x.at.length) {
		/* A lone rank in place: what it sends must stay while results come in. */
		struct gci_slice copy = gci_slice(GCI_TMP, gci_tmp(b, x.at.length), x.at.length);

		gci_copy(b, copy, x.at);
		x.at = copy;
	}
	if (!alone) {
		gci_share_send(&x, all, COUNTER);
		gci_share_combine(&x, all, COUNTER);
	}
	gci_allgather(b, &x.g, &x.p, GCI_NBUFFERS, ALLGATHER);
}
