/* SPDX-License-Identifier: MIT
 * What is wrong in the end: results, barriers, the traffic between clusters. */
#include "tests/collectives/verify_cases.h"

#include <string.h>

/* ---- wrong results */

static void bcast_results(void **state)
{
	struct scheds x;

	(void)state;
	make_chain(&x, 3);
	sched_drop_step(&x.s[1], 1);
	sched_drop_step(&x.s[2], 0);
	assert_fault(&x, GCI_FAULT_RESULT, "rank 2", "OUT[0] is undefined at the end");
	scheds_free(&x);

	make_chain(&x, 3);
	x.s[1].steps[1].src.length = x.s[2].steps[0].dst.length = 9;
	assert_fault(&x, GCI_FAULT_RESULT, "rank 2", "OUT[9] is undefined at the end");
	x.s[1].steps[1].src.offset = x.s[2].steps[0].dst.offset = 1;
	assert_fault(&x, GCI_FAULT_RESULT, "rank 2", "OUT[0] is undefined at the end");
	scheds_free(&x);

	scheds_begin(&x, GCI_BCAST, (int[]){2, 0}, 10); /* halves exchanged */
	gci_send(&x.b[0], 1, 0, IN(0, 5));
	gci_send(&x.b[0], 1, 1, IN(5, 5));
	gci_recv(&x.b[1], 0, 1, OUT(0, 5));
	gci_recv(&x.b[1], 0, 0, OUT(5, 5));
	scheds_end(&x);
	assert_fault(&x, GCI_FAULT_RESULT, "rank 1", "OUT[0] holds element 5");
	x.s[1].steps[0].tag = 0;
	x.s[1].steps[1].tag = 1;
	assert_fine(&x);
	x.s[0].steps[1].src.offset = 4;
	assert_fault(&x, GCI_FAULT_RESULT, "rank 1", "OUT[5] holds element 4");
	scheds_free(&x);
}

static void allreduce_lacks_one(void **state)
{
	struct scheds x;

	(void)state;
	make_star(&x); /* 2's is received in place of being added: 0's and 1's are lost */
	x.s[0].steps[1].kind = GCI_STEP_RECV;
	assert_fault(&x, GCI_FAULT_RESULT, "rank 0", "OUT[0] lacks rank 0's contribution");
	x.s[0].steps[1].kind = GCI_STEP_RECV_REDUCE;
	x.s[0].steps[0].kind = GCI_STEP_RECV;
	assert_fault(&x, GCI_FAULT_RESULT, "rank 0", "OUT[0] lacks rank 0's contribution");
	scheds_free(&x);
	make_star(&x); /* only the last element lacks it */
	x.s[0].steps[1].dst.length = x.s[0].steps[1].src.length = 9;
	x.s[2].steps[0].src.length = 9;
	assert_fault(&x, GCI_FAULT_RESULT, "rank 0", "OUT[9] lacks rank 2's contribution");
	scheds_free(&x);
	make_star(&x); /* the sum goes out too early */
	x.s[0].deps[x.s[0].steps[3].deps] = 0;
	sched_relink(&x.s[0]);
	assert_fault(&x, GCI_FAULT_RACE, "rank 0 step 3 SEND", "step 1, which writes it");
	scheds_free(&x);
}

/* Everybody sends to everybody, and adds up in some order. */
static void make_all_to_all(struct scheds *x, int last_begins_with, int last_swaps)
{
	int r, k, first, second;

	scheds_begin(x, GCI_ALLREDUCE, (int[]){3, 0}, 10);
	for (r = 0; r < 3; r++) {
		struct gci_slice out = OUT(0, 10);
		int swapped = r == 2 && last_swaps;

		x->b[r].tmp_len = 30;
		for (k = 0; k < 3; k++)
			if (k != r)
				gci_send(&x->b[r], k, 0, IN(0, 10));
		gci_copy(&x->b[r], TMP(10 * (uint64_t)r, 10), IN(0, 10));
		for (k = 0; k < 3; k++)
			if (k != r)
				gci_recv(&x->b[r], k, 0, TMP(10 * (uint64_t)k, 10));
		first = r == 2 ? last_begins_with : 0;
		second = first == 0 ? 1 : 0;
		gci_copy(&x->b[r], out, TMP(10 * (uint64_t)first, 10));
		gci_reduce(&x->b[r], out, TMP(10 * (uint64_t)second, 10), swapped);
		gci_reduce(&x->b[r], out, TMP(10 * (uint64_t)(3 - first - second), 10), 0);
	}
}

static void different_bits(void **state)
{
	struct scheds x;

	(void)state;
	make_all_to_all(&x, 0, 0);
	assert_built_fine(&x);
	make_all_to_all(&x, 2, 0); /* (2+0)+1 where others have (0+1)+2 */
	assert_built_fault(
		&x, GCI_FAULT_BITS, "rank 2", "elements [0..10) is reduced in another order");
	make_all_to_all(&x, 1, 0); /* (1+0)+2: the bits of a minimum may differ */
	assert_built_fault(&x, GCI_FAULT_BITS, "rank 2", "another order than on other ranks");
	make_all_to_all(&x, 1, 1); /* swapped once more */
	assert_built_fine(&x);
	make_all_to_all(&x, 0, 1);
	assert_built_fault(&x, GCI_FAULT_BITS, "rank 2", "another order than on other ranks");
}

/* One part of the vector in another order than the rest is no fault, if it is on all ranks. */
static void order_may_differ_between_elements(void **state)
{
	struct scheds x;
	int r;

	(void)state;
	scheds_begin(&x, GCI_ALLREDUCE, (int[]){2, 0}, 10);
	for (r = 0; r < 2; r++) {
		gci_send(&x.b[r], !r, 0, IN(0, 5));
		gci_send(&x.b[r], !r, 1, IN(5, 5));
		gci_recv_reduce(&x.b[r], !r, 0, OUT(0, 5), IN(0, 5), r);
		gci_recv_reduce(&x.b[r], !r, 1, OUT(5, 5), IN(5, 5), !r);
	}
	scheds_end(&x);
	assert_fine(&x);
	x.s[1].steps[3].swapped = 1;
	assert_fault(&x, GCI_FAULT_BITS, "rank 1", "elements [5..10) is reduced in another order");
	scheds_free(&x);
}

/* ---- barriers */

static void barrier_without_an_edge(void **state)
{
	static const char *const names[] = {"dissemination", "clusters"};
	static const int sizes[] = {3, 2, 0};
	struct scheds x;
	unsigned i, found = 0;
	uint32_t step, k;
	int r;

	(void)state;
	for (i = 0; i < 2; i++)
		for (r = 0; r < 5; r++)
			for (step = 0, k = 0;; k++) {
				emit(&x, GCI_BARRIER, names[i], sizes);
				while (step < x.s[r].nsteps && k >= x.s[r].steps[step].ndeps) {
					step++;
					k = 0;
				}
				if (step == x.s[r].nsteps) {
					scheds_free(&x);
					break;
				}
				sched_drop_dep(&x.s[r], step, k);
				if (scheds_verify(&x)) {
					assert_int_equal(x.report.fault, GCI_FAULT_BARRIER);
					assert_non_null(strstr(x.e.text, "can leave before rank"));
					found++;
				}
				scheds_free(&x);
			}
	/* Every SEND but those of the first round lost what it has to tell. */
	assert_true(found >= 5 + 5);
}

/* That my message was sent tells nothing: it may have been buffered. */
static void a_send_proves_nothing(void **state)
{
	struct scheds x;

	(void)state;
	scheds_begin(&x, GCI_BARRIER, (int[]){2, 0}, 0);
	gci_send(&x.b[0], 1, 0, nothing);
	gci_recv(&x.b[1], 0, 0, nothing);
	assert_built_fault(&x, GCI_FAULT_BARRIER, "rank 0", "can leave before rank 1 has come");

	scheds_begin(&x, GCI_BARRIER, (int[]){2, 0}, 0);
	assert_built_fault(&x, GCI_FAULT_BARRIER, "rank 0", "can leave before rank 1 has come");

	scheds_begin(&x, GCI_BARRIER, (int[]){1, 0}, 0);
	assert_built_fine(&x);

	scheds_begin(&x, GCI_BARRIER, (int[]){2, 0}, 0);
	gci_send(&x.b[1], 0, 0, nothing);
	gci_recv(&x.b[0], 1, 0, nothing);
	assert_built_fault(&x, GCI_FAULT_BARRIER, "rank 1", "can leave before rank 0 has come");

	/* 0 -> 1 -> 2 -> 0 and no more: 1 does not know of 2, nor 2 ... */
	scheds_begin(&x, GCI_BARRIER, (int[]){3, 0}, 0);
	gci_send(&x.b[0], 1, 0, nothing);
	gci_fence(&x.b[1], gci_recv(&x.b[1], 0, 0, nothing));
	gci_send(&x.b[1], 2, 0, nothing);
	gci_fence(&x.b[2], gci_recv(&x.b[2], 1, 0, nothing));
	gci_send(&x.b[2], 0, 0, nothing);
	gci_recv(&x.b[0], 2, 0, nothing);
	assert_built_fault(&x, GCI_FAULT_BARRIER, "rank 1", "can leave before rank 2 has come");
}

/* ---- the cap on senders */

static void too_many_senders(void **state)
{
	struct scheds x;
	uint32_t cap;

	(void)state;
	emit(&x, GCI_BCAST, "vandegeijn", (int[]){4, 4, 0});
	assert_true(x.report.wan_elements > 0);
	x.check_senders = 1;
	x.c.senders = 4;
	assert_fine(&x);
	for (cap = 1; cap < 3; cap++) {
		x.c.senders = cap;
		assert_fault(&x, GCI_FAULT_SENDERS, cap == 1 ? "allowed are 1" : "allowed are 2",
			"ranks of cluster");
	}
	x.check_senders = 0;
	assert_fine(&x);
	scheds_free(&x);

	/* Two messages of one sender are one sender; messages without content are none. */
	scheds_begin(&x, GCI_BCAST, (int[]){2, 2, 0}, 10);
	x.check_senders = 1;
	x.c.senders = 1;
	gci_send(&x.b[0], 2, 0, IN(0, 10));
	gci_send(&x.b[0], 3, 0, IN(0, 10));
	gci_send(&x.b[0], 1, 0, IN(0, 10));
	gci_recv(&x.b[1], 0, 0, OUT(0, 10));
	gci_recv(&x.b[2], 0, 0, OUT(0, 10));
	gci_recv(&x.b[3], 0, 0, OUT(0, 10));
	gci_send(&x.b[1], 3, 0, OUT(0, 0));
	gci_recv(&x.b[3], 1, 0, OUT(0, 0));
	scheds_end(&x);
	assert_fine(&x);
	assert_true(x.report.wan_elements == 20);
	assert_true(x.report.most_out == 30);
	assert_true(x.report.most_in == 10);
	assert_true(x.report.nmessages == 4);
	assert_true(x.report.nsteps == 8);
	x.s[1].steps[1].src.length = x.s[3].steps[1].dst.length = 1;
	sched_add_dep(&x.s[1], 1, 0);
	sched_add_dep(&x.s[3], 1, 0);
	assert_fault(
		&x, GCI_FAULT_SENDERS, "2 ranks of cluster 0 send to cluster 1", "allowed are 1");
	scheds_free(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bcast_results),
		cmocka_unit_test(allreduce_lacks_one),
		cmocka_unit_test(different_bits),
		cmocka_unit_test(order_may_differ_between_elements),
		cmocka_unit_test(barrier_without_an_edge),
		cmocka_unit_test(a_send_proves_nothing),
		cmocka_unit_test(too_many_senders),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
