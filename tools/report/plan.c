/* SPDX-License-Identifier: MIT
 * The grid, predictions, and tables: plans, each with its ways as bars; and all that was
 * measured. */
#include "base/median.h"
#include "base/mem.h"
#include "base/units.h"
#include "tools/report/axes.h"
#include "tools/report/impl.h"

#include <math.h>
#include <string.h>

/* ---- The grid: clusters around a circle, links between them as thick as what crossed them, and a
 * table of all links. */

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

/* ---- Predicted against measured: both by logarithm, a mark for each case, and all of them as a
 * table. */

#define BAND      1.1 /* from the diagonal */
#define OPEN_ROWS 16  /* more are folded away */

static int is_shown(const struct gct_html_case *x)
{
	return !x->not_run && x->predicted_ns && x->median_ns;
}

static double ns_of(const struct gct_html_case *x, uint64_t ns)
{
	return (double)ns / x->dilation;
}

static double off_percent(const struct gct_html_case *x)
{
	return ((double)x->predicted_ns / (double)x->median_ns - 1) * 100;
}

static void find_ranges(const struct gct_page *p, struct gct_axes *a)
{
	double least = 0, most = 0;
	size_t i;

	for (i = 0; i < p->r->ncases; i++) {
		const struct gct_html_case *x = &p->r->cases[i];
		double lo, hi;

		if (!is_shown(x))
			continue;
		lo = ns_of(x, x->median_ns < x->predicted_ns ? x->median_ns : x->predicted_ns);
		hi = ns_of(x, x->median_ns < x->predicted_ns ? x->predicted_ns : x->median_ns);
		least = least <= 0 || lo < least ? lo : least;
		most = hi > most ? hi : most;
	}
	a->height = 400;
	a->left = 58;
	a->x = a->y = (struct gct_axis){GCT_LOG, least / 1.5, most * 1.5};
}

static void put_band(struct gct_page *p, const struct gct_axes *a)
{
	double lo = a->x.from, hi = a->x.to;

	gci_buf_printf(p->out,
		"<path class=\"band\" d=\"M%.1f %.1fL%.1f %.1fL%.1f %.1f"
		"L%.1f %.1fL%.1f %.1fL%.1f %.1fz\"/>"
		"<path class=\"line limit\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n",
		gct_axes_x(a, lo), gct_axes_y(a, lo), gct_axes_x(a, lo), gct_axes_y(a, lo * BAND),
		gct_axes_x(a, hi / BAND), gct_axes_y(a, hi), gct_axes_x(a, hi), gct_axes_y(a, hi),
		gct_axes_x(a, hi), gct_axes_y(a, hi / BAND), gct_axes_x(a, lo * BAND),
		gct_axes_y(a, lo), gct_axes_x(a, lo), gct_axes_y(a, lo), gct_axes_x(a, hi),
		gct_axes_y(a, hi));
}

static void put_mark(struct gct_page *p, const struct gct_axes *a, const struct gct_html_case *x)
{
	int k = (int)x->kind;
	char text[48];

	gci_buf_printf(p->out, "<g class=\"s%d\"><title>", k % GCT_HTML_COLOURS);
	gct_putf(p, "%s by ", gct_case_text(x->kind, x->nbytes, text));
	gct_put(p, x->algorithm);
	gct_putf(p, ": %+.1f %%", off_percent(x));
	gci_buf_printf(p->out, "</title>");
	gct_put_marker(p, k, gct_axes_x(a, ns_of(x, x->median_ns)),
		gct_axes_y(a, ns_of(x, x->predicted_ns)));
	gci_buf_printf(p->out, "</g>\n");
}

static void put_legend(struct gct_page *p)
{
	char class[24];
	size_t i;
	int k;

	gci_buf_printf(p->out, "<ul class=\"legend\">");
	gct_legend_begin(p, "limit", -1);
	gci_buf_printf(p->out, "predicted = measured; around it 10 %%");
	gct_legend_end(p);
	for (k = 0; k < GCI_NKINDS; k++) {
		for (i = 0; i < p->r->ncases; i++)
			if ((int)p->r->cases[i].kind == k && is_shown(&p->r->cases[i]))
				break;
		if (i == p->r->ncases)
			continue;
		snprintf(class, sizeof(class), "s%d", k % GCT_HTML_COLOURS);
		gct_legend_begin(p, class, k);
		gci_buf_printf(p->out, "%s", gci_kind_name((enum gci_kind)k));
		gct_legend_end(p);
	}
	gci_buf_printf(p->out, "</ul>\n");
}

static void put_chart(struct gct_page *p)
{
	struct gct_axes a = {.height = 0};
	size_t i;

	find_ranges(p, &a);
	gci_buf_printf(p->out, "<figure class=\"square\"><figcaption>Time predicted against time "
			       "measured</figcaption>\n");
	gct_axes_open(p, &a, "time predicted against time measured");
	put_band(p, &a);
	gct_axes_times(p, &a, "measured", "predicted");
	for (i = 0; i < p->r->ncases; i++)
		if (is_shown(&p->r->cases[i]))
			put_mark(p, &a, &p->r->cases[i]);
	gct_axes_close(p);
	put_legend(p);
	gci_buf_printf(p->out, "</figure>\n");
}

static void put_predicted_row(struct gct_page *p, const struct gct_html_case *x)
{
	char text[48], was[16], is[16];

	gci_buf_printf(p->out, "<tr><th scope=\"row\">%s</th><td class=\"text\">",
		gct_case_text(x->kind, x->nbytes, text));
	gct_put(p, x->algorithm);
	gci_buf_printf(p->out, "</td><td>%s</td><td>%s</td><td%s>%+.1f %%</td></tr>\n",
		gct_case_time(x, x->predicted_ns, was), gct_case_time(x, x->median_ns, is),
		fabs(off_percent(x)) > 10 ? " class=\"far\"" : "", off_percent(x));
}

static void put_predicted_table(struct gct_page *p, size_t n)
{
	size_t i;

	gci_buf_printf(p->out,
		"<details%s><summary>The same as a table</summary><div class=\"scroll\"><table>"
		"<thead><tr><th scope=\"col\">operation</th>"
		"<th scope=\"col\" class=\"text\">algorithm</th>"
		"<th scope=\"col\">predicted</th><th scope=\"col\">measured</th>"
		"<th scope=\"col\">off</th></tr></thead><tbody>\n",
		n <= OPEN_ROWS ? " open=\"open\"" : "");
	for (i = 0; i < p->r->ncases; i++)
		if (is_shown(&p->r->cases[i]))
			put_predicted_row(p, &p->r->cases[i]);
	gci_buf_printf(p->out, "</tbody></table></div></details>\n");
}

void gct_html_predictions(struct gct_page *p)
{
	double *off = gci_calloc(p->r->ncases, sizeof(*off)), worst = 0;
	size_t i, n = 0, nsized = 0, nlimits = 0;

	p->nomem |= !off;
	for (i = 0; off && i < p->r->ncases; i++) {
		if (!is_shown(&p->r->cases[i]))
			continue;
		off[n] = fabs(off_percent(&p->r->cases[i]));
		worst = off[n] > worst ? off[n] : worst;
		/* A barrier's limit does not ask for rates. */
		nsized += p->r->cases[i].kind != GCI_BARRIER;
		nlimits += p->r->cases[i].kind != GCI_BARRIER && p->r->cases[i].limit_ns;
		n++;
	}
	if (!n) {
		gct_put_none(p, "No prediction is among the results",
			"gridcoll bench bcast --predict --json DIR/bench.json");
	} else {
		gci_buf_printf(p->out,
			"<p>%zu prediction%s, off by %.1f %% in the median, by %.1f %% at most. "
			"Measured are medians of warm iterations.</p>\n",
			n, n > 1 ? "s" : "", gci_median(off, n), worst);
		if (nsized && !nlimits)
			gci_buf_printf(p->out,
				"<p>Nobody said what this network carries, so they are guesses: "
				"write the cards' rates to a grid file, or have "
				"<code>gridcoll probe -o my.params</code> measure them.</p>\n");
		gci_buf_printf(p->out, "<div class=\"beside\">");
		put_chart(p);
		put_predicted_table(p, n);
		gci_buf_printf(p->out, "</div>\n");
	}
	gci_free(off);
}

/* ---- plans, and all that was measured */

#define MOST_WAYS 16 /* of a plan, with bars */
#define BUSY      70 /* percent of a lab's processor, above which its times are not the network's */

/* What was measured of the same, or NULL. "auto" may have run the same way. */
static const struct gct_html_case *measured(
	const struct gct_html *r, const struct gct_html_plan *p, const char *algorithm)
{
	size_t i, n = strlen(algorithm);

	for (i = 0; i < r->ncases; i++) {
		const struct gct_html_case *x = &r->cases[i];

		if (x->kind == p->kind && x->nbytes == p->nbytes && !x->not_run &&
			r->sources[x->source].nranks == p->nranks &&
			!strncmp(x->algorithm, algorithm, n) &&
			(!x->algorithm[n] || x->algorithm[n] == ' '))
			return x;
	}
	return NULL;
}

static void put_way(struct gct_page *p, const struct gct_html_plan *plan,
	const struct gct_html_way *w, uint64_t longest)
{
	const struct gct_html_case *x = measured(p->r, plan, w->algorithm);
	char was[16], is[16];

	gci_buf_printf(p->out, "<tr%s><th scope=\"row\">",
		!strcmp(w->algorithm, plan->choice) ? " class=\"choice\"" : "");
	gct_put(p, w->algorithm);
	gci_buf_printf(p->out,
		"</th><td>%s</td><td class=\"bar\"><svg viewBox=\"0 0 100 10\" "
		"preserveAspectRatio=\"none\" aria-hidden=\"true\"><path class=\"fill\" d=\"M0 "
		"1h%.1fv8h-%.1fz\"/>",
		gci_format_time(w->ns, was, 16), 100.0 * (double)w->ns / (double)longest,
		100.0 * (double)w->ns / (double)longest);
	if (plan->limit_ns)
		gci_buf_printf(p->out, "<path class=\"limit\" d=\"M%.1f 0v10\"/>",
			100.0 * (double)plan->limit_ns / (double)longest);
	gci_buf_printf(p->out, "</svg></td><td>%s</td><td class=\"text\">",
		x ? gct_case_time(x, x->median_ns, is) : "");
	gct_put(p, w->why);
	gci_buf_printf(p->out, "</td></tr>\n");
}

static uint64_t longest_of(const struct gct_html_plan *plan)
{
	uint64_t longest = plan->limit_ns + 1;
	size_t i, n = 0;

	for (i = 0; i < plan->nways && n < MOST_WAYS; i++) {
		n += !plan->ways[i].not_run;
		longest = plan->ways[i].ns > longest ? plan->ways[i].ns : longest;
	}
	return longest;
}

static void put_plan(struct gct_page *p, const struct gct_html_plan *plan)
{
	size_t i, n = 0, more = 0;
	char text[48], limit[16];

	gci_buf_printf(p->out, "<h3>%s</h3>\n<p>", gct_case_text(plan->kind, plan->nbytes, text));
	gct_putf(p, "%.80s: %d ranks; the choice, ", plan->name, (int)plan->nranks);
	gci_buf_printf(p->out, "<strong>");
	gct_put(p, plan->choice);
	gci_buf_printf(p->out, "</strong>");
	gct_putf(p, "%s%s", plan->chosen_by ? ", is " : ", is marked",
		plan->chosen_by ? plan->chosen_by : "");
	if (plan->limit_ns)
		gci_buf_printf(p->out, ". Dashed: the physical limit, %s",
			gci_format_time(plan->limit_ns, limit, 16));
	gci_buf_printf(p->out,
		".</p>\n<div class=\"scroll\"><table><thead><tr><th scope=\"col\">algorithm</th>"
		"<th scope=\"col\">predicted</th><th></th><th scope=\"col\">measured</th>"
		"<th scope=\"col\" class=\"text\">why</th></tr></thead><tbody>\n");
	for (i = 0; i < plan->nways; i++) {
		if (plan->ways[i].not_run)
			continue;
		if (n++ < MOST_WAYS)
			put_way(p, plan, &plan->ways[i], longest_of(plan));
		else
			more++;
	}
	gci_buf_printf(p->out, "</tbody></table></div>\n");
	if (more)
		gci_buf_printf(p->out, "<p class=\"note\">and %zu slower ones</p>\n", more);
}

void gct_html_plans(struct gct_page *p)
{
	size_t i;

	for (i = 0; i < p->r->nplans; i++)
		put_plan(p, &p->r->plans[i]);
	if (!i)
		gct_put_none(p, "There is no plan",
			"gridcoll plan bcast --grid DIR/grid --bytes 32MiB --json > DIR/plan.json");
}

/* ---- all that was measured */

static void put_case(struct gct_page *p, const struct gct_html_case *x)
{
	const struct gct_html_source *s = &p->r->sources[x->source];
	char text[48], t[5][24];

	gci_buf_printf(p->out, "<tr><th scope=\"row\">%s</th><td class=\"text\">",
		gct_case_text(x->kind, x->nbytes, text));
	gct_put(p, x->algorithm);
	if (x->not_run) {
		gci_buf_printf(p->out, "</td><td class=\"text\" colspan=\"8\">not run: ");
		gct_put(p, x->not_run);
		gci_buf_printf(p->out, "</td></tr>\n");
		return;
	}
	gci_buf_printf(p->out, "</td><td>%s</td><td>%s</td><td>%s</td><td>%s</td>",
		gct_case_time(x, x->first_ns, t[0]), gct_case_time(x, x->least_ns, t[1]),
		gct_case_time(x, x->median_ns, t[2]), gct_case_time(x, x->most_ns, t[3]));
	if (x->limit_ns)
		gci_buf_printf(p->out, "<td>%.2f</td>", (double)x->median_ns / (double)x->limit_ns);
	else
		gci_buf_printf(p->out, "<td></td>");
	gci_buf_printf(p->out, "<td>%s</td><td>%llu</td>",
		gci_format_bytes(x->schedule_wan_nbytes, t[0], 16), (unsigned long long)x->resent);
	if (x->cpu_percent >= 0)
		gci_buf_printf(p->out, "<td%s>%d %%</td></tr>\n",
			s->lab && x->cpu_percent > BUSY ? " class=\"far\"" : "", x->cpu_percent);
	else
		gci_buf_printf(p->out, "<td></td></tr>\n");
}

void gct_html_figures(struct gct_page *p)
{
	int busy = 0;
	size_t i;

	if (!p->r->ncases) {
		gct_put_none(p, "Nothing was measured", "gridcoll bench bcast --report DIR");
		return;
	}
	gci_buf_printf(p->out,
		"<div class=\"scroll\"><table><thead><tr><th scope=\"col\">operation</th>"
		"<th scope=\"col\" class=\"text\">algorithm</th><th scope=\"col\">first</th>"
		"<th scope=\"col\">min</th><th scope=\"col\">median</th><th scope=\"col\">max</th>"
		"<th scope=\"col\">x limit</th><th scope=\"col\">WAN</th>"
		"<th scope=\"col\">resent</th><th scope=\"col\">CPU</th></tr></thead><tbody>\n");
	for (i = 0; i < p->r->ncases; i++) {
		const struct gct_html_case *x = &p->r->cases[i];

		put_case(p, x);
		busy |= p->r->sources[x->source].lab && x->cpu_percent > BUSY;
	}
	gci_buf_printf(p->out,
		"</tbody></table></div>\n<p class=\"note\">first: connections may be new then; "
		"WAN: payload that the algorithm moves between clusters; "
		"resent: TCP segments, between clusters, in all warm iterations.</p>\n");
	if (busy)
		gci_buf_printf(p->out,
			"<p class=\"note far\">Above %d %% of the lab's processor figures are the "
			"processor's, and not the network's.</p>\n",
			BUSY);
}
