/* SPDX-License-Identifier: MIT */
#include "collectives/models/clusters.h"

#include "base/mem.h"

#include <string.h>

#define SLACK           10 /* percent: noise, as wide as the paper's bands */
#define LATENCY_SLACK   75
#define ALIKE           2                        /* the fastest pair over the slowest */
#define LATENCY_ALIKE   4                        /* the farthest over the nearest */
#define MAX_BPS         (GCI_POOLS_MAX_BPS >> 4) /* any sum of GCI_CLUSTERS_MAX_HOSTS of them fits */
#define LATENCY_INVERSE UINT64_C(1000000000000000)

struct finding {
	const struct gci_measured *m;
	struct gci_clusters *c;
	uint64_t *bps, *near; /* [from * n + to], the worse of both directions; near: or NULL */
	uint64_t *part;       /* the same among the hosts that are being split */
	int *host, *sub;      /* of these hosts; and their parts */
};

/* Of two directions, of which one may not be known. */
static uint64_t known(const uint64_t *v, int n, int a, int b)
{
	return v[a * n + b] ? v[a * n + b] : v[b * n + a];
}

static int check(const struct gci_measured *m, struct gci_error *e)
{
	int a, b;

	if (m->n < 1 || m->n > GCI_CLUSTERS_MAX_HOSTS)
		return gci_error_set(e, GCOLL_ERR_INVAL, "%d hosts, expected 1 to %d", m->n,
			GCI_CLUSTERS_MAX_HOSTS);
	for (a = 0; a < m->n; a++)
		for (b = 0; b < a; b++) {
			if (!known(m->bps, m->n, a, b))
				return gci_error_set(e, GCOLL_ERR_INVAL,
					"no bandwidth between %s and %s was measured", m->hosts[b],
					m->hosts[a]);
			if (m->latency_ns && !known(m->latency_ns, m->n, a, b))
				return gci_error_set(e, GCOLL_ERR_INVAL,
					"no latency between %s and %s was measured", m->hosts[b],
					m->hosts[a]);
		}
	return 0;
}

static uint64_t *bandwidths(const struct gci_measured *m)
{
	uint64_t *v = gci_calloc((size_t)m->n * (size_t)m->n, sizeof(*v));
	int a, b;

	for (a = 0; v && a < m->n; a++)
		for (b = 0; b < m->n; b++) {
			uint64_t bps = known(m->bps, m->n, a, b);

			v[a * m->n + b] = bps < MAX_BPS ? bps : MAX_BPS;
		}
	return v;
}

/* The farther of both ways, upside down: a pool tree of them is one of nearness. */
static uint64_t *nearness(const struct gci_measured *m)
{
	uint64_t *v = gci_calloc((size_t)m->n * (size_t)m->n, sizeof(*v)), there, back;
	int a, b;

	for (a = 0; v && a < m->n; a++)
		for (b = 0; b < m->n; b++) {
			there = known(m->latency_ns, m->n, a, b);
			back = known(m->latency_ns, m->n, b, a);
			if (there < back)
				there = back;
			v[a * m->n + b] = LATENCY_INVERSE / (there ? there : 1);
			if (v[a * m->n + b] > MAX_BPS)
				v[a * m->n + b] = MAX_BPS;
			if (!v[a * m->n + b])
				v[a * m->n + b] = 1;
		}
	return v;
}

int gci_clusters_tree(struct gci_pools *p, const struct gci_measured *m, struct gci_error *e)
{
	struct gci_bandwidths b = {.nhosts = m->n, .nclasses = m->n, .slack = SLACK};
	int rc = check(m, e);
	uint64_t *bps;

	memset(p, 0, sizeof(*p));
	if (rc)
		return rc;
	bps = bandwidths(m);
	b.bps = bps;
	rc = bps ? gci_pools_make(p, &b) : GCOLL_ERR_NOMEM;
	gci_free(bps);
	return rc ? gci_error_set(e, rc, "out of memory") : 0;
}

static int alike(const struct finding *f, const uint64_t *v, int n, uint64_t ratio)
{
	uint64_t least = UINT64_MAX, most = 0;
	int a, b;

	for (a = 0; a < n; a++)
		for (b = 0; b < n; b++) {
			uint64_t x = v[f->host[a] * f->m->n + f->host[b]];

			if (a == b)
				continue;
			least = x < least ? x : least;
			most = x > most ? x : most;
		}
	return !most || most / ratio <= least;
}

/* Puts each of the n hosts into a part: sub[i]. Number of parts, or GCOLL_ERR_NOMEM. */
static int split(struct finding *f, const uint64_t *v, int n, int slack)
{
	struct gci_bandwidths w = {.nhosts = n, .nclasses = n, .bps = f->part, .slack = slack};
	struct gci_pools p;
	int a, b, parts;

	for (a = 0; a < n; a++)
		for (b = 0; b < n; b++)
			f->part[a * n + b] = v[f->host[a] * f->m->n + f->host[b]];
	if (gci_pools_make(&p, &w))
		return GCOLL_ERR_NOMEM;
	parts = gci_pools_cut(&p, 1, f->sub);
	gci_pools_free(&p);
	return parts;
}

/* Splits one cluster: its hosts but those of the first part get new numbers. 1 when it fell apart,
 * 0 when it stays, or GCOLL_ERR_NOMEM. */
static int divide(struct finding *f, int cluster)
{
	int i, n = 0, parts = 1;

	for (i = 0; i < f->m->n; i++)
		if (f->c->cluster_of[i] == cluster)
			f->host[n++] = i;
	if (n < 3 || (f->near ? alike(f, f->near, n, LATENCY_ALIKE) : alike(f, f->bps, n, ALIKE)))
		return 0;
	if (!alike(f, f->bps, n, ALIKE))
		parts = split(f, f->bps, n, SLACK);
	if (parts == 1 && f->near)
		parts = split(f, f->near, n, LATENCY_SLACK);
	if (parts < 2)
		return parts < 0 ? parts : 0;
	for (i = 0; i < n; i++)
		if (f->sub[i])
			f->c->cluster_of[f->host[i]] = f->c->n + f->sub[i] - 1;
	f->c->n += parts - 1;
	return 1;
}

/* Numbers them in the order of their first hosts. */
static void renumber(struct gci_clusters *c, int nhosts, int *number)
{
	int i, n = 0;

	for (i = 0; i < c->n; i++)
		number[i] = -1;
	for (i = 0; i < nhosts; i++) {
		if (number[c->cluster_of[i]] < 0)
			number[c->cluster_of[i]] = n++;
		c->cluster_of[i] = number[c->cluster_of[i]];
	}
}

int gci_clusters_find(struct gci_clusters *c, const struct gci_measured *m, struct gci_error *e)
{
	struct finding f = {.m = m, .c = c};
	int i = 0, rc = check(m, e);
	size_t n = (size_t)m->n;

	memset(c, 0, sizeof(*c));
	if (rc)
		return rc;
	c->n = 1;
	c->cluster_of = gci_calloc(n, sizeof(*c->cluster_of));
	f.bps = bandwidths(m);
	f.near = m->latency_ns ? nearness(m) : NULL;
	f.part = gci_calloc(n * n, sizeof(*f.part));
	f.host = gci_calloc(n, sizeof(*f.host));
	f.sub = gci_calloc(n, sizeof(*f.sub));
	if (!c->cluster_of || !f.bps || (m->latency_ns && !f.near) || !f.part || !f.host || !f.sub)
		rc = GCOLL_ERR_NOMEM;
	while (rc >= 0 && i < c->n) {
		rc = divide(&f, i);
		i += !rc;
	}
	if (!rc)
		renumber(c, m->n, f.sub);
	else
		gci_clusters_free(c);
	gci_free(f.bps);
	gci_free(f.near);
	gci_free(f.part);
	gci_free(f.host);
	gci_free(f.sub);
	return rc ? gci_error_set(e, rc, "out of memory") : 0;
}

void gci_clusters_free(struct gci_clusters *c)
{
	gci_free(c->cluster_of);
	memset(c, 0, sizeof(*c));
}
