/* SPDX-License-Identifier: MIT */
#include "collectives/tuner/estimate.h"

#include "base/mem.h"
#include "collectives/blocks/layout.h"
#include "collectives/models/cost.h"
#include "collectives/tuner/estimate_impl.h"

#include <string.h>

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t gci_estimate(const struct gci_estimator *e, const struct gci_candidate *how)
{
	if (!how->algorithm->estimate)
		return gci_estimate_transfer_ns(e->nbytes, e->nic_bps);
	return how->algorithm->estimate(e, how);
}

/* ---- the network */

static unsigned log2_up(unsigned n)
{
	unsigned d = 0;

	while (1u << d < n)
		d++;
	return d;
}

/* Do ranks of one cluster follow one another? Else halving over all crosses clusters at any depth.
 */
static int is_in_order(const struct gci_topo *t)
{
	int r, changes = 0;

	for (r = 1; r < t->nranks; r++)
		changes += t->cluster[r] != t->cluster[r - 1];
	return changes < t->nclusters;
}

static void look_at_link(struct gci_estimator *e, int a, int b)
{
	const struct gci_topo *t = e->c->topo;
	const struct gci_simnet_link *l = &e->net->links[a * t->nclusters + b];
	int home = t->cluster[e->c->root];
	unsigned n;

	if (a == b) {
		e->lan_ns = larger(e->lan_ns, l->latency_ns);
		return;
	}
	e->capped |= gci_topo_link(t, a, b)->senders > 0;
	if (gci_kind_has_root(e->c->kind) && home != a && home != b)
		return;
	n = (unsigned)gci_topo_senders(t, a, b);
	e->wan_ns = larger(e->wan_ns, l->latency_ns);
	e->wan_bps = smaller(e->wan_bps, l->bps ? l->bps : GCI_NEVER);
	e->pair_bps = smaller(e->pair_bps, l->pair_bps ? l->pair_bps : GCI_NEVER);
	e->senders = n < e->senders ? n : e->senders;
}

static void look_at_net(struct gci_estimator *e)
{
	const struct gci_topo *t = e->c->topo;
	int a, b;

	e->nic_bps = e->wan_bps = e->pair_bps = GCI_NEVER;
	e->senders = GCI_GRID_MAX_HOSTS;
	for (a = 0; a < t->nclusters; a++) {
		e->most = (unsigned)larger(e->most, (unsigned)gci_topo_size(t, a));
		if (e->net->nic_bps[a])
			e->nic_bps = smaller(e->nic_bps, e->net->nic_bps[a]);
		for (b = 0; b < t->nclusters; b++)
			look_at_link(e, a, b);
	}
	/* One pair fills its NICs at most. */
	e->pair_bps = smaller(e->pair_bps, e->nic_bps);
	e->message_ns = GCI_MESSAGE_COST_NS / 2;
	for (a = 0; a < t->nranks; a++)
		e->message_ns = larger(e->message_ns, e->net->send_ns[a]);
	e->lan_ns += e->message_ns + e->net->recv_ns;
	e->wan_ns += e->message_ns + e->net->recv_ns;
}

int gci_estimator_init(
	struct gci_estimator *e, const struct gci_simnet *net, const struct gci_coll *c)
{
	const struct gci_topo *t = c->topo;

	memset(e, 0, sizeof(*e));
	e->net = net;
	e->c = c;
	e->nranks = (unsigned)t->nranks;
	e->nclusters = (unsigned)t->nclusters;
	e->nbytes = gci_total(c) * c->esize;
	look_at_net(e);
	e->deep = log2_up(e->nranks);
	e->deep_in = log2_up(e->most);
	e->across = is_in_order(t) ? log2_up(e->nclusters) : e->deep;
	e->places = gci_calloc(e->nranks, sizeof(*e->places));
	e->crossing = gci_calloc((size_t)e->nclusters * e->nclusters, sizeof(*e->crossing));
	if (e->places && e->crossing &&
		(!gci_kind_has_vector(c->kind) || !gci_deal_init(&e->deal, c)))
		return 0;
	gci_estimator_free(e);
	return GCOLL_ERR_NOMEM;
}

void gci_estimator_free(struct gci_estimator *e)
{
	gci_free(e->places);
	gci_free(e->crossing);
	gci_deal_free(&e->deal);
	memset(e, 0, sizeof(*e));
}
