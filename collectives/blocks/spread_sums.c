/* SPDX-License-Identifier: MIT
 * Sums of segments: to where operands meet, and from there (collectives/blocks/spread.h). */
#include "collectives/blocks/spread_impl.h"

/* The member of the owner's cluster where operands of this segment meet. */
static int meeting_of(const struct gci_spread *x, const struct gci_spread_segment *s)
{
	const struct gci_topo *t = x->c->topo;
	int n = gci_topo_size(t, s->owner), width = gci_deal_width(&x->deal, s->owner);
	int place = (int)(s->nth % (unsigned)width);

	return gci_topo_members(t, s->owner)[(int)((int64_t)place * n / width)];
}

static int sender_to_meeting(
	const struct gci_spread *x, const struct gci_spread_segment *s, const struct gci_route *r)
{
	unsigned width = (unsigned)gci_deal_width(&x->deal, s->owner);

	return gci_spread_sender(r, s->nth % width + s->nth / width);
}

/* This rank's part of its cluster's sum, up the tree to `lead`: what it has made. */
static struct gci_slice combine_inside(const struct gci_spread *x,
	const struct gci_spread_segment *s, int lead, struct gci_slice own)
{
	const struct gci_topo *t = x->c->topo;
	struct gci_join joins[GCI_MAX_JOINS];
	int i, n = gci_joins(t, 0, x->b->rank, lead, joins);
	struct gci_slice to = {.buffer = GCI_NBUFFERS};

	for (i = 0; i < n && t->cluster[joins[i].lead] == t->cluster[joins[i].other]; i++) {
		if (joins[i].other == x->b->rank) {
			gci_send(x->b, joins[i].lead, gci_tag(GCI_SPREAD_UP, s->q), own);
			break;
		}
		if (to.buffer == GCI_NBUFFERS)
			to = gci_slice(GCI_TMP, gci_tmp(x->b, s->length), s->length);
		gci_recv_reduce(x->b, joins[i].other, gci_tag(GCI_SPREAD_UP, s->q), to, own,
			joins[i].other_first);
		own = to;
	}
	return own;
}

/* Where the clusters' sums meet. */
struct meeting {
	const struct gci_spread *x;
	const struct gci_spread_segment *s;
};

/* Each to a place of its own, whatever the slot: no cluster's has to wait for another's. */
static struct gci_slice bring(struct gci_fold *f, int cluster, int slot)
{
	const struct meeting *m = f->ctx;
	uint64_t length = m->s->length;
	struct gci_slice at = gci_slice(GCI_TMP, gci_tmp(f->b, length), length);

	(void)slot;
	gci_spread_recv_far(m->x, m->s, GCI_SPREAD_ACROSS,
		sender_to_meeting(m->x, m->s, &m->x->from[cluster]), at);
	return at;
}

static void meet(const struct gci_spread *x, const struct gci_spread_segment *s,
	struct gci_slice own, struct gci_slice result)
{
	struct meeting m = {x, s};
	struct gci_fold f = {.b = x->b,
		.t = x->c->topo,
		.leaves = GCI_FOLD_CLUSTERS,
		.mine = x->mine,
		.own = own,
		.result = result,
		.bring = bring,
		.ctx = &m};

	gci_fold(&f);
}

int gci_spread_combine(struct gci_spread *x, const struct gci_spread_segment *s, enum gci_buffer in,
	enum gci_buffer out, struct gci_slice *result)
{
	int rank = meeting_of(x, s), lead = rank;
	struct gci_slice own;

	if (s->owner != x->mine)
		lead = sender_to_meeting(x, s, &x->to[s->owner]);
	own = combine_inside(x, s, lead, gci_spread_slice(s, in));
	if (x->b->rank != lead)
		return rank;
	if (s->owner != x->mine) {
		gci_spread_send_far(x, s, GCI_SPREAD_ACROSS, rank, own);
		return rank;
	}
	*result = gci_spread_slice(s, out);
	if (out == GCI_NBUFFERS)
		*result = gci_slice(GCI_TMP, gci_tmp(x->b, s->length), s->length);
	meet(x, s, own, *result);
	return rank;
}

void gci_spread_to_all(struct gci_spread *x, const struct gci_spread_segment *s, int rank)
{
	int own = s->owner == x->mine, from = -1;
	struct gci_slice at = gci_spread_slice(s, GCI_OUT);
	struct gci_spread_ring r;

	if (!own) {
		from = gci_spread_sender(&x->from[s->owner], s->nth);
		rank = gci_spread_receiver(&x->from[s->owner], s->nth);
	}
	r = gci_spread_round(x, x->c->topo->index[rank], x->c->topo->index[rank]);
	gci_spread_take(x, s, &r, from, at);
	if (own)
		gci_spread_hand_to_all(x, s, -1, at);
	gci_spread_pass_on(x, s, &r, at);
}

#define WAY     4
#define WAN_LEG 1

/* From `rank` to who sends it over the WAN, who takes it in, and the root; where one connection is
 * all there is, that is who takes it in. */
static void find_way(
	const struct gci_spread *x, const struct gci_spread_segment *s, int rank, int way[WAY])
{
	const struct gci_route *back = x->mine == x->home ? &x->from[s->owner] : &x->to[x->home];

	way[0] = way[1] = way[2] = rank;
	way[WAY - 1] = x->c->root;
	if (s->owner == x->home)
		return;
	way[1] = gci_spread_sender(back, s->nth);
	way[2] = back->entries > back->gateways ? gci_spread_receiver(back, s->nth) : x->c->root;
}

static void give(const struct gci_spread *x, const struct gci_spread_segment *s, int leg, int peer,
	struct gci_slice at)
{
	if (leg == WAN_LEG)
		gci_spread_send_far(x, s, GCI_SPREAD_BACK, peer, at);
	else
		gci_send(x->b, peer, gci_tag(leg ? GCI_SPREAD_OVER : GCI_SPREAD_DOWN, s->q), at);
}

static void get(const struct gci_spread *x, const struct gci_spread_segment *s, int leg, int peer,
	struct gci_slice at)
{
	if (leg == WAN_LEG)
		gci_spread_recv_far(x, s, GCI_SPREAD_BACK, peer, at);
	else
		gci_recv(x->b, peer, gci_tag(leg ? GCI_SPREAD_OVER : GCI_SPREAD_DOWN, s->q), at);
}

void gci_spread_to_root(
	struct gci_spread *x, const struct gci_spread_segment *s, int rank, struct gci_slice result)
{
	int leg, me = x->b->rank, way[WAY];

	if (x->mine != s->owner && x->mine != x->home)
		return;
	find_way(x, s, rank, way);
	for (leg = 0; leg + 1 < WAY; leg++) {
		if (way[leg] == way[leg + 1])
			continue;
		if (me == way[leg + 1]) {
			result = me == x->c->root
					 ? gci_spread_slice(s, GCI_OUT)
					 : gci_slice(GCI_TMP, gci_tmp(x->b, s->length), s->length);
			get(x, s, leg, way[leg], result);
		}
		if (me == way[leg])
			give(x, s, leg, way[leg + 1], result);
	}
}
