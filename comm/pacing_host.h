/* SPDX-License-Identifier: MIT
 * What this rank has to do with its host's device, which others send by, too: classes of HTB for
 * the host; else, who paces there already.
 *
 *	rc = gci_pacing_host_open(&h, "eth0", GCI_PACE_HTB, first, &e);
 *	...
 *	gci_pacing_host_close(h);
 *
 * All ranks of a host ask for the same rate, and any of them may end first. */
#ifndef GCI_COMM_PACING_HOST_H
#define GCI_COMM_PACING_HOST_H

#include "shaping/ladder.h"

#include <stdint.h>

struct gci_pacing_host;

enum gci_pacing_mark { GCI_PACING_NO_MARK, GCI_PACING_MARK, GCI_PACING_MARK_AGAIN };

/* The lowest rank of a host marks the device as paced; 1 is returned where another job has marked
 * it, unless both are paced by EDT, which they share: budgets add up then. In a later epoch the one
 * who has may be a rank of this job that was left out, and lives still: that is no refusal. HTB
 * changes the device's queue, which may be refused with a reason. */
int gci_pacing_host_open(struct gci_pacing_host **h, const char *device, enum gci_pace_how holds,
	enum gci_pacing_mark mark, struct gci_error *e);

/* NULL is legal. */
void gci_pacing_host_close(struct gci_pacing_host *h);

#endif
