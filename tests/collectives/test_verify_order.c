/* SPDX-License-Identifier: MIT
 * Conflicting accesses without an order. */
#include "tests/collectives/verify_cases.h"

static void read_without_order_to_write(void **state)
{
	struct scheds x;

	(void)state;
	make_chain(&x, 3);
	drop_edge(&x.s[1], 1, 0);
	assert_fault(&x, GCI_FAULT_RACE, "rank 1 step 1 SEND",
		"reads OUT[0..10) without order to step 0, which writes it");
	scheds_free(&x);
	make_star(&x); /* RECV_REDUCE reads what another writes */
	drop_edge(&x.s[0], 1, 0);
	assert_fault(&x, GCI_FAULT_RACE, "rank 0 step 1 RECV_REDUCE", "reads OUT[0..10)");
	scheds_free(&x);
	make_chain(&x, 2); /* COPY and REDUCE do, in one element of ten */
	x.s[1].tmp_len = 10;
	sched_insert(&x.s[1], 0,
		(struct gci_step){.kind = GCI_STEP_COPY, .src = OUT(9, 1), .dst = TMP(0, 1)});
	assert_fine(&x);
	drop_edge(&x.s[1], 1, 0);
	assert_fault(&x, GCI_FAULT_RACE, "rank 1 step 1 COPY", "reads OUT[9..10)");
	x.s[1].steps[1].kind = GCI_STEP_REDUCE;
	assert_fault(&x, GCI_FAULT_RACE, "rank 1 step 1 REDUCE", "reads OUT[9..10)");
	x.s[1].steps[1].src = TMP(0, 1); /* its destination it reads, too */
	x.s[1].steps[1].dst = OUT(9, 1);
	assert_fault(&x, GCI_FAULT_RACE, "rank 1 step 1 REDUCE", "reads OUT[9..10)");
	scheds_free(&x);
}

static void write_without_order_to_read(void **state)
{
	struct scheds x;
	int reader;

	(void)state;
	/* Sent on, then written over by a later copy of the same. */
	for (reader = 0; reader < 2; reader++) {
		scheds_begin(&x, GCI_BCAST, (int[]){4, 0}, 10);
		gci_send(&x.b[0], 1, 0, IN(0, 10));
		gci_send(&x.b[0], 1, 1, IN(3, 4));
		gci_recv(&x.b[1], 0, 0, OUT(0, 10));
		gci_send(&x.b[1], 2, 0, OUT(0, 10));
		gci_send(&x.b[1], 3, 0, OUT(0, 10));
		gci_recv(&x.b[1], 0, 1, OUT(3, 4));
		gci_recv(&x.b[2], 1, 0, OUT(0, 10));
		gci_recv(&x.b[3], 1, 0, OUT(0, 10));
		scheds_end(&x);
		assert_fine(&x);
		drop_edge(&x.s[1], 3, 1 + (uint32_t)reader);
		assert_fault(&x, GCI_FAULT_RACE, "rank 1 step 3 RECV",
			reader ? "writes OUT[3..7) without order to step 2, which reads it"
			       : "writes OUT[3..7) without order to step 1, which reads it");
		scheds_free(&x);
	}
}

static void write_without_order_to_write(void **state)
{
	struct scheds x;

	(void)state;
	scheds_begin(&x, GCI_BCAST, (int[]){2, 0}, 10);
	gci_send(&x.b[0], 1, 0, IN(0, 6));
	gci_send(&x.b[0], 1, 1, IN(4, 6));
	gci_recv(&x.b[1], 0, 0, OUT(0, 6));
	gci_recv(&x.b[1], 0, 1, OUT(4, 6));
	scheds_end(&x);
	assert_fine(&x);
	/* Both write the same values there, but no proof rests on that. */
	drop_edge(&x.s[1], 1, 0);
	assert_fault(&x, GCI_FAULT_RACE, "rank 1 step 1 RECV",
		"writes OUT[4..6) without order to step 0, which writes it");
	scheds_free(&x);
}

/* Rank 1 hears from rank 2, which got its data from rank 1: an order, but no local one. */
static void order_by_way_of_others_does_not_count(void **state)
{
	struct scheds x;

	(void)state;
	scheds_begin(&x, GCI_BCAST, (int[]){3, 0}, 10);
	gci_send(&x.b[0], 1, 0, IN(0, 10));
	gci_recv(&x.b[1], 0, 0, OUT(0, 10));
	gci_send(&x.b[1], 2, 0, OUT(0, 10));
	gci_recv(&x.b[2], 1, 0, OUT(0, 10));
	gci_send(&x.b[2], 1, 0, OUT(0, 10));
	gci_recv(&x.b[1], 2, 0, OUT(0, 10));
	scheds_end(&x);
	assert_fine(&x);
	drop_edge(&x.s[1], 2, 1);
	assert_fault(&x, GCI_FAULT_RACE, "rank 1 step 2 RECV", "without order to step");
	scheds_free(&x);
}

/* Unordered steps may share a step they both wait for, through any number of others. */
static void order_is_transitive(void **state)
{
	struct scheds x;
	struct gci_sched *s = &x.s[1];

	(void)state;
	make_chain(&x, 3);
	/* 0 RECV, 1 COPY after 0, 2 SEND after 0 and 1: through 1 alone is enough. */
	sched_insert(
		s, 0, (struct gci_step){.kind = GCI_STEP_COPY, .src = OUT(0, 1), .dst = TMP(0, 1)});
	s->tmp_len = 1;
	drop_edge(s, 2, 0);
	assert_fine(&x);
	drop_edge(s, 2, 1);
	assert_fault(&x, GCI_FAULT_RACE, "rank 1 step 2 SEND", "reads OUT[0..1)");
	scheds_free(&x);
}

static void operands_that_overlap_in_part(void **state)
{
	static const enum gci_step_kind kinds[] = {GCI_STEP_COPY, GCI_STEP_REDUCE};
	struct scheds x;
	int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		make_chain(&x, 2);
		sched_insert(&x.s[1], 0,
			(struct gci_step){.kind = kinds[i], .src = OUT(0, 5), .dst = OUT(4, 5)});
		assert_fault(&x, GCI_FAULT_RACE, "rank 1 step 1", "overlap in part");
		x.s[1].steps[1].src = OUT(5, 5);
		assert_fault(&x, GCI_FAULT_RACE, "rank 1 step 1", "overlap in part");
		scheds_free(&x);
	}
	scheds_begin(&x, GCI_ALLREDUCE, (int[]){2, 0}, 2);
	for (i = 0; i < 2; i++) {
		x.b[i].tmp_len = 3;
		gci_copy(&x.b[i], TMP(0, 2), IN(0, 2));
		gci_send(&x.b[i], !i, 0, IN(0, 2));
		gci_recv_reduce(&x.b[i], !i, 0, TMP(0, 2), TMP(0, 2), i);
		gci_copy(&x.b[i], OUT(0, 2), TMP(0, 2));
	}
	scheds_end(&x);
	assert_fine(&x);
	x.s[1].steps[2].dst.offset = 1;
	x.s[1].steps[3].src.offset = 1;
	assert_fault(&x, GCI_FAULT_RACE, "rank 1 step 2 RECV_REDUCE", "overlap in part");
	scheds_free(&x);
}

/* Slices without elements touch nothing, wherever they stand. */
static void nothing_races_with_nothing(void **state)
{
	struct scheds x;

	(void)state;
	make_chain(&x, 3);
	sched_insert(&x.s[1], 0,
		(struct gci_step){.kind = GCI_STEP_COPY, .src = OUT(10, 0), .dst = OUT(4, 0)});
	drop_edge(&x.s[1], 1, 0);
	assert_fine(&x);
	x.s[1].steps[1].kind = GCI_STEP_REDUCE;
	assert_fine(&x);
	scheds_free(&x);
}

/* In an emitter's schedule. */
static void race_in_a_real_schedule(void **state)
{
	struct scheds x;
	uint32_t step;
	int dropped = 0;

	(void)state;
	emit(&x, GCI_BCAST, "vandegeijn", (int[]){4, 0});
	for (step = 0; step < x.s[1].nsteps && !dropped; step++)
		if (x.s[1].steps[step].kind == GCI_STEP_SEND && x.s[1].steps[step].ndeps) {
			sched_drop_dep(&x.s[1], step, 0);
			dropped = 1;
		}
	assert_true(dropped);
	assert_fault(&x, GCI_FAULT_RACE, "rank 1 step", "SEND: reads OUT");
	scheds_free(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(read_without_order_to_write),
		cmocka_unit_test(write_without_order_to_read),
		cmocka_unit_test(write_without_order_to_write),
		cmocka_unit_test(order_by_way_of_others_does_not_count),
		cmocka_unit_test(order_is_transitive),
		cmocka_unit_test(operands_that_overlap_in_part),
		cmocka_unit_test(nothing_races_with_nothing),
		cmocka_unit_test(race_in_a_real_schedule),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
