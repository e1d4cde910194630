/* SPDX-License-Identifier: MIT
 * Socket addresses as text: "10.1.0.3:5000", "[fe80::1%eth0]:5000". Numeric only: no resolver. */
#ifndef GCI_TRANSPORT_ADDRESS_H
#define GCI_TRANSPORT_ADDRESS_H

#include "base/error.h"
#include "base/units.h"

#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>

#define GCI_ADDRESS_TEXT 64

struct gci_address {
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	};
	socklen_t len;
};

/* 0, or GCOLL_ERR_INVAL. gci_address_parse takes "IP:PORT" or "[IP]:PORT". */
int gci_address_parse(struct gci_address *a, const char *text);
int gci_address_make(struct gci_address *a, const char *ip, uint16_t port);

static inline uint16_t gci_address_port(const struct gci_address *a)
{
	return ntohs(a->v4.sin_port); /* at the same place in sockaddr_in6 */
}

static inline void gci_address_set_port(struct gci_address *a, uint16_t port)
{
	a->v4.sin_port = htons(port);
}

/* ::ffff:10.1.0.3, which a socket that takes both families tells of, becomes 10.1.0.3. */
void gci_address_unmap(struct gci_address *a);

/* Into `text`; "?" for what is no internet address. */
void gci_address_format(const struct gci_address *a, char text[GCI_ADDRESS_TEXT]);

/* The same without the port: "10.1.0.3", "fe80::1%eth0". */
void gci_address_ip(const struct gci_address *a, char text[GCI_ADDRESS_TEXT]);

/* ---- A listening TCP socket, at a port out of a range where a firewall wants one.
 *
 *	struct gci_address at;
 *	struct gci_ports range = {5000, 5063};
 *	gci_address_make(&at, "10.1.0.3", 0);
 *	rc = gci_listen(&at, &range, rank, &fd, &e);	// at: 10.1.0.3:50xx */

/* Makes a non-blocking socket *fd (the caller's to close) that listens at *at, whose port it fills
 * in. "::" takes IPv4 as well, and is 0.0.0.0 where there is no IPv6. All ports of the range are
 * tried, beginning `turn` behind the first, so that the ranks of a host need not try each other's.
 * GCOLL_ERR_SYS: `e` names the address and the range. */
int gci_listen(struct gci_address *at, const struct gci_ports *ports, uint32_t turn, int *fd,
	struct gci_error *e);

#endif
