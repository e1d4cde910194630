/* SPDX-License-Identifier: MIT
 * The grid: clusters around a circle, links between them as thick as what crossed them, and a table
 * of all links. */
#include "base/units.h"
#include "tools/report_axes.h"

#include <math.h>
#include <string.h>

#define MOST_CLUSTERS 24 /* in the drawing */
#define MOST_LABELLED 3  /* clusters whose links have their figures in the drawing */
#define MOST_ROWS     200
#define WIDTH         640
#define BOX_W         124
#define BOX_H         58
#define MOST_STROKE   10.0

struct drawing {
	struct gct_page *p;
	const struct gct_html_case *x; /* whose traffic it is; NULL: nobody's */
	int n, height;
	uint64_t most; /* bytes over any link */
};

/* The first operation whose traffic was recorded, at its largest size. */
static const struct gct_html_case *find_case(const struct gct_html *r)
{
	const struct gct_html_case *best = NULL;
	size_t i;

	for (i = 0; i < r->ncases; i++) {
		const struct gct_html_case *x = &r->cases[i];

		if (!x->course.npairs || (best && x->kind != best->kind))
			continue;
		if (!best || x->nbytes > best->nbytes)
			best = x;
	}
	return best;
}

static uint64_t sent(const struct drawing *d, int from, int to)
{
	const struct gci_grid *g = &d->p->grid;
	uint64_t sum = 0;
	size_t i;

	for (i = 0; d->x && i < d->x->course.npairs; i++)
		if (!strcmp(d->x->course.pairs[i].from, g->clusters[from].name) &&
			!strcmp(d->x->course.pairs[i].to, g->clusters[to].name))
			sum += d->x->course.pairs[i].sum;
	return sum;
}

static void place(const struct drawing *d, int i, double *x, double *y)
{
	double angle = d->n == 2 ? M_PI * (1 - i) : 2 * M_PI * i / d->n - M_PI / 2;
	double rx = WIDTH / 2.0 - BOX_W / 2.0 - 6, ry = d->height / 2.0 - BOX_H / 2.0 - 6;

	if (d->n > MOST_LABELLED + 3)
		rx = rx < ry * 1.6 ? rx : ry * 1.6;
	*x = WIDTH / 2.0 + (d->n > 1 ? rx * cos(angle) : 0);
	*y = d->height / 2.0 + (d->n > 1 ? ry * sin(angle) : 0);
	if (d->n == 3) /* from edge to edge */
		*y = d->height / 2.0 + ry * (i ? 1 : -1);
}

/* "10.0 Gbit/s, 10.0 ms" */
static void link_text(const struct gci_link *l, char *out, size_t size)
{
	char rate[16], delay[16];

	snprintf(out, size, "%s, %s",
		l->rate_bps ? gci_format_rate(l->rate_bps, rate, 16) : "rate unknown",
		gci_format_time(l->delay_ns, delay, 16));
}

/* One direction, a little to the right of the line between the two. */
static void put_arrow(const struct drawing *d, int from, int to)
{
	double x0, y0, x1, y1, length, dx, dy, aside, stroke;
	uint64_t nbytes = sent(d, from, to);

	place(d, from, &x0, &y0);
	place(d, to, &x1, &y1);
	length = hypot(x1 - x0, y1 - y0);
	if (length < 1)
		return;
	dx = (x1 - x0) / length;
	dy = (y1 - y0) / length;
	stroke = 1.5 + (d->most ? (MOST_STROKE - 1.5) * (double)nbytes / (double)d->most : 0);
	aside = d->n <= MOST_LABELLED ? 7 : 2;
	gci_buf_printf(d->p->out,
		"<path class=\"wan%s\" stroke-width=\"%.1f\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n",
		nbytes ? " used" : "", stroke, x0 - aside * dy, y0 + aside * dx, x1 - aside * dy,
		y1 + aside * dx);
}

static void put_label(
	const struct drawing *d, double x, double y, const char *class, const char *text)
{
	gci_buf_printf(d->p->out, "<text x=\"%.1f\" y=\"%.1f\" class=\"mid %s\">", x, y, class);
	gct_put(d->p, text);
	gci_buf_printf(d->p->out, "</text>\n");
}

static void sent_text(const struct drawing *d, int from, int to, char *out, size_t size)
{
	const struct gci_cluster *c = d->p->grid.clusters;
	char bytes[16];

	snprintf(out, size, "%.12s > %.12s: %s", c[from].name, c[to].name,
		gci_format_bytes(sent(d, from, to), bytes, 16));
}

/* In the middle of the link, on a plate. */
static void put_link_labels(const struct drawing *d, int a, int b)
{
	const struct gci_link *l = gci_grid_link(&d->p->grid, a, b);
	const struct gci_link *back = gci_grid_link(&d->p->grid, b, a);
	char lines[4][80], other[64];
	double x0, y0, x1, y1, x, y;
	int n = 0, i;

	if (!l)
		return;
	place(d, a, &x0, &y0);
	place(d, b, &x1, &y1);
	x = (x0 + x1) / 2;
	y = (y0 + y1) / 2;
	link_text(l, lines[n++], sizeof(*lines));
	if (back && (back->rate_bps != l->rate_bps || back->delay_ns != l->delay_ns)) {
		link_text(back, other, sizeof(other));
		snprintf(lines[n++], sizeof(*lines), "back: %s", other);
	}
	if (d->x) {
		sent_text(d, a, b, lines[n++], sizeof(*lines));
		sent_text(d, b, a, lines[n++], sizeof(*lines));
	}
	gci_buf_printf(d->p->out,
		"<rect class=\"plate\" x=\"%.1f\" y=\"%.1f\" width=\"200\" height=\"%d\" "
		"rx=\"4\"/>\n",
		x - 100, y - 9 * n - 3, 18 * n + 6);
	for (i = 0; i < n; i++)
		put_label(d, x, y - 9 * n + 18 * i + 14, i ? "muted" : "", lines[i]);
}

static void put_box(const struct drawing *d, int i)
{
	const struct gci_cluster *c = &d->p->grid.clusters[i];
	char text[80], rate[16];
	double x, y;

	place(d, i, &x, &y);
	gci_buf_printf(d->p->out,
		"<rect class=\"box\" x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"%d\" rx=\"6\"/>\n",
		x - BOX_W / 2.0, y - BOX_H / 2.0, BOX_W, BOX_H);
	snprintf(text, sizeof(text), "%.16s", c->name);
	put_label(d, x, y - 10, "name", text);
	snprintf(text, sizeof(text), "%d host%s", c->nhosts, c->nhosts > 1 ? "s" : "");
	put_label(d, x, y + 7, "muted", text);
	if (c->nic_bps)
		put_label(d, x, y + 22, "muted", gci_format_rate(c->nic_bps, rate, 16));
}

static void put_drawing(struct drawing *d)
{
	int i, k;

	d->height = d->n <= 2 ? 130 : d->n == 3 ? 300 : d->n <= MOST_LABELLED + 3 ? 360 : 520;
	for (i = 0; i < d->n; i++)
		for (k = 0; k < d->n; k++)
			if (sent(d, i, k) > d->most)
				d->most = sent(d, i, k);
	gci_buf_printf(d->p->out,
		"<div class=\"scroll\"><svg class=\"map\" viewBox=\"0 0 %d %d\" role=\"img\" "
		"aria-label=\"clusters and links\">\n",
		WIDTH, d->height);
	for (i = 0; i < d->n; i++)
		for (k = 0; k < d->n; k++)
			if (i != k && gci_grid_link(&d->p->grid, i, k))
				put_arrow(d, i, k);
	for (i = 0; i < d->n && d->n <= MOST_LABELLED; i++)
		for (k = i + 1; k < d->n; k++)
			put_link_labels(d, i, k);
	for (i = 0; i < d->n; i++)
		put_box(d, i);
	gci_buf_printf(d->p->out, "</svg></div>\n");
}

static void put_row(const struct drawing *d, const struct gci_link *l)
{
	const struct gci_grid *g = &d->p->grid;
	char t[4][16];

	gci_buf_printf(d->p->out, "<tr><th scope=\"row\">");
	gct_putf(d->p, "%.64s > %.64s", g->clusters[l->from].name, g->clusters[l->to].name);
	gci_buf_printf(d->p->out, "</th><td>%s</td><td>%s</td><td>%s</td><td>%g %%</td><td>%s</td>",
		l->rate_bps ? gci_format_rate(l->rate_bps, t[0], 16) : "unknown",
		gci_format_time(l->delay_ns, t[1], 16),
		l->queue_nbytes ? gci_format_bytes(l->queue_nbytes, t[2], 16) : "unknown",
		(double)l->loss_ppm / 1e4,
		l->flow_rate_bps ? gci_format_rate(l->flow_rate_bps, t[3], 16) : "");
	if (d->x)
		gci_buf_printf(d->p->out, "<td>%s</td>",
			gci_format_bytes(sent(d, l->from, l->to), t[0], 16));
	gci_buf_printf(d->p->out, "</tr>\n");
}

static void put_table(const struct drawing *d)
{
	const struct gci_grid *g = &d->p->grid;
	int i;

	if (!g->nlinks)
		return;
	gci_buf_printf(d->p->out,
		"<details%s><summary>All links</summary><div class=\"scroll\"><table><thead><tr>"
		"<th scope=\"col\">link</th><th scope=\"col\">rate</th><th scope=\"col\">delay</th>"
		"<th scope=\"col\">queue</th><th scope=\"col\">loss</th>"
		"<th scope=\"col\">one connection gets</th>%s</tr></thead><tbody>\n",
		d->n > MOST_LABELLED && g->nlinks <= 12 ? " open=\"open\"" : "",
		d->x ? "<th scope=\"col\">sent</th>" : "");
	for (i = 0; i < g->nlinks && i < MOST_ROWS; i++)
		put_row(d, &g->links[i]);
	gci_buf_printf(d->p->out, "</tbody></table></div>%s</details>\n",
		g->nlinks > MOST_ROWS ? "<p class=\"note\">The first 200 of them.</p>" : "");
}

static int all_alike(const struct gci_grid *g)
{
	const struct gci_link *l = g->links;
	int i, alike = g->nlinks > 0;

	for (i = 1; i < g->nlinks; i++)
		alike &= l[i].rate_bps == l->rate_bps && l[i].delay_ns == l->delay_ns;
	return alike;
}

static void put_links(const struct drawing *d)
{
	char text[48];

	if (d->n <= MOST_LABELLED) {
		gci_buf_printf(d->p->out, " Links have their rates, and delays one way.");
	} else if (all_alike(&d->p->grid)) {
		link_text(d->p->grid.links, text, sizeof(text));
		gci_buf_printf(d->p->out, " Each link: %s one way.", text);
	} else {
		gci_buf_printf(d->p->out, " Links differ: the table has their rates.");
	}
}

void gct_html_grid(struct gct_page *p)
{
	struct drawing d = {.p = p, .x = find_case(p->r)};
	char text[48];

	if (!p->has_grid) {
		gct_put_none(p, "There is no grid file", "cp my.grid DIR/grid");
		return;
	}
	d.n = p->grid.nclusters;
	gci_buf_printf(
		p->out, "<p>%d hosts in %d cluster%s.", p->grid.nhosts, d.n, d.n > 1 ? "s" : "");
	if (d.n > 1)
		put_links(&d);
	if (d.x && d.n > 1) {
		gci_buf_printf(p->out, " They are as thick as what crossed them in one %s by ",
			gct_case_text(d.x->kind, d.x->nbytes, text));
		gct_put(p, d.x->algorithm);
		gci_buf_printf(p->out, ".");
	}
	gci_buf_printf(p->out, "</p>\n");
	if (d.n <= MOST_CLUSTERS)
		put_drawing(&d);
	else
		gci_buf_printf(p->out, "<p class=\"note\">More than %d are not drawn.</p>\n",
			MOST_CLUSTERS);
	put_table(&d);
}
