/* SPDX-License-Identifier: MIT
 * One connection's byte stream, in both directions, without I/O: an endpoint's frames out, bytes
 * in. A stream takes its next frame only when it can send it, so a slow one takes fewer.
 *
 *	gci_stream_init(&s, &ep, peer, 0, gci_ep_next_life(&ep, peer, 0));
 *	n = gci_stream_out(&s, iov);			// 0: nothing to send
 *	gci_stream_sent(&s, writev(fd, iov, n));
 *	n = gci_stream_in(&s, iov);
 *	rc = gci_stream_received(&s, readv(fd, iov, n));
 *	rc = gci_stream_end(&s, NULL, 0);		// the connection was closed
 *	gci_stream_lose(&s);				// ... without a goodbye, and we survive it
 *	gci_stream_deinit(&s);				// before the endpoint is freed
 *
 * Payload is read straight to where it belongs; what follows it in the same read goes to a
 * staging buffer, so that small frames cost no system call each. */
#ifndef GCI_TRANSPORT_STREAM_H
#define GCI_TRANSPORT_STREAM_H

#include "transport/endpoint.h"

#include <sys/uio.h>

#define GCI_STREAM_FRAMES 16                      /* most frames taken and not sent yet */
#define GCI_STREAM_OUT    (2 * GCI_STREAM_FRAMES) /* iovecs */
#define GCI_STREAM_IN     2
#define GCI_STREAM_LOST   GCI_EP_LOST

struct gci_stream {
	struct gci_ep *ep;
	int peer;
	unsigned index;        /* among the peer's streams */
	struct gci_life *life; /* NULL: nothing is replayed */

	struct gci_ep_frame out[GCI_STREAM_FRAMES];
	unsigned nout;
	size_t gone; /* bytes of out[0] sent */
	int bye;     /* say goodbye when nothing is left to send, nor to be acknowledged */
	int bye_now; /* ... without waiting for acknowledgements */
	int bye_taken, bye_sent;

	uint8_t *staging;
	size_t lo, hi;
	struct gci_ep_sink sink;
	int in_payload;
	int bye_seen;
};

/* `life` as of gci_ep_open. 0 or the endpoint's failure. */
int gci_stream_init(
	struct gci_stream *s, struct gci_ep *ep, int peer, unsigned index, uint32_t life);

/* Before it was ever connected: its life's number is free again. */
void gci_stream_unbegin(struct gci_stream *s);
void gci_stream_deinit(struct gci_stream *s);

/* False: gci_stream_out would have nothing, until something new is to be sent. */
static inline int gci_stream_has_more(const struct gci_stream *s)
{
	return s->nout || s->bye || s->ep->warming || gci_ep_pending(s->ep, s->peer);
}

/* What to send next: the number of iovecs filled. */
int gci_stream_out(struct gci_stream *s, struct iovec iov[GCI_STREAM_OUT]);
void gci_stream_sent(struct gci_stream *s, size_t n);

/* Where arriving bytes go; never 0 bytes in all. */
int gci_stream_in(struct gci_stream *s, struct iovec iov[GCI_STREAM_IN]);

/* 0, or the endpoint's failure. Or GCI_STREAM_LOST: what came is corrupted, for the reason in
 * ep->refusal; close the connection, then call gci_stream_lose. */
int gci_stream_received(struct gci_stream *s, size_t n);

/* No more bytes will come. 0 if the peer had said so. GCI_STREAM_LOST if not, where this can be
 * made up for: gci_stream_lose must follow when nothing of the connection is under way any more,
 * not even in the kernel. Else the endpoint's failure, with `cause` (e.g. strerror's) in its text;
 * NULL: the connection was closed. `broken`: otherwise than by the peer, which may live. */
int gci_stream_end(struct gci_stream *s, const char *cause, int broken);

/* Gives all frames back that the peer may not have. 0 or the endpoint's failure. */
int gci_stream_lose(struct gci_stream *s);

#endif
