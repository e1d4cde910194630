/* SPDX-License-Identifier: MIT
 * How near predictions of the best segment come, as Vadhiyar 2004 has it in table 3: for each
 * algorithm the best segment as measured, the best by MagPIe's formulas and by our simulation, and
 * what the operation takes in those. */
#include "base/clock.h"
#include "base/units.h"
#include "collectives/models/magpie.h"
#include "tools/lib/progress.h"
#include "tools/tune/tune.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MAGPIE, SIMULATION, NMODELS };

/* One algorithm. */
struct row {
	const struct gci_method *method;
	struct gci_tried best;            /* as measured */
	uint64_t segment[NMODELS];        /* predicted; 0: not */
	struct gci_trial actual[NMODELS]; /* what these take */
};

struct asked {
	struct gct_tune *t;
	const struct gct_tune_case *c;
};

static int measure(void *ctx, const struct gci_candidate *how, struct gci_trial *trial)
{
	struct asked *a = ctx;

	return gct_tune_measure(a->t, a->c, how, trial);
}

static int simulate(void *ctx, const struct gci_candidate *how, struct gci_trial *trial)
{
	struct asked *a = ctx;

	return gct_tune_simulate(a->t, &a->t->net, &a->c->coll, how, trial);
}

/* The paper's formulas are of bcasts down these trees. */
static uint64_t by_magpie(
	const struct gct_tune *t, const struct gct_tune_case *c, const struct gci_algorithm *a)
{
	static const char *const shapes[GCI_MAGPIE_NSHAPES] = {
		"sequential", "chain", "binary", "binomial"};
	struct gci_plogp p = gci_plogp_measured(t->topo, t->has_params ? &t->params : NULL);
	enum gci_layer layer = t->topo->nclusters > 1 ? GCI_WAN : GCI_LAN;
	int i;

	for (i = 0; c->kind == GCI_BCAST && i < GCI_MAGPIE_NSHAPES; i++)
		if (!strcmp(shapes[i], a->name))
			return gci_magpie_tree_segment(
				&p, layer, (enum gci_magpie_shape)i, t->topo->nranks, c->nbytes);
	return 0;
}

/* On rank 0; the others are told. */
static int predict(
	struct gct_tune *t, const struct gct_tune_case *c, struct gci_search *s, struct row *row)
{
	struct asked asked = {t, c};
	struct gci_search_result r = {.best_ns = GCI_NEVER};
	int rc = 0;

	s->cost = simulate;
	s->ctx = &asked;
	if (gct_tune_is_first(t)) {
		rc = gci_search_exhaustive(s, &r);
		row->segment[SIMULATION] = r.best_ns != GCI_NEVER ? r.best.segment_nbytes : 0;
		row->segment[MAGPIE] = by_magpie(t, c, row->method->how.algorithm);
	}
	gci_search_result_free(&r);
	return rc ? rc : gcoll_bcast(row->segment, NMODELS, GCOLL_UINT64, 0, t->bench.own);
}

static int fill(struct gct_tune *t, const struct gct_tune_case *c,
	const struct gct_tune_space *space, struct row *row)
{
	struct asked asked = {t, c};
	struct gci_search s = gct_tune_space_search(space, c, measure, &asked);
	struct gci_search_result r;
	int m, rc;

	s.methods = row->method;
	s.nmethods = 1;
	rc = gci_search_exhaustive(&s, &r);
	row->best = (struct gci_tried){r.best, r.best_ns};
	gci_search_result_free(&r);
	if (!rc)
		rc = predict(t, c, &s, row);
	for (m = 0; m < NMODELS && !rc; m++) {
		struct gci_candidate how = row->method->how;

		how.segment_nbytes = row->segment[m];
		if (how.segment_nbytes)
			rc = gct_tune_measure(t, c, &how, &row->actual[m]);
	}
	return rc;
}

static const char *segment_text(uint64_t nbytes, char out[16])
{
	if (!nbytes)
		snprintf(out, 16, "-");
	else
		gci_format_bytes(nbytes, out, 16);
	return out;
}

static const char *ratio_text(const struct row *row, int model, char out[16])
{
	snprintf(out, 16, "-");
	if (row->segment[model] && row->best.ns && row->best.ns != GCI_NEVER)
		snprintf(out, 16, "%.2f", (double)row->actual[model].ns / (double)row->best.ns);
	return out;
}

static void print(const struct gct_tune *t, const struct row *row)
{
	char best[16], ns[16], segment[NMODELS][16], ratio[NMODELS][16];

	gct_progress_end();
	if (row->best.ns == GCI_NEVER) {
		printf("%-18s cannot run it\n", row->method->how.algorithm->name);
		return;
	}
	printf("%-18s %9s %9s %9s %9s %8s %8s\n", row->method->how.algorithm->name,
		segment_text(row->best.how.segment_nbytes, best),
		gci_format_time(row->best.ns / t->dilation, ns, 16),
		segment_text(row->segment[MAGPIE], segment[MAGPIE]),
		segment_text(row->segment[SIMULATION], segment[SIMULATION]),
		ratio_text(row, MAGPIE, ratio[MAGPIE]),
		ratio_text(row, SIMULATION, ratio[SIMULATION]));
	fflush(stdout);
}

int gct_tune_compare(struct gct_tune *t, const struct gct_tune_case *c)
{
	struct gct_tune_space space;
	size_t i;
	int rc = gct_tune_space_init(&space, t, c, 0);

	if (!rc && gct_tune_is_first(t)) {
		gct_tune_print_case(t, c);
		printf("%-18s %19s %9s %9s %17s\n%-18s %9s %9s %9s %9s %8s %8s\n", "",
			"best as measured", "MagPIe's", "simulated", "time there / best",
			"algorithm", "segment", "time", "segment", "segment", "MagPIe", "simul.");
	}
	for (i = 0; i < space.nmethods && !rc; i++) {
		struct row row = {.method = &space.methods[i]};

		if (row.method->fixed)
			continue;
		rc = fill(t, c, &space, &row);
		if (!rc && gct_tune_is_first(t))
			print(t, &row);
	}
	gct_tune_space_free(&space);
	return rc;
}
