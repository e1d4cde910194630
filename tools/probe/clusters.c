/* SPDX-License-Identifier: MIT */
#include "tools/probe/clusters.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- A grid file of what was measured. It is made as text and parsed, so that it is one. */

/* "link NAME > NAME" has to fit in what a section's name may be. */
#define MOST_NAME 16

struct writing {
	const struct gci_clusters *c;
	const struct gci_measured *m;
	char (*name)[MOST_NAME + 8]; /* [cluster] */
	uint64_t *v;                 /* room for n * n values */
	struct gci_buf text;
};

static int compare_values(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static uint64_t median(uint64_t *v, size_t n)
{
	qsort(v, n, sizeof(*v), compare_values);
	return n ? v[n / 2] : 0;
}

static int is_free(const struct writing *w, int clusters, const char *name)
{
	int i;

	for (i = 0; i < clusters; i++)
		if (!strcmp(w->name[i], name))
			return 0;
	return 1;
}

/* What all names of the cluster's hosts begin with, up to the number. */
static void name_cluster(struct writing *w, int cluster)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	const char *first = NULL;
	char name[MOST_NAME + 1];
	size_t len = 0, same;
	int i;

	for (i = 0; i < w->m->n; i++) {
		if (w->c->cluster_of[i] != cluster)
			continue;
		if (!first) {
			first = w->m->hosts[i];
			len = strcspn(first, "0123456789-_.");
		}
		for (same = 0; same < len && w->m->hosts[i][same] == first[same]; same++)
			;
		len = same;
	}
	if (len > MOST_NAME)
		len = 0;
	memcpy(name, first ? first : "", len);
	name[len] = '\0';
	if (len && strspn(name, letters) == len && is_free(w, cluster, name))
		memcpy(w->name[cluster], name, len + 1);
	else
		snprintf(w->name[cluster], sizeof(*w->name), "c%d", cluster + 1);
}

/* Of two directions, of which one may not be known. */
static uint64_t known(const uint64_t *v, int n, int a, int b)
{
	return v[a * n + b] ? v[a * n + b] : v[b * n + a];
}

/* The rate on the wire of a payload rate. */
static uint64_t wire_bps(uint64_t bps)
{
	return (uint64_t)((unsigned __int128)bps * 1514 / 1448);
}

static uint64_t nic_bps(struct writing *w, int cluster)
{
	const struct gci_measured *m = w->m;
	size_t n = 0;
	int a, b;

	for (a = 0; a < m->n; a++) {
		uint64_t best = 0;

		for (b = 0; b < m->n; b++)
			if (a != b && known(m->bps, m->n, a, b) > best)
				best = known(m->bps, m->n, a, b);
		if (w->c->cluster_of[a] == cluster)
			w->v[n++] = best;
	}
	return wire_bps(median(w->v, n));
}

static uint64_t delay_ns(struct writing *w, int from, int to)
{
	const struct gci_measured *m = w->m;
	size_t n = 0;
	int a, b;

	for (a = 0; m->latency_ns && a < m->n; a++)
		for (b = 0; b < m->n; b++)
			if (a != b && w->c->cluster_of[a] == from && w->c->cluster_of[b] == to)
				w->v[n++] = known(m->latency_ns, m->n, a, b);
	return median(w->v, n);
}

static uint64_t link_bps(const struct writing *w, int from, int to)
{
	const struct gci_measured *m = w->m;
	uint64_t best = 0;
	int a, b;

	for (a = 0; a < m->n; a++)
		for (b = 0; b < m->n; b++)
			if (w->c->cluster_of[a] == from && w->c->cluster_of[b] == to &&
				known(m->bps, m->n, a, b) > best)
				best = known(m->bps, m->n, a, b);
	return wire_bps(best);
}

static void print_cluster(struct writing *w, int cluster)
{
	uint64_t nic = nic_bps(w, cluster), lan = delay_ns(w, cluster, cluster);
	int i;

	gci_buf_printf(&w->text, "[cluster %s]\n", w->name[cluster]);
	for (i = 0; i < w->m->n; i++)
		if (w->c->cluster_of[i] == cluster)
			gci_buf_printf(&w->text, "hosts = %s\n", w->m->hosts[i]);
	if (nic)
		gci_buf_printf(&w->text, "nic = %" PRIu64 "bit\n", nic);
	if (lan)
		gci_buf_printf(&w->text, "lan_delay = %" PRIu64 "ns\n", lan);
}

static void print_link(struct writing *w, int from, int to)
{
	uint64_t delay = delay_ns(w, from, to);

	gci_buf_printf(&w->text, "[link %s > %s]\nrate = %" PRIu64 "bit\n", w->name[from],
		w->name[to], link_bps(w, from, to));
	if (delay)
		gci_buf_printf(&w->text, "delay = %" PRIu64 "ns\n", delay);
}

static int print_grid(struct writing *w)
{
	int a, b;

	for (a = 0; a < w->c->n; a++)
		name_cluster(w, a);
	for (a = 0; a < w->c->n; a++)
		print_cluster(w, a);
	for (a = 0; a < w->c->n; a++)
		for (b = 0; b < w->c->n; b++)
			if (a != b)
				print_link(w, a, b);
	return w->text.failed ? GCOLL_ERR_NOMEM : 0;
}

int gci_clusters_grid(const struct gci_clusters *c, const struct gci_measured *m, const char *name,
	struct gci_grid *g, struct gci_error *e)
{
	struct writing w = {.c = c, .m = m};
	int rc = GCOLL_ERR_NOMEM;

	memset(g, 0, sizeof(*g));
	w.name = gci_calloc((size_t)c->n, sizeof(*w.name));
	w.v = gci_calloc((size_t)m->n * (size_t)m->n, sizeof(*w.v));
	if (w.name && w.v)
		rc = print_grid(&w);
	if (rc)
		gci_error_set(e, rc, "out of memory");
	else
		rc = gci_grid_parse(g, (const char *)w.text.data, w.text.len, name, e);
	/* A name like "a b" or "a[1-3]" is several. */
	if (!rc && g->nhosts != m->n) {
		rc = gci_error_set(e, GCOLL_ERR_PARSE,
			"%s: %d hosts, expected %d: a name stands for several", name, g->nhosts,
			m->n);
		gci_grid_free(g);
	}
	gci_free(w.name);
	gci_free(w.v);
	gci_buf_free(&w.text);
	return rc;
}

/* ---- What was found, for people: as text, beside a grid file, and as one. */

#define MOST_NAMES 12 /* in a line */

static void print_name(struct gci_buf *out, int i, const char *name)
{
	if (i < MOST_NAMES)
		gci_buf_printf(out, "%s%s", i ? ", " : "", name);
}

static void print_rest(struct gci_buf *out, int n)
{
	if (n > MOST_NAMES)
		gci_buf_printf(out, " and %d more", n - MOST_NAMES);
}

void gci_clusters_print_tree(
	const struct gci_pools *p, const struct gci_measured *m, struct gci_buf *out)
{
	char rate[16];
	int i, h;

	for (i = 0; i < p->n; i++) {
		const struct gci_pool *pool = &p->pool[i];

		gci_buf_printf(out, "pool %d", i + 1);
		if (pool->parent >= 0)
			gci_buf_printf(out, " of pool %d", pool->parent + 1);
		if (pool->threshold_bps)
			gci_buf_printf(out, ", together at %s",
				gci_format_rate(pool->threshold_bps, rate, sizeof(rate)));
		gci_buf_printf(out, ": ");
		for (h = 0; h < pool->n; h++)
			print_name(out, h, m->hosts[p->host[pool->first + h]]);
		print_rest(out, pool->n);
		gci_buf_printf(out, "\n");
	}
}

/* ---- beside a grid file */

struct comparison {
	const struct gci_clusters *c;
	const struct gci_measured *m;
	const struct gci_grid *g;
	int *given;  /* [host]: its cluster in the grid, or the grid's nclusters */
	int *common; /* [found * (nclusters + 1) + given]: hosts */
	int *match;  /* [found]: the grid's cluster, or -1 */
};

static int *common(const struct comparison *w, int found, int given)
{
	return &w->common[found * (w->g->nclusters + 1) + given];
}

static void count(const struct comparison *w)
{
	int i, host;

	for (i = 0; i < w->m->n; i++) {
		host = gci_grid_find_host(w->g, w->m->hosts[i]);
		w->given[i] = host < 0 ? w->g->nclusters : gci_grid_cluster_of(w->g, host);
		++*common(w, w->c->cluster_of[i], w->given[i]);
	}
}

static int is_taken(const struct comparison *w, int given)
{
	int f;

	for (f = 0; f < w->c->n; f++)
		if (w->match[f] == given)
			return 1;
	return 0;
}

/* Those that have most in common first; each of either side once. */
static void match(const struct comparison *w)
{
	int best_found, best_given, most, f, g;

	for (f = 0; f < w->c->n; f++)
		w->match[f] = -1;
	do {
		most = best_found = best_given = 0;
		for (f = 0; f < w->c->n; f++)
			for (g = 0; w->match[f] < 0 && g < w->g->nclusters; g++) {
				if (*common(w, f, g) <= most || is_taken(w, g))
					continue;
				most = *common(w, f, g);
				best_found = f;
				best_given = g;
			}
		if (most)
			w->match[best_found] = best_given;
	} while (most);
}

/* All of a cluster is with another one: whether they are two, only latencies tell. */
static int swallowed(const struct comparison *w, int found, int given)
{
	int f;

	for (f = 0; f < w->c->n; f++)
		if (f != found && *common(w, f, given))
			return 0;
	return w->match[found] >= 0;
}

static int report(const struct comparison *w, int found, int given, struct gci_buf *out)
{
	int i, n = 0;

	if (!*common(w, found, given) || w->match[found] == given)
		return 0;
	if (given < w->g->nclusters && !w->m->latency_ns && swallowed(w, found, given))
		return 0;
	for (i = 0; i < w->m->n; i++)
		if (w->c->cluster_of[i] == found && w->given[i] == given)
			print_name(out, n++, w->m->hosts[i]);
	print_rest(out, n);
	if (given < w->g->nclusters)
		gci_buf_printf(out, ": in %s by the grid file, ", w->g->clusters[given].name);
	else
		gci_buf_printf(out, ": not in the grid file, ");
	if (w->match[found] >= 0)
		gci_buf_printf(out, "measured with %s\n", w->g->clusters[w->match[found]].name);
	else
		gci_buf_printf(out, "measured apart from all others\n");
	return n;
}

int gci_clusters_compare(const struct gci_clusters *c, const struct gci_measured *m,
	const struct gci_grid *g, struct gci_buf *out)
{
	struct comparison w = {.c = c, .m = m, .g = g};
	int f, i, n = GCOLL_ERR_NOMEM;

	w.given = gci_calloc((size_t)m->n, sizeof(*w.given));
	w.common = gci_calloc((size_t)c->n * ((size_t)g->nclusters + 1), sizeof(*w.common));
	w.match = gci_calloc((size_t)c->n, sizeof(*w.match));
	if (w.given && w.common && w.match) {
		n = 0;
		count(&w);
		match(&w);
		for (f = 0; f < c->n; f++)
			for (i = 0; i <= g->nclusters; i++)
				n += report(&w, f, i, out);
	}
	gci_free(w.given);
	gci_free(w.common);
	gci_free(w.match);
	return out->failed ? GCOLL_ERR_NOMEM : n;
}

/* ---- clusters, found in what was measured */

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
