/* SPDX-License-Identifier: MIT
 * One collective operation called by all ranks of a job, with data and result by a naive oracle:
 * what each element of each rank should be in the end, from the definition of the operation. */
#ifndef GCI_TESTS_COMM_TRIAL_H
#define GCI_TESTS_COMM_TRIAL_H

#include "tests/comm/jobs.h"

struct trial {
	enum gci_kind kind;
	uint64_t count; /* elements; with `v`, about the mean of the blocks' */
	int root, in_place;
	int v; /* blocks of different lengths, some empty: 1 packed, 2 with gaps, backwards */
	enum gcoll_op op;
	enum gcoll_type type; /* of 4 bytes; integers' results are exact, floats' are those of the
			       * fixed order */
	int persistent;       /* is run three times */
	uint64_t seed;        /* of the data */
};

/* Aborts with what differs. */
void trial_run(struct job *j, const struct trial *t);

/* The same on any communicators that make up one: comm[r] is rank r's, n of them. */
void trial_run_on(struct job *j, gcoll_comm *const *comm, int n, const struct trial *t);

#endif
