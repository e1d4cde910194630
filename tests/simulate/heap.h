/* SPDX-License-Identifier: MIT
 * Which simulated process has what memory. All that the code under test allocates (base/mem.c and
 * OpenSSL's objects that it makes) is counted for the process that runs; a process that dies gives
 * everything back, as to a kernel. The simulation's own memory is nobody's. */
#ifndef GCI_TESTS_SIMULATE_HEAP_H
#define GCI_TESTS_SIMULATE_HEAP_H

#include <stddef.h>

/* The simulation's own: zeroed, never NULL. */
void *heap_calloc(size_t n, size_t size);
void *heap_grow(void *p, size_t nbytes);
void heap_free(void *p);

struct heap {
	size_t npieces; /* not freed yet */
};

/* From now on memory is this one's; NULL: nobody's. Returns whose it was before. */
struct heap *heap_owner(struct heap *owner);

/* Frees all that it has. */
void heap_drop(struct heap *owner);

#endif
