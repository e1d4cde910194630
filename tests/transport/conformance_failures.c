/* SPDX-License-Identifier: MIT
 * What every backend must do when something goes wrong, or ends. */
#include "tests/transport/conformance.h"

#include "base/mem.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define MIB (1u << 20)

/* Both ranks notice, or the one of them that can. */
static void expect_failure(struct world *w, int rank, struct message *m, int status, int peer)
{
	world_finish(w, m, 1);
	assert_int_equal(m->status, status);
	assert_int_equal(m->ndone, 1);
	assert_int_equal(w->nfailures[rank], 1);
	assert_int_equal(w->failure[rank].status, status);
	assert_int_equal(w->failure[rank].peer, peer);
	assert_true(strlen(w->failure[rank].text) > 10);
	assert_int_equal(gci_tp_progress(w->tp[rank], 0), status);
}

static int credit_seen(void *arg)
{
	return ((struct world *)arg)->nchecked[0] > 0;
}

/* With an allowance the receiver sees it, from the data; without one the sender, from the
 * credit. */
static void mismatch(uint64_t nbytes, uint64_t digest, int by_credit)
{
	struct gci_tp_link link = {.streams = 1, .eager_nbytes = by_credit ? 0 : 4096};
	uint8_t from[64] = {0}, to[64];
	struct message m[2];
	struct world w;

	world_open(&w, conformance_backend, 2, &link);
	message_init(&m[0], 1, (struct gci_tp_key){.tag = 1}, from, 10);
	message_init(&m[1], 0, (struct gci_tp_key){.tag = 1}, to, nbytes);
	m[1].r.digest = digest;
	gci_tp_isend(w.tp[0], &m[0].r);
	steps(&w, 20);
	gci_tp_irecv(w.tp[1], &m[1].r);
	if (by_credit)
		expect_failure(&w, 0, &m[0], GCOLL_ERR_MISMATCH, 1);
	else
		expect_failure(&w, 1, &m[1], GCOLL_ERR_MISMATCH, 0);
	world_close(&w);
	/* The other order: the credit is there first. */
	world_open(&w, conformance_backend, 2, &link);
	m[0].ndone = m[1].ndone = 0;
	gci_tp_irecv(w.tp[1], &m[1].r);
	gci_tp_connect(w.tp[0], 1);
	world_run(&w, credit_seen, &w);
	gci_tp_isend(w.tp[0], &m[0].r);
	expect_failure(&w, 0, &m[0], GCOLL_ERR_MISMATCH, 1);
	world_close(&w);
}

static void different_lengths_are_a_mismatch(void **state)
{
	(void)state;
	mismatch(11, 77, 0);
	mismatch(11, 77, 1);
	mismatch(0, 77, 0);
}

static void different_digests_are_a_mismatch(void **state)
{
	(void)state;
	mismatch(10, 78, 0);
	mismatch(10, 78, 1);
}

static void refused_by_the_caller(void **state)
{
	uint8_t b[2] = {0};
	struct message m[2];
	struct world w;

	(void)state;
	world_open(&w, conformance_backend, 2, NULL);
	w.refuse[1] = 1;
	recv_from(&w, 1, &m[1], 0, 2, &b[1], 1);
	send_to(&w, 0, &m[0], 1, 1, &b[0], 1);
	expect_failure(&w, 1, &m[1], GCOLL_ERR_MISMATCH, 0);
	world_close(&w);
}

static void the_same_name_twice(void **state)
{
	uint8_t b[2] = {0};
	struct message m[2];
	struct world w;

	(void)state;
	world_open(&w, conformance_backend, 2, NULL);
	recv_from(&w, 1, &m[0], 0, 1, &b[0], 1);
	recv_from(&w, 1, &m[1], 0, 1, &b[1], 1);
	expect_failure(&w, 1, &m[1], GCOLL_ERR_PROTO, -1);
	assert_int_equal(m[0].status, GCOLL_ERR_PROTO);
	world_close(&w);
	world_open(&w, conformance_backend, 2, NULL);
	send_to(&w, 0, &m[0], 1, 1, &b[0], 1);
	send_to(&w, 0, &m[1], 1, 1, &b[1], 1);
	expect_failure(&w, 0, &m[1], GCOLL_ERR_PROTO, -1);
	world_close(&w);
}

static void no_such_peer(void **state)
{
	static const int wrong[] = {-1, 2, 0};
	struct message m;
	struct world w;
	size_t i;

	(void)state;
	for (i = 0; i < 3; i++) {
		world_open(&w, conformance_backend, 2, NULL);
		send_to(&w, 0, &m, wrong[i], 1, NULL, 0);
		assert_int_equal(m.ndone, 0);
		expect_failure(&w, 0, &m, GCOLL_ERR_INVAL, -1);
		world_close(&w);
	}
}

static void a_dead_peer(void **state)
{
	uint8_t b[2] = {0}, *big = room(8 * MIB);
	struct message m[6], late;
	struct world w;

	(void)state;
	world_open(&w, conformance_backend, 3, NULL);
	send_to(&w, 0, &m[0], 1, 1, &b[0], 1);
	recv_from(&w, 1, &m[1], 0, 1, &b[1], 1);
	send_to(&w, 2, &m[2], 1, 1, &b[0], 1); /* so that rank 2 is connected to 1, too */
	recv_from(&w, 1, &m[3], 2, 1, &b[1], 1);
	world_finish(&w, m, 4);
	recv_from(&w, 0, &m[4], 1, 2, big, 8 * MIB);
	send_to(&w, 2, &m[5], 1, 2, big, 8 * MIB);
	steps(&w, 5);
	world_free_rank(&w, 1);
	expect_failure(&w, 0, &m[4], GCOLL_ERR_PEER, 1);
	expect_failure(&w, 2, &m[5], GCOLL_ERR_PEER, 1);
	assert_non_null(strstr(w.failure[0].text, "rank 1"));
	send_to(&w, 0, &late, 2, 3, &b[0], 1); /* a live peer, but the transport is dead */
	assert_int_equal(late.ndone, 0);
	world_finish(&w, &late, 1);
	assert_int_equal(late.status, GCOLL_ERR_PEER);
	world_close(&w);
	free(big);
}

static void revoked_from_outside(void **state)
{
	uint8_t b[2];
	struct message m[2], late;
	struct world w;

	(void)state;
	world_open(&w, conformance_backend, 2, NULL);
	recv_from(&w, 0, &m[0], 1, 1, &b[0], 1);
	recv_from(&w, 0, &m[1], 1, 2, &b[1], 1);
	steps(&w, 10);
	gci_tp_fail(w.tp[0], GCOLL_ERR_ABORTED);
	gci_tp_fail(w.tp[0], GCOLL_ERR_TIMEOUT); /* the first one holds */
	assert_int_equal(m[0].ndone, 0);
	assert_int_equal(gci_tp_progress(w.tp[0], GCI_TP_FRAME_NBYTES), GCOLL_ERR_ABORTED);
	assert_int_equal(m[0].status, GCOLL_ERR_ABORTED);
	assert_int_equal(m[1].status, GCOLL_ERR_ABORTED);
	recv_from(&w, 0, &late, 1, 3, &b[0], 1);
	gci_tp_progress(w.tp[0], 0);
	assert_int_equal(late.status, GCOLL_ERR_ABORTED);
	assert_int_equal(w.nfailures[0], 0);
	world_close(&w);
}

static void *wake_later(void *arg)
{
	struct world *w = arg;

	gci_tp_wake(w->tp[0]);
	return NULL;
}

static void wake_ends_a_wait(void **state)
{
	struct message m;
	pthread_t thread;
	struct world w;
	uint8_t b;

	(void)state;
	world_open(&w, conformance_backend, 2, NULL);
	recv_from(&w, 0, &m, 1, 1, &b, 1); /* never sent */
	steps(&w, 10);
	assert_int_equal(pthread_create(&thread, NULL, wake_later, &w), 0);
	/* Were it not for the wake, the test's time-out would end this. */
	assert_int_equal(gci_tp_progress(w.tp[0], 3600ull * 1000000000), 0);
	pthread_join(thread, NULL);
	assert_int_equal(m.ndone, 0);
	world_close(&w);
}

static void ends_with_requests_outstanding(void **state)
{
	struct message m[8];
	uint8_t b[8] = {0}, *big = room(4 * MIB);
	struct world w;
	int with_stop, i;

	(void)state;
	for (with_stop = 0; with_stop < 2; with_stop++) {
		world_open(&w, conformance_backend, 2, NULL);
		recv_from(&w, 0, &m[0], 1, 1, &b[0], 1);
		send_to(&w, 0, &m[1], 1, 2, big, 4 * MIB);
		recv_from(&w, 1, &m[2], 0, 2, big, 4 * MIB);
		send_to(&w, 1, &m[3], 0, 9, &b[3], 1);
		steps(&w, 3);
		for (i = 0; i < 4; i++)
			m[i].ndone = 0;
		if (with_stop)
			gci_tp_stop(w.tp[0], 1000000);
		world_free_rank(&w, 0);
		assert_int_equal(m[0].ndone + m[1].ndone, 0);
		m[2].ndone = m[3].ndone = 0;
		world_free_rank(&w, 1);
		assert_int_equal(m[2].ndone + m[3].ndone, 0);
		world_close(&w);
	}
	free(big);
}

static int has_failed(void *arg)
{
	struct world *w = arg;

	return w->nfailures[1] > 0;
}

/* A goodbye is no death, but then nothing more may be expected. */
static void goodbye(void **state)
{
	uint8_t b[2] = {0};
	struct message m[3];
	struct world w;

	(void)state;
	world_open(&w, conformance_backend, 2, NULL);
	send_to(&w, 0, &m[0], 1, 1, &b[0], 1);
	recv_from(&w, 1, &m[1], 0, 1, &b[1], 1);
	world_finish(&w, m, 2);
	gci_tp_stop(w.tp[0], 1000000);
	world_free_rank(&w, 0);
	steps(&w, 50);
	assert_int_equal(w.nfailures[1], 0);
	recv_from(&w, 1, &m[2], 0, 2, &b[1], 1);
	world_run(&w, has_failed, &w);
	assert_int_equal(w.failure[1].status, GCOLL_ERR_PEER);
	assert_int_equal(m[2].status, GCOLL_ERR_PEER);
	world_close(&w);
}

/* Those who have left may be asked for what came from them before. */
static void early_before_a_goodbye(void **state)
{
	uint8_t from[1000], to[1000] = {0};
	struct message m[2];
	struct world w;

	(void)state;
	fill(from, sizeof(from), 1);
	world_open(&w, conformance_backend, 2, NULL);
	send_to(&w, 0, &m[0], 1, 1, from, sizeof(from));
	world_finish(&w, m, 1);
	gci_tp_stop(w.tp[0], 1000000);
	world_free_rank(&w, 0);
	steps(&w, 50);
	recv_from(&w, 1, &m[1], 0, 1, to, sizeof(to));
	world_finish(&w, &m[1], 1);
	assert_int_equal(m[1].status, 0);
	assert_memory_equal(from, to, sizeof(from));
	assert_int_equal(w.nfailures[1], 0);
	world_close(&w);
}

/* What was handed over before stop arrives, though nobody waits for it yet. */
static void stop_flushes(void **state)
{
	enum { N = 10, EACH = 5000 };
	static uint8_t from[N][EACH], to[N][EACH];
	struct message m[2 * N];
	struct world w;
	int i;

	(void)state;
	memset(to, 0, sizeof(to));
	world_open(&w, conformance_backend, 2, NULL);
	for (i = 0; i < N; i++) {
		fill(from[i], EACH, (uint64_t)i);
		recv_from(&w, 1, &m[N + i], 0, (uint32_t)i, to[i], EACH);
	}
	if (world_encrypted) /* a handshake takes both sides */
		gci_tp_connect(w.tp[0], 1);
	steps(&w, 30);
	for (i = 0; i < N; i++)
		send_to(&w, 0, &m[i], 1, (uint32_t)i, from[i], EACH);
	gci_tp_stop(w.tp[0], 50000000);
	world_finish(&w, m + N, N);
	for (i = 0; i < N; i++)
		assert_int_equal(m[N + i].status, 0);
	assert_memory_equal(from, to, sizeof(from));
	assert_int_equal(w.nfailures[1], 0);
	world_close(&w);
}

/* Both ways, early, asked for, in pieces: every allocation of a run fails once. */
struct shortage {
	struct world w;
	struct message m[12];
};

static int rank_of(int i)
{
	return i < 6 ? i % 2 : i % 2 + 1;
}

/* All is done, or all that a failed rank had. */
static int any_end(void *arg)
{
	struct shortage *s = arg;
	int i, missing = 0, failed = 0;

	for (i = 0; i < 12; i++) {
		int broken = s->w.nfailures[rank_of(i)];

		failed |= broken;
		missing |= !s->m[i].ndone && broken;
	}
	for (i = 0; i < 12 && !failed; i++)
		missing |= !s->m[i].ndone;
	return !missing;
}

static int run_short_of_memory(unsigned long nth)
{
	static uint8_t from[70000], to[6][70000], times[70000];
	struct gci_tp_link link = {.streams = 2, .eager_nbytes = 64 << 10};
	struct shortage s = {0};
	int i, failed;

	memset(times, 0, sizeof(times));
	gci_mem_fail_at(nth);
	if (world_try_open(&s.w, conformance_backend, 3, &link)) {
		failed = gci_mem_failed();
		gci_mem_fail_at(0);
		return failed;
	}
	gci_tp_pace(s.w.tp[1], 1, &(struct gci_pace){.by = GCI_PACED_BY_US, .bps = 1000000000});
	gci_tp_warm(s.w.tp[0], 1, 10000);
	recv_from(&s.w, 1, &s.m[10], 0, 4, to[4], 70000); /* its credit is there first */
	steps(&s.w, 20);
	for (i = 0; i < 6; i++) {
		send_to(&s.w, i % 2, &s.m[i], i % 2 + 1, (uint32_t)i, from, i < 4 ? 1000 : 70000);
		if (i == 3)
			steps(&s.w, 20);
	}
	for (i = 0; i < 6; i++) {
		if (i == 4)
			continue;
		message_init(&s.m[6 + i], i % 2, (struct gci_tp_key){.tag = (uint32_t)i}, to[i],
			i < 4 ? 1000 : 70000);
		if (i == 5) {
			s.m[6 + i].r.piece = on_piece;
			s.m[6 + i].times = times;
		}
		gci_tp_irecv(s.w.tp[i % 2 + 1], &s.m[6 + i].r);
	}
	world_run(&s.w, any_end, &s);
	failed = gci_mem_failed();
	gci_mem_fail_at(0);
	for (i = 0; i < 12; i++) {
		int rank = rank_of(i);

		if (!s.w.nfailures[rank])
			continue;
		assert_int_equal(s.m[i].ndone, 1);
		assert_true(s.w.failure[rank].status < 0);
	}
	world_close(&s.w);
	return failed;
}

static void any_allocation_may_fail(void **state)
{
	unsigned long n = 1;

	(void)state;
	while (run_short_of_memory(n))
		n++;
	assert_true(n > 20);
}

const struct CMUnitTest conformance_failures[] = {
	cmocka_unit_test(different_lengths_are_a_mismatch),
	cmocka_unit_test(different_digests_are_a_mismatch),
	cmocka_unit_test(refused_by_the_caller),
	cmocka_unit_test(the_same_name_twice),
	cmocka_unit_test(no_such_peer),
	cmocka_unit_test(a_dead_peer),
	cmocka_unit_test(revoked_from_outside),
	cmocka_unit_test(wake_ends_a_wait),
	cmocka_unit_test(ends_with_requests_outstanding),
	cmocka_unit_test(goodbye),
	cmocka_unit_test(early_before_a_goodbye),
	cmocka_unit_test(stop_flushes),
	cmocka_unit_test(any_allocation_may_fail),
};

const size_t conformance_failures_n = sizeof(conformance_failures) / sizeof(*conformance_failures);
