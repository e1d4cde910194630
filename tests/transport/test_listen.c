/* SPDX-License-Identifier: MIT */
#include "tests/test.h"

#include "transport/address.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Ports for which nobody else listens now, in a row. */
enum { N = 4 };

static int open_at(
	const char *ip, struct gci_ports ports, uint32_t turn, uint16_t *port, struct gci_error *e)
{
	struct gci_address at;
	int fd = -1;

	assert_int_equal(gci_address_make(&at, ip, 0), 0);
	if (gci_listen(&at, &ports, turn, &fd, e))
		return -1;
	*port = gci_address_port(&at);
	return fd;
}

/* All but the last of a row of N is held by us; the row is where it was free. */
static uint16_t take_row(int fds[N])
{
	uint16_t first = 0, port;
	int tries, n;

	for (tries = 0; tries < 100; tries++) {
		fds[0] = open_at("127.0.0.1", (struct gci_ports){0}, 0, &first, NULL);
		assert_true(fds[0] >= 0);
		for (n = 1; n < N && first < 65000; n++) {
			struct gci_ports one = {(uint16_t)(first + n), (uint16_t)(first + n)};

			fds[n] = open_at("127.0.0.1", one, 0, &port, NULL);
			if (fds[n] < 0)
				break;
		}
		if (n == N)
			return first;
		while (n--)
			close(fds[n]);
	}
	fail_msg("no row of free ports");
	return 0;
}

static void a_range_is_tried_to_its_end(void **state)
{
	struct gci_error e = {0};
	struct gci_ports row;
	char want[64];
	uint16_t port;
	uint32_t turn;
	int fds[N], i;

	(void)state;
	row.lo = take_row(fds);
	row.hi = (uint16_t)(row.lo + N - 1);
	assert_int_equal(open_at("127.0.0.1", row, 1, &port, &e), -1);
	assert_int_equal(e.status, GCOLL_ERR_SYS);
	snprintf(want, sizeof(want), "no port from %u to %u can be had on 127.0.0.1", row.lo,
		row.hi);
	assert_non_null(strstr(e.text, want));
	assert_non_null(strstr(e.text, "Address already in use"));
	/* The one that is free is found from wherever the search begins. */
	close(fds[2]);
	for (turn = 0; turn < 2 * N; turn++) {
		fds[2] = open_at("127.0.0.1", row, turn, &port, NULL);
		assert_true(fds[2] >= 0);
		assert_int_equal(port, row.lo + 2);
		close(fds[2]);
	}
	fds[2] = fds[0];
	for (i = 0; i < N; i++)
		if (i != 2)
			close(fds[i]);
}

static void ranks_begin_apart(void **state)
{
	struct gci_ports row;
	uint16_t port;
	int fds[N], i;

	(void)state;
	row.lo = take_row(fds);
	row.hi = (uint16_t)(row.lo + N - 1);
	for (i = 0; i < N; i++)
		close(fds[i]);
	for (i = 0; i < N; i++) {
		fds[i] = open_at("127.0.0.1", row, (uint32_t)(i + N), &port, NULL);
		assert_int_equal(port, row.lo + i);
	}
	for (i = 0; i < N; i++)
		close(fds[i]);
}

/* Another process has bound the port, but does not listen yet: listening fails where binding did
 * not, and the next port is to be tried with another socket. */
static void a_port_that_is_only_bound(void **state)
{
	struct gci_address at;
	struct gci_ports row;
	uint16_t port;
	int fds[N], i, yes = 1, fd = socket(AF_INET, SOCK_STREAM, 0);

	(void)state;
	row.lo = take_row(fds);
	row.hi = (uint16_t)(row.lo + N - 1);
	for (i = 0; i < N; i++)
		close(fds[i]);
	assert_int_equal(gci_address_make(&at, "127.0.0.1", row.lo), 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	assert_int_equal(bind(fd, &at.any, at.len), 0);
	fds[0] = open_at("127.0.0.1", row, 0, &port, NULL);
	assert_true(fds[0] >= 0);
	fds[1] = open_at("127.0.0.1", row, 0, &port, NULL);
	assert_true(fds[1] >= 0);
	for (i = 0; i < 2; i++)
		close(fds[i]);
	close(fd);
}

static void all_addresses(void **state)
{
	struct gci_address at;
	uint16_t port = 0;
	int fd = open_at("::", (struct gci_ports){0}, 0, &port, NULL);
	int client = socket(AF_INET, SOCK_STREAM, 0);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(gci_address_make(&at, "127.0.0.1", port), 0);
	assert_int_equal(connect(client, &at.any, at.len), 0);
	close(client);
	close(fd);
}

static void an_address_of_somebody_else(void **state)
{
	struct gci_error e = {0};
	uint16_t port;

	(void)state;
	assert_int_equal(open_at("240.7.0.1", (struct gci_ports){5000, 5001}, 0, &port, &e), -1);
	assert_string_equal(e.text, "cannot listen on 240.7.0.1: Cannot assign requested address");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_range_is_tried_to_its_end),
		cmocka_unit_test(ranks_begin_apart),
		cmocka_unit_test(a_port_that_is_only_bound),
		cmocka_unit_test(all_addresses),
		cmocka_unit_test(an_address_of_somebody_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
