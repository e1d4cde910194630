/* SPDX-License-Identifier: MIT */
#include "tools/lib/gantt.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/units.h"
#include "tools/lib/markup.h"
#include "tools/lib/timeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- bars: what is painted of a timeline, in tenths of a pixel; merged where they are too thin to
 * be told apart. */

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

/* Pixels. */
#define GCT_CHART_WIDTH 1400
#define GCT_CHART_LEFT  150
#define GCT_CHART_PLOT  1220 /* of which the time takes */
#define GCT_CHART_TOP   96   /* title, legend, axis */
#define GCT_CHART_HEAD  20   /* a cluster's name */

/* A chart on its way to text. */
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

#define LEAST_WIDTH 10 /* messages without content are seen */

/* The phases that messages have, in rising order of number: each its colour. */
static int place_of_phase(uint32_t phases, uint32_t phase)
{
	return __builtin_popcount(phases & ((1u << phase) - 1)) % GCT_GANTT_PHASES;
}

static enum gct_paint paint_of(
	const struct gct_timeline *t, const struct gct_span *s, uint32_t phases)
{
	int at = place_of_phase(phases, gct_span_phase(s));

	if (gct_span_lane(s) == GCT_LANE_COMPUTE)
		return GCT_PAINT_COMPUTE;
	return (enum gct_paint)((gct_span_is_wan(t, s) ? GCT_PAINT_WAN : GCT_PAINT_LAN) + at);
}

static uint32_t place(uint64_t ns, uint64_t end_ns, uint32_t width)
{
	return end_ns ? (uint32_t)((unsigned __int128)ns * width / end_ns) : 0;
}

static int add(struct gct_bars *b, const struct gct_bar *bar)
{
	if (gci_grow(&b->list, &b->cap, b->n + 1, sizeof(*b->list)))
		return GCOLL_ERR_NOMEM;
	b->list[b->n++] = *bar;
	return 0;
}

static int add_span(struct gct_bars *b, const struct gct_timeline *t, size_t i,
	const struct gct_bar *frame, uint32_t phases, uint32_t width, uint64_t end_ns)
{
	const struct gct_span *s = &t->spans[i];
	struct gct_bar bar = *frame;

	bar.lane = (uint8_t)gct_span_lane(s);
	bar.span = (uint32_t)i;
	bar.count = 1;
	if (bar.lane == GCT_LANE_RECV && s->ready_ns < s->from_ns) {
		bar.paint = GCT_PAINT_WAIT;
		bar.from_ns = s->ready_ns;
		bar.to_ns = s->from_ns;
		bar.x0 = place(bar.from_ns, end_ns, width);
		bar.x1 = place(bar.to_ns, end_ns, width);
		b->phases[GCT_PAINT_WAIT] |= 1;
		if (bar.x1 > bar.x0 && add(b, &bar))
			return GCOLL_ERR_NOMEM;
	}
	bar.paint = (uint8_t)paint_of(t, s, phases);
	bar.nbytes = s->nbytes;
	bar.from_ns = s->from_ns;
	bar.to_ns = s->to_ns;
	bar.x0 = place(bar.from_ns, end_ns, width);
	bar.x1 = place(bar.to_ns, end_ns, width);
	if (bar.x1 < bar.x0 + LEAST_WIDTH)
		bar.x1 = bar.x0 + LEAST_WIDTH;
	b->phases[bar.paint] |= 1u << gct_span_phase(s);
	return add(b, &bar);
}

static int by_place(const void *a, const void *b)
{
	const struct gct_bar *x = a, *y = b;

	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	if (x->lane != y->lane)
		return x->lane - y->lane;
	if (x->paint != y->paint)
		return x->paint - y->paint;
	if (x->x0 != y->x0)
		return x->x0 < y->x0 ? -1 : 1;
	if (x->x1 != y->x1)
		return x->x1 < y->x1 ? -1 : 1;
	return x->span < y->span ? -1 : x->span > y->span;
}

/* row[rank]: where each rank is shown, or -1. `width`: tenths of a pixel for the time up to
 * `end_ns`. 0 or GCOLL_ERR_NOMEM. */
static int gct_bars_make(struct gct_bars *b, const struct gct_timeline *t, const int *row,
	uint32_t width, uint64_t end_ns)
{
	uint32_t phases = 0;
	size_t i;

	*b = (struct gct_bars){.list = NULL};
	for (i = 0; i < t->n; i++)
		if (gct_span_lane(&t->spans[i]) != GCT_LANE_COMPUTE)
			phases |= 1u << gct_span_phase(&t->spans[i]);
	for (i = 0; i < t->n; i++) {
		struct gct_bar frame = {.row = (uint32_t)row[t->spans[i].rank]};

		if (row[t->spans[i].rank] >= 0 && add_span(b, t, i, &frame, phases, width, end_ns))
			return GCOLL_ERR_NOMEM;
	}
	if (b->n)
		qsort(b->list, b->n, sizeof(*b->list), by_place);
	return 0;
}

/* Wide ones that only touch stay apart, so that segments are seen. */
static int may_merge(const struct gct_bar *a, const struct gct_bar *b, uint32_t cell)
{
	if (a->row != b->row || a->lane != b->lane || a->paint != b->paint)
		return 0;
	if (b->x0 < a->x1)
		return 1;
	return b->x0 - a->x1 < cell && (a->x1 - a->x0 < 4 * cell || b->x1 - b->x0 < 4 * cell);
}

/* Merges bars of one colour whose gap, or own width, is below `cell`. */
static void gct_bars_merge(struct gct_bars *b, uint32_t cell)
{
	size_t i, n = 0;

	for (i = 0; i < b->n; i++) {
		const struct gct_bar *next = &b->list[i];
		struct gct_bar *last = n ? &b->list[n - 1] : NULL;

		if (!last || !may_merge(last, next, cell)) {
			b->list[n++] = *next;
			continue;
		}
		last->x1 = next->x1 > last->x1 ? next->x1 : last->x1;
		last->to_ns = next->to_ns > last->to_ns ? next->to_ns : last->to_ns;
		last->count += next->count;
		last->nbytes += next->nbytes;
	}
	b->n = n;
}

static void gct_bars_free(struct gct_bars *b)
{
	gci_free(b->list);
	b->list = NULL;
	b->n = b->cap = 0;
}

/* ---- what stands around the bars */

#define MOST_TICKS 12

static const struct {
	const char *class, *colour;
} paints[GCT_NPAINTS] = {
	[GCT_PAINT_WAIT] = {"w", "#c9ccd1"},
	[GCT_PAINT_LAN] = {"a0", "#4c78a8"},
	{"a1", "#72b7b2"},
	{"a2", "#9ecae9"},
	{"a3", "#2f5d50"},
	[GCT_PAINT_WAN] = {"b0", "#e45756"},
	{"b1", "#f58518"},
	{"b2", "#b3365b"},
	{"b3", "#eeca3b"},
	[GCT_PAINT_COMPUTE] = {"c", "#8a6fb0"},
};

/* A colour's class in the style sheet. */
static const char *gct_paint_class(enum gct_paint paint)
{
	return paints[paint].class;
}

static int size_of(const struct gct_chart *c, int cluster)
{
	int n = gci_topo_size(c->g->timeline->topo, cluster);
	int most = GCT_GANTT_MOST_ROWS / c->g->timeline->topo->nclusters;

	return c->g->timeline->topo->nranks <= GCT_GANTT_MOST_ROWS || n < most ? n : most;
}

/* Where each rank's lanes are. 0 or GCOLL_ERR_NOMEM. */
static int gct_chart_rows(struct gct_chart *c)
{
	const struct gci_topo *t = c->g->timeline->topo;
	int k, i, r, y = GCT_CHART_TOP;

	c->row = gci_calloc((size_t)t->nranks, sizeof(*c->row));
	c->rank_of = gci_calloc((size_t)t->nranks, sizeof(*c->rank_of));
	c->top = gci_calloc((size_t)t->nranks, sizeof(*c->top));
	if (!c->row || !c->rank_of || !c->top)
		return GCOLL_ERR_NOMEM;
	for (r = 0; r < t->nranks; r++)
		c->row[r] = -1;
	for (k = 0; k < t->nclusters; k++)
		c->nrows += size_of(c, k);
	c->lane = c->nrows <= 32 ? 9 : c->nrows <= 64 ? 6 : 4;
	c->thin = c->lane / 3;
	c->height = 2 * c->lane + c->thin + 7;
	c->nrows = 0;
	for (k = 0; k < t->nclusters; k++) {
		y += GCT_CHART_HEAD;
		for (i = 0; i < size_of(c, k); i++) {
			r = gci_topo_members(t, k)[i];
			c->row[r] = c->nrows;
			c->rank_of[c->nrows] = r;
			c->top[c->nrows++] = y;
			y += c->height;
		}
	}
	c->bottom = y;
	return 0;
}

static void put_head(const struct gct_chart *c)
{
	const struct gci_topo *t = c->g->timeline->topo;
	struct gci_buf *out = c->out;
	char scope[24] = ""; /* a page may have other charts */
	int i;

	if (c->g->id)
		snprintf(scope, sizeof(scope), "#%.20s ", c->g->id);
	gci_buf_printf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\"%s%.20s%s width=\"%d\" height=\"%d\" "
		"viewBox=\"0 0 %d %d\" font-family=\"Helvetica,Arial,'DejaVu Sans',sans-serif\" "
		"font-size=\"12\" fill=\"#222\">\n<title>",
		c->g->id ? " id=\"" : "", c->g->id ? c->g->id : "", c->g->id ? "\"" : "",
		GCT_CHART_WIDTH, c->bottom + 34, GCT_CHART_WIDTH, c->bottom + 34);
	gct_markup_text(out, c->g->title);
	gci_buf_printf(out,
		"</title>\n<style>%spath{fill:none;stroke-width:%d}%s.c{stroke-width:%d}"
		"%s.w{stroke-width:1}%s.r{stroke-opacity:.7}",
		scope, c->lane, scope, c->thin, scope, scope);
	/* Where both go on at once, both are seen. */
	gci_buf_printf(out, "%s.b0,%s.b1,%s.b2,%s.b3{stroke-width:%d}", scope, scope, scope, scope,
		(c->lane * 4 + 2) / 5);
	for (i = 0; i < GCT_NPAINTS; i++)
		gci_buf_printf(out, "%s.%s{stroke:%s}", scope, paints[i].class, paints[i].colour);
	gci_buf_printf(out, "</style>\n<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
		GCT_CHART_WIDTH, c->bottom + 34);
	gci_buf_printf(out, "<text x=\"14\" y=\"24\" font-size=\"17\" font-weight=\"bold\">");
	gct_markup_text(out, c->g->title);
	gci_buf_printf(out, "</text>\n<text x=\"14\" y=\"43\" fill=\"#555\">");
	gct_markup_text(out, c->g->subtitle);
	if (c->nrows < t->nranks)
		gci_buf_printf(out, " (the first %d of %d ranks)", c->nrows, t->nranks);
	gci_buf_printf(out, "</text>\n");
}

/* "within clusters, phases 1 and 5" */
static void legend_text(const struct gct_chart *c, int paint, char *text, size_t size)
{
	uint32_t p, phases = c->bars.phases[paint], all = 0;
	int i, n = 0;

	for (i = GCT_PAINT_LAN; i < GCT_PAINT_COMPUTE; i++)
		all |= c->bars.phases[i];
	if (paint == GCT_PAINT_WAIT || paint == GCT_PAINT_COMPUTE) {
		snprintf(text, size, "%s",
			paint == GCT_PAINT_WAIT ? "asked for, still to come" : "computing");
		return;
	}
	n = snprintf(text, size, "%s", paint < GCT_PAINT_WAN ? "within a cluster" : "over a WAN");
	for (p = 0; p < 16 && (all & (all - 1)); p++)
		if (phases >> p & 1) {
			n += snprintf(text + n, size - (size_t)n, "%s%u",
				phases & ((1u << p) - 1) ? ", "
				: phases & (phases - 1)  ? ", phases "
							 : ", phase ",
				1 + (uint32_t)__builtin_popcount(all & ((1u << p) - 1)));
		}
}

static void put_legend(const struct gct_chart *c)
{
	char text[96];
	int i, x = 14;

	for (i = 0; i < GCT_NPAINTS; i++) {
		if (!c->bars.phases[i])
			continue;
		legend_text(c, i, text, sizeof(text));
		gci_buf_printf(c->out,
			"<path class=\"%s\" d=\"M%d 59h18\"/><text x=\"%d\" y=\"63\">%s</text>\n",
			paints[i].class, x, x + 24, text);
		x += 24 + 7 * (int)strlen(text) + 16;
	}
	gci_buf_printf(c->out,
		"<text x=\"%d\" y=\"43\" text-anchor=\"end\" fill=\"#555\">of each rank: what it "
		"sends, below it and paler what it receives%s</text>\n",
		GCT_CHART_LEFT + GCT_CHART_PLOT,
		c->bars.phases[GCT_PAINT_COMPUTE] ? ", computes" : "");
}

/* 1, 2 or 5 times a power of ten. */
static uint64_t tick_ns(uint64_t end_ns)
{
	static const uint64_t by[] = {2, 5, 10};
	uint64_t power = 1;
	int i;

	if (end_ns <= MOST_TICKS)
		return 1;
	for (;; power *= 10)
		for (i = 0; i < 3; i++)
			if (end_ns / (power * by[i]) <= MOST_TICKS)
				return power * by[i];
}

static void put_axis(const struct gct_chart *c)
{
	uint64_t end_ns = c->end_ns / c->dilation, step = tick_ns(end_ns), at;
	uint64_t unit = end_ns >= 10 * GCI_NS_PER_S    ? GCI_NS_PER_S
			: end_ns >= 10 * GCI_NS_PER_MS ? GCI_NS_PER_MS
			: end_ns >= 10 * GCI_NS_PER_US ? GCI_NS_PER_US
						       : 1;
	const char *name = unit == GCI_NS_PER_S    ? "s"
			   : unit == GCI_NS_PER_MS ? "ms"
			   : unit == GCI_NS_PER_US ? "us"
						   : "ns";

	for (at = 0; end_ns && at <= end_ns; at += step) {
		double x = GCT_CHART_LEFT + (double)at * GCT_CHART_PLOT / (double)end_ns;

		gci_buf_printf(c->out,
			"<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke=\"#e3e5e8\"/>"
			"<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\" "
			"fill=\"#555\">%g %s</text>"
			"<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\" "
			"fill=\"#555\">%g %s</text>\n",
			x, x, GCT_CHART_TOP, c->bottom, x, GCT_CHART_TOP - 6,
			(double)at / (double)unit, name, x, c->bottom + 16,
			(double)at / (double)unit, name);
	}
}

static void put_rows(const struct gct_chart *c)
{
	const struct gci_topo *t = c->g->timeline->topo;
	int i, last = -1, size = c->lane >= 9 ? 12 : c->lane >= 6 ? 10 : 8;

	for (i = 0; i < c->nrows; i++) {
		int r = c->rank_of[i], k = t->cluster[r], y = c->top[i];

		if (k != last) {
			gci_buf_printf(c->out,
				"<line x1=\"10\" x2=\"%d\" y1=\"%d\" y2=\"%d\" stroke=\"#777\"/>"
				"<text x=\"14\" y=\"%d\" font-weight=\"bold\">",
				GCT_CHART_LEFT + GCT_CHART_PLOT, y - GCT_CHART_HEAD + 1,
				y - GCT_CHART_HEAD + 1, y - GCT_CHART_HEAD + 15);
			gct_markup_text(c->out, c->g->clusters[k]);
			gci_buf_printf(c->out, "</text>\n");
			last = k;
		}
		gci_buf_printf(c->out,
			"<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#f4f5f7\"/>"
			"<text x=\"%d\" y=\"%d\" text-anchor=\"end\" font-size=\"%d\">",
			GCT_CHART_LEFT, y, GCT_CHART_PLOT, c->height - 5, GCT_CHART_LEFT - 8,
			y + (c->height - 5) / 2 + size / 3, size);
		if (c->g->names && c->g->names[r]) {
			char name[20];

			snprintf(name, sizeof(name), "%.16s", c->g->names[r]);
			gct_markup_text(c->out, name);
		}
		gci_buf_printf(c->out, " <tspan fill=\"#777\">%d</tspan></text>\n", r);
	}
}

/* All that is painted before the bars, and the mark that is painted after them. */
static void gct_chart_frame(const struct gct_chart *c)
{
	put_head(c);
	put_legend(c);
	put_rows(c);
	put_axis(c);
}

static void gct_chart_limit(const struct gct_chart *c)
{
	char time[16];
	double x;

	if (!c->g->limit_ns || c->g->limit_ns > c->end_ns)
		return;
	x = GCT_CHART_LEFT + (double)c->g->limit_ns * GCT_CHART_PLOT / (double)c->end_ns;
	gci_buf_printf(c->out,
		"<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke=\"#222\" "
		"stroke-dasharray=\"4 3\"/><text x=\"%.1f\" y=\"%d\" text-anchor=\"%s\">physical "
		"limit %s</text>\n",
		x, x, GCT_CHART_TOP, c->bottom + 4, x, c->bottom + 30,
		x > GCT_CHART_LEFT + GCT_CHART_PLOT - 80 ? "end" : "middle",
		gci_format_time(c->g->limit_ns / c->dilation, time, sizeof(time)));
}

/* ---- bars as text, and the whole chart */

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
