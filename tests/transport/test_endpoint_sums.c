/* SPDX-License-Identifier: MIT
 * The sums of what passes through an endpoint, against gci_crc32c of the same bytes: whatever the
 * elements, the cuts, and the order in which frames come. */
#include "tests/transport/lone_endpoint.h"

#include "base/crc32c.h"
#include "base/prng.h"

#include <string.h>

#define MOST (300u << 10)

static uint8_t mem[MOST], sent[MOST];
static struct gci_sums sums;

static int close_all(void **state)
{
	gci_sums_free(&sums);
	return teardown(state);
}

/* The frame with `sent` as its payload, which lands in pieces of any size. */
static void receive(struct gci_frame f, struct gci_prng *prng)
{
	const uint8_t *from = sent + f.offset;
	uint8_t head[GCI_FRAME_HEAD_NBYTES];
	struct gci_ep_sink sink;
	uint32_t at, n;

	f.epoch = 5;
	f.source = 1;
	f.crc = gci_crc32c(0, from, f.nbytes);
	gci_frame_encode(&f, head);
	assert_int_equal(gci_ep_head(&ep, 1, NULL, head, &sink), 0);
	for (at = 0; at < f.nbytes; at += n) {
		n = 1 + (uint32_t)gci_prng_below(prng, gci_prng_below(prng, 2) ? 3000 : MOST);
		n = n < f.nbytes - at ? n : f.nbytes - at;
		memcpy(sink.dst + at, from + at, n);
		gci_ep_landed(&sink, n);
	}
	assert_int_equal(gci_ep_payload(&ep, 1, &sink), 0);
	gci_ep_drop(&ep, &sink);
}

/* As its sender would cut it, but the frames come in any order. */
static void receive_all(const struct gci_tp_req *r, unsigned flags, struct gci_prng *prng)
{
	struct gci_tp_req cut = {.nbytes = r->nbytes, .align = r->align};
	struct gci_frame f[256], swap;
	size_t n = 0, i;

	for (; cut.moved < cut.nbytes; n++) {
		uint32_t turn = 1 + (uint32_t)gci_prng_below(prng, GCI_TP_FRAME_NBYTES);

		assert_true(n < 256);
		f[n] = frame(r->key.tag, r->nbytes, cut.moved, gci_ep_cut(&cut, turn));
		f[n].flags = (uint16_t)flags;
		assert_in_range(f[n].nbytes, 1, GCI_TP_FRAME_NBYTES);
		cut.moved += f[n].nbytes;
	}
	for (; n; n--) {
		i = gci_prng_below(prng, n);
		swap = f[i];
		f[i] = f[n - 1];
		receive(swap, prng);
	}
}

static struct gci_frame to_send(uint64_t offset, uint32_t nbytes)
{
	return (struct gci_frame){.type = GCI_FRAME_DATA, .offset = offset, .nbytes = nbytes};
}

/* A frame that is sent on has the sum of its bytes, however the message came. */
static void what_is_sent_on(void **state)
{
	static const uint32_t aligns[] = {1, 3, 8, 16385, 4096, 65536, 70000, GCI_TP_FRAME_NBYTES};
	struct gci_prng prng = {7};
	struct gci_tp_req r, onward;
	uint32_t round, i, nbytes;

	(void)state;
	for (round = 0; round < 60; round++) {
		for (i = 0; i < MOST; i++)
			sent[i] = (uint8_t)gci_prng_next(&prng);
		nbytes = 1 + (uint32_t)gci_prng_below(&prng, MOST);
		r = request(round, mem, nbytes);
		r.align = aligns[round % 8];
		r.nbytes = nbytes = nbytes < r.align ? r.align : nbytes / r.align * r.align;
		r.sums = &sums;
		gci_ep_irecv(&ep, &r);
		receive_all(&r, 0, &prng);
		gci_ep_run(&ep);
		assert_int_equal(ndone, round + 1);
		assert_memory_equal(mem, sent, nbytes);
		onward = request(1000 + round, mem, nbytes);
		onward.sums = &sums;
		for (i = 0; i < 20; i++) {
			struct gci_frame f = to_send(gci_prng_below(&prng, nbytes), 0);

			f.nbytes = (uint32_t)gci_prng_below(&prng, nbytes - f.offset + 1);
			assert_int_equal(gci_ep_sum(&ep, &onward, &f), 0);
			assert_int_equal(f.crc, gci_crc32c(0, mem + f.offset, f.nbytes));
		}
	}
}

/* Whole, it goes on with the sum that it came with, which the next rank finds wrong; cut, it is
 * found here. */
static void what_changes_meanwhile(void **state)
{
	struct gci_tp_req r = request(1, mem, MOST), onward = request(2, mem, MOST);
	struct gci_frame all = to_send(0, MOST), half = to_send(0, MOST / 2);
	struct gci_prng prng = {8};

	(void)state;
	r.sums = onward.sums = &sums;
	gci_ep_irecv(&ep, &r);
	receive_all(&r, 0, &prng);
	mem[MOST / 2 - 1] ^= 1;
	assert_int_equal(gci_ep_sum(&ep, &onward, &all), 0);
	assert_int_equal(all.crc, gci_crc32c(0, sent, MOST));
	expect_failure(gci_ep_sum(&ep, &onward, &half), GCOLL_ERR_CORRUPT,
		"changed in memory after they had come");
}

/* Before it was asked for. `flip`: a byte changes until it is. */
static void early(int flip)
{
	struct gci_tp_req r = request(1, mem, EAGER - GCI_EP_MESSAGE_NBYTES);
	struct gci_tp_req onward = request(2, mem, r.nbytes);
	struct gci_frame part = to_send(100, 300);
	struct gci_prng prng = {9};
	uint32_t at;

	r.sums = onward.sums = &sums;
	for (at = (uint32_t)r.nbytes; at; at -= at < 100 ? at : 100) /* the last ones first */
		receive(frame(1, r.nbytes, at < 100 ? 0 : at - 100, at < 100 ? at : 100), &prng);
	if (flip)
		gci_msgs_find(&ep.in, 1, &r.key)->early[200] ^= 1;
	gci_ep_irecv(&ep, &r);
	gci_ep_run(&ep);
	if (flip) {
		expect_failure(gci_ep_status(&ep), GCOLL_ERR_CORRUPT,
			"changed in memory before they were asked for");
		assert_int_equal(last_status, GCOLL_ERR_CORRUPT);
		return;
	}
	assert_int_equal(last_status, 0);
	assert_memory_equal(mem, sent, r.nbytes);
	mem[200] ^= 1;
	assert_int_equal(gci_ep_sum(&ep, &onward, &part), GCOLL_ERR_CORRUPT);
}

static void what_came_early(void **state)
{
	(void)state;
	early(0);
}

static void what_came_early_and_changes(void **state)
{
	(void)state;
	early(1);
}

int main(void)
{
#define S(name) cmocka_unit_test_setup_teardown(name, setup, close_all)
	const struct CMUnitTest tests[] = {
		S(what_is_sent_on),
		S(what_changes_meanwhile),
		S(what_came_early),
		S(what_came_early_and_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
