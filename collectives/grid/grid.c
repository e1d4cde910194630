/* SPDX-License-Identifier: MIT */
#include "collectives/grid/grid.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "collectives/grid/grid_impl.h"

#include <inttypes.h>
#include <string.h>

#define MOST_HELD_NS (86400 * GCI_NS_PER_S)

void gci_grid_free(struct gci_grid *g)
{
	int c, h;

	for (c = 0; c < g->nclusters; c++) {
		for (h = 0; h < g->clusters[c].nhosts; h++)
			gci_free(g->clusters[c].hosts[h]);
		gci_free(g->clusters[c].hosts);
		gci_free(g->clusters[c].own_tini_ns);
		gci_grid_free_access(&g->clusters[c]);
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

/* A rate; 0 would mean that there is none. */
static uint64_t slowed(uint64_t bps, uint32_t k)
{
	return bps && bps < k ? 1 : bps / k;
}

static void dilate_hosts(struct gci_cluster *c, uint32_t k)
{
	int h;

	c->nic_bps = slowed(c->nic_bps, k);
	c->lan_delay_ns = scaled(c->lan_delay_ns, k);
	c->tini_ns = scaled(c->tini_ns, k);
	for (h = 0; c->own_tini_ns && h < c->nhosts; h++)
		c->own_tini_ns[h] = scaled(c->own_tini_ns[h], k);
}

void gci_grid_dilate(struct gci_grid *g, uint32_t k)
{
	int i;

	if (k <= 1)
		return;
	g->dilation = g->dilation > UINT32_MAX / k ? UINT32_MAX : g->dilation * k;
	for (i = 0; i < g->nclusters; i++)
		dilate_hosts(&g->clusters[i], k);
	for (i = 0; i < g->nlinks; i++) {
		g->links[i].rate_bps = slowed(g->links[i].rate_bps, k);
		g->links[i].flow_rate_bps = slowed(g->links[i].flow_rate_bps, k);
		g->links[i].budget_bps = slowed(g->links[i].budget_bps, k);
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

uint64_t gci_grid_tini_ns(const struct gci_grid *g, int host)
{
	const struct gci_cluster *c = g->clusters;

	while (host >= c->nhosts)
		host -= c++->nhosts;
	return c->own_tini_ns && c->own_tini_ns[host] ? c->own_tini_ns[host] : c->tini_ns;
}

uint64_t gci_grid_held_ns(const struct gci_grid *g)
{
	double most = 0, ns;
	int i;

	for (i = 0; i < g->nlinks; i++) {
		const struct gci_link *l = &g->links[i];

		ns = l->rate_bps ? (double)l->queue_nbytes * 8e9 / (double)l->rate_bps : 0;
		ns += (double)l->delay_ns;
		most = ns > most ? ns : most;
	}
	return 2 * (most < MOST_HELD_NS ? (uint64_t)most : MOST_HELD_NS);
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

static void print_host(const struct gci_cluster *c, int h, int access, struct gci_buf *out)
{
	uint64_t tini_ns = c->own_tini_ns ? c->own_tini_ns[h] : 0;
	const struct gci_access *own = access && c->own_access ? &c->own_access[h] : NULL;

	if (!tini_ns && !(own && (own->interfaces || own->ports.lo)))
		return;
	gci_buf_printf(out, "[host %s]\n", c->hosts[h]);
	if (tini_ns)
		gci_buf_printf(out, "tini = %" PRIu64 "ns\n", tini_ns);
	if (own)
		gci_grid_print_access(own, out);
}

static void print_cluster(const struct gci_cluster *c, int access, struct gci_buf *out)
{
	int h;

	gci_buf_printf(out, "[cluster %s]\n", c->name);
	for (h = 0; h < c->nhosts; h++)
		gci_buf_printf(out, "hosts = %s\n", c->hosts[h]);
	if (c->nic_bps)
		gci_buf_printf(out, "nic = %" PRIu64 "bit\n", c->nic_bps);
	if (c->lan_delay_ns)
		gci_buf_printf(out, "lan_delay = %" PRIu64 "ns\n", c->lan_delay_ns);
	if (c->tini_ns)
		gci_buf_printf(out, "tini = %" PRIu64 "ns\n", c->tini_ns);
	if (access && c->outward)
		gci_buf_printf(out, "inbound = no\n");
	if (access)
		gci_grid_print_access(&c->access, out);
	for (h = 0; h < c->nhosts; h++)
		print_host(c, h, access, out);
}

/* What a link of its own has, and one by way of a third cluster has from others. */
static void print_path(const struct gci_link *l, struct gci_buf *out)
{
	if (l->rate_bps)
		gci_buf_printf(out, "rate = %" PRIu64 "bit\n", l->rate_bps);
	gci_buf_printf(out, "delay = %" PRIu64 "ns\n", l->delay_ns);
	if (l->queue_nbytes)
		gci_buf_printf(out, "queue = %" PRIu64 "\n", l->queue_nbytes);
	if (l->flow_rate_bps)
		gci_buf_printf(out, "flow_rate = %" PRIu64 "bit\n", l->flow_rate_bps);
	if (l->loss_ppm)
		gci_buf_printf(out, "loss = %u.%04u%%\n", l->loss_ppm / 10000, l->loss_ppm % 10000);
}

static void print(const struct gci_grid *g, int access, struct gci_buf *out)
{
	int i;

	if (g->dilation > 1 || g->amended)
		gci_buf_printf(out, "[dilated]\ntimes = %" PRIu32 "\ndigest = %016" PRIx64 "\n",
			g->dilation, g->digest);
	for (i = 0; i < g->nclusters; i++)
		print_cluster(&g->clusters[i], access, out);
	for (i = 0; i < g->nlinks; i++) {
		const struct gci_link *l = &g->links[i];

		gci_buf_printf(out, "[link %s > %s]\n", g->clusters[l->from].name,
			g->clusters[l->to].name);
		if (l->via)
			gci_buf_printf(out, "via = %s\n", g->clusters[l->via - 1].name);
		else
			print_path(l, out);
		if (l->streams)
			gci_buf_printf(out, "streams = %u\n", l->streams);
		if (l->senders)
			gci_buf_printf(out, "senders = %u\n", l->senders);
		if (access && l->budget_bps)
			gci_buf_printf(out, "budget = %" PRIu64 "bit\n", l->budget_bps);
	}
}

void gci_grid_print(const struct gci_grid *g, struct gci_buf *out)
{
	print(g, 1, out);
}

void gci_grid_print_model(const struct gci_grid *g, struct gci_buf *out)
{
	print(g, 0, out);
}
