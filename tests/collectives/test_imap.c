/* SPDX-License-Identifier: MIT */
#include "tests/test.h"

#include "base/error.h"
#include "base/mem.h"
#include "collectives/schedule/imap.h"

#include <string.h>

#define SPAN 50

/* The embarrassing oracle: one cell per position; a = 0 means nothing. */
struct oracle {
	struct gci_imap map;
	struct gci_ival cells[SPAN];
	uint64_t base; /* position of cell 0 */
};

static void set(struct oracle *o, uint64_t lo, uint64_t hi, struct gci_ival v)
{
	uint64_t i;

	gci_imap_set(&o->map, o->base + lo, o->base + hi, v);
	for (i = lo; i < hi; i++)
		o->cells[i] = v;
}

struct walk {
	struct oracle *o;
	uint64_t lo, hi, at; /* positions before `at` have been seen or are empty */
	int stop_after;
	uint64_t change; /* added to b */
};

static void assert_empty(const struct walk *w, uint64_t to)
{
	uint64_t i;

	for (i = w->at; i < to; i++)
		assert_true(w->o->cells[i - w->o->base].a == 0);
}

static int on_piece(void *ctx, uint64_t lo, uint64_t hi, struct gci_ival *v)
{
	struct walk *w = ctx;
	uint64_t i;

	assert_true(w->lo <= lo && w->at <= lo && lo < hi && hi <= w->hi);
	assert_empty(w, lo);
	w->at = hi;
	v->b += w->change;
	for (i = lo - w->o->base; i < hi - w->o->base; i++) {
		w->o->cells[i].b += w->change;
		assert_true(w->o->cells[i].a == v->a && w->o->cells[i].b == v->b);
	}
	return w->stop_after && !--w->stop_after ? 77 : 0;
}

static void each(struct oracle *o, uint64_t lo, uint64_t hi, const struct gci_ival *fill,
	int stop_after, uint64_t change)
{
	struct walk w = {o, o->base + lo, o->base + hi, o->base + lo, stop_after, change};
	uint64_t i;
	int rc;

	for (i = lo; fill && i < hi; i++)
		if (!o->cells[i].a)
			o->cells[i] = *fill;
	rc = gci_imap_each(&o->map, w.lo, w.hi, fill, on_piece, &w);
	if (rc)
		assert_int_equal(rc, 77);
	else
		assert_empty(&w, w.hi);
	assert_true(!rc || !w.stop_after);
}

static void step(struct oracle *o, struct gci_prng *prng)
{
	uint64_t a = gci_prng_below(prng, SPAN + 1), b = gci_prng_below(prng, SPAN + 1);
	uint64_t lo = a < b ? a : b, hi = a < b ? b : a;
	struct gci_ival v = {1 + gci_prng_below(prng, 5), gci_prng_next(prng)};

	switch (gci_prng_below(prng, 5)) {
	case 0:
		set(o, lo, hi, v);
		break;
	case 1: /* a short one */
		set(o, lo, lo < SPAN ? lo + 1 : lo, v);
		break;
	case 2:
		each(o, lo, hi, &v, 0, 0);
		break;
	case 3:
		each(o, lo, hi, NULL, (int)gci_prng_below(prng, 4), 0);
		break;
	default:
		each(o, lo, hi, NULL, 0, 1 + gci_prng_below(prng, 9));
	}
}

/* At both ends of the numbers, too. */
static void like_an_array(void **state)
{
	static const uint64_t bases[] = {0, 1ull << 40, UINT64_MAX - SPAN};
	struct gci_prng prng = {1};
	int i, run;

	(void)state;
	for (run = 0; run < 60; run++) {
		struct oracle o = {.base = bases[run % 3]};

		gci_imap_init(&o.map);
		for (i = 0; i < 1000; i++) {
			step(&o, &prng);
			each(&o, 0, SPAN, NULL, 0, 0);
		}
		assert_false(o.map.failed);
		gci_imap_free(&o.map);
	}
}

static void backward_and_empty_ranges_are_nothing(void **state)
{
	static const struct gci_ival v = {1, 2};
	struct oracle o = {.base = 0};

	(void)state;
	gci_imap_init(&o.map);
	gci_imap_set(&o.map, 5, 5, v);
	gci_imap_set(&o.map, 9, 3, v);
	gci_imap_set(&o.map, UINT64_MAX, 1, v);
	assert_int_equal(gci_imap_each(&o.map, 9, 3, &v, NULL, NULL), 0);
	assert_int_equal(gci_imap_each(&o.map, 7, 7, &v, NULL, NULL), 0);
	each(&o, 0, SPAN, NULL, 0, 0);
	assert_int_equal(o.map.root, 0);
	gci_imap_free(&o.map);
}

/* Memory is of intervals that are, not of those that were. */
static void nodes_are_used_again(void **state)
{
	struct gci_prng prng = {5};
	struct gci_imap m;
	int i;

	(void)state;
	gci_imap_init(&m);
	for (i = 0; i < 100000; i++) {
		uint64_t lo = gci_prng_below(&prng, 1000);

		gci_imap_set(&m, lo << 40, (lo + 1 + gci_prng_below(&prng, 100)) << 40,
			(struct gci_ival){1, 1});
	}
	assert_true(m.n <= 1200);
	gci_imap_free(&m);
}

static int on_any(void *ctx, uint64_t lo, uint64_t hi, struct gci_ival *v)
{
	(void)ctx;
	(void)v;
	assert_true(lo < hi);
	return 0;
}

static void lack_of_memory(void **state)
{
	unsigned long n;
	int i;

	(void)state;
	for (n = 1;; n++) {
		struct gci_prng prng = {n};
		struct gci_imap m;
		struct gci_ival v = {3, 4};
		int failed;

		gci_imap_init(&m);
		gci_mem_fail_at(n);
		for (i = 0; i < 200 && !m.failed; i++) {
			uint64_t lo = 3 * gci_prng_below(&prng, 1000);

			gci_imap_set(&m, lo, lo + 1, v);
			if (gci_imap_each(&m, lo + 1, lo + 2, &v, on_any, NULL))
				assert_true(m.failed);
		}
		failed = gci_mem_failed();
		gci_mem_fail_at(0);
		assert_int_equal(m.failed, failed);
		if (failed) { /* and stays so, without harm */
			gci_imap_set(&m, 0, 1000, v);
			assert_int_equal(
				gci_imap_each(&m, 0, 1000, &v, on_any, NULL), GCOLL_ERR_NOMEM);
		}
		gci_imap_free(&m);
		if (!failed)
			break;
	}
	assert_true(n > 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(like_an_array),
		cmocka_unit_test(backward_and_empty_ranges_are_nothing),
		cmocka_unit_test(nodes_are_used_again),
		cmocka_unit_test(lack_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
