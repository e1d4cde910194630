/* SPDX-License-Identifier: MIT */
#include "collectives/models/plogp.h"

#include "base/clock.h"

static void look_at_link(struct gci_plogp *p, const struct gci_topo *t, int from, int to)
{
	uint64_t delay_ns = gci_topo_link(t, from, to)->delay_ns;
	uint64_t bps = gci_pair_bps(t, from, to);

	if (delay_ns > p->wan_delay_ns)
		p->wan_delay_ns = delay_ns;
	if (bps < p->wan_bps)
		p->wan_bps = bps;
}

struct gci_plogp gci_plogp(const struct gci_topo *t)
{
	struct gci_plogp p = {.nic_bps = UINT64_MAX, .wan_bps = UINT64_MAX};
	int a, b;

	p.nclusters = t->nclusters;
	for (a = 0; a < t->nclusters; a++) {
		if (gci_nic_bps(t, a) < p.nic_bps)
			p.nic_bps = gci_nic_bps(t, a);
		if (gci_topo_link(t, a, a)->delay_ns > p.lan_delay_ns)
			p.lan_delay_ns = gci_topo_link(t, a, a)->delay_ns;
		if (gci_topo_size(t, a) > p.most)
			p.most = gci_topo_size(t, a);
		for (b = 0; b < t->nclusters; b++)
			if (a != b)
				look_at_link(&p, t, a, b);
	}
	return p;
}

static uint64_t long_gap(const struct gci_params_link *l)
{
	struct gci_params_point at;

	gci_params_at(l, GCI_PLOGP_LONG_NBYTES, &at);
	return at.gap_ns;
}

/* The slowest of the links measured, and the longest latency of any. */
static void look_at_measured(const struct gci_params_link **slowest, uint64_t *latency_ns,
	const struct gci_params_link *l)
{
	if (!l->npoints)
		return;
	if (!*slowest || l->latency_ns > *latency_ns)
		*latency_ns = l->latency_ns;
	if (!*slowest || long_gap(l) > long_gap(*slowest))
		*slowest = l;
}

struct gci_plogp gci_plogp_measured(const struct gci_topo *t, const struct gci_params *params)
{
	struct gci_plogp p = gci_plogp(t);
	int a, b;

	for (a = 0; params && a < t->nclusters; a++)
		for (b = 0; b < t->nclusters; b++) {
			const struct gci_params_link *l =
				&params->links[t->in_grid[a] * params->nclusters + t->in_grid[b]];

			if (a != b)
				look_at_measured(&p.wan, &p.wan_delay_ns, l);
			else if (gci_topo_size(t, a) > 1)
				look_at_measured(&p.lan, &p.lan_delay_ns, l);
		}
	return p;
}

/* os, or and g. */
static struct gci_params_point point_of(
	const struct gci_params_link *l, uint64_t nbytes, uint64_t bps)
{
	struct gci_params_point at = {nbytes, GCI_MESSAGE_COST_NS, GCI_MESSAGE_COST_NS, 0};

	if (l)
		gci_params_at(l, nbytes, &at);
	else
		at.gap_ns = gci_ns_plus(gci_transfer_ns(nbytes, bps), GCI_MESSAGE_COST_NS);
	return at;
}

/* A sender is held up by its own NIC, over the WAN as well, but not by the WAN's gap: a gateway is
 * between them. 2.1. */
struct gci_plogp_times gci_plogp_at(
	const struct gci_plogp *p, enum gci_layer layer, uint64_t nbytes)
{
	struct gci_params_point lan = point_of(p->lan, nbytes, p->nic_bps), at = lan;
	struct gci_plogp_times t = {.latency_ns = p->lan_delay_ns, .send_ns = lan.gap_ns};

	if (layer == GCI_WAN) {
		if (p->nclusters == 1)
			return (struct gci_plogp_times){0};
		at = point_of(p->wan, nbytes, p->wan_bps);
		t.latency_ns = p->wan_delay_ns;
		if (at.os_ns > t.send_ns)
			t.send_ns = at.os_ns;
	}
	t.gap_ns = at.gap_ns;
	t.os_ns = at.os_ns;
	t.or_ns = at.or_ns;
	t.recv_ns = gci_ns_plus(t.latency_ns, t.gap_ns);
	return t;
}

uint64_t gci_plogp_segments(uint64_t count, uint64_t most, gci_plogp_cost *cost, const void *ctx)
{
	static const int steps[] = {-5, -1, 1, 5};
	uint64_t best = 1, best_ns = cost(ctx, 1), k, ns, from;
	int i;

	if (count < most)
		most = count;
	for (k = 2; k && k <= most; k *= 2) { /* after 2^63 comes 0 */
		ns = cost(ctx, k);
		if (ns < best_ns) {
			best_ns = ns;
			best = k;
		}
	}
	do {
		from = best;
		for (i = 0; i < 4; i++) {
			k = from + (uint64_t)steps[i];
			if (!k || k > most) /* below 0 is above most */
				continue;
			ns = cost(ctx, k);
			if (ns < best_ns) {
				best_ns = ns;
				best = k;
			}
		}
	} while (best != from);
	return best;
}
