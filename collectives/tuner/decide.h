/* SPDX-License-Identifier: MIT
 * Which way to run an operation when nobody has said: what stands behind "auto".
 */
#ifndef GCI_COLLECTIVES_TUNER_DECIDE_H
#define GCI_COLLECTIVES_TUNER_DECIDE_H

#include "collectives/tuner/table.h"

enum gci_decided_by {
	GCI_BY_DEFAULT, /* the kind's first algorithm that can */
	GCI_BY_USER,    /* gcoll_comm_set() */
	GCI_BY_TABLE,
};

struct gci_decision {
	struct gci_candidate how;
	enum gci_decided_by by;
	uint64_t ns; /* that it is expected to take; 0: not known */
};

/* "default", "set", "table" */
const char *gci_decided_by_name(enum gci_decided_by by);

/* The kind's first algorithm that can run `c`; NULL: none. */
const struct gci_algorithm *gci_decide_first(const struct gci_coll *c);

/* As the table says. False when it does not know, or names what cannot run `c`. */
int gci_decide_by_table(
	const struct gci_table *t, const struct gci_coll *c, struct gci_decision *d);

#endif
