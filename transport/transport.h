/* SPDX-License-Identifier: MIT
 * The transport: tagged messages between the ranks of a job. Knows nothing of collectives.
 *
 * A message is named by (source, key). The receiver asks for it with irecv, the sender offers it
 * with isend, in any order; their lengths and digests must agree. Messages overtake each other
 * freely. No message is ever cut short: a request ends with its whole message or with an error.
 *
 *	struct gci_tp_req r = {.peer = 1, .key = {.tag = 7}, .buf = buf, .nbytes = n,
 *		.align = 1, .done = on_done, .user = me};
 *	gci_tp_irecv(tp, &r);
 *	while (!me->done)
 *		gci_tp_progress(tp, GCI_NS_PER_S);
 *
 * Flow control: streams are always read. Payload is sent against a credit, which irecv gives, or
 * out of a bounded eager allowance per peer, which the receiver buffers until it asks.
 *
 * Contract for all backends
 * - Threads: one thread uses a transport; only gci_tp_wake may be called from others.
 * - isend and irecv never block, and never call done: that happens in progress only. done and
 *   piece may call isend and irecv (for these requests' memory too, once done), not progress,
 *   stop or free.
 * - A request belongs to the transport from isend or irecv until done has been called, or until
 *   stop or free, which call no done any more.
 * - A send is done when its bytes have been handed to the network, on a link with replay only if
 *   they were copied as well (messages up to 16 KiB, and detached ones), else when the peer has
 *   them, and of a patient one that may be never unless it is asked for or detached. Its memory may
 *   be reused then; this does not say that they have arrived.
 * - After the first failure (a peer's death, a protocol error, bad data) on_failure is called
 *   once, every request ends with that status, later ones too, at the next progress. */
#ifndef GCI_TRANSPORT_TRANSPORT_H
#define GCI_TRANSPORT_TRANSPORT_H

#include "base/error.h"
#include "base/list.h"
#include "transport/pace.h"

#include <stddef.h>
#include <stdint.h>

#define GCI_TP_FRAME_NBYTES (256u << 10) /* most payload of one frame */
#define GCI_TP_MAX_STREAMS  64

struct gci_sums;
struct gci_taps;
struct gci_tp;

struct gci_tp_key {
	uint32_t comm;
	uint32_t tag;
	uint64_t seq; /* the operation, counted per communicator */
};

struct gci_tp_req {
	/* Set by the caller, constant until done (but `patient`). */
	int peer;
	struct gci_tp_key key;
	void *buf; /* isend only reads it; may be NULL when nbytes is 0 */
	uint64_t nbytes;
	uint64_t digest; /* the operation's signature; a peer's different one is a mismatch */
	uint32_t align;  /* frames are cut at multiples of it, in bytes: 1, or the element's size */
	/* isend: peers that the sender shares its streams among, each using that part of its own
	 * (at least one); 0 or 1: all of them. */
	uint32_t share;
	int tells; /* isend: while it waits for its credit, its key and digest go to the peer */
	/* isend: that the peer has it may be heard late, with what else comes from there, or not at all,
	 * until gci_tp_ask says that somebody waits for it, and clears this. */
	int patient;
	void (*done)(struct gci_tp_req *r, int status);
	/* irecv only, may be NULL. If set, `buf` is not used: instead the payload is handed over
	 * piece by piece, in any order, every byte once, cut at multiples of `align`. */
	void (*piece)(struct gci_tp_req *r, uint64_t offset, const void *data, size_t nbytes);
	/* Sums of what passes through this rank, see sums.h: irecv puts those of what has come to
	 * `buf`, isend takes them. Whoever else writes there says so. NULL: none are kept. */
	struct gci_sums *sums;
	void *user;

	/* The transport's. */
	struct gci_list link;
	struct gci_list unsettled; /* frames with replay that are not over */
	uint64_t moved;            /* bytes handed to streams, or received */
	uint64_t settled;          /* bytes whose frames are over */
	int detached;
	int status;
};

struct gci_tp_failure {
	int status; /* GCOLL_ERR_PEER, _PROTO, _CORRUPT, _MISMATCH, _TIMEOUT, _NOMEM, _SYS */
	int peer;   /* the rank it came from, or -1 */
	char text[256];
};

/* How a backend over sockets moves bytes, see path.h. AUTO: what has measured better. */
enum gci_data_path { GCI_DATA_PATH_AUTO, GCI_DATA_PATH_POLL, GCI_DATA_PATH_URING };

/* How to treat connections to one peer. */
struct gci_tp_link {
	uint32_t streams;        /* 1 .. GCI_TP_MAX_STREAMS; both sides must say the same */
	uint32_t eager_nbytes;   /* allowance; both sides must say the same */
	uint64_t sockbuf_nbytes; /* SO_SNDBUF and SO_RCVBUF; 0: as flight_nbytes needs */
	/* What one stream has in flight when the link is used to the full, and the round trip; 0:
	 * unknown. Socket buffers and the like are made for it. */
	uint64_t flight_nbytes, rtt_ns;
	const char *congestion; /* TCP_CONGESTION, for the transport's life; NULL: the kernel's */
	uint64_t dead_ns;       /* silence of the network that counts as death; 0: never */
	int unchecked;          /* payload has no CRC32C; both sides must say the same */
	/* The loss of a stream is made up for, with copies of sent bytes of this size at most; 0:
	 * it is the peer's death. Both sides must say the same of whether. */
	uint64_t replay_nbytes;
	/* By TLS 1.3; both sides must say the same. Only with replay: a record whose length was changed
	 * on its way looks like half a one from a sender that computes, and costs the connection. */
	int encrypted;
	int open;                /* whoever says that it is the peer is believed */
	enum gci_data_path path; /* the first peer's counts for all */
	uint32_t pace_group; /* of peers that share a rate, see gci_tp_pace; 0: it is not paced */
};

struct gci_tp_config {
	int rank, size;
	uint32_t epoch;
	void *user;
	/* Link properties of a peer; asked when it is first needed. */
	void (*link)(void *user, int peer, struct gci_tp_link *out);
	void (*on_failure)(void *user, const struct gci_tp_failure *f);
	/* Called for every arriving message or credit, and for word that a message waits for its
	 * credit (once each), before anything else is done with it, unless a request of its name,
	 * length and digest is under way here; false makes it a GCOLL_ERR_MISMATCH failure. May be
	 * NULL. */
	int (*check)(void *user, int peer, const struct gci_tp_key *key, uint64_t digest);
	uint64_t *activity;    /* grows whenever bytes come or go; may be NULL */
	struct gci_taps *taps; /* where open connections are listed, see taps.h; may be NULL */
};

/* A request that is not done yet. */
struct gci_tp_wait {
	int peer, sends;
	/* The peer has given its credit, or begun to send: it is not late, and all that the
	 * message still needs is the network and a peer that makes progress. */
	int taken_up;
	struct gci_tp_key key;
	uint64_t nbytes, moved;
};

/* How the kernel treats a peer's connections: the smallest of each size, the longest round trip,
 * sums of the rest. Zeros: none is open, or there is no kernel in it. */
struct gci_tp_socket {
	uint64_t sndbuf_nbytes, rcvbuf_nbytes;
	int sndbuf_set, rcvbuf_set; /* else they grow by themselves */
	char congestion[16];
	uint32_t mss_nbytes;
	uint64_t rtt_ns;
	uint64_t resent; /* segments */
	uint64_t limit;  /* SO_MAX_PACING_RATE, bytes per second; UINT64_MAX: one has none */
	/* With data to send; of that, held up by the peer's window, and by our own buffer. */
	uint64_t busy_ns, window_limited_ns, buffer_limited_ns;
};

struct gci_tp_stats {
	uint64_t tx_payload_nbytes, rx_payload_nbytes;
	uint64_t tx_frames, rx_frames;
	uint32_t streams;                              /* open now */
	uint32_t lost, restored;                       /* streams, so far */
	uint64_t again_frames;                         /* sent again after a loss */
	uint64_t refused;                              /* frames that came corrupted */
	uint64_t tx_pad_nbytes, rx_pad_nbytes;         /* see gci_tp_warm; not in the others */
	uint64_t tx_stream_nbytes[GCI_TP_MAX_STREAMS]; /* payload by stream */
	struct gci_tp_socket socket;
};

struct gci_tp_ops {
	const char *name;
	void (*isend)(struct gci_tp *tp, struct gci_tp_req *r);
	void (*irecv)(struct gci_tp *tp, struct gci_tp_req *r);
	/* The caller waits for nothing but this send: what the peer may not have is copied, as far
	 * as the link's replay_nbytes allow, so that it is done when it was handed to the network.
	 * Only between isend and done. */
	void (*detach)(struct gci_tp *tp, struct gci_tp_req *r);
	/* The caller waits for this send, which was patient. Only between isend and done. */
	void (*ask)(struct gci_tp *tp, struct gci_tp_req *r);
	/* Opens connections to `peer` ahead of need. */
	void (*connect)(struct gci_tp *tp, int peer);
	/* Opens connections and, while no request is under way, sends up to stream_nbytes of
	 * padding on each of them, so that it carries more when the first bulk data comes; which
	 * ends all padding. With 0 bytes no more goes to that peer. With peer -1 nothing is
	 * added, and unless stream_nbytes is 0 padding ends now. 1: there is still some to be sent, 0: there is not, -1: it has ended. */
	int (*warm)(struct gci_tp *tp, int peer, uint64_t stream_nbytes);
	/* All that goes to the peers of a group (1 .. GCI_PACE_GROUPS - 1) is sent at this rate
	 * from now on, whoever they are; connections that have nothing to send leave theirs to
	 * others. At first nothing is paced. */
	void (*pace)(struct gci_tp *tp, uint32_t group, const struct gci_pace *pace);
	/* What goes to this peer is sent by its connections together at so many bits per second on the
	 * wire, by the kernel, in place of its group's rate; 0: it has none of its own any more;
	 * GCI_PACE_UNTIL_SENT: nor has it when all that is under way has left this host. Of that at
	 * most burst_nbytes go at once, 0: as many as the kernel thinks right. */
	void (*pace_peer)(struct gci_tp *tp, int peer, uint64_t bps, uint32_t burst_nbytes);
	/* No more than so many bytes are under way to this peer on each connection, from when it was first
	 * needed; 0: as many as the kernel thinks right. Where buffers of a fixed size were asked for, or the
	 * kernel cannot undo it, nothing changes. */
	void (*window_peer)(struct gci_tp *tp, int peer, uint64_t nbytes);
	/* Does what can be done, first waiting up to timeout_ns for something to do. Returns 0, or
	 * the status of the first failure. */
	int (*progress)(struct gci_tp *tp, uint64_t timeout_ns);
	/* For callers that wait elsewhere: a descriptor that poll(2) finds readable when progress
	 * has something to do, always the same one; -1: there is none. */
	int (*fd)(struct gci_tp *tp);
	/* How long it may be waited on until progress must be called. 0: call it first, there is
	 * something to do; GCI_NEVER. */
	uint64_t (*timeout_ns)(struct gci_tp *tp);
	/* Ends a wait in progress from any thread. */
	void (*wake)(struct gci_tp *tp);
	/* Fails the transport from outside (the job was revoked). on_failure is not called. */
	void (*fail)(struct gci_tp *tp, int status);
	/* Says goodbye: what was sent is flushed, peers will not take the end of the connections
	 * for a death. Waits up to timeout_ns. Call it when the job's ranks agreed to end. */
	void (*stop)(struct gci_tp *tp, uint64_t timeout_ns);
	void (*stats)(struct gci_tp *tp, int peer, struct gci_tp_stats *out);
	/* The first request that was taken up, else the first one. False: none is under way.
	 * Cost: O(requests). */
	int (*waits)(struct gci_tp *tp, struct gci_tp_wait *out);
	/* Ends at once. */
	void (*free)(struct gci_tp *tp);
};

/* Every backend's struct begins with this. */
struct gci_tp {
	const struct gci_tp_ops *ops;
	struct gci_tp_config config;
};

static inline void gci_tp_isend(struct gci_tp *tp, struct gci_tp_req *r)
{
	tp->ops->isend(tp, r);
}

static inline void gci_tp_irecv(struct gci_tp *tp, struct gci_tp_req *r)
{
	tp->ops->irecv(tp, r);
}

static inline void gci_tp_detach(struct gci_tp *tp, struct gci_tp_req *r)
{
	tp->ops->detach(tp, r);
}

static inline void gci_tp_ask(struct gci_tp *tp, struct gci_tp_req *r)
{
	tp->ops->ask(tp, r);
}

static inline void gci_tp_connect(struct gci_tp *tp, int peer)
{
	tp->ops->connect(tp, peer);
}

static inline int gci_tp_warm(struct gci_tp *tp, int peer, uint64_t stream_nbytes)
{
	return tp->ops->warm(tp, peer, stream_nbytes);
}

static inline void gci_tp_pace(struct gci_tp *tp, uint32_t group, const struct gci_pace *pace)
{
	tp->ops->pace(tp, group, pace);
}

static inline void gci_tp_pace_peer(
	struct gci_tp *tp, int peer, uint64_t bps, uint32_t burst_nbytes)
{
	tp->ops->pace_peer(tp, peer, bps, burst_nbytes);
}

static inline void gci_tp_window_peer(struct gci_tp *tp, int peer, uint64_t nbytes)
{
	tp->ops->window_peer(tp, peer, nbytes);
}

static inline int gci_tp_progress(struct gci_tp *tp, uint64_t timeout_ns)
{
	return tp->ops->progress(tp, timeout_ns);
}

static inline int gci_tp_fd(struct gci_tp *tp)
{
	return tp->ops->fd(tp);
}

static inline uint64_t gci_tp_timeout_ns(struct gci_tp *tp)
{
	return tp->ops->timeout_ns(tp);
}

static inline void gci_tp_wake(struct gci_tp *tp)
{
	tp->ops->wake(tp);
}

static inline void gci_tp_fail(struct gci_tp *tp, int status)
{
	tp->ops->fail(tp, status);
}

static inline void gci_tp_stop(struct gci_tp *tp, uint64_t timeout_ns)
{
	tp->ops->stop(tp, timeout_ns);
}

static inline void gci_tp_stats(struct gci_tp *tp, int peer, struct gci_tp_stats *out)
{
	tp->ops->stats(tp, peer, out);
}

static inline int gci_tp_waits(struct gci_tp *tp, struct gci_tp_wait *out)
{
	return tp->ops->waits(tp, out);
}

static inline void gci_tp_free(struct gci_tp *tp)
{
	if (tp)
		tp->ops->free(tp);
}

#endif
