/* SPDX-License-Identifier: MIT */
#include "collectives/grid/topo.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/prng.h"

#include <string.h>

void gci_topo_free(struct gci_topo *t)
{
	gci_free(t->cluster);
	gci_free(t->index);
	gci_free(t->first);
	gci_free(t->member);
	gci_free(t->nic_bps);
	gci_free(t->rank_nic_bps);
	gci_free(t->in_grid);
	gci_free(t->tini_ns);
	gci_free(t->links);
	gci_free(t->share);
	gci_free(t->cap);
	gci_free(t->wires);
	gci_free(t->routes);
	memset(t, 0, sizeof(*t));
}

static int host_of(const int *host, int rank)
{
	return host ? host[rank] : rank;
}

/* number[grid cluster] = cluster of the topology, or -1; returns how many there are. */
static int number_clusters(const struct gci_grid *g, const int *host, int nranks, int *number)
{
	int c, r, n = 0;

	for (c = 0; c < g->nclusters; c++)
		number[c] = -1;
	for (r = 0; r < nranks; r++)
		number[gci_grid_cluster_of(g, host_of(host, r))] = 0;
	for (c = 0; c < g->nclusters; c++)
		if (!number[c])
			number[c] = n++;
	return n;
}

static int allocate(struct gci_topo *t, int nranks, int nclusters)
{
	size_t n = (size_t)nranks, c = (size_t)nclusters;

	t->nranks = nranks;
	t->nclusters = nclusters;
	t->cluster = gci_calloc(n, sizeof(int));
	t->index = gci_calloc(n, sizeof(int));
	t->first = gci_calloc(c + 1, sizeof(int));
	t->member = gci_calloc(n, sizeof(int));
	t->nic_bps = gci_calloc(c, sizeof(*t->nic_bps));
	t->rank_nic_bps = gci_calloc(n, sizeof(*t->rank_nic_bps));
	t->in_grid = gci_calloc(c, sizeof(*t->in_grid));
	t->tini_ns = gci_calloc(n, sizeof(*t->tini_ns));
	t->links = gci_calloc(c * c, sizeof(*t->links));
	t->share = gci_calloc(c * c, sizeof(*t->share));
	t->cap = gci_calloc(c * c, sizeof(*t->cap));
	return t->cluster && t->index && t->first && t->member && t->nic_bps && t->rank_nic_bps &&
			       t->in_grid && t->tini_ns && t->links && t->share && t->cap
		       ? 0
		       : -1;
}

/* The most ranks that share a host; 0: out of memory. */
static int most_on_a_host(const struct gci_grid *g, const int *host, int nranks)
{
	int *n = gci_calloc((size_t)g->nhosts, sizeof(*n));
	int r, most = 0;

	for (r = 0; n && r < nranks; r++)
		if (++n[host_of(host, r)] > most)
			most = n[host_of(host, r)];
	gci_free(n);
	return most;
}

/* From each rank's cluster. */
static void fill_members(struct gci_topo *t)
{
	int r, c;

	for (r = 0; r < t->nranks; r++)
		t->index[r] = t->first[t->cluster[r] + 1]++;
	for (c = 0; c < t->nclusters; c++)
		t->first[c + 1] += t->first[c];
	for (r = 0; r < t->nranks; r++) {
		c = t->cluster[r];
		t->member[t->first[c] + t->index[r]] = r;
	}
}

void gci_topo_flight(
	const struct gci_topo *t, int from, int to, uint32_t streams, struct gci_flight *f)
{
	struct gci_link there = *gci_topo_link(t, from, to), back = *gci_topo_link(t, to, from);

	if (from == to) {
		gci_flight_inside(f, t->nic_bps[from], there.delay_ns);
		return;
	}
	if (streams)
		there.streams = back.streams = streams;
	gci_flight_make(f, &there, &back, t->nic_bps[from], t->nic_bps[to]);
}

static void fill_streams(struct gci_topo *t)
{
	int a, b, n = t->nclusters;

	for (a = 0; a < n; a++)
		for (b = 0; b <= a; b++) {
			struct gci_flight f;

			gci_topo_flight(t, a, b, 0, &f);
			t->links[a * n + b].streams = t->links[b * n + a].streams = f.streams;
		}
}

/* From where a topology takes its links' routes. */
struct routing {
	const struct gci_link *wires;
	const int *routes;
	int *number; /* [wire]: 1 + what it is here; 0: not taken */
	size_t wires_cap, routes_cap;
	int nroutes;
};

static int pass(struct gci_topo *t, struct routing *r, struct gci_link *mine, int wire)
{
	if (gci_grow(&t->routes, &r->routes_cap, (size_t)r->nroutes + 1, sizeof(*t->routes)))
		return GCOLL_ERR_NOMEM;
	t->routes[r->nroutes++] = wire;
	mine->nroute++;
	return 0;
}

static int add_wire(struct gci_topo *t, struct routing *r, const struct gci_link *wire)
{
	if (gci_grow(&t->wires, &r->wires_cap, (size_t)t->nwires + 1, sizeof(*t->wires)))
		return GCOLL_ERR_NOMEM;
	t->wires[t->nwires++] = *wire;
	return 0;
}

/* `mine` is `l` in a topology of other numbers. */
static int take_route(
	struct gci_topo *t, struct routing *r, struct gci_link *mine, const struct gci_link *l)
{
	int i, rc = 0;

	mine->route = r->nroutes;
	mine->nroute = 0;
	for (i = 0; !rc && i < l->nroute; i++) {
		int wire = r->routes[l->route + i];

		if (!r->number[wire]) {
			rc = add_wire(t, r, &r->wires[wire]);
			r->number[wire] = t->nwires;
		}
		if (l->own == wire + 1)
			mine->own = r->number[wire];
		rc = rc ? rc : pass(t, r, mine, r->number[wire] - 1);
	}
	return rc;
}

/* Who may not use more has no more. */
static int keep_budget(struct gci_topo *t, struct routing *r, struct gci_link *mine)
{
	if (!mine->budget_bps || (mine->rate_bps && mine->budget_bps >= mine->rate_bps))
		return 0;
	mine->rate_bps = mine->budget_bps;
	if (add_wire(t, r, &(struct gci_link){.rate_bps = mine->budget_bps}))
		return GCOLL_ERR_NOMEM;
	return pass(t, r, mine, t->nwires - 1);
}

static int fill_links(struct gci_topo *t, const struct gci_grid *g, const int *number)
{
	struct routing r = {.wires = g->wires, .routes = g->routes};
	int a, b, rc = 0;

	r.number = gci_calloc((size_t)g->nwires, sizeof(*r.number));
	if (!r.number)
		return GCOLL_ERR_NOMEM;
	for (a = 0; a < g->nclusters; a++) {
		if (number[a] < 0)
			continue;
		t->nic_bps[number[a]] = g->clusters[a].nic_bps;
		t->in_grid[number[a]] = a;
		for (b = 0; !rc && b < g->nclusters; b++) {
			const struct gci_link *l = gci_grid_link(g, a, b);
			struct gci_link *mine = &t->links[number[a] * t->nclusters + number[b]];

			if (number[b] < 0)
				continue;
			if (l) {
				*mine = *l;
				rc = take_route(t, &r, mine, l);
				rc = rc ? rc : keep_budget(t, &r, mine);
			} else {
				mine->delay_ns = g->clusters[a].lan_delay_ns;
			}
			mine->from = number[a];
			mine->to = number[b];
		}
	}
	gci_free(r.number);
	if (!rc)
		fill_streams(t);
	return rc;
}

/* Senders that one of `pairs` pairs has on a link they share; `most` if that is unknown. */
static uint64_t share_of(
	const struct gci_link *l, uint32_t senders, uint64_t nic_bps, int pairs, uint64_t most)
{
	uint64_t n = most;

	if (senders)
		n = senders / (unsigned)pairs;
	else if (l->rate_bps && nic_bps)
		n = l->rate_bps / (unsigned)pairs / nic_bps;
	return n > most ? most : n ? n : 1;
}

/* What was measured between two clusters is with their link. */
static uint32_t senders_of(const struct gci_grid *g, const struct gci_link *w)
{
	int both = w->from >= 0 && w->from < GCI_GRID_MAX_CLUSTERS && w->to >= 0 &&
		   w->to < GCI_GRID_MAX_CLUSTERS;

	return both ? gci_grid_link(g, w->from, w->to)->senders : w->senders;
}

/* Senders from `a` to `b` where the path shares wires with others; 0 where it does not, or where
 * the file tells their number for the pair itself. */
static uint64_t shared_senders(const struct gci_grid *g, const int *pairs, const struct gci_link *l)
{
	uint64_t least = GCI_GRID_MAX_HOSTS;
	int k, shared = l->nroute > 1;

	if (!l->own && l->senders)
		return 0;
	for (k = 0; k < l->nroute; k++) {
		int wire = g->routes[l->route + k];

		shared |= pairs[wire] > 1;
		least = share_of(&g->wires[wire], senders_of(g, &g->wires[wire]),
			g->clusters[l->from].nic_bps, pairs[wire], least);
	}
	return shared && least < GCI_GRID_MAX_HOSTS ? least : 0;
}

/* How many the file allows, of each wire on the way to all pairs that pass it together; 0: any number. */
static uint32_t cap_of(const struct gci_grid *g, const int *pairs, const struct gci_link *l)
{
	uint32_t least = 0, n;
	int k;

	if (!l->own && l->senders)
		return l->senders;
	for (k = 0; k < l->nroute; k++) {
		int wire = g->routes[l->route + k];
		uint32_t all = senders_of(g, &g->wires[wire]);

		n = all < (unsigned)pairs[wire] ? 1 : all / (unsigned)pairs[wire];
		if (all && (!least || n < least))
			least = n;
	}
	return least;
}

/* All pairs of clusters that pass a wire may be busy at once, as in an allreduce, so each counts on its share
 * only. What it passes on the way may have no ranks. */
static int fill_shares(struct gci_topo *t, const struct gci_grid *g, const int *number)
{
	int *pairs = gci_calloc((size_t)g->nwires, sizeof(*pairs));
	int i, k;

	if (!pairs)
		return GCOLL_ERR_NOMEM;
	for (i = 0; i < g->nlinks; i++) {
		const struct gci_link *l = &g->links[i];

		if (number[l->from] < 0 || number[l->to] < 0)
			continue;
		for (k = 0; k < l->nroute; k++)
			pairs[g->routes[l->route + k]]++;
	}
	for (i = 0; i < g->nlinks; i++) {
		int from = number[g->links[i].from], to = number[g->links[i].to];

		if (from < 0 || to < 0)
			continue;
		t->share[from * t->nclusters + to] =
			(uint32_t)shared_senders(g, pairs, &g->links[i]);
		t->cap[from * t->nclusters + to] = cap_of(g, pairs, &g->links[i]);
	}
	gci_free(pairs);
	return 0;
}

int gci_topo_create(struct gci_topo *t, const struct gci_grid *g, const int *host, int nranks)
{
	int *number = gci_calloc((size_t)g->nclusters, sizeof(*number));
	int r, rc = GCOLL_ERR_NOMEM;

	memset(t, 0, sizeof(*t));
	if (!number)
		return rc;
	if (allocate(t, nranks, number_clusters(g, host, nranks, number)))
		goto out;
	t->per_host = most_on_a_host(g, host, nranks);
	if (!t->per_host)
		goto out;
	for (r = 0; r < nranks; r++) {
		t->cluster[r] = number[gci_grid_cluster_of(g, host_of(host, r))];
		t->tini_ns[r] = gci_grid_tini_ns(g, host_of(host, r));
		t->rank_nic_bps[r] = gci_grid_nic_bps(g, host_of(host, r));
	}
	fill_members(t);
	rc = fill_links(t, g, number);
	rc = rc ? rc : fill_shares(t, g, number);
out:
	gci_free(number);
	if (rc)
		gci_topo_free(t);
	return rc;
}

int gci_topo_parse(
	struct gci_topo *t, const char *text, size_t len, const char *name, struct gci_error *e)
{
	struct gci_grid g;
	int rc = gci_grid_parse(&g, text, len, name, e);

	memset(t, 0, sizeof(*t));
	if (rc)
		return rc;
	if (gci_topo_create(t, &g, NULL, g.nhosts))
		rc = gci_error_set(e, GCOLL_ERR_NOMEM, "%s: out of memory", name);
	gci_grid_free(&g);
	return rc;
}

static int fill_sub_links(struct gci_topo *sub, const struct gci_topo *t, const int *number)
{
	struct routing r = {.wires = t->wires, .routes = t->routes};
	int a, b, rc = 0;

	r.number = gci_calloc((size_t)t->nwires, sizeof(*r.number));
	if (!r.number)
		return GCOLL_ERR_NOMEM;
	for (a = 0; a < t->nclusters; a++) {
		if (number[a] < 0)
			continue;
		sub->nic_bps[number[a]] = t->nic_bps[a];
		sub->in_grid[number[a]] = t->in_grid[a];
		for (b = 0; !rc && b < t->nclusters; b++) {
			struct gci_link *mine = &sub->links[number[a] * sub->nclusters + number[b]];

			if (number[b] < 0)
				continue;
			*mine = *gci_topo_link(t, a, b);
			mine->from = number[a];
			mine->to = number[b];
			rc = take_route(sub, &r, mine, gci_topo_link(t, a, b));
			/* The others may be busy at the same time, in communicators of their own.
			 */
			sub->share[mine - sub->links] = t->share[a * t->nclusters + b];
		}
	}
	gci_free(r.number);
	return rc;
}

int gci_topo_sub(struct gci_topo *sub, const struct gci_topo *t, const int *ranks, int n)
{
	int *number = gci_calloc((size_t)t->nclusters, sizeof(*number));
	int i, c, nclusters = 0, rc = GCOLL_ERR_NOMEM;

	memset(sub, 0, sizeof(*sub));
	if (!number)
		return rc;
	for (i = 0; i < n; i++)
		number[t->cluster[ranks[i]]] = 1;
	for (c = 0; c < t->nclusters; c++)
		number[c] = number[c] ? nclusters++ : -1;
	if (allocate(sub, n, nclusters))
		goto out;
	sub->per_host = t->per_host; /* the others may be busy at the same time */
	sub->one_host = t->one_host;
	for (i = 0; i < n; i++) {
		sub->cluster[i] = number[t->cluster[ranks[i]]];
		sub->tini_ns[i] = t->tini_ns[ranks[i]];
		sub->rank_nic_bps[i] = t->rank_nic_bps[ranks[i]];
	}
	fill_members(sub);
	rc = fill_sub_links(sub, t, number);
out:
	gci_free(number);
	if (rc)
		gci_topo_free(sub);
	return rc;
}

/* What one rank puts into a link: its NIC's rate, or what its connections to one other carry. */
static uint64_t sender_bps(const struct gci_topo *t, const struct gci_link *l, int from)
{
	uint64_t flows = l->flow_rate_bps * l->streams, nic = t->nic_bps[from];

	return flows && flows < nic ? flows : nic;
}

int gci_topo_senders(const struct gci_topo *t, int from, int to)
{
	const struct gci_link *l = gci_topo_link(t, from, to);
	int a = gci_topo_size(t, from), b = gci_topo_size(t, to);
	uint64_t most = (uint64_t)(a < b ? a : b), n = most;

	if (t->share[from * t->nclusters + to])
		n = t->share[from * t->nclusters + to];
	else if (l->senders)
		n = l->senders;
	else if (l->rate_bps && t->nic_bps[from])
		n = l->rate_bps / sender_bps(t, l, from);
	if (l->budget_bps && t->nic_bps[from] && l->budget_bps / sender_bps(t, l, from) < n)
		n = l->budget_bps / sender_bps(t, l, from);
	if (n > most)
		n = most;
	return n ? (int)n : 1;
}

#define ASSUMED_NIC_BPS 1000000000ull
#define LOOPBACK_BPS    10000000000ull /* of one of a few pairs of ranks at a time */

uint64_t gci_nic_bps(const struct gci_topo *t, int cluster)
{
	if (t->nic_bps[cluster])
		return t->nic_bps[cluster];
	return t->one_host ? LOOPBACK_BPS : ASSUMED_NIC_BPS;
}

uint64_t gci_pair_bps(const struct gci_topo *t, int from, int to)
{
	const struct gci_link *l = gci_topo_link(t, from, to);
	uint64_t a = gci_nic_bps(t, from), b = gci_nic_bps(t, to), least = a < b ? a : b;
	uint64_t flows = l->flow_rate_bps * l->streams;

	if (l->rate_bps && l->rate_bps < least)
		least = l->rate_bps;
	return flows && flows < least ? flows : least;
}

uint64_t gci_transfer_ns(uint64_t nbytes, uint64_t bps)
{
	unsigned __int128 ns = (unsigned __int128)nbytes * 8 * GCI_NS_PER_S / bps;

	return ns < UINT64_MAX ? (uint64_t)ns : UINT64_MAX;
}

static uint64_t digest_routes(const struct gci_topo *t, uint64_t d)
{
	int i, k;

	for (i = 0; i < t->nclusters * t->nclusters; i++) {
		d = gci_digest(d, (uint64_t)t->links[i].nroute);
		for (k = 0; k < t->links[i].nroute; k++)
			d = gci_digest(d, (uint64_t)t->routes[t->links[i].route + k]);
	}
	for (i = 0; i < t->nwires; i++) {
		d = gci_digest(d, t->wires[i].rate_bps);
		d = gci_digest(d, t->wires[i].delay_ns);
	}
	return d;
}

uint64_t gci_topo_digest(const struct gci_topo *t)
{
	uint64_t d = gci_digest((uint64_t)t->nranks, (uint64_t)t->nclusters);
	int i;

	d = gci_digest(d, (uint64_t)t->per_host << 1 | (uint64_t)t->one_host);
	for (i = 0; i < t->nranks; i++) {
		d = gci_digest(d, (uint64_t)t->cluster[i]);
		d = gci_digest(d, t->tini_ns[i]);
		d = gci_digest(d, t->rank_nic_bps[i]);
	}
	for (i = 0; i < t->nclusters; i++)
		d = gci_digest(d, t->nic_bps[i]);
	for (i = 0; i < t->nclusters * t->nclusters; i++) {
		const struct gci_link *l = &t->links[i];

		d = gci_digest(d, l->rate_bps);
		d = gci_digest(d, l->delay_ns);
		d = gci_digest(d, l->flow_rate_bps);
		d = gci_digest(d, (uint64_t)l->senders << 32 | l->streams);
		d = gci_digest(d, t->share[i]);
	}
	return digest_routes(t, d);
}
