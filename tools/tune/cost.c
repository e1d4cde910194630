/* SPDX-License-Identifier: MIT
 * What a candidate costs: by simulation, and by measuring. Nothing is asked twice for a case: a
 * search that comes later is told what it would have found out, and what that would have taken. */
#include "base/clock.h"
#include "base/mem.h"
#include "tools/lib/progress.h"
#include "tools/tune/tune.h"

#include <stdio.h>
#include <string.h>

static struct gct_known *known(const struct gct_tune *t, const struct gci_candidate *how)
{
	size_t i;

	for (i = 0; i < t->nknown; i++)
		if (gci_candidate_same(&t->known[i].how, how))
			return &t->known[i];
	return NULL;
}

static int out_of_memory(void)
{
	return gci_comm_error(GCOLL_ERR_NOMEM, "out of memory");
}

/* An entry for what is not known yet. */
static struct gct_known *add(struct gct_tune *t, const struct gci_candidate *how)
{
	if (gci_grow(&t->known, &t->known_cap, t->nknown + 1, sizeof(*t->known)))
		return NULL;
	t->known[t->nknown] = (struct gct_known){*how, {.ns = GCI_NEVER}, 0};
	return &t->known[t->nknown++];
}

uint32_t gct_tune_streams(const struct gct_tune *t)
{
	/* A job was told of them; it may have been by other means, too. */
	return t->bench.comm ? t->bench.comm->engine->settings.streams : (uint32_t)t->o.streams;
}

int gct_tune_net(const struct gct_tune *t, const struct gci_topo *topo, struct gci_simnet *net)
{
	if (gci_simnet_init(net, topo, t->has_params ? &t->params : NULL))
		return out_of_memory();
	gci_simnet_streams(net, gct_tune_streams(t));
	return 0;
}

int gct_tune_simulate(const struct gct_tune *t, const struct gci_simnet *net,
	const struct gci_coll *c, const struct gci_candidate *how, struct gci_trial *trial)
{
	const struct gci_predict_limits limits = {.most_steps = GCT_MOST_STEPS};
	uint64_t from = gci_now_ns();
	int rc;

	if (gct_progress_is_due()) {
		char text[GCI_CANDIDATE_NBYTES];

		gci_candidate_print(how, text);
		gct_progress("%s: simulating %s", gci_kind_name(c->kind), text);
	}
	rc = gci_predict(net, c, how, &limits, &trial->ns);

	if (rc && rc != GCOLL_ERR_INVAL)
		return out_of_memory();
	if (rc)
		trial->ns = GCI_NEVER;
	trial->runs = 1;
	/* Times are shown divided by the dilation; this one is of no network. */
	trial->spent_ns = (gci_now_ns() - from) * t->dilation;
	return 0;
}

static int measure(struct gct_tune *t, const struct gct_tune_case *c,
	const struct gci_candidate *how, uint64_t enough_ns, struct gct_known *k)
{
	struct gct_bench_result r = {
		.kind = c->kind, .iterations = t->o.iterations, .enough_ns = enough_ns};
	char text[GCI_CANDIDATE_NBYTES];
	uint64_t i;
	int rc;

	gci_candidate_print(how, text);
	snprintf(r.algorithm, sizeof(r.algorithm), "%s", text);
	gct_bench_shape(&t->bench, &r, c->asked_nbytes);
	r.ns = gci_calloc(r.iterations, sizeof(*r.ns));
	if (!r.ns)
		return out_of_memory();
	rc = gcoll_comm_set(t->bench.comm, gci_kind_name(c->kind), text);
	if (!rc)
		rc = gct_bench_measure(&t->bench, &r);
	if (!rc) {
		k->first_ns = r.cold_ns;
		k->trial.ns = r.iterations ? gct_bench_median(&r) : r.cold_ns;
		k->trial.runs = r.iterations + 1;
		k->trial.spent_ns = r.cold_ns;
		for (i = 0; i < r.iterations; i++)
			k->trial.spent_ns += r.ns[i];
	}
	gci_free(r.ns);
	return rc;
}

static int is_told_by_one_run(const struct gct_known *k, uint64_t enough_ns)
{
	return enough_ns && k->first_ns > enough_ns;
}

int gct_tune_measure(struct gct_tune *t, const struct gct_tune_case *c,
	const struct gci_candidate *how, struct gci_trial *trial)
{
	uint64_t enough_ns = trial->enough_ns;
	struct gct_known *k = known(t, how);
	int is_new = !k, rc = 0;

	if (is_new)
		k = add(t, how);
	if (!k)
		return out_of_memory();
	if (is_new ? !gci_ineligible(how->algorithm, &c->coll)
		   : k->trial.runs == 1 && !is_told_by_one_run(k, enough_ns))
		rc = measure(t, c, how, enough_ns, k);
	*trial = k->trial;
	if (is_told_by_one_run(k, enough_ns))
		*trial = (struct gci_trial){k->first_ns, k->first_ns, 1, 0};
	return rc;
}

int gct_tune_measure_again(
	struct gct_tune *t, const struct gct_tune_case *c, const struct gci_candidate *how)
{
	struct gct_known *before = known(t, how), again = {0};
	int rc;

	if (!before || before->trial.ns == GCI_NEVER)
		return 0;
	rc = measure(t, c, how, 0, &again);
	if (rc)
		return rc;
	if (again.trial.ns < before->trial.ns)
		before->trial.ns = again.trial.ns;
	before->trial.runs += again.trial.runs;
	before->trial.spent_ns += again.trial.spent_ns;
	return 0;
}

/* ---- ranked by simulation */

struct asked {
	struct gct_tune *t;
	const struct gct_tune_case *c;
};

static int simulate(void *ctx, const struct gci_candidate *how, struct gci_trial *trial)
{
	struct asked *a = ctx;

	return gct_tune_simulate(a->t, &a->t->net, &a->c->coll, how, trial);
}

/* Equal times stay as they were found: the default first. */
static void sort(struct gci_tried *list, size_t n)
{
	size_t i, k;

	for (i = 1; i < n; i++) {
		struct gci_tried x = list[i];

		for (k = i; k && list[k - 1].ns > x.ns; k--)
			list[k] = list[k - 1];
		list[k] = x;
	}
}

int gct_tune_rank(struct gct_tune *t, const struct gct_tune_case *c, struct gci_search_result *r)
{
	struct gct_tune_space space;
	struct asked asked = {t, c};
	struct gci_search s;
	int rc = gct_tune_space_init(&space, t, c, 1);

	memset(r, 0, sizeof(*r));
	s = gct_tune_space_search(&space, c, simulate, &asked);
	if (!rc)
		rc = gci_search_exhaustive(&s, r);
	sort(r->tried, r->ntried);
	gct_tune_space_free(&space);
	return rc;
}
