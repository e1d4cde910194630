/* SPDX-License-Identifier: MIT
 * Predicted against measured: both by logarithm, a mark for each case, and all of them as a table. */
#include "base/median.h"
#include "base/mem.h"
#include "base/units.h"
#include "tools/report_axes.h"

#include <math.h>

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

static void put_row(struct gct_page *p, const struct gct_html_case *x)
{
	char text[48], was[16], is[16];

	gci_buf_printf(p->out, "<tr><th scope=\"row\">%s</th><td class=\"text\">",
		gct_case_text(x->kind, x->nbytes, text));
	gct_put(p, x->algorithm);
	gci_buf_printf(p->out, "</td><td>%s</td><td>%s</td><td%s>%+.1f %%</td></tr>\n",
		gct_case_time(x, x->predicted_ns, was), gct_case_time(x, x->median_ns, is),
		fabs(off_percent(x)) > 10 ? " class=\"far\"" : "", off_percent(x));
}

static void put_table(struct gct_page *p, size_t n)
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
			put_row(p, &p->r->cases[i]);
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
		put_table(p, n);
		gci_buf_printf(p->out, "</div>\n");
	}
	gci_free(off);
}
