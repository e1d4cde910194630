/* SPDX-License-Identifier: MIT */

#include "tests/test.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/prng.h"
#include "collectives/tuner/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DIGEST UINT64_C(0x0123456789abcdef)

static const char head[] = "{\"version\": 1, \"date\": \"2026-03-01T12:00:00Z\",\n"
			   "\"grid_digest\": \"0123456789abcdef\",\n"
			   "\"ranks\": 16, \"clusters\": 2,\n"
			   "\"operations\": {\n";

static const char body[] =
	"\"bcast\": [\n"
	"{\"nbytes\": 1024, \"algorithm\": \"binomial\", \"predicted_ns\": 1000},\n"
	"{\"nbytes\": 65536, \"algorithm\": \"chain:segment=4KiB\", \"measured_ns\": 4000},\n"
	"{\"nbytes\": 1048576, \"algorithm\": \"chain:segment=64KiB\", \"predicted_ns\": 9000,\n"
	"\"measured_ns\": 8000}],\n"
	"\"barrier\": [{\"nbytes\": 0, \"algorithm\": \"auto\"}]}}\n";

static void read_table(struct gci_table *t, const char *text)
{
	struct gci_error e = {0};

	if (gci_table_parse(t, text, strlen(text), "t.json", DIGEST, &e))
		fail_msg("%s", e.text);
}

static void read_example(struct gci_table *t)
{
	char text[2048];

	snprintf(text, sizeof(text), "%s%s", head, body);
	read_table(t, text);
}

static void assert_same(const struct gci_table *a, const struct gci_table *b)
{
	size_t i;
	int k;

	assert_true(a->grid_digest == b->grid_digest);
	assert_string_equal(a->date, b->date);
	assert_int_equal(a->nranks, b->nranks);
	assert_int_equal(a->nclusters, b->nclusters);
	for (k = 0; k < GCI_NKINDS; k++) {
		assert_int_equal(a->nentries[k], b->nentries[k]);
		for (i = 0; i < a->nentries[k]; i++) {
			const struct gci_table_entry *x = &a->entries[k][i];
			const struct gci_table_entry *y = &b->entries[k][i];

			assert_true(x->nbytes == y->nbytes);
			assert_ptr_equal(x->how.algorithm, y->how.algorithm);
			assert_int_equal(x->how.senders, y->how.senders);
			assert_int_equal(x->how.degree, y->how.degree);
			assert_true(x->how.segment_nbytes == y->how.segment_nbytes);
			assert_true(x->predicted_ns == y->predicted_ns);
			assert_true(x->measured_ns == y->measured_ns);
		}
	}
	assert_true(gci_table_digest(a) == gci_table_digest(b));
}

static struct gci_candidate random_candidate(const struct gci_algorithm *a, struct gci_prng *r)
{
	struct gci_candidate w = {.algorithm = a};

	if (a->traits & GCI_USES_SENDERS)
		w.senders = (uint32_t)gci_prng_below(r, 100);
	if (a->traits & GCI_USES_DEGREE)
		w.degree = (uint32_t)gci_prng_below(r, 100);
	if (a->traits & GCI_USES_SEGMENT)
		w.segment_nbytes = gci_prng_below(r, UINT64_C(1) << gci_prng_below(r, 50));
	return w;
}

static void random_table(struct gci_table *t, struct gci_prng *r)
{
	const struct gci_algorithm *a;

	*t = (struct gci_table){.grid_digest = DIGEST,
		.date = "2026-11-21T16:29:00Z",
		.nranks = 2 + (int)gci_prng_below(r, 100),
		.nclusters = 1 + (int)gci_prng_below(r, 2)};
	gci_each_algorithm (a) {
		struct gci_table_entry e = {.how = random_candidate(a, r),
			.predicted_ns = gci_prng_below(r, 3) * gci_prng_below(r, UINT64_C(1) << 50),
			.measured_ns = gci_prng_below(r, 2) * gci_prng_below(r, INT64_MAX)};

		if (a->kind != GCI_BARRIER)
			e.nbytes = gci_prng_below(r, GCI_TABLE_MAX_NBYTES);
		assert_int_equal(gci_table_add(t, a->kind, &e), 0);
	}
}

static void what_is_printed_is_read_again(void **state)
{
	struct gci_prng r = {7};
	struct gci_table t, again;
	int i;

	(void)state;
	for (i = 0; i < 50; i++) {
		struct gci_buf text = {0};

		random_table(&t, &r);
		gci_table_print(&t, &text);
		read_table(&again, gci_buf_cstr(&text));
		assert_same(&t, &again);
		gci_buf_free(&text);
		gci_table_free(&t);
		gci_table_free(&again);
	}
}

static void sizes_are_kept_in_order(void **state)
{
	struct gci_table t = {0};
	struct gci_table_entry e = {.how.algorithm = gci_algorithm_find(GCI_BCAST, NULL)};
	struct gci_prng r = {3};
	size_t i;

	(void)state;
	for (i = 0; i < 1000; i++) {
		e.nbytes = gci_prng_below(&r, 300);
		e.measured_ns = i + 1;
		assert_int_equal(gci_table_add(&t, GCI_BCAST, &e), 0);
	}
	assert_in_range(t.nentries[GCI_BCAST], 250, 300);
	for (i = 1; i < t.nentries[GCI_BCAST]; i++)
		assert_true(t.entries[GCI_BCAST][i - 1].nbytes < t.entries[GCI_BCAST][i].nbytes);
	/* The last one of its size is what counts. */
	e.measured_ns = 5000;
	assert_int_equal(gci_table_add(&t, GCI_BCAST, &e), 0);
	assert_true(gci_table_ns(&t, GCI_BCAST, 0, e.nbytes) == 5000);
	for (i = t.nentries[GCI_BCAST]; i < GCI_TABLE_MAX_ENTRIES; i++) {
		e.nbytes = 1000 + i;
		assert_int_equal(gci_table_add(&t, i % 2 ? GCI_BCAST : GCI_REDUCE, &e), 0);
	}
	e.nbytes++;
	assert_int_equal(gci_table_add(&t, GCI_GATHER, &e), GCOLL_ERR_INVAL);
	e.nbytes = GCI_TABLE_MAX_NBYTES + 1;
	assert_int_equal(gci_table_add(&t, GCI_BCAST, &e), GCOLL_ERR_INVAL);
	gci_table_free(&t);
}

static void assert_found(
	const struct gci_table *t, uint64_t nbytes, const char *name, uint64_t least, uint64_t most)
{
	struct gci_candidate w;

	assert_true(gci_table_find(t, GCI_BCAST, 16, nbytes, &w));
	assert_string_equal(w.algorithm->name, name);
	assert_true(w.segment_nbytes >= least && w.segment_nbytes <= most);
}

static void sizes_between_are_interpolated(void **state)
{
	struct gci_candidate w;
	struct gci_table t;
	uint64_t n, last = 0;

	(void)state;
	read_example(&t);
	assert_found(&t, 0, "binomial", 0, 0);
	assert_found(&t, 1024, "binomial", 0, 0);
	assert_found(&t, 8192, "binomial", 0, 0); /* as near as the other: the smaller */
	assert_found(&t, 8193, "chain", 4096, 4096);
	assert_found(&t, 65536, "chain", 4096, 4096);
	/* Half way from 64 KiB to 1 MiB by ratio, so half way from 4 to 64 KiB. */
	assert_found(&t, 262144, "chain", 16370, 16400);
	assert_found(&t, 131072, "chain", 8180, 8200);
	assert_found(&t, 1048576, "chain", 65536, 65536);
	assert_found(&t, UINT64_MAX, "chain", 65536, 65536);
	for (n = 65536; n <= 1048576; n += 4099) {
		assert_true(gci_table_find(&t, GCI_BCAST, 16, n, &w));
		assert_true(w.segment_nbytes >= last);
		last = w.segment_nbytes;
	}
	assert_true(gci_table_find(&t, GCI_BARRIER, 16, 0, &w));
	assert_false(gci_table_find(&t, GCI_BCAST, 15, 1024, &w));
	assert_false(gci_table_find(&t, GCI_GATHER, 16, 1024, &w));
	gci_table_free(&t);
}

static void times_between_are_interpolated(void **state)
{
	struct gci_table t;

	(void)state;
	read_example(&t);
	assert_true(gci_table_ns(&t, GCI_BCAST, 16, 1) == 1000);
	assert_true(gci_table_ns(&t, GCI_BCAST, 16, 1024) == 1000);
	assert_true(gci_table_ns(&t, GCI_BCAST, 16, 1024 + 21504) == 2000); /* a third */
	assert_true(gci_table_ns(&t, GCI_BCAST, 16, 65536) == 4000);
	assert_true(gci_table_ns(&t, GCI_BCAST, 16, 1048576) == 8000); /* measured counts */
	assert_true(gci_table_ns(&t, GCI_BCAST, 16, 4194304) == 32000);
	assert_true(gci_table_ns(&t, GCI_BARRIER, 16, 0) == 0);
	assert_true(gci_table_ns(&t, GCI_BCAST, 8, 1024) == 0);
	gci_table_dilate(&t, 20);
	assert_true(gci_table_ns(&t, GCI_BCAST, 16, 1048576) == 160000);
	gci_table_free(&t);
}

/* Times may change what is expected of an operation, not how it runs. */
static void digests_tell_choices_apart(void **state)
{
	struct gci_table a, b;

	(void)state;
	read_example(&a);
	read_example(&b);
	assert_same(&a, &b);
	b.entries[GCI_BCAST][0].measured_ns = 1;
	assert_true(gci_table_digest(&a) == gci_table_digest(&b));
	b.entries[GCI_BCAST][1].how.segment_nbytes++;
	assert_true(gci_table_digest(&a) != gci_table_digest(&b));
	b.entries[GCI_BCAST][1].how.segment_nbytes--;
	b.entries[GCI_BCAST][1].nbytes++;
	assert_true(gci_table_digest(&a) != gci_table_digest(&b));
	gci_table_free(&a);
	gci_table_free(&b);
}

static void expect_refused(const char *text, size_t len, const char *why)
{
	struct gci_error e = {0};
	struct gci_table t;

	if (gci_table_parse(&t, text, len, "t.json", DIGEST, &e) !=
		(strstr(why, "another grid") ? GCOLL_ERR_INVAL : GCOLL_ERR_PARSE))
		fail_msg("accepted: %s", text);
	if (!strstr(e.text, why))
		fail_msg("\"%s\" does not say \"%s\"", e.text, why);
	assert_true(!strncmp(e.text, "t.json:", 7));
	assert_null(t.entries[GCI_BCAST]);
}

static void refused(const char *from, const char *to, const char *why)
{
	char text[4096], *at;

	snprintf(text, sizeof(text), "%s%s", head, body);
	at = strstr(text, from);
	assert_non_null(at);
	memmove(at + strlen(to), at + strlen(from), strlen(at + strlen(from)) + 1);
	memcpy(at, to, strlen(to));
	expect_refused(text, strlen(text), why);
}

static void wrong_tables_are_refused_with_their_line(void **state)
{
	(void)state;
	refused("0123456789abcdef", "fedcba9876543210", "t.json:2: made for another grid");
	refused("\"version\": 1", "\"version\": 2", "t.json:1: ");
	refused("\"ranks\": 16", "\"ranks\": 0", "t.json:3: ");
	refused("\"clusters\": 2", "\"clusters\": 17", "t.json:3: ");
	refused("\"clusters\"", "\"cluster\"", "t.json:3: ");
	refused("2026-03", "2026/03", "t.json:1: ");
	refused("\"binomial\"", "\"bionmial\"", "t.json:6: bcast: unknown algorithm \"bionmial\"");
	refused("chain:segment=64KiB", "chain:segment=0", "t.json:8: bcast: \"segment=0\"");
	refused("chain:segment=4KiB", "chain:width=4", "t.json:7: bcast: unknown parameter");
	refused("\"nbytes\": 65536", "\"nbytes\": 1024",
		"t.json:7: operations.bcast[1].nbytes = 1024, expected a whole number from 1025");
	refused("\"nbytes\": 65536", "\"nbytes\": -1", "t.json:7: ");
	refused("\"nbytes\": 65536", "\"nbytes\": 1e5", "t.json:7: ");
	refused("\"measured_ns\": 8000", "\"measured_ns\": \"8 us\"", "t.json:9: ");
	refused("\"measured_ns\": 8000", "\"mesured_ns\": 8000", "t.json:9: ");
	refused("\"bcast\": [", "\"broadcast\": [", "t.json:5: ");
	refused("{\"nbytes\": 0", "{\"nbytes\": 8", "t.json:10: ");
	refused("\"algorithm\": \"auto\"", "\"predicted_ns\": 7", "t.json:10: ");
	refused("[{\"nbytes\": 0, \"algorithm\": \"auto\"}]", "[]", "t.json:10: ");
	refused("\"barrier\"", "\"bcast\"", "t.json:");
}

/* A file that was cut anywhere is no shorter table. */
static void cut_tables_are_refused(void **state)
{
	char text[2048];
	size_t len, i;

	(void)state;
	len = (size_t)snprintf(text, sizeof(text), "%s%s", head, body);
	while (text[len - 1] == '\n')
		len--;
	for (i = 0; i < len; i++)
		expect_refused(text, i, "t.json:");
}

static void too_many_entries_are_refused(void **state)
{
	struct gci_buf text = {0};
	int i;

	(void)state;
	gci_buf_printf(&text, "%s\"gather\": [{\"nbytes\": 1, \"algorithm\": \"auto\"}],\n", head);
	gci_buf_printf(&text, "\"bcast\": [");
	for (i = 0; i < GCI_TABLE_MAX_ENTRIES; i++)
		gci_buf_printf(
			&text, "%s\n{\"nbytes\": %d, \"algorithm\": \"auto\"}", i ? "," : "", i);
	gci_buf_printf(&text, "]}}");
	/* The gather's line, or the last bcast's: whichever is read last. */
	expect_refused(gci_buf_cstr(&text), text.len, "too many entries, expected at most 4096");
	gci_buf_free(&text);
}

static void memory_may_fail_anywhere(void **state)
{
	char text[2048];
	struct gci_table t;
	unsigned long n;
	int rc;

	(void)state;
	snprintf(text, sizeof(text), "%s%s", head, body);
	for (n = 1;; n++) {
		struct gci_error e = {0};

		gci_mem_fail_at(n);
		rc = gci_table_parse(&t, text, strlen(text), "t.json", DIGEST, &e);
		if (!gci_mem_failed())
			break;
		assert_int_equal(rc, GCOLL_ERR_NOMEM);
		assert_true(e.text[0]);
	}
	gci_mem_fail_at(0);
	assert_int_equal(rc, 0);
	assert_true(n > 1);
	gci_table_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_printed_is_read_again),
		cmocka_unit_test(sizes_are_kept_in_order),
		cmocka_unit_test(sizes_between_are_interpolated),
		cmocka_unit_test(times_between_are_interpolated),
		cmocka_unit_test(digests_tell_choices_apart),
		cmocka_unit_test(wrong_tables_are_refused_with_their_line),
		cmocka_unit_test(cut_tables_are_refused),
		cmocka_unit_test(too_many_entries_are_refused),
		cmocka_unit_test(memory_may_fail_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
