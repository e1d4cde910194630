/* SPDX-License-Identifier: MIT
 * Trees, from rank 0's list to a receiver's disk, without a network: what is copied, and what
 * neither a list nor what stands in a receiver's way can make it do. */
#include "base/mem.h"
#include "tests/test.h"
#include "tests/tools/files.h"
#include "tests/tools/trees.h"
#include "tools/cp/cp.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PIECE 10007

/* A copy under way. */
struct copy {
	struct gct_cp_manifest m, received;
	struct gct_cp_source in;
	struct gct_cp_sink out;
	char dest[256];
};

/* Rank 0's list, as it comes out at a receiver. */
static int begin(struct copy *c, const char *source, unsigned how, struct gci_error *e)
{
	char *paths[] = {(char *)(uintptr_t)source};
	struct gci_buf buf = {0};
	int rc;

	*c = (struct copy){.out = {.fd = -1}};
	snprintf(c->dest, sizeof(c->dest), "%s", in_scratch("out"));
	if (gct_cp_manifest_scan(&c->m, paths, 1, GCT_CP_RECURSIVE, e))
		return e->status;
	gct_cp_manifest_encode(&c->m, &buf);
	rc = gct_cp_manifest_decode(&c->received, buf.data, buf.len, e);
	gci_buf_free(&buf);
	gct_cp_source_init(&c->in, &c->m);
	if (!rc)
		rc = gct_cp_sink_init(
			&c->out, &c->received, c->dest, c->received.into_directory, how, e);
	return rc;
}

/* Moves up to `most` bytes. */
static int move(struct copy *c, uint64_t most, struct gci_error *e)
{
	uint64_t at = gct_cp_sink_at(&c->out), end = c->m.stream_nbytes;
	char buf[PIECE];

	end = end - at < most ? end : at + most;
	for (; at < end && !e->status; at += sizeof(buf)) {
		size_t n = end - at < sizeof(buf) ? (size_t)(end - at) : sizeof(buf);

		if (!gct_cp_source_read(&c->in, buf, n, e))
			gct_cp_sink_write(&c->out, buf, n, e);
	}
	return e->status;
}

static void end(struct copy *c)
{
	if (c->in.manifest)
		gct_cp_source_close(&c->in);
	gct_cp_sink_close(&c->out);
	gct_cp_manifest_free(&c->m);
	gct_cp_manifest_free(&c->received);
}

static int copy(const char *source, unsigned how, struct gci_error *e)
{
	struct copy c;

	if (!begin(&c, source, how, e) && !gct_cp_sink_start(&c.out, e) &&
		!move(&c, UINT64_MAX, e) && !gct_cp_sink_finish(&c.out, e))
		assert_int_equal(gct_cp_sink_finish(&c.out, e), 0); /* does nothing more */
	end(&c);
	return e->status;
}

static void assert_copied(const char *source, unsigned how)
{
	struct gci_error e = {0};

	if (copy(source, how, &e))
		fail_msg("%s", e.text);
}

static void a_tree(void **state)
{
	(void)state;
	make_tree(in_scratch("t"));
	make_dir(in_scratch("out"));
	assert_copied(in_scratch("t"), 0);
	assert_int_equal(entries(in_scratch("out")), 1);
	assert_same_trees(in_scratch("t"), in_scratch("out/t"));
}

/* What is there is replaced, also in a directory that may not be written to. */
static void a_tree_again(void **state)
{
	(void)state;
	make_tree(in_scratch("t"));
	make_dir(in_scratch("out"));
	assert_copied(in_scratch("t"), GCT_CP_SYNC);
	make_file(in_scratch("t/a/deep/3"), 12345, 99);
	unlink(in_scratch("out/t/to-file"));
	make_text(in_scratch("out/t/to-file"), "in place of a link");
	unlink(in_scratch("out/t/a/to-directory"));
	assert_int_equal(symlink("elsewhere", in_scratch("out/t/a/to-directory")), 0);
	assert_copied(in_scratch("t"), GCT_CP_KEEP);
	assert_same_trees(in_scratch("t"), in_scratch("out/t"));
}

static void names_of_sources(void **state)
{
	static const char *const contents[] = {"t/", "t//", "t/.", "t/a/.."};
	struct gci_error e = {0};
	struct copy c;
	size_t i;

	(void)state;
	make_tree(in_scratch("t"));
	for (i = 0; i < sizeof(contents) / sizeof(*contents); i++) {
		assert_int_equal(begin(&c, in_scratch("%s", contents[i]), 0, &e), 0);
		assert_int_equal(c.m.ndirs, 5);
		assert_string_equal(c.m.dirs[0].name, "a");
		end(&c);
	}
	make_dir(in_scratch("out"));
	assert_copied(in_scratch("t/"), 0);
	assert_same_trees(in_scratch("t"), in_scratch("out"));

	/* A link to a directory is a link, and what it points at a directory. */
	assert_int_equal(symlink("t", in_scratch("l")), 0);
	assert_int_equal(begin(&c, in_scratch("l"), 0, &e), 0);
	assert_int_equal(c.m.nlinks, 1);
	assert_int_equal(c.m.ndirs + c.m.nfiles, 0);
	end(&c);
	assert_int_equal(begin(&c, in_scratch("l/"), 0, &e), 0);
	assert_int_equal(c.m.ndirs, 5);
	end(&c);
	/* A file is still a file, and DEST its name. */
	assert_int_equal(begin(&c, in_scratch("t/top"), 0, &e), 0);
	assert_int_equal(c.m.into_directory, 0);
	end(&c);
}

/* Rank 0 reads no further than its list: a directory that has become a link is an error. */
static void a_source_that_becomes_a_link(void **state)
{
	struct gci_error e = {0};
	struct copy c;
	char *path;

	(void)state;
	make_tree(in_scratch("t"));
	make_tree(in_scratch("other"));
	make_dir(in_scratch("out"));
	assert_int_equal(begin(&c, in_scratch("t"), 0, &e), 0);
	assert_int_equal(rename(in_scratch("t/a"), in_scratch("moved")), 0);
	assert_int_equal(symlink("../moved", in_scratch("t/a")), 0);
	assert_int_equal(gct_cp_sink_start(&c.out, &e), 0);
	assert_int_equal(move(&c, UINT64_MAX, &e), GCOLL_ERR_IO);
	path = strdup(in_scratch("t/a/nothing"));
	assert_non_null(strstr(e.text, path));
	free(path);
	end(&c);
}

/* What is planted at a receiver: nothing is written where it leads. */
static void refuse_planted(const char *plant, const char *text)
{
	struct gci_error e = {0};

	assert_int_equal(symlink(in_scratch("victim"), plant), 0);
	assert_int_equal(copy(in_scratch("t"), 0, &e), GCOLL_ERR_IO);
	if (!strstr(e.text, text))
		fail_msg("%s", e.text);
	assert_int_equal(entries(in_scratch("victim")), 0);
	unlink(plant);
}

static void links_are_not_written_through(void **state)
{
	(void)state;
	make_tree(in_scratch("t"));
	make_dir(in_scratch("victim"));
	make_dir(in_scratch("out"));
	refuse_planted(in_scratch("out/t"), "out/t: a symbolic link is called so");
	make_dir(in_scratch("out/t"));
	make_dir(in_scratch("out/t/a"));
	refuse_planted(in_scratch("out/t/a/deep"), "out/t/a/deep: a symbolic link is called so");
	assert_copied(in_scratch("t"), 0);
}

/* Nor through one that comes when all directories have been made. */
static void a_directory_that_becomes_a_link(void **state)
{
	struct gci_error e = {0};
	struct copy c;

	(void)state;
	make_tree(in_scratch("t"));
	make_dir(in_scratch("victim"));
	make_dir(in_scratch("victim/deep"));
	make_dir(in_scratch("out"));
	assert_int_equal(begin(&c, in_scratch("t"), 0, &e), 0);
	assert_int_equal(gct_cp_sink_start(&c.out, &e), 0);
	assert_int_equal(rename(in_scratch("out/t/a"), in_scratch("moved")), 0);
	assert_int_equal(symlink(in_scratch("victim"), in_scratch("out/t/a")), 0);
	assert_int_equal(move(&c, UINT64_MAX, &e), GCOLL_ERR_IO);
	end(&c);
	assert_int_equal(entries(in_scratch("victim")), 1);
	assert_int_equal(entries(in_scratch("victim/deep")), 0);
}

static void refuse_before_anything_is_written(const char *text)
{
	struct gci_error e = {0};
	struct copy c;

	assert_int_equal(begin(&c, in_scratch("t"), 0, &e), 0);
	assert_int_equal(gct_cp_sink_start(&c.out, &e), GCOLL_ERR_IO);
	if (!strstr(e.text, text))
		fail_msg("%s", e.text);
	end(&c);
	assert_false(is_there(in_scratch("out/t/top")));
}

static void what_is_in_the_way(void **state)
{
	(void)state;
	make_tree(in_scratch("t"));
	make_dir(in_scratch("out"));
	make_text(in_scratch("out/t"), "a file");
	refuse_before_anything_is_written("out/t: a file is called so");
	unlink(in_scratch("out/t"));
	make_dir(in_scratch("out/t"));
	make_dir(in_scratch("out/t/to-file"));
	refuse_before_anything_is_written("out/t/to-file: it is a directory");
	rmdir(in_scratch("out/t/to-file"));
	assert_int_equal(mkfifo(in_scratch("out/t/to-file"), 0600), 0);
	refuse_before_anything_is_written("out/t/to-file: it is there and no regular file");
}

static void special_files(void **state)
{
	struct gci_error e = {0};
	struct copy c;
	int i;

	(void)state;
	make_dir(in_scratch("t"));
	make_file(in_scratch("t/file"), 10, 1);
	for (i = 0; i < GCT_CP_NAMED + 3; i++)
		assert_int_equal(mkfifo(in_scratch("t/f%02d\x1b", i), 0600), 0);
	assert_int_equal(begin(&c, in_scratch("t"), 0, &e), 0);
	assert_int_equal(c.m.nfiles, 1);
	assert_int_equal(c.m.nskipped, GCT_CP_NAMED + 3);
	assert_string_equal(c.m.skipped[0], in_scratch("t/f00?"));
	end(&c);
	/* By name: refused. */
	assert_int_equal(begin(&c, in_scratch("t/f00\x1b"), 0, &e), GCOLL_ERR_IO);
	assert_non_null(strstr(e.text, "is no file with contents, expected a regular file"));
	end(&c);
	gci_error_clear(&e);
	make_dir(in_scratch("none"));
	assert_int_equal(begin(&c, in_scratch("none/"), 0, &e), 0);
	assert_int_equal(c.m.nfiles + c.m.ndirs + c.m.nlinks, 0);
	end(&c);
}

static void two_of_one_name(void **state)
{
	char *paths[] = {strdup(in_scratch("t")), strdup(in_scratch("x/t"))};
	struct gct_cp_manifest m;
	struct gci_error e = {0};

	(void)state;
	make_dir(in_scratch("t"));
	make_dir(in_scratch("x"));
	make_text(in_scratch("x/t"), "t");
	assert_int_equal(gct_cp_manifest_scan(&m, paths, 2, GCT_CP_RECURSIVE, &e), GCOLL_ERR_INVAL);
	assert_string_equal(e.text, "two sources are called t, expected different names");
	gct_cp_manifest_free(&m);
	free(paths[0]);
	free(paths[1]);
}

static void too_deep(void **state)
{
	char *path = strdup(in_scratch("t"));
	struct gct_cp_manifest m;
	struct gci_error e = {0};
	int i;

	(void)state;
	make_dir(path);
	assert_int_equal(chdir(path), 0);
	for (i = 0; i < GCT_CP_MAX_DEPTH; i++) {
		make_dir("d");
		assert_int_equal(chdir("d"), 0);
	}
	assert_int_equal(chdir("/"), 0);
	assert_int_equal(gct_cp_manifest_scan(&m, &path, 1, GCT_CP_RECURSIVE, &e), GCOLL_ERR_INVAL);
	assert_string_equal(e.text, "d is more than 256 directories deep");
	gct_cp_manifest_free(&m);
	free(path);
}

/* At any byte, and on with what is there. */
static void broken_off_and_resumed(void **state)
{
	static const uint64_t stops[] = {0, 1, 70004, 80000, 200000, UINT64_MAX};
	struct gci_error e = {0};
	struct gct_cp_point p;
	uint32_t crcs[64] = {0};
	uint64_t set, n;
	struct copy c;
	size_t i;

	(void)state;
	make_tree(in_scratch("t"));
	make_dir(in_scratch("out"));
	for (i = 0; i < sizeof(stops) / sizeof(*stops); i++) {
		assert_int_equal(begin(&c, in_scratch("t"), GCT_CP_KEEP, &e), 0);
		assert_true(c.m.nfiles <= 64);
		n = gct_cp_claim(&c.out, &set);
		assert_true(n <= 64);
		assert_int_equal(gct_cp_sum_blocks(&c.m, crcs, n, NULL, NULL, &e), 0);
		assert_int_equal(gct_cp_verify(&c.out, crcs, n, &set, &p, NULL, &e), 0);
		assert_int_equal(gct_cp_sink_resume(&c.out, &p, &e), 0);
		assert_int_equal(gct_cp_sink_start(&c.out, &e), 0);
		assert_int_equal(gct_cp_source_seek(&c.in, gct_cp_sink_at(&c.out), &e), 0);
		/* What was whole the last time is not copied once more. */
		assert_true(!i || gct_cp_sink_at(&c.out) >= (stops[i - 1] > 70004 ? 70004 : 0));
		assert_int_equal(move(&c, stops[i], &e), 0);
		if (stops[i] == UINT64_MAX)
			assert_int_equal(gct_cp_sink_finish(&c.out, &e), 0);
		end(&c);
	}
	assert_same_trees(in_scratch("t"), in_scratch("out/t"));
}

/* In a child: in the midst of a file in a directory a signal comes. */
static void signals_leave_no_file(void **state)
{
	struct gci_error e = {0};
	struct copy c;
	int status;
	pid_t pid;

	(void)state;
	make_dir(in_scratch("t"));
	make_dir(in_scratch("t/sub"));
	make_file(in_scratch("t/sub/f"), 100000, 1);
	make_dir(in_scratch("out"));
	fflush(NULL);
	pid = fork();
	if (!pid) {
		int named = !makes_unnamed(in_scratch("out")) || !forbid_unnamed();

		if (begin(&c, in_scratch("t"), 0, &e))
			_exit(90);
		gct_cp_sink_guard(&c.out);
		if (gct_cp_sink_start(&c.out, &e) || move(&c, 5000, &e))
			_exit(91);
		if (entries(in_scratch("out/t/sub")) != named)
			_exit(92);
		raise(SIGTERM);
		_exit(93);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(entries(in_scratch("out/t/sub")), 0);
}

/* Whichever allocation fails: an error, and nothing is lost. */
static void out_of_memory(void **state)
{
	unsigned long n;
	int rc = -1;

	(void)state;
	make_tree(in_scratch("t"));
	make_dir(in_scratch("out"));
	for (n = 1; rc; n++) {
		struct gci_error e = {0};

		gci_mem_fail_at(n);
		rc = copy(in_scratch("t"), 0, &e);
		if (!rc != !gci_mem_failed())
			fail_msg("allocation %lu failed: %d %s", n, rc, e.text);
	}
	gci_mem_fail_at(0);
	assert_true(n > 100);
	assert_same_trees(in_scratch("t"), in_scratch("out/t"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_tree),
		TEST(a_tree_again),
		TEST(names_of_sources),
		TEST(a_source_that_becomes_a_link),
		TEST(links_are_not_written_through),
		TEST(a_directory_that_becomes_a_link),
		TEST(what_is_in_the_way),
		TEST(special_files),
		TEST(two_of_one_name),
		TEST(too_deep),
		TEST(broken_off_and_resumed),
		TEST(signals_leave_no_file),
		TEST(out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
