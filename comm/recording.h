/* SPDX-License-Identifier: MIT
 * Recording which operations a run calls (collectives/tuner/record.h), for a tuner: rank 0 of the
 * world counts those that it takes part in, and writes them to a file when it leaves the job. What
 * has blocks of different lengths is not counted: it is not tuned either. */
#ifndef GCI_COMM_RECORDING_H
#define GCI_COMM_RECORDING_H

#include "collectives/coll.h"
#include "collectives/tuner/record.h"

struct gci_engine;

struct gci_recording {
	struct gci_record record;
	char *path; /* NULL: not asked for, or not rank 0 */
};

/* To this file; NULL: no more, and what was counted is forgotten. 0 or GCOLL_ERR_NOMEM. */
int gci_recording_set(struct gci_engine *e, const char *path);

void gci_recording_count(struct gci_engine *e, const struct gci_coll *coll);

/* Writes the file, whole or not at all; what fails is logged. Then forgets. */
void gci_recording_end(struct gci_engine *e);

#endif
