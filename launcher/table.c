/* SPDX-License-Identifier: MIT
 * The table of decisions that a job is given: read once, here, and handed to all ranks. */
#include "collectives/tuner/table.h"

#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "launcher/placement.h"
#include "launcher/text.h"

static int take(
	struct gci_placement *p, const char *path, const struct gci_table *t, struct gci_error *e)
{
	struct gci_buf text = {0};

	if (t->nranks > (int)p->size)
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"%s: made for %d ranks, expected at most the %u of this job", path,
			t->nranks, p->size);
	if (t->nranks < (int)p->size)
		gci_log(GCI_LOG_INFO,
			"%s is for %d ranks: of %u, only communicators of that many use it", path,
			t->nranks, p->size);
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
	rc = gci_text_read(o->table, GCI_TABLE_MAX_TEXT, &text, &why);
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
