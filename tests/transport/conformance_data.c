/* SPDX-License-Identifier: MIT
 * What every backend must do while nothing goes wrong. */
#include "tests/transport/conformance.h"

#include "base/prng.h"

#include <stdlib.h>
#include <string.h>

#define MIB       (1u << 20)
#define ALLOWANCE (64u << 10) /* of world_open; a message counts 64 bytes more */

static int is_checked(void *arg)
{
	struct world *w = arg;

	return w->nchecked[1] > 0;
}

static void one_message(size_t nbytes, int recv_first)
{
	uint8_t *from = room(nbytes), *to = room(nbytes);
	int unasked = !recv_first && nbytes + 64 <= ALLOWANCE;
	struct message m[2] = {0};
	struct world w;

	fill(from, nbytes, nbytes);
	world_open(&w, conformance_backend, 2, NULL);
	if (recv_first) {
		recv_from(&w, 1, &m[1], 0, 5, to, nbytes);
		steps(&w, 20);
		assert_int_equal(m[1].ndone, 0);
		send_to(&w, 0, &m[0], 1, 5, from, nbytes);
	} else {
		send_to(&w, 0, &m[0], 1, 5, from, nbytes);
		steps(&w, 20);
		recv_from(&w, 1, &m[1], 0, 5, to, nbytes);
	}
	world_finish(&w, m, 2);
	assert_int_equal(m[0].status, 0);
	assert_int_equal(m[1].status, 0);
	assert_memory_equal(from, to, nbytes);
	if (unasked)
		world_run(&w, is_checked, &w);
	steps(&w, 5);
	assert_true(w.nchecked[0] <= 1); /* the credit, if there was need of one */
	assert_int_equal(w.nchecked[1], unasked);
	world_close(&w);
	free(from);
	free(to);
}

static void messages_of_all_sizes(void **state)
{
	static const size_t sizes[] = {
		0, 1, 63, 65536 - 64, 65536, 256 << 10, (256 << 10) + 1, 10 * MIB};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		one_message(sizes[i], 0);
		one_message(sizes[i], 1);
	}
}

/* Messages of random sizes among all pairs, both sides in their own random order. */
static void crowd(int size, uint32_t nstreams, int per_pair, uint64_t seed)
{
	struct gci_tp_link link = {.streams = nstreams, .eager_nbytes = 32 << 10};
	size_t n = (size_t)(size * (size - 1) * per_pair), i, j;
	struct message *m = room(2 * n * sizeof(*m));
	uint8_t **bufs = room(2 * n * sizeof(*bufs));
	size_t *order = room(2 * n * sizeof(*order));
	struct gci_prng prng = {seed};
	struct world w;

	world_open(&w, conformance_backend, size, &link);
	for (i = 0; i < 2 * n; i++)
		order[i] = i;
	for (i = 2 * n; i-- > 1;) {
		size_t k = gci_prng_below(&prng, i + 1), t = order[i];

		order[i] = order[k];
		order[k] = t;
	}
	for (i = 0; i < n; i++) {
		size_t nbytes = gci_prng_below(&prng, i % 8 ? 3000 : 600000);

		for (j = 0; j < 2; j++)
			bufs[2 * i + j] = room(nbytes);
		fill(bufs[2 * i], nbytes, i);
		message_init(&m[2 * i], 0, (struct gci_tp_key){.seq = i / 7, .tag = i % 7},
			bufs[2 * i], nbytes);
		m[2 * i + 1] = m[2 * i];
		m[2 * i + 1].r.user = &m[2 * i + 1];
		m[2 * i + 1].r.buf = bufs[2 * i + 1];
	}
	for (i = 0; i < 2 * n; i++) {
		size_t k = order[i], pair = k / 2 / (size_t)per_pair;
		int from = (int)pair / (size - 1), to = (int)pair % (size - 1);

		to += to >= from;
		m[k].r.peer = k % 2 ? from : to;
		if (k % 2)
			gci_tp_irecv(w.tp[to], &m[k].r);
		else
			gci_tp_isend(w.tp[from], &m[k].r);
		if (!gci_prng_below(&prng, 10))
			steps(&w, 1);
	}
	world_finish(&w, m, 2 * n);
	for (i = 0; i < n; i++) {
		assert_int_equal(m[2 * i].status, 0);
		assert_int_equal(m[2 * i].ndone, 1);
		assert_int_equal(m[2 * i + 1].status, 0);
		assert_int_equal(m[2 * i + 1].ndone, 1);
		assert_memory_equal(bufs[2 * i], bufs[2 * i + 1], m[2 * i].r.nbytes);
		free(bufs[2 * i]);
		free(bufs[2 * i + 1]);
	}
	world_close(&w);
	free(order);
	free(bufs);
	free(m);
}

static void many_messages_among_four_ranks(void **state)
{
	(void)state;
	crowd(4, 1, 30, 1);
}

static void two_streams(void **state)
{
	(void)state;
	crowd(3, 2, 40, 2);
}

static void eight_streams(void **state)
{
	(void)state;
	crowd(3, 8, 40, 3);
}

static void large_message_over_eight_streams(void **state)
{
	struct gci_tp_link link = {.streams = 8, .eager_nbytes = 0};
	size_t nbytes = 20 * MIB + 5, i;
	uint8_t *from = room(nbytes), *to = room(nbytes);
	struct gci_tp_stats tx, rx;
	uint64_t sum = 0;
	struct message m[2];
	struct world w;

	(void)state;
	fill(from, nbytes, 8);
	world_open(&w, conformance_backend, 2, &link);
	send_to(&w, 1, &m[0], 0, 1, from, nbytes);
	recv_from(&w, 0, &m[1], 1, 1, to, nbytes);
	world_finish(&w, m, 2);
	assert_memory_equal(from, to, nbytes);
	gci_tp_stats(w.tp[1], 0, &tx);
	gci_tp_stats(w.tp[0], 1, &rx);
	assert_int_equal(tx.streams, 8);
	assert_true(tx.tx_payload_nbytes == nbytes);
	assert_true(rx.rx_payload_nbytes == nbytes);
	for (i = 0; i < GCI_TP_MAX_STREAMS; i++)
		sum += tx.tx_stream_nbytes[i];
	assert_true(sum == nbytes);
	world_close(&w);
	free(from);
	free(to);
}

static void keys_out_of_order(void **state)
{
	enum { N = 64 };
	static uint8_t from[N][2000], to[N][2000];
	struct message m[2 * N];
	struct world w;
	int i;

	(void)state;
	memset(to, 0, sizeof(to));
	world_open(&w, conformance_backend, 2, NULL);
	for (i = 0; i < N; i++) {
		fill(from[i], sizeof(from[i]), (uint64_t)i);
		send_to(&w, 0, &m[i], 1, (uint32_t)i, from[i], sizeof(from[i]));
	}
	for (i = N; i-- > 0; steps(&w, 2))
		recv_from(&w, 1, &m[N + i], 0, (uint32_t)i, to[i], sizeof(to[i]));
	world_finish(&w, m, 2 * N);
	assert_memory_equal(from, to, sizeof(from));
	world_close(&w);
}

/* Keys that differ in one field only are different messages. */
static void every_field_of_a_key_counts(void **state)
{
	static const struct gci_tp_key keys[] = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1},
		{0, 0, 1ull << 32}, {1u << 31, 0, 0}, {0, 1u << 31, 0}};
	enum { N = sizeof(keys) / sizeof(*keys) };
	uint8_t from[N], to[N] = {0};
	struct message m[2 * N];
	struct world w;
	int i;

	(void)state;
	world_open(&w, conformance_backend, 2, NULL);
	for (i = 0; i < N; i++) {
		from[i] = (uint8_t)(i + 1);
		message_init(&m[i], 1, keys[i], &from[i], 1);
		message_init(&m[N + i], 0, keys[i], &to[i], 1);
		gci_tp_isend(w.tp[0], &m[i].r);
	}
	steps(&w, 5);
	for (i = N; i-- > 0;)
		gci_tp_irecv(w.tp[1], &m[N + i].r);
	world_finish(&w, m, 2 * N);
	assert_memory_equal(from, to, N);
	world_close(&w);
}

static void pieces(size_t nbytes, uint32_t align, int early)
{
	struct gci_tp_link link = {.streams = 3, .eager_nbytes = 64 << 10};
	uint8_t *from = room(nbytes), *to = room(nbytes), *times = room(nbytes);
	struct message m[2];
	struct world w;
	size_t i;

	fill(from, nbytes, nbytes);
	world_open(&w, conformance_backend, 2, &link);
	message_init(&m[0], 1, (struct gci_tp_key){.tag = 2}, from, nbytes);
	message_init(&m[1], 0, (struct gci_tp_key){.tag = 2}, to, nbytes);
	m[0].r.align = m[1].r.align = align;
	m[1].r.piece = on_piece;
	m[1].times = times;
	gci_tp_isend(w.tp[0], &m[0].r);
	if (early)
		steps(&w, 30);
	gci_tp_irecv(w.tp[1], &m[1].r);
	assert_int_equal(m[1].npieces, 0);
	world_finish(&w, m, 2);
	assert_int_equal(m[1].status, 0);
	assert_memory_equal(from, to, nbytes);
	for (i = 0; i < nbytes; i++)
		assert_int_equal(times[i], 1);
	world_close(&w);
	free(from);
	free(to);
	free(times);
}

static void pieces_cover_each_byte_once(void **state)
{
	(void)state;
	pieces(8 * 200003, 8, 0);
	pieces(12 * 100003, 12, 0); /* does not divide the frame */
	pieces(4096, 8, 1);
	pieces(0, 8, 0);
	pieces(0, 8, 1);
}

static void unasked_data_blocks_nobody(void **state)
{
	enum { N = 200, EACH = 4096 };
	static uint8_t from[N][EACH], to[N][EACH];
	uint8_t *big = room(3 * MIB), *big_to = room(3 * MIB);
	struct message m[2 * N], b[2];
	struct world w;
	int i, sent = 0;

	(void)state;
	memset(to, 0, sizeof(to));
	world_open(&w, conformance_backend, 2, NULL); /* 64 KiB of allowance, 800 KiB of messages */
	for (i = 0; i < N; i++) {
		fill(from[i], EACH, (uint64_t)i);
		send_to(&w, 0, &m[i], 1, (uint32_t)i, from[i], EACH);
	}
	fill(big, 3 * MIB, 99);
	send_to(&w, 0, &b[0], 1, 5000, big, 3 * MIB);
	recv_from(&w, 1, &b[1], 0, 5000, big_to, 3 * MIB);
	world_finish(&w, b, 2);
	assert_memory_equal(big, big_to, 3 * MIB);
	for (i = 0; i < N; i++)
		sent += m[i].ndone;
	assert_true(sent > 0 && sent * EACH <= 64 << 10);
	for (i = 0; i < N; i++)
		recv_from(&w, 1, &m[N + i], 0, (uint32_t)i, to[i], EACH);
	world_finish(&w, m, 2 * N);
	assert_memory_equal(from, to, sizeof(from));
	assert_int_equal(w.nfailures[0] + w.nfailures[1], 0);
	world_close(&w);
	free(big);
	free(big_to);
}

static void without_allowance_all_waits_for_credit(void **state)
{
	struct gci_tp_link link = {.streams = 1, .eager_nbytes = 0};
	uint8_t from = 7, to = 0;
	struct message m[4];
	struct world w;

	(void)state;
	world_open(&w, conformance_backend, 2, &link);
	send_to(&w, 0, &m[0], 1, 1, &from, 1);
	send_to(&w, 0, &m[1], 1, 2, NULL, 0);
	steps(&w, 30);
	assert_int_equal(m[0].ndone + m[1].ndone, 0);
	recv_from(&w, 1, &m[2], 0, 1, &to, 1);
	recv_from(&w, 1, &m[3], 0, 2, NULL, 0);
	world_finish(&w, m, 4);
	assert_int_equal(to, 7);
	world_close(&w);
}

static void thousands_outstanding(void **state)
{
	enum { N = 4000, EACH = 4096 };
	struct gci_tp_link link = {.streams = 2, .eager_nbytes = 64 << 10};
	uint8_t *from = room(EACH), *to = room((size_t)N * EACH);
	struct message *m = room(2 * N * sizeof(*m));
	struct world w;
	uint32_t i;

	(void)state;
	fill(from, EACH, 5);
	world_open(&w, conformance_backend, 2, &link);
	for (i = 0; i < N; i++)
		send_to(&w, 0, &m[i], 1, i, from, EACH);
	for (i = 0; i < N; i++)
		recv_from(&w, 1, &m[N + i], 0, N - 1 - i, to + (size_t)i * EACH, EACH);
	world_finish(&w, m, 2 * N);
	for (i = 0; i < N; i++)
		assert_memory_equal(from, to + (size_t)i * EACH, EACH);
	world_close(&w);
	free(from);
	free(to);
	free(m);
}

const struct CMUnitTest conformance_data[] = {
	cmocka_unit_test(messages_of_all_sizes),
	cmocka_unit_test(many_messages_among_four_ranks),
	cmocka_unit_test(two_streams),
	cmocka_unit_test(eight_streams),
	cmocka_unit_test(large_message_over_eight_streams),
	cmocka_unit_test(keys_out_of_order),
	cmocka_unit_test(every_field_of_a_key_counts),
	cmocka_unit_test(pieces_cover_each_byte_once),
	cmocka_unit_test(unasked_data_blocks_nobody),
	cmocka_unit_test(without_allowance_all_waits_for_credit),
	cmocka_unit_test(thousands_outstanding),
};

const size_t conformance_data_n = sizeof(conformance_data) / sizeof(*conformance_data);
