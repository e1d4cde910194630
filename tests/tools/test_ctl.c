/* SPDX-License-Identifier: MIT
 * gridcoll ctl: a running job is asked, and told. */
#include "base/clock.h"
#include "base/mem.h"
#include "tests/tools/jobs.h"
#include "transport/report.h"

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static const char grid_text[] = "[cluster a]\nhosts = localhost\nnic = 1Gbit\n"
				"[cluster b]\nhosts = 127.0.0.1\nnic = 1Gbit\n"
				"[link a b]\nrate = 10Gbit\ndelay = 1ms\n";

/* What a command prints, both ways together; its exit status. */
static int ask(char *out, size_t size, const char *job, const char *arguments)
{
	char command[512];
	size_t n;
	FILE *f;
	int rc;

	snprintf(command, sizeof(command), "%s ctl %s %s 2>&1", GRIDCOLL, job, arguments);
	f = popen(command, "re");
	assert_non_null(f);
	n = fread(out, 1, size - 1, f);
	out[n] = '\0';
	rc = pclose(f);
	return WIFEXITED(rc) ? WEXITSTATUS(rc) : -1;
}

#define ASK(status, says, job, arguments)                                        \
	do {                                                                     \
		assert_int_equal(ask(out, sizeof(out), job, arguments), status); \
		if (!strstr(out, says))                                          \
			fail_msg("%s %s: %s", job, arguments, out);              \
	} while (0)

/* ---- bytes over time, from the file of --stats */

#define BINS   (1 << 17) /* 22 minutes of them: more than a test may take */
#define WINDOW 50        /* bins: half a second */

/* From a to b. */
struct course {
	uint64_t first; /* number of at[0] */
	uint64_t at[BINS];
	uint64_t end; /* what is here ends before at[end] */
};

static void read_line(const char *text, struct course *c)
{
	json_t *line = json_loads(text, 0, NULL), *from = json_object_get(line, "from"), *list;
	uint64_t bin = (uint64_t)json_integer_value(json_object_get(line, "first_bin"));
	size_t i;

	list = json_object_get(line, "bytes");
	for (i = 0; from && !strcmp(json_string_value(from), "a") && i < json_array_size(list);
		i++) {
		uint64_t n = bin + i - c->first;

		if (n >= BINS)
			continue;
		c->at[n] = (uint64_t)json_integer_value(json_array_get(list, i));
		c->end = n + 1 > c->end ? n + 1 : c->end;
	}
	json_decref(line);
}

static void read_course(const char *path, struct course *c)
{
	static char line[1 << 18];
	FILE *f = fopen(path, "re");

	/* There may be no file yet, and half of its last line. */
	while (f && fgets(line, sizeof(line), f) && strchr(line, '\n'))
		read_line(line, c);
	if (f)
		fclose(f);
}

static int window_is_within(
	const struct course *c, uint64_t from, double least, double most, uint64_t *nbytes)
{
	uint64_t i;

	for (i = *nbytes = 0; i < WINDOW; i++)
		*nbytes += c->at[from + i];
	return (double)*nbytes >= least && (double)*nbytes <= most;
}

/* Until there are two half seconds behind each other, from bin `from` on, with `least` to `most`
 * bytes each: one alone may be a change on its way to another rate. Returns the first bin, and the
 * bytes of the later one in *nbytes. */
static uint64_t await_windows(
	struct course *c, uint64_t from, double least, double most, uint64_t *nbytes)
{
	uint64_t end_ns = gci_now_ns() + 60 * GCI_NS_PER_S, i;

	while (gci_now_ns() < end_ns) {
		read_course(in_scratch("stats"), c);
		for (i = from; i + 2 * WINDOW <= c->end; i++)
			if (window_is_within(c, i, least, most, nbytes) &&
				window_is_within(c, i + WINDOW, least, most, nbytes))
				return i;
		gci_sleep_ns(100 * GCI_NS_PER_MS);
	}
	fail_msg("no second with %.0f to %.0f bytes in each half", least, most);
	return 0;
}

/* A job of its own budget, on the same host. */
static void beside_it(void)
{
	struct job j = {0};

	setenv("GRIDCOLL_LOG", "warn", 1); /* whatever this test was given */
	job_start(&j, NULL, "--grid", in_scratch("two.grid"), "--wan-budget", "a>b=1Gbit", "--pace",
		"user", GRIDCOLL, "bench", "barrier", "--iters", "1", NULL);
	assert_int_equal(job_wait(&j), 0);
	/* One of the host's ranks says so, by its own name for it. */
	if (!strstr(job_err(&j), "another job paces what localhost sends by lo, too") &&
		!strstr(job_err(&j), "another job paces what 127.0.0.1 sends by lo, too"))
		fail_msg("%s", job_err(&j));
	job_free(&j);
}

/* Sixteen megabytes at a megabit per second would take minutes, and arrive whole at once when the
 * budget is another; gridcoll bench verifies every result. */
static void a_budget_changes_in_mid_operation(void **state)
{
	char job[16], out[1024];
	struct job j = {0};
	int i;

	(void)state;
	make_text(in_scratch("two.grid"), grid_text);
	job_start(&j, NULL, "--grid", in_scratch("two.grid"), "--wan-budget", "a>b=1Mbit", "--pace",
		"user", GRIDCOLL, "bench", "bcast", "--bytes", "16MiB", "--iters", "1", NULL);
	snprintf(job, sizeof(job), "%d", (int)j.pid);
	for (i = 0; i < 3000 && ask(out, sizeof(out), job, "status"); i++)
		gci_sleep_ns(10 * GCI_NS_PER_MS);
	ASK(0, "a > b  rate 10Gbit, budget 1Mbit\n  b > a  rate 10Gbit, budget none", job,
		"status");
	gci_sleep_ns(GCI_NS_PER_S); /* it is at work */
	assert_int_equal(kill(j.pid, 0), 0);
	beside_it();
	ASK(1, "unknown cluster c, expected one of: a, b", job, "budget 'c>b=1Gbit'");
	ASK(0, "", job, "budget 'a>b=4Gbit' 'b>a=500Mbit'");
	ASK(0, "a > b  rate 10Gbit, budget 4Gbit\n  b > a  rate 10Gbit, budget 500Mbit", job,
		"status");
	assert_int_equal(job_wait(&j), 0);
	if (!strstr(job_out(&j), "result was verified"))
		fail_msg("%s", job_out(&j));
	ASK(1, "no job answers", job, "status");
	job_free(&j);
}

/* `ratio` times as many bytes in half a second as `before`, after the budget is another. */
static void change(
	struct course *c, const char *job, const char *budget, uint64_t before, double ratio)
{
	uint64_t told, at, nbytes;
	char out[1024];

	ASK(0, "", job, budget);
	told = gci_wall_ns() / GCI_BIN_NS - c->first;
	at = await_windows(
		c, told, 0.85 * ratio * (double)before, 1.15 * ratio * (double)before, &nbytes);
	print_message("%s: %.2f times as much, from %d ms on\n", budget,
		(double)nbytes / (double)before, (int)(at - told) * 10);
}

/* While one operation runs it gets four times as much, and then half: bytes over time show it, and
 * its result is right. */
static void a_changed_budget_is_seen_in_what_is_sent(void **state)
{
	struct course *c = gci_calloc(1, sizeof(*c));
	struct job j = {0};
	char job[16], out[1024];
	uint64_t slow;

	(void)state;
	assert_non_null(c);
	c->first = gci_wall_ns() / GCI_BIN_NS;
	make_text(in_scratch("two.grid"), grid_text);
	job_start(&j, NULL, "--grid", in_scratch("two.grid"), "--wan-budget", "a>b=8Mbit", "--pace",
		"user", "--stats", in_scratch("stats"), GRIDCOLL, "bench", "bcast", "--bytes",
		"32MiB", "--iters", "1", NULL);
	snprintf(job, sizeof(job), "%d", (int)j.pid);
	/* Of 8 Mbit/s half a megabyte. */
	await_windows(c, 0, 400000, 520000, &slow);
	change(c, job, "budget 'a>b=32Mbit'", slow, 4);
	change(c, job, "budget 'a>b=4Mbit'", slow, 0.5);
	ASK(0, "", job, "budget 'a>b=off'");
	assert_int_equal(job_wait(&j), 0);
	if (!strstr(job_out(&j), "result was verified"))
		fail_msg("%s", job_out(&j));
	job_free(&j);
	gci_free(c);
}

static void what_is_wrong_is_said(void **state)
{
	char out[1024];

	(void)state;
	ASK(0, "usage: gridcoll ctl", "", "--help");
	ASK(2, "no verb, expected status or budget", "", "");
	ASK(2, "no verb, expected status or budget", "1", "");
	ASK(2, "stop, expected status or budget", "", "stop");
	ASK(2, "stop, expected status or budget", "1", "stop");
	ASK(2, "expected nothing behind status", "1", "status now");
	ASK(2, "nothing behind budget, expected FROM>TO=RATE", "1", "budget");
	ASK(2, "\"a=b\", expected FROM>TO=RATE", "1", "budget 'a>b=1Gbit' a=b");
	ASK(1, "no job answers at", "1", "status");
	ASK(1, "expected the process id", "x", "status");
}

static void options_of_the_launcher(void **state)
{
	(void)state;
	RUN(2, "gridcoll-run: --pace \"fast\", expected auto, fq, tcp, htb, edt, user or off\n",
		"--pace", "fast", "true");
	RUN(2, "gridcoll-run: --wan-budget a>b=1Gbit: with --pace off nobody keeps a budget\n",
		"--pace", "off", "--wan-budget", "a>b=1Gbit", "true");
	RUN_LINE(2, "gridcoll-run: --wan-budget \"a>b\", expected FROM>TO=RATE",
		"or off in place of the rate", "--wan-budget", "a>b", "true");
	RUN_LINE(2, "gridcoll-run: --wan-budget a>b=1Gbit: unknown cluster a, expected one of", "",
		"--wan-budget", "a>b=1Gbit", "true");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_budget_changes_in_mid_operation),
		TEST(a_changed_budget_is_seen_in_what_is_sent),
		TEST(what_is_wrong_is_said),
		TEST(options_of_the_launcher),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
