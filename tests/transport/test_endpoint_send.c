/* SPDX-License-Identifier: MIT
 * What an endpoint sends when: order, credits and the allowance, frame by frame. */
#include "tests/transport/lone_endpoint.h"

static int pulled_type(struct gci_ep_frame *out)
{
	struct gci_frame f;

	assert_int_equal(gci_ep_pull(&ep, 1, 0, NULL, out), 1);
	assert_int_equal(gci_frame_decode(out->head, &f, NULL), 0);
	return f.type;
}

/* A peer with one stream, whose credits may wait. */
static void open_holding(void)
{
	link_of_peers.streams = 1;
	reopen();
	ep.holds = 1;
	nkicks = 0;
}

/* The header of the next frame. */
static struct gci_frame pulled(void)
{
	struct gci_ep_frame out;
	struct gci_frame f = {0};

	assert_int_equal(gci_ep_pull(&ep, 1, 0, NULL, &out), 1);
	assert_int_equal(gci_frame_decode(out.head, &f, NULL), 0);
	gci_ep_sent(&ep, 1, &out);
	return f;
}

/* The tag of the next frame that a stream takes; 0: it takes none. */
static uint32_t taken_by(unsigned stream)
{
	struct gci_ep_frame out;
	struct gci_frame f;

	if (!gci_ep_pull(&ep, 1, stream, NULL, &out))
		return 0;
	assert_int_equal(gci_frame_decode(out.head, &f, NULL), 0);
	gci_ep_sent(&ep, 1, &out);
	return f.key.tag;
}

/* Of two streams, a sender to two peers uses one for each. Its messages hold up no others. */
static void a_message_for_few_streams(void **state)
{
	uint8_t buf[20] = {0};
	struct gci_tp_req r[4];
	uint32_t i;

	(void)state;
	for (i = 0; i < 4; i++) {
		r[i] = request(1 + i, buf, 20);
		r[i].share = i == 2 ? 1 : 2;
		gci_ep_isend(&ep, &r[i]);
	}
	assert_int_equal(taken_by(1), 3);
	assert_int_equal(taken_by(1), 0);
	for (i = 0; i < 3; i++)
		assert_int_equal(taken_by(0), i == 2 ? 4 : 1 + i);
	assert_int_equal(taken_by(0), 0);
}

static struct gci_frame numbered(uint32_t tag, uint16_t id)
{
	struct gci_frame f = frame(tag, 20, 0, 20);

	f.id = id;
	return f;
}

/* What comes before its credit has gone needs none: its number goes with the next frame. */
static void numbers_in_place_of_credits(void **state)
{
	uint8_t buf[20] = {0};
	struct gci_tp_req r[2], s[2];
	struct gci_frame f;
	uint32_t i;

	(void)state;
	open_holding();
	for (i = 0; i < 2; i++) {
		r[i] = request(1 + i, buf, 20);
		s[i] = request(3 + i, buf, 20);
		gci_ep_irecv(&ep, &r[i]);
	}
	assert_int_equal(nkicks, 0);
	assert_false(gci_ep_pending(&ep, 1));
	gci_ep_isend(&ep, &s[0]);
	f = pulled();
	assert_int_equal(f.type, GCI_FRAME_DATA);
	assert_int_equal(f.flags, GCI_FRAME_EAGER);
	assert_int_equal(f.nback, 0);
	assert_int_equal(feed(numbered(1, 7)), 0);
	assert_false(gci_ep_pending(&ep, 1));
	gci_ep_isend(&ep, &s[1]);
	f = pulled();
	assert_int_equal(f.type, GCI_FRAME_DATA);
	assert_int_equal(f.back, 7);
	assert_int_equal(f.nback, 1);
	gci_ep_urge(&ep);
	f = pulled();
	assert_int_equal(f.type, GCI_FRAME_CREDIT);
	assert_int_equal(f.key.tag, 2);
	assert_int_equal(f.nback, 0);
	assert_false(gci_ep_pending(&ep, 1));
	assert_int_equal(feed(numbered(2, 8)), 0);
	gci_ep_urge(&ep); /* it has had its credit */
	assert_false(gci_ep_pending(&ep, 1));
}

/* Also of messages that came before anybody asked for them. */
static void numbers_that_follow_each_other(void **state)
{
	static const uint16_t ids[] = {3, 4, 5, 9};
	uint8_t buf[20];
	struct gci_tp_req r[4];
	struct gci_frame f;
	uint32_t i;

	(void)state;
	open_holding();
	for (i = 0; i < 4; i++)
		assert_int_equal(feed(numbered(i, ids[i])), 0);
	assert_false(gci_ep_pending(&ep, 1));
	for (i = 0; i < 4; i++) {
		r[i] = request(i, buf, 20);
		gci_ep_irecv(&ep, &r[i]);
	}
	gci_ep_urge(&ep);
	f = pulled();
	assert_int_equal(f.type, GCI_FRAME_BACK);
	assert_int_equal(f.back, 3);
	assert_int_equal(f.nback, 3);
	f = pulled();
	assert_int_equal(f.back, 9);
	assert_int_equal(f.nback, 1);
	assert_false(gci_ep_pending(&ep, 1));
	gci_ep_run(&ep);
	assert_int_equal(ndone, 4);
}

/* The peer may run something else, and wait as well. */
static void a_message_without_credit_is_told_of(void **state)
{
	static uint8_t buf[EAGER];
	struct gci_tp_req r[3] = {
		request(1, buf, EAGER), request(2, buf, EAGER), request(3, buf, EAGER)};
	struct gci_frame f;
	int i;

	(void)state;
	open_holding();
	r[2].key.seq = 8;
	for (i = 0; i < 3; i++) {
		r[i].tells = 1;
		gci_ep_isend(&ep, &r[i]);
	}
	f = pulled();
	assert_int_equal(f.type, GCI_FRAME_WAIT);
	assert_int_equal(f.key.tag, 1);
	assert_true(f.length == EAGER && f.digest == r[0].digest);
	f = pulled(); /* one of each operation */
	assert_int_equal(f.type, GCI_FRAME_WAIT);
	assert_int_equal(f.key.tag, 3);
	assert_false(gci_ep_pending(&ep, 1));
	assert_int_equal(feed(credit(2, EAGER)), 0);
	assert_int_equal(pulled().type, GCI_FRAME_DATA);
	/* Not of one whose credit has come meanwhile. */
	r[1].key.seq = 9;
	gci_ep_run(&ep);
	r[1].tells = 1;
	gci_ep_isend(&ep, &r[1]);
	f = credit(2, EAGER);
	f.key.seq = 9;
	assert_int_equal(feed(f), 0);
	assert_int_equal(pulled().type, GCI_FRAME_DATA);
}

/* Many messages wait for a long time for someone to ask for them, others come and go. */
static void the_allowance_comes_back_by_number(void **state)
{
	struct gci_frame back = {.type = GCI_FRAME_BACK, .nback = 1};
	struct gci_tp_req r[200];
	uint16_t first;
	uint32_t i;

	(void)state;
	open_holding();
	r[0] = request(1000, NULL, 0);
	gci_ep_isend(&ep, &r[0]);
	first = pulled().id;
	for (i = 1; i < 200; i++) {
		r[i] = request(i, NULL, 0);
		gci_ep_isend(&ep, &r[i]);
		back.back = pulled().id;
		assert_int_not_equal(back.back, first);
		assert_int_equal(feed(back), 0);
		assert_true(ep.peers[1]->eager_left == EAGER - GCI_EP_MESSAGE_NBYTES);
	}
	assert_int_equal(ep.peers[1]->nids, 16);
	expect_failure(feed(back), GCOLL_ERR_PROTO, "which has none");
}

static void numbers_beyond_all(void **state)
{
	struct gci_frame back = {.type = GCI_FRAME_BACK, .back = UINT16_MAX, .nback = UINT16_MAX};

	(void)state;
	expect_failure(feed(back), GCOLL_ERR_PROTO, "which has none");
}

static void credits_do_not_wait_long(void **state)
{
	uint8_t buf[5000] = {0};
	struct gci_tp_req r[6];
	struct gci_ep_frame out;
	uint32_t i;

	(void)state;
	open_holding();
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
	/* One that does not wait takes those along that do: they are behind it no longer. */
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
	assert_int_equal(ep.out.table.n, 0);
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
		assert_int_equal(gci_ep_has_for(&ep, 1, 1), shares[i] < 2);
		assert_true(gci_ep_has_for(&ep, 1, 0));
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

/* However much streams have carried, each takes its share of what there is, a granule at least, in whole parts of the
 * message; a long one goes by whole frames until its end. */
static void streams_share_what_there_is(void **state)
{
	static uint8_t buf[4u << 20];
	uint64_t *sent = ep.peers[1]->stats.tx_stream_nbytes, gone = 0;
	struct gci_tp_req r = request(0, buf, 256u << 10);
	struct gci_ep_frame f;
	unsigned stream;

	(void)state;
	sent[0] = sent[1] = UINT64_MAX / 8;
	gci_ep_isend(&ep, &r);
	assert_int_equal(feed(credit(0, r.nbytes)), 0);
	for (stream = 0; gci_ep_pull(&ep, 1, stream, NULL, &f); stream = !stream) {
		assert_true(
			f.nbytes <= (r.nbytes - gone + 1) / 2 || f.nbytes <= GCI_EP_GRANULE_NBYTES);
		gone += f.nbytes;
		gci_ep_sent(&ep, 1, &f);
	}
	assert_int_equal(gone, 256u << 10);
	r = request(1, buf, sizeof(buf));
	gci_ep_isend(&ep, &r);
	assert_int_equal(feed(credit(1, r.nbytes)), 0);
	assert_int_equal(gci_ep_pull(&ep, 1, 0, NULL, &f), 1);
	assert_int_equal(f.nbytes, GCI_TP_FRAME_NBYTES);
	while (gci_ep_pull(&ep, 1, 1, NULL, &f))
		gci_ep_sent(&ep, 1, &f);
	assert_int_equal(ep.peers[1]->ready_nbytes, 0);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_message_for_few_streams),
		T(numbers_in_place_of_credits),
		T(numbers_that_follow_each_other),
		T(a_message_without_credit_is_told_of),
		T(the_allowance_comes_back_by_number),
		T(numbers_beyond_all),
		T(credits_do_not_wait_long),
		T(a_second_credit),
		T(too_many_credits),
		T(sending_keeps_the_order_of_isend),
		T(shared_streams),
		T(a_new_stream_takes_little),
		T(streams_share_what_there_is),
		T(the_allowance),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
