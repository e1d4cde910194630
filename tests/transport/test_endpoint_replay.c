/* SPDX-License-Identifier: MIT
 * An endpoint on a link with replay, frame by frame, and as a hostile or broken peer sees it;
 * damaged frames are in test_endpoint_refuse.c, whole runs in test_losses.c. */
#include "tests/transport/replay_endpoint.h"

#include <string.h>

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
	assert_int_equal(gci_stream_end(&stream[1], NULL, 0), GCI_STREAM_LOST);
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

static void the_peer_tells_first(void **state)
{
	static uint8_t buf[100000];
	struct gci_tp_req r = request(1, buf, sizeof(buf));

	(void)state;
	ep.peers[0]->link.streams = 1; /* which takes all of it at once */
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
	uint8_t buf[700] = {0};
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
	ep.peers[0]->link.streams = 1; /* which takes all of a message at once */
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

/* A long message whose sender waits is acknowledged when it is complete, and all others with it. */
static void a_patient_message_is_acknowledged_later(void **state)
{
	static uint8_t buf[20000];
	static struct gci_tp_req r[2]; /* the endpoint has them to the end */
	struct gci_frame f = data(1, sizeof(buf), 0, sizeof(buf));

	(void)state;
	r[0] = request(1, buf, sizeof(buf));
	r[1] = request(2, buf, sizeof(buf));
	gci_ep_irecv(&ep, &r[0]);
	gci_ep_irecv(&ep, &r[1]);
	while (sends(&stream[0]).type)
		;
	f.flags = GCI_FRAME_LATER;
	assert_int_equal(feed(&stream[0], f, f.nbytes), 0);
	gci_ep_run(&ep);
	assert_int_equal(ndone, 1);
	assert_int_equal(sends(&stream[0]).type, 0);
	f = data(2, sizeof(buf), 0, sizeof(buf) / 2);
	f.flags = 0;
	assert_int_equal(feed(&stream[1], f, f.nbytes), 0);
	f.offset = f.nbytes;
	f.flags = GCI_FRAME_LATER; /* what went out before somebody waited */
	assert_int_equal(feed(&stream[1], f, f.nbytes), 0);
	f = sends(&stream[0]);
	assert_int_equal(f.type, GCI_FRAME_ACK);
	assert_int_equal(f.ack, 1);
	assert_int_equal(sends(&stream[1]).ack, 2);
}

/* Who waits at last for a patient send asks, once, behind what has gone out; what goes out again says by
 * itself that somebody waits. */
static void a_patient_send_asks_when_it_is_waited_for(void **state)
{
	static uint8_t buf[100000];
	struct gci_tp_req r = request(1, buf, sizeof(buf));
	struct gci_frame f;

	(void)state;
	ep.peers[0]->link.streams = 1; /* which takes all of it at once */
	r.patient = 1;
	gci_ep_isend(&ep, &r);
	assert_true(sends(&stream[0]).flags & GCI_FRAME_LATER);
	assert_int_equal(sends(&stream[0]).type, 0);
	gci_ep_ask(&ep, &r);
	gci_ep_ask(&ep, &r);
	f = sends(&stream[0]);
	assert_int_equal(f.type, GCI_FRAME_ACK);
	assert_int_equal(f.flags, GCI_FRAME_ASK);
	assert_int_equal(sends(&stream[0]).type, 0);
	ep.peers[0]->link.streams = 2;
	assert_int_equal(feed(&stream[1], lost(0, 1, 0), 0), 0);
	assert_int_equal(gci_stream_lose(&stream[0]), 0);
	assert_int_equal(sends(&stream[1]).type, GCI_FRAME_LOST); /* and the data behind it */
	f = gci_container(stream[1].life->sent.prev, struct gci_replay_frame, link)->head;
	assert_int_equal(f.type, GCI_FRAME_DATA);
	assert_false(f.flags & GCI_FRAME_LATER);
	assert_int_equal(
		feed(&stream[1], (struct gci_frame){.type = GCI_FRAME_ACK, .ack = 2}, 0), 0);
	gci_ep_run(&ep);
	assert_int_equal(ndone, 1);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(half_a_payload_is_undone),
		T(a_whole_payload_stays),
		T(the_peer_tells_first),
		T(short_messages_are_copied_while_there_is_room),
		T(detached_messages),
		T(an_acknowledgement_when_asked),
		T(a_patient_message_is_acknowledged_later),
		T(a_patient_send_asks_when_it_is_waited_for),
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
