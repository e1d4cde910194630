/* SPDX-License-Identifier: MIT
 * Who may connect to a rank: strangers, slow ones, and crowds of them. */
#include "tests/transport/tcp_world.h"

#include "base/clock.h"
#include "transport/hello.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static void say(int fd, const void *bytes, size_t n)
{
	assert_int_equal(send(fd, bytes, n, MSG_NOSIGNAL), n);
}

/* As rank 0 of the world says it to rank 1. */
static struct gci_hello hello_of_rank_0(void)
{
	return (struct gci_hello){.epoch = 3,
		.to = 1,
		.streams = 1,
		.eager_nbytes = 64 << 10,
		.size = 2,
		.replay = world_replay_nbytes > 0,
		.life = world_replay_nbytes > 0};
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
	const struct gci_hello h = hello_of_rank_0();
	uint8_t garbage[GCI_HELLO_NBYTES] = "GET / HTTP/1.1\r\n\r\n", hello[GCI_HELLO_NBYTES];
	uint8_t wrong[32] = "another job's", right[32] = SECRET;
	struct gci_hello elsewhere = h;
	struct world w;

	(void)state;
	world_open(&w, &own, 2, NULL);
	{
		int a = knock(last_addrs[1]), b = knock(last_addrs[1]), c = knock(last_addrs[1]);
		int d = knock(last_addrs[1]);

		say(a, garbage, sizeof(garbage));
		assert_int_equal(gci_hello_encode(&h, wrong, hello), 0);
		say(b, hello, sizeof(hello));
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
	const struct gci_hello h = hello_of_rank_0();
	uint8_t hello[GCI_HELLO_NBYTES], secret[32] = SECRET;
	struct world w;
	int fd, i;
	char c;

	(void)state;
	stranger_ns = 1;
	world_open(&w, &own, 2, NULL);
	assert_int_equal(gci_hello_encode(&h, secret, hello), 0);
	fd = knock(last_addrs[1]);
	say(fd, hello, 50);
	look_for_a_while(&w);
	say(fd, hello + 50, sizeof(hello) - 50);
	for (i = 0; i < 10000 && recv(fd, &c, 1, MSG_DONTWAIT) != 1; i++)
		own_step(&w);
	assert_true(i < 10000); /* the answer */
	close(fd);
	world_close(&w);
	stranger_ns = 0;
}

/* But not where others wait. */
static void a_silent_crowd_makes_room(void **state)
{
	enum { N = 80 };
	struct world w;
	int fds[N], i;

	(void)state;
	stranger_ns = 1;
	world_open(&w, &own, 2, NULL);
	for (i = 0; i < N; i++) {
		fds[i] = knock(last_addrs[1]);
		own_step(&w);
	}
	look_for_a_while(&w);
	exchange(&w);
	for (i = 0; i < N; i++)
		close(fds[i]);
	assert_int_equal(w.nfailures[0] + w.nfailures[1], 0);
	world_close(&w);
	stranger_ns = 0;
}

static void a_crowd_of_silent_strangers(void **state)
{
	enum { N = 80 };
	struct gci_tp_stats st;
	struct world w;
	int fds[N], i;

	(void)state;
	world_open(&w, &own, 2, NULL);
	for (i = 0; i < N; i++) {
		fds[i] = knock(last_addrs[1]);
		own_step(&w);
	}
	gci_tp_connect(w.tp[0], 1);
	for (i = 0; i < 50; i++)
		own_step(&w);
	gci_tp_stats(w.tp[1], 0, &st);
	assert_int_equal(st.streams, 0); /* they hold all the places there are */
	for (i = 0; i < N; i++)
		close(fds[i]);
	exchange(&w);
	assert_int_equal(w.nfailures[0] + w.nfailures[1], 0);
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
	cmocka_unit_test(a_crowd_of_silent_strangers),
	cmocka_unit_test(who_is_slow_is_waited_for),
	cmocka_unit_test(a_silent_crowd_makes_room),
	cmocka_unit_test(another_jobs_secret),
};
const size_t stranger_tests_n = sizeof(stranger_tests) / sizeof(*stranger_tests);
