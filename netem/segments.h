/* SPDX-License-Identifier: MIT
 * Packets of many segments, as TCP hands them to a card, and to a TAP device that says it can take
 * them (TUN_F_TSO4, TUN_F_TSO6): one set of headers, up to 64 KiB of data.
 *
 *	struct gci_segments s;
 *	gci_segments_read(&s, &vnet, frame, len, len);
 *	...					// s.n segments, on the wire as long as it says
 *	gci_segments_cut(&s, &vnet, frame, first, count, &out);
 *	...	// a packet of its own: out.vnet, out.headers, then out.nbytes of data from out.offset
 *
 * Pure. */
#ifndef GCI_NETEM_SEGMENTS_H
#define GCI_NETEM_SEGMENTS_H

#include <linux/virtio_net.h>
#include <stddef.h>
#include <stdint.h>

#define GCI_SEGMENTS_HEADERS \
	192 /* Ethernet's 14, IP's and TCP's at most 60 each, IPv6 extensions */

struct gci_segments {
	uint32_t nbytes;             /* of the packet, headers and all */
	uint16_t headers;            /* their length; 0: one segment that nothing is known of */
	uint16_t network, transport; /* where IP's and TCP's begin */
	uint16_t data;               /* of each segment but the last */
	uint16_t n;                  /* segments, 1 at least */
	uint32_t segment_nbytes, last_nbytes; /* on the wire, each with its headers */
	uint64_t flow;                        /* a hash of addresses, ports, and protocol */
	uint64_t sender;                      /* of the source's address */
};

struct gci_segments_cut {
	struct virtio_net_hdr vnet;
	uint8_t headers[GCI_SEGMENTS_HEADERS];
	uint16_t nheaders;
	uint32_t offset, nbytes; /* of the data, in the frame */
};

/* `frame` holds the first `have` bytes of a packet of `nbytes`. What cannot be cut, be it since the
 * packet is not TCP's or since it is malformed, is one segment. */
void gci_segments_read(struct gci_segments *s, const struct virtio_net_hdr *vnet,
	const uint8_t *frame, size_t have, size_t nbytes);

/* Segments first .. first + count - 1 as a packet; all of them: the packet as it is. */
void gci_segments_cut(const struct gci_segments *s, const struct virtio_net_hdr *vnet,
	const uint8_t *frame, uint16_t first, uint16_t count, struct gci_segments_cut *out);

/* Flips a bit (a number that is taken modulo those there are) of a packet of one segment behind its
 * Ethernet header, such that the receiver can see it: what it left to be summed is summed before. */
void gci_segments_corrupt(
	struct virtio_net_hdr *vnet, uint8_t *frame, size_t nbytes, uint64_t random);

#endif
