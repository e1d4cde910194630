/* SPDX-License-Identifier: MIT
 * Candidates as text: what is printed is read back, what is wrong is refused with the reason. */
#include "base/prng.h"
#include "collectives/tuner/candidate.h"
#include "tests/test.h"

#include <stdio.h>
#include <string.h>

static void same(const struct gci_candidate *a, const struct gci_candidate *b)
{
	assert_ptr_equal(a->algorithm, b->algorithm);
	assert_int_equal(a->senders, b->senders);
	assert_int_equal(a->degree, b->degree);
	assert_int_equal(a->segment_nbytes, b->segment_nbytes);
}

/* With the largest numbers there are, and with others. */
static void round_trip(void **state)
{
	struct gci_prng prng = {7};
	const struct gci_algorithm *a;
	int i;

	(void)state;
	gci_each_algorithm (a)
		for (i = 0; i < 20; i++) {
			struct gci_candidate w = {a, 0, 0, 0}, back = {0};
			struct gci_error e = {0};
			char text[GCI_CANDIDATE_NBYTES];
			uint64_t r = gci_prng_next(&prng);

			if (a->traits & GCI_USES_SENDERS)
				w.senders = i ? r % 65537 : 65536;
			if (a->traits & GCI_USES_DEGREE)
				w.degree = i ? r % 1000 : 65536;
			if (a->traits & GCI_USES_SEGMENT)
				w.segment_nbytes = i ? r >> (r % 64) : UINT64_MAX;
			gci_candidate_print(&w, text);
			assert_in_range(strlen(text), 1, GCI_CANDIDATE_NBYTES - 1);
			assert_int_equal(gci_candidate_parse(&back, a->kind, text, &e), 0);
			same(&w, &back);
		}
}

static void as_people_write_it(void **state)
{
	struct gci_candidate w = {0};

	(void)state;
	assert_int_equal(gci_candidate_parse(&w, GCI_BCAST, "chain:segment=64KiB", NULL), 0);
	same(&w, &(struct gci_candidate){gci_algorithm_find(GCI_BCAST, "chain"), 0, 0, 64 << 10});
	assert_int_equal(gci_candidate_parse(&w, GCI_BCAST, "vandegeijn-mod:senders=3", NULL), 0);
	same(&w, &(struct gci_candidate){gci_algorithm_find(GCI_BCAST, "vandegeijn-mod"), 3, 0, 0});
	assert_int_equal(gci_candidate_parse(&w, GCI_REDUCE, "auto", NULL), 0);
	same(&w, &(struct gci_candidate){gci_algorithm_find(GCI_REDUCE, NULL), 0, 0, 0});
}

static void wrong(void **state)
{
	static const struct {
		enum gci_kind kind;
		const char *text, *begin;
	} cases[] = {
		{GCI_BCAST, "fastest",
			"bcast: unknown algorithm \"fastest\", expected auto or one of: packed "},
		{GCI_BCAST, "", "bcast: unknown algorithm \"\", expected auto or one of: "},
		{GCI_BCAST, ":segment=4", "bcast: unknown algorithm \"\", expected auto"},
		{GCI_BCAST, "chain:",
			"bcast: unknown parameter \"\", "
			"expected senders=N, segment=BYTES or degree=D"},
		{GCI_BCAST, "chain::segment=4", "bcast: unknown parameter \"\""},
		{GCI_BCAST, "chain:segmen=4", "bcast: unknown parameter \"segmen=4\""},
		{GCI_BCAST, "chain:segment", "bcast: unknown parameter \"segment\""},
		{GCI_BCAST, "chain:segment=", "bcast: \"segment=\", expected a size such as "},
		{GCI_BCAST, "chain:segment=0", "bcast: \"segment=0\", expected a size such as "},
		{GCI_BCAST, "chain:segment=4:", "bcast: unknown parameter \"\""},
		{GCI_BCAST, "chain:segment=4:segment=8",
			"bcast: \"segment=8\", expected segment once"},
		{GCI_BCAST, "vandegeijn-mod:senders=2:senders=2",
			"bcast: \"senders=2\", expected senders once"},
		{GCI_BCAST, "chain:senders=2", "bcast: chain does not use \"senders=2\""},
		{GCI_BCAST, "vandegeijn-mod:senders=0",
			"bcast: \"senders=0\", expected a number from 1 to 65536"},
		{GCI_BCAST, "vandegeijn-mod:senders=65537",
			"bcast: \"senders=65537\", expected a number"},
		{GCI_SCATTER, "pipeline", "scatter: unknown algorithm \"pipeline\""},
	};
	const struct gci_candidate before = {gci_algorithm_find(GCI_BCAST, "tree"), 1, 2, 3};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct gci_candidate w = before;
		struct gci_error e = {0};

		assert_int_equal(
			gci_candidate_parse(&w, cases[i].kind, cases[i].text, &e), GCOLL_ERR_INVAL);
		if (strncmp(e.text, cases[i].begin, strlen(cases[i].begin)) != 0)
			fail_msg("%s\n expected %s", e.text, cases[i].begin);
		same(&w, &before);
	}
}

/* Names and numbers of any length are refused, not cut. */
static void very_long(void **state)
{
	char text[5000];
	struct gci_candidate w;
	struct gci_error e = {0};
	size_t n;

	(void)state;
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = 0;
	assert_int_equal(gci_candidate_parse(&w, GCI_BCAST, text, &e), GCOLL_ERR_INVAL);
	gci_error_clear(&e);
	n = (size_t)snprintf(text, sizeof(text), "chain:segment=");
	memset(text + n, '0', sizeof(text) - n - 1);
	text[sizeof(text) - 2] = '1';
	assert_int_equal(gci_candidate_parse(&w, GCI_BCAST, text, &e), GCOLL_ERR_INVAL);
	assert_non_null(strstr(e.text, "unknown parameter \"segment=0"));
}

/* Segments are whole elements, and no shorter than what was asked for. */
static void applied(void **state)
{
	const struct gci_candidate w = {gci_algorithm_find(GCI_BCAST, "chain"), 2, 3, 10};
	struct gci_coll c = {.kind = GCI_BCAST, .count = 100, .esize = 4};

	(void)state;
	gci_candidate_apply(&w, &c);
	assert_int_equal(c.senders, 2);
	assert_int_equal(c.degree, 3);
	assert_int_equal(c.segment, 3);
	gci_candidate_apply(&(struct gci_candidate){w.algorithm, 0, 0, 0}, &c);
	assert_int_equal(c.senders + c.degree + c.segment, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trip),
		cmocka_unit_test(as_people_write_it),
		cmocka_unit_test(wrong),
		cmocka_unit_test(very_long),
		cmocka_unit_test(applied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
