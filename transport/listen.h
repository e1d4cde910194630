/* SPDX-License-Identifier: MIT
 * A listening TCP socket, at a port out of a range where a firewall wants one.
 *
 *	struct gci_address at;
 *	struct gci_ports range = {5000, 5063};
 *	gci_address_make(&at, "10.1.0.3", 0);
 *	rc = gci_listen(&at, &range, rank, &fd, &e);	// at: 10.1.0.3:50xx
 */
#ifndef GCI_TRANSPORT_LISTEN_H
#define GCI_TRANSPORT_LISTEN_H

#include "base/units.h"
#include "transport/address.h"

/* Makes a non-blocking socket *fd (the caller's to close) that listens at *at, whose port it fills
 * in. "::" takes IPv4 as well, and is 0.0.0.0 where there is no IPv6. All ports of the range are
 * tried, beginning `turn` behind the first, so that the ranks of a host need not try each other's.
 * GCOLL_ERR_SYS: `e` names the address and the range. */
int gci_listen(struct gci_address *at, const struct gci_ports *ports, uint32_t turn, int *fd,
	struct gci_error *e);

#endif
