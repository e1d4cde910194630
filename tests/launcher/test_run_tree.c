/* SPDX-License-Identifier: MIT
 * Hosts that start others: jobs of seven hosts where none may run more than two ssh, by a server of
 * our own on loopback. */
#include "tests/harness.h"
#include "tests/launcher/places.h"

#include "base/file.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define ONCE  " -oConnectionAttempts=1 -oPermitLocalCommand=yes -oLocalCommand=echo -T "
#define SSH   "ssh -oBatchMode=yes -oControlMaster=no -oConnectTimeout=11" ONCE
#define ON    "ssh -oBatchMode=yes -oControlMaster=no -oConnectTimeout=4" ONCE
#define AGENT " ''\\''gridcoll-run'\\'' --agent'\n"

static void dry_run(void **state)
{
	const char *path =
		write_file("dry.grid", "[cluster k]\nhosts = k[1-4]\n[cluster t]\nhosts = t[1-2]\n"
				       "[link k t]\nrate = 1Gbit\ndelay = 1ms\n");
	struct job j = {0};

	(void)state;
	job_start(&j, NULL, "--grid", path, "--ssh-fanout", "2", "--dry-run", "true", NULL);
	assert_int_equal(job_wait(&j), 0);
	assert_non_null(
		strstr(job_out(&j), "rank 5: t2, cluster t, by ssh\n" SSH "k1" AGENT "on k1: " ON
				    "k2" AGENT "on k1: " ON "k3" AGENT "on k2: " ON "k4" AGENT SSH
				    "t1" AGENT "on t1: " ON "t2" AGENT "command: true\n"));
	job_free(&j);
	/* Six are not too many, and with --survive nobody is to depend on others. */
	job_start(&j, NULL, "--grid", path, "--dry-run", "true", NULL);
	assert_int_equal(job_wait(&j), 0);
	assert_null(strstr(job_out(&j), "on k1"));
	job_free(&j);
	job_start(&j, NULL, "--hosts", "k[1-33]", "--dry-run", "true", NULL);
	assert_int_equal(job_wait(&j), 0);
	assert_non_null(strstr(job_out(&j), "on k1: " ON "k33" AGENT));
	job_free(&j);
	job_start(&j, NULL, "--hosts", "k[1-33]", "--survive", "--dry-run", "true", NULL);
	assert_int_equal(job_wait(&j), 0);
	assert_null(strstr(job_out(&j), "on k1"));
	job_free(&j);
}

/* Hosts of a busy machine take their time to log in; none of them hangs. */
#define JOB(...)                                                                               \
	"--hosts", "gct-[1-7]", "--ssh-fanout", "2", "--ssh-timeout", "600s", "--remote-path", \
		remote_run(), __VA_ARGS__, NULL

static void forget_started(void)
{
	need_ssh();
	unlink(in_dir("started"));
}

/* Three levels, each host by the one that should. */
static void all_levels(void **state)
{
	struct gci_buf started = {0};
	struct job j = {0};
	char command[700];

	(void)state;
	forget_started();
	snprintf(command, sizeof(command),
		"[ $GRIDCOLL_RANK = 0 ] && cat; seq 20000 >&2; exec %s ok", peer());
	job_start(&j, write_file("input", "typed\n"), JOB("sh", "-c", command));
	assert_int_equal(job_wait(&j), 0);
	assert_int_equal(occurrences(job_err(&j), " 20000\n"), 7);
	assert_int_equal(occurrences(job_err(&j), "\n"), 7 * 20000);
	assert_int_equal(occurrences(job_out(&j), "] size 7 "), 7);
	assert_non_null(strstr(job_out(&j), "[0] typed\n"));
	job_free(&j);
	assert_int_equal(gci_file_read(in_dir("started"), 4096, &started, NULL), 0);
	assert_string_equal(sorted(gci_buf_cstr(&started)),
		"0 gct-3\n0 gct-4\n1 gct-5\n1 gct-6\n2 gct-7\nrun gct-1\nrun gct-2\n");
	gci_buf_free(&started);
}

/* The ranks of hosts that start others do not end with those. */
static void failure_at_the_end(void **state)
{
	struct job j = {0};

	(void)state;
	need_ssh();
	job_start(&j, NULL, JOB(peer(), "stay", "6=killed"));
	assert_int_equal(job_wait(&j), 137);
	assert_string_equal(
		job_err(&j), "gridcoll-run: rank 6 on gct-7 failed: killed by signal 9 (Killed)\n");
	assert_int_equal(
		occurrences(job_out(&j), "aborted: rank 6 on gct-7 was killed by signal 9"), 6);
	job_free(&j);
}

static void signals_reach_all(void **state)
{
	struct job j = {0};
	int i;

	(void)state;
	need_ssh();
	job_start(&j, NULL,
		JOB("sh", "-c",
			"trap 'echo got it; exit 0' USR1; echo ready; while :; do sleep 0.02; "
			"done"));
	for (i = 0; i < 7; i++) {
		char text[32];

		snprintf(text, sizeof(text), "[%d] ready", i);
		job_await(&j, text);
	}
	kill(j.pid, SIGUSR1);
	assert_int_equal(job_wait(&j), 0);
	assert_int_equal(occurrences(job_out(&j), "] got it\n"), 7);
	job_free(&j);
}

/* Seven ranks, each of which tells its agent's number and has `n` sleeps at the end: until then a
 * signal may come to a shell's child that is none yet, and be forgotten. */
static void start_sleepers(struct job *j, const char *command, int n)
{
	char text[300];
	int i;

	snprintf(text, sizeof(text), "echo agent $PPID; %s", command);
	job_start(j, NULL, JOB("sh", "-c", text, long_sleep()));
	for (i = 0; i < 7; i++) {
		snprintf(text, sizeof(text), "[%d] agent ", i);
		job_await(j, text);
	}
	snprintf(text, sizeof(text), "sleep %s", long_sleep());
	await_processes(text, 7 * n);
}

#define IN_THE_BACKGROUND "setsid sleep $0 & trap 'echo heard' INT; while :; do sleep $0; done"

static void killed_relay(void **state)
{
	struct job j = {0};
	int agent = 0;

	(void)state;
	need_ssh();
	start_sleepers(&j, "exec sleep $0", 1);
	assert_int_equal(sscanf(strstr(job_out(&j), "[0] agent "), "[0] agent %d", &agent), 1);
	kill(agent, SIGKILL);
	assert_int_equal(job_wait(&j), 1);
	assert_string_equal(job_err(&j),
		"gridcoll-run: rank 0 on gct-1 failed: its ssh ended with status 255\n");
	await_processes(long_sleep(), 0);
	job_free(&j);
}

static void killed_launcher(void **state)
{
	struct job j = {0};

	(void)state;
	need_ssh();
	need_adoption();
	start_sleepers(&j, IN_THE_BACKGROUND, 2);
	kill(j.pid, SIGKILL);
	assert_int_equal(job_wait(&j), 137);
	await_processes(long_sleep(), 0);
	job_free(&j);
}

static void interrupted_twice(void **state)
{
	struct job j = {0};

	(void)state;
	need_ssh();
	need_adoption();
	start_sleepers(&j, IN_THE_BACKGROUND, 2);
	kill(j.pid, SIGINT);
	job_await(&j, "[6] heard");
	kill(j.pid, SIGINT);
	assert_int_equal(job_wait(&j), 128 + SIGINT);
	assert_string_equal(job_err(&j), "gridcoll-run: interrupted twice, all ranks killed\n");
	await_processes(long_sleep(), 0);
	job_free(&j);
}

/* Where hosts have no keys, or do not know the others' names, a job does not fail for that. */
static void started_from_here_instead(void **state)
{
	struct job j = {0};

	(void)state;
	need_ssh();
	job_start(&j, NULL, "--hosts", "gct-[1-7]", "--ssh-fanout", "2", "--remote-path",
		env_path("GRIDCOLL_RUN"), peer(), "ok", NULL);
	assert_int_equal(job_wait(&j), 0);
	assert_int_equal(occurrences(job_out(&j), "] size 7 "), 7);
	assert_int_equal(occurrences(job_err(&j), "\n"), 1);
	assert_non_null(strstr(job_err(&j), " failed (ssh: Could not resolve hostname gct-"));
	job_free(&j);
}

/* As where a firewall lets no host to others: from there one only seems to listen, or to talk. */
static void silent_from_there(void **state)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(at);
	struct job j = {0}, mute = {0};
	const char *remote;

	(void)state;
	need_ssh();
	assert_int_equal(bind(fd, (struct sockaddr *)&at, len) || listen(fd, 8), 0);
	getsockname(fd, (struct sockaddr *)&at, &len);
	assert_int_equal(mkdir(in_dir("silent"), 0755), 0);
	write_file("silent/config",
		"Host gct-4\nProxyCommand " SAYS_HELLO "\n"
		"Host *\nHostName 127.0.0.1\nPort %d\n",
		ntohs(at.sin_port));
	write_file("silent/ssh", "#!/bin/sh\nPATH=%s exec ssh -F %s \"$@\"\n", getenv("PATH"),
		in_dir("silent/config"));
	remote = write_file("silent/run", "#!/bin/sh\nPATH=%s:$PATH exec %s \"$@\"\n",
		in_dir("silent"), env_path("GRIDCOLL_RUN"));
	run_shell("chmod +x %s %s", in_dir("silent/ssh"), remote);
	job_start(&j, NULL, "--hosts", "gct-[1-3]", "--ssh-fanout", "2", "--remote-path", remote,
		peer(), "ok", NULL);
	job_start(&mute, NULL, "--hosts", "gct-1,gct-2,gct-4", "--ssh-fanout", "2", "--remote-path",
		remote, peer(), "ok", NULL);
	assert_int_equal(job_wait(&j), 0);
	assert_int_equal(occurrences(job_out(&j), "] size 3 "), 3);
	assert_non_null(strstr(job_err(&j), "ssh from gct-1 failed (Connection "));
	assert_int_equal(job_wait(&mute), 0);
	assert_int_equal(occurrences(job_out(&mute), "] size 3 "), 3);
	assert_non_null(strstr(job_err(&mute), "ssh from gct-1 failed (no answer within 5 s)"));
	job_free(&j);
	job_free(&mute);
	close(fd);
}

/* Neither from there nor from here. */
static void not_to_be_started(void **state)
{
	struct job j = {0};

	(void)state;
	need_ssh();
	job_start(&j, NULL, "--hosts", "gct-1,gct-2,nowhere.invalid", "--ssh-fanout", "2",
		"--remote-path", remote_run(), "true", NULL);
	assert_int_equal(job_wait(&j), 1);
	assert_non_null(
		strstr(job_err(&j), "gridcoll-run: nowhere.invalid: ssh from gct-1 failed"));
	assert_non_null(strstr(job_err(&j), "gridcoll-run: rank 2 on nowhere.invalid failed: its "
					    "ssh ended with status 255: ssh: Could not resolve "));
	job_free(&j);
}

/* A host that is to start another can be started neither from there nor from here. The machine that
 * gridcoll-run is on has an ssh of its own for that, which goes. */
static void no_ssh_any_more(void **state)
{
	char path[4096], remote[128];
	struct job j = {0};

	(void)state;
	need_ssh();
	snprintf(remote, sizeof(remote), "%s",
		write_file("gone", "#!/bin/sh\nrm -f %s\nPATH=/nowhere exec %s \"$@\"\n",
			in_dir("only/ssh"), env_path("GRIDCOLL_RUN")));
	run_shell("chmod +x %s; mkdir %s; cp %s %s", remote, in_dir("only"), in_dir("bin/ssh"),
		in_dir("only/"));
	snprintf(path, sizeof(path), "%s", getenv("PATH"));
	setenv("PATH", in_dir("only"), 1);
	job_start(&j, NULL, "--hosts", "gct-[1-7]", "--ssh-fanout", "2", "--remote-path", remote,
		"/bin/true", NULL);
	setenv("PATH", path, 1);
	assert_int_equal(job_wait(&j), 1);
	assert_non_null(strstr(job_err(&j), "failed: cannot run ssh (PATH is "));
	job_free(&j);
}

/* Relays are told the secret of those behind them, and keep nothing of it. */
static void secret_is_forgotten(void **state)
{
	struct job j = {0};

	(void)state;
	need_ssh();
	job_start(&j, NULL, JOB(peer(), "ok", "0=dig", "1=dig"));
	assert_int_equal(job_wait(&j), 0);
	if (!strstr(job_out(&j), "nowhere to look"))
		assert_int_equal(occurrences(job_out(&j), "] secret found 0 times"), 2);
	job_free(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dry_run),
		cmocka_unit_test(all_levels),
		cmocka_unit_test(failure_at_the_end),
		cmocka_unit_test(signals_reach_all),
		cmocka_unit_test(killed_relay),
		cmocka_unit_test(killed_launcher),
		cmocka_unit_test(interrupted_twice),
		cmocka_unit_test(started_from_here_instead),
		cmocka_unit_test(silent_from_there),
		cmocka_unit_test(not_to_be_started),
		cmocka_unit_test(no_ssh_any_more),
		cmocka_unit_test(secret_is_forgotten),
	};

	unsetenv("GRIDCOLL_LAB");
	return cmocka_run_group_tests(tests, places_up, places_down);
}
