/* SPDX-License-Identifier: MIT */
#include "base/jsontext.h"
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char sample[] = "{\n"                                       /* 1 */
			     "  \"version\": 1, \"on\": true,\n"         /* 2 */
			     "  \"text\": \"a } ] \\\" \\\\\",\n"        /* 3 */
			     "  \"links\": [\n"                          /* 4 */
			     "    {\"gap\": [1, 2,\n"                    /* 5 */
			     "      3]},\n"                              /* 6 */
			     "    {\"gap\":\n"                           /* 7 */
			     "      [[],{\"a\":[{}]},\n"                 /* 8 */
			     "       -5], \"b\": 1.5}\n"                 /* 9 */
			     "  ],\n"                                    /* 10 */
			     "  \"digest\": \"0123456789abcdef\",\n"     /* 11 */
			     "  \"date\": \"2026-11-21T16:29:00Z\",\n"   /* 12 */
			     "  \"names\": [\"x\", \"new\\nline\", 7]\n" /* 13 */
			     "}\n";

static void line_is(const char *path, int want)
{
	int got = gci_json_line(sample, sizeof(sample) - 1, path);

	if (got != want)
		fail_msg("%s: line %d, expected %d", path, got, want);
}

static void lines_of_values(void **state)
{
	(void)state;
	line_is("", 1);
	line_is("version", 2);
	line_is("on", 2);
	line_is("text", 3);
	line_is("links", 4);
	line_is("links[0]", 5);
	line_is("links[0].gap", 5);
	line_is("links[0].gap[1]", 5);
	line_is("links[0].gap[2]", 6);
	line_is("links[1].gap", 8);
	line_is("links[1].gap[1].a[0]", 8);
	line_is("links[1].gap[2]", 9);
	line_is("links[1].b", 9);
	line_is("digest", 11);
}

static void lines_around_what_is_not_there(void **state)
{
	(void)state;
	line_is("nothing", 1);
	line_is("links[2]", 4);
	line_is("links[0].gap[3]", 5);
	line_is("links[1].c", 7);
	line_is("version.x", 2);
	line_is("version[0]", 2);
	line_is("links[", 4);
	line_is("links[18446744073709551616]", 5); /* as if it were 0: a line, whatever is asked */
	line_is("links[1].gap[0][0]", 8);
	line_is("links[1].gap[1].a[0].b", 8);
}

/* Nothing is read beyond the end, and it ends. */
static void lines_of_what_is_no_json(void **state)
{
	static const char *const paths[] = {"", "links[1].gap[2]", "digest", "text.a", "x[3]"};
	size_t len, i;

	(void)state;
	for (len = 0; len < sizeof(sample) - 1; len++) {
		char *cut = malloc(len + 1); /* exactly as long: a sanitizer sees more */

		memcpy(cut, sample, len);
		for (i = 0; i < 5; i++)
			assert_true(gci_json_line(cut, len, paths[i]) >= 1);
		free(cut);
	}
	assert_int_equal(gci_json_line("\0\n\0", 3, "a"), 1);
	assert_int_equal(gci_json_line("]],,}", 5, "[3].a"), 1);
}

static void deep_nesting_needs_no_stack(void **state)
{
	size_t n = 1u << 20;
	char *deep = malloc(2 * n + 16);

	(void)state;
	memset(deep, '[', n);
	memset(deep + n, ']', n);
	memcpy(deep, "{\"a\":", 5);
	memcpy(deep + 2 * n, ",\n\"b\":\n1}", 9);
	memset(deep + 2 * n - 5, ' ', 5);
	assert_int_equal(gci_json_line(deep, 2 * n + 9, "b"), 3);
	free(deep);
}

struct opened {
	struct gci_json j;
	struct gci_json_node root;
	struct gci_error e;
};

static void open_sample(struct opened *o)
{
	memset(&o->e, 0, sizeof(o->e));
	if (gci_json_open(&o->j, &o->root, sample, sizeof(sample) - 1, 4096, "s.json", &o->e))
		fail_msg("%s", o->e.text);
}

static void is_refused(struct opened *o, int rc, const char *text)
{
	assert_int_equal(rc, GCOLL_ERR_PARSE);
	assert_string_equal(o->e.text, text);
	gci_error_clear(&o->e);
}

static void values_of_the_right_kind(void **state)
{
	struct gci_json_node links, l, gap, names;
	struct opened o;
	const char *s;
	uint64_t v;
	int on = 0;

	(void)state;
	open_sample(&o);
	assert_int_equal(gci_json_uint(&o.root, "version", 1, 1, &v), 0);
	assert_int_equal(v, 1);
	assert_int_equal(gci_json_bool(&o.root, "on", &on), 0);
	assert_int_equal(on, 1);
	assert_int_equal(gci_json_digest(&o.root, "digest", &v), 0);
	assert_true(v == 0x0123456789abcdefull);
	assert_int_equal(gci_json_date(&o.root, "date", &s), 0);
	assert_string_equal(s, "2026-11-21T16:29:00Z");
	assert_int_equal(gci_json_array(&o.root, "links", 0, 2, &links), 0);
	assert_int_equal(links.n, 2);
	assert_int_equal(gci_json_item(&links, 1, &l), 0);
	assert_int_equal(gci_json_array(&l, "gap", 3, 3, &gap), 0);
	assert_int_equal(gci_json_item(&gap, 1, &l), 0);
	assert_true(gci_json_has(&l, "a"));
	assert_false(gci_json_has(&l, "b"));
	assert_int_equal(gci_json_array(&o.root, "names", 0, 9, &names), 0);
	assert_int_equal(gci_json_string_item(&names, 0, 8, &s), 0);
	assert_string_equal(s, "x");
	assert_int_equal(o.e.status, 0);
	gci_json_close(&o.j);
}

static void values_of_the_wrong_kind(void **state)
{
	static const char *const known[] = {"version", "on", "text", "links", NULL};
	struct gci_json_node links, l, gap, names;
	struct opened o;
	const char *s;
	uint64_t v;
	int on;

	(void)state;
	open_sample(&o);
	is_refused(&o, gci_json_uint(&o.root, "version", 2, 5, &v),
		"s.json:2: version = 1, expected a whole number from 2 to 5");
	is_refused(&o, gci_json_uint(&o.root, "on", 0, 5, &v),
		"s.json:2: on = true, expected a whole number from 0 to 5");
	is_refused(&o, gci_json_uint(&o.root, "none", 0, 5, &v),
		"s.json:1: no none, expected a whole number from 0 to 5");
	is_refused(&o, gci_json_bool(&o.root, "links", &on),
		"s.json:4: links = an array of 2, expected true or false");
	is_refused(&o, gci_json_digest(&o.root, "date", &v),
		"s.json:12: date = \"2026-11-21T16:29:00Z\", expected 16 digits from 0 to f");
	is_refused(&o, gci_json_date(&o.root, "digest", &s),
		"s.json:11: digest = \"0123456789abcdef\", expected a time in UTC such as "
		"\"2026-01-31T23:59:00Z\"");
	is_refused(&o, gci_json_string(&o.root, "text", 40, &s),
		"s.json:3: text = \"a } ] \" \\\", expected a text of 1 to 40 plain characters");
	is_refused(&o, gci_json_object(&o.root, "version", &l),
		"s.json:2: version = 1, expected an object");
	is_refused(&o, gci_json_array(&o.root, "links", 0, 1, &links),
		"s.json:4: links = an array of 2, expected an array of 0 to 1");
	is_refused(&o, gci_json_keys(&o.root, known),
		"s.json:11: unknown key \"digest\", expected version, on, text or links");
	assert_int_equal(gci_json_array(&o.root, "links", 0, 2, &links), 0);
	assert_int_equal(gci_json_item(&links, 1, &l), 0);
	is_refused(&o, gci_json_uint(&l, "b", 0, 5, &v),
		"s.json:9: links[1].b = 1.5, expected a whole number from 0 to 5");
	is_refused(&o, gci_json_uint(&l, "c", 0, 5, &v),
		"s.json:7: no links[1].c, expected a whole number from 0 to 5");
	assert_int_equal(gci_json_array(&l, "gap", 3, 3, &gap), 0);
	is_refused(&o, gci_json_item(&gap, 2, &l),
		"s.json:9: links[1].gap[2] = -5, expected an object");
	assert_int_equal(gci_json_array(&o.root, "names", 0, 9, &names), 0);
	is_refused(&o, gci_json_string_item(&names, 1, 40, &s),
		"s.json:13: names[1] = \"new?line\", expected a text of 1 to 40 plain characters");
	is_refused(&o, gci_json_string_item(&names, 2, 40, &s),
		"s.json:13: names[2] = 7, expected a text of 1 to 40 plain characters");
	gci_json_close(&o.j);
}

static void text_refused(const char *text, const char *want)
{
	struct opened o = {0};

	is_refused(&o, gci_json_open(&o.j, &o.root, text, strlen(text), 64, "t.json", &o.e), want);
	gci_json_close(&o.j);
}

static void texts_that_are_none(void **state)
{
	size_t n = GCI_JSON_MAX_CONTAINERS + 1;
	struct opened o = {0};
	char *many;

	(void)state;
	text_refused("[1]", "t.json:1: an array of 1, expected an object");
	text_refused("{\"a\": 1,\n \"a\": 2}",
		"t.json:2: duplicate object key near '\"a\"', expected JSON");
	text_refused("{\"a\": 99999999999999999999}",
		"t.json:1: too big integer near '99999999999999999999', expected JSON");
	text_refused("{} {}", "t.json:1: end of file expected near '{', expected JSON");
	text_refused("{\"0123456789012345678901234567890123456789012345678901234567890\": 1}",
		"t.json:1: larger than 64 bytes");
	is_refused(&o, gci_json_open(&o.j, &o.root, NULL, 0, 64, "t.json", &o.e),
		"t.json:1: '[' or '{' expected near end of file, expected JSON");
	gci_json_close(&o.j);
	many = malloc(n);
	memset(many, '[', n);
	is_refused(&o, gci_json_open(&o.j, &o.root, many, n, n, "t.json", &o.e),
		"t.json:1: more than 262144 objects and arrays");
	gci_json_close(&o.j);
	free(many);
}

static void dates(void **state)
{
	static const char *const bad[] = {"2026-11-21 16:29:00Z", "2026-13-21T16:29:00Z",
		"2026-00-21T16:29:00Z", "2026-11-32T16:29:00Z", "2026-11-21T24:29:00Z",
		"2026-11-21T16:60:00Z", "2026-11-21T16:29:61Z", "2026-11-21T16:29:00",
		"2026-11-21T16:29:00+", "2026-11-21T16:2 :00Z", ""};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct opened o = {0};
		const char *s;
		char text[64];
		int len = snprintf(text, sizeof(text), "{\"d\": \"%s\"}", bad[i]);

		assert_int_equal(gci_json_open(&o.j, &o.root, text, (size_t)len, 64, "d", &o.e), 0);
		assert_int_equal(gci_json_date(&o.root, "d", &s), GCOLL_ERR_PARSE);
		gci_json_close(&o.j);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_of_values),
		cmocka_unit_test(lines_around_what_is_not_there),
		cmocka_unit_test(lines_of_what_is_no_json),
		cmocka_unit_test(deep_nesting_needs_no_stack),
		cmocka_unit_test(values_of_the_right_kind),
		cmocka_unit_test(values_of_the_wrong_kind),
		cmocka_unit_test(texts_that_are_none),
		cmocka_unit_test(dates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
