/* SPDX-License-Identifier: MIT
 * A job's launcher, its agents or its ranks ask for memory, or something of the system, and do not
 * get it: once in a run, at one place of the program after the other (processes.c; a sample of
 * them, or with GCI_ALL all). Then the job succeeds all the same, or ends with an error that says
 * something; in both cases soon, and nothing is left behind. */
#include "tests/harness.h"

#include "base/file.h"
#include "base/mem.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_PLACES (1u << 20)
#define SAMPLE      "7"

static char places[64], stats[64];
static int all;               /* that have had their turn */
static struct gci_buf failed; /* where calls have */

static int open_files(void **state)
{
	(void)state;
	snprintf(places, sizeof(places), "/tmp/gridcoll-places-XXXXXX");
	snprintf(stats, sizeof(stats), "/tmp/gridcoll-stats-XXXXXX");
	close(mkstemp(places));
	close(mkstemp(stats));
	setenv("GCI_FAILED_PLACES", places, 1);
	if (!getenv("GCI_ALL"))
		setenv("GCI_FAIL_ONE_IN", SAMPLE, 1);
	return 0;
}

/* How many there are by now. */
static int count(void)
{
	struct gci_error e = {0};

	gci_buf_free(&failed);
	assert_int_equal(gci_file_read(places, MOST_PLACES, &failed, &e), 0);
	return occurrences(gci_buf_cstr(&failed), "\n");
}

/* The last one. */
static const char *where(void)
{
	const char *text = gci_buf_cstr(&failed), *p = text + strlen(text);

	while (p > text && !(p[-1] == '\n' && *p))
		p--;
	return p;
}

static int close_files(void **state)
{
	(void)state;
	print_message(
		"the last one: %s", count() ? where() : "none\n"); /* where one does not end */
	jobs_end();
	unsetenv("GCI_FAIL_ANEW");
	gci_buf_free(&failed);
	return unlink(places) || unlink(stats);
}

static void complain(struct job *j, int status, const char *what)
{
	fail_msg("%s; status %d, after %shad failed; it had said:\n%s%s", what, status, where(),
		job_out(j), job_err(j));
}

static void judge(struct job *j, int status, int nranks)
{
	const char *err = job_err(j);

	if (strstr(err, "Sanitizer") || strstr(err, "runtime error") || status == 128 + SIGSEGV ||
		status == 128 + SIGABRT)
		complain(j, status, "it crashed");
	if (status && !strstr(err, "gridcoll-run: "))
		complain(j, status, "it failed without a word");
	if (!status && occurrences(job_out(j), "done\n") != nranks)
		complain(j, status, "it did not do its work");
}

/* Of the processes whose first argument is `who`. */
static void each_place(const char *who, int nranks, const char *const *options)
{
	const char *argv[24], *job = env_path("GRIDCOLL_TEST_CALLS_JOB");
	int i, n, status, known;

	for (n = 0; options[n]; n++)
		argv[n] = options[n];
	argv[n++] = job;
	argv[n++] = "work";
	argv[n++] = long_sleep(); /* to be found by */
	argv[n] = NULL;
	setenv("GCI_FAIL_ANEW", who, 1);
	for (known = count(), i = 0;; i++) {
		struct job j = {0};

		job_startv(&j, NULL, argv);
		status = job_wait(&j);
		n = count();
		judge(&j, status, nranks);
		await_processes(long_sleep(), 0);
		job_free(&j);
		if (n == known)
			break;
		known = n;
	}
	print_message("%s: %d places\n", who, i);
	all += i;
}

static const char *const *on_one_host(void)
{
	static const char *argv[] = {"-n", "3", "--security", "encrypt", "--timers", "fast",
		"--start-timeout", "20s", "--stats", stats, NULL};

	return argv;
}

static const char *const *of_a_grid(void)
{
	static const char *argv[] = {"--grid", NULL, "--per-host", "2", "--timers", "fast",
		"--start-timeout", "20s", "--survive", NULL};

	argv[1] = env_path("GRIDCOLL_TEST_GRID");
	return argv;
}

static void the_launcher(void **state)
{
	(void)state;
	each_place("-n", 3, on_one_host());
	each_place("--grid", 4, of_a_grid());
}

static void the_agents(void **state)
{
	(void)state;
	each_place("--agent", 3, on_one_host());
	each_place("--agent", 4, of_a_grid());
}

static void the_ranks(void **state)
{
	(void)state;
	each_place("work", 3, on_one_host());
	each_place("work", 4, of_a_grid());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_launcher, open_files, close_files),
		cmocka_unit_test_setup_teardown(the_agents, open_files, close_files),
		cmocka_unit_test_setup_teardown(the_ranks, open_files, close_files),
	};

	int rc = cmocka_run_group_tests(tests, NULL, NULL);

	print_message("together: %d\n", all);
	return rc || all < 10;
}
