/* SPDX-License-Identifier: MIT
 * Programs that own their loop, by descriptor or on libuv, and those that leave the work to the
 * progress thread: whole jobs of tests/comm/embed_job.c. */
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const forms[] = {"poll", "loop", "thread"};

static void run_well(const char *form, const char *what, const char *n)
{
	struct job j = {0};

	job_start(&j, NULL, "-n", n, env_path("GRIDCOLL_TEST_EMBED"), form, what, NULL);
	if (job_wait(&j) || job_err(&j)[0])
		fail_msg("%s %s: %s", form, what, job_err(&j));
	job_free(&j);
}

static void all_forms(const char *what)
{
	size_t i;

	for (i = 0; i < sizeof(forms) / sizeof(*forms); i++)
		run_well(forms[i], what, "3");
}

static int count(const char *text, const char *what)
{
	int n = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		n++;
	return n;
}

/* Each of the others is told the same by its callback; the launcher tells it once. */
static void run_badly(const char *form, const char *what, const char *cause)
{
	struct job j = {0};

	job_start(&j, NULL, "-n", "3", env_path("GRIDCOLL_TEST_EMBED"), form, what, NULL);
	assert_int_not_equal(job_wait(&j), 0);
	if (!strstr(job_err(&j), cause) || count(job_err(&j), "\n") != 1)
		fail_msg("%s %s: expected one line with \"%s\", got: %s", form, what, cause,
			job_err(&j));
	if (count(job_out(&j), cause) != 2)
		fail_msg("%s %s: expected two ranks to tell \"%s\", got: %s", form, what, cause,
			job_out(&j));
	job_free(&j);
}

static void operations_make_progress(void **state)
{
	(void)state;
	all_forms("work");
	run_well("loop", "work", "1");
}

static void nobody_spins(void **state)
{
	(void)state;
	all_forms("idle");
}

static void calls_may_wait(void **state)
{
	(void)state;
	all_forms("wait");
}

static void what_is_under_way_at_the_end_is_cancelled(void **state)
{
	(void)state;
	all_forms("cancel");
}

static void callbacks_are_told_of_a_death(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(forms) / sizeof(*forms); i++)
		run_badly(forms[i], "vanish", "exited with status 7");
}

/* Nobody waits in a call; still it is asked for the message that will not come. */
static void a_message_that_does_not_come(void **state)
{
	(void)state;
	run_badly("loop", "leave", "has left the job");
}

static void threads_of_the_program(void **state)
{
	(void)state;
	run_well("thread", "many", "3");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operations_make_progress),
		cmocka_unit_test(nobody_spins),
		cmocka_unit_test(calls_may_wait),
		cmocka_unit_test(what_is_under_way_at_the_end_is_cancelled),
		cmocka_unit_test(callbacks_are_told_of_a_death),
		cmocka_unit_test(a_message_that_does_not_come),
		cmocka_unit_test(threads_of_the_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
