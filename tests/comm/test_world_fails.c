/* SPDX-License-Identifier: MIT
 * Whole jobs: what every rank is told when one fails. */
#include "tests/comm/job.h"
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *job_program(void)
{
	return env_path("GRIDCOLL_TEST_JOB");
}

/* One message, which names the rank and the cause; every other rank's call tells the same. */
static void run_badly(const char *how, int survivors, const char *cause)
{
	struct job j = {0};

	job_start(&j, NULL, "-n", "4", job_program(), how, NULL);
	assert_int_not_equal(job_wait(&j), 0);
	if (!strstr(job_err(&j), cause) || occurrences(job_err(&j), "\n") != 1)
		fail_msg("%s: expected one line with \"%s\", got: %s", how, cause, job_err(&j));
	if (occurrences(job_out(&j), cause) < survivors)
		fail_msg("%s: expected %d ranks to tell \"%s\", got: %s", how, survivors, cause,
			job_out(&j));
	job_free(&j);
}

static void a_rank_vanishes(void **state)
{
	(void)state;
	run_badly("vanish", 3, "exited with status 7");
}

static void a_rank_aborts(void **state)
{
	(void)state;
	run_badly("abort", 3, "had enough");
}

static void a_rank_leaves_early(void **state)
{
	(void)state;
	run_badly("leave", 3, "has left the job, rank ");
	run_badly("leave", 3, "calls allreduce of " JOB_COUNT_TEXT " uint32 with sum by ");
}

/* Messages that never come are no reason to wait for ever, either. */
static void a_rank_leaves_before_its_messages(void **state)
{
	(void)state;
	run_badly("leave-send", 3, "has left the job");
	run_badly("leave-recv", 3, "has left the job");
}

/* Requests that are under way at the end are cancelled, whoever is the first to leave. */
static void messages_are_forgotten(void **state)
{
	struct job j;

	(void)state;
	job_start(&j, NULL, "-n", "4", job_program(), "forget", NULL);
	assert_int_equal(job_wait(&j), 0);
	job_free(&j);
}

static void ranks_call_different_operations(void **state)
{
	(void)state;
	run_badly("mismatch", 3, ") calls ");
	/* Who found it is either; in the end both are named, with what they call. */
	run_badly("mismatch", 3, "barrier by ");
	run_badly("mismatch", 3, "allreduce of " JOB_COUNT_TEXT " uint32 with sum by ");
}

static void a_message_is_of_another_size(void **state)
{
	(void)state;
	run_badly("sizes", 4, "expects 20");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rank_vanishes),
		cmocka_unit_test(a_rank_aborts),
		cmocka_unit_test(a_rank_leaves_early),
		cmocka_unit_test(a_rank_leaves_before_its_messages),
		cmocka_unit_test(messages_are_forgotten),
		cmocka_unit_test(ranks_call_different_operations),
		cmocka_unit_test(a_message_is_of_another_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
