/* SPDX-License-Identifier: MIT
 * One job, from the first agent to the last process's end. */
#ifndef GCI_LAUNCHER_RUN_H
#define GCI_LAUNCHER_RUN_H

#include "launcher/options.h"
#include "launcher/placement.h"

#define GCI_USAGE_STATUS 2 /* wrong arguments or input files */

/* Runs it and returns the job's exit status, when all its output is written. Threads may still
 * wait for standard input then: end the process by _exit. */
int gci_run(const struct gci_options *o, struct gci_placement *p);

#endif
