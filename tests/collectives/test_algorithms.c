/* SPDX-License-Identifier: MIT
 * Every algorithm of the registry through the verifier: all numbers of ranks, clusters of all
 * sizes, roots, counts, parameters. A new algorithm is covered by its line in the registry. Which
 * cases are proved in one run is told in prove.h. */
#include "tests/test.h"

#include "base/mem.h"
#include "collectives/planner/packed.h"
#include "tests/collectives/prove.h"
#include "tests/collectives/topologies.h"

#define MOST_RANKS 67

static void prove_sizes(const int *sizes, int shuffle, int all_roots)
{
	const struct gci_algorithm *a;
	struct gci_topo t;

	topology_make(&t, sizes, shuffle, 3);
	gci_each_algorithm (a)
		if (!prove_left_out(a))
			prove_topology(a, &t, all_roots);
	gci_topo_free(&t);
}

static void one_cluster(void **state)
{
	int p;

	(void)state;
	for (p = 1; p <= MOST_RANKS; p++)
		prove_sizes((int[]){p, 0}, 0, p <= 5);
}

static void two_equal_clusters(void **state)
{
	int h;

	(void)state;
	for (h = 1; 2 * h <= MOST_RANKS; h++)
		prove_sizes((int[]){h, h, 0}, h & 1, h <= 3);
}

static void two_unequal_clusters(void **state)
{
	int a, b;

	(void)state;
	for (a = 1; a <= 9; a++)
		for (b = 1; b <= 9; b += 1 + (a > 4))
			if (a != b)
				prove_sizes((int[]){a, b, 0}, (a + b) & 1, a + b <= 5);
	prove_sizes((int[]){31, 2, 0}, 0, 0);
	prove_sizes((int[]){1, 32, 0}, 1, 0);
	prove_sizes((int[]){50, 17, 0}, 1, 0);
}

/* p ranks in n clusters, no two clusters alike if it can be helped. */
static void split(int p, int n, int *sizes)
{
	int i, left = p - n;

	for (i = 0; i < n; i++) {
		int more = i + 1 < n ? left * (2 + (p + i) % 3) / 5 : left;

		sizes[i] = 1 + more;
		left -= more;
	}
	sizes[n] = 0;
}

static void more_clusters(void **state)
{
	int sizes[6], p, n;

	(void)state;
	prove_sizes((int[]){1, 1, 1, 0}, 0, 1);
	prove_sizes((int[]){3, 1, 2, 0}, 1, 1);
	prove_sizes((int[]){4, 4, 4, 4, 0}, 0, 0);
	prove_sizes((int[]){5, 3, 1, 7, 2, 0}, 1, 0);
	for (p = 3; p <= MOST_RANKS; p++)
		for (n = 3; n <= 5 && n <= p; n++) {
			split(p, n, sizes);
			prove_sizes(sizes, p & 1, 0);
		}
}

static void everything_is_covered(void **state)
{
	(void)state;
	prove_coverage(MOST_RANKS);
}

static void every_kind_has_a_default(void **state)
{
	int k;

	(void)state;
	for (k = 0; k < GCI_NKINDS; k++) {
		assert_non_null(gci_algorithm_find((enum gci_kind)k, NULL));
		assert_null(gci_algorithm_find((enum gci_kind)k, "no such name"));
	}
}

/* Every allocation of emitting and proving fails once, and nothing worse happens. */
static void lack_of_memory(void **state)
{
	struct gci_sched scheds[5] = {{0}};
	const struct gci_sched *list[5] = {NULL};
	const struct gci_algorithm *a;
	struct gci_topo t;
	unsigned long n;
	int r, rc = -1;

	(void)state;
	topology_make(&t, (int[]){3, 2, 0}, 0, 3);
	gci_each_algorithm (a) {
		if (prove_left_out(a))
			continue;
		struct gci_coll c = {
			.kind = a->kind, .topo = &t, .count = 100, .esize = 4, .segment = 30};
		struct gci_packed *packed = NULL; /* lacks memory in test_pack.c */

		if (a->traits & GCI_PACKS)
			assert_int_equal(gci_packed_make(&packed, &c, 0), 0);
		c.packed = packed;
		for (n = 1, rc = -1; rc; n++) {
			struct gci_error e = {0};

			gci_mem_fail_at(n);
			for (r = 0, rc = 0; r < 5 && !rc; r++) {
				rc = gci_emit(a, &c, r, &scheds[r]);
				list[r] = &scheds[r];
			}
			if (!rc)
				rc = gci_verify(list, &c, 0, NULL, &e);
			assert_true(rc == 0 || rc == GCOLL_ERR_NOMEM);
			assert_int_equal(!rc, !gci_mem_failed());
			for (r = 0; r < 5; r++)
				gci_sched_free(&scheds[r]);
		}
		gci_mem_fail_at(0);
		gci_packed_free(packed);
	}
	gci_topo_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_has_a_default),
		cmocka_unit_test(one_cluster),
		cmocka_unit_test(two_equal_clusters),
		cmocka_unit_test(two_unequal_clusters),
		cmocka_unit_test(more_clusters),
		cmocka_unit_test(everything_is_covered),
		cmocka_unit_test(lack_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
