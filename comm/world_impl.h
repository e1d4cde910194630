/* SPDX-License-Identifier: MIT
 * Between world.c (joining and leaving a job), epoch.c (the world of one epoch) and shrink.c (from
 * one epoch to the next). */
#ifndef GCI_COMM_WORLD_IMPL_H
#define GCI_COMM_WORLD_IMPL_H

#include "comm/comm.h"
#include "comm/environment.h"
#include "comm/telemetry.h"
#include "transport/reach.h"

/* A job's ranks from its start, or a failure, to the next one. */
struct gci_epoch {
	struct gci_epoch *before; /* NULL: this is the first */
	uint32_t number, size;
	struct gci_ctl_rank *ranks; /* [rank of the epoch] */
	uint32_t *first;            /* the same: its number in the job, that of the first epoch */
	const char **hosts;         /* the same */
	gcoll_comm *comm;
};

struct gci_world {
	struct gci_grid grid; /* owns the host names */
	struct gci_table table;
	struct gci_ctl_message start;
	struct gci_environment env; /* without the secret, which is there: */
	uint8_t *secret;            /* wiped when no other epoch can come */
	struct gcoll_options options;
	struct gci_control *ctl;
	struct gci_telemetry telemetry;
	struct gci_own own; /* where we listen */
	struct gci_reach reach;
	int listen_fd; /* -1: the transport's, which is the last */
	struct gci_epoch *epoch;
	uint32_t number; /* of the launcher's epoch: ahead of ours if that could not be made */
	int joining;     /* a thread is in gcoll_comm_agree or gcoll_comm_shrink */

	pthread_mutex_t lock; /* guards what follows */
	gcoll_comm *comm;     /* what the control thread may look at; NULL: nothing */
};

/* Makes the world of the next epoch, of the job's ranks ranks[0 .. n - 1] (as START has them; NULL:
 * all), with the settings of the one before. 0, or GCOLL_ERR_* with the reason in `e`, and nothing
 * has changed. */
int gci_epoch_open(struct gci_world *w, uint32_t number, const uint32_t *ranks, uint32_t n,
	struct gci_error *e);

/* After its failure: ends what is under way, tells callbacks, and gives connections and memory
 * back. The communicators and requests stay, until the world is freed. */
void gci_epoch_close(struct gci_world *w);

/* All epochs. */
void gci_epochs_free(struct gci_world *w);

#endif
