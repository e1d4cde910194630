/* SPDX-License-Identifier: MIT */
#include "tests/comm/trial.h"

#include "tests/test.h"

static const char *name_of(gcoll_comm *const *comm, const struct trial *t)
{
	return comm[0]->choice[t->kind].how.algorithm->name;
}

static void one_round(struct job *j, gcoll_comm *const *comm, int n, const struct trial *t,
	struct trial_data *x, gcoll_req **reqs)
{
	int r, status[MAX_RANKS];
	char text[300];

	for (r = 0; r < n; r++)
		if (t->persistent ? gcoll_start(reqs[r]) : trial_data_call(x, r, comm[r], &reqs[r]))
			fail_msg("%s: %s", gci_kind_name(t->kind), gcoll_last_error());
	r = job_run_all(j, reqs, status, n);
	if (r)
		fail_msg("%s by %s: %d ranks of %d are not done", gci_kind_name(t->kind),
			name_of(comm, t), r, n);
	for (r = 0; r < n; r++) {
		assert_int_equal(status[r], 0);
		if (trial_data_check(x, r, text, sizeof(text)))
			fail_msg("%s: %s", name_of(comm, t), text);
	}
}

void trial_run_on(struct job *j, gcoll_comm *const *comm, int n, const struct trial *t)
{
	struct trial_data *x = trial_data_new(t, &comm[0]->topo);
	gcoll_req *reqs[MAX_RANKS] = {NULL};
	unsigned round;
	int r;

	for (r = 0; r < n && t->persistent; r++)
		if (trial_data_call(x, r, comm[r], &reqs[r]))
			fail_msg("%s: %s", gci_kind_name(t->kind), gcoll_last_error());
	for (round = 0; round < (t->persistent ? 3u : 1u); round++) {
		trial_data_fill(x, round);
		one_round(j, comm, n, t, x, reqs);
	}
	for (r = 0; r < n; r++)
		assert_int_equal(gcoll_req_free(&reqs[r]), 0);
	trial_data_free(x);
}

void trial_run(struct job *j, const struct trial *t)
{
	trial_run_on(j, j->comm, j->n, t);
}
