/* SPDX-License-Identifier: MIT
 * Does what a plan says, on the kernel we run on; needs root. What it made is undone with
 * gci_netns_remove over the plan's namespaces. */
#ifndef GCI_NETEM_APPLY_H
#define GCI_NETEM_APPLY_H

#include "netem/plan.h"

/* Whether this kernel's TCP has cubic: 1 or 0. */
int gci_lab_has_cubic(void);

/* Stops at the first command that fails, with its text and its message in `e`. */
int gci_lab_apply(const struct gci_lab_plan *plan, struct gci_error *e);

/* Waits until every host reaches its router, and the first of each cluster those of the others.
 * A software bridge needs a moment before it forwards. */
int gci_lab_wait(const struct gci_lab_plan *plan, uint64_t timeout_ns, struct gci_error *e);

/* Runs a program found in PATH or an sbin directory, with `input` (may be NULL) as its standard
 * input. GCOLL_ERR_* with the first line it complained in, if it fails. */
int gci_lab_tool_run(const char *const *argv, const char *input, struct gci_error *e);

#endif
