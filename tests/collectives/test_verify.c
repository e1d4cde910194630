/* SPDX-License-Identifier: MIT
 * Broken schedules, each rejected for the right reason. Each begins with a set that is proved
 * right, so that it is the one thing broken in it that is found. */
#include "tests/test.h"

#include "base/mem.h"
#include "tests/collectives/scheds.h"

#include <stdlib.h>
#include <string.h>

#define IN(offset, length)  gci_slice(GCI_IN, offset, length)
#define OUT(offset, length) gci_slice(GCI_OUT, offset, length)
#define TMP(offset, length) gci_slice(GCI_TMP, offset, length)

static void assert_fine(struct scheds *x)
{
	if (scheds_verify(x))
		fail_msg("should be fine: %s", x->e.text);
	assert_int_equal(x->report.fault, GCI_FAULT_NONE);
}

/* `where` and `what` stand in the text. */
static void assert_fault(
	struct scheds *x, enum gci_fault fault, const char *where, const char *what)
{
	assert_int_equal(scheds_verify(x), GCOLL_ERR_VERIFY);
	if (x->report.fault != fault || !strstr(x->e.text, where) || !strstr(x->e.text, what))
		fail_msg("fault %d (%s), expected %d (%s ... %s)", x->report.fault, x->e.text,
			fault, where, what);
}

/* Builds, and expects the fault. */
static void assert_built_fault(
	struct scheds *x, enum gci_fault fault, const char *where, const char *what)
{
	scheds_end(x);
	assert_fault(x, fault, where, what);
	scheds_free(x);
}

static void assert_built_fine(struct scheds *x)
{
	scheds_end(x);
	assert_fine(x);
	scheds_free(x);
}

/* 0 -> 1 -> 2 -> ... */
static void make_chain(struct scheds *x, int n)
{
	int r;

	scheds_begin(x, GCI_BCAST, (int[]){n, 0}, 10);
	for (r = 0; r < n; r++) {
		if (r)
			gci_recv(&x->b[r], r - 1, 7, OUT(0, 10));
		if (r + 1 < n)
			gci_send(&x->b[r], r + 1, 7, r ? OUT(0, 10) : IN(0, 10));
	}
	scheds_end(x);
	assert_fine(x);
}

/* Allreduce: 1 and 2 send to 0, which adds them up, in this order, and sends the sum back.
 * Rank 0's steps: 0 adds 1's, 1 adds 2's, 2 and 3 send. Others: 0 sends, 1 receives. */
static void make_star(struct scheds *x)
{
	int r;

	scheds_begin(x, GCI_ALLREDUCE, (int[]){3, 0}, 10);
	gci_recv_reduce(&x->b[0], 1, 0, OUT(0, 10), IN(0, 10), 0);
	gci_recv_reduce(&x->b[0], 2, 0, OUT(0, 10), OUT(0, 10), 0);
	for (r = 1; r < 3; r++) {
		gci_send(&x->b[0], r, 1, OUT(0, 10));
		gci_send(&x->b[r], 0, 0, IN(0, 10));
		gci_recv(&x->b[r], 0, 1, OUT(0, 10));
	}
	scheds_end(x);
	assert_fine(x);
}

static void emit(struct scheds *x, enum gci_kind kind, const char *name, const int *sizes)
{
	struct gci_coll c = {.count = 24, .esize = 4};

	scheds_emit(x, gci_algorithm_find(kind, name), &c, sizes);
	assert_fine(x);
}

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
		{0, GCI_SEND, {0, 10, GCI_IN}, {0, 0, GCI_IN}, 0, "no such peer: 0"},
		{0, GCI_SEND, {0, 10, GCI_IN}, {0, 0, GCI_IN}, -1, "no such peer: -1"},
		{0, GCI_SEND, {0, 10, GCI_IN}, {0, 0, GCI_IN}, 3, "no such peer: 3"},
		{0, GCI_SEND, {1, 10, GCI_IN}, {0, 0, GCI_IN}, 1, "IN[1 +10] is out of bounds"},
		{0, GCI_SEND, {0, 11, GCI_IN}, {0, 0, GCI_IN}, 1, "IN[0 +11] is out of bounds"},
		{0, GCI_SEND, {11, 0, GCI_IN}, {0, 0, GCI_IN}, 1, "IN[11 +0] is out of bounds"},
		{0, GCI_SEND, {0, 1, GCI_OUT}, {0, 0, GCI_IN}, 1, "OUT[0 +1] is out of bounds"},
		{0, GCI_SEND, {0, 1, GCI_TMP}, {0, 0, GCI_IN}, 1, "TMP[0 +1] is out of bounds"},
		{0, GCI_SEND, {0, 10, GCI_NBUFFERS}, {0, 0, GCI_IN}, 1, "no such buffer: 3"},
		{0, GCI_SEND, {0, 10, (enum gci_buffer)200}, {0, 0, GCI_IN}, 1, "no such buffer"},
		/* offset + length wraps around to something small */
		{0, GCI_SEND, {UINT64_MAX, 2, GCI_IN}, {0, 0, GCI_IN}, 1, "is out of bounds"},
		{0, GCI_SEND, {2, UINT64_MAX, GCI_IN}, {0, 0, GCI_IN}, 1, "is out of bounds"},
		{1, GCI_RECV, {0, 0, GCI_IN}, {UINT64_MAX - 4, 10, GCI_OUT}, 0, "is out of bounds"},
		{1, GCI_RECV, {0, 0, GCI_IN}, {1, 10, GCI_OUT}, 0, "OUT[1 +10] is out of bounds"},
		{1, GCI_RECV, {0, 0, GCI_IN}, {0, 0, GCI_IN}, 0, "writes to IN"},
		{1, GCI_COPY, {0, 4, GCI_OUT}, {5, 5, GCI_OUT}, -1, "differ in length"},
		{1, GCI_REDUCE, {0, 4, GCI_OUT}, {5, 5, GCI_OUT}, -1, "differ in length"},
		{1, GCI_RECV_REDUCE, {0, 4, GCI_OUT}, {0, 10, GCI_OUT}, 0, "differ in length"},
		{1, GCI_RECV_REDUCE, {9, 10, GCI_OUT}, {0, 10, GCI_OUT}, 0, "is out of bounds"},
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
		(struct gci_step){.kind = GCI_SEND, .peer = 1, .tag = 7, .src = IN(0, 10)};
	assert_fine(&x);
	x.s[1].steps[0] =
		(struct gci_step){.kind = GCI_SEND, .peer = 0, .tag = 7, .src = OUT(0, 10)};
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

/* ---- races */

/* Takes away the edge of `step` to `earlier`. */
static void drop_edge(struct gci_sched *s, uint32_t step, uint32_t earlier)
{
	uint32_t i = 0;

	while (s->deps[s->steps[step].deps + i] != earlier)
		assert_true(++i < s->steps[step].ndeps);
	sched_drop_dep(s, step, i);
}

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
		(struct gci_step){.kind = GCI_COPY, .src = OUT(9, 1), .dst = TMP(0, 1)});
	assert_fine(&x);
	drop_edge(&x.s[1], 1, 0);
	assert_fault(&x, GCI_FAULT_RACE, "rank 1 step 1 COPY", "reads OUT[9..10)");
	x.s[1].steps[1].kind = GCI_REDUCE;
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
	sched_insert(s, 0, (struct gci_step){.kind = GCI_COPY, .src = OUT(0, 1), .dst = TMP(0, 1)});
	s->tmp_len = 1;
	drop_edge(s, 2, 0);
	assert_fine(&x);
	drop_edge(s, 2, 1);
	assert_fault(&x, GCI_FAULT_RACE, "rank 1 step 2 SEND", "reads OUT[0..1)");
	scheds_free(&x);
}

static void operands_that_overlap_in_part(void **state)
{
	static const enum gci_step_kind kinds[] = {GCI_COPY, GCI_REDUCE};
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
		(struct gci_step){.kind = GCI_COPY, .src = OUT(10, 0), .dst = OUT(4, 0)});
	drop_edge(&x.s[1], 1, 0);
	assert_fine(&x);
	x.s[1].steps[1].kind = GCI_REDUCE;
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
		if (x.s[1].steps[step].kind == GCI_SEND && x.s[1].steps[step].ndeps) {
			sched_drop_dep(&x.s[1], step, 0);
			dropped = 1;
		}
	assert_true(dropped);
	assert_fault(&x, GCI_FAULT_RACE, "rank 1 step", "SEND: reads OUT");
	scheds_free(&x);
}

/* ---- deadlock */

static const struct gci_slice nothing = {0, 0, GCI_OUT};

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
		(struct gci_step){.kind = GCI_COPY, .src = TMP(0, 1), .dst = TMP(2, 1)});
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
	x.s[0].steps[1].kind = GCI_RECV;
	assert_fault(&x, GCI_FAULT_RESULT, "rank 0", "OUT[0] lacks rank 0's contribution");
	x.s[0].steps[1].kind = GCI_RECV_REDUCE;
	x.s[0].steps[0].kind = GCI_RECV;
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

static void counted_twice(void **state)
{
	struct scheds x;
	struct gci_step again;

	(void)state;
	make_star(&x); /* directly */
	again = (struct gci_step){.kind = GCI_REDUCE, .src = IN(0, 10), .dst = OUT(0, 10)};
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
	assert_built_fault(&x, GCI_FAULT_BITS, "rank 2", "OUT[0..10) is reduced in another order");
	make_all_to_all(&x, 1, 0); /* (1+0)+2: the bits of a minimum may differ */
	assert_built_fault(&x, GCI_FAULT_BITS, "rank 2", "another order than on rank 0");
	make_all_to_all(&x, 1, 1); /* swapped once more */
	assert_built_fine(&x);
	make_all_to_all(&x, 0, 1);
	assert_built_fault(&x, GCI_FAULT_BITS, "rank 2", "another order than on rank 0");
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
	assert_fault(&x, GCI_FAULT_BITS, "rank 1", "OUT[5..10) is reduced in another order");
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

static void too_large_to_prove(void **state)
{
	struct scheds x;
	uint32_t i;

	(void)state;
	scheds_begin(&x, GCI_ALLREDUCE, (int[]){1, 0}, 1);
	for (i = 0; i < GCI_VERIFY_MAX_STEPS; i++)
		gci_copy(&x.b[0], OUT(0, 1), IN(0, 1));
	gci_copy(&x.b[0], OUT(0, 1), IN(0, 1));
	assert_built_fault(&x, GCI_FAULT_LIMIT, "rank 0", "32769 steps, more than 32768");
}

/* ---- sizes */

/* The first of rank `r`'s steps that is of this kind. */
static struct gci_step *first_of(struct scheds *x, int r, enum gci_step_kind kind)
{
	uint32_t i = 0;

	while (x->s[r].steps[i].kind != kind)
		assert_true(++i < x->s[r].nsteps);
	return &x->s[r].steps[i];
}

/* Sets of ranks take more than one word. */
static void more_ranks_than_bits(void **state)
{
	static const int sizes[] = {70, 65, 0};
	const struct gci_algorithm *a;
	struct scheds x;

	(void)state;
	for (a = gci_algorithms; a->name; a++) {
		emit(&x, a->kind, a->name, sizes);
		scheds_free(&x);
	}
	emit(&x, GCI_ALLREDUCE, "two-tier", sizes);
	first_of(&x, 70, GCI_RECV_REDUCE)->kind = GCI_RECV; /* loses its own */
	assert_fault(&x, GCI_FAULT_RESULT, "rank 0", "lacks rank 70's contribution");
	scheds_free(&x);
	emit(&x, GCI_ALLREDUCE, "two-tier", sizes);
	sched_insert(&x.s[70], x.s[70].nsteps - 1,
		(struct gci_step){.kind = GCI_REDUCE, .src = IN(0, 1), .dst = OUT(0, 1)});
	assert_fault(&x, GCI_FAULT_RACE, "rank 70 step", "REDUCE");
	scheds_free(&x);
	emit(&x, GCI_BARRIER, "clusters", sizes);
	assert_int_equal(x.s[134].nsteps, 2);
	sched_drop_dep(&x.s[0], (uint32_t)(first_of(&x, 0, GCI_SEND) - x.s[0].steps), 0);
	assert_fault(&x, GCI_FAULT_BARRIER, "rank 70 can leave before rank", "has come");
	scheds_free(&x);
}

static void lack_of_memory(void **state)
{
	static const struct {
		enum gci_kind kind;
		const char *name;
	} sets[] = {{GCI_BCAST, "vandegeijn-mod"}, {GCI_ALLREDUCE, "rabenseifner-mod"},
		{GCI_ALLREDUCE, "two-tier"}, {GCI_BARRIER, "clusters"}};
	struct scheds x;
	unsigned long n;
	size_t i;
	int rc;

	(void)state;
	for (i = 0; i < sizeof(sets) / sizeof(*sets); i++) {
		emit(&x, sets[i].kind, sets[i].name, (int[]){4, 3, 0});
		for (n = 1, rc = -1; rc; n++) {
			gci_mem_fail_at(n);
			rc = scheds_verify(&x);
			if (!gci_mem_failed())
				break;
			assert_int_equal(rc, GCOLL_ERR_NOMEM);
			assert_int_equal(x.report.fault, GCI_FAULT_LIMIT);
			assert_string_equal(x.e.text, "out of memory");
		}
		gci_mem_fail_at(0);
		assert_int_equal(rc, 0);
		assert_true(n > 20);
		scheds_free(&x);
	}
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
		cmocka_unit_test(read_without_order_to_write),
		cmocka_unit_test(write_without_order_to_read),
		cmocka_unit_test(write_without_order_to_write),
		cmocka_unit_test(order_by_way_of_others_does_not_count),
		cmocka_unit_test(order_is_transitive),
		cmocka_unit_test(operands_that_overlap_in_part),
		cmocka_unit_test(nothing_races_with_nothing),
		cmocka_unit_test(race_in_a_real_schedule),
		cmocka_unit_test(rendezvous),
		cmocka_unit_test(order_that_needs_buffering),
		cmocka_unit_test(cycle_in_a_real_schedule),
		cmocka_unit_test(undefined_reads),
		cmocka_unit_test(in_place_is_defined),
		cmocka_unit_test(bcast_results),
		cmocka_unit_test(allreduce_lacks_one),
		cmocka_unit_test(counted_twice),
		cmocka_unit_test(different_offsets),
		cmocka_unit_test(different_bits),
		cmocka_unit_test(order_may_differ_between_elements),
		cmocka_unit_test(barrier_without_an_edge),
		cmocka_unit_test(a_send_proves_nothing),
		cmocka_unit_test(too_many_senders),
		cmocka_unit_test(too_large_to_prove),
		cmocka_unit_test(more_ranks_than_bits),
		cmocka_unit_test(lack_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
