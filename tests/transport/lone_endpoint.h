/* SPDX-License-Identifier: MIT
 * Rank 0's endpoint with nobody around: a test plays peer 1 by feeding it frames, and looks at what
 * it would send and at what it tells.
 *
 *	r = request(1, buf, 100);
 *	gci_ep_irecv(&ep, &r);
 *	assert_int_equal(feed(frame(1, 100, 0, 60)), 0);
 *	expect_failure(feed(frame(1, 100, 0, 60)), GCOLL_ERR_PROTO, "came twice"); */
#ifndef GCI_TESTS_TRANSPORT_LONE_ENDPOINT_H
#define GCI_TESTS_TRANSPORT_LONE_ENDPOINT_H

#include "tests/test.h"

#include "transport/endpoint.h"

#define EAGER 1000

extern struct gci_ep ep;

/* What came by the endpoint's callbacks since the test began. */
extern int nkicks, nfailures, ndone, last_status;

/* Of peers that are new: two streams and EAGER bytes, unless the test wants it different. */
extern struct gci_tp_link link_of_peers;

/* An endpoint that does not know its peer yet. */
void reopen(void);

/* A case with an endpoint of its own. */
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int setup(void **state);
int teardown(void **state);

/* Frames of peer 1. */
struct gci_frame frame(uint32_t tag, uint64_t length, uint64_t offset, uint32_t nbytes);
struct gci_frame credit(uint32_t tag, uint64_t length);

/* The endpoint gets the frame; a payload of zeros. Returns the status. */
int feed(struct gci_frame f);

struct gci_tp_req request(uint32_t tag, void *buf, uint64_t nbytes);

/* `rc` of what was just done is the endpoint's status from now on, told once, with a text that has
 * `why` in it. */
void expect_failure(int rc, int status, const char *why);

#endif
