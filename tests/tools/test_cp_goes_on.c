/* SPDX-License-Identifier: MIT
 * Jobs of gridcoll cp --resume and --keep-going: who has a part gets the rest; who is dead is not
 * waited for. All copies are compared with their source. */
#include "base/clock.h"
#include "base/mem.h"
#include "tests/tools/jobs.h"
#include "tests/tools/trees.h"
#include "tools/cp/cp.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define B      ((uint64_t)GCT_CP_BLOCK_NBYTES)
#define NBYTES (5 * B + 12345)
#define SEED   7

static void await_part(const char *out, uint64_t nbytes)
{
	char *part = NULL;
	struct gct_cp_file f = {.name = (char *)(uintptr_t) "a"};
	struct gct_cp_manifest m = {.files = &f, .nfiles = 1};
	struct gct_cp_sink s = {.manifest = &m, .into_directory = 1};
	char dest[512];
	uint64_t end_ns = gci_now_ns() + 60 * GCI_NS_PER_S;
	struct stat st;

	snprintf(dest, sizeof(dest), "%s", out);
	s.dest = dest;
	part = gct_cp_sink_part(&s, 0);
	while (stat(part, &st) || (uint64_t)st.st_blocks * 512 < nbytes) {
		if (gci_now_ns() > end_ns)
			fail_msg("not %llu bytes in %s", (unsigned long long)nbytes, part);
		gci_sleep_ns(10 * GCI_NS_PER_MS);
	}
	free(part);
}

/* Stopped in the middle, the second call moves what is missing only. */
static void a_job_goes_on(void **state)
{
	struct job j = {0};
	int r;

	(void)state;
	make_endless(in_scratch("a"), NBYTES, SEED);
	job_start(&j, NULL, "-n", "4", GRIDCOLL, "cp", "--resume", in_scratch("a"),
		in_scratch("out/%%r/"), NULL);
	for (r = 1; r < 4; r++)
		await_part(in_scratch("out/%d", r), NBYTES);
	kill(j.pid, SIGINT);
	assert_int_not_equal(job_wait(&j), 0);
	job_free(&j);
	assert_int_equal(truncate(in_scratch("a"), (off_t)NBYTES), 0);
	job_start(&j, NULL, "-n", "4", "--quiet-prefix", GRIDCOLL, "cp", "--resume",
		in_scratch("a"), in_scratch("out/%%r/"), NULL);
	assert_int_equal(job_wait(&j), 0);
	if (!strstr(job_err(&j),
		    "all up to date: 21.0 MB in 1 file from local0 on 3 ranks, compared in ") ||
		!strstr(job_err(&j),
			": 3 copies verified\nall 63.0 MB of these copies were there already\n"))
		fail_msg("%s", job_err(&j));
	for (r = 1; r < 4; r++) {
		assert_same_files(in_scratch("a"), in_scratch("out/%d/a", r));
		assert_int_equal(entries(in_scratch("out/%d", r)), 1);
	}
	job_free(&j);
}

/* Each has something else: nothing, all, a file of another time. */
static void each_has_something_else(void **state)
{
	struct job j = {0};
	int r;

	(void)state;
	make_file(in_scratch("a"), NBYTES, SEED);
	RUN(0, "", "-n", "4", GRIDCOLL, "cp", "-q", "--resume", in_scratch("a"),
		in_scratch("out/%%r/"));
	unlink(in_scratch("out/1/a"));
	flip(in_scratch("out/3/a"), 2 * B);
	job_start(&j, NULL, "-n", "4", "--quiet-prefix", GRIDCOLL, "cp", "--resume",
		in_scratch("a"), in_scratch("out/%%r/"), NULL);
	assert_int_equal(job_wait(&j), 0);
	if (!strstr(job_err(&j), "21.0 MB of these copies were there already\n"))
		fail_msg("%s", job_err(&j));
	for (r = 1; r < 4; r++)
		assert_same_files(in_scratch("a"), in_scratch("out/%d/a", r));
	job_free(&j);
}

/* A failure keeps what there is; without --resume nothing stays. */
static void what_a_failure_leaves(void **state)
{
	struct job j = {0};
	char kept[512];
	int r;

	(void)state;
	make_endless(in_scratch("a"), NBYTES, SEED);
	job_start(&j, NULL, "-n", "4", GRIDCOLL, "cp", "--resume", in_scratch("a"),
		in_scratch("out/%%r/"), NULL);
	for (r = 1; r < 4; r++)
		await_part(in_scratch("out/%d", r), NBYTES);
	assert_int_equal(truncate(in_scratch("a"), 5), 0); /* it changed while it was being read */
	assert_int_equal(job_wait(&j), 1);
	snprintf(kept, sizeof(kept),
		"[1] gridcoll cp: what has come of %s is kept as %s/.gridcoll-",
		in_scratch("out/1/a"), in_scratch("out/1"));
	if (occurrences(job_err(&j), kept) != 1 || occurrences(job_err(&j), " is kept as ") != 1)
		fail_msg("%s", job_err(&j));
	job_free(&j);
	for (r = 1; r < 4; r++) {
		assert_int_equal(entries(in_scratch("out/%d", r)), 1);
		assert_false(is_there(in_scratch("out/%d/a", r)));
	}
}

/* A file may be called as another one's part: one of the two would be lost. */
static void called_as_a_part(void **state)
{
	struct gct_cp_file f = {.name = (char *)(uintptr_t) "a"};
	struct gct_cp_manifest m = {.files = &f, .nfiles = 1};
	struct gct_cp_sink s = {.manifest = &m, .into_directory = 1, .dest = in_scratch("in")};
	char *part = gct_cp_sink_part(&s, 0);

	(void)state;
	assert_non_null(part);
	make_dir(in_scratch("in"));
	make_file(in_scratch("in/a"), 5, 1);
	make_file(part, 7, 2);
	RUN_LINE(2, "gridcoll-run: rank 0 on local0 failed: .gridcoll-",
		".part: a is called so until it is whole, expected another name or no --resume",
		"-n", "3", GRIDCOLL, "cp", "-qr", "--resume", in_scratch("in/"),
		in_scratch("out/%%r/"));
	RUN(0, "", "-n", "3", GRIDCOLL, "cp", "-qr", in_scratch("in/"), in_scratch("out/%%r/"));
	assert_int_equal(entries(in_scratch("out/2")), 2);
	/* A link has no part. */
	assert_int_equal(unlink(in_scratch("in/a")) | symlink("b", in_scratch("in/a")), 0);
	RUN(0, "", "-n", "3", GRIDCOLL, "cp", "-qr", "--resume", in_scratch("in/"),
		in_scratch("linked/%%r/"));
	assert_same_trees(in_scratch("in"), in_scratch("linked/2"));
	gci_free(part);
}

/* `how` is a shell's word for what rank 2 does before it copies. Ends with all copies but its own.
 */
static void go_on_without(const char *how, const char *cause, int source)
{
	char command[2048];
	struct job j = {0};
	int r;

	make_file(in_scratch("a"), NBYTES, SEED);
	snprintf(command, sizeof(command),
		"[ $GRIDCOLL_RANK = 2 ] && { %s; }; exec %s cp --keep-going --from %d '%s' '%s'",
		how, GRIDCOLL, source, in_scratch("a"), in_scratch("out/%%r/"));
	job_start(&j, NULL, "--survive", "-n", "4", "--quiet-prefix", "sh", "-c", command, NULL);
	if (job_wait(&j) != 23 || !strstr(job_err(&j), cause) ||
		!strstr(job_err(&j), "to 2 ranks in ") ||
		!strstr(job_err(&j), ": 2 copies verified\nleft out: rank 2 on local2\n"))
		fail_msg("%s", job_err(&j));
	for (r = 0; r < 4; r++) {
		if (r == 2 || r == source)
			assert_false(is_there(in_scratch("out/%d/a", r)));
		else
			assert_same_files(in_scratch("a"), in_scratch("out/%d/a", r));
	}
	job_free(&j);
}

static void one_cannot_write(void **state)
{
	char command[1024];
	struct job j = {0};

	(void)state;
	go_on_without("ulimit -f 100", "/out/2/a: File too large\n", 0);
	/* Without it the source has another number. */
	assert_int_equal(run_shell("rm -r %s", in_scratch("out")), 0);
	go_on_without("ulimit -f 100", "/out/2/a: File too large\n", 3);
	/* Who wants it quiet is told as well. */
	snprintf(command, sizeof(command),
		"[ $GRIDCOLL_RANK = 2 ] && ulimit -f 100; exec %s cp -q --keep-going '%s' '%s'",
		GRIDCOLL, in_scratch("a"), in_scratch("out/%%r/"));
	job_start(&j, NULL, "--survive", "-n", "4", "--quiet-prefix", "sh", "-c", command, NULL);
	if (job_wait(&j) != 23 || !strstr(job_err(&j), "left out: rank 2 on local2\n") ||
		strstr(job_err(&j), "copied"))
		fail_msg("%s", job_err(&j));
	job_free(&j);
}

/* Nobody is told that there are copies when nobody has one. */
static void none_can_write(void **state)
{
	struct job j = {0};
	char command[1024];

	(void)state;
	make_file(in_scratch("a"), NBYTES, SEED);
	snprintf(command, sizeof(command),
		"[ $GRIDCOLL_RANK = 0 ] || ulimit -f 100; exec %s cp --keep-going '%s' '%s'",
		GRIDCOLL, in_scratch("a"), in_scratch("out/%%r/"));
	job_start(&j, NULL, "--survive", "-n", "3", "sh", "-c", command, NULL);
	assert_int_equal(job_wait(&j), 1);
	if (!strstr(job_err(&j), "rank 0 on local0 failed: no receiver is left\n") ||
		strstr(job_err(&j), "verified"))
		fail_msg("%s", job_err(&j));
	job_free(&j);
}

/* From near to far so slowly that there is time to do something in the midst of it. */
static void start_slow(struct job *j, const char *options)
{
	static char command[1024];

	make_file(in_scratch("a"), NBYTES, SEED);
	snprintf(command, sizeof(command), "echo pid $$; exec %s cp --keep-going %s '%s' '%s'",
		GRIDCOLL, options, in_scratch("a"), in_scratch("out/%%r/"));
	job_start(j, NULL, "--survive", "--grid", two_clusters(), "--per-host", "2", "--wan-budget",
		"near>far=10Mbit", "sh", "-c", command, NULL);
	await_writer(in_scratch("out/3"));
}

static void make_fast(struct job *j)
{
	assert_int_equal(run_shell("%s ctl %d budget 'near>far=off'", GRIDCOLL, (int)j->pid), 0);
}

static void one_dies_in_mid_transfer(void **state)
{
	struct job j = {0};
	int r;

	(void)state;
	start_slow(&j, "");
	await_writer(in_scratch("out/2"));
	kill(job_pid(&j, 2), SIGKILL);
	make_fast(&j);
	if (job_wait(&j) != 23 || !strstr(job_err(&j), "killed by signal 9") ||
		!strstr(job_err(&j), "left out: rank 2 on 127.0.0.2\n"))
		fail_msg("%s", job_err(&j));
	for (r = 1; r < 4; r += 2)
		assert_same_files(in_scratch("a"), in_scratch("out/%d/a", r));
	job_free(&j);
}

/* Who was to have no copy is not missed. */
static void one_that_receives_nothing_dies(void **state)
{
	char options[512];
	struct job j = {0};
	int r;

	(void)state;
	snprintf(options, sizeof(options), "--to 1,3 --json %s", in_scratch("json"));
	start_slow(&j, options);
	kill(job_pid(&j, 2), SIGKILL);
	make_fast(&j);
	if (job_wait(&j) || !strstr(job_err(&j), "killed by signal 9") ||
		!strstr(job_err(&j), ": 2 copies verified\n") || strstr(job_err(&j), "left out: "))
		fail_msg("%s", job_err(&j));
	job_free(&j);
	assert_int_equal(run_shell("grep -q '\"left_out\": \\[\\]' %s", in_scratch("json")), 0);
	for (r = 1; r < 4; r += 2)
		assert_same_files(in_scratch("a"), in_scratch("out/%d/a", r));
}

/* One dies, and another cannot have what a new world takes, however often it tries: the third gets
 * its copy all the same. */
static void one_cannot_go_on(void **state)
{
	static const struct rlimit few = {8, 8};
	struct job j = {0};

	(void)state;
	start_slow(&j, "");
	await_writer(in_scratch("out/2"));
	assert_int_equal(prlimit(job_pid(&j, 3), RLIMIT_NOFILE, &few, NULL), 0);
	kill(job_pid(&j, 2), SIGKILL);
	make_fast(&j);
	if (job_wait(&j) != 23 || !strstr(job_err(&j), "oo many open files") ||
		!strstr(job_err(&j), "to 1 rank in ") ||
		!strstr(job_err(&j), "left out: rank 2 on 127.0.0.2, rank 3 on 127.0.0.2\n"))
		fail_msg("%s", job_err(&j));
	assert_same_files(in_scratch("a"), in_scratch("out/1/a"));
	job_free(&j);
}

/* Without a source there is nothing to go on with. */
static void the_source_dies(void **state)
{
	static char command[1024];
	struct job j = {0};

	(void)state;
	make_endless(in_scratch("a"), NBYTES, SEED);
	snprintf(command, sizeof(command), "echo pid $$; exec %s cp --keep-going '%s' '%s'",
		GRIDCOLL, in_scratch("a"), in_scratch("out/%%r/"));
	job_start(&j, NULL, "--survive", "-n", "3", "sh", "-c", command, NULL);
	await_writer(in_scratch("out/1"));
	await_writer(in_scratch("out/2"));
	kill(job_pid(&j, 0), SIGKILL);
	assert_int_not_equal(job_wait(&j), 0);
	if (!strstr(job_err(&j), "the source is lost: rank 0 on local0"))
		fail_msg("%s", job_err(&j));
	assert_int_equal(entries(in_scratch("out/1")), 0);
	job_free(&j);
}

static void a_job_that_does_not_survive(void **state)
{
	(void)state;
	make_file(in_scratch("a"), 5, 1);
	RUN(2,
		"gridcoll-run: rank 0 on local0 failed: gridcoll cp: --keep-going, expected "
		"gridcoll-run --survive\n",
		"-n", "2", GRIDCOLL, "cp", "--keep-going", in_scratch("a"), in_scratch("out/%%r/"));
}

/* ---- one directory for several ranks, or jobs */

/* With these options to `out`, which 1 of `n` ranks writes; `had` of it is there. */
static void copy_to_one(
	const char *ranks, int n, const char *options, const char *from, uint64_t had)
{
	char others[80], command[1500];
	struct job j = {0};

	snprintf(others, sizeof(others),
		"\n%d more ranks have the directory of one of these: written once\n", n - 1);
	snprintf(command, sizeof(command), "exec %s cp %s --json '%s' '%s' '%s'", GRIDCOLL, options,
		in_scratch("json"), from, in_scratch("out/"));
	job_start(&j, NULL, "-n", ranks, "--quiet-prefix", "sh", "-c", command, NULL);
	if (job_wait(&j) || !strstr(job_err(&j), " 1 rank") ||
		!strstr(job_err(&j), ": 1 copy verified\n") || !strstr(job_err(&j), others) ||
		!strstr(job_err(&j), "were there already\n") != !had)
		fail_msg("%s", job_err(&j));
	job_free(&j);
	assert_int_equal(
		run_shell("grep -q '\"copies\": 1,' %s && grep -q '\"sharing\": %d,' %s && "
			  "grep -q '\"resumed_bytes\": %llu,' %s",
			in_scratch("json"), n - 1, in_scratch("json"), (unsigned long long)had,
			in_scratch("json")),
		0);
}

static void one_directory_for_all(void **state)
{
	static const char *const options[] = {"", "--resume", "--sync -r", "-r --resume"};
	struct job j = {0};
	size_t i;

	(void)state;
	make_file(in_scratch("a"), NBYTES, SEED);
	for (i = 0; i < 4; i++) {
		copy_to_one("4", 3, options[i], in_scratch("a"), 0);
		assert_same_files(in_scratch("a"), in_scratch("out/a"));
		assert_int_equal(entries(in_scratch("out")), 1);
		if (i == 1)
			copy_to_one("4", 3, options[i], in_scratch("a"), NBYTES);
		assert_int_equal(run_shell("rm -r %s", in_scratch("out")), 0);
	}
	/* With modes and times of directories, which nobody touches when they are set. */
	assert_int_equal(run_shell("cd %s && mkdir -p t/d/e && cp -p a t/d/e && ln -s a t/d/l && "
				   "chmod 550 t/d && touch -d '2001-02-03 04:05' t/d",
				 in_scratch(".")),
		0);
	copy_to_one("4", 3, "-r", in_scratch("t"), 0);
	assert_same_trees(in_scratch("t"), in_scratch("out/t"));
	copy_to_one("4", 3, "-r --resume", in_scratch("t"), NBYTES);
	assert_same_trees(in_scratch("t"), in_scratch("out/t"));
	/* The source is one of them. */
	copy_to_one("3", 3, "-0 --resume", in_scratch("a"), 0);
	assert_same_files(in_scratch("a"), in_scratch("out/a"));
	/* Two directories by four names. */
	make_dir(in_scratch("by"));
	assert_int_equal(
		run_shell("cd %s && mkdir 1 2 && ln -s 1 3 && ln -s 2 4", in_scratch("by")), 0);
	job_start(&j, NULL, "-n", "5", "--quiet-prefix", GRIDCOLL, "cp", in_scratch("a"),
		in_scratch("by/%%r/"), NULL);
	if (job_wait(&j) || !strstr(job_err(&j), ": 2 copies verified\n2 more ranks have the"))
		fail_msg("%s", job_err(&j));
	job_free(&j);
	assert_same_files(in_scratch("a"), in_scratch("by/1/a"));
	assert_same_files(in_scratch("a"), in_scratch("by/4/a"));
	/* Of one directory, by two names. */
	RUN(0, "", "-n", "3", GRIDCOLL, "cp", "-q", in_scratch("a"), in_scratch("by/%%r.copy"));
	assert_same_files(in_scratch("a"), in_scratch("by/1.copy"));
	assert_same_files(in_scratch("a"), in_scratch("by/2.copy"));
	/* Parts are not the same file. */
	RUN_LINE(2, "gridcoll-run: rank ", "expected %r or %h in DEST", "-n", "3", GRIDCOLL, "cp",
		"--scatter", in_scratch("a"), in_scratch("by/"));
	assert_false(is_there(in_scratch("by/a")));
}

static void start_endless(struct job *j)
{
	make_endless(in_scratch("a"), NBYTES, SEED);
	job_start(j, NULL, "-n", "4", GRIDCOLL, "cp", "--resume", in_scratch("a"),
		in_scratch("out/"), NULL);
	await_part(in_scratch("out"), NBYTES);
}

static void interrupt(struct job *j)
{
	kill(j->pid, SIGINT);
	assert_int_not_equal(job_wait(j), 0);
	job_free(j);
}

static void one_directory_is_gone_on_with(void **state)
{
	struct job j = {0};

	(void)state;
	start_endless(&j);
	interrupt(&j);
	assert_int_equal(entries(in_scratch("out")), 1);
	assert_int_equal(truncate(in_scratch("a"), (off_t)NBYTES), 0);
	copy_to_one("4", 3, "--resume", in_scratch("a"), NBYTES);
	assert_same_files(in_scratch("a"), in_scratch("out/a"));
	assert_int_equal(entries(in_scratch("out")), 1);
}

/* What two ranks call one place may be two, and what they call two may be one. `as` begins a command
 * that makes rank $GRIDCOLL_RANK see it so. */
static void copy_as(
	const char *as, const char *options, const char *from, const char *to, int ncopies)
{
	char command[2048], verified[40], others[80] = "";
	struct job j = {0};

	snprintf(command, sizeof(command), "%s exec %s cp --from 0 %s %s %s/%s'", as, GRIDCOLL,
		options, from, in_scratch("out"), to);
	snprintf(verified, sizeof(verified), ": %d cop%s verified\n", ncopies,
		ncopies > 1 ? "ies" : "y");
	if (ncopies < 3)
		snprintf(others, sizeof(others), "%d more ranks have the directory of one",
			3 - ncopies);
	job_start(&j, NULL, "-n", "4", "--quiet-prefix", "sh", "-c", command, NULL);
	if (job_wait(&j) || !strstr(job_err(&j), verified) || !strstr(job_err(&j), others))
		fail_msg("%s", job_err(&j));
	job_free(&j);
}

static void need_mounts(void)
{
	if (run_shell("unshare -rm mount -t tmpfs none %s 2>/dev/null", in_scratch(".")))
		skip();
}

/* As hosts do by NFS: each rank's kernel seems to have another boot. */
static void hosts_that_have_one_directory(void **state)
{
	static const char *const options[] = {"", "--resume", "-r"};
	char as[512];
	size_t i;

	(void)state;
	need_mounts();
	for (i = 0; i < 4; i++) {
		char boot[64];

		snprintf(boot, sizeof(boot), "0000000%zu-1111-2222-3333-444444444444\n", i);
		make_text(in_scratch("boot.%zu", i), boot);
	}
	make_file(in_scratch("a"), NBYTES, SEED);
	snprintf(as, sizeof(as),
		"exec unshare -rm sh -c 'mount --bind %s/boot.$GRIDCOLL_RANK "
		"/proc/sys/kernel/random/boot_id &&",
		in_scratch("."));
	for (i = 0; i < 3; i++) {
		copy_as(as, options[i], in_scratch("a"), "", 1);
		assert_same_files(in_scratch("a"), in_scratch("out/a"));
		assert_int_equal(entries(in_scratch("out")), 1);
		assert_int_equal(run_shell("rm -r %s", in_scratch("out")), 0);
	}
}

/* As clones of a virtual machine do: each has a directory of its own, by the name, device and number of
 * the others'. */
static void clones_that_seem_to_have_one_directory(void **state)
{
	char as[1024];
	int r;

	(void)state;
	make_file(in_scratch("a"), NBYTES, SEED);
	snprintf(as, sizeof(as),
		"exec sh -c 'export LD_PRELOAD=%s "
		"ASAN_OPTIONS=verify_asan_link_order=0:$ASAN_OPTIONS;",
		env_path("GRIDCOLL_TEST_CLONE"));
	copy_as(as, "", in_scratch("a"), "%r/", 3);
	copy_as(as, "--resume", in_scratch("a"), "%r.resumed/", 3);
	for (r = 1; r < 4; r++) {
		assert_same_files(in_scratch("a"), in_scratch("out/%d/a", r));
		assert_same_files(in_scratch("a"), in_scratch("out/%d.resumed/a", r));
		assert_int_equal(entries(in_scratch("out/%d", r)), 1);
	}
}

/* A path of the source's is another host's, too: there it is another file, and gets a copy. */
static void the_same_path_elsewhere(void **state)
{
	char command[2048], kept[512];

	(void)state;
	need_mounts();
	make_dir(in_scratch("in"));
	make_dir(in_scratch("kept"));
	make_file(in_scratch("in/a"), NBYTES, SEED);
	snprintf(kept, sizeof(kept), "%s", in_scratch("kept"));
	snprintf(command, sizeof(command),
		"copy=\"exec %s cp --from 0 -q %s/a %s/a\"; case $GRIDCOLL_RANK in $HERE) $copy; "
		"esac; exec unshare -rm sh -c \"mount --bind %s %s && $copy\"",
		GRIDCOLL, in_scratch("in"), in_scratch("in"), kept, in_scratch("in"));
	setenv("HERE", "0", 1);
	RUN(0, "", "-n", "3", "sh", "-c", command);
	assert_same_files(in_scratch("in/a"), in_scratch("kept/a"));
	assert_int_equal(entries(kept), 1);
	assert_int_equal(entries(in_scratch("in")), 1);
	/* One of them is where the source is. */
	setenv("HERE", "[02]", 1);
	RUN_LINE(2,
		"gridcoll-run: rank 0 on local0 failed: ", " of rank 2 on local2 are the same file",
		"-n", "3", "sh", "-c", command);
	unsetenv("HERE");
}

/* Who has looked for the others waits for one of them in vain. */
static void start_held(struct job *j, const char *options)
{
	char command[2048];

	make_file(in_scratch("a"), NBYTES, SEED);
	snprintf(command, sizeof(command),
		"echo pid $$; [ $GRIDCOLL_RANK = 3 ] && export LD_PRELOAD=%s GRIDCOLL_TEST_HOLD=1 "
		"ASAN_OPTIONS=verify_asan_link_order=0:$ASAN_OPTIONS; exec %s cp %s %s %s",
		env_path("GRIDCOLL_TEST_CLONE"), GRIDCOLL, options, in_scratch("a"),
		in_scratch("out/"));
	job_start(j, NULL, "--survive", "-n", "4", "sh", "-c", command, NULL);
	await_entry(in_scratch("out"), ".gridcoll-");
}

/* Whether a job ends there or goes on, nothing is left of the look for others. */
static void one_is_lost_among_those_of_a_directory(void **state)
{
	struct job j = {0};

	(void)state;
	start_held(&j, "");
	interrupt(&j);
	assert_int_equal(entries(in_scratch("out")), 0);
	start_held(&j, "--keep-going");
	kill(job_pid(&j, 3), SIGKILL);
	if (job_wait(&j) != 23 || !strstr(job_err(&j), ": 1 copy verified\n[0] 1 more rank has ") ||
		!strstr(job_err(&j), "left out: rank 3 on local3\n"))
		fail_msg("%s", job_err(&j));
	job_free(&j);
	assert_same_files(in_scratch("a"), in_scratch("out/a"));
	assert_int_equal(entries(in_scratch("out")), 1);
}

/* One directory, but in it each has one of its own: what goes there each writes. */
static void one_directory_with_a_mount_in_it(void **state)
{
	char as[1024];
	int r;

	(void)state;
	need_mounts();
	/* Without openat2 (old kernels, qemu before 9.2) bind mounts of one device are not told apart. */
	if (syscall(SYS_openat2, -1, "", NULL, 0) < 0 && errno == ENOSYS)
		skip();
	make_dir(in_scratch("t"));
	make_dir(in_scratch("t/d"));
	make_file(in_scratch("t/d/a"), NBYTES, SEED);
	make_dir(in_scratch("out"));
	make_dir(in_scratch("out/d"));
	for (r = 0; r < 4; r++)
		make_dir(in_scratch("own.%d", r));
	snprintf(as, sizeof(as),
		"exec unshare -rm sh -c 'mount --bind %s/own.$GRIDCOLL_RANK %s && ",
		in_scratch("."), in_scratch("out/d"));
	copy_as(as, "-r", in_scratch("t/"), "", 3);
	for (r = 1; r < 4; r++)
		assert_same_files(in_scratch("t/d/a"), in_scratch("own.%d/a", r));
	assert_int_equal(entries(in_scratch("out/d")), 0);
	/* What is not on the way to it makes no difference. */
	copy_as(as, "", in_scratch("t/d/a"), "", 1);
	assert_same_files(in_scratch("t/d/a"), in_scratch("out/a"));
}

/* Another job copies a file of the same name to the same place, and has done so before this one. */
static void another_job_has_the_part(void **state)
{
	struct job j = {0};

	(void)state;
	make_dir(in_scratch("b"));
	make_file(in_scratch("b/a"), NBYTES, SEED + 1);
	start_endless(&j);
	copy_to_one("4", 3, "--resume", in_scratch("b/a"), 0);
	assert_same_files(in_scratch("b/a"), in_scratch("out/a"));
	interrupt(&j);
	assert_same_files(in_scratch("b/a"), in_scratch("out/a"));
	assert_int_equal(entries(in_scratch("out")), 2);
	assert_int_equal(truncate(in_scratch("a"), (off_t)NBYTES), 0);
	copy_to_one("4", 3, "--resume", in_scratch("a"), NBYTES);
	assert_same_files(in_scratch("a"), in_scratch("out/a"));
	assert_int_equal(entries(in_scratch("out")), 1);
}

/* The one that writes dies: the next one does it. */
static void the_writer_dies(const char *option)
{
	static char command[1024];
	struct job j = {0};

	snprintf(command, sizeof(command),
		"echo pid $$; exec %s cp --keep-going %s --to 2,3 '%s' '%s'", GRIDCOLL, option,
		in_scratch("a"), in_scratch("out/"));
	job_start(&j, NULL, "--survive", "--grid", two_clusters(), "--per-host", "2",
		"--wan-budget", "near>far=10Mbit", "sh", "-c", command, NULL);
	if (*option)
		await_part(in_scratch("out"), 1);
	else
		await_writer(in_scratch("out"));
	kill(job_pid(&j, 2), SIGKILL);
	make_fast(&j);
	if (job_wait(&j) != 23 || !strstr(job_err(&j), "to 1 rank in ") ||
		!strstr(job_err(&j), ": 1 copy verified\n") ||
		!strstr(job_err(&j), "left out: rank 2 on 127.0.0.2\n"))
		fail_msg("%s", job_err(&j));
	job_free(&j);
	assert_same_files(in_scratch("a"), in_scratch("out/a"));
	assert_int_equal(entries(in_scratch("out")), 1);
	assert_int_equal(run_shell("rm -r %s", in_scratch("out")), 0);
}

static void another_writes_in_its_place(void **state)
{
	(void)state;
	make_file(in_scratch("a"), NBYTES, SEED);
	the_writer_dies("");
	the_writer_dies("--resume");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_job_goes_on),
		TEST(each_has_something_else),
		TEST(what_a_failure_leaves),
		TEST(called_as_a_part),
		TEST(one_cannot_write),
		TEST(none_can_write),
		TEST(one_dies_in_mid_transfer),
		TEST(one_that_receives_nothing_dies),
		TEST(one_cannot_go_on),
		TEST(the_source_dies),
		TEST(a_job_that_does_not_survive),
		TEST(one_directory_for_all),
		TEST(one_directory_is_gone_on_with),
		TEST(hosts_that_have_one_directory),
		TEST(the_same_path_elsewhere),
		TEST(clones_that_seem_to_have_one_directory),
		TEST(one_is_lost_among_those_of_a_directory),
		TEST(one_directory_with_a_mount_in_it),
		TEST(another_job_has_the_part),
		TEST(another_writes_in_its_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
