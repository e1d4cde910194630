/* SPDX-License-Identifier: MIT */
#include "collectives/sim/net.h"

#include "base/clock.h"
#include "base/mem.h"

#include <string.h>

#define UNKNOWN_BPS 1000000000u /* a NIC that neither grid nor measurement tells of */
#define CLOSE       12          /* a part of this is what measurements differ by */
#define MESSAGE_NS  (15 * GCI_NS_PER_US)
#define ACK_PPM     (66 * 1000000 / (4 * 1448)) /* a packet for about four */
#define LOCAL_BPS   UINT64_C(40000000000)

/* TCP over Ethernet: 1448 of 1514 bytes are payload. */
static uint64_t payload(uint64_t bps)
{
	return bps / 1514 * 1448 + bps % 1514 * 1448 / 1514;
}

static const struct gci_params_link *measured(
	const struct gci_params *p, const struct gci_topo *t, int a, int b)
{
	const struct gci_params_link *l;

	if (!p)
		return NULL;
	l = &p->links[t->in_grid[a] * p->nclusters + t->in_grid[b]];
	return l->npoints ? l : NULL;
}

static uint64_t best_rate(const struct gci_params_rate *rates, size_t n)
{
	uint64_t most = 0;
	size_t i;

	for (i = 0; i < n; i++)
		most = rates[i].bps > most ? rates[i].bps : most;
	return most;
}

/* A figure of the grid's is exact where the measurement does not contradict it. */
static uint64_t agreed(uint64_t grid, uint64_t measured)
{
	uint64_t off = grid > measured ? grid - measured : measured - grid;

	return !measured || (grid && off < grid / CLOSE) ? grid : measured;
}

static uint64_t nic_of(const struct gci_simnet *net, int a)
{
	const struct gci_topo *t = net->topo;
	const struct gci_params_link *l = net->links[a * t->nclusters + a].params;
	uint64_t bps = agreed(payload(t->nic_bps[a]), l ? best_rate(l->rates, l->nrates) : 0);

	return bps ? bps : payload(UNKNOWN_BPS);
}

static void fill_link(struct gci_simnet *net, int a, int b, const struct gci_params *p)
{
	const struct gci_topo *t = net->topo;
	const struct gci_link *l = gci_topo_link(t, a, b);
	struct gci_simnet_link *out = &net->links[a * t->nclusters + b];

	out->params = measured(p, t, a, b);
	out->latency_ns = out->params ? out->params->latency_ns : l->delay_ns;
	out->eager_nbytes = a == b ? GCI_LAN_EAGER : GCI_WAN_EAGER;
	out->streams = l->streams;
}

/* The rates of a pair of clusters, when their NICs are known. */
static void fill_rates(struct gci_simnet *net, int a, int b)
{
	const struct gci_topo *t = net->topo;
	const struct gci_link *l = gci_topo_link(t, a, b);
	struct gci_simnet_link *out = &net->links[a * t->nclusters + b];
	const struct gci_params_link *p = out->params;
	uint64_t nic = net->nic_bps[a] < net->nic_bps[b] ? net->nic_bps[a] : net->nic_bps[b];

	out->bps = payload(l->rate_bps);
	if (!out->bps && p)
		out->bps = best_rate(p->senders, p->nsenders);
	out->queue_nbytes = l->queue_nbytes;
	out->pair_bps = payload(l->flow_rate_bps) * out->streams;
	if (p && p->nrates)
		out->pair_bps = agreed(
			out->pair_bps ? out->pair_bps : nic, gci_params_rate(p, out->streams));
	if (out->pair_bps == nic)
		out->pair_bps = 0;
}

void gci_simnet_streams(struct gci_simnet *net, uint32_t streams)
{
	int a, b, n = net->topo->nclusters;

	for (a = 0; a < n; a++)
		for (b = 0; b < n; b++)
			if (a != b && streams) {
				net->links[a * n + b].streams = streams;
				fill_rates(net, a, b);
			}
}

int gci_simnet_init(struct gci_simnet *net, const struct gci_topo *t, const struct gci_params *p)
{
	size_t n = (size_t)t->nclusters;
	int a, b, r;

	memset(net, 0, sizeof(*net));
	net->topo = t;
	net->nic_bps = gci_calloc(n, sizeof(*net->nic_bps));
	net->links = gci_calloc(n * n, sizeof(*net->links));
	net->send_ns = gci_calloc((size_t)t->nranks, sizeof(*net->send_ns));
	if (!net->nic_bps || !net->links || !net->send_ns) {
		gci_simnet_free(net);
		return GCOLL_ERR_NOMEM;
	}
	net->recv_ns = MESSAGE_NS;
	net->local_bps = LOCAL_BPS;
	net->ack_ppm = ACK_PPM;
	for (r = 0; r < t->nranks; r++)
		net->send_ns[r] = t->tini_ns[r] ? t->tini_ns[r] : MESSAGE_NS;
	for (a = 0; a < t->nclusters; a++)
		for (b = 0; b < t->nclusters; b++)
			fill_link(net, a, b, p);
	for (a = 0; a < t->nclusters; a++)
		net->nic_bps[a] = nic_of(net, a);
	for (a = 0; a < t->nclusters; a++)
		for (b = 0; b < t->nclusters; b++)
			if (a != b)
				fill_rates(net, a, b);
	return 0;
}

void gci_simnet_free(struct gci_simnet *net)
{
	gci_free(net->nic_bps);
	gci_free(net->links);
	gci_free(net->send_ns);
	memset(net, 0, sizeof(*net));
}
