/* SPDX-License-Identifier: MIT */
#include "collectives/models/plogp.h"

#include "base/clock.h"
#include "collectives/blocks/path.h"

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

/* A sender is held up by its own NIC, over the WAN as well, but not by the WAN's gap: a gateway is
 * between them. 2.1. */
struct gci_plogp_times gci_plogp_at(
	const struct gci_plogp *p, enum gci_layer layer, uint64_t nbytes)
{
	struct gci_plogp_times t = {.os_ns = GCI_MESSAGE_COST_NS, .or_ns = GCI_MESSAGE_COST_NS};
	int wan = layer == GCI_WAN;

	if (wan && p->nclusters == 1)
		return (struct gci_plogp_times){0};
	t.latency_ns = wan ? p->wan_delay_ns : p->lan_delay_ns;
	t.send_ns = gci_ns_plus(gci_transfer_ns(nbytes, p->nic_bps), GCI_MESSAGE_COST_NS);
	t.gap_ns = t.send_ns;
	if (wan)
		t.gap_ns = gci_ns_plus(gci_transfer_ns(nbytes, p->wan_bps), GCI_MESSAGE_COST_NS);
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
	for (k = 2; k <= most; k *= 2) {
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
