/* SPDX-License-Identifier: MIT
 * A chart's frame: two axes with ticks, units and grid lines, as SVG. Inside of report.
 *
 *	struct gct_axes a = {
 *		.x = {GCT_LOG, 1e3, 1e9}, .y = {GCT_LINEAR, 0, 8e9}, .height = 300};
 *
 *	gct_axes_open(p, &a, "bcast: throughput against size");
 *	gct_axes_ticks_y(p, &a, 1e9, "Gbit/s");
 *	gct_axes_tick_x(p, &a, 65536, "64 KiB");	// from left to right
 *	gct_axes_title_x(p, &a, "size of the message");
 *	...				// paths, at gct_axes_x(), gct_axes_y() of a value
 *	gct_axes_close(p);
 *
 * Pixels are those of a chart GCT_AXES_WIDTH wide; the page scales it. */
#ifndef GCT_REPORT_AXES_H
#define GCT_REPORT_AXES_H

#include "tools/report/impl.h"

#define GCT_AXES_WIDTH  480
#define GCT_AXES_RIGHT  14
#define GCT_AXES_TOP    26
#define GCT_AXES_BOTTOM 40

enum gct_scale { GCT_LINEAR, GCT_LOG };

struct gct_axis {
	enum gct_scale scale;
	double from, to; /* to > from; with GCT_LOG from > 0 */
};

struct gct_axes {
	struct gct_axis x, y;
	int height;        /* of the whole chart */
	int left;          /* what the labels of the y axis take; 0: enough for numbers */
	double last_label; /* where the last label of the x axis ends */
};

void gct_axes_open(struct gct_page *p, struct gct_axes *a, const char *what);
void gct_axes_close(struct gct_page *p);

double gct_axes_x(const struct gct_axes *a, double v);
double gct_axes_y(const struct gct_axes *a, double v);

/* Ticks of a linear axis at 1, 2 or 5 times a power of ten units. */
void gct_axes_ticks_x(struct gct_page *p, struct gct_axes *a, double unit, const char *title);
void gct_axes_ticks_y(struct gct_page *p, struct gct_axes *a, double unit, const char *title);

/* Ticks of logarithmic axes in nanoseconds, both. */
void gct_axes_times(struct gct_page *p, struct gct_axes *a, const char *x, const char *y);

/* One tick; its label is left out where it would meet the one before, the tick with it. */
void gct_axes_tick_x(struct gct_page *p, struct gct_axes *a, double v, const char *label);
void gct_axes_title_x(struct gct_page *p, const struct gct_axes *a, const char *title);

/* The largest 1000^n that a value reaches, and its name: bit/s, kbit/s ... */
double gct_rate_unit(double bps, const char **name);
double gct_time_unit(double ns, const char **name);

/* A little above, so that a curve does not touch the frame. */
double gct_axis_end(double most);

/* One of a few shapes, by number, about (x, y). */
void gct_put_marker(struct gct_page *p, int number, double x, double y);

/* A row of a legend: a line, with a marker unless `marker` is < 0. gct_legend_end() ends it, behind
 * the text. */
void gct_legend_begin(struct gct_page *p, const char *class, int marker);
void gct_legend_end(struct gct_page *p);

#endif
