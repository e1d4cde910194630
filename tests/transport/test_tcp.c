/* SPDX-License-Identifier: MIT */
#include "tests/transport/conformance.h"

#include "transport/address.h"
#include "transport/hello.h"
#include "transport/tcp.h"

#include <dirent.h>
#include <errno.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECRET "0123456789"

static const char *listen_ip = "127.0.0.1";
static char last_addrs[MAX_RANKS][GCI_TCP_ADDR_NBYTES];

/* What a test wants to be different. */
static int forked = -1; /* the rank that is a process of its own */
static pid_t forked_pid;
static const char *secret_of_rank_1 = SECRET;
static int opens_nothing;

static void child(const struct gci_tp_config *config, const struct gci_tcp_config *tcp);

static int open_all(struct world *w, uv_loop_t *loop)
{
	const char *list[MAX_RANKS];
	struct gci_tcp_config tcp = {.addrs = list, .loop = loop, .congestion = "reno"};
	int fds[MAX_RANKS], i, rc = 0;

	for (i = 0; i < w->size && !opens_nothing; i++) {
		assert_int_equal(gci_tcp_listen(listen_ip, 0, 0, &fds[i], last_addrs[i], NULL), 0);
		list[i] = last_addrs[i];
	}
	for (i = 0; i < w->size && !opens_nothing; i++) {
		const char *secret = i == 1 ? secret_of_rank_1 : SECRET;

		memset(tcp.secret, 0, sizeof(tcp.secret));
		memcpy(tcp.secret, secret, strlen(secret));
		tcp.listen_fd = fds[i];
		if (i == forked) {
			forked_pid = fork();
			if (!forked_pid)
				child(&w->config[i], &tcp);
			close(fds[i]);
		} else if (gci_tcp_create(&w->tp[i], &w->config[i], &tcp, NULL)) {
			rc = GCOLL_ERR_NOMEM;
		}
	}
	if (rc)
		world_close(w);
	return rc;
}

/* Each rank with a loop of its own. */
static int own_open(struct world *w)
{
	return open_all(w, NULL);
}

static void own_close(struct world *w)
{
	(void)w;
}

static int own_step(struct world *w)
{
	int i;

	for (i = 0; i < w->size; i++)
		if (w->tp[i])
			gci_tp_progress(w->tp[i], i ? 0 : 100000);
	return 1;
}

/* All ranks on one loop. */
static uv_loop_t shared;

static int shared_open(struct world *w)
{
	assert_int_equal(uv_loop_init(&shared), 0);
	w->private = &shared;
	return open_all(w, &shared);
}

static void shared_close(struct world *w)
{
	(void)w;
	uv_run(&shared, UV_RUN_DEFAULT); /* the last callbacks of what was freed */
	assert_int_equal(uv_loop_close(&shared), 0);
}

static const struct backend own = {
	.name = "tcp", .open = own_open, .close = own_close, .step = own_step};
static const struct backend on_shared_loop = {.name = "tcp on a shared loop",
	.open = shared_open,
	.close = shared_close,
	.step = own_step};

/* Connects to a listener as anyone could. */
static int knock(const char *addr)
{
	struct gci_address a;
	int fd;

	assert_int_equal(gci_address_parse(&a, addr), 0);
	fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, &a.any, a.len), 0);
	return fd;
}

/* A message each way between ranks 0 and 1. */
static void exchange(struct world *w)
{
	static uint8_t from[300000], to[2][300000];
	struct message m[4];

	fill(from, sizeof(from), 4);
	memset(to, 0, sizeof(to));
	send_to(w, 0, &m[0], 1, 1, from, sizeof(from));
	send_to(w, 1, &m[1], 0, 1, from, sizeof(from));
	recv_from(w, 0, &m[2], 1, 1, to[0], sizeof(from));
	recv_from(w, 1, &m[3], 0, 1, to[1], sizeof(from));
	world_finish(w, m, 4);
	assert_int_equal(m[2].status, 0);
	assert_int_equal(m[3].status, 0);
	assert_memory_equal(from, to[0], sizeof(from));
	assert_memory_equal(from, to[1], sizeof(from));
}

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
	const struct gci_hello h = {
		.epoch = 3, .from = 0, .to = 1, .streams = 1, .eager_nbytes = 64 << 10, .size = 2};
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

/* Sends what it can until it is killed. */
static void child(const struct gci_tp_config *config, const struct gci_tcp_config *tcp)
{
	static uint8_t big[64 << 20];
	struct gci_tp *tp;
	struct message m[2];
	int i;

	if (gci_tcp_create(&tp, config, tcp, NULL))
		_exit(1);
	for (i = 0; i < 2; i++) {
		message_init(&m[i], 2 * i, (struct gci_tp_key){.tag = 9}, big, sizeof(big));
		gci_tp_isend(tp, &m[i].r);
	}
	for (;;)
		gci_tp_progress(tp, 1000000000);
}

static int some_has_come(void *arg)
{
	struct gci_tp_stats a, b;
	struct world *w = arg;

	gci_tp_stats(w->tp[0], 1, &a);
	gci_tp_stats(w->tp[2], 1, &b);
	return a.rx_payload_nbytes && b.rx_payload_nbytes;
}

static void a_killed_process_is_noticed(void **state)
{
	static uint8_t big[2][64 << 20];
	struct message m[2];
	struct world w;
	int i;

	(void)state;
	forked = 1;
	world_open(&w, &own, 3, NULL);
	forked = -1;
	for (i = 0; i < 2; i++)
		recv_from(&w, 2 * i, &m[i], 1, 9, big[i], sizeof(big[i]));
	world_run(&w, some_has_come, &w);
	assert_int_equal(kill(forked_pid, SIGKILL), 0);
	assert_int_equal(waitpid(forked_pid, NULL, 0), forked_pid);
	world_finish(&w, m, 2);
	for (i = 0; i < 2; i++) {
		assert_int_equal(m[i].status, GCOLL_ERR_PEER);
		assert_int_equal(w.failure[2 * i].peer, 1);
		assert_non_null(strstr(w.failure[2 * i].text, "rank 1 died"));
	}
	world_close(&w);
}

/* One rank whose peers' addresses are the test's choice. */
static struct gci_tp *lonely(struct world *w, const char *peer_addr, uint64_t connect_ns)
{
	char addr[GCI_TCP_ADDR_NBYTES];
	const char *list[2] = {addr, peer_addr};
	struct gci_tcp_config tcp = {.addrs = list, .connect_timeout_ns = connect_ns};
	struct gci_error e = {0};
	int rc;

	memset(w, 0, sizeof(*w));
	opens_nothing = 1;
	world_open(w, &own, 2, NULL);
	opens_nothing = 0;
	assert_int_equal(gci_tcp_listen("127.0.0.1", 0, 0, &tcp.listen_fd, addr, &e), 0);
	rc = gci_tcp_create(&w->tp[0], &w->config[0], &tcp, &e);
	if (rc) {
		assert_int_equal(rc, e.status);
		print_message("%s\n", e.text);
		w->tp[0] = NULL;
	}
	return w->tp[0];
}

static void nobody_listens(void **state)
{
	char addr[GCI_TCP_ADDR_NBYTES];
	struct message m;
	struct world w;
	uint8_t b = 0;
	int fd;

	(void)state;
	assert_int_equal(gci_tcp_listen("127.0.0.1", 0, 0, &fd, addr, NULL), 0);
	close(fd);
	assert_non_null(lonely(&w, addr, 0));
	send_to(&w, 0, &m, 1, 1, &b, 1);
	world_finish(&w, &m, 1);
	assert_int_equal(m.status, GCOLL_ERR_PEER);
	assert_int_equal(w.failure[0].peer, 1);
	assert_non_null(strstr(w.failure[0].text, addr));
	assert_non_null(strstr(w.failure[0].text, "Connection refused"));
	world_close(&w);
}

/* A listener whose queue is full drops what comes, as a host that is not there would. */
static void nobody_answers(void **state)
{
	char addr[GCI_TCP_ADDR_NBYTES];
	struct gci_address a;
	struct message m;
	struct world w;
	int fd, fill_fds[8], i;
	uint8_t b = 0;

	(void)state;
	assert_int_equal(gci_tcp_listen("127.0.0.1", 0, 0, &fd, addr, NULL), 0);
	assert_int_equal(listen(fd, 0), 0);
	assert_int_equal(gci_address_parse(&a, addr), 0);
	for (i = 0; i < 8; i++) {
		fill_fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		connect(fill_fds[i], &a.any, a.len);
	}
	assert_non_null(lonely(&w, addr, 300000000));
	recv_from(&w, 0, &m, 1, 1, &b, 1);
	world_finish(&w, &m, 1);
	assert_int_equal(m.status, GCOLL_ERR_PEER);
	assert_non_null(strstr(w.failure[0].text, "no answer within"));
	world_close(&w);
	for (i = 0; i < 8; i++)
		close(fill_fds[i]);
	close(fd);
}

static void bad_addresses(void **state)
{
	static const char *const wrong[] = {"", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0",
		"127.0.0.1:65536", "host:1", ":1", "[]:1", "::1:1", "[::1:1", "127.0.0.1:1x"};
	struct world w;
	int before, fd;
	size_t i;
	char addr[GCI_TCP_ADDR_NBYTES];
	struct gci_error e = {0};

	(void)state;
	before = count_fds();
	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_null(lonely(&w, wrong[i], 0));
	assert_int_equal(gci_tcp_listen("localhost", 0, 0, &fd, addr, &e), GCOLL_ERR_INVAL);
	assert_int_equal(gci_tcp_listen("127.0.0.1", 5, 4, &fd, addr, NULL), GCOLL_ERR_INVAL);
	assert_int_equal(count_fds(), before);
}

static void ports_in_a_range(void **state)
{
	char addr[3][GCI_TCP_ADDR_NBYTES];
	struct gci_error e = {0};
	unsigned port;
	int fd[3];

	(void)state;
	assert_int_equal(gci_tcp_listen("127.0.0.1", 0, 0, &fd[0], addr[0], NULL), 0);
	assert_int_equal(sscanf(addr[0], "127.0.0.1:%u", &port), 1);
	if (port > 65000)
		port = 65000;
	assert_int_equal(gci_tcp_listen("127.0.0.1", (uint16_t)port, (uint16_t)(port + 500), &fd[1],
				 addr[1], NULL),
		0);
	assert_string_not_equal(addr[0], addr[1]);
	assert_int_equal(sscanf(addr[1], "127.0.0.1:%u", &port), 1);
	assert_int_equal(
		gci_tcp_listen("127.0.0.1", (uint16_t)port, (uint16_t)port, &fd[2], addr[2], &e),
		GCOLL_ERR_SYS);
	assert_non_null(strstr(e.text, "Address already in use"));
	close(fd[0]);
	close(fd[1]);
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

static int both_failed(void *arg)
{
	struct world *w = arg;

	return w->nfailures[0] && w->nfailures[1];
}

static void different_links(void **state)
{
	struct world w;
	uint8_t b;
	struct message m;

	(void)state;
	differing_rank = 1;
	world_open(&w, &own, 2, NULL);
	recv_from(&w, 0, &m, 1, 1, &b, 1);
	world_run(&w, both_failed, &w);
	differing_rank = -1;
	assert_int_equal(w.failure[0].status, GCOLL_ERR_MISMATCH);
	assert_int_equal(w.failure[1].status, GCOLL_ERR_MISMATCH);
	world_close(&w);
}

/* A rank that computes and reads nothing for longer than dead_ns is not dead. */
static void a_busy_peer_lives(void **state)
{
	struct gci_tp_link link = {.streams = 1, .eager_nbytes = 1000, .dead_ns = 1000000000};
	size_t n = 64 << 20;
	uint8_t *from = calloc(1, n), *to = calloc(1, n);
	struct message m[2];
	struct world w;
	int i;

	(void)state;
	world_open(&w, &own, 2, &link);
	exchange(&w);
	recv_from(&w, 1, &m[1], 0, 2, to, n);
	own_step(&w);
	send_to(&w, 0, &m[0], 1, 2, from, n);
	for (i = 0; i < 300; i++)
		gci_tp_progress(w.tp[0], 10000000);
	assert_int_equal(m[0].ndone, 0); /* it was too much for the sockets' buffers */
	world_finish(&w, m, 2);
	assert_int_equal(m[1].status, 0);
	world_close(&w);
	free(from);
	free(to);
}

static int set_loopback(int up)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc;
	struct ifreq ifr = {.ifr_name = "lo", .ifr_flags = up ? IFF_UP : 0};

	rc = ioctl(fd, SIOCSIFFLAGS, &ifr);
	close(fd);
	return rc;
}

/* In a child with a network of its own, whose only link goes down. 0: as expected. */
static int lose_the_link(void)
{
	struct gci_tp_link link = {.streams = 2, .eager_nbytes = 1000, .dead_ns = 1000000000};
	static uint8_t from[64 << 20], to[64 << 20];
	struct message m[2];
	struct world w;
	int i;

	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return 77;
	if (set_loopback(1))
		return 77;
	world_open(&w, &own, 2, &link);
	exchange(&w);
	send_to(&w, 0, &m[0], 1, 2, from, sizeof(from));
	recv_from(&w, 1, &m[1], 0, 2, to, sizeof(to));
	for (i = 0; i < 10; i++)
		own_step(&w);
	if (m[1].ndone || set_loopback(0))
		return 77;
	world_finish(&w, m, 1);
	return !(m[0].status == GCOLL_ERR_PEER && w.failure[0].peer == 1 &&
		 strstr(w.failure[0].text, "has not answered"));
}

static void a_lost_link_is_noticed(void **state)
{
	pid_t pid;
	int status;

	(void)state;
	pid = fork();
	if (!pid)
		_exit(lose_the_link());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
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

static void ranks_in_threads(void **state)
{
	struct gci_tp_link link = {.streams = 3,
		.eager_nbytes = 100000,
		.sockbuf_nbytes = 100000,
		.dead_ns = 20000000000ull};
	struct worker k[4];
	struct world w;
	int i;

	(void)state;
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

static const struct CMUnitTest more[] = {
	cmocka_unit_test(strangers_are_turned_away),
	cmocka_unit_test(a_crowd_of_silent_strangers),
	cmocka_unit_test(ipv6),
	cmocka_unit_test(no_descriptor_is_left),
	cmocka_unit_test(a_killed_process_is_noticed),
	cmocka_unit_test(nobody_listens),
	cmocka_unit_test(nobody_answers),
	cmocka_unit_test(bad_addresses),
	cmocka_unit_test(ports_in_a_range),
	cmocka_unit_test(another_jobs_secret),
	cmocka_unit_test(different_links),
	cmocka_unit_test(a_busy_peer_lives),
	cmocka_unit_test(a_lost_link_is_noticed),
	cmocka_unit_test(waiting_costs_nothing),
	cmocka_unit_test(ranks_in_threads),
};

int main(void)
{
	int failed = conformance_main(&own, more, sizeof(more) / sizeof(*more));

	return failed + conformance_main(&on_shared_loop, NULL, 0);
}
