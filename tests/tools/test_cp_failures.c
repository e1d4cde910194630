/* SPDX-License-Identifier: MIT
 * gridcoll cp when things go wrong: everything ends, with one message that names the rank, its host
 * and the cause; no file has its name unless it is whole; what was there before is untouched. */
#include "base/clock.h"
#include "tests/tools/jobs.h"
#include "tests/tools/limits.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#define PREFIX(rank) "gridcoll-run: rank " #rank " on local" #rank " failed: "

/* "Every rank ends within 5 s", and machines that do much else at the same time. */
#define PROMISE_NS (4 * 5 * GCI_NS_PER_S)

static const char *text(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static const char *text(const char *fmt, ...)
{
	static char out[2048];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(out, sizeof(out), fmt, ap);
	va_end(ap);
	return out;
}

/* Makes out/1 ... out/3, with a file of the source's name in each. */
static void make_outs(const char *name)
{
	int r;

	make_dir(in_scratch("out"));
	for (r = 1; r < 4; r++) {
		make_dir(in_scratch("out/%d", r));
		if (name)
			make_text(in_scratch("out/%d/%s", r, name), "was there before");
	}
}

static void assert_untouched(int rank, const char *name)
{
	assert_int_equal(entries(in_scratch("out/%d", rank)), 1);
	assert_text(in_scratch("out/%d/%s", rank, name), "was there before");
}

/* ---- sources */

static void no_source(void **state)
{
	(void)state;
	make_outs("a");
	RUN(1, text(PREFIX(0) "cannot read %s: No such file or directory\n", in_scratch("a")), "-n",
		"4", GRIDCOLL, "cp", in_scratch("a"), in_scratch("out/%%r/"));
	assert_untouched(1, "a");
	assert_untouched(2, "a");
	assert_untouched(3, "a");
}

/* All sources are looked at before any is sent. */
static void one_of_many_sources(void **state)
{
	(void)state;
	make_outs(NULL);
	make_file(in_scratch("a"), 100, 1);
	RUN(1, text(PREFIX(0) "cannot read %s: No such file or directory\n", in_scratch("b")), "-n",
		"4", GRIDCOLL, "cp", in_scratch("a"), in_scratch("b"), in_scratch("out/%%r"));
	assert_int_equal(entries(in_scratch("out/1")), 0);
}

static void source_is_directory(void **state)
{
	(void)state;
	make_outs("a");
	make_dir(in_scratch("a"));
	RUN(1,
		text(PREFIX(0) "%s is a directory, expected a regular file, or --recursive\n",
			in_scratch("a")),
		"-n", "4", GRIDCOLL, "cp", in_scratch("a"), in_scratch("out/%%r/"));
	assert_untouched(2, "a");
}

static void one_line_whatever_the_name(void **state)
{
	(void)state;
	RUN(1, PREFIX(0) "cannot read two?lines?[31m: No such file or directory\n", "-n", "2",
		GRIDCOLL, "cp", "two\nlines\x1b[31m", in_scratch("out/%%r/"));
}

/* What is wrong, though paths have no room. */
static void one_line_whatever_the_length(void **state)
{
	char name[251], path[2100];
	int i;

	(void)state;
	memset(name, 'n', 250);
	name[250] = '\0';
	snprintf(path, sizeof(path), "%s", in_scratch("."));
	for (i = 0; i < 8; i++)
		snprintf(path + strlen(path), sizeof(path) - strlen(path), "/%s", name);
	RUN_LINE(1, PREFIX(0) "cannot read /", "nnnnnn: No such file or directory", "-n", "2",
		GRIDCOLL, "cp", path, in_scratch("out/"));
	make_file(in_scratch("a"), 5, 1);
	RUN_LINE(1, PREFIX(1) "cannot write /", "nnnnnn: No such file or directory", "-n", "2",
		GRIDCOLL, "cp", in_scratch("a"), path);
	strcat(path, "%x");
	RUN_LINE(2, "gridcoll-run: rank ", "n%x\": expected %r (rank), %h (host) or %% after %",
		"-n", "2", GRIDCOLL, "cp", "a", path);
}

static void source_unreadable(void **state)
{
	(void)state;
	make_outs("a");
	make_file(in_scratch("a"), 100, 1);
	chmod(in_scratch("a"), 0);
	drop_override();
	RUN(1, text(PREFIX(0) "cannot read %s: Permission denied\n", in_scratch("a")), "-n", "4",
		GRIDCOLL, "cp", in_scratch("a"), in_scratch("out/%%r/"));
	assert_untouched(1, "a");
}

/* ---- destinations; those of the other ranks are fine */

static void no_destination(void **state)
{
	(void)state;
	make_outs("a");
	make_file(in_scratch("a"), 20 << 20, 1);
	unlink(in_scratch("out/2/a"));
	rmdir(in_scratch("out/2"));
	RUN(1,
		text(PREFIX(2) "cannot write %s: No such file or directory\n",
			in_scratch("out/2/a")),
		"-n", "4", GRIDCOLL, "cp", in_scratch("a"), in_scratch("out/%%r/a"));
	assert_untouched(1, "a");
	assert_untouched(3, "a");
}

static void destination_not_writable(void **state)
{
	(void)state;
	make_outs("a");
	make_file(in_scratch("a"), 20 << 20, 1);
	chmod(in_scratch("out/3"), 0555);
	drop_override();
	RUN(1, text(PREFIX(3) "cannot write %s: Permission denied\n", in_scratch("out/3/a")), "-n",
		"4", GRIDCOLL, "cp", in_scratch("a"), in_scratch("out/%%r/"));
	assert_untouched(1, "a");
	assert_untouched(2, "a");
	assert_untouched(3, "a");
	chmod(in_scratch("out/3"), 0755);
}

static void destination_is_directory(void **state)
{
	(void)state;
	make_outs("a");
	make_file(in_scratch("a"), 1000, 1);
	unlink(in_scratch("out/1/a"));
	make_dir(in_scratch("out/1/a"));
	RUN(1, text(PREFIX(1) "cannot write %s: it is a directory\n", in_scratch("out/1/a")), "-n",
		"4", GRIDCOLL, "cp", in_scratch("a"), in_scratch("out/%%r/"));
	assert_int_equal(entries(in_scratch("out/1")), 1);
	assert_int_equal(entries(in_scratch("out/1/a")), 0);
}

static void file_where_directory_should_be(void **state)
{
	(void)state;
	make_outs("x");
	make_file(in_scratch("a"), 1000, 1);
	RUN_LINE(1, "gridcoll-run: rank ", "/x: a file is called so", "-n", "4", GRIDCOLL, "cp",
		in_scratch("a"), in_scratch("out/%%r/x/"));
	assert_untouched(1, "x");
}

/* ---- disks */

static void disk_full_on_one_rank(void **state)
{
	(void)state;
	make_outs("a");
	make_file(in_scratch("a"), 100 << 20, 1);
	if (!small_disk(in_scratch("out/2"), "size=30m")) {
		print_message("no file system of our own: %s\n", strerror(errno));
		skip();
	}
	make_text(in_scratch("out/2/a"), "was there before");
	RUN(1, text(PREFIX(2) "cannot write %s: No space left on device\n", in_scratch("out/2/a")),
		"-n", "4", GRIDCOLL, "cp", in_scratch("a"), in_scratch("out/%%r/"));
	assert_untouched(1, "a");
	assert_untouched(2, "a");
	assert_untouched(3, "a");
	umount2(in_scratch("out/2"), MNT_DETACH);
}

/* The file's last bytes find no room: when all else has been sent. */
static void disk_full_at_the_end(void **state)
{
	(void)state;
	make_outs("b");
	make_file(in_scratch("a"), 10000, 1);
	make_file(in_scratch("b"), 9 << 20, 1);
	if (!small_disk(in_scratch("out/3"), "size=9m")) {
		print_message("no file system of our own: %s\n", strerror(errno));
		skip();
	}
	make_text(in_scratch("out/3/b"), "was there before");
	RUN(1, text(PREFIX(3) "cannot write %s: No space left on device\n", in_scratch("out/3/b")),
		"-n", "4", GRIDCOLL, "cp", in_scratch("a"), in_scratch("b"),
		in_scratch("out/%%r/"));
	/* The file before it is whole, and stays. */
	assert_same_files(in_scratch("a"), in_scratch("out/3/a"));
	assert_int_equal(entries(in_scratch("out/3")), 2);
	assert_text(in_scratch("out/3/b"), "was there before");
	umount2(in_scratch("out/3"), MNT_DETACH);
}

static void limit_on_one_rank(void **state)
{
	char command[1024];

	(void)state;
	make_outs("a");
	make_file(in_scratch("a"), 20 << 20, 1);
	snprintf(command, sizeof(command),
		"[ $GRIDCOLL_RANK = 1 ] && ulimit -f 100; exec %s cp %s '%s'", GRIDCOLL,
		in_scratch("a"), in_scratch("out/%%r/"));
	RUN(1, text(PREFIX(1) "cannot write %s: File too large\n", in_scratch("out/1/a")), "-n",
		"4", "sh", "-c", command);
	assert_untouched(1, "a");
	assert_untouched(2, "a");
}

/* Directories above those of the ranks go as well: whoever came first, and whoever is the last to go. */
static void made_in_vain(void **state)
{
	char command[1024];
	int i;

	(void)state;
	make_file(in_scratch("a"), 20 << 20, 1);
	make_dir(in_scratch("out"));
	snprintf(command, sizeof(command),
		"[ $GRIDCOLL_RANK = 1 ] && ulimit -f 100; exec %s cp %s '%s'", GRIDCOLL,
		in_scratch("a"), in_scratch("out/new/deep/%%r/"));
	for (i = 0; i < 5; i++) {
		RUN(1,
			text(PREFIX(1) "cannot write %s: File too large\n",
				in_scratch("out/new/deep/1/a")),
			"-n", "4", "sh", "-c", command);
		assert_int_equal(entries(in_scratch("out")), 0);
	}
}

/* ---- ends in mid-transfer */

/* Starts a transfer and waits until rank 3 has begun to write. Fills in the ranks' processes. */
static void start_endless(struct job *j, pid_t pids[4])
{
	static char command[1024];
	int r;

	make_outs("a");
	make_endless(in_scratch("a"), 1 << 20, 1);
	snprintf(command, sizeof(command), "echo pid $$; exec %s cp %s '%s'", GRIDCOLL,
		in_scratch("a"), in_scratch("out/%%r/"));
	job_start(j, NULL, "-n", "4", "sh", "-c", command, NULL);
	for (r = 0; r < 4; r++)
		pids[r] = job_pid(j, r);
	for (r = 1; r < 4; r++)
		await_writer(in_scratch("out/%d", r));
}

static void finish(struct job *j, int status, const char *message, uint64_t since_ns)
{
	int got = job_wait(j);
	uint64_t ns = gci_now_ns() - since_ns;

	print_message("over after %llu ms\n", (unsigned long long)(ns / GCI_NS_PER_MS));
	assert_string_equal(job_err(j), message);
	assert_int_equal(got, status);
	assert_true(ns < PROMISE_NS);
	job_free(j);
}

static void rank_killed(void **state)
{
	struct job j = {0};
	pid_t pids[4];
	uint64_t then;
	int r;

	(void)state;
	start_endless(&j, pids);
	then = gci_now_ns();
	kill(pids[2], SIGKILL);
	finish(&j, 128 + SIGKILL, PREFIX(2) "killed by signal 9 (Killed)\n", then);
	/* It could remove nothing, and had nothing to remove, where files are without a name. */
	for (r = 1; r < 4; r++)
		if (r != 2 || makes_unnamed(in_scratch("out")))
			assert_untouched(r, "a");
}

static void source_killed(void **state)
{
	struct job j = {0};
	pid_t pids[4];
	uint64_t then;
	int r;

	(void)state;
	start_endless(&j, pids);
	then = gci_now_ns();
	kill(pids[0], SIGKILL);
	finish(&j, 128 + SIGKILL, PREFIX(0) "killed by signal 9 (Killed)\n", then);
	for (r = 1; r < 4; r++)
		assert_untouched(r, "a");
}

static void rank_terminated(void **state)
{
	struct job j = {0};
	pid_t pids[4];
	uint64_t then;
	int r;

	(void)state;
	start_endless(&j, pids);
	then = gci_now_ns();
	kill(pids[3], SIGTERM);
	finish(&j, 128 + SIGTERM, PREFIX(3) "killed by signal 15 (Terminated)\n", then);
	for (r = 1; r < 4; r++)
		assert_untouched(r, "a");
}

/* The user changes his mind. */
static void interrupted(void **state)
{
	struct job j = {0};
	pid_t pids[4];
	uint64_t then;
	int r, status;

	(void)state;
	start_endless(&j, pids);
	then = gci_now_ns();
	kill(j.pid, SIGINT);
	status = job_wait(&j);
	assert_int_equal(status, 128 + SIGINT);
	assert_true(gci_now_ns() - then < PROMISE_NS);
	for (r = 1; r < 4; r++)
		assert_untouched(r, "a");
	job_free(&j);
}

static void source_changes(void **state)
{
	struct job j = {0};
	pid_t pids[4];
	char message[600];
	uint64_t then;
	int r;

	(void)state;
	start_endless(&j, pids);
	then = gci_now_ns();
	snprintf(message, sizeof(message), PREFIX(0) "%s changed while it was being read\n",
		in_scratch("a"));
	assert_int_equal(truncate(in_scratch("a"), 1 << 20), 0);
	finish(&j, 1, message, then);
	for (r = 1; r < 4; r++)
		assert_untouched(r, "a");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(no_source),
		TEST(one_of_many_sources),
		TEST(source_is_directory),
		TEST(one_line_whatever_the_name),
		TEST(one_line_whatever_the_length),
		TEST(no_destination),
		TEST(destination_is_directory),
		TEST(file_where_directory_should_be),
		TEST(disk_full_on_one_rank),
		TEST(disk_full_at_the_end),
		TEST(limit_on_one_rank),
		TEST(made_in_vain),
		TEST(rank_killed),
		TEST(source_killed),
		TEST(rank_terminated),
		TEST(interrupted),
		TEST(source_changes),
		/* Last: what they drop does not come back. */
		TEST(source_unreadable),
		TEST(destination_not_writable),
	};

	unsetenv("GRIDCOLL_LAB");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
