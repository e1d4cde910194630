/* SPDX-License-Identifier: MIT */
#include "collectives/tuner/record.h"

#include "base/buf.h"
#include "base/jsontext.h"
#include "base/mem.h"
#include "collectives/tuner/table.h"

#include <inttypes.h>
#include <string.h>

void gci_record_free(struct gci_record *r)
{
	gci_free(r->entries);
	memset(r, 0, sizeof(*r));
}

static int compare(const struct gci_record_entry *a, const struct gci_record_entry *b)
{
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->nranks != b->nranks)
		return a->nranks < b->nranks ? -1 : 1;
	return a->nbytes < b->nbytes ? -1 : a->nbytes > b->nbytes;
}

/* At most what the parser takes: a record's own text is read again. */
static uint64_t sum(uint64_t a, uint64_t b)
{
	return a > INT64_MAX - b ? INT64_MAX : a + b;
}

/* 0, or GCOLL_ERR_INVAL (no room) or _NOMEM. */
static int add(struct gci_record *r, const struct gci_record_entry *e)
{
	struct gci_record_entry *v;
	size_t lo = 0, hi = r->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (compare(&r->entries[mid], e) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo < r->n && !compare(&r->entries[lo], e)) {
		r->entries[lo].calls = sum(r->entries[lo].calls, e->calls);
		return 0;
	}
	if (r->n == GCI_RECORD_MAX_ENTRIES)
		return GCOLL_ERR_INVAL;
	if (gci_grow_by_one(&r->entries, r->n, sizeof(*v)))
		return GCOLL_ERR_NOMEM;
	v = r->entries + lo;
	memmove(v + 1, v, (r->n - lo) * sizeof(*v));
	*v = *e;
	r->n++;
	return 0;
}

void gci_record_count(struct gci_record *r, enum gci_kind kind, int nranks, uint64_t nbytes)
{
	struct gci_record_entry e = {kind, nranks, gci_table_round(nbytes), 1};

	if (add(r, &e))
		r->lost = sum(r->lost, 1);
}

void gci_record_print(const struct gci_record *r, struct gci_buf *out)
{
	size_t i;

	gci_buf_printf(out, "{\"version\": 1, \"lost\": %" PRIu64 ", \"operations\": [", r->lost);
	for (i = 0; i < r->n; i++) {
		const struct gci_record_entry *e = &r->entries[i];

		gci_buf_printf(out,
			"%s\n {\"operation\": \"%s\", \"ranks\": %d, \"nbytes\": %" PRIu64
			", \"calls\": %" PRIu64 "}",
			i ? "," : "", gci_kind_name(e->kind), e->nranks, e->nbytes, e->calls);
	}
	gci_buf_printf(out, "]}\n");
}

/* ---- text to record */

static int parse_entry(const struct gci_json_node *node, struct gci_record_entry *e)
{
	static const char *const keys[] = {"operation", "ranks", "nbytes", "calls", NULL};
	const char *name = NULL;
	uint64_t nranks = 0;
	int kind = -1, rc = gci_json_keys(node, keys);

	if (!rc)
		rc = gci_json_string(node, "operation", 32, &name);
	if (!rc && (kind = gci_kind_find(name)) < 0)
		rc = gci_json_expected(node, "operation", "an operation such as bcast");
	if (!rc)
		rc = gci_json_uint(node, "ranks", 1, GCI_GRID_MAX_HOSTS, &nranks);
	if (!rc)
		rc = gci_json_uint(node, "nbytes", 0,
			kind == GCI_BARRIER ? 0 : GCI_TABLE_MAX_NBYTES, &e->nbytes);
	if (!rc)
		rc = gci_json_uint(node, "calls", 1, INT64_MAX, &e->calls);
	e->kind = (enum gci_kind)kind;
	e->nranks = (int)nranks;
	e->nbytes = gci_table_round(e->nbytes);
	return rc;
}

static int parse(struct gci_record *r, const struct gci_json_node *root)
{
	static const char *const keys[] = {"version", "lost", "operations", NULL};
	struct gci_record_entry entry = {.calls = 0};
	struct gci_json_node list, node;
	uint64_t version;
	size_t i;
	/* The version first: another one may have other keys. */
	int rc = gci_json_uint(root, "version", 1, 1, &version);

	if (!rc)
		rc = gci_json_keys(root, keys);
	if (!rc && gci_json_has(root, "lost"))
		rc = gci_json_uint(root, "lost", 0, INT64_MAX, &r->lost);
	if (!rc)
		rc = gci_json_array(root, "operations", 0, GCI_RECORD_MAX_ENTRIES, &list);
	for (i = 0; !rc && i < list.n; i++) {
		rc = gci_json_item(&list, i, &node);
		if (!rc)
			rc = parse_entry(&node, &entry);
		if (!rc && add(r, &entry))
			rc = gci_json_fail(&node, NULL, GCOLL_ERR_NOMEM, "out of memory");
	}
	return rc;
}

int gci_record_parse(
	struct gci_record *r, const char *text, size_t len, const char *name, struct gci_error *e)
{
	struct gci_json_node root;
	struct gci_json doc;
	int rc;

	memset(r, 0, sizeof(*r));
	rc = gci_json_open(&doc, &root, text, len, GCI_RECORD_MAX_TEXT, name, e);
	if (!rc)
		rc = parse(r, &root);
	gci_json_close(&doc);
	if (rc)
		gci_record_free(r);
	return rc;
}
