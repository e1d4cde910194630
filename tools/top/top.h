/* SPDX-License-Identifier: MIT
 * `gridcoll top`: what a job's traffic looks like, as text. Pure: replies of the job in
 * (launcher/watch.c: "job", "traffic"), lines out.
 *
 *	const struct gct_top_view v = {job, traffic, 80, 24, 0};
 *
 *	gct_top_print(&v, &out);
 *	fputs(gci_buf_cstr(&out), stdout);
 *
 * What a reply does not have counts as 0 or "". */
#ifndef GCT_TOP_H
#define GCT_TOP_H

#include "base/buf.h"

#include <jansson.h>

struct gct_top_view {
	const json_t *job, *traffic;
	int columns, rows; /* rows: of the screen; 0: as many as it takes */
	int connections;   /* list them, too */
};

/* No line is longer than v->columns (at least 1), none ends in spaces; no more lines than rows. */
void gct_top_print(const struct gct_top_view *v, struct gci_buf *out);

#endif
