/* SPDX-License-Identifier: MIT */
#include "collectives/models/cost.h"

#include "base/clock.h"
#include "collectives/blocks/path.h"
#include "collectives/blocks/spread.h"

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t slowest_nic(const struct gci_topo *t)
{
	uint64_t bps = UINT64_MAX;
	int i;

	for (i = 0; i < t->nclusters; i++)
		bps = gci_nic_bps(t, i) < bps ? gci_nic_bps(t, i) : bps;
	return bps;
}

/* Over all pairs of clusters, or those with `from`. */
static uint64_t longest_delay(const struct gci_topo *t, int from)
{
	uint64_t most = 0;
	int a, b;

	for (a = 0; a < t->nclusters; a++)
		for (b = 0; b < t->nclusters; b++)
			if ((from < 0 || a == from) && gci_topo_link(t, a, b)->delay_ns > most)
				most = gci_topo_link(t, a, b)->delay_ns;
	return most;
}

/* Rounds of a binomial tree in the largest cluster. */
static unsigned depth(const struct gci_topo *t)
{
	unsigned rounds = 0;
	int i;

	for (i = 0; i < t->nclusters; i++)
		while (1 << rounds < gci_topo_size(t, i))
			rounds++;
	return rounds;
}

/* A message without content to a neighbour. */
static uint64_t hop(const struct gci_topo *t, int cluster)
{
	return GCI_MESSAGE_COST_NS + gci_topo_link(t, cluster, cluster)->delay_ns;
}

uint64_t gci_cost_path(const struct gci_coll *c, uint64_t nbytes)
{
	const struct gci_topo *t = c->topo;
	int order[GCI_GRID_MAX_CLUSTERS];
	uint64_t bps = slowest_nic(t), ns = gci_transfer_ns(nbytes, bps);
	uint64_t segment = gci_pipeline_segment(c, nbytes / c->esize) * c->esize;
	int i;

	segment = segment < nbytes ? segment : nbytes;
	gci_topo_chain(t, t->cluster[c->root], order);
	for (i = 0; i < t->nclusters; i++) {
		if (i)
			ns += gci_topo_link(t, order[i - 1], order[i])->delay_ns;
		ns += (unsigned)gci_topo_size(t, i) * (hop(t, i) + gci_transfer_ns(segment, bps));
	}
	return ns;
}

uint64_t gci_cost_tree(const struct gci_coll *c, uint64_t nbytes)
{
	const struct gci_topo *t = c->topo;
	int home = t->cluster[c->root];
	uint64_t once = gci_transfer_ns(nbytes, gci_nic_bps(t, home)) + hop(t, home);

	return longest_delay(t, home) + (depth(t) + (unsigned)t->nclusters - 1) * once;
}

static uint64_t link_ns(const struct gci_coll *c, int from, int to, uint64_t nbytes)
{
	struct gci_route r =
		c->kind == GCI_REDUCE ? gci_route(c, to, from) : gci_route(c, from, to);

	return gci_transfer_ns(nbytes, gci_route_bps(&r));
}

/* nbytes over the slowest link of the better of two ways to use one for each cluster: a chain of
 * them, or from the root's to each. Of allreduce over the slowest of all. */
static uint64_t one_link(const struct gci_coll *c, uint64_t nbytes)
{
	const struct gci_topo *t = c->topo;
	int order[GCI_GRID_MAX_CLUSTERS], a, b, home = t->cluster[c->root];
	uint64_t chain = 0, star = 0, all = 0;

	gci_topo_chain(t, home, order);
	for (a = 1; a < t->nclusters; a++) {
		chain = larger(chain, link_ns(c, order[a - 1], order[a], nbytes));
		star = larger(star, link_ns(c, home, order[a], nbytes));
	}
	for (a = 0; c->kind == GCI_ALLREDUCE && a < t->nclusters; a++)
		for (b = 0; b < t->nclusters; b++)
			all = a == b ? all : larger(all, link_ns(c, a, b, nbytes));
	return larger(all, chain < star ? chain : star);
}

static uint64_t spread(const struct gci_coll *c, uint64_t nbytes, uint64_t links)
{
	const struct gci_topo *t = c->topo;
	struct gci_coll whole = {.topo = t, .count = nbytes, .esize = 1};
	uint64_t segment = gci_spread_size(&whole), most = 0, bps = slowest_nic(t);
	uint64_t n = gci_nsegments(nbytes, segment) / (unsigned)t->nclusters + 1;
	int i;

	for (i = 0; i < t->nclusters; i++)
		most = larger(most, (unsigned)gci_topo_size(t, i) *
					    (hop(t, i) + gci_transfer_ns(segment, bps)));
	return larger(links, gci_transfer_ns(c->kind == GCI_ALLREDUCE ? 2 * nbytes : nbytes, bps)) +
	       2 * longest_delay(t, -1) + links / n + most;
}

int gci_cost_spread(const struct gci_coll *c, uint64_t nbytes, uint64_t other_ns, int *yes)
{
	struct gci_deal deal;
	uint64_t ns;
	int rc;

	*yes = 0;
	if (c->topo->nclusters < 3 || !c->count)
		return 0;
	rc = gci_deal_init(&deal, c);
	if (rc)
		return rc;
	ns = spread(c, nbytes, gci_deal_ns(&deal, c, nbytes));
	*yes = ns < larger(other_ns, one_link(c, nbytes));
	gci_deal_free(&deal);
	return 0;
}

uint64_t gci_cost_relay(const struct gci_coll *c, uint64_t nbytes)
{
	const struct gci_topo *t = c->topo;
	int home = t->cluster[c->root];

	return longest_delay(t, home) + gci_transfer_ns(nbytes, gci_nic_bps(t, home)) +
	       (unsigned)t->nranks * GCI_MESSAGE_COST_NS + 2 * hop(t, home);
}

uint64_t gci_cost_binomial(const struct gci_coll *c, uint64_t nbytes)
{
	const struct gci_topo *t = c->topo;
	int home = t->cluster[c->root];

	return longest_delay(t, home) + 2 * gci_transfer_ns(nbytes, gci_nic_bps(t, home)) +
	       (depth(t) + (unsigned)t->nclusters - 1) * hop(t, home);
}

uint64_t gci_cost_rings(const struct gci_coll *c, uint64_t nbytes)
{
	const struct gci_topo *t = c->topo;
	uint64_t most = 0;
	int a, b;

	/* Every block goes round two rings one after the other. */
	for (a = 0; a < t->nclusters; a++)
		for (b = 0; b < t->nclusters; b++)
			if (a != b || t->nclusters == 1) {
				uint64_t ns = (unsigned)gci_topo_size(t, a) * hop(t, a) +
					      (unsigned)gci_topo_size(t, b) * hop(t, b);

				most = ns > most ? ns : most;
			}
	return longest_delay(t, -1) + most + gci_transfer_ns(nbytes, slowest_nic(t)) +
	       (unsigned)t->nranks * GCI_MESSAGE_COST_NS;
}

uint64_t gci_cost_coordinators(const struct gci_coll *c, uint64_t nbytes)
{
	const struct gci_topo *t = c->topo;
	uint64_t bps = slowest_nic(t), exchange = 0;
	int a, b;

	for (a = 0; a < t->nclusters; a++)
		for (b = 0; b < t->nclusters; b++)
			if (a != b) {
				uint64_t ns = gci_transfer_ns(
					nbytes / (unsigned)t->nclusters, gci_pair_bps(t, a, b));

				exchange = ns > exchange ? ns : exchange;
			}
	return longest_delay(t, -1) + exchange +
	       (2 * depth(t) + (unsigned)t->nclusters) * hop(t, 0) +
	       depth(t) * gci_transfer_ns(nbytes, bps);
}
