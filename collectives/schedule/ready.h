/* SPDX-License-Identifier: MIT
 * The readiness core: what may start now, given what has finished. The only place that knows
 * the semantics of dependencies; verifier and executor (and any simulator) ask it.
 *
 *	gci_ready_init(&r, sched);
 *	while (!gci_ready_finished(&r)) {
 *		while (gci_ready_next(&r, &step))
 *			start(step);
 *		gci_ready_done(&r, one_that_is_over);
 *	}
 *	gci_ready_free(&r);
 */
#ifndef GCI_COLLECTIVES_SCHEDULE_READY_H
#define GCI_COLLECTIVES_SCHEDULE_READY_H

#include "collectives/schedule/schedule.h"

struct gci_ready {
	const struct gci_sched *sched;
	uint32_t *waiting; /* [step]: dependencies not yet finished */
	uint32_t *heap;    /* steps that may start, least number on top */
	uint32_t nheap, ndone;
};

/* 0 or GCOLL_ERR_NOMEM. `s` must outlive `r`. */
int gci_ready_init(struct gci_ready *r, const struct gci_sched *s);
void gci_ready_free(struct gci_ready *r);

/* Takes the step of least number that may start; false when there is none now. */
int gci_ready_next(struct gci_ready *r, uint32_t *step);

/* Step `step`, which was taken before, has finished. */
void gci_ready_done(struct gci_ready *r, uint32_t step);

static inline int gci_ready_finished(const struct gci_ready *r)
{
	return r->ndone == r->sched->nsteps;
}

#endif
