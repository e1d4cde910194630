/* SPDX-License-Identifier: MIT */
#include "netem/awake.h"

#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/resource.h>

static void *turn(void *arg)
{
	struct sched_param none = {0};
	struct gci_awake *a = arg;

	/* Without them a thread would take time from the lab, and be counted as what the lab does. */
	if (sched_setscheduler(0, SCHED_IDLE, &none) || setpriority(PRIO_PROCESS, 0, 19))
		return NULL;
	while (!__atomic_load_n(&a->over, __ATOMIC_RELAXED))
		;
	return NULL;
}

static int begin_on(struct gci_awake *a, int cpu)
{
	pthread_t *thread = &a->threads[a->nthreads];
	cpu_set_t one;

	if (pthread_create(thread, NULL, turn, a))
		return 0;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	pthread_setaffinity_np(*thread, sizeof(one), &one);
	return 1;
}

int gci_awake_begin(struct gci_awake *a)
{
	sigset_t all, before;
	cpu_set_t ours;
	int cpu;

	a->nthreads = a->over = 0;
	if (sched_getaffinity(0, sizeof(ours), &ours))
		return 0;
	sigfillset(&all); /* signals are for those who wait for them */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	for (cpu = 0; cpu < CPU_SETSIZE && a->nthreads < GCI_AWAKE_MAX; cpu++)
		if (CPU_ISSET(cpu, &ours))
			a->nthreads += begin_on(a, cpu);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return a->nthreads;
}

void gci_awake_end(struct gci_awake *a)
{
	__atomic_store_n(&a->over, 1, __ATOMIC_RELAXED);
	while (a->nthreads)
		pthread_join(a->threads[--a->nthreads], NULL);
}
