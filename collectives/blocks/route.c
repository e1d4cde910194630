/* SPDX-License-Identifier: MIT */
#include "collectives/blocks/route.h"

#include "base/clock.h"

/* How many ranks of `from` send to `to`, and how many pairs of ranks share the work. */
static void find_width(const struct gci_coll *c, int from, int to, int *senders, int *pairs)
{
	const struct gci_topo *t = c->topo;
	const struct gci_link *l = gci_topo_link(t, from, to);
	int most = gci_coll_senders(c, from, to), n = gci_topo_size(t, to);
	uint64_t pair = gci_pair_bps(t, from, to), want = gci_nic_bps(t, to) * (unsigned)n, lanes;

	*senders = c->senders || l->senders ? most : 1;
	*pairs = *senders;
	if (!l->flow_rate_bps)
		return;
	if (l->rate_bps && l->rate_bps < want)
		want = l->rate_bps;
	lanes = (want - 1) / pair + 1;
	if (!c->senders && !l->senders)
		*senders = lanes < (unsigned)most ? (int)lanes : most;
	lanes = (lanes - 1) / (unsigned)*senders + 1; /* receivers for each of them */
	*pairs = *senders * (lanes < (unsigned)n ? (int)lanes : n);
}

struct gci_route gci_route(const struct gci_coll *c, int from, int to)
{
	struct gci_route r = {.topo = c->topo, .from = from, .to = to};

	find_width(c, from, to, &r.gateways, &r.entries);
	return r;
}

/* Where traffic between cluster `here` and cluster `there` touches the ring of `here`. */
static int base(const struct gci_topo *t, int here, int there)
{
	int k = there < here ? there : there - 1;

	return (int)((int64_t)k * gci_topo_size(t, here) / (t->nclusters - 1));
}

/* Of `lanes`, where there are `other` at the other end: senders go by blocks, so that a rank can
 * hand over its own; the more numerous end goes by segments too. */
static int lane_of(int lanes, int other, int index, uint64_t q)
{
	int per = lanes / other;

	return lanes <= other ? index % lanes : index % other * per + (int)(q % (unsigned)per);
}

/* Lanes stand apart as far as they can; more of them than members take turns. */
static int place_of(int lane, int lanes, int n)
{
	return lanes > n ? lane % n : (int)((int64_t)lane * n / lanes);
}

int gci_route_gateway(const struct gci_route *r, int index, uint64_t q)
{
	int n = gci_topo_size(r->topo, r->from);
	int lane = lane_of(r->gateways, r->entries, index, q);
	int place = base(r->topo, r->from, r->to) + place_of(lane, r->gateways, n) + n - 1;

	/* With as many gateways as members everybody hands over its own. */
	if (r->gateways == n)
		place = lane;
	return gci_topo_members(r->topo, r->from)[place % n];
}

int gci_route_entry(const struct gci_route *r, int index, uint64_t q)
{
	int n = gci_topo_size(r->topo, r->to);
	int lane = lane_of(r->entries, r->gateways, index, q);

	return (base(r->topo, r->to, r->from) + place_of(lane, r->entries, n)) % n;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t gci_route_bps(const struct gci_route *r)
{
	const struct gci_topo *t = r->topo;
	uint64_t link = gci_topo_link(t, r->from, r->to)->rate_bps;
	uint64_t bps = gci_pair_bps(t, r->from, r->to) * (unsigned)r->entries;
	int n = gci_topo_size(t, r->to);

	bps = smaller(bps, gci_nic_bps(t, r->from) * (unsigned)r->gateways);
	bps = smaller(bps, gci_nic_bps(t, r->to) * (unsigned)(r->entries < n ? r->entries : n));
	return link ? smaller(bps, link) : bps;
}

uint64_t gci_wan_in_flight(const struct gci_coll *c, int from, int to)
{
	uint64_t ns = 2 * gci_topo_link(c->topo, from, to)->delay_ns;
	uint64_t bps = gci_pair_bps(c->topo, from, to);

	return (uint64_t)((unsigned __int128)bps * ns / 8 / GCI_NS_PER_S / c->esize) + 1;
}

struct gci_route_segments gci_route_segments_of(const struct gci_coll *c, uint64_t segment)
{
	struct gci_coll cut = *c;

	cut.segment = segment;
	return (struct gci_route_segments){segment, gci_nsegments_of(&cut)};
}

void gci_turn(struct gci_turns *t, uint64_t elements)
{
	if (t->has_next) {
		t->gate = t->next;
		t->has_gate = 1;
	}
	t->has_next = 0;
	t->left = elements;
}

void gci_turn_step(struct gci_turns *t, uint32_t step, uint64_t elements, int wait)
{
	if (wait && t->has_gate)
		gci_after(t->b, t->gate);
	t->left -= elements;
	if (!t->has_next && t->left <= t->ahead) {
		t->next = step;
		t->has_next = 1;
	}
}
