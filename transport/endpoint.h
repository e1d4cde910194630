/* SPDX-License-Identifier: MIT
 * The protocol of one rank with all its peers, without I/O, clock or threads: what to send next,
 * where arriving bytes go, which requests are done. Both backends drive it.
 *
 *	gci_ep_init(&ep, &config, &io);
 *	gci_ep_isend(&ep, r);				// io.need(peer), io.kick(peer)
 *	rc = gci_ep_open(&ep, peer, stream, 1, &life);	// a connection
 *	while (gci_ep_pull(&ep, peer, stream, life, &frame))	// it can take bytes
 *		... send frame.head and frame.payload ..., gci_ep_sent(&ep, peer, &frame);
 *	rc = gci_ep_head(&ep, peer, life, head, &sink);	// GCI_FRAME_HEAD_NBYTES have come
 *	... read sink.nbytes to sink.dst, in pieces: gci_ep_landed(&sink, n) ...
 *	rc = gci_ep_payload(&ep, peer, &sink);
 *	gci_ep_run(&ep);				// calls done and on_failure
 *	gci_ep_free(&ep);
 *
 * (The byte streams between are stream.h's.)
 *
 * Credit. An irecv sends one CREDIT frame. An isend whose credit has come is `ready`. One without
 * takes its size plus GCI_EP_MESSAGE_NBYTES out of the peer's eager allowance, if it fits whole,
 * and is ready too; the receiver keeps what it has not asked for in early buffers, never more
 * than that allowance. The credit gives the allowance back; where it was not sent yet when the
 * message came, the message's number does instead, in the header of any frame that goes the other
 * way (endpoint.c). Everything here is O(1) per frame, whatever the number of messages.
 *
 * A message that must wait for its credit may say so (gci_tp_req.tells), the first of each
 * operation to each peer: else two ranks that run different operations could wait for each
 * other's credits without a word.
 *
 * Loss. On a link with replay (replay.h) each connection is an incarnation of its stream (`life`),
 * whose frames are counted and kept until they are acknowledged; elsewhere `life` is NULL, and a
 * lost connection is a failure.
 *
 * The credit of a short message would come alone, and cost as much as the message. If the backend
 * sets `holds`, it waits for the message to come and make it needless, and numbers wait for a frame
 * to go with; or until the backend calls gci_ep_urge, which it must soon. What waits never holds
 * more than a quarter of the allowance, counted with what nobody has asked for.
 *
 * Failure. The first one is kept. From then on nothing is pulled and every call returns its
 * status; the backend must stop its reads before it calls gci_ep_run, which gives the requests
 * back. */
#ifndef GCI_TRANSPORT_ENDPOINT_H
#define GCI_TRANSPORT_ENDPOINT_H

#include "transport/frame.h"
#include "transport/messages.h"
#include "transport/replay.h"
#include "transport/sums.h"
#include "transport/transport.h"

#define GCI_EP_MESSAGE_NBYTES 64          /* what a message counts besides its bytes */
#define GCI_EP_SHORT_NBYTES   4096        /* of a message whose credit may wait for company */
#define GCI_EP_GRANULE_NBYTES (32u << 10) /* of the message, that has a sum of its own */
/* Of a frame, of which only the inner ones are whole; granules of whole elements are more than half as long. */
#define GCI_EP_MOST_PARTS  (2 * GCI_TP_FRAME_NBYTES / GCI_EP_GRANULE_NBYTES + 2)
#define GCI_EP_LOST        1          /* the connection is of no use any more */
#define GCI_EP_MAX_CREDITS (1u << 17) /* per peer, for messages not offered here yet */

/* What the endpoint asks of its backend. Called from isend, irecv and from arriving frames. */
struct gci_ep_io {
	void *user;
	void (*need)(void *user, int peer); /* the first use of a peer: open connections */
	void (*kick)(void *user, int peer); /* there is something to pull */
	/* The peer has lost this connection: close it, then call gci_ep_lose. Needed only where
	 * links have replay. */
	void (*close)(void *user, int peer, const struct gci_life *life);
};

/* A number to be given back, and the allowance that it stands for. */
struct gci_ep_back {
	uint16_t id;
	uint64_t nbytes;
};

/* Padding to a peer, by stream. */
struct gci_ep_pads {
	uint64_t most, gone[GCI_TP_MAX_STREAMS];
};

struct gci_ep_peer {
	int rank;
	struct gci_tp_link link;
	int leaving;               /* said goodbye, on any stream */
	int left;                  /* on all of them */
	struct gci_replay *replay; /* NULL: lost streams are not made up for */

	/* Sending. */
	uint64_t eager_left;
	struct gci_list ready;   /* may be sent; about in the order of isend */
	uint64_t ready_nbytes;   /* what they have to send yet */
	struct gci_list waiting; /* for allowance or credit */
	struct gci_list waits;   /* gci_msg.due: WAIT frames to send */
	struct gci_tp_key told;  /* of the last WAIT sent */
	uint64_t order;
	struct gci_msg **ids;              /* messages that hold allowance, by number */
	uint32_t nids, taken_ids, next_id; /* nids a power of two */

	/* Credits and numbers not sent yet. */
	struct gci_list credits;   /* gci_msg.due */
	struct gci_ep_back *backs; /* a ring of a power of two */
	size_t backs_cap, backs_at, nbacks;
	uint64_t untold_nbytes;   /* allowance that both of them stand for */
	int urgent;               /* they wait no longer */
	struct gci_list held;     /* of the endpoint's list */
	struct gci_ep_pads *pads; /* NULL: none asked for */

	/* Receiving. */
	uint64_t early_nbytes; /* allowance the peer has taken */
	uint32_t remembered;   /* credits for messages not offered here yet */

	uint8_t refused[GCI_TP_MAX_STREAMS]; /* headers and records in a row, by stream */
	size_t requests;                     /* under way */
	struct gci_tp_stats stats;
};

/* One frame on its way out. */
struct gci_ep_frame {
	uint8_t head[GCI_FRAME_HEAD_NBYTES];
	const void *payload;
	uint32_t nbytes;
	struct gci_tp_req *req; /* NULL: none, or `kept` has it */
	struct gci_life *life;
	struct gci_replay_frame *kept; /* until the peer has it; NULL: not kept */
	int pad;
};

/* Where a frame's payload goes. */
struct gci_ep_sink {
	uint8_t *dst;
	uint32_t nbytes, got;  /* of the payload; so far */
	uint32_t crc, sum;     /* as the header has it; of what is there */
	int checked;           /* they must be the same */
	struct gci_sums *sums; /* where the sums of its granules are kept; NULL: nowhere */
	uint32_t granule, nparts;
	uint64_t offset;
	enum gci_frame_type type; /* DATA, maybe of 0 bytes, and PAD have a payload */
	int ask;                  /* its sender waits for an acknowledgement */
	struct gci_msg *msg;
	struct gci_life *life;
	void *scratch;
	/* With `sums`: cut by granules, the last one growing. Else not initialized. */
	struct gci_sum parts[GCI_EP_MOST_PARTS];
};

struct gci_ep {
	const struct gci_tp_config *config;
	struct gci_ep_io io;
	struct gci_ep_peer **peers; /* by rank; NULL: not needed yet */
	struct gci_msgs out, in;
	struct gci_list active;   /* requests, in no order */
	struct gci_list finished; /* requests whose done is to be called */
	struct gci_list arrived;  /* messages that came early and whole, and were asked for */
	struct gci_list held;     /* peers whose credits or numbers wait */
	int holds;                /* set by a backend that calls gci_ep_urge */
	struct gci_blocks blocks; /* of GCI_TP_FRAME_NBYTES: scratch, and replay's copies */
	struct gci_tp_failure failure;
	char refusal[160];     /* why GCI_EP_LOST was returned */
	int told;              /* on_failure was called, or must not be */
	int silent;            /* stopped: no callbacks any more */
	int warming;           /* there may be padding to send */
	int bulk;              /* bulk data has come or gone: no padding any more */
	uint64_t short_nbytes; /* that had come and gone until then */
	uint64_t callbacks;    /* called so far */
};

/* Something waits to be told that waits no longer. */
static inline int gci_ep_has_urgent(const struct gci_ep_peer *p)
{
	return p->urgent && (p->nbacks || !gci_list_empty(&p->credits));
}

/* 0 or GCOLL_ERR_NOMEM. `config` must stay. */
int gci_ep_init(struct gci_ep *ep, const struct gci_tp_config *config, const struct gci_ep_io *io);
void gci_ep_free(struct gci_ep *ep);

/* As in struct gci_tp_ops. */
void gci_ep_isend(struct gci_ep *ep, struct gci_tp_req *r);
void gci_ep_irecv(struct gci_ep *ep, struct gci_tp_req *r);
void gci_ep_detach(struct gci_ep *ep, struct gci_tp_req *r);
void gci_ep_ask(struct gci_ep *ep, struct gci_tp_req *r);

/* Makes a peer, and calls io.need. NULL: failed, or no such rank. */
struct gci_ep_peer *gci_ep_meet(struct gci_ep *ep, int rank);

/* The peer, made if it is new. */
static inline struct gci_ep_peer *gci_ep_peer(struct gci_ep *ep, int rank)
{
	int known = rank >= 0 && rank < ep->config->size && ep->peers[rank];

	return known ? ep->peers[rank] : gci_ep_meet(ep, rank);
}

/* Credits and numbers wait no longer. */
void gci_ep_urge(struct gci_ep *ep);

/* A connection of the peer begins; `number`: which of this stream's, from 1, above all before.
 * *life: NULL where nothing is replayed. 0 or the failure's status. */
int gci_ep_open(
	struct gci_ep *ep, int peer, unsigned stream, uint32_t number, struct gci_life **life);

/* The number of the stream's next connection; 0 where nothing is replayed. */
uint32_t gci_ep_next_life(const struct gci_ep *ep, int peer, unsigned stream);

/* The connection is closed, its sink undone: what the peer may not have goes out again. 0 or the
 * failure's status. Nothing of `life` may be under way any more, not even in the kernel. */
int gci_ep_lose(struct gci_ep *ep, int peer, struct gci_life *life);

/* The connection never came to be (`never`), or ended in order. */
void gci_ep_end(struct gci_ep *ep, int peer, struct gci_life *life, int never);

/* True if there is something to send, or, on a link with replay, something that the peer may not
 * have: then it is too early for a goodbye. */
int gci_ep_owes(const struct gci_ep *ep, int peer);

/* Bytes that one of the peer's streams takes at a time, lest others be idle: of several, about what
 * a new connection sends in one round trip, and more as it carries more; but no more than its share
 * of what there is, or else a message that is longer than one connection's window would take a round
 * trip more. A share is a granule at least: shorter frames cost processors and links' packets more. */
uint32_t gci_ep_turn(const struct gci_ep *ep, int peer, unsigned stream);

/* The next frame for `peer`, by this of its streams; 0: none. Payload sums are computed here. */
int gci_ep_pull(struct gci_ep *ep, int peer, unsigned stream, struct gci_life *life,
	struct gci_ep_frame *f);

/* An acknowledgement or a question for one, if due; what may be sent behind BYE. */
int gci_ep_pull_ack(struct gci_ep *ep, int peer, struct gci_life *life, struct gci_ep_frame *f);

/* Before BYE: asks for an acknowledgement, once for all that was sent. 0: nothing to ask. */
int gci_ep_pull_ask(struct gci_ep *ep, int peer, struct gci_life *life, struct gci_ep_frame *f);

void gci_ep_pull_bye(struct gci_ep *ep, int peer, struct gci_life *life, struct gci_ep_frame *f);

/* All of the frame's bytes have been handed to the network. */
void gci_ep_sent(struct gci_ep *ep, int peer, const struct gci_ep_frame *f);

/* A header has come from `peer`. 0 and where the payload goes, or the failure's status. Or
 * GCI_EP_LOST: it is corrupted, and the connection is to be lost: the peer will send it again. */
int gci_ep_head(struct gci_ep *ep, int peer, struct gci_life *life,
	const uint8_t head[GCI_FRAME_HEAD_NBYTES], struct gci_ep_sink *sink);

/* So many bytes more of the payload are at dst + got. Sums them while the cache has them. */
void gci_ep_landed(struct gci_ep_sink *sink, size_t nbytes);

/* All of a DATA frame's payload has come. 0, the failure's status, or GCI_EP_LOST, as above: then
 * the sink is still to be undone. */
int gci_ep_payload(struct gci_ep *ep, int peer, struct gci_ep_sink *sink);

/* Something that came from the peer, `what` in the plural, is corrupted; of `m`, if not NULL.
 * GCI_EP_LOST with ep->refusal, where it can be sent again and was not too often; else the
 * failure's status. */
int gci_ep_refuse(struct gci_ep *ep, int peer, const struct gci_life *life, struct gci_msg *m,
	const char *what);

/* Gives up a sink, after a failure or when it was used. */
void gci_ep_drop(struct gci_ep *ep, struct gci_ep_sink *sink);

/* Undoes a sink whose payload will not come by this connection. */
void gci_ep_undo(struct gci_ep *ep, struct gci_ep_sink *sink);

/* The peer has said BYE on every stream: what it still owes will not come. What came before may
 * still be asked for. */
void gci_ep_left(struct gci_ep *ep, int peer);

/* Fails: what a request needs of a peer that has left cannot come any more. */
int gci_ep_begun_too_late(struct gci_ep *ep, int peer);

/* Fails with one sentence; `peer` -1: none in particular. Keeps an earlier failure. Returns the
 * status in force. */
int gci_ep_fail(struct gci_ep *ep, int status, int peer, const char *fmt, ...)
	__attribute__((cold, format(printf, 4, 5)));

/* As gci_tp_waits. */
int gci_ep_waits(const struct gci_ep *ep, struct gci_tp_wait *out);

/* As gci_tp_fail. */
void gci_ep_revoke(struct gci_ep *ep, int status);

static inline int gci_ep_status(const struct gci_ep *ep)
{
	return ep->failure.status;
}

/* True if gci_ep_pull would give a frame to the first stream. */
static inline int gci_ep_pending(const struct gci_ep *ep, int peer)
{
	const struct gci_ep_peer *p = ep->peers[peer];
	const struct gci_replay *r = p ? p->replay : NULL;

	return p && !gci_ep_status(ep) &&
	       (gci_ep_has_urgent(p) || !gci_list_empty(&p->ready) || !gci_list_empty(&p->waits) ||
		       (r && (r->ndue || !gci_list_empty(&r->again))));
}

/* True if there is payload that gci_ep_pull may give to this stream. */
int gci_ep_has_for(const struct gci_ep *ep, int peer, unsigned stream);

/* True if gci_ep_run has something to call. */
static inline int gci_ep_busy(const struct gci_ep *ep)
{
	if (ep->silent)
		return 0;
	if (gci_ep_status(ep) && (!ep->told || !gci_list_empty(&ep->active)))
		return 1;
	return !gci_list_empty(&ep->finished) || !gci_list_empty(&ep->arrived);
}

/* Calls what is due: on_failure, piece and done of requests finished up to now. */
void gci_ep_run(struct gci_ep *ep);

/* As gci_tp_warm. */
int gci_ep_warm(struct gci_ep *ep, int peer, uint64_t stream_nbytes);
/* True if there is padding to send to this peer; not while a request of its is under way. */
int gci_ep_wants_pads(const struct gci_ep *ep, int peer);
/* A stream that has nothing else to send; 0: none. */
int gci_ep_pull_pad(struct gci_ep *ep, int peer, unsigned stream, struct gci_life *life,
	struct gci_ep_frame *f);

/* For endpoint.c alone: what endpoint_core.c has for it. */
/* Frames that the peer has are given back. */
void gci_ep_take_acked(struct gci_ep *ep, struct gci_ep_peer *p);
void gci_ep_finish(struct gci_ep *ep, struct gci_tp_req *r, int status);
int gci_ep_begin(struct gci_ep *ep, struct gci_tp_req *r, struct gci_ep_peer **p);
int gci_ep_check(struct gci_ep *ep, int peer, const struct gci_tp_key *key, uint64_t digest);
/* A request of ours says the same as the peer's frame. */
static inline int gci_ep_agrees(const struct gci_msg *m, const struct gci_frame *f)
{
	return m && m->req && m->nbytes == f->length && m->digest == f->digest;
}
/* Sums. The frame that comes next of a request's bytes. */
uint32_t gci_ep_cut(const struct gci_tp_req *r, uint32_t turn);
/* The sum of a frame that goes out. 0 or the failure's status. */
int gci_ep_sum(struct gci_ep *ep, const struct gci_tp_req *r, struct gci_frame *f);
void gci_ep_want_sums(struct gci_ep_sink *sink, const struct gci_tp_req *r);
void gci_ep_keep_sums(const struct gci_ep_sink *sink);
/* All of an early message, which is at `at` now. 0 or the failure's status. */
int gci_ep_check_early(struct gci_ep *ep, const struct gci_msg *m, const void *at);
int gci_ep_refuse_payload(struct gci_ep *ep, int peer, const struct gci_ep_sink *sink);
void gci_ep_accept(struct gci_ep_peer *p, const struct gci_life *life);
int gci_ep_mismatch(struct gci_ep *ep, const struct gci_msg *m, uint64_t nbytes, uint64_t digest);
void gci_ep_encode(struct gci_ep *ep, struct gci_ep_peer *p, struct gci_life *life,
	struct gci_frame *f, struct gci_ep_frame *out);
int gci_ep_keep(
	struct gci_ep *ep, struct gci_ep_peer *p, struct gci_frame *f, struct gci_ep_frame *out);
int gci_ep_pull_again(
	struct gci_ep *ep, struct gci_ep_peer *p, struct gci_life *life, struct gci_ep_frame *out);
void gci_ep_gone(struct gci_ep *ep, struct gci_ep_peer *p, const struct gci_ep_frame *f);

#endif
