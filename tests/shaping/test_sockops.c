/* SPDX-License-Identifier: MIT
 * Connections over loopback, of a process in a cgroup of its own: what they were told, read back.
 * Skipped by name where that is not allowed. */
#include "tests/test.h"

#include "shaping/cgroup.h"
#include "shaping/sockops.h"
#include "shaping/sockops_shared.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static char cgroup[GCI_CGROUP_PATH];
static int cgroup_fd;
static struct gci_sockops *sockops;
static int family_six;

struct pair {
	int listener, client, server;
};

static socklen_t make_addr(struct sockaddr_storage *a)
{
	memset(a, 0, sizeof(*a));
	a->ss_family = family_six ? AF_INET6 : AF_INET;
	if (family_six)
		((struct sockaddr_in6 *)a)->sin6_addr = in6addr_loopback;
	else
		((struct sockaddr_in *)a)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return family_six ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

/* Some bytes each way, so that both sides know their round trip. */
static int open_pair(struct pair *p)
{
	struct sockaddr_storage a;
	socklen_t len = make_addr(&a);
	char c = 'x';
	int i;

	p->listener = socket(a.ss_family, SOCK_STREAM, 0);
	p->client = socket(a.ss_family, SOCK_STREAM, 0);
	if (bind(p->listener, (struct sockaddr *)&a, len) || listen(p->listener, 1) ||
		getsockname(p->listener, (struct sockaddr *)&a, &len) ||
		connect(p->client, (struct sockaddr *)&a, len))
		return -1;
	p->server = accept(p->listener, NULL, NULL);
	for (i = 0; i < 20; i++)
		if (send(p->client, &c, 1, 0) != 1 || recv(p->server, &c, 1, 0) != 1 ||
			send(p->server, &c, 1, 0) != 1 || recv(p->client, &c, 1, 0) != 1)
			return -1;
	return 0;
}

struct told {
	char congestion[16];
	uint32_t pacing, window, rto_us;
	uint64_t cookie;
};

static struct told ask(int fd)
{
	struct tcp_info info = {0};
	struct told t = {0};
	socklen_t len = sizeof(info);

	getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len);
	t.window = info.tcpi_snd_cwnd;
	t.rto_us = info.tcpi_rto;
	len = sizeof(t.pacing);
	getsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &t.pacing, &len);
	len = sizeof(t.congestion);
	getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, t.congestion, &len);
	len = sizeof(t.cookie);
	getsockopt(fd, SOL_SOCKET, SO_COOKIE, &t.cookie, &len);
	return t;
}

/* Opens a pair in the cgroup; `both`: client, server. */
static void ask_from_inside(struct told both[2])
{
	int out[2], status;
	struct pair p;
	pid_t pid;

	assert_int_equal(pipe(out), 0);
	pid = fork();
	if (!pid) {
		if (gci_cgroup_enter(cgroup, 0, NULL) || open_pair(&p))
			_exit(1);
		both[0] = ask(p.client);
		both[1] = ask(p.server);
		_exit(write(out[1], both, 2 * sizeof(*both)) != 2 * sizeof(*both));
	}
	close(out[1]);
	assert_int_equal(read(out[0], both, 2 * sizeof(*both)), 2 * sizeof(*both));
	close(out[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static int setup(void **state)
{
	struct gci_error e = {0};

	(void)state;
	cgroup_fd = gci_cgroup_make(cgroup, &e);
	if (cgroup_fd >= 0 && !gci_sockops_open(&sockops, cgroup, &e))
		return 0;
	print_message("sock_ops programs are not tested here: %s\n", e.text);
	return !strstr(e.text, "not allowed") && !strstr(e.text, "no bpf()") &&
	       !strstr(e.text, "no cgroup") && !strstr(e.text, "make cgroup");
}

static int teardown(void **state)
{
	(void)state;
	gci_sockops_close(sockops);
	gci_cgroup_remove(cgroup);
	close(cgroup_fd);
	return 0;
}

static const struct gci_sockops_want want = {.congestion = "reno",
	.initial_window = 37,
	.rto_min_ns = 50000000,
	.pacing_bps = 800000000};

static void check_told(const struct told *t, const struct told *other)
{
	assert_string_equal(t->congestion, "reno");
	assert_int_equal(t->pacing, 100000000);
	assert_int_equal(other->pacing, UINT32_MAX);
	/* A window never falls on a connection that loses nothing. */
	assert_true(t->window >= 37);
	assert_true(other->window < 37);
	assert_true(t->rto_us < other->rto_us);
}

static void test_settings(void **state)
{
	struct told before[2], both[2];
	struct gci_sockops_counters c = {0};
	struct gci_error e = {0};
	struct gci_net nets[2];
	int number, i;

	(void)state;
	if (!sockops)
		skip();
	ask_from_inside(before);
	assert_int_equal(gci_net_parse(&nets[0], "127.0.0.0/8", &e), 0);
	assert_int_equal(gci_net_parse(&nets[1], "::1", &e), 0);
	number = gci_sockops_class(sockops, nets, 2, &want, &e);
	assert_int_equal(number, 0);
	assert_int_equal(gci_sockops_class(sockops, nets + 1, 1, &want, &e), GCOLL_ERR_INVAL);
	assert_string_equal(e.text, "::1 belongs to another class already");
	gci_error_clear(&e);
	for (family_six = 0; family_six < 2; family_six++) {
		ask_from_inside(both);
		for (i = 0; i < 2; i++)
			check_told(&both[i], &before[i]);
	}
	family_six = 0;
	assert_int_equal(gci_sockops_count(sockops, number, &c), 0);
	assert_int_equal(c.opened, 4);
	assert_int_equal(c.refused, 0);
	assert_int_equal(gci_sockops_count(sockops, 1, &c), GCOLL_ERR_INVAL);
}

static void test_connections(void **state)
{
	struct gci_sockops_seen seen[16];
	struct told both[2];
	unsigned n, i, k, found = 0;
	char text[GCI_NET_TEXT];

	(void)state;
	if (!sockops)
		skip();
	ask_from_inside(both);
	n = gci_sockops_list(sockops, seen, 16);
	assert_int_equal(n, 6);
	for (i = 0; i < n; i++)
		for (k = 0; k < 2; k++) {
			if (seen[i].cookie != both[k].cookie)
				continue;
			found++;
			assert_string_equal(gci_net_text(&seen[i].remote, text), "127.0.0.1");
			assert_true(seen[i].local_port && seen[i].remote_port);
			assert_true(seen[i].local_port != seen[i].remote_port);
		}
	assert_int_equal(found, 2);
	assert_int_equal(gci_sockops_list(sockops, seen, 3), 3);
}

/* What a kernel does not have is said, and the rest is set. */
static void test_refused(void **state)
{
	struct gci_sockops_want odd = {.congestion = "no_such", .initial_window = 21};
	struct gci_sockops_counters c;
	struct gci_sockops_seen seen[16];
	struct told both[2];
	unsigned n, i, refused = 0;

	(void)state;
	if (!sockops)
		skip();
	assert_int_equal(gci_sockops_set(sockops, 0, &odd, NULL), 0);
	ask_from_inside(both);
	assert_true(both[0].window >= 21 && both[0].window < 37);
	assert_int_equal(gci_sockops_count(sockops, 0, &c), 0);
	assert_int_equal(c.refused, 2);
	n = gci_sockops_list(sockops, seen, 16);
	for (i = 0; i < n; i++)
		refused += seen[i].refused == GCI_SOCKOPS_CONGESTION;
	assert_int_equal(refused, 2);
}

/* The next one removes what a killed one has left, and nothing of those that live. */
static void dead_owners_leave_no_cgroup(void **state)
{
	char left[GCI_CGROUP_PATH], mine[GCI_CGROUP_PATH];
	int pipes[2], fd, status;
	pid_t pid, parent = getpid();

	(void)state;
	if (cgroup_fd < 0)
		skip();
	assert_int_equal(pipe(pipes), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		fd = gci_cgroup_make(mine, NULL);
		if (fd < 0 || write(pipes[1], mine, GCI_CGROUP_PATH) != GCI_CGROUP_PATH)
			_exit(1);
		for (;;)
			pause();
	}
	close(pipes[1]); /* if the child ends early there is nothing to wait for */
	assert_int_equal(read(pipes[0], left, GCI_CGROUP_PATH), GCI_CGROUP_PATH);
	fd = gci_cgroup_make(mine, NULL);
	assert_true(fd >= 0);
	assert_string_not_equal(mine, left);
	assert_int_equal(access(left, F_OK), 0); /* its owner lives */
	gci_cgroup_remove(mine);
	close(fd);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	assert_int_equal(access(left, F_OK), 0);
	fd = gci_cgroup_make(mine, NULL);
	assert_true(fd >= 0);
	assert_int_not_equal(access(left, F_OK), 0);
	assert_int_equal(access(cgroup, F_OK), 0); /* ours */
	gci_cgroup_remove(mine);
	close(fd);
	close(pipes[0]);
}

/* Who is outside of the cgroup is not told anything. */
static void test_outside(void **state)
{
	struct gci_sockops_counters before, after;
	struct pair p;

	(void)state;
	if (!sockops)
		skip();
	assert_int_equal(gci_sockops_count(sockops, 0, &before), 0);
	assert_int_equal(open_pair(&p), 0);
	assert_true(ask(p.client).window < 21);
	assert_int_equal(gci_sockops_count(sockops, 0, &after), 0);
	assert_int_equal(after.opened, before.opened);
	close(p.listener);
	close(p.client);
	close(p.server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_settings),
		cmocka_unit_test(test_connections),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_outside),
		cmocka_unit_test(dead_owners_leave_no_cgroup),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
