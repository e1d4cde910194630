/* SPDX-License-Identifier: MIT
 * A timeline as a chart in SVG: two lanes per rank, what it sends above what it receives, and a
 * thin one for what it computes; clusters one below the other; what crosses a WAN stands out.
 *
 *	struct gct_gantt g = {.timeline = &t, .title = "bcast of 4 MiB by chain: 35.1 ms",
 *		.names = hosts, .clusters = cluster_names, .limit_ns = limit};
 *	struct gci_buf svg = {0};
 *
 *	rc = gct_gantt_print(&g, &svg);
 *	...					// svg.data, svg.len
 *	gci_buf_free(&svg);
 *
 * Pure. Messages that would be thinner than half a pixel merge, and where a chart would be longer
 * than GCT_GANTT_MOST_NBYTES wider ones do, too. Of more ranks than GCT_GANTT_MOST_ROWS it shows
 * the first ones of each cluster, and says so. Names may be anything: they are escaped. */
#ifndef GCT_GANTT_H
#define GCT_GANTT_H

#include "base/buf.h"
#include "tools/lib/timeline.h"

#define GCT_GANTT_MOST_NBYTES (1800u << 10)
#define GCT_GANTT_MOST_ROWS   256

struct gct_gantt {
	const struct gct_timeline *timeline;
	const char *title, *subtitle;
	const char *const *names;    /* [rank]: its host; NULL: none */
	const char *const *clusters; /* [cluster of the timeline's topology] */
	uint64_t limit_ns;           /* marked, if it is not 0 */
	uint32_t dilation;           /* times are shown divided by it; 0 and 1: as they are */
	const char *id; /* in a page of HTML, at most 20 letters; NULL: a file of its own */
};

/* 0 or GCOLL_ERR_NOMEM. */
int gct_gantt_print(const struct gct_gantt *g, struct gci_buf *out);

#endif
