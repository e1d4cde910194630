/* SPDX-License-Identifier: MIT */
#include "transport/crowd.h"

#include "base/prng.h"

#include <string.h>

#define SOURCE_NBYTES 8 /* all of an IPv4 address, the network of an IPv6 one */

void gci_crowd_init(struct gci_crowd *c, unsigned most, uint64_t seed)
{
	unsigned i;

	memset(c, 0, sizeof(*c));
	c->most = most;
	c->seed = seed;
	for (i = 0; i < GCI_CROWD_SOURCES; i++)
		gci_list_init(&c->sources[i]);
}

int gci_crowd_is_full(const struct gci_crowd *c)
{
	return c->n >= c->most;
}

void gci_crowd_enter(struct gci_crowd *c, struct gci_crowd_place *p, const uint8_t ip[16])
{
	p->source = (unsigned)(gci_digest_bytes(c->seed, ip, SOURCE_NBYTES) % GCI_CROWD_SOURCES);
	p->turn = c->turn++;
	p->crowd = c;
	gci_list_push(&c->sources[p->source], &p->link);
	c->count[p->source]++;
	c->n++;
}

void gci_crowd_leave(struct gci_crowd_place *p)
{
	if (!p->crowd)
		return;
	gci_list_del(&p->link);
	p->crowd->count[p->source]--;
	p->crowd->n--;
	p->crowd = NULL;
}

struct gci_crowd_place *gci_crowd_gives_way(const struct gci_crowd *c)
{
	struct gci_crowd_place *found = NULL, *p;
	unsigned i;

	for (i = 0; i < GCI_CROWD_SOURCES; i++) {
		if (!c->count[i] || (found && c->count[i] < c->count[found->source]))
			continue;
		p = gci_container(c->sources[i].next, struct gci_crowd_place, link);
		if (!found || c->count[i] > c->count[found->source] || p->turn < found->turn)
			found = p;
	}
	return found;
}
