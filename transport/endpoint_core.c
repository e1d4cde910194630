/* SPDX-License-Identifier: MIT
 * What sending and receiving share (endpoint.c): checksums, refusals, incarnations of streams, peers, requests,
 * failure. It calls nothing of theirs. */
#include "transport/endpoint.h"

#include "base/crc32c.h"
#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- The checksums of payload: made once, at its origin. What is received to be sent on (a request
 * with `sums`) keeps the sums that it came with, by granules, so that it can be cut elsewhere; when
 * it is sent on, its frames' sums are joined from those. */

static uint32_t gci_ep_granule(uint32_t align)
{
	return align > GCI_EP_GRANULE_NBYTES ? align : GCI_EP_GRANULE_NBYTES / align * align;
}

/* Frames end where granules do, so that a forwarder has the sums of what it sends on. */
uint32_t gci_ep_cut(const struct gci_tp_req *r, uint32_t turn)
{
	uint64_t rest = r->nbytes - r->moved, whole;
	uint32_t granule, most;

	if (rest <= turn && r->nbytes + r->align <= GCI_EP_GRANULE_NBYTES)
		return (uint32_t)rest; /* there is but one granule */
	granule = gci_ep_granule(r->align);
	whole = (r->moved + turn) / granule * granule;
	most = turn < r->align ? r->align : turn / r->align * r->align;
	if (whole > r->moved && whole - r->moved <= most)
		most = (uint32_t)(whole - r->moved);
	return rest < most ? (uint32_t)rest : most;
}

int gci_ep_sum(struct gci_ep *ep, const struct gci_tp_req *r, struct gci_frame *f)
{
	const uint8_t *payload = r->buf;

	if (!f->nbytes)
		return 0;
	payload += f->offset;
	if (!r->sums)
		f->crc = gci_crc32c(0, payload, f->nbytes);
	else if (gci_sums_get(r->sums, payload, f->nbytes, &f->crc))
		return gci_ep_fail(ep, GCOLL_ERR_CORRUPT, ep->config->rank,
			"at rank %d, %u bytes for rank %d (operation %llu, tag %u) changed in "
			"memory after they had come from another rank",
			ep->config->rank, f->nbytes, r->peer, (unsigned long long)r->key.seq,
			r->key.tag);
	return 0;
}

void gci_ep_want_sums(struct gci_ep_sink *sink, const struct gci_tp_req *r)
{
	if (!sink->checked || !r->sums)
		return;
	sink->sums = r->sums;
	sink->granule = gci_ep_granule(r->align);
	memset(sink->parts, 0, sizeof(sink->parts));
}

/* Up to the end of a granule, or of the frame. */
static uint32_t part_rest(const struct gci_ep_sink *sink)
{
	uint32_t granule = sink->granule - (uint32_t)((sink->offset + sink->got) % sink->granule);
	uint32_t frame = sink->nbytes - sink->got;

	return granule < frame ? granule : frame;
}

static void sum_parts(struct gci_ep_sink *sink, size_t nbytes)
{
	while (nbytes) {
		uint32_t rest = part_rest(sink), n = nbytes < rest ? (uint32_t)nbytes : rest;
		struct gci_sum *part = &sink->parts[sink->nparts];

		if (!part->nbytes)
			part->at = (uintptr_t)(sink->dst + sink->got);
		part->crc = gci_crc32c(part->crc, sink->dst + sink->got, n);
		part->nbytes += n;
		sink->got += n;
		nbytes -= n;
		if (n == rest) {
			sink->sum = gci_crc32c_join(sink->sum, part->crc, part->nbytes);
			sink->nparts++;
		}
	}
}

void gci_ep_landed(struct gci_ep_sink *sink, size_t nbytes)
{
	if (sink->sums) {
		sum_parts(sink, nbytes);
		return;
	}
	if (sink->checked && nbytes)
		sink->sum = gci_crc32c(sink->sum, sink->dst + sink->got, nbytes);
	sink->got += (uint32_t)nbytes;
}

void gci_ep_keep_sums(const struct gci_ep_sink *sink)
{
	struct gci_msg *m = sink->msg;
	unsigned i;

	for (i = 0; sink->sums && i < sink->nparts; i++)
		gci_sums_put(sink->sums, (const void *)sink->parts[i].at, sink->parts[i].nbytes,
			sink->parts[i].crc);
	if (m->early) /* a sum of all, in whatever order the frames come */
		m->sum ^= gci_crc32c_join(sink->crc, 0, m->nbytes - sink->offset - sink->nbytes);
}

int gci_ep_check_early(struct gci_ep *ep, const struct gci_msg *m, const void *at)
{
	struct gci_tp_req *r = m->req;

	if (ep->peers[m->peer]->link.unchecked || !m->nbytes)
		return 0;
	if (gci_crc32c(0, at, m->nbytes) != m->sum)
		return gci_ep_fail(ep, GCOLL_ERR_CORRUPT, ep->config->rank,
			"at rank %d, %llu bytes from rank %d (operation %llu, tag %u) changed in "
			"memory before they were asked for",
			ep->config->rank, (unsigned long long)m->nbytes, m->peer,
			(unsigned long long)m->key.seq, m->key.tag);
	if (r->sums && at == r->buf)
		gci_sums_put(r->sums, at, (uint32_t)m->nbytes, m->sum);
	return 0;
}

/* ---- What came is not what was sent. Where frames are kept until they are acknowledged, a
 * corrupted one is asked for again the way lost ones are: its connection is closed, and the LOST
 * frame says how many came whole before it. Elsewhere nobody has the bytes any more. A stream's
 * count begins anew with each frame that has moved something; LOST, which each new connection
 * begins with, has not. */

#define MOST_RESENDS 3 /* of the same message, or of one stream's frames in a row */

int gci_ep_refuse(struct gci_ep *ep, int peer, const struct gci_life *life, struct gci_msg *m,
	const char *what)
{
	struct gci_ep_peer *p = ep->peers[peer];
	unsigned times;

	if (gci_ep_status(ep))
		return gci_ep_status(ep);
	p->stats.refused++;
	if (!life)
		return gci_ep_fail(ep, GCOLL_ERR_CORRUPT, peer,
			"%s from rank %d arrived corrupted at rank %d, and are not kept to be sent "
			"again on this link",
			what, peer, ep->config->rank);
	times = m ? ++m->refused : ++p->refused[life->stream];
	if (times > MOST_RESENDS)
		return gci_ep_fail(ep, GCOLL_ERR_CORRUPT, peer,
			"%s from rank %d arrived corrupted at rank %d, %u times", what, peer,
			ep->config->rank, times);
	snprintf(ep->refusal, sizeof(ep->refusal), "%s arrived corrupted and are asked for again",
		what);
	return GCI_EP_LOST;
}

int gci_ep_refuse_payload(struct gci_ep *ep, int peer, const struct gci_ep_sink *sink)
{
	struct gci_msg *m = sink->msg;
	char what[96];

	snprintf(what, sizeof(what), "%u bytes at %llu of operation %llu, tag %u", sink->nbytes,
		(unsigned long long)sink->offset, (unsigned long long)m->key.seq, m->key.tag);
	return gci_ep_refuse(ep, peer, sink->life, m, what);
}

void gci_ep_accept(struct gci_ep_peer *p, const struct gci_life *life)
{
	if (life)
		p->refused[life->stream] = 0;
}

/* ---- The endpoint's part in surviving the loss of a stream: what replay.h says of frames and
 * incarnations, done to requests and messages. */

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

void gci_ep_take_acked(struct gci_ep *ep, struct gci_ep_peer *p)
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
	gci_ep_take_acked(ep, p);
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

void gci_ep_encode(struct gci_ep *ep, struct gci_ep_peer *p, struct gci_life *life,
	struct gci_frame *f, struct gci_ep_frame *out)
{
	f->epoch = ep->config->epoch;
	f->source = (uint32_t)ep->config->rank;
	f->ack = life ? gci_replay_tell(p->replay, life) : 0;
	out->life = life;
	gci_frame_encode(f, out->head);
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
	else
		f->flags &= (uint16_t)~GCI_FRAME_LATER;
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
	struct gci_frame ack = {.type = GCI_FRAME_ACK};

	if (!(life->due || life->wants) || gci_ep_status(ep))
		return 0;
	if (life->wants && !gci_list_empty(&life->sent))
		ack.flags = GCI_FRAME_ASK;
	gci_replay_asked(ep->peers[peer]->replay, life);
	return pull_empty(ep, peer, life, ack, f);
}

int gci_ep_pull_ask(struct gci_ep *ep, int peer, struct gci_life *life, struct gci_ep_frame *f)
{
	return gci_replay_want(ep->peers[peer]->replay, life) && gci_ep_pull_ack(ep, peer, life, f);
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
	gci_ep_take_acked(ep, p);
}

/* Behind all that went out on each connection. */
static void ask_for_acks(struct gci_ep *ep, struct gci_ep_peer *p)
{
	struct gci_list *it;

	gci_list_each (it, &p->replay->lives)
		gci_replay_want(p->replay, gci_container(it, struct gci_life, link));
	ep->io.kick(ep->io.user, p->rank);
}

void gci_ep_ask(struct gci_ep *ep, struct gci_tp_req *r)
{
	struct gci_ep_peer *p = gci_ep_status(ep) ? NULL : ep->peers[r->peer];
	struct gci_list *it;

	if (!p || !p->replay || !r->patient)
		return;
	r->patient = 0;
	/* Frames that are lost after all, and go again, say by themselves that somebody waits. */
	gci_list_each (it, &r->unsettled)
		gci_container(it, struct gci_replay_frame, of_req)->head.flags &= ~GCI_FRAME_LATER;
	if (!gci_list_empty(&r->unsettled))
		ask_for_acks(ep, p);
}

void gci_ep_detach(struct gci_ep *ep, struct gci_tp_req *r)
{
	struct gci_ep_peer *p = ep->peers[r->peer];
	struct gci_list *it, *next;

	if (gci_ep_status(ep) || !p || !p->replay || r->detached)
		return;
	r->detached = 1;
	if (!gci_list_empty(&r->unsettled)) /* copies that lie about leave no room for others */
		gci_ep_ask(ep, r);
	for (it = r->unsettled.next; it != &r->unsettled; it = next) {
		struct gci_replay_frame *f = gci_container(it, struct gci_replay_frame, of_req);

		next = it->next;
		if (!gci_replay_copy(p->replay, f))
			break;
		if (f->gone)
			settle(ep, f);
	}
}

/* ---- peers, requests, failure */

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

/* It waits for nothing but the word that it has come, which may be late. */
static int is_out(const struct gci_tp_wait *w)
{
	return w->sends && w->moved == w->nbytes;
}

int gci_ep_waits(const struct gci_ep *ep, struct gci_tp_wait *out)
{
	const struct gci_list *it;
	struct gci_tp_wait w;
	int found = 0;

	gci_list_each (it, &ep->active) {
		describe(ep, gci_container(it, struct gci_tp_req, link), &w);
		if (!found || w.taken_up || (is_out(out) && !is_out(&w)))
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
