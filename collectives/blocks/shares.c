/* SPDX-License-Identifier: MIT */
#include "collectives/blocks/shares.h"

#include "base/mem.h"

uint64_t gci_share_cut(struct gci_share *x, struct gci_builder *b, const struct gci_coll *c,
	struct gci_group g, int out, int end)
{
	struct gci_slice room;
	uint64_t base = 0;

	*x = (struct gci_share){.b = b, .c = c, .g = g, .p = gci_parts_of(c, g.n)};
	room = gci_parts_slice(&x->p, GCI_OUT, g.me, end);
	x->to = gci_parts_slice(&x->p, GCI_OUT, g.me, g.me + 1);
	if (!out) {
		base = room.offset - gci_tmp(b, room.length);
		x->to.buffer = GCI_TMP;
		x->to.offset -= base;
	}
	return base;
}

void gci_share_reduce(struct gci_share *x, enum gci_span span, int last, uint32_t phase)
{
	struct gci_item *items = gci_calloc((size_t)x->g.n, sizeof(*items));
	enum gci_buffer in = gci_input(x->c, x->b->rank);
	int i;

	if (!items) {
		x->b->failed = 1;
		return;
	}
	for (i = 0; i < x->g.n; i++) {
		items[i].root = gci_group_rank(&x->g, i);
		items[i].at = gci_parts_slice(&x->p, in, i, i + 1);
		items[i].to.buffer = GCI_NBUFFERS;
	}
	if (last)
		items[x->g.me].to = x->to;
	gci_reduce_items(x->b, x->c, span, items, x->g.n, gci_tag(phase, 0));
	x->at = items[x->g.me].at;
	gci_free(items);
	if (last)
		gci_copy_some(x->b, x->to, x->at);
	gci_no_rounds(x->b);
}

/* How many members may send to every cluster that is to be sent to. */
static int senders_of(const struct gci_share *x, int cluster, struct gci_share_target target)
{
	int to, least = gci_topo_size(x->c->topo, cluster);

	for (to = 0; to < x->c->topo->nclusters; to++) {
		int n = to == cluster ? least : gci_coll_senders(x->c, cluster, to);

		if ((target.only < 0 || target.only == to) && n < least)
			least = n;
	}
	return least;
}

/* What two ways to cut the vector have in common in part i of one and part k of the other. */
static struct gci_slice overlap(const struct gci_parts *p, int i, const struct gci_parts *q, int k)
{
	return gci_common(
		gci_parts_slice(p, GCI_OUT, i, i + 1), gci_parts_slice(q, GCI_OUT, k, k + 1));
}

/* Part i, which stands at `src`, to the members of cluster `to` that it has elements for. */
static void send_part(
	const struct gci_share *x, int i, struct gci_slice src, int to, int first, uint32_t phase)
{
	struct gci_group peers = gci_group_cluster(x->c, to, x->b->rank, first);
	struct gci_parts q = gci_parts_of(x->c, peers.n);
	struct gci_slice all = gci_parts_slice(&x->p, GCI_OUT, i, i + 1);
	int k, end;

	for (gci_parts_meeting(&q, all, &k, &end); k < end; k++) {
		struct gci_slice s = overlap(&x->p, i, &q, k);

		s.offset = src.offset + (s.offset - all.offset);
		s.buffer = src.buffer;
		gci_send_some(x->b, gci_group_rank(&peers, k), gci_tag(phase, (uint32_t)i), s);
	}
}

static void send_to_all(const struct gci_share *x, int i, struct gci_slice src,
	struct gci_share_target target, uint32_t phase)
{
	int mine = x->c->topo->cluster[x->b->rank], n = x->c->topo->nclusters, k;

	/* Each begins with the next cluster, so that not all send to one first. */
	for (k = 1; k < n; k++) {
		int to = (mine + k) % n;

		if (target.only < 0 || target.only == to)
			send_part(x, i, src, to, target.only < 0 ? 0 : target.first, phase);
	}
}

void gci_share_send(struct gci_share *x, struct gci_share_target target, uint32_t phase)
{
	const struct gci_group *g = &x->g;
	int n = senders_of(x, x->c->topo->cluster[x->b->rank], target), i;
	uint32_t tag = gci_tag(phase + 1, 0), before = 0;

	if (g->me >= n) {
		gci_send_some(x->b, gci_group_rank(g, g->me % n), tag, x->at);
		return;
	}
	send_to_all(x, g->me, x->at, target, phase);
	for (i = g->me + n; i < g->n; i += n) {
		struct gci_slice s = gci_parts_slice(&x->p, GCI_TMP, i, i + 1);
		uint32_t step;

		if (!s.length)
			continue;
		s.offset = gci_tmp(x->b, s.length);
		step = gci_recv(x->b, gci_group_rank(g, i), tag, s);
		if (before) /* two at a time would meet at this rank's NIC */
			gci_after(x->b, before - 1);
		before = step + 1;
		send_to_all(x, i, s, target, phase);
	}
}

struct taking {
	const struct gci_share *x;
	struct gci_share_target target;
	uint32_t phase;
	uint64_t tmp;
};

/* Takes cluster `from`'s share into dst, or if `src` is given dst = src OP that. */
static void take(const struct taking *t, int from, struct gci_slice dst,
	const struct gci_slice *src, int swapped)
{
	const struct gci_share *x = t->x;
	struct gci_group peers = gci_group_cluster(x->c, from, x->b->rank, 0);
	struct gci_parts q = gci_parts_of(x->c, peers.n);
	struct gci_slice mine = gci_parts_slice(&x->p, GCI_OUT, x->g.me, x->g.me + 1);
	int i, end, n = senders_of(x, from, t->target);

	for (gci_parts_meeting(&q, mine, &i, &end); i < end; i++) {
		struct gci_slice d = overlap(&q, i, &x->p, x->g.me), s = d;
		int peer = gci_group_rank(&peers, i % n);
		uint32_t tag = gci_tag(t->phase, (uint32_t)i);

		if (!d.length)
			continue;
		d.offset = dst.offset + (s.offset - mine.offset);
		d.buffer = dst.buffer;
		if (!src) {
			gci_recv(x->b, peer, tag, d);
			continue;
		}
		s.offset = src->offset + (s.offset - mine.offset);
		s.buffer = src->buffer;
		gci_recv_reduce(x->b, peer, tag, d, s, swapped);
	}
}

static struct gci_slice bring(struct gci_fold *f, int cluster, int slot)
{
	const struct taking *t = f->ctx;
	uint64_t length = f->result.length, at = t->tmp + (unsigned)slot * length;

	if (f->b->tmp_len < at + length)
		f->b->tmp_len = at + length;
	take(t, cluster, gci_slice(GCI_TMP, at, length), NULL, 0);
	return gci_slice(GCI_TMP, at, length);
}

static void join(
	struct gci_fold *f, int cluster, struct gci_slice dst, struct gci_slice src, int swapped)
{
	take(f->ctx, cluster, dst, &src, swapped);
}

void gci_share_combine(struct gci_share *x, struct gci_share_target target, uint32_t phase)
{
	struct taking t = {x, target, phase, x->b->tmp_len};
	struct gci_fold f = {.b = x->b,
		.t = x->c->topo,
		.leaves = GCI_FOLD_CLUSTERS,
		.mine = x->c->topo->cluster[x->b->rank],
		.own = x->at,
		.result = x->to,
		.bring = bring,
		.join = join,
		.ctx = &t};

	if (x->to.length)
		gci_fold(&f);
	x->at = x->to;
}
