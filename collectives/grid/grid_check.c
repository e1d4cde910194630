/* SPDX-License-Identifier: MIT
 * What is checked when the whole grid file is read. */
#include "base/mem.h"
#include "collectives/grid/grid_impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static int has_access(const struct gci_host_section *s)
{
	return s->access.interfaces || s->access.ports.lo;
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
	if (s->tini_ns && !c->own_tini_ns)
		c->own_tini_ns = gci_calloc((size_t)c->nhosts, sizeof(*c->own_tini_ns));
	if (has_access(s) && !c->own_access)
		c->own_access = gci_calloc((size_t)c->nhosts, sizeof(*c->own_access));
	if ((s->tini_ns && !c->own_tini_ns) || (has_access(s) && !c->own_access))
		return gci_grid_nomem(p);
	if (s->tini_ns)
		c->own_tini_ns[h->place] = s->tini_ns;
	if (has_access(s)) {
		c->own_access[h->place] = s->access;
		s->access.interfaces = NULL;
	}
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

/* Links stand for paths: each ordered pair of clusters needs its own. */
static int check_reachable(struct gci_grid_parser *p)
{
	struct gci_grid *g = p->g;
	int a, b;

	for (a = 0; a < g->nclusters; a++)
		for (b = 0; b < g->nclusters; b++)
			if (a != b && !gci_grid_link(g, a, b))
				return gci_grid_fail_at(p, p->cluster_lines[b],
					"cluster %s cannot be reached from %s, expected a section "
					"[link %s %s]",
					g->clusters[b].name, g->clusters[a].name,
					g->clusters[a].name, g->clusters[b].name);
	return 0;
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

static uint64_t smaller_known(uint64_t a, uint64_t b)
{
	return !a || (b && b < a) ? b : a;
}

/* What a path by way of a third cluster is: the two links, one behind the other. */
static void join_links(const struct gci_grid *g, struct gci_link *l)
{
	const struct gci_link *a = gci_grid_link(g, l->from, l->via - 1);
	const struct gci_link *b = gci_grid_link(g, l->via - 1, l->to);
	uint64_t lan_ns = g->clusters[l->via - 1].lan_delay_ns;
	uint64_t whole = 1000000, pass_a = whole - a->loss_ppm, pass_b = whole - b->loss_ppm;

	l->rate_bps = smaller_known(a->rate_bps, b->rate_bps);
	l->flow_rate_bps = smaller_known(a->flow_rate_bps, b->flow_rate_bps);
	l->queue_nbytes = smaller_known(a->queue_nbytes, b->queue_nbytes);
	/* From host to host; the packets do not go into the middle cluster's LAN. */
	l->delay_ns = a->delay_ns + b->delay_ns;
	l->delay_ns -= l->delay_ns > lan_ns ? lan_ns : l->delay_ns;
	l->loss_ppm = (uint32_t)(whole - (pass_a * pass_b + whole / 2) / whole);
}

/* One city in the middle, whose links are links of their own. */
static int check_vias(struct gci_grid_parser *p)
{
	struct gci_grid *g = p->g;
	int i;

	for (i = 0; i < g->nlinks; i++) {
		struct gci_link *l = &g->links[i];

		if (!l->via)
			continue;
		if (gci_grid_link(g, l->from, l->via - 1)->via ||
			gci_grid_link(g, l->via - 1, l->to)->via)
			return gci_grid_fail_at(p, p->via_lines[i],
				"via = %s, expected a cluster with links of its own to %s and %s",
				g->clusters[l->via - 1].name, g->clusters[l->from].name,
				g->clusters[l->to].name);
		if (l->rate_bps || l->delay_ns || l->queue_nbytes || l->flow_rate_bps ||
			l->loss_ppm)
			return gci_grid_fail_at(p, p->via_lines[i],
				"via = %s and rate, delay, queue, loss or flow_rate, expected "
				"those of the links it passes only",
				g->clusters[l->via - 1].name);
	}
	for (i = 0; i < g->nlinks; i++)
		if (g->links[i].via)
			join_links(g, &g->links[i]);
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
		rc = check_reachable(p);
	if (!rc)
		rc = check_inbound(p);
	return rc ? rc : check_vias(p);
}
