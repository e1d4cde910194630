/* SPDX-License-Identifier: MIT
 * One collective operation called by all ranks of a job, checked against a naive oracle. */
#ifndef GCI_TESTS_COMM_TRIAL_H
#define GCI_TESTS_COMM_TRIAL_H

#include "tests/comm/jobs.h"
#include "tests/comm/trial_data.h"

/* Aborts with what differs. */
void trial_run(struct job *j, const struct trial *t);

/* The same on any communicators that make up one: comm[r] is rank r's, n of them. */
void trial_run_on(struct job *j, gcoll_comm *const *comm, int n, const struct trial *t);

#endif
