/* SPDX-License-Identifier: MIT
 * A job that survives: the control server of one whose ranks die and shrink. */
#include "tests/launcher/rdv.h"

#include <stdio.h>
#include <string.h>

static void survivors_go_on(void **state)
{
	static const uint32_t live[] = {0, 1, 2, 4, 5, 6, 7};
	struct world *w = *state;
	uint32_t i;

	rdv_join_all(w);
	rdv_kill(w, 3);
	rdv_pass(w, SEC);
	assert_false(gci_rdv_is_over(w->rdv));
	rdv_expect_news(w, "rank 3 on k4 failed: killed by signal 9 (Killed)\n");
	for (i = 0; i < 7; i++) {
		rdv_expect_abort(w, live[i], "rank 3 on k4 was killed by signal 9");
		rdv_say_shrink(w, live[i], 1);
	}
	for (i = 0; i < 7; i++)
		rdv_expect_survivors(w, live[i], 2, live, 7);
	for (i = 0; i < NRANKS; i++)
		assert_int_equal(w->nrenewed[i], i != 3);
	rdv_expect_news(w, "epoch 2: 7 of 8 ranks go on, without rank 3 on k4\n");
	assert_null(gci_rdv_verdict(w->rdv));
	/* The numbers are the new epoch's: 3 is the job's rank 4. */
	rdv_pass(w, SEC);
	rdv_say_fail(w, 7, 3, "no answer");
	rdv_pass(w, SEC);
	rdv_expect_abort(w, 0, "epoch 2: rank 4 on t1: no answer");
}

static void a_job_that_does_not_survive_ends(void **state)
{
	struct world *w = *state;
	uint32_t i;

	rdv_join_all(w);
	rdv_kill(w, 3);
	rdv_pass(w, SEC);
	assert_true(gci_rdv_is_over(w->rdv));
	for (i = 0; i < NRANKS; i++)
		if (i != 3)
			rdv_say_shrink(w, i, 1);
	rdv_expect_news(w, "");
	assert_true(gci_rdv_is_over(w->rdv));
}

static void nobody_survives_before_the_start(void **state)
{
	struct world *w = *state;
	uint32_t i;

	for (i = 0; i < NRANKS - 1; i++)
		rdv_join(w, i);
	rdv_kill(w, 3);
	rdv_pass(w, SEC);
	assert_true(gci_rdv_is_over(w->rdv));
}

/* The second one dies while others wait in the shrink for it. */
static void a_death_in_the_shrink(void **state)
{
	static const uint32_t live[] = {0, 1, 2, 6, 7};
	struct world *w = *state;
	struct gci_ctl_message m;
	uint32_t i;

	rdv_join_all(w);
	rdv_kill(w, 3);
	rdv_pass(w, SEC);
	for (i = 0; i < 5; i++)
		rdv_say_shrink(w, live[i], 1);
	rdv_say_shrink(w, 5, 1);
	assert_false(rdv_gets(w, 0, GCI_CTL_SURVIVORS, &m));
	rdv_kill(w, 5);
	assert_false(rdv_gets(w, 0, GCI_CTL_SURVIVORS, &m));
	rdv_kill(w, 4);
	for (i = 0; i < 5; i++)
		rdv_expect_survivors(w, live[i], 2, live, 5);
}

static void several_epochs(void **state)
{
	struct world *w = *state;
	uint32_t left[NRANKS] = {0, 1, 2, 3, 4, 5, 6, 7}, n = NRANKS, i, epoch;

	rdv_join_all(w);
	for (epoch = 1; n > 1; epoch++) {
		uint32_t dead = n / 2;

		rdv_kill(w, left[dead]);
		memmove(left + dead, left + dead + 1, (n - dead - 1) * sizeof(*left));
		n--;
		rdv_pass(w, SEC);
		for (i = 0; i < n; i++)
			rdv_say_shrink(w, left[i], epoch);
		for (i = 0; i < n; i++)
			rdv_expect_survivors(w, left[i], epoch + 1, left, n);
	}
	rdv_say(w, left[0], GCI_CTL_BYE);
	rdv_end(w, left[0], 0, 0);
	assert_int_equal(gci_rdv_exit_status(w->rdv), 0);
	assert_true(gci_rdv_settled(w->rdv));
}

/* All of the last epoch have said BYE, not all of the first. */
static void leaving_counts_survivors(void **state)
{
	struct world *w = *state;
	struct gci_ctl_message m;
	uint32_t i;

	rdv_join_all(w);
	rdv_kill(w, 0);
	rdv_pass(w, SEC);
	for (i = 1; i < NRANKS; i++)
		rdv_say_shrink(w, i, 1);
	for (i = 1; i < NRANKS; i++) {
		assert_false(rdv_gets(w, 1, GCI_CTL_BYE, &m));
		rdv_say(w, i, GCI_CTL_BYE);
	}
	assert_true(rdv_gets(w, 1, GCI_CTL_BYE, &m));
}

/* Who has left a failed epoch hears of no other one, though its connection is still there. */
static void leavers_hear_no_more(void **state)
{
	struct world *w = *state;
	struct gci_ctl_message m;
	uint32_t i;

	rdv_join_all(w);
	rdv_kill(w, 3);
	rdv_pass(w, SEC);
	for (i = 0; i < NRANKS; i++) {
		if (i == 3)
			continue;
		rdv_expect_abort(w, i, "rank 3 on k4");
		if (i)
			rdv_say_shrink(w, i, 1);
		else
			rdv_say(w, i, GCI_CTL_BYE);
	}
	rdv_kill(w, 5);
	rdv_pass(w, SEC);
	rdv_expect_abort(w, 1, "epoch 2: rank 5 on t2");
	assert_int_equal(rdv_next_of(&w->ranks[0], GCI_CTL_ABORT, &m), -1);
}

/* One that nobody hears of: after dead_ns it is left out, and told should it hear again. */
static void a_silent_rank_is_left_out(void **state)
{
	static const uint32_t live[] = {0, 1, 2, 3, 4, 5, 6};
	struct world *w = *state;
	uint32_t i;

	rdv_join_all(w);
	w->ranks[7].beating = 0;
	rdv_pass(w, 22 * SEC);
	assert_true(gci_rdv_is_left_out(w->rdv, 7));
	rdv_expect_abort(w, 7, "no sign of life");
	rdv_expect_abort(w, 7, "goes on without this rank");
	assert_true(w->ranks[7].closed);
	for (i = 0; i < 7; i++)
		rdv_say_shrink(w, i, 1);
	rdv_expect_survivors(w, 0, 2, live, 7);
	rdv_end(w, 7, 0, 15); /* by the launcher, some time later */
	rdv_pass(w, SEC);
	assert_null(gci_rdv_verdict(w->rdv));
}

/* It has said BYE, as all others; but its process is stopped, and would never end. */
static void who_falls_silent_on_its_way_out_is_ended(void **state)
{
	struct world *w = *state;
	uint32_t i;

	rdv_join_all(w);
	for (i = 0; i < NRANKS; i++)
		rdv_say(w, i, GCI_CTL_BYE);
	w->ranks[7].beating = 0;
	for (i = 0; i < NRANKS - 1; i++) {
		rdv_hang_up(w, i);
		rdv_end(w, i, 0, 0);
	}
	rdv_pass(w, 22 * SEC);
	assert_true(gci_rdv_is_left_out(w->rdv, 7));
	assert_int_equal(gci_rdv_nleft_out(w->rdv), 1);
}

/* Who cannot be reached by another rank is left out though it lives: it would only fail again. */
static void a_blamed_rank_is_left_out(void **state)
{
	struct world *w = *state;

	rdv_join_all(w);
	rdv_say_fail(w, 2, 6, "the connection was lost");
	rdv_pass(w, SEC);
	assert_true(gci_rdv_is_left_out(w->rdv, 6));
	rdv_expect_abort(w, 6, "the connection was lost");
	rdv_expect_abort(w, 6, "goes on without this rank");
}

static void who_does_not_come_is_left_out(void **state)
{
	static const uint32_t live[] = {0, 1, 2, 3, 4, 5};
	struct world *w = *state;
	struct gci_ctl_message m;
	uint32_t i;

	rdv_join_all(w);
	rdv_kill(w, 7);
	rdv_pass(w, SEC);
	for (i = 0; i < 6; i++)
		rdv_say_shrink(w, i, 1);
	rdv_pass(w, 99 * SEC);
	assert_false(rdv_gets(w, 0, GCI_CTL_SURVIVORS, &m));
	rdv_pass(w, 2 * SEC);
	rdv_expect_survivors(w, 0, 2, live, 6);
	rdv_expect_abort(w, 6, "killed");
	rdv_expect_abort(w, 6, "did not come to gcoll_comm_shrink within 100 s");
	rdv_expect_news(w,
		"rank 7 on t4 failed: killed by signal 9 (Killed)\n"
		"rank 6 on t3 did not come to gcoll_comm_shrink within 100 s of the first rank\n"
		"epoch 2: 6 of 8 ranks go on, without ranks 6-7 on t3-t4\n");
}

static void say_abort(struct world *w, uint32_t rank, const char *text)
{
	struct gci_ctl_failure f = {.status = GCOLL_ERR_ABORTED, .rank = (int32_t)rank};
	struct gci_buf b = {0};

	snprintf(f.text, sizeof(f.text), "%s", text);
	gci_ctl_put_failure(&b, GCI_CTL_FAIL, &f);
	rdv_give(w, &w->ranks[rank], &b);
}

/* Aborted by one of its ranks, a job goes on with all. */
static void an_abort_loses_nobody(void **state)
{
	static const uint32_t all[] = {0, 1, 2, 3, 4, 5, 6, 7};
	struct world *w = *state;
	uint32_t i;

	rdv_join_all(w);
	say_abort(w, 2, "once more, with other data");
	rdv_pass(w, SEC);
	for (i = 0; i < NRANKS; i++)
		rdv_say_shrink(w, i, 1);
	rdv_expect_survivors(w, 2, 2, all, NRANKS);
	rdv_expect_news(w, "rank 2 on k3 failed: once more, with other data\n"
			   "epoch 2: 8 of 8 ranks go on\n");
}

static void late_words_of_an_epoch_do_not_count(void **state)
{
	static const uint32_t live[] = {0, 2, 3, 4, 5, 6, 7};
	struct world *w = *state;
	struct gci_ctl_message m;
	uint32_t i;

	rdv_join_all(w);
	rdv_kill(w, 1);
	rdv_pass(w, SEC);
	for (i = 0; i < NRANKS; i++)
		if (i != 1)
			rdv_say_shrink(w, i, 1);
	for (i = 0; i < NRANKS; i++)
		if (i != 1) {
			rdv_say_agree(w, i, 1, 0);
			rdv_say_shrink(w, i, 1);
		}
	assert_false(rdv_gets(w, 0, GCI_CTL_AGREED, &m));
	rdv_say_agree(w, 0, 2, 1);
	rdv_pass(w, SEC);
	assert_null(gci_rdv_verdict(w->rdv));
	/* Nobody has come to shrink the second epoch. */
	rdv_expect_survivors(w, 2, 2, live, 7);
	rdv_kill(w, 7);
	rdv_pass(w, SEC);
	assert_false(rdv_gets(w, 2, GCI_CTL_SURVIVORS, &m));
}

/* Whoever asks for what comes next is told that nothing does, whichever ABORT came before. */
static void a_job_that_was_given_up_answers(void **state)
{
	struct world *w = *state;

	rdv_join_all(w);
	rdv_say_agree(w, 5, 1, 1);
	gci_rdv_give_up(w->rdv, GCOLL_ERR_IO, "the disk is full", w->now);
	rdv_drain(w);
	rdv_expect_abort(w, 5, "the disk is full");
	rdv_expect_abort(w, 5, "the disk is full");
	rdv_expect_abort(w, 0, "the disk is full");
	assert_false(w->ranks[0].closed);
	rdv_say_shrink(w, 0, 1);
	rdv_expect_abort(w, 0, "the disk is full");
	rdv_expect_abort(w, 1, "the disk is full");
	rdv_say_agree(w, 1, 1, 1);
	rdv_expect_abort(w, 1, "the disk is full");
	assert_true(w->ranks[0].closed && w->ranks[1].closed && w->ranks[5].closed);
}

/* Nor does it wait for those who have not come to shrink. */
static void a_job_that_was_given_up_waits_for_nobody(void **state)
{
	struct world *w = *state;

	rdv_join_all(w);
	rdv_kill(w, 3);
	rdv_pass(w, SEC);
	rdv_say_shrink(w, 0, 1);
	gci_rdv_give_up(w->rdv, GCOLL_ERR_IO, "the disk is full", w->now);
	rdv_drain(w);
	rdv_pass(w, 200 * SEC); /* no deadline is one of the past */
	assert_false(gci_rdv_is_left_out(w->rdv, 1));
}

/* With its agent a rank is as good as dead, though its connection may be there. */
static void who_lives_without_its_agent_is_told(void **state)
{
	static const uint32_t live[] = {0, 1, 2, 4, 5, 6, 7};
	struct world *w = *state;
	struct gci_ctl_message m;
	uint32_t i;

	rdv_join_all(w);
	gci_rdv_failed(w->rdv, 3, 1, "its agent was killed by signal 9", w->now);
	rdv_drain(w);
	rdv_pass(w, SEC);
	rdv_expect_abort(w, 3, "its agent was killed");
	assert_false(w->ranks[3].closed);
	for (i = 0; i < 7; i++)
		rdv_say_shrink(w, live[i], 1);
	rdv_expect_survivors(w, 0, 2, live, 7);
	/* Its leave-taking is none of the new epoch's. */
	rdv_say(w, 3, GCI_CTL_BYE);
	for (i = 0; i < 6; i++)
		rdv_say(w, live[i], GCI_CTL_BYE);
	assert_false(rdv_gets(w, 0, GCI_CTL_BYE, &m));
	rdv_say(w, 7, GCI_CTL_BYE);
	assert_true(rdv_gets(w, 0, GCI_CTL_BYE, &m));
	rdv_say_shrink(w, 3, 1);
	rdv_expect_abort(w, 3, "goes on without this rank");
	assert_true(w->ranks[3].closed);
}

/* It hung up, but its process may live. */
static void who_hung_up_is_left_out(void **state)
{
	struct world *w = *state;

	rdv_join_all(w);
	rdv_hang_up(w, 3);
	rdv_pass(w, SEC);
	assert_true(gci_rdv_is_left_out(w->rdv, 3));
	rdv_say(w, 4, GCI_CTL_BYE);
	rdv_hang_up(w, 4);
	assert_false(gci_rdv_is_left_out(w->rdv, 4));
}

/* Time in which the launcher itself was stopped makes nobody late. */
static void own_sleep_makes_nobody_late(void **state)
{
	struct world *w = *state;
	struct gci_ctl_message m;
	uint32_t i;

	rdv_join_all(w);
	rdv_kill(w, 7);
	rdv_pass(w, SEC);
	for (i = 0; i < 6; i++)
		rdv_say_shrink(w, i, 1);
	w->now += 1000 * SEC;
	gci_rdv_tick(w->rdv, w->now);
	rdv_drain(w);
	rdv_pass(w, 90 * SEC);
	assert_false(gci_rdv_is_left_out(w->rdv, 6));
	assert_false(rdv_gets(w, 0, GCI_CTL_SURVIVORS, &m));
	rdv_pass(w, 20 * SEC);
	assert_true(gci_rdv_is_left_out(w->rdv, 6));
}

/* ---- hosts that are down from the beginning */

/* Nobody goes on, and for a reason that has nothing to do with who is missing: that is told, once,
 * and the job's exit status is theirs. */
static void why_nobody_goes_on(void **state)
{
	struct world *w = *state;
	uint32_t i;

	gci_rdv_failed(w->rdv, 3, 255, "its ssh ended with status 255", w->now);
	for (i = 0; i < NRANKS; i++)
		if (i != 3)
			rdv_join(w, i);
	rdv_expect_news(w, "rank 3 on k4 is left out: its ssh ended with status 255\n");
	rdv_expect_abort(w, 4, "its ssh ended");
	say_abort(w, 6, "wrong arguments");
	say_abort(w, 2, "wrong arguments");
	say_abort(w, 2, "once more");
	say_abort(w, 4, "rank 3 on k4: its ssh ended with status 255");
	rdv_expect_news(w, "");
	for (i = 0; i < NRANKS; i++)
		if (i != 3)
			rdv_end(w, i, 2, 0);
	say_abort(w, 5, "no memory"); /* on its way since before the end of its process */
	assert_true(gci_rdv_settled(w->rdv));
	gci_rdv_tell_last_words(w->rdv);
	rdv_expect_news(w, "rank 2 on k3 failed: wrong arguments\n"
			   "rank 5 on t2 failed: no memory\n");
	assert_int_equal(gci_rdv_exit_status(w->rdv), 2);
	gci_rdv_tell_last_words(w->rdv);
	rdv_expect_news(w, "");
}

/* One does not: the others are told why, and what was told is not told again. */
static void why_one_does_not_go_on(void **state)
{
	static const uint32_t rest[] = {0, 1, 2, 4, 6, 7};
	struct world *w = *state;
	size_t i;

	rdv_join_all(w);
	rdv_kill(w, 3);
	rdv_pass(w, SEC);
	rdv_expect_news(w, "rank 3 on k4 failed: killed by signal 9 (Killed)\n");
	say_abort(w, 5, "the disk is full");
	say_abort(w, 6, "does go on");
	rdv_end(w, 5, 1, 0);
	for (i = 0; i < 6; i++)
		rdv_say_shrink(w, rest[i], 1);
	rdv_expect_survivors(w, 6, 2, rest, 6);
	rdv_expect_news(w, "rank 5 on t2 failed: the disk is full\n"
			   "epoch 2: 6 of 8 ranks go on, without ranks 3,5 on k4,t2\n");
	gci_rdv_tell_last_words(w->rdv);
	rdv_expect_news(w, "");
}

static void begins_without_those_that_cannot_start(void **state)
{
	static const uint32_t rest[] = {0, 1, 2, 4, 5, 6};
	struct world *w = *state;
	struct gci_ctl_message m;
	size_t i;

	gci_rdv_failed(w->rdv, 3, 1, "its ssh ended with status 255", w->now);
	rdv_drain(w);
	rdv_expect_news(w, "rank 3 on k4 is left out: its ssh ended with status 255\n");
	for (i = 0; i < 6; i++)
		rdv_join(w, rest[i]);
	rdv_pass(w, 8 * SEC);
	assert_string_equal(rdv_verdict(w), "");
	rdv_join(w, 3); /* its process is there, though its agent is not */
	rdv_expect_abort(w, 3, "the job goes on without this rank");
	assert_true(w->ranks[3].closed);
	gci_rdv_failed(w->rdv, 7, 1, "its ssh is silent", w->now);
	rdv_drain(w);
	rdv_expect_news(w, "rank 7 on t4 is left out: its ssh is silent\n");
	for (i = 0; i < 6; i++) {
		assert_true(rdv_gets(w, rest[i], GCI_CTL_START, &m));
		assert_int_equal(m.start.size, NRANKS);
		gci_ctl_message_free(&m);
		rdv_expect_abort(w, rest[i], "rank 3 on k4: its ssh ended with status 255");
		rdv_say_shrink(w, rest[i], 1);
	}
	rdv_expect_survivors(w, 5, 2, rest, 6);
	rdv_expect_news(w, "epoch 2: 6 of 8 ranks go on, without ranks 3,7 on k4,t4\n");
	for (i = 0; i < 6; i++) {
		rdv_say(w, rest[i], GCI_CTL_BYE);
		rdv_end(w, rest[i], 0, 0);
	}
	assert_true(gci_rdv_settled(w->rdv));
	assert_int_equal(gci_rdv_exit_status(w->rdv), 0);
}

static void nobody_can_start(void **state)
{
	struct world *w = *state;
	uint32_t i;

	for (i = 0; i < NRANKS; i++)
		gci_rdv_failed(w->rdv, i, 1, "its ssh ended with status 255", w->now);
	assert_non_null(strstr(rdv_verdict(w), "its ssh ended with status 255"));
	assert_true(gci_rdv_is_over(w->rdv));
	assert_int_equal(gci_rdv_exit_status(w->rdv), 1);
}

/* Without --survive one is too many, at once. */
static void one_that_cannot_start(void **state)
{
	struct world *w = *state;

	gci_rdv_failed(w->rdv, 3, 1, "its ssh ended with status 255", w->now);
	assert_string_equal(rdv_verdict(w), "rank 3 on k4: its ssh ended with status 255");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		S(survivors_go_on),
		T(a_job_that_does_not_survive_ends),
		S(nobody_survives_before_the_start),
		S(a_death_in_the_shrink),
		S(several_epochs),
		S(leaving_counts_survivors),
		S(leavers_hear_no_more),
		S(a_silent_rank_is_left_out),
		S(who_falls_silent_on_its_way_out_is_ended),
		S(a_blamed_rank_is_left_out),
		S(who_does_not_come_is_left_out),
		S(an_abort_loses_nobody),
		S(late_words_of_an_epoch_do_not_count),
		S(a_job_that_was_given_up_answers),
		S(a_job_that_was_given_up_waits_for_nobody),
		S(who_lives_without_its_agent_is_told),
		S(who_hung_up_is_left_out),
		S(own_sleep_makes_nobody_late),
		S(begins_without_those_that_cannot_start),
		S(why_nobody_goes_on),
		S(why_one_does_not_go_on),
		S(nobody_can_start),
		T(one_that_cannot_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
