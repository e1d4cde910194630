/* SPDX-License-Identifier: MIT
 * What is set on real sockets, and what is said of it. */
#include "tests/captured.h"

#include "base/log.h"
#include "transport/sockopt.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MIB (1ull << 20)

static struct captured said;

/* Sets options on a new socket; what was logged is in `said`. */
static struct gci_tp_socket with(struct gci_sockopts *o, const struct gci_tp_link *link)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct gci_tp_socket s = {0};

	assert_true(fd >= 0);
	said = capture_begin();
	gci_sockopt_data(o, fd, 8, link);
	capture_end(&said);
	gci_sockopt_look(fd, &s);
	close(fd);
	return s;
}

/* A kernel that grows buffers to these sizes, and allows ours. */
static struct gci_sockopts kernel(uint64_t tcp_rmem, uint64_t tcp_wmem, uint64_t asked)
{
	return (struct gci_sockopts){.max = {tcp_rmem, tcp_wmem, asked, asked}, .knows_max = 1};
}

static void left_to_the_kernel(void **state)
{
	struct gci_tp_link link = {.streams = 4, .flight_nbytes = 625000, .rtt_ns = 20000000};
	struct gci_sockopts o = kernel(6 * MIB, 4 * MIB, 100000);
	struct gci_tp_socket s = with(&o, &link);

	(void)state;
	assert_true(!s.sndbuf_set && !s.rcvbuf_set);
	assert_int_equal(captured_times(&said, "warn"), 0);
	assert_int_equal(captured_times(&said,
				 "connections such as those to rank 8: 4 streams, 625 kB in flight "
				 "each; send buffer "),
		1);
	assert_int_equal(captured_times(&said, " at first, receive buffer "), 1);
	with(&o, &link);
	assert_string_equal(said.text, ""); /* once for all such links */
	link.flight_nbytes++;
	with(&o, &link);
	assert_int_equal(captured_times(&said, "connections such as those"), 1);
}

static void asked_for(void **state)
{
	struct gci_tp_link link = {.streams = 4, .flight_nbytes = 100000, .rtt_ns = 20000000};
	struct gci_sockopts o = kernel(50000, 20000, 150000);
	struct gci_tp_socket s = with(&o, &link);

	(void)state;
	assert_true(s.sndbuf_set && s.rcvbuf_set);
	assert_int_equal(s.sndbuf_nbytes, 200000);
	assert_int_equal(s.rcvbuf_nbytes, 200000);
	assert_int_equal(captured_times(&said, "warn"), 0);
	assert_int_equal(
		captured_times(&said, "send buffer 200 kB (set), receive buffer 200 kB (set)"), 1);
	link.flight_nbytes = 23000; /* only the sender's side falls short */
	s = with(&o, &link);
	assert_true(s.sndbuf_set && !s.rcvbuf_set);
}

/* Neither way is enough: which sysctl it is, and what it costs. 4 x 3 MiB / 20 ms = 5.03 Gbit/s. */
static void in_the_way(void **state)
{
	struct gci_tp_link link = {.streams = 4, .flight_nbytes = 6250000, .rtt_ns = 20000000};
	struct gci_sockopts o = kernel(6 * MIB, 4 * MIB, 212992);
	struct gci_tp_socket s = with(&o, &link);

	(void)state;
	assert_true(!s.sndbuf_set && !s.rcvbuf_set);
	assert_int_equal(captured_times(&said, "warn"), 2);
	assert_int_equal(
		captured_times(&said,
			"connections such as those to rank 8 need 6.25 MB in flight each, "
			"and socket buffers let them receive 3.15 MB: 5.03 Gbit/s together "
			"instead of 10.0 Gbit/s; raise the third figure of "
			"net.ipv4.tcp_rmem to 12582912 (gridcoll doctor tells how)"),
		1);
	assert_int_equal(captured_times(&said, "send 4.19 MB: 6.71 Gbit/s"), 1);
	link.rtt_ns++;
	with(&o, &link);
	assert_int_equal(captured_times(&said, "warn"), 0); /* said once */
}

/* The user's word comes before all reckoning. */
static void the_users_size(void **state)
{
	struct gci_tp_link link = {.streams = 4, .flight_nbytes = 6250000, .sockbuf_nbytes = 30000};
	struct gci_sockopts o = kernel(6 * MIB, 4 * MIB, 100 * MIB);
	struct gci_tp_socket s = with(&o, &link);

	(void)state;
	assert_int_equal(s.sndbuf_nbytes, 60000);
	assert_int_equal(s.rcvbuf_nbytes, 60000);
	assert_int_equal(captured_times(&said, "warn"), 0);
	link.sockbuf_nbytes = 1u << 30; /* more than any kernel has by default */
	gci_sockmax_read(&o.max);
	if (o.max.rmem_max >= 1u << 30 && o.max.wmem_max >= 1u << 30)
		return;
	with(&o, &link);
	assert_int_equal(captured_times(&said, "mem_max=1073741824"), 1);
}

static void congestion(void **state)
{
	struct gci_tp_link link = {.streams = 4, .congestion = "reno"};
	struct gci_sockopts o = {.knows_max = 1};
	struct gci_error e = {0};

	(void)state;
	assert_string_equal(with(&o, &link).congestion, "reno");
	assert_int_equal(captured_times(&said, "congestion control reno\n"), 1);
	link.congestion = "no-such";
	with(&o, &link);
	assert_int_equal(captured_times(&said, "warn: congestion control \"no-such\": "), 1);
	with(&o, &link);
	assert_int_equal(captured_times(&said, "warn"), 0);
	assert_int_equal(gci_sockopt_congestion("reno", &e), 0);
	assert_int_equal(gci_sockopt_congestion("no-such", &e), GCOLL_ERR_INVAL);
	assert_non_null(strstr(e.text, "\"no-such\" is not in this kernel"));
	assert_non_null(strstr(e.text, "expected one of: "));
	assert_non_null(strstr(e.text, "reno"));
	gci_error_clear(&e);
	assert_int_equal(
		gci_sockopt_congestion("a-name-longer-than-any-there-is", &e), GCOLL_ERR_INVAL);
}

static int option(int fd, int name)
{
	int value = -1;
	socklen_t len = sizeof(value);

	assert_int_equal(getsockopt(fd, IPPROTO_TCP, name, &value, &len), 0);
	return value;
}

static void the_rest(void **state)
{
	struct gci_tp_link link = {
		.streams = 4, .flight_nbytes = 200000, .dead_ns = 30000000000ull};
	struct gci_sockopts o = {.knows_max = 1};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = -1;
	socklen_t len = sizeof(on);

	(void)state;
	gci_sockopt_data(&o, fd, 8, &link);
	assert_true(option(fd, TCP_NODELAY) > 0);
	assert_int_equal(option(fd, TCP_NOTSENT_LOWAT), 100000);
	gci_sockopt_unsent(fd, &link, 1);
	assert_int_equal(option(fd, TCP_NOTSENT_LOWAT), 1);
	gci_sockopt_unsent(fd, &link, 0);
	assert_int_equal(option(fd, TCP_NOTSENT_LOWAT), 100000);
	/* Dead after at most 30 s of silence; connections take turns to ask. */
	assert_in_range(option(fd, TCP_KEEPIDLE), 8, 15);
	assert_int_equal(option(fd, TCP_KEEPIDLE), 15 - fd % 8);
	assert_int_equal(option(fd, TCP_KEEPINTVL), 1);
	assert_int_equal(option(fd, TCP_KEEPCNT), 9);
	assert_int_equal(option(fd, TCP_USER_TIMEOUT), 0);
	/* More than the kernel can count. */
	link.dead_ns = 200000000000000ull;
	close(fd);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	gci_sockopt_data(&o, fd, 8, &link);
	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, &len), 0);
	assert_int_equal(on, 0);
	close(fd);
}

static int tcp_option(int fd, int name)
{
	int value = -1;
	socklen_t len = sizeof(value);

	assert_int_equal(getsockopt(fd, IPPROTO_TCP, name, &value, &len), 0);
	return value;
}

static void a_control_connection_waits_for_nothing(void **state)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	assert_true(fd >= 0);
	gci_sockopt_control(fd);
	assert_int_equal(tcp_option(fd, TCP_NODELAY), 1);
	assert_int_equal(tcp_option(fd, TCP_THIN_LINEAR_TIMEOUTS), 1);
	close(fd);
}

/* Two ends of a connection, by cubic if there is such. */
static int connected(int fds[2])
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(a);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), rc;

	fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	rc = setsockopt(fds[0], IPPROTO_TCP, TCP_CONGESTION, "cubic", 5);
	assert_int_equal(bind(listener, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&a, &len), 0);
	assert_int_equal(connect(fds[0], (struct sockaddr *)&a, sizeof(a)), 0);
	fds[1] = accept(listener, NULL, NULL);
	close(listener);
	return !rc;
}

static void control_is(int fd, const char *name)
{
	struct gci_tp_socket s = {0};

	gci_sockopt_look(fd, &s);
	assert_string_equal(s.congestion, name);
}

/* By reno until the window is what the link needs, where that is known, and more than the first one. */
static void slow_start_without_cubic(void **state)
{
	struct gci_tp_link link = {.streams = 1},
			   longer = {.streams = 1, .flight_nbytes = 1u << 30};
	struct gci_sockopts o = {0}, none = {.may_start = -1};
	int fds[2];

	(void)state;
	if (!connected(fds))
		skip();
	assert_false(gci_sockopt_start(&o, fds[0], &link));
	link.flight_nbytes = 10000;
	assert_false(gci_sockopt_start(&o, fds[0], &link));
	assert_false(gci_sockopt_start(&none, fds[0], &longer));
	control_is(fds[0], "cubic");
	assert_true(gci_sockopt_start(&o, fds[0], &longer));
	control_is(fds[0], "reno");
	assert_false(gci_sockopt_has_started(fds[0], &longer));
	control_is(fds[0], "reno");
	assert_true(
		gci_sockopt_has_started(fds[0], &link)); /* its window is larger from the start */
	control_is(fds[0], "cubic");
	assert_int_equal(setsockopt(fds[0], IPPROTO_TCP, TCP_CONGESTION, "reno", 4), 0);
	assert_false(gci_sockopt_start(&o, fds[0], &longer)); /* not by cubic: as it is */
	control_is(fds[0], "reno");
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(left_to_the_kernel),
		cmocka_unit_test(asked_for),
		cmocka_unit_test(in_the_way),
		cmocka_unit_test(the_users_size),
		cmocka_unit_test(congestion),
		cmocka_unit_test(the_rest),
		cmocka_unit_test(slow_start_without_cubic),
		cmocka_unit_test(a_control_connection_waits_for_nothing),
	};

	setenv("GRIDCOLL_LOG", "info", 1);
	gci_log_init(NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
