/* SPDX-License-Identifier: MIT
 * A way to run an operation: an algorithm and its parameters. What the tuner compares, tables hold
 * and communicators are set to. */
#ifndef GCI_COLLECTIVES_TUNER_CANDIDATE_H
#define GCI_COLLECTIVES_TUNER_CANDIDATE_H

#include "collectives/sim/sim.h"

struct gci_candidate {
	const struct gci_algorithm *algorithm;
	uint32_t senders, degree; /* 0: the algorithm's own choice */
	uint64_t segment_nbytes;
};

#define GCI_CANDIDATE_NBYTES 96 /* most of its text */

/* "NAME[:senders=N][:segment=BYTES][:degree=D]", as gcoll_comm_set takes it. */
void gci_candidate_print(const struct gci_candidate *w, char out[GCI_CANDIDATE_NBYTES]);

/* The reverse; GCOLL_ERR_INVAL with the reason: what is there, and what was expected. "auto" gives
 * the kind's first row. */
int gci_candidate_parse(
	struct gci_candidate *w, enum gci_kind kind, const char *text, struct gci_error *e);

/* The same algorithm with the same parameters? */
int gci_candidate_same(const struct gci_candidate *a, const struct gci_candidate *b);

/* Sets the candidate's parameters in `c`, the whole operation; the segment in elements. */
void gci_candidate_apply(const struct gci_candidate *w, struct gci_coll *c);

/* What a prediction may cost. With limits, an operation of very many segments is simulated for some
 * of them only, and the rest is extrapolated, unless the whole is asked for. */
struct gci_predict_limits {
	uint64_t most_steps; /* of all ranks' schedules; 0: any number */
	uint64_t until_ns;   /* what takes longer is given up, and takes GCI_NEVER; 0: nothing is */
	int whole;
	int *is_partial; /* may be NULL: 1 where that was done */
	uint64_t *spent; /* may be NULL: what was simulated is added, as if of small messages' steps
			  */
};

/* Predicted time of `c` (without parameters) this way. limits may be NULL: all of it is simulated.
 * Errors as gci_simulate; GCOLL_ERR_INVAL also where the algorithm cannot run `c`. */
int gci_predict(const struct gci_simnet *net, const struct gci_coll *c,
	const struct gci_candidate *w, const struct gci_predict_limits *limits, uint64_t *ns);

#endif
