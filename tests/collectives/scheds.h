/* SPDX-License-Identifier: MIT
 * For tests: all ranks' schedules of one operation, made by hand or by an emitter, and then broken
 * by edits that keep the rest of them consistent.
 *
 *	scheds_begin(&x, GCI_BCAST, (int[]){2, 0}, 10);
 *	gci_send(&x.b[0], 1, 0, gci_slice(GCI_IN, 0, 10));
 *	gci_recv(&x.b[1], 0, 0, gci_slice(GCI_OUT, 0, 10));
 *	scheds_end(&x);
 *	sched_drop_step(&x.s[0], 0);
 *	scheds_verify(&x);		// x.report.fault == GCI_FAULT_UNMATCHED
 *	scheds_free(&x);
 *
 * Aborts when out of memory. */
#ifndef GCI_TESTS_SCHEDS_H
#define GCI_TESTS_SCHEDS_H

#include "testing/verify.h"

#define SCHEDS_MAX 140

struct scheds {
	struct gci_topo topo;
	struct gci_coll c;
	int check_senders, n;
	struct gci_builder b[SCHEDS_MAX];
	struct gci_sched s[SCHEDS_MAX];
	struct gci_verify_report report;
	struct gci_error e;
};

/* Builders with their buffers' lengths set; root 0, cluster sizes as for topology_make. */
void scheds_begin(struct scheds *x, enum gci_kind kind, const int *sizes, uint64_t count);

/* The same for any operation, `mixed`: on clusters whose ranks are mixed; `c` gives all but the
 * topology. */
void scheds_begin_with(struct scheds *x, const struct gci_coll *c, const int *sizes, int mixed);
void scheds_end(struct scheds *x);

/* By an algorithm; `c` gives all but the topology. */
void scheds_emit(struct scheds *x, const struct gci_algorithm *a, const struct gci_coll *c,
	const int *sizes);

/* The same on clusters whose ranks are mixed. */
void scheds_emit_mixed(struct scheds *x, const struct gci_algorithm *a, const struct gci_coll *c,
	const int *sizes);
void scheds_free(struct scheds *x);

/* gci_verify's status. */
int scheds_verify(struct scheds *x);

void sched_copy(struct gci_sched *to, const struct gci_sched *from);

/* Makes the forward edges from deps[], which must stand in the order of steps. */
void sched_relink(struct gci_sched *s);

/* Takes away the i-th of a step's dependencies. */
void sched_drop_dep(struct gci_sched *s, uint32_t step, uint32_t i);
void sched_add_dep(struct gci_sched *s, uint32_t step, uint32_t earlier);

/* What waited for the step waits for what it waited for. */
void sched_drop_step(struct gci_sched *s, uint32_t step);

/* `add` becomes step number `after` + 1: it waits for `after`, and what waited for that waits for
 * it too. */
void sched_insert(struct gci_sched *s, uint32_t after, struct gci_step add);

#endif
