/* SPDX-License-Identifier: MIT */
#include "base/mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static void *pop(struct gci_blocks *blocks)
{
	void *block = blocks->spare;

	memcpy(&blocks->spare, block, sizeof(blocks->spare));
	blocks->nspare--;
	return block;
}

static void keep(struct gci_blocks *blocks, unsigned most)
{
	while (blocks->nspare > most)
		gci_free(pop(blocks));
}

void *gci_blocks_take(struct gci_blocks *blocks)
{
	void *block = blocks->spare ? pop(blocks) : gci_reallocarray(NULL, blocks->size, 1);

	blocks->nused += block != NULL;
	return block;
}

void gci_blocks_give(struct gci_blocks *blocks, void *block)
{
	memcpy(block, &blocks->spare, sizeof(blocks->spare));
	blocks->spare = block;
	blocks->nspare++;
	blocks->nused--;
	keep(blocks, blocks->nused ? blocks->most : blocks->idle);
}

void gci_blocks_drain(struct gci_blocks *blocks)
{
	keep(blocks, 0);
}
