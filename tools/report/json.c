/* SPDX-License-Identifier: MIT
 * Files for a report; of these, what bench --json and plan --json wrote. Keys that are not known
 * here are newer than this. */
#include "base/jsontext.h"
#include "base/mem.h"
#include "tools/lib/trace_file.h"
#include "tools/report/impl.h"

#include <jansson.h>
#include <string.h>

static void gct_html_free_case(struct gct_html_case *c);
static void gct_html_free_plan(struct gct_html_plan *p);

/* ---- Files on their way into a report. */

int gct_html_knows(const char *name)
{
	const char *dot = strrchr(name, '.');

	return !strcmp(name, "grid") || (dot && (!strcmp(dot, ".json") || !strcmp(dot, ".trace")));
}

static int files_nomem(struct gci_error *e)
{
	return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
}

static int add_grid(struct gct_html *r, const char *text, size_t len, struct gci_error *e)
{
	struct gci_grid g;
	int rc = gci_grid_parse(&g, text, len, "grid", e);

	if (rc)
		return rc;
	gci_grid_free(&g);
	gci_free(r->grid);
	r->grid = gci_strndup(text, len);
	r->grid_len = len;
	return r->grid ? 0 : files_nomem(e);
}

/* Whether it is a run on this grid is seen when the page is made: then the grid is known. */
static int add_trace(
	struct gct_html *r, const char *name, const char *text, size_t len, struct gci_error *e)
{
	struct gct_html_text *t;
	struct gct_trace trace;
	int rc = gct_trace_parse(&trace, text, len, name, e);

	if (rc)
		return rc;
	gct_trace_free(&trace);
	if (gci_grow_by_one(&r->traces, r->ntraces, sizeof(*r->traces)))
		return files_nomem(e);
	t = &r->traces[r->ntraces++];
	*t = (struct gct_html_text){gci_strdup(name), gci_strndup(text, len), len};
	return t->name && t->text ? 0 : files_nomem(e);
}

int gct_html_leave_out(struct gct_html *r, const char *why)
{
	if (gci_grow_by_one(&r->left_out, r->nleft_out, sizeof(*r->left_out)))
		return GCOLL_ERR_NOMEM;
	r->left_out[r->nleft_out] = gci_strdup(why);
	return r->left_out[r->nleft_out++] ? 0 : GCOLL_ERR_NOMEM;
}

int gct_html_add(
	struct gct_html *r, const char *name, const char *text, size_t len, struct gci_error *e)
{
	const char *dot = strrchr(name, '.');
	int rc;

	if (!strcmp(name, "grid"))
		rc = add_grid(r, text, len, e);
	else if (dot && !strcmp(dot, ".trace"))
		rc = add_trace(r, name, text, len, e);
	else
		rc = gct_html_json(r, name, text, len, e);
	if (!rc || rc == GCOLL_ERR_NOMEM)
		return rc;
	return gct_html_leave_out(r, e->text) ? files_nomem(e) : rc;
}

void gct_html_free(struct gct_html *r)
{
	size_t i;

	for (i = 0; i < r->ncases; i++)
		gct_html_free_case(&r->cases[i]);
	for (i = 0; i < r->nplans; i++)
		gct_html_free_plan(&r->plans[i]);
	for (i = 0; i < r->nsources; i++) {
		gci_free(r->sources[i].name);
		gci_free(r->sources[i].lab);
	}
	for (i = 0; i < r->ntraces; i++) {
		gci_free(r->traces[i].name);
		gci_free(r->traces[i].text);
	}
	for (i = 0; i < r->nleft_out; i++)
		gci_free(r->left_out[i]);
	gci_free(r->cases);
	gci_free(r->plans);
	gci_free(r->sources);
	gci_free(r->traces);
	gci_free(r->left_out);
	gci_free(r->grid);
	memset(r, 0, sizeof(*r));
}

/* ---- results and plans */

#define MOST_NS     (UINT64_C(1) << 60)
#define MOST_NBYTES (UINT64_C(1) << 60)
#define MOST_TEXT   512
#define MOST_BINS   (1u << 20)

static int nomem(const struct gci_json_node *node)
{
	return gci_error_set(node->doc->e, GCOLL_ERR_NOMEM, "out of memory");
}

/* A copy; NULL where there is no such key, or an empty text. */
static int maybe_text(const struct gci_json_node *node, const char *key, char **out)
{
	const json_t *v = json_object_get(node->value, key);
	const char *text;
	int rc;

	if (!v || (json_is_string(v) && !json_string_length(v)))
		return 0;
	rc = gci_json_string(node, key, MOST_TEXT, &text);
	if (rc)
		return rc;
	*out = gci_strdup(text);
	return *out ? 0 : nomem(node);
}

static int text(const struct gci_json_node *node, const char *key, char **out)
{
	const char *s;
	int rc = gci_json_string(node, key, MOST_TEXT, &s);

	return rc ? rc : maybe_text(node, key, out);
}

static int maybe_uint(
	const struct gci_json_node *node, const char *key, uint64_t most, uint64_t *out)
{
	return gci_json_has(node, key) ? gci_json_uint(node, key, 0, most, out) : 0;
}

static int parse_kind(const struct gci_json_node *node, enum gci_kind *kind)
{
	const char *name;
	int k, rc = gci_json_string(node, "operation", 32, &name);

	if (rc)
		return rc;
	k = gci_kind_find(name);
	if (k < 0)
		return gci_json_expected(node, "operation", "bcast, reduce, allreduce, ...");
	*kind = (enum gci_kind)k;
	return 0;
}

/* ---- the course of the traffic */

static void free_course(struct gct_html_course *c)
{
	size_t i;

	for (i = 0; i < c->npairs; i++) {
		gci_free(c->pairs[i].from);
		gci_free(c->pairs[i].to);
		gci_free(c->pairs[i].nbytes);
	}
	gci_free(c->pairs);
	memset(c, 0, sizeof(*c));
}

static int parse_bins(const struct gci_json_node *list, struct gct_html_pair *pair)
{
	size_t i;

	pair->nbytes = gci_calloc(list->n, sizeof(*pair->nbytes));
	if (!pair->nbytes)
		return nomem(list);
	for (i = 0; i < list->n; i++) {
		const json_t *v = json_array_get(list->value, i);

		if (!json_is_integer(v) || json_integer_value(v) < 0 ||
			(uint64_t)json_integer_value(v) > MOST_NBYTES / MOST_BINS)
			return gci_json_expected(list, NULL,
				"whole numbers of bytes up to 2^40, not so number %zu", i);
		pair->nbytes[i] = (uint64_t)json_integer_value(v);
		pair->sum += pair->nbytes[i];
	}
	return 0;
}

static int parse_pair(const struct gci_json_node *node, size_t number, struct gct_html_course *c)
{
	struct gct_html_pair *pair = &c->pairs[c->npairs++];
	struct gci_json_node bins;
	int rc = text(node, "from", &pair->from);

	pair->number = number;
	if (!rc)
		rc = text(node, "to", &pair->to);
	if (!rc)
		rc = gci_json_array(node, "bytes", c->nbins ? c->nbins : 1,
			c->nbins ? c->nbins : MOST_BINS, &bins);
	if (rc)
		return rc;
	c->nbins = (uint32_t)bins.n;
	rc = parse_bins(&bins, pair);
	if (rc || pair->sum)
		return rc;
	gci_free(pair->from);
	gci_free(pair->to);
	gci_free(pair->nbytes);
	*pair = (struct gct_html_pair){.from = NULL};
	c->npairs--;
	return 0;
}

static int parse_course(const struct gci_json_node *node, struct gct_html_course *c)
{
	struct gci_json_node course, pairs, pair;
	size_t i;
	int rc = gci_json_object(node, "course", &course);

	if (!rc)
		rc = gci_json_uint(&course, "bin_ns", 1000, MOST_NS / MOST_BINS, &c->bin_ns);
	if (!rc)
		rc = gci_json_array(&course, "pairs", 0, GCI_JSON_MAX_CONTAINERS, &pairs);
	if (rc)
		return rc;
	c->pairs = gci_calloc(pairs.n, sizeof(*c->pairs));
	if (!c->pairs)
		return nomem(node);
	for (i = 0; !rc && i < pairs.n; i++) {
		rc = gci_json_item(&pairs, i, &pair);
		if (!rc)
			rc = parse_pair(&pair, i, c);
	}
	return rc;
}

/* ---- results */

static void gct_html_free_case(struct gct_html_case *c)
{
	gci_free(c->algorithm);
	gci_free(c->asked);
	gci_free(c->not_run);
	free_course(&c->course);
}

static int parse_times(const struct gci_json_node *node, struct gct_html_case *c)
{
	struct gci_json_node warm;
	json_int_t least, most;
	int rc = gci_json_uint(node, "first_ns", 0, MOST_NS, &c->first_ns);

	if (!rc)
		rc = gci_json_uint(node, "median_ns", 0, MOST_NS, &c->median_ns);
	if (!rc)
		rc = gci_json_uint(node, "limit_ns", 0, MOST_NS, &c->limit_ns);
	if (!rc)
		rc = maybe_uint(node, "predicted_ns", MOST_NS, &c->predicted_ns);
	if (!rc)
		rc = gci_json_array(node, "warm_ns", 1, 1000000, &warm);
	if (rc)
		return rc;
	least = json_integer_value(json_array_get(warm.value, 0));
	most = json_integer_value(json_array_get(warm.value, warm.n - 1));
	if (least < 0 || least > most || (uint64_t)most > MOST_NS ||
		(uint64_t)least > c->median_ns || (uint64_t)most < c->median_ns)
		return gci_json_expected(
			node, "warm_ns", "times in rising order around the median");
	c->least_ns = (uint64_t)least;
	c->most_ns = (uint64_t)most;
	return 0;
}

static int parse_figures(const struct gci_json_node *node, struct gct_html_case *c)
{
	const json_t *cpu = json_object_get(node->value, "cpu_percent");
	uint64_t dilation = 1;
	int rc = parse_times(node, c);

	if (!rc)
		rc = gci_json_uint(node, "wan_bytes", 0, MOST_NBYTES, &c->wan_nbytes);
	if (!rc)
		rc = gci_json_uint(
			node, "schedule_wan_bytes", 0, MOST_NBYTES, &c->schedule_wan_nbytes);
	if (!rc)
		rc = gci_json_bool(node, "wan_measured", &c->wan_measured);
	if (!rc)
		rc = gci_json_uint(node, "dilation", 1, 1000000, &dilation);
	if (!rc)
		rc = maybe_uint(node, "wan_resent_segments", MOST_NBYTES, &c->resent);
	if (!rc && !json_is_integer(cpu))
		rc = gci_json_expected(node, "cpu_percent", "a whole number");
	c->cpu_percent = cpu && json_integer_value(cpu) >= 0 && json_integer_value(cpu) <= 100
				 ? (int)json_integer_value(cpu)
				 : -1;
	c->dilation = (uint32_t)dilation;
	if (!rc && gci_json_has(node, "course"))
		rc = parse_course(node, &c->course);
	return rc;
}

static int parse_case(const struct gci_json_node *node, int source, struct gct_html_case *c)
{
	int rc = parse_kind(node, &c->kind);

	c->source = source;
	c->dilation = 1;
	if (!rc)
		rc = gci_json_uint(node, "bytes", 0, MOST_NBYTES, &c->nbytes);
	if (!rc)
		rc = text(node, "algorithm", &c->algorithm);
	if (!rc)
		rc = maybe_text(node, "asked", &c->asked);
	if (!rc && !c->asked) {
		c->asked = gci_strdup(c->algorithm);
		rc = c->asked ? 0 : nomem(node);
	}
	if (!rc)
		rc = maybe_text(node, "not_run", &c->not_run);
	return rc || c->not_run ? rc : parse_figures(node, c);
}

static int parse_source(struct gct_html *r, const struct gci_json_node *root, const char *name)
{
	struct gct_html_source *s;
	uint64_t dilation = 1;
	int rc;

	if (gci_grow_by_one(&r->sources, r->nsources, sizeof(*r->sources)))
		return nomem(root);
	s = &r->sources[r->nsources++];
	*s = (struct gct_html_source){.name = gci_strdup(name)};
	if (!s->name)
		return nomem(root);
	rc = gci_json_uint(root, "ranks", 1, 1u << 30, &s->nranks);
	if (!rc)
		rc = gci_json_uint(root, "dilation", 1, 1000000, &dilation);
	s->dilation = (uint32_t)dilation;
	return rc ? rc : maybe_text(root, "lab", &s->lab);
}

static void drop_source(struct gct_html *r, size_t ncases, size_t nsources)
{
	while (r->ncases > ncases)
		gct_html_free_case(&r->cases[--r->ncases]);
	while (r->nsources > nsources) {
		gci_free(r->sources[--r->nsources].name);
		gci_free(r->sources[r->nsources].lab);
	}
}

static int parse_bench(struct gct_html *r, const struct gci_json_node *root, const char *name)
{
	size_t ncases = r->ncases, nsources = r->nsources, i;
	struct gci_json_node results, node;
	int rc = gci_json_array(root, "results", 0, GCT_HTML_MOST_CASES, &results);

	if (!rc)
		rc = parse_source(r, root, name);
	if (!rc && gci_grow(&r->cases, &r->cases_cap, ncases + results.n, sizeof(*r->cases)))
		rc = nomem(root);
	for (i = 0; !rc && i < results.n; i++) {
		r->cases[r->ncases] = (struct gct_html_case){.source = 0};
		rc = gci_json_item(&results, i, &node);
		if (!rc)
			rc = parse_case(&node, (int)nsources, &r->cases[r->ncases++]);
	}
	if (rc)
		drop_source(r, ncases, nsources);
	return rc;
}

/* ---- plans */

static void gct_html_free_plan(struct gct_html_plan *p)
{
	size_t i;

	for (i = 0; i < p->nways; i++) {
		gci_free(p->ways[i].algorithm);
		gci_free(p->ways[i].why);
		gci_free(p->ways[i].not_run);
	}
	gci_free(p->ways);
	gci_free(p->name);
	gci_free(p->choice);
	gci_free(p->chosen_by);
}

static int parse_way(const struct gci_json_node *node, struct gct_html_way *w)
{
	int rc = text(node, "algorithm", &w->algorithm);

	if (!rc)
		rc = maybe_text(node, "not_run", &w->not_run);
	if (!rc && !w->not_run)
		rc = gci_json_uint(node, "predicted_ns", 0, MOST_NS, &w->ns);
	return rc ? rc : maybe_text(node, "why", &w->why);
}

static int parse_choice(const struct gci_json_node *root, struct gct_html_plan *p)
{
	struct gci_json_node choice;
	int rc = gci_json_object(root, "choice", &choice);

	if (!rc)
		rc = text(&choice, "algorithm", &p->choice);
	return rc ? rc : maybe_text(&choice, "chosen_by", &p->chosen_by);
}

static int parse_plan(const struct gci_json_node *root, const char *name, struct gct_html_plan *p)
{
	struct gci_json_node ways, node;
	size_t i;
	int rc = parse_kind(root, &p->kind);

	p->name = gci_strdup(name);
	if (!rc && !p->name)
		rc = nomem(root);
	if (!rc)
		rc = gci_json_uint(root, "bytes", 0, MOST_NBYTES, &p->nbytes);
	if (!rc)
		rc = gci_json_uint(root, "ranks", 1, 1u << 30, &p->nranks);
	if (!rc)
		rc = gci_json_uint(root, "limit_ns", 0, MOST_NS, &p->limit_ns);
	if (!rc)
		rc = parse_choice(root, p);
	if (!rc)
		rc = gci_json_array(root, "ways", 1, GCT_HTML_MOST_WAYS, &ways);
	if (rc)
		return rc;
	p->ways = gci_calloc(ways.n, sizeof(*p->ways));
	if (!p->ways)
		return nomem(root);
	for (i = 0; !rc && i < ways.n; i++) {
		rc = gci_json_item(&ways, i, &node);
		if (!rc)
			rc = parse_way(&node, &p->ways[p->nways++]);
	}
	return rc;
}

static int add_plan(struct gct_html *r, const struct gci_json_node *root, const char *name)
{
	struct gct_html_plan plan = {.name = NULL};
	int rc = parse_plan(root, name, &plan);

	if (!rc && gci_grow_by_one(&r->plans, r->nplans, sizeof(*r->plans)))
		rc = nomem(root);
	if (rc)
		gct_html_free_plan(&plan);
	else
		r->plans[r->nplans++] = plan;
	return rc;
}

int gct_html_json(
	struct gct_html *r, const char *name, const char *text, size_t len, struct gci_error *e)
{
	struct gci_json_node root;
	struct gci_json j;
	uint64_t version;
	int rc = gci_json_open(&j, &root, text, len, GCT_HTML_MOST_NBYTES, name, e);

	if (!rc)
		rc = gci_json_uint(&root, "version", 1, 1, &version);
	if (!rc && gci_json_has(&root, "results"))
		rc = parse_bench(r, &root, name);
	else if (!rc && gci_json_has(&root, "choice"))
		rc = add_plan(r, &root, name);
	else if (!rc)
		rc = gci_json_expected(
			&root, "results", "those of gridcoll bench, or a choice of gridcoll plan");
	gci_json_close(&j);
	return rc;
}
