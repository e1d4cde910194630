/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "base/units.h"
#include "collectives/models/limit.h"
#include "tools/progress.h"
#include "tools/tune.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *time_text(const struct gct_tune *t, uint64_t ns, char out[16])
{
	if (!ns || ns == GCI_NEVER)
		snprintf(out, 16, "-");
	else
		gci_format_time(ns / t->dilation, out, 16);
	return out;
}

static uint64_t limit_of(const struct gct_tune *t, const struct gct_tune_case *c)
{
	return gci_limit_ns(&c->coll, t->bench.comm ? t->bench.comm->engine->settings.streams : 0);
}

static void name_case(const struct gct_tune_case *c, char *out, size_t size)
{
	char bytes[16];

	snprintf(out, size, "%s", gci_kind_name(c->kind));
	if (c->kind != GCI_BARRIER)
		snprintf(out, size, "%s of %s", gci_kind_name(c->kind),
			gci_format_bytes(c->nbytes, bytes, 16));
}

void gct_tune_print_case(const struct gct_tune *t, const struct gct_tune_case *c)
{
	char name[64], limit[16];
	uint64_t ns = limit_of(t, c);

	gct_progress_end();
	name_case(c, name, sizeof(name));
	printf("\n%s", name);
	if (c->calls)
		printf(", called %" PRIu64 " times", c->calls);
	if (ns)
		printf(", physical limit %s", time_text(t, ns, limit));
	printf("\n");
}

void gct_tune_print_header(const struct gct_tune *t)
{
	const struct gci_topo *topo = t->topo;
	int k;

	printf("%d ranks in %d cluster%s:", topo->nranks, topo->nclusters,
		topo->nclusters > 1 ? "s" : "");
	for (k = 0; k < topo->nclusters; k++)
		printf("%s%d", k ? " + " : " ", gci_topo_size(topo, k));
	printf("; predictions from %s\n",
		t->has_params ? "measured parameters" : "the grid file alone");
	if (t->dilation > 1)
		printf("dilation k = %u: times are measured times divided by k\n", t->dilation);
	if (!t->o.nsearches && !t->o.compare)
		printf("\n%-26s %-32s %9s %9s %9s %6s\n", "operation", "best", "predicted",
			"measured", "untuned", "x lim");
}

static void count_untuned(
	struct gct_tune_untuned *u, const struct gct_tune_line *l, const char *name)
{
	double slower;

	if (!l->best_ns || !l->usual_ns)
		return;
	slower = (double)l->usual_ns / (double)l->best_ns - 1;
	if (!u->n++ || slower > u->worst) {
		u->worst = slower;
		snprintf(u->what, sizeof(u->what), "%s", name);
	}
	u->near += slower <= 0.05;
}

/* What a job without a table does, where it is not the best. */
static void print_usual(const struct gct_tune_line *l)
{
	char usual[GCI_CANDIDATE_NBYTES];

	if (!l->best_ns || !l->usual_ns || gci_candidate_same(&l->best, &l->usual))
		return;
	gci_candidate_print(&l->usual, usual);
	printf("    untuned: %s, %.1f%% slower\n", usual,
		100 * ((double)l->usual_ns / (double)l->best_ns - 1));
}

void gct_tune_print_line(struct gct_tune *t, const struct gct_tune_line *l)
{
	char name[64], best[GCI_CANDIDATE_NBYTES], ns[3][16], ratio[16] = "-";
	uint64_t limit = limit_of(t, l->c), is = l->best_ns ? l->best_ns : l->predicted_ns;

	gct_progress_end();
	name_case(l->c, name, sizeof(name));
	gci_candidate_print(&l->best, best);
	if (limit && is)
		snprintf(ratio, sizeof(ratio), "%.2f", (double)is / (double)limit);
	printf("%-26s %-32s %9s %9s %9s %6s\n", name, best, time_text(t, l->predicted_ns, ns[0]),
		time_text(t, l->best_ns, ns[1]), time_text(t, l->usual_ns, ns[2]), ratio);
	print_usual(l);
	fflush(stdout);
	count_untuned(&t->untuned, l, name);
}

void gct_tune_print_untuned(const struct gct_tune *t)
{
	const struct gct_tune_untuned *u = &t->untuned;

	if (u->n)
		printf("\nwithout a table %u of %u are within 5%% of the best, at worst %.1f%% "
		       "(%s)\n",
			u->near, u->n, 100 * u->worst, u->what);
}

/* Time of what a search has found, over the best of all: measured once, it is the same for all. */
static void loss_text(const struct gct_tune_answer *a, uint64_t best_ns, char out[16])
{
	snprintf(out, 16, a->predicted ? "predicted" : "-");
	if (best_ns && !a->predicted && a->r.best_ns != GCI_NEVER)
		snprintf(out, 16, "%+.1f %%", 100 * ((double)a->r.best_ns / (double)best_ns - 1));
}

void gct_tune_print_answers(const struct gct_tune *t, const struct gct_tune_case *c,
	const struct gct_tune_answer *answers, int n)
{
	uint64_t all_ns = 0, best_ns = 0;
	int i;

	for (i = 0; i < n; i++)
		if (answers[i].search == GCT_EXHAUSTIVE) {
			all_ns = answers[i].r.spent_ns;
			best_ns = answers[i].r.best_ns;
		}
	gct_tune_print_case(t, c);
	printf("%-11s %9s %6s %6s %7s  %-28s %9s %8s\n", "search", "took", "ways", "runs", "sooner",
		"best", "its time", "loss");
	for (i = 0; i < n; i++) {
		const struct gct_tune_answer *a = &answers[i];
		char best[GCI_CANDIDATE_NBYTES] = "-", ns[2][16], loss[16], sooner[16] = "-";

		if (a->why_not) {
			printf("%-11s does not apply: %s\n", gct_search_name(a->search),
				a->why_not);
			continue;
		}
		if (a->r.best_ns != GCI_NEVER)
			gci_candidate_print(&a->r.best, best);
		if (all_ns && a->r.spent_ns)
			snprintf(sooner, sizeof(sooner), "%.1f x",
				(double)all_ns / (double)a->r.spent_ns);
		loss_text(a, best_ns, loss);
		printf("%-11s %9s %6" PRIu64 " %6" PRIu64 " %7s  %-28s %9s %8s\n",
			gct_search_name(a->search), time_text(t, a->r.spent_ns, ns[0]),
			a->r.evaluations, a->r.runs, sooner, best,
			time_text(t, a->r.best_ns, ns[1]), loss);
	}
	fflush(stdout);
}
