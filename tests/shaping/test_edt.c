/* SPDX-License-Identifier: MIT
 * The program itself, packet by packet, by the kernel's own test runs; and where it is attached, in
 * a network namespace of our own. Skipped by name where that is not allowed. */
#include "tests/test.h"

#include "shaping/bpf.h"
#include "shaping/edt_hook.h"
#include "shaping/edt_tables.h"
#include "shaping/trie.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NS_PER_S 1000000000ull
#define FOREVER  (1000000 * NS_PER_S)

struct loaded {
	struct bpf_object *object;
	struct gci_edt_tables tables;
	int prog;
};

static int allowed;

static void load(struct loaded *l)
{
	struct gci_error e = {0};

	if (gci_bpf_load(&l->object, GCI_BPF_EDT, &e))
		fail_msg("%s", e.text);
	l->prog = bpf_program__fd(bpf_object__find_program_by_name(l->object, GCI_EDT_PROGRAM));
	if (gci_edt_tables_new(&l->tables, l->object, &e))
		fail_msg("%s", e.text);
	l->tables.horizon_ns = FOREVER;
}

static void unload(struct loaded *l)
{
	gci_edt_tables_close(&l->tables);
	bpf_object__close(l->object);
}

/* A class with one holder. Returns its number. */
static int add_class(
	struct loaded *l, const char *name, const char *const *nets, unsigned n, uint64_t bps)
{
	struct gci_hold operator= {.fd = -1};
	struct gci_error e = {0};
	struct gci_net v[8];
	unsigned i, left;
	int number;

	for (i = 0; i < n; i++)
		assert_int_equal(gci_net_parse(&v[i], nets[i], &e), 0);
	number = gci_edt_tables_class(&l->tables, name, &e);
	assert_true(number >= 0);
	if (gci_edt_tables_route(&l->tables, number, v, n, &e) ||
		gci_edt_tables_ask(&l->tables, &operator, number, bps, &e) ||
		gci_edt_tables_settle(&l->tables, &operator, & left, &e))
		fail_msg("%s", e.text);
	return number;
}

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

static uint64_t next_ns(struct loaded *l, int number)
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
	struct loaded l;
	uint8_t frame[1514];
	struct sent a, b, c;
	uint32_t key;

	(void)state;
	if (!allowed)
		skip();
	load(&l);
	key = (uint32_t)add_class(&l, "tokyo", nets, 2, bps);
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
	unload(&l);
}

static void test_destinations(void **state)
{
	static const char *const wide[] = {"10.0.0.0/8"}, *const narrow[] = {"10.2.0.0/16"},
				 *const one[] = {"10.2.3.4"};
	uint8_t frame[60];
	struct loaded l;
	struct sent s;
	int a, b, c;

	(void)state;
	if (!allowed)
		skip();
	load(&l);
	a = add_class(&l, "a", wide, 1, 1000);
	b = add_class(&l, "b", narrow, 1, 1000);
	c = add_class(&l, "c", one, 1, 0);
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
	unload(&l);
}

static void test_horizon(void **state)
{
	static const char *const nets[] = {"10.2.0.0/16"};
	struct gci_edt_clock clock;
	struct loaded l;
	uint8_t frame[60];
	uint64_t before;
	uint32_t key;
	int i;

	(void)state;
	if (!allowed)
		skip();
	load(&l);
	l.tables.horizon_ns = 1500 * NS_PER_S;
	key = (uint32_t)add_class(&l, "tokyo", nets, 1, 1); /* 480 s each */
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
	unload(&l);
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
	struct loaded l;
	uint32_t key;
	int i, k;

	(void)state;
	if (!allowed)
		skip();
	load(&l);
	l.tables.horizon_ns = 1000 * FOREVER;
	key = (uint32_t)add_class(&l, "tokyo", nets, 1, SLOW_BPS);
	for (i = 0; i < THREADS; i++) {
		w[i].prog = l.prog;
		w[i].seed = (unsigned)i + 1;
		assert_int_equal(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(w[i].thread, NULL);
		for (k = 0; k < RUNS; k++) {
			all[i * RUNS + k][0] = w[i].sent[k].departs;
			all[i * RUNS + k][1] = w[i].sent[k].cost_ns;
		}
	}
	qsort(all, THREADS * RUNS, sizeof(*all), by_departure);
	for (i = 0; i + 1 < THREADS * RUNS; i++)
		assert_int_equal(all[i][0] + all[i][1], all[i + 1][0]);
	assert_int_equal(next_ns(&l, (int)key), all[i][0] + all[i][1]);
	assert_int_equal(bpf_map_lookup_elem(l.tables.clocks, &key, &clock), 0);
	assert_int_equal(clock.packets, THREADS * RUNS);
	unload(&l);
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
	struct loaded l;
	uint8_t frame[1514];
	uint64_t first;
	uint32_t key;
	int i;

	(void)state;
	if (!allowed)
		skip();
	load(&l);
	l.tables.horizon_ns = 1000 * FOREVER;
	key = (uint32_t)add_class(&l, "tokyo", nets, 1, bps);
	/* A minute ahead of the present, and further with each packet. */
	make_frame(frame, sizeof(frame), "10.2.0.1");
	for (i = 0; i < 1000; i++)
		send_one(l.prog, frame, 1514, 65226, 45, 0);
	first = next_ns(&l, (int)key);
	for (i = 0; i < THREADS; i++) {
		w[i].prog = l.prog;
		assert_int_equal(pthread_create(&w[i].thread, NULL, work_tightly, &w[i]), 0);
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(w[i].thread, NULL);
	assert_int_equal(next_ns(&l, (int)key) - first, n * cost_ns(1514, bps));
	assert_int_equal(bpf_map_lookup_elem(l.tables.clocks, &key, &clock), 0);
	assert_int_equal(clock.packets, 45000 + n);
	assert_int_equal(clock.nbytes, 65226000 + 1514 * n);
	unload(&l);
}

/* --- classes and holders
 * --------------------------------------------------------------------------- */

static uint64_t rate_of(struct loaded *l, int number)
{
	struct gci_edt_rate r;

	assert_int_equal(gci_edt_tables_rate(&l->tables, number, &r), 0);
	return r.bps;
}

static void test_holders(void **state)
{
	struct gci_hold a, b, c;
	struct gci_error e = {0};
	struct gci_edt_rate r;
	struct gci_net net, out[4];
	struct loaded l;
	unsigned left;
	int n, standing;

	(void)state;
	if (!allowed)
		skip();
	load(&l);
	assert_int_equal(gci_hold_open(&a, &e) | gci_hold_open(&b, &e) | gci_hold_open(&c, &e), 0);
	assert_int_equal(gci_hold_join(&a, &e) | gci_hold_join(&b, &e), 0);
	assert_true(a.id && b.id && a.id != b.id);
	assert_true(gci_hold_lives(&a, b.id) && gci_hold_lives(&b, a.id));

	n = gci_edt_tables_class(&l.tables, "tokyo", &e);
	assert_int_equal(gci_net_parse(&net, "10.2.0.0/16", &e), 0);
	assert_int_equal(gci_edt_tables_route(&l.tables, n, &net, 1, &e), 0);
	assert_int_equal(gci_edt_tables_ask(&l.tables, &a, n, 4000, &e), 0);
	assert_int_equal(gci_edt_tables_ask(&l.tables, &b, n, 3000, &e), 0);
	assert_int_equal(gci_edt_tables_settle(&l.tables, &a, &left, &e), 0);
	assert_int_equal(left, 2);
	assert_int_equal(rate_of(&l, n), 3000);
	assert_int_equal(gci_edt_tables_holders(&l.tables, n, &standing), 2);
	assert_false(standing);

	/* One net, one class. */
	assert_int_equal(gci_edt_tables_class(&l.tables, "tokyo", &e), n);
	assert_int_equal(gci_edt_tables_route(&l.tables, n, &net, 1, &e), 0);
	assert_int_equal(gci_trie_list(l.tables.nets, n, out, 4), 1);
	assert_int_equal(gci_edt_tables_route(&l.tables, n + 1, &net, 1, &e), GCOLL_ERR_INVAL);
	assert_string_equal(e.text, "10.2.0.0/16 belongs to class tokyo already");
	gci_error_clear(&e);

	/* No limit is no lower than any. */
	assert_int_equal(gci_edt_tables_ask(&l.tables, &a, n, 0, &e), 0);
	assert_int_equal(gci_edt_tables_settle(&l.tables, &a, &left, &e), 0);
	assert_int_equal(rate_of(&l, n), 3000);

	gci_hold_close(&b); /* as when its process dies */
	assert_false(gci_hold_lives(&a, b.id));
	assert_int_equal(gci_edt_tables_settle(&l.tables, &c, &left, &e), 0);
	assert_int_equal(left, 1);
	assert_int_equal(rate_of(&l, n), 0);

	gci_edt_tables_leave(&l.tables, &a, -1);
	assert_int_equal(gci_edt_tables_settle(&l.tables, &c, &left, &e), 0);
	assert_int_equal(left, 0);
	assert_int_equal(gci_edt_tables_rate(&l.tables, n, &r), GCOLL_ERR_INVAL);
	assert_int_equal(gci_trie_list(l.tables.nets, n, out, 4), 0);
	gci_hold_close(&a);
	gci_hold_close(&c);
	unload(&l);
}

/* --- where it is attached
 * --------------------------------------------------------------------------- */

static int attached(int ifindex, struct gci_edt_hook *h)
{
	struct gci_error e = {0};

	if (gci_edt_hook_find(h, ifindex, &e))
		fail_msg("%s", e.text);
	return h->prog_fd >= 0;
}

/* A job whose filter `shape clear` took away does not take another's. */
static void replaced_filter(int ifindex, int old_prog)
{
	struct bpf_tc_hook hook = {
		.sz = sizeof(hook), .ifindex = ifindex, .attach_point = BPF_TC_EGRESS};
	struct gci_edt_hook h = {ifindex, GCI_EDT_CLSACT, dup(old_prog), -1, 1}, found;
	struct loaded l;

	if (bpf_tc_hook_create(&hook))
		return;
	load(&l);
	LIBBPF_OPTS(bpf_tc_opts, o, .handle = 1, .priority = 0x6763, .prog_fd = l.prog);
	assert_int_equal(bpf_tc_attach(&hook, &o), 0);
	gci_edt_hook_detach(&h, 1);
	assert_true(attached(ifindex, &found));
	assert_int_equal(found.at, GCI_EDT_CLSACT);
	gci_edt_hook_detach(&found, 1);
	assert_false(attached(ifindex, &found));
	unload(&l);
}

/* Programs that are attached already have their turn after ours. */
static void comes_first(int ifindex, int standing)
{
	const enum bpf_attach_type tcx_egress = (enum bpf_attach_type)47;
	LIBBPF_OPTS(bpf_prog_query_opts, q);
	uint32_t ids[2] = {0}, len = sizeof(struct bpf_prog_info);
	struct bpf_prog_info info = {0};
	struct gci_edt_hook h = {.ifindex = ifindex, .prog_fd = -1, .link_fd = -1};
	struct gci_error e = {0};
	struct loaded other, ours;

	load(&other);
	load(&ours);
	if (!bpf_prog_attach(other.prog, ifindex, tcx_egress, 0)) {
		assert_int_equal(gci_edt_hook_attach(&h, ours.prog, standing, &e), 0);
		q.prog_ids = ids;
		q.prog_cnt = 2;
		assert_int_equal(bpf_prog_query_opts(ifindex, tcx_egress, &q), 0);
		assert_int_equal(bpf_obj_get_info_by_fd(ours.prog, &info, &len), 0);
		assert_int_equal(q.prog_cnt, 2);
		assert_int_equal(ids[0], info.id);
		gci_edt_hook_detach(&h, 0);
		assert_int_equal(bpf_prog_detach2(other.prog, ifindex, tcx_egress), 0);
	}
	unload(&ours);
	unload(&other);
}

static void in_a_namespace(void)
{
	struct gci_edt_hook h, found;
	int lo = (int)if_nametoindex("lo"), status;
	struct gci_error e = {0};
	struct loaded l;
	pid_t pid;

	load(&l);
	assert_false(attached(lo, &h));
	replaced_filter(lo, l.prog);
	comes_first(lo, 0);
	comes_first(lo, 1);

	/* Standing, it outlives who attached it; a second time it is replaced. */
	assert_int_equal(gci_edt_hook_attach(&h, l.prog, 1, &e), 0);
	gci_edt_hook_close(&h);
	assert_true(attached(lo, &h));
	assert_int_equal(gci_edt_hook_attach(&h, l.prog, 1, &e), 0);
	gci_edt_hook_detach(&h, h.made_clsact);
	assert_false(attached(lo, &found));

	/* As a link it ends with who holds it, be it by accident: of two, the second. */
	assert_int_equal(gci_edt_hook_attach(&h, l.prog, 0, &e), 0);
	if (h.at != GCI_EDT_TCX)
		exit(0);
	pid = fork();
	if (!pid)
		exit(!attached(lo, &found) || found.link_fd < 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(attached(lo, &found));
	gci_edt_hook_close(&h);
	gci_edt_hook_close(&found);
	assert_false(attached(lo, &h));

	/* What a job attached, an operator can make stand. */
	assert_int_equal(gci_edt_hook_attach(&h, l.prog, 0, &e), 0);
	assert_true(attached(lo, &found));
	assert_int_equal(gci_edt_hook_attach(&found, l.prog, 1, &e), 0);
	gci_edt_hook_close(&found);
	gci_edt_hook_close(&h);
	assert_true(attached(lo, &h));
	assert_true(h.link_fd < 0);
	gci_edt_hook_detach(&h, 0);
	assert_false(attached(lo, &found));
	exit(0);
}

static void test_hook(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	if (!allowed)
		skip();
	pid = fork();
	if (!pid) {
		if (unshare(CLONE_NEWNET))
			_exit(77);
		in_a_namespace();
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(status, 0);
}

/* Without fq nothing is done, and what would help is said. */
static void test_refused(void **state)
{
	struct gci_edt *edt = NULL;
	struct gci_error e = {0};

	(void)state;
	assert_int_equal(gci_edt_open(&edt, "no-such-dev", 0, &e), GCOLL_ERR_INVAL);
	assert_non_null(strstr(e.text, "no-such-dev"));
	gci_error_clear(&e);
	assert_int_equal(gci_edt_open(&edt, "lo", 0, &e), GCOLL_ERR_UNSUPPORTED);
	assert_null(edt);
	assert_non_null(strstr(e.text, allowed ? "tc qdisc replace dev lo root fq" : "root"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_departures),
		cmocka_unit_test(test_destinations),
		cmocka_unit_test(test_horizon),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_tight_threads),
		cmocka_unit_test(test_holders),
		cmocka_unit_test(test_hook),
		cmocka_unit_test(test_refused),
	};
	struct bpf_object *o;
	struct gci_error e = {0};

	allowed = !gci_bpf_load(&o, GCI_BPF_EDT, &e);
	if (allowed)
		bpf_object__close(o);
	else if (strstr(e.text, "not allowed"))
		print_message("eBPF programs are not tested here: %s\n", e.text);
	else
		fail_msg("%s", e.text);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
