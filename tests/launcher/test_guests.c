/* SPDX-License-Identifier: MIT
 * Jobs whose ranks others start: gridcoll-run only serves them, or each rank comes by gridcoll-run
 * --join. */
#include "tests/harness.h"

#include "base/clock.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST 6

static char dir[64], secret[96], other[96], where[128];
static struct job service, ranks[MOST];

static const char *guest(void)
{
	return env_path("GRIDCOLL_TEST_GUEST");
}

static int setup(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/gridcoll-guests-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(secret, sizeof(secret), "%s/secret", dir);
	snprintf(other, sizeof(other), "%s/other", dir);
	return run_shell("umask 077 && $GRIDCOLL_RUN --new-secret >%s && "
			 "$GRIDCOLL_RUN --new-secret >%s",
		secret, other);
}

static void forget(struct job *j)
{
	if (j->pid)
		job_free(j);
	memset(j, 0, sizeof(*j));
}

static int teardown(void **state)
{
	int i;

	(void)state;
	jobs_end();
	forget(&service);
	for (i = 0; i < MOST; i++)
		forget(&ranks[i]);
	return run_shell("rm -rf %s", dir);
}

/* Comes up, and says where it is. */
static void serve_with(const char *const *options)
{
	const char *argv[24] = {
		"--serve", "127.0.0.1:0", "--secret-file", secret, "--timers", "fast"};
	char *line;
	int n = 6;

	while (*options)
		argv[n++] = *options++;
	job_startv(&service, NULL, argv);
	job_await(&service, "\n");
	assert_int_equal(strncmp(job_out(&service), "GRIDCOLL_RENDEZVOUS=", 20), 0);
	snprintf(where, sizeof(where), "%s", job_out(&service) + 20);
	line = strchr(where, '\n');
	*line = '\0';
}

#define serve(...) serve_with((const char *const[]){__VA_ARGS__, NULL})

/* One rank more, as its manager would start it. */
static void start(int i, const char *rank, const char *file, const char *const *rest)
{
	const char *argv[24] = {"--join", where, "--secret-file", file, "--rank-from", "TEST_RANK"};
	int n = 6;

	while (*rest)
		argv[n++] = *rest++;
	setenv("TEST_RANK", rank, 1);
	job_startv(&ranks[i], NULL, argv);
	unsetenv("TEST_RANK");
}

#define start_rank(i, rank, ...) start(i, rank, secret, (const char *const[]){__VA_ARGS__, NULL})

static void start_all(int n, const char *mode, const char *arg)
{
	char rank[16];
	int i;

	for (i = n - 1; i >= 0; i--) {
		snprintf(rank, sizeof(rank), "%d", i);
		start_rank(i, rank, guest(), mode, arg);
	}
}

static void expect(struct job *j, int status, const char *err)
{
	int got = job_wait(j);

	if (got != status || !strstr(job_err(j), err) || (!*err && *job_err(j)))
		fail_msg("status %d, \"%s\": expected %d, \"%s\"", got, job_err(j), status, err);
}

/* A port that was free just now. */
static void find_port(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&a, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	close(fd);
	snprintf(where, sizeof(where), "localhost:%u", ntohs(a.sin_port));
}

/* ---- jobs that go well */

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
	for (i = 2; i >= 0; i--) /* the others are there first */
		start_rank(i, names[i], "-n", "3", "--rank-0-serves", guest(), "sum");
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

static void start_in(int i, const char *rank, const char *host, const char *cluster)
{
	setenv("GRIDCOLL_HOST", host, 1);
	setenv("GRIDCOLL_CLUSTER", cluster, 1);
	start_rank(i, rank, guest(), "sum");
	unsetenv("GRIDCOLL_HOST");
	unsetenv("GRIDCOLL_CLUSTER");
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

/* ---- failures */

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
	static const char *const some[] = {"0", "2"};
	int i;

	(void)state;
	serve("-n", "5", "--start-timeout", "300ms");
	for (i = 0; i < 2; i++)
		start_rank(i, some[i], guest(), "sum");
	for (i = 0; i < 2; i++)
		expect(&ranks[i], 1, "ranks 1,3-4 did not join the job within 0.3 s");
	expect(&service, 1,
		"ranks 1,3-4 failed: did not join the job within 0.3 s of the first rank: "
		"look whether their manager started them");
}

static void a_rank_comes_twice(void **state)
{
	(void)state;
	serve("-n", "2");
	start_rank(0, "1", guest(), "sum");
	start_rank(1, "1", guest(), "sum");
	/* Whichever was second; with rank 0 the job could be over before. */
	job_await_err(&service, "a second process came as rank 1\n");
	start_rank(2, "0", guest(), "sum");
	expect(&ranks[2], 0, "");
	expect(&service, 0, "gridcoll-run: a second process came as rank 1\n");
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
	forget(&service);
	serve("-n", "3");
	start_rank(1, "3", guest(), "sum");
	expect(&ranks[1], 1, "came as rank 3, but gridcoll-run serves a job of 3 ranks");
	expect(&service, 1, "came as rank 3");
	start_rank(2, "2", "-n", "2", guest(), "sum");
	expect(&ranks[2], 2, "TEST_RANK=2: expected a number from 0 to 1 in that variable");
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
		"says that its cluster is \"a b\": expected letters, digits and -_. in "
		"GRIDCOLL_CLUSTER");
}

/* Who has another secret, or speaks plainly where TLS is expected, is told so; the job waits on. */
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
	expect(&service, 0, "");
	forget(&service);
	serve("-n", "1", "--security", "auth");
	start(3, "0", other, (const char *const[]){"--security", "auth", guest(), "sum", NULL});
	expect(&ranks[3], 1, "expected the same secret here as there");
	start_rank(4, "0", "--security", "auth", guest(), "sum");
	expect(&ranks[4], 0, "");
	expect(&service, 0, "");
}

static void the_service_ends(void **state)
{
	(void)state;
	serve("-n", "2");
	start_all(2, "wait", NULL);
	job_await(&ranks[1], "sum 3");
	kill(service.pid, SIGTERM);
	expect(&ranks[1], 1, "barrier: gridcoll-run --serve was told to end (Terminated)");
	expect(&service, 1, "gridcoll-run: gridcoll-run --serve was told to end (Terminated)\n");
	kill(ranks[0].pid, SIGKILL);
	assert_int_equal(job_wait(&ranks[0]), 128 + SIGKILL);
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
	snprintf(where, sizeof(where), "no host:7");
	start_rank(1, "0", guest(), "sum");
	expect(&ranks[1], 1, "cannot reach the launcher at no host:7: ");
	snprintf(where, sizeof(where), "nowhere");
	start_rank(2, "0", guest(), "sum");
	expect(&ranks[2], 1, "GRIDCOLL_RENDEZVOUS=nowhere, expected HOST:PORT");
	unsetenv("GRIDCOLL_JOIN_TIMEOUT");
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
	assert_int_equal(run_shell("chmod 600 %s && echo 12 >%s", secret, secret), 0);
	start_rank(2, "0", guest(), "sum");
	expect(&ranks[2], 2, "expected 64 hexadecimal digits");
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

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
		T(a_rank_dies),
		T(a_job_survives_a_death),
		T(rank_0_dies_where_it_serves),
		T(a_rank_never_comes),
		T(a_rank_comes_twice),
		T(wrong_numbers),
		T(a_host_of_no_grid),
		T(a_host_in_two_clusters),
		T(strangers_are_told_why),
		T(the_service_ends),
		T(nobody_serves),
		T(bad_arguments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
