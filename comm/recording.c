/* SPDX-License-Identifier: MIT */
#include "comm/recording.h"

#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "collectives/tuner/table.h"
#include "comm/engine.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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

/* 0, or -1 with errno. */
static int write_text(const char *path, const struct gci_buf *text)
{
	char *tmp = gci_asprintf("%s.new", path);
	FILE *f = tmp ? fopen(tmp, "we") : NULL;
	int ok = f && fwrite(text->data, 1, text->len, f) == text->len;

	if (f && fclose(f))
		ok = 0;
	if (ok && rename(tmp, path))
		ok = 0;
	if (!tmp)
		errno = ENOMEM;
	else if (f && !ok) {
		int keep = errno;

		remove(tmp);
		errno = keep;
	}
	gci_free(tmp);
	return ok ? 0 : -1;
}

void gci_recording_end(struct gci_engine *e)
{
	struct gci_recording *r = &e->recording;
	struct gci_buf text = {0};

	if (r->path) {
		gci_record_print(&r->record, &text);
		errno = ENOMEM;
		if (text.failed || write_text(r->path, &text))
			gci_log(GCI_LOG_WARN, "record: cannot write %s: %s", r->path,
				strerror(errno));
		else if (r->record.lost)
			gci_log(GCI_LOG_WARN, "record: %" PRIu64 " calls found no room in %s",
				r->record.lost, r->path);
	}
	gci_buf_free(&text);
	forget(r);
}
