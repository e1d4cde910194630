/* SPDX-License-Identifier: MIT */
#include "transport/sums.h"

#include "tests/test.h"

#include "base/crc32c.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/prng.h"

#include <string.h>

#define ROOM 600

static uint8_t mem[ROOM];
static struct gci_sums sums;

static void put(size_t at, size_t n)
{
	gci_sums_put(&sums, mem + at, (uint32_t)n, gci_crc32c(0, mem + at, n));
}

static int setup(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ROOM; i++)
		mem[i] = (uint8_t)(i * 31 + i / 7);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	gci_sums_free(&sums);
	return 0;
}

static void expect(size_t at, size_t n)
{
	uint32_t crc;

	assert_int_equal(gci_sums_get(&sums, mem + at, n, &crc), 0);
	assert_true(crc == gci_crc32c(0, mem + at, n));
}

static void any_cut_of_what_came(void **state)
{
	(void)state;
	expect(0, ROOM);
	put(100, 50);
	put(200, 100);
	put(150, 50);
	expect(100, 200);
	expect(0, ROOM);
	expect(120, 5);
	expect(149, 102);
	expect(299, 2);
	expect(300, 0);
}

/* The sum that goes on is the one that came: not one of the bytes that are there now. */
static void sent_on_whole_it_is_not_summed_again(void **state)
{
	uint32_t before = gci_crc32c(0, mem + 100, 200), crc;

	(void)state;
	put(100, 120);
	put(220, 80);
	mem[150] ^= 1;
	assert_int_equal(gci_sums_get(&sums, mem + 100, 200, &crc), 0);
	assert_true(crc == before);
	assert_true(crc != gci_crc32c(0, mem + 100, 200));
}

static void a_changed_range_cannot_be_cut(void **state)
{
	uint32_t crc;

	(void)state;
	put(100, 200);
	mem[299] ^= 1;
	assert_int_equal(gci_sums_get(&sums, mem + 100, 10, &crc), GCOLL_ERR_CORRUPT);
	mem[299] ^= 1;
	mem[100] ^= 1;
	assert_int_equal(gci_sums_get(&sums, mem + 250, 100, &crc), GCOLL_ERR_CORRUPT);
}

static void what_is_written_anew_has_a_new_origin(void **state)
{
	(void)state;
	put(100, 100);
	put(200, 100);
	memset(mem + 150, 1, 60);
	gci_sums_forget(&sums, mem + 150, 60);
	assert_int_equal(sums.n, 0);
	expect(0, ROOM);
	put(100, 100);
	gci_sums_forget(&sums, mem + 200, 100);
	gci_sums_forget(&sums, mem, 100);
	assert_int_equal(sums.n, 1);
}

static void copies_have_their_sums(void **state)
{
	uint32_t before, crc;

	(void)state;
	put(0, 100);
	put(100, 100);
	before = gci_crc32c(0, mem + 50, 100);
	assert_int_equal(gci_sums_copy(&sums, mem + 300, mem + 50, 100), 0);
	assert_memory_equal(mem + 300, mem + 50, 100);
	mem[310] ^= 4;
	assert_int_equal(gci_sums_get(&sums, mem + 300, 100, &crc), 0);
	assert_true(crc == before);
	mem[120] ^= 4;
	assert_int_equal(gci_sums_copy(&sums, mem + 400, mem + 100, 50), GCOLL_ERR_CORRUPT);
}

static void copies_that_overlap(void **state)
{
	(void)state;
	put(0, 50);
	put(50, 50);
	put(100, 50);
	assert_int_equal(gci_sums_copy(&sums, mem + 30, mem, 120), 0);
	expect(30, 50);
	expect(80, 50);
	expect(0, ROOM);
}

/* Against sums of the bytes themselves, after many of all of it at random. */
static void whatever_is_done(void **state)
{
	struct gci_prng prng = {7};
	int i;

	(void)state;
	for (i = 0; i < 20000; i++) {
		size_t at = gci_prng_below(&prng, ROOM), n = gci_prng_below(&prng, ROOM - at);
		size_t to = gci_prng_below(&prng, ROOM - n + 1);

		switch (gci_prng_below(&prng, 5)) {
		case 0:
			memset(mem + at, i, n);
			gci_sums_forget(&sums, mem + at, n);
			break;
		case 1:
			assert_int_equal(gci_sums_copy(&sums, mem + to, mem + at, n), 0);
			break;
		case 2:
			memset(mem + at, i, n);
			gci_sums_forget(&sums, mem + at, n);
			put(at, n);
			break;
		default:
			expect(at, n);
		}
	}
	assert_true(sums.n > 0 && sums.n < ROOM);
}

/* It loses protection, and nothing else. */
static void without_memory_it_forgets(void **state)
{
	unsigned long n;
	int failed;

	for (n = 1, failed = 1; failed; n++) {
		setup(state);
		gci_mem_fail_at(n);
		put(100, 50);
		put(200, 100);
		assert_int_equal(gci_sums_copy(&sums, mem + 400, mem + 100, 200), 0);
		expect(0, ROOM);
		assert_memory_equal(mem + 400, mem + 100, 200);
		failed = gci_mem_failed();
		gci_mem_fail_at(0);
		gci_sums_free(&sums);
	}
	assert_true(n > 3);
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(any_cut_of_what_came),
		T(sent_on_whole_it_is_not_summed_again),
		T(a_changed_range_cannot_be_cut),
		T(what_is_written_anew_has_a_new_origin),
		T(copies_have_their_sums),
		T(copies_that_overlap),
		T(whatever_is_done),
		T(without_memory_it_forgets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
