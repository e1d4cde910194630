/* SPDX-License-Identifier: MIT
 * The verifier and fixed orders of reduction: one tree is right, and only where it was asked for.
 */
#include "tests/collectives/verify_cases.h"

/* What `other` has is taken in by `lead`; `swapped`: as the left operand. */
struct step {
	int lead, other, swapped;
};

/* A reduce to rank 0 by these joins, ended by one of a rank with itself. */
static void make_reduce(
	struct scheds *x, enum gci_order order, const int *sizes, int mixed, const struct step *j)
{
	struct gci_coll c = {.kind = GCI_REDUCE, .count = 10, .esize = 4, .order = order};
	int has_some[8] = {0};

	scheds_begin_with(x, &c, sizes, mixed);
	for (; j->lead != j->other; j++) {
		struct gci_slice acc = j->lead ? TMP(0, 10) : OUT(0, 10);

		x->b[j->lead].tmp_len = j->lead ? 10 : 0;
		gci_send(&x->b[j->other], j->lead, 0, has_some[j->other] ? TMP(0, 10) : IN(0, 10));
		gci_recv_reduce(&x->b[j->lead], j->other, 0, acc,
			has_some[j->lead] ? acc : IN(0, 10), j->swapped);
		has_some[j->lead] = 1;
	}
}

#define END             \
	{               \
		0, 0, 0 \
	}

static const struct step by_halves[] = {{0, 1, 0}, {2, 3, 0}, {0, 2, 0}, END};
static const struct step one_by_one[] = {{0, 1, 0}, {0, 2, 0}, {0, 3, 0}, END};
static const struct step swapped_leaves[] = {{0, 1, 1}, {2, 3, 0}, {0, 2, 0}, END};
static const struct step swapped_root[] = {{0, 1, 0}, {2, 3, 0}, {0, 2, 1}, END};
static const struct step even_and_odd[] = {{0, 2, 0}, {1, 3, 0}, {0, 1, 0}, END};

static void assert_order(
	enum gci_order order, const int *sizes, int mixed, const struct step *j, int right)
{
	struct scheds x;

	make_reduce(&x, order, sizes, mixed, j);
	if (right)
		assert_built_fine(&x);
	else
		assert_built_fault(&x, GCI_FAULT_BITS, "rank 0: OUT[0..10)",
			"is not reduced in the fixed order");
}

static void one_cluster(void **state)
{
	static const int sizes[] = {4, 0};
	static const struct step *const wrong[] = {
		one_by_one, swapped_leaves, swapped_root, even_and_odd};
	size_t i;

	(void)state;
	assert_order(GCI_CLUSTER_ORDER, sizes, 0, by_halves, 1);
	assert_order(GCI_RANK_ORDER, sizes, 0, by_halves, 1);
	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		assert_order(GCI_ANY_ORDER, sizes, 0, wrong[i], 1);
		assert_order(GCI_CLUSTER_ORDER, sizes, 0, wrong[i], 0);
		assert_order(GCI_RANK_ORDER, sizes, 0, wrong[i], 0);
	}
}

/* Who does the work does not matter, which tree it makes does. */
static void leaders_are_free(void **state)
{
	static const struct step three_leads[] = {{0, 1, 0}, {3, 2, 1}, {0, 3, 0}, END};
	static const struct step from_the_right[] = {{2, 3, 0}, {1, 2, 0}, {0, 1, 0}, END};

	(void)state;
	assert_order(GCI_CLUSTER_ORDER, (int[]){4, 0}, 0, three_leads, 1);
	assert_order(GCI_CLUSTER_ORDER, (int[]){4, 0}, 0, from_the_right, 0);
}

/* The first half is the larger one. */
static void odd_numbers(void **state)
{
	static const struct step larger_first[] = {{0, 1, 0}, {0, 2, 0}, END};
	static const struct step larger_last[] = {{1, 2, 0}, {0, 1, 0}, END};
	static const struct step five[] = {{0, 1, 0}, {0, 2, 0}, {3, 4, 0}, {0, 3, 0}, END};
	static const struct step five_wrong[] = {{0, 1, 0}, {2, 3, 0}, {2, 4, 0}, {0, 2, 0}, END};

	(void)state;
	assert_order(GCI_CLUSTER_ORDER, (int[]){3, 0}, 0, larger_first, 1);
	assert_order(GCI_CLUSTER_ORDER, (int[]){3, 0}, 0, larger_last, 0);
	assert_order(GCI_CLUSTER_ORDER, (int[]){5, 0}, 0, five, 1);
	assert_order(GCI_CLUSTER_ORDER, (int[]){5, 0}, 0, five_wrong, 0);
	/* Each cluster's result is made first: 3 and 2 are the halves of 5, 2 and 3 are not. */
	assert_order(GCI_CLUSTER_ORDER, (int[]){3, 2, 0}, 0, five, 1);
	assert_order(GCI_RANK_ORDER, (int[]){3, 2, 0}, 0, five, 1);
	assert_order(GCI_CLUSTER_ORDER, (int[]){2, 3, 0}, 0, five, 0);
	assert_order(GCI_CLUSTER_ORDER, (int[]){2, 3, 0}, 0, five_wrong, 1);
}

/* Ranks 0 and 2 are one cluster, 1 and 3 the other. */
static void mixed_clusters(void **state)
{
	static const int sizes[] = {2, 2, 0};

	(void)state;
	assert_order(GCI_CLUSTER_ORDER, sizes, 1, even_and_odd, 1);
	assert_order(GCI_CLUSTER_ORDER, sizes, 1, by_halves, 0);
	assert_order(GCI_RANK_ORDER, sizes, 1, by_halves, 1);
	assert_order(GCI_RANK_ORDER, sizes, 1, even_and_odd, 0);
	assert_order(GCI_ANY_ORDER, sizes, 1, even_and_odd, 1);
	assert_order(GCI_ANY_ORDER, sizes, 1, by_halves, 1);
}

/* One element out of order is found. */
static void a_part_of_the_vector(void **state)
{
	struct gci_coll c = {
		.kind = GCI_REDUCE, .count = 10, .esize = 4, .order = GCI_CLUSTER_ORDER};
	struct scheds x;

	(void)state;
	scheds_begin_with(&x, &c, (int[]){2, 0}, 0);
	gci_send(&x.b[1], 0, 0, IN(0, 9));
	gci_send(&x.b[1], 0, 1, IN(9, 1));
	gci_recv_reduce(&x.b[0], 1, 0, OUT(0, 9), IN(0, 9), 0);
	gci_recv_reduce(&x.b[0], 1, 1, OUT(9, 1), IN(9, 1), 0);
	scheds_end(&x);
	assert_fine(&x);
	x.s[0].steps[1].swapped = 1;
	assert_fault(&x, GCI_FAULT_BITS, "rank 0: OUT[9..10)", "not reduced in the fixed order");
	x.c.order = GCI_ANY_ORDER;
	assert_fine(&x);
	scheds_free(&x);
}

/* The same result on all ranks is not enough where an order is asked for. */
static void allreduce_and_reduce_scatter(void **state)
{
	struct scheds x;

	(void)state;
	make_star(&x); /* (0 1) 2 */
	x.c.order = GCI_CLUSTER_ORDER;
	assert_fine(&x);
	x.s[0].steps[1].swapped = 1;
	assert_fault(&x, GCI_FAULT_BITS, "rank 0", "not reduced in the fixed order");
	x.c.order = GCI_ANY_ORDER;
	assert_fine(&x);
	scheds_free(&x);

	scheds_begin(&x, GCI_REDUCE_SCATTER, (int[]){2, 0}, 5);
	gci_send(&x.b[0], 1, 0, IN(5, 5));
	gci_send(&x.b[1], 0, 0, IN(0, 5));
	gci_recv_reduce(&x.b[0], 1, 0, OUT(0, 5), IN(0, 5), 0);
	gci_recv_reduce(&x.b[1], 0, 0, OUT(0, 5), IN(5, 5), 0);
	scheds_end(&x);
	assert_fine(&x);
	x.c.order = GCI_RANK_ORDER;
	assert_fault(&x, GCI_FAULT_BITS, "rank 1: OUT[0..5)", "not reduced in the fixed order");
	x.s[1].steps[1].swapped = 1;
	assert_fine(&x);
	scheds_free(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_cluster),
		cmocka_unit_test(leaders_are_free),
		cmocka_unit_test(odd_numbers),
		cmocka_unit_test(mixed_clusters),
		cmocka_unit_test(a_part_of_the_vector),
		cmocka_unit_test(allreduce_and_reduce_scatter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
