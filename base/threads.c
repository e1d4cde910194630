/* SPDX-License-Identifier: MIT */
#include "base/threads.h"

#include "base/clock.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

int gci_thread_create(pthread_t *id, void *(*run)(void *arg), void *arg)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(id, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

void gci_cond_init(pthread_cond_t *c)
{
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(c, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

int gci_cond_await(pthread_cond_t *c, pthread_mutex_t *lock, uint64_t end_ns)
{
	const struct timespec at = {(time_t)(end_ns / GCI_NS_PER_S), (long)(end_ns % GCI_NS_PER_S)};

	return pthread_cond_timedwait(c, lock, &at) == ETIMEDOUT;
}
