/* SPDX-License-Identifier: MIT
 * The data of one collective operation, of all its ranks, with the result by a naive oracle: what
 * each element of each rank should be in the end, from the definition of the operation.
 *
 *	d = trial_data_new(&t, &topo);		// of so many ranks as the topology has
 *	trial_data_fill(d, 0);			// in its first round
 *	for (r = 0; r < n; r++)
 *		rc = trial_data_call(d, r, comm[r], &req[r]);
 *	...
 *	if (trial_data_check(d, r, text, sizeof(text)))
 *		puts(text);
 *	trial_data_free(d); */
#ifndef GCI_TESTS_COMM_TRIAL_DATA_H
#define GCI_TESTS_COMM_TRIAL_DATA_H

#include "collectives/coll.h"
#include "gridcoll/gridcoll.h"

#define TRIAL_MAX_RANKS 17

struct trial {
	enum gci_kind kind;
	uint64_t count; /* elements; with `v`, about the mean of the blocks' */
	int root, in_place;
	int v; /* blocks of different lengths, some empty: 1 packed, 2 with gaps, backwards */
	enum gcoll_op op;
	enum gcoll_type type; /* integers' results are exact, floats' those of the fixed order; of
			       * kinds that do not reduce any */
	int persistent;       /* is run three times */
	uint64_t seed;        /* of the data */
};

struct trial_data;

/* `topo` must outlive it; the trial is copied. */
struct trial_data *trial_data_new(const struct trial *t, const struct gci_topo *topo);
void trial_data_free(struct trial_data *x);

/* Puts every rank's input where it belongs, another one in each round. */
void trial_data_fill(struct trial_data *x, uint64_t round);

/* The call of rank r: begun, or if it is persistent only prepared. */
int trial_data_call(struct trial_data *x, int r, gcoll_comm *c, gcoll_req **req);

/* 0, or -1 with what is wrong at rank r. */
int trial_data_check(const struct trial_data *x, int r, char *text, size_t size);

/* The program uses the buffers of rank r for something else. */
void trial_data_reuse(struct trial_data *x, int r);

#endif
