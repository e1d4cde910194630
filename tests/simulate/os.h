/* SPDX-License-Identifier: MIT
 * The simulated operating system: time, processes and their threads. One real thread runs one
 * simulated thread at a time, until that waits; when all wait, time goes on to the next event. The
 * order in which threads that could run do run is drawn from the seed.
 *
 *	os_begin(seed);
 *	p = os_process(0, host);
 *	os_thread(p, main_of_rank, k);
 *	rc = os_run(GCI_NS_PER_S * 600);	// 1: no thread is left; 0: that time has passed
 *	os_end(); */
#ifndef GCI_TESTS_SIMULATE_OS_H
#define GCI_TESTS_SIMULATE_OS_H

#include "base/clock.h"
#include "base/list.h"
#include "base/prng.h"
#include "tests/simulate/heap.h"

#include <stddef.h>
#include <stdint.h>

#define OS_LAUNCHER (-1)

struct os_thread;

/* What happens to a process in the middle of one of its system calls. */
struct os_fate {
	uint64_t at_call; /* the n-th one; 0: never */
	int stop;         /* it stands still for so long, else it dies */
	uint64_t stop_ns;
};

struct os_process {
	int rank; /* or OS_LAUNCHER */
	int host;
	int dead; /* its threads go no further, its files are closed */
	int stopped;
	int spins; /* it has asked and asked, and time stood still */
	uint64_t ncalls;
	struct heap heap;
	struct os_fate fate;
	void (*on_fate)(struct os_process *p); /* called when it has died or stopped */
	struct gci_list link, threads, files;
};

extern uint64_t os_now;               /* nanoseconds */
extern struct gci_prng os_prng;       /* the seed's */
extern struct os_process *os_current; /* NULL: no thread runs */
extern int os_traces;                 /* says what happens */

void os_begin(uint64_t seed);
void os_end(void);

struct os_process *os_process(int rank, int host);
struct os_thread *os_thread(struct os_process *p, void *(*fn)(void *arg), void *arg);
int os_thread_over(const struct os_thread *t);

/* 1: all threads are over or dead. 0: `most_ns` have passed before. */
int os_run(uint64_t most_ns);

/* Calls fn(arg, n) at that time. */
void os_at(uint64_t ns, void (*fn)(void *arg, uint64_t n), void *arg, uint64_t n);

/* The running thread waits until then, or until os_wake: it looks again what it waits for. */
void os_wait(uint64_t until_ns);
void os_wake(struct os_process *p);

/* At the beginning of every system call of the running thread; may not come back. */
void os_call(void);

/* Ends a process from outside; its files are closed as the kernel does it. */
void os_kill(struct os_process *p);
void os_stop(struct os_process *p, uint64_t ns);

/* 1 in n. */
int os_chance(uint64_t n);
/* lo .. hi. */
uint64_t os_between(uint64_t lo, uint64_t hi);

void os_trace(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
