/* SPDX-License-Identifier: MIT
 * The library's own threads: they take no signals, which are for those of the program; and waiting
 * until a time of gci_now_ns(), whatever becomes of the wall clock. */
#ifndef GCI_BASE_THREADS_H
#define GCI_BASE_THREADS_H

#include <pthread.h>
#include <stdint.h>

/* As pthread_create with default attributes: 0 or an errno. The new thread has all signals
 * blocked. */
int gci_thread_create(pthread_t *id, void *(*run)(void *arg), void *arg);

/* A condition for gci_cond_await; destroyed by pthread_cond_destroy. */
void gci_cond_init(pthread_cond_t *c);

/* Waits until it is signalled, perhaps for nothing, or the time is end_ns; GCI_NEVER: without end.
 * True when the time is up. The lock is held. */
int gci_cond_await(pthread_cond_t *c, pthread_mutex_t *lock, uint64_t end_ns);

#endif
