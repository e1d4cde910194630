/* SPDX-License-Identifier: MIT
 * A class of tc's HTB for each cluster that this host sends to: one rate for all sockets of it,
 * whoever's. Packets find their class by their socket's priority, so no filters are needed.
 *
 *	struct gci_htb h;
 *
 *	rc = gci_htb_open(&h, "eth0", &e);
 *	rc = gci_htb_class(&h, 2, 4000000000, &e);		// again: another rate
 *	priority = gci_htb_priority(2);			// SO_PRIORITY of sockets to it
 *	...
 *	gci_htb_close(&h);
 *
 * The queue becomes the device's root, and only where it has none but the kernel's own: one that
 * anybody set up is never touched. Several processes of a host may open it; with the last one's
 * close it goes. What a killed process left is found by the next one, by its handle and the lock
 * that nobody holds. Needs the right to configure the network (CAP_NET_ADMIN). */
#ifndef GCI_SHAPING_HTB_H
#define GCI_SHAPING_HTB_H

#include "base/error.h"

#include <stdint.h>

#define GCI_HTB_CLASSES 256

struct gci_htb {
	int ifindex;
	int lock_fd; /* shared by all who use the queue */
};

/* GCOLL_ERR_UNSUPPORTED: the device has a queue of somebody else's, or we have no right to. */
int gci_htb_open(struct gci_htb *h, const char *dev, struct gci_error *e);
void gci_htb_close(struct gci_htb *h);

/* Class number 1 .. GCI_HTB_CLASSES sends at `bps` on the wire; it is made if it is not there. */
int gci_htb_class(struct gci_htb *h, unsigned number, uint64_t bps, struct gci_error *e);

/* Of sockets whose packets are to go by a class. */
uint32_t gci_htb_priority(unsigned number);

#endif
