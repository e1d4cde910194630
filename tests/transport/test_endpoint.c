/* SPDX-License-Identifier: MIT
 * The endpoint as a hostile or broken peer sees it, frame by frame; the good cases are in the
 * conformance suite. */
#include "transport/endpoint.h"

#include "tests/test.h"

#include "base/crc32c.h"
#include "transport/stream.h"

#include <stdlib.h>
#include <string.h>

#define EAGER 1000

static struct gci_ep ep;
static int nkicks, nneeds, nfailures, ndone, last_status;
static int unchecked; /* links of peers that are new */
static unsigned streams = 2;

static void on_link(void *user, int peer, struct gci_tp_link *out)
{
	(void)user;
	(void)peer;
	*out = (struct gci_tp_link){
		.streams = streams, .eager_nbytes = EAGER, .unchecked = unchecked};
}

static void on_failure(void *user, const struct gci_tp_failure *f)
{
	(void)user;
	(void)f;
	nfailures++;
}

static const struct gci_tp_config config = {
	.rank = 0, .size = 3, .epoch = 5, .link = on_link, .on_failure = on_failure};

static void on_kick(void *user, int peer)
{
	(void)user;
	(void)peer;
	nkicks++;
}

static void on_need(void *user, int peer)
{
	(void)user;
	(void)peer;
	nneeds++;
}

static void on_done(struct gci_tp_req *r, int status)
{
	(void)r;
	ndone++;
	last_status = status;
}

static int setup(void **state)
{
	static const struct gci_ep_io io = {.need = on_need, .kick = on_kick};

	(void)state;
	nkicks = nneeds = nfailures = ndone = last_status = 0;
	assert_int_equal(gci_ep_init(&ep, &config, &io), 0);
	assert_non_null(gci_ep_peer(&ep, 1));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	gci_ep_free(&ep);
	return 0;
}

/* A frame of peer 1; its payload is zeros. Returns the status. */
static int feed(struct gci_frame f)
{
	static const uint8_t zeros[GCI_TP_FRAME_NBYTES];
	uint8_t head[GCI_FRAME_HEAD_NBYTES];
	struct gci_ep_sink sink;
	int rc;

	f.epoch = f.epoch ? f.epoch : 5;
	f.source = f.source ? f.source : 1;
	f.crc = f.crc ? f.crc : gci_crc32c(0, zeros, f.nbytes);
	gci_frame_encode(&f, head);
	rc = gci_ep_head(&ep, 1, NULL, head, &sink);
	if (rc || sink.type != GCI_FRAME_DATA)
		return rc;
	if (sink.nbytes)
		memset(sink.dst, 0, sink.nbytes);
	gci_ep_landed(&sink, sink.nbytes / 3);
	gci_ep_landed(&sink, sink.nbytes - sink.nbytes / 3);
	rc = gci_ep_payload(&ep, 1, &sink);
	gci_ep_drop(&ep, &sink);
	return rc;
}

static struct gci_frame frame(uint32_t tag, uint64_t length, uint64_t offset, uint32_t nbytes)
{
	return (struct gci_frame){.type = GCI_FRAME_DATA,
		.key = {.tag = tag},
		.length = length,
		.offset = offset,
		.nbytes = nbytes};
}

static struct gci_frame credit(uint32_t tag, uint64_t length)
{
	return (struct gci_frame){.type = GCI_FRAME_CREDIT, .key = {.tag = tag}, .length = length};
}

static struct gci_tp_req request(uint32_t tag, void *buf, uint64_t nbytes)
{
	return (struct gci_tp_req){.peer = 1,
		.key = {.tag = tag},
		.buf = buf,
		.nbytes = nbytes,
		.align = 1,
		.done = on_done};
}

static void expect_failure(int rc, int status, const char *why)
{
	assert_int_equal(rc, status);
	assert_int_equal(gci_ep_status(&ep), status);
	if (!strstr(ep.failure.text, why))
		fail_msg("\"%s\" does not say \"%s\"", ep.failure.text, why);
	gci_ep_run(&ep);
	gci_ep_run(&ep);
	assert_int_equal(nfailures, 1);
}

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
	assert_int_equal(ep.in.n, 0);
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
	gci_ep_free(&ep);
	unchecked = 1;
	setup(state);
	unchecked = 0;
	r = request(1, buf, sizeof(buf));
	gci_ep_irecv(&ep, &r);
	f = frame(1, 10, 0, 10);
	f.crc = 12345;
	assert_int_equal(feed(f), 0);
	gci_ep_run(&ep);
	assert_int_equal(ndone, 1);
	assert_int_equal(gci_ep_pull(&ep, 1, 0, NULL, &out), 1); /* the credit */
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

static int pulled_type(struct gci_ep_frame *out)
{
	struct gci_frame f;

	assert_int_equal(gci_ep_pull(&ep, 1, 0, NULL, out), 1);
	assert_int_equal(gci_frame_decode(out->head, &f, NULL), 0);
	return f.type;
}

/* A peer with one stream, whose credits may wait. */
static void open_holding(void **state)
{
	gci_ep_free(&ep);
	streams = 1;
	setup(state);
	streams = 2;
	ep.holds = 1;
	nkicks = 0;
}

static void credits_wait_for_company(void **state)
{
	uint8_t buf[3][20] = {{0}};
	struct gci_tp_req r[2], s;
	struct gci_ep_frame out;

	(void)state;
	open_holding(state);
	r[0] = request(1, buf[0], 20);
	r[1] = request(2, buf[1], 20);
	gci_ep_irecv(&ep, &r[0]);
	gci_ep_irecv(&ep, &r[1]);
	assert_int_equal(nkicks, 0);
	assert_false(gci_ep_pending(&ep, 1));
	s = request(3, buf[2], 20);
	gci_ep_isend(&ep, &s);
	assert_true(gci_ep_pending(&ep, 1));
	assert_int_equal(pulled_type(&out), GCI_FRAME_CREDIT);
	assert_int_equal(pulled_type(&out), GCI_FRAME_CREDIT);
	assert_int_equal(pulled_type(&out), GCI_FRAME_DATA);
	gci_ep_sent(&ep, 1, &out);
	assert_false(gci_ep_pending(&ep, 1));
}

static void credits_do_not_wait_long(void **state)
{
	uint8_t buf[5000] = {0};
	struct gci_tp_req r[6];
	struct gci_ep_frame out;
	uint32_t i;

	(void)state;
	open_holding(state);
	r[0] = request(1, buf, 20);
	gci_ep_irecv(&ep, &r[0]);
	gci_ep_urge(&ep);
	assert_int_equal(nkicks, 1);
	assert_int_equal(pulled_type(&out), GCI_FRAME_CREDIT);
	/* A quarter of the allowance. */
	for (i = 1; i < 4; i++) {
		assert_false(gci_ep_pending(&ep, 1));
		r[i] = request(1 + i, buf, 40);
		gci_ep_irecv(&ep, &r[i]);
	}
	for (i = 1; i < 4; i++)
		assert_int_equal(pulled_type(&out), GCI_FRAME_CREDIT);
	/* One that does not wait takes those along that do. */
	r[4] = request(5, buf, 20);
	gci_ep_irecv(&ep, &r[4]);
	assert_false(gci_ep_pending(&ep, 1));
	r[5] = request(6, buf, sizeof(buf));
	gci_ep_irecv(&ep, &r[5]);
	assert_int_equal(pulled_type(&out), GCI_FRAME_CREDIT);
	assert_int_equal(pulled_type(&out), GCI_FRAME_CREDIT);
	assert_false(gci_ep_pending(&ep, 1));
}

static void a_second_credit(void **state)
{
	(void)state;
	assert_int_equal(feed(credit(1, 10)), 0);
	expect_failure(feed(credit(1, 10)), GCOLL_ERR_PROTO, "second credit");
}

static void too_many_credits(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < GCI_EP_MAX_CREDITS; i++)
		assert_int_equal(feed(credit(i, 1)), 0);
	expect_failure(feed(credit(i, 1)), GCOLL_ERR_PROTO, "credits nobody asked for");
}

/* Credits in the reverse order; messages of 2000 bytes are never eager. */
static void sending_keeps_the_order_of_isend(void **state)
{
	enum { N = 20 };
	static uint8_t buf[2000];
	struct gci_ep_frame f;
	struct gci_tp_req r[N];
	struct gci_frame got;
	uint32_t i;

	(void)state;
	for (i = 0; i < N; i++) {
		r[i] = request(i, buf, sizeof(buf));
		gci_ep_isend(&ep, &r[i]);
	}
	assert_false(gci_ep_pending(&ep, 1));
	for (i = N; i-- > 0;)
		assert_int_equal(feed(credit(i, sizeof(buf))), 0);
	for (i = 0; i < N; i++) {
		assert_int_equal(gci_ep_pull(&ep, 1, 0, NULL, &f), 1);
		assert_int_equal(gci_frame_decode(f.head, &got, NULL), 0);
		assert_int_equal(got.key.tag, i);
		gci_ep_sent(&ep, 1, &f);
	}
	assert_false(gci_ep_pending(&ep, 1));
	gci_ep_run(&ep);
	assert_int_equal(ndone, N);
	assert_int_equal(ep.out.n, 0);
}

/* Of two streams shared among two peers, each has the first one; credits go by any. */
static void shared_streams(void **state)
{
	static const uint32_t shares[] = {0, 1, 2, 3};
	static uint8_t buf[EAGER / 8];
	struct gci_tp_req r[4], back;
	struct gci_ep_frame f;
	uint32_t i;

	(void)state;
	for (i = 0; i < 4; i++) {
		r[i] = request(i, buf, sizeof(buf));
		r[i].share = shares[i];
		gci_ep_isend(&ep, &r[i]);
		assert_int_equal(gci_ep_pull(&ep, 1, 1, NULL, &f), shares[i] < 2);
		if (shares[i] >= 2) {
			assert_true(gci_ep_pending(&ep, 1));
			assert_int_equal(gci_ep_pull(&ep, 1, 0, NULL, &f), 1);
		}
		assert_ptr_equal(f.req, &r[i]);
		gci_ep_sent(&ep, 1, &f);
	}
	r[0] = request(4, buf, sizeof(buf));
	r[0].share = 2;
	gci_ep_isend(&ep, &r[0]);
	back = request(5, buf, sizeof(buf));
	gci_ep_irecv(&ep, &back);
	assert_int_equal(gci_ep_pull(&ep, 1, 1, NULL, &f), 1);
	assert_null(f.req);
	assert_int_equal(gci_ep_pull(&ep, 1, 1, NULL, &f), 0);
}

/* Of several streams a new one takes what it can send in a round trip, and more as it carries more;
 * one that is alone takes all that a frame holds. */
static void a_new_stream_takes_little(void **state)
{
	static uint8_t buf[4u << 20];
	uint64_t *sent = &ep.peers[1]->stats.tx_stream_nbytes[1];
	struct gci_tp_req r = request(0, buf, sizeof(buf));
	struct gci_ep_frame f;

	(void)state;
	assert_int_equal(ep.peers[1]->link.streams, 2);
	r.align = 8;
	gci_ep_isend(&ep, &r);
	assert_int_equal(feed(credit(0, sizeof(buf))), 0);
	assert_int_equal(gci_ep_pull(&ep, 1, 1, NULL, &f), 1);
	assert_in_range(f.nbytes, 4096, 14480);
	assert_int_equal(f.nbytes % 8, 0);
	*sent = 256u << 10;
	assert_in_range(gci_ep_turn(&ep, 1, 1), 64u << 10, 80u << 10);
	*sent = UINT64_MAX / 8;
	assert_int_equal(gci_ep_turn(&ep, 1, 1), GCI_TP_FRAME_NBYTES);
	*sent = 0;
	ep.peers[1]->link.streams = 1;
	assert_int_equal(gci_ep_turn(&ep, 1, 0), GCI_TP_FRAME_NBYTES);
	ep.peers[1]->link.streams = 2;
	while (gci_ep_pull(&ep, 1, 1, NULL, &f))
		gci_ep_sent(&ep, 1, &f);
}

/* The allowance is taken by 64 bytes more than the message has, and comes back by credit. */
static void the_allowance(void **state)
{
	static uint8_t buf[EAGER];
	struct gci_tp_req r[4];
	struct gci_ep_frame f;
	uint32_t i;

	(void)state;
	for (i = 0; i < 3; i++) {
		r[i] = request(i, buf, 400);
		gci_ep_isend(&ep, &r[i]);
	}
	r[3] = request(3, buf, EAGER - GCI_EP_MESSAGE_NBYTES + 1); /* never fits */
	gci_ep_isend(&ep, &r[3]);
	for (i = 0; gci_ep_pull(&ep, 1, 0, NULL, &f); i++)
		gci_ep_sent(&ep, 1, &f);
	assert_int_equal(i, 2); /* 2 * 464 <= 1000 < 3 * 464 */
	assert_int_equal(feed(credit(0, 400)), 0);
	assert_true(gci_ep_pull(&ep, 1, 0, NULL, &f));
	assert_ptr_equal(f.req, &r[2]);
	assert_int_equal(feed(credit(3, r[3].nbytes)), 0);
	assert_true(gci_ep_pull(&ep, 1, 0, NULL, &f));
	assert_ptr_equal(f.req, &r[3]);
}

/* A patient message waits for its credit, however short; others pass it. */
static void a_patient_message(void **state)
{
	struct gci_tp_req r[2];
	struct gci_ep_frame f;
	uint8_t b[100];

	(void)state;
	r[0] = request(0, b, sizeof(b));
	r[0].patient = 1;
	r[1] = request(1, b, sizeof(b));
	gci_ep_isend(&ep, &r[0]);
	assert_int_equal(gci_ep_pull(&ep, 1, 0, NULL, &f), 0);
	gci_ep_isend(&ep, &r[1]);
	assert_int_equal(gci_ep_pull(&ep, 1, 0, NULL, &f), 1);
	assert_ptr_equal(f.req, &r[1]);
	assert_int_equal(gci_ep_pull(&ep, 1, 0, NULL, &f), 0);
	assert_int_equal(feed(credit(0, sizeof(b))), 0);
	assert_int_equal(gci_ep_pull(&ep, 1, 0, NULL, &f), 1);
	assert_ptr_equal(f.req, &r[0]);
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

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(wrong_epoch),
		T(wrong_source),
		T(hello_in_the_middle),
		T(more_unasked_than_allowed),
		T(one_unasked_message_larger_than_memory),
		T(many_unasked_empty_messages),
		T(asking_gives_the_allowance_back),
		T(bytes_that_come_twice),
		T(frames_that_overlap),
		T(frames_in_any_order),
		T(a_whole_message_twice),
		T(a_wrong_sum),
		T(sums_that_nobody_wants),
		T(credits_wait_for_company),
		T(credits_do_not_wait_long),
		T(a_cut_inside_an_element),
		T(bad_bytes_are_not_handed_over),
		T(a_second_credit),
		T(too_many_credits),
		T(sending_keeps_the_order_of_isend),
		T(shared_streams),
		T(a_new_stream_takes_little),
		T(the_allowance),
		T(a_patient_message),
		T(bytes_behind_a_goodbye),
		T(requests_after_a_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
