/* SPDX-License-Identifier: MIT
 * The pattern of isends (Vadhiyar 2004, 4.3): 32 KiB of buffers, as the paper found below MPICH on
 * its UltraSPARCs, hold 16 messages of 2 KiB, or 8 of 4 KiB. */
#include "tests/test.h"

#include "collectives/models/isend.h"

#define START 70
#define SPIKE 9000
#define MID   90
#define GAP   1000

static const struct gci_params_isend of_2k = {2048, 1, 15, 3, START, SPIKE, MID};
static const struct gci_params_isend of_4k = {4096, 1, 7, 1, START, SPIKE, MID};

/* Figure 8: all at once, so that none has been carried. */
static void pattern(void **state)
{
	uint64_t i;

	(void)state;
	for (i = 0; i < 15; i++)
		assert_int_equal(gci_isend_ns(&of_2k, GAP, i, 0), START);
	for (; i < 100; i++)
		assert_int_equal(gci_isend_ns(&of_2k, GAP, i, 0), (i - 15) % 4 == 0 ? SPIKE : MID);
	for (i = 0; i < 7; i++)
		assert_int_equal(gci_isend_ns(&of_4k, GAP, i, 0), START);
	assert_int_equal(gci_isend_ns(&of_4k, GAP, 7, 0), SPIKE);
	assert_int_equal(gci_isend_ns(&of_4k, GAP, 8, 0), MID);
	assert_int_equal(gci_isend_ns(&of_4k, GAP, 9, 0), SPIKE);
}

/* Equation 1: (previous * g - since) / g, a part being one; never below none. */
static void pending(void **state)
{
	(void)state;
	assert_int_equal(gci_isend_pending(GAP, 20, 0), 20);
	assert_int_equal(gci_isend_pending(GAP, 20, 1), 20);
	assert_int_equal(gci_isend_pending(GAP, 20, GAP - 1), 20);
	assert_int_equal(gci_isend_pending(GAP, 20, GAP), 19);
	assert_int_equal(gci_isend_pending(GAP, 20, 20 * GAP - 1), 1);
	assert_int_equal(gci_isend_pending(GAP, 20, 20 * GAP), 0);
	assert_int_equal(gci_isend_pending(GAP, 20, 1000 * GAP), 0);
	assert_int_equal(gci_isend_pending(GAP, 0, 0), 0);
	assert_int_equal(gci_isend_pending(0, 20, 0), 0);
	assert_int_equal(gci_isend_pending(1, UINT64_MAX, 0), UINT64_MAX);
	assert_int_equal(gci_isend_pending(UINT64_MAX, UINT64_MAX, UINT64_MAX), UINT64_MAX - 1);
}

/* A sender that leaves the link its time never fills the buffers; one that does not is held up as
 * often as the link needs it. */
static void in_time(void **state)
{
	uint64_t now = 0, spikes = 0, i;

	(void)state;
	for (i = 0; i < 100; i++)
		assert_int_equal(gci_isend_ns(&of_2k, GAP, i, i * GAP), START);
	for (i = 0; i < 1000; i++) {
		uint64_t ns = gci_isend_ns(&of_2k, GAP, i, now);

		spikes += ns == SPIKE;
		now += ns;
		assert_true(gci_isend_pending(GAP, i + 1, now) <= of_2k.initial + 1u);
	}
	assert_in_range(now, (1000 - of_2k.initial - 1) * GAP, (1000 + of_2k.initial) * GAP);
	assert_true(spikes > 50);
}

/* A pause empties the buffers, and is not saved up: the next row is like the first. */
static void rows(void **state)
{
	struct gci_isends row = {0};
	uint64_t now = 5, i, k;

	(void)state;
	for (k = 0; k < 3; k++) {
		for (i = 0; i < 15; i++)
			assert_int_equal(gci_isend_next(&of_2k, GAP, &row, now), START);
		assert_int_equal(gci_isend_next(&of_2k, GAP, &row, now), SPIKE);
		assert_int_equal(gci_isend_next(&of_2k, GAP, &row, now), MID);
		assert_int_equal(row.n, 17);
		assert_int_equal(row.first_ns, now);
		now += k ? 1000000 * GAP : 17 * GAP; /* just long enough, or very long */
	}
	assert_int_equal(gci_isend_next(&of_2k, GAP, &row, now), START);
	assert_int_equal(gci_isend_next(&of_2k, GAP, &row, now + GAP - 1), START);
	assert_int_equal(row.n, 2); /* the first was still there */
}

static void no_pattern(void **state)
{
	static const struct gci_params_isend blocking = {1 << 20, 0, 2, 1, START, SPIKE, MID};
	static const struct gci_params_isend all_spikes = {8, 1, 0, 0, START, SPIKE, MID};
	static const struct gci_params_isend far = {8, 1, 1, UINT32_MAX, START, SPIKE, MID};
	uint64_t i;

	(void)state;
	for (i = 0; i < 10; i++) {
		assert_int_equal(gci_isend_ns(&blocking, GAP, i, 0), START);
		assert_int_equal(gci_isend_ns(&all_spikes, GAP, i, 0), SPIKE);
	}
	assert_int_equal(gci_isend_ns(&far, GAP, 1, 0), SPIKE);
	assert_int_equal(gci_isend_ns(&far, GAP, UINT32_MAX, 0), MID);
	assert_int_equal(gci_isend_ns(&far, GAP, UINT64_C(1) << 32, 0), MID);
	assert_int_equal(gci_isend_ns(&far, GAP, (UINT64_C(1) << 32) + 1, 0), SPIKE);
}

static void by_size(void **state)
{
	struct gci_params_isend of[] = {of_2k, of_4k};
	struct gci_params_link l = {.isends = of, .nisends = 2};

	(void)state;
	assert_ptr_equal(gci_isend_at(&l, 0), &of[0]);
	assert_ptr_equal(gci_isend_at(&l, 4095), &of[0]);
	assert_ptr_equal(gci_isend_at(&l, 4096), &of[1]);
	assert_ptr_equal(gci_isend_at(&l, UINT64_MAX), &of[1]);
	l.nisends = 0;
	assert_null(gci_isend_at(&l, 4096));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pattern),
		cmocka_unit_test(pending),
		cmocka_unit_test(in_time),
		cmocka_unit_test(rows),
		cmocka_unit_test(no_pattern),
		cmocka_unit_test(by_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
