/* SPDX-License-Identifier: MIT
 * Where connections come from that have not shown yet that they are of the job. Pure.
 *
 *	if (gci_crowd_count(&crowd, ip) >= GCI_CROWD_EACH && !it_is_a_rank's)
 *		... refuse it ...
 *	gci_crowd_enter(&crowd, ip);
 *	...
 *	gci_crowd_leave(&crowd, ip);		// it has shown it, or is closed */
#ifndef GCI_TRANSPORT_CROWD_H
#define GCI_TRANSPORT_CROWD_H

#include <stdint.h>

#define GCI_CROWD_MOST 64 /* at a time */
#define GCI_CROWD_EACH 8  /* from one address, unless a rank has it */

struct gci_crowd {
	uint8_t ip[GCI_CROWD_MOST][16]; /* one for each connection */
	unsigned n;
};

unsigned gci_crowd_count(const struct gci_crowd *c, const uint8_t ip[16]);
void gci_crowd_enter(struct gci_crowd *c, const uint8_t ip[16]); /* n < GCI_CROWD_MOST */
void gci_crowd_leave(struct gci_crowd *c, const uint8_t ip[16]);

#endif
