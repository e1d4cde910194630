/* SPDX-License-Identifier: MIT
 * The grid file's parser, on libinih. libinih cuts long names silently and joins indented lines
 * to the value before, so its reader is ours: it counts lines, strips indentation, and refuses
 * what would be cut. */
#include "base/mem.h"
#include "base/units.h"
#include "collectives/grid/grid_impl.h"

#include <ctype.h>
#include <ini.h>
#include <stdio.h>
#include <string.h>

#define fail(p, ...) gci_grid_fail_at(p, (p)->line, __VA_ARGS__)

int gci_grid_is_cluster_name(const char *name)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				"0123456789-_.");

	return n && !name[n] && strcmp(name, ".") && strcmp(name, "..");
}

int gci_grid_take_cluster(const char *said, char *out, size_t size, struct gci_error *e)
{
	if (!said)
		said = "";
	if (*said && (strlen(said) >= size || !gci_grid_is_cluster_name(said)))
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"GRIDCOLL_CLUSTER=%.100s, expected a name of at most "
			"%zu " GCI_GRID_CLUSTER_CHARACTERS,
			said, size - 1);
	strcpy(out, said);
	return 0;
}

/* Clusters and switches have their names in common. */
static int check_new_name(struct gci_grid_parser *p, const char *name, const char *kind)
{
	int end = gci_grid_find_end(p->g, name);

	if (!gci_grid_is_cluster_name(name))
		return fail(p, "bad %s name \"%s\", expected [%s NAME]", kind, name, kind);
	if (end < 0)
		return 0;
	if (end < GCI_GRID_MAX_CLUSTERS && !strcmp(kind, "cluster"))
		return fail(p, "cluster %s is there twice (first in line %d)", name,
			p->cluster_lines[end]);
	return fail(p, "%s %s, expected another name than that of a %s above", kind, name,
		end < GCI_GRID_MAX_CLUSTERS ? "cluster" : "switch");
}

static int open_cluster(struct gci_grid_parser *p, const char *name)
{
	struct gci_grid *g = p->g;
	size_t n = (size_t)g->nclusters;

	if (check_new_name(p, name, "cluster"))
		return p->e->status;
	if (g->nclusters >= GCI_GRID_MAX_CLUSTERS)
		return fail(p, "more than %d clusters", GCI_GRID_MAX_CLUSTERS);
	if (gci_grow(&p->cluster_lines, &p->cluster_lines_cap, n + 1, sizeof(int)))
		return gci_grid_nomem(p);
	if (gci_grow_by_one(&g->clusters, n, sizeof(*g->clusters)))
		return gci_grid_nomem(p);
	memset(&g->clusters[n], 0, sizeof(*g->clusters));
	g->clusters[n].name = gci_strdup(name);
	if (!g->clusters[n].name)
		return gci_grid_nomem(p);
	p->cluster_lines[n] = p->line;
	p->cluster = g->nclusters++;
	return 0;
}

static int open_switch(struct gci_grid_parser *p, const char *name)
{
	struct gci_grid *g = p->g;

	if (check_new_name(p, name, "switch"))
		return p->e->status;
	if (g->nswitches >= GCI_GRID_MAX_SWITCHES)
		return fail(p, "more than %d switches", GCI_GRID_MAX_SWITCHES);
	if (gci_grow_by_one(&g->switches, (size_t)g->nswitches, sizeof(*g->switches)))
		return gci_grid_nomem(p);
	g->switches[g->nswitches] = gci_strdup(name);
	if (!g->switches[g->nswitches])
		return gci_grid_nomem(p);
	g->nswitches++;
	p->in_switch = 1;
	return 0;
}

static int add_link(struct gci_grid_parser *p, int from, int to, int is_route)
{
	int *at = &p->link_at[from * GCI_GRID_MAX_ENDS + to];

	if (*at && p->links[*at - 1].is_route != is_route)
		return fail(p, "%s > %s has a link and a route, expected one of the two",
			gci_grid_end(p->g, from), gci_grid_end(p->g, to));
	if (*at)
		return fail(p, "%s %s > %s is there twice", is_route ? "route" : "link",
			gci_grid_end(p->g, from), gci_grid_end(p->g, to));
	if (gci_grow(&p->links, &p->links_cap, p->nlinks_all + 1, sizeof(*p->links)))
		return gci_grid_nomem(p);
	p->links[p->nlinks_all] = (struct gci_link_section){
		.link = {.from = from, .to = to}, .line = p->line, .is_route = is_route};
	*at = (int)++p->nlinks_all;
	p->nlinks++;
	return 0;
}

/* A link or a route. */
static int open_link(struct gci_grid_parser *p, const char *what, int is_route)
{
	char a[GCI_GRID_NAME_LIMIT + 1], b[GCI_GRID_NAME_LIMIT + 1], mid[GCI_GRID_NAME_LIMIT + 1],
		rest[2];
	const char *kind = is_route ? "route" : "link";
	int n = sscanf(what, "%49s %49s %49s %1s", a, mid, b, rest);
	int one_way = n == 3 && !strcmp(mid, ">");
	int from, to, rc;

	if (n == 2)
		memcpy(b, mid, sizeof(b));
	else if (!one_way)
		return fail(p, "bad %s \"%s\", expected [%s A B] or [%s A > B]", kind, what, kind,
			kind);
	from = gci_grid_find_end(p->g, a);
	to = gci_grid_find_end(p->g, b);
	if (from < 0 || to < 0)
		return fail(p, "unknown cluster or switch %s, expected one that stands above",
			from < 0 ? a : b);
	if (from == to)
		return fail(p, "a %s from %s to itself", kind, a);
	if (is_route && (from >= GCI_GRID_MAX_CLUSTERS || to >= GCI_GRID_MAX_CLUSTERS))
		return fail(p, "a route of the switch %s, expected one between clusters",
			from >= GCI_GRID_MAX_CLUSTERS ? a : b);
	rc = add_link(p, from, to, is_route);
	return rc || one_way ? rc : add_link(p, to, from, is_route);
}

/* The host may stand below; gci_grid_check finds it. */
static int open_host(struct gci_grid_parser *p, const char *name)
{
	struct gci_host_section *own;

	if (gci_grow(&p->own, &p->own_cap, p->nown + 1, sizeof(*own)))
		return gci_grid_nomem(p);
	own = &p->own[p->nown];
	*own = (struct gci_host_section){.name = gci_strdup(name), .line = p->line};
	if (!own->name)
		return gci_grid_nomem(p);
	p->nown++;
	p->in_host = 1;
	return 0;
}

/* `line` is what stands after '[', up to ']' and beyond. */
static int open_section(struct gci_grid_parser *p, const char *line)
{
	const char *section = p->section;
	int is_pair = !strncmp(line, "link ", 5) || !strncmp(line, "route ", 6);
	size_t len = strcspn(line, "]"), most = is_pair ? GCI_GRID_PAIR_LIMIT : GCI_GRID_NAME_LIMIT;

	if (line[len] != ']')
		return fail(p, "a section without its ']', expected e.g. [cluster NAME]");
	if (len > most)
		return fail(p, "section name longer than %zu characters", most);
	p->cluster = -1;
	p->nlinks = 0;
	p->in_switch = 0;
	p->in_host = 0;
	p->nkeys = 0;
	p->in_dilated = 0;
	memcpy(p->section, line, len);
	p->section[len] = '\0';
	if (!strncmp(section, "cluster ", 8))
		return open_cluster(p, section + 8 + strspn(section + 8, " "));
	if (!strncmp(section, "link ", 5))
		return open_link(p, section + 5, 0);
	if (!strncmp(section, "route ", 6))
		return open_link(p, section + 6, 1);
	if (!strncmp(section, "switch ", 7))
		return open_switch(p, section + 7 + strspn(section + 7, " "));
	if (!strncmp(section, "host ", 5))
		return open_host(p, section + 5 + strspn(section + 5, " "));
	if (!strcmp(section, "dilated"))
		return gci_grid_open_dilated(p);
	return fail(p,
		"unknown section [%s], expected [cluster NAME], [switch NAME], [link A B], "
		"[route A B] or [host NAME]",
		section);
}

/* fgets() over memory for libinih: one line without its indentation, then NULL. Sections are
 * opened here, since libinih tells of them only with their first key. */
static char *read_line(char *out, int room, void *user)
{
	struct gci_grid_parser *p = user;
	const char *eol, *start;
	size_t len;

	if (p->e->status || p->text == p->end)
		return NULL;
	p->line++;
	eol = memchr(p->text, '\n', (size_t)(p->end - p->text));
	if (!eol)
		eol = p->end;
	for (start = p->text; start < eol && isspace((unsigned char)*start); start++)
		;
	len = (size_t)(eol - start);
	p->text = eol < p->end ? eol + 1 : eol;
	if (memchr(start, '\0', len)) {
		fail(p, "a zero byte, expected text");
		return NULL;
	}
	if (len + 2 > (size_t)room) {
		fail(p, "line longer than %d characters (a key may be repeated for more hosts)",
			room - 2);
		return NULL;
	}
	memcpy(out, start, len);
	out[len] = '\n';
	out[len + 1] = '\0';
	return *out == '[' && open_section(p, out + 1) ? NULL : out;
}

static int add_hosts(struct gci_grid_parser *p, struct gci_cluster *c, const char *value)
{
	struct gci_error why = {0};
	int i, before = c->nhosts;

	if (gci_hosts_expand(value, &c->hosts, &c->nhosts, &why) == GCOLL_ERR_NOMEM)
		return gci_grid_nomem(p);
	if (why.status)
		return fail(p, "hosts: %s", why.text);
	for (i = before; i < c->nhosts; i++) {
		if (gci_grow(&p->host_lines, &p->host_lines_cap, p->nhost_lines + 1, sizeof(int)))
			return gci_grid_nomem(p);
		p->host_lines[p->nhost_lines++] = p->line;
	}
	return 0;
}

static int tini_key(struct gci_grid_parser *p, const char *value, uint64_t *tini_ns)
{
	if (gci_parse_time(value, tini_ns) || !*tini_ns)
		return fail(p, "tini = %s, expected " GCI_TIME_EXPECTED, value);
	return 0;
}

static int rate_key(struct gci_grid_parser *p, const char *key, const char *value, uint64_t *bps)
{
	if (gci_parse_rate(value, bps) || !*bps)
		return fail(p, "%s = %s, expected " GCI_RATE_EXPECTED, key, value);
	return 0;
}

static int host_key(struct gci_grid_parser *p, const char *key, const char *value)
{
	struct gci_grid_own *own = &p->own[p->nown - 1].own;

	if (!strcmp(key, "tini"))
		return tini_key(p, value, &own->tini_ns);
	if (!strcmp(key, "nic"))
		return rate_key(p, key, value, &own->nic_bps);
	if (gci_grid_is_access_key(key))
		return gci_grid_access_key(p, key, value, &own->access);
	return fail(p, "unknown key \"%s\" in [%s], expected nic, tini, interfaces or ports", key,
		p->section);
}

static int cluster_key(struct gci_grid_parser *p, const char *key, const char *value)
{
	struct gci_cluster *c = &p->g->clusters[p->cluster];

	if (!strcmp(key, "hosts"))
		return add_hosts(p, c, value);
	if (!strcmp(key, "nic"))
		return rate_key(p, key, value, &c->nic_bps);
	if (!strcmp(key, "uplink"))
		return rate_key(p, key, value, &c->uplink_bps);
	if (!strcmp(key, "lan_delay")) {
		if (gci_parse_time(value, &c->lan_delay_ns))
			return fail(p, "lan_delay = %s, expected " GCI_TIME_EXPECTED, value);
		return 0;
	}
	if (!strcmp(key, "tini"))
		return tini_key(p, value, &c->tini_ns);
	if (!strcmp(key, "inbound")) {
		if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
			return fail(p, "inbound = %s, expected yes or no", value);
		c->outward = *value == 'n';
		return 0;
	}
	if (gci_grid_is_access_key(key))
		return gci_grid_access_key(p, key, value, &c->access);
	return fail(p,
		"unknown key \"%s\" in [%s], expected hosts, nic, uplink, lan_delay, tini, "
		"inbound, "
		"interfaces or ports",
		key, p->section);
}

static int small_number(const char *value, uint32_t *out)
{
	uint64_t v;

	if (gci_parse_uint(value, 4096, &v) || !v)
		return -1;
	*out = (uint32_t)v;
	return 0;
}

/* "osaka, nagoya": the cities in the middle. */
static int via_key(struct gci_grid_parser *p, const char *value, struct gci_link_section *s)
{
	char name[GCI_GRID_NAME_LIMIT + 1];
	const char *at = value;
	int backwards = p->nlinks == 2 && s == &p->links[p->nlinks_all - 1], end, i, k;

	s->is_route = 1;
	s->via = (int)p->nvia;
	s->via_line = p->line;
	do {
		size_t n = strcspn(at, ",");

		while (n && isspace((unsigned char)*at))
			at++, n--;
		for (k = (int)n; k && isspace((unsigned char)at[k - 1]); k--)
			;
		snprintf(name, sizeof(name), "%.*s", k, at);
		end = k > GCI_GRID_NAME_LIMIT ? -1 : gci_grid_find_end(p->g, name);
		if (end < 0 || end == s->link.from || end == s->link.to)
			return fail(p,
				"via = %s, expected other clusters or switches that stand above",
				value);
		if (gci_grow(&p->via, &p->via_cap, p->nvia + 1, sizeof(*p->via)))
			return gci_grid_nomem(p);
		p->via[p->nvia++] = end;
		at += n + (at[n] == ',');
		/* A comma at the end has a name behind it that is none. */
	} while (*at || at[-1] == ',');
	s->nvia = (int)p->nvia - s->via;
	if (s->nvia >= GCI_GRID_MAX_ROUTE)
		return fail(p, "via: more than %d in the middle", GCI_GRID_MAX_ROUTE - 1);
	for (i = 0, k = s->nvia - 1; backwards && i < k; i++, k--) {
		end = p->via[s->via + i];
		p->via[s->via + i] = p->via[s->via + k];
		p->via[s->via + k] = end;
	}
	return 0;
}

static int link_key(
	struct gci_grid_parser *p, const char *key, const char *value, struct gci_link_section *s)
{
	struct gci_link *l = &s->link;
	const char *expected;
	int bad;

	if (!strcmp(key, "via"))
		return via_key(p, value, s);
	if (!strcmp(key, "rate")) {
		bad = gci_parse_rate(value, &l->rate_bps) || !l->rate_bps;
		expected = GCI_RATE_EXPECTED;
	} else if (!strcmp(key, "flow_rate")) {
		bad = gci_parse_rate(value, &l->flow_rate_bps) || !l->flow_rate_bps;
		expected = GCI_RATE_EXPECTED;
	} else if (!strcmp(key, "budget")) {
		bad = gci_parse_rate(value, &l->budget_bps) || !l->budget_bps;
		expected = GCI_RATE_EXPECTED;
	} else if (!strcmp(key, "delay")) {
		bad = gci_parse_time(value, &l->delay_ns);
		expected = GCI_TIME_EXPECTED;
	} else if (!strcmp(key, "queue")) {
		bad = gci_parse_bytes(value, &l->queue_nbytes) || !l->queue_nbytes;
		expected = GCI_BYTES_EXPECTED;
	} else if (!strcmp(key, "loss")) {
		bad = gci_parse_ratio(value, &l->loss_ppm) || l->loss_ppm == 1000000;
		expected = GCI_RATIO_EXPECTED;
	} else if (!strcmp(key, "streams")) {
		bad = small_number(value, &l->streams) || l->streams > GCI_GRID_MAX_STREAMS;
		expected = "a number from 1 to 64";
	} else if (!strcmp(key, "senders")) {
		bad = small_number(value, &l->senders);
		expected = "a number from 1 to 4096";
	} else {
		return fail(p,
			"unknown key \"%s\" in [%s], expected rate, delay, queue, loss, flow_rate, "
			"streams, senders, budget or via",
			key, p->section);
	}
	return bad ? fail(p, "%s = %s, expected %s", key, value, expected) : 0;
}

/* Of a key that the section knows: more hosts may follow in another line, the rest is said once. */
static int said_once(struct gci_grid_parser *p, const char *key)
{
	int i;

	if (!strcmp(key, "hosts"))
		return 0;
	for (i = 0; i < p->nkeys; i++)
		if (!strcmp(p->keys[i].name, key))
			return fail(p, "%s is there twice in [%s] (first in line %d)", key,
				p->section, p->keys[i].line);
	if (p->nkeys == GCI_GRID_MAX_KEYS)
		return fail(p, "more than %d keys in [%s]", GCI_GRID_MAX_KEYS, p->section);
	snprintf(p->keys[i].name, sizeof(p->keys[i].name), "%s", key);
	p->keys[p->nkeys++].line = p->line;
	return 0;
}

/* libinih's handler: 1 goes on, 0 counts as an error; after the first we only unwind. */
static int on_key(void *user, const char *section, const char *key, const char *value)
{
	struct gci_grid_parser *p = user;
	int i, rc = 0;

	(void)section; /* the reader knows which one is open */
	if (p->e->status)
		return 0;
	if (p->in_switch)
		return !fail(p, "unknown key \"%s\" in [%s], expected none", key, p->section);
	if (p->cluster < 0 && !p->nlinks && !p->in_host && !p->in_dilated)
		rc = fail(p, "\"%s\" before the first section, expected [cluster NAME]", key);
	if (!rc && p->cluster >= 0)
		rc = cluster_key(p, key, value);
	if (!rc && p->in_host)
		rc = host_key(p, key, value);
	if (!rc && p->in_dilated)
		rc = gci_grid_dilated_key(p, key, value);
	for (i = 0; !rc && i < p->nlinks; i++)
		rc = link_key(
			p, key, value, &p->links[p->nlinks_all - (size_t)p->nlinks + (size_t)i]);
	if (!rc)
		rc = said_once(p, key);
	return !rc;
}

int gci_grid_parse(
	struct gci_grid *g, const char *text, size_t len, const char *name, struct gci_error *e)
{
	struct gci_error local = {0};
	struct gci_grid_parser p = {
		.g = g, .file = name, .e = &local, .text = text, .end = len ? text + len : text};
	int line;

	memset(g, 0, sizeof(*g));
	p.cluster = -1;
	if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) /* a byte order mark, as editors leave */
		p.text += 3;
	p.link_at = gci_calloc((size_t)GCI_GRID_MAX_ENDS * GCI_GRID_MAX_ENDS, sizeof(*p.link_at));
	if (!p.link_at) {
		gci_grid_nomem(&p);
	} else if (len > GCI_GRID_MAX_TEXT) {
		gci_error_set(&local, GCOLL_ERR_PARSE, "%s:1: larger than %u bytes", name,
			GCI_GRID_MAX_TEXT);
	} else {
		line = ini_parse_stream(read_line, &p, on_key, &p);
		if (line > 0)
			gci_grid_fail_at(&p, line,
				"not understood, expected [section], key = value or "
				"; comment");
		else if (line < 0)
			gci_grid_nomem(&p);
		if (!local.status)
			gci_grid_check(&p);
		if (!local.status)
			gci_grid_set_digest(&p);
	}
	while (p.nown) {
		gci_free(p.own[--p.nown].own.access.interfaces);
		gci_free(p.own[p.nown].name);
	}
	gci_free(p.own);
	gci_free(p.links);
	gci_free(p.link_at);
	gci_free(p.via);
	gci_free(p.cluster_lines);
	gci_free(p.host_lines);
	if (local.status) {
		gci_grid_free(g);
		return gci_error_set(e, local.status, "%s", local.text);
	}
	return 0;
}
