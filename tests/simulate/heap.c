/* SPDX-License-Identifier: MIT
 * A hash table of addresses. The functions are put in place of the C library's and OpenSSL's by the
 * linker (--wrap), in what is linked statically. */
#include "tests/simulate/heap.h"

#include "base/mem.h"

#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef void SECRET; /* of gci_secret_alloc */

/* Types of OpenSSL's, and one of ours, that a process may hold across a system call: how one is made and released. In
 * this order they go when all goes: connections before what they share. types.sh looks whether any
 * is missing. */
#define TYPES(X)                                                                               \
	X(SSL, SSL_new, SSL_free, (SSL_CTX * ctx), (ctx))                                      \
	X(SSL_CTX, SSL_CTX_new, SSL_CTX_free, (const SSL_METHOD *method), (method))            \
	X(BIO_METHOD, BIO_meth_new, BIO_meth_free, (int type, const char *name), (type, name)) \
	X(EVP_CIPHER_CTX, EVP_CIPHER_CTX_new, EVP_CIPHER_CTX_free, (void), ())                 \
	X(SECRET, gci_secret_alloc, gci_secret_free, (size_t nbytes), (nbytes))

#define DECLARE(type, make, release, params, args) \
	type *__real_##make params;                \
	type *__wrap_##make params;                \
	void __real_##release(type *at);           \
	void __wrap_##release(type *at);
TYPES(DECLARE)

void *__real_calloc(size_t n, size_t size);
void *__real_reallocarray(void *p, size_t n, size_t size);
void __real_free(void *p);

void *__wrap_calloc(size_t n, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);
void __wrap_free(void *p);

#define SORT(type, make, release, params, args) IS_##type,
enum sort { NONE, TYPES(SORT) BYTES, GONE };

struct piece {
	void *at;
	struct heap *owner;
	enum sort sort; /* NONE: the slot has always been empty */
};

static struct piece *pieces;
static size_t npieces, nslots; /* used, with those that are gone */
static struct heap *owner_now;

void *heap_calloc(size_t n, size_t size)
{
	void *p = __real_calloc(n, size);

	if (!p)
		abort();
	return p;
}

void *heap_grow(void *p, size_t nbytes)
{
	p = __real_reallocarray(p, nbytes, 1);
	if (!p)
		abort();
	return p;
}

void heap_free(void *p)
{
	__real_free(p);
}

struct heap *heap_owner(struct heap *owner)
{
	struct heap *before = owner_now;

	owner_now = owner;
	return before;
}

/* The piece's slot, or the empty one behind. */
static struct piece *find(const void *at)
{
	size_t i = ((uintptr_t)at >> 4) * 0x9e3779b97f4a7c15ull >> 20;

	for (;; i++) {
		struct piece *p = &pieces[i & (nslots - 1)];

		if (p->sort == NONE || (p->at == at && p->sort != GONE))
			return p;
	}
}

static void make_room(void)
{
	struct piece *old = pieces;
	size_t i, n = nslots, live = 0;

	if (2 * npieces < nslots)
		return;
	for (i = 0; i < n; i++)
		live += old[i].sort != NONE && old[i].sort != GONE;
	for (nslots = 4096; nslots < 4 * live; nslots *= 2)
		;
	pieces = heap_calloc(nslots, sizeof(*pieces));
	for (i = 0; i < n; i++)
		if (old[i].sort != NONE && old[i].sort != GONE)
			*find(old[i].at) = old[i];
	npieces = live;
	__real_free(old);
}

static void *note(void *at, enum sort sort)
{
	if (!at || !owner_now)
		return at;
	make_room();
	*find(at) = (struct piece){at, owner_now, sort};
	npieces++;
	owner_now->npieces++;
	return at;
}

static void forget(const void *at)
{
	struct piece *p = nslots && at ? find(at) : NULL;

	if (!p || p->sort == NONE)
		return;
	p->sort = GONE;
	p->owner->npieces--;
}

static void release(void *at, enum sort sort)
{
	switch (sort) {
#define RELEASE(type, make, release, params, args) \
	case IS_##type:                            \
		__real_##release(at);              \
		break;
		TYPES(RELEASE)
	default:
		__real_free(at);
	}
}

void heap_drop(struct heap *owner)
{
	enum sort sort;
	size_t i;

	for (sort = NONE + 1; sort <= BYTES && owner->npieces; sort++)
		for (i = 0; i < nslots; i++)
			if (pieces[i].sort == sort && pieces[i].owner == owner) {
				pieces[i].sort = GONE;
				owner->npieces--;
				release(pieces[i].at, sort);
			}
}

/* ---- in place of others' */

void *__wrap_calloc(size_t n, size_t size)
{
	return note(__real_calloc(n, size), BYTES);
}

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
	void *q;

	forget(p);
	q = __real_reallocarray(p, n, size);
	note(q ? q : p, BYTES);
	return q;
}

void __wrap_free(void *p)
{
	forget(p);
	__real_free(p);
}

#define WRAP(type, make, release, params, args)             \
	type *__wrap_##make params                          \
	{                                                   \
		return note(__real_##make args, IS_##type); \
	}                                                   \
	void __wrap_##release(type *at)                     \
	{                                                   \
		forget(at);                                 \
		__real_##release(at);                       \
	}
TYPES(WRAP)
