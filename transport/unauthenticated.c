/* SPDX-License-Identifier: MIT */
#include "transport/unauthenticated.h"

#include "base/prng.h"

#include <string.h>

#define SOURCE_NBYTES 8 /* all of an IPv4 address, the network of an IPv6 one */

void gci_unauth_init(struct gci_unauth *c, unsigned most, uint64_t seed)
{
	unsigned i;

	memset(c, 0, sizeof(*c));
	c->most = most;
	c->seed = seed;
	for (i = 0; i < GCI_UNAUTH_SOURCES; i++)
		gci_list_init(&c->sources[i]);
}

int gci_unauth_is_full(const struct gci_unauth *c)
{
	return c->n >= c->most;
}

void gci_unauth_enter(struct gci_unauth *c, struct gci_unauth_place *p, const uint8_t ip[16])
{
	p->source = (unsigned)(gci_digest_bytes(c->seed, ip, SOURCE_NBYTES) % GCI_UNAUTH_SOURCES);
	p->turn = c->turn++;
	p->unauth = c;
	gci_list_push(&c->sources[p->source], &p->link);
	c->count[p->source]++;
	c->n++;
}

void gci_unauth_leave(struct gci_unauth_place *p)
{
	if (!p->unauth)
		return;
	gci_list_del(&p->link);
	p->unauth->count[p->source]--;
	p->unauth->n--;
	p->unauth = NULL;
}

struct gci_unauth_place *gci_unauth_gives_way(const struct gci_unauth *c)
{
	struct gci_unauth_place *found = NULL, *p;
	unsigned i;

	for (i = 0; i < GCI_UNAUTH_SOURCES; i++) {
		if (!c->count[i] || (found && c->count[i] < c->count[found->source]))
			continue;
		p = gci_container(c->sources[i].next, struct gci_unauth_place, link);
		if (!found || c->count[i] > c->count[found->source] || p->turn < found->turn)
			found = p;
	}
	return found;
}

/* ---- When to look who has come. */

#define FEW_NS (GCI_BACKOFF_FEW * GCI_BACKOFF_APART_NS)

/* It is over as soon as with twice as many: however many come, a moment later they are forgotten. */
void gci_backoff_refused(struct gci_backoff *t, uint64_t now_ns)
{
	if (t->crowded_ns < now_ns)
		t->crowded_ns = now_ns;
	t->crowded_ns += GCI_BACKOFF_APART_NS;
	if (t->crowded_ns > now_ns + 2 * FEW_NS)
		t->crowded_ns = now_ns + 2 * FEW_NS;
}

uint64_t gci_backoff_wait(struct gci_backoff *t, uint64_t now_ns)
{
	uint64_t since_ns = now_ns - t->began_ns;

	if (now_ns >= t->crowded_ns || t->crowded_ns - now_ns <= FEW_NS ||
		since_ns >= GCI_BACKOFF_NS)
		t->began_ns = now_ns;
	else if (since_ns >= GCI_BACKOFF_OPEN_NS)
		return GCI_BACKOFF_NS - since_ns;
	return 0;
}
