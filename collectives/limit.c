/* SPDX-License-Identifier: MIT */
#include "collectives/limit.h"

#include "base/clock.h"

static uint64_t payload_ns(uint64_t nbytes, uint64_t bps)
{
	return (uint64_t)((unsigned __int128)nbytes * 8 * GCI_NS_PER_S * 1514 / 1448 / bps);
}

static uint64_t max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The slowest NIC decides: everybody takes part. 0: some rate is unknown. */
static uint64_t slowest_nic(const struct gci_topo *t)
{
	uint64_t bps = UINT64_MAX;
	int i;

	for (i = 0; i < t->nclusters; i++)
		bps = t->nic_bps[i] < bps ? t->nic_bps[i] : bps;
	return bps;
}

/* Over all links that `from` (any: -1) must use: the longest delay, and the time for nbytes. */
static void links(const struct gci_topo *t, int from, uint64_t nbytes, uint64_t *delay_ns,
	uint64_t *transfer_ns)
{
	int a, b;

	*delay_ns = *transfer_ns = 0;
	for (a = 0; a < t->nclusters; a++)
		for (b = 0; b < t->nclusters; b++) {
			const struct gci_link *l = gci_topo_link(t, a, b);

			if (from >= 0 && a != from)
				continue;
			if (a == b && gci_topo_size(t, a) == 1)
				continue;
			*delay_ns = max(*delay_ns, l->delay_ns);
			/* With more than two clusters data may go round by others. */
			if (a != b && l->rate_bps && t->nclusters == 2)
				*transfer_ns = max(*transfer_ns, payload_ns(nbytes, l->rate_bps));
		}
}

uint64_t gci_limit_ns(const struct gci_coll *c)
{
	const struct gci_topo *t = c->topo;
	uint64_t nbytes = c->count * c->esize, bps = slowest_nic(t), p = (uint64_t)t->nranks;
	uint64_t delay, link;

	if (!bps || p == 1)
		return 0;
	links(t, c->kind == GCI_BCAST ? t->cluster[c->root] : -1, nbytes, &delay, &link);
	switch (c->kind) {
	case GCI_BCAST:
		return delay + max(link, payload_ns(nbytes, bps));
	case GCI_ALLREDUCE:
		/* 2 (P-1)/P M through each NIC; the delay can hide behind local work, or is all
		 * there is. */
		return max(delay, max(link, payload_ns(2 * (nbytes - nbytes / p), bps)));
	default:
		return delay;
	}
}
