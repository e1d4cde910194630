/* SPDX-License-Identifier: MIT */
#include "comm/recording.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "collectives/tuner/table.h"
#include "comm/engine.h"

#include <inttypes.h>

static void forget(struct gci_recording *r)
{
	gci_record_free(&r->record);
	gci_free(r->path);
	r->path = NULL;
}

int gci_recording_set(struct gci_engine *e, const char *path)
{
	char *copy = path && !e->rank ? gci_strdup(path) : NULL;

	if (path && !e->rank && !copy)
		return GCOLL_ERR_NOMEM;
	if (!path)
		forget(&e->recording);
	gci_free(e->recording.path);
	e->recording.path = copy;
	return 0;
}

void gci_recording_count(struct gci_engine *e, const struct gci_coll *coll)
{
	if (e->recording.path && !coll->counts)
		gci_record_count(&e->recording.record, coll->kind, coll->topo->nranks,
			gci_table_nbytes(coll));
}

void gci_recording_end(struct gci_engine *e)
{
	struct gci_recording *r = &e->recording;
	struct gci_buf text = {0};
	struct gci_error why = {0};

	if (r->path) {
		gci_record_print(&r->record, &text);
		if (gci_file_write(r->path, &text, &why))
			gci_log(GCI_LOG_WARN, "record: %s; the job's calls are not recorded",
				why.text);
		else if (r->record.lost)
			gci_log(GCI_LOG_WARN,
				"record: %" PRIu64
				" calls found no room in %s, which has the others",
				r->record.lost, r->path);
	}
	gci_buf_free(&text);
	forget(r);
}
