/* SPDX-License-Identifier: MIT */
#include "tests/failing/failing.h"
#include "tests/test.h"

#include "base/clock.h"
#include "base/threads.h"

#include <errno.h>
#include <signal.h>

static int has_sigterm(const sigset_t *set)
{
	return sigismember(set, SIGTERM) == 1;
}

static void *look_at_mask(void *arg)
{
	pthread_sigmask(SIG_SETMASK, NULL, arg);
	return arg;
}

/* Whether it began or not, signals are for the caller as before. */
static void its_signals_are_the_callers(void **state)
{
	sigset_t mask;
	pthread_t id;

	(void)state;
	sigemptyset(&mask);
	failing_at(FAILING_pthread_create, 1, EAGAIN);
	assert_int_equal(gci_thread_create(&id, look_at_mask, &mask), EAGAIN);
	assert_true(failing_happened(FAILING_pthread_create));
	assert_false(has_sigterm(&mask));
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	assert_false(has_sigterm(&mask));

	assert_int_equal(gci_thread_create(&id, look_at_mask, &mask), 0);
	assert_int_equal(pthread_join(id, NULL), 0);
	assert_true(has_sigterm(&mask));
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	assert_false(has_sigterm(&mask));
}

static void waiting_ends_at_its_time(void **state)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	uint64_t end_ns = gci_now_ns() + 5 * GCI_NS_PER_MS;
	pthread_cond_t c;

	(void)state;
	gci_cond_init(&c);
	pthread_mutex_lock(&lock);
	while (!gci_cond_await(&c, &lock, end_ns))
		;
	assert_true(gci_now_ns() >= end_ns);
	pthread_mutex_unlock(&lock);
	pthread_cond_destroy(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(its_signals_are_the_callers),
		cmocka_unit_test(waiting_ends_at_its_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
