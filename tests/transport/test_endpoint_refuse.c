/* SPDX-License-Identifier: MIT
 * Frames that arrive damaged, on a link with replay: asked for again, but not for ever. */
#include "tests/transport/replay_endpoint.h"

#include <string.h>

static void lose_and_reopen(struct gci_stream *s)
{
	struct gci_frame f;

	assert_int_equal(gci_stream_lose(s), 0);
	gci_stream_deinit(s);
	f = sends(&stream[0]);
	assert_int_equal(f.type, GCI_FRAME_LOST);
	assert_int_equal(f.length, 0); /* it counts as not come */
	assert_int_equal(feed(&stream[0], lost(1, f.key.comm, 0), 0), 0);
	assert_int_equal(gci_stream_init(s, &ep, 0, 1, gci_ep_next_life(&ep, 0, 1)), 0);
}

static void a_corrupted_payload_is_asked_for_again(void **state)
{
	uint8_t buf[1000] = {0};
	struct gci_tp_req r = request(1, buf, 1000);
	int i;

	(void)state;
	gci_ep_irecv(&ep, &r);
	sends(&stream[0]); /* the credit */
	for (i = 0; i < 3; i++) {
		assert_int_equal(feed_flipped(&stream[1], data(1, 1000, 600, 400),
					 GCI_FRAME_HEAD_NBYTES + 100 * (size_t)i),
			GCI_STREAM_LOST);
		assert_non_null(strstr(ep.refusal, "400 bytes at 600 of operation 0, tag 1"));
		lose_and_reopen(&stream[1]);
	}
	assert_int_equal(ep.peers[0]->stats.refused, 3);
	assert_int_equal(feed(&stream[1], data(1, 1000, 0, 600), 600), 0);
	assert_int_equal(feed(&stream[0], data(1, 1000, 600, 400), 400), 0);
	gci_ep_run(&ep);
	assert_int_equal(ndone, 1);
	assert_int_equal(last_status, 0);
	assert_int_equal(buf[0] + buf[999], 14);
}

static void but_not_for_ever(void **state)
{
	uint8_t buf[1000];
	struct gci_tp_req r = request(1, buf, 1000);
	int i, rc = 0;

	(void)state;
	gci_ep_irecv(&ep, &r);
	sends(&stream[0]);
	for (i = 0; i < 4; i++) {
		rc = feed_flipped(&stream[1], data(1, 1000, 0, 10), GCI_FRAME_HEAD_NBYTES);
		if (rc == GCI_STREAM_LOST)
			lose_and_reopen(&stream[1]);
	}
	assert_int_equal(rc, GCOLL_ERR_CORRUPT);
	assert_int_equal(ep.failure.peer, 0);
	assert_non_null(
		strstr(ep.failure.text, "from rank 0 arrived corrupted at rank 1, 4 times"));
}

static void nor_are_headers(void **state)
{
	uint8_t buf[10];
	struct gci_tp_req r = request(1, buf, 10);
	int i;

	(void)state;
	gci_ep_irecv(&ep, &r);
	sends(&stream[0]);
	for (i = 0; i < 3; i++) {
		assert_int_equal(feed_flipped(&stream[1], data(2, 10, 0, 10), 20), GCI_STREAM_LOST);
		lose_and_reopen(&stream[1]);
	}
	/* What comes whole begins the count anew. */
	assert_int_equal(feed(&stream[1], data(2, 10, 0, 1), 1), 0);
	for (i = 0; i < 3; i++) {
		assert_int_equal(feed_flipped(&stream[1], data(2, 10, 1, 9), 20), GCI_STREAM_LOST);
		assert_int_equal(gci_stream_lose(&stream[1]), 0);
		gci_stream_deinit(&stream[1]);
		assert_int_equal(
			gci_stream_init(&stream[1], &ep, 0, 1, gci_ep_next_life(&ep, 0, 1)), 0);
	}
	assert_int_equal(feed_flipped(&stream[1], data(2, 10, 1, 9), 20), GCOLL_ERR_CORRUPT);
	assert_non_null(strstr(ep.failure.text, "headers from rank 0"));
}

/* How many damaged headers of stream 1 are borne, if `f` comes after the third; with `ack`, it
 * acknowledges all that was sent there. */
static int borne(struct gci_frame f, int ack)
{
	int n;

	for (n = 0; feed_flipped(&stream[1], data(2, 10, 0, 10), 20) == GCI_STREAM_LOST; n++) {
		assert_int_equal(gci_stream_lose(&stream[1]), 0);
		gci_stream_deinit(&stream[1]);
		assert_int_equal(
			gci_stream_init(&stream[1], &ep, 0, 1, gci_ep_next_life(&ep, 0, 1)), 0);
		if (n != 2)
			continue;
		assert_int_equal(sends(&stream[1]).type, GCI_FRAME_LOST);
		f.ack = ack ? stream[1].life->nsent : 0;
		assert_int_equal(feed(&stream[1], f, 0), 0);
	}
	assert_int_equal(gci_ep_status(&ep), GCOLL_ERR_CORRUPT);
	return n;
}

static void expect_anew(struct gci_frame f, int ack, int anew)
{
	assert_int_equal(borne(f, ack), anew ? 6 : 3);
	teardown(NULL);
	setup(NULL);
}

/* A stream that carries little, and a damaged header now and then. */
static void only_headers_in_a_row_count(void **state)
{
	static const struct gci_frame ack = {.type = GCI_FRAME_ACK};
	struct gci_frame waited_for = {.key.tag = 1, .length = 10};

	(void)state;
	waited_for.type = GCI_FRAME_CREDIT;
	expect_anew(waited_for, 0, 1);
	waited_for.type = GCI_FRAME_WAIT;
	expect_anew(waited_for, 0, 1);
	expect_anew((struct gci_frame){.type = GCI_FRAME_BACK}, 0, 1);
	expect_anew(ack, 1, 1);
	expect_anew(ack, 0, 0);
	expect_anew(lost(0, 1, 0), 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_corrupted_payload_is_asked_for_again),
		T(but_not_for_ever),
		T(nor_are_headers),
		T(only_headers_in_a_row_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
