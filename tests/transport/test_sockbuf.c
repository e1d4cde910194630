/* SPDX-License-Identifier: MIT */
#include "transport/sockbuf.h"

#include "tests/test.h"

#include <sys/socket.h>
#include <unistd.h>

#define MIB (1ull << 20)

/* A Debian host's. */
static const struct gci_sockmax usual = {6 * MIB, 4 * MIB, 212992, 212992};
/* One whose administrator lets programs ask. */
static const struct gci_sockmax generous = {6 * MIB, 4 * MIB, 64 * MIB, 64 * MIB};

static void expect_send(
	uint64_t flight, const struct gci_sockmax *max, uint64_t set, uint64_t reach)
{
	struct gci_sockbuf b;

	gci_sockbuf_send(&b, flight, max);
	assert_int_equal(b.set_nbytes, set);
	assert_int_equal(b.reach_nbytes, reach);
}

static void expect_receive(
	uint64_t flight, const struct gci_sockmax *max, uint64_t set, uint64_t reach)
{
	struct gci_sockbuf b;

	gci_sockbuf_receive(&b, flight, max);
	assert_int_equal(b.set_nbytes, set);
	assert_int_equal(b.reach_nbytes, reach);
}

static void autotuning_where_it_reaches(void **state)
{
	(void)state;
	expect_send(MIB, &generous, 0, 4 * MIB);
	expect_send(4 * MIB, &generous, 0, 4 * MIB);
	expect_receive(3 * MIB, &generous, 0, 3 * MIB);
	expect_send(0, &generous, 0, 4 * MIB); /* nobody knows the link */
	expect_receive(0, &generous, 0, 3 * MIB);
}

/* To ask ends autotuning: where less may be asked for than it reaches, it stays on. */
static void never_less_than_autotuning(void **state)
{
	const struct gci_sockmax same = {6 * MIB, 4 * MIB, 3 * MIB, 2 * MIB};

	(void)state;
	expect_send(25 * MIB, &usual, 0, 4 * MIB);
	expect_receive(25 * MIB, &usual, 0, 3 * MIB);
	expect_send(25 * MIB, &same, 0, 4 * MIB);
	expect_receive(25 * MIB, &same, 0, 3 * MIB);
}

static void asks_for_what_is_needed(void **state)
{
	const struct gci_sockmax some = {6 * MIB, 4 * MIB, 5 * MIB, 5 * MIB};

	(void)state;
	expect_send(25 * MIB, &generous, 25 * MIB, 25 * MIB);
	expect_receive(25 * MIB, &generous, 25 * MIB, 25 * MIB);
	expect_send(25 * MIB, &some, 5 * MIB, 10 * MIB); /* the kernel makes twice of it */
	expect_receive(25 * MIB, &some, 5 * MIB, 5 * MIB);
	expect_send(8 * MIB, &some, 5 * MIB, 8 * MIB);
}

static void unknown_maxima(void **state)
{
	const struct gci_sockmax none = {0};

	(void)state;
	expect_send(25 * MIB, &none, 0, UINT64_MAX);
	expect_receive(25 * MIB, &none, 0, UINT64_MAX);
}

static void rates(void **state)
{
	(void)state;
	assert_int_equal(gci_sockbuf_rate(6250000, 4, 20000000), 10000000000);
	assert_int_equal(gci_sockbuf_rate(1, 1, 0), UINT64_MAX);
	assert_int_equal(gci_sockbuf_rate(UINT64_MAX, 64, 1), UINT64_MAX);
	assert_int_equal(gci_sockbuf_rate(1u << 30, 64, 1), UINT64_MAX);
	assert_int_equal(gci_sockbuf_rate(0, 4, 1), 0);
}

static void what_to_raise(void **state)
{
	(void)state;
	assert_int_equal(gci_sockbuf_sysctl(6250000), 12 * MIB);
	assert_int_equal(gci_sockbuf_sysctl(MIB), 2 * MIB);
	assert_int_equal(gci_sockbuf_sysctl(1), MIB);
	assert_int_equal(gci_sockbuf_sysctl(UINT64_MAX), INT32_MAX); /* an int in the kernel */
	assert_int_equal(gci_sockbuf_sysctl(1u << 30), INT32_MAX);
}

static void unsent(void **state)
{
	(void)state;
	assert_int_equal(gci_sockbuf_unsent(0, 4), 256 << 10);
	assert_int_equal(gci_sockbuf_unsent(625000, 4), 256 << 10);
	assert_int_equal(gci_sockbuf_unsent(400000, 4), 200000);
	assert_int_equal(gci_sockbuf_unsent(400000, 1), 256 << 10); /* no other stream */
	assert_int_equal(gci_sockbuf_unsent(18000, 16), 32 << 10);
	assert_int_equal(gci_sockbuf_unsent(25000000, 1), 781250);
	assert_int_equal(gci_sockbuf_unsent(UINT64_MAX, 64), 1 << 20);
}

/* The kernel keeps to what the rule says of it: it doubles what is asked for, up to the maximum. */
static void this_kernel(void **state)
{
	struct gci_sockmax max;
	int fd = socket(AF_INET, SOCK_STREAM, 0), value;
	socklen_t len = sizeof(value);

	(void)state;
	gci_sockmax_read(&max);
	assert_true(max.tcp_rmem && max.tcp_wmem && max.rmem_max && max.wmem_max);
	assert_true(fd >= 0);
	value = (int)(max.wmem_max < 65536 ? max.wmem_max : 65536);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &value, sizeof(value)), 0);
	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &value, &len), 0);
	assert_int_equal(value, 2 * (max.wmem_max < 65536 ? max.wmem_max : 65536));
	value = 1 << 30;
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &value, sizeof(value)), 0);
	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &value, &len), 0);
	assert_int_equal(value, 2 * max.rmem_max);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(autotuning_where_it_reaches),
		cmocka_unit_test(never_less_than_autotuning),
		cmocka_unit_test(asks_for_what_is_needed),
		cmocka_unit_test(unknown_maxima),
		cmocka_unit_test(rates),
		cmocka_unit_test(what_to_raise),
		cmocka_unit_test(unsent),
		cmocka_unit_test(this_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
