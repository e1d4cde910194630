/* SPDX-License-Identifier: MIT
 * Finding linux.uml and putting together how it is started. */
#ifndef GCI_NETEM_UML_START_H
#define GCI_NETEM_UML_START_H

#include "netem/keeper.h"

#include <stdint.h>

/* Path of linux.uml into `out`, or GCOLL_ERR_UNSUPPORTED and how to get it. */
int gci_uml_find(char *out, size_t size, struct gci_error *e);

/* Path of our own program into `out`. */
int gci_self_path(char *out, size_t size, struct gci_error *e);

/* Starts the guest over `dir` (private, holds file "boot"): its console goes to `console`, its
 * serial line reads `line_in` and writes `line_out`. */
int gci_uml_launch(struct gci_keeper *k, const char *dir, uint64_t mem_nbytes, int console,
	int line_in, int line_out, struct gci_error *e);

#endif
