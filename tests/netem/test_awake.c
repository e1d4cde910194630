/* SPDX-License-Identifier: MIT */
#include "tests/test.h"

#include "base/clock.h"
#include "netem/cpu.h"

#include <dirent.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>

/* How many of this process's threads yield to everything else, and are counted as such. Sanitizers have some of
 * their own. */
static int count_yielding(void)
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *entry;
	int n = 0;

	assert_non_null(d);
	while ((entry = readdir(d)))
		n += *entry->d_name != '.' &&
		     sched_getscheduler(atoi(entry->d_name)) == SCHED_IDLE &&
		     getpriority(PRIO_PROCESS, (id_t)atoi(entry->d_name)) == 19;
	closedir(d);
	return n;
}

static void a_thread_for_each_processor(void **state)
{
	int n, round;
	struct gci_awake a;
	cpu_set_t ours;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(ours), &ours), 0);
	assert_int_equal(count_yielding(), 0);
	for (round = 0; round < 2; round++) {
		n = gci_awake_begin(&a);
		assert_int_equal(n, CPU_COUNT(&ours));
		while (count_yielding() != n)
			gci_sleep_ns(GCI_NS_PER_MS);
		gci_awake_end(&a);
		while (count_yielding()) /* /proc tells of a thread a little longer than join does */
			gci_sleep_ns(GCI_NS_PER_MS);
	}
}

static void one_that_never_began(void **state)
{
	struct gci_awake a = {0};

	(void)state;
	gci_awake_end(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_for_each_processor),
		cmocka_unit_test(one_that_never_began),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
