/* SPDX-License-Identifier: MIT
 * A set of files, and a receiver's copy of them with which one call of gridcoll cp --resume after the
 * other goes on; without a job.
 *
 *	static void a_test(void **state)		// S(a_test), in the list of tests
 *	{
 *		struct set *s = *state;
 *		write_to(s, 3 * B + 5);			// as far as the first call comes
 *		assert_true(go_on(s) == 3 * B);		// the next call has all, and had so much
 *	} */
#ifndef GCI_TESTS_TOOLS_CP_SET_H
#define GCI_TESTS_TOOLS_CP_SET_H

#include "tests/tools/files.h"
#include "tools/cp/cp.h"

#define B      ((uint64_t)GCT_CP_BLOCK_NBYTES)
#define NBYTES (5 * B + 12345)

/* Three files: five blocks and some, none, and one block to the byte. */
struct set {
	struct gct_cp_manifest m;
	struct gct_cp_sink sink;
	char *paths[3], *out;
	uint32_t crcs[16];
	uint64_t nblocks, has; /* files, a bit for each */
};

int set_make(void **state);
int set_free(void **state);

#define S(f) cmocka_unit_test_setup_teardown(f, set_make, set_free)

/* The files' checksums, from nothing. */
int sum_all(struct set *s, struct gci_error *e);

/* The first file's source is zeros from there on; what rank 0 knows of it, too. */
void make_hole(struct set *s, uint64_t from);

/* Writes the stream from where the sink is, up to `end`. */
void write_to(struct set *s, uint64_t end);

/* Another call's sink: how many blocks seem to be there, and the files in s->has. */
uint64_t claim(struct set *s);

/* What is there of the first `n` blocks, and of the files in s->has. */
struct gct_cp_point verify(struct set *s, uint64_t n);

/* What is behind p in the stream. */
void write_rest(struct set *s, const struct gct_cp_point *p);

/* As another call would: what is there, then the rest. Returns how much was there. */
uint64_t go_on(struct set *s);

#endif
