/* SPDX-License-Identifier: MIT
 * What is sent ahead, and to whom. That it is sent, and dropped: warm_job.c and the transport's
 * conformance tests. */
#include "tests/comm/jobs.h"

#include "tests/test.h"

#include "flow/warm.h"

#include <string.h>

static void plan_all(struct job *j, uint64_t plan[MAX_RANKS][MAX_RANKS])
{
	int r;

	for (r = 0; r < j->n; r++)
		assert_int_equal(gci_warm_plan(j->comm[r], plan[r], NULL), 0);
}

/* Of each pair both know, since the lower one connects; and only pairs of far ranks. */
static void both_ends_of_a_connection_know_of_it(void **state)
{
	uint64_t plan[MAX_RANKS][MAX_RANKS], most = 0;
	struct gci_flight f;
	struct job j;
	int a, b, pairs = 0;

	(void)state;
	job_open(&j, (int[]){8, 8, 0}, 0, 1, NULL);
	plan_all(&j, plan);
	for (a = 0; a < j.n; a++)
		for (b = 0; b < j.n; b++) {
			assert_int_equal(!plan[a][b], !plan[b][a]);
			assert_true(!plan[a][b] || a / 8 != b / 8);
			pairs += plan[a][b] != 0;
			most = plan[a][b] > most ? plan[a][b] : most;
		}
	assert_true(pairs > 0);
	/* Half of what it will have under way, and all by one sender to one receiver. */
	gci_flight_make(&f, gci_topo_link(&j.comm[0]->topo, 0, 1),
		gci_topo_link(&j.comm[0]->topo, 1, 0), j.comm[0]->topo.nic_bps[0],
		j.comm[0]->topo.nic_bps[1]);
	assert_true(f.stream_nbytes > 0);
	assert_true(most == f.stream_nbytes / 2);
	job_close(&j);
}

/* Settings count: what is run is what is warmed up. */
static void only_what_would_be_used(void **state)
{
	uint64_t plan[MAX_RANKS][MAX_RANKS];
	struct job j;
	int a, b;

	(void)state;
	job_open(&j, (int[]){4, 4, 0}, 0, 1, NULL);
	job_set(&j, "bcast", "chain");
	job_set(&j, "allreduce", "chain");
	job_set(&j, "allgather", "ring");
	plan_all(&j, plan);
	for (a = 0; a < j.n; a++)
		for (b = 0; b < j.n; b++)
			assert_int_equal(
				plan[a][b] != 0, (a == 3 && b == 4) || (a == 4 && b == 3) ||
							 (a == 7 && b == 0) || (a == 0 && b == 7));
	job_close(&j);
}

/* A program that knows what it will call. */
static void only_the_kinds_that_are_named(void **state)
{
	uint64_t plan[MAX_RANKS][MAX_RANKS];
	struct job j;
	int a, b, r;

	(void)state;
	job_open(&j, (int[]){4, 4, 0}, 0, 1, NULL);
	job_set(&j, "bcast", "chain");
	job_set(&j, "allgather", "ring");
	for (r = 0; r < j.n; r++)
		j.comm[r]->warms = 1u << GCI_BCAST;
	plan_all(&j, plan);
	for (a = 0; a < j.n; a++)
		for (b = 0; b < j.n; b++)
			assert_int_equal(plan[a][b] != 0, (a == 3 && b == 4) || (a == 4 && b == 3));
	job_close(&j);
}

static void nothing_inside_one_cluster(void **state)
{
	uint64_t plan[MAX_RANKS][MAX_RANKS];
	struct job j;
	int a, b;

	(void)state;
	job_open(&j, (int[]){5, 0}, 0, 1, NULL);
	plan_all(&j, plan);
	for (a = 0; a < j.n; a++)
		for (b = 0; b < j.n; b++)
			assert_true(!plan[a][b]);
	job_close(&j);
}

/* Neighbours, and a time that is far. */
static void only_over_long_paths(void **state)
{
	static const char near[] = "[cluster a]\nhosts = a\n[cluster b]\nhosts = b\n"
				   "[link a b]\nrate = 1Gbit\ndelay = 3ms\n";
	static const char far[] = "[cluster a]\nhosts = a\n[cluster b]\nhosts = b\n"
				  "[link a b]\nrate = 1Gbit\ndelay = 4ms\n";
	const char *texts[] = {near, far};
	struct gci_topo t;
	struct gci_grid g;
	int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		assert_int_equal(gci_grid_parse(&g, texts[i], strlen(texts[i]), "x", NULL), 0);
		assert_int_equal(gci_topo_create(&t, &g, (int[]){0, 1}, 2), 0);
		assert_int_equal(gci_warm_pays(&t), i);
		gci_topo_free(&t);
		gci_grid_free(&g);
	}
}

/* The root would send to twelve, of which the other operations use few. */
static void not_with_too_many(void **state)
{
	uint64_t plan[MAX_RANKS][MAX_RANKS];
	struct job j;
	int b, n = 0;

	(void)state;
	job_open(&j, (int[]){1, 12, 0}, 0, 1, NULL);
	job_set(&j, "bcast", "sequential");
	job_set(&j, "allreduce", "chain");
	job_set(&j, "allgather", "ring");
	plan_all(&j, plan);
	for (b = 1; b < j.n; b++)
		n += plan[0][b] != 0;
	assert_in_range(n, 1, 3);
	job_close(&j);
}

/* Told so before it has looked at anything. */
static void a_plan_can_be_cut_short(void **state)
{
	uint64_t plan[MAX_RANKS];
	int i, quit = 1;
	struct job j;

	(void)state;
	job_open(&j, (int[]){4, 4, 0}, 0, 1, NULL);
	assert_int_equal(gci_warm_plan(j.comm[0], plan, &quit), 0);
	for (i = 0; i < j.n; i++)
		assert_true(!plan[i]);
	job_close(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_ends_of_a_connection_know_of_it),
		cmocka_unit_test(only_what_would_be_used),
		cmocka_unit_test(only_the_kinds_that_are_named),
		cmocka_unit_test(nothing_inside_one_cluster),
		cmocka_unit_test(only_over_long_paths),
		cmocka_unit_test(not_with_too_many),
		cmocka_unit_test(a_plan_can_be_cut_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
