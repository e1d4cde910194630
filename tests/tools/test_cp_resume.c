/* SPDX-License-Identifier: MIT
 * gridcoll cp --resume, without a job: what is there need not come again, if it is what it seems.
 * All copies are compared with their source. */
#include "base/crc32c.h"
#include "base/mem.h"
#include "tests/tools/files.h"
#include "tools/cp.h"

#include <fcntl.h>
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
	uint64_t nblocks;
};

static int sum_all(struct set *s, struct gci_error *e)
{
	uint64_t done = 0;

	return gct_cp_sum_blocks(&s->m, s->crcs, &done, s->nblocks, NULL, e);
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

/* As another call would: what is there, then the rest. Returns how much was there. */
static uint64_t go_on(struct set *s)
{
	struct gct_cp_point p;
	struct gci_error e = {0};
	uint64_t n, had;
	int i;

	gct_cp_sink_close(&s->sink);
	assert_int_equal(gct_cp_sink_init(&s->sink, &s->m, s->out, 1, GCT_CP_KEEP, &e), 0);
	n = gct_cp_claim(&s->sink);
	assert_true(n <= s->nblocks);
	assert_int_equal(gct_cp_verify(&s->sink, s->crcs, n, &p, NULL, &e), 0);
	had = gct_cp_stream_at(&s->m, p.file, p.offset);
	if (gct_cp_sink_resume(&s->sink, &p, &e) || gct_cp_sink_start(&s->sink, &e))
		fail_msg("%s", e.text);
	assert_true(gct_cp_sink_at(&s->sink) == had);
	write_to(s, s->m.stream_nbytes);
	assert_int_equal(gct_cp_sink_finish(&s->sink, &e), 0);
	for (i = 0; i < 3; i++)
		assert_same_files(s->paths[i], in_scratch("out/%d", i));
	assert_int_equal(entries(s->out), 3);
	return had;
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
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
		{.tv_sec = s->m.files[0].mtime_s, .tv_nsec = s->m.files[0].mtime_ns}};

	write_to(s, s->m.stream_nbytes);
	flip(in_scratch("out/0"), 3 * B);
	assert_int_equal(link(in_scratch("out/0"), in_scratch("other")), 0);
	assert_int_equal(utimensat(AT_FDCWD, in_scratch("out/0"), times, 0), 0);
	assert_true(go_on(s) == 0);
	flip(in_scratch("other"), 3 * B);
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
	assert_int_equal(gct_cp_claim(&s->sink), 0);
	refuse_to_start(s, "Too many levels of symbolic links");
	unlink(part);
	assert_int_equal(link(in_scratch("victim"), part), 0);
	refuse_to_start(s, "not a file of this user's alone");
	unlink(part);
	assert_int_equal(mkfifo(part, 0600), 0);
	assert_int_equal(gct_cp_claim(&s->sink), 0);
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
	assert_int_equal(gct_cp_claim(&s->sink), 4);
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
	uint64_t at, done = 0;
	struct gct_cp_look look = {stop_at, &at};
	struct gci_error e = {0};
	uint32_t crcs[16] = {0};

	for (at = 1; at <= s->nblocks; at++) {
		assert_int_equal(gct_cp_sum_blocks(&s->m, crcs, &done, s->nblocks, &look, &e),
			GCOLL_ERR_PEER);
		assert_true(done == at);
		gci_error_clear(&e);
	}
	assert_memory_equal(crcs, s->crcs, s->nblocks * sizeof(*crcs));
	unlink(s->paths[0]); /* it is not looked at any more */
	assert_int_equal(gct_cp_sum_blocks(&s->m, crcs, &done, s->nblocks, &look, &e), 0);
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
	assert_int_equal(
		gct_cp_verify(&s->sink, s->crcs, s->nblocks, &p, &look, &e), GCOLL_ERR_PEER);
	assert_int_equal(entries(s->out), 3);
	assert_true(go_on(s) == s->m.stream_nbytes);
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
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
		{.tv_sec = s->m.files[0].mtime_s, .tv_nsec = s->m.files[0].mtime_ns}};
	struct gct_cp_source in;
	uint32_t crc;

	gct_cp_source_init(&in, &s->m);
	crc = trailer_from(&in, 0);
	assert_int_equal(trailer_from(&in, 3 * B + 5), crc);
	flip(s->paths[0], 99);
	assert_int_equal(utimensat(AT_FDCWD, s->paths[0], times, 0), 0);
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
		S(a_source_goes_on_without_reading_again),
		S(a_source_that_changes_is_noticed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
