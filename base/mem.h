/* SPDX-License-Identifier: MIT
 * Memory: all of gridcoll allocates through here, so that tests can make any allocation fail. */
#ifndef GCI_BASE_MEM_H
#define GCI_BASE_MEM_H

#include <stddef.h>

/* Zeroed memory for n objects of `size` bytes; NULL when out of memory or when n * size
 * overflows. n * size == 0 gives a pointer that may be freed. */
void *gci_calloc(size_t n, size_t size);

/* Resizes to n objects of `size` bytes; what is new is not zeroed. On NULL `p` is untouched. */
void *gci_reallocarray(void *p, size_t n, size_t size);

char *gci_strdup(const char *s);
char *gci_strndup(const char *s, size_t n);

/* "printf" into new memory; NULL when out of memory. */
char *gci_asprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

void gci_free(void *p);

/* Grows *vec (of objects of `size` bytes, capacity *cap) to hold at least `need`. 0 or -1. */
int gci_grow(void *vec, size_t *cap, size_t need, size_t size);

/* Makes room for one object of `size` bytes behind the `n` in *vec, a vector whose room is only
 * made by this: it is the next power of two, so nobody has to keep it. 0 or -1. */
int gci_grow_by_one(void *vec, size_t n, size_t size);

/* Large blocks of one size that come and go often:
 *
 *	struct gci_blocks blocks = {.size = 256 << 10, .most = 32};
 *	p = gci_blocks_take(&blocks);
 *	gci_blocks_give(&blocks, p);
 *	gci_blocks_drain(&blocks);
 *
 * The first touch of a page costs more than what is written to it, and the C library's free gives pages
 * back to the kernel each time. So blocks are of one area, in large pages where the kernel has these
 * (madvise), and the last one that came back is taken first. While none is in use all but GCI_LARGE_PAGE
 * of the area is the kernel's again, unless it stays. Of the C library's some are kept until then. For
 * AddressSanitizer each block is the C library's, and none is kept. */
#define GCI_LARGE_PAGE ((size_t)2 << 20)

#if defined(__SANITIZE_ADDRESS__)
#define GCI_BLOCKS_HAVE_AREAS 0
#elif defined(__has_feature)
#define GCI_BLOCKS_HAVE_AREAS (!__has_feature(address_sanitizer))
#else
#define GCI_BLOCKS_HAVE_AREAS 1
#endif

struct gci_blocks {
	size_t size;   /* of a block */
	unsigned most; /* in the area; those beyond are the C library's */
	int is_modest; /* most users need few: the first GCI_LARGE_PAGE is of small pages */
	int stays; /* the area, as far as it was touched: who takes a block cannot wait for pages */
	char *area;
	unsigned ntouched; /* of its blocks: in use, or spare */
	void *spare;       /* chained by their first bytes */
	void *beyond;      /* spare ones of the C library, likewise */
	unsigned nbeyond, nused;
};

/* Not zeroed; NULL when out of memory. */
void *gci_blocks_take(struct gci_blocks *blocks);
void gci_blocks_give(struct gci_blocks *blocks, void *block); /* NULL is legal */

/* When none is in use: the area goes, too. */
void gci_blocks_drain(struct gci_blocks *blocks);

/* Zeroed memory for keys, and for what is computed from them: a child by fork finds it zeroed again,
 * core dumps leave it out, and free wipes it. At most GCI_SECRET_MOST bytes, aligned to 64. NULL when
 * out of memory. */
#define GCI_SECRET_MOST 2048
void *gci_secret_alloc(size_t nbytes);
void gci_secret_free(void *p); /* NULL is legal */

/* From now on children by fork are told from this process: 0 or -1, out of memory. */
int gci_fork_watch(void);

/* True in such a child, and in its children. Costs a load. vfork, whose child shares this process's
 * memory, is not told from it. */
int gci_fork_is_child(void);

/* For tests: the n-th allocation from now (1 = the next one) fails, once. 0 switches it off. */
void gci_mem_fail_at(unsigned long n);

/* For tests: true if the failure asked for has happened. */
int gci_mem_failed(void);

#endif
