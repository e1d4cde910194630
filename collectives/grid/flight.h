/* SPDX-License-Identifier: MIT
 * What one pair of ranks has under way on the path between their clusters: over how many
 * connections, at which rate, how many bytes. The one rule for communicators, models and tools.
 *
 *	struct gci_flight f;
 *	gci_flight_make(&f, there, back, from_nic_bps, to_nic_bps);
 *	... f.streams connections, each of which must be able to have f.stream_nbytes in flight
 *
 * Pure. Figures that nobody knows are 0. */
#ifndef GCI_COLLECTIVES_GRID_FLIGHT_H
#define GCI_COLLECTIVES_GRID_FLIGHT_H

#include "collectives/grid/grid.h"

#define GCI_DEFAULT_STREAMS 4 /* connections per pair of ranks in different clusters */

/* Most that are opened unless the grid file asks for more: each has buffers at both ends, and
 * every pair of ranks that meets has as many. */
#define GCI_MOST_FLOWS 16

struct gci_flight {
	uint32_t streams;
	uint64_t bps;           /* the least of both NICs and the link; 0: unknown */
	uint64_t rtt_ns;        /* there and back */
	uint64_t nbytes;        /* in flight at that rate: rate x round trip; 0: unknown */
	uint64_t stream_nbytes; /* of one of the streams; no more than flow_rate allows */
};

/* Between ranks of two clusters. `back` is the same path the other way: both have the same streams,
 * the larger of their numbers. NICs: bits per second, 0: unknown. */
void gci_flight_make(struct gci_flight *f, const struct gci_link *there,
	const struct gci_link *back, uint64_t from_nic_bps, uint64_t to_nic_bps);

/* For one long message between ranks that are idle otherwise: over so many, TCP's slow start, which has
 * ten segments in each, is soon over, and a loss halves a small part. Never less than f->streams. */
uint32_t gci_flight_bulk_streams(const struct gci_flight *f);

/* Inside a cluster: one stream. */
void gci_flight_inside(struct gci_flight *f, uint64_t nic_bps, uint64_t lan_delay_ns);

#endif
