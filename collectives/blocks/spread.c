/* SPDX-License-Identifier: MIT */
#include "collectives/blocks/spread.h"

#include "base/clock.h"
#include "base/mem.h"
#include "collectives/blocks/inflow.h"

/* Round a cluster, from an owner's cluster to another, up a cluster's tree, to where operands meet,
 * and from there to the root's cluster. */
enum { GCI_SPREAD_DOWN, GCI_SPREAD_OVER, GCI_SPREAD_UP, GCI_SPREAD_ACROSS, GCI_SPREAD_BACK };

/* Between this rank's cluster and another. */
struct gci_spread_flows {
	struct gci_inflow out; /* bcast: from the root's cluster */
	struct gci_inflow in;
};

/* A segment's way through this rank's cluster: `first`, then the others in the order of members
 * from `second` on. */
struct gci_spread_ring {
	const int *members;
	int n, first, second; /* members; places */
	int at;               /* which this rank is, of n */
};

static struct gci_slice gci_spread_slice(
	const struct gci_spread_segment *s, enum gci_buffer buffer);
static int gci_spread_sender(const struct gci_route *r, uint64_t turn);
static int gci_spread_receiver(const struct gci_route *r, uint64_t turn);
static void gci_spread_send_far(const struct gci_spread *x, const struct gci_spread_segment *s,
	uint32_t phase, int peer, struct gci_slice at);
static void gci_spread_recv_far(const struct gci_spread *x, const struct gci_spread_segment *s,
	uint32_t phase, int peer, struct gci_slice at);
static struct gci_spread_ring gci_spread_round(const struct gci_spread *x, int first, int second);
static void gci_spread_take(const struct gci_spread *x, const struct gci_spread_segment *s,
	const struct gci_spread_ring *r, int from, struct gci_slice at);
static void gci_spread_pass_on(const struct gci_spread *x, const struct gci_spread_segment *s,
	const struct gci_spread_ring *r, struct gci_slice at);
static void gci_spread_hand_to_all(const struct gci_spread *x, const struct gci_spread_segment *s,
	int has, struct gci_slice at);

/* ---- Sums of segments: to where operands meet, and from there (collectives/blocks/spread.h). */

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

/* ---- segments and their ways from a root */

#define PER_LINK      32 /* segments: so much later is the last one at its owner's others */
#define SEGMENT_LEAST (4u << 10)
#define SEGMENT_SHORT (16u << 10) /* below only where links take long for it */
#define LONG_NS       GCI_NS_PER_MS
#define SEGMENT_MOST  (1u << 20)
#define MOST_SEGMENTS 1024

/* A message costs its hosts something: the least that keeps links busy far longer than that. */
static uint64_t least_size(const struct gci_topo *t)
{
	uint64_t bps = 1, s = SEGMENT_LEAST;
	int a, b;

	for (a = 0; a < t->nclusters; a++)
		for (b = 0; b < t->nclusters; b++)
			if (a != b && gci_pair_bps(t, a, b) > bps)
				bps = gci_pair_bps(t, a, b);
	while (s < SEGMENT_SHORT && gci_transfer_ns(s, bps) < LONG_NS)
		s *= 2;
	return s;
}

/* Filling links and rings is to take no more than about 1/PER_LINK of the time. */
uint64_t gci_spread_size(const struct gci_coll *c)
{
	const struct gci_topo *t = c->topo;
	uint64_t s = least_size(t), all = c->count * c->esize, m;
	int i, n = t->nclusters;

	for (i = 0; i < t->nclusters; i++)
		n = gci_topo_size(t, i) > n ? gci_topo_size(t, i) : n;
	m = all / (PER_LINK * (unsigned)n);
	while ((2 * s <= m || s < all / MOST_SEGMENTS) && s < SEGMENT_MOST)
		s *= 2;
	return s > c->esize ? s / c->esize : 1;
}

/* Between this rank's cluster and cluster k. */
static void find_flows(struct gci_spread *x, int k)
{
	int n = gci_topo_size(x->c->topo, x->mine), receivers = 1;
	uint64_t nbytes = x->segment * x->c->esize;

	x->to[k] = gci_route(x->c, x->mine, k);
	x->from[k] = gci_route(x->c, k, x->mine);
	if (x->c->kind == GCI_BCAST)
		receivers = x->from[k].entries < n ? x->from[k].entries : n;
	gci_inflow_init(&x->flows[k].out, &x->to[k], 1, x->nsegments, nbytes);
	gci_inflow_init(&x->flows[k].in, &x->from[k], receivers, x->nsegments, nbytes);
}

void gci_spread_start(struct gci_spread *x, struct gci_builder *b, const struct gci_coll *c)
{
	const struct gci_topo *t = c->topo;
	size_t n = (size_t)t->nclusters;
	int k;

	*x = (struct gci_spread){.b = b,
		.c = c,
		.home = gci_kind_has_root(c->kind) ? t->cluster[c->root] : -1,
		.mine = t->cluster[b->rank],
		.index = t->index[b->rank],
		.segment = c->segment ? c->segment : gci_spread_size(c)};
	x->to = gci_calloc(n, sizeof(*x->to));
	x->from = gci_calloc(n, sizeof(*x->from));
	x->flows = gci_calloc(n, sizeof(*x->flows));
	if (gci_deal_init(&x->deal, c) || !x->to || !x->from || !x->flows) {
		b->failed = 1;
		return;
	}
	x->nsegments = c->count ? gci_nsegments(c->count, x->segment) : 0;
	for (k = 0; k < t->nclusters; k++)
		if (k != x->mine)
			find_flows(x, k);
}

void gci_spread_end(struct gci_spread *x)
{
	int k;

	for (k = 0; x->flows && k < x->c->topo->nclusters; k++)
		gci_inflow_free(&x->flows[k].in);
	gci_deal_free(&x->deal);
	gci_free(x->flows);
	gci_free(x->to);
	gci_free(x->from);
}

int gci_spread_next(struct gci_spread *x, struct gci_spread_segment *s)
{
	struct gci_slice at;

	if (x->next == x->nsegments)
		return 0;
	at = gci_segment(GCI_OUT, x->c->count, x->segment, x->next);
	s->q = (uint32_t)x->next++;
	s->owner = gci_deal_next(&x->deal);
	s->nth = gci_deal_count(&x->deal, s->owner) - 1;
	s->at = at.offset;
	s->length = at.length;
	return 1;
}

static struct gci_slice gci_spread_slice(const struct gci_spread_segment *s, enum gci_buffer buffer)
{
	return gci_slice(buffer, s->at, s->length);
}

/* ---- who speaks with whom: of all pairs, those that come one after the other have no rank in
 * common, as far as there are enough */

/* Who sends by this route in this turn, and who receives. */
static int gci_spread_sender(const struct gci_route *r, uint64_t turn)
{
	return gci_route_gateway(r, (int)(turn % (unsigned)r->gateways), turn);
}

static int gci_spread_receiver(const struct gci_route *r, uint64_t turn)
{
	uint64_t i = turn % (unsigned)r->gateways, round = turn / (unsigned)r->gateways;

	return gci_topo_members(r->topo, r->to)[gci_route_entry(r, (int)i, round + i)];
}

/* ---- over the WAN */

/* To or from a rank of another cluster, in turns (inflow.h): in bcast the root's cluster is asked
 * for what it has from the beginning; of sums, operands wait for what comes from where they go. */
static void gci_spread_send_far(const struct gci_spread *x, const struct gci_spread_segment *s,
	uint32_t phase, int peer, struct gci_slice at)
{
	const struct gci_spread_flows *f = &x->flows[x->c->topo->cluster[peer]];

	gci_send(x->b, peer, gci_tag(phase, s->q), at);
	if (phase == GCI_SPREAD_ACROSS)
		gci_inflow_answer(&f->in, x->b);
	else if (x->c->kind == GCI_BCAST && x->mine == x->home && gci_inflow_waits(&f->out, s->nth))
		gci_patient(x->b);
}

static void gci_spread_recv_far(const struct gci_spread *x, const struct gci_spread_segment *s,
	uint32_t phase, int peer, struct gci_slice at)
{
	int from = x->c->topo->cluster[peer];

	gci_recv(x->b, peer, gci_tag(phase, s->q), at);
	if (x->c->kind != GCI_BCAST)
		gci_inflow_note(&x->flows[from].in, x->b);
	else if (from == x->home)
		gci_inflow_ask(&x->flows[from].in, x->b);
}

/* ---- round a cluster */

static struct gci_spread_ring gci_spread_round(const struct gci_spread *x, int first, int second)
{
	const struct gci_topo *t = x->c->topo;
	struct gci_spread_ring r = {
		gci_topo_members(t, x->mine), gci_topo_size(t, x->mine), first, second, 0};

	if (x->index != first) {
		r.at = (x->index - second + r.n) % r.n + 1;
		/* Who is first has had its turn. */
		if ((first - second + r.n) % r.n < r.at - 1)
			r.at--;
	}
	return r;
}

/* The rank at place i of the way. */
static int rank_at(const struct gci_spread_ring *r, int i)
{
	int skipped = (r->first - r->second + r->n) % r->n;

	if (!i)
		return r->members[r->first];
	return r->members[(r->second + i - 1 + (i - 1 >= skipped)) % r->n];
}

/* The way begins at `first`, who has it, or gets it from rank `from` if that is not -1. */
static void gci_spread_take(const struct gci_spread *x, const struct gci_spread_segment *s,
	const struct gci_spread_ring *r, int from, struct gci_slice at)
{
	if (r->at)
		gci_recv(x->b, rank_at(r, r->at - 1), gci_tag(GCI_SPREAD_DOWN, s->q), at);
	else if (from >= 0)
		gci_spread_recv_far(x, s, GCI_SPREAD_OVER, from, at);
}

static void gci_spread_pass_on(const struct gci_spread *x, const struct gci_spread_segment *s,
	const struct gci_spread_ring *r, struct gci_slice at)
{
	if (r->at + 1 < r->n)
		gci_send(x->b, rank_at(r, r->at + 1), gci_tag(GCI_SPREAD_DOWN, s->q), at);
}

static void hand_over(const struct gci_spread *x, const struct gci_spread_segment *s, int sender,
	int to, struct gci_slice at)
{
	if (x->b->rank == sender)
		gci_spread_send_far(
			x, s, GCI_SPREAD_OVER, gci_spread_receiver(&x->to[to], s->nth), at);
}

/* From the owner's cluster to all others that have not got it: each begins with the next one. */
static void gci_spread_hand_to_all(const struct gci_spread *x, const struct gci_spread_segment *s,
	int has, struct gci_slice at)
{
	int k, n = x->c->topo->nclusters;

	for (k = 1; k < n; k++) {
		int to = (x->mine + k) % n;

		if (to != has)
			hand_over(x, s, gci_spread_sender(&x->to[to], s->nth), to, at);
	}
}

/* ---- bcast */

/* As sender_of, but not the root, which has enough to do with passing all on; unless all members
 * have to send, since they can only send little each. */
static int sender_of_root(
	const struct gci_spread *x, const struct gci_spread_segment *s, const struct gci_route *r)
{
	const struct gci_topo *t = x->c->topo;
	int rank = gci_spread_sender(r, s->nth), n = gci_topo_size(t, r->from);

	if (rank != x->c->root || r->gateways == n)
		return rank;
	return gci_topo_members(t, r->from)[(t->index[rank] + 1) % n];
}

static struct gci_spread_ring round_at_home(
	const struct gci_spread *x, const struct gci_spread_segment *s)
{
	const struct gci_topo *t = x->c->topo;
	int n = gci_topo_size(t, x->home), second = (int)(s->nth % (unsigned)n);

	if (s->owner != x->home)
		second = (t->index[sender_of_root(x, s, &x->to[s->owner])] + 1) % n;
	return gci_spread_round(x, t->index[x->c->root], second);
}

static void at_home(
	const struct gci_spread *x, const struct gci_spread_segment *s, struct gci_slice at)
{
	struct gci_spread_ring r = round_at_home(x, s);
	int k;

	gci_spread_take(x, s, &r, -1, at);
	for (k = 0; k < x->c->topo->nclusters; k++)
		if (k != x->home && (s->owner == k || s->owner == x->home))
			hand_over(x, s, sender_of_root(x, s, &x->to[k]), k, at);
	gci_spread_pass_on(x, s, &r, at);
}

void gci_spread_from_root(
	struct gci_spread *x, const struct gci_spread_segment *s, enum gci_buffer buffer)
{
	int from = s->owner == x->mine ? x->home : s->owner, first;
	struct gci_slice at = gci_spread_slice(s, buffer);
	struct gci_spread_ring r;

	if (x->mine == x->home) {
		at_home(x, s, at);
		return;
	}
	first = x->c->topo->index[gci_spread_receiver(&x->from[from], s->nth)];
	r = gci_spread_round(x, first, first);
	gci_spread_take(x, s, &r, sender_of_root(x, s, &x->from[from]), at);
	if (s->owner == x->mine)
		gci_spread_hand_to_all(x, s, x->home, at);
	gci_spread_pass_on(x, s, &r, at);
}
