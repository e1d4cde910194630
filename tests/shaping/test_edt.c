/* SPDX-License-Identifier: MIT
 * The program itself, packet by packet, by the kernel's own test runs. Skipped by name where that
 * is not allowed. */
#include "tests/shaping/edt_program.h"
#include "tests/test.h"

#include <bpf/bpf.h>
#include <linux/if_ether.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* An Ethernet frame to this address, of TCP as far as anybody looks. */
static void make_frame(uint8_t *frame, size_t len, const char *to)
{
	struct gci_net net;

	memset(frame, 0, len);
	assert_int_equal(gci_net_parse(&net, to, NULL), 0);
	frame[12] = net.six == 6 ? 0x86 : 0x08;
	frame[13] = net.six == 6 ? 0xdd : 0x00;
	frame[14] = net.six == 6 ? 0x60 : 0x45;
	memcpy(frame + ETH_HLEN + (net.six == 6 ? 24 : 16), net.ip, net.six == 6 ? 16 : 4);
}

struct sent {
	int verdict;
	uint64_t departs; /* 0: not told */
};

/* As the kernel would hand it on: `wire` bytes long, in `segments`, not before `tstamp`. */
static struct sent send_one(int prog, const uint8_t *frame, uint32_t len, uint32_t wire,
	uint32_t segments, uint64_t tstamp)
{
	struct __sk_buff in = {.wire_len = wire, .gso_segs = segments, .tstamp = tstamp}, out = {0};
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = frame, .data_size_in = len, .ctx_in = &in,
		.ctx_size_in = sizeof(in), .ctx_out = &out, .ctx_size_out = sizeof(out),
		.repeat = 1);

	assert_int_equal(bpf_prog_test_run_opts(prog, &o), 0);
	return (struct sent){(int)o.retval, out.tstamp};
}

static uint64_t cost_ns(uint64_t nbytes, uint64_t bps)
{
	return (nbytes * 8 * NS_PER_S + bps - 1) / bps;
}

static uint64_t next_ns(struct edt_program *l, int number)
{
	struct gci_edt_clock clock;
	uint32_t key = (uint32_t)number;

	assert_int_equal(bpf_map_lookup_elem(l->tables.clocks, &key, &clock), 0);
	return clock.next_ns;
}

static void test_departures(void **state)
{
	static const char *const nets[] = {"10.2.0.0/16", "fd00:2::/32"};
	const uint64_t bps = 1000; /* a full packet takes 12 s: no clock gets in the way */
	struct gci_edt_clock clock;
	struct edt_program l;
	uint8_t frame[1514];
	struct sent a, b, c;
	uint32_t key;

	(void)state;
	if (!edt_allowed())
		skip();
	edt_load(&l);
	key = (uint32_t)edt_class(&l, "tokyo", nets, 2, bps);
	make_frame(frame, sizeof(frame), "10.2.0.1");
	a = send_one(l.prog, frame, 1514, 1514, 0, 0);
	b = send_one(l.prog, frame, 100, 65226, 45, 0); /* cut into 45 later */
	make_frame(frame, sizeof(frame), "fd00:2:3::4");
	c = send_one(l.prog, frame, 1514, 1514, 0, 0);
	assert_int_equal(a.verdict, -1);
	assert_int_equal(b.departs - a.departs, cost_ns(1514, bps));
	assert_int_equal(c.departs - b.departs, cost_ns(65226, bps));
	assert_int_equal(next_ns(&l, (int)key) - c.departs, cost_ns(1514, bps));

	/* What TCP wants to leave later still does, and takes no more of the class for it. */
	b = send_one(l.prog, frame, 60, 60, 0, c.departs + 3600 * NS_PER_S);
	assert_int_equal(b.departs, c.departs + 3600 * NS_PER_S);
	assert_int_equal(next_ns(&l, (int)key) - c.departs, cost_ns(1514, bps) + cost_ns(60, bps));

	assert_int_equal(bpf_map_lookup_elem(l.tables.clocks, &key, &clock), 0);
	assert_int_equal(clock.nbytes, 1514 + 65226 + 1514 + 60);
	assert_int_equal(clock.packets, 1 + 45 + 1 + 1);
	assert_int_equal(clock.dropped, 0);
	assert_true(clock.waited_ns > cost_ns(65226, bps));
	edt_unload(&l);
}

static void test_destinations(void **state)
{
	static const char *const wide[] = {"10.0.0.0/8"}, *const narrow[] = {"10.2.0.0/16"},
				 *const one[] = {"10.2.3.4"};
	uint8_t frame[60];
	struct edt_program l;
	struct sent s;
	int a, b, c;

	(void)state;
	if (!edt_allowed())
		skip();
	edt_load(&l);
	a = edt_class(&l, "a", wide, 1, 1000);
	b = edt_class(&l, "b", narrow, 1, 1000);
	c = edt_class(&l, "c", one, 1, 0);
	make_frame(frame, sizeof(frame), "10.3.0.1");
	s = send_one(l.prog, frame, sizeof(frame), 60, 0, 0);
	assert_int_equal(next_ns(&l, a) - s.departs, cost_ns(60, 1000));
	assert_int_equal(next_ns(&l, b), 0);
	make_frame(frame, sizeof(frame), "10.2.0.1");
	s = send_one(l.prog, frame, sizeof(frame), 60, 0, 0);
	assert_int_equal(next_ns(&l, b) - s.departs, cost_ns(60, 1000));
	make_frame(frame, sizeof(frame), "10.2.3.4"); /* counted, not limited */
	s = send_one(l.prog, frame, sizeof(frame), 60, 0, 0);
	assert_int_equal(s.departs, 0);
	assert_int_equal(next_ns(&l, c), 0);
	make_frame(frame, sizeof(frame), "11.0.0.1"); /* nobody's */
	s = send_one(l.prog, frame, sizeof(frame), 60, 0, 0);
	assert_int_equal(s.departs, 0);
	assert_int_equal(s.verdict, -1);
	make_frame(frame, sizeof(frame), "fd00::1");
	assert_int_equal(send_one(l.prog, frame, sizeof(frame), 60, 0, 0).departs, 0);
	frame[13] = 6; /* ARP */
	frame[12] = 8;
	assert_int_equal(send_one(l.prog, frame, sizeof(frame), 60, 0, 0).departs, 0);
	edt_unload(&l);
}

static void test_horizon(void **state)
{
	static const char *const nets[] = {"10.2.0.0/16"};
	struct gci_edt_clock clock;
	struct edt_program l;
	uint8_t frame[60];
	uint64_t before;
	uint32_t key;
	int i;

	(void)state;
	if (!edt_allowed())
		skip();
	edt_load(&l);
	l.tables.horizon_ns = 1500 * NS_PER_S;
	key = (uint32_t)edt_class(&l, "tokyo", nets, 1, 1); /* 480 s each */
	make_frame(frame, sizeof(frame), "10.2.0.1");
	for (i = 0; i < 4; i++) /* after 0, 480, 960 and 1440 s */
		assert_int_equal(send_one(l.prog, frame, sizeof(frame), 60, 0, 0).verdict, -1);
	before = next_ns(&l, (int)key);
	for (i = 0; i < 3; i++)
		assert_int_equal(send_one(l.prog, frame, sizeof(frame), 60, 2, 0).verdict, 2);
	assert_int_equal(next_ns(&l, (int)key), before);
	assert_int_equal(bpf_map_lookup_elem(l.tables.clocks, &key, &clock), 0);
	assert_int_equal(clock.dropped, 6);
	assert_int_equal(clock.dropped_nbytes, 180);
	assert_int_equal(clock.packets, 4);
	assert_true(clock.waited_ns > 1400 * NS_PER_S && clock.waited_ns <= 1500 * NS_PER_S);
	edt_unload(&l);
}

#define THREADS 4
#define RUNS    400

struct worker {
	pthread_t thread;
	int prog;
	unsigned seed;
	struct {
		uint64_t departs, cost_ns;
	} sent[RUNS];
};

#define SLOW_BPS 8 /* a byte takes a second */

static void *work(void *arg)
{
	struct worker *w = arg;
	uint8_t frame[1514];
	uint32_t len;
	int i;

	make_frame(frame, sizeof(frame), "10.2.0.1");
	for (i = 0; i < RUNS; i++) {
		len = 60 + (uint32_t)rand_r(&w->seed) % 1400;
		w->sent[i].departs = send_one(w->prog, frame, len, len, 0, 0).departs;
		w->sent[i].cost_ns = cost_ns(len, SLOW_BPS);
	}
	return NULL;
}

static void all_at_once(struct worker w[THREADS], int prog, void *(*one)(void *))
{
	int i;

	for (i = 0; i < THREADS; i++) {
		w[i].prog = prog;
		w[i].seed = (unsigned)i + 1;
		assert_int_equal(pthread_create(&w[i].thread, NULL, one, &w[i]), 0);
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(w[i].thread, NULL);
}

static int by_departure(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Several CPUs at once: every packet has its time for itself, and none is lost between two. */
static void test_threads(void **state)
{
	static const char *const nets[] = {"10.2.0.0/16"};
	static struct worker w[THREADS];
	static uint64_t all[THREADS * RUNS][2];
	struct gci_edt_clock clock;
	struct edt_program l;
	uint32_t key;
	int i, k;

	(void)state;
	if (!edt_allowed())
		skip();
	edt_load(&l);
	l.tables.horizon_ns = 1000 * FOREVER;
	key = (uint32_t)edt_class(&l, "tokyo", nets, 1, SLOW_BPS);
	all_at_once(w, l.prog, work);
	for (i = 0; i < THREADS; i++)
		for (k = 0; k < RUNS; k++) {
			all[i * RUNS + k][0] = w[i].sent[k].departs;
			all[i * RUNS + k][1] = w[i].sent[k].cost_ns;
		}
	qsort(all, THREADS * RUNS, sizeof(*all), by_departure);
	for (i = 0; i + 1 < THREADS * RUNS; i++)
		assert_int_equal(all[i][0] + all[i][1], all[i + 1][0]);
	assert_int_equal(next_ns(&l, (int)key), all[i][0] + all[i][1]);
	assert_int_equal(bpf_map_lookup_elem(l.tables.clocks, &key, &clock), 0);
	assert_int_equal(clock.packets, THREADS * RUNS);
	edt_unload(&l);
}

#define TIGHT_RUNS 100000

/* Without a system call between two packets: CPUs meet at the clock all the time. */
static void *work_tightly(void *arg)
{
	struct worker *w = arg;
	struct __sk_buff in = {.wire_len = 1514};
	uint8_t frame[1514];
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = frame, .data_size_in = sizeof(frame),
		.ctx_in = &in, .ctx_size_in = sizeof(in), .repeat = TIGHT_RUNS);
	int i;

	make_frame(frame, sizeof(frame), "10.2.0.1");
	for (i = 0; i < 5; i++)
		assert_int_equal(bpf_prog_test_run_opts(w->prog, &o), 0);
	return NULL;
}

/* What all took together is what the clock has moved on, to the nanosecond. */
static void test_tight_threads(void **state)
{
	static const char *const nets[] = {"10.2.0.0/16"};
	const uint64_t n = 5ull * THREADS * TIGHT_RUNS, bps = 8000000;
	static struct worker w[THREADS];
	struct gci_edt_clock clock;
	struct edt_program l;
	uint8_t frame[1514];
	uint64_t first;
	uint32_t key;
	int i;

	(void)state;
	if (!edt_allowed())
		skip();
	edt_load(&l);
	l.tables.horizon_ns = 1000 * FOREVER;
	key = (uint32_t)edt_class(&l, "tokyo", nets, 1, bps);
	/* A minute ahead of the present, and further with each packet. */
	make_frame(frame, sizeof(frame), "10.2.0.1");
	for (i = 0; i < 1000; i++)
		send_one(l.prog, frame, 1514, 65226, 45, 0);
	first = next_ns(&l, (int)key);
	all_at_once(w, l.prog, work_tightly);
	assert_int_equal(next_ns(&l, (int)key) - first, n * cost_ns(1514, bps));
	assert_int_equal(bpf_map_lookup_elem(l.tables.clocks, &key, &clock), 0);
	assert_int_equal(clock.packets, 45000 + n);
	assert_int_equal(clock.nbytes, 65226000 + 1514 * n);
	edt_unload(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_departures),
		cmocka_unit_test(test_destinations),
		cmocka_unit_test(test_horizon),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_tight_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
