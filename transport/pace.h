/* SPDX-License-Identifier: MIT
 * How fast connections may send: rates on the wire, a token bucket, and the rate for
 * SO_MAX_PACING_RATE.
 *
 *	struct gci_bucket b = {.bps = 100000000};
 *	room = gci_bucket_room(&b, now_ns);		// bytes on the wire that may go now
 *	gci_bucket_take(&b, nbytes, now_ns);		// so many went
 *	wait(gci_bucket_wait_ns(&b, now_ns));		// until there is room
 *
 *	rate = gci_pace_socket_rate(GCI_PACED_BY_FQ, bps, &wire);	// SO_MAX_PACING_RATE
 *
 * Pure. "On the wire" is what interface counters count: with the headers of Ethernet, IP and TCP,
 * without preamble, checksum and the gap between frames. */
#ifndef GCI_TRANSPORT_PACE_H
#define GCI_TRANSPORT_PACE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define GCI_PACE_GROUPS     257        /* of connections that share a rate; number 0 is not paced */
#define GCI_PACE_UNTIL_SENT UINT64_MAX /* in place of a rate: see gci_tp_pace_peer */

/* The part that keeps connections to their rate. FQ and TCP both get it by SO_MAX_PACING_RATE, and
 * TCP computes when each packet may leave, by its payload (Linux since 4.20,
 * tcp_update_skb_after_send; measured on 6.1: fq with the rate on the wire sends 4.6 % more). */
enum gci_paced_by {
	GCI_PACED_BY_NOBODY,
	GCI_PACED_BY_FQ,    /* the packet scheduler holds packets until then */
	GCI_PACED_BY_TCP,   /* TCP's own timers do */
	GCI_PACED_BY_CLASS, /* of the device's queue, which sockets' priority names */
	GCI_PACED_BY_US,    /* a token bucket that is asked before the socket is */
};

struct gci_pace {
	enum gci_paced_by by;
	uint64_t bps;          /* on the wire, of a group's connections together */
	uint32_t priority;     /* BY_CLASS: SO_PRIORITY */
	uint32_t burst_nbytes; /* of a peer's own rate, see gci_tp_pace_peer */
};

/* How payload becomes packets. */
struct gci_wire {
	uint32_t mss_nbytes;  /* payload of a full packet */
	uint32_t head_nbytes; /* of its headers, Ethernet's among them */
};

/* Of a connection whose packets carry mss_nbytes; 0: as Ethernet has it. */
struct gci_wire gci_wire_of(uint32_t mss_nbytes, int ipv6, int timestamps);

/* What so much payload is on the wire, in full packets, and the other way round. */
uint64_t gci_wire_nbytes(const struct gci_wire *w, uint64_t payload_nbytes);
uint64_t gci_wire_payload(const struct gci_wire *w, uint64_t wire_nbytes);

/* Bytes per second for SO_MAX_PACING_RATE, at least 1, so that `bps` are on the wire; UINT64_MAX
 * (no limit) unless the kernel paces. */
uint64_t gci_pace_socket_rate(enum gci_paced_by by, uint64_t bps, const struct gci_wire *w);

/* The part that paces a pair of ranks, which may send `burst_nbytes` at once (0: any). TCP's
 * packets hold a millisecond of the rate, at least two segments, and more only where round trips
 * are short (Linux, tcp_tso_autosize). Where bursts may be much longer than those, the token bucket
 * paces: fewer and longer packets cost less on every host. */
enum gci_paced_by gci_pace_pair_by(uint64_t bps, uint32_t burst_nbytes, uint64_t rtt_ns);

/* Of a rate shared by n connections, each one's. */
uint64_t gci_pace_share(uint64_t bps, unsigned n);

/* A token bucket, kept as the time at which all that was taken is paid. A sender whose timer was
 * late catches up with as much as GCI_BUCKET_CREDIT_NS. */
#define GCI_BUCKET_CREDIT_NS 4000000u

struct gci_bucket {
	uint64_t bps;     /* at least 1 */
	uint64_t paid_ns; /* when all that was taken is paid */
};

/* 0: none before gci_bucket_wait_ns. Else at least two full packets, so that no timer is needed for
 * each; at most what the bucket pays in a millisecond, or the two. */
uint64_t gci_bucket_room(const struct gci_bucket *b, uint64_t now_ns);
void gci_bucket_take(struct gci_bucket *b, uint64_t nbytes, uint64_t now_ns);
uint64_t gci_bucket_wait_ns(const struct gci_bucket *b, uint64_t now_ns);

/* Another rate; what is owed is owed in bytes. */
void gci_bucket_set(struct gci_bucket *b, uint64_t bps, uint64_t now_ns);

/* Cuts n pieces off behind `most` bytes in all; returns how many are left. */
int gci_pace_trim(struct iovec *iov, int n, uint64_t most);

/* Of n pieces together. */
static inline size_t gci_pace_nbytes(const struct iovec *iov, int n)
{
	size_t nbytes = 0;
	int i;

	for (i = 0; i < n; i++)
		nbytes += iov[i].iov_len;
	return nbytes;
}

#endif
