/* SPDX-License-Identifier: MIT
 * Ranks with several addresses, which 127.0.0.0/8 has plenty of. */
#include "tests/failing/failing.h"
#include "tests/transport/tcp_world.h"

#include "transport/reach.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define MAX_FD 1024

static const char *const ips[][2] = {{"127.0.7.1", "127.0.8.1"}, {"127.0.7.2", "127.0.8.2"}};
static unsigned naddrs[2];
static struct gci_reach list[2];

/* What is said of rank 1 instead of the truth. */
static struct gci_reach (*told)(uint16_t port);

static int several_open(struct world *w)
{
	struct gci_tcp_config tcp = {.reach = list};
	struct gci_own mine[2] = {{.leave_from = 1}, {.leave_from = 1}};
	const struct gci_ports any = {0};
	int fds[2], r;
	unsigned k;

	for (r = 0; r < 2; r++) {
		for (k = 0; k < 2; k++)
			assert_int_equal(gci_address_make(&mine[r].at[k], ips[r][k], 0), 0);
		assert_int_equal(
			gci_tcp_listen(mine[r].at, naddrs[r], &any, 0, &fds[r], &list[r], NULL), 0);
		assert_int_equal(list[r].n, naddrs[r]);
	}
	if (told)
		list[1] = told(list[1].port);
	for (r = 0; r < 2; r++) {
		tcp.listen_fd = fds[r];
		tcp.own = &mine[r];
		assert_int_equal(gci_tcp_create(&w->tp[r], &w->config[r], &tcp, NULL), 0);
	}
	return 0;
}

static void several_close(struct world *w)
{
	(void)w;
}

static const struct backend several = {
	.name = "tcp", .open = several_open, .close = several_close, .step = own_step};

static uint32_t ip_of(const struct gci_address *a)
{
	return a->any.sa_family == AF_INET ? ntohl(a->v4.sin_addr.s_addr) : 0;
}

/* Open sockets of this process between two addresses. */
static int connections(const char *here, const char *there)
{
	struct gci_address from, to, a, b;
	int fd, n = 0;

	assert_int_equal(gci_address_make(&from, here, 0), 0);
	assert_int_equal(gci_address_make(&to, there, 0), 0);
	for (fd = 0; fd < MAX_FD; fd++) {
		a.len = b.len = sizeof(a.v6);
		if (getsockname(fd, &a.any, &a.len) || getpeername(fd, &b.any, &b.len))
			continue;
		gci_address_unmap(&a);
		gci_address_unmap(&b);
		n += ip_of(&a) == ip_of(&from) && ip_of(&b) == ip_of(&to);
	}
	return n;
}

static void streams_use_all_addresses(void **state)
{
	const struct gci_tp_link link = {.streams = 4, .eager_nbytes = 1000};
	struct gci_tp_stats st;
	struct world w;

	(void)state;
	naddrs[0] = naddrs[1] = 2;
	world_open(&w, &several, 2, &link);
	exchange(&w);
	gci_tp_stats(w.tp[0], 1, &st);
	assert_int_equal(st.streams, 4);
	assert_int_equal(connections(ips[0][0], ips[1][0]), 2);
	assert_int_equal(connections(ips[0][1], ips[1][1]), 2);
	assert_int_equal(connections(ips[1][0], ips[0][0]), 2);
	assert_int_equal(connections(ips[1][1], ips[0][1]), 2);
	world_close(&w);
}

static void one_address_here_two_there(void **state)
{
	const struct gci_tp_link link = {.streams = 4, .eager_nbytes = 1000};
	struct world w;

	(void)state;
	naddrs[0] = 1;
	naddrs[1] = 2;
	world_open(&w, &several, 2, &link);
	exchange(&w);
	assert_int_equal(connections(ips[0][0], ips[1][0]), 2);
	assert_int_equal(connections(ips[0][0], ips[1][1]), 2);
	world_close(&w);
}

static struct gci_reach one_is_wrong(uint16_t port)
{
	return (struct gci_reach){port, 2, 0, {{127, 0, 7, 9}, {127, 0, 7, 2}}};
}

/* Nobody listens at the first one, so streams take the other. */
static void an_address_that_leads_nowhere(void **state)
{
	const struct gci_tp_link link = {.streams = 4, .eager_nbytes = 1000};
	struct gci_tp_stats st;
	struct world w;

	(void)state;
	naddrs[0] = 2;
	naddrs[1] = 1;
	told = one_is_wrong;
	world_open(&w, &several, 2, &link);
	told = NULL;
	exchange(&w);
	gci_tp_stats(w.tp[0], 1, &st);
	assert_int_equal(st.streams, 4);
	assert_int_equal(connections(ips[0][1], ips[1][0]), 4);
	assert_int_equal(w.nfailures[0] + w.nfailures[1], 0);
	world_close(&w);
}

static struct gci_reach all_are_wrong(uint16_t port)
{
	return (struct gci_reach){port, 2, 0, {{127, 0, 7, 9}, {127, 0, 7, 8}}};
}

static void nothing_leads_anywhere(void **state)
{
	struct message m;
	struct world w;
	uint8_t b = 0;

	(void)state;
	naddrs[0] = 2;
	naddrs[1] = 1;
	told = all_are_wrong;
	world_open(&w, &several, 2, NULL);
	told = NULL;
	send_to(&w, 0, &m, 1, 1, &b, 1);
	world_finish(&w, &m, 1);
	assert_int_equal(m.status, GCOLL_ERR_PEER);
	assert_int_equal(w.failure[0].peer, 1);
	assert_non_null(strstr(w.failure[0].text, "cannot connect to rank 1 at 127.0.7."));
	assert_non_null(strstr(w.failure[0].text, " from 127.0."));
	assert_non_null(strstr(w.failure[0].text, ": Connection refused, nor by any other way"));
	world_close(&w);
}

static void open_several(struct world *w, uint64_t replay_nbytes)
{
	const struct gci_tp_link link = {
		.streams = 4, .eager_nbytes = 1000, .replay_nbytes = replay_nbytes};

	naddrs[0] = naddrs[1] = 2;
	world_open(w, &several, 2, &link);
}

/* Its card may be gone. */
static void an_address_that_nothing_leaves_from(void **state)
{
	struct world w;

	(void)state;
	open_several(&w, 0);
	failing_at(FAILING_bind, 1, EADDRNOTAVAIL);
	exchange(&w);
	assert_true(failing_happened(FAILING_bind));
	assert_int_equal(connections(ips[0][0], ips[1][0]) + connections(ips[0][1], ips[1][1]), 4);
	assert_true(connections(ips[0][0], ips[1][0]) != 2); /* one took the other way */
	assert_int_equal(w.nfailures[0] + w.nfailures[1], 0);
	world_close(&w);
}

/* Of no option depends more than speed, or how many ports there are. */
static void options_that_are_refused(void **state)
{
	int happened = 1, n = 0;
	struct world w;

	(void)state;
	failing_forget(FAILING_setsockopt);
	for (; happened; n++) {
		open_several(&w, 0);
		failing_anew(FAILING_setsockopt, EPERM);
		exchange(&w);
		happened = failing_happened(FAILING_setsockopt);
		failing_at(FAILING_setsockopt, 0, 0);
		assert_int_equal(w.nfailures[0] + w.nfailures[1], 0);
		world_close(&w);
	}
	assert_true(n > 2);
}

/* Nobody knows then whether it is one that others were told of: that connection is lost. */
static void the_address_a_connection_came_to_is_not_told(void **state)
{
	struct gci_tp_stats st;
	struct world w;

	(void)state;
	open_several(&w, 1 << 20);
	failing_at(FAILING_getsockname, 1, ENOBUFS);
	exchange(&w);
	assert_true(failing_happened(FAILING_getsockname));
	gci_tp_stats(w.tp[0], 1, &st);
	assert_true(st.lost > 0);
	assert_int_equal(w.nfailures[0] + w.nfailures[1], 0);
	world_close(&w);
}

/* The socket takes connections at all addresses; nobody was told of this one. What close says to
 * that is no reason. */
static void other_addresses_are_closed(void **state)
{
	struct world w;
	char addr[GCI_ADDRESS_TEXT], c;
	struct gci_address a;
	int fd, i;

	(void)state;
	naddrs[0] = naddrs[1] = 2;
	world_open(&w, &several, 2, NULL);
	assert_int_equal(gci_address_make(&a, "127.0.9.9", list[1].port), 0);
	gci_address_format(&a, addr);
	fd = knock(addr);
	failing_at(FAILING_close, 1, EIO);
	/* At once: a stranger that says nothing has 5 s, and the words it is turned away with. */
	for (i = 0; i < 1000 && recv(fd, &c, 1, MSG_DONTWAIT) < 0; i++)
		own_step(&w);
	assert_true(i < 1000);
	assert_true(failing_happened(FAILING_close));
	close(fd);
	exchange(&w);
	world_close(&w);
}

static void the_hosts_own(void **state)
{
	struct gci_error e = {0};
	struct gci_own mine;
	char ip[GCI_ADDRESS_TEXT];

	(void)state;
	assert_int_equal(gci_own_choose(&mine, NULL, "192.0.2.5", &e), 0);
	assert_int_equal(mine.n, 1);
	assert_false(mine.leave_from);
	gci_address_ip(&mine.at[0], ip);
	assert_string_equal(ip, "192.0.2.5");
	assert_int_equal(gci_own_choose(&mine, "127.0.0.0/8", "192.0.2.5", &e), 0);
	assert_int_equal(mine.n, 1);
	assert_true(mine.leave_from);
	gci_address_ip(&mine.at[0], ip);
	assert_string_equal(ip, "127.0.0.1");
	assert_int_equal(gci_own_choose(&mine, "240.7.0.0/16", "127.0.0.1", &e), GCOLL_ERR_INVAL);
	assert_non_null(strstr(e.text,
		"no address of this host matches the interfaces \"240.7.0.0/16\"; there are: "));
	assert_non_null(strstr(e.text, "lo 127.0.0.1/8"));
	gci_error_clear(&e);
	assert_int_equal(gci_own_choose(&mine, "eth0/9", "127.0.0.1", &e), GCOLL_ERR_INVAL);
	assert_non_null(strstr(e.text, "interfaces: \"eth0/9\", expected"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(streams_use_all_addresses),
		cmocka_unit_test(one_address_here_two_there),
		cmocka_unit_test(an_address_that_leads_nowhere),
		cmocka_unit_test(nothing_leads_anywhere),
		cmocka_unit_test(an_address_that_nothing_leaves_from),
		cmocka_unit_test(options_that_are_refused),
		cmocka_unit_test(the_address_a_connection_came_to_is_not_told),
		cmocka_unit_test(other_addresses_are_closed),
		cmocka_unit_test(the_hosts_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
