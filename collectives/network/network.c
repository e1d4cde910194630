/* SPDX-License-Identifier: MIT */
#include "collectives/network/network.h"

#include "base/mem.h"

#include <string.h>

/* TCP over Ethernet: 1448 of 1514 bytes are payload. */
#define PAYLOAD      (1448.0 / 1514.0)
#define UNKNOWN_RATE 1250.0 /* 10 Tbit/s: never the bottleneck */
/* Of more, as each of many hosts has another NIC, NICs make none. */
#define MANY_CLASSES (GCI_GRID_MAX_CLUSTERS + 1)

static double rate_of(uint64_t bps)
{
	return bps ? (double)bps / 8e9 * PAYLOAD : UNKNOWN_RATE;
}

static double smaller(double a, double b)
{
	return a < b ? a : b;
}

static int alloc(struct gci_network *n, int nranks, int nclasses, int nlinks, int nroutes)
{
	size_t k = (size_t)nclasses, pairs = k * k, l = (size_t)nlinks;

	memset(n, 0, sizeof(*n));
	n->nranks = nranks;
	n->nclasses = nclasses;
	n->nlinks = nlinks;
	n->class_of = gci_calloc((size_t)nranks, sizeof(*n->class_of));
	n->first = gci_calloc(k + 1, sizeof(*n->first));
	n->member = gci_calloc((size_t)nranks, sizeof(*n->member));
	n->out = gci_calloc(k, sizeof(*n->out));
	n->in = gci_calloc(k, sizeof(*n->in));
	n->link_rate = gci_calloc(l, sizeof(*n->link_rate));
	n->route_at = gci_calloc(pairs + 1, sizeof(*n->route_at));
	n->route = gci_calloc((size_t)nroutes, sizeof(*n->route));
	n->before_ns = gci_calloc((size_t)nroutes, sizeof(*n->before_ns));
	n->delay_ns = gci_calloc(pairs, sizeof(*n->delay_ns));
	n->rate = gci_calloc(pairs, sizeof(*n->rate));
	n->is_barred = gci_calloc(pairs, sizeof(*n->is_barred));
	n->capacity = gci_calloc((size_t)gci_network_nresources(n), sizeof(*n->capacity));
	if (n->class_of && n->first && n->member && n->out && n->in && n->link_rate &&
		n->route_at && n->route && n->before_ns && n->delay_ns && n->rate && n->is_barred &&
		n->capacity)
		return 0;
	gci_network_free(n);
	return GCOLL_ERR_NOMEM;
}

void gci_network_free(struct gci_network *n)
{
	gci_free(n->class_of);
	gci_free(n->first);
	gci_free(n->member);
	gci_free(n->out);
	gci_free(n->in);
	gci_free(n->link_rate);
	gci_free(n->route_at);
	gci_free(n->route);
	gci_free(n->before_ns);
	gci_free(n->delay_ns);
	gci_free(n->rate);
	gci_free(n->is_barred);
	gci_free(n->capacity);
	memset(n, 0, sizeof(*n));
}

int gci_network_way(const struct gci_network *n, int from, int to, int out[GCI_MOST_ON_A_WAY])
{
	int pair = from * n->nclasses + to, i, k = 0;

	out[k++] = gci_nic_out(n, from);
	for (i = n->route_at[pair]; i < n->route_at[pair + 1]; i++)
		out[k++] = 2 * n->nclasses + n->route[i];
	out[k++] = gci_nic_in(n, to);
	return k;
}

double gci_network_before(const struct gci_network *n, int from, int to, int i)
{
	int pair = from * n->nclasses + to, at = n->route_at[pair] + i - 1;

	return !i ? 0 : at < n->route_at[pair + 1] ? n->before_ns[at] : n->delay_ns[pair];
}

/* What follows from NICs, links and routes. */
static void fill_capacities(struct gci_network *n)
{
	int k, l;

	for (k = 0; k < n->nclasses; k++) {
		n->capacity[gci_nic_out(n, k)] = gci_network_size(n, k) * n->out[k];
		n->capacity[gci_nic_in(n, k)] = gci_network_size(n, k) * n->in[k];
	}
	for (l = 0; l < n->nlinks; l++)
		n->capacity[2 * n->nclasses + l] = n->link_rate[l];
}

/* How ranks are told apart. */
struct kinds {
	const struct gci_topo *t;
	int root;  /* -1: none */
	int split; /* by NICs, too */
	/* [rank]: its cluster's senders are capped, and it is none of them */
	unsigned char *is_spare;
};

/* Of the cluster, how many may send where the fewest may, of those to which there is a cap; 0: there is none. */
static int cap_of(const struct gci_topo *t, int c)
{
	int b, cap, least = 0;

	for (b = 0; b < t->nclusters; b++) {
		cap = b == c ? 0 : (int)t->cap[c * t->nclusters + b];
		least = cap && (!least || cap < least) ? cap : least;
	}
	return least;
}

/* Whether x comes before y among those that may send. Of roots with the same NIC as many of each NIC do. */
static int is_before(const struct kinds *k, int x, int y)
{
	uint64_t a = k->t->rank_nic_bps[x], b = k->t->rank_nic_bps[y];

	if (x == k->root || y == k->root)
		return x == k->root;
	return a != b ? a > b : k->t->index[x] < k->t->index[y];
}

static void find_spare(struct kinds *k)
{
	int c, i, j, cap, before;

	for (c = 0; c < k->t->nclusters; c++) {
		const int *m = gci_topo_members(k->t, c);
		int size = gci_topo_size(k->t, c);

		cap = cap_of(k->t, c);
		for (i = 0; cap && i < size; i++) {
			for (before = 0, j = 0; j < size && before < cap; j++)
				before += j != i && is_before(k, m[j], m[i]);
			k->is_spare[m[i]] = before >= cap;
		}
	}
}

static int has_nic_of(const struct kinds *k, int a, int b)
{
	return !k->split || k->t->rank_nic_bps[a] == k->t->rank_nic_bps[b];
}

/* The first of cluster c with each NIC, be it the root; how many, of which the first GCI_NETWORK_MOST_CLASSES are told. */
static int nics_of(const struct kinds *kinds, int c, int *first)
{
	const struct gci_topo *t = kinds->t;
	int i, k, n = 0;

	for (i = t->first[c]; i < t->first[c + 1]; i++) {
		for (k = 0; k < n && !has_nic_of(kinds, first[k], t->member[i]); k++)
			;
		if (k == GCI_NETWORK_MOST_CLASSES)
			return k + 1;
		if (k == n)
			first[n++] = t->member[i];
	}
	return n;
}

/* One that is not the root and may be in such a class; -1: there is none. */
static int one_of(const struct kinds *kinds, int c, int like, int is_spare)
{
	const int *m = gci_topo_members(kinds->t, c);
	int i;

	for (i = 0; i < gci_topo_size(kinds->t, c); i++)
		if (m[i] != kinds->root && kinds->is_spare[m[i]] == is_spare &&
			has_nic_of(kinds, like, m[i]))
			return m[i];
	return -1;
}

/* Classes of the ranks of cluster c, by one of each: by NICs, those that may send before those that may not. So they are
 * the same, of as many hosts each, for all roots with the same NIC. Returns how many there are, of which the first
 * GCI_NETWORK_MOST_CLASSES are told. */
static int classes_of(const struct kinds *kinds, int c, int *of)
{
	int first[GCI_NETWORK_MOST_CLASSES], nnics = nics_of(kinds, c, first), i, one, n = 0;

	if (nnics > GCI_NETWORK_MOST_CLASSES)
		return nnics;
	for (i = 0; i < 2 * nnics; i++) {
		one = one_of(kinds, c, first[i / 2], i % 2);
		if (one >= 0 && n == GCI_NETWORK_MOST_CLASSES)
			return n + 1;
		if (one >= 0)
			of[n++] = one;
	}
	return n;
}

/* Clusters in their order, each as one class or as several; then the root. Returns how many. */
static int count_classes(const struct kinds *k)
{
	int c, n = k->root >= 0, first[GCI_NETWORK_MOST_CLASSES];

	for (c = 0; c < k->t->nclusters; c++)
		n += classes_of(k, c, first);
	return n;
}

static void fill_classes(struct gci_network *n, const struct kinds *kinds)
{
	int c, i, j, k = 0, at = 0, first[GCI_NETWORK_MOST_CLASSES], nfirst;
	const struct gci_topo *t = kinds->t;

	for (c = 0; c < t->nclusters; c++) {
		nfirst = classes_of(kinds, c, first);
		for (j = 0; j < nfirst; j++) {
			n->first[k++] = at;
			for (i = t->first[c]; i < t->first[c + 1]; i++)
				if (t->member[i] != kinds->root &&
					kinds->is_spare[t->member[i]] ==
						kinds->is_spare[first[j]] &&
					has_nic_of(kinds, first[j], t->member[i]))
					n->member[at++] = t->member[i];
			n->first[k] = at;
		}
	}
	if (kinds->root >= 0) {
		n->first[k++] = at;
		n->member[at++] = kinds->root;
		n->first[k] = at;
	}
	for (k = 0; k < n->nclasses; k++)
		for (i = n->first[k]; i < n->first[k + 1]; i++)
			n->class_of[n->member[i]] = k;
}

static void fill_barred(struct gci_network *n, const struct kinds *kinds)
{
	int k = n->nclasses, a, b, nclusters = kinds->t->nclusters;
	const int *cluster = kinds->t->cluster;

	for (a = 0; a < k; a++)
		for (b = 0; b < k; b++) {
			int x = n->member[n->first[a]], y = n->member[n->first[b]];

			n->is_barred[a * k + b] =
				kinds->is_spare[x] && cluster[x] != cluster[y] &&
				kinds->t->cap[cluster[x] * nclusters + cluster[y]];
		}
}

/* Of hosts that differ in one class, the slowest. */
static void fill_nics(struct gci_network *n, const struct gci_topo *t)
{
	int k, i;

	for (k = 0; k < n->nclasses; k++) {
		n->out[k] = UNKNOWN_RATE;
		for (i = n->first[k]; i < n->first[k + 1]; i++)
			n->out[k] = smaller(n->out[k], rate_of(t->rank_nic_bps[n->member[i]]));
		n->in[k] = n->out[k];
	}
}

static int cluster_of(const struct gci_network *n, const struct gci_topo *t, int class)
{
	return t->cluster[n->member[n->first[class]]];
}

/* Where connections carry only so much each, what all pairs of hosts of the two clusters get; 0: no limit. */
static double pairs_rate(const struct gci_topo *t, int a, int b)
{
	const struct gci_link *l = gci_topo_link(t, a, b);

	return a == b || !l->flow_rate_bps ? 0
					   : rate_of(l->flow_rate_bps) * l->streams *
						     gci_topo_size(t, a) * gci_topo_size(t, b);
}

/* The way from class a to class b, as far as it is outside of a cluster. */
static void fill_route(
	struct gci_network *n, const struct gci_topo *t, const int *pairs, int a, int b, int *at)
{
	int from = cluster_of(n, t, a), to = cluster_of(n, t, b), pair = a * n->nclasses + b, i, k;
	const struct gci_link *l = gci_topo_link(t, from, to);
	double before = 0;
	const int *wires;

	n->route_at[pair] = *at;
	n->delay_ns[pair] = (double)l->delay_ns;
	n->rate[pair] = smaller(n->out[a], n->in[b]);
	k = gci_topo_route(t, from, to, &wires);
	for (i = 0; i < k; i++) {
		n->before_ns[*at] = smaller(before, n->delay_ns[pair]);
		before += (double)t->wires[wires[i]].delay_ns;
		n->route[(*at)++] = wires[i];
	}
	if (pairs_rate(t, from, to) > 0) {
		n->before_ns[*at] = n->delay_ns[pair];
		n->route[(*at)++] = pairs[from * t->nclusters + to];
		n->rate[pair] = smaller(n->rate[pair], rate_of(l->flow_rate_bps) * l->streams);
	}
	for (i = n->route_at[pair]; i < *at; i++)
		n->rate[pair] = smaller(n->rate[pair], n->link_rate[n->route[i]]);
	n->route_at[pair + 1] = *at;
}

/* Behind the wires, the pairs of clusters whose connections are limited; returns how many links that are. */
static int number_pairs(const struct gci_topo *t, int *pairs)
{
	int a, b, n = t->nwires;

	for (a = 0; a < t->nclusters; a++)
		for (b = 0; b < t->nclusters; b++)
			if (pairs_rate(t, a, b) > 0)
				pairs[a * t->nclusters + b] = n++;
	return n;
}

static void fill_links(struct gci_network *n, const struct gci_topo *t, const int *pairs)
{
	int a, b, i;

	for (i = 0; i < t->nwires; i++)
		n->link_rate[i] = rate_of(t->wires[i].rate_bps);
	for (a = 0; a < t->nclusters; a++)
		for (b = 0; b < t->nclusters; b++)
			if (pairs_rate(t, a, b) > 0)
				n->link_rate[pairs[a * t->nclusters + b]] = pairs_rate(t, a, b);
}

/* The most that a way between classes passes. */
static int longest_route(const struct gci_topo *t)
{
	int i, n = 0;

	for (i = 0; i < t->nclusters * t->nclusters; i++)
		n = t->links[i].nroute > n ? t->links[i].nroute : n;
	return n + 1;
}

static int fill(
	struct gci_network *n, const struct kinds *kinds, int k, int nlinks, const int *pairs)
{
	const struct gci_topo *t = kinds->t;
	int a, b, at = 0;

	if (alloc(n, t->nranks, k, nlinks, k * k * longest_route(t)))
		return GCOLL_ERR_NOMEM;
	n->is_coarse = !kinds->split;
	fill_classes(n, kinds);
	fill_barred(n, kinds);
	fill_links(n, t, pairs);
	fill_nics(n, t);
	for (a = 0; a < k; a++)
		for (b = 0; b < k; b++)
			fill_route(n, t, pairs, a, b, &at);
	fill_capacities(n);
	return 0;
}

int gci_network_of(struct gci_network *n, const struct gci_topo *t, int root, int capped)
{
	struct kinds kinds = {.t = t, .root = root, .split = 1};
	int *pairs = gci_calloc((size_t)(t->nclusters * t->nclusters), sizeof(*pairs));
	int k, nlinks, rc = GCOLL_ERR_NOMEM;

	memset(n, 0, sizeof(*n));
	kinds.is_spare = gci_calloc((size_t)t->nranks, sizeof(*kinds.is_spare));
	if (pairs && kinds.is_spare) {
		nlinks = number_pairs(t, pairs);
		if (capped)
			find_spare(&kinds);
		k = count_classes(&kinds);
		if (k > MANY_CLASSES) {
			kinds.split = 0;
			k = count_classes(&kinds);
		}
		rc = fill(n, &kinds, k, nlinks, pairs);
	}
	gci_free(pairs);
	gci_free(kinds.is_spare);
	return rc;
}

int gci_network_reverse(struct gci_network *back, const struct gci_network *n)
{
	int k = n->nclasses, a, b, i, at = 0;

	if (alloc(back, n->nranks, k, n->nlinks, n->route_at[k * k]))
		return GCOLL_ERR_NOMEM;
	back->is_coarse = n->is_coarse;
	memcpy(back->class_of, n->class_of, (size_t)n->nranks * sizeof(*n->class_of));
	memcpy(back->first, n->first, ((size_t)k + 1) * sizeof(*n->first));
	memcpy(back->member, n->member, (size_t)n->nranks * sizeof(*n->member));
	memcpy(back->out, n->in, (size_t)k * sizeof(*n->in));
	memcpy(back->in, n->out, (size_t)k * sizeof(*n->out));
	memcpy(back->link_rate, n->link_rate, (size_t)n->nlinks * sizeof(*n->link_rate));
	for (a = 0; a < k; a++)
		for (b = 0; b < k; b++) {
			int there = b * k + a, pair = a * k + b;

			back->route_at[pair] = at;
			for (i = n->route_at[there + 1]; i-- > n->route_at[there];) {
				back->before_ns[at] = n->delay_ns[there] - n->before_ns[i];
				back->route[at++] = n->route[i];
			}
			back->route_at[pair + 1] = at;
			back->delay_ns[pair] = n->delay_ns[there];
			back->rate[pair] = n->rate[there];
			back->is_barred[pair] = n->is_barred[there];
		}
	fill_capacities(back);
	return 0;
}

void gci_network_distances(const struct gci_network *n, double *d)
{
	int k = n->nclasses, a, b, v;

	for (a = 0; a < k; a++)
		for (b = 0; b < k; b++)
			d[a * k + b] = a == b ? 0 : n->delay_ns[a * k + b];
	for (v = 0; v < k; v++)
		for (a = 0; a < k; a++)
			for (b = 0; b < k; b++)
				d[a * k + b] = smaller(d[a * k + b], d[a * k + v] + d[v * k + b]);
}
