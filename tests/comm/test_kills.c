/* SPDX-License-Identifier: MIT
 * Real jobs in which ranks are killed, and now and then an agent or the launcher: each by a seed.
 *
 *	test_kills [--seed S] [--jobs N | --kills N] [--verbose]
 *
 * Jobs have the seeds S, S + 1, ...; as many as are said, or until so many ranks were killed. Each
 * must end as kills_judge has it, in time, and leave nothing: no process, no file, no mount. */
#include "tests/comm/kills.h"
#include "tests/harness.h"

#include "base/clock.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEAD_NS    (4 * GCI_NS_PER_S) /* of --timers fast */
#define MOST_JOBS  100000
#define MOST_WRONG 20 /* then it ends */

static uint64_t first_seed = 1;
static int njobs, nkills, verbose;
static char dir[] = "/tmp/gridcoll-kills-XXXXXX", log_path[64], tmp_path[64], run_path[64];
static int own_mounts;
static const struct kills_plan *current; /* of the job that runs */

static struct {
	int jobs, wrong, killed[KILLS_STOP + 1], missed;
	int vague;                    /* jobs whose launcher did not hear in time how a rank died */
	int finished, failed, shrunk; /* jobs, by what their survivors did */
	int ntimes;
	double ms[MOST_JOBS]; /* from a kill to the last return */
} sum;

/* ---- one job */

static void run(const struct kills_plan *p, struct kills_story *s, struct job *j)
{
	const struct kills_event *e = &p->events[0];
	const char *argv[KILLS_ARGS];
	uint64_t start_ns = gci_now_ns();
	int seen = 0, fd = open(log_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	close(fd);
	kills_plan_argv(p, log_path, argv);
	job_startv(j, NULL, argv);
	if (e->what != KILLS_EARLY)
		return;
	/* As soon as it is there, once the time has come. */
	gci_sleep_ns(e->after_ns);
	while (!s->event_ns[0] && gci_now_ns() < start_ns + DEAD_NS) {
		uint64_t now_ns = gci_now_ns();

		if (kills_signal_rank(e->rank, SIGKILL))
			s->event_ns[0] = now_ns;
		else if (seen && !kills_processes())
			return; /* too late */
		seen |= kills_processes() > 0;
		gci_sleep_ns(GCI_NS_PER_MS);
	}
}

/* A process that stops when it has left the job is its own business: the launcher waits for it,
 * unless it has told of a failure. */
static void wake_leaver(const struct kills_plan *p, struct job *j)
{
	uint64_t end_ns = gci_now_ns() + 4 * DEAD_NS;
	int victim = p->events[0].rank;

	while (p->events[0].what == KILLS_STOP && gci_now_ns() < end_ns) {
		struct kills_story s = {0};

		gci_sleep_ns(50 * GCI_NS_PER_MS);
		kills_read(&s, p, log_path);
		if (s.ranks[victim].born && kills_processes() <= 1)
			return; /* only the launcher, about to end */
		if (s.event_ns[0] && gci_now_ns() > s.event_ns[0] + 2 * DEAD_NS &&
			s.ranks[victim].leaving && !strstr(job_err(j), " failed: "))
			kills_signal_all(SIGCONT);
	}
}

static void tell(const struct kills_plan *p, const char *why, struct job *j)
{
	char text[300];

	kills_plan_print(p, text, sizeof(text));
	print_message("%s: %s\n", text, why);
	if (j)
		run_shell("cat %s", log_path);
	if (j)
		print_message("%s%s", job_out(j), job_err(j));
}

static void count(const struct kills_story *s)
{
	int i, any = 0, stopped = 0;

	for (i = 0; i < s->plan->nevents; i++) {
		const struct kills_event *e = &s->plan->events[i];
		int late = e->what != KILLS_LAUNCHER && s->ranks[e->rank].left;

		sum.killed[e->what] += s->event_ns[i] && !late;
		any |= s->event_ns[i] && !late;
		stopped |= s->plan->events[i].what == KILLS_STOP && s->event_ns[i];
	}
	sum.missed += !any;
	sum.failed += any && s->nfailed;
	sum.shrunk += any && !s->nfailed && s->nshrunk;
	sum.finished += any && !s->nfailed && !s->nshrunk;
	if (s->longest_ns && !stopped && sum.ntimes < MOST_JOBS)
		sum.ms[sum.ntimes++] = (double)s->longest_ns / 1e6;
}

/* Death is known at once; only silence takes its time. */
static int in_time(const struct kills_story *s, char *why, size_t size)
{
	int stopped = s->plan->events[0].what == KILLS_STOP;
	uint64_t most_ns = stopped ? 2 * DEAD_NS : DEAD_NS;

	if (s->longest_ns <= most_ns)
		return 0;
	return snprintf(why, size, "told after %.3f s", (double)s->longest_ns / 1e9), -1;
}

/* One that does not end fails the test at once. */
static int hangs(void **state)
{
	(void)state;
	if (current)
		tell(current, "does not end", NULL);
	if (current)
		run_shell("cat %s", log_path);
	return 0;
}

static int leaves_nothing(const struct kills_story *s, int nmounts, char *why, size_t size)
{
	const char *const dirs[] = {tmp_path, run_path, NULL};
	int launcher = 0, i;

	for (i = 0; i < s->plan->nevents; i++)
		launcher |= s->plan->events[i].what == KILLS_LAUNCHER && s->event_ns[i];
	/* Nobody waits for the agents then; and the next job takes away the launcher's socket. */
	if (kills_leftovers(dirs, launcher, launcher ? 2 * DEAD_NS : 0, why, size))
		return -1;
	if (own_mounts && kills_mounts() > nmounts)
		return snprintf(why, size, "%d mounts, %d before", kills_mounts(), nmounts), -1;
	return 0;
}

static void one_job(uint64_t seed)
{
	struct kills_story s = {0};
	static struct kills_plan plan;
	struct job j = {0};
	int status, nmounts = kills_mounts();
	char why[1024] = "";

	kills_plan_make(&plan, seed);
	current = &plan;
	kills_mark(seed);
	if (verbose)
		tell(&plan, "", NULL);
	run(&plan, &s, &j);
	wake_leaver(&plan, &j);
	status = job_wait(&j);
	kills_read(&s, &plan, log_path);
	sum.jobs++;
	if (kills_judge(&s, status, job_err(&j), why, sizeof(why)) ||
		in_time(&s, why, sizeof(why)) || leaves_nothing(&s, nmounts, why, sizeof(why))) {
		sum.wrong++;
		tell(&plan, why, &j);
	} else {
		count(&s);
	}
	sum.vague += strstr(job_err(&j), "its control connection was lost") != NULL;
	if (verbose)
		print_message("%d victims, %d failed, %d shrunk, %.1f ms, status %d\n", s.nvictims,
			s.nfailed, s.nshrunk, (double)s.longest_ns / 1e6, status);
	job_free(&j);
	current = NULL;
}

/* ---- all */

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double quantile(double q)
{
	int at = (int)(q * (double)(sum.ntimes - 1) + 0.5);

	return sum.ntimes ? sum.ms[at] : 0;
}

static void table(void)
{
	const int *k = sum.killed;
	int i, late = 0;

	for (i = 0; i < sum.ntimes; i++)
		late += sum.ms[i] > 1000;

	qsort(sum.ms, (size_t)sum.ntimes, sizeof(*sum.ms), by_size);
	print_message("jobs %d from seed %" PRIu64 ": %d wrong, %d whose event came too late\n",
		sum.jobs, first_seed, sum.wrong, sum.missed);
	print_message("killed: %d ranks (%d of them at their start, from outside), %d agents, "
		      "%d launchers; stopped: %d ranks\n",
		k[KILLS_RANK] + k[KILLS_EARLY], k[KILLS_EARLY], k[KILLS_AGENT], k[KILLS_LAUNCHER],
		k[KILLS_STOP]);
	print_message("jobs whose survivors finished %d, returned the right error %d, shrank and "
		      "went on %d\n",
		sum.finished, sum.failed, sum.shrunk);
	print_message("jobs that were told less than the cause: %d\n", sum.vague);
	print_message("from a kill to the last survivor's return: median %.1f ms, 99 %% %.1f ms, "
		      "most %.1f ms; %d of %d jobs over 1 s\n",
		quantile(0.5), quantile(0.99), quantile(1), late, sum.ntimes);
}

static int all_killed(void)
{
	const int *k = sum.killed;

	if (nkills)
		return k[KILLS_RANK] + k[KILLS_EARLY] >= nkills;
	return sum.jobs >= njobs;
}

static void jobs_in_which_ranks_die(void **state)
{
	uint64_t seed;

	(void)state;
	for (seed = first_seed; !all_killed() && sum.wrong < MOST_WRONG; seed++)
		one_job(seed);
	table();
	assert_int_equal(sum.wrong, 0);
	assert_true(2 * sum.vague <= sum.jobs); /* where processors are scarce; else none */
	/* Nobody waits for silence to tell of a death. */
	assert_true(quantile(0.5) < (double)DEAD_NS / 4e6);
}

/* Mounts of others must not count. */
static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(log_path, sizeof(log_path), "%s/log", dir);
	snprintf(tmp_path, sizeof(tmp_path), "%s/tmp", dir);
	snprintf(run_path, sizeof(run_path), "%s/run", dir);
	if (mkdir(tmp_path, 0700) || mkdir(run_path, 0700))
		return -1;
	setenv("TMPDIR", tmp_path, 1);
	setenv("XDG_RUNTIME_DIR", run_path, 1);
	own_mounts = !unshare(CLONE_NEWNS) && !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return run_shell("rm -r %s", dir);
}

static int usage(void)
{
	fprintf(stderr, "usage: test_kills [--seed S] [--jobs N | --kills N] [--verbose]\n");
	return 2;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(jobs_in_which_ranks_die, hangs)};
	int i;

	njobs = TEST_SANITIZED ? 5 : 15;
	for (i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";

		if (!strcmp(argv[i], "--verbose")) {
			verbose = 1;
			continue;
		}
		i++;
		if (!strcmp(argv[i - 1], "--seed") && *value)
			first_seed = strtoull(value, NULL, 10);
		else if (!strcmp(argv[i - 1], "--jobs") && *value)
			njobs = atoi(value);
		else if (!strcmp(argv[i - 1], "--kills") && *value)
			nkills = atoi(value);
		else
			return usage();
	}
	if (njobs <= 0 || njobs > MOST_JOBS || nkills < 0 || nkills > MOST_JOBS / 4)
		return usage();
	return cmocka_run_group_tests(tests, setup, teardown);
}
