/* SPDX-License-Identifier: MIT
 * Unauthenticated connections to a rank: strangers, slow ones, and many at once. */
#include "tests/captured.h"
#include "tests/transport/tcp_world.h"

#include "base/clock.h"
#include "base/log.h"
#include "transport/unauthenticated.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void say(int fd, const void *bytes, size_t n)
{
	assert_int_equal(send(fd, bytes, n, MSG_NOSIGNAL), n);
}

static void expect_turned_away(struct world *w, int fd)
{
	char c;
	int i;

	for (i = 0; i < 10000 && recv(fd, &c, 1, MSG_DONTWAIT) < 0; i++)
		if (errno == EAGAIN)
			own_step(w);
		else
			break;
	assert_true(i < 10000);
	close(fd);
}

static void strangers_are_turned_away(void **state)
{
	struct gci_hello h;
	uint8_t garbage[GCI_HELLO_NBYTES] = "GET / HTTP/1.1\r\n\r\n", hello[GCI_HELLO_NBYTES];
	uint8_t wrong[32] = "another job's", right[32] = SECRET;
	struct gci_hello elsewhere;
	struct world w;

	(void)state;
	world_open(&w, &own, 2, NULL);
	h = hello_of(&w, 0, 1);
	{
		int a = knock(last_addrs[1]), b = knock(last_addrs[1]), c = knock(last_addrs[1]);
		int d = knock(last_addrs[1]);

		say(a, garbage, sizeof(garbage));
		assert_int_equal(gci_hello_encode(&h, wrong, hello), 0);
		say(b, hello, sizeof(hello));
		elsewhere = h;
		elsewhere.to = 0; /* a good token, but for another connection */
		elsewhere.from = 1;
		assert_int_equal(gci_hello_encode(&elsewhere, right, hello), 0);
		say(c, hello, sizeof(hello));
		say(d, hello, 50); /* and then nothing */
		expect_turned_away(&w, a);
		expect_turned_away(&w, b);
		expect_turned_away(&w, c);
		exchange(&w);
		/* The token of a connection that is there does not open another. */
		a = knock(last_addrs[1]);
		assert_int_equal(gci_hello_encode(&h, right, hello), 0);
		say(a, hello, sizeof(hello));
		expect_turned_away(&w, a);
		close(d);
	}
	exchange(&w);
	assert_int_equal(w.nfailures[0] + w.nfailures[1], 0);
	world_close(&w);
}

/* So many looks that the time has passed: they are taken five times a second. */
static void look_for_a_while(struct world *w)
{
	uint64_t begin = gci_now_ns();

	while (gci_now_ns() - begin < GCI_NS_PER_S / 2)
		own_step(w);
}

/* A rank that computes between connecting and saying who it is. */
static void who_is_slow_is_waited_for(void **state)
{
	struct gci_hello h;
	uint8_t hello[GCI_HELLO_NBYTES], secret[32] = SECRET;
	struct world w;
	int fd, i;
	char c;

	(void)state;
	stranger_ns = 1;
	world_open(&w, &own, 2, NULL);
	h = hello_of(&w, 0, 1);
	assert_int_equal(gci_hello_encode(&h, secret, hello), 0);
	fd = knock(last_addrs[1]);
	look_for_a_while(&w);
	say(fd, hello, 50);
	own_step(&w);
	say(fd, hello + 50, sizeof(hello) - 50);
	for (i = 0; i < 10000 && recv(fd, &c, 1, MSG_DONTWAIT) != 1; i++)
		own_step(&w);
	assert_true(i < 10000); /* the answer */
	close(fd);
	world_close(&w);
	stranger_ns = 0;
}

/* But not where no rank is. */
static void the_silent_from_elsewhere_are_not(void **state)
{
	struct world w;
	int fd;

	(void)state;
	stranger_ns = 1;
	world_open(&w, &own, 2, NULL);
	fd = knock_from("127.0.9.1", last_addrs[1]);
	look_for_a_while(&w);
	expect_turned_away(&w, fd);
	world_close(&w);
	stranger_ns = 0;
}

static int is_open(int fd)
{
	char c;

	return recv(fd, &c, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

/* Until no more than `most` of them are, or they stay. */
static int wait_until_open(struct world *w, const int *fds, int n, int most)
{
	int i, k, open = n;

	for (k = 0; k < 1000 && open > most; k++) {
		own_step(w);
		for (i = 0, open = 0; i < n; i++)
			open += is_open(fds[i]);
	}
	return open;
}

/* From a rank's address, or from many others. */
static void silent_strangers_keep_nobody_out(void **state)
{
	enum { N = 200 };
	struct world w;
	int fds[N], i, kind;
	char ip[32];

	(void)state;
	for (kind = 0; kind < 2; kind++) {
		world_open(&w, &own, 2, NULL);
		for (i = 0; i < N; i++) {
			snprintf(ip, sizeof(ip), "127.0.9.%d", i + 1);
			fds[i] = knock_from(kind ? ip : "127.0.0.1", last_addrs[1]);
			own_step(&w);
		}
		assert_in_range(wait_until_open(&w, fds, N, GCI_UNAUTH_MOST + GCI_TP_MAX_STREAMS),
			GCI_UNAUTH_MOST, GCI_UNAUTH_MOST + GCI_TP_MAX_STREAMS);
		exchange(&w);
		for (i = 0; i < N; i++)
			close(fds[i]);
		assert_int_equal(w.nfailures[0] + w.nfailures[1], 0);
		world_close(&w);
	}
}

/* Ranks whose address is translated: all of them come from one that no rank has. */
static void many_behind_one_address(void **state)
{
	enum { STREAMS = 16, FROM = 3 };
	struct gci_tp_link link = {.streams = STREAMS, .eager_nbytes = 64 << 10};
	uint8_t bytes[GCI_HELLO_NBYTES], secret[32] = SECRET;
	int fds[FROM * STREAMS], i, k;
	struct gci_hello h;
	struct world w;
	char c;

	(void)state;
	world_open(&w, &own, FROM + 1, &link);
	for (i = 0; i < FROM * STREAMS; i++)
		fds[i] = knock_from("127.0.9.1", last_addrs[FROM]);
	for (i = 0; i < 50; i++)
		own_step(&w);
	for (i = 0; i < FROM * STREAMS; i++) {
		h = hello_of(&w, (uint32_t)(i / STREAMS), FROM);
		h.stream = (uint32_t)(i % STREAMS);
		assert_int_equal(gci_hello_encode(&h, secret, bytes), 0);
		say(fds[i], bytes, sizeof(bytes));
	}
	for (i = 0; i < FROM * STREAMS; i++) {
		for (k = 0; k < 10000 && recv(fds[i], &c, 1, MSG_DONTWAIT) != 1; k++)
			own_step(&w);
		assert_true(k < 10000);
		close(fds[i]);
	}
	world_close(&w);
}

static void log_level(const char *level)
{
	setenv("GRIDCOLL_LOG", level, 1);
	gci_log_init(NULL);
	unsetenv("GRIDCOLL_LOG");
}

/* A rank that computes between connecting and saying who it is, while strangers want its place. */
static void who_gave_way_comes_again(void **state)
{
	enum { N = 200 };
	struct captured log;
	struct world w;
	int fds[N], i;

	(void)state;
	log_level("info");
	log = capture_begin();
	world_open(&w, &own, 2, NULL);
	gci_tp_connect(w.tp[0], 1);
	for (i = 0; i < N; i++) {
		fds[i] = knock(last_addrs[1]);
		gci_tp_progress(w.tp[1], 0);
	}
	for (i = 0; i < N; i++)
		close(fds[i]);
	exchange(&w);
	capture_end(&log);
	log_level("warn");
	assert_true(captured_times(&log, "has hung up at once; calling it again") > 0);
	assert_int_equal(w.nfailures[0] + w.nfailures[1], 0);
	world_close(&w);
}

/* From now on none can be opened. */
static struct rlimit no_more_descriptors(void)
{
	struct rlimit was, low;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	low = was;
	low.rlim_cur = (rlim_t)dup(0);
	close((int)low.rlim_cur);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	return was;
}

/* They hold all descriptors there are. */
static void the_silent_give_up_descriptors(void **state)
{
	struct captured log;
	struct rlimit was;
	struct world w;
	int fds[10], i;

	(void)state;
	world_open(&w, &own, 2, NULL);
	for (i = 0; i < 10; i++) {
		fds[i] = knock(last_addrs[1]);
		own_step(&w);
	}
	gci_tp_connect(w.tp[0], 1);
	log = capture_begin();
	was = no_more_descriptors();
	exchange(&w);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	capture_end(&log);
	assert_int_equal(captured_times(&log, "cannot take a connection now: "), 1);
	assert_int_equal(captured_times(&log, "; trying again, raise the limit"), 1);
	assert_int_equal(captured_times(&log, "takes connections again"), 1);
	for (i = 0; i < 10; i++)
		close(fds[i]);
	assert_int_equal(w.nfailures[0] + w.nfailures[1], 0);
	world_close(&w);
}

/* The one that comes is seen before what rank 0 has said meanwhile. */
static void who_has_spoken_keeps_its_descriptor(void **state)
{
	struct gci_hello h;
	uint8_t hello[GCI_HELLO_NBYTES], secret[32] = SECRET;
	struct captured log;
	struct rlimit was;
	struct world w;
	int fd, last, i;
	char c;

	(void)state;
	world_open(&w, &own, 2, NULL);
	h = hello_of(&w, 0, 1);
	fd = knock(last_addrs[1]);
	own_step(&w);
	last = knock(last_addrs[1]);
	assert_int_equal(gci_hello_encode(&h, secret, hello), 0);
	say(fd, hello, sizeof(hello));
	say(last, "G", 1);
	log = capture_begin();
	was = no_more_descriptors();
	for (i = 0; i < 10; i++)
		own_step(&w);
	assert_int_equal(recv(fd, &c, 1, MSG_DONTWAIT), 1); /* the answer */
	/* Nobody is left to give way: it is taken when there are descriptors again. */
	assert_true(is_open(last));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	capture_end(&log);
	assert_int_equal(captured_times(&log, "ulimit -n"), 1);
	shutdown(last, SHUT_WR);
	expect_turned_away(&w, last);
	close(fd);
	assert_int_equal(w.nfailures[1], 0);
	world_close(&w);
}

static void who_is_no_neighbour_gives_way_first(void **state)
{
	int near, far, last[2], i;
	struct captured log;
	struct rlimit was;
	struct world w;

	(void)state;
	world_open(&w, &own, 2, NULL);
	near = knock(last_addrs[1]);
	own_step(&w);
	far = knock_from("127.0.9.1", last_addrs[1]);
	own_step(&w);
	last[0] = knock(last_addrs[1]);
	last[1] = knock_from("127.0.9.2", last_addrs[1]);
	log = capture_begin();
	was = no_more_descriptors();
	for (i = 0; i < 10; i++)
		own_step(&w);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	capture_end(&log);
	/* Each took the place of one before it. */
	assert_false(is_open(far));
	assert_int_equal(is_open(near) + is_open(last[0]), 1);
	assert_true(is_open(last[1]));
	assert_int_equal(captured_times(&log, "ulimit -n"), 1);
	close(near);
	close(far);
	close(last[0]);
	close(last[1]);
	world_close(&w);
}

static void another_jobs_secret(void **state)
{
	uint8_t b[2] = {0};
	struct message m[2];
	struct world w;

	(void)state;
	secret_of_rank_1 = "another job's";
	world_open(&w, &own, 2, NULL);
	secret_of_rank_1 = SECRET;
	send_to(&w, 0, &m[0], 1, 1, b, 2);
	recv_from(&w, 0, &m[1], 1, 1, b, 2);
	world_finish(&w, m + 1, 1);
	assert_int_equal(m[1].status, GCOLL_ERR_PEER); /* it hangs up on us */
	assert_int_equal(w.nfailures[1], 0);
	world_close(&w);
}

const struct CMUnitTest stranger_tests[] = {
	cmocka_unit_test(strangers_are_turned_away),
	cmocka_unit_test(who_is_slow_is_waited_for),
	cmocka_unit_test(the_silent_from_elsewhere_are_not),
	cmocka_unit_test(silent_strangers_keep_nobody_out),
	cmocka_unit_test(many_behind_one_address),
	cmocka_unit_test(who_gave_way_comes_again),
	cmocka_unit_test(the_silent_give_up_descriptors),
	cmocka_unit_test(who_has_spoken_keeps_its_descriptor),
	cmocka_unit_test(who_is_no_neighbour_gives_way_first),
	cmocka_unit_test(another_jobs_secret),
};
const size_t stranger_tests_n = sizeof(stranger_tests) / sizeof(*stranger_tests);
