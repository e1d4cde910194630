/* SPDX-License-Identifier: MIT
 * Plans of allgathers: the pool tree, Min3 against the paper's figures taken literally, the model's
 * times, the figures on the paper's own grid. */
#include "tests/test.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/prng.h"
#include "collectives/allgather/planner.h"
#include "collectives/coll.h"
#include "tests/collectives/figures.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void net_of_text(struct gci_net *net, struct gci_topo *t, const char *text)
{
	struct gci_error e = {0};
	struct gci_grid g;
	int i, *host;

	if (gci_grid_parse(&g, text, strlen(text), "test.grid", &e))
		fail_msg("%s", e.text);
	host = gci_calloc((size_t)g.nhosts, sizeof(*host));
	for (i = 0; i < g.nhosts; i++)
		host[i] = i;
	assert_int_equal(gci_topo_create(t, &g, host, g.nhosts), 0);
	assert_int_equal(gci_net_of(net, t), 0);
	gci_free(host);
	gci_grid_free(&g);
}

/* The paper's grid, as the lab has it. */
static void paper_net(struct gci_net *net, struct gci_topo *t)
{
	static char text[16384];
	FILE *f = fopen(getenv("GRIDCOLL_TEST_MIN3_GRID"), "r");

	assert_non_null(f);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	net_of_text(net, t, text);
}

/* Up to 4 clusters of up to 5 hosts, everything at random, rates often alike. */
static void random_net(struct gci_net *net, struct gci_topo *t, struct gci_prng *p)
{
	static const char *const rates[] = {"1Mbit", "1.05Mbit", "2Mbit", "10Mbit", "100Mbit"};
	struct gci_buf text = {0};
	int c, d, n = 1 + (int)gci_prng_below(p, 4);

	for (c = 0; c < n; c++)
		gci_buf_printf(&text, "[cluster c%d]\nhosts = c%dh[1-%d]\nnic = %s\n", c, c,
			1 + (int)gci_prng_below(p, 5), rates[2 + gci_prng_below(p, 3)]);
	for (c = 0; c < n; c++)
		for (d = 0; d < n; d++)
			if (c != d)
				gci_buf_printf(&text,
					"[link c%d > c%d]\nrate = 20Mbit\nflow_rate = %s\n"
					"streams = 1\ndelay = %dms\n",
					c, d, rates[gci_prng_below(p, 5)],
					(int)gci_prng_below(p, 30));
	net_of_text(net, t, gci_buf_cstr(&text));
	gci_buf_free(&text);
}

static void random_blocks(uint64_t *nbytes, int n, struct gci_prng *p)
{
	int i, alike = (int)gci_prng_below(p, 2);

	for (i = 0; i < n; i++)
		nbytes[i] = alike ? 100000 : gci_prng_below(p, 4) * gci_prng_below(p, 70000);
}

static void drop(struct gci_net *net, struct gci_topo *t)
{
	gci_net_free(net);
	gci_topo_free(t);
}

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
	paper_net(&net, &t);
	assert_int_equal(gci_net_pools(&p, &net), 0);
	assert_int_equal(p.n, 5);
	check_pool(&p, 0, -1, 2, 20, 1280000);
	check_pool(&p, 1, 0, 0, 8, 85190000);
	check_pool(&p, 2, 0, 2, 12, 4750000);
	check_pool(&p, 3, 2, 0, 4, 289330000);
	check_pool(&p, 4, 2, 0, 8, 85190000);
	gci_pools_free(&p);
	drop(&net, &t);
}

static int compare_transfers(const void *a, const void *b)
{
	const struct gci_transfer *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	if (x->block != y->block)
		return x->block - y->block;
	return x->to - y->to;
}

static void assert_same_plan(struct gci_plan *a, struct gci_plan *b)
{
	size_t i;

	assert_int_equal(a->n, b->n);
	if (!a->n)
		return;
	qsort(a->transfers, a->n, sizeof(*a->transfers), compare_transfers);
	qsort(b->transfers, b->n, sizeof(*b->transfers), compare_transfers);
	for (i = 0; i < a->n; i++) {
		const struct gci_transfer *x = &a->transfers[i], *y = &b->transfers[i];

		if (x->from != y->from || x->to != y->to || x->block != y->block ||
			x->start_ns != y->start_ns || x->free_ns != y->free_ns ||
			x->end_ns != y->end_ns)
			fail_msg("transfer %zu: %d > %d block %d from %" PRIu64
				 ", expected %d > %d block %d from %" PRIu64,
				i, x->from, x->to, x->block, x->start_ns, y->from, y->to, y->block,
				y->start_ns);
	}
}

static void check_figures(const struct gci_net *net, const uint64_t *nbytes, int half_duplex)
{
	struct gci_plan plan, want;
	struct gci_pools pools;

	assert_int_equal(gci_net_pools(&pools, net), 0);
	assert_int_equal(gci_plan_make(&plan, net, nbytes, GCI_PLAN_MIN3, half_duplex), 0);
	figures_plan(&want, net, &pools, nbytes, half_duplex);
	assert_same_plan(&plan, &want);
	gci_plan_free(&plan);
	gci_plan_free(&want);
	gci_pools_free(&pools);
}

/* Every transfer and its time, as figures 3 to 7 have it when each loop is what it says. */
static void min3_is_that_of_the_figures(void **state)
{
	struct gci_prng p = {3};
	struct gci_net net;
	struct gci_topo t;
	uint64_t nbytes[20];
	int i;

	(void)state;
	for (i = 0; i < 300; i++) {
		random_net(&net, &t, &p);
		random_blocks(nbytes, net.nhosts, &p);
		check_figures(&net, nbytes, i & 1);
		drop(&net, &t);
	}
	paper_net(&net, &t);
	for (i = 0; i < 20; i++)
		nbytes[i] = 256 << 10;
	check_figures(&net, nbytes, 0);
	check_figures(&net, nbytes, 1);
	drop(&net, &t);
}

/* At which times a host is taken up by sending (1), receiving (2). */
static void check_host(struct gci_plan *plan, int host, int what)
{
	uint64_t free_ns = 0;
	size_t i;

	for (i = 0; i < plan->n; i++) {
		const struct gci_transfer *x = &plan->transfers[i];

		if ((what & 1 && x->from == host) || (what & 2 && x->to == host)) {
			assert_true(x->start_ns >= free_ns);
			free_ns = x->to == host ? x->end_ns : x->free_ns;
		}
	}
}

/* Everybody gets every block once, from someone who has it; hosts do one thing at a time. */
static void check_plan(
	const struct gci_net *net, const uint64_t *nbytes, struct gci_plan *plan, int half_duplex)
{
	uint64_t have[20][20], end_ns = 0;
	int h, b, n = net->nhosts;
	size_t i;

	memset(have, 0xff, sizeof(have));
	for (h = 0; h < n; h++)
		have[h][h] = 0;
	if (plan->n)
		qsort(plan->transfers, plan->n, sizeof(*plan->transfers), compare_transfers);
	for (i = 0; i < plan->n; i++) {
		const struct gci_transfer *x = &plan->transfers[i];
		const struct gci_wire *path = gci_net_path(net, x->from, x->to);

		assert_true(nbytes[x->block] && x->from != x->to);
		assert_true(have[x->block][x->from] <= x->start_ns);
		assert_true(have[x->block][x->to] == UINT64_MAX);
		assert_true(
			x->end_ns == x->start_ns + gci_path_transfer_ns(path, nbytes[x->block]));
		assert_true(x->free_ns > x->start_ns && x->free_ns <= x->end_ns);
		have[x->block][x->to] = x->end_ns;
		end_ns = x->end_ns > end_ns ? x->end_ns : end_ns;
	}
	assert_true(plan->end_ns == end_ns);
	for (b = 0; b < n; b++)
		for (h = 0; h < n; h++)
			assert_true(!nbytes[b] || have[b][h] != UINT64_MAX);
	for (h = 0; h < n; h++) {
		check_host(plan, h, half_duplex ? 3 : 1);
		check_host(plan, h, half_duplex ? 3 : 2);
	}
}

static void check_all_plans(const struct gci_net *net, const uint64_t *nbytes, int half_duplex)
{
	struct gci_plan plan, again;
	int how;

	for (how = GCI_PLAN_MIN3; how <= GCI_PLAN_TREES_ANNEALED; how++) {
		assert_int_equal(
			gci_plan_make(&plan, net, nbytes, (enum gci_planner)how, half_duplex), 0);
		assert_int_equal(
			gci_plan_make(&again, net, nbytes, (enum gci_planner)how, half_duplex), 0);
		check_plan(net, nbytes, &plan, half_duplex);
		assert_same_plan(&again, &plan);
		gci_plan_free(&plan);
		gci_plan_free(&again);
	}
}

static void plans_keep_to_the_model(void **state)
{
	struct gci_prng p = {5};
	struct gci_net net;
	struct gci_topo t;
	uint64_t nbytes[20];
	int i;

	(void)state;
	for (i = 0; i < 200; i++) {
		random_net(&net, &t, &p);
		random_blocks(nbytes, net.nhosts, &p);
		check_all_plans(&net, nbytes, i & 1);
		drop(&net, &t);
	}
}

static int in_pool(const struct gci_pools *p, int pool, int host)
{
	int i;

	for (i = 0; i < p->pool[pool].n; i++)
		if (p->host[p->pool[pool].first + i] == host)
			return 1;
	return 0;
}

/* Into every pool of the tree each block from outside comes once; none comes into its own. */
static void check_entries(const struct gci_net *net, const uint64_t *nbytes, enum gci_planner how)
{
	struct gci_pools pools;
	struct gci_plan plan;
	int i, b;
	size_t k;

	assert_int_equal(gci_net_pools(&pools, net), 0);
	assert_int_equal(gci_plan_make(&plan, net, nbytes, how, 0), 0);
	for (i = 0; i < pools.n; i++)
		for (b = 0; b < net->nhosts; b++) {
			int entries = 0;

			for (k = 0; k < plan.n; k++)
				if (plan.transfers[k].block == b &&
					in_pool(&pools, i, plan.transfers[k].to) &&
					!in_pool(&pools, i, plan.transfers[k].from))
					entries++;
			assert_int_equal(entries, nbytes[b] && !in_pool(&pools, i, b));
		}
	gci_plan_free(&plan);
	gci_pools_free(&pools);
}

static void wide_area_optimal(void **state)
{
	struct gci_prng p = {7};
	struct gci_net net;
	struct gci_topo t;
	uint64_t nbytes[20];
	int i;

	(void)state;
	for (i = 0; i < 200; i++) {
		random_net(&net, &t, &p);
		random_blocks(nbytes, net.nhosts, &p);
		check_entries(&net, nbytes, GCI_PLAN_MIN3);
		check_entries(&net, nbytes, GCI_PLAN_TREES_ANNEALED);
		drop(&net, &t);
	}
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
	paper_net(&net, &t);
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
	drop(&net, &t);
}

static int waits_for(const struct gci_sched *s, uint32_t step, uint32_t earlier)
{
	uint32_t k;

	for (k = 0; k < s->steps[step].ndeps; k++) {
		uint32_t d = s->deps[s->steps[step].deps + k];

		if (d == earlier || (d > earlier && waits_for(s, d, earlier)))
			return 1;
	}
	return 0;
}

/* On a LAN each step waits for the one before it in its direction or, half duplex, any. */
static void steps_keep_the_order(void **state)
{
	static const char *const names[] = {"min3", "min3-half", "trees-greedy"};
	struct gci_net net;
	struct gci_topo t;
	struct gci_coll c = {.kind = GCI_ALLGATHER, .topo = &t, .count = 1000, .esize = 8};
	uint32_t i, k;
	int r, j;

	(void)state;
	net_of_text(&net, &t, "[cluster a]\nhosts = a[1-7]\nnic = 1Gbit\nlan_delay = 50us\n");
	for (j = 0; j < 3; j++)
		for (r = 0; r < 7; r++) {
			struct gci_sched s;

			assert_int_equal(
				gci_emit(gci_algorithm_find(c.kind, names[j]), &c, r, &s), 0);
			for (i = 1; i < s.nsteps; i++)
				for (k = 0; k < i; k++)
					if (s.steps[k].kind != GCI_STEP_COPY &&
						(j == 1 || s.steps[k].kind == s.steps[i].kind))
						assert_true(waits_for(&s, i, k));
			gci_sched_free(&s);
		}
	drop(&net, &t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pools_of_figure_2),
		cmocka_unit_test(pools_of_table_2),
		cmocka_unit_test(min3_is_that_of_the_figures),
		cmocka_unit_test(plans_keep_to_the_model),
		cmocka_unit_test(wide_area_optimal),
		cmocka_unit_test(quality_on_the_papers_grid),
		cmocka_unit_test(steps_keep_the_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
