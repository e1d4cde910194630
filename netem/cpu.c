/* SPDX-License-Identifier: MIT */
#include "netem/cpu.h"

#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

enum { NICE = 1, IDLE = 3, IOWAIT = 4, STEAL = 7, NKINDS = 8 }; /* of proc_stat(5) */

static void read_ticks(unsigned long long v[NKINDS])
{
	FILE *f = fopen("/proc/stat", "re");

	memset(v, 0, NKINDS * sizeof(*v));
	if (!f)
		return;
	if (fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1], &v[2], &v[3],
		    &v[4], &v[5], &v[6], &v[7]) < 4)
		memset(v, 0, NKINDS * sizeof(*v));
	fclose(f);
}

void gci_cpu_read(uint64_t *busy, uint64_t *total)
{
	unsigned long long v[NKINDS];
	int i, goes_first = getpriority(PRIO_PROCESS, 0) <= 0;

	read_ticks(v);
	*busy = *total = 0;
	for (i = 0; i < NKINDS; i++) {
		*total += v[i];
		*busy += (i == NICE && goes_first) || i == IDLE || i == IOWAIT ? 0 : v[i];
	}
}

uint64_t gci_cpu_stolen(void)
{
	unsigned long long v[NKINDS];

	read_ticks(v);
	return v[STEAL];
}

/* ---- Processors that do not sleep. */

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
