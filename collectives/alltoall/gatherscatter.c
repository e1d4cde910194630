/* SPDX-License-Identifier: MIT
 * Alltoall as a gather to rank 0, of what every rank sends, and a scatter of what each is to have.
 * On the way down who holds all blocks for some ranks, source after source, has to pack a piece of
 * each source's for every child; so the tree is binary, and nobody copies more than 3 P pieces.
 * Cost: 2 log2 P L + 4 M P/B at most, M being what a rank sends, all of which meets at rank 0; with
 * segments it comes and goes at a time, and the cost nears M P/B. ATCC (Vadhiyar 2001), table 1. */
#include "collectives/alltoall/alltoall.h"
#include "collectives/blocks/phases.h"

enum { GATHER, SCATTER };

/* This rank leads ranks [rank, end): itself and those of two children. */
struct node {
	int parent, end;
	int child[3]; /* child k leads [child[k], child[k + 1]) */
};

static struct node node_of(int rank, int nranks)
{
	struct node n = {-1, nranks, {0}};
	int a = 0;

	for (;;) {
		n.child[0] = a + 1;
		n.child[1] = gci_middle(a + 1, n.end);
		n.child[2] = n.end;
		if (a == rank)
			return n;
		n.parent = a;
		if (rank < n.child[1]) {
			n.end = n.child[1];
			a++;
		} else {
			a = n.child[1];
		}
	}
}

/* Elements that `from` sends to ranks [a, z). */
static uint64_t span_len(const struct gci_coll *c, int from, int a, int z)
{
	uint64_t sum = 0;

	if (!c->counts)
		return c->count * (unsigned)(z - a);
	for (; a < z; a++)
		sum += gci_block_len(c, from, a);
	return sum;
}

/* All that ranks [a, z) send. */
static uint64_t rows_len(const struct gci_coll *c, int a, int z)
{
	uint64_t sum = 0;
	int n = c->topo->nranks;

	for (; a < z; a++)
		sum += span_len(c, a, 0, n);
	return sum;
}

/* What this rank sends, in one piece. If `at` is not NULL, there in TMP. */
static struct gci_slice own_row(struct gci_builder *b, const struct gci_coll *c, const uint64_t *at)
{
	struct gci_bundle u;
	int i;

	if (at)
		gci_bundle_at(&u, b, *at, rows_len(c, b->rank, b->rank + 1));
	else
		gci_bundle_start(&u, b, rows_len(c, b->rank, b->rank + 1));
	for (i = 0; i < b->nranks; i++)
		gci_bundle_add(&u, gci_in_block(c, b->rank, i));
	return gci_bundle_end(&u);
}

/* Collects the rows of the ranks below this one, and its own before them, for its parent. Rank 0
 * has all of them then, at the returned offset of TMP. */
static uint64_t gather(struct gci_builder *b, const struct gci_coll *c, const struct node *n)
{
	uint64_t base = 0, at, len = rows_len(c, b->rank, n->end);
	struct gci_slice rows;
	int k;

	if (n->end - b->rank == 1) {
		rows = own_row(b, c, NULL);
	} else {
		base = gci_tmp(b, len);
		rows = own_row(b, c, &base);
	}
	at = base + rows.length;
	for (k = 0; k < 2 && n->child[k] < n->end; k++) {
		uint64_t part = rows_len(c, n->child[k], n->child[k + 1]);

		if (n->child[k] < n->child[k + 1])
			gci_recv_some(
				b, n->child[k], gci_tag(GATHER, 0), gci_slice(GCI_TMP, at, part));
		at += part;
	}
	rows.length = len;
	if (n->parent >= 0)
		gci_send_some(b, n->parent, gci_tag(GATHER, 0), rows);
	return base;
}

/* The blocks for ranks [a, z), source after source, in TMP. */
struct held {
	uint64_t base;
	int a, z;
};

/* Those for ranks [from, to) in one piece. */
static struct gci_slice take(
	struct gci_builder *b, const struct gci_coll *c, const struct held *held, int from, int to)
{
	uint64_t len = 0, at = held->base;
	struct gci_bundle u;
	int s;

	for (s = 0; s < b->nranks; s++)
		len += span_len(c, s, from, to);
	gci_bundle_start(&u, b, len);
	for (s = 0; s < b->nranks; s++) {
		gci_bundle_add(&u, gci_slice(GCI_TMP, at + span_len(c, s, held->a, from),
					   span_len(c, s, from, to)));
		at += span_len(c, s, held->a, held->z);
	}
	return gci_bundle_end(&u);
}

static void place_own(struct gci_builder *b, const struct gci_coll *c, const struct held *held)
{
	uint64_t at = held->base;
	int s;

	for (s = 0; s < b->nranks; s++) {
		struct gci_slice out = gci_out_block(c, b->rank, s);

		gci_copy_some(b, out,
			gci_slice(GCI_TMP, at + span_len(c, s, held->a, b->rank), out.length));
		at += span_len(c, s, held->a, held->z);
	}
}

/* Gets what is for this rank and those after it. */
static struct held receive(struct gci_builder *b, const struct gci_coll *c, int from, int end)
{
	struct gci_group all = gci_group_all(c, b->rank, 0);
	struct held held = {0, b->rank, end};
	uint64_t len = 0;
	int i;

	for (i = b->rank; i < end; i++)
		len += gci_column_len(c, &all, i);
	held.base = gci_tmp(b, len);
	gci_recv_some(b, from, gci_tag(SCATTER, 0), gci_slice(GCI_TMP, held.base, len));
	return held;
}

static void receive_last(struct gci_builder *b, const struct gci_coll *c, int from)
{
	struct gci_group all = gci_group_all(c, b->rank, 0);
	struct gci_slice s = gci_column_slice(b, c, &all);

	gci_recv_some(b, from, gci_tag(SCATTER, 0), s);
	gci_column_place(b, c, &all, 0, all.n, s);
}

void gci_emit_alltoall_gather_scatter(struct gci_builder *b, const struct gci_coll *c)
{
	struct node n = node_of(b->rank, b->nranks);
	struct held held = {0, b->rank, n.end};
	int k;

	if (b->nranks == 1) {
		gci_copy_some(b, gci_out_block(c, 0, 0), gci_in_block(c, 0, 0));
		return;
	}
	held.base = gather(b, c, &n);
	if (n.end - b->rank == 1) {
		receive_last(b, c, n.parent);
		return;
	}
	if (n.parent >= 0)
		held = receive(b, c, n.parent, n.end);
	for (k = 2; k-- > 0;)
		if (n.child[k] < n.child[k + 1])
			gci_send_some(b, n.child[k], gci_tag(SCATTER, 0),
				take(b, c, &held, n.child[k], n.child[k + 1]));
	place_own(b, c, &held);
}
