/* SPDX-License-Identifier: MIT
 * gridcoll-run on this machine, jobs that go wrong: everything ends, with one message, and
 * nothing is left behind. */

#include "tests/harness.h"

#include "base/clock.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void status_of_the_first(void **state)
{
	(void)state;
	RUN(7, "gridcoll-run: rank 2 on local2 failed: exited with status 7\n", "-n", "4", "sh",
		"-c", "[ $GRIDCOLL_RANK = 2 ] && exit 7; exit 0");
}

static void status_of_a_signal(void **state)
{
	(void)state;
	RUN(128 + SIGSEGV,
		"gridcoll-run: rank 1 on local1 failed: "
		"killed by signal 11 (Segmentation fault)\n",
		"-n", "2", "sh", "-c", "[ $GRIDCOLL_RANK = 1 ] && kill -SEGV $$; exit 0");
}

static void no_such_program(void **state)
{
	(void)state;
	RUN(127,
		"gridcoll-run: rank 0 on local0 failed: cannot run ./nothing: "
		"No such file or directory\n",
		"-n", "3", "./nothing");
}

static void not_a_program(void **state)
{
	(void)state;
	RUN(126, "gridcoll-run: rank 0 on local0 failed: cannot run /: Permission denied\n", "-n",
		"1", "/");
}

/* SIGKILL of one rank in mid-run: the others are told why. */
static void killed_rank_ends_all(void **state)
{
	struct job j = {0};
	int r;

	(void)state;
	job_start(&j, NULL, "-n", "5", peer(), "stay", "3=killed", NULL);
	assert_int_equal(job_wait(&j), 137);
	assert_string_equal(job_err(&j),
		"gridcoll-run: rank 3 on local3 failed: killed by signal 9 (Killed)\n");
	for (r = 0; r < 5; r++) {
		char line[128];

		snprintf(line, sizeof(line),
			"[%d] aborted: rank 3 on local3 was killed by signal 9 (Killed)\n", r);
		assert_true(!strstr(job_out(&j), line) == (r == 3));
	}
	job_free(&j);
}

static void deaf_ranks_are_killed(void **state)
{
	(void)state;
	RUN(137, "gridcoll-run: rank 1 on local1 failed: killed by signal 9 (Killed)\n", "-n", "3",
		peer(), "stubborn", "1=killed", long_sleep());
	assert_int_equal(processes(long_sleep()), 0);
}

static void own_words(void **state)
{
	(void)state;
	RUN(3,
		"gridcoll-run: rank 2 on local2 failed: cannot write /there: "
		"No space left on device\n",
		"-n", "3", peer(), "stay", "2=fail");
}

static void blamed_peer(void **state)
{
	(void)state;
	RUN(1, "gridcoll-run: rank 0 on local0 failed: the connection was lost\n", "-n", "3",
		peer(), "stubborn", "2=blame");
}

static void blamed_peer_was_killed(void **state)
{
	(void)state;
	RUN(137, "gridcoll-run: rank 0 on local0 failed: killed by signal 9 (Killed)\n", "-n", "3",
		peer(), "stay", "2=blame", "0=killed");
}

static void silent_ranks(void **state)
{
	struct job j = {0};

	(void)state;
	job_start(
		&j, NULL, "--timers", "fast", "-n", "4", peer(), "stay", "1=mute", "2=mute", NULL);
	assert_int_equal(job_wait(&j), 1);
	job_expect_silence(&j,
		"gridcoll-run: ranks 1-2 on local1-local2 failed: no sign of life for 4 s (their "
		"hosts or their network link are down, or they are stopped)\n");
	job_free(&j);
}

static void deserter(void **state)
{
	(void)state;
	RUN(1,
		"gridcoll-run: rank 1 on local1 failed: exited with status 0 without leaving the "
		"job (gcoll_finalize)\n",
		"-n", "3", peer(), "stay", "1=desert");
}

static void absentee(void **state)
{
	(void)state;
	RUN(1,
		"gridcoll-run: rank 1 on local1 failed: exited with status 0 without joining the "
		"job (gcoll_init), and others wait for it\n",
		"-n", "3", peer(), "stay", "1=absent");
}

static void latecomers(void **state)
{
	(void)state;
	RUN(1,
		"gridcoll-run: ranks 1,3 on local1,local3 failed: did not join the job within 1 s "
		"of the first rank\n",
		"--start-timeout", "1s", "-n", "4", peer(), "stay", "1=late", "3=late");
}

/* A shell with children of its own, one in another session. */
static const char *brood(void)
{
	static char text[256];

	snprintf(text, sizeof(text),
		"setsid sleep %s & sleep %s & [ \"$GRIDCOLL_RANK\" = 1 ] && [ -n \"$FAIL\" ] && "
		"sleep 0.3 && kill -9 $$; sleep %s",
		long_sleep(), long_sleep(), long_sleep());
	return text;
}

static void grandchildren_end_with_the_job(void **state)
{
	struct job j = {0};

	(void)state;
	setenv("FAIL", "1", 1);
	job_start(&j, NULL, "-n", "3", "sh", "-c", brood(), NULL);
	unsetenv("FAIL");
	assert_int_equal(job_wait(&j), 137);
	assert_int_equal(processes(long_sleep()), 0);
	job_free(&j);
}

static void background_processes_end_with_success(void **state)
{
	struct job j = {0};
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "sleep %s & echo done", long_sleep());
	job_start(&j, NULL, "-n", "2", "sh", "-c", command, NULL);
	assert_int_equal(job_wait(&j), 0);
	assert_int_equal(processes(long_sleep()), 0);
	assert_string_equal(sorted(job_out(&j)), "[0] done\n[1] done\n");
	job_free(&j);
}

/* 3 ranks with 3 sleeps and a shell each; the name is in gridcoll-run's own arguments too. */
static void start_brood(struct job *j)
{
	job_start(j, NULL, "-n", "3", "sh", "-c", brood(), NULL);
	await_processes(long_sleep(), 3 * 4 + 1);
}

static void killed_launcher_leaves_nothing(void **state)
{
	struct job j = {0};

	(void)state;
	start_brood(&j);
	kill(j.pid, SIGKILL);
	assert_int_equal(job_wait(&j), 137);
	await_processes(long_sleep(), 0);
	job_free(&j);
}

static pid_t only_child(pid_t of)
{
	char path[64], text[64] = "";
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)of, (int)of);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return -1;
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = '\0';
	close(fd);
	return atoi(text);
}

/* Skips the test where the kernel does not tell (CONFIG_PROC_CHILDREN). */
static pid_t only_agent(struct job *j)
{
	pid_t agent = only_child(j->pid);

	if (agent <= 0) {
		kill(j->pid, SIGKILL);
		job_wait(j);
		job_free(j);
		skip();
	}
	return agent;
}

static void killed_agent_leaves_nothing(void **state)
{
	struct job j = {0};
	pid_t agent;

	(void)state;
	start_brood(&j);
	agent = only_agent(&j);
	kill(agent, SIGKILL);
	assert_int_equal(job_wait(&j), 1);
	assert_int_equal(processes(long_sleep()), 0);
	assert_string_equal(job_err(&j),
		"gridcoll-run: rank 0 on local0 failed: its agent was killed by signal 9\n");
	job_free(&j);
}

/* Nothing but its silence tells that it does not work any more. */
static void stopped_agent_leaves_nothing(void **state)
{
	struct job j = {0};
	pid_t agent;

	(void)state;
	job_start(&j, NULL, "-n", "3", "--timers", "fast", "sh", "-c", brood(), NULL);
	await_processes(long_sleep(), 3 * 4 + 1);
	agent = only_agent(&j);
	kill(agent, SIGSTOP);
	assert_int_equal(job_wait(&j), 1);
	assert_int_equal(processes(long_sleep()), 0);
	assert_non_null(strstr(job_err(&j), "gridcoll-run: rank 0 on local0 failed: "
					    "no sign of life from its agent for "));
	job_free(&j);
}

/* The end of a failed job does not wait for a reader. */
static void failure_behind_unread_output(void **state)
{
	struct job j = {0};
	char command[128], bytes[65536];
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	fcntl(fds[0], F_SETFD, FD_CLOEXEC);
	j.keep_out = fds[1];
	snprintf(command, sizeof(command),
		"if [ $GRIDCOLL_RANK = 1 ]; then sleep 0.3; exit 5; fi; yes %s", long_sleep());
	job_start(&j, NULL, "-n", "2", "sh", "-c", command, NULL);
	close(fds[1]);
	await_processes(long_sleep(), 4); /* gridcoll-run, two shells, yes */
	await_processes(long_sleep(), 1); /* gridcoll-run waits for its reader alone */
	while (read(fds[0], bytes, sizeof(bytes)) > 0)
		;
	close(fds[0]);
	assert_int_equal(job_wait(&j), 5);
	job_free(&j);
}

static void wrong_arguments(void **state)
{
	static const struct {
		const char *argv[6], *message;
	} cases[] = {
		{{"-n", "0", "x"}, "-n 0: expected a number from 1 to 65536"},
		{{"-n", "two", "x"}, "-n two: expected a number from 1 to 65536"},
		{{"-n"}, "-n: expected a value behind it (see --help)"},
		{{"--grid"}, "--grid: expected a value behind it (see --help)"},
		{{"--gird", "x"}, "unknown option --gird, "
				  "expected one of those that gridcoll-run --help shows"},
		{{"-z", "x"},
			"unknown option -z, expected one of those that gridcoll-run --help shows"},
		{{"-n", "2"},
			"no command, expected: gridcoll-run [OPTION...] COMMAND [ARGUMENT...]"},
		{{"--timers", "slow", "x"}, "--timers slow: expected default or fast"},
		{{"--interfaces", "eth0,10.0.0.0/40", "x"},
			"--interfaces: \"10.0.0.0/40\", expected interfaces or networks such as "
			"eth1, ib*, 10.1.0.0/16, fd00::/8, !docker0"},
		{{"--port-range", "99", "x"},
			"--port-range 99: expected two ports such as 5000-5099"},
		{{"--port-range", "9-8", "x"},
			"--port-range 9-8: expected two ports such as 5000-5099"},
		{{"--port-range", "1-65536", "x"},
			"--port-range 1-65536: expected two ports such as 5000-5099"},
		{{"--ssh-fanout", "1", "x"}, "--ssh-fanout 1: expected a number from 2 to 65536"},
		{{"--data-path", "epoll", "x"}, "--data-path epoll: expected auto, poll or uring"},
		{{"--security", "on", "x"}, "--security on: expected auto, off, auth or encrypt"},
		{{"--start-timeout", "5", "x"},
			"--start-timeout 5: expected a time such as 50us, 10ms or 1.5s"},
		{{"--per-host", "2", "x"},
			"--per-host 2: expected --grid, --hosts or --lab with it"},
		{{"--grid", "/nowhere/x.grid", "x"},
			"cannot read /nowhere/x.grid: No such file or directory"},
		{{"--hosts", "", "x"}, "--hosts: expected a value that is not empty (see --help)"},
		{{"--grid=", "x"}, "--grid=: expected a value that is not empty (see --help)"},
		{{"-n", "2", ""},
			"no command, expected: gridcoll-run [OPTION...] COMMAND [ARGUMENT...]"},
		{{"--new-secret", "x"}, "--new-secret with a command, \"x\": expected none"},
		{{"--hosts", "a[1-", "x"},
			"--hosts: missing ']' in \"a[1-\", expected e.g. k[1-8]"},
		{{"--hosts", "a,a", "x"}, "--hosts:3: host a is there twice (first in line 2), "
					  "expected each host once"},
		{{"-n", "3", "--hosts", "a,b", "x"},
			"-n 3: expected at most 2 (2 hosts with 1 rank each, see --per-host)"},
		{{"--lab", "/nowhere/lab.json", "x"},
			"cannot read /nowhere/lab.json: No such file or directory"},
		{{"--lab", "a", "--grid", "b", "x"},
			"--grid and --lab: expected one of them (a lab has its grid with it)"},
	};
	char message[300];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		snprintf(message, sizeof(message), "gridcoll-run: %s\n", cases[i].message);
		run_job(cases[i].argv, 2, message);
	}
	setenv("GRIDCOLL_LAB", "/nowhere/lab.json", 1);
	RUN(2,
		"gridcoll-run: GRIDCOLL_LAB: cannot read /nowhere/lab.json: "
		"No such file or directory\n",
		"x");
	unsetenv("GRIDCOLL_LAB");
}

/* A file with `text`; its path. */
static const char *file_with(const char *text)
{
	static char path[64];
	int fd;

	strcpy(path, "/tmp/gridcoll-test-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_true(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
	return path;
}

static void wrong_files(void **state)
{
	static const struct {
		const char *option, *text, *message;
	} cases[] = {
		{"--grid", "[cluster a]\nhosts = x\nspeed = 9\n",
			":3: unknown key \"speed\" in [cluster a], expected hosts, nic, lan_delay, "
			"tini, inbound, interfaces or ports"},
		{"--grid", "", ":1: no cluster, expected at least one [cluster NAME]"},
		{"--lab", "{",
			":1: string or '}' expected near end of file, expected what gridcoll "
			"lab up writes"},
		{"--lab", "{\"version\": 2}", ": expected \"version\": 1"},
		{"--lab", "{\"version\": 1}", ": expected \"grid\" and \"hosts\""},
		{"--lab",
			"{\"version\": 1, \"grid\": \"[cluster a]\\nhosts = x\\n\", \"hosts\": "
			"[{\"name\": \"x\", \"netns\": 5}]}",
			": hosts[0]: expected the strings name, netns and addr"},
		{"--lab",
			"{\"version\": 1, \"grid\": \"[cluster a]\\nhosts = x\\n\", \"hosts\": "
			"[{\"name\": \"y\", \"netns\": \"n\", \"addr\": \"10.0.0.1\"}]}",
			": hosts[0]: y, expected a host of the lab's grid"},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const char *path = file_with(cases[i].text);
		char message[300];

		snprintf(message, sizeof(message), "gridcoll-run: %s%s\n", path, cases[i].message);
		RUN(2, message, cases[i].option, path, "true");
		unlink(path);
	}
}

/* As full queues may hold up what a rank says: 8 s and 100 ms here, there and back. */
static void slow_links_are_waited_for(void **state)
{
	const char *path = file_with("[cluster a]\nhosts = localhost\n[cluster b]\n"
				     "hosts = 127.0.0.2\n[link a b]\nrate = 1Mbit\n"
				     "queue = 1MB\ndelay = 100ms\n");
	struct job j = {0};

	(void)state;
	job_start(&j, NULL, "--grid", path, peer(), "ok", NULL);
	assert_int_equal(job_wait(&j), 0);
	assert_non_null(strstr(job_out(&j), "dead 52400\n"));
	job_free(&j);
	unlink(path);
}

static void placement(void **state)
{
	const char *path = file_with("[cluster kyoto]\nhosts = k[1-2]\n"
				     "[cluster tokyo]\nhosts = localhost,t[1-2]\n"
				     "[link kyoto tokyo]\nrate = 1Gbit\ndelay = 1ms\n");
	struct job j = {0};

	(void)state;
	job_start(&j, NULL, "--grid", path, "--hosts", "localhost,k2", "--per-host", "2", "-n", "3",
		"--dry-run", "true", "a b", "--c=d", "", NULL);
	assert_int_equal(job_wait(&j), 0);
	assert_string_equal(job_out(&j), "rank 0: k2, cluster kyoto, by ssh\n"
					 "rank 1: k2, cluster kyoto, by ssh\n"
					 "rank 2: localhost, cluster tokyo, on this machine\n"
					 "ssh -oBatchMode=yes -oControlMaster=no -T k2 "
					 "''\\''gridcoll-run'\\'' --agent'\n"
					 "command: true 'a b' --c=d ''\n");
	job_free(&j);
	unlink(path);
	/* How ranks are reached: the command line, the environment, the host, the cluster. */
	path = file_with("[cluster kyoto]\nhosts = k[1-2]\ninterfaces = eth1, !ib0\n"
			 "ports = 5000-5063\n[host k2]\ninterfaces = fd00::/8\n");
	job_start(&j, NULL, "--grid", path, "--dry-run", "true", NULL);
	assert_int_equal(job_wait(&j), 0);
	assert_non_null(strstr(job_out(&j), "rank 0: k1, cluster kyoto, by ssh, interfaces eth1, "
					    "!ib0, ports 5000-5063\n"
					    "rank 1: k2, cluster kyoto, by ssh, interfaces "
					    "fd00::/8, ports 5000-5063\n"));
	job_free(&j);
	setenv("GRIDCOLL_INTERFACES", "ib*", 1);
	job_start(&j, NULL, "--grid", path, "--port-range", "7-8", "--hosts", "k1", "--dry-run",
		"true", NULL);
	unsetenv("GRIDCOLL_INTERFACES");
	assert_int_equal(job_wait(&j), 0);
	assert_non_null(strstr(
		job_out(&j), "rank 0: k1, cluster kyoto, by ssh, interfaces ib*, ports 7-8\n"));
	job_free(&j);
	/* Ranks that others would start. */
	job_start(&j, NULL, "--serve", "7000", "--secret-file", "/no/such/file", "--grid", path,
		"-n", "5", "--dry-run", NULL);
	assert_int_equal(job_wait(&j), 0);
	assert_string_equal(job_out(&j),
		"ranks 0-4: started by others, on these hosts: 2 in 1 cluster\n"
		"they come to any address of this machine, port 7000\n");
	job_free(&j);
	job_start(&j, NULL, "--serve", "127.0.0.1:0", "--secret-file", "/no/such/file", "-n", "1",
		"--dry-run", NULL);
	assert_int_equal(job_wait(&j), 0);
	assert_string_equal(job_out(&j), "rank 0: started by others, on any hosts\n"
					 "they come to 127.0.0.1, port 0 (any that is free)\n");
	job_free(&j);
	RUN(2, "gridcoll-run: --hosts k3: expected hosts of the grid\n", "--grid", path, "--hosts",
		"k3", "true");
	unlink(path);
}

/* What was measured helps where it can: without it the job runs as ever. */
static void useless_measurements(void **state)
{
	const char *path = file_with("{}");
	struct job j = {0};

	(void)state;
	job_start(&j, NULL, "-n", "2", "--params", path, "true", NULL);
	assert_int_equal(job_wait(&j), 0);
	assert_non_null(strstr(job_err(&j), "; running without them\n"));
	job_free(&j);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(status_of_the_first),
		cmocka_unit_test(status_of_a_signal),
		cmocka_unit_test(no_such_program),
		cmocka_unit_test(not_a_program),
		cmocka_unit_test(killed_rank_ends_all),
		cmocka_unit_test(deaf_ranks_are_killed),
		cmocka_unit_test(own_words),
		cmocka_unit_test(blamed_peer),
		cmocka_unit_test(blamed_peer_was_killed),
		cmocka_unit_test(silent_ranks),
		cmocka_unit_test(deserter),
		cmocka_unit_test(absentee),
		cmocka_unit_test(latecomers),
		cmocka_unit_test(grandchildren_end_with_the_job),
		cmocka_unit_test(background_processes_end_with_success),
		cmocka_unit_test(killed_launcher_leaves_nothing),
		cmocka_unit_test(killed_agent_leaves_nothing),
		cmocka_unit_test(stopped_agent_leaves_nothing),
		cmocka_unit_test(failure_behind_unread_output),
		cmocka_unit_test(wrong_arguments),
		cmocka_unit_test(wrong_files),
		cmocka_unit_test(slow_links_are_waited_for),
		cmocka_unit_test(placement),
		cmocka_unit_test(useless_measurements),
	};

	unsetenv("GRIDCOLL_LAB");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
