/* SPDX-License-Identifier: MIT
 * What gridcoll-run is told, by arguments and files: it does so, as far as a job on this machine or
 * --dry-run shows, or says in one message what is wrong. */
#include "tests/harness.h"
#include "tests/launcher/places.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void wrong_arguments(void **state)
{
	static const struct {
		const char *argv[6], *message;
	} cases[] = {
		{{"-n", "0", "x"}, "--np \"0\", expected a number from 1 to 65536"},
		{{"-n", "two", "x"}, "--np \"two\", expected a number from 1 to 65536"},
		{{"-n"}, "a value is missing after -n, see gridcoll-run --help"},
		{{"--grid"}, "a value is missing after --grid, see gridcoll-run --help"},
		{{"--gird", "x"}, "unknown option --gird, see gridcoll-run --help"},
		{{"-z", "x"}, "unknown option -z, see gridcoll-run --help"},
		{{"-n", "2"},
			"no command, expected: gridcoll-run [OPTION...] COMMAND [ARGUMENT...]"},
		{{"--timers", "slow", "x"}, "--timers \"slow\", expected default or fast"},
		{{"--interfaces", "eth0,10.0.0.0/40", "x"},
			"--interfaces: \"10.0.0.0/40\", expected interfaces or networks such as "
			"eth1, ib*, 10.1.0.0/16, fd00::/8, !docker0"},
		{{"--port-range", "99", "x"},
			"--port-range \"99\", expected two ports such as 5000-5099"},
		{{"--port-range", "9-8", "x"},
			"--port-range \"9-8\", expected two ports such as 5000-5099"},
		{{"--port-range", "1-65536", "x"},
			"--port-range \"1-65536\", expected two ports such as 5000-5099"},
		{{"--ssh-fanout", "1", "x"},
			"--ssh-fanout \"1\", expected a number from 2 to 65536"},
		{{"--data-path", "epoll", "x"},
			"--data-path \"epoll\", expected auto, poll or uring"},
		{{"--security", "on", "x"},
			"--security \"on\", expected auto, off, auth or encrypt"},
		{{"--ssh-timeout", "0s", "x"},
			"--ssh-timeout \"0s\", expected a time such as 50us, 10ms or 1.5s"},
		{{"--start-timeout", "5", "x"},
			"--start-timeout \"5\", expected a time such as 50us, 10ms or 1.5s"},
		{{"--per-host", "2", "x"},
			"--per-host 2: expected --grid, --hosts or --lab with it"},
		{{"--grid", "/nowhere/x.grid", "x"},
			"cannot read /nowhere/x.grid: No such file or directory"},
		{{"--hosts", "", "x"}, "--hosts \"\", expected a value that is not empty"},
		{{"--grid=", "x"}, "--grid \"\", expected a value that is not empty"},
		{{"-n", "2", ""},
			"no command, expected: gridcoll-run [OPTION...] COMMAND [ARGUMENT...]"},
		{{"--new-secret", "x"}, "--new-secret with a command, \"x\": expected none"},
		{{"--hosts", "a[1-", "x"},
			"--hosts: missing ']' in \"a[1-\", expected e.g. k[1-8]"},
		{{"--hosts", "a,a", "x"}, "--hosts: a is there twice, expected each host once"},
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

/* Nothing of lines that there are not, of what a file or an option is expected to be instead. */
static void what_is_expected(void **state)
{
	(void)state;
	RUN(2,
		"gridcoll-run: /dev/null:1: '[' or '{' expected near end of file, "
		"expected what gridcoll lab up writes\n",
		"--lab", "/dev/null", "true");
	assert_int_equal(
		run_shell(
			"GRIDCOLL_LAB=/nowhere/x %s lab link a up 2>&1 | grep -qx "
			"'gridcoll lab: error: cannot read /nowhere/x: No such file or directory'",
			env_path("GRIDCOLL")),
		0);
	assert_int_equal(run_shell("GRIDCOLL_LAB=/dev/null %s lab link a up 2>&1 | grep -q "
				   "'/dev/null:1: .* expected a lab.json'",
				 env_path("GRIDCOLL")),
		0);
	RUN(1,
		"gridcoll-run: cannot tell by which address other hosts reach this machine: "
		"x.invalid does not resolve here, nor do the others; expected --address with this "
		"machine's name or address\n",
		"--hosts", "localhost,x.invalid,y.invalid", "true");
}

static void wrong_files(void **state)
{
	static const struct {
		const char *option, *text, *message;
	} cases[] = {
		{"--grid", "[cluster a]\nhosts = x\nspeed = 9\n",
			":3: unknown key \"speed\" in [cluster a], expected hosts, nic, uplink, "
			"lan_delay, "
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
		const char *path = write_file("wrong", "%s", cases[i].text);
		char message[300];

		snprintf(message, sizeof(message), "gridcoll-run: %s%s\n", path, cases[i].message);
		RUN(2, message, cases[i].option, path, "true");
	}
}

/* Said once, before anything is started, and not by each rank. */
static void wrong_environment(void **state)
{
	static const struct {
		const char *name, *expected;
	} cases[] = {
		{"GRIDCOLL_PORT_RANGE", "two ports such as 5000-5099"},
		{"GRIDCOLL_SECURITY", "auto, off, auth or encrypt"},
		{"GRIDCOLL_DATA_PATH", "auto, poll or uring"},
		{"GRIDCOLL_PACE", "auto, fq, tcp, htb, edt, user or off"},
		{"GRIDCOLL_WARM", "on, now or off"},
	};
	struct job j = {0};
	char message[300];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		setenv(cases[i].name, "no good", 1);
		snprintf(message, sizeof(message), "gridcoll-run: %s=no good, expected %s\n",
			cases[i].name, cases[i].expected);
		job_start(&j, NULL, "-n", "2", "echo", "started", NULL);
		assert_int_equal(job_wait(&j), 2);
		assert_string_equal(job_out(&j), "");
		assert_string_equal(job_err(&j), message);
		job_free(&j);
		setenv(cases[i].name, "", 1);
		RUN(0, "", "true");
		unsetenv(cases[i].name);
	}
	/* The command line holds instead. */
	setenv("GRIDCOLL_PACE", "no good", 1);
	RUN(0, "", "--pace", "off", "true");
	unsetenv("GRIDCOLL_PACE");
}

static void files_to_write(void **state)
{
	struct job j = {.keep_out = open("/dev/full", O_WRONLY | O_CLOEXEC)};

	(void)state;
	RUN(2,
		"gridcoll-run: --stats: cannot write /nowhere/x: "
		"No such file or directory\n",
		"--stats", "/nowhere/x", "true");
	RUN(1,
		"gridcoll-run: error: --stats: cannot write /dev/full: No space left on device; no "
		"more is written, the job goes on\n",
		"--stats", "/dev/full", "true");
	RUN(2,
		"gridcoll-run: --secret-file: cannot make /nowhere/x: "
		"No such file or directory\n",
		"--serve", "127.0.0.1:0", "-n", "1", "--secret-file", "/nowhere/x");
	assert_true(j.keep_out > 0);
	job_start(&j, NULL, "--new-secret", NULL);
	assert_int_equal(job_wait(&j), 1);
	assert_string_equal(
		job_err(&j), "gridcoll-run: cannot print the secret: No space left on device\n");
	close(j.keep_out);
	job_free(&j);
}

/* As full queues may hold up what a rank says: 8 s and 100 ms here, there and back. */
static void slow_links_are_waited_for(void **state)
{
	const char *path = write_file("slow.grid", "[cluster a]\nhosts = localhost\n[cluster b]\n"
						   "hosts = 127.0.0.2\n[link a b]\nrate = 1Mbit\n"
						   "queue = 1MB\ndelay = 100ms\n");
	struct job j = {0};

	(void)state;
	job_start(&j, NULL, "--grid", path, peer(), "ok", NULL);
	assert_int_equal(job_wait(&j), 0);
	assert_non_null(strstr(job_out(&j), "dead 52400\n"));
	job_free(&j);
}

static void placement(void **state)
{
	const char *path =
		write_file("two.grid", "[cluster kyoto]\nhosts = k[1-2]\n"
				       "[cluster tokyo]\nhosts = localhost,t[1-2]\n"
				       "[link kyoto tokyo]\nrate = 1Gbit\ndelay = 1ms\n");
	struct job j = {0};

	(void)state;
	job_start(&j, NULL, "--grid", path, "--hosts", "localhost,k2", "--per-host", "2", "-n", "3",
		"--dry-run", "true", "a b", "--c=d", "", NULL);
	assert_int_equal(job_wait(&j), 0);
	assert_string_equal(job_out(&j),
		"rank 0: localhost, cluster tokyo, on this machine\n"
		"rank 1: localhost, cluster tokyo, on this machine\n"
		"rank 2: k2, cluster kyoto, by ssh\n"
		"ssh -oBatchMode=yes -oControlMaster=no -oConnectTimeout=11 -oConnectionAttempts=1 "
		"-oPermitLocalCommand=yes "
		"-oLocalCommand=echo -T k2 "
		"''\\''gridcoll-run'\\'' --agent'\n"
		"command: true 'a b' --c=d ''\n");
	job_free(&j);
}

static const char *grid_with_ports(void)
{
	return write_file("ports.grid", "[cluster kyoto]\nhosts = k[1-2]\ninterfaces = eth1, !ib0\n"
					"ports = 5000-5063\n[host k2]\ninterfaces = fd00::/8\n");
}

/* The command line, the environment, the host, the cluster. */
static void how_ranks_are_reached(void **state)
{
	const char *path = grid_with_ports();
	struct job j = {0};

	(void)state;
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
	RUN(2, "gridcoll-run: --hosts: k2 is there twice, expected each host once\n", "--grid",
		path, "--hosts", "k2,k1,k2", "true");
	RUN(2, "gridcoll-run: --hosts k3: expected hosts of the grid\n", "--grid", path, "--hosts",
		"k3", "true");
}

/* Told once, before anything is started; what only other hosts have is not for this one to refuse. */
static void what_this_machine_has_not(void **state)
{
	static const char *const cases[][4] = {
		{"--congestion", "warp", "--congestion: \"warp\" is not in this kernel",
			"GRIDCOLL_CONGESTION"},
		{"--interfaces", "nosuch0",
			"--interfaces: no address of this host matches the interfaces \"nosuch0\"",
			"GRIDCOLL_INTERFACES"}};
	struct job j = {0};
	char begin[200];
	size_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		job_start(&j, NULL, cases[i][0], cases[i][1], "-n", "3", "true", NULL);
		assert_int_equal(job_wait(&j), 2);
		snprintf(begin, sizeof(begin), "gridcoll-run: %s", cases[i][2]);
		assert_ptr_equal(strstr(job_err(&j), begin), job_err(&j));
		assert_int_equal(occurrences(job_err(&j), "\n"), 1);
		job_free(&j);
		job_start(&j, NULL, cases[i][0], cases[i][1], "--hosts", "elsewhere.invalid",
			"--dry-run", "true", NULL);
		assert_int_equal(job_wait(&j), 0);
		job_free(&j);
		setenv(cases[i][3], cases[i][1], 1);
		job_start(&j, NULL, "-n", "3", "true", NULL);
		unsetenv(cases[i][3]);
		assert_int_equal(job_wait(&j), 2);
		snprintf(begin, sizeof(begin), "gridcoll-run: %s: ", cases[i][3]);
		assert_ptr_equal(strstr(job_err(&j), begin), job_err(&j));
		job_free(&j);
	}
}

static void ranks_that_others_would_start(void **state)
{
	const char *path = grid_with_ports();
	struct job j = {0};

	(void)state;
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
}

/* However long what is wrong: it is said what is wrong with it. */
static void causes_have_room(void **state)
{
	static const struct {
		const char *option, *end, *cause;
	} cases[] = {
		{"--table", "", ": No such file or directory\n"},
		{"--params", "", ": No such file or directory\n"},
		{"--lab", "", ": No such file or directory\n"},
		{"--hosts", "[1-", ", expected e.g. k[1-8]\n"},
	};
	char value[800] = "";
	struct job j = {0};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		snprintf(value, sizeof(value), "/%0200d/%0200d/%0200d%s", 1, 2, 3, cases[i].end);
		job_start(&j, NULL, "-n", "2", cases[i].option, value, "true", NULL);
		assert_int_equal(job_wait(&j), 2);
		if (!strstr(job_err(&j), cases[i].cause))
			fail_msg("%s: %s", cases[i].option, job_err(&j));
		job_free(&j);
	}
}

/* Who names a file means it. */
static void useless_measurements(void **state)
{
	static const char *const options[] = {"--params", "--table"};
	const char *path = write_file("params", "{}");
	char message[400];
	struct job j = {0};
	int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		snprintf(message, sizeof(message), "gridcoll-run: %s:1: no version, expected 1\n",
			path);
		RUN(2, message, "-n", "2", options[i], path, "true");
		RUN(2, "gridcoll-run: cannot read /nowhere/x: No such file or directory\n", "-n",
			"2", options[i], "/nowhere/x", "true");
	}
	setenv("GRIDCOLL_TABLE", "/nowhere/x", 1);
	job_start(&j, NULL, "-n", "2", "true", NULL);
	unsetenv("GRIDCOLL_TABLE");
	assert_int_equal(job_wait(&j), 0);
	assert_string_equal(job_err(&j), "gridcoll-run: GRIDCOLL_TABLE: cannot read /nowhere/x: No "
					 "such file or directory; running with defaults\n");
	job_free(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_arguments),
		cmocka_unit_test(wrong_files),
		cmocka_unit_test(what_is_expected),
		cmocka_unit_test(causes_have_room),
		cmocka_unit_test(wrong_environment),
		cmocka_unit_test(files_to_write),
		cmocka_unit_test(slow_links_are_waited_for),
		cmocka_unit_test(placement),
		cmocka_unit_test(how_ranks_are_reached),
		cmocka_unit_test(what_this_machine_has_not),
		cmocka_unit_test(ranks_that_others_would_start),
		cmocka_unit_test(useless_measurements),
	};

	unsetenv("GRIDCOLL_LAB");
	return cmocka_run_group_tests(tests, places_up, places_down);
}
