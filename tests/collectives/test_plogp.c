/* SPDX-License-Identifier: MIT
 * Parameterized LogP from measured curves, and MagPIe's formulas on them. */
#include "tests/test.h"

#include "collectives/models/magpie.h"

#define MIB (UINT64_C(1) << 20)
#define O   GCI_MESSAGE_COST_NS

/* Two clusters of two; cluster 0 of the grid has no ranks here. */
static void make_topo(struct gci_topo *t)
{
	static const char text[] = "[cluster z]\nhosts = z[1-3]\n"
				   "[cluster a]\nhosts = a[1-2]\nnic = 8Gbit\nlan_delay = 1us\n"
				   "[cluster b]\nhosts = b[1-2]\nnic = 8Gbit\nlan_delay = 1us\n"
				   "[link a b]\nrate = 800Mbit\ndelay = 5ms\n"
				   "[link z a]\ndelay = 1s\n[link z b]\ndelay = 1s\n";
	static const int host[] = {3, 4, 5, 6};
	struct gci_error e = {0};
	struct gci_grid g;

	if (gci_grid_parse(&g, text, sizeof(text) - 1, "made.grid", &e))
		fail_msg("%s", e.text);
	assert_int_equal(gci_topo_create(t, &g, host, 4), 0);
	gci_grid_free(&g);
}

/* A line from 0 bytes on. */
static void set_link(struct gci_params_link *l, struct gci_params_point *points,
	uint64_t latency_ns, uint64_t start_ns, uint64_t byte_ns, uint64_t os_ns)
{
	points[0] = (struct gci_params_point){0, os_ns, O, start_ns};
	points[1] = (struct gci_params_point){1000, os_ns, O, start_ns + 1000 * byte_ns};
	*l = (struct gci_params_link){.latency_ns = latency_ns, .points = points, .npoints = 2};
}

/* What is slowest for long messages counts, and the longest latency; of the clusters that have
 * ranks, and of links inside where there are two of them. */
static void measured(void **state)
{
	struct gci_params_link links[9] = {{0}};
	struct gci_params_point points[9][2];
	struct gci_params params = {.nclusters = 3, .links = links};
	struct gci_plogp_times l, w;
	struct gci_plogp p;
	struct gci_topo t;

	(void)state;
	make_topo(&t);
	p = gci_plogp_measured(&t, &params);
	w = gci_plogp_at(&p, GCI_WAN, 100000);
	assert_true(!p.wan && !p.lan && w.gap_ns == 1000000 + O && w.latency_ns == 5000000);
	set_link(&links[0], points[0], 9999, 1, 100, 7);     /* z: no ranks */
	set_link(&links[1], points[1], 9999999, 1, 1000, 7); /* z > a */
	set_link(&links[4], points[4], 2000, 500, 2, 7);
	set_link(&links[8], points[8], 1500, 100, 3, 7);
	set_link(&links[5], points[5], 6000000, 90000, 10, 8);
	set_link(&links[7], points[7], 4000000, 100, 20, 400000);
	p = gci_plogp_measured(&t, &params);
	assert_ptr_equal(p.lan, &links[8]);
	assert_ptr_equal(p.wan, &links[7]);
	l = gci_plogp_at(&p, GCI_LAN, 100000);
	w = gci_plogp_at(&p, GCI_WAN, 100000);
	assert_int_equal(l.gap_ns, 300100);
	assert_int_equal(l.recv_ns, 302100);
	assert_int_equal(l.os_ns, 7);
	assert_int_equal(w.gap_ns, 2000100);
	assert_int_equal(w.latency_ns, 6000000);
	assert_int_equal(w.send_ns, 400000); /* os, which is longer than the LAN's gap */
	assert_int_equal(gci_plogp_at(&p, GCI_WAN, 200000).send_ns, 600100);
	gci_topo_free(&t);
}

/* Curves like those that the grid alone gives make no difference. */
static void measured_as_described(void **state)
{
	static const enum gci_kind kinds[] = {GCI_BCAST, GCI_SCATTER, GCI_GATHER, GCI_ALLGATHER};
	struct gci_params_link links[9] = {{0}};
	struct gci_params_point points[9][2];
	struct gci_params params = {.nclusters = 3, .links = links};
	struct gci_magpie grid, curves;
	struct gci_plogp p;
	struct gci_topo t;
	size_t i;

	(void)state;
	make_topo(&t);
	set_link(&links[4], points[4], 1000, O, 1, O);
	set_link(&links[7], points[7], 5000000, O, 10, O);
	p = gci_plogp(&t);
	gci_magpie_init(&grid, &p);
	p = gci_plogp_measured(&t, &params);
	gci_magpie_init(&curves, &p);
	for (i = 0; i < 4; i++) {
		struct gci_coll c = {.kind = kinds[i], .topo = &t, .count = MIB, .esize = 1};

		assert_int_equal(gci_magpie_ns(&grid, &c), gci_magpie_ns(&curves, &c));
		c.kind = GCI_ALLTOALL;
		assert_true(gci_magpie_ns(&grid, &c) == UINT64_MAX);
		c.kind = kinds[i];
		points[7][1].gap_ns += 1000;
		assert_true(gci_magpie_ns(&grid, &c) < gci_magpie_ns(&curves, &c));
		points[7][1].gap_ns -= 1000;
	}
	gci_topo_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(measured),
		cmocka_unit_test(measured_as_described),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
