/* SPDX-License-Identifier: MIT
 * Streams that are lost at any byte, and what is sent then: random messages between a few ranks
 * over the simulated network, one world for each seed. Each message must come once and whole, from
 * memory that its sender overwrites as soon as it may. */
#include "tests/transport/mem_world.h"

#include "base/prng.h"
#include "testing/network.h"
#include "transport/endpoint.h"

#include <stdlib.h>
#include <string.h>

#define NSEEDS   1500
#define MESSAGES 14
#define MOST     (300u << 10)

struct item {
	struct message send, recv;
	int from, to;
	int sent, asked; /* begun */
	uint64_t nbytes;
};

struct trial {
	struct world w;
	struct gci_prng prng;
	struct item items[MESSAGES];
	int nitems;
};

static struct trial t;
static uint8_t from[MESSAGES][MOST], to[MESSAGES][MOST], expected[MESSAGES][MOST];
static uint8_t times[MESSAGES][MOST];
static uint64_t nlost, nrestored, nagain, nfull;

static uint64_t below(uint64_t n)
{
	return gci_prng_below(&t.prng, n);
}

/* The sender's memory is its own again. */
static void on_sent(struct gci_tp_req *r, int status)
{
	struct message *m = r->user;

	m->ndone++;
	m->status = status;
	if (r->nbytes)
		memset(r->buf, 0xee, r->nbytes);
}

static uint64_t some_size(void)
{
	switch (below(8)) {
	case 0:
		return 0;
	case 1:
	case 2:
		return 1 + below(MOST);
	case 3:
		return 1 + below(64 << 10);
	default:
		return 1 + below(300);
	}
}

static void make_item(int i)
{
	struct item *it = &t.items[i];
	struct gci_tp_key key = {.tag = (uint32_t)i};

	memset(it, 0, sizeof(*it));
	it->from = (int)below((uint64_t)t.w.size);
	it->to = (it->from + 1 + (int)below((uint64_t)t.w.size - 1)) % t.w.size;
	it->nbytes = some_size();
	fill(expected[i], it->nbytes, below(UINT64_MAX));
	if (it->nbytes)
		memcpy(from[i], expected[i], it->nbytes);
	memset(to[i], 0, it->nbytes);
	memset(times[i], 0, it->nbytes);
	message_init(&it->send, it->to, key, from[i], it->nbytes);
	message_init(&it->recv, it->from, key, to[i], it->nbytes);
	it->send.r.done = on_sent;
	it->recv.times = times[i];
	if (below(2))
		it->recv.r.piece = on_piece;
}

static struct gci_ep *ep_of(int rank)
{
	return gci_mem_endpoint(t.w.tp[rank]);
}

/* Copies never take more than the link allows, and what was lost is not remembered for ever. */
static void check_bounds(void)
{
	int i, j;

	for (i = 0; i < t.w.size; i++)
		for (j = 0; j < t.w.size; j++) {
			const struct gci_ep_peer *p = ep_of(i)->peers[j];

			if (!p || !p->replay)
				continue;
			assert_true(p->replay->nbytes <= t.w.link.replay_nbytes);
			assert_true(p->replay->nlives <= mem_faults.most_losses + p->link.streams);
			nfull += p->replay->nbytes + 1000 > t.w.link.replay_nbytes;
		}
}

/* Begins something, at random. */
static void act(void)
{
	struct item *it = &t.items[below((uint64_t)t.nitems)];

	if (below(2) && !it->sent) {
		it->sent = 1;
		it->send.r.patient = (int)below(2);
		gci_tp_isend(t.w.tp[it->from], &it->send.r);
	} else if (!it->asked) {
		it->asked = 1;
		gci_tp_irecv(t.w.tp[it->to], &it->recv.r);
	} else if (it->sent && !it->send.ndone) { /* some only the one, some only the other */
		if ((it - t.items) % 3 ? (it - t.items) % 3 == 1 : below(2))
			gci_tp_detach(t.w.tp[it->from], &it->send.r);
		else
			gci_tp_ask(t.w.tp[it->from], &it->send.r);
	}
}

static int all_done(void)
{
	int i;

	for (i = 0; i < t.nitems; i++)
		if (!t.items[i].send.ndone || !t.items[i].recv.ndone)
			return 0;
	return 1;
}

static void run_messages(void)
{
	int i, idle = 0;

	while (!all_done()) {
		if (below(4) == 0)
			act();
		idle = gci_mem_net_step(t.w.private) ? 0 : idle + 1;
		check_bounds();
		if (idle > 2000)
			fail_msg("nothing moves, and not all is done");
	}
	for (i = 0; i < t.nitems; i++) {
		const struct item *it = &t.items[i];
		uint64_t k;

		assert_int_equal(it->send.status, 0);
		assert_int_equal(it->recv.status, 0);
		assert_int_equal(it->send.ndone, 1);
		assert_int_equal(it->recv.ndone, 1);
		if (it->nbytes)
			assert_memory_equal(to[i], expected[i], it->nbytes);
		for (k = 0; it->recv.r.piece && k < it->nbytes; k++)
			assert_int_equal(times[i][k], 1);
	}
}

static void count(void)
{
	struct gci_tp_stats s;
	int i, j;

	for (i = 0; i < t.w.size; i++)
		for (j = 0; j < t.w.size; j++) {
			gci_tp_stats(t.w.tp[i], j, &s);
			nlost += s.lost;
			nrestored += s.restored;
			nagain += s.again_frames;
		}
}

/* One after the other says goodbye; losses go on meanwhile. */
static void leave(void)
{
	int i, at = (int)below((uint64_t)t.w.size);

	for (i = 0; i < t.w.size; i++) {
		int rank = (at + i) % t.w.size;

		gci_tp_stop(t.w.tp[rank], 0);
		world_free_rank(&t.w, rank);
		assert_int_equal(t.w.nfailures[rank], 0);
	}
	for (i = 0; i < t.w.size; i++)
		assert_int_equal(t.w.nfailures[i], 0);
	world_close(&t.w);
}

static void try_seed(uint64_t seed)
{
	static const uint64_t rooms[] = {1, 5000, 200000, 64 << 20};
	static const uint32_t eager[] = {0, 2000, 64 << 10, 1 << 20};
	struct gci_tp_link link = {0};
	int i;

	memset(&t, 0, sizeof(t));
	t.prng.state = seed;
	mem_seed = seed;
	link.streams = 1 + (uint32_t)below(4);
	link.eager_nbytes = eager[below(4)];
	link.replay_nbytes = rooms[below(4)];
	mem_faults = (struct gci_mem_faults){.max_piece = 1 + (uint32_t)below(60000),
		.lose_every = 3 + (uint32_t)below(100),
		.most_losses = (uint32_t)below(40)};
	world_open(&t.w, &mem_backend, 2 + (int)below(2), &link);
	t.nitems = 1 + (int)below(MESSAGES);
	for (i = 0; i < t.nitems; i++)
		make_item(i);
	run_messages();
	count();
	leave();
}

static void lost_streams_cost_nothing_but_time(void **state)
{
	const char *only = getenv("GRIDCOLL_TEST_SEED");
	uint64_t seed;

	(void)state;
	for (seed = 1; seed <= NSEEDS; seed++) {
		if (only && strtoull(only, NULL, 10) != seed)
			continue;
		try_seed(seed);
	}
	memset(&mem_faults, 0, sizeof(mem_faults));
	print_message("%llu ends of streams lost, %llu made again, %llu frames sent again, copies "
		      "full %llu times\n",
		(unsigned long long)nlost, (unsigned long long)nrestored,
		(unsigned long long)nagain, (unsigned long long)nfull);
	if (only)
		return;
	assert_true(nlost > 10 * NSEEDS && nrestored > 5 * NSEEDS && nagain > NSEEDS);
	assert_true(nfull > NSEEDS);
}

static int tell_seed(void **state)
{
	(void)state;
	if (mem_faults.lose_every)
		print_message(
			"failed with GRIDCOLL_TEST_SEED=%llu\n", (unsigned long long)mem_seed);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(lost_streams_cost_nothing_but_time, tell_seed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
