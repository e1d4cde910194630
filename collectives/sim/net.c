/* SPDX-License-Identifier: MIT */
#include "collectives/sim/net.h"

#include "base/clock.h"
#include "base/mem.h"

#include <string.h>

#define UNKNOWN_BPS 1000000000u /* a NIC that neither grid nor measurement tells of */
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

static uint64_t best_rate(const struct gci_params_link *l)
{
	uint64_t most = 0;
	size_t i;

	for (i = 0; l && i < l->nrates; i++)
		most = l->rates[i].bps > most ? l->rates[i].bps : most;
	return most;
}

static void fill_link(struct gci_simnet *net, int a, int b, const struct gci_params *p)
{
	const struct gci_topo *t = net->topo;
	const struct gci_link *l = gci_topo_link(t, a, b);
	struct gci_simnet_link *out = &net->links[a * t->nclusters + b];

	out->params = measured(p, t, a, b);
	out->latency_ns = out->params ? out->params->latency_ns : l->delay_ns;
	out->eager_nbytes = a == b ? GCI_LAN_EAGER : GCI_WAN_EAGER;
	out->streams = a == b ? 1 : l->streams ? l->streams : GCI_DEFAULT_STREAMS;
	if (a == b)
		return;
	out->bps = payload(l->rate_bps);
	out->queue_nbytes = l->queue_nbytes;
	out->pair_bps = payload(l->flow_rate_bps) * out->streams;
	if (out->params && out->params->nrates)
		out->pair_bps = gci_params_rate(out->params, out->streams);
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
	for (a = 0; a < t->nclusters; a++) {
		for (b = 0; b < t->nclusters; b++)
			fill_link(net, a, b, p);
		net->nic_bps[a] = best_rate(net->links[a * t->nclusters + a].params);
		if (!net->nic_bps[a])
			net->nic_bps[a] = payload(t->nic_bps[a] ? t->nic_bps[a] : UNKNOWN_BPS);
	}
	return 0;
}

void gci_simnet_free(struct gci_simnet *net)
{
	gci_free(net->nic_bps);
	gci_free(net->links);
	gci_free(net->send_ns);
	memset(net, 0, sizeof(*net));
}
