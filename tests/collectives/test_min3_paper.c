/* SPDX-License-Identifier: MIT
 * Min3's paper: its pool trees, and times on its own grid. */
#include "tests/test.h"

#include "collectives/allgather/planner.h"
#include "collectives/coll.h"
#include "tests/collectives/nets.h"

#include <inttypes.h>

static void check_pool(
	const struct gci_pools *p, int i, int parent, int nchildren, int n, uint64_t threshold_bps)
{
	assert_int_equal(p->pool[i].parent, parent);
	assert_int_equal(p->pool[i].nchildren, nchildren);
	assert_int_equal(p->pool[i].n, n);
	assert_true(p->pool[i].threshold_bps == threshold_bps);
}

/* Figure 2: LANs A and B joined by 10 Mbit/s, C by 3 Mbit/s to both. Ranks are dealt out such that
 * LANs are mixed. */
static void pools_of_figure_2(void **state)
{
	static const int class_of[9] = {0, 1, 2, 2, 1, 0, 0, 2, 1}, lans[3] = {2, 0, 1};
	struct gci_wire path[9];
	struct gci_net net = {9, 3, (int *)class_of, path};
	struct gci_pools p;
	int a, b, i;

	(void)state;
	for (a = 0; a < 3; a++)
		for (b = 0; b < 3; b++) {
			uint64_t mbit = a == b ? 100 : a + b == 1 ? 10 : 3;

			path[a * 3 + b] = gci_path_of(mbit * 1000000, 100000000, 1000000, a != b);
		}
	assert_int_equal(gci_net_pools(&p, &net), 0);
	assert_int_equal(p.n, 5);
	check_pool(&p, 0, -1, 2, 9, 3000000);
	check_pool(&p, 1, 0, 2, 6, 10000000);
	check_pool(&p, 2, 0, 0, 3, 100000000);
	check_pool(&p, 3, 1, 0, 3, 100000000);
	check_pool(&p, 4, 1, 0, 3, 100000000);
	for (a = 0; a < 3; a++)
		for (i = 0; i < 3; i++)
			assert_int_equal(class_of[p.host[p.pool[2 + a].first + i]], lans[a]);
	gci_pools_free(&p);
}

/* Table 2: Europe is one pool, and the LANs of UT and NTH, 4 % apart, hold at one threshold. */
static void pools_of_table_2(void **state)
{
	struct gci_pools p;
	struct gci_net net;
	struct gci_topo t;

	(void)state;
	nets_paper(&net, &t);
	assert_int_equal(gci_net_pools(&p, &net), 0);
	assert_int_equal(p.n, 5);
	check_pool(&p, 0, -1, 2, 20, 1280000);
	check_pool(&p, 1, 0, 0, 8, 85190000);
	check_pool(&p, 2, 0, 2, 12, 4750000);
	check_pool(&p, 3, 2, 0, 4, 289330000);
	check_pool(&p, 4, 2, 0, 8, 85190000);
	gci_pools_free(&p);
	nets_free(&net, &t);
}

/* MagPIe's three phases in the model (Gupta 2007, 2): gather at the coordinators, a spreading
 * simple exchange of whole clusters between them, a binomial tree of all blocks in each cluster. */
static uint64_t magpie_ns(
	const struct gci_net *net, const struct gci_topo *t, const uint64_t *nbytes)
{
	struct gci_plan plan = {0};
	struct gci_planning w;
	uint64_t end_ns;
	int c, d, i, k, b, n = t->nclusters;

	assert_int_equal(gci_planning_start(&w, net, nbytes, &plan, 0), 0);
	for (c = 0; c < n; c++)
		for (i = 1; i < gci_topo_size(t, c); i++)
			gci_planning_add(&w, gci_topo_members(t, c)[i], gci_topo_members(t, c)[i],
				gci_topo_members(t, c)[0]);
	for (d = 1; d < n; d++)
		for (c = 0; c < n; c++)
			for (i = 0; i < gci_topo_size(t, c); i++)
				gci_planning_add(&w, gci_topo_members(t, c)[i],
					gci_topo_members(t, c)[0],
					gci_topo_members(t, (c + d) % n)[0]);
	for (c = 0; c < n; c++)
		for (k = 1; k < gci_topo_size(t, c); k *= 2)
			for (i = k; i < 2 * k && i < gci_topo_size(t, c); i++)
				for (b = 0; b < t->nranks; b++)
					if (b != gci_topo_members(t, c)[i])
						gci_planning_add(&w, b,
							gci_topo_members(t, c)[i - k],
							gci_topo_members(t, c)[i]);
	end_ns = plan.end_ns;
	gci_planning_end(&w);
	gci_plan_free(&plan);
	return end_ns;
}

/* No host takes in more than one block at a time: so a cluster takes this long for the blocks of
 * the others over its fastest way in. */
static uint64_t least_ns(const struct gci_net *net, const struct gci_topo *t, uint64_t nbytes)
{
	uint64_t least, bound = 0;
	int a, b;

	for (b = 0; b < t->nclusters; b++) {
		int h = gci_topo_size(t, b), others = t->nranks - h;

		for (a = 0, least = UINT64_MAX; a < t->nclusters; a++) {
			uint64_t ns =
				gci_path_transfer_ns(&net->path[a * t->nclusters + b], nbytes);

			if (a != b && ns < least)
				least = ns;
		}
		least *= (uint64_t)((others + h - 1) / h);
		bound = least > bound ? least : bound;
	}
	return bound;
}

/* 256 and 512 KB on the paper's grid, as in its figures 8 and 9. */
static void quality_on_the_papers_grid(void **state)
{
	static const char *const names[] = {"min3", "trees-greedy", "trees-annealed"};
	struct gci_net net;
	struct gci_topo t;
	uint64_t nbytes[20], kib, end_ns[2][3], bound, magpie;
	int i, how, half;

	(void)state;
	nets_paper(&net, &t);
	for (kib = 256; kib <= 512; kib *= 2) {
		for (i = 0; i < 20; i++)
			nbytes[i] = kib << 10;
		for (half = 0; half < 2; half++)
			for (how = 0; how < 3; how++) {
				struct gci_plan plan;

				assert_int_equal(gci_plan_make(&plan, &net, nbytes,
							 (enum gci_planner)how, half),
					0);
				end_ns[half][how] = plan.end_ns;
				print_message("%s duplex, %" PRIu64 " KiB, %s: %.2f s\n",
					half ? "half" : "full", kib, names[how],
					(double)plan.end_ns / 1e9);
				gci_plan_free(&plan);
			}
		bound = least_ns(&net, &t, nbytes[0]);
		magpie = magpie_ns(&net, &t, nbytes);
		print_message(
			"MagPIe %.2f s, bound %.2f s\n", (double)magpie / 1e9, (double)bound / 1e9);
		assert_in_range(end_ns[0][0], bound, bound * 5 / 4);
		assert_true(end_ns[1][0] > end_ns[0][0] && end_ns[1][0] <= bound * 3 / 2);
		for (how = 1; how < 3; how++)
			assert_true(end_ns[0][0] < end_ns[0][how] && end_ns[0][how] < magpie);
		assert_true(end_ns[0][0] < magpie / 4);
	}
	nets_free(&net, &t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pools_of_figure_2),
		cmocka_unit_test(pools_of_table_2),
		cmocka_unit_test(quality_on_the_papers_grid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
