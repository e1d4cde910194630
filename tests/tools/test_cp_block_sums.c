/* SPDX-License-Identifier: MIT
 * The checksums of blocks, by which gridcoll cp --resume finds what need not come again: made at rank
 * 0, compared at a receiver, and of use to a source that goes on. */
#include "base/crc32c.h"
#include "base/mem.h"
#include "tests/tools/cp_set.h"

#include <string.h>
#include <unistd.h>

/* Holes have the checksums of the zeros that they are. */
static void holes_are_summed_as_zeros(void **state)
{
	static const size_t len[] = {B, B, B, B, B, NBYTES - 5 * B};
	struct set *s = *state;
	char *zeros = gci_calloc(B, 1);
	int i;

	make_hole(s, B);
	for (i = 1; i < 6; i++)
		assert_int_equal(s->crcs[i], gci_crc32c(0, zeros, len[i]));
	gci_free(zeros);
	write_to(s, 2 * B);
	assert_true(go_on(s) == B);
}

/* Fails when *user blocks are done. */
static int stop_at(void *user, uint64_t n, struct gci_error *e)
{
	return n == *(uint64_t *)user ? gci_error_set(e, GCOLL_ERR_PEER, "another failed") : 0;
}

/* Any number of blocks later it goes on with what is made. */
static void summing_is_broken_off(void **state)
{
	struct set *s = *state;
	uint64_t at;
	struct gct_cp_look look = {stop_at, &at};
	struct gci_error e = {0};
	uint32_t crcs[16] = {0};

	for (at = 1; at <= s->nblocks; at++) {
		assert_int_equal(gct_cp_sum_blocks(&s->m, crcs, s->nblocks, NULL, &look, &e),
			GCOLL_ERR_PEER);
		assert_int_equal(crcs[at], 0);
		gci_error_clear(&e);
	}
	assert_memory_equal(crcs, s->crcs, s->nblocks * sizeof(*crcs));
	unlink(s->paths[0]); /* it is not looked at any more */
	assert_int_equal(gct_cp_sum_blocks(&s->m, crcs, s->nblocks, NULL, &look, &e), 0);
}

/* A receiver, too: what it has compared by then does not count. */
static void comparing_is_broken_off(void **state)
{
	struct set *s = *state;
	uint64_t at = 3;
	const struct gct_cp_look look = {stop_at, &at};
	struct gct_cp_point p;
	struct gci_error e = {0};

	write_to(s, s->m.stream_nbytes);
	s->has = 7;
	assert_int_equal(gct_cp_verify(&s->sink, s->crcs, s->nblocks, &s->has, &p, &look, &e),
		GCOLL_ERR_PEER);
	assert_int_equal(entries(s->out), 3);
	assert_true(go_on(s) == s->m.stream_nbytes);
}

/* What has too many blocks is sent. */
static void there_is_an_end_of_checksums(void **state)
{
	struct gct_cp_file files[] = {{.size = B + 1},
		{.size = (GCT_CP_MAX_BLOCKS - UINT64_C(3)) * B}, {.size = 0}, {.size = B},
		{.size = 1}};
	const struct gct_cp_manifest m = {.files = files, .nfiles = 5};
	uint64_t all = 31, first = 1, none = 0;

	(void)state;
	assert_int_equal(gct_cp_reach(&m, &none, 1), 1);
	assert_int_equal(gct_cp_reach(&m, &first, 1), 2);
	assert_int_equal(gct_cp_reach(&m, &first, 3), 3);
	assert_int_equal(gct_cp_reach(&m, &all, 1), GCT_CP_MAX_BLOCKS);
	assert_true(all == 15);
}

/* Reads from `at` on to the end of the first file: its trailer. */
static uint32_t trailer_from(struct gct_cp_source *in, uint64_t at)
{
	struct gci_error e = {0};
	char *buf = gci_calloc(B, 1);
	uint8_t trailer[GCT_CP_TRAILER];

	if (gct_cp_source_seek(in, at, &e))
		fail_msg("%s", e.text);
	for (; at < NBYTES && !e.status; at += NBYTES - at < B ? NBYTES - at : B)
		gct_cp_source_read(in, buf, NBYTES - at < B ? NBYTES - at : B, &e);
	if (gct_cp_source_read(in, (char *)trailer, sizeof(trailer), &e))
		fail_msg("%s", e.text);
	gci_free(buf);
	return gci_load_u32(trailer);
}

/* What is before the place where it goes on is not read again: its checksum is known from the first
 * time, or from the blocks'. */
static void a_source_goes_on_without_reading_again(void **state)
{
	struct set *s = *state;
	struct gct_cp_source in;
	uint32_t crc;

	gct_cp_source_init(&in, &s->m);
	crc = trailer_from(&in, 0);
	assert_int_equal(trailer_from(&in, 3 * B + 5), crc);
	flip_in_secret(s->paths[0], 99);
	assert_int_equal(trailer_from(&in, 2 * B), crc);
	assert_int_equal(trailer_from(&in, 5 * B), crc);
	assert_int_equal(trailer_from(&in, NBYTES), crc);
	assert_int_equal(trailer_from(&in, 3 * B + 5), crc);
	assert_int_not_equal(trailer_from(&in, 2 * B + 7), crc);
	gct_cp_source_close(&in);
	gct_cp_source_init(&in, &s->m);
	in.crcs = s->crcs;
	in.ncrcs = 1;
	assert_int_equal(trailer_from(&in, 2 * B + 7), crc);
	in.ncrcs = s->nblocks;
	assert_int_equal(trailer_from(&in, 4 * B + 7), crc);
	assert_int_equal(trailer_from(&in, NBYTES), crc);
	gct_cp_source_close(&in);
}

static void a_source_that_changes_is_noticed(void **state)
{
	struct set *s = *state;
	struct gci_error e = {0};

	make_file(s->paths[0], NBYTES - 1, 3);
	assert_int_equal(sum_all(s, &e), GCOLL_ERR_IO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		S(holes_are_summed_as_zeros),
		S(summing_is_broken_off),
		S(comparing_is_broken_off),
		cmocka_unit_test(there_is_an_end_of_checksums),
		S(a_source_goes_on_without_reading_again),
		S(a_source_that_changes_is_noticed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
