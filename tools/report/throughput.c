/* SPDX-License-Identifier: MIT
 * Of each operation: its throughput against the size, a curve for each algorithm, and the limit. */
#include "base/mem.h"
#include "tools/report/axes.h"

#include <stdlib.h>

#define MOST_CURVES GCT_HTML_COLOURS

struct chart {
	struct gct_page *p;
	enum gci_kind kind;
	struct gct_axes axes;
	const struct gct_html_case *curves[MOST_CURVES]; /* the first case of each */
	int ncurves, nleft_out;
	int has_limit;
};

static int is_shown(const struct chart *c, const struct gct_html_case *x)
{
	return x->kind == c->kind && gct_case_has_rate(x);
}

static void find_curves(struct chart *c)
{
	const struct gct_html *r = c->p->r;
	size_t i;
	int k;

	for (i = 0; i < r->ncases; i++) {
		const struct gct_html_case *x = &r->cases[i];
		size_t before;

		if (!is_shown(c, x))
			continue;
		c->has_limit |= x->limit_ns != 0;
		for (k = 0; k < c->ncurves && !gct_same_curve(c->curves[k], x); k++)
			;
		if (k < c->ncurves)
			continue;
		if (c->ncurves < MOST_CURVES) {
			c->curves[c->ncurves++] = x;
			continue;
		}
		for (before = 0; before < i && !(is_shown(c, &r->cases[before]) &&
						       gct_same_curve(&r->cases[before], x));
			before++)
			;
		c->nleft_out += before == i;
	}
}

static void find_ranges(struct chart *c)
{
	const struct gct_html *r = c->p->r;
	double least = 0, most = 0, fastest = 0;
	size_t i;

	for (i = 0; i < r->ncases; i++) {
		const struct gct_html_case *x = &r->cases[i];
		double size = (double)x->nbytes, rate;

		if (!is_shown(c, x))
			continue;
		least = least <= 0 || size < least ? size : least;
		most = size > most ? size : most;
		rate = gct_case_bps(x, x->least_ns);
		fastest = rate > fastest ? rate : fastest;
		rate = gct_case_bps(x, x->limit_ns);
		fastest = rate > fastest ? rate : fastest;
	}
	c->axes.height = 290;
	c->axes.x = (struct gct_axis){GCT_LOG, least / 1.3, most * 1.3};
	c->axes.y = (struct gct_axis){GCT_LINEAR, 0, gct_axis_end(fastest)};
}

static int by_size(const void *a, const void *b)
{
	const struct gct_html_case *const *x = a, *const *y = b;

	return (*x)->nbytes < (*y)->nbytes ? -1 : (*x)->nbytes > (*y)->nbytes;
}

/* Cases of a curve (NULL: all), in the order of sizes. */
static size_t collect(
	const struct chart *c, const struct gct_html_case *curve, const struct gct_html_case **list)
{
	const struct gct_html *r = c->p->r;
	size_t i, n = 0;

	for (i = 0; i < r->ncases; i++)
		if (is_shown(c, &r->cases[i]) && (!curve || gct_same_curve(curve, &r->cases[i])))
			list[n++] = &r->cases[i];
	if (n)
		qsort(list, n, sizeof(const struct gct_html_case *), by_size);
	return n;
}

static void put_sizes(struct chart *c, const struct gct_html_case **list)
{
	size_t i, n = collect(c, NULL, list);
	char label[24];

	for (i = 0; i < n; i++)
		if (!i || list[i]->nbytes != list[i - 1]->nbytes)
			gct_axes_tick_x(c->p, &c->axes, (double)list[i]->nbytes,
				gct_size_text(list[i]->nbytes, label));
	gct_axes_title_x(c->p, &c->axes, "size of the message");
}

static void put_limit(struct chart *c, const struct gct_html_case **list)
{
	size_t i, n = collect(c, NULL, list);
	const char *move = "M";

	if (!c->has_limit)
		return;
	gci_buf_printf(c->p->out, "<path class=\"line limit\" d=\"");
	for (i = 0; i < n; i++) {
		if (!list[i]->limit_ns)
			continue;
		gci_buf_printf(c->p->out, "%s%.1f %.1f", move,
			gct_axes_x(&c->axes, (double)list[i]->nbytes),
			gct_axes_y(&c->axes, gct_case_bps(list[i], list[i]->limit_ns)));
		move = "L";
	}
	gci_buf_printf(c->p->out, "\"/>\n");
}

static void put_tooltip(const struct chart *c, const struct gct_html_case *x)
{
	struct gct_page *p = c->p;
	char text[48], time[16];

	gci_buf_printf(p->out, "<title>");
	gct_putf(p, "%s: %s, by ", gct_case_text(x->kind, x->nbytes, text),
		gct_case_time(x, x->median_ns, time));
	gct_put(p, x->algorithm);
	gci_buf_printf(p->out, "</title>");
}

static void put_curve(struct chart *c, int k, const struct gct_html_case **list)
{
	size_t i, n = collect(c, c->curves[k], list);
	struct gci_buf *out = c->p->out;

	gci_buf_printf(out, "<g class=\"s%d\"><path class=\"line\" d=\"", k);
	for (i = 0; i < n; i++)
		gci_buf_printf(out, "%s%.1f %.1f", i ? "L" : "M",
			gct_axes_x(&c->axes, (double)list[i]->nbytes),
			gct_axes_y(&c->axes, gct_case_bps(list[i], list[i]->median_ns)));
	gci_buf_printf(out, "\"/>\n");
	for (i = 0; i < n; i++) {
		double x = gct_axes_x(&c->axes, (double)list[i]->nbytes);

		gci_buf_printf(out, "<path class=\"spread\" d=\"M%.1f %.1fV%.1f\"/><g>", x,
			gct_axes_y(&c->axes, gct_case_bps(list[i], list[i]->least_ns)),
			gct_axes_y(&c->axes, gct_case_bps(list[i], list[i]->most_ns)));
		put_tooltip(c, list[i]);
		gct_put_marker(c->p, k, x,
			gct_axes_y(&c->axes, gct_case_bps(list[i], list[i]->median_ns)));
		gci_buf_printf(out, "</g>\n");
	}
	gci_buf_printf(out, "</g>\n");
}

static void put_legend(const struct chart *c)
{
	char class[24];
	int k;

	gci_buf_printf(c->p->out, "<ul class=\"legend\">");
	if (c->has_limit) {
		gct_legend_begin(c->p, "limit", -1);
		gci_buf_printf(c->p->out, "physical limit");
		gct_legend_end(c->p);
	}
	for (k = 0; k < c->ncurves; k++) {
		snprintf(class, sizeof(class), "s%d", k);
		gct_legend_begin(c->p, class, k);
		gct_put_curve(c->p, c->curves[k]);
		gct_legend_end(c->p);
	}
	gci_buf_printf(c->p->out, "</ul>\n");
	if (c->nleft_out)
		gci_buf_printf(c->p->out,
			"<p class=\"note\">%d more algorithms are in the table of all "
			"figures.</p>\n",
			c->nleft_out);
}

static void put_chart(struct chart *c, const struct gct_html_case **list)
{
	const char *unit_name;
	double unit;
	int k;

	find_ranges(c);
	unit = gct_rate_unit(c->axes.y.to, &unit_name);
	gci_buf_printf(c->p->out, "<figure><figcaption>%s</figcaption>\n", gci_kind_name(c->kind));
	gct_axes_open(c->p, &c->axes, "throughput against the size of the message");
	gct_axes_ticks_y(c->p, &c->axes, unit, unit_name);
	put_sizes(c, list);
	put_limit(c, list);
	for (k = c->ncurves - 1; k >= 0; k--) /* the first on top */
		put_curve(c, k, list);
	gct_axes_close(c->p);
	put_legend(c);
	gci_buf_printf(c->p->out, "</figure>\n");
}

void gct_html_throughput(struct gct_page *p)
{
	const struct gct_html_case **list = gci_calloc(p->r->ncases, sizeof(*list));
	int k, n = 0;

	p->nomem |= !list;
	for (k = 0; list && k < GCI_NKINDS; k++) {
		struct chart c = {.p = p, .kind = (enum gci_kind)k};

		find_curves(&c);
		if (!c.ncurves)
			continue;
		if (!n++)
			gci_buf_printf(p->out,
				"<p>Size of the message, divided by the median time. "
				"Thin lines: from the slowest to the fastest of the warm "
				"iterations.</p>\n<div class=\"charts\">\n");
		put_chart(&c, list);
	}
	if (n)
		gci_buf_printf(p->out, "</div>\n");
	else
		gct_put_none(p, "Nothing with a size was measured",
			"gridcoll bench bcast --bytes 64KiB,1MiB,32MiB --report DIR");
	gci_free(list);
}
