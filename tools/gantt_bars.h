/* SPDX-License-Identifier: MIT
 * What a chart's lanes show: a timeline's spans as bars in tenths of a pixel, merged where they are
 * too thin to be told apart. Inside of gantt. */
#ifndef GCT_GANTT_BARS_H
#define GCT_GANTT_BARS_H

#include "tools/timeline.h"

#define GCT_GANTT_PHASES 4 /* colours for each of LAN and WAN; more phases begin anew */

/* What a bar is, in the order in which they are painted. */
enum gct_paint {
	GCT_PAINT_WAIT, /* asked for, and nothing comes */
	GCT_PAINT_LAN,
	GCT_PAINT_WAN = GCT_PAINT_LAN + GCT_GANTT_PHASES,
	GCT_PAINT_COMPUTE = GCT_PAINT_WAN + GCT_GANTT_PHASES,
	GCT_NPAINTS
};

struct gct_bar {
	uint32_t row;
	uint8_t lane, paint;
	uint32_t x0, x1; /* tenths of a pixel */
	uint32_t count;  /* of spans in it */
	uint32_t span;   /* the first of them */
	uint64_t nbytes, from_ns, to_ns;
};

struct gct_bars {
	struct gct_bar *list;
	size_t n, cap;
	uint32_t phases[GCT_NPAINTS]; /* that are so painted, a bit for each; 0: not in the chart */
};

#endif
