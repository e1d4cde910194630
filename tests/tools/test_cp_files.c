/* SPDX-License-Identifier: MIT
 * Both ends of the stream, joined without a network. */
#include "base/buf.h"
#include "base/crc32c.h"
#include "base/mem.h"
#include "tests/forbid.h"
#include "tests/test.h"
#include "tests/tools/files.h"
#include "tools/cp/cp.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Manifest and paths of what is to be copied. */
struct set {
	struct gct_cp_manifest m;
	char *paths[4];
};

static void set_make(struct set *s, int n, ...)
{
	struct gci_error e = {0};
	va_list ap;
	int i;

	va_start(ap, n);
	for (i = 0; i < n; i++)
		s->paths[i] = strdup(in_scratch("%s", va_arg(ap, const char *)));
	va_end(ap);
	if (gct_cp_manifest_scan(&s->m, s->paths, n, 1, &e))
		fail_msg("%s", e.text);
	make_dir(in_scratch("out"));
}

static void set_free(struct set *s)
{
	uint32_t i;

	for (i = 0; i < s->m.nfiles; i++)
		free(s->paths[i]);
	gct_cp_manifest_free(&s->m);
}

/* Moves the stream in pieces of at most `piece` bytes; flips a bit of the byte `flip`. */
static int copy(struct set *s, size_t piece, uint64_t flip, struct gci_error *e)
{
	struct gct_cp_source in;
	struct gct_cp_sink out;
	char *buf = malloc(piece), dest[256];
	uint64_t at = 0;
	int rc;

	snprintf(dest, sizeof(dest), "%s", in_scratch("out"));
	gct_cp_source_init(&in, &s->m);
	rc = gct_cp_sink_init(&out, &s->m, dest, 1, GCT_CP_SYNC, e);
	if (!rc)
		rc = gct_cp_sink_start(&out, e);
	while (!rc && at < s->m.stream_nbytes) {
		size_t n = piece;

		if (n > s->m.stream_nbytes - at)
			n = (size_t)(s->m.stream_nbytes - at);
		rc = gct_cp_source_read(&in, buf, n, e);
		if (flip >= at && flip < at + n)
			buf[flip - at] ^= 4;
		if (!rc)
			rc = gct_cp_sink_write(&out, buf, n, e);
		at += n;
	}
	if (!rc)
		rc = gct_cp_sink_finish(&out, e);
	gct_cp_sink_close(&out);
	gct_cp_source_close(&in);
	free(buf);
	return rc;
}

static void any_piece(void **state)
{
	static const size_t pieces[] = {1, 3, 4096, 65537, 1 << 20};
	struct set s;
	size_t i;

	(void)state;
	make_file(in_scratch("a"), 0, 1);
	make_file(in_scratch("b"), 1, 2);
	make_file(in_scratch("c"), 70001, 3);
	make_file(in_scratch("d"), 0, 4);
	chmod(in_scratch("c"), 0401);
	set_make(&s, 4, "a", "b", "c", "d");
	for (i = 0; i < sizeof(pieces) / sizeof(*pieces); i++) {
		struct gci_error e = {0};

		assert_int_equal(copy(&s, pieces[i], UINT64_MAX, &e), 0);
		assert_int_equal(entries(in_scratch("out")), 4);
		assert_same_files(in_scratch("a"), in_scratch("out/a"));
		assert_same_files(in_scratch("b"), in_scratch("out/b"));
		assert_same_files(in_scratch("c"), in_scratch("out/c"));
		assert_same_files(in_scratch("d"), in_scratch("out/d"));
	}
	set_free(&s);
}

/* One bit, in the contents or in the trailer, is enough: nothing appears, nothing is lost. */
static void corrupted(void **state)
{
	static const uint64_t places[] = {0, 500, 99999, 100000, 100003};
	struct set s;
	size_t i;

	(void)state;
	make_file(in_scratch("a"), 100000, 1);
	set_make(&s, 1, "a");
	make_text(in_scratch("out/a"), "was there before");
	for (i = 0; i < sizeof(places) / sizeof(*places); i++) {
		struct gci_error e = {0};

		assert_int_equal(copy(&s, 4096, places[i], &e), GCOLL_ERR_CORRUPT);
		assert_int_equal(strncmp(e.text, "a arrived corrupted: checksum ", 30), 0);
		assert_int_equal(entries(in_scratch("out")), 1);
		assert_text(in_scratch("out/a"), "was there before");
	}
	set_free(&s);
}

/* The files before the wrong one are whole, and stay. */
static void second_corrupted(void **state)
{
	struct gci_error e = {0};
	struct set s;

	(void)state;
	make_file(in_scratch("a"), 1000, 1);
	make_file(in_scratch("b"), 1000, 2);
	set_make(&s, 2, "a", "b");
	assert_int_equal(copy(&s, 4096, 1004, &e), GCOLL_ERR_CORRUPT);
	assert_int_equal(entries(in_scratch("out")), 1);
	assert_same_files(in_scratch("a"), in_scratch("out/a"));
	set_free(&s);
}

static void wrong_length(void **state)
{
	struct gci_error e = {0};
	struct gct_cp_sink out;
	char dest[256], trailer[GCT_CP_TRAILER];
	struct set s;

	(void)state;
	make_file(in_scratch("a"), 0, 1);
	set_make(&s, 1, "a");
	snprintf(dest, sizeof(dest), "%s", in_scratch("out"));
	memset(trailer, 0, sizeof(trailer));
	assert_int_equal(gct_cp_sink_init(&out, &s.m, dest, 1, 0, &e), 0);
	assert_int_equal(gct_cp_sink_write(&out, trailer, 3, &e), 0);
	assert_int_equal(gct_cp_sink_finish(&out, &e), GCOLL_ERR_PROTO);
	gci_error_clear(&e);
	assert_int_equal(entries(in_scratch("out")), 0); /* no name yet */
	assert_int_equal(gct_cp_sink_write(&out, trailer, 1, &e), 0);
	assert_int_equal(gct_cp_sink_finish(&out, &e), 0);
	assert_true(is_there(in_scratch("out/a")));
	assert_int_equal(gct_cp_sink_write(&out, trailer, 1, &e), GCOLL_ERR_PROTO);
	gct_cp_sink_close(&out);
	assert_int_equal(entries(in_scratch("out")), 1);
	set_free(&s);
}

static void changed(struct set *s, const char *path)
{
	struct gci_error e = {0};
	char text[300];

	snprintf(text, sizeof(text), "%s changed while it was being read", path);
	assert_int_equal(copy(s, 65536, UINT64_MAX, &e), GCOLL_ERR_IO);
	assert_string_equal(e.text, text);
	assert_int_equal(entries(in_scratch("out")), 0);
}

static void source_that_changes(void **state)
{
	const struct timespec earlier[2] = {{.tv_sec = 1000}, {.tv_sec = 1000, .tv_nsec = 1}};
	const char *a = in_scratch("a");
	struct gci_error e = {0};
	char text[300];
	struct set s;

	(void)state;
	make_file(a, 100000, 1);
	utimensat(AT_FDCWD, a, earlier, 0);
	set_make(&s, 1, "a");
	assert_int_equal(truncate(a, 99999), 0);
	changed(&s, a);
	assert_int_equal(truncate(a, 100001), 0);
	changed(&s, a);
	make_file(a, 100000, 2); /* the same length */
	changed(&s, a);
	unlink(a);
	assert_int_equal(copy(&s, 65536, UINT64_MAX, &e), GCOLL_ERR_IO);
	snprintf(text, sizeof(text), "cannot read %s: No such file or directory", in_scratch("a"));
	assert_string_equal(e.text, text);
	assert_int_equal(mkfifo(a, 0600), 0);
	changed(&s, a);
	set_free(&s);
}

/* In mid-read: what was read before does not go with what is read after. */
static void source_that_changes_in_between(void **state)
{
	const struct timespec earlier[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
	struct gct_cp_source in;
	struct gci_error e = {0};
	char buf[4096];
	struct set s;
	int fd;

	(void)state;
	make_file(in_scratch("a"), 8192, 1);
	utimensat(AT_FDCWD, in_scratch("a"), earlier, 0);
	set_make(&s, 1, "a");
	gct_cp_source_init(&in, &s.m);
	assert_int_equal(gct_cp_source_read(&in, buf, sizeof(buf), &e), 0);
	fd = open(in_scratch("a"), O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, "x", 1, 0), 1);
	close(fd);
	assert_int_equal(gct_cp_source_read(&in, buf, 1, &e), GCOLL_ERR_IO);
	gct_cp_source_close(&in);
	set_free(&s);
}

static void contents_without_size(void **state)
{
	char *paths[] = {(char *)(uintptr_t) "/proc/self/status"};
	struct gct_cp_manifest m;
	struct gct_cp_source in;
	struct gci_error e = {0};
	char buf[GCT_CP_TRAILER];

	(void)state;
	assert_int_equal(gct_cp_manifest_scan(&m, paths, 1, 0, &e), 0);
	gct_cp_source_init(&in, &m);
	assert_int_equal(gct_cp_source_read(&in, buf, sizeof(buf), &e), GCOLL_ERR_IO);
	/* Their time of modification is that of the look at them, on some kernels. */
	assert_int_equal(strncmp(e.text, "/proc/self/status ", 18), 0);
	gct_cp_source_close(&in);
	gct_cp_manifest_free(&m);
}

static void holes(void **state)
{
	struct gci_error e = {0};
	struct stat st;
	struct set s;
	int fd;

	(void)state;
	make_file(in_scratch("a"), 70000, 1);
	assert_int_equal(truncate(in_scratch("a"), 50 << 20), 0);
	fd = open(in_scratch("a"), O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, "x", 1, (30 << 20) + 17), 1);
	close(fd);
	make_file(in_scratch("b"), 0, 1);
	assert_int_equal(truncate(in_scratch("b"), 10 << 20), 0);
	set_make(&s, 2, "a", "b");
	assert_int_equal(copy(&s, 1 << 20, UINT64_MAX, &e), 0);
	assert_same_files(in_scratch("a"), in_scratch("out/a"));
	assert_same_files(in_scratch("b"), in_scratch("out/b"));
	st = look(in_scratch("out/a"));
	assert_true(st.st_blocks * 512 < 1 << 20);
	st = look(in_scratch("out/b"));
	assert_int_equal(st.st_blocks, 0);
	set_free(&s);
}

/* A file over one that has contents: no byte of the old one shows through the new one's holes. */
static void hole_over_contents(void **state)
{
	struct gci_error e = {0};
	struct set s;

	(void)state;
	make_file(in_scratch("a"), 0, 1);
	assert_int_equal(truncate(in_scratch("a"), 1 << 20), 0);
	set_make(&s, 1, "a");
	make_file(in_scratch("out/a"), 2 << 20, 5);
	assert_int_equal(copy(&s, 1 << 20, UINT64_MAX, &e), 0);
	assert_same_files(in_scratch("a"), in_scratch("out/a"));
	set_free(&s);
}

static void refuse_dest(struct set *s, const char *what)
{
	struct gci_error e = {0};
	char text[300];

	snprintf(text, sizeof(text), "cannot write %s: %s", in_scratch("out/a"), what);
	assert_int_equal(copy(s, 4096, UINT64_MAX, &e), GCOLL_ERR_IO);
	assert_string_equal(e.text, text);
}

static void targets(void **state)
{
	struct gci_error e = {0};
	struct stat st;
	struct set s;

	(void)state;
	make_file(in_scratch("a"), 1000, 1);
	set_make(&s, 1, "a");
	make_dir(in_scratch("out/a"));
	refuse_dest(&s, "it is a directory");
	rmdir(in_scratch("out/a"));
	assert_int_equal(mkfifo(in_scratch("out/a"), 0600), 0);
	refuse_dest(&s, "it is there and no regular file");
	unlink(in_scratch("out/a"));
	assert_int_equal(symlink("/dev/null", in_scratch("out/a")), 0);
	refuse_dest(&s, "it is there and no regular file");
	unlink(in_scratch("out/a"));
	assert_int_equal(entries(in_scratch("out")), 0);

	/* A symbolic link is replaced; what it points at stays as it is. */
	make_text(in_scratch("other"), "other");
	assert_int_equal(symlink(in_scratch("other"), in_scratch("out/a")), 0);
	assert_int_equal(copy(&s, 4096, UINT64_MAX, &e), 0);
	assert_same_files(in_scratch("a"), in_scratch("out/a"));
	assert_text(in_scratch("other"), "other");
	assert_int_equal(lstat(in_scratch("out/a"), &st), 0);
	assert_true(S_ISREG(st.st_mode));
	set_free(&s);
}

/* More than the limit on the sizes of files allows. (A full disk: test_cp_failures.c) */
static void file_too_large(void **state)
{
	struct rlimit was, now;
	struct gci_error e = {0};
	char text[300];
	struct set s;

	(void)state;
	make_file(in_scratch("a"), 1 << 20, 1);
	set_make(&s, 1, "a");
	make_text(in_scratch("out/a"), "was there before");
	getrlimit(RLIMIT_FSIZE, &was);
	now = was;
	now.rlim_cur = 300000;
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &now);
	assert_int_equal(copy(&s, 65536, UINT64_MAX, &e), GCOLL_ERR_IO);
	setrlimit(RLIMIT_FSIZE, &was);
	signal(SIGXFSZ, SIG_DFL);
	snprintf(text, sizeof(text), "cannot write %s: File too large", in_scratch("out/a"));
	assert_string_equal(e.text, text);
	assert_int_equal(entries(in_scratch("out")), 1);
	assert_text(in_scratch("out/a"), "was there before");
	set_free(&s);
}

/* Of zeros not a byte was written: after a failure at the very end all seems to be there. */
static void nothing_is_written_after_a_failure(void **state)
{
	struct gct_cp_sink out;
	struct gci_error e = {0};
	char zeros[100] = "", trailer[GCT_CP_TRAILER], dest[256];
	struct set s;

	(void)state;
	make_file(in_scratch("a"), 0, 1);
	assert_int_equal(truncate(in_scratch("a"), sizeof(zeros)), 0);
	set_make(&s, 1, "a");
	snprintf(dest, sizeof(dest), "%s", in_scratch("out"));
	gci_store_u32((uint8_t *)trailer, gci_crc32c(0, zeros, sizeof(zeros)));
	assert_int_equal(gct_cp_sink_init(&out, &s.m, dest, 1, 0, &e), 0);
	assert_int_equal(gct_cp_sink_write(&out, zeros, sizeof(zeros), &e), 0);
	make_dir(in_scratch("out/a")); /* in the way of the name */
	assert_int_equal(gct_cp_sink_write(&out, trailer, sizeof(trailer), &e), GCOLL_ERR_IO);
	gci_error_clear(&e);
	rmdir(in_scratch("out/a"));
	assert_int_equal(gct_cp_sink_start(&out, &e), GCOLL_ERR_IO);
	gci_error_clear(&e);
	assert_int_equal(gct_cp_sink_write(&out, trailer, 1, &e), GCOLL_ERR_IO);
	assert_int_not_equal(gct_cp_sink_finish(&out, &e), 0);
	gct_cp_sink_close(&out);
	assert_int_equal(entries(in_scratch("out")), 0);
	set_free(&s);
}

/* In a child: with half a file written, a signal comes. */
static void guarded_child(struct set *s, int sig, int named)
{
	struct gct_cp_sink out;
	struct gci_error e = {0};
	char buf[1000] = "";

	signal(sig, SIG_DFL); /* nohup's children ignore SIGHUP, and so does the guard then */
	if (named && makes_unnamed(in_scratch("out")) && forbid_unnamed())
		raise(sig);
	if (gct_cp_sink_init(&out, &s->m, in_scratch("out"), 1, 0, &e))
		_exit(90);
	gct_cp_sink_guard(&out);
	if (gct_cp_sink_write(&out, buf, 500, &e) || entries(in_scratch("out")) != named)
		_exit(91);
	raise(sig);
	_exit(92);
}

static void signals_leave_nothing(void **state)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGKILL};
	struct set s;
	size_t i, n = sizeof(signals) / sizeof(*signals);
	int status;

	(void)state;
	make_file(in_scratch("a"), 1000, 1);
	set_make(&s, 1, "a");
	for (i = makes_unnamed(in_scratch("out")) ? 0 : n; i < 2 * n - 1;
		i++) { /* named: not SIGKILL */
		pid_t pid;

		fflush(NULL);
		pid = fork();
		assert_true(pid >= 0);
		if (!pid)
			guarded_child(&s, signals[i % n], i >= n);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), signals[i % n]);
		assert_int_equal(entries(in_scratch("out")), 0);
	}
	set_free(&s);
}

/* Where files may be without a name, but get none by a link. */
static void names_without_links(void **state)
{
	struct gci_error e = {0};
	struct set s;
	int status;
	pid_t pid;

	(void)state;
	make_file(in_scratch("a"), 1000, 1);
	make_file(in_scratch("b"), 1000, 2);
	set_make(&s, 2, "a", "b");
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(forbid(SYS_linkat) ? 77 : !!copy(&s, 100, UINT64_MAX, &e));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	set_free(&s);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(status, 0);
	assert_same_files(in_scratch("a"), in_scratch("out/a"));
	assert_same_files(in_scratch("b"), in_scratch("out/b"));
	assert_int_equal(entries(in_scratch("out")), 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(any_piece),
		TEST(corrupted),
		TEST(second_corrupted),
		TEST(wrong_length),
		TEST(source_that_changes),
		TEST(source_that_changes_in_between),
		TEST(contents_without_size),
		TEST(holes),
		TEST(hole_over_contents),
		TEST(targets),
		TEST(file_too_large),
		TEST(nothing_is_written_after_a_failure),
		TEST(names_without_links),
		TEST(signals_leave_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
