/* SPDX-License-Identifier: MIT */
#include "base/mem.h"
#include "tests/test.h"
#include "tests/tools/files.h"
#include "tools/cp/cp.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct gct_cp_dir dirs[] = {
	{.name = (char *)"sub", .parent = 0, .mode = 0755, .mtime_s = 3},
	{.name = (char *)"deep er", .parent = 1, .mode = 0, .mtime_s = -1, .mtime_ns = 8},
};

static struct gct_cp_file three[] = {
	{.name = (char *)"a", .mode = 0644, .mtime_s = 1, .mtime_ns = 999999999},
	{.name = (char *)"name with\nodd \xff characters",
		.size = UINT64_C(5) << 40,
		.mtime_s = -7,
		.dir = 2},
	{.name = (char *)"c",
		.size = 17,
		.mode = 0777,
		.mtime_s = INT64_MAX,
		.mtime_ns = 5,
		.dir = 1},
};

static struct gct_cp_link links[] = {
	{.name = (char *)"l", .target = (char *)"../../etc/passwd", .mtime_ns = 7, .dir = 2},
};

static struct gct_cp_manifest of_all(void)
{
	return (struct gct_cp_manifest){.files = three,
		.nfiles = 3,
		.dirs = dirs,
		.ndirs = 2,
		.links = links,
		.nlinks = 1,
		.into_directory = 1};
}

static void refuse(const struct gct_cp_manifest *m)
{
	struct gci_buf buf = {0};
	struct gct_cp_manifest got;
	struct gci_error e = {0};

	gct_cp_manifest_encode(m, &buf);
	assert_int_equal(gct_cp_manifest_decode(&got, buf.data, buf.len, &e), GCOLL_ERR_PROTO);
	assert_string_equal(e.text, "the list of files is malformed");
	gct_cp_manifest_free(&got);
	gci_buf_free(&buf);
}

static void what_goes_in_comes_out(void **state)
{
	struct gct_cp_manifest m = of_all(), got;
	struct gci_buf buf = {0};
	struct gci_error e = {0};
	uint32_t i;

	(void)state;
	gct_cp_manifest_encode(&m, &buf);
	assert_int_equal(gct_cp_manifest_decode(&got, buf.data, buf.len, &e), 0);
	assert_int_equal(got.nfiles, 3);
	assert_int_equal(got.into_directory, 1);
	assert_true(got.stream_nbytes == (UINT64_C(5) << 40) + 17 + 3 * GCT_CP_TRAILER);
	for (i = 0; i < 3; i++) {
		assert_string_equal(got.files[i].name, three[i].name);
		assert_true(got.files[i].size == three[i].size);
		assert_int_equal(got.files[i].mode, three[i].mode);
		assert_true(got.files[i].mtime_s == three[i].mtime_s);
		assert_int_equal(got.files[i].mtime_ns, three[i].mtime_ns);
		assert_int_equal(got.files[i].dir, three[i].dir);
	}
	assert_int_equal(got.ndirs, 2);
	for (i = 0; i < 2; i++) {
		assert_string_equal(got.dirs[i].name, dirs[i].name);
		assert_int_equal(got.dirs[i].parent, dirs[i].parent);
		assert_int_equal(got.dirs[i].mode, dirs[i].mode);
		assert_true(got.dirs[i].mtime_s == dirs[i].mtime_s);
		assert_int_equal(got.dirs[i].mtime_ns, dirs[i].mtime_ns);
		assert_int_equal(got.dirs[i].depth, i + 1);
	}
	assert_int_equal(got.nlinks, 1);
	assert_string_equal(got.links[0].name, "l");
	assert_string_equal(got.links[0].target, links[0].target);
	assert_int_equal(got.links[0].mtime_ns, 7);
	assert_int_equal(got.links[0].dir, 2);
	gct_cp_manifest_free(&got);
	gci_buf_free(&buf);
}

/* Cut at every length, in memory of just that length; and with a byte too much. */
static void wrong_lengths(void **state)
{
	struct gct_cp_manifest m = of_all(), got;
	struct gci_buf buf = {0};
	size_t len;

	(void)state;
	gct_cp_manifest_encode(&m, &buf);
	for (len = 0; len <= buf.len + 1; len++) {
		uint8_t *part = gci_calloc(len, 1);
		struct gci_error e = {0};

		memcpy(part, buf.data, len < buf.len ? len : buf.len);
		assert_int_equal(gct_cp_manifest_decode(&got, part, len, &e),
			len == buf.len ? 0 : GCOLL_ERR_PROTO);
		gct_cp_manifest_free(&got);
		gci_free(part);
	}
	gci_buf_free(&buf);
}

/* Of whatever has a name: what would lead elsewhere. */
static void refuse_names(const struct gct_cp_manifest *m, char **name)
{
	static const char *const names[] = {"", ".", "..", "/", "a/b", "/etc/passwd", "../a", "a/"};
	char *was = *name, longest[300];
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		*name = (char *)(uintptr_t)names[i];
		refuse(m);
	}
	memset(longest, 'x', sizeof(longest));
	longest[GCT_CP_MAX_NAME + 1] = '\0';
	*name = longest;
	refuse(m);
	*name = was;
}

static void wrong_files(void **state)
{
	struct gct_cp_file good = three[0], f = good;
	struct gct_cp_manifest m = {.files = &f, .nfiles = 1};

	(void)state;
	refuse_names(&m, &f.name);
	f.size = INT64_MAX;
	refuse(&m);
	f.size = UINT64_MAX;
	refuse(&m);
	f = good;
	f.mode = 01777;
	refuse(&m);
	f.mode = 04755;
	refuse(&m);
	f = good;
	f.mtime_ns = 1000000000;
	refuse(&m);
	f = good;
	f.dir = 1; /* which is none */
	refuse(&m);
	f = good;
	m.into_directory = 4;
	refuse(&m);
}

static void wrong_directories(void **state)
{
	struct gct_cp_dir two[2] = {dirs[0], dirs[1]};
	struct gct_cp_manifest m = {.dirs = two, .ndirs = 2, .into_directory = 1};

	(void)state;
	refuse_names(&m, &two[1].name);
	two[1].parent = 2; /* in itself */
	refuse(&m);
	two[0].parent = 2; /* and behind itself */
	two[1].parent = 1;
	refuse(&m);
	two[0].parent = UINT32_MAX;
	refuse(&m);
	two[0] = dirs[0];
	two[1].mode = 02755;
	refuse(&m);
	two[1] = dirs[1];
	m.into_directory = 0; /* DEST is one file then */
	refuse(&m);
}

static void wrong_links(void **state)
{
	struct gct_cp_link l = {.name = (char *)"l", .target = (char *)"t"};
	struct gct_cp_manifest m = {.links = &l, .nlinks = 1, .into_directory = 1};
	static char longest[GCT_CP_MAX_TARGET + 2];

	(void)state;
	refuse_names(&m, &l.name);
	l.target = (char *)(uintptr_t) "";
	refuse(&m);
	memset(longest, 'x', GCT_CP_MAX_TARGET + 1);
	l.target = longest;
	refuse(&m);
	l.target = (char *)(uintptr_t) "t";
	l.dir = 1;
	refuse(&m);
	l.dir = 0;
	m.into_directory = 0;
	refuse(&m);
}

/* All of the file, in order, in parts that differ by a byte at most. */
static void parts_of(uint64_t size, int n)
{
	struct gct_cp_manifest m = {.files = gci_calloc(1, sizeof(*m.files)), .nfiles = 1}, got;
	struct gci_buf buf = {0};
	struct gci_error e = {0};
	uint64_t at = 0;
	int i;

	m.files[0] = (struct gct_cp_file){
		.name = gci_strdup("f"), .origin = gci_strdup("d/f"), .size = size, .mode = 0640};
	assert_int_equal(gct_cp_manifest_scatter(&m, n, &e), 0);
	assert_int_equal(m.nfiles, n);
	assert_true(m.stream_nbytes == size + (uint64_t)n * GCT_CP_TRAILER);
	for (i = 0; i < n; i++) {
		assert_true(m.files[i].begin == at && m.files[i].whole == size);
		assert_true(m.files[i].size - size / (uint64_t)n <= 1);
		assert_string_equal(m.files[i].origin, "d/f");
		at += m.files[i].size;
	}
	assert_true(at == size);
	gct_cp_manifest_encode(&m, &buf);
	assert_int_equal(gct_cp_manifest_decode(&got, buf.data, buf.len, &e), 0);
	assert_true(got.is_scattered && !got.into_directory);
	assert_int_equal(got.nfiles, n);
	gct_cp_manifest_free(&got);
	gct_cp_manifest_free(&m);
	gci_buf_free(&buf);
}

static void scattered(void **state)
{
	struct gct_cp_manifest m = of_all();
	struct gci_error e = {0};

	(void)state;
	parts_of(0, 3);
	parts_of(2, 3);
	parts_of(10, 1);
	parts_of(1000003, 7);
	parts_of(INT64_MAX - 1000, 100);
	assert_int_equal(gct_cp_manifest_scatter(&m, 3, &e), GCOLL_ERR_INVAL);
	assert_string_equal(e.text, "--scatter, expected one file, and a receiver at least");
	/* Of parts there are no directories, and one at least. */
	m.is_scattered = 1;
	refuse(&m);
	m.ndirs = m.nlinks = m.nfiles = 0;
	refuse(&m);
}

/* Each in the one before. */
static void too_deep(void **state)
{
	static struct gct_cp_dir chain[GCT_CP_MAX_DEPTH + 1];
	struct gct_cp_manifest m = {.dirs = chain, .into_directory = 1}, got;
	struct gci_buf buf = {0};
	struct gci_error e = {0};
	char *path;
	uint32_t i;

	(void)state;
	for (i = 0; i <= GCT_CP_MAX_DEPTH; i++)
		chain[i] = (struct gct_cp_dir){.name = (char *)"d", .parent = i};
	m.ndirs = GCT_CP_MAX_DEPTH + 1;
	refuse(&m);
	m.ndirs--;
	gct_cp_manifest_encode(&m, &buf);
	assert_int_equal(gct_cp_manifest_decode(&got, buf.data, buf.len, &e), 0);
	path = gct_cp_path(&got, "root", m.ndirs, "name", NULL);
	assert_int_equal(strlen(path), 4 + 2 * GCT_CP_MAX_DEPTH + 5);
	gci_free(path);
	gct_cp_manifest_free(&got);
	gci_buf_free(&buf);
}

static void sums_that_overflow(void **state)
{
	struct gct_cp_file files[3];
	struct gct_cp_manifest m = {.files = files, .nfiles = 3, .into_directory = 1};
	int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		files[i] = three[i];
		files[i].size = INT64_MAX - GCT_CP_TRAILER;
	}
	refuse(&m);
}

/* Of directories, files and links: more or fewer than there are. */
static void wrong_counts(void **state)
{
	struct gct_cp_manifest m = of_all(), got;
	static const uint32_t counts[] = {0, 4, GCT_CP_MAX_FILES, GCT_CP_MAX_FILES + 1, UINT32_MAX};
	size_t i, which;

	(void)state;
	for (i = 0; i < sizeof(counts) / sizeof(*counts) * 3; i++) {
		struct gci_error e = {0};
		struct gci_buf buf = {0};
		uint32_t n = counts[i / 3];

		which = i % 3;
		gct_cp_manifest_encode(&m, &buf);
		gci_store_u32(buf.data + 1 + 4 * which, n);
		/* No memory is taken for what cannot be there. */
		gci_mem_fail_at(n > 4 ? 1 : 0);
		assert_int_equal(
			gct_cp_manifest_decode(&got, buf.data, buf.len, &e), GCOLL_ERR_PROTO);
		assert_false(gci_mem_failed());
		gci_mem_fail_at(0);
		gct_cp_manifest_free(&got);
		gci_buf_free(&buf);
	}
	m.ndirs = m.nfiles = m.nlinks = 0;
	m.into_directory = 0; /* of an empty directory's contents there are none */
	refuse(&m);
	m = (struct gct_cp_manifest){.files = three, .nfiles = 3}; /* three of one name */
	refuse(&m);
}

static void out_of_memory(void **state)
{
	struct gct_cp_manifest m = of_all(), got;
	struct gci_buf buf = {0};
	unsigned long n;
	int rc = -1;

	(void)state;
	gct_cp_manifest_encode(&m, &buf);
	for (n = 1; rc; n++) {
		struct gci_error e = {0};

		gci_mem_fail_at(n);
		rc = gct_cp_manifest_decode(&got, buf.data, buf.len, &e);
		assert_int_equal(!rc, !gci_mem_failed());
		gct_cp_manifest_free(&got);
	}
	assert_int_equal(n, 12); /* three lists, six names and a target, then none */
	gci_mem_fail_at(0);
	gci_buf_free(&buf);
}

static void scan_refuses(const char *path, const char *text)
{
	char *paths[] = {(char *)(uintptr_t)path};
	struct gct_cp_manifest m;
	struct gci_error e = {0};

	assert_int_equal(gct_cp_manifest_scan(&m, paths, 1, 0, &e), GCOLL_ERR_IO);
	assert_string_equal(e.text, text);
	gct_cp_manifest_free(&m);
}

static void scan(void **state)
{
	char a[256], b[256], text[600], *paths[] = {a, b};
	struct gct_cp_manifest m;
	struct gci_error e = {0};
	struct stat st;

	(void)state;
	make_dir(in_scratch("d"));
	snprintf(a, sizeof(a), "%s", in_scratch("x"));
	snprintf(b, sizeof(b), "%s", in_scratch("d/y"));
	make_file(a, 5, 1);
	make_file(b, 70000, 2);
	chmod(b, 0640);
	st = look(b);
	assert_int_equal(gct_cp_manifest_scan(&m, paths, 2, 1, &e), 0);
	assert_int_equal(m.nfiles, 2);
	assert_true(m.stream_nbytes == 70005 + 2 * GCT_CP_TRAILER);
	assert_string_equal(m.files[1].name, "y");
	assert_int_equal(m.files[1].mode, 0640);
	assert_int_equal(m.files[1].mtime_ns, st.st_mtim.tv_nsec);
	gct_cp_manifest_free(&m);

	snprintf(b, sizeof(b), "%s", in_scratch("d/x"));
	make_file(b, 1, 1);
	assert_int_equal(gct_cp_manifest_scan(&m, paths, 2, 1, &e), GCOLL_ERR_INVAL);
	assert_string_equal(e.text, "two sources are called x, expected different names");
	gct_cp_manifest_free(&m);

	snprintf(text, sizeof(text), "cannot read %s: No such file or directory",
		in_scratch("none"));
	scan_refuses(in_scratch("none"), text);
	snprintf(text, sizeof(text), "%s is a directory, expected a regular file, or --recursive",
		in_scratch("d"));
	scan_refuses(in_scratch("d"), text);
	scan_refuses("/dev/zero", "/dev/zero is no file with contents, expected a regular file");
	assert_int_equal(mkfifo(in_scratch("fifo"), 0600), 0);
	snprintf(text, sizeof(text), "%s is no file with contents, expected a regular file",
		in_scratch("fifo"));
	scan_refuses(in_scratch("fifo"), text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_goes_in_comes_out),
		cmocka_unit_test(wrong_lengths),
		cmocka_unit_test(wrong_files),
		cmocka_unit_test(wrong_directories),
		cmocka_unit_test(wrong_links),
		cmocka_unit_test(scattered),
		cmocka_unit_test(too_deep),
		cmocka_unit_test(sums_that_overflow),
		cmocka_unit_test(wrong_counts),
		cmocka_unit_test(out_of_memory),
		cmocka_unit_test_setup_teardown(scan, scratch_make, scratch_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
