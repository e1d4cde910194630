/* SPDX-License-Identifier: MIT */
#include "transport/frame.h"

#include "tests/test.h"

#include "base/buf.h"
#include "base/crc32c.h"

#include <stdio.h>
#include <string.h>

static const struct gci_frame data = {.type = GCI_FRAME_DATA,
	.epoch = 0x01020304,
	.source = 0x11121314,
	.key = {.comm = 0x21222324, .tag = 0x31323334, .seq = 0x4142434445464748ull},
	.length = 0x5152535455565758ull,
	.offset = 0x4152535455565758ull,
	.digest = 0x6162636465666768ull,
	.nbytes = GCI_TP_FRAME_NBYTES,
	.crc = 0x71727374,
	.ack = 0x81828384,
	.flags = GCI_FRAME_ASK | GCI_FRAME_LATER,
	.id = 0x9192,
	.back = 0xa1a2,
	.nback = 0xb1b2};

static void fields_come_back(void **state)
{
	uint8_t head[GCI_FRAME_HEAD_NBYTES];
	struct gci_frame f;

	(void)state;
	gci_frame_encode(&data, head);
	assert_int_equal(gci_frame_decode(head, &f, NULL), 0);
	assert_int_equal(f.type, GCI_FRAME_DATA);
	assert_int_equal(f.epoch, data.epoch);
	assert_int_equal(f.source, data.source);
	assert_int_equal(f.key.comm, data.key.comm);
	assert_int_equal(f.key.tag, data.key.tag);
	assert_true(f.key.seq == data.key.seq);
	assert_true(f.length == data.length);
	assert_true(f.offset == data.offset);
	assert_true(f.digest == data.digest);
	assert_int_equal(f.nbytes, data.nbytes);
	assert_int_equal(f.crc, data.crc);
	assert_int_equal(f.ack, data.ack);
	assert_int_equal(f.flags, data.flags);
	assert_int_equal(f.id, data.id);
	assert_int_equal(f.back, data.back);
	assert_int_equal(f.nback, data.nback);
	/* The layout that frame.h gives. */
	assert_memory_equal(head, "GC\x05\x02\x04\x03\x02\x01\x14\x13\x12\x11", 12);
	assert_int_equal(head[20], 0x48);
	assert_int_equal(head[48], 0x68);
	assert_int_equal(head[60], 0x84);
	assert_int_equal(head[64], GCI_FRAME_ASK | GCI_FRAME_LATER);
	assert_memory_equal(head + 66, "\x92\x91\xa2\xa1\xb2\xb1", 6);
}

static void any_flipped_bit_is_corruption(void **state)
{
	uint8_t head[GCI_FRAME_HEAD_NBYTES];
	struct gci_frame f;
	int bit;

	(void)state;
	gci_frame_encode(&data, head);
	for (bit = 0; bit < 8 * GCI_FRAME_HEAD_NBYTES; bit++) {
		head[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(gci_frame_decode(head, &f, NULL), GCOLL_ERR_CORRUPT);
		head[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

/* Whole, but senseless. */
static void expect_refused(const struct gci_frame *wrong, const char *why)
{
	uint8_t head[GCI_FRAME_HEAD_NBYTES];
	struct gci_error e = {0};
	struct gci_frame f;

	gci_frame_encode(wrong, head);
	assert_int_equal(gci_frame_decode(head, &f, &e), GCOLL_ERR_PROTO);
	assert_non_null(strstr(e.text, why));
}

static void senseless_frames_are_refused(void **state)
{
	uint8_t head[GCI_FRAME_HEAD_NBYTES];
	struct gci_error e = {0};
	struct gci_frame f;

	(void)state;
	f = data;
	f.nback = 0;
	f.flags = GCI_FRAME_ASK; /* all that others may have */
	f.type = 0;
	expect_refused(&f, "unknown type");
	f.type = GCI_FRAME_WAIT + 1;
	expect_refused(&f, "unknown type");
	f = data;
	f.nbytes++;
	expect_refused(&f, "bytes at offset");
	f = data;
	f.offset = f.length - f.nbytes + 1;
	expect_refused(&f, "bytes at offset");
	f.offset = UINT64_MAX - 1; /* offset + nbytes overflows */
	expect_refused(&f, "bytes at offset");
	f = data;
	f.nbytes = 0; /* of a message that has bytes */
	expect_refused(&f, "bytes at offset");
	f = data;
	f.nback = 0;
	f.flags = GCI_FRAME_ASK;
	f.type = GCI_FRAME_CREDIT;
	expect_refused(&f, "bytes at offset");
	f.type = GCI_FRAME_BYE;
	expect_refused(&f, "bytes at offset");
	f.type = GCI_FRAME_HELLO;
	expect_refused(&f, "bytes at offset");
	f.type = GCI_FRAME_ACK;
	expect_refused(&f, "bytes at offset");
	f = (struct gci_frame){.type = GCI_FRAME_LOST, .key.tag = GCI_TP_MAX_STREAMS};
	expect_refused(&f, "bytes at offset");
	f = (struct gci_frame){.type = GCI_FRAME_LOST, .length = 1ull << 32};
	expect_refused(&f, "bytes at offset");
	f = (struct gci_frame){.type = GCI_FRAME_PAD};
	expect_refused(&f, "bytes at offset");
	f.nbytes = GCI_FRAME_PAD_NBYTES + 1;
	expect_refused(&f, "bytes at offset");
	f = (struct gci_frame){.type = GCI_FRAME_BYE, .flags = GCI_FRAME_EAGER};
	expect_refused(&f, "unknown flags");
	f = (struct gci_frame){.type = GCI_FRAME_CREDIT, .flags = GCI_FRAME_LATER};
	expect_refused(&f, "unknown flags");
	f = (struct gci_frame){.type = GCI_FRAME_ACK, .nback = 1};
	expect_refused(&f, "gives allowance back");

	gci_frame_encode(&data, head);
	head[2] = GCI_FRAME_VERSION + 1;
	gci_store_u32(head + 72, gci_crc32c(0, head, 72));
	assert_int_equal(gci_frame_decode(head, &f, &e), GCOLL_ERR_PROTO);
	assert_non_null(strstr(e.text, "version 6, expected 5"));
}

static void hello_proves_the_secret(void **state)
{
	const struct gci_hello h = {.epoch = 9,
		.from = 3,
		.to = 70000,
		.stream = 5,
		.life = 6,
		.streams = 8,
		.eager_nbytes = 1 << 20,
		.size = 70001,
		.flags = GCI_HELLO_UNCHECKED | GCI_HELLO_REPLAY};
	uint8_t secret[32] = "the job's", other[32] = "the jobs", bytes[GCI_HELLO_NBYTES];
	struct gci_hello got = {0}, forged;
	uint8_t forgery[GCI_HELLO_NBYTES];

	(void)state;
	assert_int_equal(gci_hello_encode(&h, secret, bytes), 0);
	assert_int_equal(gci_hello_decode(bytes, secret, &got, NULL), 0);
	assert_memory_equal(&got, &h, sizeof(h));
	assert_int_equal(gci_hello_decode(bytes, other, &got, NULL), GCOLL_ERR_PROTO);
	/* One connection's token under another one's header. */
	for (int i = 0; i < 4; i++) {
		forged = h;
		forged.from += i == 0;
		forged.to += i == 1;
		forged.stream += i == 2;
		forged.life += i == 3;
		assert_int_equal(gci_hello_encode(&forged, other, forgery), 0);
		memcpy(forgery + GCI_FRAME_HEAD_NBYTES, bytes + GCI_FRAME_HEAD_NBYTES, 32);
		assert_int_equal(gci_hello_decode(forgery, secret, &got, NULL), GCOLL_ERR_PROTO);
	}
}

/* Wire format: these bits never move. */
static const uint64_t known_bits[] = {GCI_HELLO_UNCHECKED, GCI_HELLO_REPLAY, GCI_HELLO_ENCRYPTED};

static void each_known_flag_round_trips_alone(void **state)
{
	uint8_t secret[32] = "the job's", bytes[GCI_HELLO_NBYTES];
	uint64_t together = 0;
	struct gci_hello got;
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof(known_bits) / sizeof(*known_bits); i++) {
		const struct gci_hello h = {.from = 1, .flags = known_bits[i]};

		assert_true(known_bits[i] == 1ull << i);
		assert_int_equal(gci_hello_encode(&h, secret, bytes), 0);
		assert_int_equal(bytes[48], 1 << i);
		assert_int_equal(gci_hello_decode(bytes, secret, &got, NULL), 0);
		assert_memory_equal(&got, &h, sizeof(h));
		together |= known_bits[i];
	}
	/* A new flag has its bit in known_bits above, too. */
	assert_true(together == GCI_HELLO_KNOWN);
}

static void each_unknown_flag_is_refused(void **state)
{
	uint8_t secret[32] = "the job's", bytes[GCI_HELLO_NBYTES];
	struct gci_hello h = {.from = 1}, got;
	char expected[40];
	unsigned bit;

	(void)state;
	for (bit = 0; bit < 64; bit++) {
		struct gci_error e = {0};

		h.flags = 1ull << bit;
		if (h.flags & GCI_HELLO_KNOWN)
			continue;
		h.flags |= GCI_HELLO_REPLAY;
		assert_int_equal(gci_hello_encode(&h, secret, bytes), 0);
		assert_int_equal(gci_hello_decode(bytes, secret, &got, &e), GCOLL_ERR_PROTO);
		snprintf(expected, sizeof(expected), "unknown flags 0x%llx,", 1ull << bit);
		assert_non_null(strstr(e.text, expected));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_come_back),
		cmocka_unit_test(any_flipped_bit_is_corruption),
		cmocka_unit_test(senseless_frames_are_refused),
		cmocka_unit_test(hello_proves_the_secret),
		cmocka_unit_test(each_known_flag_round_trips_alone),
		cmocka_unit_test(each_unknown_flag_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
