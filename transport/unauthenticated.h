/* SPDX-License-Identifier: MIT
 * Connections that are not authenticated yet. Their number is bounded; when all places are taken a
 * new connection replaces an old silent one, so that silent ones keep nobody out. Pure.
 *
 *	gci_unauth_init(&unauth, GCI_UNAUTH_MOST, seed);
 *	...
 *	while (gci_unauth_is_full(&unauth))
 *		... close, or read, gci_unauth_gives_way(&unauth) ...
 *	gci_unauth_enter(&unauth, &conn->place, ip);
 *	...
 *	gci_unauth_leave(&conn->place);		// it has shown it, or is closed
 *
 * The connection that gives way is the oldest of the source that has most places. So one source can
 * have all of them while no other wants any, as the ranks behind one translated address do, and
 * takes none from others: a peer that sends its HELLO at once is let in, or turned away, before its
 * turn to give way comes. A source is an IPv4 address, or an IPv6 network of 64 bits; several of
 * them may share a number here, by chance that `seed` makes. */
#ifndef GCI_TRANSPORT_UNAUTHENTICATED_H
#define GCI_TRANSPORT_UNAUTHENTICATED_H

#include "base/clock.h"
#include "base/list.h"

#include <stdint.h>

#define GCI_UNAUTH_MOST    64
#define GCI_UNAUTH_SOURCES 256 /* that are counted apart */

struct gci_unauth_place {
	struct gci_unauth *unauth; /* NULL: in none */
	struct gci_list link;
	uint64_t turn;
	unsigned source;
};

struct gci_unauth {
	struct gci_list sources[GCI_UNAUTH_SOURCES]; /* the oldest first */
	unsigned count[GCI_UNAUTH_SOURCES];
	unsigned n, most;
	uint64_t seed, turn;
};

void gci_unauth_init(struct gci_unauth *c, unsigned most, uint64_t seed);

int gci_unauth_is_full(const struct gci_unauth *c);

/* `ip`: as in struct gci_reach. There must be room. */
void gci_unauth_enter(struct gci_unauth *c, struct gci_unauth_place *p, const uint8_t ip[16]);

/* Nothing if it is in no unauth. */
void gci_unauth_leave(struct gci_unauth_place *p);

/* NULL: nobody is there. */
struct gci_unauth_place *gci_unauth_gives_way(const struct gci_unauth *c);

/* ---- When to accept from a listening socket: at once, unless many recent connections were not of
 * the job. Then once per GCI_BACKOFF_NS: waking up costs more than refusing a connection, and all
 * that came meanwhile share it. They wait in the kernel's backlog, a rank for no longer than that.
 * Pure.
 *
 *	wait_ns = gci_backoff_wait(&backoff, now_ns);	// 0: accept; else ask again then
 *	...
 *	gci_backoff_refused(&backoff, now_ns);		// somebody was turned away, or has gone
 *
 * All zero is ready for use. */

#define GCI_BACKOFF_NS       (20 * GCI_NS_PER_MS)
#define GCI_BACKOFF_OPEN_NS  GCI_NS_PER_MS        /* in which every connection is accepted */
#define GCI_BACKOFF_APART_NS (20 * GCI_NS_PER_MS) /* so many refusals are nothing: 50 a second */
#define GCI_BACKOFF_FEW      16                   /* or so many at once */

struct gci_backoff {
	uint64_t began_ns;   /* the last turn */
	uint64_t crowded_ns; /* when the rate is normal again, without further connections */
};

void gci_backoff_refused(struct gci_backoff *t, uint64_t now_ns);

uint64_t gci_backoff_wait(struct gci_backoff *t, uint64_t now_ns);

#endif
