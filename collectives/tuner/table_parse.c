/* SPDX-License-Identifier: MIT
 * Decision tables as text: strict, since a table that is misread makes every run of a job slow. */
#include "base/jsontext.h"
#include "collectives/tuner/table.h"

#include <inttypes.h>
#include <string.h>

static int parse_entry(const struct gci_json_node *node, enum gci_kind kind,
	struct gci_table_entry *entry, uint64_t least)
{
	static const char *const keys[] = {
		"nbytes", "algorithm", "predicted_ns", "measured_ns", NULL};
	struct gci_error why = {0};
	const char *how = NULL;
	int rc = gci_json_keys(node, keys);

	*entry = (struct gci_table_entry){0};
	if (!rc)
		rc = gci_json_uint(node, "nbytes", least,
			kind == GCI_BARRIER ? 0 : GCI_TABLE_MAX_NBYTES, &entry->nbytes);
	if (!rc)
		rc = gci_json_string(node, "algorithm", GCI_CANDIDATE_NBYTES - 1, &how);
	if (!rc && gci_candidate_parse(&entry->how, kind, how, &why))
		rc = gci_json_fail(node, "algorithm",
			why.status == GCOLL_ERR_NOMEM ? why.status : GCOLL_ERR_PARSE, "%s",
			why.text);
	if (!rc && gci_json_has(node, "predicted_ns"))
		rc = gci_json_uint(node, "predicted_ns", 0, INT64_MAX, &entry->predicted_ns);
	if (!rc && gci_json_has(node, "measured_ns"))
		rc = gci_json_uint(node, "measured_ns", 0, INT64_MAX, &entry->measured_ns);
	return rc;
}

static int parse_kind(
	struct gci_table *t, const struct gci_json_node *operations, enum gci_kind kind)
{
	struct gci_json_node list, node;
	struct gci_table_entry entry;
	uint64_t least = 0;
	size_t i;
	int rc = gci_json_array(operations, gci_kind_name(kind), 1, GCI_TABLE_MAX_ENTRIES, &list);

	for (i = 0; !rc && i < list.n; i++) {
		rc = gci_json_item(&list, i, &node);
		if (!rc)
			rc = parse_entry(&node, kind, &entry, least);
		if (rc)
			return rc;
		rc = gci_table_add(t, kind, &entry);
		least = entry.nbytes + 1;
		if (rc == GCOLL_ERR_INVAL)
			rc = gci_json_fail(&node, NULL, GCOLL_ERR_PARSE,
				"too many entries, expected at most %d of all operations",
				GCI_TABLE_MAX_ENTRIES);
		else if (rc)
			rc = gci_json_fail(&node, NULL, rc, "out of memory");
	}
	return rc;
}

static int parse_operations(struct gci_table *t, const struct gci_json_node *root)
{
	const char *kinds[GCI_NKINDS + 1];
	struct gci_json_node operations;
	int k, rc;

	for (k = 0; k < GCI_NKINDS; k++)
		kinds[k] = gci_kind_name((enum gci_kind)k);
	kinds[k] = NULL;
	rc = gci_json_object(root, "operations", &operations);
	if (!rc)
		rc = gci_json_keys(&operations, kinds);
	for (k = 0; !rc && k < GCI_NKINDS; k++)
		if (gci_json_has(&operations, kinds[k]))
			rc = parse_kind(t, &operations, (enum gci_kind)k);
	return rc;
}

static int parse(struct gci_table *t, const struct gci_json_node *root, uint64_t grid_digest)
{
	static const char *const keys[] = {
		"version", "date", "grid_digest", "ranks", "clusters", "operations", NULL};
	uint64_t version, nranks = 0, nclusters = 0;
	const char *date = NULL;
	/* The version first: another one may have other keys. */
	int rc = gci_json_uint(root, "version", 1, 1, &version);

	if (!rc)
		rc = gci_json_keys(root, keys);
	if (!rc)
		rc = gci_json_date(root, "date", &date);
	if (!rc)
		strncpy(t->date, date, sizeof(t->date) - 1);
	if (!rc)
		rc = gci_json_digest(root, "grid_digest", &t->grid_digest);
	if (!rc && grid_digest && t->grid_digest != grid_digest)
		rc = gci_json_fail(root, "grid_digest", GCOLL_ERR_PARSE,
			"made for another grid: grid_digest %016" PRIx64 ", expected %016" PRIx64
			" as of this one; gridcoll tune makes one for it",
			t->grid_digest, grid_digest);
	if (!rc)
		rc = gci_json_uint(root, "ranks", 1, GCI_GRID_MAX_HOSTS, &nranks);
	if (!rc)
		rc = gci_json_uint(root, "clusters", 1,
			nranks < GCI_GRID_MAX_CLUSTERS ? nranks : GCI_GRID_MAX_CLUSTERS,
			&nclusters);
	t->nranks = (int)nranks;
	t->nclusters = (int)nclusters;
	return rc ? rc : parse_operations(t, root);
}

int gci_table_parse(struct gci_table *t, const char *text, size_t len, const char *name,
	uint64_t grid_digest, struct gci_error *e)
{
	struct gci_json_node root;
	struct gci_json doc;
	int rc;

	memset(t, 0, sizeof(*t));
	rc = gci_json_open(&doc, &root, text, len, GCI_TABLE_MAX_TEXT, name, e);
	if (!rc)
		rc = parse(t, &root, grid_digest);
	gci_json_close(&doc);
	if (rc)
		gci_table_free(t);
	return rc;
}
