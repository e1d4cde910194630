/* SPDX-License-Identifier: MIT
 * Recursive halving, for any number of ranks: in each round the ranks of one half give their
 * counterparts in the other what that half is going to own, and go on with their own half. The last
 * rank of a half that is larger by one gives its share to the other's first rank and is given none.
 * For commutative operations.
 * Cost: ceil(log2 P) L + (P-1) m/B, blocks of m; where P is no power of two, up to twice that for
 * ranks that stand in for others. Rabenseifner (1997), of Matsuda 2006, 2.3. */
#include "base/mem.h"
#include "collectives/blocks/reduction.h"
#include "collectives/blocks/route.h"
#include "collectives/models/cost.h"
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

/* ---- The product's reduce-scatter: the product's allgather (collectives/blocks/route.h) walked
 * backwards. In each other cluster a block's sum is made along the ring up to where it would have
 * entered, goes over the WAN once to its gateway, and joins the sum that goes round its own
 * cluster's ring.
 *
 * Cost, M being all blocks: (P-1)/P M/B + L + (h-1) m/B for segments of m. Bound (DESIGN.md):
 * (P-1)/P M/B; L can only be hidden behind the local rings where gateways are not the bottleneck.
 * For commutative operations. */

enum { LOCAL, WAN, REMOTE };

#define LATEST 8

struct walk {
	struct gci_builder *b;
	const struct gci_coll *c;
	struct gci_route_segments cut;
	int mine, index, n; /* this rank's cluster, its place there, members */
	const int *members;
	struct gci_slice *sums; /* [place]: of this cluster's blocks */
	int fills;              /* what comes over some WAN fills the NIC */
	/* The local ring waits for this step, one of the last that came for other clusters or
	 * from them: sums that have far to go come first. */
	uint32_t gate;
	int has_gate;
	uint32_t latest[LATEST]; /* the last such steps, round */
	uint32_t nlatest;
};

static int next_in_ring(const struct walk *w)
{
	return w->members[(w->index + 1) % w->n];
}

static int previous_in_ring(const struct walk *w)
{
	return w->members[(w->index + w->n - 1) % w->n];
}

/* Where the sums of a block are made: the result at its owner, else TMP. `sums`: there are any. */
static struct gci_slice place_of_sums(const struct walk *w, int rank, int sums)
{
	uint64_t length = gci_block_len(w->c, rank, rank);

	if (rank == w->b->rank)
		return gci_out_block(w->c, rank, rank);
	return gci_slice(GCI_TMP, sums ? gci_tmp(w->b, length) : 0, length);
}

/* A block of another cluster: from the member before the entry, round the ring, to the entry. */
static void remote_block(struct walk *w, const struct gci_route *r, int index)
{
	int rank = gci_topo_members(r->topo, r->from)[index];
	struct gci_slice in = gci_in_block(w->c, w->b->rank, rank);
	struct gci_slice acc = place_of_sums(w, rank, w->n > 1);
	uint64_t q;

	for (q = 0; q < gci_route_count(&w->cut, in.length); q++) {
		int entry = gci_route_entry(r, index, q);
		struct gci_slice own = gci_route_slice(&w->cut, in, q), sum = own;
		uint32_t number = gci_route_number(&w->cut, rank, q);

		if ((w->index + 1) % w->n != entry) {
			sum = gci_route_slice(&w->cut, acc, q);
			w->latest[w->nlatest++ % LATEST] = gci_recv_reduce(
				w->b, next_in_ring(w), gci_tag(REMOTE, number), sum, own, 0);
		}
		if (w->index == entry)
			gci_send(w->b, gci_route_gateway(r, index, q), gci_tag(WAN, number), sum);
		else
			gci_send(w->b, previous_in_ring(w), gci_tag(REMOTE, number), sum);
	}
}

static void remote_blocks(struct walk *w, int other)
{
	struct gci_route r = gci_route_backwards(w->c, other, w->mine);
	int index;

	for (index = 0; index < gci_topo_size(w->c->topo, other); index++)
		remote_block(w, &r, index);
}

/* True if this rank takes in segment q of the sums that cluster `from` made for this cluster's
 * member `index`. */
static int takes_in(const struct walk *w, int from, int index, uint64_t q)
{
	struct gci_route r = gci_route_backwards(w->c, w->mine, from);

	return gci_route_gateway(&r, index, q) == w->b->rank;
}

/* Where the sum of a local segment stands once the clusters at distances [k, nclusters) are in. */
static struct gci_slice sum_so_far(const struct walk *w, int k, int index, uint64_t q)
{
	int nclusters = w->c->topo->nclusters;
	struct gci_slice in = gci_in_block(w->c, w->b->rank, w->members[index]);

	for (; k < nclusters; k++)
		if (takes_in(w, (w->mine + k) % nclusters, index, q))
			return gci_route_slice(&w->cut, w->sums[index], q);
	return gci_route_slice(&w->cut, in, q);
}

/* Adds what comes from `peer` to `sum`, in `to`. Where other clusters' come before it, it has a
 * place of its own to come to, so that it is asked for at once and not when those are in. */
static uint32_t add(
	struct walk *w, int peer, uint32_t tag, struct gci_slice to, struct gci_slice sum)
{
	struct gci_slice place;
	uint32_t step;

	if (sum.buffer != to.buffer || sum.offset != to.offset)
		return gci_recv_reduce(w->b, peer, tag, to, sum, 0);
	place = gci_slice(GCI_TMP, gci_tmp(w->b, to.length), to.length);
	step = gci_recv(w->b, peer, tag, place);
	gci_reduce(w->b, to, place, 0);
	return step;
}

/* Takes in what the cluster at distance k has made for this cluster, where this rank is the
 * gateway. */
static void take_in(struct walk *w, int k)
{
	int from = (w->mine + k) % w->c->topo->nclusters, index;
	struct gci_route r = gci_route_backwards(w->c, w->mine, from);
	uint64_t q;

	w->fills |= gci_wan_fills_nic(w->c->topo, from, w->mine, r.gateways);
	for (index = 0; index < w->n; index++)
		for (q = 0; q < gci_route_count(&w->cut, w->sums[index].length); q++) {
			struct gci_slice to = gci_route_slice(&w->cut, w->sums[index], q);
			uint32_t number = gci_route_number(&w->cut, w->members[index], q);

			if (gci_route_gateway(&r, index, q) != w->b->rank)
				continue;
			w->latest[w->nlatest++ % LATEST] = add(w,
				gci_topo_members(r.topo, from)[gci_route_entry(&r, index, q)],
				gci_tag(WAN, number), to, sum_so_far(w, k + 1, index, q));
		}
}

/* A block of this cluster: from its owner's predecessor round to the owner. */
static void local_block(struct walk *w, int index)
{
	int rank = w->members[index], first = (w->index + 1) % w->n == index;
	uint64_t q;

	for (q = 0; q < gci_route_count(&w->cut, w->sums[index].length); q++) {
		uint32_t tag = gci_tag(LOCAL, gci_route_number(&w->cut, rank, q));
		struct gci_slice to = gci_route_slice(&w->cut, w->sums[index], q);
		struct gci_slice sum = sum_so_far(w, 1, index, q);

		if (!first) {
			gci_recv_reduce(w->b, next_in_ring(w), tag, to, sum, 0);
			sum = to;
			if (w->has_gate)
				gci_after(w->b, w->gate);
		}
		if (index != w->index)
			gci_send(w->b, previous_in_ring(w), tag, sum);
	}
}

static void local_ring(struct walk *w)
{
	const struct gci_topo *t = w->c->topo;
	int k;

	for (k = 0; k < w->n; k++)
		w->sums[k] = place_of_sums(w, w->members[k], w->n > 1 || t->nclusters > 1);
	for (k = t->nclusters - 1; k > 0; k--)
		take_in(w, k);
	w->has_gate = w->fills && w->nlatest;
	w->gate = w->latest[w->nlatest < LATEST ? 0 : w->nlatest % LATEST];
	for (k = w->n - 1; k >= 0; k--)
		local_block(w, (w->index - k + w->n) % w->n);
}

static void gci_emit_reduce_scatter_rings(struct gci_builder *b, const struct gci_coll *c)
{
	const struct gci_topo *t = c->topo;
	struct walk w = {.b = b,
		.c = c,
		.cut = gci_route_segments(c),
		.mine = t->cluster[b->rank],
		.index = t->index[b->rank]};
	int k;

	w.n = gci_topo_size(t, w.mine);
	w.members = gci_topo_members(t, w.mine);
	w.sums = gci_calloc((size_t)w.n, sizeof(*w.sums));
	if (!w.sums)
		b->failed = 1;
	if (b->nranks == 1)
		gci_copy_some(
			b, gci_out_block(c, b->rank, b->rank), gci_in_block(c, b->rank, b->rank));
	for (k = t->nclusters - 1; k > 0 && w.sums; k--)
		remote_blocks(&w, (w.mine + k) % t->nclusters);
	if (b->nranks > 1 && w.sums)
		local_ring(&w);
	gci_free(w.sums);
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

/* ---- The product's reduce-scatter: rings for long blocks, trees by clusters for short ones and
 * where the order of reduction is fixed. */

static void gci_emit_reduce_scatter_gridcoll(struct gci_builder *b, const struct gci_coll *c)
{
	uint64_t nbytes = gci_total(c) * c->esize;

	if (c->order == GCI_ANY_ORDER &&
		gci_cost_rings(c, nbytes) < gci_cost_coordinators(c, nbytes))
		gci_emit_reduce_scatter_rings(b, c);
	else
		gci_emit_reduce_scatter_clusters(b, c);
}

/* ---- the algorithms */

const struct gci_algorithm gci_reduce_scatters[] = {
	{GCI_REDUCE_SCATTER, "gridcoll", "rings, or the tree of clusters, by a cost formula",
		GCI_USES_SENDERS | GCI_USES_SEGMENT | GCI_CAPS_SENDERS | GCI_KEEPS_CLUSTER_ORDER, 0,
		gci_emit_reduce_scatter_gridcoll, gci_estimate_rings_or_coordinators},
	{GCI_REDUCE_SCATTER, "packed", "packing of trees: blocks up several trees of clusters each",
		GCI_PACKS, 0, gci_emit_packed, gci_estimate_packed},
	{GCI_REDUCE_SCATTER, "ring", "parts travel round a ring of all ranks", 0, 0,
		gci_emit_reduce_scatter_ring, gci_estimate_ring},
	{GCI_REDUCE_SCATTER, "rings", "round the ring of each cluster, over each WAN link once",
		GCI_USES_SENDERS | GCI_USES_SEGMENT | GCI_CAPS_SENDERS, 0,
		gci_emit_reduce_scatter_rings, gci_estimate_rings},
	{GCI_REDUCE_SCATTER, "clusters", "up the tree of a fixed order, across by n senders",
		GCI_USES_SENDERS | GCI_CAPS_SENDERS | GCI_KEEPS_CLUSTER_ORDER, 0,
		gci_emit_reduce_scatter_clusters, gci_estimate_coordinators},
	{GCI_REDUCE_SCATTER, "ordered", "each block up the tree of a fixed order",
		GCI_KEEPS_RANK_ORDER, 0, gci_emit_reduce_scatter_ordered, gci_estimate_rounds},
	{GCI_REDUCE_SCATTER, "halving", "recursive halving over all ranks", 0, 0,
		gci_emit_reduce_scatter_halving, gci_estimate_rounds},
	{GCI_REDUCE_SCATTER, NULL, NULL, 0, 0, NULL, NULL},
};
