/* SPDX-License-Identifier: MIT
 * Every algorithm of the registry through the verifier: all sizes, roots, counts, parameters. A
 * new algorithm is covered by its line in the registry. While one is being written, GCI_ONLY=KIND
 * or GCI_ONLY=KIND:NAME in the environment leaves out the others. */
#include "tests/test.h"

#include "base/mem.h"
#include "collectives/verify.h"
#include "tests/collectives/topologies.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RANKS 80

static unsigned long proved;

static int left_out(const struct gci_algorithm *a)
{
	const char *only = getenv("GCI_ONLY"), *name = only ? strchr(only, ':') : NULL;
	size_t n = only ? (name ? (size_t)(name - only) : strlen(only)) : 0;

	if (!only)
		return 0;
	return strlen(gci_kind_name(a->kind)) != n || strncmp(gci_kind_name(a->kind), only, n) ||
	       (name && strcmp(name + 1, a->name));
}

static void prove(const struct gci_algorithm *a, const struct gci_coll *c)
{
	struct gci_sched scheds[MAX_RANKS];
	const struct gci_sched *list[MAX_RANKS] = {NULL};
	struct gci_verify_report report;
	struct gci_error e = {0};
	int r, n = c->topo->nranks;

	if (gci_ineligible(a, c))
		return;
	for (r = 0; r < n; r++) {
		assert_int_equal(gci_emit(a, c, r, &scheds[r]), 0);
		list[r] = &scheds[r];
	}
	if (gci_verify(list, c, (a->traits & GCI_CAPS_SENDERS) != 0, &report, &e))
		fail_msg("%s %s P=%d clusters=%d root=%d count=%" PRIu64 " segment=%" PRIu64
			 " senders=%u degree=%u in_place=%d order=%d stride=%" PRIu64
			 " counts=%d part=%u/%u: %s",
			gci_kind_name(a->kind), a->name, n, c->topo->nclusters, c->root, c->count,
			c->segment, c->senders, c->degree, c->in_place, (int)c->order, c->stride,
			c->counts != NULL, c->part, c->nparts, e.text);
	for (r = 0; r < n; r++)
		gci_sched_free(&scheds[r]);
	proved++;
}

static int has_blocks(enum gci_kind kind)
{
	return kind >= GCI_REDUCE_SCATTER && kind <= GCI_ALLTOALL;
}

static int has_root(enum gci_kind kind)
{
	return kind == GCI_BCAST || kind == GCI_REDUCE || kind == GCI_SCATTER || kind == GCI_GATHER;
}

static int reduces(enum gci_kind kind)
{
	return kind == GCI_REDUCE || kind == GCI_ALLREDUCE || kind == GCI_REDUCE_SCATTER;
}

/* In and out of place, and the orders of reduction. */
static void prove_variants(const struct gci_algorithm *a, struct gci_coll c)
{
	static const enum gci_order orders[] = {GCI_CLUSTER_ORDER, GCI_RANK_ORDER};
	int i;

	prove(a, &c);
	for (i = 0; i < 2 && reduces(a->kind); i++) {
		c.order = orders[i];
		prove(a, &c);
	}
	c.order = GCI_ANY_ORDER;
	c.in_place =
		a->kind != GCI_BCAST && a->kind != GCI_REDUCE_SCATTER && a->kind != GCI_BARRIER;
	if (c.in_place)
		prove(a, &c);
}

/* Blocks of different lengths, some of them empty, in whole and in parts. */
static void prove_counts(const struct gci_algorithm *a, struct gci_coll c)
{
	static uint64_t counts[MAX_RANKS * MAX_RANKS];
	int i, n = c.topo->nranks, nblocks = a->kind == GCI_ALLTOALL ? n * n : n;

	for (i = 0; i < nblocks; i++) /* alltoall in place: the same both ways */
		counts[i] = a->kind == GCI_ALLTOALL
				    ? (uint64_t)((i / n + 1) * (i % n + 1) * 7 % 5) * c.count
				    : (uint64_t)(i * 7 % 5) * c.count + (unsigned)i % 2;
	c.counts = counts;
	prove_variants(a, c);
	c.nparts = 3;
	c.part = 1;
	prove(a, &c);
}

/* All parameters of one algorithm on one topology. */
static void prove_parameters(
	const struct gci_algorithm *a, const struct gci_topo *t, uint64_t count, int root)
{
	static const uint32_t senders[] = {0, 1, 2, 3, 8};
	struct gci_coll c = {.kind = a->kind, .topo = t, .count = count, .esize = 4, .root = root};
	size_t i;

	for (i = 0; i < sizeof(senders) / sizeof(*senders); i++) {
		if (i && (!(a->traits & GCI_USES_SENDERS) || t->nclusters == 1))
			break;
		c.senders = senders[i];
		prove_variants(a, c);
		c.segment = a->traits & GCI_USES_SEGMENT ? count / 5 + 1 : 0;
		if (c.segment)
			prove_variants(a, c);
		c.segment = 0;
	}
	c.senders = 0;
	for (c.degree = 1; a->traits & GCI_USES_DEGREE && c.degree <= 5; c.degree += 2)
		prove(a, &c);
	c.degree = 0;
	if (!has_blocks(a->kind) || count > 1000)
		return;
	prove_counts(a, c);
	c.stride = count + 5; /* a window of longer blocks */
	prove_variants(a, c);
}

static void prove_topology(const int *sizes, int shuffle, int all_roots)
{
	const struct gci_algorithm *a;
	struct gci_topo t;
	int root, k;

	topology_make(&t, sizes, shuffle, 3);
	gci_each_algorithm (a) {
		uint64_t n = left_out(a) ? 0 : (uint64_t)t.nranks;
		/* Around the number of ranks, a prime, on granules, beyond 4 GiB. */
		uint64_t counts[] = {0, 1, n - 1, n, 997, 8 * 16384 * n + 3, (1ull << 33) + 7};

		for (root = 0; root < (int)n; root += all_roots ? 1 : (t.nranks + 2) / 3)
			for (k = 0; k < 7; k++) {
				if (!has_root(a->kind) && root)
					continue;
				/* Default segments of huge messages are too many to prove. */
				if (k == 6 && a->traits & GCI_USES_SEGMENT)
					continue;
				if (root % 3 && (k == 2 || k == 5))
					continue;
				prove_parameters(a, &t, counts[k], root);
			}
	}
	gci_topo_free(&t);
}

static void one_cluster(void **state)
{
	int p;

	(void)state;
	for (p = 1; p <= 33; p++)
		prove_topology((int[]){p, 0}, 0, p <= 5);
}

static void two_equal_clusters(void **state)
{
	int h;

	(void)state;
	for (h = 1; h <= 16; h++)
		prove_topology((int[]){h, h, 0}, h & 1, h <= 3);
}

static void two_unequal_clusters(void **state)
{
	int a, b;

	(void)state;
	for (a = 1; a <= 9; a++)
		for (b = 1; b <= 9; b += 1 + (a > 4))
			if (a != b)
				prove_topology((int[]){a, b, 0}, (a + b) & 1, a + b <= 5);
	prove_topology((int[]){31, 2, 0}, 0, 0);
	prove_topology((int[]){1, 32, 0}, 1, 0);
}

static void more_clusters(void **state)
{
	(void)state;
	prove_topology((int[]){1, 1, 1, 0}, 0, 1);
	prove_topology((int[]){3, 1, 2, 0}, 1, 1);
	prove_topology((int[]){4, 4, 4, 4, 0}, 0, 0);
	prove_topology((int[]){5, 3, 1, 7, 2, 0}, 1, 0);
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

/* The product's bcast: each byte over each WAN link once, each NIC each byte once each way. */
static void pipeline_is_at_its_bounds(void **state)
{
	const struct gci_algorithm *a = gci_algorithm_find(GCI_BCAST, "pipeline");
	struct gci_sched scheds[16];
	const struct gci_sched *list[16] = {NULL};
	struct gci_verify_report report;
	struct gci_error e = {0};
	struct gci_topo t;
	struct gci_coll c = {.kind = GCI_BCAST, .topo = &t, .count = 8 << 20, .esize = 4};
	int r;

	(void)state;
	topology_make(&t, (int[]){8, 8, 0}, 0, 10);
	for (c.senders = 1; c.senders <= 8; c.senders++) {
		for (r = 0; r < 16; r++) {
			assert_int_equal(gci_emit(a, &c, r, &scheds[r]), 0);
			list[r] = &scheds[r];
		}
		assert_int_equal(gci_verify(list, &c, 1, &report, &e), 0);
		assert_true(report.wan_elements == c.count);
		assert_true(report.most_out == c.count);
		assert_true(report.most_in == c.count);
		for (r = 0; r < 16; r++)
			gci_sched_free(&scheds[r]);
	}
	gci_topo_free(&t);
}

/* The modified Rabenseifner sends 2 (h-1)/h M and receives as much in its cluster, and moves its
 * share over the WAN once each way (Matsuda 2006, table 1). */
static void modified_rabenseifner_traffic(void **state)
{
	const struct gci_algorithm *a = gci_algorithm_find(GCI_ALLREDUCE, "rabenseifner-mod");
	struct gci_sched scheds[16];
	const struct gci_sched *list[16] = {NULL};
	struct gci_verify_report report;
	struct gci_error e = {0};
	struct gci_topo t;
	struct gci_coll c = {
		.kind = GCI_ALLREDUCE, .topo = &t, .count = 8 << 20, .esize = 4, .senders = 8};
	int r;

	(void)state;
	topology_make(&t, (int[]){8, 8, 0}, 0, 10);
	for (r = 0; r < 16; r++) {
		assert_int_equal(gci_emit(a, &c, r, &scheds[r]), 0);
		list[r] = &scheds[r];
	}
	assert_int_equal(gci_verify(list, &c, 1, &report, &e), 0);
	assert_true(report.wan_elements == 2 * c.count);
	assert_true(report.most_out == 2 * c.count / 8 * 7 + c.count / 8);
	for (r = 0; r < 16; r++)
		gci_sched_free(&scheds[r]);
	gci_topo_free(&t);
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
		struct gci_coll c = {
			.kind = a->kind, .topo = &t, .count = 100, .esize = 4, .segment = 30};

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
		cmocka_unit_test(pipeline_is_at_its_bounds),
		cmocka_unit_test(modified_rabenseifner_traffic),
		cmocka_unit_test(lack_of_memory),
	};
	int rc = cmocka_run_group_tests(tests, NULL, NULL);

	print_message("%lu sets of schedules proved\n", proved);
	return rc;
}
