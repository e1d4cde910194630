/* SPDX-License-Identifier: MIT
 * Jobs of gridcoll cp --recursive: every tree is compared with its source; one rank that cannot have
 * it is named, or left out. */
#include "tests/tools/jobs.h"
#include "tests/tools/limits.h"
#include "tests/tools/trees.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#define PREFIX "gridcoll-run: rank 2 on local2 failed: "

static void to_all_ranks(void **state)
{
	int r;

	(void)state;
	make_tree(in_scratch("t"));
	RUN_LINE(0, "[0] copied ", "/s each: 72 copies verified", "-n", "4", GRIDCOLL, "cp", "-r",
		in_scratch("t"), in_scratch("out/%%r"));
	for (r = 1; r < 4; r++)
		assert_same_trees(in_scratch("t"), in_scratch("out/%d/t", r));
	/* Once more, by what is in it, over what is there; rank 0 as well. */
	RUN(0, "", "-n", "3", GRIDCOLL, "cp", "-0qr", "--sync", in_scratch("t/"),
		in_scratch("out/%%r/t"));
	for (r = 0; r < 3; r++)
		assert_same_trees(in_scratch("t"), in_scratch("out/%d/t", r));
}

static void refused(const char *source, const char *dest, const char *begin, const char *end)
{
	RUN_LINE(2, begin, end, "-n", "2", GRIDCOLL, "cp", "-r", source, dest);
	assert_int_equal(
		run_shell("diff -r --no-dereference %s %s", in_scratch("t"), in_scratch("was")), 0);
}

static void onto_itself(void **state)
{
	static const char same[] = " of rank 1 on local1 are the same directory";

	(void)state;
	make_tree(in_scratch("t"));
	assert_int_equal(run_shell("cp -a %s %s", in_scratch("t"), in_scratch("was")), 0);
	assert_int_equal(symlink("t", in_scratch("link")), 0);
	refused(in_scratch("t"), in_scratch("."), "gridcoll-run: rank 0 on local0 failed: ", same);
	refused(in_scratch("t/"), in_scratch("link"), "gridcoll-run: rank 0 ", same);
	refused(in_scratch("t/."), in_scratch("t"), "gridcoll-run: rank 0 ", same);
	refused(in_scratch("t"), in_scratch("t"),
		"gridcoll-run: rank 0 on local0 failed: cannot copy ", " of rank 1 on local1");
	refused(in_scratch("t/"), in_scratch("link/empty/new/%%r/"),
		"gridcoll-run: rank 0 on local0 failed: cannot copy ", " of rank 1 on local1");
}

static void trees_and_files_together(void **state)
{
	(void)state;
	make_tree(in_scratch("t"));
	make_dir(in_scratch("d"));
	make_file(in_scratch("f"), 5, 1);
	assert_int_equal(symlink("f", in_scratch("l")), 0);
	RUN_LINE(0, "[0] copied ", ": 25 copies verified", "-n", "2", GRIDCOLL, "cp", "-r",
		in_scratch("f"), in_scratch("t"), in_scratch("l"), in_scratch("d"),
		in_scratch("out"));
	assert_int_equal(entries(in_scratch("out")), 4);
	assert_same_trees(in_scratch("t"), in_scratch("out/t"));
	assert_same_files(in_scratch("f"), in_scratch("out/l"));
	assert_int_equal(entries(in_scratch("out/d")), 0);
	/* Of what has no contents nothing is sent, and it is copied all the same. */
	RUN_LINE(0, "[0] copied 0 B in 0 files, 1 directory from local0 to 1 rank in ",
		": 0 copies verified", "-n", "2", GRIDCOLL, "cp", "-r", in_scratch("d"),
		in_scratch("bare"));
	assert_int_equal(entries(in_scratch("bare/d")), 0);
	/* What is in it is nothing, and has a place to go to. */
	RUN_LINE(0, "[0] copied 0 B in 0 files from local0 to 2 ranks in ", ": 0 copies verified",
		"-n", "3", GRIDCOLL, "cp", "-r", in_scratch("d/"), in_scratch("barer/%%r/"));
	assert_int_equal(entries(in_scratch("barer")), 2);
	assert_int_equal(entries(in_scratch("barer/2")), 0);
	RUN(0, "", "-n", "3", GRIDCOLL, "cp", "-qr", "--resume", "--sync", in_scratch("d/"),
		in_scratch("barer/%%r/"));
}

static void special_files_are_named(void **state)
{
	char message[600];

	(void)state;
	make_dir(in_scratch("t"));
	make_file(in_scratch("t/f"), 5, 1);
	assert_int_equal(mkfifo(in_scratch("t/p"), 0600), 0);
	snprintf(message, sizeof(message),
		"[0] gridcoll cp: skipped %s: no file, directory or link\n"
		"gridcoll-run: rank 0 on local0: a partial result (exit status 23)\n",
		in_scratch("t/p"));
	RUN(23, message, "-n", "2", GRIDCOLL, "cp", "-qr", in_scratch("t"), in_scratch("out/"));
	assert_int_equal(entries(in_scratch("out/t")), 1);
	assert_same_files(in_scratch("t/f"), in_scratch("out/t/f"));
}

/* A tree whose last file is endless; ranks 1 to 3 have begun with it. */
static void start_endless(struct job *j, const char *option)
{
	int r;

	make_tree(in_scratch("t"));
	make_endless(in_scratch("t/z locked/z"), 1 << 20, 1);
	make_dir(in_scratch("out"));
	for (r = 1; r < 4; r++) {
		make_dir(in_scratch("out/%d", r));
		make_dir(in_scratch("out/%d/t", r));
		make_dir(in_scratch("out/%d/t/z locked", r));
	}
	job_start(j, NULL, "-n", "4", GRIDCOLL, "cp", "-r", option, in_scratch("t"),
		in_scratch("out/%%r"), NULL);
	for (r = 1; r < 4; r++)
		await_entry(in_scratch("out/%d/t/z locked", r), "in");
}

/* Its files that are whole stay, nothing else. */
static void interrupted(void **state)
{
	struct job j = {0};
	int r;

	(void)state;
	start_endless(&j, "--sync");
	kill(j.pid, SIGINT);
	assert_int_equal(job_wait(&j), 128 + SIGINT);
	job_free(&j);
	for (r = 1; r < 4; r++) {
		assert_int_equal(entries(in_scratch("out/%d/t/z locked", r)), 1);
		assert_same_files(in_scratch("t/top"), in_scratch("out/%d/t/top", r));
	}
}

static void resumed(void **state)
{
	struct job j = {0};
	int r;

	(void)state;
	start_endless(&j, "--resume");
	kill(j.pid, SIGINT);
	assert_int_not_equal(job_wait(&j), 0);
	job_free(&j);
	assert_int_equal(truncate(in_scratch("t/z locked/z"), 1 << 20), 0);
	job_start(&j, NULL, "-n", "4", "--quiet-prefix", GRIDCOLL, "cp", "-r", "--resume",
		in_scratch("t"), in_scratch("out/%%r"), NULL);
	assert_int_equal(job_wait(&j), 0);
	if (!strstr(job_err(&j), " of these copies were there already\n"))
		fail_msg("%s", job_err(&j));
	job_free(&j);
	for (r = 1; r < 4; r++)
		assert_same_trees(in_scratch("t"), in_scratch("out/%d/t", r));
}

static void fails_on_rank_2(const char *what, const char *why)
{
	char message[1024];

	snprintf(message, sizeof(message), PREFIX "%s: %s\n", what, why);
	RUN(1, message, "-n", "4", GRIDCOLL, "cp", "-qr", in_scratch("t"), in_scratch("out/%%r"));
}

static void make_outs(void)
{
	int r;

	make_tree(in_scratch("t"));
	make_dir(in_scratch("out"));
	for (r = 1; r < 4; r++) {
		make_dir(in_scratch("out/%d", r));
		make_dir(in_scratch("out/%d/t", r));
	}
}

static const char *make_directory(const char *name)
{
	static char text[512];

	snprintf(text, sizeof(text), "cannot make directory %s", in_scratch("out/2/t/%s", name));
	return text;
}

static void a_file_is_in_the_way(void **state)
{
	(void)state;
	make_outs();
	make_text(in_scratch("out/2/t/a"), "a file");
	fails_on_rank_2(make_directory("a"), "a file is called so");
	assert_text(in_scratch("out/2/t/a"), "a file");
	/* Nobody else's is replaced, and of what they have made nothing is left. */
	assert_int_equal(entries(in_scratch("out/1/t")), 0);
	assert_int_equal(entries(in_scratch("out/2/t")), 1);
	assert_int_equal(entries(in_scratch("out/3/t")), 0);
}

/* Directories that were made go with the copy, whichever of the ranks that share them made which. */
static void made_in_vain(void **state)
{
	char command[2048];

	(void)state;
	make_tree(in_scratch("t"));
	make_dir(in_scratch("there"));
	snprintf(command, sizeof(command),
		"[ $GRIDCOLL_RANK = 1 ] && ulimit -f 0; exec %s cp -qr %s %s", GRIDCOLL,
		in_scratch("t/"), in_scratch("there/new/deep"));
	RUN_LINE(1, "gridcoll-run: rank 1 on local1 failed: cannot write ", "File too large", "-n",
		"4", "sh", "-c", command);
	assert_int_equal(entries(in_scratch("there")), 0);
}

/* The same, and the others go on. */
static void left_out(void **state)
{
	struct job j = {0};

	(void)state;
	make_outs();
	make_text(in_scratch("out/2/t/a"), "a file");
	job_start(&j, NULL, "--survive", "-n", "4", "--quiet-prefix", GRIDCOLL, "cp", "-r",
		"--keep-going", in_scratch("t"), in_scratch("out/%%r"), NULL);
	if (job_wait(&j) != 23 ||
		!strstr(job_err(&j), ": 48 copies verified\nleft out: rank 2 on local2\n"))
		fail_msg("%s", job_err(&j));
	job_free(&j);
	assert_same_trees(in_scratch("t"), in_scratch("out/1/t"));
	assert_same_trees(in_scratch("t"), in_scratch("out/3/t"));
}

/* The copy is complete, and stays so, though its report cannot be written. */
static void complete_without_report(void **state)
{
	char command[2048];
	int r;

	(void)state;
	make_dir(in_scratch("t"));
	make_dir(in_scratch("t/empty"));
	make_text(in_scratch("t/a"), "a file");
	snprintf(command, sizeof(command),
		"[ $GRIDCOLL_RANK = 0 ] && ulimit -f 1; exec %s cp -0qr --json %s %s '%s'",
		GRIDCOLL, in_scratch("json"), in_scratch("t"), in_scratch("out/%%r/"));
	RUN_LINE(1, "gridcoll-run: rank 0 on local0 failed: cannot write ", "File too large", "-n",
		"4", "sh", "-c", command);
	for (r = 0; r < 4; r++)
		assert_same_trees(in_scratch("t"), in_scratch("out/%d/t", r));
	assert_false(is_there(in_scratch("json")));
}

static void disk_full(void **state)
{
	char what[512];

	(void)state;
	make_outs();
	make_file(in_scratch("t/a/huge"), 3 << 20, 1);
	if (!small_disk(in_scratch("out/2"), "size=2m")) {
		print_message("no file system of our own: %s\n", strerror(errno));
		skip();
	}
	snprintf(what, sizeof(what), "cannot write %s", in_scratch("out/2/t/a/huge"));
	fails_on_rank_2(what, "No space left on device");
	/* Without room for as many directories either. */
	umount2(in_scratch("out/2"), MNT_DETACH);
	if (!small_disk(in_scratch("out/2"), "nr_inodes=3"))
		skip();
	fails_on_rank_2(make_directory("empty"), "No space left on device");
	umount2(in_scratch("out/2"), MNT_DETACH);
}

static void source_directory_unreadable(void **state)
{
	char message[600];

	(void)state;
	make_outs();
	assert_int_equal(chmod(in_scratch("t/a/deep"), 0), 0);
	drop_override();
	snprintf(message, sizeof(message),
		"gridcoll-run: rank 0 on local0 failed: cannot read %s: Permission denied\n",
		in_scratch("t/a/deep"));
	RUN(1, message, "-n", "4", GRIDCOLL, "cp", "-r", in_scratch("t"), in_scratch("out/%%r"));
	assert_int_equal(entries(in_scratch("out/1/t")), 0);
}

static void directory_not_writable(void **state)
{
	char what[512];

	(void)state;
	make_outs();
	snprintf(what, sizeof(what), "cannot make directory %s", in_scratch("out/2/t"));
	assert_int_equal(rmdir(in_scratch("out/2/t")), 0);
	assert_int_equal(chmod(in_scratch("out/2"), 0555), 0);
	drop_override();
	fails_on_rank_2(what, "Permission denied");
	assert_false(is_there(in_scratch("out/1/t/top")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(to_all_ranks),
		TEST(onto_itself),
		TEST(trees_and_files_together),
		TEST(special_files_are_named),
		TEST(interrupted),
		TEST(resumed),
		TEST(a_file_is_in_the_way),
		TEST(made_in_vain),
		TEST(left_out),
		TEST(complete_without_report),
		TEST(disk_full),
		/* Last: what they drop does not come back. */
		TEST(source_directory_unreadable),
		TEST(directory_not_writable),
	};

	unsetenv("GRIDCOLL_LAB");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
