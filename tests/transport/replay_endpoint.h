/* SPDX-License-Identifier: MIT
 * Rank 1's endpoint on a link with replay, with two streams to rank 0 and nobody around: a test
 * plays rank 0 by feeding them frames, and looks at what they would send.
 *
 *	r = request(1, buf, 100);
 *	gci_ep_irecv(&ep, &r);
 *	assert_int_equal(feed(&stream[0], data(1, 100, 0, 60), 60), 0);
 *	assert_int_equal(sends(&stream[0]).type, GCI_FRAME_CREDIT); */
#ifndef GCI_TESTS_TRANSPORT_REPLAY_ENDPOINT_H
#define GCI_TESTS_TRANSPORT_REPLAY_ENDPOINT_H

#include "tests/test.h"

#include "transport/stream.h"

extern struct gci_ep ep;
extern struct gci_stream stream[2];

/* What came by the endpoint's callbacks since the test began. */
extern const struct gci_life *closed;
extern int ndone, last_status;

/* A case with an endpoint of its own. */
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
int setup(void **state);
int teardown(void **state);

/* Of the frame only the header and so many bytes of payload, which is all 7s. The status, or
 * GCI_STREAM_LOST. */
int feed(struct gci_stream *s, struct gci_frame f, size_t nbytes);

/* All of it, but a bit of this byte, of the header or behind it, has changed on the way. */
int feed_flipped(struct gci_stream *s, struct gci_frame f, size_t at);

/* Frames of rank 0. */
struct gci_frame data(uint32_t tag, uint64_t length, uint64_t offset, uint32_t nbytes);
struct gci_frame lost(uint32_t which, uint32_t life, uint64_t count);

struct gci_tp_req request(uint32_t tag, void *buf, uint64_t nbytes);

/* What the stream sends next, all of it; returns the first frame's header, type 0: nothing. */
struct gci_frame sends(struct gci_stream *s);

#endif
