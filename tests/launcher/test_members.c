/* SPDX-License-Identifier: MIT */
#include "tests/test.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/prng.h"
#include "launcher/members.h"

#define N     8
#define BOUND (100 * GCI_NS_PER_S)
#define NOW   (5 * GCI_NS_PER_S)

static struct gci_members m;
static struct gci_members_decision d;

static int setup(void **state)
{
	(void)state;
	return gci_members_create(&m, N, BOUND);
}

static int teardown(void **state)
{
	(void)state;
	gci_members_free(&m);
	return 0;
}

static int next_at(uint64_t now)
{
	gci_members_next(&m, now, &d);
	return (int)d.what;
}

static int next(void)
{
	return next_at(NOW);
}

static void fail_with(const uint32_t *dead, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		gci_members_gone(&m, dead[i]);
	gci_members_fail(&m);
}

static void flags_are_anded_over_all(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < N; i++) {
		assert_int_equal(next(), GCI_MEMBERS_NOTHING);
		gci_members_agrees(&m, i, ~(1ull << i));
	}
	assert_int_equal(next(), GCI_MEMBERS_AGREED);
	assert_true(d.flags == ~0xffull);
	assert_int_equal(d.missing, GCI_MEMBERS_NONE);
	assert_int_equal(next(), GCI_MEMBERS_NOTHING);
	assert_int_equal(m.epoch, 1);
}

/* Who dies before it has said its flags is waited for only until it is known why. */
static void the_dead_do_not_agree(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < N; i++)
		if (i != 6)
			gci_members_agrees(&m, i, 3);
	gci_members_gone(&m, 6);
	assert_int_equal(next(), GCI_MEMBERS_NOTHING);
	gci_members_fail(&m);
	assert_int_equal(next(), GCI_MEMBERS_AGREED);
	assert_true(d.flags == 3);
	assert_int_equal(d.missing, 6);
}

/* A failure without a death keeps nobody from agreeing. */
static void a_failed_epoch_agrees(void **state)
{
	uint32_t i;

	(void)state;
	gci_members_fail(&m);
	for (i = 0; i < N; i++)
		gci_members_agrees(&m, i, 1);
	assert_int_equal(next(), GCI_MEMBERS_AGREED);
	assert_int_equal(d.missing, GCI_MEMBERS_NONE);
}

static void survivors_get_dense_numbers(void **state)
{
	static const uint32_t dead[] = {0, 3, 4};
	static const uint32_t live[] = {1, 2, 5, 6, 7};
	uint32_t i;

	(void)state;
	fail_with(dead, 3);
	for (i = 0; i < 5; i++) {
		assert_int_equal(next(), GCI_MEMBERS_NOTHING);
		gci_members_shrinks(&m, live[i], NOW);
	}
	assert_int_equal(next(), GCI_MEMBERS_SHRUNK);
	assert_int_equal(m.epoch, 2);
	assert_int_equal(m.n, 5);
	assert_memory_equal(m.ranks, live, sizeof(live));
	assert_int_equal(m.nlost, 3);
	assert_memory_equal(m.lost, dead, sizeof(dead));
	for (i = 0; i < 5; i++)
		assert_int_equal(m.of[live[i]].number, i);
	assert_false(gci_members_in(&m, 0));
	assert_int_equal(next(), GCI_MEMBERS_NOTHING);
	assert_true(gci_members_deadline(&m) == GCI_NEVER);
}

/* One more dies while the others wait in the shrink, another says it will not go on. */
static void deaths_during_a_shrink(void **state)
{
	uint32_t i;

	(void)state;
	fail_with((const uint32_t[]){2}, 1);
	for (i = 3; i < N; i++)
		gci_members_shrinks(&m, i, NOW);
	gci_members_gone(&m, 7);
	gci_members_leaves(&m, 0);
	assert_int_equal(next(), GCI_MEMBERS_NOTHING);
	gci_members_gone(&m, 1);
	assert_int_equal(next(), GCI_MEMBERS_SHRUNK);
	assert_int_equal(m.n, 4);
	assert_int_equal(m.ranks[0], 3);
	assert_int_equal(m.ranks[3], 6);
}

static void who_leaves_as_the_epoch_fails_has_left(void **state)
{
	(void)state;
	gci_members_leaves(&m, 1);
	gci_members_leaves(&m, 2);
	gci_members_gone(&m, 0);
	gci_members_fail(&m);
	assert_false(gci_members_in(&m, 1));
	assert_false(gci_members_in(&m, 2));
	assert_true(gci_members_in(&m, 3));
}

/* Who does not come is left out, one after the other; who comes late has come. */
static void waiting_has_an_end(void **state)
{
	uint32_t i;

	(void)state;
	fail_with((const uint32_t[]){0}, 1);
	assert_true(gci_members_deadline(&m) == GCI_NEVER);
	for (i = 1; i < N - 2; i++)
		gci_members_shrinks(&m, i, NOW + i);
	assert_true(gci_members_deadline(&m) == NOW + 1 + BOUND);
	assert_int_equal(next_at(NOW + BOUND), GCI_MEMBERS_NOTHING);
	gci_members_agrees(&m, 7, 0);
	assert_int_equal(next_at(NOW + 1 + BOUND), GCI_MEMBERS_LATE);
	assert_int_equal(d.rank, 6);
	assert_int_equal(next_at(NOW + 1 + BOUND), GCI_MEMBERS_LATE);
	assert_int_equal(d.rank, 7);
	assert_int_equal(next_at(NOW + 1 + BOUND), GCI_MEMBERS_SHRUNK);
	assert_int_equal(m.n, 5);
}

/* The wait begins with the first who comes, of those that still live. */
static void a_wait_may_begin_anew(void **state)
{
	(void)state;
	gci_members_fail(&m);
	gci_members_shrinks(&m, 0, NOW);
	gci_members_gone(&m, 0);
	assert_true(gci_members_deadline(&m) == GCI_NEVER);
	gci_members_shrinks(&m, 1, NOW + 2 * BOUND);
	assert_int_equal(next_at(NOW + 2 * BOUND), GCI_MEMBERS_NOTHING);
	assert_true(gci_members_deadline(&m) == NOW + 3 * BOUND);
}

/* Shrinking counts only once the epoch has failed; that is known soon. */
static void nobody_shrinks_before_the_failure(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < N; i++)
		gci_members_shrinks(&m, i, NOW);
	assert_int_equal(next_at(NOW + 2 * BOUND), GCI_MEMBERS_NOTHING);
	gci_members_fail(&m);
	assert_int_equal(next(), GCI_MEMBERS_SHRUNK);
	assert_int_equal(m.n, N);
	assert_int_equal(m.epoch, 2);
}

static void calls_that_never_meet_are_told(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < N; i++)
		gci_members_agrees(&m, i, 1);
	gci_members_leaves(&m, 4);
	assert_int_equal(next(), GCI_MEMBERS_ASTRAY);
	assert_int_equal(d.rank, 4);
	gci_members_gone(&m, 4);
	gci_members_fail(&m);
	for (i = 0; i < N; i++)
		gci_members_agrees(&m, i, 1);
	gci_members_shrinks(&m, 5, NOW);
	assert_int_equal(next(), GCI_MEMBERS_ASTRAY);
	assert_int_equal(d.rank, 5);
	for (i = 0; i < N; i++)
		gci_members_shrinks(&m, i, NOW);
	assert_int_equal(next(), GCI_MEMBERS_SHRUNK);
	assert_int_equal(m.n, N - 1);
}

/* Whatever happens in whatever order: the last one that lives never waits. */
static void any_order_ends(void **state)
{
	struct gci_prng p = {7};
	unsigned round, step;

	(void)state;
	for (round = 0; round < 2000; round++) {
		gci_members_free(&m);
		assert_int_equal(gci_members_create(&m, N, BOUND), 0);
		for (step = 0; step < 60; step++) {
			uint32_t rank = (uint32_t)gci_prng_below(&p, N), i, n;

			switch (gci_prng_below(&p, 6)) {
			case 0:
				gci_members_gone(&m, rank);
				break;
			case 1:
				gci_members_fail(&m);
				break;
			case 2:
				gci_members_leaves(&m, rank);
				break;
			case 3:
				gci_members_agrees(&m, rank, step);
				break;
			default:
				gci_members_shrinks(&m, rank, NOW);
			}
			for (n = 0; next() != GCI_MEMBERS_NOTHING; n++)
				assert_true(n < 4);
			for (i = 1; i < m.n; i++)
				assert_true(m.ranks[i] > m.ranks[i - 1]);
			for (i = 0; i < m.n; i++)
				assert_int_equal(m.of[m.ranks[i]].number, i);
		}
		/* Once all have come who live, there is an epoch for them, or nobody. */
		gci_members_fail(&m);
		for (step = 0; step < N; step++)
			gci_members_shrinks(&m, step, NOW);
		next();
		assert_true(d.what == GCI_MEMBERS_SHRUNK ? m.n > 0 : d.what == GCI_MEMBERS_NOTHING);
		for (step = 0; step < N; step++)
			assert_true(
				m.of[step].state == GCI_MEMBER_RUNS || !gci_members_in(&m, step));
	}
}

static void any_allocation_may_fail(void **state)
{
	struct gci_members other;
	unsigned long n;
	int rc = -1;

	(void)state;
	for (n = 1; rc; n++) {
		gci_mem_fail_at(n);
		rc = gci_members_create(&other, 3, BOUND);
		gci_mem_fail_at(0);
		assert_true(!rc || rc == GCOLL_ERR_NOMEM);
	}
	assert_int_equal(n, 5);
	gci_members_free(&other);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(flags_are_anded_over_all),
		T(the_dead_do_not_agree),
		T(a_failed_epoch_agrees),
		T(survivors_get_dense_numbers),
		T(deaths_during_a_shrink),
		T(who_leaves_as_the_epoch_fails_has_left),
		T(waiting_has_an_end),
		T(a_wait_may_begin_anew),
		T(nobody_shrinks_before_the_failure),
		T(calls_that_never_meet_are_told),
		T(any_order_ends),
		T(any_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
