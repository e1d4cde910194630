/* SPDX-License-Identifier: MIT
 * Ranks that agree on something: the control server's part. */
#include "tests/launcher/rdv.h"

#include <string.h>

static void all_agree(void **state)
{
	struct world *w = *state;
	struct gci_ctl_message m;
	uint32_t i, round;

	rdv_join_all(w);
	for (round = 0; round < 3; round++) {
		for (i = 0; i < NRANKS; i++) {
			assert_false(rdv_gets(w, 0, GCI_CTL_AGREED, &m));
			rdv_say_agree(w, i, 1, 0xff00 | (0xff ^ 1ull << i));
		}
		for (i = 0; i < NRANKS; i++)
			rdv_expect_agreed(w, i, 0xff00, 0);
	}
}

/* The answer is the same for all, and comes behind the verdict. */
static void they_agree_without_the_dead(void **state)
{
	struct world *w = *state;
	struct gci_ctl_message m;
	uint32_t i;

	rdv_join_all(w);
	for (i = 0; i < NRANKS; i++)
		if (i != 4)
			rdv_say_agree(w, i, 1, 6 + i % 2);
	rdv_kill(w, 4);
	rdv_pass(w, SEC);
	for (i = 0; i < NRANKS; i++) {
		if (i == 4)
			continue;
		rdv_expect_abort(w, i, "rank 4 on t1 was killed");
		assert_true(rdv_gets(w, i, GCI_CTL_AGREED, &m));
		assert_true(m.agree.flags == 6);
		assert_int_equal(m.agree.status, GCOLL_ERR_PEER);
		assert_non_null(strstr(m.agree.text, "rank 4 on t1 was killed"));
	}
	/* Once more, on what has failed: it says so again. */
	for (i = 0; i < NRANKS; i++)
		if (i != 4)
			rdv_say_agree(w, i, 1, 1);
	rdv_expect_agreed(w, 7, 1, GCOLL_ERR_PEER);
}

/* One tells of a failure, and all agree before it is judged: nobody has an answer whose failure he
 * cannot shrink away yet. */
static void a_failure_comes_before_the_answer(void **state)
{
	static const uint32_t all[] = {0, 1, 2, 3, 4, 5, 6, 7};
	struct world *w = *state;
	struct gci_ctl_message m;
	uint32_t i;

	rdv_join_all(w);
	rdv_say_fail(w, 2, -1, "disk full");
	for (i = 0; i < NRANKS; i++)
		rdv_say_agree(w, i, 1, i != 2);
	assert_false(rdv_gets(w, 0, GCI_CTL_AGREED, &m));
	rdv_pass(w, SEC);
	for (i = 0; i < NRANKS; i++) {
		rdv_expect_abort(w, i, "disk full");
		rdv_expect_agreed(w, i, 0, 0);
		rdv_say_shrink(w, i, 1);
	}
	for (i = 0; i < NRANKS; i++)
		rdv_expect_survivors(w, i, 2, all, NRANKS);
}

static void calls_that_never_meet(void **state)
{
	struct world *w = *state;
	struct gci_ctl_message m;
	uint32_t i;

	rdv_join_all(w);
	rdv_say(w, 5, GCI_CTL_BYE);
	for (i = 0; i < NRANKS; i++)
		if (i != 5)
			rdv_say_agree(w, i, 1, 1);
	assert_true(rdv_gets(w, 0, GCI_CTL_AGREED, &m));
	assert_int_equal(m.agree.status, GCOLL_ERR_MISMATCH);
	assert_string_equal(m.agree.text, "gcoll_comm_agree: rank 5 on t2 calls gcoll_finalize");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		S(all_agree),
		T(all_agree),
		S(they_agree_without_the_dead),
		S(a_failure_comes_before_the_answer),
		S(calls_that_never_meet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
