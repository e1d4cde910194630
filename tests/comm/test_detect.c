/* SPDX-License-Identifier: MIT
 * How soon ranks learn that one of them, or the launcher, is dead or stands still: by clocks, but
 * only in relation to the profile's time after which silence is death. */
#include "tests/harness.h"

#include "base/clock.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RANKS   4
#define DEAD_NS (4 * GCI_NS_PER_S) /* of --timers fast */

struct times {
	uint64_t event_ns, first_ns, last_ns;
	int n;
	char text[1024]; /* of the last one */
};

static char path[] = "/tmp/gridcoll-detect-XXXXXX";

static int setup(void **state)
{
	int fd;

	(void)state;
	strcpy(strrchr(path, '-'), "-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	return 0;
}

static struct times read_times(void)
{
	struct times t = {.first_ns = UINT64_MAX};
	char line[1200], who[16];
	FILE *f = fopen(path, "r");
	uint64_t ns;
	int at;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		assert_int_equal(sscanf(line, "%15s %" SCNu64 " %n", who, &ns, &at), 2);
		if (!strcmp(who, "event")) {
			t.event_ns = ns;
			continue;
		}
		t.n++;
		t.first_ns = ns < t.first_ns ? ns : t.first_ns;
		t.last_ns = ns > t.last_ns ? ns : t.last_ns;
		snprintf(t.text, sizeof(t.text), "%s", line + at);
	}
	fclose(f);
	return t;
}

static double in_deads(uint64_t from_ns, uint64_t to_ns)
{
	return ((double)to_ns - (double)from_ns) / (double)DEAD_NS;
}

/* All survivors at about the same time, half of that of death after each other at most. The bounds
 * leave room for tests that run beside this one; "at once" is still sooner than by silence. */
static void expect_times(const struct times *t, int n, double least, double most, const char *why)
{
	double first = in_deads(t->event_ns, t->first_ns);
	double spread = in_deads(t->first_ns, t->last_ns);

	print_message("told after %.3f of the time of death, within %.3f\n", first, spread);
	if (t->n != n || !strstr(t->text, why))
		fail_msg("%d of %d ranks told \"%s\", expected \"%s\"", t->n, n, t->text, why);
	assert_true(t->event_ns > 0);
	assert_true(first >= least && first <= most);
	assert_true(spread <= 0.5);
}

static void one_of_them(const char *what, double least, double most, const char *why)
{
	struct times t;
	struct job j = {0};

	job_start(&j, NULL, "-n", "4", "--timers", "fast", env_path("GRIDCOLL_TEST_DETECT"), path,
		what, NULL);
	assert_int_not_equal(job_wait(&j), 0);
	t = read_times();
	expect_times(&t, RANKS - 1, least, most, why);
	job_free(&j);
	await_processes(path, 0);
}

/* Its sockets and its process tell at once. */
static void a_rank_is_killed(void **state)
{
	(void)state;
	one_of_them("kill", 0, 0.6, "rank 1 ");
}

/* Its kernel answers for it: only the beats tell. */
static void a_rank_stands_still(void **state)
{
	(void)state;
	one_of_them("stop", 0.75, 2.5, "rank 1 on local1: no sign of life for 4 s");
}

static void the_launcher_stands_still(void **state)
{
	uint64_t end_ns, event_ns;
	struct times t;
	struct job j = {0};

	(void)state;
	job_start(&j, NULL, "-n", "4", "--timers", "fast", env_path("GRIDCOLL_TEST_DETECT"), path,
		NULL);
	job_await(&j, "ready");
	event_ns = gci_now_ns();
	kill(j.pid, SIGSTOP);
	for (end_ns = event_ns + 5 * DEAD_NS; gci_now_ns() < end_ns && read_times().n < RANKS;)
		gci_sleep_ns(20 * GCI_NS_PER_MS);
	kill(j.pid, SIGCONT);
	t = read_times();
	t.event_ns = event_ns;
	expect_times(&t, RANKS, 0.75, 2.5, "launcher");
	assert_int_not_equal(job_wait(&j), 0);
	job_free(&j);
	await_processes(path, 0);
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_rank_is_killed),
		T(a_rank_stands_still),
		T(the_launcher_stands_still),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
