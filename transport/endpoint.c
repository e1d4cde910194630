/* SPDX-License-Identifier: MIT
 * The protocol: messages offered and asked for, what goes out, and what comes of each frame of a peer. */
#include "transport/endpoint.h"

#include "base/mem.h"
#include "base/prng.h"

#include <stddef.h>
#include <string.h>

/* ---- Warming up: TCP sends little on a new connection and more with every round trip that goes well,
 * so a connection over a long path needs many of them before it carries what it can. Padding, which
 * the receiver drops, does that ahead of the first bulk data. It goes out only while no request of
 * the peer's is under way, only so much of it, and never again once bulk data has come or gone. */

/* So much payload, to and from whomever, is bulk data. */
#define BULK_NBYTES (1u << 20)

/* Of one frame: about half of what a new connection may send, for data waits behind it. */
#define PIECE_NBYTES (8u << 10)

static const uint8_t nothing[PIECE_NBYTES];

static void add(struct gci_ep *ep, int peer, uint64_t stream_nbytes)
{
	struct gci_ep_peer *p = gci_ep_peer(ep, peer);

	if (!p || ep->bulk)
		return;
	if (!p->pads)
		p->pads = gci_calloc(1, sizeof(*p->pads));
	if (!p->pads) {
		gci_ep_fail(ep, GCOLL_ERR_NOMEM, -1, "out of memory for padding");
		return;
	}
	if (p->pads->most < stream_nbytes)
		p->pads->most = stream_nbytes;
	ep->warming = 1;
	ep->io.kick(ep->io.user, peer);
}

static void end(struct gci_ep *ep)
{
	ep->bulk = 1;
	ep->warming = 0;
}

/* Also when it has to wait for a request's end. */
static int lacks_pads(const struct gci_ep_peer *p)
{
	unsigned i;

	for (i = 0; p && p->pads && i < p->link.streams; i++)
		if (p->pads->gone[i] < p->pads->most)
			return 1;
	return 0;
}

int gci_ep_wants_pads(const struct gci_ep *ep, int peer)
{
	const struct gci_ep_peer *p = ep->peers[peer];

	return ep->warming && !ep->silent && p && !p->requests && !gci_ep_status(ep) &&
	       lacks_pads(p);
}

static int warming(struct gci_ep *ep)
{
	int i;

	if (ep->bulk)
		return -1;
	for (i = 0; ep->warming && i < ep->config->size; i++)
		if (lacks_pads(ep->peers[i]))
			return 1;
	ep->warming = 0;
	return 0;
}

int gci_ep_warm(struct gci_ep *ep, int peer, uint64_t stream_nbytes)
{
	if (peer < 0 && stream_nbytes)
		end(ep);
	else if (peer >= 0 && stream_nbytes)
		add(ep, peer, stream_nbytes);
	else if (peer >= 0 && ep->peers[peer] && ep->peers[peer]->pads)
		ep->peers[peer]->pads->most = 0;
	return warming(ep);
}

static void note_bulk(struct gci_ep *ep, uint32_t nbytes)
{
	if (ep->bulk)
		return;
	ep->short_nbytes += nbytes;
	if (ep->short_nbytes >= BULK_NBYTES)
		end(ep);
}

static void resume_pads(struct gci_ep *ep)
{
	int i;

	if (warming(ep) <= 0)
		return;
	for (i = 0; i < ep->config->size; i++)
		if (gci_ep_wants_pads(ep, i))
			ep->io.kick(ep->io.user, i);
}

int gci_ep_pull_pad(struct gci_ep *ep, int peer, unsigned stream, struct gci_life *life,
	struct gci_ep_frame *out)
{
	struct gci_ep_peer *p = ep->peers[peer];
	struct gci_frame f = {.type = GCI_FRAME_PAD, .nbytes = PIECE_NBYTES};

	if (!gci_ep_wants_pads(ep, peer) || p->pads->gone[stream] >= p->pads->most)
		return 0;
	*out = (struct gci_ep_frame){.payload = nothing, .nbytes = f.nbytes, .pad = 1};
	gci_ep_encode(ep, p, life, &f, out);
	p->pads->gone[stream] += f.nbytes;
	p->stats.tx_pad_nbytes += f.nbytes;
	return 1;
}

static int on_pad(struct gci_ep *ep, struct gci_ep_peer *p, const struct gci_frame *f,
	struct gci_ep_sink *sink)
{
	sink->nbytes = f->nbytes;
	sink->scratch = gci_blocks_take(&ep->blocks);
	sink->dst = sink->scratch;
	if (!sink->scratch)
		return gci_ep_fail(ep, GCOLL_ERR_NOMEM, -1, "out of memory for a frame");
	p->stats.rx_pad_nbytes += f->nbytes;
	return 0;
}

/* ---- what the peer has, and has lost */

static int on_ack(
	struct gci_ep *ep, struct gci_ep_peer *p, struct gci_life *life, const struct gci_frame *f)
{
	uint32_t before = life->nacked;

	if (gci_replay_ack(p->replay, life, f->ack))
		return gci_ep_fail(ep, GCOLL_ERR_PROTO, p->rank,
			"from rank %d: it has %u frames of stream %u, of which %u were sent",
			p->rank, f->ack, life->stream, life->nsent);
	if (f->type == GCI_FRAME_ACK && life->nacked != before)
		gci_ep_accept(p, life);
	gci_ep_take_acked(ep, p);
	return 0;
}

static void kick_if_due(struct gci_ep *ep, struct gci_ep_peer *p, unsigned before)
{
	if (p->replay->ndue != before)
		ep->io.kick(ep->io.user, p->rank);
}

static void came(
	struct gci_ep *ep, struct gci_ep_peer *p, struct gci_life *life, uint32_t nbytes, int ask)
{
	unsigned before = p->replay->ndue;

	gci_replay_came(p->replay, life, nbytes);
	if (ask)
		gci_replay_ask(p->replay, life);
	kick_if_due(ep, p, before);
}

static void ask_to_ack(struct gci_ep *ep, struct gci_ep_peer *p, struct gci_life *life)
{
	unsigned before = p->replay->ndue;

	gci_replay_ask(p->replay, life);
	kick_if_due(ep, p, before);
}

static int on_lost(
	struct gci_ep *ep, struct gci_ep_peer *p, struct gci_life *life, const struct gci_frame *f)
{
	unsigned stream = f->key.tag;
	uint32_t number = f->key.comm;
	struct gci_life *open = NULL;
	int rc = GCOLL_ERR_PROTO;

	/* The one of a pair that connects knows all of its connections. */
	if (stream < p->link.streams && (stream != life->stream || number != life->number))
		rc = gci_replay_on_lost(p->replay, stream, number, (uint32_t)f->length,
			p->rank < ep->config->rank, &open);
	if (rc)
		return gci_ep_fail(ep, rc, p->rank,
			"from rank %d: it has lost connection %u of stream %u after %llu frames%s",
			p->rank, number, stream, (unsigned long long)f->length,
			rc == GCOLL_ERR_NOMEM ? ", out of memory" : ", which makes no sense here");
	gci_ep_take_acked(ep, p);
	if (open)
		ep->io.close(ep->io.user, p->rank, open);
	ep->io.kick(ep->io.user, p->rank);
	return gci_ep_status(ep);
}

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
static int take_id(struct gci_ep_peer *p, struct gci_msg *m)
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

static void give_id(struct gci_ep_peer *p, struct gci_msg *m)
{
	p->ids[m->id] = NULL;
	p->taken_ids--;
}

/* ---- at the receiver: credits and message numbers that are not sent yet */

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
 * a short message. A peer with several streams is far away: a credit is worth a frame of its own there. Likewise on links with replay: numbers in the header of a frame
 * whose payload was cut off would count twice. */
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

/* Queues the message's credit. */
static void add_credit(struct gci_ep *ep, struct gci_ep_peer *p, struct gci_msg *m)
{
	gci_list_push(&p->credits, &m->due);
	p->untold_nbytes += cost_of(m);
	hold(ep, p, m->nbytes);
}

static void drop_credit(struct gci_ep_peer *p, struct gci_msg *m)
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

/* Queues the message's number, in place of its credit if that was not sent yet. 0 or the failure's
 * status. */
static int add_back(struct gci_ep *ep, struct gci_ep_peer *p, struct gci_msg *m)
{
	if (p->nbacks == p->backs_cap && double_backs(p))
		return gci_ep_fail(ep, GCOLL_ERR_NOMEM, -1, "out of memory for a message");
	p->backs[(p->backs_at + p->nbacks++) & (p->backs_cap - 1)] =
		(struct gci_ep_back){m->id, cost_of(m)};
	p->untold_nbytes += cost_of(m);
	drop_credit(p, m);
	hold(ep, p, m->nbytes);
	return 0;
}

static void put_backs(struct gci_ep_peer *p, struct gci_frame *f)
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
static int pull_credit(
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
		drop_credit(p, m);
	}
	put_backs(p, &f);
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
		return add_back(ep, p, m);
	add_credit(ep, p, m);
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
		return waits ? add_back(ep, p, m) : 0;
	}
	drop_credit(p, m);
	return 0;
}

static int on_data(struct gci_ep *ep, struct gci_ep_peer *p, const struct gci_frame *f,
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
	note_bulk(ep, f->nbytes);
	if (first && take_number(ep, p, m, f))
		return gci_ep_status(ep);
	m->seen = 1;
	m->hurried |= !(f->flags & GCI_FRAME_LATER);
	m->moved += f->nbytes;
	sink->msg = m;
	sink->offset = f->offset;
	sink->nbytes = f->nbytes;
	sink->crc = f->crc;
	sink->checked = !p->link.unchecked;
	return place(ep, m, sink);
}

static int on_wait(struct gci_ep *ep, struct gci_ep_peer *p, const struct gci_frame *f)
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
	if (p->replay && m->nbytes > GCI_REPLAY_SHORT && m->hurried) {
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
		came(ep, p, sink->life, sink->nbytes, sink->ask);
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
static void deliver(struct gci_ep *ep)
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

/* ---- messages offered, credits that came, frames going out */

#define MAX_WALK 64

/* A new connection sends 10 segments in its first round trip (RFC 6928). */
#define FIRST_TURN_NBYTES (12u << 10)

/* Messages become sendable in about the order of isend, so the place is near the end. A bounded
 * walk keeps this O(1); the order is a matter of speed, not of correctness. */
static void make_ready(struct gci_ep *ep, struct gci_ep_peer *p, struct gci_msg *m)
{
	struct gci_list *at = p->ready.prev;
	int i;

	gci_list_del(&m->link);
	for (i = 0; i < MAX_WALK && at != &p->ready; i++, at = at->prev)
		if (gci_container(at, struct gci_msg, link)->order < m->order)
			break;
	gci_list_push(at->next, &m->link); /* behind `at` */
	m->queued = 1;
	p->ready_nbytes += m->req->nbytes - m->req->moved;
	ep->io.kick(ep->io.user, p->rank);
}

/* Lets a message go out before its credit, if the allowance has room. */
static int admit(struct gci_ep *ep, struct gci_ep_peer *p, struct gci_msg *m)
{
	uint64_t cost = m->nbytes + GCI_EP_MESSAGE_NBYTES;

	if (cost > p->eager_left || take_id(p, m))
		return 0;
	p->eager_left -= cost;
	m->eager = cost;
	make_ready(ep, p, m);
	return 1;
}

/* Larger ones wait for their credit alone: they must not hold up the small ones' queue. */
static int may_be_eager(const struct gci_ep_peer *p, const struct gci_msg *m)
{
	return p->link.eager_nbytes >= GCI_EP_MESSAGE_NBYTES &&
	       m->nbytes <= p->link.eager_nbytes - GCI_EP_MESSAGE_NBYTES;
}

static void admit_waiting(struct gci_ep *ep, struct gci_ep_peer *p)
{
	while (!gci_list_empty(&p->waiting))
		if (!admit(ep, p, gci_container(p->waiting.next, struct gci_msg, link)))
			break;
}

/* No DATA goes without credit or allowance, so WAIT brings the peer the message's key and digest. */
static void tell_of_wait(struct gci_ep *ep, struct gci_ep_peer *p, struct gci_msg *m)
{
	if (!m->req->tells || (p->told.comm == m->key.comm && p->told.seq == m->key.seq))
		return;
	p->told = m->key;
	gci_list_push(&p->waits, &m->due);
	ep->io.kick(ep->io.user, p->rank);
}

static int pull_wait(
	struct gci_ep *ep, struct gci_ep_peer *p, struct gci_life *life, struct gci_ep_frame *out)
{
	struct gci_msg *m = gci_container(p->waits.next, struct gci_msg, due);
	struct gci_frame f = {
		.type = GCI_FRAME_WAIT, .key = m->key, .length = m->nbytes, .digest = m->digest};

	gci_list_del(&m->due);
	*out = (struct gci_ep_frame){.life = life};
	if (life && gci_ep_keep(ep, p, &f, out))
		return 0;
	gci_ep_encode(ep, p, life, &f, out);
	return 1;
}

static int offer(struct gci_ep *ep, struct gci_ep_peer *p, struct gci_tp_req *r)
{
	int is_new;
	struct gci_msg *m = gci_msgs_get(&ep->out, r->peer, &r->key, &is_new);

	if (!m)
		return gci_ep_fail(ep, GCOLL_ERR_NOMEM, -1, "out of memory for a message");
	if (m->req || m->eager)
		return gci_ep_fail(ep, GCOLL_ERR_PROTO, -1,
			"rank %d sends two messages of operation %llu, tag %u to rank %d",
			ep->config->rank, (unsigned long long)r->key.seq, r->key.tag, r->peer);
	if (!is_new) {
		uint64_t nbytes = m->nbytes, digest = m->digest;

		/* A remembered credit: what is here is the request's, what is there the credit's.
		 */
		m->nbytes = r->nbytes;
		m->digest = r->digest;
		p->remembered--;
		if (gci_ep_mismatch(ep, m, nbytes, digest))
			return gci_ep_status(ep);
	}
	m->req = r;
	m->nbytes = r->nbytes;
	m->digest = r->digest;
	m->order = p->order++;
	if (m->credited) {
		make_ready(ep, p, m);
	} else if (may_be_eager(p, m)) {
		gci_list_push(&p->waiting, &m->link);
		admit_waiting(ep, p);
	} else {
		tell_of_wait(ep, p, m);
	}
	return 0;
}

void gci_ep_isend(struct gci_ep *ep, struct gci_tp_req *r)
{
	struct gci_ep_peer *p;

	if (gci_ep_begin(ep, r, &p))
		return;
	if (p->left)
		gci_ep_begun_too_late(ep, p->rank);
	else
		offer(ep, p, r);
}

/* A credit for a message that is not offered here yet. */
static int remember(struct gci_ep *ep, struct gci_ep_peer *p, const struct gci_frame *f)
{
	struct gci_msg *m;
	int is_new;

	if (p->remembered >= GCI_EP_MAX_CREDITS)
		return gci_ep_fail(ep, GCOLL_ERR_PROTO, p->rank,
			"from rank %d: more than %u credits nobody asked for", p->rank,
			GCI_EP_MAX_CREDITS);
	m = gci_msgs_get(&ep->out, p->rank, &f->key, &is_new);
	if (!m)
		return gci_ep_fail(ep, GCOLL_ERR_NOMEM, -1, "out of memory for a credit");
	m->nbytes = f->length;
	m->digest = f->digest;
	m->credited = 1;
	p->remembered++;
	return 0;
}

static void has_taken(struct gci_ep *ep, struct gci_ep_peer *p, struct gci_msg *m)
{
	m->credited = 1;
	gci_list_del(&m->due);
	if (m->eager)
		give_id(p, m);
	p->eager_left += m->eager;
	m->eager = 0;
	if (!m->req)
		gci_msgs_del(&ep->out, m); /* all of it went out already */
	else if (!m->queued)
		make_ready(ep, p, m);
}

static int on_credit(struct gci_ep *ep, struct gci_ep_peer *p, const struct gci_frame *f)
{
	struct gci_msg *m = gci_msgs_find(&ep->out, p->rank, &f->key);

	if (!gci_ep_agrees(m, f) && gci_ep_check(ep, p->rank, &f->key, f->digest))
		return gci_ep_status(ep);
	if (!m)
		return remember(ep, p, f);
	if (m->credited)
		return gci_ep_fail(ep, GCOLL_ERR_PROTO, p->rank,
			"from rank %d: a second credit for operation %llu, tag %u", p->rank,
			(unsigned long long)f->key.seq, f->key.tag);
	if (gci_ep_mismatch(ep, m, f->length, f->digest))
		return gci_ep_status(ep);
	has_taken(ep, p, m);
	admit_waiting(ep, p);
	return 0;
}

static int on_backs(struct gci_ep *ep, struct gci_ep_peer *p, const struct gci_frame *f)
{
	uint32_t id;

	for (id = f->back; id < (uint32_t)f->back + f->nback; id++) {
		if (id >= p->nids || !p->ids[id])
			return gci_ep_fail(ep, GCOLL_ERR_PROTO, p->rank,
				"from rank %d: it gives back the allowance of message %u, "
				"which has none",
				p->rank, id);
		has_taken(ep, p, p->ids[id]);
	}
	admit_waiting(ep, p);
	return 0;
}

/* The message has no more to send. */
static void leave_ready(struct gci_ep *ep, struct gci_msg *m)
{
	m->req = NULL;
	m->queued = 0;
	if (m->credited)
		gci_msgs_del(&ep->out, m);
	else
		gci_list_del(&m->link); /* until the allowance comes back */
}

uint32_t gci_ep_turn(const struct gci_ep *ep, int peer, unsigned stream)
{
	const struct gci_ep_peer *p = ep->peers[peer];
	uint64_t n = FIRST_TURN_NBYTES + p->stats.tx_stream_nbytes[stream] / 4;
	uint64_t share = p->ready_nbytes / p->link.streams;

	if (p->link.streams == 1)
		return GCI_TP_FRAME_NBYTES;
	share = share < GCI_EP_GRANULE_NBYTES ? GCI_EP_GRANULE_NBYTES : share;
	n = n < share ? n : share;
	return n < GCI_TP_FRAME_NBYTES ? (uint32_t)n : GCI_TP_FRAME_NBYTES;
}

static int pull_data(struct gci_ep *ep, struct gci_ep_peer *p, struct gci_msg *m, unsigned stream,
	struct gci_life *life, struct gci_ep_frame *out)
{
	struct gci_tp_req *r = m->req;
	struct gci_frame f = {.type = GCI_FRAME_DATA,
		.key = r->key,
		.length = r->nbytes,
		.digest = r->digest,
		.offset = r->moved,
		.nbytes = gci_ep_cut(r, gci_ep_turn(ep, p->rank, stream))};

	out->payload = f.nbytes ? (const uint8_t *)r->buf + r->moved : NULL;
	out->nbytes = f.nbytes;
	out->req = r;
	out->life = life;
	out->kept = NULL;
	out->pad = 0;
	if (m->eager) {
		f.flags = GCI_FRAME_EAGER;
		f.id = m->id;
	}
	if (life && r->patient)
		f.flags |= GCI_FRAME_LATER;
	if (p->nbacks)
		put_backs(p, &f);
	if (!p->link.unchecked && gci_ep_sum(ep, r, &f))
		return 0;
	note_bulk(ep, f.nbytes);
	r->moved += f.nbytes;
	p->ready_nbytes -= f.nbytes;
	if (r->moved == r->nbytes)
		leave_ready(ep, m);
	if (life && gci_ep_keep(ep, p, &f, out))
		return 0;
	gci_ep_encode(ep, p, life, &f, out);
	return 1;
}

/* A message to one of many peers keeps to the first few streams. */
static int may_take(const struct gci_ep_peer *p, const struct gci_msg *m, unsigned stream)
{
	uint32_t share = m->req->share ? m->req->share : 1;

	return !stream || stream < p->link.streams / share;
}

/* The first message that the stream may take: those that are not for it hold up none behind them.
 * NULL: none is near. */
static struct gci_msg *first_for(const struct gci_ep_peer *p, unsigned stream)
{
	const struct gci_list *at = p->ready.next;
	int i;

	for (i = 0; i < MAX_WALK && at != &p->ready; i++, at = at->next) {
		struct gci_msg *m = gci_container(at, struct gci_msg, link);

		if (may_take(p, m, stream))
			return m;
	}
	return NULL;
}

int gci_ep_has_for(const struct gci_ep *ep, int peer, unsigned stream)
{
	const struct gci_ep_peer *p = ep->peers[peer];

	return gci_ep_pending(ep, peer) &&
	       (first_for(p, stream) || (p->replay && !gci_list_empty(&p->replay->again)));
}

int gci_ep_pull(
	struct gci_ep *ep, int peer, unsigned stream, struct gci_life *life, struct gci_ep_frame *f)
{
	struct gci_ep_peer *p = ep->peers[peer];
	struct gci_msg *m;

	if (!gci_ep_pending(ep, peer))
		return 0;
	if (life && gci_ep_pull_again(ep, p, life, f))
		return 1;
	if (gci_ep_has_urgent(p))
		return pull_credit(ep, p, life, f);
	if (!gci_list_empty(&p->waits))
		return pull_wait(ep, p, life, f);
	m = first_for(p, stream);
	if (m)
		return pull_data(ep, p, m, stream, life, f);
	return life && gci_ep_pull_ack(ep, peer, life, f);
}

void gci_ep_sent(struct gci_ep *ep, int peer, const struct gci_ep_frame *f)
{
	struct gci_ep_peer *p = ep->peers[peer];
	struct gci_tp_req *r = f->req;

	p->stats.tx_frames++;
	if (f->pad)
		return;
	p->stats.tx_payload_nbytes += f->nbytes;
	if (f->kept) {
		gci_ep_gone(ep, p, f);
		return;
	}
	if (!r)
		return;
	r->settled += f->nbytes;
	if (r->settled == r->nbytes)
		gci_ep_finish(ep, r, 0);
}

/* ---- what the peer says */

/* A frame without payload. */
static int on_frame(
	struct gci_ep *ep, struct gci_ep_peer *p, struct gci_life *life, const struct gci_frame *f)
{
	int rc = 0;

	switch (f->type) {
	case GCI_FRAME_CREDIT:
		gci_ep_accept(p, life);
		rc = on_credit(ep, p, f);
		break;
	case GCI_FRAME_BYE:
		p->leaving = 1;
		return 0;
	case GCI_FRAME_BACK:
		gci_ep_accept(p, life);
		break;
	case GCI_FRAME_WAIT:
		gci_ep_accept(p, life);
		rc = on_wait(ep, p, f);
		break;
	case GCI_FRAME_ACK:
	case GCI_FRAME_LOST:
		if (!life)
			return gci_ep_fail(ep, GCOLL_ERR_PROTO, p->rank,
				"from rank %d: a frame of type %u on a link without replay",
				p->rank, (unsigned)f->type);
		if (f->type == GCI_FRAME_LOST)
			rc = on_lost(ep, p, life, f);
		break;
	default:
		return gci_ep_fail(
			ep, GCOLL_ERR_PROTO, p->rank, "from rank %d: a second hello", p->rank);
	}
	if (life && f->type != GCI_FRAME_ACK)
		came(ep, p, life, 0, !!(f->flags & GCI_FRAME_ASK));
	else if (life && f->flags & GCI_FRAME_ASK)
		ask_to_ack(ep, p, life);
	return rc;
}

static int bad_head(struct gci_ep *ep, int peer, const struct gci_life *life,
	const uint8_t head[GCI_FRAME_HEAD_NBYTES])
{
	struct gci_error e = {0};
	struct gci_frame f;

	if (gci_frame_decode(head, &f, &e) == GCOLL_ERR_CORRUPT)
		return gci_ep_refuse(ep, peer, life, NULL, "headers");
	return gci_ep_fail(ep, e.status, peer, "from rank %d: %.200s", peer, e.text);
}

int gci_ep_head(struct gci_ep *ep, int peer, struct gci_life *life,
	const uint8_t head[GCI_FRAME_HEAD_NBYTES], struct gci_ep_sink *sink)
{
	struct gci_ep_peer *p = ep->peers[peer];
	struct gci_frame f;

	if (gci_ep_status(ep))
		return gci_ep_status(ep);
	if (gci_frame_decode(head, &f, NULL))
		return bad_head(ep, peer, life, head);
	if (f.epoch != ep->config->epoch || f.source != (uint32_t)peer)
		return gci_ep_fail(ep, GCOLL_ERR_PROTO, peer,
			"from rank %d: a frame of rank %u, epoch %u (here: %u)", peer, f.source,
			f.epoch, ep->config->epoch);
	memset(sink, 0, offsetof(struct gci_ep_sink, parts));
	sink->type = f.type;
	p->stats.rx_frames++;
	if (life && on_ack(ep, p, life, &f))
		return gci_ep_status(ep);
	if (f.nback && on_backs(ep, p, &f))
		return gci_ep_status(ep);
	if (f.type == GCI_FRAME_PAD)
		return on_pad(ep, p, &f, sink);
	if (f.type != GCI_FRAME_DATA)
		return on_frame(ep, p, life, &f);
	sink->life = life;
	sink->ask = !!(f.flags & GCI_FRAME_ASK);
	return on_data(ep, p, &f, sink);
}

/* After a failure every request ends with its status. */
static void finish_all(struct gci_ep *ep)
{
	while (!gci_list_empty(&ep->active)) {
		struct gci_tp_req *r = gci_container(ep->active.next, struct gci_tp_req, link);

		gci_ep_finish(ep, r, gci_ep_status(ep));
	}
}

void gci_ep_run(struct gci_ep *ep)
{
	const struct gci_tp_config *c = ep->config;
	struct gci_list batch;

	if (ep->silent)
		return;
	if (!gci_list_empty(&ep->arrived))
		deliver(ep);
	if (gci_ep_status(ep) && !ep->told) {
		ep->told = 1;
		ep->callbacks++;
		if (c->on_failure)
			c->on_failure(c->user, &ep->failure);
	}
	if (gci_ep_status(ep))
		finish_all(ep);
	/* Only what is finished now: a done that starts a new request must not keep us here. */
	gci_list_init(&batch);
	gci_list_move(&batch, &ep->finished);
	while (!gci_list_empty(&batch)) {
		struct gci_tp_req *r = gci_container(batch.next, struct gci_tp_req, link);

		gci_list_del(&r->link);
		ep->callbacks++;
		if (r->done)
			r->done(r, r->status);
	}
	if (ep->warming)
		resume_pads(ep);
}
