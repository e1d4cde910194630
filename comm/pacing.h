/* SPDX-License-Identifier: MIT
 * What this rank may send to other clusters, and who keeps it to that (shaping/): a rate for each
 * cluster, from the budget, or where none is given the link's rate if more hosts send than it
 * carries, divided by the number of senders of the operations under way. That number is a property
 * of their schedules, which all ranks know, so nobody has to be asked.
 *
 *	rc = gci_pacing_open(engine, GCI_PACE_AUTO, &own, ranks, &e);
 *	...
 *	gci_pacing_update(op);				// it has begun, or ended
 *	gci_pacing_budget(engine, from, to, bps);	// the launcher has a new one
 *	...
 *	gci_pacing_close(engine);
 *
 * Without open, or with GCI_PACE_OFF, the others do nothing. The engine's thread. */
#ifndef GCI_COMM_PACING_H
#define GCI_COMM_PACING_H

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

/* Another way, from now on. */
int gci_pacing_set(struct gci_engine *engine, enum gci_pace_how how, struct gci_error *e);

/* Whether it moves so much that it matters who sends, and how fast: a shorter one is over before. */
int gci_pacing_is_long(const struct gci_op *op);

/* From how many ranks traffic goes where has changed, perhaps: `op` has begun or ended. */
void gci_pacing_update(const struct gci_op *op);

/* Connections are being filled, perhaps from all ranks at once; or that is over. */
void gci_pacing_warming(struct gci_engine *engine, int on);

/* A budget for what goes from one cluster of the grid to another; 0: none. */
void gci_pacing_budget(struct gci_engine *engine, uint32_t from, uint32_t to, uint64_t bps);

/* The number by which the transport knows the connections to a cluster of the world. */
uint32_t gci_pacing_group(const struct gci_engine *engine, int cluster);

#endif
