/* SPDX-License-Identifier: MIT */
#include "transport/stream.h"

#include "base/mem.h"

#include <string.h>

#define STAGING_NBYTES (32u << 10)
#define LONG_NBYTES    (64u << 10) /* of a frame that others of its kind are likely to follow */

int gci_stream_init(
	struct gci_stream *s, struct gci_ep *ep, int peer, unsigned index, uint32_t life)
{
	int rc;

	memset(s, 0, sizeof(*s));
	s->staging = gci_calloc(1, STAGING_NBYTES);
	if (!s->staging)
		return gci_ep_fail(ep, GCOLL_ERR_NOMEM, -1, "out of memory for a connection");
	rc = gci_ep_open(ep, peer, index, life, &s->life);
	if (rc) {
		gci_free(s->staging);
		s->staging = NULL;
		return rc;
	}
	s->ep = ep;
	s->peer = peer;
	s->index = index;
	return 0;
}

void gci_stream_unbegin(struct gci_stream *s)
{
	if (s->life)
		gci_ep_end(s->ep, s->peer, s->life, 1);
	s->life = NULL;
}

void gci_stream_deinit(struct gci_stream *s)
{
	if (s->life)
		gci_ep_end(s->ep, s->peer, s->life, 0);
	s->life = NULL;
	if (s->ep)
		gci_ep_drop(s->ep, &s->sink);
	gci_free(s->staging);
	s->staging = NULL;
}

/* 0: there is none now. Behind its goodbye a stream acknowledges what still comes. */
static int next_frame(struct gci_stream *s, struct gci_ep_frame *f)
{
	if (s->bye_taken)
		return s->life && gci_ep_pull_ack(s->ep, s->peer, s->life, f);
	if (gci_ep_pending(s->ep, s->peer) && gci_ep_pull(s->ep, s->peer, s->index, s->life, f))
		return 1;
	if (!s->bye && !s->nout && s->ep->warming)
		return gci_ep_pull_pad(s->ep, s->peer, s->index, s->life, f);
	if (!s->bye || gci_ep_status(s->ep))
		return 0;
	if (s->life && gci_ep_pull_ask(s->ep, s->peer, s->life, f))
		return 1;
	/* With replay, the goodbye says that the peer has all that we had for it, unless time is
	 * up. */
	if (s->bye_now ? gci_ep_pending(s->ep, s->peer) : gci_ep_owes(s->ep, s->peer))
		return 0;
	gci_ep_pull_bye(s->ep, s->peer, s->life, f);
	s->bye_taken = 1;
	return 1;
}

static void take_frames(struct gci_stream *s)
{
	size_t nbytes = 0, enough = gci_ep_turn(s->ep, s->peer, s->index);
	unsigned i;

	for (i = 0; i < s->nout; i++)
		nbytes += GCI_FRAME_HEAD_NBYTES + s->out[i].nbytes;
	for (nbytes -= s->gone; nbytes < enough && s->nout < GCI_STREAM_FRAMES; s->nout++) {
		struct gci_ep_frame *f = &s->out[s->nout];

		if (!next_frame(s, f))
			break;
		nbytes += GCI_FRAME_HEAD_NBYTES + f->nbytes;
	}
}

/* Adds the bytes of p after the first *skip ones. */
static int add_iov(struct iovec *iov, int n, const void *p, size_t nbytes, size_t *skip)
{
	size_t off = *skip < nbytes ? *skip : nbytes;

	*skip -= off;
	if (off == nbytes)
		return n;
	iov[n].iov_base = (uint8_t *)p + off;
	iov[n].iov_len = nbytes - off;
	return n + 1;
}

int gci_stream_out(struct gci_stream *s, struct iovec iov[GCI_STREAM_OUT])
{
	size_t skip = s->gone;
	unsigned i;
	int n = 0;

	/* After a failure the requests' memory is about to be given back. */
	if (gci_ep_status(s->ep))
		return 0;
	take_frames(s);
	for (i = 0; i < s->nout; i++) {
		const struct gci_ep_frame *f = &s->out[i];

		n = add_iov(iov, n, f->head, GCI_FRAME_HEAD_NBYTES, &skip);
		n = add_iov(iov, n, f->payload, f->nbytes, &skip);
	}
	return n;
}

static void count_activity(const struct gci_stream *s)
{
	uint64_t *activity = s->ep->config->activity;

	if (activity)
		++*activity;
}

void gci_stream_sent(struct gci_stream *s, size_t n)
{
	struct gci_ep_peer *p = s->ep->peers[s->peer];
	unsigned i;

	count_activity(s);
	s->gone += n;
	for (i = 0; i < s->nout; i++) {
		size_t whole = GCI_FRAME_HEAD_NBYTES + s->out[i].nbytes;

		if (s->gone < whole)
			break;
		s->gone -= whole;
		if (!s->out[i].pad)
			p->stats.tx_stream_nbytes[s->index] += s->out[i].nbytes;
		gci_ep_sent(s->ep, s->peer, &s->out[i]);
	}
	s->nout -= i;
	if (s->nout && i)
		memmove(s->out, s->out + i, s->nout * sizeof(*s->out));
	if (s->bye_taken && !s->nout)
		s->bye_sent = 1;
}

/* Behind a long frame only the next header is taken: the payload that follows would have to be
 * copied from the staging buffer. */
static size_t staging_room(const struct gci_stream *s)
{
	size_t room = STAGING_NBYTES;

	if (s->sink.nbytes >= LONG_NBYTES && s->hi < GCI_FRAME_HEAD_NBYTES)
		room = GCI_FRAME_HEAD_NBYTES;
	return room - s->hi;
}

int gci_stream_in(struct gci_stream *s, struct iovec iov[GCI_STREAM_IN])
{
	int n = 0;

	if (s->in_payload) {
		iov[n].iov_base = s->sink.dst + s->sink.got;
		iov[n++].iov_len = s->sink.nbytes - s->sink.got;
	}
	iov[n].iov_base = s->staging + s->hi;
	iov[n++].iov_len = staging_room(s);
	return n;
}

static int end_payload(struct gci_stream *s)
{
	int rc = gci_ep_payload(s->ep, s->peer, &s->sink);

	if (!rc)
		s->in_payload = 0;
	return rc;
}

static int take_head(struct gci_stream *s)
{
	int rc = gci_ep_head(s->ep, s->peer, s->life, s->staging + s->lo, &s->sink);

	s->lo += GCI_FRAME_HEAD_NBYTES;
	if (rc)
		return rc;
	if (s->bye_seen && s->sink.type != GCI_FRAME_ACK)
		return gci_ep_fail(s->ep, GCOLL_ERR_PROTO, s->peer,
			"from rank %d: frames behind its goodbye", s->peer);
	s->in_payload = s->sink.type == GCI_FRAME_DATA || s->sink.type == GCI_FRAME_PAD;
	if (s->sink.type == GCI_FRAME_BYE)
		s->bye_seen = 1;
	return 0;
}

/* Takes what it can from the staging buffer. */
static int unstage(struct gci_stream *s)
{
	size_t n, rest;
	int rc;

	for (;;) {
		n = s->hi - s->lo;
		if (s->in_payload) {
			rest = s->sink.nbytes - s->sink.got;
			if (n > rest)
				n = rest;
			if (n)
				memcpy(s->sink.dst + s->sink.got, s->staging + s->lo, n);
			s->lo += n;
			gci_ep_landed(&s->sink, n);
			if (n < rest)
				break;
			rc = end_payload(s);
		} else if (n && s->bye_seen && !s->life) {
			rc = gci_ep_fail(s->ep, GCOLL_ERR_PROTO, s->peer,
				"from rank %d: bytes behind its goodbye", s->peer);
		} else if (n < GCI_FRAME_HEAD_NBYTES) {
			break;
		} else {
			rc = take_head(s);
		}
		if (rc)
			return rc;
	}
	s->hi -= s->lo;
	if (s->hi && s->lo)
		memmove(s->staging, s->staging + s->lo, s->hi);
	s->lo = 0;
	return 0;
}

int gci_stream_received(struct gci_stream *s, size_t n)
{
	if (gci_ep_status(s->ep))
		return gci_ep_status(s->ep);
	count_activity(s);
	if (s->in_payload) {
		size_t rest = s->sink.nbytes - s->sink.got;
		size_t direct = n < rest ? n : rest;

		gci_ep_landed(&s->sink, direct);
		n -= direct;
		if (direct < rest)
			return 0;
	}
	s->hi += n;
	return unstage(s);
}

int gci_stream_end(struct gci_stream *s, const char *cause, int broken)
{
	if (s->bye_seen)
		return 0;
	if (s->life && !gci_ep_status(s->ep))
		return GCI_STREAM_LOST;
	return gci_ep_fail(s->ep, GCOLL_ERR_PEER, s->peer,
		broken ? "the connection to rank %d was lost: %s" : "rank %d died: %s", s->peer,
		cause ? cause : "it closed its connection without a goodbye");
}

int gci_stream_lose(struct gci_stream *s)
{
	struct gci_life *life = s->life;

	if (gci_ep_status(s->ep) || !life)
		return gci_ep_status(s->ep);
	if (s->in_payload)
		gci_ep_undo(s->ep, &s->sink);
	s->in_payload = 0;
	s->nout = 0;
	s->gone = 0;
	s->life = NULL;
	return gci_ep_lose(s->ep, s->peer, life);
}
