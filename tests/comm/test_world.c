/* SPDX-License-Identifier: MIT
 * Whole jobs: gridcoll-run, real sockets, and which addresses they take. */
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *job_program(void)
{
	return env_path("GRIDCOLL_TEST_JOB");
}

static void run_well(const char *n)
{
	struct job j = {0};

	job_start(&j, NULL, "-n", n, job_program(), NULL);
	if (job_wait(&j))
		fail_msg("%s ranks: %s", n, job_err(&j));
	assert_string_equal(job_err(&j), "");
	job_free(&j);
}

static void one_rank(void **state)
{
	(void)state;
	run_well("1");
}

static void two_ranks(void **state)
{
	(void)state;
	run_well("2");
}

static void several_ranks(void **state)
{
	(void)state;
	run_well(TEST_SANITIZED ? "4" : "7");
}

/* ---- addresses */

/* Who leaves sends at once what would have waited for its time. */
static void a_rank_leaves_that_owes_messages(void **state)
{
	struct job j = {0};

	(void)state;
	job_start(&j, NULL, "--grid", env_path("GRIDCOLL_TEST_GRID"), "--per-host", "2",
		job_program(), "owe", NULL);
	if (job_wait(&j))
		fail_msg("%s", job_err(&j));
	job_free(&j);
}

static void over_ipv6(void **state)
{
	struct job j = {0};

	(void)state;
	if (access("/proc/net/if_inet6", R_OK)) {
		print_message("skipped: no IPv6 here\n");
		skip();
	}
	setenv("GRIDCOLL_LOG", "info", 1);
	job_start(&j, NULL, "-n", "3", "--interfaces", "::1", job_program(), NULL);
	unsetenv("GRIDCOLL_LOG");
	assert_int_equal(job_wait(&j), 0);
	assert_int_equal(occurrences(job_err(&j), "takes connections at ::1\n"), 3);
	job_free(&j);
}

static void an_interface_that_is_not_there(void **state)
{
	struct job j = {0};

	(void)state;
	job_start(&j, NULL, "-n", "2", "--interfaces", "nic7,!lo", job_program(), NULL);
	assert_int_not_equal(job_wait(&j), 0);
	assert_non_null(strstr(job_err(&j), "no address of this host matches the interfaces "
					    "\"nic7,!lo\"; there are: "));
	assert_non_null(strstr(job_err(&j), "lo 127.0.0.1/8"));
	job_free(&j);
}

/* One port, which gridcoll-run takes. */
static void too_few_ports(void **state)
{
	struct job j = {0};
	char range[32];
	unsigned port;

	(void)state;
	for (port = 28700; port < 28720; port++) {
		memset(&j, 0, sizeof(j));
		snprintf(range, sizeof(range), "%u-%u", port, port);
		job_start(&j, NULL, "-n", "1", "--port-range", range, job_program(), NULL);
		assert_int_not_equal(job_wait(&j), 0);
		if (strstr(job_err(&j), "rank 0")) /* else somebody else has it */
			break;
		job_free(&j);
	}
	snprintf(range, sizeof(range), "no port from %u to %u", port, port);
	assert_non_null(strstr(job_err(&j), range));
	assert_non_null(strstr(job_err(&j), "one for each rank of a host, and one for"));
	job_free(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_rank),
		cmocka_unit_test(two_ranks),
		cmocka_unit_test(several_ranks),
		cmocka_unit_test(a_rank_leaves_that_owes_messages),
		cmocka_unit_test(over_ipv6),
		cmocka_unit_test(an_interface_that_is_not_there),
		cmocka_unit_test(too_few_ports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
