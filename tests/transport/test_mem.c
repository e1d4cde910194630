/* SPDX-License-Identifier: MIT */
#include "tests/failing/failing.h"
#include "tests/transport/mem_world.h"

#include "base/prng.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint64_t replay_nbytes, nrefused;

/* A few messages; returns a digest of everything that was seen, and when. */
static uint64_t run(uint64_t with_seed, int *status)
{
	enum { N = 10, EACH = 100000 };
	static uint8_t from[N][EACH], to[N][EACH];
	struct gci_tp_link link = {
		.streams = 3, .eager_nbytes = 64 << 10, .replay_nbytes = replay_nbytes};
	struct gci_tp_stats s;
	struct message m[2 * N];
	uint64_t digest = 0, step = 0;
	struct world w;
	int i;

	mem_seed = with_seed;
	memset(to, 0, sizeof(to));
	world_open(&w, &mem_backend, 2, &link);
	for (i = 0; i < N; i++) {
		fill(from[i], EACH, (uint64_t)i);
		send_to(&w, 0, &m[i], 1, (uint32_t)i, from[i], EACH);
		recv_from(&w, 1, &m[N + i], 0, (uint32_t)i, to[i], EACH);
	}
	while (gci_mem_net_step(w.private))
		for (i = 0, step++; i < 2 * N; i++)
			digest = gci_digest(digest, m[i].ndone ? step : 0);
	*status = gci_tp_progress(w.tp[1], 0);
	for (i = 0; *status && i < N; i++)
		assert_int_equal(m[N + i].ndone, 1);
	if (!*status)
		*status = gci_tp_progress(w.tp[0], 0);
	if (!*status)
		assert_memory_equal(from, to, sizeof(from));
	for (i = 0; i < 2; i++) {
		gci_tp_stats(w.tp[i], 1 - i, &s);
		nrefused += s.refused;
	}
	world_close(&w);
	mem_seed = 1;
	return digest;
}

static void same_seed_same_run(void **state)
{
	int status;
	uint64_t a;

	(void)state;
	mem_faults.max_piece = 5000;
	a = run(42, &status);
	assert_int_equal(status, 0);
	assert_true(a == run(42, &status));
	assert_true(a != run(43, &status));
	memset(&mem_faults, 0, sizeof(mem_faults));
}

static void tiny_pieces_and_stalls(void **state)
{
	int status;

	(void)state;
	mem_faults.max_piece = 50;
	mem_faults.stall_percent = 50;
	run(7, &status);
	assert_int_equal(status, 0);
	memset(&mem_faults, 0, sizeof(mem_faults));
}

/* Wherever it hits, header, payload or credit; and whichever rank sees it. */
static void a_flipped_bit_is_found(void **state)
{
	struct gci_prng prng = {9};
	uint64_t s;

	(void)state;
	for (s = 1; s < 60; s++) {
		int status;

		mem_faults.flip_after = 1 + gci_prng_below(&prng, s % 3 ? 900000 : 600);
		mem_faults.max_piece = 20000;
		run(s, &status);
		assert_int_equal(status, GCOLL_ERR_CORRUPT);
	}
	memset(&mem_faults, 0, sizeof(mem_faults));
}

/* ... and where lost frames are sent again, so is that one. */
static void a_flipped_bit_is_repaired(void **state)
{
	struct gci_prng prng = {10};
	uint64_t s;

	(void)state;
	replay_nbytes = 1 << 20;
	for (s = 1; s < 60; s++) {
		int status;

		mem_faults.flip_after = 1 + gci_prng_below(&prng, s % 3 ? 900000 : 600);
		mem_faults.max_piece = 20000;
		nrefused = 0;
		run(s, &status);
		assert_int_equal(status, 0);
		assert_int_equal(nrefused, 1);
	}
	replay_nbytes = 0;
	memset(&mem_faults, 0, sizeof(mem_faults));
}

static int nothing_moves(void *arg)
{
	return !gci_mem_net_step(((struct world *)arg)->private);
}

/* A rank that has none to remember whom to call again fails. */
static void a_lost_stream_and_no_memory(void **state)
{
	const struct gci_tp_link link = {
		.streams = 2, .eager_nbytes = 1000, .replay_nbytes = 1 << 20};
	static uint8_t from[100000], to[100000];
	int happened = 1, ncalls = 0;
	struct message m[2];
	struct world w;

	(void)state;
	mem_faults = (struct gci_mem_faults){.lose_every = 20, .most_losses = 2, .max_piece = 999};
	failing_forget(FAILING_gci_grow);
	while (happened) {
		world_open(&w, &mem_backend, 2, &link);
		failing_anew(FAILING_gci_grow, ENOMEM);
		send_to(&w, 0, &m[0], 1, 1, from, sizeof(from));
		recv_from(&w, 1, &m[1], 0, 1, to, sizeof(to));
		world_run(&w, nothing_moves, &w);
		happened = failing_happened(FAILING_gci_grow);
		failing_at(FAILING_gci_grow, 0, 0);
		if (w.nfailures[0]) {
			assert_int_equal(w.failure[0].status, GCOLL_ERR_NOMEM);
			assert_int_equal(m[0].ndone, 1);
			ncalls += !strcmp(w.failure[0].text, "out of memory to call rank 1 again");
		}
		assert_true(happened || (m[0].ndone && !m[0].status && m[1].ndone));
		world_close(&w);
	}
	assert_int_equal(ncalls, 1);
	memset(&mem_faults, 0, sizeof(mem_faults));
}

static void a_killed_rank(void **state)
{
	struct message m[2];
	static uint8_t from[4 << 20], to[4 << 20];
	struct world w;

	(void)state;
	mem_faults = (struct gci_mem_faults){.kill_after = 40, .kill_rank = 0, .max_piece = 10000};
	world_open(&w, &mem_backend, 2, NULL);
	send_to(&w, 0, &m[0], 1, 1, from, sizeof(from));
	recv_from(&w, 1, &m[1], 0, 1, to, sizeof(to));
	world_finish(&w, m, 2);
	assert_int_equal(m[0].status, GCOLL_ERR_ABORTED);
	assert_int_equal(m[1].status, GCOLL_ERR_PEER);
	assert_int_equal(w.nfailures[0], 0);
	assert_int_equal(w.failure[1].peer, 0);
	world_close(&w);
	memset(&mem_faults, 0, sizeof(mem_faults));
}

static void a_deadlock_is_told(void **state)
{
	struct message m;
	struct world w;
	uint8_t b;
	int n;

	(void)state;
	world_open(&w, &mem_backend, 2, NULL);
	recv_from(&w, 0, &m, 1, 1, &b, 1);
	for (n = 0; gci_mem_net_step(w.private); n++)
		assert_true(n < 1000);
	assert_int_equal(m.ndone, 0);
	world_close(&w);
}

static void different_links(void **state)
{
	struct message m;
	struct world w;
	uint8_t b;

	(void)state;
	differing_rank = 0;
	world_open(&w, &mem_backend, 2, NULL);
	recv_from(&w, 0, &m, 1, 1, &b, 1);
	world_finish(&w, &m, 1);
	differing_rank = -1;
	assert_int_equal(m.status, GCOLL_ERR_MISMATCH);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest more[] = {
		cmocka_unit_test(same_seed_same_run),
		cmocka_unit_test(tiny_pieces_and_stalls),
		cmocka_unit_test(a_flipped_bit_is_found),
		cmocka_unit_test(a_flipped_bit_is_repaired),
		cmocka_unit_test(a_lost_stream_and_no_memory),
		cmocka_unit_test(a_killed_rank),
		cmocka_unit_test(a_deadlock_is_told),
		cmocka_unit_test(different_links),
	};

	int failed = conformance_main(&mem_backend, more, sizeof(more) / sizeof(*more));

	world_replay_nbytes = 1 << 20;
	return failed + conformance_main(&mem_backend, NULL, 0);
}
