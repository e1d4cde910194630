/* SPDX-License-Identifier: MIT
 * Searches on made-up surfaces like those of Vadhiyar 2004, figure 3: time over segment size falls
 * exponentially to a plateau with several minima, and methods differ in depth and slope. */
#include "base/clock.h"
#include "base/mem.h"
#include "base/prng.h"
#include "tests/test.h"
#include "tools/tune/methods.h"

#include <stdlib.h>
#include <string.h>

#define NMETHODS  4
#define MOST      24
#define NO_METHOD -1

static const char *const names[NMETHODS] = {"sequential", "chain", "binary", "binomial"};

struct surface {
	uint64_t nbytes, seed;
	uint64_t segments[MOST];
	size_t n;
	unsigned ripple_percent;
	struct gci_method methods[NMETHODS];
	int asked[NMETHODS][MOST]; /* by index in segments */
	uint64_t order[NMETHODS];  /* the latest segment asked of each, to see the direction */
	int upwards, elsewhere, twice, broken, fail_at;
	uint64_t least;  /* ns, up to now */
	uint64_t nhasty; /* asked with what is enough after one run: half as long again */
};

/* Children of the busiest rank, and the depth, of 8 ranks' trees. */
static const uint64_t busy[NMETHODS] = {7, 1, 2, 3}, depth[NMETHODS] = {1, 7, 3, 3};

/* k segments, each as long as its bytes and a message's cost, through the busiest rank one after
 * the other, the first one down the whole tree; and ripples. In ns, 1 ns a byte. */
static uint64_t time_of(const struct surface *x, int m, uint64_t segment)
{
	uint64_t k = (x->nbytes - 1) / segment + 1, message = 20000 + segment;
	uint64_t ns = 1000000 + message * ((k - 1) * busy[m] + depth[m] + busy[m] - 1);
	uint64_t r = gci_digest(x->seed, (uint64_t)m << 32 | segment);

	return ns + ns * (r % (x->ripple_percent + 1)) / 100;
}

static int method_of(const struct gci_candidate *how)
{
	int m;

	for (m = 0; m < NMETHODS; m++)
		if (!strcmp(how->algorithm->name, names[m]))
			return m;
	return NO_METHOD;
}

static int cost(void *ctx, const struct gci_candidate *how, struct gci_trial *t)
{
	struct surface *x = ctx;
	int m = method_of(how);
	size_t i;

	for (i = 0; i < x->n && x->segments[i] != how->segment_nbytes; i++)
		;
	if (i < x->n)
		x->twice |= x->asked[m][i]++;
	else
		x->elsewhere++;
	x->upwards |= x->order[m] && how->segment_nbytes > x->order[m];
	x->order[m] = how->segment_nbytes;
	if (x->fail_at && !--x->fail_at)
		return GCOLL_ERR_IO;
	x->nhasty += t->enough_ns && t->enough_ns == x->least + x->least / 2;
	t->ns = m == x->broken ? GCI_NEVER : time_of(x, m, how->segment_nbytes);
	x->least = t->ns < x->least ? t->ns : x->least;
	t->runs = 10;
	t->spent_ns = 10 * t->ns;
	return 0;
}

static struct gci_search setup(
	struct surface *x, uint64_t nbytes, uint64_t seed, unsigned ripple_percent)
{
	uint64_t s;
	int m;

	memset(x, 0, sizeof(*x));
	x->nbytes = nbytes;
	x->seed = seed;
	x->ripple_percent = ripple_percent;
	x->broken = NO_METHOD;
	for (s = 8; s <= nbytes; s *= 2)
		x->segments[x->n++] = s;
	for (m = 0; m < NMETHODS; m++)
		x->methods[m].how.algorithm = gci_algorithm_find(GCI_BCAST, names[m]);
	return (struct gci_search){.methods = x->methods,
		.nmethods = NMETHODS,
		.segments = x->segments,
		.nsegments = x->n,
		.count = nbytes,
		.esize = 1,
		.cost = cost,
		.ctx = x};
}

typedef int search_fn(const struct gci_search *s, struct gci_search_result *r);

/* Runs it; checks what must hold for all. */
static struct gci_search_result run(struct surface *x, const struct gci_search *s, search_fn *fn)
{
	struct gci_search_result r;
	uint64_t spent = 0, least = GCI_NEVER;
	size_t i;

	memset(x->asked, 0, sizeof(x->asked));
	x->least = GCI_NEVER;
	x->nhasty = 0;
	memset(x->order, 0, sizeof(x->order));
	x->upwards = x->elsewhere = x->twice = 0;
	assert_int_equal(fn(s, &r), 0);
	assert_false(x->twice);
	assert_int_equal(r.evaluations, r.ntried);
	assert_int_equal(r.runs, 10 * r.ntried);
	for (i = 0; i < r.ntried; i++) {
		uint64_t ns = time_of(x, method_of(&r.tried[i].how), r.tried[i].how.segment_nbytes);

		assert_int_equal(r.tried[i].ns, ns);
		spent += 10 * ns;
		least = ns < least ? ns : least;
	}
	assert_int_equal(r.spent_ns, spent);
	assert_int_equal(r.best_ns, least);
	assert_int_equal(r.best_ns, time_of(x, method_of(&r.best), r.best.segment_nbytes));
	return r;
}

static void exhaustive_asks_all(void **state)
{
	struct surface x;
	struct gci_search s = setup(&x, 128 << 10, 1, 5);
	struct gci_search_result r = run(&x, &s, gci_search_exhaustive);
	size_t m, i;

	(void)state;
	/* ATCC's table 2: 600 iterations for 128 KB, ten of each. */
	assert_int_equal(r.runs, 600);
	for (m = 0; m < NMETHODS; m++)
		for (i = 0; i < x.n; i++)
			assert_int_equal(x.asked[m][i], 1);
	gci_search_result_free(&r);
}

/* For a message whose best segment is the largest: three looks beyond it for each method. */
static void mgd_of_a_short_message(void **state)
{
	struct surface x;
	struct gci_search s = setup(&x, 1 << 10, 2, 0);
	struct gci_search_result r = run(&x, &s, gci_search_mgd);

	(void)state;
	assert_int_equal(r.runs, 160); /* as in ATCC's table 2 */
	assert_int_equal(r.best.segment_nbytes, 1 << 10);
	gci_search_result_free(&r);
}

static void mgd_goes_one_way(void **state)
{
	struct surface x;
	struct gci_search s = setup(&x, 1 << 20, 3, 5);
	struct gci_search_result r = run(&x, &s, gci_search_mgd);
	int m;

	(void)state;
	assert_false(x.upwards);
	assert_false(x.elsewhere);
	for (m = 0; m < NMETHODS; m++)
		assert_int_equal(x.asked[m][x.n - 1], 1);
	gci_search_result_free(&r);
}

/* A surface written down: [segment], the largest first; other methods are far worse. */
struct written {
	const uint64_t *ns;
	int asked;
};

static int written_cost(void *ctx, const struct gci_candidate *how, struct gci_trial *t)
{
	struct written *w = ctx;
	unsigned i = 0;

	for (; how->segment_nbytes << i < 2048; i++)
		;
	t->ns = w->ns[i];
	t->runs = 1;
	w->asked++;
	return 0;
}

/* Minima behind three worse segments are not found, those behind two are. */
static void mgd_looks_beyond(void **state)
{
	static const uint64_t behind_two[] = {100, 90, 95, 96, 50, 60, 70, 80, 1},
			      behind_three[] = {100, 90, 95, 96, 97, 1, 1, 1, 1},
			      falling[] = {9, 8, 7, 6, 5, 4, 3, 2, 1};
	static const uint64_t segments[] = {8, 16, 32, 64, 128, 256, 512, 1024, 2048};
	static const struct {
		const uint64_t *ns;
		uint64_t best;
		int asked;
	} cases[] = {{behind_two, 50, 8}, {behind_three, 90, 5}, {falling, 1, 9}};
	const struct gci_method chain = {{gci_algorithm_find(GCI_BCAST, "chain"), 0, 0, 0}, 0};
	size_t i;

	(void)state;
	for (i = 0; i < 3; i++) {
		struct written w = {cases[i].ns, 0};
		struct gci_search s = {&chain, 1, segments, 9, 2048, 1, written_cost, &w, 0, 0};
		struct gci_search_result r;

		assert_int_equal(gci_search_mgd(&s, &r), 0);
		assert_int_equal(r.best_ns, cases[i].best);
		assert_int_equal(w.asked, cases[i].asked);
		gci_search_result_free(&r);
	}
}

/* ATCC: "the SMGD method checks all algorithms with the maximum segment size always". */
static void smgd_checks_all_largest(void **state)
{
	struct surface x;
	struct gci_search s = setup(&x, 1 << 20, 4, 5);
	struct gci_search_result r = run(&x, &s, gci_search_smgd);
	size_t i;
	int m;

	(void)state;
	for (i = 0; i < NMETHODS; i++)
		assert_int_equal(r.tried[i].how.segment_nbytes, 1 << 20);
	for (m = 0; m < NMETHODS; m++)
		assert_int_equal(x.asked[m][x.n - 1], 1);
	assert_false(x.upwards);
	gci_search_result_free(&r);
}

/* What is far behind the best is measured as well as the best by all but SMGD. */
static void only_smgd_is_hasty(void **state)
{
	static search_fn *const fns[] = {gci_search_exhaustive, gci_search_mgd, gci_search_halving};
	struct gci_search_result r;
	struct surface x;
	struct gci_search s = setup(&x, 1 << 20, 6, 5);
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(fns) / sizeof(*fns); i++) {
		r = run(&x, &s, fns[i]);
		assert_int_equal(x.nhasty, 0);
		gci_search_result_free(&r);
	}
	r = run(&x, &s, gci_search_smgd);
	assert_int_equal(x.nhasty, r.evaluations - 1);
	gci_search_result_free(&r);
}

/* A chain is by far the slowest with the largest segment and the fastest in the end: it falls fast
 * enough to be kept. A flat tree hardly falls, and is given up. */
static void smgd_follows_what_falls(void **state)
{
	struct surface x;
	struct gci_search s = setup(&x, 8 << 20, 5, 0);
	struct gci_search_result r = run(&x, &s, gci_search_smgd);
	size_t i, flat = 0;

	(void)state;
	assert_true(2 * time_of(&x, 1, 8 << 20) > 3 * time_of(&x, 2, 8 << 20));
	assert_string_equal(r.best.algorithm->name, "chain");
	for (i = 0; i < x.n; i++)
		flat += (size_t)x.asked[0][i];
	assert_true(flat <= 2);
	gci_search_result_free(&r);
}

struct totals {
	uint64_t worst, losses, asked, spent; /* losses in permille */
};

static void add(struct totals *t, const struct gci_search_result *r, uint64_t best_ns)
{
	uint64_t loss = (r->best_ns - best_ns) * 1000 / best_ns;

	t->worst = loss > t->worst ? loss : t->worst;
	t->losses += loss;
	t->asked += r->evaluations;
	t->spent += r->spent_ns;
}

/* Over many surfaces: how much is lost against asking for all, and what is saved. */
static void losses_are_small(void **state)
{
	static search_fn *const fns[] = {gci_search_mgd, gci_search_smgd, gci_search_halving};
	struct totals totals[3] = {{0}}, all = {0};
	int i, f, n = 0;

	(void)state;
	for (i = 0; i < 400; i++, n++) {
		struct surface x;
		struct gci_search s = setup(&x, 1024u << (i % 12), (uint64_t)i, i % 3 * 10);
		struct gci_search_result r = run(&x, &s, gci_search_exhaustive);
		uint64_t best_ns = r.best_ns;

		add(&all, &r, best_ns);
		gci_search_result_free(&r);
		for (f = 0; f < 3; f++) {
			r = run(&x, &s, fns[f]);
			if (f == 2 && r.best_ns < best_ns)
				r.best_ns = best_ns; /* between powers of two */
			add(&totals[f], &r, best_ns);
			gci_search_result_free(&r);
		}
	}
	for (f = 0; f < 3; f++)
		print_message("%s: worst loss %.1f %%, mean %.2f %%, %.0f %% of the evaluations, "
			      "%.1f times sooner\n",
			((const char *const[]){"MGD", "SMGD", "halving"})[f],
			(double)totals[f].worst / 10, (double)totals[f].losses / 10 / n,
			100. * (double)totals[f].asked / (double)all.asked,
			(double)all.spent / (double)totals[f].spent);
	/* Ripples are up to 20 %. */
	assert_true(totals[0].worst <= 100 && totals[0].losses <= 5 * (uint64_t)n);
	assert_true(totals[1].worst <= 100 && totals[1].losses <= 5 * (uint64_t)n);
	assert_true(totals[1].asked < totals[0].asked && totals[0].asked < all.asked);
	assert_true(totals[1].spent * 8 < all.spent);
	assert_int_equal(totals[2].worst, 0); /* it asks for all powers of two, and more */
}

static int answers_by(const struct gci_search_result *r, int method)
{
	int n = 0;
	size_t i;

	for (i = 0; i < r->ntried; i++)
		n += method_of(&r->tried[i].how) == method && r->tried[i].ns != GCI_NEVER;
	return n;
}

/* What cannot run is no answer, and no hindrance. */
static void methods_that_cannot_run(void **state)
{
	static search_fn *const fns[] = {
		gci_search_exhaustive, gci_search_mgd, gci_search_smgd, gci_search_halving};
	int f, broken;

	(void)state;
	for (f = 0; f < 4; f++)
		for (broken = 0; broken < NMETHODS; broken++) {
			struct surface x;
			struct gci_search s = setup(&x, 64 << 10, 6, 5);
			struct gci_search_result r;

			x.broken = broken;
			assert_int_equal(fns[f](&s, &r), 0);
			assert_int_not_equal(method_of(&r.best), broken);
			assert_int_equal(answers_by(&r, broken), 0);
			gci_search_result_free(&r);
			s.nmethods = 1;
			s.methods = &x.methods[broken];
			assert_int_equal(fns[f](&s, &r), 0);
			assert_true(r.best_ns == GCI_NEVER);
			gci_search_result_free(&r);
		}
}

static void fixed_methods(void **state)
{
	static search_fn *const fns[] = {
		gci_search_exhaustive, gci_search_mgd, gci_search_smgd, gci_search_halving};
	int f;

	(void)state;
	for (f = 0; f < 4; f++) {
		struct surface x;
		struct gci_search s = setup(&x, 64 << 10, 7, 5);
		struct gci_search_result r;
		size_t m, n[2] = {0};

		x.methods[1].fixed = 1;
		x.methods[1].how.segment_nbytes = 16 << 10;
		assert_int_equal(fns[f](&s, &r), 0);
		for (m = 0; m < r.ntried; m++)
			n[r.tried[m].how.segment_nbytes != 16 << 10] +=
				method_of(&r.tried[m].how) == 1;
		assert_int_equal(n[0], 1);
		assert_int_equal(n[1], 0);
		gci_search_result_free(&r);
	}
}

/* The callback's error, or no memory at any place, ends it, and nothing is left behind. */
static void failures(void **state)
{
	static search_fn *const fns[] = {
		gci_search_exhaustive, gci_search_mgd, gci_search_smgd, gci_search_halving};
	int f, i, rc;

	(void)state;
	for (f = 0; f < 4; f++) {
		struct surface x;
		struct gci_search s = setup(&x, 4 << 10, 8, 5);
		struct gci_search_result r;

		for (i = 1; i < 12; i++) {
			x.fail_at = i;
			assert_int_equal(fns[f](&s, &r), GCOLL_ERR_IO);
			assert_int_equal(r.ntried, i - 1);
			gci_search_result_free(&r);
		}
		x.fail_at = 0;
		for (i = 1;; i++) {
			gci_mem_fail_at((unsigned long)i);
			rc = fns[f](&s, &r);
			gci_search_result_free(&r);
			if (!gci_mem_failed())
				break;
			assert_int_equal(rc, GCOLL_ERR_NOMEM);
		}
		gci_mem_fail_at(0);
		assert_true(i > 1);
		assert_int_equal(rc, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exhaustive_asks_all),
		cmocka_unit_test(mgd_of_a_short_message),
		cmocka_unit_test(mgd_goes_one_way),
		cmocka_unit_test(mgd_looks_beyond),
		cmocka_unit_test(smgd_checks_all_largest),
		cmocka_unit_test(only_smgd_is_hasty),
		cmocka_unit_test(smgd_follows_what_falls),
		cmocka_unit_test(losses_are_small),
		cmocka_unit_test(methods_that_cannot_run),
		cmocka_unit_test(fixed_methods),
		cmocka_unit_test(failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
