/* SPDX-License-Identifier: MIT
 * What this rank may send to other clusters, and who keeps it to that (shaping/): a rate for each
 * cluster, from the budget, or where none is given the link's rate if more hosts send than it
 * carries, divided by the number of senders of the operations under way. That number is a property
 * of their schedules, which all ranks know, so nobody has to be asked.
 *
 *	rc = gci_pacing_open(engine, GCI_PACE_AUTO, &own, ranks, &e);
 *	...
 *	...						// engine->flow tells of operations and budgets
 *	gci_pacing_close(engine);
 *
 * Without open, or with GCI_PACE_OFF, the others do nothing. The engine's thread. */
#ifndef GCI_FLOW_PACING_H
#define GCI_FLOW_PACING_H

#include "shaping/ladder.h"

#include <stdint.h>

struct gci_ctl_rank;
struct gci_engine;
struct gci_op;
struct gci_own;

/* `own`: this rank's addresses, `ranks`: where each rank is reached; both live as long. `again`: in
 * a later epoch of the job. GCOLL_ERR_UNSUPPORTED: what is asked for by name is not to be had. Call
 * after the engine has its transport. */
int gci_pacing_open(struct gci_engine *engine, enum gci_pace_how how, const struct gci_own *own,
	const struct gci_ctl_rank *ranks, int again, struct gci_error *e);
void gci_pacing_close(struct gci_engine *engine);

/* Connections are being filled, perhaps from all ranks at once; or that is over. */
void gci_pacing_warming(struct gci_engine *engine, int on);

/* ---- What this rank has to do with its host's device, which others send by, too: classes of HTB for
 * the host; else, who paces there already.
 *
 *	rc = gci_pacing_host_open(&h, "eth0", GCI_PACE_HTB, first, &e);
 *	...
 *	gci_pacing_host_close(h);
 *
 * All ranks of a host ask for the same rate, and any of them may end first. */

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
