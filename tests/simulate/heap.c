/* SPDX-License-Identifier: MIT
 * A hash table of addresses. The functions are put in place of the C library's and OpenSSL's by the
 * linker (--wrap), in what is linked statically. */
#include "tests/simulate/heap.h"

#include <openssl/ssl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void *__real_calloc(size_t n, size_t size);
void *__real_reallocarray(void *p, size_t n, size_t size);
void __real_free(void *p);
SSL *__real_SSL_new(SSL_CTX *ctx);
void __real_SSL_free(SSL *ssl);
SSL_CTX *__real_SSL_CTX_new(const SSL_METHOD *method);
void __real_SSL_CTX_free(SSL_CTX *ctx);
BIO_METHOD *__real_BIO_meth_new(int type, const char *name);
void __real_BIO_meth_free(BIO_METHOD *m);

void *__wrap_calloc(size_t n, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);
void __wrap_free(void *p);
SSL *__wrap_SSL_new(SSL_CTX *ctx);
void __wrap_SSL_free(SSL *ssl);
SSL_CTX *__wrap_SSL_CTX_new(const SSL_METHOD *method);
void __wrap_SSL_CTX_free(SSL_CTX *ctx);
BIO_METHOD *__wrap_BIO_meth_new(int type, const char *name);
void __wrap_BIO_meth_free(BIO_METHOD *m);

/* What goes first when all goes: connections before what they share. */
enum sort { NONE, TLS, TLS_CONTEXT, TLS_METHOD, BYTES, GONE };

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
	case TLS:
		__real_SSL_free(at);
		break;
	case TLS_CONTEXT:
		__real_SSL_CTX_free(at);
		break;
	case TLS_METHOD:
		__real_BIO_meth_free(at);
		break;
	default:
		__real_free(at);
	}
}

void heap_drop(struct heap *owner)
{
	enum sort sort;
	size_t i;

	for (sort = TLS; sort <= BYTES && owner->npieces; sort++)
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

SSL *__wrap_SSL_new(SSL_CTX *ctx)
{
	return note(__real_SSL_new(ctx), TLS);
}

void __wrap_SSL_free(SSL *ssl)
{
	forget(ssl);
	__real_SSL_free(ssl);
}

SSL_CTX *__wrap_SSL_CTX_new(const SSL_METHOD *method)
{
	return note(__real_SSL_CTX_new(method), TLS_CONTEXT);
}

void __wrap_SSL_CTX_free(SSL_CTX *ctx)
{
	forget(ctx);
	__real_SSL_CTX_free(ctx);
}

BIO_METHOD *__wrap_BIO_meth_new(int type, const char *name)
{
	return note(__real_BIO_meth_new(type, name), TLS_METHOD);
}

void __wrap_BIO_meth_free(BIO_METHOD *m)
{
	forget(m);
	__real_BIO_meth_free(m);
}
