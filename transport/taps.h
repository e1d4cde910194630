/* SPDX-License-Identifier: MIT
 * TCP_INFO of a process's open connections, for another thread than the transport's: a list of the
 * connections, which the transport keeps, and the kernel's figures of each.
 *
 *	struct gci_taps *taps = gci_taps_create();	// in the transport's config
 *	...
 *	gci_taps_look(taps, on_flow, user);		// from any thread: once for each
 *	...
 *	gci_taps_free(taps);				// after the transport
 *
 * Bytes of connections that are closed meanwhile still count: they are reported with `open` = 0,
 * once for each peer, so sums never fall as long as the transport lives. */
#ifndef GCI_TRANSPORT_TAPS_H
#define GCI_TRANSPORT_TAPS_H

#include <stdint.h>

struct gci_taps;

/* One connection, by TCP_INFO. Bytes are TCP payload; what is sent again counts again in `sent`. */
struct gci_flow {
	int peer;
	uint32_t stream;
	int open;
	uint64_t sent_nbytes, resent_nbytes, acked_nbytes, received_nbytes;
	uint64_t resent;       /* segments */
	uint64_t rtt_ns;       /* smoothed; the following are 0 when it is closed */
	uint64_t cwnd_nbytes;  /* congestion window */
	uint64_t pacing_bps;   /* 0: none */
	uint64_t delivery_bps; /* as TCP last measured it */
};

/* NULL: out of memory. */
struct gci_taps *gci_taps_create(void);
void gci_taps_free(struct gci_taps *t);

/* The transport's: a connection is open, and is about to be closed. `t` may be NULL. */
void gci_taps_add(struct gci_taps *t, int fd, int peer, uint32_t stream);
void gci_taps_remove(struct gci_taps *t, int fd);

/* Costs a system call for each. No connection is opened or closed meanwhile: `each` is short. */
void gci_taps_look(
	struct gci_taps *t, void (*each)(void *user, const struct gci_flow *f), void *user);

/* How many it would look at. */
unsigned gci_taps_count(struct gci_taps *t);

#endif
