/* SPDX-License-Identifier: MIT
 * Connections that have not shown yet that they are of the job. There is room for so many; nobody
 * is kept out by those who came before and say nothing: one of them gives way. Pure.
 *
 *	gci_crowd_init(&crowd, GCI_CROWD_MOST, seed);
 *	...
 *	while (gci_crowd_is_full(&crowd))
 *		... close, or read, gci_crowd_gives_way(&crowd) ...
 *	gci_crowd_enter(&crowd, &conn->place, ip);
 *	...
 *	gci_crowd_leave(&conn->place);		// it has shown it, or is closed
 *
 * Who gives way is the oldest of the source that has most places. So one source can have all of
 * them while nobody else wants any, as the ranks behind one translated address do, and takes none
 * from others: whoever sends what it has to say at once is let in, or turned away, before its turn
 * comes. A source is an IPv4 address, or an IPv6 network of 64 bits; several of them may share a
 * number here, by chance that `seed` makes. */
#ifndef GCI_TRANSPORT_CROWD_H
#define GCI_TRANSPORT_CROWD_H

#include "base/list.h"

#include <stdint.h>

#define GCI_CROWD_MOST    64
#define GCI_CROWD_SOURCES 256 /* that are told apart */

struct gci_crowd_place {
	struct gci_crowd *crowd; /* NULL: in none */
	struct gci_list link;
	uint64_t turn;
	unsigned source;
};

struct gci_crowd {
	struct gci_list sources[GCI_CROWD_SOURCES]; /* the oldest first */
	unsigned count[GCI_CROWD_SOURCES];
	unsigned n, most;
	uint64_t seed, turn;
};

void gci_crowd_init(struct gci_crowd *c, unsigned most, uint64_t seed);

int gci_crowd_is_full(const struct gci_crowd *c);

/* `ip`: as in struct gci_reach. There must be room. */
void gci_crowd_enter(struct gci_crowd *c, struct gci_crowd_place *p, const uint8_t ip[16]);

/* Nothing if it is in no crowd. */
void gci_crowd_leave(struct gci_crowd_place *p);

/* NULL: nobody is there. */
struct gci_crowd_place *gci_crowd_gives_way(const struct gci_crowd *c);

#endif
