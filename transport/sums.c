/* SPDX-License-Identifier: MIT */
#include "transport/sums.h"

#include "base/crc32c.h"
#include "base/error.h"
#include "base/mem.h"

#include <string.h>

static uintptr_t end_of(const struct gci_sum *r)
{
	return r->at + r->nbytes;
}

static uint32_t sum(uintptr_t at, uintptr_t end)
{
	return gci_crc32c(0, (const void *)at, end - at);
}

/* The first range that ends behind `at`. What comes is put at the end, as a rule. */
static size_t find(const struct gci_sums *s, uintptr_t at)
{
	size_t lo = 0, hi = s->n;

	if (!s->n || end_of(&s->v[s->n - 1]) <= at)
		return s->n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (end_of(&s->v[mid]) <= at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void drop(struct gci_sums *s, size_t lo, size_t hi)
{
	if (lo == hi)
		return;
	memmove(s->v + lo, s->v + hi, (s->n - hi) * sizeof(*s->v));
	s->n -= hi - lo;
}

/* 0, or GCOLL_ERR_NOMEM. */
static int insert(struct gci_sums *s, size_t i, struct gci_sum r)
{
	if (gci_grow(&s->v, &s->cap, s->n + 1, sizeof(*s->v)))
		return GCOLL_ERR_NOMEM;
	memmove(s->v + i + 1, s->v + i, (s->n - i) * sizeof(*s->v));
	s->v[i] = r;
	s->n++;
	return 0;
}

void gci_sums_forget(struct gci_sums *s, const void *p, size_t nbytes)
{
	uintptr_t at = (uintptr_t)p;
	size_t lo = find(s, at), hi = lo;

	while (hi < s->n && s->v[hi].at < at + nbytes)
		hi++;
	drop(s, lo, hi);
}

void gci_sums_put(struct gci_sums *s, const void *at, uint32_t nbytes, uint32_t crc)
{
	if (!nbytes)
		return;
	gci_sums_forget(s, at, nbytes);
	insert(s, find(s, (uintptr_t)at),
		(struct gci_sum){.at = (uintptr_t)at, .nbytes = nbytes, .crc = crc});
}

/* Cuts range i: the parts must be what the whole was. */
static int cut(struct gci_sums *s, size_t i, uintptr_t at)
{
	struct gci_sum *r = &s->v[i];
	struct gci_sum rest = {.at = at, .nbytes = (uint32_t)(end_of(r) - at)};
	uint32_t first = sum(r->at, at);

	rest.crc = sum(at, end_of(r));
	if (gci_crc32c_join(first, rest.crc, rest.nbytes) != r->crc)
		return GCOLL_ERR_CORRUPT;
	r->nbytes -= rest.nbytes;
	r->crc = first;
	insert(s, i + 1, rest);
	return 0;
}

/* No range stands across `at` any more. */
static int settle(struct gci_sums *s, uintptr_t at)
{
	size_t i = find(s, at);

	return i < s->n && s->v[i].at < at ? cut(s, i, at) : 0;
}

static int settle_both(struct gci_sums *s, uintptr_t at, uintptr_t end)
{
	int rc = settle(s, at);

	return rc ? rc : settle(s, end);
}

int gci_sums_get(struct gci_sums *s, const void *p, size_t nbytes, uint32_t *crc)
{
	uintptr_t at = (uintptr_t)p, end = at + nbytes, stop;
	size_t i;

	*crc = 0;
	if (!nbytes)
		return 0;
	if (settle_both(s, at, end))
		return GCOLL_ERR_CORRUPT;
	for (i = find(s, at); at < end; at = stop) {
		if (i < s->n && s->v[i].at == at) {
			stop = end_of(&s->v[i]);
			*crc = gci_crc32c_join(*crc, s->v[i].crc, s->v[i].nbytes);
			i++;
		} else {
			stop = i < s->n && s->v[i].at < end ? s->v[i].at : end;
			*crc = gci_crc32c(*crc, (const void *)at, stop - at);
		}
	}
	return 0;
}

/* The sums of a range, as of another place. NULL: none, or no memory. */
static struct gci_sum *shifted(
	const struct gci_sums *s, uintptr_t at, uintptr_t end, uintptr_t to, size_t *n)
{
	size_t lo = find(s, at), hi = lo, i;
	struct gci_sum *v;

	while (hi < s->n && s->v[hi].at < end)
		hi++;
	*n = hi - lo;
	v = *n ? gci_reallocarray(NULL, *n, sizeof(*v)) : NULL;
	for (i = 0; v && i < *n; i++) {
		v[i] = s->v[lo + i];
		v[i].at = to + (v[i].at - at);
	}
	return v;
}

int gci_sums_copy(struct gci_sums *s, void *to, const void *from, size_t nbytes)
{
	uintptr_t at = (uintptr_t)from;
	struct gci_sum *v;
	size_t i, n;
	int rc = 0;

	if (!s->n) {
		memmove(to, from, nbytes);
		return 0;
	}
	if (settle_both(s, at, at + nbytes))
		return GCOLL_ERR_CORRUPT;
	v = shifted(s, at, at + nbytes, (uintptr_t)to, &n);
	memmove(to, from, nbytes);
	gci_sums_forget(s, to, nbytes);
	for (i = 0; v && i < n && !rc; i++) {
		rc = sum(v[i].at, end_of(&v[i])) == v[i].crc ? 0 : GCOLL_ERR_CORRUPT;
		gci_sums_put(s, (const void *)v[i].at, v[i].nbytes, v[i].crc);
	}
	gci_free(v);
	return rc;
}

void gci_sums_free(struct gci_sums *s)
{
	gci_free(s->v);
	*s = (struct gci_sums){0};
}
