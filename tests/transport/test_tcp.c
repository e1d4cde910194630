/* SPDX-License-Identifier: MIT
 * The conformance suite over TCP; who may connect; waiting; threads. */
#include "tests/transport/tcp_world.h"

#include "transport/address.h"

#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void ipv6(void **state)
{
	struct world w;
	int fd = socket(AF_INET6, SOCK_STREAM, 0);
	struct gci_address a;

	(void)state;
	assert_int_equal(gci_address_make(&a, "::1", 0), 0);
	if (fd < 0 || bind(fd, &a.any, a.len)) {
		close(fd);
		skip();
	}
	close(fd);
	listen_ip = "::1";
	world_open(&w, &own, 2, NULL);
	listen_ip = "127.0.0.1";
	assert_int_equal(last_addrs[0][0], '[');
	exchange(&w);
	world_close(&w);
}

/* What $GCI_TEST_PATH means for all the tests here. */
static void the_path_that_was_asked_for(void **state)
{
	const char *asked = getenv("GCI_TEST_PATH");
	struct world w;

	(void)state;
	world_open(&w, &own, 2, NULL);
	assert_string_equal(gci_tcp_path(w.tp[0]), "");
	exchange(&w);
	assert_string_equal(
		gci_tcp_path(w.tp[0]), asked && !strcmp(asked, "uring") ? "uring" : "poll");
	world_close(&w);
}

static int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void no_descriptor_is_left(void **state)
{
	struct gci_tp_link link = {.streams = 4, .eager_nbytes = 1000, .dead_ns = 5000000000ull};
	struct world w;
	int before, i;

	(void)state;
	for (i = 0; i < 3; i++) {
		if (i == 1)
			before = count_fds(); /* the first round may open what stays */
		world_open(&w, &own, 2, &link);
		close(knock(last_addrs[0]));
		exchange(&w);
		world_close(&w);
	}
	assert_int_equal(count_fds(), before);
}

/* Who can only be reached by IPv6, from where there is none. */
static void no_family_in_common(void **state)
{
	int before = count_fds();
	struct world w;

	(void)state;
	assert_null(lonely(&w, "[fd00::7]:5000", 0));
	assert_int_equal(count_fds(), before);
}

static double cpu_s(void)
{
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
	       (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

/* Also with connections that cannot be taken, and one that has ended. */
static void waiting_costs_nothing(void **state)
{
	struct rlimit was, low;
	double cpu;
	struct world w;
	struct message m;
	uint8_t b;
	int fds[3], i;

	(void)state;
	world_open(&w, &own, 2, NULL);
	exchange(&w);
	recv_from(&w, 1, &m, 0, 7, &b, 1);
	for (i = 0; i < 3; i++)
		fds[i] = knock(last_addrs[1]);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	low = was;
	low.rlim_cur = (rlim_t)fds[2] + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	cpu = cpu_s();
	for (i = 0; i < 4; i++)
		assert_int_equal(gci_tp_progress(w.tp[1], 200000000), 0);
	cpu = cpu_s() - cpu;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_true(cpu < 0.1); /* of the CPU's time, not the clock's: a spin takes 0.8 */
	for (i = 0; i < 3; i++)
		close(fds[i]);
	exchange(&w);
	assert_int_equal(w.nfailures[0] + w.nfailures[1], 0);
	world_close(&w);
}

/* What the link asks for is what the sockets have, on both sides; and that can be looked at. */
static void sockets_of_a_link(void **state)
{
	struct gci_tp_link link = {
		.streams = 2, .eager_nbytes = 1000, .congestion = "reno", .sockbuf_nbytes = 50000};
	struct gci_tp_stats s;
	struct world w;
	int i;

	(void)state;
	world_open(&w, &own, 3, &link);
	exchange(&w);
	for (i = 0; i < 2; i++) {
		gci_tp_stats(w.tp[i], 1 - i, &s);
		assert_string_equal(s.socket.congestion, "reno");
		assert_int_equal(s.socket.sndbuf_nbytes, 100000);
		assert_int_equal(s.socket.rcvbuf_nbytes, 100000);
		assert_true(s.socket.sndbuf_set && s.socket.rcvbuf_set);
		assert_true(s.socket.mss_nbytes > 0);
	}
	gci_tp_stats(w.tp[0], 2, &s); /* never needed */
	assert_string_equal(s.socket.congestion, "");
	assert_int_equal(s.socket.sndbuf_nbytes, 0);
	world_close(&w);
}

/* Rank 0's connections to rank 1, as the kernel has them. */
static struct gci_tp_socket sockets_of(struct world *w)
{
	struct gci_tp_stats s;

	gci_tp_stats(w->tp[0], 1, &s);
	return s.socket;
}

static void sockets_are_told_their_rate(void **state)
{
	struct gci_tp_link link = {.streams = 1, .eager_nbytes = 1000, .pace_group = 3};
	struct gci_pace pace = {.by = GCI_PACED_BY_FQ, .bps = 800000000};
	struct gci_tp_socket s;
	struct gci_wire wire;
	struct world w;

	(void)state;
	world_open(&w, &own, 2, &link);
	gci_tp_pace(w.tp[0], 4,
		&(struct gci_pace){.by = GCI_PACED_BY_FQ, .bps = 5}); /* another group's */
	exchange(&w);
	assert_true(sockets_of(&w).limit == UINT64_MAX);
	gci_tp_pace(w.tp[0], 3, &pace);
	exchange(&w);
	s = sockets_of(&w);
	wire = gci_wire_of(s.mss_nbytes, 0, 1);
	assert_in_range(s.limit, gci_wire_payload(&wire, 100000000) - 400000, 100000000 - 1);
	pace.bps /= 2; /* also of those that are idle now, when they begin */
	gci_tp_pace(w.tp[0], 3, &pace);
	exchange(&w);
	assert_in_range(sockets_of(&w).limit, s.limit / 2 - 1, s.limit / 2 + 1);
	pace.by = GCI_PACED_BY_TCP;
	gci_tp_pace(w.tp[0], 3, &pace);
	exchange(&w);
	assert_in_range(sockets_of(&w).limit, s.limit / 2 - 1, s.limit / 2 + 1);
	pace.by = GCI_PACED_BY_NOBODY;
	gci_tp_pace(w.tp[0], 3, &pace);
	exchange(&w);
	assert_true(sockets_of(&w).limit == UINT64_MAX);
	world_close(&w);
}

/* In place of its group's. */
static void a_peer_has_a_rate_of_its_own(void **state)
{
	struct gci_tp_link link = {.streams = 1, .eager_nbytes = 1000, .pace_group = 3};
	const struct gci_pace pace = {.by = GCI_PACED_BY_TCP, .bps = 800000000};
	struct gci_wire wire;
	struct world w;
	uint64_t payload;

	(void)state;
	world_open(&w, &own, 2, &link);
	gci_tp_pace_peer(w.tp[0], 1, 0, 0); /* it has none */
	gci_tp_pace_peer(w.tp[0], 1, 400000000, 0);
	exchange(&w);
	wire = gci_wire_of(sockets_of(&w).mss_nbytes, 0, 1);
	payload = gci_wire_payload(&wire, 50000000);
	assert_in_range(sockets_of(&w).limit, payload - 200000, 50000000 - 1);
	gci_tp_pace(w.tp[0], 3, &pace);
	gci_tp_pace_peer(w.tp[0], 1, 200000000, 0);
	exchange(&w);
	assert_in_range(sockets_of(&w).limit, payload / 2 - 100000, payload / 2 + 100000);
	gci_tp_pace_peer(w.tp[0], 1, 0, 0);
	assert_true(sockets_of(&w).limit == UINT64_MAX);
	exchange(&w);
	assert_in_range(sockets_of(&w).limit, 2 * payload - 400000, 100000000 - 1);
	world_close(&w);
}

/* As buffers are; and the kernel has its own way again. */
static void little_is_under_way(void **state)
{
	static uint8_t from[1000000], to[1000000];
	struct gci_tp_link link = {.streams = 1, .eager_nbytes = 1000};
	struct message m[2];
	struct world w;
	int i;

	(void)state;
	world_open(&w, &own, 2, &link);
	gci_tp_window_peer(w.tp[0], 1, 20000); /* from when it is needed */
	exchange(&w);
	if (!sockets_of(&w).sndbuf_nbytes)
		skip();
	for (i = 0; i < 2; i++) {
		if (i)
			gci_tp_window_peer(w.tp[0], 1, 0);
		fill(from, sizeof(from), (uint64_t)i);
		send_to(&w, 0, &m[0], 1, (uint32_t)i, from, sizeof(from));
		recv_from(&w, 1, &m[1], 0, (uint32_t)i, to, sizeof(to));
		world_finish(&w, m, 2);
		assert_memory_equal(from, to, sizeof(from));
		assert_int_equal(sockets_of(&w).sndbuf_set, !i);
		if (!i)
			assert_in_range(sockets_of(&w).sndbuf_nbytes, 20000, 21000);
	}
	world_close(&w);
}

/* A connection that has sent all that it may gives its part back, though its peer has more for others. */
static void a_rate_is_theirs_who_have_something_to_send(void **state)
{
	static uint8_t from[4000000], to[4000000];
	struct gci_tp_link link = {.streams = 2, .eager_nbytes = 1000};
	uint64_t payload, limit = 0;
	struct gci_wire wire;
	struct message m[4];
	struct world w;

	(void)state;
	world_open(&w, &own, 2, &link);
	exchange(&w);
	wire = gci_wire_of(sockets_of(&w).mss_nbytes, 0, 1);
	payload = gci_wire_payload(&wire, 10000000);
	fill(from, sizeof(from), 10);
	gci_tp_pace_peer(w.tp[0], 1, 80000000, 0);
	send_to(&w, 0, &m[0], 1, 1, from, 1000000);
	recv_from(&w, 1, &m[1], 0, 1, to, 1000000);
	message_init(&m[2], 1, (struct gci_tp_key){.tag = 2}, from, sizeof(from));
	m[2].r.share = 2; /* by the first connection alone */
	gci_tp_isend(w.tp[0], &m[2].r);
	recv_from(&w, 1, &m[3], 0, 2, to, sizeof(to));
	/* Once both have half of it; then the first has all, and what the other had is of no account. */
	while (!m[2].ndone && (!m[0].ndone || limit < payload + payload / 3)) {
		w.backend->step(&w);
		limit = sockets_of(&w).limit;
	}
	assert_false(m[2].ndone);
	assert_in_range(limit, payload + payload / 3, 3 * payload);
	world_finish(&w, m, 4);
	assert_memory_equal(from, to, sizeof(from));
	world_close(&w);
}

/* Who only asks for messages has nothing of a rate. */
static void credits_go_beside_a_rate(void **state)
{
	static uint8_t from[8192], to[100][8192];
	struct gci_tp_link link = {.streams = 2, .eager_nbytes = 1000};
	struct message m[200];
	struct world w;
	unsigned i;

	(void)state;
	world_open(&w, &own, 2, &link);
	exchange(&w);
	fill(from, sizeof(from), 11);
	gci_tp_pace_peer(w.tp[0], 1, 8000000, 0);
	for (i = 0; i < 100; i++)
		recv_from(&w, 0, &m[i], 1, i, to[i], sizeof(to[i]));
	for (i = 0; i < 100; i++)
		send_to(&w, 1, &m[100 + i], 0, i, from, sizeof(from));
	world_finish(&w, m, 200);
	assert_true(sockets_of(&w).limit == UINT64_MAX);
	for (i = 0; i < 100; i++)
		assert_memory_equal(from, to[i], sizeof(from));
	world_close(&w);
}

/* Until all is on its way, also when nobody wants it any more. */
static void a_peers_rate_ends_with_what_it_was_for(void **state)
{
	static uint8_t from[200000], to[200000];
	struct gci_tp_link link = {.streams = 1, .eager_nbytes = 1000};
	struct message m[2];
	uint64_t start;
	struct world w;

	(void)state;
	world_open(&w, &own, 2, &link);
	exchange(&w);
	fill(from, sizeof(from), 8);
	gci_tp_pace_peer(w.tp[0], 1, 8000000, 10000);
	start = gci_now_ns();
	send_to(&w, 0, &m[0], 1, 1, from, sizeof(from));
	recv_from(&w, 1, &m[1], 0, 1, to, sizeof(to));
	while (!m[0].ndone)
		w.backend->step(&w);
	gci_tp_pace_peer(w.tp[0], 1, GCI_PACE_UNTIL_SENT, 0);
	assert_true(sockets_of(&w).limit != UINT64_MAX);
	world_finish(&w, m, 2);
	/* 0.2 s, but for what may go at once. A loaded machine only takes longer. */
	assert_true(gci_now_ns() - start > 150 * GCI_NS_PER_MS);
	assert_memory_equal(from, to, sizeof(from));
	while (sockets_of(&w).limit != UINT64_MAX)
		w.backend->step(&w);
	gci_tp_pace_peer(w.tp[0], 1, GCI_PACE_UNTIL_SENT, 0); /* it has none */
	exchange(&w);
	assert_true(sockets_of(&w).limit == UINT64_MAX);
	world_close(&w);
}

/* Where round trips are long, TCP's packets would be much shorter than what may go at once: no rate is
 * the socket's then, and what has gone is in bursts. */
static void a_peers_rate_is_ours(void **state)
{
	static uint8_t from[200000], to[200000];
	struct gci_tp_link link = {.streams = 2, .eager_nbytes = 1000, .rtt_ns = 20000000};
	struct message m[2];
	uint64_t start;
	struct world w;

	(void)state;
	world_open(&w, &own, 2, &link);
	exchange(&w);
	fill(from, sizeof(from), 9);
	gci_tp_pace_peer(w.tp[0], 1, 8000000, 10000);
	start = gci_now_ns();
	send_to(&w, 0, &m[0], 1, 1, from, sizeof(from));
	recv_from(&w, 1, &m[1], 0, 1, to, sizeof(to));
	gci_tp_pace_peer(w.tp[0], 1, 4000000, 10000);
	gci_tp_pace_peer(w.tp[0], 1, 8000000, 10000);
	while (!m[0].ndone) {
		w.backend->step(&w);
		assert_true(sockets_of(&w).limit == UINT64_MAX);
	}
	gci_tp_pace_peer(w.tp[0], 1, GCI_PACE_UNTIL_SENT, 0);
	world_finish(&w, m, 2);
	assert_true(gci_now_ns() - start > 150 * GCI_NS_PER_MS);
	assert_memory_equal(from, to, sizeof(from));
	world_close(&w);
}

/* Who waited for its place need not any more, and nobody else wakes it. */
static void a_rate_is_taken_away_while_they_wait(void **state)
{
	static uint8_t from[50000], to[50000];
	struct gci_tp_link link = {.streams = 2, .eager_nbytes = 100000};
	struct message m[2];
	struct world w;
	int i;

	(void)state;
	world_open(&w, &own, 2, &link);
	exchange(&w);
	for (i = 0; i < 20; i++) {
		fill(from, sizeof(from), (uint64_t)i);
		gci_tp_pace_peer(w.tp[0], 1, 8000000, 10000 + (uint32_t)i);
		send_to(&w, 0, &m[0], 1, (uint32_t)i + 1, from, sizeof(from));
		recv_from(&w, 1, &m[1], 0, (uint32_t)i + 1, to, sizeof(to));
		gci_tp_progress(w.tp[0], 0);
		gci_tp_pace_peer(w.tp[0], 1, 0, 0);
		world_finish(&w, m, 2);
		assert_memory_equal(from, to, sizeof(from));
	}
	world_close(&w);
}

/* A megabyte from rank 0 to rank 1, paced by us; the time it took. */
static uint64_t paced_megabyte(struct world *w, uint64_t bps, uint64_t then_bps)
{
	static uint8_t from[1000000], to[1000000];
	struct gci_pace pace = {.by = GCI_PACED_BY_US, .bps = bps};
	uint64_t start = gci_now_ns();
	struct message m[2];
	int i;

	fill(from, sizeof(from), bps);
	memset(to, 0, sizeof(to));
	gci_tp_pace(w->tp[0], 1, &pace);
	send_to(w, 0, &m[0], 1, 1, from, sizeof(from));
	recv_from(w, 1, &m[1], 0, 1, to, sizeof(to));
	for (i = 0; then_bps && i < 100; i++)
		w->backend->step(w);
	if (then_bps) {
		assert_int_equal(m[1].ndone, 0);
		pace.bps = then_bps;
		gci_tp_pace(w->tp[0], 1, &pace);
	}
	world_finish(w, m, 2);
	assert_int_equal(m[1].status, 0);
	assert_memory_equal(from, to, sizeof(from));
	return gci_now_ns() - start;
}

static void we_keep_a_rate(void **state)
{
	struct gci_tp_link link = {.streams = 3, .eager_nbytes = 1000, .pace_group = 1};
	struct world w;

	(void)state;
	world_open(&w, &own, 2, &link);
	exchange(&w);
	/* 0.2 s, but for what may go at once. A loaded machine only takes longer. */
	assert_true(paced_megabyte(&w, 40000000, 0) > 180 * GCI_NS_PER_MS);
	/* A minute and more, if the new rate did not count at once, and lose nothing. */
	assert_true(paced_megabyte(&w, 100000, 8000000000) < 40 * GCI_NS_PER_S);
	world_close(&w);
}

/* Ranks that block in progress, each in a thread, and part in order. */
struct worker {
	struct world *w;
	pthread_t thread;
	int rank;
	int ok;
};

static void *work(void *arg)
{
	enum { EACH = 50000, ROUNDS = 20 };
	struct worker *k = arg;
	int size = k->w->size, peer, round, pending;
	uint8_t *bufs = calloc((size_t)size * 2, EACH);
	struct message *m = calloc((size_t)size * 2, sizeof(*m));
	struct gci_tp *tp = k->w->tp[k->rank];

	k->ok = 1;
	for (round = 0; round < ROUNDS; round++) {
		for (peer = 0; peer < size; peer++) {
			struct gci_tp_key key = {.seq = (uint64_t)round};

			if (peer == k->rank)
				continue;
			memset(bufs + 2 * peer * EACH, 16 * round + k->rank, EACH);
			message_init(&m[2 * peer], peer, key, bufs + 2 * peer * EACH, EACH);
			message_init(
				&m[2 * peer + 1], peer, key, bufs + (2 * peer + 1) * EACH, EACH);
			gci_tp_isend(tp, &m[2 * peer].r);
			gci_tp_irecv(tp, &m[2 * peer + 1].r);
		}
		do {
			k->ok &= !gci_tp_progress(tp, 3600000000000ull);
			for (peer = pending = 0; peer < 2 * size; peer++)
				pending |= peer / 2 != k->rank && !m[peer].ndone;
		} while (pending && k->ok);
		for (peer = 0; peer < size; peer++)
			k->ok &= peer == k->rank || (m[2 * peer + 1].status == 0 &&
							    bufs[(2 * peer + 1) * EACH + 7] ==
								    (uint8_t)(16 * round + peer));
	}
	gci_tp_stop(tp, 3600000000000ull); /* ends when all others have said goodbye */
	free(bufs);
	free(m);
	return NULL;
}

static void with_allowance(uint32_t eager_nbytes)
{
	struct gci_tp_link link = {.streams = 3,
		.eager_nbytes = eager_nbytes,
		.sockbuf_nbytes = 100000,
		.dead_ns = 20000000000ull};
	struct worker k[4];
	struct world w;
	int i;

	world_open(&w, &own, 4, &link);
	for (i = 0; i < 4; i++) {
		k[i] = (struct worker){.w = &w, .rank = i};
		assert_int_equal(pthread_create(&k[i].thread, NULL, work, &k[i]), 0);
	}
	for (i = 0; i < 4; i++) {
		pthread_join(k[i].thread, NULL);
		assert_true(k[i].ok);
		assert_int_equal(w.nfailures[i], 0);
	}
	world_close(&w);
}

/* With and without waiting for credits. */
static void ranks_in_threads(void **state)
{
	(void)state;
	with_allowance(100000);
	with_allowance(1000);
}

static void *exchange_there(void *arg)
{
	exchange(arg);
	return NULL;
}

/* What a thread has left under way when it ends goes on in the next one that makes progress. */
static void from_thread_to_thread(void **state)
{
	pthread_t thread;
	struct world w;
	int i;

	(void)state;
	world_open(&w, &own, 2, NULL);
	for (i = 0; i < 2; i++) {
		assert_int_equal(pthread_create(&thread, NULL, exchange_there, &w), 0);
		pthread_join(thread, NULL);
	}
	exchange(&w);
	assert_int_equal(w.nfailures[0] + w.nfailures[1], 0);
	world_close(&w);
}

/* ---- waiting elsewhere */

/* What poll takes, until some rank has something to do. */
static int least_ms(struct world *w, struct pollfd *p)
{
	uint64_t least = UINT64_MAX, ns;
	int i;

	for (i = 0; i < w->size; i++) {
		p[i] = (struct pollfd){.fd = gci_tp_fd(w->tp[i]), .events = POLLIN};
		assert_true(p[i].fd >= 0);
		ns = gci_tp_timeout_ns(w->tp[i]);
		least = ns < least ? ns : least;
	}
	return least == UINT64_MAX ? -1 : (int)((least + 999999) / 1000000);
}

/* A descriptor that does not tell is waited for until the test's own time is over. */
static int elsewhere_step(struct world *w)
{
	struct pollfd p[MAX_RANKS];
	int i;

	assert_true(poll(p, (nfds_t)w->size, least_ms(w, p)) >= 0);
	for (i = 0; i < w->size; i++)
		gci_tp_progress(w->tp[i], 0);
	return 1;
}

static void a_descriptor_tells(void **state)
{
	struct backend elsewhere = own;
	struct pollfd p[MAX_RANKS];
	struct message m;
	struct world w;

	(void)state;
	elsewhere.step = elsewhere_step;
	world_open(&w, &elsewhere, 3, NULL);
	exchange(&w);
	/* Soon there is nothing left to do, and nothing to tell. */
	while (least_ms(&w, p) == 0)
		elsewhere_step(&w);
	assert_int_equal(poll(p, 3, 0), 0);
	gci_tp_wake(w.tp[1]);
	assert_int_equal(poll(&p[1], 1, -1), 1);
	gci_tp_progress(w.tp[1], 0);
	assert_int_equal(poll(&p[1], 1, 0), 0);
	/* What was begun is to be sent, what has failed is to be told, before anyone waits. */
	recv_from(&w, 1, &m, 0, 9, &m, 1);
	assert_int_equal(gci_tp_timeout_ns(w.tp[1]), 0);
	while (least_ms(&w, p) == 0)
		elsewhere_step(&w);
	gci_tp_fail(w.tp[1], GCOLL_ERR_ABORTED);
	assert_int_equal(gci_tp_timeout_ns(w.tp[1]), 0);
	gci_tp_progress(w.tp[1], 0);
	assert_int_equal(m.status, GCOLL_ERR_ABORTED);
	world_close(&w);
}

static const struct CMUnitTest more[] = {
	cmocka_unit_test(ipv6),
	cmocka_unit_test(the_path_that_was_asked_for),
	cmocka_unit_test(no_descriptor_is_left),
	cmocka_unit_test(no_family_in_common),
	cmocka_unit_test(waiting_costs_nothing),
	cmocka_unit_test(sockets_of_a_link),
	cmocka_unit_test(sockets_are_told_their_rate),
	cmocka_unit_test(a_peer_has_a_rate_of_its_own),
	cmocka_unit_test(little_is_under_way),
	cmocka_unit_test(a_rate_is_theirs_who_have_something_to_send),
	cmocka_unit_test(credits_go_beside_a_rate),
	cmocka_unit_test(a_peers_rate_ends_with_what_it_was_for),
	cmocka_unit_test(a_peers_rate_is_ours),
	cmocka_unit_test(a_rate_is_taken_away_while_they_wait),
	cmocka_unit_test(we_keep_a_rate),
	cmocka_unit_test(ranks_in_threads),
	cmocka_unit_test(from_thread_to_thread),
	cmocka_unit_test(a_descriptor_tells),
};

int main(void)
{
	int failed;

	choose_path();
	if (world_encrypted) {
		failed = _cmocka_run_group_tests(
			"callers", caller_tests, caller_tests_n, NULL, NULL);
		return failed + conformance_main(&own, NULL, 0);
	}
	failed = conformance_main(&own, more, sizeof(more) / sizeof(*more));
	failed +=
		_cmocka_run_group_tests("strangers", stranger_tests, stranger_tests_n, NULL, NULL);
	world_replay_nbytes = 1 << 20;
	failed += conformance_main(&own, NULL, 0);
	return failed + conformance_main(&on_shared_loop, NULL, 0);
}
