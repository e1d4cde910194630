/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "base/mem.h"
#include "tests/test.h"
#include "tests/tools/files.h"
#include "tools/cp.h"

#include <stdio.h>
#include <string.h>
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
				"destination \"%s\": expected %%r (rank), %%h (host) or %%%% "
				"after %%",
				cases[i].pattern);
			assert_null(got);
			assert_int_equal(e.status, GCOLL_ERR_INVAL);
			assert_string_equal(e.text, text);
		}
		gci_free(got);
	}
}

static void directories(void **state)
{
	struct gci_error e = {0};
	char text[300];

	(void)state;
	assert_int_equal(gct_cp_make_directories(in_scratch("a/b//c///"), &e), 0);
	assert_int_equal(entries(in_scratch("a/b/c")), 0);
	assert_int_equal(gct_cp_make_directories(in_scratch("a/b"), &e), 0);
	assert_int_equal(gct_cp_make_directories("/", &e), 0);
	assert_int_equal(gct_cp_make_directories(".", &e), 0);
	assert_int_equal(chdir(in_scratch("a")), 0);
	assert_int_equal(gct_cp_make_directories("x/y", &e), 0);
	assert_int_equal(entries(in_scratch("a/x/y")), 0);
	assert_int_equal(chdir("/"), 0);

	make_text(in_scratch("a/file"), "x");
	assert_int_equal(gct_cp_make_directories(in_scratch("a/file"), &e), GCOLL_ERR_IO);
	snprintf(text, sizeof(text), "cannot make directory %s: a file is called so",
		in_scratch("a/file"));
	assert_string_equal(e.text, text);
	gci_error_clear(&e);
	assert_int_equal(gct_cp_make_directories(in_scratch("a/file/b/c"), &e), GCOLL_ERR_IO);
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

		gct_cp_progress_line(line, sizeof(line), cases[i].done, cases[i].all, cases[i].ns);
		assert_string_equal(line, cases[i].line);
	}
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

				gct_cp_progress_line(
					line, sizeof(line), values[b], values[a], values[c]);
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
		cmocka_unit_test(progress),
		cmocka_unit_test(extreme_progress),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
