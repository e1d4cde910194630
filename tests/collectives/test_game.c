/* SPDX-License-Identifier: MIT
 * The game between shares and prices, where its outcome is known. */
#include "collectives/planner/game.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_columns),
		cmocka_unit_test(barred_columns),
		cmocka_unit_test(weights),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
