/* SPDX-License-Identifier: MIT */
#include "tools/lib/trace_file.h"

#include "base/jsontext.h"
#include "base/mem.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#define MOST_NS     (UINT64_C(1) << 53)
#define MOST_NBYTES (UINT64_C(1) << 50) /* of the vector, or of each block */

void gct_trace_free(struct gct_trace *t)
{
	size_t i;
	int r;

	for (r = 0; t->hosts && r < t->nranks; r++)
		gci_free(t->hosts[r]);
	for (i = 0; i < t->nwindows; i++)
		gci_free(t->windows[i].at);
	gci_free(t->hosts);
	gci_free(t->windows);
	memset(t, 0, sizeof(*t));
}

static int nomem(struct gci_error *e)
{
	return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
}

static int parse_times(const struct gci_json_node *times, uint64_t *at, uint32_t nsteps)
{
	uint32_t i;

	for (i = 0; i < nsteps; i++) {
		const json_t *v = json_array_get(times->value, i);

		if (!json_is_integer(v) || json_integer_value(v) < 0 ||
			(uint64_t)json_integer_value(v) > MOST_NS)
			return gci_json_expected(times, NULL,
				"whole numbers of nanoseconds up to 2^53, not so number %u", i);
		at[2 * i] = (uint64_t)json_integer_value(v);
	}
	return 0;
}

static int parse_window(struct gct_trace *t, const struct gci_json_node *node, uint64_t *left)
{
	static const char *const keys[] = {"rank", "window", "from_ns", "to_ns", NULL};
	struct gct_trace_window *w = &t->windows[t->nwindows];
	uint64_t rank = 0, number = 0;
	struct gci_json_node from, to;
	int rc = gci_json_keys(node, keys);
	uint32_t i;

	if (!rc)
		rc = gci_json_uint(node, "rank", 0, (uint64_t)t->nranks - 1, &rank);
	if (!rc)
		rc = gci_json_uint(node, "window", 0, UINT32_MAX, &number);
	if (!rc)
		rc = gci_json_array(node, "from_ns", 0, *left, &from);
	if (!rc)
		rc = gci_json_array(node, "to_ns", from.n, from.n, &to);
	if (rc)
		return rc;
	*w = (struct gct_trace_window){(int)rank, (uint32_t)number, (uint32_t)from.n,
		gci_calloc(from.n, 2 * sizeof(*w->at))};
	if (!w->at)
		return nomem(node->doc->e);
	t->nwindows++;
	*left -= from.n;
	rc = parse_times(&from, w->at, w->nsteps);
	if (!rc)
		rc = parse_times(&to, w->at + 1, w->nsteps);
	for (i = 0; !rc && i < w->nsteps; i++)
		if (w->at[2 * i + 1] < w->at[2 * i])
			rc = gci_json_expected(
				&to, NULL, "no end before its beginning, as that of step %u is", i);
	return rc;
}

static int parse_windows(struct gct_trace *t, const struct gci_json_node *root)
{
	uint64_t left = GCT_TRACE_MOST_STEPS;
	struct gci_json_node list, node;
	size_t i;
	int rc = gci_json_array(root, "windows", 1, GCI_JSON_MAX_CONTAINERS, &list);

	if (rc)
		return rc;
	t->windows = gci_calloc(list.n, sizeof(*t->windows));
	if (!t->windows)
		return nomem(root->doc->e);
	for (i = 0; !rc && i < list.n; i++) {
		rc = gci_json_item(&list, i, &node);
		if (!rc)
			rc = parse_window(t, &node, &left);
	}
	return rc;
}

static int parse_hosts(struct gct_trace *t, const struct gci_json_node *root)
{
	struct gci_json_node list;
	const char *name;
	size_t i;
	int rc = gci_json_array(root, "hosts", 1, GCT_TRACE_MOST_RANKS, &list);

	if (rc)
		return rc;
	t->hosts = gci_calloc(list.n, sizeof(*t->hosts));
	if (!t->hosts)
		return nomem(root->doc->e);
	t->nranks = (int)list.n;
	for (i = 0; !rc && i < list.n; i++) {
		rc = gci_json_string_item(&list, i, 255, &name);
		if (rc)
			break;
		t->hosts[i] = gci_strdup(name);
		rc = t->hosts[i] ? 0 : nomem(root->doc->e);
	}
	return rc;
}

static int parse_operation(struct gct_trace *t, const struct gci_json_node *root)
{
	struct gci_error e = {0};
	const char *text;
	int kind, rc = gci_json_string(root, "operation", 32, &text);

	if (rc)
		return rc;
	kind = gci_kind_find(text);
	if (kind < 0)
		return gci_json_expected(root, "operation", "bcast, reduce, allreduce, ...");
	t->kind = (enum gci_kind)kind;
	rc = gci_json_string(root, "algorithm", GCI_CANDIDATE_NBYTES, &text);
	if (!rc && gci_candidate_parse(&t->how, t->kind, text, &e))
		rc = gci_json_fail(root, "algorithm", GCOLL_ERR_PARSE, "%s", e.text);
	return rc;
}

static int parse_figures(struct gct_trace *t, const struct gci_json_node *root)
{
	uint64_t v[5] = {0};
	int rc = gci_json_uint(root, "count", 0, UINT64_C(1) << 53, &t->count);

	if (!rc)
		rc = gci_json_uint(root, "element_nbytes", 1, 1u << 20, &v[0]);
	if (!rc && t->count > MOST_NBYTES / v[0])
		rc = gci_json_expected(root, "count", "no more than 2^50 bytes");
	if (!rc)
		rc = gci_json_uint(root, "root", 0, (uint64_t)t->nranks - 1, &v[1]);
	if (!rc)
		rc = gci_json_uint(root, "streams", 0, 64, &v[2]);
	if (!rc)
		rc = gci_json_uint(root, "dilation", 1, 1000000, &v[3]);
	if (!rc)
		rc = gci_json_digest(root, "topology_digest", &t->topo_digest);
	if (!rc)
		rc = gci_json_uint(root, "measured_ns", 0, MOST_NS, &t->ns);
	t->esize = (uint32_t)v[0];
	t->root = (int)v[1];
	t->streams = (uint32_t)v[2];
	t->dilation = (uint32_t)v[3];
	return rc;
}

int gct_trace_parse(
	struct gct_trace *t, const char *text, size_t len, const char *name, struct gci_error *e)
{
	static const char *const keys[] = {"version", "operation", "algorithm", "count",
		"element_nbytes", "root", "streams", "dilation", "topology_digest", "measured_ns",
		"hosts", "windows", NULL};
	struct gci_json_node root;
	struct gci_json j;
	uint64_t version;
	int rc = gci_json_open(&j, &root, text, len, GCT_TRACE_MOST_NBYTES, name, e);

	memset(t, 0, sizeof(*t));
	if (!rc)
		rc = gci_json_uint(&root, "version", 1, 1, &version);
	if (!rc) /* another version may have other keys */
		rc = gci_json_keys(&root, keys);
	if (!rc)
		rc = parse_operation(t, &root);
	if (!rc)
		rc = parse_hosts(t, &root);
	if (!rc)
		rc = parse_figures(t, &root);
	if (!rc)
		rc = parse_windows(t, &root);
	gci_json_close(&j);
	if (rc)
		gct_trace_free(t);
	return rc;
}

static void print_times(const struct gct_trace_window *w, int end, struct gci_buf *out)
{
	uint32_t i;

	for (i = 0; i < w->nsteps; i++)
		gci_buf_printf(out, "%s%" PRIu64, i ? "," : "", w->at[2 * i + (uint32_t)end]);
}

void gct_trace_print(const struct gct_trace *t, struct gci_buf *out)
{
	char how[GCI_CANDIDATE_NBYTES];
	size_t i;
	int r;

	gci_candidate_print(&t->how, how);
	gci_buf_printf(out,
		"{\"version\": 1, \"operation\": \"%s\", \"algorithm\": \"%s\", \"count\": %" PRIu64
		",\n \"element_nbytes\": %u, \"root\": %d, \"streams\": %u, \"dilation\": %u,\n"
		" \"topology_digest\": \"%016" PRIx64 "\", \"measured_ns\": %" PRIu64
		",\n \"hosts\": [",
		gci_kind_name(t->kind), how, t->count, t->esize, t->root, t->streams, t->dilation,
		t->topo_digest, t->ns);
	for (r = 0; r < t->nranks; r++)
		gci_buf_printf(out, "%s\"%s\"", r ? ", " : "", t->hosts[r]);
	gci_buf_printf(out, "],\n \"windows\": [");
	for (i = 0; i < t->nwindows; i++) {
		gci_buf_printf(out, "%s\n  {\"rank\": %d, \"window\": %u, \"from_ns\": [",
			i ? "," : "", t->windows[i].rank, t->windows[i].window);
		print_times(&t->windows[i], 0, out);
		gci_buf_printf(out, "],\n   \"to_ns\": [");
		print_times(&t->windows[i], 1, out);
		gci_buf_printf(out, "]}");
	}
	gci_buf_printf(out, "]}\n");
}
