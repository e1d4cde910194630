/* SPDX-License-Identifier: MIT */
#include "tests/comm/jobs.h"

#include "base/mem.h"
#include "tests/collectives/topologies.h"
#include "tests/test.h"

#include <string.h>

void job_open(struct job *j, const int *sizes, int shuffle, uint64_t seed,
	const struct gci_mem_faults *faults)
{
	static const struct gci_mem_faults none = {0};
	struct gci_topo topo;
	int r;

	memset(j, 0, sizeof(*j));
	topology_make(&topo, sizes, shuffle, 3);
	j->n = topo.nranks;
	gci_topo_free(&topo);
	assert_int_equal(gci_mem_net_create(&j->net, j->n, faults ? faults : &none, seed), 0);
	for (r = 0; r < j->n; r++)
		j->hosts[r] = "host";
	for (r = 0; r < j->n; r++) {
		struct gci_tp_config config;

		topology_make(&topo, sizes, shuffle, 3);
		assert_int_equal(gci_comm_create(&j->comm[r], r, &topo, j->hosts), 0);
		config = gci_comm_tp_config(j->comm[r]->engine);
		assert_int_equal(gci_mem_create(&j->comm[r]->engine->tp, j->net, &config), 0);
	}
}

void job_close(struct job *j)
{
	int r;

	for (r = 0; r < j->n; r++)
		gci_engine_free(j->comm[r]->engine);
	gci_mem_net_free(j->net);
}

int job_run_all(struct job *j, gcoll_req **reqs, int *status, int n)
{
	char *over = gci_calloc((size_t)n, 1);
	int i, left = 0, moved = 1, done;

	for (i = 0; i < n; i++) {
		status[i] = 0;
		over[i] = !reqs[i];
		left += !over[i];
	}
	while (left && moved) {
		moved = 0;
		for (i = 0; i < n; i++) {
			if (over[i])
				continue;
			status[i] = gcoll_test(&reqs[i], &done);
			over[i] = done != 0;
			left -= done;
			moved |= done;
		}
		for (i = 0; i < j->n; i++) /* they wait for the clock */
			moved |= !gci_list_empty(&j->comm[i]->engine->held.sends);
		while (gci_mem_net_step(j->net))
			moved = 1;
	}
	gci_free(over);
	return left;
}

int job_run(struct job *j, int status[MAX_RANKS])
{
	return job_run_all(j, j->req, status, j->n);
}

void job_set(struct job *j, const char *key, const char *value)
{
	int r;

	for (r = 0; r < j->n; r++)
		if (gcoll_comm_set(j->comm[r], key, value))
			fail_msg("%s %s: %s", key, value, gcoll_last_error());
}
