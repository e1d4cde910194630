/* SPDX-License-Identifier: MIT */
#include "transport/replay.h"

#include "tests/test.h"

#include "base/mem.h"

#include <string.h>

static struct gci_blocks blocks = {.size = GCI_TP_FRAME_NBYTES, .most = 3};
static struct gci_replay *r;

static int setup(void **state)
{
	(void)state;
	r = gci_replay_new(2, 1000, &blocks);
	assert_non_null(r);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	gci_replay_free(r);
	assert_int_equal(blocks.nused, 0);
	gci_blocks_drain(&blocks);
	return 0;
}

/* Sends the frame with this tag; its payload is 400 bytes. */
static struct gci_replay_frame *add(struct gci_life *life, uint32_t tag)
{
	static uint8_t bytes[400];
	struct gci_frame head = {.type = GCI_FRAME_DATA, .key.tag = tag, .nbytes = sizeof(bytes)};
	struct gci_replay_frame *f = gci_replay_add(r, life, &head);

	assert_non_null(f);
	f->payload = bytes;
	return f;
}

static struct gci_replay_frame *send(struct gci_life *life, uint32_t tag)
{
	struct gci_replay_frame *f = add(life, tag);

	gci_replay_gone(r, life, f);
	return f;
}

/* How many are acknowledged now. */
static int drain(void)
{
	struct gci_replay_frame *f;
	int n;

	for (n = 0; (f = gci_replay_acked(r)); n++)
		gci_replay_put(r, f);
	return n;
}

/* The next to go before all others is DATA with this tag, or LOST (0: none). */
static void expect_next(struct gci_life *life, enum gci_frame_type type, uint32_t tag)
{
	struct gci_replay_frame *f = gci_replay_next(r, life);

	if (!type) {
		assert_null(f);
		return;
	}
	assert_non_null(f);
	assert_int_equal(f->head.type, type);
	assert_int_equal(f->head.key.tag, tag);
}

static void acknowledged_frames_are_over(void **state)
{
	struct gci_life *life = gci_replay_begin(r, 0, 1);
	uint32_t i;

	(void)state;
	for (i = 0; i < 5; i++)
		send(life, i);
	assert_int_equal(gci_replay_ack(r, life, 3), 0);
	assert_int_equal(drain(), 3);
	assert_int_equal(gci_replay_ack(r, life, 3), 0);
	assert_int_equal(drain(), 0);
	assert_int_equal(r->nframes, 2);
	assert_int_equal(gci_replay_ack(r, life, 5), 0);
	assert_int_equal(drain(), 2);
	assert_int_equal(r->nframes, 0);
}

static void the_count_goes_round(void **state)
{
	struct gci_life *life = gci_replay_begin(r, 0, 1);

	(void)state;
	life->nsent = life->nacked = UINT32_MAX - 1;
	send(life, 0);
	send(life, 1);
	send(life, 2);
	assert_int_equal(gci_replay_ack(r, life, 1), 0);
	assert_int_equal(drain(), 3);
	assert_int_equal(gci_replay_ack(r, life, 2), GCOLL_ERR_PROTO);
}

static void nobody_has_what_was_not_sent(void **state)
{
	struct gci_life *life = gci_replay_begin(r, 0, 1);

	(void)state;
	send(life, 0);
	assert_int_equal(gci_replay_ack(r, life, 2), GCOLL_ERR_PROTO);
	assert_int_equal(gci_replay_ack(r, life, 1), 0);
	assert_int_equal(gci_replay_ack(r, life, 0), GCOLL_ERR_PROTO); /* back */
}

/* The answer may be read before the end of sending is. */
static void acknowledged_while_it_is_being_sent(void **state)
{
	struct gci_life *life = gci_replay_begin(r, 0, 1);
	struct gci_replay_frame *f = add(life, 0);

	(void)state;
	assert_int_equal(gci_replay_ack(r, life, 1), 0);
	assert_int_equal(drain(), 0);
	gci_replay_gone(r, life, f);
	assert_int_equal(drain(), 1);
}

static void acknowledgements_are_lazy(void **state)
{
	struct gci_life *a = gci_replay_begin(r, 0, 1), *b = gci_replay_begin(r, 1, 1);
	int i;

	(void)state;
	for (i = 0; i < GCI_REPLAY_FRAMES - 1; i++)
		gci_replay_came(r, a, 100);
	assert_int_equal(r->ndue, 0);
	gci_replay_came(r, a, 100);
	assert_true(a->due && !b->due);
	assert_int_equal(gci_replay_tell(r, a), GCI_REPLAY_FRAMES);
	assert_int_equal(r->ndue, 0);
	gci_replay_came(r, b, GCI_REPLAY_NBYTES);
	assert_true(b->due);
	gci_replay_tell(r, b);
	gci_replay_came(r, a, 1);
	gci_replay_complete(r);
	assert_true(a->due && !b->due);
	gci_replay_ask(r, b);
	assert_int_equal(r->ndue, 2);
}

static void a_loss_known_here_first(void **state)
{
	struct gci_life *life = gci_replay_begin(r, 0, 1), *open, *other;

	(void)state;
	send(life, 10);
	send(life, 11);
	add(life, 12);
	gci_replay_came(r, life, 5);
	gci_replay_lose(r, life);
	other = gci_replay_begin(r, 1, 1);
	expect_next(other, GCI_FRAME_LOST, 0);
	expect_next(other, 0, 0); /* what the peer has is not known yet */
	assert_int_equal(gci_replay_on_lost(r, 0, 1, 1, 0, &open), 0);
	assert_null(open);
	assert_int_equal(drain(), 1);
	expect_next(other, GCI_FRAME_DATA, 11);
	expect_next(other, GCI_FRAME_DATA, 12);
	expect_next(other, 0, 0);
	assert_int_equal(r->nlives, 1);
	/* Told twice. */
	assert_int_equal(gci_replay_on_lost(r, 0, 1, 1, 0, &open), 0);
	assert_null(open);
	expect_next(other, 0, 0);
}

static void a_loss_the_peer_knows_first(void **state)
{
	struct gci_life *life = gci_replay_begin(r, 0, 1), *open;

	(void)state;
	send(life, 10);
	send(life, 11);
	assert_int_equal(gci_replay_on_lost(r, 0, 1, 0, 0, &open), 0);
	assert_ptr_equal(open, life);
	gci_replay_lose(r, life);
	life = gci_replay_begin(r, 0, 2);
	expect_next(life, GCI_FRAME_LOST, 0);
	expect_next(life, GCI_FRAME_DATA, 10);
	expect_next(life, GCI_FRAME_DATA, 11);
	assert_int_equal(r->nlives, 1);
}

/* The notice of a loss is lost with the connection that carried it. */
static void losses_upon_losses(void **state)
{
	struct gci_life *life = gci_replay_begin(r, 0, 1), *open;
	uint32_t i;

	(void)state;
	send(life, 10);
	for (i = 2; i < 50; i++) {
		uint32_t k;

		gci_replay_lose(r, life);
		life = gci_replay_begin(r, 0, i);
		for (k = 1; k < i; k++)
			expect_next(life, GCI_FRAME_LOST, 0);
		expect_next(life, 0, 0);
	}
	for (i = 49; --i;)
		assert_int_equal(gci_replay_on_lost(r, 0, i, 0, 0, &open), 0);
	assert_int_equal(r->nlives, 1);
	expect_next(life, GCI_FRAME_DATA, 10);
	expect_next(life, 0, 0);
}

/* The peer connected, and lost it before anything of it came here. */
static void connections_that_only_the_peer_knew(void **state)
{
	struct gci_life *open, *carrier;

	(void)state;
	assert_int_equal(gci_replay_on_lost(r, 0, 3, 0, 0, &open), GCOLL_ERR_PROTO);
	assert_int_equal(gci_replay_on_lost(r, 0, 3, 1, 1, &open), GCOLL_ERR_PROTO);
	gci_replay_free(r);
	r = gci_replay_new(2, 1000, &blocks);
	assert_int_equal(gci_replay_on_lost(r, 0, 3, 0, 1, &open), 0);
	assert_null(open);
	assert_int_equal(r->nlives, 2); /* 1 and 2, of which the peer has not told yet */
	carrier = gci_replay_begin(r, 1, 1);
	expect_next(carrier, GCI_FRAME_LOST, 0);
	expect_next(carrier, GCI_FRAME_LOST, 0);
	expect_next(carrier, GCI_FRAME_LOST, 0);
	assert_int_equal(gci_replay_on_lost(r, 0, 1, 0, 1, &open), 0);
	assert_int_equal(gci_replay_on_lost(r, 0, 2, 0, 1, &open), 0);
	assert_int_equal(r->nlives, 1);
	assert_int_equal(gci_replay_on_lost(r, 0, 3 + GCI_REPLAY_MOST_UNSEEN + 1, 0, 1, &open),
		GCOLL_ERR_PROTO);
}

static void copies_have_a_limit(void **state)
{
	struct gci_life *life = gci_replay_begin(r, 0, 1);
	struct gci_replay_frame *a = add(life, 0), *b = add(life, 1), *c = add(life, 2);

	(void)state;
	assert_true(gci_replay_copy(r, a));
	assert_ptr_equal(a->payload, a->copy);
	assert_true(gci_replay_copy(r, b));
	assert_false(gci_replay_copy(r, c));
	assert_int_equal(r->nbytes, 800);
	gci_replay_gone(r, life, a);
	assert_int_equal(gci_replay_ack(r, life, 1), 0);
	assert_int_equal(drain(), 1);
	assert_int_equal(r->nbytes, 400);
	assert_true(gci_replay_copy(r, c));
}

/* Frames of a stream of long ones take the blocks of those before them. */
static void long_copies_share_blocks(void **state)
{
	static const uint8_t bytes[GCI_TP_FRAME_NBYTES] = {1, 2, 3};
	const struct gci_frame head = {.type = GCI_FRAME_DATA, .nbytes = sizeof(bytes)};
	struct gci_life *life = gci_replay_begin(r, 0, 1);
	struct gci_replay_frame *f[5];
	int i, n = 0;

	(void)state;
	r->most_nbytes = sizeof(f) / sizeof(*f) * sizeof(bytes);
	for (i = 0; i < 5; i++) {
		f[i] = gci_replay_add(r, life, &head);
		assert_non_null(f[i]);
		f[i]->payload = bytes;
		assert_true(gci_replay_copy(r, f[i]));
		assert_memory_equal(f[i]->copy, bytes, sizeof(bytes));
		gci_replay_gone(r, life, f[i]);
	}
	assert_int_equal(blocks.nused, 5);
	assert_int_equal(gci_replay_ack(r, life, 4), 0);
	assert_int_equal(drain(), 4);
	assert_int_equal(blocks.nused, 1);
	gci_mem_fail_at(GCI_BLOCKS_HAVE_AREAS ? 1 : 0);
	for (i = 0; i < 3; i++) {
		f[i] = gci_replay_add(r, life, &head);
		f[i]->payload = bytes;
		n += gci_replay_copy(r, f[i]);
	}
	assert_int_equal(n, 3);
	assert_false(gci_mem_failed()); /* that took none */
	gci_mem_fail_at(0);
	assert_int_equal(gci_replay_ack(r, life, 5), 0);
	assert_int_equal(drain(), 1);
	gci_replay_end(r, life);
	assert_int_equal(blocks.nused, 0);
	assert_int_equal(r->nbytes, 0);
}

static void a_number_that_was_not_used(void **state)
{
	struct gci_life *life = gci_replay_begin(r, 0, 1);

	(void)state;
	gci_replay_unbegin(r, life);
	assert_int_equal(r->nlives, 0);
	life = gci_replay_begin(r, 0, 1);
	assert_int_equal(life->number, 1);
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(acknowledged_frames_are_over),
		T(the_count_goes_round),
		T(nobody_has_what_was_not_sent),
		T(acknowledged_while_it_is_being_sent),
		T(acknowledgements_are_lazy),
		T(a_loss_known_here_first),
		T(a_loss_the_peer_knows_first),
		T(losses_upon_losses),
		T(connections_that_only_the_peer_knew),
		T(copies_have_a_limit),
		T(long_copies_share_blocks),
		T(a_number_that_was_not_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
