/* SPDX-License-Identifier: MIT
 * Where ranks are that others start: each says by which name its host goes. */
#include "base/mem.h"
#include "launcher/placement.h"
#include "transport/control.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *without_user(const char *host)
{
	const char *at = strrchr(host, '@');

	return at ? at + 1 : host;
}

/* k1 and k1.site.example are one host, two names with different domains are not. */
static int same_host(const char *a, const char *b)
{
	size_t n = strcspn(a, "."), m = strcspn(b, ".");

	if (!strcmp(a, b))
		return 1;
	return n == m && !strncmp(a, b, n) && (!a[n] || !b[m]);
}

static int find_host(const struct gci_grid *g, const char *host)
{
	int i = gci_grid_find_host(g, host);

	if (i >= 0)
		return i;
	for (i = 0; i < g->nhosts; i++)
		if (same_host(without_user(gci_grid_host(g, i)), host))
			return i;
	return -1;
}

int gci_placement_arrive(void *placement, uint32_t rank, const char *host, const char *cluster,
	char *why, size_t size)
{
	struct gci_placement *p = placement;
	struct gci_error e = {0};
	int at = 0;

	if (!*host) {
		snprintf(why, size, "rank %u does not know its host's name: expected GRIDCOLL_HOST",
			rank);
		return -1;
	}
	if (!p->hosts_are_said && (at = find_host(&p->grid, host)) < 0) {
		snprintf(why, size,
			"rank %u is on %s, which is none of the job's hosts: "
			"expected a name in the grid file or --hosts, "
			"or one of those in GRIDCOLL_HOST",
			rank, host);
		return -1;
	}
	if (p->hosts_are_said && gci_hosts_check(host, &e)) {
		snprintf(why, size, "rank %u: %.400s (see GRIDCOLL_HOST)", rank, e.text);
		return -1;
	}
	if (p->hosts_are_said && *cluster && !gci_grid_is_cluster_name(cluster)) {
		snprintf(why, size,
			"rank %u on %.253s says that its cluster is \"%.21s\": "
			"expected " GCI_GRID_CLUSTER_CHARACTERS " in GRIDCOLL_CLUSTER",
			rank, host, cluster);
		return -1;
	}
	gci_free(p->said[rank]);
	p->said[rank] = gci_strdup(p->hosts_are_said ? host : gci_grid_host(&p->grid, at));
	p->names[rank] = p->said[rank];
	snprintf(p->clusters[rank], sizeof(p->clusters[rank]), "%s", cluster);
	p->hosts[rank] = (uint32_t)at;
	if (!p->said[rank])
		snprintf(why, size, "out of memory");
	return p->said[rank] ? 0 : -1;
}

struct arrival {
	const char *host, *cluster;
	uint32_t rank;
};

static int by_host(const void *a, const void *b)
{
	const struct arrival *x = a, *y = b;
	int order = strcmp(x->host, y->host);

	return order ? order : (x->rank > y->rank) - (x->rank < y->rank);
}

static int by_cluster(const void *a, const void *b)
{
	const struct arrival *x = a, *y = b;
	int order = strcmp(x->cluster, y->cluster);

	return order ? order : by_host(a, b);
}

/* All ranks tell a cluster or none does, and those of one host the same. */
static int agree(struct arrival *all, uint32_t n, struct gci_error *e)
{
	const struct arrival *without;
	uint32_t i;

	for (i = 1; i < n && !*all[i].cluster == !*all[0].cluster; i++)
		;
	if (i < n) {
		without = *all[i].cluster ? &all[0] : &all[i];
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"rank %u on %.100s tells no cluster, but rank %u does: "
			"expected GRIDCOLL_CLUSTER for all ranks or for none",
			without->rank, without->host, (without == all ? &all[i] : all)->rank);
	}
	qsort(all, n, sizeof(*all), by_host);
	for (i = 1; i < n; i++)
		if (!strcmp(all[i].host, all[i - 1].host) &&
			strcmp(all[i].cluster, all[i - 1].cluster) != 0)
			return gci_error_set(e, GCOLL_ERR_INVAL,
				"%.100s is in cluster %s as rank %u has it, but in %s as rank %u "
				"has it: expected one GRIDCOLL_CLUSTER for each host",
				all[i].host, all[i - 1].cluster, all[i - 1].rank, all[i].cluster,
				all[i].rank);
	return 0;
}

/* The clusters that ranks tell, or one of all, with the hosts that ranks are on, each once. */
static int print_said(
	struct arrival *all, uint32_t nranks, struct gci_buf *text, struct gci_error *e)
{
	const char *clusters[GCI_GRID_MAX_CLUSTERS];
	int n = 0, from, to;
	uint32_t i;

	qsort(all, nranks, sizeof(*all), by_cluster);
	for (i = 0; i < nranks; i++) {
		const char *name = *all[i].cluster ? all[i].cluster : "hosts";

		if (!n || strcmp(name, clusters[n - 1]) != 0) {
			if (n == GCI_GRID_MAX_CLUSTERS)
				return gci_error_set(e, GCOLL_ERR_INVAL,
					"the ranks tell more than %d clusters", n);
			clusters[n++] = name;
			gci_buf_printf(text, "[cluster %s]\n", name);
		} else if (!strcmp(all[i].host, all[i - 1].host)) {
			continue;
		}
		gci_buf_printf(text, "hosts = %s\n", all[i].host);
	}
	for (from = 0; from < n; from++)
		for (to = from + 1; to < n; to++)
			gci_buf_printf(text, "[link %s %s]\n", clusters[from], clusters[to]);
	return 0;
}

static int grid_of_said(
	struct gci_placement *p, struct gci_grid *g, char **out, struct gci_error *e)
{
	struct arrival *all = gci_calloc(p->size, sizeof(*all));
	struct gci_buf text = {0};
	uint32_t i;
	int rc;

	*out = NULL;
	if (!all)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	for (i = 0; i < p->size; i++)
		all[i] = (struct arrival){p->names[i], p->clusters[i], i};
	rc = agree(all, p->size, e);
	if (!rc)
		rc = print_said(all, p->size, &text, e);
	gci_free(all);
	if (rc) {
		gci_buf_free(&text);
		return rc;
	}
	*out = gci_strdup(gci_buf_cstr(&text));
	rc = *out && !text.failed ? gci_grid_parse(g, *out, text.len, "the ranks' hosts", e)
				  : gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	gci_buf_free(&text);
	return rc;
}

const char *gci_placement_settle(void *placement, char *why, size_t size)
{
	struct gci_placement *p = placement;
	struct gci_error e = {0};
	struct gci_grid g = {0};
	char *text = NULL;
	uint32_t i;

	if (!p->hosts_are_said)
		return p->grid_text;
	if (grid_of_said(p, &g, &text, &e)) {
		gci_free(text);
		snprintf(why, size, "%.400s%s", e.text,
			e.status == GCOLL_ERR_PARSE ? " (see GRIDCOLL_HOST)" : "");
		return NULL;
	}
	for (i = 0; i < p->size; i++)
		p->hosts[i] = (uint32_t)gci_grid_find_host(&g, p->names[i]);
	gci_grid_free(&p->grid);
	gci_free(p->grid_text);
	p->grid = g;
	p->grid_text = text;
	return text;
}

/* Rank 0, which this gridcoll-run starts itself. */
static int place_own(struct gci_placement *p, const struct gci_options *o, struct gci_error *e)
{
	char self[GCI_CTL_HOST] = "", cluster[GCI_CTL_CLUSTER], why[GCI_CTL_TEXT];
	const char *host = getenv("GRIDCOLL_HOST");

	if (!host || !*host) {
		gethostname(self, sizeof(self) - 1);
		host = self;
	}
	if (gci_grid_take_cluster(getenv("GRIDCOLL_CLUSTER"), cluster, sizeof(cluster), e))
		return e->status;
	if (gci_placement_arrive(p, 0, host, cluster, why, sizeof(why)))
		return gci_error_set(e, GCOLL_ERR_INVAL, "%s", why);
	p->places[0] = (struct gci_place){.how = GCI_PLACE_LOCAL,
		.host = p->names[0],
		.nranks = 1,
		.starter = GCI_STARTER_SELF};
	if (!p->hosts_are_said)
		p->places[0].access = gci_grid_access(&p->grid, (int)p->hosts[0]);
	if (o->interfaces)
		p->places[0].access.interfaces = (char *)(uintptr_t)o->interfaces;
	if (o->ports.lo)
		p->places[0].access.ports = o->ports;
	p->nplaces = 1;
	return 0;
}

int gci_placement_guests(
	struct gci_placement *p, const struct gci_options *o, uint32_t nhosts, struct gci_error *e)
{
	uint32_t per = o->per_host ? o->per_host : 1;

	p->hosts_are_said = !o->grid && !o->hosts;
	p->size = o->nranks ? o->nranks : nhosts * per;
	p->nguests = p->size - (o->join != NULL);
	p->rendezvous = o->join;
	if (p->size > GCI_CTL_MAX_RANKS)
		return gci_error_set(e, GCOLL_ERR_INVAL, "%u ranks, expected at most %d (see -n)",
			p->size, GCI_CTL_MAX_RANKS);
	p->said = gci_calloc(p->size, sizeof(*p->said));
	p->hosts = gci_calloc(p->size, sizeof(*p->hosts));
	p->names = gci_calloc(p->size, sizeof(*p->names));
	p->places = gci_calloc(1, sizeof(*p->places));
	p->clusters = gci_calloc(p->size, sizeof(*p->clusters));
	if (!p->said || !p->clusters || !p->hosts || !p->names || !p->places)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	p->listen_ports.lo = p->listen_ports.hi = o->serve_port;
	if (*o->serve_ip && !(p->listen_ip = gci_strdup(o->serve_ip)))
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	return o->join ? place_own(p, o, e) : 0;
}
