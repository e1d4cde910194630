/* SPDX-License-Identifier: MIT
 * Jobs whose ranks others start: what fails, and what is refused. */
#include "tests/launcher/guests.h"

#include "base/clock.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Every call of the others ends, and says who failed. */
static void a_rank_dies(void **state)
{
	(void)state;
	serve("-n", "3");
	setenv("GRIDCOLL_HOST", "k7", 1);
	start_all(3, "die", "1");
	unsetenv("GRIDCOLL_HOST");
	expect(&ranks[1], 0, "");
	expect(&ranks[0], 1, "barrier: rank 1 on k7: ");
	expect(&ranks[2], 1, "barrier: rank 1 on k7: ");
	expect(&service, 1,
		"gridcoll-run: rank 1 on k7 failed: its control connection was lost: "
		"its process has ended, or its network is down\n");
}

/* The others go on, and the service with them. */
static void a_job_survives_a_death(void **state)
{
	char want[40];
	int i;

	(void)state;
	serve("-n", "4", "--survive");
	setenv("GRIDCOLL_HOST", "k7", 1);
	start_all(4, "shrink", "1");
	unsetenv("GRIDCOLL_HOST");
	expect(&ranks[1], 128 + SIGKILL, "");
	for (i = 0; i < 4; i++) {
		if (i == 1)
			continue;
		expect(&ranks[i], 0, "barrier: rank 1 on k7: ");
		snprintf(want, sizeof(want), "rank %d goes on with 3\n", i > 1 ? i - 1 : 0);
		assert_non_null(strstr(job_out(&ranks[i]), want));
	}
	expect(&service, 0, "gridcoll-run: epoch 2: 3 of 4 ranks go on, without rank 1 on k7\n");
}

/* Resets all TCP connections that fit, as a firewall or a switch may; false where we may not. */
static int reset_connections(const char *which)
{
	return !run_shell("ss -HKtn '%s' >%s/reset 2>&1 && ! grep -q 'RTNETLINK\\|not supported' "
			  "%s/reset",
		which, dir, dir);
}

static int can_reset(void)
{
	return !run_shell("command -v ss >/dev/null") && !geteuid() &&
	       reset_connections("dport = :1");
}

/* Ranks and launcher are told in turn, while the job runs; it goes on as if nothing had been. */
static void control_connections_are_reset(void **state)
{
	char which[2][32];
	int i;

	(void)state;
	if (!can_reset()) {
		print_message("skipped: connections cannot be reset here (ss -K)\n");
		skip();
	}
	serve("-n", "3");
	for (i = 0; i < 2; i++)
		snprintf(which[i], sizeof(which[i]), "%s = %s", i ? "sport" : "dport",
			strrchr(where, ':'));
	start_all(3, "rounds", "100");
	job_await(&ranks[1], "sum 6");
	for (i = 0; i < 6; i++) {
		assert_true(reset_connections(which[i % 2]));
		gci_sleep_ns(200 * GCI_NS_PER_MS);
	}
	for (i = 0; i < 3; i++)
		expect(&ranks[i], 0, "");
	/* Where processors are short it may have told of a silence that was over in time. */
	assert_int_equal(job_wait(&service), 0);
}

/* Before all have come. */
static void waiting_ranks_are_reset(void **state)
{
	char which[32];

	(void)state;
	if (!can_reset()) {
		print_message("skipped: connections cannot be reset here (ss -K)\n");
		skip();
	}
	serve("-n", "2");
	snprintf(which, sizeof(which), "dport = %s", strrchr(where, ':'));
	start_rank(0, "0", guest(), "sum");
	while (run_shell("ss -Htn state established '%s' | grep -q .", which))
		gci_sleep_ns(10 * GCI_NS_PER_MS);
	gci_sleep_ns(200 * GCI_NS_PER_MS);
	assert_true(reset_connections(which));
	start_rank(1, "1", guest(), "sum");
	expect(&ranks[0], 0, "");
	expect(&ranks[1], 0, "");
	expect(&service, 0, "");
}

static void rank_0_dies_where_it_serves(void **state)
{
	(void)state;
	find_port();
	start_rank(1, "1", "-n", "2", guest(), "die", "0");
	start_rank(0, "0", "-n", "2", "--rank-0-serves", guest(), "die", "0");
	expect(&ranks[0], 1, "rank 0 on ");
	expect(&ranks[1], 1, "barrier: rank 0 on ");
}

static void a_rank_never_comes(void **state)
{
	(void)state;
	serve("-n", "5", "--start-timeout", "300ms");
	start_rank(0, "2", guest(), "sum"); /* another might come after these 300 ms */
	expect(&ranks[0], 1, "ranks 0-1,3-4 did not join the job within 0.3 s");
	expect(&service, 1,
		"ranks 0-1,3-4 failed: did not join the job within 0.3 s of the first rank: "
		"look whether their manager started them");
}

static void a_rank_comes_twice(void **state)
{
	(void)state;
	serve("-n", "2");
	setenv("GRIDCOLL_HOST", "k7", 1);
	start_rank(0, "1", guest(), "sum");
	start_rank(1, "1", guest(), "sum");
	unsetenv("GRIDCOLL_HOST");
	/* Whichever was second; with rank 0 the job could be over before. */
	job_await_err(&service, "a second process on k7 came as rank 1\n");
	start_rank(2, "0", guest(), "sum");
	expect(&ranks[2], 0, "");
	expect(&service, 0, "gridcoll-run: a second process on k7 came as rank 1\n");
	assert_int_equal(!!job_wait(&ranks[0]) + !!job_wait(&ranks[1]), 1);
	assert_true(strstr(job_err(&ranks[0]), "rank 1 has joined already, from another process: "
					       "expected a number of its own") ||
		    strstr(job_err(&ranks[1]), "rank 1 has joined already, from another process: "
					       "expected a number of its own"));
}

static void wrong_numbers(void **state)
{
	(void)state;
	serve("-n", "3");
	start_rank(0, "0", "-n", "2", guest(), "sum");
	expect(&ranks[0], 1,
		"was started as one of 2 (GRIDCOLL_SIZE), "
		"but gridcoll-run serves a job of 3 (-n)");
	expect(&service, 1, "was started as one of 2 (GRIDCOLL_SIZE)");
	start_rank(2, "2", "-n", "2", guest(), "sum");
	expect(&ranks[2], 2, "TEST_RANK=2: expected a number from 0 to 1 in that variable");
}

/* One wrong index of a manager's, before the job begins and while it runs: who has it is told so. */
static void numbers_too_high(void **state)
{
	static const char *const numbers[] = {"3", "7"};
	int late;

	(void)state;
	serve("-n", "2");
	for (late = 0; late < 2; late++) {
		if (late) {
			start_all(2, "wait", NULL);
			job_await(&ranks[1], "sum 3");
		}
		setenv("GRIDCOLL_HOST", "k7", 1);
		start_rank(2 + late, numbers[late], guest(), "sum");
		unsetenv("GRIDCOLL_HOST");
		expect(&ranks[2 + late], 1,
			late ? "a process on k7 came as rank 7, but gridcoll-run serves a job of 2"
			     : "a process on k7 came as rank 3, but gridcoll-run serves a job of "
			       "2");
	}
	/* A second one of those that are there. */
	start_rank(4, "1", guest(), "sum");
	expect(&ranks[4], 1, "rank 1 has joined already, from another process");
	job_await_err(&service, "turned away: a process on k7 came as rank 7");
	assert_int_equal(kill(ranks[0].pid, 0) | kill(ranks[1].pid, 0), 0);
	assert_null(strstr(job_err(&service), "failed"));
	kill(service.pid, SIGTERM);
	expect(&ranks[1], 1, "barrier: gridcoll-run --serve was told to end (Terminated)");
	kill(ranks[0].pid, SIGKILL);
	job_wait(&ranks[0]);
	expect(&service, 1, "turned away: a process on k7 came as rank 3");
}

static void a_host_of_no_grid(void **state)
{
	(void)state;
	serve("--hosts", "k1,k2");
	setenv("GRIDCOLL_HOST", "k3", 1);
	start_rank(0, "0", guest(), "sum");
	unsetenv("GRIDCOLL_HOST");
	expect(&ranks[0], 1, "rank 0 is on k3, which is none of the job's hosts: expected a name");
	expect(&service, 1, "rank 0 is on k3, which is none of the job's hosts");
}

static void a_host_in_two_clusters(void **state)
{
	static const char why[] = "n1 is in cluster east as rank 0 has it, but in west as rank 1 "
				  "has it: expected one GRIDCOLL_CLUSTER for each host";

	(void)state;
	serve("-n", "2");
	start_in(0, "0", "n1", "east");
	start_in(1, "1", "n1", "west");
	expect(&ranks[0], 1, why);
	expect(&ranks[1], 1, why);
	expect(&service, 1, why);
	start_in(2, "0", "n1", "22-letters-is-too-many");
	expect(&ranks[2], 1,
		"GRIDCOLL_CLUSTER=22-letters-is-too-many, expected a name of at most 21 "
		"letters, digits and -_.");
	find_port();
	setenv("GRIDCOLL_CLUSTER", "a b", 1);
	start_rank(3, "0", "-n", "1", "--rank-0-serves", guest(), "sum");
	unsetenv("GRIDCOLL_CLUSTER");
	expect(&ranks[3], 2,
		"GRIDCOLL_CLUSTER=a b, expected a name of at most 21 letters, digits and -_.");
}

#define WRONG_SECRET                                                                              \
	"gridcoll-run: turned away: a process at 127.0.0.1 has another secret, expected that of " \
	"this job (--secret-file)\n"

/* Who has another secret, or speaks plainly where TLS is expected, is told so; the job waits on. Of
 * the former its user is told, too. */
static void strangers_are_told_why(void **state)
{
	(void)state;
	serve("-n", "1");
	start(0, "0", other, (const char *const[]){guest(), "sum", NULL});
	start_rank(1, "0", "--security", "auth", guest(), "sum");
	expect(&ranks[0], 1, "expected the same secret here as there");
	expect(&ranks[1], 1, "GRIDCOLL_SECURITY (auth) as --security there");
	start_rank(2, "0", guest(), "sum");
	expect(&ranks[2], 0, "");
	expect(&service, 0, WRONG_SECRET);
	forget(&service);
	serve("-n", "1", "--security", "auth");
	start(3, "0", other, (const char *const[]){"--security", "auth", guest(), "sum", NULL});
	expect(&ranks[3], 1, "expected the same secret here as there");
	start_rank(4, "0", "--security", "auth", guest(), "sum");
	expect(&ranks[4], 0, "");
	expect(&service, 0, WRONG_SECRET);
}

static void the_service_ends(void **state)
{
	int status;

	(void)state;
	serve("-n", "2");
	start_all(2, "wait", NULL);
	job_await(&ranks[1], "sum 3");
	kill(service.pid, SIGTERM);
	expect(&ranks[1], 1, "barrier: gridcoll-run --serve was told to end (Terminated)");
	expect(&service, 1, "gridcoll-run: gridcoll-run --serve was told to end (Terminated)\n");
	kill(ranks[0].pid, SIGKILL);
	status = job_wait(&ranks[0]);
	/* It may have ended by itself meanwhile. */
	assert_true(status == 128 + SIGKILL || status == 1);
}

static void nobody_serves(void **state)
{
	(void)state;
	find_port();
	setenv("GRIDCOLL_JOIN_TIMEOUT", "300ms", 1);
	start_rank(0, "0", guest(), "sum");
	expect(&ranks[0], 1,
		"Connection refused, in 0.3 s (GRIDCOLL_JOIN_TIMEOUT); is "
		"GRIDCOLL_RENDEZVOUS where gridcoll-run serves this job?");
	assert_non_null(strstr(job_err(&ranks[0]),
		"Connection refused; trying for 0.3 s in all (GRIDCOLL_JOIN_TIMEOUT)\n"));
	snprintf(where, sizeof(where), "no host:7");
	start_rank(1, "0", guest(), "sum");
	expect(&ranks[1], 1, "cannot reach the launcher at no host:7: ");
	snprintf(where, sizeof(where), "nowhere");
	start_rank(2, "0", guest(), "sum");
	expect(&ranks[2], 1, "GRIDCOLL_RENDEZVOUS=nowhere, expected HOST:PORT");
	unsetenv("GRIDCOLL_JOIN_TIMEOUT");
}

static void start_service(int i)
{
	job_start(&ranks[i], NULL, "--serve", "127.0.0.1:0", "-n", "1", "--secret-file", secret,
		NULL);
}

static void bad_arguments(void **state)
{
	static const struct {
		const char *argv[8], *words;
	} wrong[] = {
		{{"--serve", "70000", "-n", "2", "--secret-file", "s"}, "expected PORT, IP:PORT"},
		{{"--serve", "host:7", "-n", "2", "--secret-file", "s"}, "expected PORT, IP:PORT"},
		{{"--serve", "7", "-n", "2"}, "no secret, expected --secret-file FILE"},
		{{"--serve", "7", "--secret-file", "s"}, "expected -n N, or --grid or --hosts"},
		{{"--serve", "7", "-n", "2", "--secret-file", "s", "echo"}, "expected none"},
		{{"--serve", "7", "--join", "a:7", "--secret-file", "s"}, "expected one of them"},
		{{"--rank-from", "X", "echo"}, "expected --join with them"},
		{{"--join", "a:7", "--secret-file", "/dev/null", "echo"},
			"GRIDCOLL_RANK=(not set): expected a number from 0"},
		{{"--join", "a:7", "--secret-file", "s"}, "no command"},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		job_startv(&ranks[0], NULL, wrong[i].argv);
		expect(&ranks[0], 2, wrong[i].words);
		forget(&ranks[0]);
	}
	assert_int_equal(run_shell("chmod 644 %s", secret), 0);
	setenv("TEST_RANK", "0", 1);
	snprintf(where, sizeof(where), "localhost:7");
	start_rank(1, "0", guest(), "sum");
	expect(&ranks[1], 2, "secret: others may read or write it, expected mode 0600");
	start_service(3);
	expect(&ranks[3], 2, "secret: others may read or write it, expected mode 0600");
	assert_int_equal(run_shell("chmod 600 %s && echo 12 >%s", secret, secret), 0);
	start_rank(2, "0", guest(), "sum");
	expect(&ranks[2], 2, "expected 64 hexadecimal digits");
	start_service(4);
	expect(&ranks[4], 2, "expected 64 hexadecimal digits");
}

#define T(f) cmocka_unit_test_setup_teardown(f, guests_setup, guests_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_rank_dies),
		T(a_job_survives_a_death),
		T(control_connections_are_reset),
		T(waiting_ranks_are_reset),
		T(rank_0_dies_where_it_serves),
		T(a_rank_never_comes),
		T(a_rank_comes_twice),
		T(wrong_numbers),
		T(numbers_too_high),
		T(a_host_of_no_grid),
		T(a_host_in_two_clusters),
		T(strangers_are_told_why),
		T(the_service_ends),
		T(nobody_serves),
		T(bad_arguments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
