/* SPDX-License-Identifier: MIT
 * What was sent between clusters over time: of each operation's largest size, by up to three
 * algorithms. Of many pairs of clusters the busiest have a curve each, the others one together. */
#include "base/clock.h"
#include "base/mem.h"
#include "base/units.h"
#include "tools/report/axes.h"

#include <stdlib.h>
#include <string.h>

#define MOST_CHARTS 3 /* of an operation */
#define MOST_POINTS 200
#define MOST_PAIRS  6 /* with a curve of their own */

struct chart {
	struct gct_page *p;
	const struct gct_html_case *x;
	struct gct_axes axes;
	const struct gct_html_pair **pairs; /* the busiest first */
	size_t npairs, nown;                /* nown: with a curve of their own */
	uint32_t each, npoints;             /* bins to a point */
	uint64_t *points;                   /* [nown + 1][npoints] */
	double bin_s, most_bps, link_bps;
};

static int by_sum(const void *a, const void *b)
{
	const struct gct_html_pair *const *x = a, *const *y = b;

	return (*x)->sum > (*y)->sum ? -1 : (*x)->sum < (*y)->sum;
}

static size_t curves_of(const struct chart *c)
{
	return c->nown + (c->nown < c->npairs);
}

static int make_points(struct chart *c)
{
	const struct gct_html_course *course = &c->x->course;
	size_t i;
	uint32_t k;

	c->npairs = course->npairs;
	c->nown = c->npairs <= MOST_PAIRS ? c->npairs : MOST_PAIRS - 1;
	c->each = 1 + (course->nbins - 1) / MOST_POINTS;
	c->npoints = (course->nbins + c->each - 1) / c->each;
	c->bin_s = (double)course->bin_ns / 1e9 / c->x->dilation;
	c->pairs = gci_calloc(c->npairs, sizeof(*c->pairs));
	c->points = gci_calloc((c->nown + 1) * c->npoints, sizeof(*c->points));
	if (!c->pairs || !c->points)
		return GCOLL_ERR_NOMEM;
	for (i = 0; i < c->npairs; i++)
		c->pairs[i] = &course->pairs[i];
	qsort(c->pairs, c->npairs, sizeof(const struct gct_html_pair *), by_sum);
	for (i = 0; i < c->npairs; i++)
		for (k = 0; k < course->nbins; k++)
			c->points[(i < c->nown ? i : c->nown) * c->npoints + k / c->each] +=
				c->pairs[i]->nbytes[k];
	return 0;
}

/* The last point may be of fewer bins. */
static double point_bps(const struct chart *c, size_t curve, uint32_t k)
{
	uint32_t left = c->x->course.nbins - k * c->each;

	return (double)c->points[curve * c->npoints + k] * 8 /
	       ((left < c->each ? left : c->each) * c->bin_s);
}

/* The rate of the links whose traffic has curves, where it is one. */
static double find_link(const struct chart *c)
{
	const struct gci_grid *g = &c->p->grid;
	uint64_t rate = 0;
	int i;

	for (i = 0; c->p->has_grid && i < g->nlinks; i++) {
		if (rate && g->links[i].rate_bps != rate)
			return 0;
		rate = g->links[i].rate_bps;
	}
	return (double)rate * 1448 / 1514;
}

static void find_ranges(struct chart *c)
{
	double most = 0, until = (double)c->x->course.nbins * c->bin_s * 1e9;
	size_t i;
	uint32_t k;

	for (i = 0; i < curves_of(c); i++)
		for (k = 0; k < c->npoints; k++)
			most = point_bps(c, i, k) > most ? point_bps(c, i, k) : most;
	c->link_bps = find_link(c);
	c->most_bps = most;
	if (c->link_bps > most && c->link_bps < 3 * most)
		most = c->link_bps;
	c->axes.height = 250;
	c->axes.x = (struct gct_axis){GCT_LINEAR, 0, until > 0 ? until : 1};
	c->axes.y = (struct gct_axis){GCT_LINEAR, 0, gct_axis_end(most)};
}

/* A pair has the same colour in all charts, if there are so few. */
static unsigned colour_of(const struct chart *c, size_t curve)
{
	size_t i, most = 0;

	for (i = 0; i < c->npairs; i++)
		most = c->pairs[i]->number > most ? c->pairs[i]->number : most;
	return (unsigned)(most < GCT_HTML_COLOURS ? c->pairs[curve]->number : curve);
}

static void put_curve(const struct chart *c, size_t curve)
{
	struct gci_buf *out = c->p->out;
	uint32_t k;

	gci_buf_printf(out, "<path class=\"line s%u\" d=\"M%.1f %.1f", colour_of(c, curve),
		gct_axes_x(&c->axes, 0), gct_axes_y(&c->axes, 0));
	for (k = 0; k < c->npoints; k++) {
		uint32_t end = (k + 1) * c->each;

		if (end > c->x->course.nbins)
			end = c->x->course.nbins;
		gci_buf_printf(out, "V%.1fH%.1f", gct_axes_y(&c->axes, point_bps(c, curve, k)),
			gct_axes_x(&c->axes, end * c->bin_s * 1e9));
	}
	gci_buf_printf(out, "V%.1f\"/>\n", gct_axes_y(&c->axes, 0));
}

static uint64_t curve_sum(const struct chart *c, size_t curve)
{
	uint64_t sum = 0;
	uint32_t k;

	for (k = 0; k < c->npoints; k++)
		sum += c->points[curve * c->npoints + k];
	return sum;
}

static void put_legend(const struct chart *c)
{
	struct gct_page *p = c->p;
	char class[24], text[24];
	size_t i;

	gci_buf_printf(p->out, "<ul class=\"legend\">");
	if (c->link_bps > 0) {
		gct_legend_begin(p, "limit", -1);
		gci_buf_printf(p->out, "payload that a link carries: %s%s",
			gci_format_rate((uint64_t)c->link_bps, text, sizeof(text)),
			c->link_bps > c->axes.y.to ? " (above this chart)" : "");
		gct_legend_end(p);
	}
	for (i = 0; i < curves_of(c); i++) {
		snprintf(class, sizeof(class), "s%u", colour_of(c, i));
		gct_legend_begin(p, class, -1);
		if (i < c->nown)
			gct_putf(p, "%.64s > %.64s", c->pairs[i]->from, c->pairs[i]->to);
		else
			gct_putf(p, "%zu other pairs together", c->npairs - c->nown);
		gci_buf_printf(
			p->out, ": %s", gci_format_bytes(curve_sum(c, i), text, sizeof(text)));
		gct_legend_end(p);
	}
	gci_buf_printf(p->out, "</ul>\n");
}

static void put_chart(struct chart *c)
{
	const char *rate_name, *time_name;
	double rate, time;
	char text[48];
	size_t i;

	find_ranges(c);
	rate = gct_rate_unit(c->axes.y.to, &rate_name);
	time = gct_time_unit(c->axes.x.to, &time_name);
	gci_buf_printf(c->p->out, "<figure><figcaption>%s by ",
		gct_case_text(c->x->kind, c->x->nbytes, text));
	gct_put(c->p, c->x->algorithm);
	gci_buf_printf(c->p->out, "</figcaption>\n");
	gct_axes_open(c->p, &c->axes, "traffic between clusters over time");
	gct_axes_ticks_y(c->p, &c->axes, rate, rate_name);
	snprintf(text, sizeof(text), "time, %s", time_name);
	gct_axes_ticks_x(c->p, &c->axes, time, text);
	if (c->link_bps > 0 && c->link_bps <= c->axes.y.to)
		gci_buf_printf(c->p->out, "<path class=\"line limit\" d=\"M%d %.1fH%d\"/>\n",
			c->axes.left, gct_axes_y(&c->axes, c->link_bps),
			GCT_AXES_WIDTH - GCT_AXES_RIGHT);
	for (i = curves_of(c); i-- > 0;)
		put_curve(c, i);
	gct_axes_close(c->p);
	put_legend(c);
	gci_buf_printf(c->p->out, "<p class=\"note\">bins of %s</p></figure>\n",
		gci_format_time(
			c->each * c->x->course.bin_ns / c->x->dilation, text, sizeof(text)));
}

static int put_kind(struct gct_page *p, enum gci_kind kind)
{
	uint64_t largest = gct_largest(p->r, kind);
	size_t i;
	int n = 0;

	for (i = 0; i < p->r->ncases && n < MOST_CHARTS; i++) {
		struct chart c = {.p = p, .x = &p->r->cases[i]};

		if (c.x->kind != kind || !gct_case_has_rate(c.x) || c.x->nbytes != largest ||
			!c.x->course.npairs)
			continue;
		if (make_points(&c))
			p->nomem = 1;
		else
			put_chart(&c);
		gci_free(c.pairs);
		gci_free(c.points);
		n++;
	}
	return n;
}

void gct_html_traffic(struct gct_page *p)
{
	size_t before = p->out->len;
	int k, n = 0;

	gci_buf_printf(p->out,
		"<p>What TCP sent between clusters in the last iteration of the largest size, from "
		"all ranks' connections together.</p>\n<div class=\"charts\">\n");
	for (k = 0; k < GCI_NKINDS; k++)
		n += put_kind(p, (enum gci_kind)k);
	if (n) {
		gci_buf_printf(p->out, "</div>\n");
		return;
	}
	p->out->len = before;
	gct_put_none(p, "No traffic between clusters was recorded",
		"gridcoll bench bcast --bytes 32MiB --report DIR");
}
