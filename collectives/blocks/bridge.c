/* SPDX-License-Identifier: MIT */
#include "collectives/blocks/bridge.h"

struct gci_bank gci_bank_of(const struct gci_coll *c, int cluster, int rank)
{
	const struct gci_topo *t = c->topo;
	int first = c->kind == GCI_BCAST && t->cluster[c->root] == cluster ? t->index[c->root] : 0;
	struct gci_bank bank = {.g = gci_group_cluster(c, cluster, rank, first)};

	bank.p = gci_parts_of(c, bank.g.n);
	bank.depth = GCI_WHOLE_DEPTH;
	bank.n = bank.g.n;
	return bank;
}

static void set_depth(struct gci_bank *bank, int depth)
{
	bank->depth = depth;
	bank->n = gci_nranges(bank->g.n, depth);
}

/* The larger cluster of two gives so many members a part in it as the other has, and no more than
 * up to the next power of two (Matsuda 2006, 2.5). */
static void match(struct gci_bank *bank, const struct gci_bank *other)
{
	if (bank->g.n > 2 * other->g.n)
		set_depth(bank, gci_depth_for(bank->g.n, other->g.n));
}

/* The most ranges that are a power of two and no more than `n`, or all members. */
static void keep_within(struct gci_bank *bank, int n)
{
	int depth = 0;

	if (bank->g.n <= n)
		return;
	while (2 << depth <= n)
		depth++;
	set_depth(bank, depth);
}

void gci_bridge_make(struct gci_bridge *x, const struct gci_coll *c, int rank, int from, int to,
	enum gci_bridge_how how, int copies)
{
	int nclusters = c->topo->nclusters;

	*x = (struct gci_bridge){.to_cluster = to, .copies = copies};
	x->from = gci_bank_of(c, from, rank);
	x->to = gci_bank_of(c, to, rank);
	x->senders = gci_coll_senders(c, from, to);
	x->turn = (to - from + nclusters) % nclusters - 1;
	if (how == GCI_BRIDGE_FORWARD) {
		match(&x->from, &x->to);
		match(&x->to, &x->from);
	} else {
		keep_within(&x->from, x->senders);
		x->senders = x->from.n;
		if (x->to.g.n > x->senders)
			set_depth(&x->to, gci_depth_for(x->to.g.n, x->senders));
	}
	x->first = (int)((int64_t)x->turn * x->senders % x->from.n);
}

/* The member that stands for range i on the sending side. */
static int holder(const struct gci_bridge *x, int i)
{
	struct gci_range r = gci_range_at(x->from.g.n, x->from.depth, i);

	return x->copies ? r.a + x->turn % (r.z - r.a) : r.a;
}

/* The place of range i in the order that begins with the senders. */
static int place_of(const struct gci_bridge *x, int i)
{
	return (i - x->first + x->from.n) % x->from.n;
}

static int range_at_place(const struct gci_bridge *x, int place)
{
	return (place + x->first) % x->from.n;
}

/* The member that sends range i. */
static int sender_of(const struct gci_bridge *x, int i)
{
	return holder(x, range_at_place(x, place_of(x, i) % x->senders));
}

/* This member's place as a holder, or -1. */
static int my_place(const struct gci_bridge *x)
{
	int me = x->from.g.me, i;

	if (me < 0)
		return -1;
	i = gci_range_of(x->from.g.n, x->from.depth, me);
	return holder(x, i) == me ? place_of(x, i) : -1;
}

static int has_all(const struct gci_stage *s, int member)
{
	return member == 0 && s->first != GCI_NBUFFERS;
}

/* Range i, of which this member holds the copy that is sent. */
static struct gci_slice held(const struct gci_bridge *x, const struct gci_stage *s, int i)
{
	struct gci_range r = gci_range_at(x->from.g.n, x->from.depth, i);

	return gci_stage_slice(s, r.a, r.z);
}

uint64_t gci_bridge_forward(struct gci_builder *b, const struct gci_bridge *x,
	const struct gci_stage *s, uint32_t phase)
{
	const struct gci_group *g = &x->from.g;
	uint64_t forwarded = b->tmp_len;
	uint32_t tag = gci_tag(phase, (uint32_t)x->to_cluster);
	int place = my_place(x), k, to;

	if (place >= x->senders) {
		to = holder(x, range_at_place(x, place % x->senders));
		gci_round(b);
		if (!has_all(s, to))
			gci_send_some(b, gci_group_rank(g, to), tag,
				held(x, s, range_at_place(x, place)));
		return forwarded;
	}
	/* One at a time: two senders at one NIC would be in each other's way. */
	for (k = place + x->senders; place >= 0 && !has_all(s, g->me) && k < x->from.n;
		k += x->senders) {
		int i = range_at_place(x, k);
		uint64_t len = held(x, s, i).length;

		gci_round(b);
		gci_recv_some(b, gci_group_rank(g, holder(x, i)), tag,
			gci_slice(GCI_TMP, gci_tmp(b, len), len));
	}
	return forwarded;
}

/* The ranges of `bank` that elements of `s` are in: [*from, *to). */
static void ranges_meeting(const struct gci_bank *bank, struct gci_slice s, int *from, int *to)
{
	gci_parts_meeting(&bank->p, s, from, to);
	if (*from == *to)
		return;
	*from = gci_range_of(bank->g.n, bank->depth, *from);
	*to = gci_range_of(bank->g.n, bank->depth, *to - 1) + 1;
}

/* Range i as elements of the vector. */
static struct gci_slice elements(const struct gci_bank *bank, int i)
{
	struct gci_range r = gci_range_at(bank->g.n, bank->depth, i);

	return gci_parts_slice(&bank->p, GCI_OUT, r.a, r.z);
}

/* Range i, which stands at `src`, to all whose ranges it has elements of. */
static void send_range(struct gci_builder *b, const struct gci_bridge *x, int i,
	struct gci_slice src, uint32_t phase)
{
	struct gci_slice all = elements(&x->from, i);
	int k, end;

	for (ranges_meeting(&x->to, all, &k, &end); k < end; k++) {
		struct gci_slice part = gci_common(all, elements(&x->to, k));
		int peer = gci_range_at(x->to.g.n, x->to.depth, k).a;

		gci_send_some(b, gci_group_rank(&x->to.g, peer), gci_tag(phase, (uint32_t)i),
			gci_slice(
				src.buffer, src.offset + (part.offset - all.offset), part.length));
	}
}

void gci_bridge_send_own(struct gci_builder *b, const struct gci_bridge *x,
	const struct gci_stage *s, uint32_t phase)
{
	int place = my_place(x), i;

	if (place < 0 || place >= x->senders)
		return;
	i = range_at_place(x, place);
	send_range(b, x, i, held(x, s, i), phase);
}

void gci_bridge_send_forwarded(struct gci_builder *b, const struct gci_bridge *x,
	const struct gci_stage *s, uint64_t forwarded, uint32_t phase)
{
	int place = my_place(x), k;

	if (place < 0 || place >= x->senders)
		return;
	for (k = place + x->senders; k < x->from.n; k += x->senders) {
		int i = range_at_place(x, k);
		struct gci_slice src = held(x, s, i);

		if (!has_all(s, x->from.g.me)) {
			src.buffer = GCI_TMP;
			src.offset = forwarded;
			forwarded += src.length;
		}
		send_range(b, x, i, src, phase);
	}
}

/* Of what this rank takes, as parts [a, z); none: a = z. */
static struct gci_range range_here(const struct gci_bridge *x)
{
	const struct gci_bank *bank = &x->to;
	struct gci_range r = {0, 0}, mine;

	if (bank->g.me < 0)
		return r;
	mine = gci_range_at(
		bank->g.n, bank->depth, gci_range_of(bank->g.n, bank->depth, bank->g.me));
	return mine.a == bank->g.me ? mine : r;
}

int gci_bridge_next(
	const struct gci_bridge *x, int *i, int *peer, uint32_t *tag, struct gci_slice *what)
{
	struct gci_range r = range_here(x);
	struct gci_slice mine = gci_parts_slice(&x->to.p, GCI_OUT, r.a, r.z);
	int first, end;

	ranges_meeting(&x->from, mine, &first, &end);
	for (; first + *i < end; ++*i) {
		*what = gci_common(mine, elements(&x->from, first + *i));
		if (!what->length)
			continue;
		*peer = gci_group_rank(&x->from.g, sender_of(x, first + *i));
		*tag = (uint32_t)(first + *i);
		++*i;
		return 1;
	}
	return 0;
}

void gci_bridge_recv(struct gci_builder *b, const struct gci_bridge *x, const struct gci_stage *s,
	uint32_t phase)
{
	struct gci_slice what;
	uint32_t tag;
	int i = 0, peer;

	while (gci_bridge_next(x, &i, &peer, &tag, &what))
		gci_recv(b, peer, gci_tag(phase, tag),
			gci_slice(s->buffer, what.offset - s->base, what.length));
}
