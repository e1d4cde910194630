/* SPDX-License-Identifier: MIT
 * A chart on its way to text. Inside of gantt. */
#ifndef GCT_GANTT_IMPL_H
#define GCT_GANTT_IMPL_H

#include "tools/gantt.h"
#include "tools/gantt_bars.h"
#include "tools/markup.h"

/* Pixels. */
#define GCT_CHART_WIDTH 1400
#define GCT_CHART_LEFT  150
#define GCT_CHART_PLOT  1220 /* of which the time takes */
#define GCT_CHART_TOP   96   /* title, legend, axis */
#define GCT_CHART_HEAD  20   /* a cluster's name */

struct gct_chart {
	const struct gct_gantt *g;
	struct gci_buf *out;
	int *row;     /* [rank]; -1: not shown */
	int *rank_of; /* [row] */
	int *top;     /* [row]: pixels */
	int nrows, bottom;
	int lane, thin, height; /* pixels: of a lane of messages, of that of computing, of a row */
	uint64_t end_ns;
	uint32_t dilation; /* what is shown is divided by it */
	struct gct_bars bars;
};

#endif
