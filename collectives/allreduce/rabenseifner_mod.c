/* SPDX-License-Identifier: MIT
 * The modified Rabenseifner allreduce: reduce-scatter in each cluster, an exchange of the parts
 * between all clusters by n senders for each pair and direction (all to all, Matsuda 2006, 2.5),
 * allgather in each cluster. For commutative operations. Every element is reduced once per cluster,
 * in the order of clusters, so all ranks end with the same bits.
 *
 * Cost, M/B and L as in Matsuda 2006, table 1, h ranks per cluster: L + M/nB + 2 (h-1)/h M/B. How
 * the n senders come about:
 *	-mod		any n; the other nodes forward their parts to them, (h-n)/hn M/B, which
 *			overlaps with what they send (2.3)
 *	-mod-merge	n = 2^i: extra merges leave as many different parts, extra splits undo them
 *			in the other cluster, (h-n)/hn M/B each (2.4)
 * Of two clusters that differ by more than two times, the larger one merges and splits in either
 * (2.5). With more clusters M/nB counts C-1 times: each begins with the next one, so that their
 * parts do not all come to one cluster first. */
#include "collectives/allreduce/allreduce.h"
#include "collectives/blocks/bridge.h"

enum { REDUCE_SCATTER, MERGE, FORWARD, COUNTER, SPLIT, ALLGATHER };

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
		gci_reduce_scatter(x->b, g, &x->bank.p, in, GCI_TMP, x->part.base, REDUCE_SCATTER);
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
		forwarded[i] = gci_bridge_forward(x->b, &bridge, &x->part, FORWARD);
	}
	gci_round(x->b);
	for (i = 1; i < n; i++) {
		bridge_to(x, &bridge, after(x, i));
		gci_bridge_send_own(x->b, &bridge, &x->part, COUNTER);
	}
	gci_no_rounds(x->b);
	for (i = 1; i < n; i++) {
		bridge_to(x, &bridge, after(x, i));
		gci_bridge_send_forwarded(x->b, &bridge, &x->part, forwarded[i], COUNTER);
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
	gci_bridge_recv(x->b, &bridge, &s, COUNTER);
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

		gci_recv_reduce(x->b, peer, gci_tag(COUNTER, tag), what, own, from < x->mine);
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
	gci_merge(b, &(struct gci_stage){&x.bank.g, &x.bank.p, GCI_OUT, 0, GCI_NBUFFERS}, ALLGATHER,
		GCI_WHOLE_DEPTH, 0);
}

void gci_emit_allreduce_rabenseifner_mod(struct gci_builder *b, const struct gci_coll *c)
{
	emit(b, c, GCI_BRIDGE_FORWARD);
}

void gci_emit_allreduce_rabenseifner_merge(struct gci_builder *b, const struct gci_coll *c)
{
	emit(b, c, GCI_BRIDGE_HALVES);
}
