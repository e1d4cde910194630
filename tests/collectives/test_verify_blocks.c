/* SPDX-License-Identifier: MIT
 * The verifier and operations on blocks: the wrong block, the wrong place, gaps, and input that
 * stands in the output. */
#include "tests/collectives/verify_cases.h"

/* Blocks of 5; what rank 0 has or gets is the blocks one after the other. */

static void scatter_results(void **state)
{
	struct scheds x;

	(void)state;
	scheds_begin(&x, GCI_SCATTER, (int[]){3, 0}, 5);
	gci_copy(&x.b[0], OUT(0, 5), IN(0, 5));
	gci_send(&x.b[0], 1, 0, IN(5, 5));
	gci_send(&x.b[0], 2, 0, IN(10, 5));
	gci_recv(&x.b[1], 0, 0, OUT(0, 5));
	gci_recv(&x.b[2], 0, 0, OUT(0, 5));
	scheds_end(&x);
	assert_fine(&x);
	assert_true(x.report.most_out == 10);
	assert_true(x.report.most_in == 5);
	x.s[0].steps[1].src.offset = 10; /* 2's block */
	assert_fault(&x, GCI_FAULT_RESULT, "rank 1", "OUT[0] holds element 10, not 5");
	x.s[0].steps[1].src.offset = 4; /* one beside */
	assert_fault(&x, GCI_FAULT_RESULT, "rank 1", "OUT[0] holds element 4, not 5");
	x.s[0].steps[1].src.offset = 5;
	x.s[0].steps[0].dst.length = x.s[0].steps[0].src.length = 4;
	assert_fault(&x, GCI_FAULT_RESULT, "rank 0", "OUT[4] is undefined at the end");
	scheds_free(&x);
}

static void gather_results(void **state)
{
	struct scheds x;

	(void)state;
	scheds_begin(&x, GCI_GATHER, (int[]){3, 0}, 5);
	gci_copy(&x.b[0], OUT(0, 5), IN(0, 5));
	gci_recv(&x.b[0], 1, 0, OUT(5, 5));
	gci_recv(&x.b[0], 2, 0, OUT(10, 5));
	gci_send(&x.b[1], 0, 0, IN(0, 5));
	gci_send(&x.b[2], 0, 0, IN(0, 5));
	scheds_end(&x);
	assert_fine(&x);
	assert_true(x.report.most_in == 10);
	x.s[0].steps[1].dst.offset = 10; /* each other's place */
	x.s[0].steps[2].dst.offset = 5;
	assert_fault(&x, GCI_FAULT_RESULT, "rank 0", "OUT[5] is not rank 1's");
	x.s[0].steps[1].dst.offset = 5;
	x.s[0].steps[2].dst.offset = 10;
	x.s[2].steps[0].src.length = x.s[0].steps[2].dst.length = 3;
	x.s[2].steps[0].src.offset = 2;
	assert_fault(&x, GCI_FAULT_RESULT, "rank 0", "OUT[10] holds element");
	x.s[0].steps[2].dst.offset = 12;
	assert_fault(&x, GCI_FAULT_RESULT, "rank 0", "OUT[10] is undefined at the end");
	scheds_free(&x);
}

/* Rank r has block k for rank k at 5 k, and puts what it gets from k there. */
static void make_alltoall(struct scheds *x)
{
	int r, k;

	scheds_begin(x, GCI_ALLTOALL, (int[]){3, 0}, 5);
	for (r = 0; r < 3; r++)
		for (k = 0; k < 3; k++) {
			uint64_t at = 5 * (uint64_t)k;

			if (k == r) {
				gci_copy(&x->b[r], OUT(at, 5), IN(at, 5));
				continue;
			}
			gci_send(&x->b[r], k, 0, IN(at, 5));
			gci_recv(&x->b[r], k, 0, OUT(at, 5));
		}
	scheds_end(x);
	assert_fine(x);
}

static void alltoall_results(void **state)
{
	struct scheds x;

	(void)state;
	make_alltoall(&x);
	assert_true(x.report.most_out == 10);
	assert_true(x.report.most_in == 10);
	x.s[0].steps[1].src.offset = 10; /* to rank 1 what is for rank 2 */
	assert_fault(&x, GCI_FAULT_RESULT, "rank 1", "OUT[0] holds element 10, not 5");
	scheds_free(&x);

	make_alltoall(&x);
	x.s[0].steps[2].dst.offset = 10; /* rank 1's block at rank 2's place, and the other way */
	x.s[0].steps[4].dst.offset = 5;
	assert_fault(&x, GCI_FAULT_RESULT, "rank 0", "OUT[5] is not rank 1's");
	scheds_free(&x);

	make_alltoall(&x);
	x.s[0].steps[0].src.offset = 5; /* to itself what is for another */
	assert_fault(&x, GCI_FAULT_RESULT, "rank 0", "OUT[0] holds element 5, not 0");
	scheds_free(&x);
}

static void allgather_results(void **state)
{
	struct scheds x;
	int r;

	(void)state;
	scheds_begin(&x, GCI_ALLGATHER, (int[]){2, 0}, 5);
	for (r = 0; r < 2; r++) {
		gci_copy(&x.b[r], OUT(5 * (uint64_t)r, 5), IN(0, 5));
		gci_send(&x.b[r], !r, 0, IN(0, 5));
		gci_recv(&x.b[r], !r, 0, OUT(5 * (uint64_t)!r, 5));
	}
	scheds_end(&x);
	assert_fine(&x);
	x.s[1].steps[0].dst.offset = 0; /* places exchanged, on one rank */
	x.s[1].steps[2].dst.offset = 5;
	assert_fault(&x, GCI_FAULT_RESULT, "rank 1", "OUT[0] is not rank 0's");
	scheds_free(&x);
}

static void reduce_results(void **state)
{
	struct scheds x;

	(void)state;
	scheds_begin(&x, GCI_REDUCE, (int[]){3, 0}, 10);
	gci_recv_reduce(&x.b[0], 1, 0, OUT(0, 10), IN(0, 10), 0);
	gci_recv_reduce(&x.b[0], 2, 0, OUT(0, 10), OUT(0, 10), 0);
	gci_send(&x.b[1], 0, 0, IN(0, 10));
	gci_send(&x.b[2], 0, 0, IN(0, 10));
	scheds_end(&x);
	assert_fine(&x);
	x.s[0].steps[1].swapped = 1; /* nobody else's bits to compare with */
	assert_fine(&x);
	x.s[0].steps[1].src = IN(0, 10);
	assert_fault(&x, GCI_FAULT_RESULT, "rank 0", "OUT[0] lacks rank 1's contribution");
	x.s[0].steps[1].src = OUT(0, 10);
	x.s[2].steps[0].src.offset = 1;
	x.s[2].steps[0].src.length = x.s[0].steps[1].dst.length = x.s[0].steps[1].src.length = 9;
	assert_fault(&x, GCI_FAULT_OFFSET, "rank 0 step 1", "");
	scheds_free(&x);
}

static void reduce_scatter_results(void **state)
{
	struct scheds x;
	int r;

	(void)state;
	scheds_begin(&x, GCI_REDUCE_SCATTER, (int[]){2, 0}, 5);
	for (r = 0; r < 2; r++) {
		gci_send(&x.b[r], !r, 0, IN(5 * (uint64_t)!r, 5));
		gci_recv_reduce(&x.b[r], !r, 0, OUT(0, 5), IN(5 * (uint64_t)r, 5), 0);
	}
	scheds_end(&x);
	assert_fine(&x);
	x.s[0].steps[0].src.offset = 0; /* its own block, where the other adds another one */
	assert_fault(&x, GCI_FAULT_OFFSET, "rank 1 step 1", "");
	x.s[1].steps[1].src.offset = 0; /* both of them the same wrong one */
	assert_fault(&x, GCI_FAULT_RESULT, "rank 1", "OUT[0] holds element 0, not 5");
	x.s[1].steps[1].src.offset = x.s[0].steps[0].src.offset = 5;
	x.s[1].steps[1].kind = GCI_STEP_RECV;
	assert_fault(&x, GCI_FAULT_RESULT, "rank 1", "OUT[0] lacks rank 1's contribution");
	scheds_free(&x);
}

/* ---- gaps between blocks belong to other parts of the operation */

/* Allgather of 3 elements of blocks of 8, from the second on. */
static void make_window(struct scheds *x)
{
	struct gci_coll c = {
		.kind = GCI_ALLGATHER, .count = 3, .esize = 4, .stride = 8, .shift = 1};
	int r;

	scheds_begin_with(x, &c, (int[]){2, 0}, 0);
	for (r = 0; r < 2; r++) {
		gci_copy(&x->b[r], OUT(8 * (uint64_t)r + 1, 3), IN(1, 3));
		gci_send(&x->b[r], !r, 0, IN(1, 3));
		gci_recv(&x->b[r], !r, 0, OUT(8 * (uint64_t)!r + 1, 3));
	}
}

static void writes_beside_its_blocks(void **state)
{
	static const struct {
		uint64_t at;
		const char *what;
	} gaps[] = {{0, "writes OUT[0..1)"}, {4, "writes OUT[4..5)"}, {8, "writes OUT[8..9)"}};
	struct scheds x;
	size_t i;

	(void)state;
	make_window(&x);
	assert_built_fine(&x);
	for (i = 0; i < sizeof(gaps) / sizeof(*gaps); i++) {
		make_window(&x);
		gci_copy(&x.b[1], OUT(gaps[i].at, 1), IN(1, 1));
		assert_built_fault(&x, GCI_FAULT_RESULT, "rank 1", gaps[i].what);
	}
	make_window(&x); /* the buffers end with the last block */
	gci_copy(&x.b[1], OUT(12, 1), IN(1, 1));
	assert_built_fault(&x, GCI_FAULT_SHAPE, "rank 1 step 3", "");
	make_window(&x); /* the input has no element before the window's */
	x.b[0].in_len = 4;
	gci_copy(&x.b[0], OUT(1, 1), IN(0, 1));
	assert_built_fault(&x, GCI_FAULT_UNDEFINED, "rank 0 step 3", "reads undefined IN[0]");
}

static void empty_blocks_and_places(void **state)
{
	static const uint64_t counts[] = {2, 0, 3}, at[] = {6, 4, 0};
	struct gci_coll c = {.kind = GCI_GATHER, .esize = 4, .counts = counts, .out_at = at};
	struct scheds x;

	(void)state;
	scheds_begin_with(&x, &c, (int[]){3, 0}, 0);
	gci_copy(&x.b[0], OUT(6, 2), IN(0, 2));
	gci_recv(&x.b[0], 2, 0, OUT(0, 3));
	gci_send(&x.b[2], 0, 0, IN(0, 3));
	scheds_end(&x);
	assert_fine(&x);
	x.s[0].steps[1].dst.offset = 3; /* as if they stood one after the other, from rank 2 on */
	assert_fault(&x, GCI_FAULT_RESULT, "rank 0", "OUT[0] is undefined at the end");
	scheds_free(&x);

	scheds_begin_with(&x, &c, (int[]){3, 0}, 0);
	gci_copy(&x.b[0], OUT(6, 2), IN(0, 2));
	gci_recv(&x.b[0], 2, 0, OUT(0, 3));
	gci_send(&x.b[2], 0, 0, IN(0, 3));
	gci_copy(&x.b[0], OUT(4, 1), IN(0, 1)); /* where the empty block stands */
	assert_built_fault(&x, GCI_FAULT_RESULT, "rank 0", "writes OUT[4..5)");
}

/* ---- in place */

static void input_in_the_output(void **state)
{
	struct gci_coll c = {.kind = GCI_ALLGATHER, .count = 5, .esize = 4, .in_place = 1};
	struct scheds x;
	int r;

	(void)state;
	scheds_begin_with(&x, &c, (int[]){2, 0}, 0);
	for (r = 0; r < 2; r++) {
		gci_send(&x.b[r], !r, 0, OUT(5 * (uint64_t)r, 5));
		gci_recv(&x.b[r], !r, 0, OUT(5 * (uint64_t)!r, 5));
	}
	scheds_end(&x);
	assert_fine(&x);
	x.s[0].steps[0].src.offset = 5; /* the other's, which has not come yet */
	x.s[0].steps[1].dst.offset = 0;
	assert_fault(&x, GCI_FAULT_UNDEFINED, "rank 0 step 0", "reads undefined OUT[5]");
	x.s[0].steps[0].src.offset = 0; /* at once what it sends and where it receives */
	assert_fault(&x, GCI_FAULT_RACE, "rank 0 step 1", "");
	x.s[0].steps[1].dst.offset = 5;
	x.s[0].steps[0].src.buffer = GCI_IN;
	assert_fault(&x, GCI_FAULT_SHAPE, "rank 0 step 0", "");
	scheds_free(&x);
}

static void alltoall_in_place(void **state)
{
	struct gci_coll c = {.kind = GCI_ALLTOALL, .count = 5, .esize = 4, .in_place = 1};
	struct scheds x;
	int r;

	(void)state;
	scheds_begin_with(&x, &c, (int[]){2, 0}, 0);
	for (r = 0; r < 2; r++) {
		struct gci_slice theirs = OUT(5 * (uint64_t)!r, 5);

		x.b[r].tmp_len = 5;
		gci_copy(&x.b[r], TMP(0, 5), theirs);
		gci_send(&x.b[r], !r, 0, TMP(0, 5));
		gci_recv(&x.b[r], !r, 0, theirs);
	}
	scheds_end(&x);
	assert_fine(&x);
	x.s[1].steps[0].src = OUT(5, 5); /* its own block in place of the other's */
	assert_fault(&x, GCI_FAULT_RESULT, "rank 0", "OUT[5] holds element 5, not 0");
	scheds_free(&x);

	/* Without a copy each waits for the other to take its block first. */
	scheds_begin_with(&x, &c, (int[]){2, 0}, 0);
	for (r = 0; r < 2; r++) {
		gci_send(&x.b[r], !r, 0, OUT(5 * (uint64_t)!r, 5));
		gci_recv(&x.b[r], !r, 0, OUT(5 * (uint64_t)!r, 5));
	}
	assert_built_fault(&x, GCI_FAULT_DEADLOCK, "rank 0 step 0", "waits for rank 1 step 1");
}

static void root_in_place(void **state)
{
	struct gci_coll c = {.kind = GCI_REDUCE, .count = 10, .esize = 4, .in_place = 1};
	struct scheds x;

	(void)state;
	scheds_begin_with(&x, &c, (int[]){2, 0}, 0);
	gci_send(&x.b[1], 0, 0, IN(0, 10));
	gci_recv_reduce(&x.b[0], 1, 0, OUT(0, 10), OUT(0, 10), 0);
	scheds_end(&x);
	assert_fine(&x);
	x.s[0].steps[0].kind = GCI_STEP_RECV;
	assert_fault(&x, GCI_FAULT_RESULT, "rank 0", "lacks rank 0's contribution");
	scheds_free(&x);

	c.kind = GCI_SCATTER; /* the root keeps its block where it is, and has no OUT */
	scheds_begin_with(&x, &c, (int[]){2, 0}, 0);
	gci_send(&x.b[0], 1, 0, IN(10, 10));
	gci_recv(&x.b[1], 0, 0, OUT(0, 10));
	assert_built_fine(&x);
	scheds_begin_with(&x, &c, (int[]){2, 0}, 0);
	gci_copy(&x.b[0], OUT(0, 10), IN(0, 10));
	gci_send(&x.b[0], 1, 0, IN(10, 10));
	gci_recv(&x.b[1], 0, 0, OUT(0, 10));
	assert_built_fault(&x, GCI_FAULT_SHAPE, "rank 0 step 0", "");
}

/* ---- the report */

static void traffic_of_blocks(void **state)
{
	static const int sizes[] = {2, 2, 0};
	struct scheds x;

	(void)state;
	emit(&x, GCI_ALLTOALL, "circular", sizes); /* two of three blocks cross */
	assert_true(x.report.wan_elements == 4 * 2 * 24);
	assert_true(x.report.most_out == 3 * 24);
	assert_true(x.report.most_in == 3 * 24);
	scheds_free(&x);
	emit(&x, GCI_ALLGATHER, "ring", sizes); /* two links of the ring */
	assert_true(x.report.wan_elements == 2 * 3 * 24);
	assert_true(x.report.most_out == 3 * 24);
	scheds_free(&x);
	emit(&x, GCI_GATHER, "binomial", sizes);
	assert_true(x.report.wan_elements == 2 * 24);
	assert_true(x.report.most_in == 3 * 24);
	assert_true(x.report.most_out == 2 * 24);
	scheds_free(&x);
	emit(&x, GCI_SCATTER, "binomial", sizes);
	assert_true(x.report.wan_elements == 2 * 24);
	assert_true(x.report.most_out == 3 * 24);
	assert_true(x.report.most_in == 2 * 24);
	scheds_free(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scatter_results),
		cmocka_unit_test(gather_results),
		cmocka_unit_test(alltoall_results),
		cmocka_unit_test(allgather_results),
		cmocka_unit_test(reduce_results),
		cmocka_unit_test(reduce_scatter_results),
		cmocka_unit_test(writes_beside_its_blocks),
		cmocka_unit_test(empty_blocks_and_places),
		cmocka_unit_test(input_in_the_output),
		cmocka_unit_test(alltoall_in_place),
		cmocka_unit_test(root_in_place),
		cmocka_unit_test(traffic_of_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
