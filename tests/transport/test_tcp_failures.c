/* SPDX-License-Identifier: MIT
 * Peers and networks that fail, and some that only seem to. */
#include "tests/transport/tcp_world.h"

#include "base/crc32c.h"
#include "tests/forbid.h"
#include "transport/address.h"
#include "transport/frame.h"

#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void a_killed_process_is_noticed(void **state)
{
	(void)state;
	a_rank_is_killed(KILLED_SENDING, NULL);
}

static void nobody_listens(void **state)
{
	char addr[GCI_ADDRESS_TEXT];
	struct message m;
	struct world w;
	uint8_t b = 0;
	int fd;

	(void)state;
	listen_on("127.0.0.1", &fd, addr);
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
	char addr[GCI_ADDRESS_TEXT];
	struct gci_address a;
	struct message m;
	struct world w;
	int fd, fill_fds[8], i;
	uint8_t b = 0;

	(void)state;
	listen_on("127.0.0.1", &fd, addr);
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
	for (differs_in_checksums = 0; differs_in_checksums < 2; differs_in_checksums++) {
		differing_rank = 1;
		world_open(&w, &own, 2, NULL);
		recv_from(&w, 0, &m, 1, 1, &b, 1);
		world_run(&w, both_failed, &w);
		differing_rank = -1;
		assert_int_equal(w.failure[0].status, GCOLL_ERR_MISMATCH);
		assert_int_equal(w.failure[1].status, GCOLL_ERR_MISMATCH);
		world_close(&w);
	}
	differs_in_checksums = 0;
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

/* Rank 0, by hand: a frame's header and half of its payload. */
static int half_a_frame(const struct world *w, const uint8_t *payload, uint32_t nbytes)
{
	const struct gci_hello h = hello_of(w, 0, 1);
	const struct gci_frame f = {.type = GCI_FRAME_DATA,
		.epoch = 3,
		.key = {.tag = 2},
		.length = nbytes,
		.digest = 77,
		.nbytes = nbytes,
		.crc = gci_crc32c(0, payload, nbytes)};
	uint8_t secret[GCI_TCP_SECRET_NBYTES] = SECRET, hello[GCI_HELLO_NBYTES];
	uint8_t head[GCI_FRAME_HEAD_NBYTES];
	int fd = knock(last_addrs[1]);

	assert_int_equal(gci_hello_encode(&h, secret, hello), 0);
	gci_frame_encode(&f, head);
	assert_int_equal(send(fd, hello, sizeof(hello), MSG_NOSIGNAL), sizeof(hello));
	assert_int_equal(send(fd, head, sizeof(head), MSG_NOSIGNAL), sizeof(head));
	assert_int_equal(send(fd, payload, nbytes / 2, MSG_NOSIGNAL), nbytes / 2);
	return fd;
}

static int half_is_here(void *arg)
{
	static const uint8_t none[8];
	uint8_t *end = arg;

	return memcmp(end - 8, none, 8) != 0;
}

/* A request's memory is its owner's again once done was called, or the transport is freed, whatever
 * was to be received into it. `how`: what rank 1 does in the middle of a frame. */
static void gives_memory_back(void (*how)(struct world *w, struct message *m))
{
	enum { N = 200000 };
	static const uint8_t zeros[N / 2];
	uint8_t *from = room(N), *to = room(N);
	struct message m;
	struct world w;
	int fd, i;

	fill(from, N, 5);
	world_open(&w, &own, 2, NULL);
	recv_from(&w, 1, &m, 0, 2, to, N);
	fd = half_a_frame(&w, from, N);
	world_run(&w, half_is_here, to + N / 2);
	for (i = 0; i < 10; i++) /* rank 1 waits for more now */
		own_step(&w);
	how(&w, &m);
	/* It may have hung up, and nobody take this. */
	send(fd, from + N / 2, N / 2, MSG_NOSIGNAL);
	for (i = 0; i < 20; i++)
		own_step(&w);
	assert_memory_equal(to + N / 2, zeros, N / 2);
	close(fd);
	world_close(&w);
	free(from);
	free(to);
}

static void fails(struct world *w, struct message *m)
{
	gci_tp_fail(w->tp[1], GCOLL_ERR_PEER);
	while (!m->ndone)
		gci_tp_progress(w->tp[1], 0);
	assert_int_equal(m->status, GCOLL_ERR_PEER);
}

static void is_freed(struct world *w, struct message *m)
{
	world_free_rank(w, 1);
	assert_int_equal(m->ndone, 0);
}

static void memory_comes_back(void **state)
{
	(void)state;
	if (world_encrypted)
		skip(); /* its frames by hand are plain */
	gives_memory_back(fails);
	gives_memory_back(is_freed);
}

/* A program that forbids itself system calls after the first operations. 0: as expected. */
static int lose_the_ring(void)
{
	static uint8_t from[1 << 20], to[1 << 20];
	struct message m[2];
	struct world w;
	int i;

	world_open(&w, &own, 2, NULL);
	exchange(&w);
	if (strcmp(gci_tcp_path(w.tp[0]), "uring") != 0)
		return 77;
	recv_from(&w, 1, &m[1], 0, 2, to, sizeof(to));
	for (i = 0; i < 10; i++)
		own_step(&w);
	if (forbid(SYS_io_uring_enter))
		return 8;
	send_to(&w, 0, &m[0], 1, 2, from, sizeof(from));
	world_finish(&w, m, 2);
	if (m[0].status != GCOLL_ERR_SYS || !strstr(w.failure[0].text, "io_uring"))
		return 1;
	world_close(&w);
	return 0;
}

static int in_a_child(int (*f)(void))
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(f());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void a_ring_that_is_forbidden_later(void **state)
{
	int rc = in_a_child(lose_the_ring);

	(void)state;
	if (rc == 77)
		skip();
	assert_int_equal(rc, 0);
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
	int rc = in_a_child(lose_the_link);

	(void)state;
	if (rc == 77)
		skip();
	assert_int_equal(rc, 0);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(a_killed_process_is_noticed),
	cmocka_unit_test(nobody_listens),
	cmocka_unit_test(nobody_answers),
	cmocka_unit_test(different_links),
	cmocka_unit_test(a_busy_peer_lives),
	cmocka_unit_test(memory_comes_back),
	cmocka_unit_test(a_ring_that_is_forbidden_later),
	cmocka_unit_test(a_lost_link_is_noticed),
};

int main(void)
{
	choose_path();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
