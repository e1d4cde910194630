/* SPDX-License-Identifier: MIT */
#include "collectives/grid.h"

#include "base/buf.h"
#include "base/mem.h"

#include <inttypes.h>
#include <string.h>

void gci_grid_free(struct gci_grid *g)
{
	int c, h;

	for (c = 0; c < g->nclusters; c++) {
		for (h = 0; h < g->clusters[c].nhosts; h++)
			gci_free(g->clusters[c].hosts[h]);
		gci_free(g->clusters[c].hosts);
		gci_free(g->clusters[c].name);
	}
	gci_free(g->clusters);
	gci_free(g->links);
	gci_free(g->link_at);
	memset(g, 0, sizeof(*g));
}

static uint64_t scaled(uint64_t v, uint32_t k)
{
	return v > UINT64_MAX / k ? UINT64_MAX : v * k;
}

void gci_grid_dilate(struct gci_grid *g, uint32_t k)
{
	int i;

	if (k <= 1)
		return;
	for (i = 0; i < g->nclusters; i++) {
		g->clusters[i].nic_bps /= k;
		g->clusters[i].lan_delay_ns = scaled(g->clusters[i].lan_delay_ns, k);
	}
	for (i = 0; i < g->nlinks; i++) {
		g->links[i].rate_bps /= k;
		g->links[i].flow_rate_bps /= k;
		g->links[i].delay_ns = scaled(g->links[i].delay_ns, k);
	}
}

const struct gci_link *gci_grid_link(const struct gci_grid *g, int from, int to)
{
	int at = g->link_at ? g->link_at[from * GCI_GRID_MAX_CLUSTERS + to] : 0;

	return at ? &g->links[at - 1] : NULL;
}

int gci_grid_cluster_of(const struct gci_grid *g, int host)
{
	int c = 0;

	while (host >= g->clusters[c].nhosts)
		host -= g->clusters[c++].nhosts;
	return c;
}

const char *gci_grid_host(const struct gci_grid *g, int host)
{
	int c = 0;

	while (host >= g->clusters[c].nhosts)
		host -= g->clusters[c++].nhosts;
	return g->clusters[c].hosts[host];
}

int gci_grid_find_host(const struct gci_grid *g, const char *name)
{
	int c, h, n = 0;

	for (c = 0; c < g->nclusters; c++)
		for (h = 0; h < g->clusters[c].nhosts; h++, n++)
			if (!strcmp(g->clusters[c].hosts[h], name))
				return n;
	return -1;
}

void gci_grid_print(const struct gci_grid *g, struct gci_buf *out)
{
	int i, h;

	for (i = 0; i < g->nclusters; i++) {
		const struct gci_cluster *c = &g->clusters[i];

		gci_buf_printf(out, "[cluster %s]\n", c->name);
		for (h = 0; h < c->nhosts; h++)
			gci_buf_printf(out, "hosts = %s\n", c->hosts[h]);
		if (c->nic_bps)
			gci_buf_printf(out, "nic = %" PRIu64 "bit\n", c->nic_bps);
		if (c->lan_delay_ns)
			gci_buf_printf(out, "lan_delay = %" PRIu64 "ns\n", c->lan_delay_ns);
	}
	for (i = 0; i < g->nlinks; i++) {
		const struct gci_link *l = &g->links[i];

		gci_buf_printf(out, "[link %s > %s]\n", g->clusters[l->from].name,
			g->clusters[l->to].name);
		if (l->rate_bps)
			gci_buf_printf(out, "rate = %" PRIu64 "bit\n", l->rate_bps);
		gci_buf_printf(out, "delay = %" PRIu64 "ns\n", l->delay_ns);
		if (l->queue_nbytes)
			gci_buf_printf(out, "queue = %" PRIu64 "\n", l->queue_nbytes);
		if (l->flow_rate_bps)
			gci_buf_printf(out, "flow_rate = %" PRIu64 "bit\n", l->flow_rate_bps);
		if (l->loss_ppm)
			gci_buf_printf(out, "loss = %u.%04u%%\n", l->loss_ppm / 10000,
				l->loss_ppm % 10000);
		if (l->streams)
			gci_buf_printf(out, "streams = %u\n", l->streams);
		if (l->senders)
			gci_buf_printf(out, "senders = %u\n", l->senders);
	}
}
