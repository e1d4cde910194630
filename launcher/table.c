/* SPDX-License-Identifier: MIT
 * The table of decisions that a job is given: read once, here, and handed to all ranks. */
#include "collectives/tuner/table.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "launcher/placement.h"

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
			"%s is for ranks in %d cluster%s, this job's are in %d: it is not used",
			path, t->nclusters, t->nclusters == 1 ? "" : "s", n);
}

static int take(
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
	return p->table_text ? 0 : gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
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
		rc = take(p, o->table, &t, &why);
	if (rc)
		gci_error_set(e, rc, "%s%.440s",
			o->table_from_environment ? "GRIDCOLL_TABLE: " : "", why.text);
	gci_table_free(&t);
	gci_buf_free(&text);
	return rc;
}
