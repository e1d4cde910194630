/* SPDX-License-Identifier: MIT
 * What connections ask the system besides moving data (tcp_calls fails that), and asks that matter
 * only when something else has failed: each call fails once. */
#include "tests/captured.h"
#include "tests/failing/failing.h"
#include "tests/transport/tcp_world.h"

#include "base/log.h"
#include "transport/tcp_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The first one may open what stays. */
static int warm_up(void **state)
{
	struct world w;

	(void)state;
	world_open(&w, &own, 2, NULL);
	world_close(&w);
	return 0;
}

/* ---- strangers */

static int is_over(void *arg)
{
	char byte;
	ssize_t n = recv(*(const int *)arg, &byte, 1, MSG_DONTWAIT);

	return n == 0 || (n < 0 && errno == ECONNRESET);
}

/* Who was turned away is said in the log, as far as it is known. */
static void a_stranger_without_a_name(void **state)
{
	static const uint8_t junk[GCI_HELLO_NBYTES] = {'x'};
	struct captured log;
	struct world w;
	int fd;

	(void)state;
	world_open(&w, &own, 2, NULL);
	fd = knock(last_addrs[1]);
	assert_int_equal(send(fd, junk, sizeof(junk), 0), sizeof(junk));
	log = capture_begin();
	failing_at(FAILING_getpeername, 1, ENOTCONN);
	world_run(&w, is_over, &fd);
	capture_end(&log);
	assert_true(failing_happened(FAILING_getpeername));
	assert_non_null(strstr(log.text, "turned away a connection from ?: "));
	close(fd);
	exchange(&w);
	world_close(&w);
}

static void no_memory_for_a_stranger(void **state)
{
	struct world w;
	int fd;

	(void)state;
	world_open(&w, &own, 2, NULL);
	fd = knock(last_addrs[1]);
	failing_at(FAILING_gci_calloc, 1, ENOMEM);
	failing_at(FAILING_close, 1, EIO);
	world_run(&w, is_over, &fd);
	assert_true(failing_happened(FAILING_gci_calloc));
	assert_true(failing_happened(FAILING_close));
	assert_int_equal(w.failure[1].status, GCOLL_ERR_NOMEM);
	assert_string_equal(w.failure[1].text, "out of memory for a connection");
	close(fd);
	world_close(&w);
}

/* ---- memory that is short */

struct attempt {
	struct world w;
	struct message out, in;
};

static int has_come_or_failed(void *arg)
{
	const struct attempt *a = arg;

	return a->w.nfailures[0] || a->w.nfailures[1] || (a->out.ndone && a->in.ndone);
}

/* Of all that a rank asks for to call another, one is the connection. */
static void no_memory_to_call(void **state)
{
	int happened = 1, nconns = 0;
	unsigned long n;
	struct attempt a;
	uint8_t from = 1, to;

	(void)state;
	for (n = 1; happened; n++) {
		world_open(&a.w, &own, 2, NULL);
		failing_at(FAILING_gci_calloc, n, ENOMEM);
		failing_at(FAILING_close, 1, EIO);
		send_to(&a.w, 0, &a.out, 1, 1, &from, 1);
		recv_from(&a.w, 1, &a.in, 0, 1, &to, 1);
		world_run(&a.w, has_come_or_failed, &a);
		happened = failing_happened(FAILING_gci_calloc);
		if (a.w.nfailures[0]) {
			assert_int_equal(a.out.ndone, 1);
			assert_int_equal(a.w.failure[0].status, GCOLL_ERR_NOMEM);
			nconns += !strcmp(a.w.failure[0].text, "out of memory for a connection") &&
				  failing_happened(FAILING_close);
		}
		failing_at(FAILING_gci_calloc, 0, 0);
		failing_at(FAILING_close, 0, 0);
		world_close(&a.w);
		assert_int_equal(failing_end(NULL), 0);
	}
	assert_true(nconns > 0);
}

static void no_memory_for_a_transport(void **state)
{
	struct gci_tp_config config = {.rank = 0, .size = 1, .epoch = 3};
	struct gci_tcp_config tcp = {0};
	char addr[GCI_ADDRESS_TEXT];
	struct gci_error e = {0};
	struct gci_reach reach;
	struct gci_tp *tp;
	unsigned long n;
	int rc = -1;

	(void)state;
	for (n = 1; rc; n++) {
		listen_on("127.0.0.1", &tcp.listen_fd, addr);
		reach = reach_of(addr);
		tcp.reach = &reach;
		gci_error_clear(&e);
		failing_at(FAILING_gci_calloc, n, ENOMEM);
		failing_at(FAILING_close, 1, EIO);
		rc = gci_tcp_create(&tp, &config, &tcp, &e);
		assert_int_equal(!rc, !failing_happened(FAILING_gci_calloc));
		assert_int_equal(!rc, !failing_happened(FAILING_close));
		assert_int_equal(rc, rc ? GCOLL_ERR_NOMEM : 0);
		assert_true(!rc || !strncmp(e.text, "out of memory", 13));
		if (rc)
			assert_int_equal(failing_end(NULL), 0);
	}
	assert_true(n > 3);
	failing_at(FAILING_gci_calloc, 0, 0);
	failing_at(FAILING_close, 0, 0);
	gci_tp_free(tp);
}

/* ---- sending */

static uint64_t nlost(const struct world *w)
{
	struct gci_tp_stats s;

	gci_tp_stats(w->tp[0], 1, &s);
	return s.lost;
}

/* A connection that takes nothing more is shut, if it can be, and its frames go again. */
static void a_send_that_fails(void **state)
{
	const struct gci_tp_link link = {
		.streams = 2, .eager_nbytes = 64 << 10, .replay_nbytes = 1 << 20};
	struct world w;

	(void)state;
	world_open(&w, &own, 2, &link);
	exchange(&w);
	assert_int_equal(nlost(&w), 0);
	failing_at(FAILING_sendmsg, 1, ECONNRESET);
	failing_at(FAILING_shutdown, 1, ENOTCONN);
	exchange(&w);
	assert_true(failing_happened(FAILING_sendmsg));
	assert_true(failing_happened(FAILING_shutdown));
	assert_true(nlost(&w) > 0);
	assert_int_equal(w.nfailures[0] + w.nfailures[1], 0);
	world_close(&w);
}

/* ---- pacing */

static const struct gci_pace_group *group(const struct world *w)
{
	return &gci_container(w->tp[0], struct gci_tcp, tp)->pacer->groups[1];
}

static int none_is_busy(void *arg)
{
	return !group(arg)->busy;
}

static void open_paced(struct world *w, const struct gci_pace *pace)
{
	const struct gci_tp_link link = {.streams = 2, .eager_nbytes = 64 << 10, .pace_group = 1};

	world_open(w, &own, 2, &link);
	exchange(w);
	gci_tp_pace(w->tp[0], 1, pace);
}

/* Then the connection goes unpaced, and the log says so. */
static void a_priority_that_is_not_permitted(void **state)
{
	const struct gci_pace pace = {.by = GCI_PACED_BY_CLASS, .bps = 1000000000, .priority = 7};
	struct captured log;
	struct world w;

	(void)state;
	open_paced(&w, &pace);
	log = capture_begin();
	failing_from(FAILING_setsockopt, 1, EPERM);
	exchange(&w);
	failing_at(FAILING_setsockopt, 0, 0);
	capture_end(&log);
	assert_int_equal(captured_times(&log, "SO_PRIORITY = 7: Operation not permitted"), 2);
	assert_int_equal(w.nfailures[0] + w.nfailures[1], 0);
	world_close(&w);
}

/* Where the kernel does not tell what it holds, a connection that has sent all is taken for empty:
 * its part of the rate is free for the others. */
static void memory_of_a_socket_that_is_not_told(void **state)
{
	const struct gci_pace pace = {.by = GCI_PACED_BY_FQ, .bps = 80000000000};
	struct world w;

	(void)state;
	open_paced(&w, &pace);
	exchange(&w);
	world_run(&w, none_is_busy, &w);
	failing_from(FAILING_getsockopt, 1, ENOBUFS);
	exchange(&w);
	world_run(&w, none_is_busy, &w);
	assert_true(failing_happened(FAILING_getsockopt));
	failing_at(FAILING_getsockopt, 0, 0);
	exchange(&w);
	world_run(&w, none_is_busy, &w);
	assert_int_equal(w.nfailures[0] + w.nfailures[1], 0);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_stranger_without_a_name, failing_begin, failing_end),
		cmocka_unit_test_setup_teardown(
			no_memory_for_a_stranger, failing_begin, failing_end),
		cmocka_unit_test_setup_teardown(no_memory_to_call, failing_begin, failing_end),
		cmocka_unit_test_setup_teardown(
			no_memory_for_a_transport, failing_begin, failing_end),
		cmocka_unit_test_setup_teardown(a_send_that_fails, failing_begin, failing_end),
		cmocka_unit_test_setup_teardown(
			a_priority_that_is_not_permitted, failing_begin, failing_end),
		cmocka_unit_test_setup_teardown(
			memory_of_a_socket_that_is_not_told, failing_begin, failing_end),
	};

	setenv("GRIDCOLL_LOG", "info", 1); /* more is asked for it */
	gci_log_init(NULL);
	return cmocka_run_group_tests(tests, warm_up, NULL);
}
