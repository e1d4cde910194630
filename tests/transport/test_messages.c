/* SPDX-License-Identifier: MIT
 * The message table against an embarrassing oracle: a list that is searched from end to end. */
#include "transport/messages.h"

#include "tests/test.h"

#include "base/mem.h"
#include "base/prng.h"

enum { MANY = 500 };

static void agrees_with_a_list(void **state)
{
	struct gci_msg *list[MANY], *m;
	struct gci_prng prng = {4};
	struct gci_msgs t = {0};
	int n = 0, round, i, peer, is_new;

	(void)state;
	for (round = 0; round < 200000; round++) {
		struct gci_tp_key key = {.comm = (uint32_t)gci_prng_below(&prng, 2),
			.tag = (uint32_t)gci_prng_below(&prng, 10),
			.seq = gci_prng_below(&prng, 20)};

		peer = (int)gci_prng_below(&prng, 3);
		for (i = 0; i < n; i++)
			if (list[i]->peer == peer && list[i]->key.comm == key.comm &&
				list[i]->key.tag == key.tag && list[i]->key.seq == key.seq)
				break;
		m = gci_msgs_find(&t, peer, &key);
		assert_ptr_equal(m, i < n ? list[i] : NULL);
		assert_int_equal(t.table.n, n);
		if (!m && n < MANY) {
			list[n] = gci_msgs_get(&t, peer, &key, &is_new);
			assert_non_null(list[n++]);
			assert_true(is_new);
		} else if (m && round % 2) {
			assert_ptr_equal(gci_msgs_get(&t, peer, &key, &is_new), m);
			assert_false(is_new);
		} else if (m) {
			gci_msgs_del(&t, m);
			list[i] = list[--n];
		}
	}
	gci_msgs_free(&t);
}

static void lack_of_memory_changes_nothing(void **state)
{
	struct gci_tp_key key = {0};
	struct gci_msgs t = {0};
	unsigned long nth;
	int is_new;

	(void)state;
	for (nth = 1; nth <= 2; nth++) {
		gci_mem_fail_at(nth);
		assert_null(gci_msgs_get(&t, 0, &key, &is_new));
		assert_true(gci_mem_failed());
		assert_null(gci_msgs_find(&t, 0, &key));
		gci_mem_fail_at(0);
		gci_msgs_free(&t);
	}
	assert_non_null(gci_msgs_get(&t, 0, &key, &is_new));
	gci_msgs_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_a_list),
		cmocka_unit_test(lack_of_memory_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
