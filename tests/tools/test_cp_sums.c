/* SPDX-License-Identifier: MIT
 * What rank 0 tells of its files when all is done: their checksums, however much of them was read. */
#include "base/crc32c.h"
#include "base/mem.h"
#include "tests/test.h"
#include "tests/tools/files.h"
#include "tools/cp/cp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define B ((uint64_t)GCT_CP_BLOCK_NBYTES)

/* Of FIPS 180-2, and of nothing. */
#define ABC   "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

struct set {
	struct gct_cp_manifest m;
	struct gct_cp_source in;
	struct gct_cp_sums sums;
};

static int count_reads(void *user, uint64_t n, struct gci_error *e)
{
	(void)n;
	++*(int *)user;
	return e->status;
}

static int nreads;
static const struct gct_cp_look counting = {count_reads, &nreads};

static void begin(struct set *s, const char *source)
{
	char *paths[] = {(char *)(uintptr_t)source};
	struct gci_error e = {0};

	assert_int_equal(gct_cp_manifest_scan(&s->m, paths, 1, GCT_CP_RECURSIVE, &e), 0);
	gct_cp_source_init(&s->in, &s->m);
	assert_int_equal(gct_cp_sums_init(&s->sums, &s->m, 1, &e), 0);
	s->in.sums = &s->sums;
}

static void end(struct set *s)
{
	gct_cp_source_close(&s->in);
	gct_cp_sums_free(&s->sums);
	gct_cp_manifest_free(&s->m);
}

/* Reads the stream from `at` to `to`. */
static void read_part(struct set *s, uint64_t at, uint64_t to)
{
	struct gci_error e = {0};
	char *buf = malloc(99991);

	assert_int_equal(gct_cp_source_seek(&s->in, at, &e), 0);
	for (; at < to; at += 99991)
		if (gct_cp_source_read(&s->in, buf, to - at < 99991 ? to - at : 99991, &e))
			fail_msg("%s", e.text);
	free(buf);
}

static int finish(struct set *s, const uint32_t *crcs, uint64_t ncrcs, struct gci_error *e)
{
	nreads = 0;
	return gct_cp_sums_rest(&s->sums, crcs, ncrcs, &counting, e);
}

static void assert_printed(struct set *s, const char *text)
{
	struct gci_buf out = {0};

	assert_int_equal(gct_cp_sums_print(&s->sums, &out), 0);
	assert_string_equal(gci_buf_cstr(&out), text);
	gci_buf_free(&out);
}

static void known_sums(void **state)
{
	static const char expected[] = "\\" ABC "  t/back\\\\slash\n" EMPTY "  t/empty\n\\" ABC
				       "  t/new\\nline\n" ABC "  t/sub/in it\n";
	struct gci_error e = {0};
	struct set s;

	(void)state;
	make_dir(in_scratch("t"));
	make_dir(in_scratch("t/sub"));
	make_text(in_scratch("t/empty"), "");
	make_text(in_scratch("t/back\\slash"), "abc");
	make_text(in_scratch("t/new\nline"), "abc");
	make_text(in_scratch("t/sub/in it"), "abc");
	begin(&s, in_scratch("t"));
	read_part(&s, 0, s.m.stream_nbytes);
	assert_int_equal(finish(&s, NULL, 0, &e), 0);
	assert_int_equal(nreads, 0);
	assert_printed(&s, expected);
	assert_int_equal(s.sums.files[0].crc, gci_crc32c(0, "abc", 3));
	end(&s);
	/* The same if nothing of them was read. */
	begin(&s, in_scratch("t"));
	assert_int_equal(finish(&s, NULL, 0, &e), 0);
	assert_true(nreads > 0);
	assert_printed(&s, expected);
	assert_int_equal(s.sums.files[0].crc, gci_crc32c(0, "abc", 3));
	end(&s);
}

/* Wherever the stream was begun, broken off and begun again. */
static void any_part_read(void **state)
{
	static const uint64_t parts[][4] = {{0, 9 * B, 9 * B, 9 * B}, {0, 1, 0, 9 * B},
		{0, 3 * B, 2 * B, 9 * B}, {2 * B, 9 * B, 9 * B, 9 * B}, {0, 2 * B, 4 * B, 5 * B},
		{3 * B, 9 * B, 0, B}};
	uint32_t crcs[8] = {0}, crc = 0;
	uint8_t sha256[32] = {0};
	struct gci_error e = {0};
	uint64_t n;
	struct set s;
	size_t i;

	(void)state;
	make_file(in_scratch("f"), 5 * B + 12345, 1);
	for (i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		begin(&s, in_scratch("f"));
		n = s.m.stream_nbytes;
		assert_int_equal(gct_cp_sum_blocks(&s.m, crcs, 6, NULL, NULL, &e), 0);
		s.in.crcs = crcs;
		s.in.ncrcs = 6;
		read_part(&s, parts[i][0], parts[i][1] < n ? parts[i][1] : n);
		if (parts[i][2] < n)
			read_part(&s, parts[i][2], parts[i][3] < n ? parts[i][3] : n);
		assert_int_equal(finish(&s, crcs, 6, &e), 0);
		if (!i) {
			crc = s.sums.files[0].crc;
			memcpy(sha256, s.sums.files[0].sha256, sizeof(sha256));
		}
		assert_int_equal(s.sums.files[0].crc, crc);
		assert_memory_equal(s.sums.files[0].sha256, sha256, sizeof(sha256));
		end(&s);
	}
}

/* For CRCs alone the blocks' are enough, if all are known. */
static void blocks_are_enough(void **state)
{
	uint32_t crcs[8] = {0}, crc;
	struct gci_error e = {0};
	struct set s;

	(void)state;
	make_file(in_scratch("f"), 2 * B, 1);
	begin(&s, in_scratch("f"));
	assert_int_equal(gct_cp_sum_blocks(&s.m, crcs, 2, NULL, NULL, &e), 0);
	s.sums.wants_sha256 = 0;
	assert_int_equal(finish(&s, crcs, 2, &e), 0);
	assert_int_equal(nreads, 0);
	crc = gci_crc32c_join(crcs[0], crcs[1], B);
	assert_int_equal(s.sums.files[0].crc, crc);
	end(&s);
	begin(&s, in_scratch("f"));
	s.sums.wants_sha256 = 0;
	crcs[1] = 0;
	assert_int_equal(finish(&s, crcs, 2, &e), 0);
	assert_true(nreads > 0);
	assert_int_equal(s.sums.files[0].crc, crc);
	end(&s);
}

static void a_source_that_changes(void **state)
{
	struct gci_error e = {0};
	struct set s;

	(void)state;
	make_file(in_scratch("f"), 1000, 1);
	begin(&s, in_scratch("f"));
	make_file(in_scratch("f"), 999, 1);
	assert_int_equal(finish(&s, NULL, 0, &e), GCOLL_ERR_IO);
	assert_non_null(strstr(e.text, "/f changed while it was being read"));
	end(&s);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(known_sums),
		TEST(any_part_read),
		TEST(blocks_are_enough),
		TEST(a_source_that_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
