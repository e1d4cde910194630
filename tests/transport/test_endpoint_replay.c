/* SPDX-License-Identifier: MIT
 * An endpoint on a link with replay, frame by frame, and as a hostile or broken peer sees it; whole
 * runs are in test_losses.c. */
#include "transport/stream.h"

#include "tests/test.h"

#include "base/crc32c.h"

#include <string.h>

#define ROOM 1000

static struct gci_ep ep;
static struct gci_stream stream[2];
static const struct gci_life *closed;
static int ndone, last_status;

static void on_link(void *user, int peer, struct gci_tp_link *out)
{
	(void)user;
	(void)peer;
	*out = (struct gci_tp_link){.streams = 2, .eager_nbytes = 1 << 20, .replay_nbytes = ROOM};
}

static void nothing(void *user, int peer)
{
	(void)user;
	(void)peer;
}

static void on_close(void *user, int peer, const struct gci_life *life)
{
	(void)user;
	(void)peer;
	closed = life;
}

static void on_done(struct gci_tp_req *r, int status)
{
	(void)r;
	ndone++;
	last_status = status;
}

static const struct gci_tp_config config = {.rank = 1, .size = 2, .epoch = 5, .link = on_link};

static int setup(void **state)
{
	static const struct gci_ep_io io = {.need = nothing, .kick = nothing, .close = on_close};
	unsigned i;

	(void)state;
	closed = NULL;
	ndone = last_status = 0;
	assert_int_equal(gci_ep_init(&ep, &config, &io), 0);
	assert_non_null(gci_ep_peer(&ep, 0));
	for (i = 0; i < 2; i++) {
		assert_int_equal(gci_stream_init(&stream[i], &ep, 0, i, 1), 0);
		/* Not new: a frame holds all that it may. */
		ep.peers[0]->stats.tx_stream_nbytes[i] = 4 * GCI_TP_FRAME_NBYTES;
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	gci_stream_deinit(&stream[0]);
	gci_stream_deinit(&stream[1]);
	gci_ep_free(&ep);
	return 0;
}

static int feed_bytes(struct gci_stream *s, const uint8_t *p, size_t n)
{
	struct iovec iov[GCI_STREAM_IN];
	int rc = 0;

	while (n && !rc) {
		size_t part;

		gci_stream_in(s, iov);
		part = n < iov[0].iov_len ? n : iov[0].iov_len;
		memcpy(iov[0].iov_base, p, part);
		rc = gci_stream_received(s, part);
		p += part;
		n -= part;
	}
	return rc;
}

/* Of the frame only the header and so many bytes of payload, which is all 7s. */
static int feed(struct gci_stream *s, struct gci_frame f, size_t nbytes)
{
	uint8_t bytes[GCI_FRAME_HEAD_NBYTES + 1000];

	memset(bytes, 7, sizeof(bytes));
	f.epoch = 5;
	f.crc = gci_crc32c(0, bytes, f.nbytes);
	gci_frame_encode(&f, bytes);
	return feed_bytes(s, bytes, GCI_FRAME_HEAD_NBYTES + nbytes);
}

static struct gci_frame data(uint32_t tag, uint64_t length, uint64_t offset, uint32_t nbytes)
{
	return (struct gci_frame){.type = GCI_FRAME_DATA,
		.flags = GCI_FRAME_EAGER,
		.key.tag = tag,
		.length = length,
		.offset = offset,
		.nbytes = nbytes};
}

static struct gci_frame lost(uint32_t which, uint32_t life, uint64_t count)
{
	return (struct gci_frame){
		.type = GCI_FRAME_LOST, .key = {.comm = life, .tag = which}, .length = count};
}

static struct gci_tp_req request(uint32_t tag, void *buf, uint64_t nbytes)
{
	return (struct gci_tp_req){
		.key.tag = tag, .buf = buf, .nbytes = nbytes, .align = 1, .done = on_done};
}

/* What the stream sends next, all of it; returns the first frame's header. */
static struct gci_frame sends(struct gci_stream *s)
{
	struct iovec iov[GCI_STREAM_OUT];
	int i, n = gci_stream_out(s, iov);
	size_t nbytes = 0;
	struct gci_frame f = {0};

	if (n)
		assert_int_equal(gci_frame_decode(iov[0].iov_base, &f, NULL), 0);
	for (i = 0; i < n; i++)
		nbytes += iov[i].iov_len;
	gci_stream_sent(s, nbytes);
	return f;
}

static void expect_refused(int rc, const char *why)
{
	assert_int_equal(rc, GCOLL_ERR_PROTO);
	if (!strstr(ep.failure.text, why))
		fail_msg("\"%s\" does not say \"%s\"", ep.failure.text, why);
}

static void half_a_payload_is_undone(void **state)
{
	uint8_t buf[1000] = {0};
	struct gci_tp_req r = request(1, buf, 1000);

	(void)state;
	gci_ep_irecv(&ep, &r);
	assert_int_equal(feed(&stream[0], data(1, 1000, 0, 600), 600), 0);
	assert_int_equal(feed(&stream[1], data(1, 1000, 600, 400), 150), 0);
	assert_int_equal(gci_stream_end(&stream[1], NULL), GCI_STREAM_LOST);
	assert_int_equal(gci_stream_lose(&stream[1]), 0);
	gci_ep_run(&ep);
	assert_int_equal(ndone, 0);
	assert_int_equal(sends(&stream[0]).type, GCI_FRAME_LOST);
	assert_int_equal(feed(&stream[0], data(1, 1000, 600, 400), 400), 0);
	gci_ep_run(&ep);
	assert_int_equal(ndone, 1);
	assert_int_equal(last_status, 0);
	assert_int_equal(buf[0] + buf[999], 14);
}

/* Neither taken for a frame that came twice, nor missing. */
static void a_whole_payload_stays(void **state)
{
	uint8_t buf[100];
	struct gci_tp_req r = request(1, buf, 100);
	struct gci_frame f;

	(void)state;
	gci_ep_irecv(&ep, &r);
	assert_int_equal(feed(&stream[1], data(1, 100, 0, 60), 60), 0);
	assert_int_equal(gci_stream_lose(&stream[1]), 0);
	f = sends(&stream[0]);
	assert_int_equal(f.type, GCI_FRAME_LOST);
	assert_int_equal(f.length, 1);
	expect_refused(feed(&stream[0], data(1, 100, 0, 60), 60), "came twice");
}

/* As feed(), but a bit of the payload, or of the header, has changed on the way. */
static int feed_flipped(struct gci_stream *s, struct gci_frame f, size_t at)
{
	uint8_t bytes[GCI_FRAME_HEAD_NBYTES + 1000];

	memset(bytes, 7, sizeof(bytes));
	f.epoch = 5;
	f.crc = gci_crc32c(0, bytes, f.nbytes);
	gci_frame_encode(&f, bytes);
	bytes[at] ^= 16;
	return feed_bytes(s, bytes, GCI_FRAME_HEAD_NBYTES + f.nbytes);
}

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

static void the_peer_tells_first(void **state)
{
	static uint8_t buf[100000];
	struct gci_tp_req r = request(1, buf, sizeof(buf));

	(void)state;
	gci_ep_isend(&ep, &r);
	assert_int_equal(sends(&stream[0]).type, GCI_FRAME_DATA);
	gci_ep_run(&ep);
	assert_int_equal(ndone, 0); /* too long for a copy: the peer must have it */
	assert_int_equal(feed(&stream[1], lost(0, 1, 0), 0), 0);
	assert_ptr_equal(closed, stream[0].life);
	assert_int_equal(gci_stream_lose(&stream[0]), 0);
	assert_int_equal(sends(&stream[1]).type, GCI_FRAME_LOST); /* and the data behind it */
	gci_ep_run(&ep);
	assert_int_equal(ndone, 0);
	assert_int_equal(ep.peers[0]->stats.again_frames, 1);
	assert_int_equal(
		feed(&stream[1], (struct gci_frame){.type = GCI_FRAME_ACK, .ack = 2}, 0), 0);
	gci_ep_run(&ep);
	assert_int_equal(ndone, 1);
}

static void short_messages_are_copied_while_there_is_room(void **state)
{
	uint8_t buf[700];
	struct gci_tp_req a = request(1, buf, 700), b = request(2, buf, 700);
	struct gci_frame f;

	(void)state;
	gci_ep_isend(&ep, &a);
	f = sends(&stream[0]);
	assert_int_equal(f.flags, GCI_FRAME_EAGER);
	gci_ep_run(&ep);
	assert_int_equal(ndone, 1);
	gci_ep_isend(&ep, &b);
	f = sends(&stream[0]);
	assert_int_equal(f.flags, GCI_FRAME_ASK | GCI_FRAME_EAGER);
	gci_ep_run(&ep);
	assert_int_equal(ndone, 1);
	assert_int_equal(
		feed(&stream[0], (struct gci_frame){.type = GCI_FRAME_ACK, .ack = 2}, 0), 0);
	gci_ep_run(&ep);
	assert_int_equal(ndone, 2);
	assert_int_equal(ep.peers[0]->replay->nbytes, 0);
}

/* Out of its own memory, as far as there is room; what there is not waits for the peer. */
static void detached_messages(void **state)
{
	static uint8_t buf[66000];
	static struct gci_tp_req r, more; /* the endpoint has it to the end */

	(void)state;
	r = request(1, buf, sizeof(buf));
	more = request(2, buf, sizeof(buf));
	ep.peers[0]->replay->most_nbytes = sizeof(buf);
	gci_ep_isend(&ep, &r);
	sends(&stream[0]);
	gci_ep_run(&ep);
	assert_int_equal(ndone, 0);
	gci_ep_detach(&ep, &r);
	gci_ep_detach(&ep, &r);
	gci_ep_run(&ep);
	assert_int_equal(ndone, 1);
	assert_int_equal(ep.peers[0]->replay->nbytes, sizeof(buf));
	ep.peers[0]->replay->most_nbytes += 10;
	gci_ep_isend(&ep, &more);
	gci_ep_detach(&ep, &more);
	sends(&stream[0]);
	gci_ep_run(&ep);
	assert_int_equal(ndone, 1);
	assert_int_equal(gci_ep_status(&ep), 0);
}

static void an_acknowledgement_when_asked(void **state)
{
	struct gci_frame ask = {.type = GCI_FRAME_ACK, .flags = GCI_FRAME_ASK}, f;

	(void)state;
	assert_int_equal(feed(&stream[0], data(1, 10, 0, 10), 10), 0);
	assert_int_equal(sends(&stream[0]).type, 0); /* lazily */
	assert_int_equal(feed(&stream[0], ask, 0), 0);
	f = sends(&stream[0]);
	assert_int_equal(f.type, GCI_FRAME_ACK);
	assert_int_equal(f.ack, 1);
	assert_int_equal(sends(&stream[0]).type, 0);
}

static void more_acknowledged_than_sent(void **state)
{
	(void)state;
	expect_refused(feed(&stream[0], (struct gci_frame){.type = GCI_FRAME_ACK, .ack = 1}, 0),
		"of which 0 were sent");
}

static void a_loss_of_the_stream_that_tells_it(void **state)
{
	(void)state;
	expect_refused(feed(&stream[0], lost(0, 1, 0), 0), "makes no sense");
}

static void a_loss_of_a_stream_that_is_not(void **state)
{
	(void)state;
	expect_refused(feed(&stream[0], lost(2, 1, 0), 0), "makes no sense");
}

static void a_loss_after_more_frames_than_were_sent(void **state)
{
	(void)state;
	expect_refused(feed(&stream[0], lost(1, 1, 1), 0), "makes no sense");
}

static void a_loss_far_in_the_future(void **state)
{
	(void)state;
	expect_refused(feed(&stream[0], lost(1, 1u << 30, 0), 0), "makes no sense");
}

static void only_acknowledgements_behind_a_goodbye(void **state)
{
	const struct gci_frame bye = {.type = GCI_FRAME_BYE}, ack = {.type = GCI_FRAME_ACK};

	(void)state;
	assert_int_equal(feed(&stream[0], bye, 0), 0);
	assert_int_equal(feed(&stream[0], ack, 0), 0);
	expect_refused(feed(&stream[0], data(1, 10, 0, 10), 10), "behind its goodbye");
}

/* The peer may not have all: the goodbye waits, or goes when there is no time left. */
static void a_goodbye_waits_for_acknowledgements(void **state)
{
	uint8_t b = 1;
	struct gci_tp_req r = request(1, &b, 1);
	struct gci_frame f;

	(void)state;
	gci_ep_isend(&ep, &r);
	sends(&stream[0]);
	stream[0].bye = stream[1].bye = 1;
	f = sends(&stream[0]);
	assert_int_equal(f.type, GCI_FRAME_ACK);
	assert_int_equal(f.flags, GCI_FRAME_ASK);
	assert_int_equal(sends(&stream[0]).type, 0);
	assert_int_equal(sends(&stream[1]).type, 0);
	stream[1].bye_now = 1;
	assert_int_equal(sends(&stream[1]).type, GCI_FRAME_BYE);
	assert_int_equal(
		feed(&stream[0], (struct gci_frame){.type = GCI_FRAME_ACK, .ack = 1}, 0), 0);
	assert_int_equal(sends(&stream[0]).type, GCI_FRAME_BYE);
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(half_a_payload_is_undone),
		T(a_whole_payload_stays),
		T(a_corrupted_payload_is_asked_for_again),
		T(but_not_for_ever),
		T(nor_are_headers),
		T(the_peer_tells_first),
		T(short_messages_are_copied_while_there_is_room),
		T(detached_messages),
		T(an_acknowledgement_when_asked),
		T(more_acknowledged_than_sent),
		T(a_loss_of_the_stream_that_tells_it),
		T(a_loss_of_a_stream_that_is_not),
		T(a_loss_after_more_frames_than_were_sent),
		T(a_loss_far_in_the_future),
		T(only_acknowledgements_behind_a_goodbye),
		T(a_goodbye_waits_for_acknowledgements),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
