/* SPDX-License-Identifier: MIT
 * Who gives way to whom. */
#include "tests/test.h"

#include "base/prng.h"
#include "transport/unauthenticated.h"

#include <string.h>

#define MOST 8

static const uint8_t *ip(uint8_t a, uint8_t b)
{
	static uint8_t bytes[16];

	memset(bytes, 0, sizeof(bytes));
	bytes[0] = 10;
	bytes[2] = a;
	bytes[3] = b;
	return bytes;
}

/* As a listener does: who gave way, or NULL. */
static struct gci_unauth_place *come(
	struct gci_unauth *c, struct gci_unauth_place *p, const uint8_t *from)
{
	struct gci_unauth_place *gone = NULL;

	if (gci_unauth_is_full(c)) {
		gone = gci_unauth_gives_way(c);
		assert_non_null(gone);
		gci_unauth_leave(gone);
	}
	gci_unauth_enter(c, p, from);
	return gone;
}

static void one_source_may_have_all(void **state)
{
	struct gci_unauth_place p[3 * MOST] = {{0}};
	struct gci_unauth c;
	int i;

	(void)state;
	gci_unauth_init(&c, MOST, 1);
	assert_null(gci_unauth_gives_way(&c));
	for (i = 0; i < 3 * MOST; i++)
		assert_ptr_equal(come(&c, &p[i], ip(1, 1)), i < MOST ? NULL : &p[i - MOST]);
	assert_int_equal(c.n, MOST);
}

static void but_takes_none_from_others(void **state)
{
	struct gci_unauth_place p[100] = {{0}}, other[2] = {{0}};
	struct gci_unauth c;
	int i;

	(void)state;
	gci_unauth_init(&c, MOST, 1);
	gci_unauth_enter(&c, &other[0], ip(2, 1));
	for (i = 0; i < 100; i++) {
		come(&c, &p[i], ip(1, 1));
		if (i == 50)
			assert_ptr_equal(come(&c, &other[1], ip(3, 1)), &p[50 - MOST + 2]);
	}
	assert_ptr_equal(other[0].unauth, &c);
	assert_ptr_equal(other[1].unauth, &c);
	gci_unauth_leave(&other[0]);
	gci_unauth_leave(&other[0]); /* is nothing */
	assert_false(gci_unauth_is_full(&c));
	assert_null(other[0].unauth);
}

/* Where all have as many, the one that waits longest. */
static void the_oldest_of_equals(void **state)
{
	struct gci_unauth_place p[3 * MOST] = {{0}};
	struct gci_unauth c;
	int i;

	(void)state;
	gci_unauth_init(&c, MOST, 1);
	for (i = 0; i < 2 * MOST; i++)
		assert_ptr_equal(come(&c, &p[i], ip(1, (uint8_t)(i % MOST))),
			i < MOST ? NULL : &p[i - MOST]);
}

/* All of a /64 is one source. */
static void networks(void **state)
{
	struct gci_unauth_place p[MOST] = {{0}};
	uint8_t six[16] = {0xfd, 0, 0, 1, 0, 0, 0, 2};
	struct gci_unauth c;
	uint8_t i;

	(void)state;
	gci_unauth_init(&c, MOST, 1);
	for (i = 0; i < MOST; i++) {
		six[15] = i;
		six[7] = i == 0;
		gci_unauth_enter(&c, &p[i], six);
	}
	assert_int_equal(c.count[p[1].source], MOST - 1);
	assert_ptr_equal(gci_unauth_gives_way(&c), &p[1]);
}

/* Against looking at all of them. */
static void any_order(void **state)
{
	enum { N = 40, SOURCES = 5 };
	struct gci_unauth_place p[N] = {{0}}, *gone;
	unsigned from[N] = {0}, count[SOURCES], most;
	struct gci_prng prng = {3};
	struct gci_unauth c;
	int round, i;

	(void)state;
	gci_unauth_init(&c, N / 2, 7);
	for (round = 0; round < 5000; round++) {
		i = (int)gci_prng_below(&prng, N);
		if (p[i].unauth) {
			gci_unauth_leave(&p[i]);
			continue;
		}
		from[i] = (unsigned)(gci_prng_below(&prng, 25) % SOURCES);
		from[i] = from[i] > 1 ? 0 : from[i];
		gone = come(&c, &p[i], ip(9, (uint8_t)from[i]));
		if (!gone)
			continue;
		memset(count, 0, sizeof(count));
		count[from[gone - p]]++;
		for (i = 0, most = 0; i < N; i++)
			if (p[i].unauth && p[i].turn + 1 != c.turn)
				count[from[i]]++;
		for (i = 0; i < SOURCES; i++)
			most = count[i] > most ? count[i] : most;
		assert_int_equal(count[from[gone - p]], most);
		for (i = 0; i < N; i++)
			if (p[i].unauth && count[from[i]] == most)
				assert_true(p[i].turn > gone->turn);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_source_may_have_all),
		cmocka_unit_test(but_takes_none_from_others),
		cmocka_unit_test(the_oldest_of_equals),
		cmocka_unit_test(networks),
		cmocka_unit_test(any_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
