/* SPDX-License-Identifier: MIT
 * Reduce-scatter in a fixed order: each block goes up the canonical tree
 * (collectives/blocks/order.h) that its owner leads, all blocks at the same time. As every half of
 * the tree is led by the rank at the owner's place in it, a rank gives half of the blocks away in
 * the first round, half of the rest in the next one and so on: recursive halving that begins with
 * the nearest rank.
 *	ordered		over all ranks. Cost: ceil(log2 P) L + (P-1) m/B, blocks of m
 *	clusters	in each cluster; then, at every node between clusters, the one rank that
 *			leads a cluster for a block sends it across, itself or by one of n senders.
 *			Cost: ceil(log2 C) L + M/nB + (h-1)/h M/B, M = P m, and M/nB more at the
 *			senders for what is forwarded to them */
#include "collectives/reduce_scatter/reduce_scatter.h"

#include "base/mem.h"

enum { UP, ACROSS, FORWARD };

/* One item per block. */
static struct gci_item *list_items(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_item *items = gci_calloc((size_t)b->nranks, sizeof(*items));
	int i;

	if (!items)
		b->failed = 1;
	for (i = 0; items && i < b->nranks; i++) {
		items[i].root = i;
		items[i].at = gci_in_block(c, b->rank, i);
		items[i].to.buffer = GCI_NBUFFERS;
	}
	if (items)
		items[b->rank].to = gci_out_block(c, b->rank, b->rank);
	return items;
}

void gci_emit_reduce_scatter_ordered(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_item *items = list_items(b, c);

	if (!items)
		return;
	gci_reduce_items(b, c, gci_order_is_flat(c) ? GCI_SPAN_FLAT : GCI_SPAN_ALL, items,
		b->nranks, gci_tag(UP, 0));
	gci_copy_some(b, gci_out_block(c, b->rank, b->rank), items[b->rank].at);
	gci_free(items);
}

struct across {
	struct gci_builder *b;
	const struct gci_coll *c;
	struct gci_item *items;
	uint32_t asked; /* + 1: the latest receive of what is to be forwarded */
};

/* Who sends what `rank` has to cluster `to`. */
static int sender_of(const struct gci_coll *c, int rank, int to)
{
	const struct gci_topo *t = c->topo;
	int from = t->cluster[rank];

	return gci_topo_members(t, from)[t->index[rank] % gci_coll_senders(c, from, to)];
}

/* Takes in what a member of this cluster has for another one, and passes it on; one member at a
 * time, as they would meet at this rank's NIC. */
static void relay(struct across *x, int block, const struct gci_join *j)
{
	uint64_t length = gci_block_len(x->c, block, block);
	struct gci_slice s = gci_slice(GCI_TMP, gci_tmp(x->b, length), length);
	uint32_t step = gci_recv(x->b, j->other, gci_tag(FORWARD, (uint32_t)block), s);

	if (x->asked)
		gci_after(x->b, x->asked - 1);
	x->asked = step + 1;
	gci_send(x->b, j->lead, gci_tag(ACROSS, (uint32_t)block), s);
}

/* What this rank does at a node between clusters for one block. */
static void cross(struct across *x, int block, const struct gci_join *j)
{
	int to = x->c->topo->cluster[j->lead], by = sender_of(x->c, j->other, to);
	int rank = x->b->rank;
	struct gci_item *item = &x->items[block];
	struct gci_slice dst = item->to;
	uint32_t tag = gci_tag(ACROSS, (uint32_t)block);

	if (rank == j->other) {
		gci_send(x->b, by == rank ? j->lead : by,
			by == rank ? tag : gci_tag(FORWARD, (uint32_t)block), item->at);
	} else if (rank == by) {
		relay(x, block, j);
	} else if (rank == j->lead) {
		if (dst.buffer == GCI_NBUFFERS)
			dst = gci_slice(GCI_TMP, gci_tmp(x->b, item->at.length), item->at.length);
		gci_recv_reduce(x->b, by, tag, dst, item->at, j->other_first);
		item->at = item->to = dst;
	}
}

/* All blocks at the nodes of one level of this rank's cluster's way up; 0 if there were none. */
static int cross_level(struct across *x, int level)
{
	const struct gci_topo *t = x->c->topo;
	int mine = t->cluster[x->b->rank], block, n, first, any = 0;
	struct gci_join joins[GCI_MAX_JOINS];

	gci_round(x->b);
	x->asked = 0;
	for (block = 0; block < x->b->nranks; block++) {
		if (!gci_block_len(x->c, block, block))
			continue;
		n = gci_joins(t, 0, gci_leader(t, mine, block), block, joins);
		for (first = n; first && t->cluster[joins[first - 1].lead] !=
						 t->cluster[joins[first - 1].other];)
			first--;
		any |= first + level < n;
		if (first + level < n)
			cross(x, block, &joins[first + level]);
	}
	return any;
}

void gci_emit_reduce_scatter_clusters(struct gci_builder *b, const struct gci_coll *c)
{
	struct across x = {b, c, list_items(b, c), 0};
	int level = 0;

	if (!x.items)
		return;
	gci_reduce_items(b, c, GCI_SPAN_CLUSTER, x.items, b->nranks, gci_tag(UP, 0));
	while (cross_level(&x, level))
		level++;
	gci_copy_some(b, gci_out_block(c, b->rank, b->rank), x.items[b->rank].at);
	gci_free(x.items);
}
