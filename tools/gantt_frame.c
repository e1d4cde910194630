/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "base/mem.h"
#include "base/units.h"
#include "tools/gantt_impl.h"

#include <stdio.h>
#include <string.h>

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

const char *gct_paint_class(enum gct_paint paint)
{
	return paints[paint].class;
}

static int size_of(const struct gct_chart *c, int cluster)
{
	int n = gci_topo_size(c->g->timeline->topo, cluster);
	int most = GCT_GANTT_MOST_ROWS / c->g->timeline->topo->nclusters;

	return c->g->timeline->topo->nranks <= GCT_GANTT_MOST_ROWS || n < most ? n : most;
}

int gct_chart_rows(struct gct_chart *c)
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

void gct_chart_frame(const struct gct_chart *c)
{
	put_head(c);
	put_legend(c);
	put_rows(c);
	put_axis(c);
}

void gct_chart_limit(const struct gct_chart *c)
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
