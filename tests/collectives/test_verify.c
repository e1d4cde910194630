/* SPDX-License-Identifier: MIT
 * The verifier as a whole: sizes, and lack of memory. Broken schedules are in the tests of its
 * passes. */
#include "tests/collectives/verify_cases.h"

#include "base/mem.h"

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
	const struct gci_step *p;
	struct scheds x;

	(void)state;
	gci_each_algorithm (a) {
		if (a != gci_algorithm_find(a->kind, NULL))
			continue; /* test_algorithms has all of them on up to 67 ranks */
		emit(&x, a->kind, a->name, sizes);
		scheds_free(&x);
	}
	emit(&x, GCI_ALLREDUCE, "two-tier", sizes);
	first_of(&x, 70, GCI_STEP_RECV_REDUCE)->kind = GCI_STEP_RECV; /* loses its own */
	assert_fault(&x, GCI_FAULT_RESULT, "rank 0", "lacks rank 70's contribution");
	scheds_free(&x);
	emit(&x, GCI_ALLREDUCE, "two-tier", sizes);
	p = first_of(&x, 70, GCI_STEP_RECV_REDUCE);
	sched_insert(&x.s[70], (uint32_t)(p - x.s[70].steps),
		(struct gci_step){.kind = GCI_STEP_REDUCE, .src = p->src, .dst = p->dst});
	assert_fault(&x, GCI_FAULT_TWICE, "rank 70 step", "rank 70's contribution twice");
	scheds_free(&x);
	emit(&x, GCI_BARRIER, "clusters", sizes);
	assert_int_equal(x.s[134].nsteps, 2);
	sched_drop_dep(&x.s[0], (uint32_t)(first_of(&x, 0, GCI_STEP_SEND) - x.s[0].steps), 0);
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
		cmocka_unit_test(too_large_to_prove),
		cmocka_unit_test(more_ranks_than_bits),
		cmocka_unit_test(lack_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
