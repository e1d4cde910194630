/* SPDX-License-Identifier: MIT
 * gridcoll cp --from, --to, --scatter and --gather: whose files they are; who is named has a copy, or
 * a part, and nobody else; and who gathers has a file of each. */
#include "tests/tools/jobs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Hosts that are this machine by way of ssh, whatever they are called. */
static void fake_ssh(void)
{
	char path[4096];

	make_dir(in_scratch("bin"));
	make_text(in_scratch("bin/ssh"), "#!/bin/sh\n"
					 "case $* in *down.invalid*) exit 255;; esac\n"
					 "export SSH_CONNECTION='127.0.0.1 1 127.0.0.1 22'\n"
					 "for last; do :; done\nexec sh -c \"$last\"\n");
	chmod(in_scratch("bin/ssh"), 0700);
	snprintf(path, sizeof(path), "%s:%s", in_scratch("bin"), getenv("PATH"));
	setenv("PATH", path, 1);
}

/* One copy from `source`, to `receiver` and nobody else. */
static void copy_from(
	const char *hosts, const char *option, const char *value, const char *source, int receiver)
{
	char begin[100];

	snprintf(begin, sizeof(begin), "[%d] copied 5 B in 1 file from %s to 1 rank in ", !receiver,
		source);
	RUN_LINE(0, begin, ": 1 copy verified", "--hosts", hosts, "--address", "127.0.0.1",
		"--remote-path", env_path("GRIDCOLL_RUN"), GRIDCOLL, "cp", option, value,
		in_scratch("a"), in_scratch("out/%%r/"));
	assert_int_equal(entries(in_scratch("out")), 1);
	assert_same_files(in_scratch("a"), in_scratch("out/%d/a", receiver));
	assert_int_equal(run_shell("rm -r %s", in_scratch("out")), 0);
}

/* The first host's files are not meant by who types on another one. */
static void where_the_command_is_typed(void **state)
{
	char command[1024];

	(void)state;
	fake_ssh();
	make_file(in_scratch("a"), 5, 1);
	copy_from("elsewhere.invalid,localhost", "--streams", "2", "localhost", 0);
	copy_from("localhost,elsewhere.invalid", "--streams", "2", "localhost", 1);
	copy_from("elsewhere.invalid,me@127.0.0.1", "--streams", "2", "me@127.0.0.1", 0);
	copy_from("elsewhere.invalid,localhost", "--from", "elsewhere.invalid", "elsewhere.invalid",
		1);
	copy_from("localhost,elsewhere.invalid", "--from", "1", "elsewhere.invalid", 0);
	RUN(2,
		"gridcoll-run: rank 0 on elsewhere.invalid failed: gridcoll cp: gridcoll-run was "
		"started on no host of the job, expected --from HOST\n",
		"--hosts", "elsewhere.invalid,nowhere.invalid", "--address", "127.0.0.1",
		"--remote-path", env_path("GRIDCOLL_RUN"), GRIDCOLL, "cp", in_scratch("a"),
		in_scratch("out/%%r/"));
	/* Our address leads to somebody else. */
	snprintf(command, sizeof(command),
		"[ $GRIDCOLL_RANK = 0 ] || export GRIDCOLL_LAUNCH_MACHINE=another; exec %s cp '%s' "
		"'%s'",
		GRIDCOLL, in_scratch("a"), in_scratch("out/%%r/"));
	RUN(2,
		"gridcoll-run: rank 1 on me@127.0.0.1 failed: gridcoll cp: gridcoll-run is on "
		"another machine of this address, expected --from HOST\n",
		"--hosts", "elsewhere.invalid,me@127.0.0.1", "--address", "127.0.0.1",
		"--remote-path", env_path("GRIDCOLL_RUN"), "sh", "-c", command);
	assert_false(is_there(in_scratch("out")));
	RUN(2,
		"gridcoll-run: rank 0 on local0 failed: --from local2, expected a host or a rank "
		"of "
		"the job\n",
		"-n", "2", GRIDCOLL, "cp", "--from", "local2", in_scratch("a"), in_scratch("out/"));
}

/* Without a host that is down, and without a word whose files are meant. */
static void a_host_is_down(void **state)
{
	struct job j = {0};

	(void)state;
	fake_ssh();
	make_file(in_scratch("a"), 5, 1);
	job_start(&j, NULL, "--survive", "--hosts",
		"nowhere.invalid,down.invalid,elsewhere.invalid", "--address", "127.0.0.1",
		"--remote-path", env_path("GRIDCOLL_RUN"), GRIDCOLL, "cp", in_scratch("a"),
		in_scratch("out/%%r/"), NULL);
	if (job_wait(&j) != 2 ||
		!strstr(job_err(&j), "gridcoll-run: rank 1 on down.invalid is left out: its ssh "
				     "ended with status 255") ||
		!strstr(job_err(&j),
			"\ngridcoll-run: rank 0 on nowhere.invalid failed: gridcoll cp: "
			"gridcoll-run was started on no host of the job, expected --from "
			"HOST\n"))
		fail_msg("%s", job_err(&j));
	job_free(&j);
	assert_false(is_there(in_scratch("out")));
	/* What was possible is no failure. */
	job_start(&j, NULL, "--survive", "--hosts",
		"nowhere.invalid,down.invalid,elsewhere.invalid", "--address", "127.0.0.1",
		"--remote-path", env_path("GRIDCOLL_RUN"), GRIDCOLL, "cp", "--keep-going", "--from",
		"0", in_scratch("a"), in_scratch("out/%%r/"), NULL);
	if (job_wait(&j) != 23 ||
		!strstr(job_err(&j), "\n[0] left out: rank 1 on down.invalid\n") ||
		!strstr(job_err(&j), "\ngridcoll-run: rank 0 on nowhere.invalid: a partial result "
				     "(exit status 23)\n") ||
		strstr(job_err(&j), " failed: "))
		fail_msg("%s", job_err(&j));
	job_free(&j);
	assert_same_files(in_scratch("a"), in_scratch("out/2/a"));
}

/* With all that a copy may do besides. */
static void another_source(void **state)
{
	int r;

	(void)state;
	make_file(in_scratch("a"), 9 << 20, 1);
	RUN(0, "", "--grid", two_clusters(), "--per-host", "2", GRIDCOLL, "cp", "-q", "--resume",
		"--from", "127.0.0.2", "--manifest", in_scratch("sums"), in_scratch("a"),
		in_scratch("out/%%r/"));
	assert_int_equal(
		run_shell("rm %s && echo x >>%s", in_scratch("out/0/a"), in_scratch("out/1/a")), 0);
	RUN(0, "", "--grid", two_clusters(), "--per-host", "2", GRIDCOLL, "cp", "-0q", "--resume",
		"--from", "2", in_scratch("a"), in_scratch("out/%%r/"));
	for (r = 0; r < 4; r++)
		assert_same_files(in_scratch("a"), in_scratch("out/%d/a", r));
	assert_int_equal(
		run_shell("cd %s/3 && sha256sum -c --quiet ../../sums", in_scratch("out")), 0);
	RUN_LINE(0, "[1] scattered 9.44 MB in 3 parts from local1 in ", ": 3 verified", "-n", "4",
		GRIDCOLL, "cp", "--scatter", "--from", "local1", in_scratch("a"),
		in_scratch("part.%%r"));
	assert_int_equal(
		run_shell("cd %s && cat part.0 part.2 part.3 | cmp - a", in_scratch(".")), 0);
}

/* Copies to the list, and then exactly the ranks of `ranks`, as digits, have a copy. */
static void copy_to(const char *list, const char *ranks)
{
	char end[64];
	int r;

	snprintf(end, sizeof(end), ": %d cop%s verified", (int)strlen(ranks),
		strlen(ranks) == 1 ? "y" : "ies");
	RUN_LINE(0, "[0] copied ", end, "--grid", two_clusters(), "--per-host", "2", GRIDCOLL, "cp",
		"--to", list, in_scratch("a"), in_scratch("out/%%r/"));
	for (r = 0; r < 4; r++) {
		assert_int_equal(is_there(in_scratch("out/%d", r)), !!strchr(ranks, '0' + r));
		if (!strchr(ranks, '0' + r))
			continue;
		assert_same_files(in_scratch("a"), in_scratch("out/%d/a", r));
		assert_int_equal(run_shell("rm -r %s", in_scratch("out/%d", r)), 0);
	}
}

static void some_ranks(void **state)
{
	(void)state;
	make_file(in_scratch("a"), 9 << 20, 1);
	copy_to("far", "23");
	copy_to("127.0.0.1,3", "013");
	copy_to("1-2", "12");
	copy_to("0", "0");
}

static void refuse(const char *list, const char *text)
{
	char message[300];

	snprintf(
		message, sizeof(message), "gridcoll-run: rank 0 on local0 failed: --to %s\n", text);
	RUN(2, message, "-n", "2", GRIDCOLL, "cp", "--to", list, in_scratch("a"),
		in_scratch("out/"));
}

static void who_is_not_there(void **state)
{
	(void)state;
	make_file(in_scratch("a"), 5, 1);
	refuse("1,elsewhere", "elsewhere, expected ranks, hosts or clusters of the job");
	refuse("1-2", "1-2, expected ranks from 0 to 1");
	assert_false(is_there(in_scratch("out")));
}

/* With the rest of what a copy can do: who is not to have one is not in the way. */
static void resumed(void **state)
{
	struct job j = {0};

	(void)state;
	make_file(in_scratch("a"), 9 << 20, 1);
	make_dir(in_scratch("out"));
	make_text(in_scratch("out/3"), "in the way of nobody");
	RUN(0, "", "-n", "4", GRIDCOLL, "cp", "-q", "--resume", "--to", "1", in_scratch("a"),
		in_scratch("out/%%r/"));
	job_start(&j, NULL, "-n", "4", "--quiet-prefix", GRIDCOLL, "cp", "--resume", "--to",
		"local[1-2]", in_scratch("a"), in_scratch("out/%%r/"), NULL);
	assert_int_equal(job_wait(&j), 0);
	if (!strstr(job_err(&j), ": 2 copies verified\n9.44 MB of these copies were there already"))
		fail_msg("%s", job_err(&j));
	job_free(&j);
	assert_same_files(in_scratch("a"), in_scratch("out/2/a"));
}

/* The parts of ranks `ranks`, in their order, are the file; nobody else has one. */
static void scatter(const char *ranks, const char *option, const char *value)
{
	char parts[512] = "", line[32];
	const char *r;

	snprintf(line, sizeof(line), ": %d verified", (int)strlen(ranks));
	RUN_LINE(0, "[0] scattered ", line, "-n", "4", GRIDCOLL, "cp", "--scatter", option, value,
		in_scratch("a"), in_scratch("part.%%r"));
	for (r = ranks; *r; r++)
		snprintf(parts + strlen(parts), sizeof(parts) - strlen(parts), " part.%c", *r);
	assert_int_equal(run_shell("cd %s && cat%s | cmp - a && rm%s && ! ls | grep -q part",
				 in_scratch("."), parts, parts),
		0);
}

static void parts(void **state)
{
	(void)state;
	/* Of many chunks, of less than one, of no byte for the first. */
	make_file(in_scratch("a"), (33 << 20) + 1, 1);
	scatter("123", "--streams", "2");
	scatter("0123", "-0", "--sync");
	make_file(in_scratch("a"), 10000, 2);
	scatter("13", "--to", "3,1");
	make_file(in_scratch("a"), 2, 3);
	scatter("123", "--streams", "2");
	/* With zeros that are not written, and by name. */
	assert_int_equal(truncate(in_scratch("a"), 30 << 20), 0);
	RUN(0, "", "-n", "4", GRIDCOLL, "cp", "-q", "--sync", "--scatter", in_scratch("a"),
		in_scratch("out/%%r/"));
	assert_true(look(in_scratch("out/2/a")).st_size == 10 << 20);
	assert_true(look(in_scratch("out/2/a")).st_blocks == 0);
	assert_int_equal(run_shell("cd %s && cat 1/a 2/a 3/a | cmp - ../a", in_scratch("out")), 0);
}

static void parts_that_cannot_be(void **state)
{
	(void)state;
	make_file(in_scratch("a"), 9 << 20, 1);
	make_dir(in_scratch("part.2"));
	make_dir(in_scratch("part.2/a"));
	RUN_LINE(1, "gridcoll-run: rank 2 on local2 failed: cannot write ",
		"part.2/a: it is a directory", "-n", "4", GRIDCOLL, "cp", "--scatter",
		in_scratch("a"), in_scratch("part.%%r"));
	assert_false(is_there(in_scratch("part.1")));
	RUN(2,
		"gridcoll-run: rank 0 on local0 failed: --scatter, "
		"expected one file, and a receiver at least\n",
		"-n", "1", GRIDCOLL, "cp", "--scatter", in_scratch("a"), in_scratch("b"));
}

/* Of different lengths, of many chunks and of no byte, modes and times with them. */
static void gathered(void **state)
{
	static const uint64_t sizes[] = {70000, 9 << 20, 0, 4 << 20};
	int r;

	(void)state;
	for (r = 0; r < 4; r++)
		make_file(in_scratch("in.%d", r), sizes[r], (uint64_t)r);
	chmod(in_scratch("in.3"), 0400);
	RUN_LINE(0, "[0] gathered 13.6 MB in 3 files to local0 in ", ": 3 verified", "-n", "4",
		GRIDCOLL, "cp", "--gather", in_scratch("in.%%r"), in_scratch("out/"));
	assert_int_equal(entries(in_scratch("out")), 3);
	for (r = 1; r < 4; r++)
		assert_same_files(in_scratch("in.%d", r), in_scratch("out/in.%d", r));
	/* Rank 0's too, over what is there, each by another name. */
	make_text(in_scratch("local2-2%%"), "was there before");
	RUN(0, "", "-n", "4", GRIDCOLL, "cp", "-0q", "--sync", "--gather", in_scratch("in.%%r"),
		in_scratch("%%h-%%r%%%%"));
	for (r = 0; r < 4; r++)
		assert_same_files(in_scratch("in.%d", r), in_scratch("local%d-%d%%", r, r));
	/* To another than rank 0. */
	RUN_LINE(0, "[2] gathered ", ": 3 verified", "-n", "4", GRIDCOLL, "cp", "--gather", "--to",
		"local2", in_scratch("in.%%r"), in_scratch("two/"));
	assert_int_equal(entries(in_scratch("two")), 3);
	assert_same_files(in_scratch("in.0"), in_scratch("two/in.0"));
	/* From another cluster, and of one name. */
	RUN(0, "", "--grid", two_clusters(), "--per-host", "2", GRIDCOLL, "cp", "-q", "--gather",
		in_scratch("in.1"), in_scratch("each/%%r/"));
	for (r = 1; r < 4; r++)
		assert_same_files(in_scratch("in.1"), in_scratch("each/%d/in.1", r));
}

static void gather_fails(int status, const char *message, const char *source, const char *dest)
{
	RUN(status, message, "-n", "4", GRIDCOLL, "cp", "-q", "--gather", source, dest);
}

static void what_cannot_be_gathered(void **state)
{
	char message[700];
	int r;

	(void)state;
	for (r = 1; r < 3; r++)
		make_file(in_scratch("in.%d", r), 9 << 20, 1);
	snprintf(message, sizeof(message),
		"gridcoll-run: rank 3 on local3 failed: cannot read %s: "
		"No such file or directory\n",
		in_scratch("in.3"));
	gather_fails(1, message, in_scratch("in.%%r"), in_scratch("out/"));
	assert_false(is_there(in_scratch("out")));
	snprintf(message, sizeof(message),
		"gridcoll-run: rank 0 on local0 failed: two ranks' files go to %s, expected %%r or "
		"%%h in DEST\n",
		in_scratch("out/in.1"));
	gather_fails(2, message, in_scratch("in.1"), in_scratch("out/"));
	assert_false(is_there(in_scratch("out"))); /* what it made has gone */
	/* One directory by two names. */
	make_dir(in_scratch("both"));
	make_dir(in_scratch("both/1"));
	assert_int_equal(symlink("1", in_scratch("both/3")), 0);
	snprintf(message, sizeof(message),
		"gridcoll-run: rank 0 on local0 failed: two ranks' files go to %s, expected %%r or "
		"%%h in DEST\n",
		in_scratch("both/3/in.1"));
	gather_fails(2, message, in_scratch("in.1"), in_scratch("both/%%r/"));
	assert_int_equal(entries(in_scratch("both/1")), 0);
	/* A link in DEST, by a name that a rank may choose. */
	make_dir(in_scratch("safe"));
	make_dir(in_scratch("elsewhere"));
	assert_int_equal(symlink(in_scratch("elsewhere"), in_scratch("safe/local1")), 0);
	snprintf(message, sizeof(message),
		"gridcoll-run: rank 0 on local0 failed: cannot write %s: a link leads out of %s\n",
		in_scratch("safe/local1/in.1"), in_scratch("safe/"));
	gather_fails(1, message, in_scratch("in.1"), in_scratch("safe/%%h/"));
	assert_int_equal(entries(in_scratch("elsewhere")), 0);
	/* None. */
	snprintf(message, sizeof(message),
		"gridcoll-run: rank 0 on local0 failed: cannot write %s: "
		"No such file or directory\n",
		in_scratch("none/1"));
	gather_fails(1, message, in_scratch("in.1"), in_scratch("none/%%r"));
	make_dir(in_scratch("out"));
	make_dir(in_scratch("out/2"));
	make_dir(in_scratch("out/2/in.1"));
	snprintf(message, sizeof(message),
		"gridcoll-run: rank 0 on local0 failed: cannot write %s: it is a directory\n",
		in_scratch("out/2/in.1"));
	gather_fails(1, message, in_scratch("in.1"), in_scratch("out/%%r/"));
	assert_int_equal(entries(in_scratch("out")), 1);
}

/* A sender is gone in mid-transfer: nothing is left of its file. */
static void a_sender_changes(void **state)
{
	struct job j = {0};
	char end[600];

	(void)state;
	make_file(in_scratch("in.1"), 5, 1);
	make_endless(in_scratch("in.2"), 1 << 20, 1);
	job_start(&j, NULL, "-n", "3", GRIDCOLL, "cp", "--gather", in_scratch("in.%%r"),
		in_scratch("out/"), NULL);
	await_entry(in_scratch("out"), "in.1");
	await_writer(in_scratch("out"));
	assert_int_equal(truncate(in_scratch("in.2"), 5), 0);
	assert_int_equal(job_wait(&j), 1);
	snprintf(end, sizeof(end), "rank 2 on local2 failed: %s changed while it was being read",
		in_scratch("in.2"));
	assert_one_line(job_err(&j), "gridcoll-run: ", end);
	job_free(&j);
	assert_int_equal(entries(in_scratch("out")), 1);
	assert_same_files(in_scratch("in.1"), in_scratch("out/in.1"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(where_the_command_is_typed),
		TEST(a_host_is_down),
		TEST(another_source),
		TEST(some_ranks),
		TEST(who_is_not_there),
		TEST(resumed),
		TEST(parts),
		TEST(parts_that_cannot_be),
		TEST(gathered),
		TEST(what_cannot_be_gathered),
		TEST(a_sender_changes),
	};

	unsetenv("GRIDCOLL_LAB");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
