/* SPDX-License-Identifier: MIT
 * A simulated rank: its program, which makes the plan's calls one after the other and compares
 * their results, and how it ended. */
#ifndef GCI_TESTS_SIMULATE_RANK_H
#define GCI_TESTS_SIMULATE_RANK_H

#include "tests/simulate/plan.h"

#include <limits.h>

#define RANK_TEXT 600

struct rank {
	struct job *job;
	int rank;
	struct os_process *process;
	gcoll_comm *comms[PLAN_NCOMMS];

	int at_step; /* of the plan's */
	int begun;   /* steps, so far */
	int ended;
	uint64_t ended_ns;
	int status;                     /* of the first call that failed */
	int blamed;                     /* whom it names; INT_MIN: it was gcoll_init */
	char what[32];                  /* that call */
	char text[RANK_TEXT];           /* gcoll_last_error */
	char wrong[RANK_TEXT];          /* what must not be; "": nothing */
	size_t left_pieces;             /* of memory, when it ended */
	char *sending[PLAN_MAX_STEPS];  /* messages' bytes, its own copy */
	char *received[PLAN_MAX_STEPS]; /* by its messages */
};

/* One run. */
struct job {
	struct plan plan;
	struct rank ranks[PLAN_MAX_RANKS];
	/* Of a step's calls: by part of the communicator. */
	struct trial_data *data[PLAN_MAX_STEPS][2][2];
	int npassed[PLAN_MAX_STEPS]; /* ranks that need them no more */
	char *sent[PLAN_MAX_STEPS];  /* the messages' bytes, one after the other */
	uint64_t ncalls;             /* that were completed, over all ranks */
};

/* The main of its process; arg: struct rank. */
void *rank_main(void *arg);

/* After the run. */
void rank_free_data(struct job *j);

#endif
