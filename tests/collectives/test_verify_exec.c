/* SPDX-License-Identifier: MIT
 * What goes wrong while schedules run: deadlock, undefined data, operands that do not fit. */
#include "tests/collectives/verify_cases.h"

#include <string.h>

/* ---- deadlock */

/* Each of n ranks sends to the next and receives from the one before. `order[r]`: 0 both at once,
 * 's' sends first, 'r' receives first. */
static void make_ring(struct scheds *x, int n, const char *order)
{
	int r;

	scheds_begin(x, GCI_BCAST, (int[]){n, 0}, 0);
	for (r = 0; r < n; r++) {
		int next = (r + 1) % n, before = (r + n - 1) % n;

		if (order[r] == 'r')
			gci_recv(&x->b[r], before, 0, nothing);
		gci_send(&x->b[r], next, 0, nothing);
		if (order[r] != 'r')
			gci_recv(&x->b[r], before, 0, nothing);
		if (order[r] != '-')
			gci_after(&x->b[r], 0);
	}
}

static void rendezvous(void **state)
{
	static const struct {
		const char *order;
		int deadlock;
	} rings[] = {
		{"--", 0},
		{"ss", 1},
		{"rr", 1},
		{"sr", 0},
		{"rs", 0},
		{"s-", 0},
		{"r-", 0},
		{"---", 0},
		{"sss", 1},
		{"rrr", 1},
		{"ssr", 0},
		{"srr", 0},
		{"rss", 0},
		{"ss-", 0},
		{"rr-", 0},
		{"ssss", 1},
		{"sssr", 0},
		{"rrrr", 1},
		{"rrsr", 0},
	};
	struct scheds x;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rings) / sizeof(*rings); i++) {
		make_ring(&x, (int)strlen(rings[i].order), rings[i].order);
		if (rings[i].deadlock)
			assert_built_fault(
				&x, GCI_FAULT_DEADLOCK, "rank 0 step 0", "which cannot start");
		else
			assert_built_fine(&x);
	}
}

/* 0 sends a then b, 1 takes b then a: fine only if the network keeps a meanwhile. */
static void order_that_needs_buffering(void **state)
{
	struct scheds x;
	int crossed;

	(void)state;
	for (crossed = 0; crossed < 2; crossed++) {
		scheds_begin(&x, GCI_BCAST, (int[]){2, 0}, 10);
		gci_send(&x.b[0], 1, 0, IN(0, 5));
		gci_fence(&x.b[0], 0);
		gci_send(&x.b[0], 1, 1, IN(5, 5));
		gci_recv(&x.b[1], 0, (uint32_t)crossed, OUT(crossed ? 5 : 0, 5));
		gci_fence(&x.b[1], 0);
		gci_recv(&x.b[1], 0, !crossed, OUT(crossed ? 0 : 5, 5));
		if (crossed)
			assert_built_fault(&x, GCI_FAULT_DEADLOCK, "rank 0 step 0 SEND",
				"waits for rank 1 step 1, which cannot start");
		else
			assert_built_fine(&x);
	}
}

static void cycle_in_a_real_schedule(void **state)
{
	struct scheds x;
	struct gci_sched *s = &x.s[0];

	(void)state;
	/* Round 0: every rank would receive before it sends. */
	emit(&x, GCI_BARRIER, "dissemination", (int[]){3, 0});
	for (; s < x.s + 3; s++) {
		struct gci_step swap = s->steps[0];

		s->steps[0] = s->steps[1];
		s->steps[1] = swap;
		s->steps[1].deps = s->steps[0].deps = 0;
		sched_add_dep(s, 1, 0);
		if (s == &x.s[1])
			assert_fine(&x);
	}
	assert_fault(&x, GCI_FAULT_DEADLOCK, "rank 0 step 0 RECV", "rank 2 step 1, which cannot");
	scheds_free(&x);
}

/* ---- undefined data */

static void undefined_reads(void **state)
{
	struct scheds x;

	(void)state;
	scheds_begin(&x, GCI_BCAST, (int[]){2, 0}, 10);
	x.b[0].tmp_len = 10;
	gci_send(&x.b[0], 1, 0, TMP(0, 10));
	gci_recv(&x.b[1], 0, 0, OUT(0, 10));
	assert_built_fault(&x, GCI_FAULT_UNDEFINED, "rank 0 step 0 SEND", "undefined TMP[0]");

	make_chain(&x, 2); /* one element of TMP, that nobody cares for afterwards */
	x.s[1].tmp_len = 3;
	sched_insert(&x.s[1], 0,
		(struct gci_step){.kind = GCI_STEP_COPY, .src = TMP(0, 1), .dst = TMP(2, 1)});
	assert_fault(&x, GCI_FAULT_UNDEFINED, "rank 1 step 1 COPY", "undefined TMP[0]");
	scheds_free(&x);

	make_star(&x); /* OUT is undefined except in place */
	x.s[1].steps[0].src.buffer = GCI_OUT;
	sched_add_dep(&x.s[1], 1, 0);
	assert_fault(&x, GCI_FAULT_UNDEFINED, "rank 1 step 0 SEND", "undefined OUT[0]");
	scheds_free(&x);

	make_star(&x); /* so is the operand of a reduction */
	x.s[0].steps[0].src.buffer = GCI_OUT;
	assert_fault(&x, GCI_FAULT_UNDEFINED, "rank 0 step 0 RECV_REDUCE", "undefined OUT[0]");
	scheds_free(&x);

	scheds_begin(&x, GCI_BCAST, (int[]){3, 0}, 10); /* a hole of one element */
	gci_send(&x.b[0], 1, 0, IN(0, 4));
	gci_send(&x.b[0], 1, 1, IN(5, 5));
	gci_recv(&x.b[1], 0, 0, OUT(0, 4));
	gci_recv(&x.b[1], 0, 1, OUT(5, 5));
	gci_send(&x.b[1], 2, 0, OUT(0, 10));
	gci_recv(&x.b[2], 1, 0, OUT(0, 10));
	assert_built_fault(&x, GCI_FAULT_UNDEFINED, "rank 1 step 2 SEND", "undefined OUT[4]");
}

static void in_place_is_defined(void **state)
{
	struct scheds x;
	int r;

	(void)state;
	scheds_begin(&x, GCI_ALLREDUCE, (int[]){2, 0}, 10);
	x.c.in_place = 1;
	for (r = 0; r < 2; r++) {
		x.b[r].in_len = 0;
		x.b[r].tmp_len = 10;
		gci_send(&x.b[r], !r, 0, OUT(0, 10));
		gci_recv(&x.b[r], !r, 0, TMP(0, 10));
		gci_reduce(&x.b[r], OUT(0, 10), TMP(0, 10), r);
	}
	scheds_end(&x);
	assert_fine(&x);
	drop_edge(&x.s[1], 2, 0); /* the input is still being sent */
	assert_fault(&x, GCI_FAULT_RACE, "rank 1 step 2 REDUCE", "step 0, which reads it");
	scheds_free(&x);
}

/* ---- operands */

static void counted_twice(void **state)
{
	struct scheds x;
	struct gci_step again;

	(void)state;
	make_star(&x); /* directly */
	again = (struct gci_step){.kind = GCI_STEP_REDUCE, .src = IN(0, 10), .dst = OUT(0, 10)};
	sched_insert(&x.s[0], 1, again);
	assert_fault(&x, GCI_FAULT_TWICE, "rank 0 step 2 REDUCE", "rank 0's contribution twice");
	x.s[0].steps[2].src = OUT(0, 10); /* the sum with itself */
	assert_fault(&x, GCI_FAULT_TWICE, "rank 0 step 2 REDUCE", "contribution twice at 0");
	x.s[0].steps[2].src = IN(7, 1); /* in one element */
	x.s[0].steps[2].dst = OUT(7, 1);
	assert_fault(&x, GCI_FAULT_TWICE, "rank 0 step 2 REDUCE", "rank 0's contribution twice");
	scheds_free(&x);

	/* Through a partial sum: 1 has added 2's before it sends, and 2 sends to 0 as well. */
	scheds_begin(&x, GCI_ALLREDUCE, (int[]){3, 0}, 10);
	gci_send(&x.b[2], 1, 0, IN(0, 10));
	gci_send(&x.b[2], 0, 0, IN(0, 10));
	gci_recv_reduce(&x.b[1], 2, 0, OUT(0, 10), IN(0, 10), 0);
	gci_send(&x.b[1], 0, 0, OUT(0, 10));
	gci_recv_reduce(&x.b[0], 1, 0, OUT(0, 10), IN(0, 10), 0);
	gci_recv_reduce(&x.b[0], 2, 0, OUT(0, 10), OUT(0, 10), 0);
	assert_built_fault(
		&x, GCI_FAULT_TWICE, "rank 0 step 1 RECV_REDUCE", "rank 2's contribution");
}

static void different_offsets(void **state)
{
	struct scheds x;

	(void)state;
	make_star(&x);
	x.s[1].steps[0].src = IN(1, 9);
	x.s[0].steps[0].src = IN(0, 9);
	x.s[0].steps[0].dst = OUT(0, 9);
	assert_fault(&x, GCI_FAULT_OFFSET, "rank 0 step 0 RECV_REDUCE", "of different offsets");
	x.s[0].steps[0].src = IN(1, 9); /* the same offsets, at another place: no fault in itself */
	assert_fault(&x, GCI_FAULT_UNDEFINED, "rank 0 step 1", "undefined OUT[9]");
	scheds_free(&x);

	/* By way of TMP, where positions mean nothing, it is right. */
	scheds_begin(&x, GCI_ALLREDUCE, (int[]){1, 0}, 10);
	x.b[0].tmp_len = 100;
	gci_copy(&x.b[0], TMP(50, 5), IN(5, 5));
	gci_copy(&x.b[0], TMP(9, 5), IN(0, 5));
	gci_copy(&x.b[0], OUT(5, 5), TMP(50, 5));
	gci_copy(&x.b[0], OUT(0, 5), TMP(9, 5));
	scheds_end(&x);
	assert_fine(&x);
	x.s[0].steps[1].dst.offset = x.s[0].steps[3].src.offset = 8;
	assert_fine(&x);
	x.s[0].steps[3].src.offset = 9;
	assert_fault(&x, GCI_FAULT_UNDEFINED, "rank 0 step 3 COPY", "undefined TMP[13]");
	x.s[0].steps[1].src.offset = 1;
	x.s[0].steps[3].src.offset = 8;
	assert_fault(&x, GCI_FAULT_RESULT, "rank 0", "OUT[0] holds element 1");
	scheds_free(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rendezvous),
		cmocka_unit_test(order_that_needs_buffering),
		cmocka_unit_test(cycle_in_a_real_schedule),
		cmocka_unit_test(undefined_reads),
		cmocka_unit_test(in_place_is_defined),
		cmocka_unit_test(counted_twice),
		cmocka_unit_test(different_offsets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
