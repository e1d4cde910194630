/* SPDX-License-Identifier: MIT
 * Jobs of gridcoll's own commands, on top of tests/harness.h. `gridcoll` is in $GRIDCOLL. */
#ifndef GCI_TESTS_TOOLS_JOBS_H
#define GCI_TESTS_TOOLS_JOBS_H

#include "tests/harness.h"
#include "tests/tools/files.h"

#define GRIDCOLL env_path("GRIDCOLL")

/* As RUN, but standard error only has to be one line that begins and ends so. */
#define RUN_LINE(status, begin, end, ...) \
	run_job_line((const char *const[]){__VA_ARGS__, NULL}, status, begin, end)
void run_job_line(const char *const *argv, int status, const char *begin, const char *end);

/* A grid file: the clusters near and far, 127.0.0.1 and 127.0.0.2. With --per-host N the first N
 * ranks are near. NICs have no rate: else jobs pace what they send by lo, and warn of those of tests
 * that run at the same time. */
const char *two_clusters(void);

/* Waits until rank `rank` has printed "pid N"; N. */
pid_t job_pid(struct job *j, int rank);

/* `text` must be one whole line. */
void assert_one_line(const char *text, const char *begin, const char *end);

/* Ends what jobs are left, then removes the test's files. */
int jobs_teardown(void **state);

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, jobs_teardown)

#endif
