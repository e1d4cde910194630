/* SPDX-License-Identifier: MIT
 * A task of srun: who it is, and where it meets the others, from what Slurm tells it. Pure.
 *
 *	struct gci_slurm task;
 *
 *	rc = gci_slurm_read(&task, my_getenv, user, &e);
 *	printf("rank %u of %u, on %s\n", task.rank, task.size, task.host);
 */
#ifndef GCI_LAUNCHER_SLURM_H
#define GCI_LAUNCHER_SLURM_H

#include "base/error.h"
#include "transport/control.h"

#include <stdint.h>

#define GCI_SLURM_HOST    254 /* with the zero */
#define GCI_SLURM_PORT    20000
#define GCI_SLURM_NPORTS  10000 /* below those that systems choose for connections */
#define GCI_SLURM_EXAMPLE "gridcoll-run --new-secret | srun -n 8 gridcoll-run --slurm ./program"

struct gci_slurm {
	uint32_t rank, size;
	char host[GCI_SLURM_HOST];  /* this task's node */
	char first[GCI_SLURM_HOST]; /* the node where rank 0 is: the first of the first component */
	/* Of its component of a heterogeneous job: the partition, else what srun calls the component;
	 * "" of other jobs. */
	char cluster[GCI_CTL_CLUSTER];
	int ncomponents; /* that the step is on; 0: of a job without */
	uint16_t port; /* the same in all tasks of a step; others of other jobs and steps, mostly */
};

/* `get` is asked for variables, as getenv. GCOLL_ERR_INVAL names the one that is wrong; all that is
 * in them may be anything. */
int gci_slurm_read(struct gci_slurm *s, const char *(*get)(void *user, const char *name),
	void *user, struct gci_error *e);

#endif
