/* SPDX-License-Identifier: MIT
 * What this machine's processors carry of a lab: one second of bytes that pass from host to host, as
 * in a lab of four whose links have no limit; and how late those links were. */
#ifndef GCI_NETEM_TRIAL_H
#define GCI_NETEM_TRIAL_H

#include "base/error.h"

#include <stdint.h>

struct gci_trial_result {
	uint64_t bps;     /* see below */
	uint64_t late_ns; /* of a hundred packets, one was later */
};

/* bps: bits per second that all NICs of a lab of the backend tap (netem/tap.h) may send together,
 * so that jobs of gridcoll leave a fifth of the processors idle. What else runs now counts. From a
 * process without other threads; takes a second, and leaves nothing. */
int gci_trial_run(struct gci_trial_result *out, struct gci_error *e);

#endif
