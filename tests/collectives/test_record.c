/* SPDX-License-Identifier: MIT */

#include "tests/test.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/prng.h"
#include "collectives/tuner/record.h"
#include "collectives/tuner/table.h"

#include <string.h>

static void read_text(struct gci_record *r, const char *text)
{
	struct gci_error e = {0};

	if (gci_record_parse(r, text, strlen(text), "r.json", &e))
		fail_msg("%s", e.text);
}

static void calls_are_counted_by_size(void **state)
{
	struct gci_record r = {0};

	(void)state;
	gci_record_count(&r, GCI_BCAST, 4, 65536);
	gci_record_count(&r, GCI_BCAST, 4, 65000);
	gci_record_count(&r, GCI_BCAST, 4, 92000); /* sqrt(2) x 64 KiB is 92681 */
	gci_record_count(&r, GCI_BCAST, 4, 93000);
	gci_record_count(&r, GCI_BCAST, 3, 65536);
	gci_record_count(&r, GCI_REDUCE, 4, 0);
	assert_int_equal(r.n, 4);
	assert_int_equal(r.entries[0].nranks, 3);
	assert_int_equal(r.entries[1].nbytes, 65536);
	assert_int_equal(r.entries[1].calls, 3);
	assert_int_equal(r.entries[2].nbytes, 131072);
	assert_int_equal(r.entries[2].calls, 1);
	assert_int_equal(r.entries[3].kind, GCI_REDUCE);
	assert_int_equal(r.entries[3].nbytes, 0);
	assert_int_equal(r.lost, 0);
	gci_record_free(&r);
}

static void sizes_are_rounded_by_ratio(void **state)
{
	uint64_t n;
	int bit;

	(void)state;
	assert_true(gci_table_round(0) == 0);
	for (bit = 0; bit <= 60; bit++)
		assert_true(gci_table_round(UINT64_C(1) << bit) == UINT64_C(1) << bit);
	assert_true(gci_table_round(UINT64_MAX) == GCI_TABLE_MAX_NBYTES);
	for (n = 1; n < 100000; n++) {
		uint64_t up = gci_table_round(n);

		/* up / sqrt(2) <= n <= up * sqrt(2) */
		assert_true(up * up <= 2 * n * n + n / 10000 * n && n * n <= 2 * up * up);
	}
}

static void what_is_printed_is_read_again(void **state)
{
	struct gci_record r = {0}, again;
	struct gci_prng prng = {5};
	struct gci_buf text = {0};
	int i;

	(void)state;
	for (i = 0; i < 3000; i++)
		gci_record_count(&r, (enum gci_kind)gci_prng_below(&prng, GCI_BARRIER),
			2 + (int)gci_prng_below(&prng, 3), gci_prng_next(&prng) >> (i % 60 + 4));
	gci_record_print(&r, &text);
	read_text(&again, gci_buf_cstr(&text));
	assert_int_equal(r.n, again.n);
	assert_memory_equal(r.entries, again.entries, r.n * sizeof(*r.entries));
	gci_record_free(&r);
	gci_record_free(&again);
	gci_buf_free(&text);
}

/* Two sizes that are rounded to one, and their calls added: no more than the parser takes. */
static void sums_are_read_again(void **state)
{
	struct gci_record r, again;
	struct gci_buf text = {0};

	(void)state;
	read_text(&r, "{\"version\": 1, \"lost\": 9223372036854775807, \"operations\": ["
		      "{\"operation\": \"bcast\", \"ranks\": 2, \"nbytes\": 1024,"
		      " \"calls\": 9223372036854775807},"
		      "{\"operation\": \"bcast\", \"ranks\": 2, \"nbytes\": 1025,"
		      " \"calls\": 9223372036854775807}]}");
	assert_int_equal(r.n, 1);
	gci_record_count(&r, GCI_BCAST, 2, 1024);
	gci_record_print(&r, &text);
	read_text(&again, gci_buf_cstr(&text));
	assert_true(again.entries[0].calls == INT64_MAX && again.lost == INT64_MAX);
	gci_record_free(&r);
	gci_record_free(&again);
	gci_buf_free(&text);
}

/* However long a run is, the record is not. */
static void a_record_is_bounded(void **state)
{
	struct gci_record r = {0};
	struct gci_buf text = {0};
	int i;

	(void)state;
	for (i = 0; i < GCI_RECORD_MAX_ENTRIES + 10; i++)
		gci_record_count(&r, GCI_BCAST, 1 + i, 1);
	assert_int_equal(r.n, GCI_RECORD_MAX_ENTRIES);
	assert_int_equal(r.lost, 10);
	gci_record_count(&r, GCI_BCAST, 1, 1); /* one that is known already */
	assert_int_equal(r.lost, 10);
	gci_record_print(&r, &text);
	assert_true(text.len < GCI_RECORD_MAX_TEXT);
	gci_record_free(&r);
	gci_mem_fail_at(1);
	gci_record_count(&r, GCI_BCAST, 4, 1);
	gci_mem_fail_at(0);
	assert_int_equal(r.lost, 1);
	assert_int_equal(r.n, 0);
	gci_record_free(&r);
	gci_buf_free(&text);
}

static void refused(const char *text, const char *why)
{
	struct gci_error e = {0};
	struct gci_record r;

	assert_int_equal(gci_record_parse(&r, text, strlen(text), "r.json", &e), GCOLL_ERR_PARSE);
	if (!strstr(e.text, why))
		fail_msg("\"%s\" does not say \"%s\"", e.text, why);
	assert_null(r.entries);
}

static void wrong_records_are_refused_with_their_line(void **state)
{
	(void)state;
	refused("", "r.json:");
	refused("{\"version\": 1,\n\"operations\": [", "r.json:2: ");
	refused("{\"version\": 2, \"operations\": []}", "r.json:1: ");
	refused("{\"version\": 1}", "operations");
	refused("{\"version\": 1, \"operations\": [\n{}]}", "r.json:2: ");
	refused("{\"version\": 1, \"operations\": [\n{\"operation\": \"broadcast\", \"ranks\": 2,\n"
		"\"nbytes\": 1, \"calls\": 1}]}",
		"r.json:2: operations[0].operation = \"broadcast\", expected an operation");
	refused("{\"version\": 1, \"operations\": [\n{\"operation\": \"bcast\", \"ranks\": 0,\n"
		"\"nbytes\": 1, \"calls\": 1}]}",
		"r.json:2: ");
	refused("{\"version\": 1, \"operations\": [\n{\"operation\": \"bcast\", \"ranks\": 2,\n"
		"\"nbytes\": -1, \"calls\": 1}]}",
		"r.json:3: ");
	refused("{\"version\": 1, \"operations\": [\n{\"operation\": \"barrier\", \"ranks\": 2,\n"
		"\"nbytes\": 8, \"calls\": 1}]}",
		"r.json:3: ");
	refused("{\"version\": 1, \"operations\": [\n{\"operation\": \"bcast\", \"ranks\": 2,\n"
		"\"nbytes\": 1, \"calls\": 1, \"more\": 1}]}",
		"r.json:3: ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_are_counted_by_size),
		cmocka_unit_test(sizes_are_rounded_by_ratio),
		cmocka_unit_test(what_is_printed_is_read_again),
		cmocka_unit_test(sums_are_read_again),
		cmocka_unit_test(a_record_is_bounded),
		cmocka_unit_test(wrong_records_are_refused_with_their_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
