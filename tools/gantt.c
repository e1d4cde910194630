/* SPDX-License-Identifier: MIT */
#include "tools/gantt.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/units.h"
#include "tools/gantt_bars.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WIDTH       1400
#define LEFT        150
#define PLOT        1220 /* of which the time takes */
#define TOP         96   /* title, legend, axis */
#define HEAD        20   /* a cluster's name */
#define LEAST_CELL  5    /* tenths of a pixel */
#define MOST_TITLED 2500 /* bars: with so few each has its figures as a tooltip */
#define MOST_TICKS  12

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

struct chart {
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

/* Text between tags and in attributes; what may not stand there, or is no ASCII, is a "?". */
static void put_text(struct gci_buf *out, const char *s)
{
	for (; s && *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '<')
			gci_buf_printf(out, "&lt;");
		else if (c == '>')
			gci_buf_printf(out, "&gt;");
		else if (c == '&')
			gci_buf_printf(out, "&amp;");
		else if (c == '"')
			gci_buf_printf(out, "&quot;");
		else
			gci_buf_put_u8(out, c < ' ' || c > '~' ? '?' : c);
	}
}

static int size_of(const struct chart *c, int cluster)
{
	int n = gci_topo_size(c->g->timeline->topo, cluster);
	int most = GCT_GANTT_MOST_ROWS / c->g->timeline->topo->nclusters;

	return c->g->timeline->topo->nranks <= GCT_GANTT_MOST_ROWS || n < most ? n : most;
}

/* Which ranks are shown, and where. */
static int place_rows(struct chart *c)
{
	const struct gci_topo *t = c->g->timeline->topo;
	int k, i, r, y = TOP;

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
		y += HEAD;
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

/* ---- frame */

static void put_head(const struct chart *c)
{
	const struct gci_topo *t = c->g->timeline->topo;
	struct gci_buf *out = c->out;
	int i;

	gci_buf_printf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		"viewBox=\"0 0 %d %d\" font-family=\"Helvetica,Arial,'DejaVu Sans',sans-serif\" "
		"font-size=\"12\" fill=\"#222\">\n<title>",
		WIDTH, c->bottom + 34, WIDTH, c->bottom + 34);
	put_text(out, c->g->title);
	gci_buf_printf(out,
		"</title>\n<style>path{fill:none;stroke-width:%d}.c{stroke-width:%d}"
		".w{stroke-width:1}.r{stroke-opacity:.7}",
		c->lane, c->thin);
	/* Where both go on at once, both are seen. */
	gci_buf_printf(out, ".b0,.b1,.b2,.b3{stroke-width:%d}", (c->lane * 4 + 2) / 5);
	for (i = 0; i < GCT_NPAINTS; i++)
		gci_buf_printf(out, ".%s{stroke:%s}", paints[i].class, paints[i].colour);
	gci_buf_printf(out, "</style>\n<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n", WIDTH,
		c->bottom + 34);
	gci_buf_printf(out, "<text x=\"14\" y=\"24\" font-size=\"17\" font-weight=\"bold\">");
	put_text(out, c->g->title);
	gci_buf_printf(out, "</text>\n<text x=\"14\" y=\"43\" fill=\"#555\">");
	put_text(out, c->g->subtitle);
	if (c->nrows < t->nranks)
		gci_buf_printf(out, " (the first %d of %d ranks)", c->nrows, t->nranks);
	gci_buf_printf(out, "</text>\n");
}

/* "within clusters, phases 1 and 5" */
static void legend_text(const struct chart *c, int paint, char *text, size_t size)
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

static void put_legend(const struct chart *c)
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
		LEFT + PLOT, c->bars.phases[GCT_PAINT_COMPUTE] ? ", computes" : "");
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

static void put_axis(const struct chart *c)
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
		double x = LEFT + (double)at * PLOT / (double)end_ns;

		gci_buf_printf(c->out,
			"<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke=\"#e3e5e8\"/>"
			"<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\" fill=\"#555\">%g %s"
			"</text><text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\" fill=\"#555\">%g "
			"%s</text>\n",
			x, x, TOP, c->bottom, x, TOP - 6, (double)at / (double)unit, name, x,
			c->bottom + 16, (double)at / (double)unit, name);
	}
}

static void put_limit(const struct chart *c)
{
	char time[16];
	double x;

	if (!c->g->limit_ns || c->g->limit_ns > c->end_ns)
		return;
	x = LEFT + (double)c->g->limit_ns * PLOT / (double)c->end_ns;
	gci_buf_printf(c->out,
		"<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke=\"#222\" "
		"stroke-dasharray=\"4 3\"/><text x=\"%.1f\" y=\"%d\" text-anchor=\"%s\">physical "
		"limit %s</text>\n",
		x, x, TOP, c->bottom + 20, x, c->bottom + 30,
		x > LEFT + PLOT - 80 ? "end" : "middle",
		gci_format_time(c->g->limit_ns / c->dilation, time, sizeof(time)));
}

static void put_rows(const struct chart *c)
{
	const struct gci_topo *t = c->g->timeline->topo;
	int i, last = -1, size = c->lane >= 9 ? 12 : c->lane >= 6 ? 10 : 8;

	for (i = 0; i < c->nrows; i++) {
		int r = c->rank_of[i], k = t->cluster[r], y = c->top[i];

		if (k != last) {
			gci_buf_printf(c->out,
				"<line x1=\"10\" x2=\"%d\" y1=\"%d\" y2=\"%d\" stroke=\"#777\"/>"
				"<text x=\"14\" y=\"%d\" font-weight=\"bold\">",
				LEFT + PLOT, y - HEAD + 1, y - HEAD + 1, y - HEAD + 15);
			put_text(c->out, c->g->clusters[k]);
			gci_buf_printf(c->out, "</text>\n");
			last = k;
		}
		gci_buf_printf(c->out,
			"<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#f4f5f7\"/>"
			"<text x=\"%d\" y=\"%d\" text-anchor=\"end\" font-size=\"%d\">",
			LEFT, y, PLOT, c->height - 5, LEFT - 8, y + (c->height - 5) / 2 + size / 3,
			size);
		if (c->g->names && c->g->names[r]) {
			char name[20];

			snprintf(name, sizeof(name), "%.16s", c->g->names[r]);
			put_text(c->out, name);
		}
		gci_buf_printf(c->out, " <tspan fill=\"#777\">%d</tspan></text>\n", r);
	}
}

/* ---- bars */

static int lane_y(const struct chart *c, const struct gct_bar *b)
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

static void put_tooltip(const struct chart *c, const struct gct_bar *b)
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
			put_text(c->out, c->g->names[s->peer]);
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
static void put_bars(const struct chart *c)
{
	int titled = c->bars.n <= MOST_TITLED, open = 0;
	uint32_t at = 0;
	size_t i;

	gci_buf_printf(c->out, "<g transform=\"translate(%d,0) scale(.1,1)\">\n", LEFT);
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
				paints[b->paint].class, b->lane == GCT_LANE_RECV ? " r" : "", b->x0,
				lane_y(c, b), width);
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
static void put_all(struct chart *c)
{
	uint32_t cell;

	put_head(c);
	put_legend(c);
	put_rows(c);
	put_axis(c);
	for (cell = LEAST_CELL;; cell *= 2) {
		size_t before = c->out->len;

		gct_bars_merge(&c->bars, cell);
		put_bars(c);
		put_limit(c);
		gci_buf_printf(c->out, "</svg>\n");
		if (c->out->failed || c->out->len <= GCT_GANTT_MOST_NBYTES || cell > PLOT * 10)
			return;
		c->out->len = before;
	}
}

int gct_gantt_print(const struct gct_gantt *g, struct gci_buf *out)
{
	struct chart c = {.g = g,
		.out = out,
		.end_ns = gct_timeline_end(g->timeline),
		.dilation = g->dilation ? g->dilation : 1};
	int rc = place_rows(&c);

	if (c.end_ns < g->limit_ns && !g->timeline->n)
		c.end_ns = g->limit_ns;
	if (!rc)
		rc = gct_bars_make(&c.bars, g->timeline, c.row, PLOT * 10, c.end_ns);
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
