/* SPDX-License-Identifier: MIT
 * Steps that are malformed, messages that do not pair off. */
#include "tests/collectives/verify_cases.h"

/* ---- shape */

static void malformed_steps(void **state)
{
	static const struct {
		int rank;
		enum gci_step_kind kind;
		struct gci_slice src, dst;
		int peer;
		const char *what;
	} bad[] = {
		{0, GCI_STEP_SEND, {0, 10, GCI_IN}, {0, 0, GCI_IN}, 0, "no such peer: 0"},
		{0, GCI_STEP_SEND, {0, 10, GCI_IN}, {0, 0, GCI_IN}, -1, "no such peer: -1"},
		{0, GCI_STEP_SEND, {0, 10, GCI_IN}, {0, 0, GCI_IN}, 3, "no such peer: 3"},
		{0, GCI_STEP_SEND, {1, 10, GCI_IN}, {0, 0, GCI_IN}, 1,
			"IN[1 +10] is out of bounds"},
		{0, GCI_STEP_SEND, {0, 11, GCI_IN}, {0, 0, GCI_IN}, 1,
			"IN[0 +11] is out of bounds"},
		{0, GCI_STEP_SEND, {11, 0, GCI_IN}, {0, 0, GCI_IN}, 1,
			"IN[11 +0] is out of bounds"},
		{0, GCI_STEP_SEND, {0, 1, GCI_OUT}, {0, 0, GCI_IN}, 1,
			"OUT[0 +1] is out of bounds"},
		{0, GCI_STEP_SEND, {0, 1, GCI_TMP}, {0, 0, GCI_IN}, 1,
			"TMP[0 +1] is out of bounds"},
		{0, GCI_STEP_SEND, {0, 10, GCI_NBUFFERS}, {0, 0, GCI_IN}, 1, "no such buffer: 3"},
		{0, GCI_STEP_SEND, {0, 10, (enum gci_buffer)200}, {0, 0, GCI_IN}, 1,
			"no such buffer"},
		/* offset + length wraps around to something small */
		{0, GCI_STEP_SEND, {UINT64_MAX, 2, GCI_IN}, {0, 0, GCI_IN}, 1, "is out of bounds"},
		{0, GCI_STEP_SEND, {2, UINT64_MAX, GCI_IN}, {0, 0, GCI_IN}, 1, "is out of bounds"},
		{1, GCI_STEP_RECV, {0, 0, GCI_IN}, {UINT64_MAX - 4, 10, GCI_OUT}, 0,
			"is out of bounds"},
		{1, GCI_STEP_RECV, {0, 0, GCI_IN}, {1, 10, GCI_OUT}, 0,
			"OUT[1 +10] is out of bounds"},
		{1, GCI_STEP_RECV, {0, 0, GCI_IN}, {0, 0, GCI_IN}, 0, "writes to IN"},
		{1, GCI_STEP_COPY, {0, 4, GCI_OUT}, {5, 5, GCI_OUT}, -1, "differ in length"},
		{1, GCI_STEP_REDUCE, {0, 4, GCI_OUT}, {5, 5, GCI_OUT}, -1, "differ in length"},
		{1, GCI_STEP_RECV_REDUCE, {0, 4, GCI_OUT}, {0, 10, GCI_OUT}, 0, "differ in length"},
		{1, GCI_STEP_RECV_REDUCE, {9, 10, GCI_OUT}, {0, 10, GCI_OUT}, 0,
			"is out of bounds"},
		{1, (enum gci_step_kind)5, {0, 0, GCI_IN}, {0, 0, GCI_OUT}, 0, "no such kind"},
		{1, (enum gci_step_kind)99, {0, 0, GCI_IN}, {0, 0, GCI_OUT}, 0, "no such kind"},
	};
	struct scheds x;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct gci_step *p;

		make_chain(&x, 3);
		p = &x.s[bad[i].rank].steps[0];
		p->kind = bad[i].kind;
		p->src = bad[i].src;
		p->dst = bad[i].dst;
		p->peer = bad[i].peer;
		assert_fault(&x, GCI_FAULT_SHAPE, bad[i].rank ? "rank 1 step 0" : "rank 0 step 0",
			bad[i].what);
		scheds_free(&x);
	}
}

static void dependencies_on_later_steps(void **state)
{
	struct scheds x;

	(void)state;
	make_star(&x);
	x.s[0].deps[x.s[0].steps[2].deps] = 2;
	sched_relink(&x.s[0]);
	assert_fault(&x, GCI_FAULT_SHAPE, "rank 0 step 2 SEND", "waits for step 2, not an earlier");
	x.s[0].deps[x.s[0].steps[2].deps] = 3;
	sched_relink(&x.s[0]);
	assert_fault(&x, GCI_FAULT_SHAPE, "rank 0 step 2 SEND", "waits for step 3, not an earlier");
	x.s[0].deps[x.s[0].steps[2].deps] = UINT32_MAX;
	assert_fault(&x, GCI_FAULT_SHAPE, "rank 0", "");
	scheds_free(&x);
}

/* What the readiness core would follow is not what was proved. */
static void edges_that_differ_forwards(void **state)
{
	static const char *const what = "edges backwards and forwards";
	struct scheds x;
	struct gci_sched *s = &x.s[0];

	(void)state;
	make_star(&x);
	s->next[s->next_at[1]] = 0; /* step 1 frees 0 instead of 2 */
	assert_fault(&x, GCI_FAULT_SHAPE, "rank 0", what);
	sched_relink(s);
	assert_fine(&x);
	s->next[s->next_at[1]] = 3; /* frees 3 twice */
	assert_fault(&x, GCI_FAULT_SHAPE, "rank 0", what);
	sched_relink(s);
	s->next_at[1] = 0; /* step 0's edge goes to step 1 */
	assert_fault(&x, GCI_FAULT_SHAPE, "rank 0", what);
	s->next_at[1] = UINT32_MAX;
	assert_fault(&x, GCI_FAULT_SHAPE, "rank 0", what);
	sched_relink(s);
	s->next_at[0] = 1;
	assert_fault(&x, GCI_FAULT_SHAPE, "rank 0", what);
	s->next_at[0] = 0;
	s->steps[3].ndeps++; /* beyond the end of deps */
	assert_fault(&x, GCI_FAULT_SHAPE, "rank 0", what);
	s->steps[3].ndeps = UINT32_MAX;
	assert_fault(&x, GCI_FAULT_SHAPE, "rank 0", what);
	s->steps[3].ndeps = 1;
	s->steps[3].deps = UINT32_MAX;
	assert_fault(&x, GCI_FAULT_SHAPE, "rank 0", what);
	scheds_free(&x);
}

static void wrong_operation(void **state)
{
	struct scheds x;

	(void)state;
	make_chain(&x, 3);
	x.s[1].rank = 2;
	assert_fault(&x, GCI_FAULT_SHAPE, "rank 1", "schedule of rank 2 of 3");
	x.s[1].rank = 1;
	x.s[1].nranks = 4;
	assert_fault(&x, GCI_FAULT_SHAPE, "rank 1", "schedule of rank 1 of 4");
	x.s[1].nranks = 3;
	x.s[1].out_len = 11;
	assert_fault(&x, GCI_FAULT_SHAPE, "rank 1", "OUT 11 elements: not the operation's");
	x.s[1].out_len = 10;
	x.s[1].in_len = 10;
	assert_fault(&x, GCI_FAULT_SHAPE, "rank 1", "IN is 10");
	x.s[1].in_len = 0;
	x.c.root = 1;
	assert_fault(&x, GCI_FAULT_SHAPE, "rank 0", "not the operation's");
	x.c.root = 0;
	x.c.count = 9;
	assert_fault(&x, GCI_FAULT_SHAPE, "rank 0", "not the operation's");
	x.c.count = 10;
	assert_fine(&x);
	scheds_free(&x);

	make_star(&x);
	x.c.in_place = 1;
	assert_fault(&x, GCI_FAULT_SHAPE, "rank 0", "IN is 10");
	x.c.in_place = 0;
	x.c.kind = GCI_BARRIER;
	assert_fault(&x, GCI_FAULT_SHAPE, "rank 0", "not the operation's");
	scheds_free(&x);
}

/* ---- messages */

static void unmatched(void **state)
{
	struct scheds x;

	(void)state;
	make_chain(&x, 3);
	sched_drop_step(&x.s[1], 1);
	assert_fault(
		&x, GCI_FAULT_UNMATCHED, "rank 2 step 0 RECV", "the peer, rank 1, has no step");
	scheds_free(&x);
	make_chain(&x, 3);
	sched_drop_step(&x.s[2], 0);
	assert_fault(
		&x, GCI_FAULT_UNMATCHED, "rank 1 step 1 SEND", "the peer, rank 2, has no step");
	scheds_free(&x);
	make_chain(&x, 3);
	x.s[1].steps[1].tag = 8;
	assert_fault(&x, GCI_FAULT_UNMATCHED, "rank 2 step 0 RECV", "tag 0x7");
	x.s[1].steps[1].tag = 6;
	assert_fault(&x, GCI_FAULT_UNMATCHED, "rank 1 step 1 SEND", "tag 0x6");
	x.s[1].steps[1].tag = 7;
	x.s[1].steps[1].peer = 0;
	assert_fault(
		&x, GCI_FAULT_UNMATCHED, "rank 1 step 1 SEND", "the peer, rank 0, has no step");
	scheds_free(&x);
	make_chain(&x, 2); /* both receive, both send */
	x.s[0].steps[0] = x.s[1].steps[0];
	x.s[0].steps[0].peer = 1;
	x.s[0].steps[0].dst = gci_slice(GCI_TMP, 0, 10);
	x.s[0].tmp_len = 10;
	assert_fault(
		&x, GCI_FAULT_UNMATCHED, "rank 1 step 0 RECV", "the peer, rank 0, has no step");
	x.s[0].steps[0] =
		(struct gci_step){.kind = GCI_STEP_SEND, .peer = 1, .tag = 7, .src = IN(0, 10)};
	assert_fine(&x);
	x.s[1].steps[0] =
		(struct gci_step){.kind = GCI_STEP_SEND, .peer = 0, .tag = 7, .src = OUT(0, 10)};
	assert_fault(
		&x, GCI_FAULT_UNMATCHED, "rank 0 step 0 SEND", "the peer, rank 1, has no step");
	scheds_free(&x);
}

static void duplicates(void **state)
{
	static const int two[] = {2, 0};
	struct scheds x;

	(void)state;
	scheds_begin(&x, GCI_BCAST, two, 10);
	gci_send(&x.b[0], 1, 7, IN(0, 5));
	gci_send(&x.b[0], 1, 7, IN(5, 5));
	gci_recv(&x.b[1], 0, 7, OUT(0, 5));
	gci_recv(&x.b[1], 0, 7, OUT(5, 5));
	scheds_end(&x);
	assert_fault(&x, GCI_FAULT_DUPLICATE, "rank 0 step", "tag 0x7 from 0 to 1 is used twice");
	x.s[0].steps[0].tag = x.s[1].steps[0].tag = 6;
	assert_fine(&x);
	x.s[0].steps[0].tag = 7; /* two sends, one of two receives */
	assert_fault(&x, GCI_FAULT_UNMATCHED, "rank 1 step 0 RECV", "tag 0x6");
	scheds_free(&x);

	scheds_begin(&x, GCI_BCAST, two, 10);
	gci_send(&x.b[0], 1, 7, IN(0, 10));
	gci_send(&x.b[0], 1, 7, IN(0, 10));
	gci_recv(&x.b[1], 0, 7, OUT(0, 10));
	assert_built_fault(&x, GCI_FAULT_DUPLICATE, "rank 0 step 1 SEND", "is used twice");

	scheds_begin(&x, GCI_BCAST, two, 10);
	gci_send(&x.b[0], 1, 7, IN(0, 10));
	gci_recv(&x.b[1], 0, 7, OUT(0, 10));
	gci_recv(&x.b[1], 0, 7, OUT(0, 10));
	assert_built_fault(&x, GCI_FAULT_DUPLICATE, "rank 1 step", "is used twice");

	/* The other direction is another message. */
	scheds_begin(&x, GCI_BCAST, two, 10);
	x.b[0].tmp_len = 10;
	gci_send(&x.b[0], 1, 7, IN(0, 10));
	gci_recv(&x.b[1], 0, 7, OUT(0, 10));
	gci_send(&x.b[1], 0, 7, OUT(0, 10));
	gci_recv(&x.b[0], 1, 7, TMP(0, 10));
	assert_built_fine(&x);
}

static void lengths(void **state)
{
	struct scheds x;

	(void)state;
	make_chain(&x, 2);
	x.s[0].steps[0].src.length = 9;
	assert_fault(&x, GCI_FAULT_LENGTH, "rank 1 step 0 RECV",
		"receives 10 elements, rank 0 step 0 sends 9");
	x.s[0].steps[0].src.length = 10;
	x.s[1].steps[0].dst.length = 0;
	assert_fault(&x, GCI_FAULT_LENGTH, "rank 1 step 0 RECV", "receives 0 elements");
	scheds_free(&x);
	make_star(&x);
	x.s[0].steps[0].src.length = x.s[0].steps[0].dst.length = 9;
	assert_fault(&x, GCI_FAULT_LENGTH, "rank 0 step 0 RECV_REDUCE",
		"receives 9 elements, rank 1 step 0 sends 10");
	scheds_free(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(malformed_steps),
		cmocka_unit_test(dependencies_on_later_steps),
		cmocka_unit_test(edges_that_differ_forwards),
		cmocka_unit_test(wrong_operation),
		cmocka_unit_test(unmatched),
		cmocka_unit_test(duplicates),
		cmocka_unit_test(lengths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
