/* SPDX-License-Identifier: MIT
 * What a lab tells those who measure in it: lab.json (netem/) and the WAN links' counters. */
#ifndef GCT_LIB_LAB_INFO_H
#define GCT_LIB_LAB_INFO_H

#include "base/error.h"

#include <stdint.h>

struct gct_lab_link {
	char *from, *to, *netns, *dev;
	char *counter; /* of the device: "tx" or "rx" */
};

struct gct_lab {
	uint32_t dilation; /* 1 without a lab */
	char *backend;     /* NULL without a lab */
	struct gct_lab_link *links;
	int nlinks;
};

/* Reads the file that GRIDCOLL_LAB names; without that variable, "no lab" is the answer. */
int gct_lab_read(struct gct_lab *lab, struct gci_error *e);
void gct_lab_free(struct gct_lab *lab);

/* Payload that has crossed all WAN links so far: the interfaces' byte counters less 66 bytes per
 * counted packet (Ethernet, IPv4 and TCP with timestamps; LAB counters see one packet per 64 KiB
 * super-packet). */
int gct_lab_wan_nbytes(const struct gct_lab *lab, uint64_t *nbytes, struct gci_error *e);

#endif
