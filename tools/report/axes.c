/* SPDX-License-Identifier: MIT
 * What the sections of a report are made of: words, figures, axes. */
#include "tools/report/axes.h"

#include "base/units.h"
#include "tools/lib/markup.h"
#include "tools/report/impl.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- words and figures */

void gct_put(struct gct_page *p, const char *text)
{
	gct_markup_text(p->out, text);
}

void gct_putf(struct gct_page *p, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	gct_put(p, text);
}

char *gct_size_text(uint64_t nbytes, char out[24])
{
	static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
	unsigned i = 0;

	while (nbytes >= 1024 && nbytes % 1024 == 0 && i < 5) {
		nbytes /= 1024;
		i++;
	}
	if (nbytes < 1024)
		snprintf(out, 24, "%u %s", (unsigned)nbytes, names[i]);
	else
		gci_format_bytes(nbytes << 10 * i, out, 24);
	return out;
}

char *gct_case_text(enum gci_kind kind, uint64_t nbytes, char out[48])
{
	char size[24];

	snprintf(out, 48, "%s%s%s", gci_kind_name(kind), nbytes ? " of " : "",
		nbytes ? gct_size_text(nbytes, size) : "");
	return out;
}

char *gct_case_time(const struct gct_html_case *c, uint64_t ns, char out[16])
{
	return gci_format_time(ns / c->dilation, out, 16);
}

double gct_case_bps(const struct gct_html_case *c, uint64_t ns)
{
	return ns ? (double)c->nbytes * 8e9 * c->dilation / (double)ns : 0;
}

int gct_case_has_rate(const struct gct_html_case *c)
{
	return !c->not_run && c->nbytes && c->median_ns;
}

int gct_same_curve(const struct gct_html_case *a, const struct gct_html_case *b)
{
	return a->kind == b->kind && a->source == b->source && !strcmp(a->asked, b->asked);
}

static int has_kind(const struct gct_html *r, enum gci_kind kind, int not_of)
{
	size_t i;

	for (i = 0; i < r->ncases; i++)
		if (r->cases[i].kind == kind && r->cases[i].source != not_of)
			return 1;
	return 0;
}

void gct_put_curve(struct gct_page *p, const struct gct_html_case *c)
{
	if (!strcmp(c->asked, "auto"))
		gct_put(p, "gridcoll's choice");
	else
		gct_put(p, c->asked);
	if (has_kind(p->r, c->kind, c->source))
		gct_putf(p, " (%.60s)", p->r->sources[c->source].name);
}

uint64_t gct_largest(const struct gct_html *r, enum gci_kind kind)
{
	uint64_t most = 0;
	size_t i;

	for (i = 0; i < r->ncases; i++)
		if (r->cases[i].kind == kind && !r->cases[i].not_run && r->cases[i].nbytes > most)
			most = r->cases[i].nbytes;
	return most;
}

void gct_put_none(struct gct_page *p, const char *what, const char *command)
{
	gci_buf_printf(p->out, "<p class=\"none\">%s. Try <code>", what);
	gct_put(p, command);
	gci_buf_printf(p->out, "</code></p>\n");
}

/* ---- axes */

#define LETTER     8.2 /* of a label, at the size that phones have */
#define TICKS      5
#define LABEL_SIZE 24
#define LEAST_LEFT 46

static double place(const struct gct_axis *a, double v)
{
	if (a->scale == GCT_LINEAR)
		return (v - a->from) / (a->to - a->from);
	return (log(v) - log(a->from)) / (log(a->to) - log(a->from));
}

double gct_axes_x(const struct gct_axes *a, double v)
{
	return a->left + place(&a->x, v) * (GCT_AXES_WIDTH - a->left - GCT_AXES_RIGHT);
}

double gct_axes_y(const struct gct_axes *a, double v)
{
	return a->height - GCT_AXES_BOTTOM -
	       place(&a->y, v) * (a->height - GCT_AXES_TOP - GCT_AXES_BOTTOM);
}

void gct_axes_open(struct gct_page *p, struct gct_axes *a, const char *what)
{
	a->last_label = -1e9;
	a->left = a->left > LEAST_LEFT ? a->left : LEAST_LEFT;
	gci_buf_printf(p->out,
		"<svg class=\"chart\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"",
		GCT_AXES_WIDTH, a->height);
	gct_put(p, what);
	gci_buf_printf(p->out, "\">\n");
}

void gct_axes_close(struct gct_page *p)
{
	gci_buf_printf(p->out, "</svg>\n");
}

void gct_axes_tick_x(struct gct_page *p, struct gct_axes *a, double v, const char *label)
{
	double x = gct_axes_x(a, v), half = (double)strlen(label) * LETTER / 2;
	double at = x;

	if (at + half > GCT_AXES_WIDTH - 2)
		at = GCT_AXES_WIDTH - 2 - half;
	if (at - half < a->last_label + LETTER)
		return;
	a->last_label = at + half;
	gci_buf_printf(p->out,
		"<path class=\"grid\" d=\"M%.1f %dV%d\"/><text x=\"%.1f\" y=\"%d\" "
		"class=\"mid\">",
		x, GCT_AXES_TOP, a->height - GCT_AXES_BOTTOM, at, a->height - GCT_AXES_BOTTOM + 18);
	gct_put(p, label);
	gci_buf_printf(p->out, "</text>\n");
}

static void tick_y(struct gct_page *p, struct gct_axes *a, double v, const char *label)
{
	double y = gct_axes_y(a, v);

	gci_buf_printf(p->out,
		"<path class=\"grid\" d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" "
		"class=\"end\">%s</text>\n",
		a->left, y, GCT_AXES_WIDTH - GCT_AXES_RIGHT, a->left - 6, y + 4, label);
}

void gct_axes_title_x(struct gct_page *p, const struct gct_axes *a, const char *title)
{
	gci_buf_printf(p->out, "<text x=\"%d\" y=\"%d\" class=\"end title\">%s</text>\n",
		GCT_AXES_WIDTH - GCT_AXES_RIGHT, a->height - 5, title);
}

static void gct_axes_title_y(struct gct_page *p, const char *title)
{
	gci_buf_printf(p->out, "<text x=\"2\" y=\"14\" class=\"title\">%s</text>\n", title);
}

static double step_of(double range)
{
	double power = pow(10, floor(log10(range / TICKS)));

	return range / power <= TICKS       ? power
	       : range / power <= 2 * TICKS ? 2 * power
	       : range / power <= 5 * TICKS ? 5 * power
					    : 10 * power;
}

typedef void put_tick(struct gct_page *p, struct gct_axes *a, double v, const char *label);

static void put_ticks(struct gct_page *p, struct gct_axes *a, const struct gct_axis *axis,
	double unit, put_tick *put)
{
	double step = step_of((axis->to - axis->from) / unit), end = axis->to / unit;
	char label[LABEL_SIZE];
	int i;

	for (i = 0; i * step <= end * 1.0001; i++) {
		snprintf(label, sizeof(label), "%g", i * step);
		put(p, a, i * step * unit, label);
	}
}

void gct_axes_ticks_x(struct gct_page *p, struct gct_axes *a, double unit, const char *title)
{
	put_ticks(p, a, &a->x, unit, gct_axes_tick_x);
	gct_axes_title_x(p, a, title);
}

void gct_axes_ticks_y(struct gct_page *p, struct gct_axes *a, double unit, const char *title)
{
	put_ticks(p, a, &a->y, unit, tick_y);
	gct_axes_title_y(p, title);
}

static void time_label(double ns, char label[LABEL_SIZE])
{
	const char *name;
	double unit = gct_time_unit(ns * 1.0001, &name);

	snprintf(label, LABEL_SIZE, "%g %s", ns / unit, name);
}

/* At each power of ten; at 2 and 5 times it as well, where there are few. */
void gct_axes_times(struct gct_page *p, struct gct_axes *a, const char *x, const char *y)
{
	static const int by[] = {1, 2, 5};
	double power = pow(10, floor(log10(a->x.from)));
	int i, all = a->x.to / a->x.from < 200;
	char label[LABEL_SIZE];

	for (; power <= a->x.to; power *= 10)
		for (i = 0; i < (all ? 3 : 1); i++) {
			double v = power * by[i];

			if (v < a->x.from * 0.999 || v > a->x.to * 1.001)
				continue;
			time_label(v, label);
			gct_axes_tick_x(p, a, v, label);
			tick_y(p, a, v, label);
		}
	gct_axes_title_x(p, a, x);
	gct_axes_title_y(p, y);
}

static double unit_of(double v, const char *const *names, const char **name)
{
	double unit = 1;

	for (; v >= 1000 * unit && names[1]; names++)
		unit *= 1000;
	*name = *names;
	return unit;
}

double gct_rate_unit(double bps, const char **name)
{
	static const char *const names[] = {"bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s", NULL};

	return unit_of(bps, names, name);
}

double gct_time_unit(double ns, const char **name)
{
	static const char *const names[] = {"ns", "us", "ms", "s", NULL};

	return unit_of(ns, names, name);
}

double gct_axis_end(double most)
{
	return most > 0 ? most * 1.06 : 1;
}

void gct_put_marker(struct gct_page *p, int number, double x, double y)
{
	static const char *const shapes[] = {"m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
		"m-3.5 -3.5h7v7h-7z", "m0 -4.6l4.4 7.6h-8.8z", "m0 -5l5 5l-5 5l-5 -5z",
		"m0 4.6l4.4 -7.6h-8.8z"};

	gci_buf_printf(
		p->out, "<path class=\"mark\" d=\"M%.1f %.1f%s\"/>", x, y, shapes[number % 5]);
}

void gct_legend_begin(struct gct_page *p, const char *class, int marker)
{
	gci_buf_printf(p->out,
		"<li><svg class=\"key %s\" viewBox=\"0 0 26 12\" aria-hidden=\"true\"><path "
		"class=\"line\" d=\"M1 6h24\"/>",
		class);
	if (marker >= 0)
		gct_put_marker(p, marker, 13, 6);
	gci_buf_printf(p->out, "</svg> ");
}

void gct_legend_end(struct gct_page *p)
{
	gci_buf_printf(p->out, "</li>\n");
}
