/* SPDX-License-Identifier: MIT
 * What a receiver owes: a credit for each message that it waits for, or, where the message came
 * first, its number, by which the sender knows whose allowance is free again. Numbers that follow
 * each other go in one header. */
#include "base/mem.h"
#include "transport/endpoint.h"

#include <string.h>

#define FIRST_IDS 16
#define MOST_IDS  65536u

/* ---- at the sender: numbers */

static int double_ids(struct gci_ep_peer *p)
{
	uint32_t n = p->nids ? 2 * p->nids : FIRST_IDS;
	struct gci_msg **bigger;

	if (n > MOST_IDS)
		return -1;
	bigger = gci_calloc(n, sizeof(struct gci_msg *));
	if (!bigger)
		return -1;
	if (p->nids)
		memcpy(bigger, p->ids, p->nids * sizeof(struct gci_msg *));
	gci_free(p->ids);
	p->ids = bigger;
	p->next_id = p->nids;
	p->nids = n;
	return 0;
}

/* In turn, so that those that come back together follow each other. Half of them are free, so the
 * next free one is near, as a rule. */
int gci_ep_take_id(struct gci_ep_peer *p, struct gci_msg *m)
{
	if (2 * p->taken_ids >= p->nids && double_ids(p))
		return -1;
	while (p->ids[p->next_id])
		p->next_id = (p->next_id + 1) & (p->nids - 1);
	m->id = (uint16_t)p->next_id;
	p->ids[m->id] = m;
	p->taken_ids++;
	p->next_id = (p->next_id + 1) & (p->nids - 1);
	return 0;
}

void gci_ep_give_id(struct gci_ep_peer *p, struct gci_msg *m)
{
	p->ids[m->id] = NULL;
	p->taken_ids--;
}

/* ---- at the receiver: what waits to be told */

static uint64_t cost_of(const struct gci_msg *m)
{
	return m->nbytes + GCI_EP_MESSAGE_NBYTES;
}

static void tell(struct gci_ep *ep, struct gci_ep_peer *p)
{
	p->urgent = 1;
	gci_list_del(&p->held);
	ep->io.kick(ep->io.user, p->rank);
}

void gci_ep_urge(struct gci_ep *ep)
{
	while (!gci_list_empty(&ep->held))
		tell(ep, gci_container(ep->held.next, struct gci_ep_peer, held));
}

/* Something less waits. */
static void told(struct gci_ep_peer *p, uint64_t nbytes)
{
	p->untold_nbytes -= nbytes;
	if (p->nbacks || !gci_list_empty(&p->credits))
		return;
	p->urgent = 0;
	gci_list_del(&p->held);
}

/* As long as the sender has much of its allowance left, it needs neither credit nor allowance for
 * a short message. Who has several streams is far away, and may be patient: a credit on its way is
 * worth a frame of its own there. So it is where frames are sent again: numbers in the header of
 * one whose payload was cut off would count twice. */
static void hold(struct gci_ep *ep, struct gci_ep_peer *p, uint64_t nbytes)
{
	if (!ep->holds || ep->silent || p->link.streams > 1 || p->replay ||
		nbytes > GCI_EP_SHORT_NBYTES ||
		p->untold_nbytes + p->early_nbytes > p->link.eager_nbytes / 4)
		p->urgent = 1;
	if (p->urgent)
		tell(ep, p);
	else if (!p->held.next)
		gci_list_push(&ep->held, &p->held);
}

void gci_ep_add_credit(struct gci_ep *ep, struct gci_ep_peer *p, struct gci_msg *m)
{
	gci_list_push(&p->credits, &m->due);
	p->untold_nbytes += cost_of(m);
	hold(ep, p, m->nbytes);
}

void gci_ep_drop_credit(struct gci_ep_peer *p, struct gci_msg *m)
{
	if (!m->due.next)
		return;
	gci_list_del(&m->due);
	told(p, cost_of(m));
}

static int double_backs(struct gci_ep_peer *p)
{
	size_t i, cap = p->backs_cap ? 2 * p->backs_cap : 16;
	struct gci_ep_back *bigger = gci_calloc(cap, sizeof(*bigger));

	if (!bigger)
		return -1;
	for (i = 0; i < p->nbacks; i++)
		bigger[i] = p->backs[(p->backs_at + i) & (p->backs_cap - 1)];
	gci_free(p->backs);
	p->backs = bigger;
	p->backs_at = 0;
	p->backs_cap = cap;
	return 0;
}

int gci_ep_add_back(struct gci_ep *ep, struct gci_ep_peer *p, struct gci_msg *m)
{
	if (p->nbacks == p->backs_cap && double_backs(p))
		return gci_ep_fail(ep, GCOLL_ERR_NOMEM, -1, "out of memory for a message");
	p->backs[(p->backs_at + p->nbacks++) & (p->backs_cap - 1)] =
		(struct gci_ep_back){m->id, cost_of(m)};
	p->untold_nbytes += cost_of(m);
	gci_ep_drop_credit(p, m);
	hold(ep, p, m->nbytes);
	return 0;
}

void gci_ep_put_backs(struct gci_ep_peer *p, struct gci_frame *f)
{
	struct gci_ep_back *b;

	while (p->nbacks) {
		b = &p->backs[p->backs_at];
		if (!f->nback)
			f->back = b->id;
		else if (b->id != f->back + f->nback || f->nback == UINT16_MAX)
			break;
		f->nback++;
		p->backs_at = (p->backs_at + 1) & (p->backs_cap - 1);
		p->nbacks--;
		told(p, b->nbytes);
	}
}

/* The next frame of what is urgent. */
int gci_ep_pull_credit(
	struct gci_ep *ep, struct gci_ep_peer *p, struct gci_life *life, struct gci_ep_frame *out)
{
	struct gci_frame f = {.type = GCI_FRAME_BACK};
	struct gci_msg *m;

	if (!gci_list_empty(&p->credits)) {
		m = gci_container(p->credits.next, struct gci_msg, due);
		f = (struct gci_frame){.type = GCI_FRAME_CREDIT,
			.key = m->key,
			.length = m->nbytes,
			.digest = m->digest};
		gci_ep_drop_credit(p, m);
	}
	gci_ep_put_backs(p, &f);
	*out = (struct gci_ep_frame){.life = life};
	if (life && gci_ep_keep(ep, p, &f, out))
		return 0;
	gci_ep_encode(ep, p, life, &f, out);
	return 1;
}
