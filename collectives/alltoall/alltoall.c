/* SPDX-License-Identifier: MIT
 * Circular alltoall: in round i rank r sends to r+i and receives from r-i, so that no two ranks
 * send to one at a time. Cost: (P-1) (L + m/B), blocks of m. ATCC (Vadhiyar 2001), table 1. */
#include "collectives/alltoall/alltoall.h"

#include "base/clock.h"
#include "base/mem.h"
#include "collectives/blocks/layout.h"
#include "collectives/blocks/phases.h"
#include "collectives/planner/packed.h"
#include "collectives/tuner/formulas.h"

#include <string.h>

static void gci_emit_alltoall_circular(struct gci_builder *b, const struct gci_coll *c)
{
	int i, n = b->nranks;

	gci_copy_some(b, gci_out_block(c, b->rank, b->rank), gci_in_block(c, b->rank, b->rank));
	for (i = 1; i < n; i++) {
		int to = (b->rank + i) % n, from = (b->rank - i + n) % n;

		gci_round(b);
		gci_send_some(b, to, gci_tag(0, 0), gci_in_block(c, b->rank, to));
		gci_recv_some(b, from, gci_tag(0, 0), gci_out_block(c, b->rank, from));
	}
}

/* ---- Alltoall with all pairs of ranks at once, each at its part of the time that the whole takes:
 * then no NIC and no link is offered more than it carries, no queue builds up, and no receiver has
 * to ask for one block after the other. Needs connections that are paced (flow/pacing.h).
 *
 * Cost, M being one rank's blocks: (P-1)/P M/B + 2 L, for blocks wait for their receiver's word. On
 * any network whose pairs have one way each, the busiest NIC or link is busy throughout. */

/* Acknowledgements of what comes the other way: one of 66 bytes for two packets of 1514, at most. */
#define SPARE_PERCENT 3

static void gci_emit_alltoall_even(struct gci_builder *b, const struct gci_coll *c)
{
	int i, n = b->nranks;

	gci_copy_some(b, gci_out_block(c, b->rank, b->rank), gci_in_block(c, b->rank, b->rank));
	for (i = 1; i < n; i++) {
		int to = (b->rank + i) % n, from = (b->rank - i + n) % n;

		gci_recv_some(b, from, gci_tag(0, 0), gci_out_block(c, b->rank, from));
		gci_send_some(b, to, gci_tag(0, 0), gci_in_block(c, b->rank, to));
	}
}

int gci_alltoall_is_even(const struct gci_algorithm *a)
{
	return a->emit == gci_emit_alltoall_even;
}

/* Blocks that leave a rank, or come to it, in bytes. */
static uint64_t load_of_rank(const struct gci_coll *c, int rank, int out)
{
	int i, n = c->topo->nranks;
	uint64_t sum = 0;

	if (!c->counts)
		return (uint64_t)(n - 1) * c->count * c->esize;
	for (i = 0; i < n; i++)
		if (i != rank)
			sum += gci_block_len(c, out ? rank : i, out ? i : rank);
	return sum * c->esize;
}

static uint64_t load_of_link(const struct gci_coll *c, int from, int to)
{
	const struct gci_topo *t = c->topo;
	const int *f = gci_topo_members(t, from), *g = gci_topo_members(t, to);
	int i, k, nf = gci_topo_size(t, from), ng = gci_topo_size(t, to);
	uint64_t sum = 0;

	if (!c->counts)
		return (uint64_t)nf * (uint64_t)ng * c->count * c->esize;
	for (i = 0; i < nf; i++)
		for (k = 0; k < ng; k++)
			sum += gci_block_len(c, f[i], g[k]);
	return sum * c->esize;
}

static double max(double a, double b)
{
	return a > b ? a : b;
}

/* The longest that any wire is busy with all paths that pass it; less than 0: out of memory. */
static double longest_wire_s(const struct gci_coll *c)
{
	const struct gci_topo *t = c->topo;
	uint64_t *load = gci_calloc((size_t)t->nwires, sizeof(*load)), nbytes;
	int n = t->nclusters, i, k, nroute;
	double longest = load ? 0 : -1;
	const int *route;

	for (i = 0; load && i < n * n; i++) {
		nroute = gci_topo_route(t, i / n, i % n, &route);
		nbytes = nroute ? load_of_link(c, i / n, i % n) : 0;
		for (k = 0; k < nroute; k++)
			load[route[k]] += nbytes;
	}
	for (i = 0; load && i < t->nwires; i++)
		if (t->wires[i].rate_bps)
			longest = max(longest, (double)load[i] * 8 / (double)t->wires[i].rate_bps);
	gci_free(load);
	return longest;
}

/* How long the busiest NIC or wire takes, in seconds; 0: the NICs' rates are not known (or no memory is
 * left to find out). */
static double whole_s(const struct gci_coll *c)
{
	const struct gci_topo *t = c->topo;
	double longest = 0, wires;
	int r;

	for (r = 0; r < t->nranks; r++) {
		uint64_t bps = t->rank_nic_bps[r];

		if (!bps)
			return 0;
		longest = max(longest, (double)load_of_rank(c, r, 0) * 8 / (double)bps);
		longest = max(longest, (double)load_of_rank(c, r, 1) * 8 / (double)bps);
	}
	wires = longest_wire_s(c);
	longest = wires < 0 ? 0 : max(longest, wires);
	return longest;
}

int gci_alltoall_even_bps(const struct gci_coll *c, int rank, uint64_t *bps)
{
	double s = whole_s(c);
	int i, n = c->topo->nranks;

	memset(bps, 0, (size_t)n * sizeof(*bps));
	if (s <= 0)
		return 0;
	for (i = 0; i < n; i++) {
		uint64_t nbytes = i == rank ? 0 : gci_block_len(c, rank, i) * c->esize;

		if (nbytes)
			bps[i] = (uint64_t)((double)nbytes * 8 / s / 100 * (100 - SPARE_PERCENT)) +
				 1;
	}
	return 1;
}

/* ---- Bruck's alltoall (Bruck et al. 1997): a block at distance i from its destination travels by
 * the powers of two that i is made of; all blocks that take a step of 2^k do so in one message.
 * Cost: ceil(log2 P) L + ceil(log2 P) M/2B, M being what a rank sends: few messages for more data.
 * For short blocks.
 *
 * Slot i of rank r has a block that comes from rank r + (what of i it has travelled) and has the
 * rest of i to go downwards, so that blocks arrive in the order in which they stand in OUT. */

/* Elements of the block in slot i of `rank` when it has travelled `done`, some bits of i. */
static uint64_t slot_len(const struct gci_coll *c, int rank, int i, int done)
{
	int n = c->topo->nranks, from;

	if (!c->counts)
		return c->count;
	from = (int)(((int64_t)rank + done) % n);
	return gci_block_len(c, from, (from - i + n) % n);
}

/* All slots that move by `bit` after having travelled their bits of `mask`. */
static uint64_t slots_len(const struct gci_coll *c, int rank, int bit, int mask)
{
	uint64_t sum = 0;
	int i;

	for (i = bit; i < c->topo->nranks; i++)
		if (i & bit)
			sum += slot_len(c, rank, i, i & mask);
	return sum;
}

/* at[i]: where slot i stands in TMP, once it has travelled. */
static struct gci_slice pack(
	struct gci_builder *b, const struct gci_coll *c, int bit, const uint64_t *at)
{
	int i, n = b->nranks;
	struct gci_bundle u;

	gci_bundle_start(&u, b, slots_len(c, b->rank, bit, bit - 1));
	for (i = bit; i < n; i++) {
		int done = i & (bit - 1);

		if (!(i & bit))
			continue;
		gci_bundle_add(&u, done ? gci_slice(GCI_TMP, at[i], slot_len(c, b->rank, i, done))
					: gci_in_block(c, b->rank, (b->rank - i + n) % n));
	}
	return gci_bundle_end(&u);
}

/* Where the slots of a message that moved by `bit` now stand. */
static void unpack(const struct gci_builder *b, const struct gci_coll *c, int bit,
	struct gci_slice message, uint64_t *at)
{
	uint64_t offset = message.offset;
	int i;

	for (i = bit; i < b->nranks; i++) {
		if (!(i & bit))
			continue;
		at[i] = offset;
		offset += slot_len(c, b->rank, i, i & (2 * bit - 1));
	}
}

/* Slots of which `bit` is the highest have come home; they stand one after the other. */
static void place(struct gci_builder *b, const struct gci_coll *c, int bit, const uint64_t *at)
{
	struct gci_group g = gci_group_all(c, b->rank, b->rank);

	gci_column_place(
		b, c, &g, bit, g.n < 2 * bit ? g.n : 2 * bit, gci_slice(GCI_TMP, at[bit], 0));
}

static void gci_emit_alltoall_bruck(struct gci_builder *b, const struct gci_coll *c)
{
	int bit, n = b->nranks;
	uint64_t *at = gci_calloc((size_t)n, sizeof(*at));
	uint32_t round = 0;

	if (!at) {
		b->failed = 1;
		return;
	}
	gci_copy_some(b, gci_out_block(c, b->rank, b->rank), gci_in_block(c, b->rank, b->rank));
	for (bit = 1; bit < n; bit *= 2, round++) {
		uint64_t len = slots_len(c, b->rank, bit, 2 * bit - 1);
		struct gci_slice in;

		gci_round(b);
		gci_send_some(b, (b->rank - bit + n) % n, gci_tag(0, round), pack(b, c, bit, at));
		in = gci_slice(GCI_TMP, gci_tmp(b, len), len);
		gci_recv_some(b, (b->rank + bit) % n, gci_tag(0, round), in);
		unpack(b, c, bit, in, at);
		place(b, c, bit, at);
	}
	gci_free(at);
}

/* ---- Alltoall as a gather to rank 0, of what every rank sends, and a scatter of what each is to
 * have. On the way down who holds all blocks for some ranks, source after source, has to pack a
 * piece of each source's for every child; so the tree is binary, and nobody copies more than 3 P
 * pieces.
 * Cost: 2 log2 P L + 4 M P/B at most, M being what a rank sends, all of which meets at rank 0; with
 * segments it comes and goes at a time, and the cost nears M P/B. ATCC (Vadhiyar 2001), table 1. */

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

static void gci_emit_alltoall_gather_scatter(struct gci_builder *b, const struct gci_coll *c)
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

/* ---- the algorithms */

/* All that all ranks send meets at rank 0, who cuts it into 3 P pieces. */
#define GATHER_SCATTER_RANKS 4096

const struct gci_algorithm gci_alltoalls[] = {
	{GCI_ALLTOALL, "packed", "packing of paths: blocks over the links that have time for them",
		GCI_PACKS, 1024, gci_emit_packed, gci_estimate_packed},
	{GCI_ALLTOALL, "even", "all pairs at once, each at its part of the time", 0, 0,
		gci_emit_alltoall_even, gci_estimate_each_to_each},
	{GCI_ALLTOALL, "circular", "a block with each rank in turn, at rising distance", 0, 0,
		gci_emit_alltoall_circular, gci_estimate_each_to_each},
	{GCI_ALLTOALL, "gather-scatter", "gather to rank 0, scatter from it, along a binary tree",
		GCI_USES_SEGMENT | GCI_BY_SEGMENT, GATHER_SCATTER_RANKS,
		gci_emit_alltoall_gather_scatter, gci_estimate_gather_and_scatter},
	{GCI_ALLTOALL, "bruck", "blocks travel by powers of two, in few messages", 0, 0,
		gci_emit_alltoall_bruck, gci_estimate_bruck},
	{GCI_ALLTOALL, "clusters", "one message per pair of clusters and sender",
		GCI_USES_SENDERS | GCI_USES_SEGMENT | GCI_BY_SEGMENT | GCI_CAPS_SENDERS, 0,
		gci_emit_alltoall_clusters, gci_estimate_columns},
	{GCI_ALLTOALL, NULL, NULL, 0, 0, NULL, NULL},
};
