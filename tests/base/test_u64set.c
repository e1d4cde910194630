/* SPDX-License-Identifier: MIT
 * Against an array of flags, with numbers that crowd together and numbers that do not. */
#include "tests/test.h"

#include "base/mem.h"
#include "base/prng.h"
#include "base/u64set.h"

#include <string.h>

#define RANGE 5000

static void against_flags(uint64_t factor)
{
	static char there[RANGE];
	struct gci_prng prng = {factor};
	struct gci_u64set s = {0};
	size_t n = 0;
	uint64_t x;
	int i;

	memset(there, 0, sizeof(there));
	for (i = 0; i < 3 * RANGE; i++) {
		x = gci_prng_below(&prng, RANGE);
		assert_int_equal(gci_u64set_has(&s, x * factor), there[x]);
		assert_int_equal(gci_u64set_add(&s, x * factor), 0);
		n += !there[x];
		there[x] = 1;
	}
	for (x = 0; x < RANGE; x++)
		assert_int_equal(gci_u64set_has(&s, x * factor), there[x]);
	assert_int_equal(s.n + (size_t)s.has_zero, n);
	assert_true(s.cap <= 4 * s.n);
	gci_u64set_free(&s);
}

static void adds_and_finds(void **state)
{
	(void)state;
	against_flags(1);
	against_flags(1ull << 48);
	against_flags(0x9e3779b97f4a7c15ull);
}

static void out_of_memory(void **state)
{
	struct gci_u64set s = {0};
	uint64_t x;

	(void)state;
	for (x = 1; x <= 8; x++)
		assert_int_equal(gci_u64set_add(&s, x), 0);
	gci_mem_fail_at(1);
	assert_int_equal(gci_u64set_add(&s, 9), -1);
	gci_mem_fail_at(0);
	for (x = 1; x <= 9; x++)
		assert_int_equal(gci_u64set_has(&s, x), x < 9);
	assert_int_equal(gci_u64set_add(&s, 9), 0);
	gci_u64set_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(adds_and_finds),
		cmocka_unit_test(out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
