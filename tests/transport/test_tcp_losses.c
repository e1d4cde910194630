/* SPDX-License-Identifier: MIT
 * Real connections that are cut while ranks send to each other, and peers that are really dead. */
#include "tests/captured.h"
#include "tests/failing/failing.h"
#include "tests/transport/cutter.h"

#include "base/clock.h"
#include "transport/tcp_impl.h"

#include <errno.h>
#include <linux/filter.h>
#include <stdlib.h>
#include <string.h>

#define RANKS 3

static struct cutter cutter;

static void through_cutter(int size, char addrs[][GCI_ADDRESS_TEXT])
{
	cutter_open(&cutter, size, addrs);
}

static int step(struct world *w)
{
	own_step(w);
	cutter_step(&cutter);
	return 1;
}

static struct backend cut_tcp;

static void open_link(struct world *w, int size, uint64_t cut_every, struct gci_tp_link *link)
{
	cut_tcp = own;
	cut_tcp.step = step;
	memset(&cutter, 0, sizeof(cutter));
	cutter.prng.state = cut_every + link->replay_nbytes;
	cutter.cut_every = cut_every;
	cutter.most_cuts = 40;
	reroute = through_cutter;
	world_open(w, &cut_tcp, size, link);
	reroute = NULL;
}

static void open_cut(struct world *w, int size, uint64_t cut_every, uint64_t replay_nbytes)
{
	struct gci_tp_link link = {.streams = 3,
		.eager_nbytes = 64 << 10,
		.replay_nbytes = replay_nbytes,
		.dead_ns = 20 * GCI_NS_PER_S};

	open_link(w, size, cut_every, &link);
}

static void expect_no_failure(const struct world *w)
{
	int i;

	for (i = 0; i < w->size; i++)
		if (w->nfailures[i])
			fail_msg("rank %d: %s", i, w->failure[i].text);
}

static uint64_t total(struct world *w, int restored)
{
	struct gci_tp_stats s;
	uint64_t n = 0;
	int i, j;

	for (i = 0; i < w->size; i++)
		for (j = 0; j < w->size; j++) {
			gci_tp_stats(w->tp[i], j, &s);
			n += restored ? s.restored : s.lost;
		}
	return n;
}

/* Both ends of all streams between ranks 0 and 1. */
static int are_open(void *arg)
{
	struct world *w = arg;
	unsigned k;
	int i;

	for (i = 0; i < 2; i++) {
		struct gci_tcp *t = gci_container(w->tp[i], struct gci_tcp, tp);
		struct gci_tcp_peer *p = t->peers[1 - i];

		for (k = 0; k < w->link.streams; k++)
			if (!p || !p->conns[k] || p->conns[k]->state != GCI_CONN_OPEN)
				return 0;
	}
	return 1;
}

/* One stream may carry all that is exchanged before the others are there. A cut is a loss of all of them
 * only now. */
static void exchange_and_open_all(struct world *w)
{
	exchange(w);
	world_run(w, are_open, w);
}

/* All to all, short and long, both ways, while about every `cut_every` bytes a connection ends. */
static void exchange_through_cuts(uint64_t cut_every, uint64_t replay_nbytes)
{
	enum { N = 24 };
	static const size_t sizes[] = {3 << 20, 100, 70000, 1 << 20, 0, 60000};
	struct message sent[N], got[N];
	uint8_t *from[N], *to[N];
	struct world w;
	int i;

	open_cut(&w, RANKS, cut_every, replay_nbytes);
	for (i = 0; i < N; i++) {
		size_t n = sizes[i % 6];
		int a = i % RANKS, b = (a + 1 + i / RANKS % 2) % RANKS;

		from[i] = room(n);
		to[i] = room(n);
		fill(from[i], n, (uint64_t)i);
		recv_from(&w, b, &got[i], a, (uint32_t)i, to[i], n);
		send_to(&w, a, &sent[i], b, (uint32_t)i, from[i], n);
		sent[i].r.patient = 1; /* goes out in progress only */
		if (i % 2)
			gci_tp_detach(w.tp[a], &sent[i].r);
	}
	world_finish(&w, got, N);
	for (i = 0; i < N; i++)
		if (!sent[i].ndone)
			gci_tp_ask(w.tp[i % RANKS], &sent[i].r);
	world_finish(&w, sent, N);
	expect_no_failure(&w);
	for (i = 0; i < N; i++) {
		assert_int_equal(got[i].status, 0);
		assert_int_equal(sent[i].status, 0);
		assert_memory_equal(from[i], to[i], sizes[i % 6]);
		free(from[i]);
		free(to[i]);
	}
	assert_true(cutter.ncuts > 5);
	assert_true(total(&w, 0) > 5);
	assert_true(total(&w, 1) > 0);
	world_close(&w);
	cutter_close(&cutter);
}

static void cuts_cost_nothing_but_time(void **state)
{
	(void)state;
	exchange_through_cuts(1 << 20, 8 << 20);
	exchange_through_cuts(300000, 100000); /* there is room for few copies only */
}

static uint64_t expected;

static int are_restored(void *arg)
{
	return total(arg, 1) >= expected;
}

/* Nothing is under way, or little, and no stream is left to tell. */
static void all_connections_at_once(void **state)
{
	struct world w;
	int i;

	(void)state;
	open_cut(&w, 2, 0, 1 << 20);
	exchange_and_open_all(&w);
	for (i = 1; i <= 3; i++) {
		cutter_cut_all(&cutter);
		if (i % 2)
			exchange(&w);
		expected = 6 * (uint64_t)i; /* both ends of three streams */
		world_run(&w, are_restored, &w);
		assert_int_equal(total(&w, 0), expected);
	}
	exchange(&w);
	expect_no_failure(&w);
	world_close(&w);
	cutter_close(&cutter);
}

/* When the peer has made it again. */
static void a_loss_is_warned_of_when_the_job_goes_on(void **state)
{
	struct captured log;
	struct world w;

	(void)state;
	open_cut(&w, 2, 0, 1 << 20);
	exchange_and_open_all(&w);
	log = capture_begin();
	cutter_cut_all(&cutter);
	cutter_end_cuts(&cutter);
	gci_tp_progress(w.tp[0], 50 * GCI_NS_PER_MS);
	capture_end(&log);
	assert_string_equal(log.text, "");

	log = capture_begin();
	expected = 6;
	world_run(&w, are_restored, &w);
	capture_end(&log);
	assert_non_null(strstr(log.text, "lost stream "));
	assert_non_null(strstr(log.text, "; it is connected again"));
	assert_null(strstr(log.text, "every lost stream"));
	exchange(&w);
	expect_no_failure(&w);
	world_close(&w);
	cutter_close(&cutter);
}

/* Rank 1 is reached again only when the loss has been warned of. */
static void the_end_of_a_long_loss_is_a_warning_too(void **state)
{
	struct captured log;
	struct world w;
	int i;

	(void)state;
	open_cut(&w, 2, 0, 1 << 20);
	exchange_and_open_all(&w);
	log = capture_begin();
	cutter_cut_all(&cutter);
	cutter_end_cuts(&cutter);
	for (i = 0; i < 1000 && !captured_times(&log, ", reconnecting"); i++) {
		gci_tp_progress(w.tp[0], 50 * GCI_NS_PER_MS);
		gci_sleep_ns(20 * GCI_NS_PER_MS);
		capture_look(&log);
	}
	capture_end(&log);
	assert_int_equal(captured_times(&log, ", reconnecting"), 1);
	assert_null(strstr(log.text, "connected again"));

	log = capture_begin();
	world_run(&w, are_open, &w);
	capture_end(&log);
	assert_int_equal(
		captured_times(&log, "rank 0: every lost stream to rank 1 is connected again"), 1);
	exchange(&w);
	expect_no_failure(&w);
	world_close(&w);
	cutter_close(&cutter);
}

/* Both ranks compute for longer than dead_ns, again and again, at any time after they have lost all
 * connections. */
static void who_computes_takes_nobody_for_dead(void **state)
{
	struct gci_tp_link link = {.streams = 1,
		.eager_nbytes = 64 << 10,
		.replay_nbytes = 1 << 20,
		.dead_ns = 50 * GCI_NS_PER_MS};
	struct world w;
	int i;

	(void)state;
	open_link(&w, 2, 0, &link);
	exchange(&w);
	for (i = 0; i < 16; i++) {
		cutter_cut_all(&cutter);
		steps(&w, 1 + 20 * (i % 4));
		gci_sleep_ns(2 * link.dead_ns);
		if (i % 4 == 3)
			exchange(&w);
	}
	exchange(&w);
	expect_no_failure(&w);
	world_close(&w);
	cutter_close(&cutter);
}

static int none_is_spoilt(void *arg)
{
	(void)arg;
	return !cutter.nspoilt;
}

/* What takes a lost connection's place may be damaged, too. */
static void damaged_from_the_beginning(void **state)
{
	struct world w;

	(void)state;
	open_cut(&w, 2, 0, 1 << 20);
	exchange_and_open_all(&w);
	cutter.nspoilt = 8;
	cutter_cut_all(&cutter);
	exchange(&w);
	world_run(&w, none_is_spoilt, &w);
	expected = 6;
	world_run(&w, are_restored, &w);
	exchange(&w);
	expect_no_failure(&w);
	world_close(&w);
	cutter_close(&cutter);
}

/* The host of the other rank is there, but nothing of the rank. */
static void nobody_listens_any_more(void **state)
{
	struct message m;
	struct world w;
	uint8_t b;

	(void)state;
	open_cut(&w, 2, 0, 1 << 20);
	exchange(&w);
	recv_from(&w, 0, &m, 1, 9, &b, 1);
	cutter_deafen(&cutter, 1);
	cutter_cut_all(&cutter);
	world_finish(&w, &m, 1);
	assert_int_equal(m.status, GCOLL_ERR_PEER);
	assert_int_equal(w.failure[0].peer, 1);
	assert_non_null(strstr(w.failure[0].text, "rank 1 died"));
	assert_non_null(strstr(w.failure[0].text, "nobody listened"));
	world_close(&w);
	cutter_close(&cutter);
}

/* Both who connects to it and who waits for it find out, and not by a time-out: that is longer than
 * the test may last. */
static void a_killed_process_is_noticed(void **state)
{
	const uint64_t never = 3600ull * 1000000000;
	struct gci_tp_link link = {.streams = 2, .replay_nbytes = 1 << 20, .dead_ns = never};

	(void)state;
	a_rank_is_killed(KILLED_RECEIVING, &link);
}

/* What comes to one connection of rank 1's is lost from now on, below TCP. */
static void mute(struct world *w, unsigned stream)
{
	struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
	const struct sock_fprog all = {1, &nothing};
	struct gci_tcp *t = gci_container(w->tp[1], struct gci_tcp, tp);

	assert_int_equal(setsockopt(t->peers[0]->conns[stream]->fd, SOL_SOCKET, SO_ATTACH_FILTER,
				 &all, sizeof(all)),
		0);
}

static int nasked; /* in vain, of TCP, while no stream was lost */

/* Each place that asks the kernel fails once, first what asks whether a stream is silent, then what
 * asks whether another is not. They ask again. */
static int step_in_ignorance(struct world *w)
{
	if (failing_happened(FAILING_getsockopt) && !total(w, 0)) {
		nasked++;
		failing_anew(FAILING_getsockopt, ENOBUFS);
	}
	if (nasked == 2)
		failing_at(FAILING_getsockopt, 0, 0);
	return own_step(w);
}

/* The other stream has long taken what it did not carry, when its silence would count as death. */
static void a_mute_stream_is_given_up_early(void **state)
{
	const struct gci_tp_link link = {.streams = 2,
		.eager_nbytes = 64 << 10,
		.replay_nbytes = 8 << 20,
		.dead_ns = 4 * GCI_NS_PER_S};
	static uint8_t from[8 << 20], to[8 << 20];
	struct backend ignorant = own;
	struct message m[2];
	struct world w;
	uint64_t begin_ns;

	(void)state;
	ignorant.step = step_in_ignorance;
	world_open(&w, &ignorant, 2, &link);
	exchange(&w);
	mute(&w, 1);
	nasked = 0;
	failing_forget(FAILING_getsockopt);
	failing_anew(FAILING_getsockopt, ENOBUFS);
	fill(from, sizeof(from), 1);
	begin_ns = gci_now_ns();
	recv_from(&w, 1, &m[0], 0, 7, to, sizeof(to));
	send_to(&w, 0, &m[1], 1, 7, from, sizeof(from));
	world_finish(&w, m, 2);
	assert_true(gci_now_ns() - begin_ns < link.dead_ns);
	expect_no_failure(&w);
	assert_in_range(nasked, 1, 2); /* one place where the compiler has not inlined what asks */
	assert_memory_equal(from, to, sizeof(to));
	assert_true(total(&w, 0) > 0);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cuts_cost_nothing_but_time),
		cmocka_unit_test(all_connections_at_once),
		cmocka_unit_test(a_loss_is_warned_of_when_the_job_goes_on),
		cmocka_unit_test(the_end_of_a_long_loss_is_a_warning_too),
		cmocka_unit_test(who_computes_takes_nobody_for_dead),
		cmocka_unit_test(damaged_from_the_beginning),
		cmocka_unit_test(nobody_listens_any_more),
		cmocka_unit_test(a_killed_process_is_noticed),
		cmocka_unit_test(a_mute_stream_is_given_up_early),
	};

	choose_path();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
