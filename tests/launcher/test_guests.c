/* SPDX-License-Identifier: MIT
 * Jobs whose ranks others start, and all goes well. */
#include "tests/launcher/guests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void others_start_the_ranks(void **state)
{
	char want[80];
	int i;

	(void)state;
	serve("-n", "4");
	start_all(4, "sum", NULL);
	for (i = 0; i < 4; i++) {
		expect(&ranks[i], 0, "");
		snprintf(want, sizeof(want), "rank %d of 4 in cluster 0 of 1: sum 10\n", i);
		assert_string_equal(job_out(&ranks[i]), want);
	}
	expect(&service, 0, "");
}

/* Programs need nothing but their environment; and may be there before the job is served. */
static void by_the_library_alone(void **state)
{
	(void)state;
	find_port();
	memcpy(where, "127.0.0.1", 9); /* as long as localhost, and an address to listen at */
	assert_int_equal(run_shell("cd %s && for i in 0 1 2; do GRIDCOLL_RENDEZVOUS=%s "
				   "GRIDCOLL_SECRET_FILE=secret GRIDCOLL_RANK_FROM=INDEX INDEX=$i "
				   "%s sum >$i.out 2>$i.err & done; sleep 0.5; "
				   "timeout 50 $GRIDCOLL_RUN --serve %s -n 3 --secret-file secret "
				   ">served && wait",
				 dir, where, guest(), where),
		0);
	assert_int_equal(run_shell("cd %s && test 3 = "
				   "$(cat ?.out | grep -c 'of 3 in cluster 0 of 1: sum 6') && "
				   "cat ?.err >all && ! test -s all",
				 dir),
		0);
}

static void rank_0_serves(void **state)
{
	static const char *const names[] = {"0", "1", "2"};
	int i;

	(void)state;
	find_port();
	setenv("GRIDCOLL_JOIN_TIMEOUT", "600s", 1); /* a sixth of it may pass in silence */
	for (i = 2; i >= 0; i--)                    /* the others are there first */
		start_rank(i, names[i], "-n", "3", "--rank-0-serves", guest(), "sum");
	unsetenv("GRIDCOLL_JOIN_TIMEOUT");
	for (i = 0; i < 3; i++) {
		expect(&ranks[i], 0, "");
		assert_non_null(strstr(job_out(&ranks[i]), "of 3 in cluster 0 of 1: sum 6\n"));
	}
	assert_int_equal(strncmp(job_out(&ranks[0]), "rank 0", 6), 0); /* no prefix */
}

/* Rank 0's gridcoll-run does not wait for ranks of programs that never join a job. */
static void programs_of_no_job(void **state)
{
	(void)state;
	find_port();
	start_rank(0, "0", "-n", "2", "--rank-0-serves", "echo", "hello");
	expect(&ranks[0], 0, "");
	assert_string_equal(job_out(&ranks[0]), "hello\n");
	start_rank(1, "0", "-n", "2", "--rank-0-serves", "/does/not/exist");
	expect(&ranks[1], 127, "rank 0 on ");
	start_rank(2, "1", "-n", "2", "--rank-0-serves", "/does/not/exist");
	expect(&ranks[2], 127, "cannot run /does/not/exist");
}

/* The secret comes by standard input, and what follows it is rank 0's. */
static void secret_on_standard_input(void **state)
{
	(void)state;
	find_port();
	assert_int_equal(
		run_shell("cd %s && (cat secret; echo for rank 0) | RANK=0 $GRIDCOLL_RUN --join %s "
			  "--secret-file - --rank-from RANK -n 1 --rank-0-serves -- "
			  "sh -c 'cat >got; exec %s sum' >out && grep -q '^for rank 0$' got && "
			  "test $(wc -l <got) = 1 && grep -q 'sum 1' out",
			dir, where, guest()),
		0);
}

/* By host names: from whichever host a rank comes, the grid file tells its cluster. */
static void hosts_are_the_grids(void **state)
{
	static const char *const hosts[] = {"t1.tokyo.example", "k1", "t2", "k1"};
	static const int cluster[] = {1, 0, 1, 0};
	char want[80], rank[16];
	int i;

	(void)state;
	assert_int_equal(
		run_shell("printf '[cluster kyoto]\\nhosts = k1\\n[cluster tokyo]\\nhosts = "
			  "root@t[1-2]\\n[link kyoto tokyo]\\nrate = 1Gbit\\n' >%s/grid",
			dir),
		0);
	snprintf(want, sizeof(want), "%s/grid", dir);
	serve("-n", "4", "--grid", want);
	setenv("GRIDCOLL_CLUSTER", "osaka", 1); /* where a grid file is, it knows better */
	for (i = 0; i < 4; i++) {
		setenv("GRIDCOLL_HOST", hosts[i], 1);
		snprintf(rank, sizeof(rank), "%d", i);
		start_rank(i, rank, guest(), "sum");
	}
	unsetenv("GRIDCOLL_HOST");
	unsetenv("GRIDCOLL_CLUSTER");
	for (i = 0; i < 4; i++) {
		expect(&ranks[i], 0, "");
		snprintf(want, sizeof(want), "rank %d of 4 in cluster %d of 2: sum 10\n", i,
			cluster[i]);
		assert_string_equal(job_out(&ranks[i]), want);
	}
	expect(&service, 0, "");
}

/* Without a grid file, ranks may say in which cluster their host is. */
static void clusters_are_the_ranks(void **state)
{
	static const char *const hosts[] = {"n3", "n1", "n3", "n2"};
	static const char *const clusters[] = {"west", "east", "west", "east"};
	char want[80], rank[16];
	int i;

	(void)state;
	serve("-n", "4");
	for (i = 0; i < 4; i++) {
		snprintf(rank, sizeof(rank), "%d", i);
		start_in(i, rank, hosts[i], clusters[i]);
	}
	for (i = 0; i < 4; i++) {
		expect(&ranks[i], 0, "");
		snprintf(want, sizeof(want), "rank %d of 4 in cluster %d of 2: sum 10\n", i,
			*clusters[i] == 'w');
		assert_string_equal(job_out(&ranks[i]), want);
	}
	expect(&service, 0, "");
}

/* Neither in arguments nor in the environment of anybody. */
static void nobody_sees_the_secret(void **state)
{
	(void)state;
	serve("-n", "2");
	start_rank(0, "0", "-n", "2", peer(), "spy");
	start_rank(1, "1", "-n", "2", peer(), "ok");
	expect(&ranks[0], 0, "");
	assert_non_null(strstr(job_out(&ranks[0]), "secret seen 0 times\n"));
	expect(&ranks[1], 0, "");
	expect(&service, 0, "");
}

/* A job within another one's rank: what that one set for its ranks means nothing here. */
static void outer_jobs_are_forgotten(void **state)
{
	static const char *const outer[] = {"GRIDCOLL_LAUNCH_RANK", "GRIDCOLL_LAUNCH_MACHINE",
		"GRIDCOLL_GRID", "GRIDCOLL_GRID_TEXT", "GRIDCOLL_CONTROL_TLS"};
	static const char print[] = "env | grep -e GRIDCOLL_LAUNCH -e GRIDCOLL_GRID "
				    "-e GRIDCOLL_CONTROL -e GRIDCOLL_JOIN; exec \"$0\" sum";
	size_t i;

	(void)state;
	serve("-n", "2");
	setenv("GRIDCOLL_JOIN_TIMEOUT", "55s", 1);
	start_rank(0, "0", "sh", "-c", print, guest()); /* the user's own */
	for (i = 0; i < sizeof(outer) / sizeof(*outer); i++)
		setenv(outer[i], "1", 1);
	start_rank(1, "1", "sh", "-c", print, guest());
	for (i = 0; i < sizeof(outer) / sizeof(*outer); i++)
		unsetenv(outer[i]);
	unsetenv("GRIDCOLL_JOIN_TIMEOUT");
	expect(&ranks[0], 0, "");
	expect(&ranks[1], 0, "");
	assert_string_equal(job_out(&ranks[0]),
		"GRIDCOLL_JOIN_TIMEOUT=55s\nrank 0 of 2 in cluster 0 of 1: sum 3\n");
	assert_string_equal(job_out(&ranks[1]), "rank 1 of 2 in cluster 0 of 1: sum 3\n");
	expect(&service, 0, "");
}

#define T(f) cmocka_unit_test_setup_teardown(f, guests_setup, guests_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(others_start_the_ranks),
		T(by_the_library_alone),
		T(rank_0_serves),
		T(programs_of_no_job),
		T(secret_on_standard_input),
		T(hosts_are_the_grids),
		T(clusters_are_the_ranks),
		T(nobody_sees_the_secret),
		T(outer_jobs_are_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
