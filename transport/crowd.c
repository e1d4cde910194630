/* SPDX-License-Identifier: MIT */
#include "transport/crowd.h"

#include <string.h>

unsigned gci_crowd_count(const struct gci_crowd *c, const uint8_t ip[16])
{
	unsigned i, n = 0;

	for (i = 0; i < c->n; i++)
		n += !memcmp(c->ip[i], ip, 16);
	return n;
}

void gci_crowd_enter(struct gci_crowd *c, const uint8_t ip[16])
{
	memcpy(c->ip[c->n++], ip, 16);
}

void gci_crowd_leave(struct gci_crowd *c, const uint8_t ip[16])
{
	unsigned i;

	for (i = 0; i < c->n; i++) {
		if (memcmp(c->ip[i], ip, 16) != 0)
			continue;
		memcpy(c->ip[i], c->ip[--c->n], 16);
		return;
	}
}
