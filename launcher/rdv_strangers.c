/* SPDX-License-Identifier: MIT
 * Connections until it is known who is there. */
#include "base/mem.h"
#include "launcher/rdv_internal.h"

#include <arpa/inet.h>
#include <string.h>

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
	struct gci_rdv *r, void *user, const struct gci_reach *from, uint64_t now_ns)
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
	c->from = *from;
	gci_crowd_enter(&r->crowd, &c->place, from->ip[0]);
	gci_list_push(&r->conns, &c->link);
	return c;
}

void gci_rdv_named(struct gci_rdv_conn *c, uint32_t rank)
{
	c->named = (int32_t)rank;
	gci_crowd_leave(&c->place);
}

/* Of each address once a minute, and of so many: whoever can connect may do this at will. */
static int is_worth_a_line(struct gci_rdv *r, const uint8_t ip[16], uint64_t now_ns)
{
	int i, old = -1;

	for (i = 0; i < RDV_TOLD; i++) {
		if (!r->told_of[i].at_ns || now_ns - r->told_of[i].at_ns >= RDV_TOLD_NS)
			old = i;
		else if (!memcmp(r->told_of[i].ip, ip, sizeof(r->told_of[i].ip)))
			return 0;
	}
	if (old < 0)
		return 0;
	memcpy(r->told_of[old].ip, ip, sizeof(r->told_of[old].ip));
	r->told_of[old].at_ns = now_ns;
	return 1;
}

void gci_rdv_wrong_secret(struct gci_rdv *r, const struct gci_rdv_conn *c, uint64_t now_ns)
{
	const uint8_t *ip = c->from.ip[0];
	char text[INET6_ADDRSTRLEN] = "";

	if (!r->config.nguests)
		return;
	if (!is_worth_a_line(r, ip, now_ns)) {
		r->nuntold++;
		return;
	}
	inet_ntop(c->from.six & 1 ? AF_INET6 : AF_INET, ip, text, sizeof(text));
	gci_buf_printf(&r->news,
		"turned away: a process at %s has another secret, expected that of "
		"this job (--secret-file)",
		text);
	if (r->nuntold)
		gci_buf_printf(&r->news, "; since the last such line %u more", r->nuntold);
	gci_buf_printf(&r->news, "\n");
	r->nuntold = 0;
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
