/* SPDX-License-Identifier: MIT
 * How busy the CPUs were, so that a lab's user knows whether times are the network's. */
#ifndef GCI_NETEM_CPU_H
#define GCI_NETEM_CPU_H

#include <pthread.h>
#include <stdint.h>
#include <string.h>

#define GCI_CPU_STOLEN_PERCENT 5
#define GCI_CPU_MIN_TICKS      100 /* less says nothing */

/* Ticks of all CPUs since the start of the system, by /proc/stat; zeros where it is not there. What lets others go
 * first (nice(1), and the threads of gci_awake_begin) counts as idle, unless the caller does so, too:
 * no lab waits for it. */
void gci_cpu_read(uint64_t *busy, uint64_t *total);

/* Of these, those that a hypervisor gave to other machines while this one had something to do. */
uint64_t gci_cpu_stolen(void);

/* Percent, or -1 when there were too few ticks to say. */
static inline int gci_cpu_percent(uint64_t busy, uint64_t total)
{
	return total < GCI_CPU_MIN_TICKS ? -1 : (int)(busy * 100 / total);
}

/* Above this a lab's times are the CPU's: a guest has one, on which all take turns. */
static inline int gci_cpu_most_percent(const char *backend)
{
	return strcmp(backend, "uml") ? 90 : 70;
}

/* ---- Processors that do not sleep. A lab waits for its next packet thousands of times a second; on a
 * virtual machine that shares its processors with others, each time the processor goes to sleep
 * somebody else may have it, and it comes back late.
 *
 *	struct gci_awake a;
 *
 *	gci_awake_begin(&a);
 *	...
 *	gci_awake_end(&a); */

#define GCI_AWAKE_MAX 256 /* processors */

struct gci_awake {
	pthread_t threads[GCI_AWAKE_MAX];
	int nthreads;
	int over;
};

/* Keeps each processor that this process may use busy, by a thread that anything else goes before
 * (SCHED_IDLE) and that gci_cpu_read leaves out (nice 19). Returns how many; those for which there
 * is no thread may sleep. */
int gci_awake_begin(struct gci_awake *a);

/* From the thread that began it; `a` must stay until it returns. */
void gci_awake_end(struct gci_awake *a);

#endif
