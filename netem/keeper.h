/* SPDX-License-Identifier: MIT
 * A process between us and the guest, which outlives us just long enough: when we end, however
 * that comes, it kills the guest's processes and removes the private directory. */
#ifndef GCI_NETEM_KEEPER_H
#define GCI_NETEM_KEEPER_H

#include "base/error.h"

#include <sys/types.h>

struct gci_keeper {
	pid_t pid;
	int lifeline; /* the keeper acts when the last copy of this is closed */
};

struct gci_keeper_job {
	const char *dir; /* removed at the end, with all in it */
	char *const *argv, *const *env;
	int stdio[3], extra[2]; /* become descriptors 0 to 4 of the program */
};

int gci_keeper_start(struct gci_keeper *k, const struct gci_keeper_job *job, struct gci_error *e);

/* Ends the program, waits until all is gone. */
void gci_keeper_stop(struct gci_keeper *k);

/* Removes a directory and all in it, as far as it goes; follows no links. */
void gci_remove_tree(const char *dir);

#endif
