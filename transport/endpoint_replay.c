/* SPDX-License-Identifier: MIT
 * The endpoint's part in surviving the loss of a stream: what replay.h says of frames and lives,
 * done to requests and messages. */
#include "transport/endpoint.h"

/* These bytes of a request are over. */
static void settle(struct gci_ep *ep, struct gci_replay_frame *f)
{
	struct gci_tp_req *r = f->req;

	if (!r)
		return;
	f->req = NULL;
	gci_list_del(&f->of_req);
	r->settled += f->head.nbytes;
	if (r->settled == r->nbytes)
		gci_ep_finish(ep, r, 0);
}

static void take_acked(struct gci_ep *ep, struct gci_ep_peer *p)
{
	struct gci_replay_frame *f;

	while ((f = gci_replay_acked(p->replay))) {
		settle(ep, f);
		gci_replay_put(p->replay, f);
	}
	if (ep->silent && !p->replay->nframes) /* goodbyes were waiting for this */
		ep->io.kick(ep->io.user, p->rank);
}

int gci_ep_open(
	struct gci_ep *ep, int peer, unsigned stream, uint32_t number, struct gci_life **life)
{
	struct gci_ep_peer *p = ep->peers[peer];
	struct gci_replay *r = p->replay;

	*life = NULL;
	if (!r)
		return number ? gci_ep_fail(ep, GCOLL_ERR_MISMATCH, peer,
					"rank %d replays streams that are lost, rank %d does not",
					peer, ep->config->rank)
			      : 0;
	if (number - r->newest[stream] - 1 >= GCI_REPLAY_MOST_UNSEEN ||
		r->nlives > GCI_REPLAY_MOST_LIVES)
		return gci_ep_fail(ep, GCOLL_ERR_PROTO, peer,
			"connection %u of stream %u with rank %d, after %u", number, stream, peer,
			r->newest[stream]);
	*life = gci_replay_begin(r, stream, number);
	if (!*life)
		return gci_ep_fail(ep, GCOLL_ERR_NOMEM, -1, "out of memory for a connection");
	ep->io.kick(ep->io.user, peer);
	return 0;
}

uint32_t gci_ep_next_life(const struct gci_ep *ep, int peer, unsigned stream)
{
	const struct gci_replay *r = ep->peers[peer]->replay;

	return r ? r->newest[stream] + 1 : 0;
}

int gci_ep_lose(struct gci_ep *ep, int peer, struct gci_life *life)
{
	struct gci_ep_peer *p = ep->peers[peer];

	if (gci_ep_status(ep)) /* what is kept may name requests that are gone */
		return gci_ep_status(ep);
	p->stats.lost++;
	gci_replay_lose(p->replay, life);
	take_acked(ep, p);
	ep->io.kick(ep->io.user, peer);
	return 0;
}

void gci_ep_end(struct gci_ep *ep, int peer, struct gci_life *life, int never)
{
	if (gci_ep_status(ep))
		return;
	if (never)
		gci_replay_unbegin(ep->peers[peer]->replay, life);
	else
		gci_replay_end(ep->peers[peer]->replay, life);
}

int gci_ep_owes(const struct gci_ep *ep, int peer)
{
	const struct gci_ep_peer *p = ep->peers[peer];

	return p->nbacks || !gci_list_empty(&p->credits) || !gci_list_empty(&p->ready) ||
	       (p->replay && p->replay->nframes);
}

/* Keeps a frame that goes out. Short messages, and those that must not wait for the peer, are
 * copied here, where the sum has just brought them into the cache. */
int gci_ep_keep(
	struct gci_ep *ep, struct gci_ep_peer *p, struct gci_frame *f, struct gci_ep_frame *out)
{
	struct gci_replay_frame *kept = gci_replay_add(p->replay, out->life, f);
	struct gci_tp_req *r = out->req;

	if (!kept)
		return gci_ep_fail(ep, GCOLL_ERR_NOMEM, -1, "out of memory for a frame");
	out->kept = kept;
	out->req = NULL;
	kept->payload = out->payload;
	if (!r)
		return 0;
	kept->req = r;
	gci_list_push(&r->unsettled, &kept->of_req);
	if (r->nbytes > GCI_REPLAY_SHORT && !r->detached)
		return 0;
	if (gci_replay_copy(p->replay, kept))
		out->payload = kept->payload;
	else if (r->nbytes <= GCI_REPLAY_SHORT) /* nobody would acknowledge it at once otherwise */
		f->flags |= GCI_FRAME_ASK;
	kept->head.flags = f->flags;
	return 0;
}

int gci_ep_pull_again(
	struct gci_ep *ep, struct gci_ep_peer *p, struct gci_life *life, struct gci_ep_frame *out)
{
	struct gci_replay_frame *kept = gci_replay_next(p->replay, life);
	struct gci_frame f;

	if (!kept)
		return 0;
	f = kept->head;
	*out = (struct gci_ep_frame){.payload = kept->payload, .nbytes = f.nbytes, .kept = kept};
	if (f.type != GCI_FRAME_LOST)
		p->stats.again_frames++;
	gci_ep_encode(ep, p, life, &f, out);
	return 1;
}

static int pull_empty(struct gci_ep *ep, int peer, struct gci_life *life, struct gci_frame f,
	struct gci_ep_frame *out)
{
	*out = (struct gci_ep_frame){.payload = NULL};
	gci_ep_encode(ep, ep->peers[peer], life, &f, out);
	return 1;
}

int gci_ep_pull_ack(struct gci_ep *ep, int peer, struct gci_life *life, struct gci_ep_frame *f)
{
	if (!life->due || gci_ep_status(ep))
		return 0;
	return pull_empty(ep, peer, life, (struct gci_frame){.type = GCI_FRAME_ACK}, f);
}

int gci_ep_pull_ask(struct gci_ep *ep, int peer, struct gci_life *life, struct gci_ep_frame *f)
{
	if (gci_list_empty(&life->sent) || life->asked || gci_ep_status(ep))
		return 0;
	life->asked = 1;
	return pull_empty(ep, peer, life,
		(struct gci_frame){.type = GCI_FRAME_ACK, .flags = GCI_FRAME_ASK}, f);
}

void gci_ep_pull_bye(struct gci_ep *ep, int peer, struct gci_life *life, struct gci_ep_frame *f)
{
	pull_empty(ep, peer, life, (struct gci_frame){.type = GCI_FRAME_BYE}, f);
}

/* All of a frame that is kept is in the network's hands. */
void gci_ep_gone(struct gci_ep *ep, struct gci_ep_peer *p, const struct gci_ep_frame *f)
{
	if (f->kept->copy || !f->nbytes)
		settle(ep, f->kept);
	gci_replay_gone(p->replay, f->life, f->kept);
	take_acked(ep, p);
}

void gci_ep_detach(struct gci_ep *ep, struct gci_tp_req *r)
{
	struct gci_ep_peer *p = ep->peers[r->peer];
	struct gci_list *it, *next;

	if (gci_ep_status(ep) || !p || !p->replay || r->detached)
		return;
	r->detached = 1;
	for (it = r->unsettled.next; it != &r->unsettled; it = next) {
		struct gci_replay_frame *f = gci_container(it, struct gci_replay_frame, of_req);

		next = it->next;
		if (!gci_replay_copy(p->replay, f))
			break;
		if (f->gone)
			settle(ep, f);
	}
}

/* ---- what the peer says */

int gci_ep_on_ack(
	struct gci_ep *ep, struct gci_ep_peer *p, struct gci_life *life, const struct gci_frame *f)
{
	uint32_t before = life->nacked;

	if (gci_replay_ack(p->replay, life, f->ack))
		return gci_ep_fail(ep, GCOLL_ERR_PROTO, p->rank,
			"from rank %d: it has %u frames of stream %u, of which %u were sent",
			p->rank, f->ack, life->stream, life->nsent);
	if (f->type == GCI_FRAME_ACK && life->nacked != before)
		gci_ep_accept(p, life);
	take_acked(ep, p);
	return 0;
}

static void kick_if_due(struct gci_ep *ep, struct gci_ep_peer *p, unsigned before)
{
	if (p->replay->ndue != before)
		ep->io.kick(ep->io.user, p->rank);
}

void gci_ep_came(
	struct gci_ep *ep, struct gci_ep_peer *p, struct gci_life *life, uint32_t nbytes, int ask)
{
	unsigned before = p->replay->ndue;

	gci_replay_came(p->replay, life, nbytes);
	if (ask)
		gci_replay_ask(p->replay, life);
	kick_if_due(ep, p, before);
}

void gci_ep_ask(struct gci_ep *ep, struct gci_ep_peer *p, struct gci_life *life)
{
	unsigned before = p->replay->ndue;

	gci_replay_ask(p->replay, life);
	kick_if_due(ep, p, before);
}

int gci_ep_on_lost(
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
	take_acked(ep, p);
	if (open)
		ep->io.close(ep->io.user, p->rank, open);
	ep->io.kick(ep->io.user, p->rank);
	return gci_ep_status(ep);
}
