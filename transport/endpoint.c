/* SPDX-License-Identifier: MIT
 * What sending and receiving share: peers, requests, failure. */
#include "transport/endpoint.h"

#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MOST_BLOCKS 32 /* of frames, kept for the next ones: 8 MiB */

int gci_ep_init(struct gci_ep *ep, const struct gci_tp_config *config, const struct gci_ep_io *io)
{
	memset(ep, 0, sizeof(*ep));
	ep->config = config;
	ep->io = *io;
	ep->blocks = (struct gci_blocks){
		.size = GCI_TP_FRAME_NBYTES, .most = MOST_BLOCKS, .is_modest = 1};
	gci_list_init(&ep->active);
	gci_list_init(&ep->finished);
	gci_list_init(&ep->arrived);
	gci_list_init(&ep->held);
	ep->peers = gci_calloc((size_t)config->size, sizeof(*ep->peers));
	return ep->peers ? 0 : GCOLL_ERR_NOMEM;
}

void gci_ep_free(struct gci_ep *ep)
{
	int i;

	for (i = 0; ep->peers && i < ep->config->size; i++) {
		if (ep->peers[i]) {
			gci_replay_free(ep->peers[i]->replay);
			gci_free(ep->peers[i]->ids);
			gci_free(ep->peers[i]->backs);
			gci_free(ep->peers[i]->pads);
		}
		gci_free(ep->peers[i]);
	}
	gci_free(ep->peers);
	ep->peers = NULL;
	gci_msgs_free(&ep->out);
	gci_msgs_free(&ep->in);
	gci_blocks_drain(&ep->blocks);
}

int gci_ep_fail(struct gci_ep *ep, int status, int peer, const char *fmt, ...)
{
	struct gci_tp_failure *f = &ep->failure;
	va_list ap;

	if (f->status)
		return f->status;
	f->status = status;
	f->peer = peer;
	va_start(ap, fmt);
	vsnprintf(f->text, sizeof(f->text), fmt, ap);
	va_end(ap);
	return status;
}

void gci_ep_revoke(struct gci_ep *ep, int status)
{
	if (ep->failure.status)
		return;
	ep->told = 1;
	gci_ep_fail(ep, status, -1, "revoked");
}

static void describe(const struct gci_ep *ep, const struct gci_tp_req *r, struct gci_tp_wait *out)
{
	const struct gci_msg *in = gci_msgs_find(&ep->in, r->peer, &r->key);
	const struct gci_msg *to = gci_msgs_find(&ep->out, r->peer, &r->key);
	int receives = in && in->req == r;

	/* A send that is in neither table has no more than its last frame to go. */
	*out = (struct gci_tp_wait){.peer = r->peer,
		.sends = !receives,
		.taken_up = receives ? in->seen : to && to->req == r && to->credited,
		.key = r->key,
		.nbytes = r->nbytes,
		.moved = r->moved};
}

int gci_ep_waits(const struct gci_ep *ep, struct gci_tp_wait *out)
{
	const struct gci_list *it;
	struct gci_tp_wait w;
	int found = 0;

	gci_list_each (it, &ep->active) {
		describe(ep, gci_container(it, struct gci_tp_req, link), &w);
		if (!found || w.taken_up)
			*out = w;
		found = 1;
		if (w.taken_up)
			break;
	}
	return found;
}

int gci_ep_mismatch(struct gci_ep *ep, const struct gci_msg *m, uint64_t nbytes, uint64_t digest)
{
	if (m->nbytes == nbytes && m->digest == digest)
		return 0;
	return gci_ep_fail(ep, GCOLL_ERR_MISMATCH, m->peer,
		"rank %d and rank %d called different operations: operation %llu, tag %u is of "
		"%llu bytes there and %llu here%s",
		m->peer, ep->config->rank, (unsigned long long)m->key.seq, m->key.tag,
		(unsigned long long)nbytes, (unsigned long long)m->nbytes,
		m->digest == digest ? "" : ", with other arguments");
}

int gci_ep_check(struct gci_ep *ep, int peer, const struct gci_tp_key *key, uint64_t digest)
{
	const struct gci_tp_config *c = ep->config;

	if (!c->check || c->check(c->user, peer, key, digest))
		return 0;
	return gci_ep_fail(ep, GCOLL_ERR_MISMATCH, peer,
		"rank %d and rank %d called different operations (operation %llu)", peer, c->rank,
		(unsigned long long)key->seq);
}

/* 0 or the failure's status. */
static int begin_replay(struct gci_ep *ep, struct gci_ep_peer *p)
{
	if (p->link.encrypted && !p->link.replay_nbytes)
		return gci_ep_fail(ep, GCOLL_ERR_INVAL, -1,
			"the link to rank %d is encrypted, and has no replay", p->rank);
	if (!p->link.replay_nbytes)
		return 0;
	p->replay = gci_replay_new(p->link.streams, p->link.replay_nbytes, &ep->blocks);
	if (p->replay)
		return 0;
	return gci_ep_fail(ep, GCOLL_ERR_NOMEM, -1, "out of memory for the peer %d", p->rank);
}

static struct gci_ep_peer *new_peer(struct gci_ep *ep, int rank)
{
	struct gci_ep_peer *p = gci_calloc(1, sizeof(*p));

	if (!p) {
		gci_ep_fail(ep, GCOLL_ERR_NOMEM, -1, "out of memory for the peer %d", rank);
		return NULL;
	}
	p->rank = rank;
	p->link.streams = 1;
	ep->config->link(ep->config->user, rank, &p->link);
	if (p->link.streams < 1)
		p->link.streams = 1;
	if (p->link.streams > GCI_TP_MAX_STREAMS)
		p->link.streams = GCI_TP_MAX_STREAMS;
	if (begin_replay(ep, p)) {
		gci_free(p);
		return NULL;
	}
	p->eager_left = p->link.eager_nbytes;
	gci_list_init(&p->ready);
	gci_list_init(&p->waiting);
	gci_list_init(&p->credits);
	gci_list_init(&p->waits);
	p->told.seq = UINT64_MAX; /* of none */
	ep->peers[rank] = p;
	return p;
}

struct gci_ep_peer *gci_ep_meet(struct gci_ep *ep, int rank)
{
	if (rank < 0 || rank >= ep->config->size || rank == ep->config->rank) {
		gci_ep_fail(ep, GCOLL_ERR_INVAL, -1, "rank %d has no peer %d in a job of %d",
			ep->config->rank, rank, ep->config->size);
		return NULL;
	}
	if (!new_peer(ep, rank))
		return NULL;
	ep->io.need(ep->io.user, rank);
	return ep->peers[rank];
}

int gci_ep_begin(struct gci_ep *ep, struct gci_tp_req *r, struct gci_ep_peer **p)
{
	r->moved = r->settled = 0;
	r->detached = 0;
	gci_list_init(&r->unsettled);
	r->status = 0;
	r->link.next = NULL;
	gci_list_push(&ep->active, &r->link);
	if (!r->align)
		r->align = 1;
	*p = gci_ep_status(ep) ? NULL : gci_ep_peer(ep, r->peer);
	if (!*p)
		return gci_ep_status(ep);
	(*p)->requests++;
	if (r->align > GCI_TP_FRAME_NBYTES)
		return gci_ep_fail(ep, GCOLL_ERR_INVAL, -1, "elements of %u bytes", r->align);
	return gci_ep_status(ep);
}

void gci_ep_finish(struct gci_ep *ep, struct gci_tp_req *r, int status)
{
	gci_list_del(&r->link);
	r->status = status;
	gci_list_push(&ep->finished, &r->link);
	if (!status)
		ep->peers[r->peer]->requests--;
}

void gci_ep_left(struct gci_ep *ep, int peer)
{
	struct gci_ep_peer *p = ep->peers[peer];
	size_t missing = p->requests;
	struct gci_list *it;

	gci_list_each (it, &ep->arrived)
		missing -= gci_container(it, struct gci_msg, link)->peer == peer;
	p->left = 1;
	if (missing)
		gci_ep_fail(ep, GCOLL_ERR_PEER, peer,
			"rank %d left the job while rank %d had %zu messages for or from it", peer,
			ep->config->rank, missing);
}

int gci_ep_begun_too_late(struct gci_ep *ep, int peer)
{
	return gci_ep_fail(ep, GCOLL_ERR_PEER, peer,
		"rank %d has left the job, but rank %d has a message for or from it", peer,
		ep->config->rank);
}

/* A frame without payload. */
static int on_frame(
	struct gci_ep *ep, struct gci_ep_peer *p, struct gci_life *life, const struct gci_frame *f)
{
	int rc = 0;

	switch (f->type) {
	case GCI_FRAME_CREDIT:
		gci_ep_accept(p, life);
		rc = gci_ep_on_credit(ep, p, f);
		break;
	case GCI_FRAME_BYE:
		p->leaving = 1;
		return 0;
	case GCI_FRAME_BACK:
		gci_ep_accept(p, life);
		break;
	case GCI_FRAME_WAIT:
		gci_ep_accept(p, life);
		rc = gci_ep_on_wait(ep, p, f);
		break;
	case GCI_FRAME_ACK:
	case GCI_FRAME_LOST:
		if (!life)
			return gci_ep_fail(ep, GCOLL_ERR_PROTO, p->rank,
				"from rank %d: a frame of type %u on a link without replay",
				p->rank, (unsigned)f->type);
		if (f->type == GCI_FRAME_LOST)
			rc = gci_ep_on_lost(ep, p, life, f);
		break;
	default:
		return gci_ep_fail(
			ep, GCOLL_ERR_PROTO, p->rank, "from rank %d: a second hello", p->rank);
	}
	if (life && f->type != GCI_FRAME_ACK)
		gci_ep_came(ep, p, life, 0, !!(f->flags & GCI_FRAME_ASK));
	else if (life && f->flags & GCI_FRAME_ASK)
		gci_ep_ask(ep, p, life);
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
	if (life && gci_ep_on_ack(ep, p, life, &f))
		return gci_ep_status(ep);
	if (f.nback && gci_ep_on_backs(ep, p, &f))
		return gci_ep_status(ep);
	if (f.type == GCI_FRAME_PAD)
		return gci_ep_on_pad(ep, p, &f, sink);
	if (f.type != GCI_FRAME_DATA)
		return on_frame(ep, p, life, &f);
	sink->life = life;
	sink->ask = !!(f.flags & GCI_FRAME_ASK);
	return gci_ep_on_data(ep, p, &f, sink);
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
		gci_ep_deliver(ep);
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
		gci_ep_resume_pads(ep);
}
