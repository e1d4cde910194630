/* SPDX-License-Identifier: MIT
 * Plans of allgathers on any grid: Min3 against the paper's figures taken literally, the model's
 * times. (The pool tree, and the paper's own grid: test_min3_paper.c) */
#include "tests/test.h"

#include "base/mem.h"
#include "collectives/allgather/planner.h"
#include "collectives/coll.h"
#include "tests/collectives/figures.h"
#include "tests/collectives/nets.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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
	struct gci_net net;
	struct gci_topo t;
	uint64_t nbytes[20];
	int i;

	(void)state;
	nets_each_random(300, 3, check_figures);
	nets_paper(&net, &t);
	for (i = 0; i < 20; i++)
		nbytes[i] = 256 << 10;
	check_figures(&net, nbytes, 0);
	check_figures(&net, nbytes, 1);
	nets_free(&net, &t);
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
	(void)state;
	nets_each_random(200, 5, check_all_plans);
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

static void check_both_entries(const struct gci_net *net, const uint64_t *nbytes, int half_duplex)
{
	(void)half_duplex;
	check_entries(net, nbytes, GCI_PLAN_MIN3);
	check_entries(net, nbytes, GCI_PLAN_TREES_ANNEALED);
}

static void wide_area_optimal(void **state)
{
	(void)state;
	nets_each_random(200, 7, check_both_entries);
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
	nets_of_text(&net, &t, "[cluster a]\nhosts = a[1-7]\nnic = 1Gbit\nlan_delay = 50us\n");
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
	nets_free(&net, &t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(min3_is_that_of_the_figures),
		cmocka_unit_test(plans_keep_to_the_model),
		cmocka_unit_test(wide_area_optimal),
		cmocka_unit_test(steps_keep_the_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
