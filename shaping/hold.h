/* SPDX-License-Identifier: MIT
 * Who of a host's processes shapes, and whether they still live: a lock file in /run. A process has
 * a number for as long as it lives; numbers do not come again. The kernel gives the lock back
 * whatever way the process ends.
 *
 *	struct gci_hold h;
 *
 *	rc = gci_hold_open(&h, &e);
 *	rc = gci_hold_lock(&h, &e);	(what others do is over, or waits)
 *	rc = gci_hold_join(&h, &e);	(h.id is ours)
 *	if (!gci_hold_lives(&h, other))
 *		...
 *	gci_hold_unlock(&h);
 *	gci_hold_close(&h);		(h.id is nobody's)
 */
#ifndef GCI_SHAPING_HOLD_H
#define GCI_SHAPING_HOLD_H

#include "base/error.h"

#include <stdint.h>

#define GCI_HOLD_FILE "/run/gridcoll-shape.lock"

struct gci_hold {
	int fd;
	uint64_t id;    /* 0: did not join */
	uint64_t realm; /* the file: of other files' numbers nothing can be said */
};

int gci_hold_open(struct gci_hold *h, struct gci_error *e);
void gci_hold_close(struct gci_hold *h);

/* One process at a time; waits. */
int gci_hold_lock(struct gci_hold *h, struct gci_error *e);
void gci_hold_unlock(struct gci_hold *h);

int gci_hold_join(struct gci_hold *h, struct gci_error *e);

/* Whether a process has this number (h's own counts). 1 when that cannot be known. */
int gci_hold_lives(const struct gci_hold *h, uint64_t id);

#endif
