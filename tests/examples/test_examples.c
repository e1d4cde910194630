/* SPDX-License-Identifier: MIT
 * The programs in examples/ do what they say. */
#include "tests/harness.h"

#include <string.h>

static int count(const char *text, const char *what)
{
	int n = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		n++;
	return n;
}

/* Each of three ranks says `what`. */
static void run(const char *variable, const char *what)
{
	struct job j = {0};

	job_start(&j, NULL, "-n", "3", "--quiet-prefix", env_path(variable), NULL);
	if (job_wait(&j) || job_err(&j)[0])
		fail_msg("%s: %s", variable, job_err(&j));
	if (count(job_out(&j), what) != 3)
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hello_bcast),
		cmocka_unit_test(poll_loop),
		cmocka_unit_test(uv_loop),
		cmocka_unit_test(progress_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
