/* SPDX-License-Identifier: MIT
 * Reduce up a tree; all but `gather` of ATCC (Vadhiyar 2001), table 1, run by segments too, of m.
 * 	chain		rank to rank, towards the root. Cost: (P-1) (L + M/B), with segments
 * 			M/B + (P-2) m/B + the path's latencies
 * 	binary		Cost: 2 ceil(log2 P) (L + M/B), with segments 2 M/B + the depth's part
 * 	binomial	the canonical tree (collectives/blocks/order.h), over all ranks in one, or
 * 			by clusters where the order asks for it. Cost: ceil(log2 P) (L + M/B)
 * 	clusters	the canonical tree by clusters: one rank of each speaks for it, so every
 * 			WAN link is crossed once. Cost: ceil(log2 C) (L + M/B) + ceil(log2 h) M/B */
#include "collectives/blocks/blocks.h"
#include "collectives/blocks/reduction.h"
#include "collectives/blocks/shares.h"
#include "collectives/planner/packed.h"
#include "collectives/tuner/formulas.h"

static struct gci_slice accumulator(struct gci_builder *b, const struct gci_coll *c, int needed)
{
	if (b->rank == c->root)
		return gci_vector(c, GCI_OUT);
	return gci_slice(GCI_TMP, needed ? gci_tmp(b, c->count) : 0, c->count);
}

static void up_tree(struct gci_builder *b, const struct gci_coll *c, gci_tree *tree)
{
	struct gci_group g = gci_group_all(c, b->rank, c->root);
	int parent, children[32];
	struct gci_slice acc = accumulator(b, c, tree(&g, &parent, children) > 0);

	gci_reduce_up(b, &g, tree, gci_vector(c, gci_input(c, b->rank)), acc, gci_tag(0, 0));
}

static void gci_emit_reduce_chain(struct gci_builder *b, const struct gci_coll *c)
{
	up_tree(b, c, gci_chain);
}

static void gci_emit_reduce_binary(struct gci_builder *b, const struct gci_coll *c)
{
	up_tree(b, c, gci_binary);
}

static void up_canonical(struct gci_builder *b, const struct gci_coll *c, int flat)
{
	struct gci_join joins[GCI_MAX_JOINS];
	int n = gci_joins(c->topo, flat, b->rank, c->root, joins);

	gci_reduce_canonical(b, c, flat, c->root, gci_vector(c, gci_input(c, b->rank)),
		accumulator(b, c, n > 1), gci_tag(0, 0));
}

static void gci_emit_reduce_binomial(struct gci_builder *b, const struct gci_coll *c)
{
	up_canonical(b, c, c->order == GCI_ANY_ORDER || gci_order_is_flat(c));
}

static void gci_emit_reduce_clusters(struct gci_builder *b, const struct gci_coll *c)
{
	up_canonical(b, c, 0);
}

/* ---- Gather then operate: every rank sends its vector to the root, which combines them along the
 * tree of a fixed order.
 * Cost: L + (P-1) M/B. ATCC (Vadhiyar 2001), table 1. The root asks for one vector at a time, as
 * flows that meet at its NIC only hinder each other; it combines while they come, so that it holds
 * O(log P) of them and not P. */

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

static void gci_emit_reduce_gather(struct gci_builder *b, const struct gci_coll *c)
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

/* ---- Reduce of long messages: a reduce-scatter, and a gather of the parts to the root.
 * 	rabenseifner	recursive halving over all ranks. Cost: 2 ceil(log2 P) L + 2 (P-1)/P M/B.
 * 			ATCC (Vadhiyar 2001), table 1; for commutative operations
 * 	ordered		the same volume along the canonical tree (collectives/blocks/order.h),
 * 			every rank leading the tree of its own part
 * 	ordered-mod	that in each cluster; the others' parts go to the root's cluster by n
 * 			senders, are combined there, and gathered. Cost: L + (C-1) M/nB +
 * 			2 (h-1)/h M/B. The WAN is crossed once by each cluster's result
 *
 * Bound (DESIGN.md): L + M/B; what keeps them from it is that parts are gathered only when all is
 * reduced. */

enum { REDUCE, COUNTER, FORWARD, GATHER };

static void gci_emit_reduce_rabenseifner(struct gci_builder *b, const struct gci_coll *c)
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

static void gci_emit_reduce_ordered(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_group g = gci_group_all(c, b->rank, c->root);
	struct gci_share x;
	uint64_t base = gci_share_cut(&x, b, c, g, !g.me, gci_collect_end(g.n, g.me));

	gci_share_reduce(&x, gci_order_is_flat(c) ? GCI_SPAN_FLAT : GCI_SPAN_ALL, 1, REDUCE);
	gather_shares(&x, base);
}

static void gci_emit_reduce_ordered_mod(struct gci_builder *b, const struct gci_coll *c)
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

/* ---- the algorithms */

const struct gci_algorithm gci_reduces[] = {
	{GCI_REDUCE, "packed",
		"packing of trees: segments up several trees of clusters, by what links and NICs "
		"carry",
		GCI_PACKS | GCI_KEEPS_CLUSTER_ORDER, 0, gci_emit_packed, gci_estimate_packed},
	{GCI_REDUCE, "binomial", "binomial tree over all ranks",
		GCI_USES_SEGMENT | GCI_BY_SEGMENT | GCI_KEEPS_RANK_ORDER, 0,
		gci_emit_reduce_binomial, gci_estimate_binomial},
	{GCI_REDUCE, "clusters", "binomial tree in each cluster, and one over their coordinators",
		GCI_USES_SEGMENT | GCI_BY_SEGMENT | GCI_CAPS_SENDERS | GCI_KEEPS_CLUSTER_ORDER, 0,
		gci_emit_reduce_clusters, gci_estimate_clusters},
	{GCI_REDUCE, "gather", "the root takes all vectors and operates", GCI_KEEPS_RANK_ORDER, 0,
		gci_emit_reduce_gather, gci_estimate_flat},
	{GCI_REDUCE, "chain", "rank to rank, towards the root", GCI_USES_SEGMENT | GCI_BY_SEGMENT,
		0, gci_emit_reduce_chain, gci_estimate_chain},
	{GCI_REDUCE, "binary", "binary tree over all ranks", GCI_USES_SEGMENT | GCI_BY_SEGMENT, 0,
		gci_emit_reduce_binary, gci_estimate_binary},
	{GCI_REDUCE, "rabenseifner", "reduce-scatter, gather over all ranks", 0, 0,
		gci_emit_reduce_rabenseifner, gci_estimate_halving},
	{GCI_REDUCE, "ordered", "reduce-scatter by the tree of a fixed order, gather",
		GCI_KEEPS_RANK_ORDER, 0, gci_emit_reduce_ordered, gci_estimate_halving},
	{GCI_REDUCE, "ordered-mod", "the same in each cluster, to the root's by n senders",
		GCI_USES_SENDERS | GCI_CAPS_SENDERS | GCI_KEEPS_CLUSTER_ORDER, 0,
		gci_emit_reduce_ordered_mod, gci_estimate_modified},
	{GCI_REDUCE, NULL, NULL, 0, 0, NULL, NULL},
};
