/* SPDX-License-Identifier: MIT
 * Networks by which shaping tells where packets go: 10.2.0.0/16, 10.2.0.7, fd00:2::/32.
 *
 *	struct gci_net net;
 *	char text[GCI_NET_TEXT];
 *
 *	if (gci_net_parse(&net, "10.2.0.0/16", &e))
 *		puts(e.text);
 *	puts(gci_net_text(&net, text));
 */
#ifndef GCI_SHAPING_NET_H
#define GCI_SHAPING_NET_H

#include "base/error.h"

#include <stdint.h>

#define GCI_NET_TEXT 52 /* bytes of the longest, its zero among them */

struct gci_net {
	uint8_t six;    /* 4 or 6 */
	uint8_t bits;   /* how many of the address count: at most 32 or 128 */
	uint8_t ip[16]; /* an IPv4 address is the first four bytes; bits that do not count are 0 */
};

/* A network or a single address, numbers only. GCOLL_ERR_INVAL, and in `e` what was expected. */
int gci_net_parse(struct gci_net *net, const char *text, struct gci_error *e);

/* A single address, of IPv4 as ::ffff:a.b.c.d. */
struct gci_net gci_net_of_ip(const uint8_t ip[16]);

/* As gci_net_parse() takes it; returns `text`. */
const char *gci_net_text(const struct gci_net *net, char text[GCI_NET_TEXT]);

#endif
