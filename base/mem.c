/* SPDX-License-Identifier: MIT */
#include "base/mem.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Thread-local, so that a test's injected failure cannot hit another thread. */
static _Thread_local unsigned long fail_in;
static _Thread_local int failed;

static int must_fail(void)
{
	if (!fail_in || --fail_in)
		return 0;
	failed = 1;
	return 1;
}

void gci_mem_fail_at(unsigned long n)
{
	fail_in = n;
	failed = 0;
}

int gci_mem_failed(void)
{
	return failed;
}

void *gci_calloc(size_t n, size_t size)
{
	if (must_fail())
		return NULL;
	if (!n || !size)
		n = size = 1;
	return calloc(n, size);
}

void *gci_reallocarray(void *p, size_t n, size_t size)
{
	if (must_fail())
		return NULL;
	if (!n || !size)
		n = size = 1;
	return reallocarray(p, n, size);
}

char *gci_strndup(const char *s, size_t n)
{
	size_t len = n < PTRDIFF_MAX ? strnlen(s, n) : strlen(s);
	char *copy = gci_calloc(len + 1, 1);

	if (copy)
		memcpy(copy, s, len);
	return copy;
}

char *gci_strdup(const char *s)
{
	return gci_strndup(s, SIZE_MAX);
}

char *gci_asprintf(const char *fmt, ...)
{
	va_list ap, again;
	char *s = NULL;
	int len;

	va_start(ap, fmt);
	va_copy(again, ap);
	len = vsnprintf(NULL, 0, fmt, ap);
	if (len >= 0)
		s = gci_calloc((size_t)len + 1, 1);
	if (s)
		vsnprintf(s, (size_t)len + 1, fmt, again);
	va_end(again);
	va_end(ap);
	return s;
}

void gci_free(void *p)
{
	free(p);
}

static int resize(void *vec, size_t n, size_t size)
{
	void *old, *new;

	memcpy(&old, vec, sizeof(old));
	new = gci_reallocarray(old, n, size);
	if (!new)
		return -1;
	memcpy(vec, &new, sizeof(new));
	return 0;
}

int gci_grow(void *vec, size_t *cap, size_t need, size_t size)
{
	size_t n = *cap ? *cap : 16;

	if (need <= *cap)
		return 0;
	while (n < need) {
		if (n > SIZE_MAX / 2)
			return -1;
		n *= 2;
	}
	if (resize(vec, n, size))
		return -1;
	*cap = n;
	return 0;
}

int gci_grow_by_one(void *vec, size_t n, size_t size)
{
	if (n & (n - 1))
		return 0;
	if (n > SIZE_MAX / 2)
		return -1;
	return resize(vec, n ? 2 * n : 1, size);
}

/* ---- blocks */

#define MOST_BEYOND (GCI_BLOCKS_HAVE_AREAS ? 16 : 0)

static void *pop(void **chain)
{
	void *block = *chain;

	memcpy(chain, block, sizeof(block));
	return block;
}

static void push(void **chain, void *block)
{
	memcpy(block, chain, sizeof(*chain));
	*chain = block;
}

static size_t stride(const struct gci_blocks *blocks)
{
	return (blocks->size + 63) / 64 * 64;
}

static size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

static size_t area_nbytes(const struct gci_blocks *blocks)
{
	return round_up(blocks->most * stride(blocks), GCI_LARGE_PAGE);
}

/* Mapped, since the C library may fill what it hands out, and aligned to large pages. */
static int make_area(struct gci_blocks *blocks)
{
	size_t nbytes = area_nbytes(blocks), small, before;
	char *area;

	small = blocks->is_modest || blocks->most * stride(blocks) < GCI_LARGE_PAGE ? GCI_LARGE_PAGE
										    : 0;
	area = mmap(NULL, nbytes + GCI_LARGE_PAGE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (area == MAP_FAILED)
		return -1;
	before = -(uintptr_t)area % GCI_LARGE_PAGE;
	if (before)
		munmap(area, before);
	area += before;
	munmap(area + nbytes, GCI_LARGE_PAGE - before);
	/* Where the kernel takes large pages by itself, the others are to be small all the same. */
	if (small)
		madvise(area, small, MADV_NOHUGEPAGE);
	if (nbytes > small)
		madvise(area + small, nbytes - small, MADV_HUGEPAGE);
	blocks->area = area;
	return 0;
}

void *gci_blocks_take(struct gci_blocks *blocks)
{
	void *block;

	if (blocks->spare) {
		block = pop(&blocks->spare);
	} else if (GCI_BLOCKS_HAVE_AREAS && blocks->ntouched < blocks->most &&
		   (blocks->area || !make_area(blocks))) {
		block = must_fail() ? NULL : blocks->area + blocks->ntouched++ * stride(blocks);
	} else if (blocks->beyond) {
		block = pop(&blocks->beyond);
		blocks->nbeyond--;
	} else {
		block = gci_reallocarray(NULL, blocks->size, 1);
	}
	blocks->nused += block != NULL;
	return block;
}

static int is_in_area(const struct gci_blocks *blocks, const void *block)
{
	return blocks->area &&
	       (uintptr_t)block - (uintptr_t)blocks->area < blocks->most * stride(blocks);
}

static void free_beyond(struct gci_blocks *blocks)
{
	while (blocks->beyond)
		gci_free(pop(&blocks->beyond));
	blocks->nbeyond = 0;
}

void gci_blocks_give(struct gci_blocks *blocks, void *block)
{
	size_t touched = blocks->ntouched * stride(blocks);

	if (!block)
		return;
	if (is_in_area(blocks, block)) {
		push(&blocks->spare, block);
	} else if (blocks->nbeyond < MOST_BEYOND) {
		push(&blocks->beyond, block);
		blocks->nbeyond++;
	} else {
		gci_free(block);
	}
	if (--blocks->nused)
		return;
	free_beyond(blocks);
	if (touched <= GCI_LARGE_PAGE || blocks->stays)
		return;
	madvise(blocks->area + GCI_LARGE_PAGE, area_nbytes(blocks) - GCI_LARGE_PAGE, MADV_DONTNEED);
	blocks->spare = NULL;
	blocks->ntouched = 0;
}

void gci_blocks_drain(struct gci_blocks *blocks)
{
	if (blocks->area)
		munmap(blocks->area, area_nbytes(blocks));
	blocks->area = NULL;
	blocks->spare = NULL;
	blocks->ntouched = 0;
}

/* ---- secrets
 * Areas of pages, each twice as large as the one before, are cut into blocks of whole units; the first
 * unit of a block has its size. Blocks that come back are kept by size. What says where areas and spare
 * blocks are is outside of them: a child by fork, where they are zeroed, can go on with it. */

#define UNIT       64
#define MOST_UNITS (1 + GCI_SECRET_MOST / UNIT)
#define FIRST_AREA ((size_t)64 << 10)
#define MOST_AREAS 24

static struct {
	pthread_mutex_t lock;
	struct area {
		uint8_t *at;
		size_t nbytes, used;
	} areas[MOST_AREAS];
	unsigned nareas;
	void *spare[MOST_UNITS + 1]; /* by size; chained by what follows their first unit */
	uint32_t *ours;              /* 1, but 0 in a child; NULL: nobody asked */
} secrets = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_once_t forks_are_told = PTHREAD_ONCE_INIT;

static void before_fork(void)
{
	pthread_mutex_lock(&secrets.lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&secrets.lock);
}

static void in_child(void)
{
	unsigned i;

	for (i = 0; i < secrets.nareas; i++)
		explicit_bzero(secrets.areas[i].at, secrets.areas[i].used);
	pthread_mutex_unlock(&secrets.lock);
}

static void tell_forks(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}

/* Kernels and emulators that do not know what is advised here refuse it, or do nothing. */
static int add_area(void)
{
	struct area *a = &secrets.areas[secrets.nareas];
	size_t nbytes = FIRST_AREA << secrets.nareas;
	void *at = MAP_FAILED;

	if (secrets.nareas < MOST_AREAS)
		at = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return -1;
	madvise(at, nbytes, MADV_DONTDUMP);
	madvise(at, nbytes, MADV_WIPEONFORK);
	*a = (struct area){at, nbytes, 0};
	secrets.nareas++;
	return 0;
}

/* With the lock held, as what follows. */
static uint8_t *cut(size_t nbytes)
{
	struct area *a = secrets.nareas ? &secrets.areas[secrets.nareas - 1] : NULL;

	if (!a || a->nbytes - a->used < nbytes) {
		if (add_area())
			return NULL;
		a = &secrets.areas[secrets.nareas - 1];
	}
	a->used += nbytes;
	return a->at + a->used - nbytes;
}

static uint8_t *take(uint32_t nunits)
{
	uint8_t *block = secrets.spare[nunits];

	if (!block)
		return cut((size_t)nunits * UNIT);
	memcpy(&secrets.spare[nunits], block + UNIT, sizeof(void *));
	memset(block + UNIT, 0, sizeof(void *));
	return block;
}

static void *take_secret(size_t nbytes)
{
	uint32_t nunits = (uint32_t)(1 + (nbytes + UNIT - 1) / UNIT);
	uint8_t *block = NULL;

	if (must_fail() || nbytes > GCI_SECRET_MOST)
		return NULL;
	if (nunits < 2)
		nunits = 2;
	pthread_once(&forks_are_told, tell_forks);
	pthread_mutex_lock(&secrets.lock);
	block = take(nunits);
	if (block)
		memcpy(block, &nunits, sizeof(nunits));
	pthread_mutex_unlock(&secrets.lock);
	return block ? block + UNIT : NULL;
}

void *gci_secret_alloc(size_t nbytes)
{
	return take_secret(nbytes);
}

void gci_secret_free(void *p)
{
	uint8_t *block = p ? (uint8_t *)p - UNIT : NULL;
	uint32_t nunits = 0;

	if (block)
		memcpy(&nunits, block, sizeof(nunits));
	if (!nunits) /* a child's, of its parent */
		return;
	explicit_bzero(block, (size_t)nunits * UNIT);
	pthread_mutex_lock(&secrets.lock);
	memcpy(p, &secrets.spare[nunits], sizeof(void *));
	secrets.spare[nunits] = block;
	pthread_mutex_unlock(&secrets.lock);
}

int gci_fork_watch(void)
{
	/* The process's, not the caller's: whoever counts what gci_secret_alloc gave does not see it. */
	uint32_t *ours = secrets.ours ? secrets.ours : take_secret(sizeof(*ours));

	if (!ours)
		return -1;
	*ours = 1;
	__atomic_store_n(&secrets.ours, ours, __ATOMIC_RELEASE);
	return 0;
}

int gci_fork_is_child(void)
{
	const uint32_t *ours = __atomic_load_n(&secrets.ours, __ATOMIC_ACQUIRE);

	return ours && !__atomic_load_n(ours, __ATOMIC_RELAXED);
}
