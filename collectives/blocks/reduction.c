/* SPDX-License-Identifier: MIT */
#include "collectives/blocks/reduction.h"

void gci_reduce_up(struct gci_builder *b, const struct gci_group *g, gci_tree *tree,
	struct gci_slice in, struct gci_slice acc, uint32_t tag)
{
	int parent, children[32], k = tree(g, &parent, children);

	if (!in.length)
		return;
	if (g->n == 1)
		gci_copy_some(b, acc, in);
	while (k-- > 0) { /* the smallest subtree is ready first */
		gci_recv_reduce(b, gci_group_rank(g, children[k]), tag, acc, in, 0);
		in = acc;
	}
	if (parent >= 0)
		gci_send(b, gci_group_rank(g, parent), tag, in);
}

void gci_bcast_down(struct gci_builder *b, const struct gci_group *g, gci_tree *tree,
	struct gci_slice all, uint32_t tag)
{
	int parent, children[32], k, n = tree(g, &parent, children);

	if (parent >= 0)
		gci_recv_some(b, gci_group_rank(g, parent), tag, all);
	for (k = 0; k < n; k++)
		gci_send_some(b, gci_group_rank(g, children[k]), tag, all);
}

void gci_reduce_canonical(struct gci_builder *b, const struct gci_coll *c, int flat, int root,
	struct gci_slice in, struct gci_slice acc, uint32_t tag)
{
	struct gci_join joins[GCI_MAX_JOINS];
	int i, n = gci_joins(c->topo, flat, b->rank, root, joins);

	if (!in.length)
		return;
	if (b->nranks == 1)
		gci_copy_some(b, acc, in);
	for (i = 0; i < n; i++) {
		if (joins[i].other == b->rank) {
			gci_send(b, joins[i].lead, tag, in);
		} else {
			gci_recv_reduce(b, joins[i].other, tag, acc, in, joins[i].other_first);
			in = acc;
		}
	}
}

void gci_bcast_canonical(struct gci_builder *b, const struct gci_coll *c, int flat, int root,
	struct gci_slice all, uint32_t tag)
{
	struct gci_join joins[GCI_MAX_JOINS];
	int n = gci_joins(c->topo, flat, b->rank, root, joins);

	while (n-- > 0) {
		if (joins[n].other == b->rank)
			gci_recv_some(b, joins[n].lead, tag, all);
		else
			gci_send_some(b, joins[n].other, tag, all);
	}
}

/* ---- many parts at once */

static int joins_of(const struct gci_topo *t, enum gci_span span, int rank, int root,
	struct gci_join joins[GCI_MAX_JOINS])
{
	int n = gci_joins(t, span == GCI_SPAN_FLAT, rank, root, joins);

	while (span == GCI_SPAN_CLUSTER && n &&
		t->cluster[joins[n - 1].lead] != t->cluster[joins[n - 1].other])
		n--;
	return n;
}

static void join_item(
	struct gci_builder *b, struct gci_item *item, const struct gci_join *j, uint32_t tag)
{
	struct gci_slice to = item->to;

	if (j->other == b->rank) {
		gci_send(b, j->lead, tag, item->at);
		return;
	}
	if (to.buffer == GCI_NBUFFERS)
		to = gci_slice(GCI_TMP, gci_tmp(b, item->at.length), item->at.length);
	gci_recv_reduce(b, j->other, tag, to, item->at, j->other_first);
	item->at = item->to = to;
}

/* Counts the joins of every item; returns the most of one. */
static int count_joins(struct gci_builder *b, const struct gci_coll *c, enum gci_span span,
	struct gci_item *items, int n)
{
	struct gci_join joins[GCI_MAX_JOINS];
	int most = 0, k;

	for (k = 0; k < n; k++) {
		int njoins = items[k].at.length
				     ? joins_of(c->topo, span, b->rank, items[k].root, joins)
				     : 0;

		items[k].njoins = (uint8_t)njoins;
		if (njoins)
			items[k].end = joins[njoins - 1];
		most = njoins > most ? njoins : most;
	}
	return most;
}

void gci_reduce_items(struct gci_builder *b, const struct gci_coll *c, enum gci_span span,
	struct gci_item *items, int n, uint32_t tag)
{
	struct gci_join own[GCI_MAX_JOINS], joins[GCI_MAX_JOINS];
	int most = count_joins(b, c, span, items, n), i, k, nown;

	/* Whom a rank leads inside its cluster does not depend on the root. */
	nown = joins_of(
		c->topo, span == GCI_SPAN_ALL ? GCI_SPAN_CLUSTER : span, b->rank, b->rank, own);
	/* A rank's joins in one cluster, or of one cluster, are at the same nodes of the tree
	 * whatever the root is: all ranks go through the levels in one order. */
	for (i = 0; i < most; i++) {
		gci_round(b);
		for (k = 0; k < n; k++) {
			const struct gci_join *j = &items[k].end;

			if (items[k].njoins <= i)
				continue;
			if (items[k].njoins > i + 1 && i < nown) {
				j = &own[i];
			} else if (items[k].njoins > i + 1) {
				joins_of(c->topo, span, b->rank, items[k].root, joins);
				j = &joins[i];
			}
			join_item(b, &items[k], j, tag + (uint32_t)k);
		}
	}
}

/* ---- the tree in one place */

/* A part of the tree: leaves, clusters or members of one cluster [a, z). */
struct range {
	int of_clusters, cluster, a, z;
};

struct value {
	struct gci_slice at;
	int mine; /* has this rank's own leaf in it */
};

static struct value fold_range(struct gci_fold *f, struct range r, int slot);

/* Goes down into clusters that have a single place above. */
static struct range inside(const struct gci_fold *f, struct range r)
{
	if (r.of_clusters && r.z - r.a == 1 && f->leaves == GCI_FOLD_BY_CLUSTERS)
		return (struct range){0, r.a, 0, gci_topo_size(f->t, r.a)};
	return r;
}

/* The leaf that a range consists of, or -1. */
static int only_leaf(const struct gci_fold *f, struct range r)
{
	if (r.z - r.a != 1)
		return -1;
	return r.cluster < 0 ? r.a : gci_topo_members(f->t, r.cluster)[r.a];
}

/* The own leaf leaves its place with its first join. */
static struct gci_slice moved(struct gci_fold *f, struct value v)
{
	return v.mine ? f->result : v.at;
}

static struct value join_leaf(
	struct gci_fold *f, struct range rest, int leaf, int slot, int leaf_first)
{
	struct value v = fold_range(f, rest, slot);
	struct gci_slice to = moved(f, v);

	f->join(f, leaf, to, v.at, leaf_first);
	return (struct value){to, v.mine};
}

static struct value fold_range(struct gci_fold *f, struct range r, int slot)
{
	struct range lower = r = inside(f, r), upper = r;
	int leaf = only_leaf(f, r), low_leaf, high_leaf;
	struct value low, high;

	if (leaf >= 0)
		return leaf == f->mine ? (struct value){f->own, 1}
				       : (struct value){f->bring(f, leaf, slot), 0};
	lower.z = upper.a = gci_middle(r.a, r.z);
	low_leaf = only_leaf(f, inside(f, lower));
	high_leaf = only_leaf(f, inside(f, upper));
	if (f->join && high_leaf >= 0 && high_leaf != f->mine)
		return join_leaf(f, lower, high_leaf, slot, 0);
	if (f->join && low_leaf >= 0 && low_leaf != f->mine)
		return join_leaf(f, upper, low_leaf, slot, 1);
	low = fold_range(f, lower, slot);
	high = fold_range(f, upper, slot + !low.mine);
	if (low.mine || high.mine)
		gci_copy_some(f->b, f->result, low.mine ? low.at : high.at);
	if (high.mine)
		gci_reduce(f->b, f->result, low.at, 1);
	else
		gci_reduce(f->b, moved(f, low), high.at, 0);
	return (struct value){moved(f, high.mine ? high : low), low.mine || high.mine};
}

void gci_fold(struct gci_fold *f)
{
	int by_ranks = f->leaves == GCI_FOLD_RANKS;
	struct range all = {!by_ranks, -1, 0, by_ranks ? f->t->nranks : f->t->nclusters};
	struct value v = fold_range(f, all, 0);

	gci_copy_some(f->b, f->result, v.at);
}
