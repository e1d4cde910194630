/* SPDX-License-Identifier: MIT
 * Jobs inside one process: all ranks' communicators over the simulated network. Aborts on failure.
 *
 *	job_open(&j, (int[]){3, 2, 0}, 0, seed, NULL);
 *	for (r = 0; r < j.n; r++)
 *		gcoll_ibarrier(j.comm[r], &j.req[r]);
 *	assert_int_equal(job_run(&j, status), 0);
 *	job_close(&j); */
#ifndef GCI_TESTS_COMM_JOBS_H
#define GCI_TESTS_COMM_JOBS_H

#include "comm/comm.h"
#include "testing/network.h"

#define MAX_RANKS 17

struct job {
	int n;
	struct gci_mem_net *net;
	gcoll_comm *comm[MAX_RANKS];
	const char *hosts[MAX_RANKS];
	gcoll_req *req[MAX_RANKS];
};

/* Sizes of clusters, ended by 0; `shuffle`: ranks are dealt round robin over them. */
void job_open(struct job *j, const int *sizes, int shuffle, uint64_t seed,
	const struct gci_mem_faults *faults);
void job_close(struct job *j);

/* Runs the network until all of j->req are over, or nothing moves any more. Returns the number of
 * ranks that are not done; they keep their requests. */
int job_run(struct job *j, int status[MAX_RANKS]);

/* The same for `n` requests of any ranks. */
int job_run_all(struct job *j, gcoll_req **reqs, int *status, int n);

/* gcoll_comm_set on every rank. */
void job_set(struct job *j, const char *key, const char *value);

#endif
