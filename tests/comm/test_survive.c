/* SPDX-License-Identifier: MIT
 * Jobs that go on after the death of ranks: 8 ranks in 2 clusters, with all results checked. */
#include "tests/harness.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_EVENTS 8

static void start(struct job *j, const char *const *more, const char *const *events)
{
	const char *argv[24] = {
		"--survive", "--grid", env_path("GRIDCOLL_TEST_GRID"), "--per-host", "4"};
	int n = 5;

	for (; *more; more++)
		argv[n++] = *more;
	argv[n++] = env_path("GRIDCOLL_TEST_SURVIVE");
	for (; *events; events++)
		argv[n++] = *events;
	job_startv(j, NULL, argv);
}

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

/* `survivors` of them end in epoch `epoch` (0: any; of several deaths in one round, some may come
 * late), with each result right, and the job ends well. */
static void expect_done(struct job *j, int survivors, int epoch)
{
	char what[64];
	int rc = job_wait(j), r;

	if (rc)
		fail_msg("exit status %d: %s%s", rc, job_out(j), job_err(j));
	for (r = 0; r < survivors; r++) {
		int n = snprintf(what, sizeof(what), "done: rank %d of %d in epoch ", r, survivors);

		if (epoch)
			snprintf(what + n, sizeof(what) - (size_t)n, "%d\n", epoch);
		if (occurrences(job_out(j), what) != 1)
			fail_msg("expected \"%s\", got: %s%s", what, job_out(j), job_err(j));
	}
	assert_int_equal(occurrences(job_out(j), "done: "), survivors);
}

static void expect_err(struct job *j, const char *what)
{
	if (!strstr(job_err(j), what))
		fail_msg("expected \"%s\", got: %s", what, job_err(j));
}

static void run(int survivors, int epoch, const char *const *events, const char *what)
{
	struct job j = {0};

	start(&j, LIST("--timers", "fast"), events);
	expect_done(&j, survivors, epoch);
	expect_err(&j, what);
	job_free(&j);
}

static void nobody_dies(void **state)
{
	struct job j = {0};

	(void)state;
	start(&j, LIST("--timers", "default"), LIST("nothing"));
	expect_done(&j, 8, 1);
	assert_string_equal(job_err(&j), "");
	job_free(&j);
}

static void one_dies(void **state)
{
	struct job j = {0};

	(void)state;
	start(&j, LIST("--timers", "fast"), LIST("kill:5@3"));
	expect_done(&j, 7, 2);
	expect_err(&j, "gridcoll-run: rank 5 on 127.0.0.2 failed: killed by signal 9 (Killed)\n");
	expect_err(&j, "gridcoll-run: epoch 2: 7 of 8 ranks go on, without rank 5 on 127.0.0.2\n");
	assert_int_equal(occurrences(job_err(&j), "gridcoll-run: "), 2);
	assert_null(strstr(job_err(&j), "lost stream")); /* the cause, and no more */
	/* All that live were told the one cause. */
	assert_int_equal(occurrences(job_out(&j), "rank 5 on 127.0.0.2 was killed by signal 9"), 7);
	assert_int_equal(occurrences(job_out(&j), "failed: rank 5, which is -1 now\n"), 7);
	job_free(&j);
}

/* That all connections end is not told on its way out. */
static void it_is_interrupted(void **state)
{
	struct job j = {0};
	int i;

	(void)state;
	for (i = 0; i < 5; i++) {
		start(&j, LIST("--timers", "fast", "--security", "encrypt"), LIST("endless"));
		job_await(&j, "round 3\n");
		assert_int_equal(kill(j.pid, i % 2 ? SIGTERM : SIGINT), 0);
		assert_int_not_equal(job_wait(&j), 0);
		if (strstr(job_err(&j), "lost stream"))
			fail_msg("%s", job_err(&j));
		job_free(&j);
	}
}

static void one_dies_beside_a_progress_thread(void **state)
{
	(void)state;
	run(7, 2, LIST("thread", "kill:2@3"), "7 of 8 ranks go on, without rank 2");
}

static void roots_and_gateways_die(void **state)
{
	struct job j = {0};

	(void)state;
	start(&j, LIST("--timers", "fast"), LIST("kill:0@0", "kill:4@2"));
	expect_done(&j, 6, 3);
	expect_err(&j, "epoch 3: 6 of 7 ranks go on, without rank 4");
	/* The second one by its number in the second world. */
	assert_int_equal(occurrences(job_out(&j), "failed: rank 0, which is -1 now\n"), 7);
	assert_int_equal(occurrences(job_out(&j), "failed: rank 3, which is -1 now\n"), 6);
	job_free(&j);
}

static void a_cluster_dies(void **state)
{
	(void)state;
	run(4, 0, LIST("kill:4@4", "kill:5@4", "kill:6@4", "kill:7@4"), ": 4 of ");
}

static void one_more_dies_in_the_shrink(void **state)
{
	(void)state;
	run(6, 2, LIST("kill:6@2", "shrinkless:1@2"), "6 of 8 ranks go on, without ranks 1,6");
}

static void one_more_dies_right_after_it(void **state)
{
	(void)state;
	run(6, 3, LIST("kill:6@2", "newborn:3@2"), "epoch 3: 6 of 7 ranks go on, without rank 3");
}

static void all_but_one_die(void **state)
{
	(void)state;
	run(1, 0,
		LIST("kill:0@1", "kill:1@1", "kill:2@1", "kill:7@3", "kill:6@3", "kill:5@3",
			"kill:3@5"),
		": 1 of ");
}

static void one_dies_while_others_agree(void **state)
{
	(void)state;
	run(7, 2, LIST("agree:3@4"), "7 of 8 ranks go on, without rank 3");
}

static void an_abort_loses_nobody(void **state)
{
	(void)state;
	run(8, 2, LIST("abort:1@5"), "once more, please");
}

static void one_leaves(void **state)
{
	struct job j = {0};

	(void)state;
	start(&j, LIST("--timers", "fast"), LIST("kill:5@3", "leave:2@3"));
	expect_done(&j, 6, 2);
	assert_int_equal(occurrences(job_out(&j), "left\n"), 1);
	job_free(&j);
}

/* Its process lives, and must not be in the way of those who go on, nor be left behind. */
static void a_stopped_rank_is_left_out(void **state)
{
	(void)state;
	run(7, 2, LIST("stop:6@2"), "without rank 6");
}

/* Nobody tells of its processes' end, then, and nobody waits for that. */
static void a_host_dies_without_a_word(void **state)
{
	(void)state;
	run(4, 2, LIST("stop:4@2", "stop:5@2", "stop:6@2", "host:7@2"), ": 4 of 8 ranks go on");
}

static void who_is_late_is_left_out(void **state)
{
	struct job j = {0};

	(void)state;
	start(&j, LIST("--shrink-timeout", "5s"), LIST("kill:5@1", "late:1@1"));
	expect_done(&j, 6, 2);
	expect_err(&j, "rank 1 on 127.0.0.1 did not come to gcoll_comm_shrink within 5 s");
	job_free(&j);
}

static void encrypted(void **state)
{
	struct job j = {0};

	(void)state;
	start(&j, LIST("--security", "encrypt"), LIST("kill:0@3"));
	expect_done(&j, 7, 2);
	job_free(&j);
}

/* The ports that ranks were given are theirs in every epoch. */
static void behind_a_firewall(void **state)
{
	struct job j = {0};

	(void)state;
	start(&j, LIST("--port-range", "27200-27216"), LIST("kill:3@1", "kill:7@3"));
	expect_done(&j, 6, 3);
	job_free(&j);
}

static void without_the_option_the_job_ends(void **state)
{
	struct job j = {0};

	(void)state;
	job_start(&j, NULL, "-n", "4", env_path("GRIDCOLL_TEST_SURVIVE"), "kill:2@3", NULL);
	assert_int_equal(job_wait(&j), 128 + 9);
	expect_err(&j, "rank 2 on local2 failed: killed by signal 9 (Killed)\n");
	expect_err(&j, "ends with its first failure, expected gridcoll-run --survive\n");
	assert_int_equal(occurrences(job_out(&j), "done: "), 0);
	job_free(&j);
}

/* With --sample only what is enough under a sanitizer of threads. */
int main(int argc, char **argv)
{
	const struct CMUnitTest sample[] = {
		cmocka_unit_test(nobody_dies),
		cmocka_unit_test(one_dies),
		cmocka_unit_test(it_is_interrupted),
		cmocka_unit_test(one_dies_beside_a_progress_thread),
		cmocka_unit_test(an_abort_loses_nobody),
		cmocka_unit_test(encrypted),
	};
	const struct CMUnitTest more[] = {
		cmocka_unit_test(roots_and_gateways_die),
		cmocka_unit_test(a_cluster_dies),
		cmocka_unit_test(one_more_dies_in_the_shrink),
		cmocka_unit_test(one_more_dies_right_after_it),
		cmocka_unit_test(all_but_one_die),
		cmocka_unit_test(one_dies_while_others_agree),
		cmocka_unit_test(one_leaves),
		cmocka_unit_test(a_stopped_rank_is_left_out),
		cmocka_unit_test(a_host_dies_without_a_word),
		cmocka_unit_test(who_is_late_is_left_out),
		cmocka_unit_test(behind_a_firewall),
		cmocka_unit_test(without_the_option_the_job_ends),
	};
	int failed = cmocka_run_group_tests(sample, NULL, NULL);

	if (argc < 2 || strcmp(argv[1], "--sample") != 0)
		failed += cmocka_run_group_tests(more, NULL, NULL);
	return failed;
}
