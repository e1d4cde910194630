/* SPDX-License-Identifier: MIT */
#include "launcher/placement.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "collectives/models/params_json.h"
#include "collectives/tuner/table.h"
#include "shaping/budget.h"
#include "transport/reach.h"
#include "transport/sockopt.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int nomem(struct gci_error *e)
{
	return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
}

/* ---- Hosts, and the places on them. */

/* One host that may take ranks. */
struct site {
	int host; /* number in the grid */
	const char *netns;
};

struct sites {
	struct site *v;
	uint32_t n;
};

static int parse_grid(
	struct gci_placement *p, const char *text, const char *name, struct gci_error *e)
{
	p->grid_text = gci_strdup(text);
	return p->grid_text ? gci_grid_parse(&p->grid, text, strlen(text), name, e) : nomem(e);
}

static int parse_buffer(
	struct gci_placement *p, struct gci_buf *text, const char *name, struct gci_error *e)
{
	const char *whole = gci_buf_cstr(text);

	return text->failed ? nomem(e) : parse_grid(p, whole, name, e);
}

static int line_of_zero(const char *text)
{
	int line = 1;

	while ((text = strchr(text, '\n')) != NULL) {
		text++;
		line++;
	}
	return line;
}

static int load_grid(struct gci_placement *p, const char *path, struct gci_error *e)
{
	struct gci_buf text = {0};
	int rc = gci_file_read(path, GCI_GRID_MAX_TEXT, &text, e);

	if (!rc && text.len && memchr(text.data, 0, text.len))
		rc = gci_error_set(e, GCOLL_ERR_PARSE, "%s:%d: a zero byte, expected text", path,
			line_of_zero((const char *)text.data));
	if (!rc)
		rc = parse_buffer(p, &text, path, e);
	gci_buf_free(&text);
	return rc;
}

static int expand_hosts(const char *list, char ***hosts, int *n, struct gci_error *e)
{
	struct gci_error why = {0};
	int rc = gci_hosts_expand(list, hosts, n, &why);

	return rc ? gci_error_set(e, rc, "--hosts: %s", why.text) : 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The grid's parser would name lines, which the user did not write. */
static int check_distinct(char *const *hosts, int n, struct gci_error *e)
{
	char **sorted = gci_calloc((size_t)n, sizeof(*sorted));
	int i, rc = 0;

	if (!sorted)
		return nomem(e);
	memcpy(sorted, hosts, (size_t)n * sizeof(*sorted));
	qsort(sorted, (size_t)n, sizeof(*sorted), by_name);
	for (i = 1; i < n && !rc; i++)
		if (!strcmp(sorted[i - 1], sorted[i]))
			rc = gci_error_set(e, GCOLL_ERR_INVAL,
				"--hosts: %s is there twice, expected each host once", sorted[i]);
	gci_free(sorted);
	return rc;
}

/* One cluster: this machine as many hosts (the model wants distinct names), or those of --hosts. */
static int flat_grid(struct gci_placement *p, const struct gci_options *o, struct gci_error *e)
{
	struct gci_buf text = {0};
	char **hosts = NULL;
	int n = 0, i, rc = 0;

	gci_buf_printf(&text, "[cluster %s]\n", o->hosts ? "hosts" : "local");
	if (o->hosts) {
		rc = expand_hosts(o->hosts, &hosts, &n, e);
		if (!rc)
			rc = check_distinct(hosts, n, e);
		/* One per line: a list may be longer than a line may be. */
		for (i = 0; i < n; i++) {
			gci_buf_printf(&text, "hosts = %s\n", hosts[i]);
			gci_free(hosts[i]);
		}
		gci_free(hosts);
	} else {
		gci_buf_printf(&text, "hosts = local[0-%u]\n", o->nranks ? o->nranks - 1 : 0);
	}
	if (!rc)
		rc = parse_buffer(p, &text, o->hosts ? "--hosts" : "local", e);
	gci_buf_free(&text);
	return rc;
}

static int all_hosts(struct gci_placement *p, struct sites *s, struct gci_error *e)
{
	s->v = gci_calloc((size_t)p->grid.nhosts, sizeof(*s->v));
	if (!s->v)
		return nomem(e);
	for (s->n = 0; s->n < (uint32_t)p->grid.nhosts; s->n++)
		s->v[s->n].host = (int)s->n;
	return 0;
}

static int lab_host(struct gci_placement *p, const char *path, const json_t *h, uint32_t i,
	struct sites *s, struct gci_error *e)
{
	const char *name = json_string_value(json_object_get(h, "name"));
	const char *netns = json_string_value(json_object_get(h, "netns"));
	const char *addr = json_string_value(json_object_get(h, "addr"));

	if (!name || !netns || !addr)
		return gci_error_set(e, GCOLL_ERR_PARSE,
			"%s: hosts[%u]: expected the strings name, netns and addr", path, i);
	s->v[i].host = gci_grid_find_host(&p->grid, name);
	s->v[i].netns = netns;
	if (s->v[i].host < 0)
		return gci_error_set(e, GCOLL_ERR_PARSE,
			"%s: hosts[%u]: %s, expected a host of the lab's grid", path, i, name);
	if (i)
		return 0;
	p->listen_ip = gci_strdup(addr);
	p->listen_netns = gci_strdup(netns);
	return p->listen_ip && p->listen_netns ? 0 : nomem(e);
}

/* What `gridcoll lab up` wrote. *root owns the strings in `s`. */
static int load_lab(struct gci_placement *p, const struct gci_options *o, json_t **root,
	struct sites *s, struct gci_error *e)
{
	struct gci_buf text = {0};
	json_error_t why;
	const json_t *hosts;
	const char *grid;
	int rc = gci_file_read(o->lab, GCI_GRID_MAX_TEXT, &text, e);

	if (rc)
		goto out;
	*root = json_loadb(
		text.len ? (const char *)text.data : "", text.len, JSON_REJECT_DUPLICATES, &why);
	grid = json_string_value(json_object_get(*root, "grid"));
	hosts = json_object_get(*root, "hosts");
	rc = GCOLL_ERR_PARSE;
	if (!*root)
		gci_error_set(e, rc, "%s:%d: %s, expected what gridcoll lab up writes", o->lab,
			why.line > 0 ? why.line : 1, why.text);
	else if (json_integer_value(json_object_get(*root, "version")) != 1)
		gci_error_set(e, rc, "%s: expected \"version\": 1", o->lab);
	else if (!grid || !json_array_size(hosts))
		gci_error_set(e, rc, "%s: expected \"grid\" and \"hosts\"", o->lab);
	else
		rc = parse_grid(p, grid, o->lab, e);
	if (rc)
		goto out;
	s->v = gci_calloc(json_array_size(hosts), sizeof(*s->v));
	rc = s->v ? 0 : nomem(e);
	for (; !rc && s->n < json_array_size(hosts); s->n++)
		rc = lab_host(p, o->lab, json_array_get(hosts, s->n), s->n, s, e);
	p->lab = realpath(o->lab, NULL);
out:
	gci_buf_free(&text);
	return rc;
}

static int find_site(const struct sites *s, int host)
{
	uint32_t i;

	for (i = 0; i < s->n; i++)
		if (s->v[i].host == host)
			return (int)i;
	return -1;
}

/* Keeps the sites that --hosts names, in its order. */
static int keep_named(
	struct gci_placement *p, const char *wanted, struct sites *s, struct gci_error *e)
{
	struct site *v = s->v, found;
	char **hosts = NULL;
	uint32_t kept = 0;
	int n = 0, k, at, rc = expand_hosts(wanted, &hosts, &n, e);

	for (k = 0; k < n && !rc; k++, kept++) {
		at = find_site(s, gci_grid_find_host(&p->grid, hosts[k]));
		if (at < 0)
			rc = gci_error_set(e, GCOLL_ERR_INVAL,
				"--hosts %s: expected hosts of the grid", hosts[k]);
		else if ((uint32_t)at < kept)
			rc = gci_error_set(e, GCOLL_ERR_INVAL,
				"--hosts: %s is there twice, expected each host once", hosts[k]);
		if (rc)
			break;
		found = v[at];
		v[at] = v[kept];
		v[kept] = found;
	}
	s->n = kept;
	for (k = 0; k < n; k++)
		gci_free(hosts[k]);
	gci_free(hosts);
	return rc;
}

static int is_this_machine(const char *host)
{
	char self[256] = "";
	size_t len;

	if (!strcmp(host, "localhost") || !strncmp(host, "127.", 4) || !strcmp(host, "::1"))
		return 1;
	if (gethostname(self, sizeof(self) - 1))
		return 0;
	len = strcspn(self, ".");
	return !strcmp(host, self) || (strlen(host) == len && !strncmp(host, self, len));
}

/* A lab's hosts have addresses of the lab's, so what its grid says of the real ones is not for it.
 */
static void set_access(
	const struct gci_placement *p, const struct gci_options *o, int host, struct gci_place *l)
{
	if (l->how != GCI_PLACE_NETNS)
		l->access = gci_grid_access(&p->grid, host);
	if (o->net.interfaces)
		l->access.interfaces = (char *)(uintptr_t)o->net.interfaces;
	if (o->net.ports.lo)
		l->access.ports = o->net.ports;
}

/* What remains to be done once the sites are known: K ranks on each, in their order. */
static int place(struct gci_placement *p, const struct gci_options *o, const struct sites *s,
	struct gci_error *e)
{
	uint32_t per = o->per_host ? o->per_host : 1, most, i;
	int single = !o->grid && !o->hosts && !o->lab; /* one agent for all */

	most = s->n > GCI_CTL_MAX_RANKS / per ? GCI_CTL_MAX_RANKS : s->n * per;
	p->size = o->nranks ? o->nranks : most;
	if (p->size > most)
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"-n %u: expected at most %u (%u hosts with %u rank%s each, see --per-host)",
			p->size, most, s->n, per, per > 1 ? "s" : "");
	p->hosts = gci_calloc(p->size, sizeof(*p->hosts));
	p->names = gci_calloc(p->size, sizeof(*p->names));
	p->places = gci_calloc(p->size, sizeof(*p->places));
	if (!p->hosts || !p->names || !p->places)
		return nomem(e);
	for (i = 0; i < p->size; i++) {
		const struct site *at = &s->v[i / per];
		struct gci_place *l = &p->places[p->nplaces];

		p->hosts[i] = (uint32_t)at->host;
		p->names[i] = gci_grid_host(&p->grid, at->host);
		if (i && (single || i % per)) {
			l[-1].nranks++;
			continue;
		}
		*l = (struct gci_place){
			.host = p->names[i], .first = i, .nranks = 1, .starter = GCI_STARTER_SELF};
		l->how = at->netns                                ? GCI_PLACE_NETNS
			 : single || is_this_machine(p->names[i]) ? GCI_PLACE_LOCAL
								  : GCI_PLACE_SSH;
		if (at->netns && !(l->netns = gci_strdup(at->netns)))
			return nomem(e);
		set_access(p, o, at->host, l);
		p->nplaces++;
	}
	return 0;
}

/* ---- Who starts whom by ssh. */

#define NONE UINT32_MAX

/* This machine is 0, host i is 1 + i. */
struct node {
	uint32_t starts; /* so many others */
	uint32_t next;   /* of the same cluster; NONE: the last */
};

struct cluster {
	uint32_t root;  /* by which the others are reached; NONE: not seen yet */
	uint32_t last;  /* of those seen */
	uint32_t giver; /* who starts the next one */
};

struct work {
	struct node *nodes;
	struct cluster *clusters;
};

static void see(struct work *w, uint32_t node, uint32_t cluster)
{
	struct cluster *c = &w->clusters[cluster];

	if (c->root == NONE)
		c->root = c->giver = node;
	else
		w->nodes[c->last].next = node;
	c->last = node;
}

/* The first host of each cluster but ours. Each root keeps one place for its own cluster, and so
 * nobody in a cluster waits for a place that there is not. */
static void start_roots(struct work *w, const uint32_t *clusters, uint32_t nhosts, int own,
	uint32_t fanout, uint32_t *starters)
{
	uint32_t giver = 0, i, k;

	for (i = 0; i < nhosts; i++) {
		if (w->clusters[clusters[i]].root != 1 + i)
			continue;
		while (w->nodes[giver].starts == fanout - (giver || own >= 0)) {
			/* The next root; there is one, since each started one at least. */
			for (k = giver; w->clusters[clusters[k]].root != 1 + k; k++)
				;
			giver = 1 + k;
		}
		w->nodes[giver].starts++;
		starters[i] = giver - 1;
	}
}

static void start_others(struct work *w, const uint32_t *clusters, uint32_t nhosts, uint32_t fanout,
	uint32_t *starters)
{
	uint32_t i;

	for (i = 0; i < nhosts; i++) {
		struct cluster *c = &w->clusters[clusters[i]];

		if (c->root == 1 + i)
			continue;
		while (w->nodes[c->giver].starts == fanout)
			c->giver = w->nodes[c->giver].next;
		w->nodes[c->giver].starts++;
		starters[i] = c->giver - 1;
	}
}

int gci_starters(const uint32_t *clusters, uint32_t nhosts, uint32_t nclusters, int own,
	uint32_t fanout, uint32_t *starters)
{
	struct work w;
	uint32_t i;
	int rc = 0;

	for (i = 0; i < nhosts; i++)
		starters[i] = GCI_STARTER_SELF;
	if (nhosts <= fanout)
		return 0;
	w.nodes = gci_calloc((size_t)nhosts + 1, sizeof(*w.nodes));
	w.clusters = gci_calloc(nclusters, sizeof(*w.clusters));
	if (!w.nodes || !w.clusters) {
		rc = GCOLL_ERR_NOMEM;
		goto out;
	}
	for (i = 0; i < nclusters; i++)
		w.clusters[i].root = NONE;
	for (i = 0; i <= nhosts; i++)
		w.nodes[i].next = NONE;
	if (own >= 0)
		see(&w, 0, (uint32_t)own);
	for (i = 0; i < nhosts; i++)
		see(&w, 1 + i, clusters[i]);
	start_roots(&w, clusters, nhosts, own, fanout, starters);
	start_others(&w, clusters, nhosts, fanout, starters);
out:
	gci_free(w.nodes);
	gci_free(w.clusters);
	return rc;
}

static uint32_t cluster_of(const struct gci_placement *p, const struct gci_place *l)
{
	return (uint32_t)gci_grid_cluster_of(&p->grid, (int)p->hosts[l->first]);
}

/* Hosts named without a grid file are taken to be near. */
static int own_cluster(const struct gci_placement *p, const struct gci_options *o)
{
	uint32_t i;

	for (i = 0; i < p->nplaces; i++)
		if (p->places[i].how == GCI_PLACE_LOCAL)
			return (int)cluster_of(p, &p->places[i]);
	return o->grid ? -1 : 0;
}

/* Where a death must not take others along, nobody depends on another host by default. */
static uint32_t fanout(const struct gci_options *o)
{
	return o->ssh.fanout ? o->ssh.fanout : o->survives ? UINT32_MAX : GCI_STARTERS_FANOUT;
}

static int choose_starters(
	struct gci_placement *p, const struct gci_options *o, struct gci_error *e)
{
	uint32_t *clusters = gci_calloc(p->nplaces, sizeof(*clusters)), n = 0, i;
	uint32_t *places = gci_calloc(p->nplaces, sizeof(*places)); /* those by ssh */
	uint32_t *starters = gci_calloc(p->nplaces, sizeof(*starters));
	int rc = 0;

	if (!clusters || !places || !starters) {
		rc = nomem(e);
		goto out;
	}
	for (i = 0; i < p->nplaces; i++) {
		if (p->places[i].how != GCI_PLACE_SSH)
			continue;
		places[n] = i;
		clusters[n++] = cluster_of(p, &p->places[i]);
	}
	if (gci_starters(clusters, n, (uint32_t)p->grid.nclusters, own_cluster(p, o), fanout(o),
		    starters)) {
		rc = nomem(e);
		goto out;
	}
	for (i = 0; i < n; i++)
		if (starters[i] != GCI_STARTER_SELF)
			p->places[places[i]].starter = places[starters[i]];
out:
	gci_free(clusters);
	gci_free(places);
	gci_free(starters);
	return rc;
}

static int choose_address(struct gci_placement *p, const struct gci_options *o, struct gci_error *e)
{
	uint32_t i;

	/* Ours are the ports of our machine, if it is in the grid. */
	p->listen_ports = o->net.ports;
	for (i = 0; i < p->nplaces && !p->listen_ports.lo; i++)
		if (p->places[i].how == GCI_PLACE_LOCAL)
			p->listen_ports = p->places[i].access.ports;
	if (p->listen_ip)
		return 0;
	for (i = 0; i < p->nplaces; i++)
		if (p->places[i].how == GCI_PLACE_SSH)
			return 0;
	p->listen_ip = gci_strdup("127.0.0.1");
	return p->listen_ip ? 0 : nomem(e);
}

/* ---- Ranks that others start: each says by which name its host goes. */

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
		return nomem(e);
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
				  : nomem(e);
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
	if (o->net.interfaces)
		p->places[0].access.interfaces = (char *)(uintptr_t)o->net.interfaces;
	if (o->net.ports.lo)
		p->places[0].access.ports = o->net.ports;
	p->nplaces = 1;
	return 0;
}

static int place_guests(
	struct gci_placement *p, const struct gci_options *o, uint32_t nhosts, struct gci_error *e)
{
	uint32_t per = o->per_host ? o->per_host : 1;

	p->hosts_are_said = !o->grid && !o->hosts;
	p->size = o->nranks ? o->nranks : nhosts * per;
	p->nguests = p->size - (o->guests.join != NULL);
	p->rendezvous = o->guests.join;
	if (p->size > GCI_CTL_MAX_RANKS)
		return gci_error_set(e, GCOLL_ERR_INVAL, "%u ranks, expected at most %d (see -n)",
			p->size, GCI_CTL_MAX_RANKS);
	p->said = gci_calloc(p->size, sizeof(*p->said));
	p->hosts = gci_calloc(p->size, sizeof(*p->hosts));
	p->names = gci_calloc(p->size, sizeof(*p->names));
	p->places = gci_calloc(1, sizeof(*p->places));
	p->clusters = gci_calloc(p->size, sizeof(*p->clusters));
	if (!p->said || !p->clusters || !p->hosts || !p->names || !p->places)
		return nomem(e);
	p->listen_ports.lo = p->listen_ports.hi = o->guests.serve_port;
	if (*o->guests.serve_ip && !(p->listen_ip = gci_strdup(o->guests.serve_ip)))
		return nomem(e);
	return o->guests.join ? place_own(p, o, e) : 0;
}

/* ---- All of it. */

int gci_placement_make(struct gci_placement *p, const struct gci_options *o, struct gci_error *e)
{
	struct gci_error why = {0};
	struct sites s = {0};
	json_t *root = NULL;
	int rc;

	memset(p, 0, sizeof(*p));
	if (o->lab)
		rc = load_lab(p, o, &root, &s, &why);
	else
		rc = o->grid_text ? parse_grid(p, o->grid_text, o->grid, e)
		     : o->grid    ? load_grid(p, o->grid, e)
				  : flat_grid(p, o, e);
	if (why.status)
		gci_error_set(
			e, rc, "%s%s", o->lab_from_environment ? "GRIDCOLL_LAB: " : "", why.text);
	if (!rc && !o->lab)
		rc = all_hosts(p, &s, e);
	if (!rc && o->hosts && (o->grid || o->lab))
		rc = keep_named(p, o->hosts, &s, e);
	p->address = o->net.address;
	if (!rc && (o->guests.serve || o->guests.join)) {
		rc = place_guests(p, o, s.n, e);
	} else if (!rc) {
		rc = place(p, o, &s, e);
		if (!rc)
			rc = choose_starters(p, o, e);
		if (!rc)
			rc = choose_address(p, o, e);
	}
	json_decref(root);
	gci_free(s.v);
	if (rc)
		gci_placement_free(p);
	return rc;
}

void gci_placement_free(struct gci_placement *p)
{
	uint32_t i;

	for (i = 0; i < p->nplaces; i++)
		gci_free(p->places[i].netns);
	for (i = 0; p->said && i < p->size; i++)
		gci_free(p->said[i]);
	gci_free(p->said);
	gci_free(p->clusters);
	gci_free(p->places);
	gci_free(p->hosts);
	gci_free(p->names);
	gci_free(p->grid_text);
	gci_free(p->table_text);
	gci_free(p->listen_ip);
	gci_free(p->listen_netns);
	free(p->lab);
	gci_grid_free(&p->grid);
	memset(p, 0, sizeof(*p));
}

/* Makes the text that ranks are told anew, of a grid that was changed. */
static int retell(struct gci_placement *p, struct gci_error *e)
{
	struct gci_buf text = {0};
	char *copy;

	gci_grid_print(&p->grid, &text);
	copy = text.failed ? NULL : gci_strdup(gci_buf_cstr(&text));
	gci_buf_free(&text);
	if (!copy)
		return nomem(e);
	gci_free(p->grid_text);
	p->grid_text = copy;
	return 0;
}

/* ---- The table of decisions that a job is given: read once, here, and handed to all ranks. */

/* Clusters that the job has ranks in. */
static int count_clusters(const struct gci_placement *p)
{
	unsigned char seen[GCI_GRID_MAX_CLUSTERS] = {0};
	uint32_t i;
	int n = 0;

	for (i = 0; i < p->size; i++) {
		int c = gci_grid_cluster_of(&p->grid, (int)p->hosts[i]);

		n += !seen[c];
		seen[c] = 1;
	}
	return n;
}

/* A table that looks as if it would be used, and is not. */
static void say_whom(const struct gci_placement *p, const char *path, const struct gci_table *t)
{
	int n = count_clusters(p);

	if (t->nranks < (int)p->size)
		gci_log(GCI_LOG_WARN,
			"%s is for %d ranks: of the job's %u, "
			"only communicators of that many use it",
			path, t->nranks, p->size);
	else if (t->nclusters != n)
		gci_log(GCI_LOG_WARN,
			"%s is for ranks in %d cluster%s, this job's are in %d: it is not used, "
			"algorithms are chosen as without it",
			path, t->nclusters, t->nclusters == 1 ? "" : "s", n);
}

static int take_table(
	struct gci_placement *p, const char *path, const struct gci_table *t, struct gci_error *e)
{
	struct gci_buf text = {0};

	if (t->nranks > (int)p->size)
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"%s: made for %d ranks, expected at most the %u of this job", path,
			t->nranks, p->size);
	say_whom(p, path, t);
	gci_table_print(t, &text); /* not the file's own bytes: no longer than it must be */
	p->table_text = text.failed ? NULL : gci_strdup(gci_buf_cstr(&text));
	p->table_digest = gci_table_digest(t);
	gci_buf_free(&text);
	return p->table_text ? 0 : nomem(e);
}

int gci_placement_table(struct gci_placement *p, const struct gci_options *o, struct gci_error *e)
{
	struct gci_table t = {0};
	struct gci_buf text = {0};
	struct gci_error why = {0};
	int rc;

	if (!o->table)
		return 0;
	rc = gci_file_read(o->table, GCI_TABLE_MAX_TEXT, &text, &why);
	if (!rc)
		rc = gci_table_parse(&t, (const char *)text.data, text.len, o->table,
			gci_grid_digest(&p->grid), &why);
	if (!rc)
		rc = take_table(p, o->table, &t, &why);
	if (rc)
		gci_error_set(e, rc, "%s%s", o->table_from_environment ? "GRIDCOLL_TABLE: " : "",
			why.text);
	gci_table_free(&t);
	gci_buf_free(&text);
	return rc;
}

/* ---- What gridcoll probe measured of the job's grid, as far as ranks go by it: how many streams a link
 * is worth. They find it in the grid's text. */

int gci_placement_params(struct gci_placement *p, const struct gci_options *o, struct gci_error *e)
{
	struct gci_params params = {0};
	struct gci_buf text = {0};
	int rc;

	if (!o->params)
		return 0;
	rc = gci_file_read(o->params, GCI_PARAMS_MAX_TEXT, &text, e);
	if (!rc)
		rc = gci_params_parse(
			&params, (const char *)text.data, text.len, o->params, &p->grid, e);
	if (!rc) {
		if (gci_params_streams(&params, &p->grid) + gci_params_senders(&params, &p->grid))
			rc = retell(p, e);
		gci_params_free(&params);
	}
	gci_buf_free(&text);
	return rc;
}

/* ---- Budgets of a job: those it begins with, and those it is told of while it runs. */

static int find_cluster(const struct gci_grid *g, const char *name, struct gci_error *e)
{
	struct gci_buf list = {0};
	int i;

	for (i = 0; i < g->nclusters; i++)
		if (!strcmp(g->clusters[i].name, name))
			return i;
	for (i = 0; i < g->nclusters; i++)
		gci_buf_printf(&list, "%s%s", i ? ", " : "", g->clusters[i].name);
	gci_error_set(e, GCOLL_ERR_INVAL, "unknown cluster %s, expected one of: %.300s", name,
		gci_buf_cstr(&list));
	gci_buf_free(&list);
	return -1;
}

static struct gci_link *find_link(
	struct gci_placement *p, const struct gci_budget_order *o, struct gci_error *e)
{
	int from = find_cluster(&p->grid, o->from, e);
	int to = from < 0 ? -1 : find_cluster(&p->grid, o->to, e);

	if (to < 0)
		return NULL;
	if (from == to) {
		gci_error_set(
			e, GCOLL_ERR_INVAL, "cluster %s to itself, expected two clusters", o->from);
		return NULL;
	}
	return &p->grid.links[gci_grid_link(&p->grid, from, to) - p->grid.links];
}

/* A lab's links are slower than the grid's by as much as its time is. */
static uint64_t in_lab(const struct gci_grid *g, uint64_t bps)
{
	return bps && bps < g->dilation ? 1 : bps / g->dilation;
}

static const char nobody_keeps[] = "with --pace off nobody keeps a budget";

int gci_placement_budgets(struct gci_placement *p, const struct gci_options *o, struct gci_error *e)
{
	const char *pace = o->net.pace ? o->net.pace : getenv("GRIDCOLL_PACE");
	struct gci_budget_order order;
	unsigned i;
	struct gci_link *link;

	p->unpaced = pace && !strcmp(pace, "off");
	if (p->unpaced && o->net.nbudgets)
		return gci_error_set(e, GCOLL_ERR_INVAL, "--wan-budget %.60s: %s",
			o->net.budgets[0], nobody_keeps);
	for (i = 0; i < o->net.nbudgets; i++) {
		struct gci_error why = {0};

		if (gci_budget_parse(&order, o->net.budgets[i], e))
			return e->status;
		link = find_link(p, &order, &why);
		if (!link)
			return gci_error_set(e, why.status, "--wan-budget %.60s: %s",
				o->net.budgets[i], why.text);
		link->budget_bps = in_lab(&p->grid, order.bps);
	}
	return o->net.nbudgets ? retell(p, e) : 0;
}

struct gci_link *gci_placement_budget(struct gci_placement *p, const struct gci_budget_order *o,
	uint64_t *bps, struct gci_error *e)
{
	struct gci_link *link = find_link(p, o, e);

	if (link && p->unpaced) {
		gci_error_set(e, GCOLL_ERR_UNSUPPORTED, "%s", nobody_keeps);
		return NULL;
	}
	*bps = in_lab(&p->grid, o->bps);
	return link;
}

/* ---- What ranks of this machine would refuse, each by itself. Other hosts may have it. */

static int has_local_ranks(const struct gci_placement *p)
{
	uint32_t i;

	for (i = 0; i < p->nplaces && p->places[i].how != GCI_PLACE_LOCAL; i++)
		;
	return i < p->nplaces;
}

static int check_interfaces(const char *rules, struct gci_error *e)
{
	const char *name =
		rules == getenv("GRIDCOLL_INTERFACES") ? "GRIDCOLL_INTERFACES" : "--interfaces";
	struct gci_nic_addr *have;
	struct gci_nics nics;
	unsigned n, chosen;
	char list[300];

	if (gci_nics_parse(&nics, rules, e) || gci_own_list(&have, &n, e))
		return e->status;
	if (nics.n && !gci_nics_choose(&nics, have, n, -1, &chosen, 1))
		gci_error_set(e, GCOLL_ERR_INVAL,
			"%s: no address of this host matches the interfaces \"%.100s\"; there are: "
			"%s",
			name, rules, gci_nics_list(have, n, list, sizeof(list)));
	gci_free(have);
	return e->status;
}

int gci_placement_check(
	const struct gci_placement *p, const struct gci_options *o, struct gci_error *e)
{
	const char *congestion =
		o->net.congestion ? o->net.congestion : getenv("GRIDCOLL_CONGESTION");
	struct gci_error why = {0};

	if (!has_local_ranks(p))
		return 0;
	if (congestion && *congestion && strcmp(congestion, "default") &&
		gci_sockopt_congestion(congestion, &why))
		return gci_error_set(e, why.status, "%s: %s, or default",
			o->net.congestion ? "--congestion" : "GRIDCOLL_CONGESTION", why.text);
	return o->net.interfaces ? check_interfaces(o->net.interfaces, e) : 0;
}
