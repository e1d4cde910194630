/* SPDX-License-Identifier: MIT
 * How often a listener looks who has come. */
#include "tests/test.h"

#include "transport/unauthenticated.h"

#define BEGIN_NS (5 * GCI_NS_PER_S)

static void refuse(struct gci_backoff *t, uint64_t now_ns, int n)
{
	while (n--)
		gci_backoff_refused(t, now_ns);
}

static void at_once_where_few_are_strangers(void **state)
{
	struct gci_backoff t = {0};
	uint64_t now = BEGIN_NS;
	int i;

	(void)state;
	assert_int_equal(gci_backoff_wait(&t, now), 0);
	refuse(&t, now, GCI_BACKOFF_FEW);
	for (i = 0; i < 100; i++, now += GCI_NS_PER_MS)
		assert_int_equal(gci_backoff_wait(&t, now), 0);
	/* However long they go on, at a pace that is no burden. */
	for (i = 0; i < 1000; i++, now += GCI_BACKOFF_APART_NS) {
		refuse(&t, now, 1);
		assert_int_equal(gci_backoff_wait(&t, now + GCI_BACKOFF_OPEN_NS), 0);
	}
}

static void in_turns_where_many_are(void **state)
{
	struct gci_backoff t = {0};
	uint64_t now = BEGIN_NS;

	(void)state;
	assert_int_equal(gci_backoff_wait(&t, now), 0);
	refuse(&t, now, GCI_BACKOFF_FEW + 2);
	assert_int_equal(gci_backoff_wait(&t, now), 0); /* the turn goes on */
	assert_int_equal(gci_backoff_wait(&t, now + GCI_BACKOFF_OPEN_NS),
		GCI_BACKOFF_NS - GCI_BACKOFF_OPEN_NS);
	assert_int_equal(gci_backoff_wait(&t, now + GCI_BACKOFF_NS - 1), 1);
	now += GCI_BACKOFF_NS;
	assert_int_equal(gci_backoff_wait(&t, now), 0);
	refuse(&t, now, 2);
	assert_int_equal(gci_backoff_wait(&t, now + GCI_BACKOFF_OPEN_NS - 1), 0);
	assert_int_not_equal(gci_backoff_wait(&t, now + GCI_BACKOFF_OPEN_NS), 0);
}

/* Callers a millisecond apart, for seconds: each is let in within a turn's time. */
static void turns_are_few_and_soon(void **state)
{
	enum { N = 5000 };
	struct gci_backoff t = {0};
	uint64_t now = BEGIN_NS, open_ns = 0, wait;
	int i, waiting = 0, looks = 0;

	(void)state;
	for (i = 0; i < N; i++, now += GCI_NS_PER_MS) {
		waiting++;
		if (now < open_ns)
			continue;
		wait = gci_backoff_wait(&t, now);
		assert_true(wait <= GCI_BACKOFF_NS);
		open_ns = now + wait;
		if (wait)
			continue;
		assert_in_range(waiting, 1, 1 + GCI_BACKOFF_NS / GCI_NS_PER_MS);
		refuse(&t, now, waiting);
		waiting = 0;
		looks++;
	}
	assert_in_range(looks, N / 25, N / 15);
}

static void they_are_forgotten(void **state)
{
	struct gci_backoff t = {0};
	uint64_t now = BEGIN_NS;

	(void)state;
	refuse(&t, now, 1000000);
	assert_int_equal(gci_backoff_wait(&t, now), 0);
	assert_int_not_equal(gci_backoff_wait(&t, now + GCI_BACKOFF_OPEN_NS), 0);
	now += GCI_NS_PER_S;
	assert_int_equal(gci_backoff_wait(&t, now), 0);
	assert_int_equal(gci_backoff_wait(&t, now + GCI_BACKOFF_OPEN_NS), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(at_once_where_few_are_strangers),
		cmocka_unit_test(in_turns_where_many_are),
		cmocka_unit_test(turns_are_few_and_soon),
		cmocka_unit_test(they_are_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
