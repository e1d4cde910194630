/* SPDX-License-Identifier: MIT */
#include "collectives/blocks/inflow.h"

#include "base/clock.h"
#include "base/mem.h"

/* More than a round trip holds: one that is being received and lets no other go before its end, and
 * one that is being sent meanwhile. */
#define BESIDES 2

/* Connections that carry little each do not fill it, nor do NICs that are slower. */
static int fills_link(const struct gci_route *r)
{
	const struct gci_link *l = gci_topo_link(r->topo, r->from, r->to);

	return l->rate_bps && !l->flow_rate_bps &&
	       gci_nic_bps(r->topo, r->from) > l->rate_bps / (unsigned)r->gateways;
}

void gci_inflow_init(struct gci_inflow *f, const struct gci_route *r, int receivers,
	uint64_t nmessages, uint64_t segment_nbytes)
{
	uint64_t ns = gci_topo_link(r->topo, r->from, r->to)->delay_ns +
		      gci_topo_link(r->topo, r->to, r->from)->delay_ns;
	unsigned __int128 bits = (unsigned __int128)gci_route_bps(r) * ns / GCI_NS_PER_S;
	unsigned __int128 most = bits / 8 / segment_nbytes + 1 + BESIDES;

	*f = (struct gci_inflow){.most = UINT64_MAX};
	if (most >= nmessages || !fills_link(r))
		return;
	f->most = (uint64_t)most;
	f->share = (uint32_t)((f->most - 1) / (unsigned)receivers + 1);
}

void gci_inflow_free(struct gci_inflow *f)
{
	gci_free(f->latest);
}

void gci_inflow_note(struct gci_inflow *f, struct gci_builder *b)
{
	if (!f->share)
		return;
	if (!f->latest)
		f->latest = gci_calloc(f->share, sizeof(*f->latest));
	if (!f->latest)
		b->failed = 1;
	if (!b->failed)
		f->latest[f->n++ % f->share] = (uint32_t)b->nsteps - 1;
}

void gci_inflow_answer(const struct gci_inflow *f, struct gci_builder *b)
{
	if (f->share && f->n >= f->share)
		gci_after(b, f->latest[f->n % f->share]);
}

void gci_inflow_ask(struct gci_inflow *f, struct gci_builder *b)
{
	gci_inflow_answer(f, b);
	gci_inflow_note(f, b);
}

int gci_inflow_waits(const struct gci_inflow *f, uint64_t nth)
{
	return nth >= f->most;
}
