/* SPDX-License-Identifier: MIT
 * Jobs of gridcoll cp -r --resume over trees of which the receivers have some files, wherever they
 * are: what all of them have is not sent, and stays the file that it was; the rest is. All copies
 * are compared with their source. */
#include "tests/tools/jobs.h"
#include "tests/tools/trees.h"
#include "tools/cp/cp.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define B ((uint64_t)GCT_CP_BLOCK_NBYTES)

/* In the order of the stream; the second is empty, the third is mostly hole, the fourth is a block to
 * the byte. */
static const char *const names[] = {"1", "2", "3", "4", "d/5", "d/6"};
static const uint64_t sizes[] = {B + 12345, 0, 3 * B, B, 100, 2 * B - 1};

#define NFILES (sizeof(names) / sizeof(*names))
#define NBYTES (7 * B + 12345 + 99)
#define ALL    ((1u << NFILES) - 1)
#define BIT(i) (1u << ((i)-1)) /* of the file called so */

static ino_t inodes[4][NFILES]; /* [rank] */

static const char *source(size_t i)
{
	return in_scratch("t/%s", names[i]);
}

static const char *copy(int rank, size_t i)
{
	return in_scratch("out/%d/t/%s", rank, names[i]);
}

static void make_source(void)
{
	size_t i;

	make_dir(in_scratch("t"));
	make_dir(in_scratch("t/d"));
	for (i = 0; i < NFILES; i++)
		make_file(source(i), i == 2 ? 5 : sizes[i], i + 1);
	assert_int_equal(truncate(source(2), (off_t)sizes[2]), 0);
}

/* All copies, by a job, from rank `first` on. */
static void copy_all(int first)
{
	int r;
	size_t i;

	make_source();
	RUN(0, "", "-n", "4", GRIDCOLL, "cp", "-qr", "--resume", first ? "--sync" : "-0",
		in_scratch("t"), in_scratch("out/%%r/"));
	for (r = first; r < 4; r++)
		for (i = 0; i < NFILES; i++)
			inodes[r][i] = look(copy(r, i)).st_ino;
}

/* It is missing, but another file does not get its inode. */
static void take_away(const char *path)
{
	static int n;

	assert_int_equal(rename(path, in_scratch("taken%d", n++)), 0);
}

/* Copies are as the source is, and of these files none was replaced. */
static void check(int rank, unsigned kept)
{
	size_t i;

	assert_same_trees(in_scratch("t"), in_scratch("out/%d/t", rank));
	for (i = 0; i < NFILES; i++)
		if ((look(copy(rank, i)).st_ino == inodes[rank][i]) != (kept >> i & 1))
			fail_msg("rank %d, file %s", rank, names[i]);
}

/* The report of a job that ranks from `first` on had `had` bytes. */
static void check_report(int first, uint64_t had)
{
	json_t *o = json_load_file(in_scratch("json"), 0, NULL);

	assert_non_null(o);
	assert_int_equal(json_integer_value(json_object_get(o, "bytes")), NBYTES);
	assert_int_equal(json_integer_value(json_object_get(o, "resumed_bytes")), had);
	assert_int_equal(
		json_integer_value(json_object_get(o, "copies")), (int)NFILES * (4 - first));
	assert_int_equal(json_array_size(json_object_get(o, "checksums")), NFILES);
	json_decref(o);
	if (!run_shell("command -v sha256sum >/dev/null"))
		assert_int_equal(run_shell("cd %s && sha256sum --status -c %s", in_scratch("out/3"),
					 in_scratch("sums")),
			0);
}

/* Copies once more, from rank `first` on; kept[rank] is what each had, and has still, and `parts` the
 * bytes that they had of others. */
static void resume(int first, const unsigned *kept, uint64_t parts)
{
	struct job j = {0};
	uint64_t had = parts;
	size_t i;
	int r;

	for (r = first; r < 4; r++)
		for (i = 0; i < NFILES; i++)
			had += kept[r] >> i & 1 ? sizes[i] : 0;
	job_start(&j, NULL, "-n", "4", GRIDCOLL, "cp", "-r", "--resume", "--json",
		in_scratch("json"), "--manifest", in_scratch("sums"), first ? "--sync" : "-0",
		in_scratch("t"), in_scratch("out/%%r/"), NULL);
	if (job_wait(&j) ||
		!strstr(job_err(&j), "\n[0] all ") != (had < NBYTES * (4 - (size_t)first)))
		fail_msg("%s", job_err(&j));
	job_free(&j);
	check_report(first, had);
	for (r = first; r < 4; r++)
		check(r, kept[r]);
}

static void an_early_file_has_changed(void **state)
{
	static const unsigned kept[] = {ALL & ~BIT(1), ALL & ~BIT(1), ALL & ~BIT(1), ALL & ~BIT(1)};

	(void)state;
	copy_all(0);
	make_file(source(0), sizes[0], 99);
	resume(0, kept, 0);
}

static void nothing_has_changed(void **state)
{
	static const unsigned kept[] = {0, ALL, ALL, ALL};

	(void)state;
	copy_all(1);
	resume(1, kept, 0);
}

/* What one lacks is sent; and what is behind it, if anybody lacks that. */
static void each_lacks_another(void **state)
{
	static const unsigned kept[] = {0, ALL & ~BIT(4), ALL & ~BIT(2) & ~BIT(4), ALL};

	(void)state;
	copy_all(1);
	take_away(copy(1, 3));
	take_away(copy(2, 1));
	resume(1, kept, 0);
}

/* By size and time they look whole. */
static void some_have_other_contents(void **state)
{
	static const unsigned kept[] = {
		0, ALL & ~BIT(4) & ~BIT(6), ALL & ~BIT(1) & ~BIT(4) & ~BIT(6), ALL & ~BIT(6)};

	(void)state;
	copy_all(1);
	flip_in_secret(copy(1, 3), sizes[3] / 2);
	flip_in_secret(copy(2, 0), sizes[0] / 2);
	flip_in_secret(source(5), sizes[5] / 2); /* nobody has it */
	resume(1, kept, 0);
}

/* What all would have, if it were not for one. */
static void one_has_nothing(void **state)
{
	static const unsigned kept[] = {0, ALL, 0, 0};

	(void)state;
	copy_all(1);
	take_away(in_scratch("out/2"));
	take_away(copy(3, 0));
	resume(1, kept, 0);
}

/* Of a file before those that all have, a part is there. */
static void one_has_a_part(void **state)
{
	static const unsigned kept[] = {0, ALL, ALL & ~BIT(1), ALL};
	struct gct_cp_file f = {.name = (char *)(uintptr_t)names[0]};
	struct gct_cp_manifest m = {.files = &f, .nfiles = 1};
	struct gct_cp_sink s = {.manifest = &m, .into_directory = 1};
	char *part, dest[512];

	(void)state;
	copy_all(1);
	snprintf(dest, sizeof(dest), "%s", in_scratch("out/2/t"));
	s.dest = dest;
	part = gct_cp_sink_part(&s, 0);
	assert_non_null(part);
	assert_int_equal(rename(copy(2, 0), part), 0);
	assert_int_equal(truncate(part, (off_t)(B + 5)), 0);
	inodes[2][0] = 0; /* the part gets the name */
	resume(1, kept, B);
	free(part);
}

/* Files that all have are left out, whoever is. */
static void one_is_left_out(void **state)
{
	char command[2048];
	struct job j = {0};
	int i;

	(void)state;
	copy_all(1);
	snprintf(command, sizeof(command),
		"[ $GRIDCOLL_RANK = 2 ] && { ulimit -f 100; }; exec %s cp -r --resume --keep-going "
		"'%s' '%s'",
		GRIDCOLL, in_scratch("t"), in_scratch("out/%%r/"));
	for (i = 0; i < 5; i++) {
		make_file(source(0), sizes[0], 100 + (uint64_t)i);
		job_start(&j, NULL, "--survive", "-n", "4", "--quiet-prefix", "sh", "-c", command,
			NULL);
		if (job_wait(&j) != 23 || !strstr(job_err(&j), "\nleft out: rank 2 on local2\n"))
			fail_msg("%s", job_err(&j));
		job_free(&j);
		check(1, ALL & ~BIT(1));
		check(3, ALL & ~BIT(1));
		inodes[1][0] = look(copy(1, 0)).st_ino;
		inodes[3][0] = look(copy(3, 0)).st_ino;
	}
}

/* The first file, which has changed, is on its way. */
static void start_slow(struct job *j, const char *limit)
{
	char command[2048];
	int r;

	copy_all(1);
	make_file(source(0), sizes[0], 99);
	snprintf(command, sizeof(command),
		"echo pid $$; exec %s cp -qr --resume --bwlimit %s '%s' '%s'", GRIDCOLL, limit,
		in_scratch("t"), in_scratch("out/%%r/"));
	job_start(j, NULL, "-n", "4", "sh", "-c", command, NULL);
	for (r = 1; r < 4; r++)
		await_entry(in_scratch("out/%d/t", r), ".gridcoll-");
}

/* Bytes that a process has read so far. */
static uint64_t bytes_read(pid_t pid)
{
	unsigned long long n = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/io", (int)pid);
	f = fopen(path, "r");
	if (!f || fscanf(f, "rchar: %llu", &n) != 1)
		print_message("no %s, so nothing is known of what was read\n", path);
	if (f)
		fclose(f);
	return n;
}

/* What is sent in any case is not read for its checksums before, though it stands before files that
 * all have. */
static void what_all_lack_is_not_compared(void **state)
{
	const uint64_t compared = NBYTES - sizes[0] - 2 * B; /* but for a hole */
	struct job j = {0};

	(void)state;
	start_slow(&j, "100kB");
	assert_in_range(bytes_read(job_pid(&j, 0)), 0, compared + B / 2);
	jobs_end();
	job_free(&j);
}

/* What was compared before it changed is what it was; what is read after that is an error. */
static void the_source_changes(void **state)
{
	struct job j = {0};
	int r;

	(void)state;
	start_slow(&j, "2MB");
	assert_int_equal(run_shell("cp -p %s %s", source(5), in_scratch("was")), 0);
	make_file(source(5), sizes[5], 98);
	assert_int_equal(job_wait(&j), 0);
	job_free(&j);
	for (r = 1; r < 4; r++) {
		assert_same_files(source(0), copy(r, 0));
		assert_same_files(in_scratch("was"), copy(r, 5));
		assert_int_equal(look(copy(r, 5)).st_ino, inodes[r][5]);
	}
}

static void the_source_changes_under_way(void **state)
{
	struct job j = {0};
	int r;

	(void)state;
	start_slow(&j, "100kB");
	assert_int_equal(truncate(source(0), 5), 0);
	assert_int_equal(job_wait(&j), 1);
	if (!strstr(job_err(&j), "t/1 changed while it was being read\n"))
		fail_msg("%s", job_err(&j));
	job_free(&j);
	for (r = 1; r < 4; r++)
		assert_int_equal(look(copy(r, 0)).st_ino, inodes[r][0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_early_file_has_changed),
		TEST(nothing_has_changed),
		TEST(each_lacks_another),
		TEST(some_have_other_contents),
		TEST(one_has_nothing),
		TEST(one_has_a_part),
		TEST(one_is_left_out),
		TEST(what_all_lack_is_not_compared),
		TEST(the_source_changes),
		TEST(the_source_changes_under_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
