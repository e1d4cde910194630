/* SPDX-License-Identifier: MIT
 * Allreduce after Rabenseifner (1997), its modification for clusters (Matsuda 2006, 2.3), and the
 * two-tier algorithm it is compared with (Matsuda 2006, 3.2). For commutative operations. Every
 * element is reduced in one place per cluster, in the order of clusters, so all ranks end with
 * the same bits.
 *
 * Cost, M/B and L as in Matsuda 2006, table 1, h ranks per cluster:
 *	rabenseifner		2 (P-1)/P M/B, with the WAN crossed as if it were none
 *	rabenseifner-mod	L + M/nB + 2 (h-1)/h M/B, n senders
 *	two-tier		L + M/B + 2 M/B + 2 M/B */
#include "collectives/allreduce/allreduce.h"

enum { REDUCE_SCATTER, FORWARD, COUNTER, GATHER, SCATTER, ALLGATHER };

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

void gci_emit_allreduce_rabenseifner(struct gci_builder *b, const struct gci_coll *c)
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

/* The partial results this rank answers for, and where they stand. */
struct partial {
	const struct gci_group *g;
	const struct gci_parts *p;
	enum gci_buffer buffer; /* IN, OUT or TMP */
	uint64_t base;          /* element 0 of the vector stands this far below 0 of the buffer */
	uint64_t fresh;         /* TMP from here on is not used yet */
	int senders;
};

static struct gci_slice part_of(const struct partial *x, int i)
{
	struct gci_slice s = gci_parts_slice(x->p, x->buffer, i, i + 1);

	s.offset -= x->base;
	return s;
}

/* Where sender `me` holds the part of member i, forwarded or its own. Forwarded ones stand one
 * after the other: *at begins as x->fresh and is moved on. */
static struct gci_slice held(const struct partial *x, int i, uint64_t *at)
{
	struct gci_slice s = gci_parts_slice(x->p, GCI_TMP, i, i + 1);

	if (i == x->g->me)
		return part_of(x, i);
	s.offset = *at;
	*at += s.length;
	return s;
}

/* Members beyond the senders hand them their parts; the order of receivers is skewed by the
 * modulus (Matsuda 2006, 2.3). */
static void forward(struct gci_builder *b, struct partial *x)
{
	const struct gci_group *g = x->g;
	uint64_t at = x->fresh;
	int i;

	if (g->me >= x->senders)
		gci_send_some(b, gci_group_rank(g, g->me % x->senders), gci_tag(FORWARD, 0),
			part_of(x, g->me));
	for (i = g->me + x->senders; g->me < x->senders && i < g->n; i += x->senders) {
		struct gci_slice s = held(x, i, &at);

		if (b->tmp_len < s.offset + s.length)
			b->tmp_len = s.offset + s.length;
		gci_recv_some(b, gci_group_rank(g, i), gci_tag(FORWARD, 0), s);
	}
}

static void counter_send(
	struct gci_builder *b, const struct gci_coll *c, const struct partial *x, int to)
{
	struct gci_group peers = gci_group_cluster(c, to, b->rank, 0);
	struct gci_parts q = gci_parts_of(c, peers.n);
	uint64_t at = x->fresh;
	int i, k, end;

	for (i = x->g->me; x->g->me < x->senders && i < x->g->n; i += x->senders) {
		struct gci_slice mine = held(x, i, &at);

		for (gci_parts_meeting(x->p, i, &q, &k, &end); k < end; k++) {
			struct gci_slice s = gci_parts_overlap(x->p, i, &q, k);

			s.offset += mine.offset - gci_part_at(x->p, i);
			s.buffer = mine.buffer;
			gci_send_some(
				b, gci_group_rank(&peers, k), gci_tag(COUNTER, (uint32_t)i), s);
		}
	}
}

/* Takes cluster `from`'s result for this rank's part into OUT. `done` clusters stand there
 * already, in the order of clusters; with none, this one begins. */
static void counter_recv(struct gci_builder *b, const struct gci_coll *c, const struct partial *x,
	int from, int mine, int done)
{
	struct gci_group peers = gci_group_cluster(c, from, b->rank, 0);
	struct gci_parts q = gci_parts_of(c, peers.n);
	int i, end, senders = gci_fewest_senders(c, from);

	for (gci_parts_meeting(x->p, x->g->me, &q, &i, &end); i < end; i++) {
		struct gci_slice s = gci_parts_overlap(x->p, x->g->me, &q, i), src = s;
		int peer = gci_group_rank(&peers, i % senders);
		uint32_t tag = gci_tag(COUNTER, (uint32_t)i);

		if (!s.length)
			continue;
		if (!done) {
			gci_recv(b, peer, tag, s);
			continue;
		}
		if (from == mine + 1 && done == 1) { /* only our own is there, not in OUT */
			src.buffer = x->buffer;
			src.offset -= x->base;
		}
		gci_recv_reduce(b, peer, tag, s, src, 0);
	}
}

/* OUT = result of all clusters for this rank's part. */
static void counter_reduce(struct gci_builder *b, const struct gci_coll *c, struct partial *x)
{
	const struct gci_topo *t = c->topo;
	int mine = t->cluster[b->rank], other;
	struct gci_slice own = part_of(x, x->g->me);
	struct gci_slice out = gci_parts_slice(x->p, GCI_OUT, x->g->me, x->g->me + 1);

	gci_round(b);
	for (other = 0; other < t->nclusters; other++)
		if (other != mine)
			counter_send(b, c, x, other);
	for (other = 0; other < t->nclusters; other++) {
		if (other != mine)
			counter_recv(b, c, x, other, mine, other);
		else if (other && out.length)
			gci_reduce(b, out, own, 0);
	}
}

void gci_emit_allreduce_rabenseifner_mod(struct gci_builder *b, const struct gci_coll *c)
{
	const struct gci_topo *t = c->topo;
	struct gci_group g = gci_group_cluster(c, t->cluster[b->rank], b->rank, 0);
	struct gci_parts p = gci_parts_of(c, g.n);
	struct partial x = {.g = &g, .p = &p, .buffer = GCI_IN};

	if (t->nclusters == 1) {
		gci_emit_allreduce_rabenseifner(b, c);
		return;
	}
	x.senders = gci_fewest_senders(c, t->cluster[b->rank]);
	if (g.n > 1) {
		struct gci_slice range = gci_reduce_scatter_range(&g, &p);

		x.base = range.offset;
		x.fresh = b->tmp_len = range.length;
		x.buffer = gci_reduce_scatter(b, &g, &p, input(c), GCI_TMP, x.base, REDUCE_SCATTER);
	} else if (c->in_place && c->count) {
		/* What we send must stay as it is while results come in. */
		x.buffer = GCI_TMP;
		x.fresh = b->tmp_len = c->count;
		gci_copy(b, gci_slice(GCI_TMP, 0, c->count), gci_slice(GCI_OUT, 0, c->count));
	}
	forward(b, &x);
	counter_reduce(b, c, &x);
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

void gci_emit_allreduce_two_tier(struct gci_builder *b, const struct gci_coll *c)
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
