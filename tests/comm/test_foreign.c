/* SPDX-License-Identifier: MIT
 * Calls of those that are no rank's own: children by fork, which have what their parent has and are
 * told that it is not theirs, and second threads. Whole jobs of tests/comm/foreign_job.c. */
#include "tests/harness.h"

#include <stdio.h>
#include <string.h>

static const char *const forms[] = {"calls", "loop", "thread"};

static void run(const char *security, const char *form, const char *what, const char *said)
{
	struct job j = {0};

	job_start(&j, NULL, "--security", security, "-n", "3", env_path("GRIDCOLL_TEST_FOREIGN"),
		form, what, NULL);
	if (job_wait(&j) || occurrences(job_err(&j), "\n") != occurrences(job_err(&j), said))
		fail_msg("%s %s: %s", form, what, job_err(&j));
	job_free(&j);
}

static void children_are_no_ranks(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		run("encrypt", forms[i], "fork", "nothing");
		run("auth", forms[i], "fork", "nothing");
	}
}

static void left_jobs_are_not_waited_for(void **state)
{
	struct job j = {0};

	(void)state;
	job_start(&j, NULL, "--timers", "fast", "-n", "2", env_path("GRIDCOLL_TEST_FOREIGN"),
		"calls", "late", NULL);
	if (job_wait(&j) || strstr(job_err(&j), "failed"))
		fail_msg("%s", job_err(&j));
	job_free(&j);
}

static void one_thread_at_a_time(void **state)
{
	(void)state;
	run("auth", "calls", "threads", "nothing");
	run("auth", "loop", "threads",
		"gcoll_finalize did nothing: another thread runs the program's loop");
}

/* What one thread waits in, another may end. */
static void any_thread_may_abort(void **state)
{
	struct job j = {0};

	(void)state;
	job_start(&j, NULL, "-n", "3", "--quiet-prefix", env_path("GRIDCOLL_TEST_FOREIGN"), "calls",
		"abort", NULL);
	assert_int_not_equal(job_wait(&j), 0);
	if (!strstr(job_err(&j), "enough of that"))
		fail_msg("%s", job_err(&j));
	assert_string_equal(job_out(&j), "aborted\naborted\naborted\n");
	job_free(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(children_are_no_ranks),
		cmocka_unit_test(left_jobs_are_not_waited_for),
		cmocka_unit_test(one_thread_at_a_time),
		cmocka_unit_test(any_thread_may_abort),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
