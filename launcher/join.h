/* SPDX-License-Identifier: MIT
 * gridcoll-run --join: one rank of a job that is served elsewhere. */
#ifndef GCI_LAUNCHER_JOIN_H
#define GCI_LAUNCHER_JOIN_H

#include "launcher/options.h"

/* Becomes the command; 0 with --dry-run, which only shows it. Returns 1 where this rank is to serve the job as well, with *o saying how
 * (and its own rank as the job's first); else GCOLL_ERR_*, or with *exit_status 126 or 127 where the
 * command cannot be run. */
int gci_join(struct gci_options *o, int *exit_status, struct gci_error *e);

#endif
