/* SPDX-License-Identifier: MIT
 * Bins: nothing is lost by rounding, old and far-off numbers do no harm. Compared with a plain
 * array in the end. */
#include "tests/test.h"

#include "base/bins.h"
#include "base/mem.h"
#include "base/prng.h"

#include <string.h>

#define CAP 16

static void spreads_evenly(void **state)
{
	struct gci_bins b;

	(void)state;
	assert_int_equal(gci_bins_init(&b, 10, CAP), 0);
	gci_bins_add(&b, 105, 135, 3000); /* half of a bin, two, half of one */
	assert_int_equal(gci_bins_get(&b, 10), 500);
	assert_int_equal(gci_bins_get(&b, 11), 1000);
	assert_int_equal(gci_bins_get(&b, 12), 1000);
	assert_int_equal(gci_bins_get(&b, 13), 500);
	assert_int_equal(gci_bins_get(&b, 14), 0);
	gci_bins_add(&b, 140, 140, 7); /* no time at all */
	assert_int_equal(gci_bins_get(&b, 14), 7);
	gci_bins_add(&b, 150, 120, 9); /* a clock that was set back */
	assert_int_equal(gci_bins_sum(&b, 0, UINT64_MAX), 3016);
	gci_bins_free(&b);
}

static void forgets_what_is_old(void **state)
{
	struct gci_bins b;

	(void)state;
	assert_int_equal(gci_bins_init(&b, 10, CAP), 0);
	gci_bins_put(&b, 100, 1);
	gci_bins_put(&b, 115, 2);
	assert_int_equal(gci_bins_get(&b, 100), 1);
	gci_bins_put(&b, 116, 4);
	assert_int_equal(gci_bins_get(&b, 100), 0);
	gci_bins_put(&b, 100, 8);
	assert_int_equal(b.missed, 8);
	assert_int_equal(gci_bins_sum(&b, 0, 200), 6);
	gci_bins_put(&b, 1000000, 16);
	assert_int_equal(gci_bins_get(&b, 116), 0);
	assert_int_equal(gci_bins_sum(&b, 0, UINT64_MAX), 16);
	gci_bins_put(&b, UINT64_MAX, 32); /* no bin has this number: it has no end */
	assert_int_equal(b.missed, 40);
	gci_bins_free(&b);
}

/* An hour in one step, or a clock that jumps by years, takes no longer than the ring is long. */
static void long_times_are_cut(void **state)
{
	struct gci_bins b;

	(void)state;
	assert_int_equal(gci_bins_init(&b, 10, CAP), 0);
	gci_bins_add(&b, 0, UINT64_MAX - 1000, 1600);
	assert_int_equal(gci_bins_sum(&b, 0, UINT64_MAX) + b.missed, 1600);
	gci_bins_free(&b);
}

static void is_as_a_plain_array_is(void **state)
{
	uint64_t plain[400] = {0}, all = 0, at = 0, k;
	struct gci_prng prng = {.state = 3};
	struct gci_bins b;
	int i;

	(void)state;
	assert_int_equal(gci_bins_init(&b, 10, 400), 0);
	for (i = 0; i < 1000 && at < 3900; i++) {
		uint64_t to = at + gci_prng_next(&prng) % 40, n = gci_prng_next(&prng) % 100000;
		uint64_t ns;

		to = to > 4000 ? 4000 : to;
		for (ns = at; ns < to; ns++) /* each nanosecond's share, summed by bin */
			plain[ns / 10] += n;
		if (to > at) {
			gci_bins_add(&b, at, to, n * (to - at));
			all += n * (to - at);
		}
		at = to;
	}
	assert_int_equal(gci_bins_sum(&b, 0, 400), all);
	for (k = 0; k < 400; k++) {
		uint64_t got = gci_bins_get(&b, k);

		assert_true(got + 10 >= plain[k] && got <= plain[k] + 10);
	}
	gci_bins_free(&b);
}

static void says_when_memory_is_out(void **state)
{
	struct gci_bins b;

	(void)state;
	gci_mem_fail_at(1);
	assert_int_equal(gci_bins_init(&b, 10, CAP), -1);
	gci_mem_fail_at(0);
	gci_bins_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spreads_evenly),
		cmocka_unit_test(forgets_what_is_old),
		cmocka_unit_test(long_times_are_cut),
		cmocka_unit_test(is_as_a_plain_array_is),
		cmocka_unit_test(says_when_memory_is_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
