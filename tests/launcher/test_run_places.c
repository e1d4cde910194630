/* SPDX-License-Identifier: MIT
 * gridcoll-run elsewhere: in network namespaces, and by ssh to a server of our own on loopback.
 * What the machine cannot do is skipped by name. */

#include "tests/harness.h"
#include "tests/launcher/places.h"

#include "base/clock.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- namespaces ---- */

/* Two namespaces with a cable between; 0 when this machine lets us. */
static int lab_up(void)
{
	int id = (int)getpid();

	if (geteuid() || run_shell("ip netns add gct%da 2>/dev/null", id))
		return -1;
	return run_shell(
		"set -e; a=gct%da; b=gct%db; ip netns add $b; "
		"ip -n $a link add va type veth peer name vb netns $b; "
		"ip -n $a addr add 10.77.1.1/24 dev va; ip -n $b addr add 10.77.1.2/24 dev vb; "
		"for n in $a $b; do ip -n $n link set lo up; done; "
		"ip -n $a link set va up; ip -n $b link set vb up",
		id, id);
}

static void lab_down(void)
{
	int id = (int)getpid();

	run_shell("ip netns del gct%da 2>/dev/null; ip netns del gct%db 2>/dev/null", id, id);
}

static int lab_teardown(void **state)
{
	(void)state;
	lab_down();
	return 0;
}

static const char *lab_file(void)
{
	int id = (int)getpid();

	return write_file("lab.json",
		"{\"version\": 1, \"dilation\": 1, \"grid\": \"[cluster k]\\nhosts = ka\\n"
		"[cluster t]\\nhosts = tb\\n[link k t]\\nrate = 1Gbit\\ndelay = 1ms\\n\",\n"
		"\"hosts\": [{\"name\": \"ka\", \"netns\": \"gct%da\", \"addr\": \"10.77.1.1\"},\n"
		"{\"name\": \"tb\", \"netns\": \"gct%db\", \"addr\": \"10.77.1.2\"}]}\n",
		id, id);
}

static void ranks_in_namespaces(void **state)
{
	struct job j = {0};
	char command[700];

	(void)state;
	if (lab_up()) {
		print_message("skipped: network namespaces need root\n");
		skip();
	}
	snprintf(command, sizeof(command),
		"echo sees $(ls /sys/class/net); echo lab $GRIDCOLL_LAB; exec %s ok", peer());
	setenv("GRIDCOLL_LAB", lab_file(), 1);
	job_start(&j, NULL, "sh", "-c", command, NULL);
	unsetenv("GRIDCOLL_LAB");
	assert_int_equal(job_wait(&j), 0);
	assert_string_equal(job_err(&j), "");
	assert_non_null(strstr(job_out(&j), "[0] size 2 host 0 addr 10.77.1.1:40000"));
	assert_non_null(strstr(job_out(&j), "[1] size 2 host 1 addr 10.77.1.2:40001"));
	assert_non_null(strstr(job_out(&j), "[0] sees lo va\n"));
	assert_non_null(strstr(job_out(&j), "[1] sees lo vb\n"));
	assert_non_null(strstr(job_out(&j), "/lab.json\n"));
	job_free(&j);
}

/* Control traffic crosses the emulated network, so a dead link shows as in the field. */
static void link_goes_down(void **state)
{
	struct job j = {0};

	(void)state;
	if (lab_up()) {
		print_message("skipped: network namespaces need root\n");
		skip();
	}
	job_start(&j, NULL, "--lab", lab_file(), "--timers", "fast", peer(), "stay", long_sleep(),
		NULL);
	job_await(&j, "[0] size 2");
	job_await(&j, "[1] size 2");
	assert_int_equal(run_shell("ip -n gct%db link set vb down", (int)getpid()), 0);
	assert_int_equal(job_wait(&j), 1);
	job_expect_silence(&j,
		"gridcoll-run: rank 1 on tb failed: no sign of life for 4 s (its host or its "
		"network link is down, or it is stopped)\n");
	assert_int_equal(processes(long_sleep()), 0);
	job_free(&j);
}

/* As a firewall or a switch may do it, while all ranks live: they go on as if nothing had been. */
static void connections_are_reset(void **state)
{
	int id = (int)getpid(), i;
	struct job j = {0};

	(void)state;
	if (lab_up() || run_shell("ss -HKtn 'dport = :1' 2>&1 | grep -q . ; test $? = 1")) {
		print_message("skipped: network namespaces need root, and resets ss -K\n");
		skip();
	}
	job_start(&j, NULL, "--lab",
		write_file("one.json",
			"{\"version\": 1, \"dilation\": 1, \"grid\": \"[cluster k]\\nhosts = ka "
			"tb\\n\",\n"
			"\"hosts\": [{\"name\": \"ka\", \"netns\": \"gct%da\", \"addr\": "
			"\"10.77.1.1\"},\n"
			"{\"name\": \"tb\", \"netns\": \"gct%db\", \"addr\": \"10.77.1.2\"}]}\n",
			id, id),
		env_path("GRIDCOLL_TEST_GUEST"), "rounds", "100", NULL);
	job_await(&j, "[1] rank 1 of 2 in cluster 0 of 1: sum 3");
	for (i = 0; i < 5; i++) {
		assert_int_equal(
			run_shell("ip netns exec gct%d%c ss -HKtn dst 10.77.1.0/24 >/dev/null", id,
				"ab"[i % 2]),
			0);
		gci_sleep_ns(200 * GCI_NS_PER_MS);
	}
	if (job_wait(&j))
		fail_msg("\"%s\"", job_err(&j));
	assert_non_null(strstr(job_err(&j), "lost stream 0 of 1"));
	assert_null(strstr(job_err(&j), "gridcoll-run: rank"));
	job_free(&j);
}

static void no_such_namespace(void **state)
{
	struct job j = {0};

	(void)state;
	job_start(&j, NULL, "--lab", lab_file(), "true", NULL);
	assert_int_equal(job_wait(&j), 1);
	assert_non_null(strstr(job_err(&j), "gridcoll-run: network namespace gct"));
	assert_non_null(strstr(job_err(&j), "No such file or directory\n"));
	job_free(&j);
}

/* ---- ssh ---- */

static const char *grid_file(void)
{
	return write_file("x.grid", "[cluster a]\nhosts = gct-a\n[cluster b]\nhosts = gct-b\n"
				    "[link a b]\nrate = 1Gbit\ndelay = 1ms\n");
}

static void ranks_by_ssh(void **state)
{
	struct job j = {0};
	char command[700];

	(void)state;
	need_ssh();
	snprintf(command, sizeof(command),
		"echo \"$0, <$1>, $GRIDCOLL_LOG, <$GRIDCOLL_CLUSTER>, $(pwd)\"; "
		"[ $GRIDCOLL_RANK = 0 ] && cat; "
		"exec %s ok",
		peer());
	setenv("GRIDCOLL_LOG", "error", 1);
	setenv("GRIDCOLL_CLUSTER", "here", 1); /* not a far host's */
	job_start(&j, write_file("input", "typed\n"), "--grid", grid_file(), "--per-host", "2",
		"--remote-path", env_path("GRIDCOLL_RUN"), "sh", "-c", command, "it's", "a  \"b\"",
		NULL);
	unsetenv("GRIDCOLL_LOG");
	unsetenv("GRIDCOLL_CLUSTER");
	assert_int_equal(job_wait(&j), 0);
	assert_string_equal(job_err(&j), "");
	assert_non_null(strstr(job_out(&j), "[3] size 4 host 1 addr 127.0.0.1:40003"));
	assert_non_null(strstr(job_out(&j), "[2] it's, <a  \"b\">, error, <>, /"));
	assert_non_null(strstr(job_out(&j), "[0] typed\n"));
	job_free(&j);
}

/* Ports, keys and a jump host are ssh_config's; where the jump host's address is what sshd sees, the
 * launcher's is said. */
static void by_way_of_a_jump_host(void **state)
{
	struct job j = {0};
	char command[700];

	(void)state;
	need_ssh();
	snprintf(command, sizeof(command), "echo to $GRIDCOLL_RENDEZVOUS; exec %s ok", peer());
	job_start(&j, NULL, "--hosts", "gct-a,gct-far", "--address", "localhost", "--remote-path",
		env_path("GRIDCOLL_RUN"), "sh", "-c", command, NULL);
	assert_int_equal(job_wait(&j), 0);
	assert_string_equal(job_err(&j), "");
	assert_non_null(strstr(job_out(&j), "[1] to localhost:"));
	assert_non_null(strstr(job_out(&j), "[1] size 2 host 1 "));
	job_free(&j);
}

/* A login script that talks, in a path that needs quotes. */
static void noise_before_the_agent(void **state)
{
	struct job j = {0};
	const char *path;

	(void)state;
	need_ssh();
	path = write_file("it's a path",
		"#!/bin/sh\necho Welcome; echo 'to gridcoll'\nexec %s "
		"\"$@\"\n",
		env_path("GRIDCOLL_RUN"));
	chmod(path, 0755);
	job_start(&j, NULL, "--hosts", "gct-a,gct-b", "--remote-path", path, "echo", "hi", NULL);
	assert_int_equal(job_wait(&j), 0);
	assert_string_equal(sorted(job_out(&j)), "[0] hi\n[1] hi\n");
	job_free(&j);
}

static void failure_far_away(void **state)
{
	struct job j = {0};

	(void)state;
	need_ssh();
	job_start(&j, NULL, "--grid", grid_file(), "--remote-path", env_path("GRIDCOLL_RUN"),
		peer(), "stay", "1=killed", NULL);
	assert_int_equal(job_wait(&j), 137);
	assert_string_equal(
		job_err(&j), "gridcoll-run: rank 1 on gct-b failed: killed by signal 9 (Killed)\n");
	assert_non_null(strstr(
		job_out(&j), "[0] aborted: rank 1 on gct-b was killed by signal 9 (Killed)\n"));
	job_free(&j);
}

static void no_agent_there(void **state)
{
	struct job j = {0};

	(void)state;
	need_ssh();
	job_start(&j, NULL, "--hosts", "gct-a", "--remote-path", "/nowhere/run", "true", NULL);
	assert_int_equal(job_wait(&j), 1);
	assert_non_null(strstr(job_err(&j),
		"gridcoll-run: rank 0 on gct-a failed: its ssh ended with status 127: "));
	assert_non_null(strstr(job_err(&j), "/nowhere/run"));
	job_free(&j);
}

/* Ending what its ranks left behind; a job is not over before, whether it went well or failed. */
static void an_agent_takes_its_time(void **state)
{
	const char *slow;
	char there[128];
	struct job j = {0};
	int fails;

	(void)state;
	need_ssh();
	for (fails = 0; fails < 2; fails++) {
		snprintf(there, sizeof(there), "%s", write_file("there", "x"));
		slow = write_file("slow",
			"#!/bin/sh\n%s \"$@\"\nrc=$?\nsleep 1.5\nrm %s\nexit $rc\n",
			env_path("GRIDCOLL_RUN"), there);
		chmod(slow, 0755);
		job_start(&j, NULL, "--hosts", "gct-a", "--remote-path", slow,
			fails ? "false" : "true", NULL);
		assert_int_equal(job_wait(&j), fails);
		assert_int_equal(access(there, F_OK), -1);
		job_free(&j);
	}
}

/* It is named, and the others go on. */
static void start_past_one_that_is_down(struct job *j)
{
	job_start(j, NULL, "--hosts", "gct-a,gct-dark,gct-b", "--survive", "--address", "127.0.0.1",
		"--remote-path", env_path("GRIDCOLL_RUN"), env_path("GRIDCOLL_TEST_GUEST"),
		"without", NULL);
}

static void expect_past_one_that_is_down(struct job *j)
{
	if (job_wait(j))
		fail_msg("\"%s\"", job_err(j));
	assert_non_null(strstr(job_err(j), "gridcoll-run: rank 1 on gct-dark is left out: its ssh "
					   "ended with status 255: "));
	assert_non_null(strstr(job_err(j), "; a host that is up but slow needs --ssh-timeout"));
	assert_non_null(strstr(job_err(j), "[0] barrier: rank 1 on gct-dark: its ssh ended"));
	assert_non_null(
		strstr(job_err(j), "epoch 2: 2 of 3 ranks go on, without rank 1 on gct-dark\n"));
	assert_non_null(strstr(job_out(j), "[2] rank 1 goes on with 2\n"));
	job_free(j);
}

/* To all, or to one of them. */
static void start_copies(struct job *j, const char *dest, const char *one)
{
	char to[160];

	snprintf(to, sizeof(to), "%s/%%r/", in_dir(dest));
	job_start(j, NULL, "--hosts", "gct-a,gct-dark,gct-b", "--survive", "--address", "127.0.0.1",
		"--remote-path", env_path("GRIDCOLL_RUN"), env_path("GRIDCOLL"), "cp",
		"--keep-going", "--from", "gct-a", in_dir("cargo"), to, one ? "--to" : NULL, one,
		NULL);
}

static void expect_copies(struct job *all, struct job *one)
{
	if (job_wait(all) != 23 ||
		run_shell("cd %s && cmp cargo to/2/cargo && test ! -e to/1/cargo", in_dir("")) ||
		!strstr(job_err(all), "[0] left out: rank 1 on gct-dark\n"))
		fail_msg("\"%s\"", job_err(all));
	job_free(all);
	/* All who were to have it have it. */
	if (job_wait(one) || strstr(job_err(one), "[0] left out: "))
		fail_msg("\"%s\"", job_err(one));
	job_free(one);
}

/* Hosts that are down, that hang before they let ssh in, or afterwards have login scripts that take
 * longer than ssh may. */
static void hosts_take_long(void **state)
{
	struct job down = {0}, copies = {0}, copy = {0}, hangs = {0}, slow = {0};
	const char *path;

	(void)state;
	need_ssh();
	path = write_file(
		"slow", "#!/bin/sh\nsleep 14\nexec %s \"$@\"\n", env_path("GRIDCOLL_RUN"));
	chmod(path, 0755);
	job_start(&slow, NULL, "--hosts", "gct-a", "--remote-path", path, "echo", "hi", NULL);
	start_past_one_that_is_down(&down);
	write_file("cargo", "what is copied\n");
	start_copies(&copies, "to", NULL);
	start_copies(&copy, "to-one", "gct-b");
	job_start(&hangs, NULL, "--ssh-timeout", "1.5s", "--hosts", "gct-mute", "true", NULL);
	expect_past_one_that_is_down(&down);
	expect_copies(&copies, &copy);
	assert_int_equal(job_wait(&hangs), 1);
	assert_non_null(strstr(job_err(&hangs),
		"gridcoll-run: rank 0 on gct-mute failed: no answer by ssh within 1.5 s, "));
	job_free(&hangs);
	assert_int_equal(job_wait(&slow), 0);
	assert_string_equal(job_out(&slow), "[0] hi\n");
	job_free(&slow);
}

/* One of the hosts has not got the program: as one that is down. */
static void a_program_is_missing(void **state)
{
	struct job j = {0};
	const char *path;

	(void)state;
	need_ssh();
	path = write_file("lacks",
		"#!/bin/sh\nif mkdir %s 2>/dev/null; then PATH=/nowhere; else PATH=%s:$PATH; fi\n"
		"exec %s \"$@\"\n",
		in_dir("lacks.one"), in_dir("programs"), env_path("GRIDCOLL_RUN"));
	chmod(path, 0755);
	assert_int_equal(mkdir(in_dir("programs"), 0755) ||
				 symlink(env_path("GRIDCOLL_TEST_GUEST"), in_dir("programs/some")),
		0);
	job_start(&j, NULL, "--hosts", "gct-[1-3]", "--survive", "--address", "127.0.0.1",
		"--remote-path", path, "some", "without", NULL);
	if (job_wait(&j))
		fail_msg("\"%s\"", job_err(&j));
	assert_int_equal(occurrences(job_err(&j), " is left out: "), 1);
	assert_non_null(strstr(job_err(&j),
		" is left out: cannot run some (PATH is /nowhere): No such file or directory\n"));
	assert_int_equal(occurrences(job_out(&j), " goes on with 2\n"), 2);
	job_free(&j);
}

/* A command in the background; `over` is there when it has ended. */
static pid_t run_aside(const char *over, const char *command)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	setpgid(0, 0);
	_exit(run_shell("%s 2>%s.err; touch %s", command, over, over) != 0);
}

/* Two addresses, to both of which packets vanish at the cable's other end. Which time that takes is
 * told by other ssh, which try one of them, once, for as long as the job may take. */
static void hosts_are_silent(void **state)
{
	static const char plain[] = "ssh -F /dev/null -oBatchMode=yes -oConnectTimeout=";
	struct job direct = {0}, tree = {0};
	char command[300];
	pid_t first, second;
	int id = (int)getpid();

	(void)state;
	need_ssh();
	if (lab_up()) {
		print_message("skipped: network namespaces need root\n");
		skip();
	}
	assert_int_equal(run_shell("set -e; for i in 8 9; do ip -n gct%da neigh add 10.77.1.$i "
				   "lladdr 02:00:00:00:00:0$i dev va; echo 10.77.1.$i gct-silent "
				   ">>%s; done",
				 id, in_dir("hosts")),
		0);
	write_file("by",
		"#!/bin/sh\nexec ip netns exec gct%da sh -c 'mount --bind %s /etc/hosts && "
		"exec \"$@\"' - \"$@\"\n",
		id, in_dir("hosts"));
	run_shell("chmod +x %s", in_dir("by"));
	job_start(&direct, NULL, "--hosts", "gct-void", "true", NULL);
	snprintf(command, sizeof(command), "%s %s15 10.77.1.9 true", in_dir("by"), plain);
	first = run_aside(in_dir("over"), command);
	job_start(&tree, NULL, "--hosts", "gct-1,gct-2,gct-void3", "--ssh-fanout", "2",
		"--remote-path", remote_run(), "true", NULL);
	snprintf(command, sizeof(command), "%s %s20 10.77.1.9 true", in_dir("by"), plain);
	second = run_aside(in_dir("over-2"), command);
	assert_int_equal(job_wait(&direct), 1);
	assert_int_not_equal(access(in_dir("over"), F_OK), 0);
	assert_int_equal(job_wait(&tree), 1);
	assert_int_not_equal(access(in_dir("over-2"), F_OK), 0);
	assert_non_null(strstr(job_err(&direct),
		"gridcoll-run: rank 0 on gct-void failed: no answer by ssh within 12 s, expected "
		"a login (--ssh-timeout waits longer)\n"));
	assert_non_null(strstr(job_err(&tree),
		"gridcoll-run: gct-void3: ssh from gct-1 failed (no answer within 5 s)"));
	assert_non_null(strstr(job_err(&tree), "gridcoll-run: rank 2 on gct-void3 failed: "));
	waitpid(first, NULL, 0);
	assert_int_equal(access(in_dir("over"), F_OK), 0);
	kill(-second, SIGTERM);
	waitpid(second, NULL, 0);
	job_free(&direct);
	job_free(&tree);
}

static void killed_launcher_leaves_nothing_far_away(void **state)
{
	struct job j = {0};
	char command[128];

	(void)state;
	need_ssh();
	need_adoption();
	snprintf(
		command, sizeof(command), "setsid sleep %s & sleep %s", long_sleep(), long_sleep());
	job_start(&j, NULL, "--hosts", "gct-a,gct-b", "--remote-path", env_path("GRIDCOLL_RUN"),
		"sh", "-c", command, NULL);
	await_processes(long_sleep(), 7); /* 2 x 3, and gridcoll-run's own arguments */
	kill(j.pid, SIGKILL);
	assert_int_equal(job_wait(&j), 137);
	await_processes(long_sleep(), 0);
	job_free(&j);
}

/* The file is nowhere else. */
static void the_job_has_the_grid(void **state)
{
	struct job j = {0};
	char back[4096];

	(void)state;
	need_ssh();
	grid_file();
	assert_non_null(getcwd(back, sizeof(back)));
	assert_int_equal(chdir(in_dir("")), 0);
	job_start(&j, NULL, "--grid", "x.grid", "--chdir", "/", "--remote-path",
		env_path("GRIDCOLL_RUN"), env_path("GRIDCOLL"), "doctor", "--grid", "x.grid", NULL);
	assert_int_equal(chdir(back), 0);
	assert_int_equal(job_wait(&j), 0);
	assert_string_equal(job_err(&j), "");
	assert_non_null(strstr(job_out(&j), "[0] "));
	assert_non_null(strstr(job_out(&j), "[1] "));
	job_free(&j);
	job_start(&j, NULL, "--grid", in_dir("x.grid"), "--remote-path", env_path("GRIDCOLL_RUN"),
		env_path("GRIDCOLL"), "doctor", "--grid", "another.grid", NULL);
	assert_int_equal(job_wait(&j), 2);
	assert_non_null(strstr(job_err(&j), "cannot read another.grid"));
	job_free(&j);
	/* A variable of the environment has no room for any grid. */
	assert_int_equal(run_shell("seq -f '# %%0.f' 20000 >>%s", in_dir("x.grid")), 0);
	job_start(&j, NULL, "--grid", in_dir("x.grid"), "--remote-path", env_path("GRIDCOLL_RUN"),
		env_path("GRIDCOLL"), "doctor", "--grid", "x.grid", NULL);
	assert_int_equal(job_wait(&j), 2);
	assert_non_null(strstr(job_err(&j),
		"cannot read x.grid: No such file or directory; expected the file on each host: "));
	assert_non_null(strstr(job_err(&j), " if it has less than 96 KiB\n"));
	job_free(&j);
}

/* The agents come where the directory is no more. */
static void a_directory_of_one_host(void **state)
{
	struct job j = {0};
	char back[4096], gone[128];
	const char *path;

	(void)state;
	need_ssh();
	snprintf(gone, sizeof(gone), "%s", in_dir("gone"));
	path = write_file("forgets", "#!/bin/sh\nrmdir %s 2>/dev/null\nexec %s \"$@\"\n", gone,
		env_path("GRIDCOLL_RUN"));
	chmod(path, 0755);
	assert_non_null(getcwd(back, sizeof(back)));
	assert_int_equal(mkdir(gone, 0700) | chdir(gone), 0);
	job_start(&j, NULL, "--hosts", "gct-a", "--remote-path", path, "pwd", NULL);
	assert_int_equal(job_wait(&j), 0);
	assert_int_equal(chdir(back), 0);
	if (strncmp(job_err(&j), "gridcoll-run: gct-a: cannot enter ", 34) != 0)
		fail_msg("\"%s\"", job_err(&j));
	assert_int_equal(strncmp(job_out(&j), "[0] /", 5), 0);
	assert_null(strstr(job_out(&j), "gone"));
	job_free(&j);
	job_start(
		&j, NULL, "--hosts", "gct-a", "--chdir", gone, "--remote-path", path, "pwd", NULL);
	assert_int_equal(job_wait(&j), 127);
	assert_non_null(strstr(job_err(&j), "cannot change to directory "));
	job_free(&j);
	job_start(&j, NULL, "--hosts", "gct-a", "--chdir", "/usr", "--remote-path", path, "pwd",
		NULL);
	assert_int_equal(job_wait(&j), 0);
	assert_string_equal(job_out(&j), "[0] /usr\n");
	job_free(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(ranks_in_namespaces, lab_teardown),
		cmocka_unit_test_teardown(link_goes_down, lab_teardown),
		cmocka_unit_test_teardown(connections_are_reset, lab_teardown),
		cmocka_unit_test(no_such_namespace),
		cmocka_unit_test(ranks_by_ssh),
		cmocka_unit_test(by_way_of_a_jump_host),
		cmocka_unit_test(noise_before_the_agent),
		cmocka_unit_test(failure_far_away),
		cmocka_unit_test(no_agent_there),
		cmocka_unit_test(an_agent_takes_its_time),
		cmocka_unit_test(the_job_has_the_grid),
		cmocka_unit_test(a_directory_of_one_host),
		cmocka_unit_test(hosts_take_long),
		cmocka_unit_test(a_program_is_missing),
		cmocka_unit_test_teardown(hosts_are_silent, lab_teardown),
		cmocka_unit_test(killed_launcher_leaves_nothing_far_away),
	};

	unsetenv("GRIDCOLL_LAB");
	return cmocka_run_group_tests(tests, places_up, places_down);
}
