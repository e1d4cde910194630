/* SPDX-License-Identifier: MIT */
#include "tests/collectives/verify_cases.h"

#include <string.h>

void assert_fine(struct scheds *x)
{
	if (scheds_verify(x))
		fail_msg("should be fine: %s", x->e.text);
	assert_int_equal(x->report.fault, GCI_FAULT_NONE);
}

void assert_fault(struct scheds *x, enum gci_fault fault, const char *where, const char *what)
{
	assert_int_equal(scheds_verify(x), GCOLL_ERR_VERIFY);
	if (x->report.fault != fault || !strstr(x->e.text, where) || !strstr(x->e.text, what))
		fail_msg("fault %d (%s), expected %d (%s ... %s)", x->report.fault, x->e.text,
			fault, where, what);
}

void assert_built_fault(struct scheds *x, enum gci_fault fault, const char *where, const char *what)
{
	scheds_end(x);
	assert_fault(x, fault, where, what);
	scheds_free(x);
}

void assert_built_fine(struct scheds *x)
{
	scheds_end(x);
	assert_fine(x);
	scheds_free(x);
}

void make_chain(struct scheds *x, int n)
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

void make_star(struct scheds *x)
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

void emit(struct scheds *x, enum gci_kind kind, const char *name, const int *sizes)
{
	struct gci_coll c = {.count = 24, .esize = 4};

	scheds_emit(x, gci_algorithm_find(kind, name), &c, sizes);
	assert_fine(x);
}

void drop_edge(struct gci_sched *s, uint32_t step, uint32_t earlier)
{
	uint32_t i = 0;

	while (s->deps[s->steps[step].deps + i] != earlier)
		assert_true(++i < s->steps[step].ndeps);
	sched_drop_dep(s, step, i);
}
