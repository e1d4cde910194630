/* SPDX-License-Identifier: MIT
 * The programs in examples/ do what they say. */
#include "tests/harness.h"

#include <string.h>

/* Each of three ranks says `what`. */
static void run(const char *variable, const char *what)
{
	struct job j = {0};

	job_start(&j, NULL, "-n", "3", "--quiet-prefix", env_path(variable), NULL);
	if (job_wait(&j) || job_err(&j)[0])
		fail_msg("%s: %s", variable, job_err(&j));
	if (occurrences(job_out(&j), what) != 3)
		fail_msg("%s: expected \"%s\" of 3 ranks, got: %s", variable, what, job_out(&j));
	job_free(&j);
}

static void hello_bcast(void **state)
{
	(void)state;
	run("HELLO_BCAST", "hello from local0");
}

static void poll_loop(void **state)
{
	(void)state;
	run("POLL_LOOP", "a client says hello\n");
	run("POLL_LOOP", "the sum is 3\n");
}

static void uv_loop(void **state)
{
	(void)state;
	run("UV_LOOP", "is done: 8 blocks\n");
}

static void progress_thread(void **state)
{
	(void)state;
	run("PROGRESS_THREAD", ": 3 ... 24\n");
}

static void survive(void **state)
{
	struct job j = {0};

	(void)state;
	job_start(
		&j, NULL, "--survive", "-n", "4", "--quiet-prefix", env_path("SURVIVE"), "2", NULL);
	if (job_wait(&j) || !strstr(job_err(&j), "rank 2 on local2 failed: killed by signal 9"))
		fail_msg("survive: %s", job_err(&j));
	assert_int_equal(occurrences(job_out(&j), " of 3 has done 10 steps\n"), 3);
	job_free(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hello_bcast),
		cmocka_unit_test(poll_loop),
		cmocka_unit_test(uv_loop),
		cmocka_unit_test(progress_thread),
		cmocka_unit_test(survive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
