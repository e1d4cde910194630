/* SPDX-License-Identifier: MIT */
#include "launcher/placement.h"

#include "base/file.h"
#include "base/mem.h"
#include "transport/control.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One host that may take ranks. */
struct site {
	int host; /* number in the grid */
	const char *netns;
};

struct sites {
	struct site *v;
	uint32_t n;
};

static int nomem(struct gci_error *e)
{
	return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
}

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

	return rc ? gci_error_set(e, rc, "--hosts: %.440s", why.text) : 0;
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
	if (o->interfaces)
		l->access.interfaces = (char *)(uintptr_t)o->interfaces;
	if (o->ports.lo)
		l->access.ports = o->ports;
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
	return o->ssh_fanout ? o->ssh_fanout : o->survives ? UINT32_MAX : GCI_STARTERS_FANOUT;
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
	p->listen_ports = o->ports;
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
		gci_error_set(e, rc, "%s%.400s", o->lab_from_environment ? "GRIDCOLL_LAB: " : "",
			why.text);
	if (!rc && !o->lab)
		rc = all_hosts(p, &s, e);
	if (!rc && o->hosts && (o->grid || o->lab))
		rc = keep_named(p, o->hosts, &s, e);
	p->address = o->address;
	if (!rc && (o->serve || o->join)) {
		rc = gci_placement_guests(p, o, s.n, e);
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

int gci_placement_retell(struct gci_placement *p, struct gci_error *e)
{
	struct gci_buf text = {0};
	char *copy;

	gci_grid_print(&p->grid, &text);
	copy = text.failed ? NULL : gci_strdup(gci_buf_cstr(&text));
	gci_buf_free(&text);
	if (!copy)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	gci_free(p->grid_text);
	p->grid_text = copy;
	return 0;
}
