/* SPDX-License-Identifier: MIT
 * gridcoll cp --resume and --keep-going: what is there need not come again, if it is what it seems;
 * who is dead is not waited for. All copies are compared with their source. */
#include "base/clock.h"
#include "base/mem.h"
#include "tests/tools/jobs.h"
#include "tools/cp.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define B      ((uint64_t)GCT_CP_BLOCK_NBYTES)
#define NBYTES (5 * B + 12345)
#define SEED   7

/* ---- what is there, without a job */

struct set {
	struct gct_cp_manifest m;
	struct gct_cp_sink sink;
	char *paths[3], *out;
	uint32_t crcs[16];
	uint64_t nblocks;
};

/* Three files: five blocks and some, none, and one block to the byte. */
static int set_make(void **state)
{
	static const uint64_t sizes[] = {NBYTES, 0, B};
	struct set *s = gci_calloc(1, sizeof(*s));
	struct gci_error e = {0};
	int i;

	scratch_make(NULL);
	for (i = 0; i < 3; i++) {
		s->paths[i] = strdup(in_scratch("%d", i));
		make_file(s->paths[i], sizes[i], (uint64_t)i);
	}
	make_dir(in_scratch("out"));
	s->out = strdup(in_scratch("out"));
	assert_int_equal(gct_cp_manifest_scan(&s->m, s->paths, 3, 1, &e), 0);
	assert_int_equal(gct_cp_sink_init(&s->sink, &s->m, s->out, 1, GCT_CP_KEEP, &e), 0);
	s->nblocks = gct_cp_nblocks(&s->m);
	assert_int_equal(s->nblocks, 7);
	assert_int_equal(gct_cp_sum_blocks(&s->m, s->paths, s->crcs, s->nblocks, &e), 0);
	*state = s;
	return 0;
}

static int set_free(void **state)
{
	struct set *s = *state;
	int i;

	gct_cp_sink_close(&s->sink);
	gct_cp_manifest_free(&s->m);
	for (i = 0; i < 3; i++)
		free(s->paths[i]);
	free(s->out);
	gci_free(s);
	return scratch_remove(NULL);
}

/* Writes the stream from where the sink is, up to `end`. */
static void write_to(struct set *s, uint64_t end)
{
	struct gct_cp_source in;
	struct gci_error e = {0};
	uint64_t at = gct_cp_sink_at(&s->sink), some;
	char *buf = gci_calloc(B, 1);

	gct_cp_source_init(&in, &s->m, s->paths);
	assert_int_equal(gct_cp_source_seek(&in, at, &e), 0);
	for (; at < end && !e.status; at += some) {
		some = end - at < B ? end - at : B;
		gct_cp_source_read(&in, buf, some, &e);
		if (!e.status)
			gct_cp_sink_write(&s->sink, buf, some, &e);
	}
	if (e.status)
		fail_msg("%s", e.text);
	gct_cp_source_close(&in);
	gci_free(buf);
}

/* As another call would: what is there, then the rest. Returns how much was there. */
static uint64_t go_on(struct set *s)
{
	struct gct_cp_point p;
	struct gci_error e = {0};
	uint64_t n, had;
	int i;

	gct_cp_sink_close(&s->sink);
	assert_int_equal(gct_cp_sink_init(&s->sink, &s->m, s->out, 1, GCT_CP_KEEP, &e), 0);
	n = gct_cp_claim(&s->sink);
	assert_true(n <= s->nblocks);
	assert_int_equal(gct_cp_verify(&s->sink, s->crcs, n, &p), 0);
	had = gct_cp_stream_at(&s->m, p.file, p.offset);
	if (gct_cp_sink_resume(&s->sink, &p, &e) || gct_cp_sink_start(&s->sink, &e))
		fail_msg("%s", e.text);
	assert_true(gct_cp_sink_at(&s->sink) == had);
	write_to(s, s->m.stream_nbytes);
	assert_int_equal(gct_cp_sink_finish(&s->sink, &e), 0);
	for (i = 0; i < 3; i++)
		assert_same_files(s->paths[i], in_scratch("out/%d", i));
	assert_int_equal(entries(s->out), 3);
	return had;
}

static char *part_of(struct set *s, uint32_t file)
{
	char *path = gct_cp_sink_part(&s->sink, file);

	assert_non_null(path);
	return path;
}

static void flip(const char *path, uint64_t at)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	char c;

	assert_int_equal(pread(fd, &c, 1, (off_t)at), 1);
	c ^= 1;
	assert_int_equal(pwrite(fd, &c, 1, (off_t)at), 1);
	close(fd);
}

static void nothing_is_there(void **state)
{
	assert_true(go_on(*state) == 0);
}

static void any_place_to_stop(void **state)
{
	struct set *s = *state;
	const struct {
		uint64_t stop, had;
	} cases[] = {{1, 0}, {B - 1, 0}, {B, B}, {3 * B + 5, 3 * B}, {NBYTES, NBYTES},
		{NBYTES + 3, NBYTES}, {NBYTES + 4, NBYTES + 4}, {NBYTES + 8, NBYTES + 8},
		{NBYTES + 8 + B - 1, NBYTES + 8}, {NBYTES + 8 + B, NBYTES + 8 + B},
		{NBYTES + 12 + B, NBYTES + 12 + B}};
	struct gci_error e = {0};
	size_t i;
	int k;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		gct_cp_sink_close(&s->sink);
		for (k = 0; k < 3; k++)
			unlink(in_scratch("out/%d", k));
		gct_cp_sink_init(&s->sink, &s->m, s->out, 1, GCT_CP_KEEP, &e);
		write_to(s, cases[i].stop);
		if (go_on(s) != cases[i].had)
			fail_msg("stopped at %llu", (unsigned long long)cases[i].stop);
	}
}

/* Up to the block that is damaged, all is used; nothing behind it. */
static void damage_is_found(void **state)
{
	struct set *s = *state;
	char *part = part_of(s, 0);

	write_to(s, 4 * B + 77);
	flip(part, 2 * B + 99);
	assert_true(go_on(s) == 2 * B);
	free(part);
}

/* Of a whole file, too, though its size and time are right; it is not written into. */
static void a_whole_file_is_damaged(void **state)
{
	struct set *s = *state;
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
		{.tv_sec = s->m.files[0].mtime_s, .tv_nsec = s->m.files[0].mtime_ns}};

	write_to(s, s->m.stream_nbytes);
	flip(in_scratch("out/0"), 3 * B);
	assert_int_equal(link(in_scratch("out/0"), in_scratch("other")), 0);
	assert_int_equal(utimensat(AT_FDCWD, in_scratch("out/0"), times, 0), 0);
	assert_true(go_on(s) == 0);
	flip(in_scratch("other"), 3 * B);
	assert_int_equal(look(in_scratch("other")).st_size, NBYTES);
}

/* What was longer, or is of another file: rests of it must not show where the source has zeros. */
static void rests_of_another_file(void **state)
{
	struct set *s = *state;
	struct gci_error e = {0};
	char *part = part_of(s, 0);

	assert_int_equal(truncate(s->paths[0], 0), 0);
	assert_int_equal(truncate(s->paths[0], (off_t)NBYTES), 0); /* zeros all over */
	gct_cp_manifest_free(&s->m);
	assert_int_equal(gct_cp_manifest_scan(&s->m, s->paths, 3, 1, &e), 0);
	assert_int_equal(gct_cp_sum_blocks(&s->m, s->paths, s->crcs, s->nblocks, &e), 0);
	make_file(part, NBYTES + B, 99);
	assert_true(go_on(s) == 0);
	free(part);
}

/* Whoever can write to the directory cannot make us write elsewhere. */
static void what_is_planted_is_refused(void **state)
{
	struct set *s = *state;
	struct gci_error e = {0};
	char *part = part_of(s, 0);

	make_text(in_scratch("victim"), "do not touch");
	assert_int_equal(symlink(in_scratch("victim"), part), 0);
	assert_int_equal(gct_cp_claim(&s->sink), 0);
	assert_int_not_equal(gct_cp_sink_start(&s->sink, &e), 0);
	gci_error_clear(&e);
	unlink(part);
	assert_int_equal(link(in_scratch("victim"), part), 0);
	assert_int_not_equal(gct_cp_sink_start(&s->sink, &e), 0);
	assert_non_null(strstr(e.text, "not a file of this user's alone"));
	gci_error_clear(&e);
	unlink(part);
	assert_int_equal(mkfifo(part, 0600), 0);
	assert_int_equal(gct_cp_claim(&s->sink), 0);
	assert_int_not_equal(gct_cp_sink_start(&s->sink, &e), 0);
	assert_text(in_scratch("victim"), "do not touch");
	unlink(part);
	free(part);
}

static void a_source_that_changes_is_noticed(void **state)
{
	struct set *s = *state;
	struct gci_error e = {0};

	make_file(s->paths[0], NBYTES - 1, 3);
	assert_int_equal(gct_cp_sum_blocks(&s->m, s->paths, s->crcs, s->nblocks, &e), GCOLL_ERR_IO);
}

/* ---- jobs */

static void await_part(int rank, uint64_t nbytes)
{
	char *part = NULL;
	struct gct_cp_file f = {.name = (char *)(uintptr_t) "a"};
	struct gct_cp_manifest m = {.files = &f, .nfiles = 1};
	struct gct_cp_sink s = {.manifest = &m, .into_directory = 1};
	char dest[512];
	uint64_t end_ns = gci_now_ns() + 60 * GCI_NS_PER_S;
	struct stat st;

	snprintf(dest, sizeof(dest), "%s", in_scratch("out/%d", rank));
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
		await_part(r, NBYTES);
	kill(j.pid, SIGINT);
	assert_int_not_equal(job_wait(&j), 0);
	job_free(&j);
	assert_int_equal(truncate(in_scratch("a"), (off_t)NBYTES), 0);
	job_start(&j, NULL, "-n", "4", "--quiet-prefix", GRIDCOLL, "cp", "--resume",
		in_scratch("a"), in_scratch("out/%%r/"), NULL);
	assert_int_equal(job_wait(&j), 0);
	if (!strstr(job_err(&j),
		    ": 3 copies verified\n63.0 MB of these copies were there already\n"))
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
	int r;

	(void)state;
	make_endless(in_scratch("a"), NBYTES, SEED);
	job_start(&j, NULL, "-n", "4", GRIDCOLL, "cp", "--resume", in_scratch("a"),
		in_scratch("out/%%r/"), NULL);
	for (r = 1; r < 4; r++)
		await_part(r, NBYTES);
	assert_int_equal(truncate(in_scratch("a"), 5), 0); /* it changed while it was being read */
	assert_int_equal(job_wait(&j), 1);
	job_free(&j);
	for (r = 1; r < 4; r++) {
		assert_int_equal(entries(in_scratch("out/%d", r)), 1);
		assert_false(is_there(in_scratch("out/%d/a", r)));
	}
}

/* `how` is a shell's word for what rank 2 does before it copies. Ends with all copies but its own.
 */
static void go_on_without(const char *how, const char *cause)
{
	char command[2048];
	struct job j = {0};
	int r;

	make_file(in_scratch("a"), NBYTES, SEED);
	snprintf(command, sizeof(command),
		"[ $GRIDCOLL_RANK = 2 ] && { %s; }; exec %s cp --keep-going '%s' '%s'", how,
		GRIDCOLL, in_scratch("a"), in_scratch("out/%%r/"));
	job_start(&j, NULL, "--survive", "-n", "4", "--quiet-prefix", "sh", "-c", command, NULL);
	if (job_wait(&j) || !strstr(job_err(&j), cause) || !strstr(job_err(&j), "to 2 ranks in ") ||
		!strstr(job_err(&j), ": 2 copies verified\nleft out: rank 2 on local2\n"))
		fail_msg("%s", job_err(&j));
	for (r = 1; r < 4; r += 2)
		assert_same_files(in_scratch("a"), in_scratch("out/%d/a", r));
	assert_false(is_there(in_scratch("out/2/a")));
	job_free(&j);
}

static void one_cannot_write(void **state)
{
	(void)state;
	go_on_without("ulimit -f 100", "/out/2/a: File too large\n");
}

/* The link is so slow that there is time to kill a receiver in the midst of it; not any more when
 * that is done. */
static void one_dies_in_mid_transfer(void **state)
{
	static char command[1024];
	struct job j = {0};
	int r, pid;

	(void)state;
	make_file(in_scratch("a"), NBYTES, SEED);
	make_text(in_scratch("two.grid"), "[cluster a]\nhosts = 127.0.0.1\nnic = 1Gbit\n"
					  "[cluster b]\nhosts = 127.0.0.2\nnic = 1Gbit\n"
					  "[link a b]\nrate = 1Gbit\ndelay = 1ms\n");
	snprintf(command, sizeof(command), "echo pid $$; exec %s cp --keep-going '%s' '%s'",
		GRIDCOLL, in_scratch("a"), in_scratch("out/%%r/"));
	job_start(&j, NULL, "--survive", "--grid", in_scratch("two.grid"), "--per-host", "2",
		"--wan-budget", "a>b=10Mbit", "sh", "-c", command, NULL);
	await_entry(in_scratch("out/3"), ".gridcoll-");
	await_entry(in_scratch("out/2"), ".gridcoll-");
	job_await(&j, "[2] pid ");
	pid = atoi(strstr(job_out(&j), "[2] pid ") + strlen("[2] pid "));
	assert_true(pid > 1);
	kill(pid, SIGKILL);
	assert_int_equal(run_shell("%s ctl %d budget 'a>b=off'", GRIDCOLL, (int)j.pid), 0);
	if (job_wait(&j) || !strstr(job_err(&j), "killed by signal 9") ||
		!strstr(job_err(&j), "left out: rank 2 on 127.0.0.2\n"))
		fail_msg("%s", job_err(&j));
	for (r = 1; r < 4; r += 2)
		assert_same_files(in_scratch("a"), in_scratch("out/%d/a", r));
	job_free(&j);
}

/* Without a source there is nothing to go on with. */
static void the_source_dies(void **state)
{
	static char command[1024];
	struct job j = {0};
	int pid;

	(void)state;
	make_endless(in_scratch("a"), NBYTES, SEED);
	snprintf(command, sizeof(command), "echo pid $$; exec %s cp --keep-going '%s' '%s'",
		GRIDCOLL, in_scratch("a"), in_scratch("out/%%r/"));
	job_start(&j, NULL, "--survive", "-n", "3", "sh", "-c", command, NULL);
	await_entry(in_scratch("out/1"), ".gridcoll-");
	await_entry(in_scratch("out/2"), ".gridcoll-");
	job_await(&j, "[0] pid ");
	pid = atoi(strstr(job_out(&j), "[0] pid ") + strlen("[0] pid "));
	assert_true(pid > 1);
	kill(pid, SIGKILL);
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

#define S(f) cmocka_unit_test_setup_teardown(f, set_make, set_free)

int main(void)
{
	const struct CMUnitTest tests[] = {
		S(nothing_is_there),
		S(any_place_to_stop),
		S(damage_is_found),
		S(a_whole_file_is_damaged),
		S(rests_of_another_file),
		S(what_is_planted_is_refused),
		S(a_source_that_changes_is_noticed),
		TEST(a_job_goes_on),
		TEST(each_has_something_else),
		TEST(what_a_failure_leaves),
		TEST(one_cannot_write),
		TEST(one_dies_in_mid_transfer),
		TEST(the_source_dies),
		TEST(a_job_that_does_not_survive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
