/* SPDX-License-Identifier: MIT */
#include "collectives/models/params_json.h"

#include "base/jsontext.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define VERSION 1
/* Longer patterns of isends would not fit into a measurement. */
#define MAX_PATTERN (1u << 20)

static int nomem(const struct gci_json_node *at)
{
	return gci_error_set(at->doc->e, GCOLL_ERR_NOMEM, "out of memory");
}

static int time_of(const struct gci_json_node *o, const char *key, uint64_t *ns)
{
	return gci_json_uint(o, key, 0, GCI_PARAMS_MAX_NS, ns);
}

/* The key by which a list rises; `i` and `before` are of the element before. */
static int rising(const struct gci_json_node *o, const char *key, uint64_t least, uint64_t most,
	int first, uint64_t before, uint64_t *out)
{
	int rc = gci_json_uint(o, key, least, most, out);

	if (!rc && !first && *out <= before)
		rc = gci_json_expected(o, key, "more than %" PRIu64 ", which is before it", before);
	return rc;
}

static int read_point(const struct gci_json_node *o, size_t i, const struct gci_params_link *l,
	struct gci_params_point *p)
{
	static const char *const keys[] = {"nbytes", "os_ns", "or_ns", "gap_ns", NULL};
	int rc = gci_json_keys(o, keys);

	if (!rc)
		rc = rising(o, "nbytes", 0, GCI_PARAMS_MAX_NBYTES, !i,
			i ? l->points[i - 1].nbytes : 0, &p->nbytes);
	if (!rc && !i && p->nbytes)
		rc = gci_json_expected(o, "nbytes", "0, of the first point");
	if (!rc)
		rc = time_of(o, "os_ns", &p->os_ns);
	if (!rc)
		rc = time_of(o, "or_ns", &p->or_ns);
	if (!rc)
		rc = time_of(o, "gap_ns", &p->gap_ns);
	/* Kielmann 2001, 2.1: the gap covers the overheads. */
	if (!rc && p->gap_ns < p->os_ns)
		rc = gci_json_expected(
			o, "gap_ns", "no less than os_ns, which is %" PRIu64, p->os_ns);
	if (!rc && p->gap_ns < p->or_ns)
		rc = gci_json_expected(
			o, "gap_ns", "no less than or_ns, which is %" PRIu64, p->or_ns);
	return rc;
}

static int read_rate(const struct gci_json_node *o, const char *number, uint64_t most, size_t i,
	struct gci_params_rate *list)
{
	const char *const keys[] = {number, "bps", NULL};
	uint64_t n = 0;
	int rc = gci_json_keys(o, keys);

	if (!rc)
		rc = rising(o, number, 1, most, !i, i ? list[i - 1].streams : 0, &n);
	if (!rc)
		rc = gci_json_uint(o, "bps", 1, GCI_PARAMS_MAX_BPS, &list[i].bps);
	list[i].streams = (uint32_t)n;
	return rc;
}

static int read_isend(const struct gci_json_node *o, size_t i, const struct gci_params_link *l,
	struct gci_params_isend *s)
{
	static const char *const keys[] = {"nbytes", "immediate", "initial", "mid", "os_start_ns",
		"os_spike_ns", "os_mid_ns", NULL};
	uint64_t initial = 0, mid = 0;
	int rc = gci_json_keys(o, keys);

	if (!rc)
		rc = rising(o, "nbytes", 0, GCI_PARAMS_MAX_NBYTES, !i,
			i ? l->isends[i - 1].nbytes : 0, &s->nbytes);
	if (!rc)
		rc = gci_json_bool(o, "immediate", &s->immediate);
	if (!rc)
		rc = gci_json_uint(o, "initial", 0, MAX_PATTERN, &initial);
	if (!rc)
		rc = gci_json_uint(o, "mid", 0, MAX_PATTERN, &mid);
	if (!rc)
		rc = time_of(o, "os_start_ns", &s->os_start_ns);
	if (!rc)
		rc = time_of(o, "os_spike_ns", &s->os_spike_ns);
	if (!rc)
		rc = time_of(o, "os_mid_ns", &s->os_mid_ns);
	s->initial = (uint32_t)initial;
	s->mid = (uint32_t)mid;
	return rc;
}

/* A list of the link that may be missing: `array` is empty then. */
static int open_list(const struct gci_json_node *o, const char *key, size_t size, void **list,
	struct gci_json_node *array)
{
	int rc;

	array->n = 0;
	if (!gci_json_has(o, key))
		return 0;
	rc = gci_json_array(o, key, 1, GCI_PARAMS_MAX_POINTS, array);
	if (rc)
		return rc;
	*list = gci_calloc(array->n, size);
	return *list ? 0 : nomem(o);
}

static int read_points(const struct gci_json_node *o, struct gci_params_link *l)
{
	struct gci_json_node array, it;
	void *list = NULL;
	int rc = open_list(o, "points", sizeof(*l->points), &list, &array);

	l->points = list;
	while (!rc && l->npoints < array.n) {
		rc = gci_json_item(&array, l->npoints, &it);
		if (!rc)
			rc = read_point(&it, l->npoints, l, &l->points[l->npoints]);
		l->npoints++;
	}
	return rc;
}

static int read_rates(const struct gci_json_node *o, const char *key, const char *number,
	uint64_t most, struct gci_params_rate **rates, size_t *n)
{
	struct gci_json_node array, it;
	void *list = NULL;
	int rc = open_list(o, key, sizeof(**rates), &list, &array);

	*rates = list;
	while (!rc && *n < array.n) {
		rc = gci_json_item(&array, *n, &it);
		if (!rc)
			rc = read_rate(&it, number, most, *n, *rates);
		++*n;
	}
	return rc;
}

static int read_isends(const struct gci_json_node *o, struct gci_params_link *l)
{
	struct gci_json_node array, it;
	void *list = NULL;
	int rc = open_list(o, "isends", sizeof(*l->isends), &list, &array);

	l->isends = list;
	while (!rc && l->nisends < array.n) {
		rc = gci_json_item(&array, l->nisends, &it);
		if (!rc)
			rc = read_isend(&it, l->nisends, l, &l->isends[l->nisends]);
		l->nisends++;
	}
	return rc;
}

static int find_cluster(const struct gci_params *p, const char *name)
{
	int i;

	for (i = 0; i < p->nclusters; i++)
		if (!strcmp(p->clusters[i], name))
			return i;
	return -1;
}

static int read_cluster_name(
	const struct gci_params *p, const struct gci_json_node *o, const char *key, int *out)
{
	const char *name;
	int rc = gci_json_string(o, key, 64, &name);

	if (rc)
		return rc;
	*out = find_cluster(p, name);
	return *out < 0 ? gci_json_expected(o, key, "one of \"clusters\"") : 0;
}

static int read_link(struct gci_params *p, const struct gci_json_node *o, char *seen)
{
	static const char *const keys[] = {
		"from", "to", "latency_ns", "points", "rates", "senders", "isends", NULL};
	struct gci_params_link *l;
	int rc = gci_json_keys(o, keys), from = 0, to = 0;

	if (!rc)
		rc = read_cluster_name(p, o, "from", &from);
	if (!rc)
		rc = read_cluster_name(p, o, "to", &to);
	if (rc)
		return rc;
	if (seen[from * p->nclusters + to]++)
		return gci_json_fail(o, NULL, GCOLL_ERR_PARSE,
			"the link from %s to %s is there twice, expected each once",
			p->clusters[from], p->clusters[to]);
	l = gci_params_link(p, from, to);
	rc = time_of(o, "latency_ns", &l->latency_ns);
	if (!rc)
		rc = read_points(o, l);
	if (!rc)
		rc = read_rates(
			o, "rates", "streams", GCI_PARAMS_MAX_STREAMS, &l->rates, &l->nrates);
	if (!rc)
		rc = read_rates(
			o, "senders", "senders", GCI_GRID_MAX_HOSTS, &l->senders, &l->nsenders);
	return rc ? rc : read_isends(o, l);
}

static int read_links(struct gci_params *p, const struct gci_json_node *root)
{
	size_t i, n = (size_t)p->nclusters * (size_t)p->nclusters;
	char *seen = gci_calloc(n, 1);
	struct gci_json_node links, it;
	int rc;

	p->links = gci_calloc(n, sizeof(*p->links));
	rc = seen && p->links ? gci_json_array(root, "links", 0, n, &links) : nomem(root);
	for (i = 0; !rc && i < links.n; i++) {
		rc = gci_json_item(&links, i, &it);
		if (!rc)
			rc = read_link(p, &it, seen);
	}
	gci_free(seen);
	return rc;
}

/* What a grid file takes as a name. */
static int is_name(const char *s)
{
	return strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") ==
	       strlen(s);
}

static int read_name(struct gci_params *p, const struct gci_json_node *names, size_t i)
{
	struct gci_json_node at;
	const char *name;
	int rc = gci_json_string_item(names, i, 64, &name);

	if (rc)
		return rc;
	gci_json_at(names, i, &at);
	if (!is_name(name))
		return gci_json_expected(
			&at, NULL, "a name of letters, digits, \"-\", \"_\" and \".\"");
	if (find_cluster(p, name) >= 0)
		return gci_json_fail(&at, NULL, GCOLL_ERR_PARSE,
			"cluster %s is there twice, expected each once", name);
	p->clusters[i] = gci_strdup(name);
	if (!p->clusters[i])
		return nomem(names);
	p->nclusters++;
	return 0;
}

static int read_clusters(struct gci_params *p, const struct gci_json_node *root)
{
	struct gci_json_node names;
	size_t i;
	int rc = gci_json_array(root, "clusters", 1, GCI_GRID_MAX_CLUSTERS, &names);

	if (rc)
		return rc;
	p->clusters = gci_calloc(names.n, sizeof(*p->clusters));
	if (!p->clusters)
		return nomem(root);
	for (i = 0; !rc && i < names.n; i++)
		rc = read_name(p, &names, i);
	return rc;
}

static int read_latency(struct gci_params *p, const struct gci_json_node *root)
{
	const char *what;
	int rc = gci_json_string(root, "latency", 64, &what);

	if (rc)
		return rc;
	if (!strcmp(what, "one way"))
		p->latency = GCI_LATENCY_ONE_WAY;
	else if (!strcmp(what, "half a round trip"))
		p->latency = GCI_LATENCY_HALF_ROUND_TRIP;
	else
		return gci_json_expected(root, "latency", "\"half a round trip\" or \"one way\"");
	return 0;
}

static int read_head(struct gci_params *p, const struct gci_json_node *root)
{
	static const char *const keys[] = {
		"version", "date", "grid_digest", "dilation", "latency", "clusters", "links", NULL};
	uint64_t version = 0, dilation = 1;
	const char *date = "";
	int rc = gci_json_uint(root, "version", VERSION, VERSION, &version);

	/* Another version may have other keys. */
	if (!rc)
		rc = gci_json_keys(root, keys);
	if (!rc)
		rc = gci_json_date(root, "date", &date);
	if (!rc)
		rc = gci_json_digest(root, "grid_digest", &p->grid_digest);
	if (!rc)
		rc = gci_json_uint(root, "dilation", 1, UINT32_MAX, &dilation);
	snprintf(p->date, sizeof(p->date), "%s", date);
	p->dilation = (uint32_t)dilation;
	return rc ? rc : read_latency(p, root);
}

/* Of another grid, or of this one with its clusters changed by hand. */
static int check_grid(
	const struct gci_params *p, const struct gci_json_node *root, const struct gci_grid *g)
{
	struct gci_json_node names, at;
	int i;

	if (p->grid_digest != gci_grid_digest(g))
		return gci_json_fail(root, "grid_digest", GCOLL_ERR_INVAL,
			"measured on another grid, or before this one was changed: its digest is "
			"%016" PRIx64 ", expected %016" PRIx64 "; gridcoll probe measures this one",
			p->grid_digest, gci_grid_digest(g));
	if (p->nclusters != g->nclusters)
		return gci_json_fail(root, "clusters", GCOLL_ERR_INVAL,
			"%d clusters, expected the %d of the grid", p->nclusters, g->nclusters);
	for (i = 0; i < p->nclusters; i++) {
		if (!strcmp(p->clusters[i], g->clusters[i].name))
			continue;
		gci_json_array(root, "clusters", 1, GCI_GRID_MAX_CLUSTERS, &names);
		gci_json_at(&names, (size_t)i, &at);
		return gci_json_fail(&at, NULL, GCOLL_ERR_INVAL,
			"cluster %s, expected %s as in the grid", p->clusters[i],
			g->clusters[i].name);
	}
	return 0;
}

int gci_params_parse(struct gci_params *p, const char *text, size_t len, const char *name,
	const struct gci_grid *g, struct gci_error *e)
{
	struct gci_json_node root;
	struct gci_json j;
	int rc;

	memset(p, 0, sizeof(*p));
	rc = gci_json_open(&j, &root, text, len, GCI_PARAMS_MAX_TEXT, name, e);
	if (!rc)
		rc = read_head(p, &root);
	if (!rc)
		rc = read_clusters(p, &root);
	if (!rc && g)
		rc = check_grid(p, &root, g);
	if (!rc)
		rc = read_links(p, &root);
	gci_json_close(&j);
	if (rc)
		gci_params_free(p);
	return rc;
}
