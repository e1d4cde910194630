/* SPDX-License-Identifier: MIT
 * What wires do to packets, in real time: which of them passes, when, and how. A wire is a queue, a
 * serializer and a way of some delay; a path leads through one wire or several, and several paths may
 * share a wire.
 *
 *	struct gci_wires *w = gci_wires_new(1, seed);
 *	gci_wires_set(w, 0, &model, now);
 *	path = gci_wires_path(w, (const int[]){0}, 1);
 *	gci_wires_put(w, path, &packet, now);
 *	while (gci_wires_next(w) <= now)
 *		if (gci_wires_take(w, now, 0, &out) && out.count)
 *			...			// segments first .. first + count - 1 of out.cookie leave
 *	gci_wires_free(w);
 *
 * Pure: time comes in, deadlines go out, and the packets' bytes stay with the caller. What TCP hands
 * to a card as one packet of up to 64 KiB is here one packet of many segments: the wire takes the time
 * of all of them, and queues and losses cut it where they strike. */
#ifndef GCI_NETEM_WIRES_H
#define GCI_NETEM_WIRES_H

#include "base/clock.h"

#include <stdint.h>

#define GCI_WIRES_MAX_HOPS 34
#define GCI_WIRES_LATE_NS  GCI_NS_PER_MS

/* Of one wire. Everything zero: packets pass at once. */
struct gci_wire_model {
	uint64_t rate_bps; /* 0: no limit */
	uint64_t delay_ns;
	/* At which senders' cards send; 0: at once. Packets come here before all of them could have
	 * left there: so they are late by what their length takes there and not here, in order. And
	 * whoever looks late finds many at once, which no card could have sent: they begin one behind
	 * the other, and leave the path so, but for what a card sends in GCI_WIRES_LATE_NS, and a third
	 * faster until they are late no more. */
	uint64_t sender_bps;
	uint64_t jitter_ns;     /* as much more or less, evenly; packets may overtake each other */
	uint64_t queue_nbytes;  /* what may wait for the serializer */
	uint64_t flow_rate_bps; /* most that one connection gets; 0: no such limit */
	uint32_t loss_ppm;
	uint32_t loss_burst; /* segments that a loss takes on average (Gilbert's model); 0, 1: each
				for itself */
	uint32_t reorder_ppm, duplicate_ppm, corrupt_ppm;
	/* CoDel (RFC 8289): packets that waited longer than the target for an interval are dropped
	 * more and more often. 0: only a full queue drops. */
	uint64_t codel_target_ns, codel_interval_ns;
};

/* Sizes are those on the wire, with Ethernet's header. All segments but the last are of one size. */
struct gci_wire_packet {
	uint64_t cookie; /* the caller's */
	uint64_t flow;   /* tells connections apart */
	uint64_t sender; /* and hosts */
	uint32_t segment_nbytes, last_nbytes;
	uint16_t nsegs; /* 1 at least */
};

struct gci_wire_out {
	uint64_t cookie, due_ns;
	int path;
	uint16_t first, count; /* which segments; none: the packet is only let go of */
	int corrupt;           /* 1: a bit is to be flipped */
	int last;              /* 1: nothing more of this cookie is here, or comes */
};

struct gci_wire_counts {
	uint64_t entered, passed;        /* segments that came; that went on, doubles too */
	uint64_t entered_nbytes, nbytes; /* of them */
	uint64_t overflowed, early;      /* dropped by a full queue; by CoDel */
	uint64_t lost;                   /* on the way */
	uint64_t duplicated, corrupted, reordered;
	uint64_t queue_most_nbytes; /* the longest that the queue was */
};

struct gci_wires;

/* NULL: out of memory. The same seed and the same packets at the same times give the same losses. */
struct gci_wires *gci_wires_new(int nwires, uint64_t seed);
void gci_wires_free(struct gci_wires *w);

/* Also while packets pass: what is in the serializer ends as it began; what is under way stays so. */
void gci_wires_set(struct gci_wires *w, int wire, const struct gci_wire_model *model);

/* A way through these wires, 1 to GCI_WIRES_MAX_HOPS; its number counts from 0. -1: out of memory. */
int gci_wires_path(struct gci_wires *w, const int *wires, int n);

/* Takes a packet at `now`, which never goes back. -1: out of memory, and nothing was taken. Else
 * gci_wires_take says in the end what became of it. */
int gci_wires_put(struct gci_wires *w, int path, const struct gci_wire_packet *p, uint64_t now);

/* When gci_wires_take is to be called next, since something may leave; GCI_NEVER: not before another
 * packet comes. */
uint64_t gci_wires_next(const struct gci_wires *w);

/* Does what is due by `now`; true where that brought something out, be it by `ahead` early. */
int gci_wires_take(struct gci_wires *w, uint64_t now, uint64_t ahead, struct gci_wire_out *out);

/* Owned by `w`. */
const struct gci_wire_counts *gci_wires_counts(const struct gci_wires *w, int wire);

#endif
