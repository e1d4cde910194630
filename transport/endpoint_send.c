/* SPDX-License-Identifier: MIT
 * The endpoint's sending half: offered messages, credits that came, frames going out. */
#include "transport/endpoint.h"

#include "base/mem.h"

static void gci_ep_taken(struct gci_ep *ep, struct gci_ep_peer *p, struct gci_msg *m);

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

void gci_ep_note_bulk(struct gci_ep *ep, uint32_t nbytes)
{
	if (ep->bulk)
		return;
	ep->short_nbytes += nbytes;
	if (ep->short_nbytes >= BULK_NBYTES)
		end(ep);
}

void gci_ep_resume_pads(struct gci_ep *ep)
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

int gci_ep_on_pad(struct gci_ep *ep, struct gci_ep_peer *p, const struct gci_frame *f,
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

	if (cost > p->eager_left || gci_ep_take_id(p, m))
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

/* What is sent without a credit tells of its operation itself. */
static void tell(struct gci_ep *ep, struct gci_ep_peer *p, struct gci_msg *m)
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
	} else if (!r->patient && may_be_eager(p, m)) {
		gci_list_push(&p->waiting, &m->link);
		admit_waiting(ep, p);
	} else {
		tell(ep, p, m);
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

int gci_ep_on_credit(struct gci_ep *ep, struct gci_ep_peer *p, const struct gci_frame *f)
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
	gci_ep_taken(ep, p, m);
	admit_waiting(ep, p);
	return 0;
}

static void gci_ep_taken(struct gci_ep *ep, struct gci_ep_peer *p, struct gci_msg *m)
{
	m->credited = 1;
	gci_list_del(&m->due);
	if (m->eager)
		gci_ep_give_id(p, m);
	p->eager_left += m->eager;
	m->eager = 0;
	if (!m->req)
		gci_msgs_del(&ep->out, m); /* all of it went out already */
	else if (!m->queued)
		make_ready(ep, p, m);
}

int gci_ep_on_backs(struct gci_ep *ep, struct gci_ep_peer *p, const struct gci_frame *f)
{
	uint32_t id;

	for (id = f->back; id < (uint32_t)f->back + f->nback; id++) {
		if (id >= p->nids || !p->ids[id])
			return gci_ep_fail(ep, GCOLL_ERR_PROTO, p->rank,
				"from rank %d: it gives back the allowance of message %u, "
				"which has none",
				p->rank, id);
		gci_ep_taken(ep, p, p->ids[id]);
	}
	admit_waiting(ep, p);
	return 0;
}

void gci_ep_encode(struct gci_ep *ep, struct gci_ep_peer *p, struct gci_life *life,
	struct gci_frame *f, struct gci_ep_frame *out)
{
	f->epoch = ep->config->epoch;
	f->source = (uint32_t)ep->config->rank;
	f->ack = life ? gci_replay_tell(p->replay, life) : 0;
	out->life = life;
	gci_frame_encode(f, out->head);
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
	share = share < FIRST_TURN_NBYTES ? FIRST_TURN_NBYTES : share;
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
	if (p->nbacks)
		gci_ep_put_backs(p, &f);
	if (!p->link.unchecked && gci_ep_sum(ep, r, &f))
		return 0;
	gci_ep_note_bulk(ep, f.nbytes);
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
		return gci_ep_pull_credit(ep, p, life, f);
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
