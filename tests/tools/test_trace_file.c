/* SPDX-License-Identifier: MIT */
#include "tests/test.h"

#include "base/mem.h"
#include "tools/lib/trace_file.h"

#include <stdio.h>
#include <string.h>

static const char good[] =
	"{\"version\": 1, \"operation\": \"bcast\",\n"
	" \"algorithm\": \"chain:segment=65536\", \"count\": 32768,\n"
	" \"element_nbytes\": 4, \"root\": 1, \"streams\": 4, \"dilation\": 20,\n"
	" \"topology_digest\": \"0123456789abcdef\", \"measured_ns\": 5000,\n"
	" \"hosts\": [\"a\", \"b\"],\n"
	" \"windows\": [\n"
	"  {\"rank\": 0, \"window\": 0, \"from_ns\": [1, 2],\n"
	"   \"to_ns\": [30, 40]},\n"
	"  {\"rank\": 1, \"window\": 0, \"from_ns\": [3, 4],\n"
	"   \"to_ns\": [3, 70]}]}\n";

static void there_and_back(void **state)
{
	struct gci_buf first = {0}, second = {0};
	struct gci_error e = {0};
	struct gct_trace t;

	(void)state;
	if (gct_trace_parse(&t, good, strlen(good), "t", &e))
		fail_msg("%s", e.text);
	assert_int_equal(t.kind, GCI_BCAST);
	assert_string_equal(t.how.algorithm->name, "chain");
	assert_int_equal(t.how.segment_nbytes, 65536);
	assert_int_equal(t.count, 32768);
	assert_int_equal(t.esize, 4);
	assert_int_equal(t.root, 1);
	assert_int_equal(t.streams, 4);
	assert_int_equal(t.dilation, 20);
	assert_true(t.topo_digest == 0x0123456789abcdefull);
	assert_int_equal(t.ns, 5000);
	assert_int_equal(t.nranks, 2);
	assert_string_equal(t.hosts[1], "b");
	assert_int_equal(t.nwindows, 2);
	assert_int_equal(t.windows[1].rank, 1);
	assert_int_equal(t.windows[1].nsteps, 2);
	assert_int_equal(t.windows[1].at[2], 4);
	assert_int_equal(t.windows[1].at[3], 70);
	gct_trace_print(&t, &first);
	gct_trace_free(&t);
	assert_int_equal(gct_trace_parse(&t, gci_buf_cstr(&first), first.len, "t", &e), 0);
	gct_trace_print(&t, &second);
	assert_string_equal(gci_buf_cstr(&first), gci_buf_cstr(&second));
	gct_trace_free(&t);
	gci_buf_free(&first);
	gci_buf_free(&second);
}

/* One change of the good file, and what is said of it. */
static const struct {
	const char *what, *instead, *message;
} wrongs[] = {
	{"\"version\": 1", "\"version\": 2, \"news\": 0", "t:1: version = 2, expected 1"},
	{"\"version\": 1", "\"version\": 2", "t:1: version = 2, expected 1"},
	{"\"bcast\"", "\"bcst\"", "t:1: operation = \"bcst\", expected bcast, reduce"},
	{"\"bcast\"", "7", "t:1: operation = 7, expected a text of"},
	{"chain:", "chian:", "t:2: "},
	{"segment=65536", "segment=x", "t:2: "},
	{"\"count\": 32768", "\"count\": -1", "t:2: count = -1, expected a whole number from 0 to"},
	{"\"count\": 32768", "\"count\": 9007199254740000",
		"t:2: count = 9007199254740000, expected no more than 2^50 bytes"},
	{"\"element_nbytes\": 4", "\"element_nbytes\": 0", "t:3: element_nbytes = 0, expected"},
	{"\"root\": 1", "\"root\": 2", "t:3: root = 2, expected a whole number from 0 to 1"},
	{"\"dilation\": 20", "\"dilation\": 0", "t:3: dilation = 0, expected"},
	{"0123456789abcdef", "0123456789abcdeg", "t:4: topology_digest = "},
	{"[\"a\", \"b\"]", "[]", "t:5: hosts = an array of 0, expected an array of 1 to 4096"},
	{"[\"a\", \"b\"]", "[\"a\", 3]", "t:5: hosts[1] = 3, expected a text of"},
	{"\"rank\": 1", "\"rank\": 2",
		"t:9: windows[1].rank = 2, expected a whole number from 0 to 1"},
	{"[30, 40]", "[30]", "t:8: windows[0].to_ns = an array of 1, expected an array of 2 to 2"},
	{"[30, 40]", "[30, \"x\"]",
		"t:8: windows[0].to_ns = an array of 2, expected whole numbers"},
	{"[30, 40]", "[30, 1e99]", "t:8: windows[0].to_ns = an array of 2, expected whole numbers"},
	{"[30, 40]", "[30, 1]",
		"t:8: windows[0].to_ns = an array of 2, "
		"expected no end before its beginning, as that of step 1 is"},
	{"\"from_ns\": [3, 4],", "\"from_ns\": [3, 4], \"x\": 0,",
		"t:9: unknown key \"x\", expected rank, window, from_ns or to_ns"},
	{"[3, 70]}]}", "[3, 70]}]", "t:11: "},
	{"\"root\": 1, ", "", "t:1: no root, expected a whole number from 0 to 1"},
};

static void wrong_files(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(wrongs) / sizeof(*wrongs); i++) {
		const char *at = strstr(good, wrongs[i].what);
		struct gci_error e = {0};
		struct gct_trace t;
		char text[1024];

		assert_non_null(at);
		snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - good), good, wrongs[i].instead,
			at + strlen(wrongs[i].what));
		assert_int_equal(gct_trace_parse(&t, text, strlen(text), "t", &e), GCOLL_ERR_PARSE);
		if (strncmp(e.text, wrongs[i].message, strlen(wrongs[i].message)) != 0)
			fail_msg("case %zu: %s", i, e.text);
		assert_null(t.windows);
		assert_null(t.hosts);
	}
}

/* Wherever it ends, it is refused. */
static void truncated(void **state)
{
	struct gci_error e = {0};
	struct gct_trace t;
	size_t n;

	(void)state;
	for (n = 0; n < strlen(good) - 2; n++) {
		gci_error_clear(&e);
		assert_int_equal(gct_trace_parse(&t, good, n, "t", &e), GCOLL_ERR_PARSE);
		assert_int_equal(strncmp(e.text, "t:", 2), 0);
	}
}

static void out_of_memory(void **state)
{
	struct gci_error e = {0};
	struct gct_trace t;
	unsigned long n;
	int rc;

	(void)state;
	for (n = 1;; n++) {
		gci_error_clear(&e);
		gci_mem_fail_at(n);
		rc = gct_trace_parse(&t, good, strlen(good), "t", &e);
		if (!gci_mem_failed())
			break;
		assert_int_equal(rc, GCOLL_ERR_NOMEM);
		assert_null(t.windows);
	}
	gci_mem_fail_at(0);
	assert_int_equal(rc, 0);
	assert_true(n > 5);
	gct_trace_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_and_back),
		cmocka_unit_test(wrong_files),
		cmocka_unit_test(truncated),
		cmocka_unit_test(out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
