/* SPDX-License-Identifier: MIT
 * What the transport asks the system besides its connections: each call fails once, and so does
 * each allocation. */
#include "tests/failing/failing.h"
#include "tests/test.h"

#include "base/mem.h"
#include "transport/poller.h"
#include "transport/reach.h"
#include "transport/sockbuf.h"
#include "transport/sockopt.h"
#include "transport/taps.h"
#include "transport/tcp.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- addresses */

static void no_list_of_addresses(void **state)
{
	struct gci_error e = {0};
	struct gci_nic_addr *have;
	struct gci_own own;
	unsigned n;

	(void)state;
	failing_at(FAILING_getifaddrs, 1, ENOMEM);
	assert_int_equal(gci_own_list(&have, &n, &e), GCOLL_ERR_SYS);
	assert_string_equal(e.text, "cannot list this host's addresses: Cannot allocate memory");
	assert_null(have);
	gci_error_clear(&e);
	failing_at(FAILING_getifaddrs, 1, EMFILE);
	assert_int_equal(gci_own_choose(&own, "lo", "127.0.0.1", &e), GCOLL_ERR_SYS);
	assert_string_equal(e.text, "cannot list this host's addresses: Too many open files");
	gci_error_clear(&e);
	gci_mem_fail_at(1);
	assert_int_equal(gci_own_choose(&own, "lo", "127.0.0.1", &e), GCOLL_ERR_NOMEM);
	gci_mem_fail_at(0);
	assert_int_equal(gci_own_choose(&own, "lo", "127.0.0.1", NULL), 0);
}

static void no_address_from_text_nor_text_from_it(void **state)
{
	char text[GCI_ADDRESS_TEXT];
	struct gci_error e = {0};
	struct gci_address at[2];
	struct gci_ports any = {0};
	struct gci_reach reach;
	int fd = -1;

	(void)state;
	failing_at(FAILING_getaddrinfo, 1, 0);
	assert_int_equal(gci_address_make(&at[0], "127.0.0.1", 7), GCOLL_ERR_INVAL);
	assert_int_equal(gci_address_make(&at[0], "127.0.0.1", 7), 0);
	assert_int_equal(gci_address_make(&at[1], "127.0.0.2", 7), 0);
	failing_at(FAILING_getnameinfo, 1, 0);
	gci_address_format(&at[0], text);
	assert_string_equal(text, "?");
	failing_at(FAILING_getaddrinfo, 1, 0);
	assert_int_equal(gci_tcp_listen(at, 2, &any, 0, &fd, &reach, &e), GCOLL_ERR_SYS);
	assert_string_equal(e.text, "no address to listen at");
}

/* Where all addresses are listened at, and there is no IPv6. */
static void listening_without_ipv6(void **state)
{
	struct gci_ports any = {0};
	struct gci_error e = {0};
	struct gci_address at;
	int fd;

	(void)state;
	assert_int_equal(gci_address_make(&at, "::", 0), 0);
	failing_at(FAILING_socket, 1, EAFNOSUPPORT);
	assert_int_equal(gci_listen(&at, &any, 0, &fd, &e), 0);
	assert_int_equal(at.any.sa_family, AF_INET);
	close(fd);
	assert_int_equal(gci_address_make(&at, "::1", 0), 0);
	failing_at(FAILING_socket, 1, EAFNOSUPPORT);
	assert_int_equal(gci_listen(&at, &any, 0, &fd, &e), GCOLL_ERR_SYS);
	assert_string_equal(
		e.text, "cannot listen on ::1: Address family not supported by protocol");
	gci_error_clear(&e);
	assert_int_equal(gci_address_make(&at, "::", 0), 0);
	failing_from(FAILING_socket, 1, EAFNOSUPPORT);
	assert_int_equal(gci_listen(&at, &any, 0, &fd, &e), GCOLL_ERR_SYS);
	failing_at(FAILING_socket, 0, 0);
	assert_string_equal(
		e.text, "cannot listen on 0.0.0.0: Address family not supported by protocol");
}

/* Which is not for lack of IPv6: half of the addresses would be deaf. */
static void no_listening_at_all_addresses(void **state)
{
	struct gci_ports any = {0};
	struct gci_error e = {0};
	struct gci_address at;
	int fd;

	(void)state;
	assert_int_equal(gci_address_make(&at, "::", 0), 0);
	failing_at(FAILING_socket, 1, EMFILE);
	assert_int_equal(gci_listen(&at, &any, 0, &fd, &e), GCOLL_ERR_SYS);
	assert_string_equal(e.text, "cannot listen on ::: Too many open files");
	gci_error_clear(&e);
	if (gci_listen(&at, &any, 0, &fd, &e))
		skip(); /* no IPv6 */
	close(fd);
	gci_address_set_port(&at, 0);
	failing_at(FAILING_setsockopt, 1, ENOBUFS); /* SO_REUSEADDR */
	assert_int_equal(gci_listen(&at, &any, 0, &fd, &e), 0);
	assert_true(failing_happened(FAILING_setsockopt));
	close(fd);
	gci_address_set_port(&at, 0);
	failing_at(FAILING_setsockopt, 2, ENOPROTOOPT); /* IPV6_V6ONLY */
	assert_int_equal(gci_listen(&at, &any, 0, &fd, &e), GCOLL_ERR_SYS);
	assert_string_equal(e.text, "cannot listen on ::: Protocol not available");
}

/* ---- what sockets can have */

static void same_or_unknown(uint64_t figure, uint64_t normal)
{
	assert_true(figure == normal || figure == 0);
}

static void limits_of_buffers(void **state)
{
	static const enum failing calls[] = {
		FAILING_socket, FAILING_fopen64, FAILING_setsockopt, FAILING_getsockopt};
	struct gci_sockmax normal, max;
	unsigned long nth;
	size_t i;

	(void)state;
	gci_sockmax_read(&normal);
	for (i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		for (nth = 1;; nth++) {
			failing_at(calls[i], nth, EMFILE);
			gci_sockmax_read(&max);
			if (!failing_happened(calls[i]))
				break;
			same_or_unknown(max.tcp_rmem, normal.tcp_rmem);
			same_or_unknown(max.tcp_wmem, normal.tcp_wmem);
			same_or_unknown(max.rmem_max, normal.rmem_max);
			same_or_unknown(max.wmem_max, normal.wmem_max);
			/* A second socket is tried, of IPv6. */
			assert_true(calls[i] == FAILING_socket ||
				    memcmp(&max, &normal, sizeof(max)) != 0);
		}
		failing_at(calls[i], 0, 0);
		assert_true(nth > 1);
		assert_memory_equal(&max, &normal, sizeof(max));
	}
	failing_from(FAILING_socket, 1, EMFILE);
	gci_sockmax_read(&max);
	failing_at(FAILING_socket, 0, 0);
	assert_int_equal(max.rmem_max, 0);
	assert_int_equal(max.wmem_max, 0);
	assert_int_equal(max.tcp_rmem, normal.tcp_rmem); /* a file tells */
}

/* What is not to be had counts as not known. */
static void what_is_known_of_a_socket(void **state)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct gci_tp_socket normal = {0}, s;
	unsigned long nth;

	(void)state;
	assert_true(fd >= 0);
	gci_sockopt_look(fd, &normal);
	assert_true(normal.sndbuf_nbytes && normal.rcvbuf_nbytes && *normal.congestion);
	for (nth = 1;; nth++) {
		memset(&s, 0, sizeof(s));
		failing_at(FAILING_getsockopt, nth, ENOBUFS);
		gci_sockopt_look(fd, &s);
		if (!failing_happened(FAILING_getsockopt))
			break;
		same_or_unknown(s.sndbuf_nbytes, normal.sndbuf_nbytes);
		same_or_unknown(s.rcvbuf_nbytes, normal.rcvbuf_nbytes);
		assert_true(!*s.congestion || !strcmp(s.congestion, normal.congestion));
		assert_true(s.limit == normal.limit);
	}
	failing_at(FAILING_getsockopt, 0, 0);
	assert_true(nth > 5);
	assert_string_equal(s.congestion, normal.congestion);
	close(fd);
}

/* What close says of a socket is no reason. */
static void a_close_that_complains(void **state)
{
	struct gci_sockmax normal, max;
	struct gci_ports any = {0};
	struct gci_error e = {0};
	struct gci_address at;
	int fd;

	(void)state;
	gci_sockmax_read(&normal);
	failing_at(FAILING_close, 1, EIO);
	gci_sockmax_read(&max);
	assert_true(failing_happened(FAILING_close));
	assert_memory_equal(&max, &normal, sizeof(max));
	failing_at(FAILING_close, 1, EIO);
	assert_int_equal(gci_sockopt_congestion("reno", &e), 0);
	assert_true(failing_happened(FAILING_close));
	assert_int_equal(gci_address_make(&at, "127.0.0.1", 0), 0);
	failing_at(FAILING_bind, 1, EADDRNOTAVAIL);
	failing_at(FAILING_close, 1, EIO);
	assert_int_equal(gci_listen(&at, &any, 0, &fd, &e), GCOLL_ERR_SYS);
	assert_true(failing_happened(FAILING_close));
	assert_string_equal(e.text, "cannot listen on 127.0.0.1: Cannot assign requested address");
}

static void congestion_control(void **state)
{
	struct gci_error e = {0};

	(void)state;
	failing_at(FAILING_setsockopt, 1, EPERM);
	assert_int_equal(gci_sockopt_congestion("reno", &e), GCOLL_ERR_INVAL);
	assert_non_null(strstr(e.text, "\"reno\" is for privileged users only"));
	gci_error_clear(&e);
	failing_at(FAILING_setsockopt, 1, ENOENT);
	failing_at(FAILING_fopen64, 1, EMFILE);
	assert_int_equal(gci_sockopt_congestion("reno", &e), GCOLL_ERR_INVAL);
	assert_non_null(strstr(e.text, "expected one of: ?"));
	gci_error_clear(&e);
	failing_at(FAILING_setsockopt, 1, ENOENT);
	failing_at(FAILING_fgets, 1, EIO);
	assert_int_equal(gci_sockopt_congestion("reno", &e), GCOLL_ERR_INVAL);
	assert_non_null(strstr(e.text, "expected one of: ?"));
	failing_at(FAILING_socket, 1, EAFNOSUPPORT); /* then by IPv6 */
	gci_error_clear(&e);
	if (gci_sockopt_congestion("reno", &e))
		assert_non_null(strstr(e.text, "no socket to try congestion control on"));
	assert_true(failing_happened(FAILING_socket));
	failing_from(FAILING_socket, 1, ENFILE);
	gci_error_clear(&e);
	assert_int_equal(gci_sockopt_congestion("reno", &e), GCOLL_ERR_SYS);
	failing_at(FAILING_socket, 0, 0);
	assert_string_equal(
		e.text, "no socket to try congestion control on: Too many open files in system");
}

/* ---- taps */

static struct gci_flow flows[4];
static unsigned nflows;

static void on_flow(void *user, const struct gci_flow *f)
{
	(void)user;
	assert_true(nflows < 4);
	flows[nflows++] = *f;
}

static void looks(struct gci_taps *t, unsigned n)
{
	nflows = 0;
	gci_taps_look(t, on_flow, NULL);
	assert_int_equal(nflows, n);
}

/* What there is no memory for goes unseen. */
static void connections_that_are_watched(void **state)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct gci_taps *t;

	(void)state;
	assert_true(fd >= 0);
	gci_mem_fail_at(1);
	assert_null(gci_taps_create());
	t = gci_taps_create();
	assert_non_null(t);
	gci_mem_fail_at(1);
	gci_taps_add(t, fd, 3, 0);
	gci_mem_fail_at(0);
	assert_int_equal(gci_taps_count(t), 0);
	gci_taps_remove(t, fd);
	looks(t, 0);
	gci_taps_add(t, fd, 3, 1);
	failing_at(FAILING_getsockopt, 1, ENOBUFS);
	looks(t, 1);
	assert_true(failing_happened(FAILING_getsockopt));
	assert_int_equal(flows[0].peer, 3);
	assert_int_equal(flows[0].cwnd_nbytes, 0);
	gci_mem_fail_at(1);
	gci_taps_remove(t, fd);
	gci_mem_fail_at(0);
	looks(t, 0);
	gci_taps_add(t, fd, 3, 1);
	gci_taps_remove(t, fd);
	looks(t, 1);
	assert_int_equal(flows[0].peer, 3);
	assert_int_equal(flows[0].open, 0);
	gci_taps_free(t);
	close(fd);
}

/* ---- waiting */

/* Where the alarm cannot be set, the wait for it ends by itself. */
static void an_alarm_that_does_not_ring(void **state)
{
	struct gci_poller p;

	(void)state;
	assert_int_equal(gci_poller_open(&p), 0);
	failing_at(FAILING_timerfd_settime, 1, EINVAL);
	gci_poller_wake_in(&p, GCI_NS_PER_MS);
	assert_true(failing_happened(FAILING_timerfd_settime));
	gci_poller_wait(&p, 1);
	gci_poller_wake_in(&p, GCI_NS_PER_MS);
	assert_true(p.alarm_ms > 0);
	while (p.alarm_ms)
		gci_poller_wait(&p, 1);
	gci_poller_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(no_list_of_addresses, failing_begin, failing_end),
		cmocka_unit_test_setup_teardown(
			no_address_from_text_nor_text_from_it, failing_begin, failing_end),
		cmocka_unit_test_setup_teardown(listening_without_ipv6, failing_begin, failing_end),
		cmocka_unit_test_setup_teardown(
			no_listening_at_all_addresses, failing_begin, failing_end),
		cmocka_unit_test_setup_teardown(limits_of_buffers, failing_begin, failing_end),
		cmocka_unit_test_setup_teardown(
			what_is_known_of_a_socket, failing_begin, failing_end),
		cmocka_unit_test_setup_teardown(a_close_that_complains, failing_begin, failing_end),
		cmocka_unit_test_setup_teardown(congestion_control, failing_begin, failing_end),
		cmocka_unit_test_setup_teardown(
			connections_that_are_watched, failing_begin, failing_end),
		cmocka_unit_test_setup_teardown(
			an_alarm_that_does_not_ring, failing_begin, failing_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
