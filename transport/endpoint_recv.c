/* SPDX-License-Identifier: MIT
 * The endpoint's receiving half: messages asked for, messages that came early. */
#include "base/mem.h"
#include "base/prng.h"
#include "transport/endpoint.h"

#include <string.h>

/* ---- What a receiver owes: a credit for each message that it waits for, or, where the message came
 * first, its number, by which the sender knows whose allowance is free again. Numbers that follow
 * each other go in one header. */

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

/* What waits to be told: the message's credit. */
static void gci_ep_add_credit(struct gci_ep *ep, struct gci_ep_peer *p, struct gci_msg *m)
{
	gci_list_push(&p->credits, &m->due);
	p->untold_nbytes += cost_of(m);
	hold(ep, p, m->nbytes);
}

static void gci_ep_drop_credit(struct gci_ep_peer *p, struct gci_msg *m)
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

/* What waits to be told: the message's number, in place of its credit if that was not sent yet. 0 or
 * the failure's status. */
static int gci_ep_add_back(struct gci_ep *ep, struct gci_ep_peer *p, struct gci_msg *m)
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

/* ---- messages asked for, and messages that came early */

/* A frame of bytes a..b adds cover(b) - cover(a). Frames in any order and of any cut that hold
 * every byte once telescope to cover(nbytes) - cover(0); gaps and overlaps do not. */
static uint64_t cover(uint64_t offset)
{
	return gci_mix64(offset + 0x9e3779b97f4a7c15ull);
}

static int landed_all(const struct gci_msg *m)
{
	return m->seen && m->landed == m->nbytes;
}

static int ask(struct gci_ep *ep, struct gci_ep_peer *p, struct gci_tp_req *r)
{
	int is_new;
	struct gci_msg *m = gci_msgs_get(&ep->in, r->peer, &r->key, &is_new);

	if (!m)
		return gci_ep_fail(ep, GCOLL_ERR_NOMEM, -1, "out of memory for a message");
	if (m->req)
		return gci_ep_fail(ep, GCOLL_ERR_PROTO, -1,
			"rank %d waits twice for operation %llu, tag %u from rank %d",
			ep->config->rank, (unsigned long long)r->key.seq, r->key.tag, r->peer);
	if (is_new) {
		m->nbytes = r->nbytes;
		m->digest = r->digest;
	} else {
		uint64_t nbytes = m->nbytes, digest = m->digest;

		/* An early one: its length counts against the allowance no more. */
		p->early_nbytes -= nbytes + GCI_EP_MESSAGE_NBYTES;
		m->nbytes = r->nbytes;
		m->digest = r->digest;
		if (gci_ep_mismatch(ep, m, nbytes, digest))
			return gci_ep_status(ep);
	}
	m->req = r;
	if (landed_all(m))
		gci_list_push(&ep->arrived, &m->link);
	if (p->left) /* and waits for no credit */
		return landed_all(m) ? 0 : gci_ep_begun_too_late(ep, p->rank);
	if (m->has_id)
		return gci_ep_add_back(ep, p, m);
	gci_ep_add_credit(ep, p, m);
	return 0;
}

void gci_ep_irecv(struct gci_ep *ep, struct gci_tp_req *r)
{
	struct gci_ep_peer *p;

	if (!gci_ep_begin(ep, r, &p))
		ask(ep, p, r);
}

/* A message nobody has asked for yet. */
static struct gci_msg *begin_early(
	struct gci_ep *ep, struct gci_ep_peer *p, const struct gci_frame *f)
{
	uint64_t cost = f->length + GCI_EP_MESSAGE_NBYTES;
	struct gci_msg *m;
	int is_new;

	if (!(f->flags & GCI_FRAME_EAGER)) {
		gci_ep_fail(ep, GCOLL_ERR_PROTO, p->rank,
			"from rank %d: bytes of operation %llu, tag %u, "
			"which nobody has asked for, and not as such",
			p->rank, (unsigned long long)f->key.seq, f->key.tag);
		return NULL;
	}
	if (cost < f->length || cost > p->link.eager_nbytes - p->early_nbytes) {
		gci_ep_fail(ep, GCOLL_ERR_PROTO, p->rank,
			"rank %d sent %llu bytes unasked, with %llu of %u already here", p->rank,
			(unsigned long long)f->length, (unsigned long long)p->early_nbytes,
			p->link.eager_nbytes);
		return NULL;
	}
	m = gci_msgs_get(&ep->in, p->rank, &f->key, &is_new);
	if (m) {
		m->early = f->length ? gci_calloc(1, f->length) : NULL;
		if (f->length && !m->early) {
			gci_msgs_del(&ep->in, m);
			m = NULL;
		}
	}
	if (!m) {
		gci_ep_fail(ep, GCOLL_ERR_NOMEM, -1, "out of memory for %llu early bytes",
			(unsigned long long)f->length);
		return NULL;
	}
	m->nbytes = f->length;
	m->digest = f->digest;
	p->early_nbytes += cost;
	return m;
}

static int place(struct gci_ep *ep, struct gci_msg *m, struct gci_ep_sink *sink)
{
	struct gci_tp_req *r = m->req;

	if (m->early) {
		sink->dst = m->early + sink->offset;
		return 0;
	}
	if (!r || !sink->nbytes)
		return 0;
	if (!r->piece) {
		sink->dst = (uint8_t *)r->buf + sink->offset;
		gci_ep_want_sums(sink, r);
		return 0;
	}
	if (sink->offset % r->align ||
		(sink->nbytes % r->align && sink->offset + sink->nbytes != m->nbytes))
		return gci_ep_fail(ep, GCOLL_ERR_PROTO, m->peer,
			"from rank %d: a frame cut inside an element of %u bytes", m->peer,
			r->align);
	sink->scratch = gci_blocks_take(&ep->blocks);
	sink->dst = sink->scratch;
	if (!sink->scratch)
		return gci_ep_fail(ep, GCOLL_ERR_NOMEM, -1, "out of memory for a frame");
	return 0;
}

/* A message's first frame. What was sent with a credit needs neither; what was not, and was asked
 * for before, does not need its credit any more. */
static int take_number(
	struct gci_ep *ep, struct gci_ep_peer *p, struct gci_msg *m, const struct gci_frame *f)
{
	int waits = m->due.next != NULL;

	if (f->flags & GCI_FRAME_EAGER) {
		m->has_id = 1;
		m->id = f->id;
		return waits ? gci_ep_add_back(ep, p, m) : 0;
	}
	gci_ep_drop_credit(p, m);
	return 0;
}

int gci_ep_on_data(struct gci_ep *ep, struct gci_ep_peer *p, const struct gci_frame *f,
	struct gci_ep_sink *sink)
{
	struct gci_msg *m = gci_msgs_find(&ep->in, p->rank, &f->key);
	int first = !m || !m->seen;

	if (first && !gci_ep_agrees(m, f) && gci_ep_check(ep, p->rank, &f->key, f->digest))
		return gci_ep_status(ep);
	if (!m)
		m = begin_early(ep, p, f);
	if (!m || gci_ep_mismatch(ep, m, f->length, f->digest))
		return gci_ep_status(ep);
	if (f->nbytes > m->nbytes - m->moved || (!first && m->moved == m->nbytes))
		return gci_ep_fail(ep, GCOLL_ERR_PROTO, p->rank,
			"from rank %d: bytes of operation %llu, tag %u came twice", p->rank,
			(unsigned long long)f->key.seq, f->key.tag);
	gci_ep_note_bulk(ep, f->nbytes);
	if (first && take_number(ep, p, m, f))
		return gci_ep_status(ep);
	m->seen = 1;
	m->moved += f->nbytes;
	sink->msg = m;
	sink->offset = f->offset;
	sink->nbytes = f->nbytes;
	sink->crc = f->crc;
	sink->checked = !p->link.unchecked;
	return place(ep, m, sink);
}

int gci_ep_on_wait(struct gci_ep *ep, struct gci_ep_peer *p, const struct gci_frame *f)
{
	const struct gci_msg *m = gci_msgs_find(&ep->in, p->rank, &f->key);
	int rc;

	if (gci_ep_agrees(m, f))
		return 0;
	rc = gci_ep_check(ep, p->rank, &f->key, f->digest);
	return rc || !m || !m->req ? rc : gci_ep_mismatch(ep, m, f->length, f->digest);
}

/* All of its bytes are there; `whole`: they came in one frame. */
static int complete(struct gci_ep *ep, struct gci_ep_peer *p, struct gci_msg *m, int whole)
{
	struct gci_tp_req *r = m->req;

	/* Its sender waits until it knows. */
	if (p->replay && m->nbytes > GCI_REPLAY_SHORT) {
		gci_replay_complete(p->replay);
		ep->io.kick(ep->io.user, p->rank);
	}
	if (!whole && m->cover != cover(m->nbytes) - cover(0))
		return gci_ep_fail(ep, GCOLL_ERR_PROTO, m->peer,
			"from rank %d: frames of operation %llu, tag %u overlap", m->peer,
			(unsigned long long)m->key.seq, m->key.tag);
	if (!r)
		return 0; /* early, and nobody has asked yet */
	if (m->early) {
		gci_list_push(&ep->arrived, &m->link);
		return 0;
	}
	gci_msgs_del(&ep->in, m);
	gci_ep_finish(ep, r, 0);
	return 0;
}

int gci_ep_payload(struct gci_ep *ep, int peer, struct gci_ep_sink *sink)
{
	struct gci_ep_peer *p = ep->peers[peer];
	struct gci_msg *m = sink->msg;
	int whole;

	if (gci_ep_status(ep))
		return gci_ep_status(ep);
	if (!m) { /* padding */
		gci_ep_drop(ep, sink);
		return 0;
	}
	if (sink->checked && sink->sum != sink->crc)
		return gci_ep_refuse_payload(ep, peer, sink);
	gci_ep_accept(p, sink->life);
	if (sink->checked)
		gci_ep_keep_sums(sink);
	p->stats.rx_payload_nbytes += sink->nbytes;
	m->landed += sink->nbytes;
	whole = sink->nbytes == m->nbytes;
	if (!whole)
		m->cover += cover(sink->offset + sink->nbytes) - cover(sink->offset);
	if (sink->scratch) {
		if (sink->nbytes && !ep->silent)
			m->req->piece(m->req, sink->offset, sink->dst, sink->nbytes);
		gci_ep_drop(ep, sink);
	}
	if (sink->life)
		gci_ep_came(ep, p, sink->life, sink->nbytes, sink->ask);
	return m->landed == m->nbytes ? complete(ep, p, m, whole) : 0;
}

void gci_ep_undo(struct gci_ep *ep, struct gci_ep_sink *sink)
{
	if (sink->msg)
		sink->msg->moved -= sink->nbytes;
	gci_ep_drop(ep, sink);
}

void gci_ep_drop(struct gci_ep *ep, struct gci_ep_sink *sink)
{
	if (sink->scratch)
		gci_blocks_give(&ep->blocks, sink->scratch);
	sink->scratch = NULL;
}

/* Hands over messages that had come before they were asked for. */
void gci_ep_deliver(struct gci_ep *ep)
{
	while (!gci_list_empty(&ep->arrived) && !gci_ep_status(ep)) {
		struct gci_msg *m = gci_container(ep->arrived.next, struct gci_msg, link);
		struct gci_tp_req *r = m->req;

		gci_list_del(&m->link);
		if (m->nbytes && !r->piece)
			memcpy(r->buf, m->early, m->nbytes);
		if (gci_ep_check_early(ep, m, r->piece ? m->early : r->buf))
			return;
		if (m->nbytes && r->piece)
			r->piece(r, 0, m->early, m->nbytes);
		gci_ep_finish(ep, r, 0);
		gci_msgs_del(&ep->in, m);
	}
}
