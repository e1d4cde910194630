/* SPDX-License-Identifier: MIT */
#include "collectives/grid/grid.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/nics.h"
#include "base/prng.h"
#include "base/units.h"
#include "collectives/grid/grid_impl.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void gci_grid_print_model(const struct gci_grid *g, struct gci_buf *out);

/* ---- What is checked when the whole grid file is read. */

int gci_grid_fail_at(struct gci_grid_parser *p, int line, const char *fmt, ...)
{
	char what[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return gci_error_set(p->e, GCOLL_ERR_PARSE, "%s:%d: %s", p->file, line, what);
}

int gci_grid_nomem(struct gci_grid_parser *p)
{
	return gci_error_set(p->e, GCOLL_ERR_NOMEM, "%s: out of memory", p->file);
}

struct named_host {
	const char *name;
	int line;
	int cluster, place;
	int section; /* line of its own section, or 0 */
};

static int compare_names(const void *a, const void *b)
{
	const struct named_host *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int compare_hosts(const void *a, const void *b)
{
	const struct named_host *x = a, *y = b;
	int order = compare_names(a, b);

	return order ? order : x->line - y->line;
}

static void list_hosts(const struct gci_grid_parser *p, struct named_host *all)
{
	const struct gci_grid *g = p->g;
	int c, i, n = 0;

	/* A cluster's section cannot be opened again, so hosts stand in the order of their lines.
	 */
	for (c = 0; c < g->nclusters; c++)
		for (i = 0; i < g->clusters[c].nhosts; i++, n++)
			all[n] = (struct named_host){
				g->clusters[c].hosts[i], p->host_lines[n], c, i, 0};
	qsort(all, (size_t)n, sizeof(*all), compare_hosts);
}

static int check_duplicates(struct gci_grid_parser *p, const struct named_host *all)
{
	int i;

	for (i = 1; i < p->g->nhosts; i++)
		if (!strcmp(all[i - 1].name, all[i].name))
			return gci_grid_fail_at(p, all[i].line,
				"host %s is there twice (first in line %d), "
				"expected each host once",
				all[i].name, all[i - 1].line);
	return 0;
}

static int own_section(
	struct gci_grid_parser *p, struct named_host *all, struct gci_host_section *s)
{
	struct named_host key = {.name = s->name};
	struct named_host *h =
		bsearch(&key, all, (size_t)p->g->nhosts, sizeof(*all), compare_names);
	struct gci_cluster *c;

	if (!h)
		return gci_grid_fail_at(
			p, s->line, "unknown host %s, expected one of a cluster's hosts", s->name);
	if (h->section)
		return gci_grid_fail_at(p, s->line, "[host %s] is there twice (first in line %d)",
			s->name, h->section);
	h->section = s->line;
	c = &p->g->clusters[h->cluster];
	if (!c->own)
		c->own = gci_calloc((size_t)c->nhosts, sizeof(*c->own));
	if (!c->own)
		return gci_grid_nomem(p);
	c->own[h->place] = s->own;
	s->own.access.interfaces = NULL;
	return 0;
}

static int check_hosts(struct gci_grid_parser *p)
{
	struct named_host *all = gci_calloc((size_t)p->g->nhosts, sizeof(*all));
	size_t i;
	int rc;

	if (!all)
		return gci_grid_nomem(p);
	list_hosts(p, all);
	rc = check_duplicates(p, all);
	for (i = 0; !rc && i < p->nown; i++)
		rc = own_section(p, all, &p->own[i]);
	gci_free(all);
	return rc;
}

/* Somebody has to take the connections of each pair. */
static int check_inbound(struct gci_grid_parser *p)
{
	const struct gci_grid *g = p->g;
	int c, outward = -1;

	for (c = 0; c < g->nclusters; c++) {
		if (g->clusters[c].outward && outward >= 0)
			return gci_grid_fail_at(p, p->cluster_lines[c],
				"neither %s nor %s takes connections (inbound = no), expected one "
				"such cluster at most",
				g->clusters[outward].name, g->clusters[c].name);
		if (g->clusters[c].outward)
			outward = c;
	}
	return 0;
}

int gci_grid_check(struct gci_grid_parser *p)
{
	struct gci_grid *g = p->g;
	int c, rc;

	if (!g->nclusters)
		return gci_grid_fail_at(p, p->line ? p->line : 1,
			"no cluster, expected at least one [cluster NAME]");
	for (c = 0; c < g->nclusters; c++) {
		if (!g->clusters[c].nhosts)
			return gci_grid_fail_at(p, p->cluster_lines[c],
				"cluster %s has no hosts, expected hosts = NAMES",
				g->clusters[c].name);
		g->nhosts += g->clusters[c].nhosts;
	}
	if (g->nhosts > GCI_GRID_MAX_HOSTS)
		return gci_grid_fail_at(p, p->line, "more than %d hosts", GCI_GRID_MAX_HOSTS);
	rc = check_hosts(p);
	if (!rc)
		rc = gci_grid_route(p);
	return rc ? rc : check_inbound(p);
}

/* ---- The grid's digest, and the section by which a dilated grid keeps it. */

#define fail(p, ...) gci_grid_fail_at(p, (p)->line, __VA_ARGS__)

uint64_t gci_grid_digest(const struct gci_grid *g)
{
	return g->digest;
}

int gci_grid_open_dilated(struct gci_grid_parser *p)
{
	if (p->dilated_line)
		return fail(p, "[dilated] is there twice (first in line %d)", p->dilated_line);
	p->dilated_line = p->line;
	p->in_dilated = 1;
	return 0;
}

static int digest_key(struct gci_grid_parser *p, const char *value)
{
	char *end;

	if (strlen(value) != 16 || strspn(value, "0123456789abcdef") != 16)
		return fail(p, "digest = %s, expected 16 digits from 0 to f", value);
	p->g->digest = strtoull(value, &end, 16);
	return 0;
}

int gci_grid_dilated_key(struct gci_grid_parser *p, const char *key, const char *value)
{
	uint64_t k;

	if (!strcmp(key, "digest"))
		return digest_key(p, value);
	if (strcmp(key, "times"))
		return fail(p, "unknown key \"%s\" in [dilated], expected times or digest", key);
	if (gci_parse_uint(value, UINT32_MAX, &k) || !k)
		return fail(p, "times = %s, expected a number from 1", value);
	p->g->dilation = (uint32_t)k;
	p->g->amended = k == 1;
	return 0;
}

/* Of the canonical text; a dilated grid brings its digest along. */
int gci_grid_set_digest(struct gci_grid_parser *p)
{
	struct gci_grid *g = p->g;
	struct gci_buf text = {0};

	if (p->dilated_line && (!g->dilation || !g->digest))
		return gci_grid_fail_at(
			p, p->dilated_line, "[dilated], expected times and digest in it");
	if (p->dilated_line)
		return 0;
	g->dilation = 1;
	gci_grid_print_model(g, &text);
	g->digest = gci_digest_bytes(1, text.data, text.len);
	g->digest += !g->digest; /* 0 is none */
	if (text.failed)
		gci_grid_nomem(p);
	gci_buf_free(&text);
	return p->e->status;
}

/* ---- How hosts are reached: the keys `interfaces` and `ports` of clusters and hosts. */

static int interfaces_key(struct gci_grid_parser *p, const char *value, struct gci_access *a)
{
	struct gci_error why = {0};
	struct gci_nics nics;

	if (gci_nics_parse(&nics, value, &why))
		return fail(p, "interfaces: %s", why.text);
	if (!nics.n)
		return fail(p, "interfaces =, expected " GCI_NICS_EXPECTED);
	gci_free(a->interfaces); /* of a key that is there twice, which is refused next */
	a->interfaces = gci_strdup(value);
	return a->interfaces ? 0 : gci_grid_nomem(p);
}

int gci_grid_access_key(
	struct gci_grid_parser *p, const char *key, const char *value, struct gci_access *a)
{
	if (!strcmp(key, "interfaces"))
		return interfaces_key(p, value, a);
	if (gci_parse_ports(value, &a->ports))
		return fail(p, "ports = %s, expected " GCI_PORTS_EXPECTED, value);
	return 0;
}

int gci_grid_is_access_key(const char *key)
{
	return !strcmp(key, "interfaces") || !strcmp(key, "ports");
}

struct gci_access gci_grid_access(const struct gci_grid *g, int host)
{
	const struct gci_cluster *c = g->clusters;
	struct gci_access a;

	while (host >= c->nhosts)
		host -= c++->nhosts;
	a = c->access;
	if (c->own && c->own[host].access.interfaces)
		a.interfaces = c->own[host].access.interfaces;
	if (c->own && c->own[host].access.ports.lo)
		a.ports = c->own[host].access.ports;
	return a;
}

static void gci_grid_print_access(const struct gci_access *a, struct gci_buf *out)
{
	if (a->interfaces)
		gci_buf_printf(out, "interfaces = %s\n", a->interfaces);
	if (a->ports.lo)
		gci_buf_printf(out, "ports = %u-%u\n", a->ports.lo, a->ports.hi);
}

/* ---- the model: what it says of hosts and links, dilated and printed */

#define MOST_HELD_NS (86400 * GCI_NS_PER_S)

void gci_grid_free(struct gci_grid *g)
{
	int c, h;

	for (c = 0; c < g->nclusters; c++) {
		struct gci_cluster *k = &g->clusters[c];

		for (h = 0; h < k->nhosts; h++) {
			gci_free(k->hosts[h]);
			if (k->own)
				gci_free(k->own[h].access.interfaces);
		}
		gci_free(k->hosts);
		gci_free(k->own);
		gci_free(k->access.interfaces);
		gci_free(k->name);
	}
	gci_free(g->clusters);
	for (c = 0; c < g->nswitches; c++)
		gci_free(g->switches[c]);
	gci_free(g->switches);
	gci_free(g->wires);
	gci_free(g->links);
	gci_free(g->routes);
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
	c->uplink_bps = slowed(c->uplink_bps, k);
	c->lan_delay_ns = scaled(c->lan_delay_ns, k);
	c->tini_ns = scaled(c->tini_ns, k);
	for (h = 0; c->own && h < c->nhosts; h++) {
		c->own[h].nic_bps = slowed(c->own[h].nic_bps, k);
		c->own[h].tini_ns = scaled(c->own[h].tini_ns, k);
	}
}

static void dilate_link(struct gci_link *l, uint32_t k)
{
	l->rate_bps = slowed(l->rate_bps, k);
	l->flow_rate_bps = slowed(l->flow_rate_bps, k);
	l->budget_bps = slowed(l->budget_bps, k);
	l->delay_ns = scaled(l->delay_ns, k);
}

void gci_grid_dilate(struct gci_grid *g, uint32_t k)
{
	int i;

	if (k <= 1)
		return;
	g->dilation = g->dilation > UINT32_MAX / k ? UINT32_MAX : g->dilation * k;
	for (i = 0; i < g->nclusters; i++)
		dilate_hosts(&g->clusters[i], k);
	for (i = 0; i < g->nwires; i++)
		dilate_link(&g->wires[i], k);
	for (i = 0; i < g->nlinks; i++)
		dilate_link(&g->links[i], k);
}

const char *gci_grid_end(const struct gci_grid *g, int end)
{
	if (end < 0)
		return "uplink";
	return end < GCI_GRID_MAX_CLUSTERS ? g->clusters[end].name
					   : g->switches[end - GCI_GRID_MAX_CLUSTERS];
}

int gci_grid_find_end(const struct gci_grid *g, const char *name)
{
	int i;

	for (i = 0; i < g->nclusters; i++)
		if (!strcmp(g->clusters[i].name, name))
			return i;
	for (i = 0; i < g->nswitches; i++)
		if (!strcmp(g->switches[i], name))
			return GCI_GRID_MAX_CLUSTERS + i;
	return GCI_GRID_UPLINK;
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
	return c->own && c->own[host].tini_ns ? c->own[host].tini_ns : c->tini_ns;
}

uint64_t gci_grid_nic_bps(const struct gci_grid *g, int host)
{
	const struct gci_cluster *c = g->clusters;

	while (host >= c->nhosts)
		host -= c++->nhosts;
	return c->own && c->own[host].nic_bps ? c->own[host].nic_bps : c->nic_bps;
}

uint64_t gci_grid_held_ns(const struct gci_grid *g)
{
	double most = 0, ns;
	int i, k;

	for (i = 0; i < g->nlinks; i++) {
		const struct gci_link *l = &g->links[i];

		ns = (double)l->delay_ns;
		for (k = 0; k < l->nroute; k++) {
			const struct gci_link *w = &g->wires[g->routes[l->route + k]];

			if (w->rate_bps)
				ns += (double)w->queue_nbytes * 8e9 / (double)w->rate_bps;
		}
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
	const struct gci_grid_own *own = &c->own[h];

	if (!own->nic_bps && !own->tini_ns &&
		!(access && (own->access.interfaces || own->access.ports.lo)))
		return;
	gci_buf_printf(out, "[host %s]\n", c->hosts[h]);
	if (own->nic_bps)
		gci_buf_printf(out, "nic = %" PRIu64 "bit\n", own->nic_bps);
	if (own->tini_ns)
		gci_buf_printf(out, "tini = %" PRIu64 "ns\n", own->tini_ns);
	if (access)
		gci_grid_print_access(&own->access, out);
}

static void print_cluster(const struct gci_cluster *c, int access, struct gci_buf *out)
{
	int h;

	gci_buf_printf(out, "[cluster %s]\n", c->name);
	for (h = 0; h < c->nhosts; h++)
		gci_buf_printf(out, "hosts = %s\n", c->hosts[h]);
	if (c->nic_bps)
		gci_buf_printf(out, "nic = %" PRIu64 "bit\n", c->nic_bps);
	if (c->uplink_bps)
		gci_buf_printf(out, "uplink = %" PRIu64 "bit\n", c->uplink_bps);
	if (c->lan_delay_ns)
		gci_buf_printf(out, "lan_delay = %" PRIu64 "ns\n", c->lan_delay_ns);
	if (c->tini_ns)
		gci_buf_printf(out, "tini = %" PRIu64 "ns\n", c->tini_ns);
	if (access && c->outward)
		gci_buf_printf(out, "inbound = no\n");
	if (access)
		gci_grid_print_access(&c->access, out);
	for (h = 0; c->own && h < c->nhosts; h++)
		print_host(c, h, access, out);
}

static void print_wire(const struct gci_grid *g, const struct gci_link *w, struct gci_buf *out)
{
	gci_buf_printf(out, "[link %s > %s]\n", gci_grid_end(g, w->from), gci_grid_end(g, w->to));
	if (w->rate_bps)
		gci_buf_printf(out, "rate = %" PRIu64 "bit\n", w->rate_bps);
	gci_buf_printf(out, "delay = %" PRIu64 "ns\n", w->delay_ns);
	if (w->queue_nbytes)
		gci_buf_printf(out, "queue = %" PRIu64 "\n", w->queue_nbytes);
	if (w->flow_rate_bps)
		gci_buf_printf(out, "flow_rate = %" PRIu64 "bit\n", w->flow_rate_bps);
	if (w->loss_ppm)
		gci_buf_printf(out, "loss = %u.%04u%%\n", w->loss_ppm / 10000, w->loss_ppm % 10000);
}

static void print_use(const struct gci_link *l, int access, struct gci_buf *out)
{
	if (l->streams)
		gci_buf_printf(out, "streams = %u\n", l->streams);
	if (l->senders)
		gci_buf_printf(out, "senders = %u\n", l->senders);
	if (access && l->budget_bps)
		gci_buf_printf(out, "budget = %" PRIu64 "bit\n", l->budget_bps);
}

/* Where all that it would say is the quickest path, nothing. */
static void print_route(
	const struct gci_grid *g, const struct gci_link *l, int access, struct gci_buf *out)
{
	const char *sep = "via=";
	int i;

	if (l->own || !(l->said || l->streams || l->senders || (access && l->budget_bps)))
		return;
	gci_buf_printf(
		out, "[route %s > %s]\n", g->clusters[l->from].name, g->clusters[l->to].name);
	for (i = 0; l->said && i < l->nroute; i++) {
		const struct gci_link *w = &g->wires[g->routes[l->route + i]];

		if (w->to == l->to || w->to == GCI_GRID_UPLINK || w->from == GCI_GRID_UPLINK)
			continue;
		gci_buf_printf(out, "%s%s", sep, gci_grid_end(g, w->to));
		sep = ",";
	}
	if (l->said)
		gci_buf_printf(out, "\n");
	print_use(l, access, out);
}

/* What connections use of a wire between two clusters is told with it. */
static const struct gci_link *use_of(const struct gci_grid *g, const struct gci_link *w)
{
	int both = w->from < GCI_GRID_MAX_CLUSTERS && w->to < GCI_GRID_MAX_CLUSTERS;

	return both ? gci_grid_link(g, w->from, w->to) : w;
}

static void print(const struct gci_grid *g, int access, struct gci_buf *out)
{
	int i;

	if (g->dilation > 1 || g->amended)
		gci_buf_printf(out, "[dilated]\ntimes = %" PRIu32 "\ndigest = %016" PRIx64 "\n",
			g->dilation, g->digest);
	for (i = 0; i < g->nclusters; i++)
		print_cluster(&g->clusters[i], access, out);
	for (i = 0; i < g->nswitches; i++)
		gci_buf_printf(out, "[switch %s]\n", g->switches[i]);
	for (i = 0; i < g->nwires; i++) {
		const struct gci_link *w = &g->wires[i];

		if (w->from < 0 || w->to < 0)
			continue;
		print_wire(g, w, out);
		print_use(use_of(g, w), access, out);
	}
	for (i = 0; i < g->nlinks; i++)
		print_route(g, &g->links[i], access, out);
}

void gci_grid_print(const struct gci_grid *g, struct gci_buf *out)
{
	print(g, 1, out);
}

/* As gci_grid_print, without how hosts are reached. */
static void gci_grid_print_model(const struct gci_grid *g, struct gci_buf *out)
{
	print(g, 0, out);
}
