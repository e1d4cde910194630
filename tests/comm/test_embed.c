/* SPDX-License-Identifier: MIT
 * Programs that own their loop, by descriptor or on libuv, and those that leave the work to the
 * progress thread: whole jobs of tests/comm/embed_job.c. */
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const forms[] = {"poll", "loop", "thread"};

static void run_well(const char *form, const char *n, int argc, const char *const *what)
{
	const char *argv[12] = {"-n", n, env_path("GRIDCOLL_TEST_EMBED"), form};
	struct job j = {0};
	int i;

	for (i = 0; i < argc; i++)
		argv[4 + i] = what[i];
	job_startv(&j, NULL, argv);
	if (job_wait(&j) || job_err(&j)[0])
		fail_msg("%s: %s", form, job_err(&j));
	job_free(&j);
}

/* Each of the others is told the same by its callback; the launcher tells it once. */
static void run_badly(const char *form, const char *what, const char *cause)
{
	struct job j = {0};

	job_start(&j, NULL, "-n", "3", env_path("GRIDCOLL_TEST_EMBED"), form, what, NULL);
	assert_int_not_equal(job_wait(&j), 0);
	if (!strstr(job_err(&j), cause) || occurrences(job_err(&j), "\n") != 1)
		fail_msg("%s %s: expected one line with \"%s\", got: %s", form, what, cause,
			job_err(&j));
	if (occurrences(job_out(&j), cause) != 2)
		fail_msg("%s %s: expected two ranks to tell \"%s\", got: %s", form, what, cause,
			job_out(&j));
	job_free(&j);
}

static const char *const all[] = {"work", "idle", "turns", "wait", "busy", "spin", "cancel"};

static void by_descriptor(void **state)
{
	(void)state;
	run_well("poll", "3", 7, all);
	/* Alone, all is over as soon as it is begun: nothing wakes anyone. */
	run_well("poll", "1", 1, all);
}

static void in_a_libuv_loop(void **state)
{
	(void)state;
	run_well("loop", "3", 7, all);
	run_well("loop", "1", 1, all);
}

static void by_a_thread(void **state)
{
	static const char *const with_threads[] = {
		"work", "idle", "wait", "many", "spin", "cancel"};

	(void)state;
	run_well("thread", "3", 6, with_threads);
	run_well("thread", "1", 1, all);
}

static void callbacks_are_told_of_a_death(void **state)
{
	size_t i;

	(void)state;
	for (i = TEST_SANITIZED ? 2 : 0; i < sizeof(forms) / sizeof(*forms); i++)
		run_badly(forms[i], "vanish", "exited with status 7");
}

/* Nobody waits in a call; still there is a deadline. */
static void a_rank_that_never_comes(void **state)
{
	(void)state;
	if (!TEST_SANITIZED) /* the thread waits as programs with a descriptor do */
		run_badly("poll", "never", "has waited 0.");
	run_badly("loop", "never", "has waited 0.");
}

/* Nobody waits in a call; still it is asked for the message that will not come. */
static void a_message_that_does_not_come(void **state)
{
	(void)state;
	run_badly("thread", "leave", "has left the job");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_descriptor),
		cmocka_unit_test(in_a_libuv_loop),
		cmocka_unit_test(by_a_thread),
		cmocka_unit_test(callbacks_are_told_of_a_death),
		cmocka_unit_test(a_rank_that_never_comes),
		cmocka_unit_test(a_message_that_does_not_come),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
