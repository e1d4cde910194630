/* SPDX-License-Identifier: MIT
 * The game between shares and prices, where its outcome is known; and spans, beside all that there are. */
#include "collectives/planner/game.h"

#include "base/prng.h"
#include "collectives/planner/spans.h"
#include "tests/test.h"

static void assert_close(double got, double want)
{
	if (got < want - .01 || got > want + .01)
		fail_msg("%f, expected %f", got, want);
}

/* A column that loads one resource by 2, and one that loads another by 1: a third and two thirds. A group of one column
 * besides, which loads nothing that counts. */
static void two_columns(void **state)
{
	struct gci_game g;
	double share[3], price[3];

	(void)state;
	assert_int_equal(gci_game_init(&g, 3, 3, 3, 2), 0);
	g.first[1] = 1;
	g.first[2] = 2;
	g.first[3] = 3;
	g.group[2] = 1;
	g.resource[1] = 1;
	g.resource[2] = 2;
	g.amount[0] = 2;
	g.amount[1] = 1;
	g.amount[2] = .1;
	gci_game_play(&g, 1000, share, price);
	assert_close(share[0], 1 / 3.);
	assert_close(share[1], 2 / 3.);
	assert_close(share[2], 1);
	assert_close(price[0], 1 / 3.); /* so that both columns cost as much */
	assert_close(price[1], 2 / 3.);
	gci_game_free(&g);
}

/* The better one may not be used; then none may, and still shares sum to 1. */
static void barred_columns(void **state)
{
	struct gci_game g;
	double share[2], price[1];

	(void)state;
	assert_int_equal(gci_game_init(&g, 2, 2, 1, 1), 0);
	g.first[1] = 1;
	g.first[2] = 2;
	g.amount[0] = 1;
	g.amount[1] = 3;
	g.barred[0] = 1;
	gci_game_play(&g, 50, share, price);
	assert_close(share[0], 0);
	assert_close(share[1], 1);
	g.barred[1] = 1;
	gci_game_play(&g, 50, share, price);
	assert_close(share[0] + share[1], 1);
	assert_close(price[0], 1);
	gci_game_free(&g);
}

static void weights(void **state)
{
	const double log[] = {0, -0.69314718055994531, -800, 0};
	double out[4];

	(void)state;
	gci_game_weights(log, 4, out);
	assert_close(out[0], .4);
	assert_close(out[1], .2);
	assert_true(out[2] == 0);
	assert_true(out[0] == out[3]);
}

/* Loads that differ by less than a level count as alike, so that the least time may come out shorter by two of them. */
static void spans_need_no_more(void **state)
{
	struct {
		double before, after, work;
	} load[40];
	struct gci_prng r = {17};
	struct gci_spans s;
	double most, sum, level = 1000. / GCI_SPAN_LEVELS;
	int i, a, b, k, n;

	(void)state;
	for (i = 0; i < 1000; i++) {
		n = 1 + (int)gci_prng_below(&r, 40);
		gci_spans_clear(&s);
		for (k = 0; k < n; k++) {
			load[k].before = (double)gci_prng_below(&r, 1001);
			load[k].after = (double)gci_prng_below(&r, 1001);
			load[k].work = 1 + (double)gci_prng_below(&r, i % 100 + 1);
			gci_spans_add(&s, load[k].before, load[k].after, load[k].work, 1000);
		}
		gci_spans_find(&s);
		for (most = 0, a = 0; a < n; a++)
			for (b = 0; b < n; b++) {
				for (sum = 0, k = 0; k < n; k++)
					if (load[k].before >= load[a].before &&
						load[k].after >= load[b].after)
						sum += load[k].work;
				if (sum > 0 && load[a].before + load[b].after + sum > most)
					most = load[a].before + load[b].after + sum;
			}
		for (sum = s.before_ns + s.after_ns, k = 0; k < n; k++)
			if (load[k].before >= s.before_ns && load[k].after >= s.after_ns)
				sum += load[k].work;
		assert_true(s.ns <= sum && sum <= most && s.ns >= most - 2 * level);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_columns),
		cmocka_unit_test(barred_columns),
		cmocka_unit_test(weights),
		cmocka_unit_test(spans_need_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
