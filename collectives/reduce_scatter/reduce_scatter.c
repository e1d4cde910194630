/* SPDX-License-Identifier: MIT
 * Recursive halving, for any number of ranks: in each round the ranks of one half give their
 * counterparts in the other what that half is going to own, and go on with their own half. The last
 * rank of a half that is larger by one gives its share to the other's first rank and is given none.
 * For commutative operations.
 * Cost: ceil(log2 P) L + (P-1) m/B, blocks of m; where P is no power of two, up to twice that for
 * ranks that stand in for others. Rabenseifner (1997), of Matsuda 2006, 2.3. */
#include "base/mem.h"
#include "collectives/blocks/reduction.h"
#include "collectives/planner/packed.h"
#include "collectives/tuner/formulas.h"

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

static void gci_emit_reduce_scatter_halving(struct gci_builder *b, const struct gci_coll *c)
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

/* ---- Ring reduce-scatter: the block of rank r sets out from r+1 and gathers every rank's part on
 * its way round to r.
 * Cost: (P-1) (L + m/B), blocks of m. For commutative operations. */

static void gci_emit_reduce_scatter_ring(struct gci_builder *b, const struct gci_coll *c)
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

/* ---- Reduce-scatter in a fixed order: each block goes up the canonical tree
 * (collectives/blocks/order.h) that its owner leads, all blocks at the same time. As every half of
 * the tree is led by the rank at the owner's place in it, a rank gives half of the blocks away in
 * the first round, half of the rest in the next one and so on: recursive halving that begins with
 * the nearest rank.
 * 	ordered		over all ranks. Cost: ceil(log2 P) L + (P-1) m/B, blocks of m
 * 	clusters	in each cluster; then, at every node between clusters, the one rank that
 * 			leads a cluster for a block sends it across, itself or by one of n senders.
 * 			Cost: ceil(log2 C) L + M/nB + (h-1)/h M/B, M = P m, and M/nB more at the
 * 			senders for what is forwarded to them */

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

static void gci_emit_reduce_scatter_ordered(struct gci_builder *b, const struct gci_coll *c)
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

static void gci_emit_reduce_scatter_clusters(struct gci_builder *b, const struct gci_coll *c)
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

/* ---- the algorithms */

const struct gci_algorithm gci_reduce_scatters[] = {
	{GCI_REDUCE_SCATTER, "packed", "packing of trees: blocks up several trees of clusters each",
		GCI_PACKS | GCI_KEEPS_CLUSTER_ORDER, 0, gci_emit_packed, gci_estimate_packed},
	{GCI_REDUCE_SCATTER, "ring", "parts travel round a ring of all ranks", 0, 0,
		gci_emit_reduce_scatter_ring, gci_estimate_ring},
	{GCI_REDUCE_SCATTER, "clusters", "up the tree of a fixed order, across by n senders",
		GCI_USES_SENDERS | GCI_CAPS_SENDERS | GCI_KEEPS_CLUSTER_ORDER, 0,
		gci_emit_reduce_scatter_clusters, gci_estimate_coordinators},
	{GCI_REDUCE_SCATTER, "ordered", "each block up the tree of a fixed order",
		GCI_KEEPS_RANK_ORDER, 0, gci_emit_reduce_scatter_ordered, gci_estimate_rounds},
	{GCI_REDUCE_SCATTER, "halving", "recursive halving over all ranks", 0, 0,
		gci_emit_reduce_scatter_halving, gci_estimate_rounds},
	{GCI_REDUCE_SCATTER, NULL, NULL, 0, 0, NULL, NULL},
};
