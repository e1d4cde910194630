/* SPDX-License-Identifier: MIT
 * Ranks that nobody from elsewhere can connect to. */
#include "tests/failing/failing.h"
#include "tests/transport/tcp_world.h"

#include "base/mem.h"

#include <string.h>

/* As a firewall has it: nobody reaches the rank. */
static void let_nobody_in_to_0(int size, char addrs[][GCI_ADDRESS_TEXT])
{
	(void)size;
	strcpy(addrs[0], "127.0.0.9:1");
}

static void let_nobody_in_to_1(int size, char addrs[][GCI_ADDRESS_TEXT])
{
	(void)size;
	strcpy(addrs[1], "127.0.0.9:1");
}

/* Whichever of a pair that is; behind one firewall they reach each other. */
static void who_lets_nobody_in_connects(void **state)
{
	static const uint32_t last[] = {0, 7}, first[] = {7, 0}, both[] = {7, 7};
	static const uint32_t *const cases[] = {last, first, both};
	struct gci_tp_link link = {.streams = 3, .eager_nbytes = 1000, .replay_nbytes = 1 << 20};
	struct world w;
	size_t i;

	(void)state;
	for (i = 0; i < 3; i++) {
		behind = cases[i];
		reroute = i == 0 ? let_nobody_in_to_1 : i == 1 ? let_nobody_in_to_0 : NULL;
		world_open(&w, &own, 2, &link);
		exchange(&w);
		exchange(&w);
		world_close(&w);
	}
	behind = NULL;
	reroute = NULL;
}

/* Nothing is left of a transport for which there is no memory. */
static void no_memory_for_firewalls(void **state)
{
	static const uint32_t some[] = {0, 7};
	int before = failing_descriptors(), failed;
	unsigned long nth;
	struct world w;

	(void)state;
	behind = some;
	for (nth = 1, failed = 1; failed; nth++) {
		gci_mem_fail_at(nth);
		if (!world_try_open(&w, &own, 2, NULL))
			world_close(&w);
		failed = gci_mem_failed();
		gci_mem_fail_at(0);
	}
	behind = NULL;
	assert_true(nth > 5);
	assert_int_equal(failing_descriptors(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_lets_nobody_in_connects),
		cmocka_unit_test(no_memory_for_firewalls),
	};

	choose_path();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
