/* SPDX-License-Identifier: MIT
 * The network that plans are made for, from what the grid tells.
 *
 * The parameters of Gupta 2007, 4, for a message of m bytes: latency, the one-way delay; bandwidth,
 * the least of both NICs, the link's rate, and what its connections get; os(m), the time for which
 * the sender's NIC and the link are taken up: m over the less of these two rates, so that a host
 * whose connections are slow can feed several; g(m) = m / bandwidth. As g(m) is shorter than the
 * transfer, a receiver is busy for longer than the link to it: CommLinkAvailTime never decides and
 * is left out. */
#include "collectives/allgather/plan.h"

#include "base/clock.h"
#include "base/mem.h"

#include <string.h>

#define UNKNOWN_BPS 1000000000ull /* a NIC or link that the grid says nothing of */
#define MAX_BPS     (1ull << 50)  /* sums over all hosts fit in 64 bits */

/* The less of two rates, where 0 is one that is not known. */
static uint64_t less(uint64_t a, uint64_t b)
{
	return !a || (b && b < a) ? b : a;
}

/* In 2^-20 ns; 1448 of 1514 bytes in a packet are payload. */
static uint64_t byte_time(uint64_t bps)
{
	return (uint64_t)((((unsigned __int128)8 * GCI_NS_PER_S * 1514 / 1448) << 20) / bps);
}

struct gci_wire gci_path_of(uint64_t bps, uint64_t busy_bps, uint64_t latency_ns, int far)
{
	if (latency_ns > GCI_PATH_MAX_NS)
		latency_ns = GCI_PATH_MAX_NS;
	if (bps > MAX_BPS)
		bps = MAX_BPS;
	if (busy_bps > MAX_BPS)
		busy_bps = MAX_BPS;
	return (struct gci_wire){bps, latency_ns, byte_time(bps), byte_time(busy_bps), far};
}

static struct gci_wire path_between(const struct gci_topo *t, int a, int b)
{
	const struct gci_link *l = gci_topo_link(t, a, b);
	uint64_t out = t->nic_bps[a], bps;

	if (a != b)
		out = less(out, l->rate_bps);
	bps = less(out, t->nic_bps[b]);
	if (a != b)
		bps = less(bps,
			(l->flow_rate_bps < MAX_BPS ? l->flow_rate_bps : MAX_BPS) * l->streams);
	if (!bps)
		bps = UNKNOWN_BPS;
	return gci_path_of(bps, out > bps ? out : bps, l->delay_ns, a != b);
}

int gci_net_of(struct gci_net *net, const struct gci_topo *t)
{
	size_t n = (size_t)t->nclusters;
	int a, b;

	net->nhosts = t->nranks;
	net->nclasses = t->nclusters;
	net->class_of = gci_calloc((size_t)t->nranks, sizeof(*net->class_of));
	net->path = gci_calloc(n * n, sizeof(*net->path));
	if (!net->class_of || !net->path) {
		gci_net_free(net);
		return GCOLL_ERR_NOMEM;
	}
	memcpy(net->class_of, t->cluster, (size_t)t->nranks * sizeof(*net->class_of));
	for (a = 0; a < t->nclusters; a++)
		for (b = 0; b < t->nclusters; b++)
			net->path[a * t->nclusters + b] = path_between(t, a, b);
	return 0;
}

void gci_net_free(struct gci_net *net)
{
	gci_free(net->class_of);
	gci_free(net->path);
	memset(net, 0, sizeof(*net));
}

int gci_net_pools(struct gci_pools *p, const struct gci_net *net)
{
	size_t i, n = (size_t)net->nclasses;
	uint64_t *bps = gci_calloc(n * n, sizeof(*bps));
	struct gci_bandwidths b = {net->nhosts, net->nclasses, net->class_of, bps, 0};
	int rc = GCOLL_ERR_NOMEM;

	if (bps) {
		for (i = 0; i < n * n; i++)
			bps[i] = net->path[i].bps;
		rc = gci_pools_make(p, &b);
	}
	gci_free(bps);
	return rc;
}
