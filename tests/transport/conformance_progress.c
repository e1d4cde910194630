/* SPDX-License-Identifier: MIT
 * What every backend does beside moving data: it tells what is done and what is waited for, and
 * warms up connections. */
#include "tests/transport/conformance.h"

#include <stdlib.h>

#define MIB (1u << 20)

/* A done that starts the next one, on the same request. */
struct rally {
	struct world *w;
	struct gci_tp_req r[2][2]; /* rank; send, receive */
	int left;
	uint8_t ball[2];
};

static void hit(struct gci_tp_req *r, int status)
{
	struct rally *g = r->user;
	int rank = r >= g->r[1];

	assert_int_equal(status, 0);
	if (r == &g->r[rank][0])
		return;
	assert_int_equal(g->ball[rank], (uint8_t)r->key.seq);
	if (--g->left <= 0)
		return;
	r->key.seq += 2;
	gci_tp_irecv(g->w->tp[rank], r);
	g->ball[rank]++;
	g->r[rank][0].key.seq = r->key.seq - 1;
	gci_tp_isend(g->w->tp[rank], &g->r[rank][0]);
}

static int rally_over(void *arg)
{
	return ((struct rally *)arg)->left <= 0;
}

static void done_may_start_the_next(void **state)
{
	struct rally g = {.left = 1000};
	struct world w;
	int i, j;

	(void)state;
	world_open(&w, conformance_backend, 2, NULL);
	g.w = &w;
	for (i = 0; i < 2; i++)
		for (j = 0; j < 2; j++)
			g.r[i][j] = (struct gci_tp_req){.peer = !i,
				.key = {.seq = (uint64_t)(i ^ j)},
				.buf = &g.ball[i],
				.nbytes = 1,
				.align = 1,
				.done = hit,
				.user = &g};
	gci_tp_irecv(w.tp[0], &g.r[0][1]); /* sequence 1, 3, ... */
	gci_tp_irecv(w.tp[1], &g.r[1][1]); /* sequence 0, 2, ... */
	gci_tp_isend(w.tp[0], &g.r[0][0]);
	world_run(&w, rally_over, &g);
	world_close(&w);
}

static int has_begun(void *arg)
{
	struct world *w = arg;
	struct gci_tp_wait at;

	return gci_tp_waits(w->tp[1], &at) && at.taken_up;
}

/* Who is waited for, and whether he is at it: not as long as he may just be late. */
static void what_is_waited_for(void **state)
{
	uint8_t *from = room(10 * MIB), *to = room(10 * MIB);
	struct message m[3] = {0};
	struct gci_tp_wait at;
	struct world w;

	(void)state;
	world_open(&w, conformance_backend, 2, NULL);
	assert_false(gci_tp_waits(w.tp[0], &at));
	send_to(&w, 0, &m[0], 1, 5, from, 10 * MIB);
	steps(&w, 20);
	assert_true(gci_tp_waits(w.tp[0], &at));
	assert_true(at.peer == 1 && at.sends && !at.taken_up && at.key.tag == 5);
	assert_true(at.nbytes == 10 * MIB && at.moved == 0);
	recv_from(&w, 1, &m[2], 0, 6, to, 1); /* nobody sends it yet */
	steps(&w, 20);
	assert_true(gci_tp_waits(w.tp[1], &at));
	assert_true(at.peer == 0 && !at.sends && !at.taken_up && at.key.tag == 6);
	recv_from(&w, 1, &m[1], 0, 5, to, 10 * MIB);
	world_run(&w, has_begun, &w);
	assert_true(gci_tp_waits(w.tp[1], &at));
	assert_true(!at.sends && at.key.tag == 5 && at.moved <= at.nbytes);
	world_finish(&w, m, 2);
	assert_false(gci_tp_waits(w.tp[0], &at));
	assert_true(gci_tp_waits(w.tp[1], &at) && at.key.tag == 6);
	world_close(&w);
	free(from);
	free(to);
}

struct padding {
	struct world *w;
	uint64_t nbytes;
};

static int has_padded(void *arg)
{
	const struct padding *p = arg;
	struct gci_tp_stats s;

	gci_tp_stats(p->w->tp[1], 0, &s);
	return s.rx_pad_nbytes == p->nbytes;
}

/* Each stream has its part, nobody is given any of it, and what comes behind it is whole. */
static void padding_is_dropped(void **state)
{
	const struct gci_tp_link link = {.streams = 3, .eager_nbytes = 65536};
	uint8_t *from = room(100), *to = room(100);
	struct message m[2] = {0};
	struct gci_tp_stats s;
	struct padding p;
	struct world w;

	(void)state;
	world_open(&w, conformance_backend, 2, &link);
	p = (struct padding){&w, 3 * MIB};
	assert_int_equal(gci_tp_warm(w.tp[0], 1, MIB), 1);
	world_run(&w, has_padded, &p);
	assert_false(gci_tp_warm(w.tp[0], -1, 0));
	gci_tp_stats(w.tp[0], 1, &s);
	assert_true(s.tx_pad_nbytes == 3 * MIB && !s.tx_payload_nbytes);
	fill(from, 100, 3);
	send_to(&w, 0, &m[0], 1, 5, from, 100);
	recv_from(&w, 1, &m[1], 0, 5, to, 100);
	world_finish(&w, m, 2);
	assert_memory_equal(from, to, 100);
	/* No more than was asked for once. */
	assert_false(gci_tp_warm(w.tp[0], 1, MIB));
	world_close(&w);
	free(from);
	free(to);
}

/* Whoever wants the connections for itself. */
static void padding_ends_when_told(void **state)
{
	struct gci_tp_stats s;
	uint64_t before;
	struct world w;

	(void)state;
	world_open(&w, conformance_backend, 2, NULL);
	assert_int_equal(gci_tp_warm(w.tp[0], 1, 64 * (uint64_t)MIB), 1);
	assert_int_equal(gci_tp_warm(w.tp[0], -1, 1), -1);
	gci_tp_stats(w.tp[0], 1, &s);
	before = s.tx_pad_nbytes;
	steps(&w, 50);
	gci_tp_stats(w.tp[0], 1, &s);
	assert_true(s.tx_pad_nbytes == before);
	assert_int_equal(gci_tp_warm(w.tp[0], 1, MIB), -1);
	world_close(&w);
}

/* To one peer; others' goes on. */
static void padding_ends_for_a_peer(void **state)
{
	struct gci_tp_stats s;
	struct padding p;
	struct world w;

	(void)state;
	world_open(&w, conformance_backend, 3, NULL);
	p = (struct padding){&w, MIB / 2};
	assert_int_equal(gci_tp_warm(w.tp[0], 2, 0), 0);
	assert_int_equal(gci_tp_warm(w.tp[0], 2, 64 * (uint64_t)MIB), 1);
	assert_int_equal(gci_tp_warm(w.tp[0], 1, MIB / 2), 1);
	assert_int_equal(gci_tp_warm(w.tp[0], 2, 0), 1);
	world_run(&w, has_padded, &p);
	assert_int_equal(gci_tp_warm(w.tp[0], -1, 0), 0);
	gci_tp_stats(w.tp[0], 2, &s);
	assert_true(s.tx_pad_nbytes < 64 * (uint64_t)MIB);
	world_close(&w);
}

/* A request holds up its own peer's. */
static void padding_goes_beside_others_requests(void **state)
{
	uint8_t *from = room(MIB), *to = room(MIB);
	struct message m[2] = {0};
	struct gci_tp_stats s;
	struct padding p;
	struct world w;

	(void)state;
	world_open(&w, conformance_backend, 3, NULL);
	recv_from(&w, 0, &m[0], 2, 5, to, MIB);
	p = (struct padding){&w, MIB / 2};
	assert_int_equal(gci_tp_warm(w.tp[0], 1, MIB / 2), 1);
	assert_int_equal(gci_tp_warm(w.tp[0], 2, MIB / 2), 1);
	world_run(&w, has_padded, &p);
	steps(&w, 50);
	gci_tp_stats(w.tp[0], 2, &s);
	assert_true(!s.tx_pad_nbytes);
	assert_int_equal(gci_tp_warm(w.tp[0], -1, 0), 1);
	fill(from, MIB, 3);
	send_to(&w, 2, &m[1], 0, 5, from, MIB);
	world_finish(&w, m, 2);
	assert_memory_equal(from, to, MIB);
	world_close(&w);
	free(from);
	free(to);
}

/* Padding is for the time before the first bulk data. */
static void bulk_data_ends_padding(void **state)
{
	uint8_t *from = room(MIB), *to = room(MIB);
	struct message m[2] = {0};
	struct gci_tp_stats s;
	uint64_t before;
	struct world w;

	(void)state;
	world_open(&w, conformance_backend, 3, NULL);
	send_to(&w, 0, &m[0], 1, 5, from, MIB);
	assert_int_equal(gci_tp_warm(w.tp[0], 1, 64 * (uint64_t)MIB), 1);
	steps(&w, 50);
	gci_tp_stats(w.tp[0], 1, &s);
	assert_true(!s.tx_pad_nbytes); /* a request is under way */
	recv_from(&w, 1, &m[1], 0, 5, to, MIB);
	world_finish(&w, m, 2);
	assert_int_equal(gci_tp_warm(w.tp[0], -1, 0), -1);
	gci_tp_stats(w.tp[0], 1, &s);
	before = s.tx_pad_nbytes;
	steps(&w, 50);
	gci_tp_stats(w.tp[0], 1, &s);
	assert_true(s.tx_pad_nbytes == before);
	assert_int_equal(gci_tp_warm(w.tp[0], 2, MIB), -1);
	world_close(&w);
	free(from);
	free(to);
}

const struct CMUnitTest conformance_progress[] = {
	cmocka_unit_test(done_may_start_the_next),
	cmocka_unit_test(what_is_waited_for),
	cmocka_unit_test(padding_is_dropped),
	cmocka_unit_test(padding_ends_when_told),
	cmocka_unit_test(padding_ends_for_a_peer),
	cmocka_unit_test(padding_goes_beside_others_requests),
	cmocka_unit_test(bulk_data_ends_padding),
};

const size_t conformance_progress_n = sizeof(conformance_progress) / sizeof(*conformance_progress);
