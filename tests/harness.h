/* SPDX-License-Identifier: MIT
 * Runs gridcoll-run (its path in $GRIDCOLL_RUN) and watches what becomes of it.
 *
 *	struct job j;
 *	job_start(&j, NULL, "-n", "2", "echo", "hi", NULL);
 *	assert_int_equal(job_wait(&j), 0);
 *	assert_string_equal(job_out(&j), "[0] hi\n[1] hi\n");
 *	job_free(&j);
 *
 * A job that does not end within a minute is killed and fails the test. What a failed test leaves
 * behind ends with jobs_end, or with the test's process. Not for several threads. */
#ifndef GCI_TESTS_HARNESS_H
#define GCI_TESTS_HARNESS_H

#include "tests/test.h"

#include "base/buf.h"

#include <sys/types.h>

struct job {
	pid_t pid;
	int out, err;  /* files */
	int keep_out;  /* standard output is this descriptor instead */
	int own_group; /* leads a process group of its own */
	struct gci_buf out_text, err_text;
};

#define job_start(j, input, ...) job_startv(j, input, (const char *const[]){__VA_ARGS__})

/* `input`: a file's path, or NULL for /dev/null. argv without gridcoll-run itself. */
void job_startv(struct job *j, const char *input, const char *const *argv);

/* By how much more time than on an idle machine things take: $GRIDCOLL_TEST_PATIENCE (1), which goes with meson's
 * --timeout-multiplier. */
int test_patience(void);

/* Exit status, or 128 + signal. */
int job_wait(struct job *j);

/* Ends all jobs that nobody has waited for, for a test's teardown; done when the process exits. */
void jobs_end(void);

const char *job_out(struct job *j);
const char *job_err(struct job *j);

/* The job, with fast timers, missed some ranks (more than have failed, where the machine is busy), and
 * `last` is the last that it said. */
void job_expect_silence(struct job *j, const char *last);
void job_free(struct job *j);

/* gridcoll-run's arguments in, exit status and all of standard error compared. */
#define RUN(status, message, ...) run_job((const char *const[]){__VA_ARGS__, NULL}, status, message)
void run_job(const char *const *argv, int status, const char *message);

/* Lines of `text`, sorted. In place. */
char *sorted(const char *text);

/* Waits until the job's output holds `text`, or its messages do. */
void job_await(struct job *j, const char *text);
void job_await_err(struct job *j, const char *text);

/* How many processes have `what` in their command line (arguments with a space between), ourselves
 * not counted. A shell's child has that of the shell until it becomes another program. */
int processes(const char *what);

/* Waits until there are `n` of them. */
void await_processes(const char *what, int n);

/* Skips the test where orphans are not given to an ancestor that asks for them (QEMU's emulation of
 * Linux has no such call): there, who has left its parent is not found when a job ends. */
void need_adoption(void);

/* Paths of the test programs. */
const char *peer(void);
const char *env_path(const char *name);

/* What system() says to a command of at most 2047 bytes. */
int run_shell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* A number to sleep for, or just to be found by, that no other process has. */
const char *long_sleep(void);

#endif
