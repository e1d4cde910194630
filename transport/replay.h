/* SPDX-License-Identifier: MIT
 * State of one rank's streams to one peer from which frames are sent again after a connection is
 * lost. Pure: no I/O, no clock.
 *
 *	r = gci_replay_new(streams, most_nbytes, &blocks);
 *	life = gci_replay_begin(r, 0, 1);		// stream 0 has its first connection
 *	f = gci_replay_add(r, life, &frame);		// DATA, CREDIT or LOST goes out on it
 *	rc = gci_replay_ack(r, life, count);		// the peer has `count` of these
 *	while ((f = gci_replay_acked(r)))
 *		... settle f->req ..., gci_replay_put(r, f);
 *	gci_replay_came(r, life, nbytes);		// the peer's next frame has come whole
 *	gci_replay_want(r, life);			// somebody here waits: a question is due
 *	gci_replay_lose(r, life);			// the connection is closed here
 *	rc = gci_replay_on_lost(r, 0, 1, count, &life);	// the peer says that it has closed it
 *	f = gci_replay_next(r, life);			// goes out before anything else
 *
 * A stream has one connection after another: its incarnations (struct gci_life), numbered from 1.
 * TCP keeps the order, so the frames of one incarnation and direction need no numbers of their own:
 * both sides count them. The receiver acknowledges by the count that is in every frame's header, or
 * in an ACK frame of its own: after so many frames or bytes, when it is asked, and when a long message
 * is complete whose sender waits.
 *
 * A side that finds a connection dead, or gets LOST for it, closes it, sends one LOST frame with the
 * number of frames that had come whole, and counts no more of it. Once the peer's LOST is there too,
 * frames that the peer has not received go out again, by any stream. So every frame takes effect
 * once, and there are no duplicates to look for. Only LOST frames do not wait for one another: they
 * are sent again at once, and a second copy changes nothing.
 *
 * Memory: a frame's payload stays where it is as long as its request is not done. Copies are made
 * for those that must be done sooner, `most_nbytes` at most. */
#ifndef GCI_TRANSPORT_REPLAY_H
#define GCI_TRANSPORT_REPLAY_H

#include "base/mem.h"
#include "transport/frame.h"

#define GCI_REPLAY_FRAMES      16           /* most to have come before they are acknowledged */
#define GCI_REPLAY_NBYTES      (512u << 10) /* likewise */
#define GCI_REPLAY_SHORT       (16u << 10)  /* messages up to here are copied when they go out */
#define GCI_REPLAY_POOLED      (16u << 10)  /* copies from here on are blocks */
#define GCI_REPLAY_MOST_UNSEEN 64           /* connections of a stream that only the peer knew */
#define GCI_REPLAY_MOST_LIVES  256          /* incarnations that wait for the peer's LOST */

/* A frame that the peer may not have. */
struct gci_replay_frame {
	struct gci_list link;   /* of gci_life.sent, or of frames to be sent again */
	struct gci_list of_req; /* req->unsettled */
	struct gci_frame head;  /* but its ack */
	const void *payload;    /* `copy`, or the request's memory */
	void *copy;             /* owned, counted in the replay's nbytes; NULL: none */
	struct gci_tp_req *req; /* for which these bytes are not over yet; NULL: none */
	uint32_t index;         /* among the frames of its incarnation */
	int gone;               /* handed to the network whole */
};

/* Incarnation of a stream: one connection, until both sides have sent LOST for it. */
struct gci_life {
	struct gci_list link;
	unsigned stream;
	uint32_t number;

	struct gci_list sent; /* the oldest first */
	uint32_t nsent;       /* frames, ever */
	uint32_t nacked;      /* of these, the peer has */
	int asked;            /* an ACK with GCI_FRAME_ASK went out behind all of them */

	uint32_t ncame; /* whole frames */
	uint32_t ntold; /* of these, acknowledged */
	uint64_t untold_nbytes;
	int due;   /* an acknowledgement must go, if need be by itself */
	int wants; /* likewise, a question for the peer's */

	struct gci_replay_frame *notice; /* made ahead: LOST; NULL: it is on its way */
	int lost;                        /* here */
	int known;                       /* the peer's LOST is here */
};

struct gci_replay {
	uint64_t most_nbytes, nbytes; /* copies */
	struct gci_blocks *blocks;    /* of long ones */
	struct gci_list lives;
	struct gci_list again; /* frames to be sent before anything else */
	struct gci_list acked; /* frames to be taken by gci_replay_acked */
	uint32_t *newest;      /* [stream]: number of its newest connection; 0: none yet */
	unsigned streams, nlives;
	unsigned ndue;                  /* how many `due` and `wants` are set */
	size_t nframes;                 /* that the peer may not have */
	struct gci_replay_frame *spare; /* chained by link.next */
	size_t nspare;
};

/* `blocks`, of blocks of GCI_TP_FRAME_NBYTES, outlives it. NULL: out of memory. */
struct gci_replay *gci_replay_new(
	unsigned streams, uint64_t most_nbytes, struct gci_blocks *blocks);

/* Touches no request: after a failure their memory may be gone. */
void gci_replay_free(struct gci_replay *r);

/* The stream has a new connection. `number` must be above the newest, by GCI_REPLAY_MOST_UNSEEN at
 * most; the incarnations between were lost before this side saw them. NULL: out of memory. */
struct gci_life *gci_replay_begin(struct gci_replay *r, unsigned stream, uint32_t number);

/* The newest incarnation was never connected: its number is free again. */
void gci_replay_unbegin(struct gci_replay *r, struct gci_life *life);

/* A frame goes out. NULL: out of memory. */
struct gci_replay_frame *gci_replay_add(
	struct gci_replay *r, struct gci_life *life, const struct gci_frame *head);

/* The next of the frames that go before all others, now on this connection; NULL: none. */
struct gci_replay_frame *gci_replay_next(struct gci_replay *r, struct gci_life *life);

/* Reserves room for a copy, and makes it. 0: there is no room. The payload is the copy then. */
int gci_replay_copy(struct gci_replay *r, struct gci_replay_frame *f);

/* All of the frame is in the network's hands. May put it among the acked ones. */
void gci_replay_gone(struct gci_replay *r, struct gci_life *life, struct gci_replay_frame *f);

/* The acknowledgement for a header that goes out on this connection; counts as sent. */
uint32_t gci_replay_tell(struct gci_replay *r, struct gci_life *life);

/* 0, or GCOLL_ERR_PROTO: the peer has frames that were never sent. */
int gci_replay_ack(struct gci_replay *r, struct gci_life *life, uint32_t count);

/* Takes a frame that the peer has; NULL: no more now. Give it back with gci_replay_put. */
struct gci_replay_frame *gci_replay_acked(struct gci_replay *r);
void gci_replay_put(struct gci_replay *r, struct gci_replay_frame *f);

/* A frame has come whole. */
void gci_replay_came(struct gci_replay *r, struct gci_life *life, uint32_t nbytes);

/* The peer waits for an acknowledgement. */
void gci_replay_ask(struct gci_replay *r, struct gci_life *life);

/* Somebody here waits for the peer's acknowledgement of all that went out on this connection. False: there
 * is nothing to ask for, or it was asked for. */
int gci_replay_want(struct gci_replay *r, struct gci_life *life);

/* The question goes out. */
void gci_replay_asked(struct gci_replay *r, struct gci_life *life);

/* A long message is complete: its sender waits for all acknowledgements, so they are due. */
void gci_replay_complete(struct gci_replay *r);

/* The connection is closed here, nothing is read or written on it any more. May free `life`. */
void gci_replay_lose(struct gci_replay *r, struct gci_life *life);

/* The connection ended in order: nothing of it needs to go again. Frees `life`; frames that are
 * not acknowledged are forgotten. */
void gci_replay_end(struct gci_replay *r, struct gci_life *life);

/* The peer has lost a life after `count` of our frames. `may_be_new`: the peer makes the
 * connections, so it may know newer ones. 0 and in *open the life, if it must be closed here now
 * (gci_replay_lose follows), else NULL. GCOLL_ERR_PROTO, GCOLL_ERR_NOMEM. */
int gci_replay_on_lost(struct gci_replay *r, unsigned stream, uint32_t number, uint32_t count,
	int may_be_new, struct gci_life **open);

#endif
