/* SPDX-License-Identifier: MIT
 * Recursive doubling along the canonical tree (collectives/blocks/order.h), for any number of
 * ranks: at each node every rank of one half trades whole vectors with its counterpart in the
 * other, and both combine them alike. Inside clusters first, then between them, unless the order is
 * one of ranks. Where a half has more ranks than the other, the last of the smaller one tells all
 * that are left. Cost: ceil(log2 P) (L + M/B), of which ceil(log2 C) over the WAN. For short
 * messages. */
#include "collectives/allreduce/allreduce.h"

enum { INSIDE, BETWEEN };

/* A node on this rank's way up: `me` is one of places [a, z) of this level. */
struct node {
	int level, cluster; /* cluster: whose members the places are, -1: all ranks */
	int a, z, depth;
};

struct doubling {
	struct gci_builder *b;
	const struct gci_coll *c;
	struct gci_slice at;
	struct node nodes[GCI_MAX_JOINS];
	int n;
	uint64_t tmp;
};

/* Appends a level's nodes that hold place `me` of n, the leaves' first. */
static void list_nodes(struct doubling *d, int level, int cluster, int n, int me)
{
	struct node way[32];
	int a = 0, z = n, depth = 0;

	for (; z - a > 1; depth++) {
		int mid = gci_middle(a, z);

		way[depth] = (struct node){level, cluster, a, z, depth};
		if (me < mid)
			z = mid;
		else
			a = mid;
	}
	while (depth-- > 0)
		d->nodes[d->n++] = way[depth];
}

static void list_all(struct doubling *d)
{
	const struct gci_topo *t = d->c->topo;
	int rank = d->b->rank, mine = t->cluster[rank];

	if (gci_order_is_flat(d->c)) {
		list_nodes(d, INSIDE, -1, t->nranks, rank);
		return;
	}
	list_nodes(d, INSIDE, mine, gci_topo_size(t, mine), t->index[rank]);
	list_nodes(d, BETWEEN, -1, t->nclusters, mine);
}

static int rank_at(const struct doubling *d, const struct node *x, int place)
{
	return x->cluster < 0 ? place : gci_topo_members(d->c->topo, x->cluster)[place];
}

/* Sends to the rank at `place` of the other half, or to those of that cluster whose source this
 * rank is: member i takes from member i modulo the size of the other cluster. */
static void tell(struct doubling *d, const struct node *x, int place, uint32_t tag)
{
	const struct gci_topo *t = d->c->topo;
	int i, size;

	if (x->level == INSIDE) {
		gci_send(d->b, rank_at(d, x, place), tag, d->at);
		return;
	}
	size = gci_topo_size(t, t->cluster[d->b->rank]);
	for (i = t->index[d->b->rank]; i < gci_topo_size(t, place); i += size)
		gci_send(d->b, gci_topo_members(t, place)[i], tag, d->at);
}

static int source(const struct doubling *d, const struct node *x, int place)
{
	return x->level == INSIDE ? rank_at(d, x, place)
				  : gci_leader(d->c->topo, place, d->b->rank);
}

/* One node: `result` is where its vector goes. */
static void trade(struct doubling *d, const struct node *x, struct gci_slice result)
{
	const struct gci_topo *t = d->c->topo;
	int me = x->level == BETWEEN ? t->cluster[d->b->rank]
		 : x->cluster < 0    ? d->b->rank
				     : t->index[d->b->rank];
	int mid = gci_middle(x->a, x->z), low = me < mid;
	int here = low ? x->a : mid, here_end = low ? mid : x->z;
	int there = low ? mid : x->a, there_end = low ? x->z : mid;
	int place = there + (me - here);
	uint32_t tag = gci_tag((uint32_t)x->level, (uint32_t)x->depth);

	if (place < there_end)
		tell(d, x, place, tag);
	for (; me == here_end - 1 && place + 1 < there_end; place++)
		tell(d, x, place + 1, tag);
	place = there + (me - here);
	if (place >= there_end)
		place = there_end - 1;
	gci_recv_reduce(d->b, source(d, x, place), tag, result, d->at, !low);
	d->at = result;
}

void gci_emit_allreduce_doubling(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_slice out = gci_vector(c, GCI_OUT), spare;
	struct doubling d = {.b = b, .c = c, .at = gci_vector(c, gci_input(c, b->rank))};
	int i;

	if (!c->count)
		return;
	list_all(&d);
	spare = gci_slice(GCI_TMP, d.n > 1 || c->in_place ? gci_tmp(b, c->count) : 0, c->count);
	/* What is being sent must stay, so vectors move to and fro, and end in OUT. */
	if (d.n % 2 && c->in_place) {
		gci_copy(b, spare, d.at);
		d.at = spare;
	}
	for (i = 0; i < d.n; i++)
		trade(&d, &d.nodes[i], (d.n - i) % 2 ? out : spare);
	gci_copy_some(b, out, d.at);
}
