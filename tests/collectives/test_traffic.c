/* SPDX-License-Identifier: MIT
 * What algorithms send is what their papers say: counted in the verifier's report. */
#include "tests/test.h"

#include "testing/verify.h"
#include "tests/collectives/topologies.h"

/* Each byte over each WAN link once, each NIC each byte once each way; the root and who follows it put out a little more. */
static void a_packed_bcast_is_at_its_bounds(void **state)
{
	const struct gci_algorithm *a = gci_algorithm_find(GCI_BCAST, "packed");
	struct gci_sched scheds[16];
	const struct gci_sched *list[16] = {NULL};
	struct gci_verify_report report;
	struct gci_error e = {0};
	struct gci_topo t;
	struct gci_coll c = {.kind = GCI_BCAST, .topo = &t, .count = 8 << 20, .esize = 4};
	int r;

	(void)state;
	topology_make(&t, (int[]){8, 8, 0}, 0, 10);
	for (r = 0; r < 16; r++) {
		assert_int_equal(gci_emit(a, &c, r, &scheds[r]), 0);
		list[r] = &scheds[r];
	}
	assert_int_equal(gci_verify(list, &c, 0, &report, &e), 0);
	assert_true(report.wan_elements == c.count);
	assert_in_range(report.most_out, c.count, c.count + c.count / 4);
	assert_true(report.most_in == c.count);
	for (r = 0; r < 16; r++)
		gci_sched_free(&scheds[r]);
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

/* A fixed order costs no volume: no rank sends or takes in more than with recursive halving, and
 * over the WAN go no more than the clusters' results. */
static void fixed_order_traffic(void **state)
{
	static const struct {
		enum gci_kind kind;
		const char *name;
		uint64_t out, wan; /* sixteenths of the vector */
	} rows[] = {
		{GCI_REDUCE_SCATTER, "clusters", 15, 16},
		{GCI_REDUCE_SCATTER, "ordered", 15, 16},
		{GCI_REDUCE, "ordered-mod", 2 * 14 + 2, 16},
		{GCI_ALLREDUCE, "ordered-mod", 2 * 14 + 2, 32},
	};
	const uint64_t total = 8 << 20;
	struct gci_sched scheds[16];
	const struct gci_sched *list[16] = {NULL};
	struct gci_verify_report report;
	struct gci_error e = {0};
	struct gci_topo t;
	size_t i;
	int r;

	(void)state;
	topology_make(&t, (int[]){8, 8, 0}, 0, 10);
	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct gci_algorithm *a = gci_algorithm_find(rows[i].kind, rows[i].name);
		struct gci_coll c = {.kind = rows[i].kind,
			.topo = &t,
			.count = rows[i].kind == GCI_REDUCE_SCATTER ? total / 16 : total,
			.esize = 4,
			.senders = 8,
			.order = GCI_CLUSTER_ORDER};

		for (r = 0; r < 16; r++) {
			assert_int_equal(gci_emit(a, &c, r, &scheds[r]), 0);
			list[r] = &scheds[r];
		}
		assert_int_equal(gci_verify(list, &c, 0, &report, &e), 0);
		assert_true(report.most_out <= total / 16 * rows[i].out);
		assert_true(report.most_in <= total / 16 * rows[i].out);
		assert_true(report.wan_elements == total / 16 * rows[i].wan);
		for (r = 0; r < 16; r++)
			gci_sched_free(&scheds[r]);
	}
	gci_topo_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_packed_bcast_is_at_its_bounds),
		cmocka_unit_test(modified_rabenseifner_traffic),
		cmocka_unit_test(fixed_order_traffic),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
