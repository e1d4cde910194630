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

/* They would wait for each other's messages for ever. */
static void one_rank_of_other_sources(void **state)
{
	struct job j = {0};

	(void)state;
	job_start(&j, NULL, "-n", "3", peer(), "ok", "1=other", NULL);
	assert_int_equal(job_wait(&j), 1);
	assert_non_null(strstr(job_err(&j), "rank 1 on local1 failed: is of gridcoll 0.0.1 with "
					    "schedules "));
	assert_non_null(strstr(job_out(&j), "[1] aborted: is of gridcoll 0.0.1 with schedules "));
	job_free(&j);
}

static void no_such_program(void **state)
{
	(void)state;
	RUN(127,
		"gridcoll-run: rank 0 on local0 failed: cannot run ./nothing: "
		"No such file or directory\n",
		"-n", "3", "./nothing");
}

/* In the PATH of the host that it was to run on, which may be another one than the user thinks. */
static void a_program_that_is_not_in_path(void **state)
{
	struct job j = {0};

	(void)state;
	job_start(&j, NULL, "-n", "1", "no-such-program", NULL);
	assert_int_equal(job_wait(&j), 127);
	assert_non_null(strstr(job_err(&j),
		"gridcoll-run: rank 0 on local0 failed: cannot run no-such-program (PATH is /"));
	assert_non_null(strstr(job_err(&j), "): No such file or directory\n"));
	job_free(&j);
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

/* Who comes in time is one rank: two may come a second apart on a busy machine. */
static void latecomers(void **state)
{
	(void)state;
	RUN(1,
		"gridcoll-run: ranks 0-1,3 on local0-local1,local3 failed: did not join the job "
		"within "
		"1 s of the first rank\n",
		"--start-timeout", "1s", "-n", "4", peer(), "stay", "0=late", "1=late", "3=late");
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
	need_adoption();
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
	need_adoption();
	snprintf(command, sizeof(command), "sleep %s & echo done", long_sleep());
	job_start(&j, NULL, "-n", "2", "sh", "-c", command, NULL);
	assert_int_equal(job_wait(&j), 0);
	assert_int_equal(processes(long_sleep()), 0);
	assert_string_equal(sorted(job_out(&j)), "[0] done\n[1] done\n");
	job_free(&j);
}

/* At any moment of the start: before gridcoll-run handles signals, while agents and ranks are being
 * forked, or later. More of SIGHUP follow until the job has ended; a second SIGINT would mean more. */
static void early_signal(int sig, uint64_t after_ns)
{
	struct job j = {.own_group = 1};
	char told[100];
	int more;

	snprintf(told, sizeof(told), "gridcoll-run: told to end (%s), as were all ranks\n",
		strsignal(sig));
	signal(sig, SIG_DFL); /* of the child, too, until it is gridcoll-run */
	/* No shell: it forgets SIGINT while it forks. */
	job_start(&j, NULL, "-n", "2", "sleep", long_sleep(), NULL);
	gci_sleep_ns(after_ns);
	assert_int_equal(kill(-j.pid, sig), 0);
	for (more = sig == SIGHUP ? 100 : 0; more && !*job_err(&j); more--) {
		gci_sleep_ns(GCI_NS_PER_MS / 5);
		assert_int_equal(kill(-j.pid, sig), 0);
	}
	assert_int_equal(job_wait(&j), 128 + sig);
	if (*job_err(&j))
		assert_string_equal(job_err(&j), told);
	assert_int_equal(processes(long_sleep()), 0);
	job_free(&j);
}

static void signals_during_the_start(void **state)
{
	uint64_t ms;

	(void)state;
	for (ms = 0; ms < 40; ms++) {
		early_signal(SIGHUP, ms * GCI_NS_PER_MS);
		early_signal(ms % 2 ? SIGINT : SIGTERM, 2 * ms * GCI_NS_PER_MS);
	}
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
	need_adoption();
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
	need_adoption();
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
	need_adoption();
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
	char command[200], bytes[65536], all_run[] = "/tmp/gct-XXXXXX";
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds) || close(mkstemp(all_run)), 0);
	fcntl(fds[0], F_SETFD, FD_CLOEXEC);
	j.keep_out = fds[1];
	snprintf(command, sizeof(command),
		"if [ $GRIDCOLL_RANK = 1 ]; then while [ -e %s ]; do sleep 0.05; done; exit 5; fi; "
		"yes %s",
		all_run, long_sleep());
	job_start(&j, NULL, "-n", "2", "sh", "-c", command, NULL);
	close(fds[1]);
	await_processes(long_sleep(), 4); /* gridcoll-run, two shells, yes */
	unlink(all_run);
	await_processes(long_sleep(), 1); /* gridcoll-run waits for its reader alone */
	while (read(fds[0], bytes, sizeof(bytes)) > 0)
		;
	close(fds[0]);
	assert_int_equal(job_wait(&j), 5);
	job_free(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(status_of_the_first),
		cmocka_unit_test(status_of_a_signal),
		cmocka_unit_test(one_rank_of_other_sources),
		cmocka_unit_test(no_such_program),
		cmocka_unit_test(a_program_that_is_not_in_path),
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
		cmocka_unit_test(signals_during_the_start),
		cmocka_unit_test(killed_launcher_leaves_nothing),
		cmocka_unit_test(killed_agent_leaves_nothing),
		cmocka_unit_test(stopped_agent_leaves_nothing),
		cmocka_unit_test(failure_behind_unread_output),
	};

	unsetenv("GRIDCOLL_LAB");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
