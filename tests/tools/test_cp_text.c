/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "base/mem.h"
#include "tests/forbid.h"
#include "tests/test.h"
#include "tests/tools/files.h"
#include "tools/cp/cp.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void expand(void **state)
{
	static const struct {
		const char *pattern, *result; /* NULL: refused */
	} cases[] = {
		{"plain/path", "plain/path"},
		{"%r", "12"},
		{"/out/%r/%h.bin", "/out/12/kyoto-3.bin"},
		{"%h%h", "kyoto-3kyoto-3"},
		{"100%%", "100%"},
		{"%%r", "%r"},
		{"%%%r", "%12"},
		{"\xc3\xa9 %r\n", "\xc3\xa9 12\n"},
		{"", ""},
		{"%", NULL},
		{"a%", NULL},
		{"%R", NULL},
		{"%r%d", NULL},
		{"%%%", NULL},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct gci_error e = {0};
		char *got = gct_cp_expand(cases[i].pattern, 12, "kyoto-3", &e);
		char text[200];

		if (cases[i].result) {
			assert_non_null(got);
			assert_string_equal(got, cases[i].result);
		} else {
			snprintf(text, sizeof(text),
				"path \"%s\": "
				"expected %%r (rank), %%h (host) or %%%% after %%",
				cases[i].pattern);
			assert_null(got);
			assert_int_equal(e.status, GCOLL_ERR_INVAL);
			assert_string_equal(e.text, text);
		}
		gci_free(got);
	}
}

/* A host's name is one in a directory, or it is refused where the path needs it. */
static void names_that_lead_elsewhere(void **state)
{
	static const char *const names[] = {"..", ".", "", "a/b", "/etc", "../a", "a\nb", "\x7f"};
	struct gci_error e = {0};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		char *path = gct_cp_expand("/out/%r", 1, names[i], &e);

		assert_string_equal(path, "/out/1");
		gci_free(path);
		assert_null(gct_cp_expand("/out/%h/", 1, names[i], &e));
		assert_int_equal(e.status, GCOLL_ERR_INVAL);
		assert_non_null(strstr(e.text, "which is no name in a directory"));
		gci_error_clear(&e);
	}
}

static char synced[2000]; /* paths */

/* In the place of libc's. */
int fsync(int fd)
{
	char link[40];
	size_t len = strlen(synced);
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, synced + len, sizeof(synced) - 2 - len);
	assert_true(n > 0);
	strcpy(synced + len + n, " ");
	return 0;
}

/* What is made is in its parent for good, whichever way it is made; what was there costs nothing. */
static void directories_that_last(void **state)
{
	struct gci_error e = {0};
	char text[2000];
	int dir;

	(void)state;
	assert_int_equal(gct_cp_make_directories(in_scratch("a/b/c"), 1, &e), 0);
	snprintf(text, sizeof(text), "%s %s %s ", in_scratch("%s", ""), in_scratch("a"),
		in_scratch("a/b"));
	memmove(strchr(text, ' ') - 1, strchr(text, ' '), strlen(strchr(text, ' ')) + 1);
	assert_string_equal(synced, text);
	*synced = '\0';
	assert_int_equal(gct_cp_make_directories(in_scratch("a/b/c"), 1, &e), 0);
	assert_string_equal(synced, "");
	dir = gct_cp_open_beneath(in_scratch("a/x/y"), strlen(in_scratch("a")), 1, 1);
	assert_true(dir >= 0);
	close(dir);
	snprintf(text, sizeof(text), "%s %s ", in_scratch("a"), in_scratch("a/x"));
	assert_string_equal(synced, text);
	*synced = '\0';
}

/* What was missing goes, as far as it was made and is empty; what was there stays. */
static void directories_made_in_vain(void **state)
{
	struct gci_error e = {0};
	char path[4096];
	uint64_t n;

	(void)state;
	make_dir(in_scratch("there"));
	snprintf(path, sizeof(path), "%s", in_scratch("there/b/c/d"));
	assert_int_equal(gct_cp_count_missing(path, &n, &e), 0);
	assert_int_equal(n, 3);
	make_dir(in_scratch("there/b"));
	gct_cp_remove_empty(path, n);
	assert_int_equal(entries(in_scratch("there")), 0);
	make_dir(in_scratch("there/b"));
	make_text(in_scratch("there/b/x"), "of somebody else");
	snprintf(path, sizeof(path), "%s", in_scratch("there/b/c/d"));
	gct_cp_remove_empty(path, n);
	assert_int_equal(entries(in_scratch("there/b")), 1);
}

/* Calls of openat2 that are to find something renamed meanwhile. */
static int renamed;

long syscall(long number, ...)
{
	static long (*real)(long, ...);
	long a[4]; /* the most that calls here have */
	va_list ap;
	int i;

	va_start(ap, number);
	for (i = 0; i < 4; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (number == SYS_openat2 && renamed > 0) {
		renamed--;
		errno = EAGAIN;
		return -1;
	}
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "syscall");
	return real(number, a[0], a[1], a[2], a[3]);
}

/* A way that goes up is tried again, but not for ever. */
static void beneath_while_others_rename(void **state)
{
	size_t fixed = strlen(in_scratch("d/"));
	int dir;

	(void)state;
	make_dir(in_scratch("d"));
	make_dir(in_scratch("d/in"));
	renamed = 7;
	dir = gct_cp_open_beneath(in_scratch("d/in/../in"), fixed, 0, 0);
	assert_int_equal(renamed, 0);
	assert_true(dir >= 0 || errno == EXDEV); /* without openat2 */
	if (dir >= 0)
		close(dir);
	renamed = 1 << 20;
	assert_true(gct_cp_open_beneath(in_scratch("d/in/../in"), fixed, 0, 0) < 0);
	assert_int_equal(errno, EAGAIN);
	renamed = 0;
}

/* Whatever stands there, the later part does not lead out of the first; without openat2, too. */
static void beneath(void **state)
{
	size_t fixed = strlen(in_scratch("d/"));
	/* Before Linux 5.6 it walks both times. */
	int none = syscall(SYS_openat2, -1, NULL, NULL, 0) < 0 && errno == ENOSYS;
	int dir, i;

	(void)state;
	make_dir(in_scratch("d"));
	make_dir(in_scratch("d/in"));
	make_dir(in_scratch("out"));
	assert_int_equal(symlink("in", in_scratch("d/inside")), 0);
	assert_int_equal(symlink(in_scratch("out"), in_scratch("d/absolute")), 0);
	assert_int_equal(symlink("../out", in_scratch("d/relative")), 0);
	for (i = 0; i < 2; i++) {
		if (i && forbid(SYS_openat2))
			return;
		assert_true(gct_cp_open_beneath(in_scratch("d/.."), fixed, 1, 0) < 0);
		assert_true(gct_cp_open_beneath(in_scratch("d/../out"), fixed, 1, 0) < 0);
		assert_int_equal(errno, EXDEV);
		assert_true(gct_cp_open_beneath(in_scratch("d/absolute"), fixed, 1, 0) < 0);
		assert_true(gct_cp_open_beneath(in_scratch("d/absolute/new"), fixed, 1, 0) < 0);
		assert_true(gct_cp_open_beneath(in_scratch("d/relative/new"), fixed, 1, 0) < 0);
		assert_false(is_there(in_scratch("out/new")));
		dir = gct_cp_open_beneath(in_scratch("d/inside"), fixed, 1, 0);
		assert_int_equal(dir >= 0, !i && !none); /* the walk follows none */
		assert_true(dir >= 0 || errno == ELOOP);
		if (dir >= 0)
			close(dir);
		dir = gct_cp_open_beneath(in_scratch("d/new%d/newer", i), fixed, 1, 0);
		assert_true(dir >= 0 && is_there(in_scratch("d/new%d/newer", i)));
		close(dir);
	}
}

static void directories(void **state)
{
	struct gci_error e = {0};
	char text[300];

	(void)state;
	assert_int_equal(gct_cp_make_directories(in_scratch("a/b//c///"), 0, &e), 0);
	assert_int_equal(entries(in_scratch("a/b/c")), 0);
	assert_int_equal(gct_cp_make_directories(in_scratch("a/b"), 0, &e), 0);
	assert_int_equal(gct_cp_make_directories("/", 0, &e), 0);
	assert_int_equal(gct_cp_make_directories(".", 0, &e), 0);
	assert_int_equal(chdir(in_scratch("a")), 0);
	assert_int_equal(gct_cp_make_directories("x/y", 0, &e), 0);
	assert_int_equal(entries(in_scratch("a/x/y")), 0);
	assert_int_equal(chdir("/"), 0);

	make_text(in_scratch("a/file"), "x");
	assert_int_equal(gct_cp_make_directories(in_scratch("a/file"), 0, &e), GCOLL_ERR_IO);
	snprintf(text, sizeof(text), "cannot make directory %s: a file is called so",
		in_scratch("a/file"));
	assert_string_equal(e.text, text);
	gci_error_clear(&e);
	assert_int_equal(gct_cp_make_directories(in_scratch("a/file/b/c"), 0, &e), GCOLL_ERR_IO);
	assert_string_equal(e.text, text);
	gci_error_clear(&e);
	/* mkdir's own reason, not that of whoever looks whether it is there. */
	assert_int_equal(symlink("none", in_scratch("a/link")), 0);
	assert_int_equal(gct_cp_make_directories(in_scratch("a/link"), 0, &e), GCOLL_ERR_IO);
	snprintf(text, sizeof(text), "cannot make directory %s: a file is called so",
		in_scratch("a/link"));
	assert_string_equal(e.text, text);
}

static void progress(void **state)
{
	static const struct {
		uint64_t done, all, ns;
		const char *line;
	} cases[] = {
		{0, 100, 0, "  0 % [>                             ] - B/s"},
		{0, 100, GCI_NS_PER_S, "  0 % [>                             ] - B/s"},
		{1000000, 4000000, GCI_NS_PER_S,
			" 25 % [=======>                      ] 1.00 MB/s  0:03 left"},
		{3999999, 4000000, 4 * GCI_NS_PER_S,
			" 99 % [=============================>] 1.00 MB/s  0:01 left"},
		{4000000, 4000000, 4 * GCI_NS_PER_S,
			"100 % [==============================] 1.00 MB/s"},
		{0, 0, 5, "100 % [==============================] - B/s"},
		{1000, 75000, GCI_NS_PER_S,
			"  1 % [>                             ] 1.00 kB/s  1:14 left"},
		{1000, 7201000, GCI_NS_PER_S,
			"  0 % [>                             ] 1.00 kB/s  2:00:00 left"},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char line[120];

		gct_cp_progress_line(
			line, sizeof(line), cases[i].done, cases[i].all, cases[i].ns, NULL, 0);
		assert_string_equal(line, cases[i].line);
	}
}

static void clusters_in_the_bar(void **state)
{
	struct gct_cp_seen two[] = {{"near", "k3", GCI_NS_PER_S}, {"far", "t3", 2 * GCI_NS_PER_S}};
	struct gct_cp_seen many[20];
	char line[120];
	int i;

	(void)state;
	gct_cp_progress_line(line, sizeof(line), 4000000, 8000000, 2 * GCI_NS_PER_S, two, 2);
	assert_string_equal(line,
		" 50 % [=====>    ] 2.00 MB/s  0:02 left  far 2.00 MB/s (t3), near 4.00 MB/s");
	/* Who writes nothing is not slow. */
	two[1].cluster = NULL;
	gct_cp_progress_line(line, sizeof(line), 4000000, 8000000, 2 * GCI_NS_PER_S, two, 2);
	assert_string_equal(line, " 50 % [=====>    ] 2.00 MB/s  0:02 left  far 2.00 MB/s (t3)");
	/* As many as fit, with names of any length. */
	for (i = 0; i < 20; i++)
		many[i] = (struct gct_cp_seen){"a cluster of a long name", "a.host.of.a.long.name",
			(uint64_t)i * GCI_NS_PER_S};
	gct_cp_progress_line(line, sizeof(line), 4000000, 8000000, GCI_NS_PER_S, many, 20);
	assert_true(strlen(line) <= 78);
}

/* The ranks of the list, as digits; NULL: it is refused. */
static void select_case(const char *list, const char *ranks)
{
	const char *hosts[] = {"k1", "k1", "k2", "t1", "3"};
	const char *clusters[] = {"near", "near", "near", "far", "far"};
	const struct gct_cp_ranks r = {5, hosts, clusters};
	struct gci_error e = {0};
	uint8_t chosen[5];
	char got[6] = "";
	int i, n = 0, rc = gct_cp_select(&r, list, chosen, &e);

	assert_int_equal(rc, ranks ? 0 : GCOLL_ERR_INVAL);
	assert_int_equal(rc, e.status);
	for (i = 0; i < 5; i++)
		if (chosen[i])
			got[n++] = (char)('0' + i);
	if (ranks && strcmp(got, ranks))
		fail_msg("%s: %s, expected %s", list, got, ranks);
}

static void select_one(const char *name, int rank)
{
	const char *hosts[] = {"k1", "k1", "k2", "t1", "3"};
	const struct gct_cp_ranks r = {5, hosts, NULL};
	struct gci_error e = {0};
	int got = -1, rc = gct_cp_select_one(&r, "--from", name, &got, &e);

	assert_int_equal(rc, rank < 0 ? GCOLL_ERR_INVAL : 0);
	assert_int_equal(got, rank);
	if (rc && strncmp(e.text, "--from ", 7))
		fail_msg("%s", e.text);
}

static void one_rank(void **state)
{
	(void)state;
	select_one("k1", 0);
	select_one("k2", 2);
	select_one("2", 2);
	select_one("3", 4); /* a host's name comes first */
	select_one("5", -1);
	select_one("k3", -1);
	select_one("", -1);
	select_one("-1", -1);
	select_one("0,1", -1);
}

static void receivers(void **state)
{
	(void)state;
	select_case("k1", "01");
	select_case("far", "34");
	select_case("0", "0");
	select_case("0-2,4", "0124");
	select_case("3", "4"); /* a host's name comes first */
	select_case("2-3", "23");
	select_case("k[1,2],t1", "0123");
	select_case("k[1-2]", "012");
	select_case("near,far", "01234");
	select_case("k1,k1,0", "01");
	select_case("", NULL);
	select_case(",0", NULL);
	select_case("0,", NULL);
	select_case("5", NULL);
	select_case("2-1", NULL);
	select_case("0-", NULL);
	select_case("-1", NULL);
	select_case("99999999999999999999", NULL);
	select_case("0-99999999999999999999", NULL);
	select_case("k[1-3]", NULL);
	select_case("k[1", NULL);
	select_case("k[1-99999999]", NULL);
	select_case("-k", NULL);
	select_case("nobody", NULL);
}

static void limits(void **state)
{
	static const struct {
		const char *text;
		uint64_t rate; /* 0: refused */
	} cases[] = {
		{"100Mbit", 12500000},
		{"8bit", 1},
		{"7bit", 0},
		{"12MB", 12000000},
		{"1.5MiB", 1572864},
		{"1M", 1 << 20},
		{"100", 0},
		{"1.5", 0},
		{"0MB", 0},
		{"", 0},
		{"fast", 0},
		{"-1MB", 0},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint64_t rate = 77;
		int rc = gct_cp_parse_limit(cases[i].text, &rate);

		assert_int_equal(rc, cases[i].rate ? 0 : -1);
		assert_true(rate == (cases[i].rate ? cases[i].rate : 77));
	}
	assert_int_equal(gct_cp_chunk_nbytes(0), GCT_CP_CHUNK_NBYTES);
	assert_int_equal(gct_cp_chunk_nbytes(1), 64 << 10);
	assert_int_equal(gct_cp_chunk_nbytes(UINT64_MAX), GCT_CP_CHUNK_NBYTES);
	assert_int_equal(gct_cp_chunk_nbytes(8 << 20), 1 << 20);
	assert_int_equal(gct_cp_chunks(0), GCT_CP_CHUNKS);
	assert_in_range(gct_cp_chunks(8 << 20), 2, GCT_CP_CHUNKS);
}

/* Sends 100 chunks as early as it may, `late_ns` after each is due; how long that took. */
static uint64_t send_all(uint64_t rate, uint64_t late_ns, uint64_t pause_ns)
{
	struct gct_cp_throttle t = {.rate = rate};
	uint64_t now = 5 * GCI_NS_PER_S, begin = now;
	int i;

	for (i = 0; i < 100; i++) {
		now += gct_cp_throttle_wait(&t, 1000, now) + late_ns;
		assert_int_equal(gct_cp_throttle_wait(&t, 1000, now), 0);
		gct_cp_throttle_sent(&t, 1000, now);
		now += i == 50 ? pause_ns : 0;
	}
	return now - begin;
}

static void throttle(void **state)
{
	(void)state;
	assert_true(send_all(0, 0, 0) == 0);
	assert_true(send_all(1000, 0, 0) == 100 * GCI_NS_PER_S);
	/* Small delays are made up for. */
	assert_true(send_all(1000, GCI_NS_PER_S / 2, 0) == 100 * GCI_NS_PER_S + GCI_NS_PER_S / 2);
	/* A pause is not: behind it come the chunk that was due, one more, and no burst. */
	assert_true(send_all(1000, 0, 20 * GCI_NS_PER_S) == 118 * GCI_NS_PER_S);
	assert_true(send_all(UINT64_MAX, 0, 0) < GCI_NS_PER_S);
}

/* Whatever the numbers: one line of a terminal, nothing cut off. */
static void extreme_progress(void **state)
{
	static const uint64_t values[] = {
		0, 1, 999, 1u << 20, UINT64_C(1) << 40, INT64_MAX, UINT64_MAX};
	size_t n = sizeof(values) / sizeof(*values), a, b, c;

	(void)state;
	for (a = 0; a < n; a++) {
		for (b = 0; b <= a; b++) {
			for (c = 0; c < n; c++) {
				char line[200];

				gct_cp_progress_line(line, sizeof(line), values[b], values[a],
					values[c], NULL, 0);
				assert_true(strlen(line) <= 78);
				assert_non_null(strstr(line, "B/s"));
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(expand),
		cmocka_unit_test_setup_teardown(directories, scratch_make, scratch_remove),
		cmocka_unit_test_setup_teardown(
			beneath_while_others_rename, scratch_make, scratch_remove),
		cmocka_unit_test_setup_teardown(
			directories_that_last, scratch_make, scratch_remove),
		cmocka_unit_test_setup_teardown(
			directories_made_in_vain, scratch_make, scratch_remove),
		cmocka_unit_test(progress), cmocka_unit_test(extreme_progress),
		cmocka_unit_test(clusters_in_the_bar), cmocka_unit_test(receivers),
		cmocka_unit_test(one_rank), cmocka_unit_test(names_that_lead_elsewhere),
		cmocka_unit_test(limits), cmocka_unit_test(throttle),
		cmocka_unit_test_setup_teardown(
			beneath, scratch_make, scratch_remove), /* the last: of no return */
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
