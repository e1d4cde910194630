/* SPDX-License-Identifier: MIT
 * The endpoint as a hostile or broken peer sees it, frame by frame; the good cases are in the
 * conformance suite, what it sends in test_endpoint_send.c. */
#include "tests/transport/lone_endpoint.h"

#include "transport/stream.h"

static void wrong_epoch(void **state)
{
	struct gci_frame f = credit(1, 0);

	(void)state;
	f.epoch = 6;
	expect_failure(feed(f), GCOLL_ERR_PROTO, "epoch 6 (here: 5)");
}

static void wrong_source(void **state)
{
	struct gci_frame f = credit(1, 0);

	(void)state;
	f.source = 2;
	expect_failure(feed(f), GCOLL_ERR_PROTO, "a frame of rank 2");
}

static void hello_in_the_middle(void **state)
{
	struct gci_frame f = {.type = GCI_FRAME_HELLO, .nbytes = 32};

	(void)state;
	expect_failure(feed(f), GCOLL_ERR_PROTO, "second hello");
}

static void more_unasked_than_allowed(void **state)
{
	(void)state;
	assert_int_equal(feed(frame(1, 500, 0, 500)), 0);
	expect_failure(feed(frame(2, 500, 0, 500)), GCOLL_ERR_PROTO, "sent 500 bytes unasked");
}

static void unasked_and_not_as_such(void **state)
{
	struct gci_frame f = frame(1, 10, 0, 10);

	(void)state;
	f.flags = 0;
	expect_failure(feed(f), GCOLL_ERR_PROTO, "which nobody has asked for");
}

static void one_unasked_message_larger_than_memory(void **state)
{
	(void)state;
	expect_failure(feed(frame(1, UINT64_MAX, 0, 100)), GCOLL_ERR_PROTO,
		"bytes unasked, with 0 of 1000");
}

/* Messages without bytes take memory, too. */
static void many_unasked_empty_messages(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < EAGER / GCI_EP_MESSAGE_NBYTES; i++)
		assert_int_equal(feed(frame(i, 0, 0, 0)), 0);
	expect_failure(feed(frame(i, 0, 0, 0)), GCOLL_ERR_PROTO, "sent 0 bytes unasked");
}

static void asking_gives_the_allowance_back(void **state)
{
	struct gci_tp_req r[50];
	uint8_t buf[900];
	uint32_t i;

	(void)state;
	for (i = 0; i < 50; i++) {
		assert_int_equal(feed(frame(i, 900, 0, 900)), 0);
		r[i] = request(i, buf, 900);
		gci_ep_irecv(&ep, &r[i]);
		gci_ep_run(&ep);
		assert_int_equal(ndone, i + 1);
	}
	assert_true(ep.peers[1]->early_nbytes == 0);
	assert_int_equal(ep.in.table.n, 0);
}

/* What is owed for it is more than 32 bits hold. */
static void a_long_message_unasked(void **state)
{
	const uint64_t nbytes = 5ull << 30;
	struct gci_frame f = frame(1, nbytes, 0, 60), out = {0};
	struct gci_ep_frame sent;
	static uint8_t buf[60];
	struct gci_tp_req r = request(1, buf, nbytes);

	(void)state;
	gci_ep_irecv(&ep, &r);
	assert_true(ep.peers[1]->untold_nbytes > nbytes);
	f.flags |= GCI_FRAME_EAGER;
	assert_int_equal(feed(f), 0);
	gci_ep_urge(&ep);
	assert_int_equal(gci_ep_pull(&ep, 1, 0, NULL, &sent), 1);
	assert_int_equal(gci_frame_decode(sent.head, &out, NULL), 0);
	assert_int_equal(out.nback, 1);
	assert_int_equal(ep.peers[1]->untold_nbytes, 0);
}

static void bytes_that_come_twice(void **state)
{
	struct gci_tp_req r;
	uint8_t buf[100];

	(void)state;
	r = request(1, buf, 100);
	gci_ep_irecv(&ep, &r);
	assert_int_equal(feed(frame(1, 100, 0, 60)), 0);
	expect_failure(feed(frame(1, 100, 0, 60)), GCOLL_ERR_PROTO, "came twice");
	assert_int_equal(ndone, 1);
	assert_int_equal(last_status, GCOLL_ERR_PROTO);
}

/* Of the right number, but some twice and some never. */
static void frames_that_overlap(void **state)
{
	struct gci_tp_req r;
	uint8_t buf[100];

	(void)state;
	r = request(1, buf, 100);
	gci_ep_irecv(&ep, &r);
	assert_int_equal(feed(frame(1, 100, 0, 60)), 0);
	expect_failure(feed(frame(1, 100, 50, 40)), GCOLL_ERR_PROTO, "overlap");
	assert_int_equal(last_status, GCOLL_ERR_PROTO);
}

static void frames_in_any_order(void **state)
{
	struct gci_tp_req r;
	uint8_t buf[100];

	(void)state;
	r = request(1, buf, 100);
	gci_ep_irecv(&ep, &r);
	assert_int_equal(feed(frame(1, 100, 90, 10)), 0);
	assert_int_equal(feed(frame(1, 100, 0, 33)), 0);
	assert_int_equal(feed(frame(1, 100, 34, 56)), 0);
	gci_ep_run(&ep);
	assert_int_equal(ndone, 0);
	assert_int_equal(feed(frame(1, 100, 33, 1)), 0);
	gci_ep_run(&ep);
	assert_int_equal(ndone, 1);
}

static void a_whole_message_twice(void **state)
{
	(void)state;
	assert_int_equal(feed(frame(1, 0, 0, 0)), 0);
	expect_failure(feed(frame(1, 0, 0, 0)), GCOLL_ERR_PROTO, "came twice");
}

static void a_wrong_sum(void **state)
{
	struct gci_frame f = frame(1, 10, 0, 10);

	(void)state;
	f.crc = 12345;
	expect_failure(feed(f), GCOLL_ERR_CORRUPT, "arrived corrupted");
}

static void sums_that_nobody_wants(void **state)
{
	uint8_t buf[10] = {1}, sent[10] = {2};
	struct gci_ep_frame out;
	struct gci_frame f;
	struct gci_tp_req r, s;

	(void)state;
	link_of_peers.unchecked = 1;
	reopen();
	r = request(1, buf, sizeof(buf));
	gci_ep_irecv(&ep, &r);
	f = frame(1, 10, 0, 10);
	f.crc = 12345;
	assert_int_equal(feed(f), 0);
	gci_ep_run(&ep);
	assert_int_equal(ndone, 1);
	assert_int_equal(gci_ep_pull(&ep, 1, 0, NULL, &out), 1); /* its number back */
	s = request(2, sent, sizeof(sent));
	gci_ep_isend(&ep, &s);
	assert_int_equal(gci_ep_pull(&ep, 1, 0, NULL, &out), 1);
	assert_int_equal(gci_frame_decode(out.head, &f, NULL), 0);
	assert_int_equal(f.nbytes, 10);
	assert_int_equal(f.crc, 0);
	gci_ep_sent(&ep, 1, &out);
}

static void never(struct gci_tp_req *r, uint64_t offset, const void *data, size_t nbytes)
{
	(void)r;
	(void)offset;
	(void)data;
	(void)nbytes;
	fail_msg("bad bytes were handed over");
}

static void a_cut_inside_an_element(void **state)
{
	struct gci_tp_req r;

	(void)state;
	r = request(1, NULL, 80);
	r.align = 8;
	r.piece = never;
	gci_ep_irecv(&ep, &r);
	expect_failure(feed(frame(1, 80, 4, 8)), GCOLL_ERR_PROTO, "inside an element of 8");
}

static void bad_bytes_are_not_handed_over(void **state)
{
	struct gci_frame f = frame(1, 80, 0, 80);
	struct gci_tp_req r;

	(void)state;
	r = request(1, NULL, 80);
	r.align = 8;
	r.piece = never;
	gci_ep_irecv(&ep, &r);
	f.crc = 12345;
	expect_failure(feed(f), GCOLL_ERR_CORRUPT, "arrived corrupted");
}

static void bytes_behind_a_goodbye(void **state)
{
	struct gci_frame bye = {.type = GCI_FRAME_BYE, .epoch = 5, .source = 1};
	struct iovec iov[GCI_STREAM_IN];
	struct gci_stream s;

	(void)state;
	assert_int_equal(gci_stream_init(&s, &ep, 1, 0, 0), 0);
	assert_int_equal(gci_stream_in(&s, iov), 1);
	gci_frame_encode(&bye, iov[0].iov_base);
	assert_int_equal(gci_stream_received(&s, GCI_FRAME_HEAD_NBYTES), 0);
	assert_int_equal(gci_stream_in(&s, iov), 1);
	((uint8_t *)iov[0].iov_base)[0] = 'x';
	expect_failure(gci_stream_received(&s, 1), GCOLL_ERR_PROTO, "behind its goodbye");
	gci_stream_deinit(&s);
}

/* What came whole before its sender left may be asked for before that, and after. */
static void early_messages_of_one_who_left(void **state)
{
	struct gci_tp_req r[2];
	uint8_t buf[100];
	uint32_t i;

	(void)state;
	for (i = 0; i < 2; i++)
		assert_int_equal(feed(frame(i, 100, 0, 100)), 0);
	r[0] = request(0, buf, 100);
	gci_ep_irecv(&ep, &r[0]);
	gci_ep_left(&ep, 1);
	assert_int_equal(gci_ep_status(&ep), 0);
	r[1] = request(1, buf, 100);
	gci_ep_irecv(&ep, &r[1]);
	gci_ep_run(&ep);
	assert_int_equal(gci_ep_status(&ep), 0);
	assert_int_equal(ndone, 2);
	assert_int_equal(last_status, 0);
}

static void part_of_a_message_of_one_who_left(void **state)
{
	struct gci_tp_req r;
	uint8_t buf[100];

	(void)state;
	assert_int_equal(feed(frame(1, 100, 0, 60)), 0);
	gci_ep_left(&ep, 1);
	assert_int_equal(gci_ep_status(&ep), 0);
	r = request(1, buf, 100);
	gci_ep_irecv(&ep, &r);
	expect_failure(gci_ep_status(&ep), GCOLL_ERR_PEER, "rank 1 has left the job");
	assert_int_equal(last_status, GCOLL_ERR_PEER);
}

static void a_message_to_one_who_left(void **state)
{
	struct gci_tp_req r;
	uint8_t b;

	(void)state;
	assert_int_equal(feed(credit(1, 1)), 0);
	gci_ep_left(&ep, 1);
	r = request(1, &b, 1);
	gci_ep_isend(&ep, &r);
	expect_failure(gci_ep_status(&ep), GCOLL_ERR_PEER, "rank 1 has left the job");
	assert_int_equal(last_status, GCOLL_ERR_PEER);
}

static void one_leaves_who_owes(void **state)
{
	struct gci_tp_req r[2];
	uint8_t buf[100];

	(void)state;
	assert_int_equal(feed(frame(0, 100, 0, 100)), 0);
	r[0] = request(0, buf, 100);
	r[1] = request(1, buf, 100);
	gci_ep_irecv(&ep, &r[0]);
	gci_ep_irecv(&ep, &r[1]);
	gci_ep_left(&ep, 1);
	expect_failure(gci_ep_status(&ep), GCOLL_ERR_PEER, "had 1 messages");
}

static void requests_after_a_failure(void **state)
{
	struct gci_tp_req r[2];
	uint8_t b;

	(void)state;
	gci_ep_fail(&ep, GCOLL_ERR_PEER, 1, "it died");
	r[0] = request(1, &b, 1);
	r[1] = request(1, &b, 1);
	gci_ep_isend(&ep, &r[0]);
	gci_ep_irecv(&ep, &r[1]);
	assert_int_equal(ndone, 0);
	assert_int_equal(nkicks, 0);
	gci_ep_run(&ep);
	assert_int_equal(ndone, 2);
	assert_int_equal(last_status, GCOLL_ERR_PEER);
	assert_int_equal(nfailures, 1);
}

/* What came damaged could not be asked for. */
static void encrypted_without_replay(void **state)
{
	(void)state;
	link_of_peers.encrypted = 1;
	assert_null(gci_ep_peer(&ep, 2));
	expect_failure(gci_ep_status(&ep), GCOLL_ERR_INVAL, "has no replay");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(wrong_epoch),
		T(wrong_source),
		T(hello_in_the_middle),
		T(more_unasked_than_allowed),
		T(unasked_and_not_as_such),
		T(one_unasked_message_larger_than_memory),
		T(many_unasked_empty_messages),
		T(asking_gives_the_allowance_back),
		T(a_long_message_unasked),
		T(bytes_that_come_twice),
		T(frames_that_overlap),
		T(frames_in_any_order),
		T(a_whole_message_twice),
		T(a_wrong_sum),
		T(sums_that_nobody_wants),
		T(a_cut_inside_an_element),
		T(bad_bytes_are_not_handed_over),
		T(bytes_behind_a_goodbye),
		T(early_messages_of_one_who_left),
		T(part_of_a_message_of_one_who_left),
		T(a_message_to_one_who_left),
		T(one_leaves_who_owes),
		T(requests_after_a_failure),
		T(encrypted_without_replay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
