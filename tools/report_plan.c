/* SPDX-License-Identifier: MIT
 * Tables: plans, each with its ways as bars; and all that was measured. */
#include "base/units.h"
#include "tools/report_impl.h"

#include <string.h>

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
