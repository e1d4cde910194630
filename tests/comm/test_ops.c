/* SPDX-License-Identifier: MIT
 * Every algorithm of the registry, run by the executor over the in-process network against a naive
 * oracle (trial.h). A row in a table of algorithms is covered by being there. $GCI_ONLY (KIND or
 * KIND:NAME) narrows the run, $GCI_ALL=1 widens it. */
#include "tests/test.h"

#include "base/prng.h"
#include "tests/comm/trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int wanted(const struct gci_algorithm *a)
{
	const char *only = getenv("GCI_ONLY"), *kind = gci_kind_name(a->kind);
	size_t n = strlen(kind);

	if (!only)
		return 1;
	return !strncmp(only, kind, n) &&
	       (!only[n] || (only[n] == ':' && !strcmp(only + n + 1, a->name)));
}

static int may_be_in_place(enum gci_kind kind)
{
	return kind != GCI_BCAST && kind != GCI_BARRIER;
}

static int has_v(enum gci_kind kind)
{
	return kind == GCI_REDUCE_SCATTER || (kind >= GCI_SCATTER && kind <= GCI_ALLTOALL);
}

/* p ranks in up to four clusters. */
static void random_sizes(struct gci_prng *prng, int p, int sizes[8])
{
	int clusters = 1 + (int)gci_prng_below(prng, 4), i;

	memset(sizes, 0, 8 * sizeof(*sizes));
	for (i = 0; i < clusters - 1 && p > 1; i++) {
		sizes[i] = 1 + (int)gci_prng_below(prng, (uint64_t)p - 1);
		p -= sizes[i];
	}
	sizes[i] = p;
}

static void random_choice(
	struct gci_prng *prng, const struct gci_algorithm *a, char *value, size_t size)
{
	size_t n = (size_t)snprintf(value, size, "%s", a->name);

	if (a->traits & GCI_USES_SENDERS && gci_prng_below(prng, 2))
		n += (size_t)snprintf(
			value + n, size - n, ":senders=%d", 1 + (int)gci_prng_below(prng, 3));
	if (a->traits & GCI_USES_DEGREE && gci_prng_below(prng, 2))
		n += (size_t)snprintf(
			value + n, size - n, ":degree=%d", 1 + (int)gci_prng_below(prng, 4));
	if (a->traits & GCI_USES_SEGMENT && gci_prng_below(prng, 2))
		snprintf(value + n, size - n, ":segment=%d", 4 << gci_prng_below(prng, 10));
}

/* 1: any; else the order in which floats are reduced is fixed. */
static int can_fix_order(const struct gci_algorithm *a, const struct gci_topo *t)
{
	const struct gci_coll c = {.kind = a->kind, .topo = t, .order = GCI_CLUSTER_ORDER};

	return gci_kind_reduces(a->kind) && !gci_ineligible(a, &c);
}

static struct trial random_trial(
	struct gci_prng *prng, const struct gci_algorithm *a, struct job *j, int fixed)
{
	static const uint64_t counts[] = {0, 1, 2, 5, 17, 64, 257, 1009, 3001};
	static const enum gcoll_op ops[] = {GCOLL_SUM, GCOLL_MAX, GCOLL_BXOR, GCOLL_AVG};
	struct trial t = {.kind = a->kind, .type = GCOLL_UINT32, .seed = gci_prng_next(prng)};

	t.count = counts[gci_prng_below(prng, 9)];
	t.root = (int)gci_prng_below(prng, (uint64_t)j->n);
	t.in_place = may_be_in_place(a->kind) && !gci_prng_below(prng, 3);
	t.v = has_v(a->kind) ? (int)gci_prng_below(prng, 3) : 0;
	if (t.v || has_v(a->kind)) /* a block per rank */
		t.count = t.count / ((uint64_t)j->n) + t.count % 3;
	t.persistent = !gci_prng_below(prng, 5);
	t.op = ops[gci_prng_below(prng, 4)];
	if (fixed) {
		t.type = GCOLL_FLOAT32;
		t.op = gci_prng_below(prng, 3) ? GCOLL_SUM : GCOLL_AVG;
	}
	return t;
}

static void check_shape(const struct gci_algorithm *a, int p, int ntrials, struct gci_prng *prng)
{
	const struct gci_coll any = {.kind = a->kind};
	struct gci_coll c = any;
	char value[96];
	int sizes[8], i, r, fixed;
	struct job j;

	random_sizes(prng, p, sizes);
	job_open(&j, sizes, !gci_prng_below(prng, 3), gci_prng_next(prng), NULL);
	c.topo = &j.comm[0]->topo;
	fixed = can_fix_order(a, c.topo) && gci_prng_below(prng, 2);
	/* Small windows, so that many are under way, or one. */
	for (r = 0, i = (int)gci_prng_below(prng, 3); r < j.n && i; r++)
		j.comm[r]->engine->settings.window_nbytes = 256u << (2 * i);
	job_set(&j, "order", fixed ? "fixed" : "any");
	job_set(&j, "compare", gci_prng_below(prng, 4) ? "off" : "on");
	for (i = 0; i < ntrials && !gci_ineligible(a, &c); i++) {
		struct trial t = random_trial(prng, a, &j, fixed);

		random_choice(prng, a, value, sizeof(value));
		job_set(&j, gci_kind_name(a->kind), value);
		trial_run(&j, &t);
	}
	job_close(&j);
}

static void against_oracle(void **state)
{
	int p, ntrials = getenv("GCI_ALL") ? 60 : TEST_SANITIZED ? 2 : 3, n = 0;
	const struct gci_algorithm *a;

	(void)state;
	gci_each_algorithm (a) {
		struct gci_prng prng = {gci_digest_bytes(a->kind, a->name, strlen(a->name))};

		/* A sanitizer's run has half of the sizes, other ones of each algorithm. */
		for (p = 1; p <= MAX_RANKS && wanted(a); p++)
			if (!TEST_SANITIZED || getenv("GCI_ALL") || !gci_prng_below(&prng, 2)) {
				check_shape(a, p, ntrials, &prng);
				n++;
			}
	}
	assert_true(n > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(against_oracle)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
