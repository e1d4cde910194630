/* SPDX-License-Identifier: MIT
 * Ranks of which the launcher hears nothing: when it says so, and whom it blames. */
#include "tests/launcher/rdv.h"

#include <string.h>

/* All have joined, and for a while all are heard; from now on these are not. */
static void fall_silent(struct world *w, uint32_t first, uint32_t last)
{
	uint32_t i;

	rdv_join_all(w);
	rdv_pass(w, 10 * SEC);
	for (i = first; i <= last; i++)
		w->ranks[i].beating = 0;
}

/* A cluster, one after the other. */
static void cluster_falls_silent(struct world *w)
{
	uint32_t i;

	rdv_join_all(w);
	rdv_pass(w, 10 * SEC);
	for (i = 4; i < 8; i++) {
		rdv_pass(w, 100 * MS);
		w->ranks[i].beating = 0;
	}
}

static void silent_rank(void **state)
{
	struct world *w = *state;
	uint64_t before;

	fall_silent(w, 6, 6);
	before = w->now;
	while (!*rdv_verdict(w))
		rdv_pass(w, 100 * MS);
	assert_in_range(w->now - before, 19 * SEC + 500 * MS, 20 * SEC + 100 * MS);
	assert_true(gci_rdv_is_silent(w->rdv, 6));
	assert_false(gci_rdv_is_silent(w->rdv, 5));
	assert_string_equal(rdv_verdict(w),
		"rank 6 on t3: no sign of life for 20 s (its host or its network link is down, or "
		"it is stopped)");
	rdv_end(w, 6, 0, 15);
	assert_int_equal(gci_rdv_exit_status(w->rdv), 1);
}

/* Who waits for the last ones to join says nothing meanwhile, however long that takes; and has all
 * the time again once the job begins. */
static void no_silence_before_the_start(void **state)
{
	struct world *w = *state;
	uint32_t i;

	for (i = 0; i < NRANKS - 1; i++)
		rdv_join(w, i);
	for (i = 0; i < NRANKS; i++)
		w->ranks[i].beating = 0;
	rdv_pass(w, w->config.dead_ns + w->config.dead_ns / 2);
	assert_string_equal(rdv_verdict(w), "");
	rdv_join(w, NRANKS - 1);
	for (i = 0; i < NRANKS; i++)
		w->ranks[i].beating = 1;
	rdv_pass(w, w->config.dead_ns * 2);
	assert_string_equal(rdv_verdict(w), "");
}

/* Behind a dead link a rank gives up by its own clock, a moment before ours. */
static void silent_rank_that_gives_up(void **state)
{
	struct world *w = *state;

	fall_silent(w, 5, 5);
	rdv_pass(w, 18 * SEC);
	rdv_end(w, 5, 1, 0);
	rdv_pass(w, SEC);
	assert_string_equal(rdv_verdict(w),
		"rank 5 on t2: no sign of life for 20 s (its host or its network link is down, or "
		"it is stopped)");
	assert_int_equal(gci_rdv_exit_status(w->rdv), 1);
}

/* Ranks 5 and 6, for most of the time after which they count as dead. */
static void two_fall_silent(struct world *w)
{
	fall_silent(w, 5, 6);
	rdv_pass(w, 18 * SEC);
}

static void expect_two_silent(struct world *w)
{
	rdv_pass(w, SEC);
	assert_string_equal(rdv_verdict(w),
		"ranks 5-6 on t2-t3: no sign of life for 20 s (their hosts or their network link "
		"are down, or they are stopped)");
	assert_int_equal(gci_rdv_exit_status(w->rdv), 1);
}

/* A link that is cut one way: that they hang up still comes. */
static void unreached_ranks_that_hang_up(void **state)
{
	struct world *w = *state;

	two_fall_silent(w);
	rdv_hang_up(w, 5);
	rdv_pass(w, 10 * MS);
	rdv_end(w, 5, 1, 0);
	rdv_hang_up(w, 6);
	rdv_end(w, 6, 1, 0);
	expect_two_silent(w);
}

/* And what they have said meanwhile, and whom they did not hear, with it. */
static void unreached_ranks_with_last_words(void **state)
{
	struct world *w = *state;

	two_fall_silent(w);
	rdv_say(w, 5, GCI_CTL_BEAT);
	rdv_say_fail(w, 5, 1, "the network has not answered for 20 s");
	rdv_hang_up(w, 5);
	rdv_say(w, 6, GCI_CTL_BEAT);
	rdv_pass(w, 10 * MS);
	rdv_end(w, 5, 1, 0);
	rdv_hang_up(w, 6);
	rdv_end(w, 6, 1, 0);
	expect_two_silent(w);
}

/* It was stopped, perhaps; what it has to say of itself counts. */
static void own_words_after_a_silence(void **state)
{
	struct world *w = *state;

	fall_silent(w, 5, 5);
	rdv_pass(w, 18 * SEC);
	rdv_say_fail(w, 5, 5, "out of memory");
	rdv_hang_up(w, 5);
	rdv_end(w, 5, 1, 0);
	rdv_pass(w, SEC);
	assert_string_equal(rdv_verdict(w), "rank 5 on t2: out of memory");
}

/* That it was heard a moment ago says that the link is well. */
static void exit_soon_after_a_beat(void **state)
{
	struct world *w = *state;

	fall_silent(w, 5, 5);
	rdv_pass(w, 2 * SEC);
	rdv_end(w, 5, 4, 0);
	rdv_pass(w, SEC);
	assert_string_equal(rdv_verdict(w), "rank 5 on t2 exited with status 4");
	assert_int_equal(gci_rdv_exit_status(w->rdv), 4);
}

static void silent_cluster_is_one_message(void **state)
{
	struct world *w = *state;

	cluster_falls_silent(w);
	while (!*rdv_verdict(w))
		rdv_pass(w, 100 * MS);
	assert_string_equal(rdv_verdict(w),
		"ranks 4-7 on t1-t4: no sign of life for 20 s (their hosts or their network link "
		"are down, or they are stopped)");
}

/* Long before they count as dead; once, until they are heard again. */
static void silence_is_told_of(void **state)
{
	struct world *w = *state;
	uint32_t i;

	cluster_falls_silent(w);
	rdv_pass(w, 4 * SEC);
	rdv_expect_news(w, "");
	rdv_pass(w, 2 * SEC);
	rdv_expect_news(w, "ranks 4-7 on t1-t4: no sign of life for 5 s; dead after 20 s\n");
	rdv_pass(w, 10 * SEC);
	rdv_expect_news(w, "");
	for (i = 4; i < 8; i++)
		w->ranks[i].beating = 1;
	rdv_pass(w, 10 * SEC);
	rdv_expect_news(w, "ranks 4-7 on t1-t4: signs of life again\n");
	w->ranks[5].beating = 0;
	rdv_pass(w, 7 * SEC);
	rdv_expect_news(w, "rank 5 on t2: no sign of life for 5 s; dead after 20 s\n");
	assert_string_equal(rdv_verdict(w), "");
}

/* We were stopped, not they. */
static void own_sleep_is_nobodys_silence(void **state)
{
	struct world *w = *state;

	rdv_join_all(w);
	rdv_pass(w, 5 * SEC);
	w->now += 1000 * SEC;
	gci_rdv_tick(w->rdv, w->now);
	rdv_pass(w, 15 * SEC);
	assert_string_equal(rdv_verdict(w), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(silent_rank),
		T(no_silence_before_the_start),
		T(silent_rank_that_gives_up),
		T(unreached_ranks_that_hang_up),
		T(unreached_ranks_with_last_words),
		T(own_words_after_a_silence),
		T(exit_soon_after_a_beat),
		T(silent_cluster_is_one_message),
		T(silence_is_told_of),
		T(own_sleep_is_nobodys_silence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
