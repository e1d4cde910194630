/* SPDX-License-Identifier: MIT
 * Processors that do not sleep. A lab waits for its next packet thousands of times a second; on a
 * virtual machine that shares its processors with others, each time the processor goes to sleep
 * somebody else may have it, and it comes back late.
 *
 *	struct gci_awake a;
 *
 *	gci_awake_begin(&a);
 *	...
 *	gci_awake_end(&a); */
#ifndef GCI_NETEM_AWAKE_H
#define GCI_NETEM_AWAKE_H

#include <pthread.h>

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
