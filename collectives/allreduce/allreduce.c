/* SPDX-License-Identifier: MIT
 * Recursive doubling along the canonical tree (collectives/blocks/order.h), for any number of
 * ranks: at each node every rank of one half trades whole vectors with its counterpart in the
 * other, and both combine them alike. Inside clusters first, then between them, unless the order is
 * one of ranks. Where a half has more ranks than the other, the last of the smaller one tells all
 * that are left. Cost: ceil(log2 P) (L + M/B), of which ceil(log2 C) over the WAN. For short
 * messages. */
#include "collectives/blocks/bridge.h"
#include "collectives/blocks/phases.h"
#include "collectives/blocks/reduction.h"
#include "collectives/blocks/shares.h"
#include "collectives/planner/packed.h"
#include "collectives/tuner/formulas.h"

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

static void gci_emit_allreduce_doubling(struct gci_builder *b, const struct gci_coll *c)
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

/* ---- Ring allreduce: part r of the vector sets out from rank r+1, gathers every rank's operand on
 * its way round to r, and goes round once more. For commutative operations.
 * Cost: 2 (P-1) (L + M/PB), the bound of its bandwidth (DESIGN.md: 2 (P-1)/P M/B) but for
 * latencies, as long as no part waits for the WAN. */

enum { RING_REDUCE_SCATTER, RING_ALLGATHER };

static void gci_emit_allreduce_ring(struct gci_builder *b, const struct gci_coll *c)
{
	int n = b->nranks, right = (b->rank + 1) % n, left = (b->rank - 1 + n) % n, i;
	enum gci_buffer input = gci_input(c, b->rank);
	struct gci_parts p = gci_parts_of(c, n);

	if (n == 1)
		gci_copy_some(b, gci_vector(c, GCI_OUT), gci_vector(c, input));
	for (i = 1; i < n; i++) {
		int give = (b->rank - i + n) % n, take = (give - 1 + n) % n;
		struct gci_slice dst = gci_parts_slice(&p, GCI_OUT, take, take + 1);

		gci_send_some(b, right, gci_tag(RING_REDUCE_SCATTER, (uint32_t)give),
			gci_parts_slice(&p, i > 1 ? GCI_OUT : input, give, give + 1));
		if (dst.length)
			gci_recv_reduce(b, left, gci_tag(RING_REDUCE_SCATTER, (uint32_t)take), dst,
				gci_parts_slice(&p, input, take, take + 1), 1);
	}
	for (i = 1; i < n; i++) {
		int give = (b->rank - i + 1 + n) % n, take = (give - 1 + n) % n;

		gci_send_some(b, right, gci_tag(RING_ALLGATHER, (uint32_t)give),
			gci_parts_slice(&p, GCI_OUT, give, give + 1));
		gci_recv_some(b, left, gci_tag(RING_ALLGATHER, (uint32_t)take),
			gci_parts_slice(&p, GCI_OUT, take, take + 1));
	}
}

/* ---- Allreduce after Rabenseifner (1997), and the two-tier algorithm that uses its first half in
 * each cluster (Matsuda 2006, 3.2). For commutative operations. Every element is reduced in one
 * place per cluster, in the order of clusters, so all ranks end with the same bits.
 *
 * Cost, M/B and L as in Matsuda 2006, table 1:
 * 	rabenseifner	2 (P-1)/P M/B, with the WAN crossed as if it were none
 * 	two-tier	L + M/B + 2 M/B + 2 M/B */

enum { REDUCE_SCATTER, COUNTER, GATHER, SCATTER, ALLGATHER };

static enum gci_buffer input(const struct gci_coll *c)
{
	return c->in_place ? GCI_OUT : GCI_IN;
}

/* One rank alone. */
static void copy_input(struct gci_builder *b, const struct gci_coll *c)
{
	if (!c->in_place && c->count)
		gci_copy(b, gci_slice(GCI_OUT, 0, c->count), gci_slice(GCI_IN, 0, c->count));
}

static void gci_emit_allreduce_rabenseifner(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_group g = gci_group_all(c, b->rank, 0);
	struct gci_parts p = gci_parts_of(c, g.n);

	if (g.n == 1) {
		copy_input(b, c);
		return;
	}
	gci_reduce_scatter(b, &g, &p, input(c), GCI_OUT, 0, REDUCE_SCATTER);
	gci_allgather(b, &g, &p, GCI_NBUFFERS, ALLGATHER);
}

/* The coordinators send each other their clusters' whole vectors, from TMP, and add them up in OUT
 * in the order of clusters. */
static void exchange_whole(struct gci_builder *b, const struct gci_coll *c, int mine)
{
	const struct gci_topo *t = c->topo;
	struct gci_slice out = gci_slice(GCI_OUT, 0, c->count);
	struct gci_slice own = gci_slice(GCI_TMP, 0, c->count);
	uint32_t tag = gci_tag(COUNTER, 0);
	int other;

	b->tmp_len = c->count;
	gci_round(b);
	gci_copy(b, own, out);
	for (other = 0; other < t->nclusters; other++)
		if (other != mine)
			gci_send(b, *gci_topo_members(t, other), tag, own);
	for (other = 0; other < t->nclusters; other++) {
		int peer = *gci_topo_members(t, other);

		if (other == mine && other)
			gci_reduce(b, out, own, 0);
		else if (other != mine && !other)
			gci_recv(b, peer, tag, out);
		else if (other != mine)
			gci_recv_reduce(b, peer, tag, out, out, 0);
	}
}

static void gci_emit_allreduce_two_tier(struct gci_builder *b, const struct gci_coll *c)
{
	const struct gci_topo *t = c->topo;
	int mine = t->cluster[b->rank];
	struct gci_group g = gci_group_cluster(c, mine, b->rank, 0);
	struct gci_parts p = gci_parts_of(c, g.n);

	if (!c->count)
		return;
	/* Reduction: Rabenseifner's, with a gather as its second stage (Matsuda 2006, 3.2). */
	if (g.n == 1)
		copy_input(b, c);
	else
		gci_reduce_scatter(b, &g, &p, input(c), GCI_OUT, 0, REDUCE_SCATTER);
	gci_gather(b, &g, &p, GATHER);
	if (g.me == 0 && t->nclusters > 1)
		exchange_whole(b, c, mine);
	gci_scatter(b, &g, &p, GCI_OUT, SCATTER);
	gci_allgather(b, &g, &p, GCI_OUT, ALLGATHER);
}

/* ---- The modified Rabenseifner allreduce: reduce-scatter in each cluster, an exchange of the
 * parts between all clusters by n senders for each pair and direction (all to all, Matsuda 2006,
 * 2.5), allgather in each cluster. For commutative operations. Every element is reduced once per
 * cluster, in the order of clusters, so all ranks end with the same bits.
 *
 * Cost, M/B and L as in Matsuda 2006, table 1, h ranks per cluster: L + M/nB + 2 (h-1)/h M/B. How
 * the n senders come about:
 * 	-mod		any n; the other nodes forward their parts to them, (h-n)/hn M/B, which
 * 			overlaps with what they send (2.3)
 * 	-mod-merge	n = 2^i: extra merges leave as many different parts, extra splits undo them
 * 			in the other cluster, (h-n)/hn M/B each (2.4)
 * Of two clusters that differ by more than two times, the larger one merges and splits in either
 * (2.5). With more clusters M/nB counts C-1 times: each begins with the next one, so that their
 * parts do not all come to one cluster first. */

enum { MOD_REDUCE_SCATTER, MERGE, MOD_FORWARD, MOD_COUNTER, SPLIT, MOD_ALLGATHER };

struct state {
	struct gci_builder *b;
	const struct gci_coll *c;
	enum gci_bridge_how how;
	int mine;              /* this rank's cluster */
	struct gci_bank bank;  /* and its members */
	struct gci_stage part; /* the cluster's result for this rank's part, and what it merged */
	struct gci_slice *got; /* [cluster]: its result for this rank's part */
};

static void bridge_to(const struct state *x, struct gci_bridge *bridge, int to)
{
	gci_bridge_make(bridge, x->c, x->b->rank, x->mine, to, x->how, 1);
}

static void bridge_from(const struct state *x, struct gci_bridge *bridge, int from)
{
	gci_bridge_make(bridge, x->c, x->b->rank, from, x->mine, x->how, 1);
}

/* The cluster `turn` numbers on. */
static int after(const struct state *x, int turn)
{
	return (x->mine + turn) % x->c->topo->nclusters;
}

/* How far the parts must be merged for the bridge that begins at the least depth. */
static int least_depth(const struct state *x)
{
	struct gci_bridge bridge;
	int i, depth = GCI_WHOLE_DEPTH;

	for (i = 1; i < x->c->topo->nclusters; i++) {
		bridge_to(x, &bridge, after(x, i));
		if (bridge.from.depth < depth)
			depth = bridge.from.depth;
	}
	return depth;
}

/* The cluster's result for this rank's part, in TMP, where there is room to merge. */
static void reduce_in_cluster(struct state *x, int depth)
{
	const struct gci_coll *c = x->c;
	const struct gci_group *g = &x->bank.g;
	enum gci_buffer in = gci_input(c, x->b->rank);
	struct gci_slice room = gci_reduce_scatter_range(g, &x->bank.p);

	x->part = (struct gci_stage){g, &x->bank.p, in, 0, GCI_NBUFFERS};
	if (g->n == 1 && !c->in_place)
		return;
	if (!depth || g->n == 1)
		room = gci_slice(GCI_TMP, 0, c->count);
	x->part.buffer = GCI_TMP;
	x->part.base = room.offset - gci_tmp(x->b, room.length);
	if (g->n > 1)
		gci_reduce_scatter(
			x->b, g, &x->bank.p, in, GCI_TMP, x->part.base, MOD_REDUCE_SCATTER);
	else /* What we send must stay as it is while results come in. */
		gci_copy_some(x->b, gci_vector(c, GCI_TMP), gci_vector(c, GCI_OUT));
	gci_merge(x->b, &x->part, MERGE, GCI_WHOLE_DEPTH, depth);
}

/* Forwards come in rounds. What was forwarded is sent as it comes, a sender's own part after the last
 * of it: that goes to a counterpart to whom others forward as long, and the two would meet at its
 * NIC. */
static void send_all(struct state *x)
{
	uint64_t forwarded[GCI_GRID_MAX_CLUSTERS];
	struct gci_bridge bridge;
	int i, n = x->c->topo->nclusters;

	for (i = 1; i < n; i++) {
		bridge_to(x, &bridge, after(x, i));
		forwarded[i] = gci_bridge_forward(x->b, &bridge, &x->part, MOD_FORWARD);
	}
	gci_round(x->b);
	for (i = 1; i < n; i++) {
		bridge_to(x, &bridge, after(x, i));
		gci_bridge_send_own(x->b, &bridge, &x->part, MOD_COUNTER);
	}
	gci_no_rounds(x->b);
	for (i = 1; i < n; i++) {
		bridge_to(x, &bridge, after(x, i));
		gci_bridge_send_forwarded(x->b, &bridge, &x->part, forwarded[i], MOD_COUNTER);
	}
}

/* Takes cluster `from`'s result for this rank's part to TMP, by way of the first member of a range
 * where those are not single members. */
static void receive(struct state *x, int from)
{
	int me = x->bank.g.me;
	struct gci_halving rounds[32];
	int i, n = gci_halvings(x->bank.g.n, me, rounds);
	struct gci_slice room;
	struct gci_bridge bridge;
	struct gci_stage s = {&bridge.to.g, &bridge.to.p, GCI_TMP, 0, GCI_NBUFFERS};
	int end = me + 1;

	bridge_from(x, &bridge, from);
	/* What comes through this member: from where it is the first of a range on. */
	for (i = n; i-- > bridge.to.depth && rounds[i].a == me;)
		end = rounds[i].z;
	room = gci_parts_slice(&bridge.to.p, GCI_TMP, me, end);
	s.base = room.offset - gci_tmp(x->b, room.length);
	gci_no_rounds(x->b);
	gci_bridge_recv(x->b, &bridge, &s, MOD_COUNTER);
	gci_split(x->b, &s, gci_tag(SPLIT, (uint32_t)from), bridge.to.depth, GCI_WHOLE_DEPTH);
	x->got[from] = gci_stage_slice(&s, me, me + 1);
}

/* The result of clusters 0 and 1 in OUT, at a member of one of them: as it comes in, where it does
 * not come by way of others. False if it does. */
static int receive_reduce(struct state *x, int from)
{
	struct gci_bridge bridge;
	struct gci_slice what;
	uint32_t tag;
	int i = 0, peer;

	bridge_from(x, &bridge, from);
	if (bridge.to.depth != GCI_WHOLE_DEPTH)
		return 0;
	while (gci_bridge_next(&bridge, &i, &peer, &tag, &what)) {
		struct gci_slice own =
			gci_slice(x->part.buffer, what.offset - x->part.base, what.length);

		gci_recv_reduce(x->b, peer, gci_tag(MOD_COUNTER, tag), what, own, from < x->mine);
	}
	return 1;
}

/* OUT = result of all clusters for this rank's part, in the order of clusters. */
static void counter_reduce(struct state *x)
{
	int me = x->bank.g.me, i, n = x->c->topo->nclusters, next = 0;
	struct gci_slice out = gci_parts_slice(&x->bank.p, GCI_OUT, me, me + 1);

	x->got[x->mine] = gci_stage_slice(&x->part, me, me + 1);
	if (x->mine < 2 && receive_reduce(x, 1 - x->mine))
		next = 2;
	for (i = 1; i < n; i++) {
		int from = after(x, n - i);

		if (from >= next)
			receive(x, from);
	}
	if (!next)
		gci_copy_some(x->b, out, x->got[next++]);
	for (; next < n && out.length; next++)
		gci_reduce(x->b, out, x->got[next], 0);
}

static void emit(struct gci_builder *b, const struct gci_coll *c, enum gci_bridge_how how)
{
	struct gci_slice got[GCI_GRID_MAX_CLUSTERS];
	struct state x = {.b = b, .c = c, .how = how, .got = got};

	if (c->topo->nclusters == 1) {
		gci_emit_allreduce_rabenseifner(b, c);
		return;
	}
	x.mine = c->topo->cluster[b->rank];
	x.bank = gci_bank_of(c, x.mine, b->rank);
	reduce_in_cluster(&x, least_depth(&x));
	send_all(&x);
	/* A member asks the others for their parts when it has its own, or what comes from far would
	 * meet them at its NIC; but not only when the other side has said that it has ours. */
	gci_no_rounds(b);
	counter_reduce(&x);
	gci_round(b);
	gci_merge(b, &(struct gci_stage){&x.bank.g, &x.bank.p, GCI_OUT, 0, GCI_NBUFFERS},
		MOD_ALLGATHER, GCI_WHOLE_DEPTH, 0);
}

static void gci_emit_allreduce_rabenseifner_mod(struct gci_builder *b, const struct gci_coll *c)
{
	emit(b, c, GCI_BRIDGE_FORWARD);
}

static void gci_emit_allreduce_rabenseifner_merge(struct gci_builder *b, const struct gci_coll *c)
{
	emit(b, c, GCI_BRIDGE_HALVES);
}

/* ---- Allreduce for short messages: along the canonical tree (collectives/blocks/order.h) in each
 * cluster, whole vectors between the clusters' first ranks, who combine them in canonical order,
 * and a binomial tree back.
 *
 * Cost: L + 2 ceil(log2 h) l + o for each message, and M/B for each. Bound (DESIGN.md): L for a
 * message of no length; what keeps us from it is the depth of the cluster's tree. */

enum { UP, EXCHANGE, DOWN };

/* Reduces this rank's cluster to its first member; returns where this rank's result stands. */
static struct gci_slice reduce_cluster(
	struct gci_builder *b, const struct gci_coll *c, const struct gci_group *g)
{
	struct gci_slice in = gci_vector(c, gci_input(c, b->rank)), acc = gci_vector(c, GCI_OUT);
	struct gci_join joins[GCI_MAX_JOINS];
	int i, n = gci_joins(c->topo, 0, b->rank, gci_group_rank(g, 0), joins);

	for (i = 0; i < n; i++) {
		const struct gci_join *j = &joins[i];

		if (c->topo->cluster[j->lead] != c->topo->cluster[j->other])
			continue;
		if (j->other == b->rank) {
			gci_send_some(b, j->lead, gci_tag(UP, 0), in);
		} else if (c->count) {
			gci_recv_reduce(b, j->other, gci_tag(UP, 0), acc, in, j->other_first);
			in = acc;
		}
	}
	return in;
}

/* Combines the clusters' vectors [a, z), which stand one after the other in TMP from `at` on, in
 * that of a. */
static void combine(struct gci_builder *b, const struct gci_coll *c, uint64_t at, int a, int z)
{
	int mid = gci_middle(a, z);

	if (z - a < 2)
		return;
	combine(b, c, at, a, mid);
	combine(b, c, at, mid, z);
	gci_reduce(b, gci_slice(GCI_TMP, at + c->count * (unsigned)a, c->count),
		gci_slice(GCI_TMP, at + c->count * (unsigned)mid, c->count), 0);
}

static void exchange(struct gci_builder *b, const struct gci_coll *c, struct gci_slice own)
{
	const struct gci_topo *t = c->topo;
	int k, mine = t->cluster[b->rank];
	uint64_t at = gci_tmp(b, c->count * (unsigned)t->nclusters);

	for (k = 0; k < t->nclusters; k++)
		if (k != mine)
			gci_send(b, *gci_topo_members(t, k), gci_tag(EXCHANGE, 0), own);
	for (k = 0; k < t->nclusters; k++) {
		struct gci_slice slot = gci_slice(GCI_TMP, at + c->count * (unsigned)k, c->count);

		if (k == mine)
			gci_copy(b, slot, own);
		else
			gci_recv(b, *gci_topo_members(t, k), gci_tag(EXCHANGE, 0), slot);
	}
	combine(b, c, at, 0, t->nclusters);
	gci_copy(b, gci_vector(c, GCI_OUT), gci_slice(GCI_TMP, at, c->count));
}

static void gci_emit_allreduce_tree(struct gci_builder *b, const struct gci_coll *c)
{
	int mine = c->topo->cluster[b->rank];
	struct gci_group g = gci_group_cluster(c, mine, b->rank, 0);
	struct gci_slice sum;

	if (!c->count)
		return;
	sum = reduce_cluster(b, c, &g);
	if (g.me == 0 && c->topo->nclusters > 1)
		exchange(b, c, sum);
	else if (g.me == 0)
		gci_copy_some(b, gci_vector(c, GCI_OUT), sum);
	gci_bcast(b, &g, gci_vector(c, GCI_OUT), gci_tag(DOWN, 0));
}

/* ---- Allreduce up a tree and down again, ATCC (Vadhiyar 2001), table 1. By segments the way down
 * of one overlaps the way up of the next.
 * 	chain		Cost: 2 (P-1) (L + M/B), with segments of m 2 M/B + 2 (P-2) m/B + latencies
 * 	binary		Cost: 4 ceil(log2 P) (L + M/B), with segments 3 M/B + the depth's part: two
 * 			vectors come in from below and one from above
 * 	binomial	Cost: 2 ceil(log2 P) (L + M/B)
 * 	reduce-bcast	the same along the canonical tree (collectives/blocks/order.h), by
 * 			clusters unless the order of ranks forbids. Cost: 2 ceil(log2 C) L +
 * 			2 ceil(log2 P) M/B */

enum { TREES_UP, TREES_DOWN };

static void up_and_down(struct gci_builder *b, const struct gci_coll *c, gci_tree *tree)
{
	struct gci_group g = gci_group_all(c, b->rank, 0);
	struct gci_slice out = gci_vector(c, GCI_OUT);

	gci_reduce_up(b, &g, tree, gci_vector(c, gci_input(c, b->rank)), out, gci_tag(TREES_UP, 0));
	gci_bcast_down(b, &g, tree, out, gci_tag(TREES_DOWN, 0));
}

static void gci_emit_allreduce_chain(struct gci_builder *b, const struct gci_coll *c)
{
	up_and_down(b, c, gci_chain);
}

static void gci_emit_allreduce_binary(struct gci_builder *b, const struct gci_coll *c)
{
	up_and_down(b, c, gci_binary);
}

static void gci_emit_allreduce_binomial(struct gci_builder *b, const struct gci_coll *c)
{
	up_and_down(b, c, gci_binomial);
}

static void gci_emit_allreduce_reduce_bcast(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_slice out = gci_vector(c, GCI_OUT);
	int flat = gci_order_is_flat(c);

	gci_reduce_canonical(
		b, c, flat, 0, gci_vector(c, gci_input(c, b->rank)), out, gci_tag(TREES_UP, 0));
	gci_bcast_canonical(b, c, flat, 0, out, gci_tag(TREES_DOWN, 0));
}

/* ---- Allreduce of long messages in a fixed order: a reduce-scatter along the canonical tree
 * (collectives/blocks/order.h), every rank leading the tree of its own part, then an allgather.
 * 	ordered		over all ranks. Cost: 2 ceil(log2 P) L + 2 (P-1)/P M/B
 * 	ordered-mod	in each cluster; the clusters trade their parts by n senders, and combine
 * 			them by that tree too. Cost: L + (C-1) M/nB + 2 (h-1)/h M/B, and
 * 			(h-n)/hn M/B for what is forwarded: that of the modified Rabenseifner
 * 			algorithm (Matsuda 2006, 2.3), whose halves begin with the farthest rank
 * 			and so are in no order
 *
 * Bound (DESIGN.md): 2 (P-1)/P M/B. It is the WAN, when it is slower than h NICs, that keeps
 * `ordered-mod` from it: nothing is reduced or gathered meanwhile. */

enum { REDUCE, ORDERED_COUNTER, ORDERED_FORWARD, ORDERED_ALLGATHER };

static void gci_emit_allreduce_ordered(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_share x;

	gci_share_cut(&x, b, c, gci_group_all(c, b->rank, 0), 1, b->rank + 1);
	gci_share_reduce(&x, gci_order_is_flat(c) ? GCI_SPAN_FLAT : GCI_SPAN_ALL, 1, REDUCE);
	gci_allgather(b, &x.g, &x.p, GCI_NBUFFERS, ORDERED_ALLGATHER);
}

static void gci_emit_allreduce_ordered_mod(struct gci_builder *b, const struct gci_coll *c)
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
		gci_share_send(&x, all, ORDERED_COUNTER);
		gci_share_combine(&x, all, ORDERED_COUNTER);
	}
	gci_allgather(b, &x.g, &x.p, GCI_NBUFFERS, ORDERED_ALLGATHER);
}

/* ---- Allgather then operate: all vectors go to all ranks by dissemination, and each rank
 * evaluates the tree of a fixed order for itself. For short messages.
 * Cost: ceil(log2 P) L + (P-1) M/B, and P vectors of TMP. ATCC (Vadhiyar 2001), table 1. */

struct vectors {
	const struct gci_coll *c;
	uint64_t at; /* TMP: of this rank's own, then the next rank's, and so on round to the one
			before */
};

static struct gci_slice slots(const struct vectors *x, int first, int n)
{
	return gci_slice(GCI_TMP, x->at + x->c->count * (unsigned)first, x->c->count * (unsigned)n);
}

static struct gci_slice bring(struct gci_fold *f, int leaf, int slot)
{
	int n = f->b->nranks;

	(void)slot;
	return slots(f->ctx, (leaf - f->b->rank + n) % n, 1);
}

static void disseminate(struct gci_builder *b, const struct vectors *x)
{
	int n = b->nranks, have, m;
	uint32_t round = 0;

	for (have = 1; have < n; have += m, round++) {
		m = have < n - have ? have : n - have;
		gci_send(b, (b->rank - have + n) % n, gci_tag(0, round), slots(x, 0, m));
		gci_recv(b, (b->rank + have) % n, gci_tag(0, round), slots(x, have, m));
	}
}

static void gci_emit_allreduce_allgather(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_slice in = gci_vector(c, gci_input(c, b->rank));
	struct vectors x = {.c = c};
	struct gci_fold f = {.b = b,
		.t = c->topo,
		.leaves = gci_order_is_flat(c) ? GCI_FOLD_RANKS : GCI_FOLD_BY_CLUSTERS,
		.mine = b->rank,
		.own = in,
		.result = gci_vector(c, GCI_OUT),
		.bring = bring,
		.ctx = &x};

	if (!c->count)
		return;
	if (b->nranks > 1) {
		x.at = gci_tmp(b, c->count * (unsigned)b->nranks);
		gci_copy(b, slots(&x, 0, 1), in);
	}
	disseminate(b, &x);
	gci_fold(&f);
}

/* ---- the algorithms */

const struct gci_algorithm gci_allreduces[] = {
	{GCI_ALLREDUCE, "packed",
		"packing of trees: segments up and down several trees of clusters",
		GCI_PACKS | GCI_KEEPS_CLUSTER_ORDER, 0, gci_emit_packed, gci_estimate_packed},
	{GCI_ALLREDUCE, "rabenseifner-mod",
		"reduce-scatter, exchange over the WAN by n senders, allgather",
		GCI_USES_SENDERS | GCI_CAPS_SENDERS, 0, gci_emit_allreduce_rabenseifner_mod,
		gci_estimate_modified},
	{GCI_ALLREDUCE, "rabenseifner", "reduce-scatter, allgather over all ranks", 0, 0,
		gci_emit_allreduce_rabenseifner, gci_estimate_halving},
	{GCI_ALLREDUCE, "rabenseifner-mod-merge",
		"the same, exchanged when 2^i <= n nodes have merged the reduced parts",
		GCI_USES_SENDERS | GCI_CAPS_SENDERS, 0, gci_emit_allreduce_rabenseifner_merge,
		gci_estimate_modified},
	{GCI_ALLREDUCE, "two-tier", "reduce in each cluster, exchange whole, bcast",
		GCI_CAPS_SENDERS, 0, gci_emit_allreduce_two_tier, gci_estimate_two_tier},
	{GCI_ALLREDUCE, "tree", "canonical tree in each cluster, exchange whole, tree back",
		GCI_CAPS_SENDERS | GCI_KEEPS_CLUSTER_ORDER, 0, gci_emit_allreduce_tree,
		gci_estimate_tree_of_clusters},
	{GCI_ALLREDUCE, "reduce-bcast", "up the tree of a fixed order and down again",
		GCI_USES_SEGMENT | GCI_BY_SEGMENT | GCI_KEEPS_RANK_ORDER, 0,
		gci_emit_allreduce_reduce_bcast, gci_estimate_two_clusters},
	{GCI_ALLREDUCE, "allgather-op", "every rank takes all vectors and operates",
		GCI_KEEPS_RANK_ORDER, 0, gci_emit_allreduce_allgather, gci_estimate_all_vectors},
	{GCI_ALLREDUCE, "ordered", "reduce-scatter by the tree of a fixed order, allgather",
		GCI_KEEPS_RANK_ORDER, 0, gci_emit_allreduce_ordered, gci_estimate_halving},
	{GCI_ALLREDUCE, "ordered-mod", "the same in each cluster, traded by n senders",
		GCI_USES_SENDERS | GCI_CAPS_SENDERS | GCI_KEEPS_CLUSTER_ORDER, 0,
		gci_emit_allreduce_ordered_mod, gci_estimate_modified},
	{GCI_ALLREDUCE, "chain", "up a chain of all ranks and down again",
		GCI_USES_SEGMENT | GCI_BY_SEGMENT, 0, gci_emit_allreduce_chain,
		gci_estimate_two_chains},
	{GCI_ALLREDUCE, "binary", "up a binary tree over all ranks and down again",
		GCI_USES_SEGMENT | GCI_BY_SEGMENT, 0, gci_emit_allreduce_binary,
		gci_estimate_two_binaries},
	{GCI_ALLREDUCE, "binomial", "up a binomial tree over all ranks and down again",
		GCI_USES_SEGMENT | GCI_BY_SEGMENT, 0, gci_emit_allreduce_binomial,
		gci_estimate_two_binomials},
	{GCI_ALLREDUCE, "ring", "parts travel round a ring of all ranks twice", 0, 0,
		gci_emit_allreduce_ring, gci_estimate_two_rings},
	{GCI_ALLREDUCE, "doubling", "whole vectors are traded, half by half of the ranks",
		GCI_KEEPS_RANK_ORDER, 0, gci_emit_allreduce_doubling, gci_estimate_doubling},
	{GCI_ALLREDUCE, NULL, NULL, 0, 0, NULL, NULL},
};
