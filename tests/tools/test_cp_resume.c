/* SPDX-License-Identifier: MIT
 * gridcoll cp --resume, without a job: what is there need not come again, if it is what it seems.
 * All copies are compared with their source. */
#include "base/crc32c.h"
#include "base/mem.h"
#include "tests/tools/files.h"
#include "tools/cp.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define B      ((uint64_t)GCT_CP_BLOCK_NBYTES)
#define NBYTES (5 * B + 12345)

struct set {
	struct gct_cp_manifest m;
	struct gct_cp_sink sink;
	char *paths[3], *out;
	uint32_t crcs[16];
	uint64_t nblocks, has; /* files, a bit for each */
};

static int sum_all(struct set *s, struct gci_error *e)
{
	memset(s->crcs, 0, sizeof(s->crcs));
	return gct_cp_sum_blocks(&s->m, s->crcs, s->nblocks, NULL, NULL, e);
}

/* Three files: five blocks and some, none, and one block to the byte. */
static int set_make(void **state)
{
	static const uint64_t sizes[] = {NBYTES, 0, B};
	struct set *s = gci_calloc(1, sizeof(*s));
	struct gci_error e = {0};
	int i;

	scratch_make(NULL);
	for (i = 0; i < 3; i++) {
		s->paths[i] = strdup(in_scratch("%d", i));
		make_file(s->paths[i], sizes[i], (uint64_t)i);
	}
	make_dir(in_scratch("out"));
	s->out = strdup(in_scratch("out"));
	assert_int_equal(gct_cp_manifest_scan(&s->m, s->paths, 3, 1, &e), 0);
	assert_int_equal(gct_cp_sink_init(&s->sink, &s->m, s->out, 1, GCT_CP_KEEP, &e), 0);
	s->nblocks = gct_cp_nblocks(&s->m);
	assert_int_equal(s->nblocks, 7);
	assert_int_equal(sum_all(s, &e), 0);
	*state = s;
	return 0;
}

static int set_free(void **state)
{
	struct set *s = *state;
	int i;

	gct_cp_sink_close(&s->sink);
	gct_cp_manifest_free(&s->m);
	for (i = 0; i < 3; i++)
		free(s->paths[i]);
	free(s->out);
	gci_free(s);
	return scratch_remove(NULL);
}

/* Writes the stream from where the sink is, up to `end`. */
static void write_to(struct set *s, uint64_t end)
{
	struct gct_cp_source in;
	struct gci_error e = {0};
	uint64_t at = gct_cp_sink_at(&s->sink), some;
	char *buf = gci_calloc(B, 1);

	gct_cp_source_init(&in, &s->m);
	assert_int_equal(gct_cp_source_seek(&in, at, &e), 0);
	for (; at < end && !e.status; at += some) {
		some = end - at < B ? end - at : B;
		gct_cp_source_read(&in, buf, some, &e);
		if (!e.status)
			gct_cp_sink_write(&s->sink, buf, some, &e);
	}
	if (e.status)
		fail_msg("%s", e.text);
	gct_cp_source_close(&in);
	gci_free(buf);
}

/* Another call's sink: what is there of the first `n` blocks, and of the files in s->has. */
static struct gct_cp_point verify(struct set *s, uint64_t n)
{
	struct gct_cp_point p;
	struct gci_error e = {0};

	assert_int_equal(gct_cp_verify(&s->sink, s->crcs, n, &s->has, &p, NULL, &e), 0);
	assert_int_equal(p.file, gct_cp_first_missing(&s->m, &s->has));
	return p;
}

static uint64_t claim(struct set *s)
{
	struct gci_error e = {0};
	uint64_t n;

	gct_cp_sink_close(&s->sink);
	assert_int_equal(gct_cp_sink_init(&s->sink, &s->m, s->out, 1, GCT_CP_KEEP, &e), 0);
	n = gct_cp_claim(&s->sink, &s->has);
	assert_true(n <= s->nblocks);
	return n;
}

/* What is behind p in the stream. */
static void write_rest(struct set *s, const struct gct_cp_point *p)
{
	struct gci_error e = {0};
	int i;

	if (gct_cp_sink_resume(&s->sink, p, &e) || gct_cp_sink_start(&s->sink, &e))
		fail_msg("%s", e.text);
	assert_true(gct_cp_sink_at(&s->sink) == gct_cp_stream_at(&s->m, p->file, p->offset));
	write_to(s, s->m.stream_nbytes);
	assert_int_equal(gct_cp_sink_finish(&s->sink, &e), 0);
	assert_int_equal(s->sink.nfiles_done, 3);
	for (i = 0; i < 3; i++)
		assert_same_files(s->paths[i], in_scratch("out/%d", i));
	assert_int_equal(entries(s->out), 3);
}

/* As another call would: what is there, then the rest. Returns how much was there. */
static uint64_t go_on(struct set *s)
{
	struct gct_cp_point p = verify(s, claim(s));

	write_rest(s, &p);
	return gct_cp_stream_at(&s->m, p.file, p.offset);
}

static char *part_of(struct set *s, uint32_t file)
{
	char *path = gct_cp_sink_part(&s->sink, file);

	assert_non_null(path);
	return path;
}

static void nothing_is_there(void **state)
{
	assert_true(go_on(*state) == 0);
}

static void any_place_to_stop(void **state)
{
	struct set *s = *state;
	const struct {
		uint64_t stop, had;
	} cases[] = {{1, 0}, {B - 1, 0}, {B, B}, {3 * B + 5, 3 * B}, {NBYTES, NBYTES},
		{NBYTES + 3, NBYTES}, {NBYTES + 4, NBYTES + 4}, {NBYTES + 8, NBYTES + 8},
		{NBYTES + 8 + B - 1, NBYTES + 8}, {NBYTES + 8 + B, NBYTES + 8 + B},
		{NBYTES + 12 + B, NBYTES + 12 + B}};
	struct gci_error e = {0};
	size_t i;
	int k;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		gct_cp_sink_close(&s->sink);
		for (k = 0; k < 3; k++)
			unlink(in_scratch("out/%d", k));
		gct_cp_sink_init(&s->sink, &s->m, s->out, 1, GCT_CP_KEEP, &e);
		write_to(s, cases[i].stop);
		if (go_on(s) != cases[i].had)
			fail_msg("stopped at %llu", (unsigned long long)cases[i].stop);
	}
}

/* Up to the block that is damaged, all is used; nothing behind it. */
static void damage_is_found(void **state)
{
	struct set *s = *state;
	char *part = part_of(s, 0);

	write_to(s, 4 * B + 77);
	flip(part, 2 * B + 99);
	assert_true(go_on(s) == 2 * B);
	free(part);
}

/* Of a whole file, too, though its size and time are right; it is not written into. */
static void a_whole_file_is_damaged(void **state)
{
	struct set *s = *state;

	write_to(s, s->m.stream_nbytes);
	flip_in_secret(in_scratch("out/0"), NBYTES / 2);
	assert_int_equal(link(in_scratch("out/0"), in_scratch("other")), 0);
	assert_true(go_on(s) == 0);
	flip(in_scratch("other"), NBYTES / 2);
	assert_int_equal(look(in_scratch("other")).st_size, NBYTES);
}

/* What was longer, or is of another file: rests of it must not show where the source has zeros. */
static void rests_of_another_file(void **state)
{
	struct set *s = *state;
	struct gci_error e = {0};
	char *part = part_of(s, 0);

	assert_int_equal(truncate(s->paths[0], 0), 0);
	assert_int_equal(truncate(s->paths[0], (off_t)NBYTES), 0); /* zeros all over */
	gct_cp_manifest_free(&s->m);
	assert_int_equal(gct_cp_manifest_scan(&s->m, s->paths, 3, 1, &e), 0);
	assert_int_equal(sum_all(s, &e), 0);
	make_file(part, NBYTES + B, 99);
	assert_true(go_on(s) == 0);
	free(part);
}

static void refuse_to_start(struct set *s, const char *why)
{
	struct gci_error e = {0};

	gct_cp_sink_close(&s->sink);
	assert_int_equal(gct_cp_sink_init(&s->sink, &s->m, s->out, 1, GCT_CP_KEEP, &e), 0);
	assert_int_not_equal(gct_cp_sink_start(&s->sink, &e), 0);
	if (!strstr(e.text, why))
		fail_msg("%s", e.text);
}

/* Whoever can write to the directory cannot make us write elsewhere. */
static void what_is_planted_is_refused(void **state)
{
	struct set *s = *state;
	char *part = part_of(s, 0);

	make_text(in_scratch("victim"), "do not touch");
	assert_int_equal(symlink(in_scratch("victim"), part), 0);
	assert_int_equal(gct_cp_claim(&s->sink, &s->has), 0);
	refuse_to_start(s, "Too many levels of symbolic links");
	unlink(part);
	assert_int_equal(link(in_scratch("victim"), part), 0);
	refuse_to_start(s, "not a file of this user's alone");
	unlink(part);
	assert_int_equal(mkfifo(part, 0600), 0);
	assert_int_equal(gct_cp_claim(&s->sink, &s->has), 0);
	refuse_to_start(s, "not a file of this user's alone");
	assert_text(in_scratch("victim"), "do not touch");
	unlink(part);
	free(part);
}

/* As SIGKILL leaves it: the length is the whole file's, but behind what was written is a hole. */
static void what_was_not_written_is_not_claimed(void **state)
{
	struct set *s = *state;

	write_to(s, 3 * B + 5);
	assert_int_equal(gct_cp_claim(&s->sink, &s->has), 4);
}

/* Holes have the checksums of the zeros that they are. */
static void holes_are_summed_as_zeros(void **state)
{
	static const size_t len[] = {B, B, B, B, B, NBYTES - 5 * B};
	struct set *s = *state;
	struct gci_error e = {0};
	char *zeros = gci_calloc(B, 1);
	int i;

	assert_int_equal(truncate(s->paths[0], (off_t)B), 0);
	assert_int_equal(truncate(s->paths[0], (off_t)NBYTES), 0);
	gct_cp_manifest_free(&s->m);
	assert_int_equal(gct_cp_manifest_scan(&s->m, s->paths, 3, 1, &e), 0);
	memset(s->crcs + 1, 0, sizeof(s->crcs) - sizeof(*s->crcs));
	assert_int_equal(sum_all(s, &e), 0);
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

/* Every set of files that all have: the stream is the others, and ends after the last of them. */
static void what_all_have_is_not_in_the_stream(void **state)
{
	static const uint64_t sizes[] = {NBYTES, 0, B};
	struct set *s = *state;
	struct gct_cp_point p, q;
	struct stat was[3];
	uint64_t left_out, at, had;
	uint32_t i;

	for (left_out = 0; left_out < 8; left_out++) {
		for (i = 0; i < 3; i++)
			s->m.files[i].is_there = 0;
		gct_cp_manifest_add_up(&s->m);
		go_on(s);
		for (i = at = had = 0; i < 3; i++) {
			s->m.files[i].is_there = gct_cp_is_in(&left_out, i);
			had += gct_cp_is_in(&left_out, i) ? sizes[i] : 0;
			assert_true(gct_cp_stream_at(&s->m, i, 0) == at);
			gct_cp_point_of(&s->m, at, &q);
			assert_true(q.offset == 0 && q.file >= i);
			at += gct_cp_is_in(&left_out, i) ? 0 : sizes[i] + GCT_CP_TRAILER;
			was[i] = look(in_scratch("out/%u", i));
			if (!gct_cp_is_in(&left_out, i))
				make_text(in_scratch("out/%u", i), "an old one");
		}
		gct_cp_manifest_add_up(&s->m);
		assert_true(s->m.stream_nbytes == at);
		claim(s);
		assert_true(s->has == left_out);
		p = verify(s, s->nblocks);
		assert_true(s->has == left_out);
		assert_true(gct_cp_had(&s->m, &p) == had);
		write_rest(s, &p);
		for (i = 0; i < 3; i++)
			assert_int_equal(look(in_scratch("out/%u", i)).st_ino == was[i].st_ino,
				gct_cp_is_in(&left_out, i));
	}
}

/* Of files behind one that is missing, only those that are asked about are summed and compared. */
static void files_behind_a_missing_one(void **state)
{
	struct set *s = *state;
	struct gci_error e = {0};
	uint64_t two = 4;
	struct gct_cp_point p;

	go_on(s);
	unlink(in_scratch("out/0"));
	assert_int_equal(claim(s), 0);
	assert_true(s->has == 6);
	assert_int_equal(gct_cp_reach(&s->m, &s->has, 0), 7);
	memset(s->crcs, 0, sizeof(s->crcs));
	unlink(s->paths[0]);
	assert_int_equal(gct_cp_sum_blocks(&s->m, s->crcs, 0, &s->has, NULL, &e), 0);
	assert_true(!s->crcs[0] && !s->crcs[5] && s->crcs[6]);
	p = verify(s, 7);
	assert_true(s->has == 6 && !p.file && !p.offset);
	/* Changed, but for size and time; or too short by now. */
	flip_in_secret(in_scratch("out/2"), B / 2);
	verify(s, 7);
	assert_true(s->has == 2);
	s->has = two;
	assert_int_equal(truncate(in_scratch("out/2"), 5), 0);
	verify(s, 7);
	assert_true(s->has == 0);
	/* Changed at rank 0 meanwhile. */
	make_text(s->paths[2], "changed");
	s->crcs[6] = 0;
	assert_int_equal(gct_cp_sum_blocks(&s->m, s->crcs, 0, &two, NULL, &e), GCOLL_ERR_IO);
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

#define S(f) cmocka_unit_test_setup_teardown(f, set_make, set_free)

int main(void)
{
	const struct CMUnitTest tests[] = {
		S(nothing_is_there),
		S(any_place_to_stop),
		S(damage_is_found),
		S(a_whole_file_is_damaged),
		S(rests_of_another_file),
		S(what_is_planted_is_refused),
		S(what_was_not_written_is_not_claimed),
		S(holes_are_summed_as_zeros),
		S(summing_is_broken_off),
		S(comparing_is_broken_off),
		S(what_all_have_is_not_in_the_stream),
		S(files_behind_a_missing_one),
		cmocka_unit_test(there_is_an_end_of_checksums),
		S(a_source_goes_on_without_reading_again),
		S(a_source_that_changes_is_noticed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
