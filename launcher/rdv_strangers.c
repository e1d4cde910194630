/* SPDX-License-Identifier: MIT
 * Connections until it is known who is there. */
#include "base/mem.h"
#include "launcher/rdv_internal.h"

void gci_rdv_count_places(struct gci_rdv *r)
{
	r->crowd.most = GCI_RDV_STRANGERS + r->config.size - r->njoined;
}

int gci_rdv_is_crowded(const struct gci_rdv *r)
{
	return gci_crowd_is_full(&r->crowd);
}

int gci_rdv_is_stranger(const struct gci_rdv_conn *c)
{
	return c->rank < 0;
}

struct gci_rdv_conn *gci_rdv_open(
	struct gci_rdv *r, void *user, const uint8_t ip[16], uint64_t now_ns)
{
	struct gci_rdv_conn *c = gci_calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	while (gci_crowd_is_full(&r->crowd)) {
		struct gci_crowd_place *p = gci_crowd_gives_way(&r->crowd);

		gci_rdv_drop(r, gci_container(p, struct gci_rdv_conn, place));
	}
	c->rank = c->named = -1;
	c->user = user;
	c->since_ns = now_ns;
	gci_crowd_enter(&r->crowd, &c->place, ip);
	gci_list_push(&r->conns, &c->link);
	return c;
}

void gci_rdv_named(struct gci_rdv_conn *c, uint32_t rank)
{
	c->named = (int32_t)rank;
	gci_crowd_leave(&c->place);
}

void gci_rdv_drop_old_strangers(struct gci_rdv *r, uint64_t now_ns)
{
	struct gci_list *it;

	/* As long as ranks are to come, each may be one that has had no processor yet. */
	if (!r->started)
		return;
	gci_list_each (it, &r->conns) {
		struct gci_rdv_conn *c = gci_container(it, struct gci_rdv_conn, link);

		if (c->rank < 0 && now_ns - c->since_ns >= GCI_RDV_STRANGER_NS)
			gci_rdv_drop(r, c);
	}
}
