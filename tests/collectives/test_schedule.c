/* SPDX-License-Identifier: MIT */
#include "tests/test.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/prng.h"
#include "tests/collectives/scheds.h"

#include <string.h>

#define IN(offset, length)  gci_slice(GCI_IN, offset, length)
#define OUT(offset, length) gci_slice(GCI_OUT, offset, length)
#define TMP(offset, length) gci_slice(GCI_TMP, offset, length)

/* Ends the builder and compares what is printed. */
static void assert_prints(struct gci_builder *b, const char *text)
{
	struct gci_buf out = {0};
	struct gci_sched s;

	assert_int_equal(gci_builder_end(b, &s), 0);
	gci_sched_print(&s, &out);
	assert_string_equal(gci_buf_cstr(&out), text);
	gci_buf_free(&out);
	gci_sched_free(&s);
}

static void printed(void **state)
{
	struct gci_builder b;

	(void)state;
	gci_builder_init(&b, 3, 16);
	b.in_len = 1ull << 40;
	b.out_len = 2048;
	b.tmp_len = 7;
	gci_recv(&b, 5, 0x01000000, OUT(0, 1024));
	gci_send(&b, 4, 1, OUT(0, 512));
	gci_send(&b, 4, 0xffffffff, IN(1ull << 39, 1ull << 39));
	gci_not_before(&b, 1500000);
	gci_recv_reduce(&b, 0, 2, OUT(0, 7), OUT(0, 7), 0);
	gci_recv_reduce(&b, 0, 3, TMP(0, 7), OUT(0, 7), 1);
	gci_copy(&b, OUT(1024, 7), TMP(0, 7));
	gci_reduce(&b, OUT(0, 7), TMP(0, 7), 0);
	gci_reduce(&b, OUT(0, 7), IN(0, 7), 1);
	assert_prints(&b,
		"rank 3 of 16: IN 1099511627776, OUT 2048, TMP 7 elements\n"
		"0: RECV 5 tag 0x01000000 OUT[0 +1024]\n"
		"1: SEND 4 tag 0x00000001 OUT[0 +512] after 0\n"
		"2: SEND 4 tag 0xffffffff IN[549755813888 +549755813888] from 1500 us on\n"
		"3: RECV_REDUCE 0 tag 0x00000002 OUT[0 +7] = OUT[0 +7] OP incoming after 0 1\n"
		"4: RECV_REDUCE 0 tag 0x00000003 TMP[0 +7] = incoming OP OUT[0 +7] after 3\n"
		"5: COPY OUT[1024 +7] = TMP[0 +7] after 4\n"
		"6: REDUCE OUT[0 +7] OP= TMP[0 +7] after 4 3\n"
		"7: REDUCE OUT[0 +7] =OP IN[0 +7] after 6\n");
}

/* Exactly the edges that are needed. */
static void derived_dependencies(void **state)
{
	struct gci_builder b;

	(void)state;
	gci_builder_init(&b, 0, 2);
	b.in_len = b.out_len = b.tmp_len = 100;
	gci_send(&b, 1, 0, IN(0, 100));     /* 0: readers of IN need no order */
	gci_send(&b, 1, 1, IN(0, 100));     /* 1 */
	gci_recv(&b, 1, 0, OUT(0, 50));     /* 2 */
	gci_recv(&b, 1, 1, OUT(50, 50));    /* 3: apart from 2 */
	gci_send(&b, 1, 2, OUT(49, 1));     /* 4: 2 only */
	gci_send(&b, 1, 3, OUT(49, 2));     /* 5: 2 and 3, not 4, which reads too */
	gci_copy(&b, OUT(49, 1), IN(0, 1)); /* 6: after its readers; 2 comes before those */
	gci_copy(&b, OUT(51, 1), IN(0, 1)); /* 7: 3, as nobody has read */
	gci_copy(&b, OUT(49, 1), IN(0, 1)); /* 8: 6, nobody has read since */
	gci_send(&b, 1, 4, TMP(0, 1));   /* 9: nobody has written; no edge, the verifier's case */
	gci_recv(&b, 1, 2, TMP(0, 1));   /* 10: after its reader */
	gci_send(&b, 1, 5, OUT(0, 0));   /* 11: nothing waits for nothing */
	gci_send(&b, 1, 6, OUT(0, 100)); /* 12: once each: 2, 8, 3, 7 */
	assert_prints(&b, "rank 0 of 2: IN 100, OUT 100, TMP 100 elements\n"
			  "0: SEND 1 tag 0x00000000 IN[0 +100]\n"
			  "1: SEND 1 tag 0x00000001 IN[0 +100]\n"
			  "2: RECV 1 tag 0x00000000 OUT[0 +50]\n"
			  "3: RECV 1 tag 0x00000001 OUT[50 +50]\n"
			  "4: SEND 1 tag 0x00000002 OUT[49 +1] after 2\n"
			  "5: SEND 1 tag 0x00000003 OUT[49 +2] after 2 3\n"
			  "6: COPY OUT[49 +1] = IN[0 +1] after 5 4\n"
			  "7: COPY OUT[51 +1] = IN[0 +1] after 3\n"
			  "8: COPY OUT[49 +1] = IN[0 +1] after 6\n"
			  "9: SEND 1 tag 0x00000004 TMP[0 +1]\n"
			  "10: RECV 1 tag 0x00000002 TMP[0 +1] after 9\n"
			  "11: SEND 1 tag 0x00000005 OUT[0 +0]\n"
			  "12: SEND 1 tag 0x00000006 OUT[0 +100] after 2 8 3 7\n");
}

static void fences(void **state)
{
	struct gci_builder b;
	uint32_t step;

	(void)state;
	gci_builder_init(&b, 0, 2);
	b.out_len = 10;
	step = gci_recv(&b, 1, 0, OUT(0, 1));
	gci_recv(&b, 1, 1, OUT(1, 1));
	gci_after(&b, step);
	gci_after(&b, step); /* said twice */
	gci_fence(&b, gci_recv(&b, 1, 2, OUT(2, 1)));
	gci_send(&b, 1, 0, OUT(2, 1)); /* by its slice, too */
	gci_after(&b, 1);
	gci_fence(&b, gci_send(&b, 1, 1, OUT(5, 0)));
	gci_send(&b, 1, 2, OUT(0, 1));
	assert_prints(&b, "rank 0 of 2: IN 0, OUT 10, TMP 0 elements\n"
			  "0: RECV 1 tag 0x00000000 OUT[0 +1]\n"
			  "1: RECV 1 tag 0x00000001 OUT[1 +1] after 0\n"
			  "2: RECV 1 tag 0x00000002 OUT[2 +1]\n"
			  "3: SEND 1 tag 0x00000000 OUT[2 +1] after 2 1\n"
			  "4: SEND 1 tag 0x00000001 OUT[5 +0] after 2\n"
			  "5: SEND 1 tag 0x00000002 OUT[0 +1] after 4 0\n");
}

/* Each step waits for the whole round before; by way of one step where that is a large one. */
static void rounds(void **state)
{
	struct gci_builder b;
	uint32_t i;

	(void)state;
	gci_builder_init(&b, 0, 2);
	b.out_len = 10;
	gci_round(&b);
	gci_recv(&b, 1, 0, OUT(0, 1));
	gci_recv(&b, 1, 1, OUT(1, 1));
	gci_round(&b);
	gci_round(&b);
	for (i = 0; i < 9; i++)
		gci_send(&b, 1, i, OUT(5, 0));
	gci_round(&b);
	gci_send(&b, 1, 9, OUT(0, 1));
	gci_send(&b, 1, 10, OUT(5, 0));
	gci_round(&b);
	gci_send(&b, 1, 11, OUT(5, 0));
	assert_prints(&b, "rank 0 of 2: IN 0, OUT 10, TMP 0 elements\n"
			  "0: RECV 1 tag 0x00000000 OUT[0 +1]\n"
			  "1: RECV 1 tag 0x00000001 OUT[1 +1]\n"
			  "2: SEND 1 tag 0x00000000 OUT[5 +0] after 0 1\n"
			  "3: SEND 1 tag 0x00000001 OUT[5 +0] after 0 1\n"
			  "4: SEND 1 tag 0x00000002 OUT[5 +0] after 0 1\n"
			  "5: SEND 1 tag 0x00000003 OUT[5 +0] after 0 1\n"
			  "6: SEND 1 tag 0x00000004 OUT[5 +0] after 0 1\n"
			  "7: SEND 1 tag 0x00000005 OUT[5 +0] after 0 1\n"
			  "8: SEND 1 tag 0x00000006 OUT[5 +0] after 0 1\n"
			  "9: SEND 1 tag 0x00000007 OUT[5 +0] after 0 1\n"
			  "10: SEND 1 tag 0x00000008 OUT[5 +0] after 0 1\n"
			  "11: COPY OUT[0 +0] = OUT[0 +0] after 0 1 2 3 4 5 6 7 8 9 10\n"
			  "12: SEND 1 tag 0x00000009 OUT[0 +1] after 11 0\n"
			  "13: SEND 1 tag 0x0000000a OUT[5 +0] after 11\n"
			  "14: SEND 1 tag 0x0000000b OUT[5 +0] after 12 13\n");
}

/* ---- random steps against the definition of a conflict */

#define NSTEPS 40
#define SPAN   12

static int overlap(const struct gci_slice *a, const struct gci_slice *b)
{
	return a->length && b->length && a->buffer == b->buffer &&
	       a->offset < b->offset + b->length && b->offset < a->offset + a->length;
}

static int writes(const struct gci_step *p, const struct gci_slice *s)
{
	return p->kind != GCI_STEP_SEND && overlap(&p->dst, s);
}

static int reads(const struct gci_step *p, const struct gci_slice *s)
{
	return (p->kind != GCI_STEP_RECV && overlap(&p->src, s)) ||
	       (p->kind == GCI_STEP_REDUCE && overlap(&p->dst, s));
}

static int conflict(const struct gci_step *a, const struct gci_step *b)
{
	return (a->kind != GCI_STEP_SEND && (writes(b, &a->dst) || reads(b, &a->dst))) ||
	       (b->kind != GCI_STEP_SEND && (writes(a, &b->dst) || reads(a, &b->dst)));
}

static struct gci_slice random_slice(struct gci_prng *prng, uint64_t length, int for_reading)
{
	return gci_slice((enum gci_buffer)(gci_prng_below(prng, 2) + !for_reading),
		gci_prng_below(prng, SPAN - length + 1), length);
}

static void add_random(struct gci_builder *b, struct gci_prng *prng, uint32_t tag)
{
	uint64_t length = gci_prng_below(prng, 5);
	struct gci_slice src = random_slice(prng, length, 1), dst = random_slice(prng, length, 0);

	switch (gci_prng_below(prng, 5)) {
	case 0:
		gci_send(b, 1, tag, src);
		break;
	case 1:
		gci_recv(b, 1, tag, dst);
		break;
	case 2:
		gci_recv_reduce(b, 1, tag, dst, src, 0);
		break;
	case 3:
		gci_copy(b, dst, src);
		break;
	default:
		gci_reduce(b, dst, src, 0);
	}
}

/* Every two conflicting steps have an order, and every edge has a conflict for its reason. */
static void check_edges(const struct gci_sched *s)
{
	char before[NSTEPS][NSTEPS] = {{0}};
	uint32_t i, k, j;

	for (i = 0; i < s->nsteps; i++) {
		for (k = 0; k < s->steps[i].ndeps; k++) {
			uint32_t d = s->deps[s->steps[i].deps + k];

			assert_true(d < i && conflict(&s->steps[d], &s->steps[i]));
			before[i][d] = 1;
			for (j = 0; j < d; j++)
				before[i][j] |= before[d][j];
		}
		for (j = 0; j < i; j++)
			if (conflict(&s->steps[j], &s->steps[i]))
				assert_true(before[i][j]);
	}
}

static void like_the_naive_one(void **state)
{
	struct gci_prng prng = {11};
	int run;
	uint32_t i;

	(void)state;
	for (run = 0; run < 500; run++) {
		struct gci_builder b;
		struct gci_sched s, again;

		gci_builder_init(&b, 0, 2);
		for (i = 0; i < NSTEPS; i++)
			add_random(&b, &prng, i);
		assert_int_equal(gci_builder_end(&b, &s), 0);
		check_edges(&s);
		sched_copy(&again, &s); /* forward edges the naive way */
		sched_relink(&again);
		assert_memory_equal(s.next_at, again.next_at, (NSTEPS + 1) * sizeof(*s.next_at));
		assert_memory_equal(s.next, again.next, s.next_at[NSTEPS] * sizeof(*s.next));
		gci_sched_free(&again);
		gci_sched_free(&s);
	}
}

/* ---- lack of memory */

static void lack_of_memory(void **state)
{
	unsigned long n;
	int failed = 1;
	uint32_t i;

	(void)state;
	for (n = 1; failed; n++) {
		struct gci_prng prng = {2};
		struct gci_builder b;
		struct gci_sched s;
		int rc;

		gci_mem_fail_at(n);
		gci_builder_init(&b, 0, 2);
		for (i = 0; i < 100; i++) {
			add_random(&b, &prng, i);
			gci_after(&b, i / 2);
			gci_fence(&b, i / 3);
		}
		rc = gci_builder_end(&b, &s);
		failed = gci_mem_failed();
		gci_mem_fail_at(0);
		assert_int_equal(rc, failed ? GCOLL_ERR_NOMEM : 0);
		assert_true(!failed || (!s.steps && !s.deps && !s.next && !s.nsteps));
		assert_null(b.steps);
		gci_sched_free(&s);
	}
	assert_true(n > 10);
}

static void a_builder_can_be_dropped(void **state)
{
	struct gci_builder b;

	(void)state;
	gci_builder_init(&b, 0, 2);
	gci_copy(&b, OUT(0, 5), IN(0, 5));
	gci_send(&b, 1, 0, OUT(0, 5));
	gci_builder_drop(&b);
	gci_builder_drop(&b);
	gci_builder_init(&b, 0, 2);
	assert_prints(&b, "rank 0 of 2: IN 0, OUT 0, TMP 0 elements\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(printed),
		cmocka_unit_test(derived_dependencies),
		cmocka_unit_test(fences),
		cmocka_unit_test(rounds),
		cmocka_unit_test(like_the_naive_one),
		cmocka_unit_test(lack_of_memory),
		cmocka_unit_test(a_builder_can_be_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
