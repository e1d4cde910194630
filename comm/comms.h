/* SPDX-License-Identifier: MIT
 * The communicators of a process by their numbers, which every message that arrives names: a hash
 * table, so that many cost no more than one.
 *
 *	struct gci_comms t = {0};
 *	if (gci_comms_add(&t, c))		// by c->id, which must not be there yet
 *		return GCOLL_ERR_NOMEM;
 *	c = gci_comms_find(&t, 7);		// NULL: not here
 *	gci_comms_del(&t, c);
 *	gci_comms_free(&t); */
#ifndef GCI_COMM_COMMS_H
#define GCI_COMM_COMMS_H

#include <stddef.h>
#include <stdint.h>

struct gcoll_comm;

struct gci_comms {
	struct gcoll_comm **slots; /* chained by same_slot */
	size_t nslots;             /* a power of two, or 0 */
	size_t n;
};

/* 0 or GCOLL_ERR_NOMEM. */
int gci_comms_add(struct gci_comms *t, struct gcoll_comm *c);

/* One that was never added is legal. */
void gci_comms_del(struct gci_comms *t, struct gcoll_comm *c);

struct gcoll_comm *gci_comms_find(const struct gci_comms *t, uint32_t id);

/* The table only. */
void gci_comms_free(struct gci_comms *t);

#endif
