/* SPDX-License-Identifier: MIT */
#include "tools/gantt.h"

#include "base/mem.h"
#include "base/units.h"
#include "tools/gantt_impl.h"

#include <stdio.h>

#define LEAST_CELL  5    /* tenths of a pixel */
#define MOST_TITLED 2500 /* bars: with so few each has its figures as a tooltip */

static int lane_y(const struct gct_chart *c, const struct gct_bar *b)
{
	int y = c->top[b->row];

	if (b->lane == GCT_LANE_COMPUTE)
		return y + 2 * c->lane + 2 + c->thin / 2;
	return y + (b->lane == GCT_LANE_RECV ? c->lane + 1 : 0) + c->lane / 2;
}

static int same_path(const struct gct_bar *a, const struct gct_bar *b)
{
	return a->row == b->row && a->lane == b->lane && a->paint == b->paint;
}

static void put_tooltip(const struct gct_chart *c, const struct gct_bar *b)
{
	const struct gct_timeline *t = c->g->timeline;
	const struct gct_span *s = &t->spans[b->span];
	char from[16], to[16], bytes[16];
	const char *what = b->paint == GCT_PAINT_WAIT ? "waits for"
			   : b->lane == GCT_LANE_SEND ? "to"
			   : b->lane == GCT_LANE_RECV ? "from"
						      : "computes";

	gci_buf_printf(c->out, "<title>%s", what);
	if (b->lane != GCT_LANE_COMPUTE) {
		gci_buf_printf(c->out, " rank %d", s->peer);
		if (c->g->names && c->g->names[s->peer]) {
			gci_buf_printf(c->out, " on ");
			gct_markup_text(c->out, c->g->names[s->peer]);
		}
	}
	if (b->count > 1)
		gci_buf_printf(c->out, " and %u more", b->count - 1);
	if (b->paint != GCT_PAINT_WAIT)
		gci_buf_printf(c->out, ", %s", gci_format_bytes(b->nbytes, bytes, sizeof(bytes)));
	gci_buf_printf(c->out, ", %s to %s</title>",
		gci_format_time(b->from_ns / c->dilation, from, 16),
		gci_format_time(b->to_ns / c->dilation, to, 16));
}

/* The group they are in counts tenths of a pixel from the left. */
static void put_bars(const struct gct_chart *c)
{
	int titled = c->bars.n <= MOST_TITLED, open = 0;
	uint32_t at = 0;
	size_t i;

	gci_buf_printf(c->out, "<g transform=\"translate(%d,0) scale(.1,1)\">\n", GCT_CHART_LEFT);
	for (i = 0; i < c->bars.n; i++) {
		const struct gct_bar *b = &c->bars.list[i];
		uint32_t width = b->x1 - b->x0;

		/* A touch of light between neighbours. */
		if (width > 40)
			width -= 4;
		if (open && (titled || !same_path(b, b - 1))) {
			gci_buf_printf(c->out, "\"/>\n");
			open = 0;
		}
		if (open)
			gci_buf_printf(c->out, "m%d 0h%u", (int)(b->x0 - at), width);
		else
			gci_buf_printf(c->out, "<path class=\"%s%s\" d=\"M%u %dh%u",
				gct_paint_class((enum gct_paint)b->paint),
				b->lane == GCT_LANE_RECV ? " r" : "", b->x0, lane_y(c, b), width);
		open = !titled;
		at = b->x0 + width;
		if (titled) {
			gci_buf_printf(c->out, "\">");
			put_tooltip(c, b);
			gci_buf_printf(c->out, "</path>\n");
		}
	}
	gci_buf_printf(c->out, "%s</g>\n", open ? "\"/>\n" : "");
}

/* Thicker cells until it is short enough. */
static void put_all(struct gct_chart *c)
{
	uint32_t cell;

	gct_chart_frame(c);
	for (cell = LEAST_CELL;; cell *= 2) {
		size_t before = c->out->len;

		gct_bars_merge(&c->bars, cell);
		put_bars(c);
		gct_chart_limit(c);
		gci_buf_printf(c->out, "</svg>\n");
		if (c->out->failed || c->out->len <= GCT_GANTT_MOST_NBYTES ||
			cell > GCT_CHART_PLOT * 10)
			return;
		c->out->len = before;
	}
}

int gct_gantt_print(const struct gct_gantt *g, struct gci_buf *out)
{
	struct gct_chart c = {.g = g,
		.out = out,
		.end_ns = gct_timeline_end(g->timeline),
		.dilation = g->dilation ? g->dilation : 1};
	int rc = gct_chart_rows(&c);

	if (c.end_ns < g->limit_ns && !g->timeline->n)
		c.end_ns = g->limit_ns;
	if (!rc)
		rc = gct_bars_make(&c.bars, g->timeline, c.row, GCT_CHART_PLOT * 10, c.end_ns);
	if (!rc) {
		put_all(&c);
		rc = out->failed ? GCOLL_ERR_NOMEM : 0;
	}
	gct_bars_free(&c.bars);
	gci_free(c.row);
	gci_free(c.rank_of);
	gci_free(c.top);
	return rc;
}
