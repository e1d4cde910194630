/* SPDX-License-Identifier: MIT
 * What a grid asks of one of its hosts. */
#include "base/mem.h"
#include "tools/doctor.h"

#include <stdio.h>
#include <string.h>

static int add_link(struct gct_needs *n, const struct gci_grid *g, const struct gci_link *l)
{
	const struct gci_link *back = gci_grid_link(g, l->to, l->from);
	const struct gci_cluster *a = &g->clusters[l->from], *b = &g->clusters[l->to];
	struct gct_need *need;

	if (gci_grow(&n->links, &n->cap, n->nlinks + 1, sizeof(*n->links)))
		return GCOLL_ERR_NOMEM;
	need = &n->links[n->nlinks++];
	*need = (struct gct_need){.loss_ppm = l->loss_ppm,
		.sends = n->own_cluster < 0 || l->from == n->own_cluster,
		.receives = n->own_cluster < 0 || l->to == n->own_cluster};
	snprintf(need->name, sizeof(need->name), "%.60s > %.60s", a->name, b->name);
	gci_flight_make(&need->flight, l, back ? back : l, a->nic_bps, b->nic_bps);
	return 0;
}

/* Of a rank in `cluster`, if there is one on every host and all talk to all. */
static uint64_t connections(const struct gci_grid *g, int cluster)
{
	uint64_t n = (uint64_t)g->clusters[cluster].nhosts - 1;
	int c;

	for (c = 0; c < g->nclusters; c++) {
		const struct gci_link *there = gci_grid_link(g, cluster, c);
		const struct gci_link *back = gci_grid_link(g, c, cluster);
		struct gci_flight f;

		if (!there || !back)
			continue;
		gci_flight_make(
			&f, there, back, g->clusters[cluster].nic_bps, g->clusters[c].nic_bps);
		n += (uint64_t)f.streams * (uint64_t)g->clusters[c].nhosts;
	}
	return n;
}

/* A grid may have "k1" or "k1.example.org" for the host that calls itself by the other. */
static int find_host(const struct gci_grid *g, const char *host)
{
	size_t n = strcspn(host, ".");
	int i = gci_grid_find_host(g, host), c, h, at = 0;

	if (i >= 0 || !n)
		return i;
	for (c = 0; c < g->nclusters; c++)
		for (h = 0; h < g->clusters[c].nhosts; h++, at++) {
			const char *name = g->clusters[c].hosts[h];

			if (strcspn(name, ".") == n && !strncmp(name, host, n) &&
				(!host[n] || !name[n]))
				return at;
		}
	return -1;
}

int gct_needs_make(struct gct_needs *n, const struct gci_grid *g, const char *host)
{
	int i, rc = 0, number = host ? find_host(g, host) : -1;

	n->has_grid = 1;
	n->own_cluster = number < 0 ? -1 : gci_grid_cluster_of(g, number);
	if (n->own_cluster >= 0)
		n->nic_bps = g->clusters[n->own_cluster].nic_bps;
	for (i = 0; !rc && i < g->nlinks; i++)
		if (n->own_cluster < 0 || g->links[i].from == n->own_cluster ||
			g->links[i].to == n->own_cluster)
			rc = add_link(n, g, &g->links[i]);
	for (i = 0; i < g->nclusters; i++)
		if (n->own_cluster < 0 || n->own_cluster == i) {
			uint64_t most = connections(g, i);

			n->connections = most > n->connections ? most : n->connections;
		}
	return rc;
}

void gct_needs_free(struct gct_needs *n)
{
	gci_free(n->links);
	memset(n, 0, sizeof(*n));
}
