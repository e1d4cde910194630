/* SPDX-License-Identifier: MIT
 * What those may try who have no key: hellos that were recorded, changed, cut short or made up. */
#include "tests/transport/secure_pair.h"

#include "base/prng.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* All that a server was sent once, sent to another one that has the same key. */
static void nothing_serves_twice(void **state)
{
	static uint8_t heard[16 << 10];
	size_t nheard;
	struct pair w, v;
	struct iovec out = {.iov_base = (void *)(uintptr_t) "some data", .iov_len = 9}, in;
	uint8_t got[64];

	(void)state;
	open_pair(&w, &right, &right, &zero_to_one);
	assert_int_equal(gci_secure_shake(w.end[0], NULL), 0);
	carry(&w, 0);
	nheard = w.to[1]->hi;
	memcpy(heard, w.to[1]->bytes, nheard);
	assert_int_equal(gci_secure_shake(w.end[1], NULL), 0);
	carry(&w, 1);
	assert_int_equal(gci_secure_shake(w.end[0], NULL), 1);
	assert_int_equal(gci_secure_write(w.end[0], &out, 1, 0, NULL), 9);
	carry(&w, 0);
	memcpy(heard + nheard, w.to[1]->bytes, w.to[1]->hi);
	nheard += w.to[1]->hi;
	assert_int_equal(gci_secure_shake(w.end[1], NULL), 1);
	in = (struct iovec){got, sizeof(got)};
	assert_int_equal(gci_secure_read(w.end[1], &in, 1, NULL), 9);

	open_pair(&v, &right, &right, &zero_to_one);
	put(v.to[1], heard, nheard);
	assert_int_equal(gci_secure_shake(v.end[1], NULL), -EPROTO);
	assert_false(gci_secure_is_ready(v.end[1]));
	close_pair(&v);
	close_pair(&w);
}

/* Nor at the one that heard it, which sees that before it answers; what it said counts until then
 * as the word of one who has the key, and what is made up does not. */
static void a_hello_serves_once(void **state)
{
	static uint8_t heard[4096];
	size_t nheard, n;
	struct pair w;

	(void)state;
	open_pair(&w, &right, &right, &zero_to_one);
	assert_int_equal(gci_secure_shake(w.end[0], NULL), 0);
	carry(&w, 0);
	nheard = w.to[1]->hi;
	memcpy(heard, w.to[1]->bytes, nheard);
	assert_int_equal(gci_secure_shake(w.end[1], NULL), 0);
	assert_true(gci_secure_has_shown(w.end[1]));
	assert_false(gci_secure_has_shown(w.end[0]));
	accept_anew(&w);
	put(w.to[1], heard, nheard);
	assert_int_equal(gci_secure_shake(w.end[1], NULL), -EPROTO);
	assert_false(gci_secure_has_shown(w.end[1]));
	gci_secure_out(w.end[1], &n);
	assert_in_range(n, 1, 16); /* an alert */
	/* Its random changed, it is not what the key was used for. */
	accept_anew(&w);
	heard[5 + 4 + 2] ^= 1;
	put(w.to[1], heard, nheard);
	assert_int_equal(gci_secure_shake(w.end[1], NULL), -EPROTO);
	assert_false(gci_secure_has_shown(w.end[1]));
	close_pair(&w);
}

/* All that a server hears of one handshake and some data; *first: how much of it is the hello. */
static size_t record_handshake(uint8_t *heard, size_t *first)
{
	struct iovec out = {.iov_base = (void *)(uintptr_t) "some data", .iov_len = 9};
	struct pair w;
	size_t n;

	open_pair(&w, &right, &right, &zero_to_one);
	assert_int_equal(gci_secure_shake(w.end[0], NULL), 0);
	carry(&w, 0);
	*first = n = w.to[1]->hi;
	memcpy(heard, w.to[1]->bytes, n);
	assert_int_equal(gci_secure_shake(w.end[1], NULL), 0);
	carry(&w, 1);
	assert_int_equal(gci_secure_shake(w.end[0], NULL), 1);
	assert_int_equal(gci_secure_write(w.end[0], &out, 1, 0, NULL), 9);
	w.to[1]->lo = w.to[1]->hi = 0;
	carry(&w, 0);
	memcpy(heard + n, w.to[1]->bytes, w.to[1]->hi);
	n += w.to[1]->hi;
	close_pair(&w);
	return n;
}

/* A byte of it is another one. Its memory ends where the hello does: nobody reads on. */
static void glance_at_changed(
	const struct gci_secure_ctx *ctx, const uint8_t *hello, size_t nbytes, size_t n)
{
	uint8_t *other = malloc(nbytes);
	int rc;

	assert_non_null(other);
	memcpy(other, hello, nbytes);
	other[n] ^= 0x81;
	rc = gci_secure_glance(ctx, other, nbytes);
	assert_in_range(rc + 2, 0, 3);
	if (n >= 5) /* behind the record's header the key was used for all of it */
		assert_true(rc < 0);
	free(other);
}

/* Before anything is made for it. */
static void at_a_glance(void **state)
{
	static uint8_t heard[16 << 10];
	struct gci_secure_config later = right, other = right;
	struct gci_secure_ctx *ctx;
	size_t first, n;
	struct pair w;

	(void)state;
	record_handshake(heard, &first);
	assert_in_range(first, 150, GCI_SECURE_FIRST);
	open_pair(&w, &right, &right, &zero_to_one);
	for (n = 0; n < first; n++)
		assert_int_equal(gci_secure_glance(w.ctx[1], heard, n), 0);
	assert_int_equal(gci_secure_glance(w.ctx[1], heard, first), 1);
	assert_int_equal(gci_secure_glance(w.ctx[1], heard, sizeof(heard)), 1);
	*other.secret ^= 1; /* it names a rank, but has not its key */
	assert_int_equal(gci_secure_ctx_create(&ctx, &other, NULL), 0);
	assert_int_equal(gci_secure_glance(ctx, heard, first), GCI_SECURE_NO_KEY);
	gci_secure_ctx_free(ctx);
	later.epoch = 4;
	assert_int_equal(gci_secure_ctx_create(&ctx, &later, NULL), 0);
	assert_int_equal(gci_secure_glance(ctx, heard, first), -1);
	gci_secure_ctx_free(ctx);
	for (n = 0; n < first; n++)
		glance_at_changed(w.ctx[1], heard, first, n);
	assert_int_equal(gci_secure_glance(w.ctx[1], (const uint8_t *)"\x16\x03\x01\x02\0", 5), -1);
	assert_int_equal(gci_secure_glance(w.ctx[1], (const uint8_t *)"GET /", 1), -1);
	/* Once it has served, it does not look so any more. */
	put(w.to[1], heard, first);
	assert_int_equal(gci_secure_shake(w.end[1], NULL), 0);
	assert_int_equal(gci_secure_glance(w.ctx[1], heard, first), -1);
	close_pair(&w);
}

/* A client's first flight, each time another one. */
static size_t new_hello(uint8_t hello[GCI_SECURE_FIRST])
{
	struct pair w;
	size_t n;

	open_pair(&w, &right, &right, &zero_to_one);
	assert_int_equal(gci_secure_shake(w.end[0], NULL), 0);
	carry(&w, 0);
	n = w.to[1]->hi;
	assert_true(n <= GCI_SECURE_FIRST);
	memcpy(hello, w.to[1]->bytes, n);
	close_pair(&w);
	return n;
}

/* True if it counts as the word of one who has the key. */
static int serves(struct pair *w, const uint8_t *hello, size_t n)
{
	int looks = gci_secure_glance(w->ctx[1], hello, n);

	accept_anew(w);
	put(w->to[1], hello, n);
	assert_int_equal(gci_secure_shake(w->end[1], NULL), looks > 0 ? 0 : -EPROTO);
	assert_int_equal(gci_secure_has_shown(w->end[1]), looks > 0);
	return looks > 0;
}

/* However many have called, the next one is let in, and the last ones do not serve again. */
static void the_last_hellos_are_remembered(void **state)
{
	enum { REMEMBERED = 3, N = 20 };
	static uint8_t hello[N][GCI_SECURE_FIRST];
	struct gci_secure_config few = right;
	size_t nbytes[N];
	struct pair w;
	int i, k;

	(void)state;
	few.most_heard = REMEMBERED;
	open_pair(&w, &right, &few, &zero_to_one);
	for (i = 0; i < N; i++) {
		nbytes[i] = new_hello(hello[i]);
		assert_true(serves(&w, hello[i], nbytes[i]));
		for (k = i; k >= 0 && k > i - REMEMBERED; k--)
			assert_false(serves(&w, hello[k], nbytes[k]));
	}
	/* The bound on memory is one on what is remembered. */
	for (k = 0; k <= N - 1 - 2 * REMEMBERED; k++)
		assert_int_equal(gci_secure_glance(w.ctx[1], hello[k], nbytes[k]), 1);
	close_pair(&w);
}

static size_t resident_nbytes(void)
{
	unsigned long size = 0, resident = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lu %lu", &size, &resident), 2);
	fclose(f);
	return resident * (size_t)sysconf(_SC_PAGESIZE);
}

/* Any bytes of the hello changed, some left out, or all of what was heard once more: it ends or
 * waits, and never well. $GRIDCOLL_TEST_HANDSHAKES says how many. */
static void mutated_handshakes(void **state)
{
	const char *many = getenv("GRIDCOLL_TEST_HANDSHAKES");
	const size_t n = many ? strtoul(many, NULL, 10) : TEST_SANITIZED ? 200 : 1500;
	static uint8_t heard[16 << 10];
	size_t i, k, all, first, before = 0, shown = 0;
	struct gci_prng prng = {11};
	struct pipe *to;
	struct pair v;

	(void)state;
	all = record_handshake(heard, &first);
	open_pair(&v, &right, &right, &zero_to_one);
	to = v.to[1];
	for (i = 0; i < n; i++) {
		int replayed = i % 5 == 4;

		accept_anew(&v);
		to->piece = i % 3 ? SIZE_MAX : 1 + gci_prng_below(&prng, 300);
		put(to, heard, replayed ? all : first);
		for (k = 0; k < (replayed ? 0 : 1 + i % 4); k++)
			to->bytes[gci_prng_below(&prng, first)] ^=
				(uint8_t)(1 + gci_prng_below(&prng, 255));
		if (i % 5 == 3)
			to->hi = gci_prng_below(&prng, first);
		to->ended = (int)(i & 1);
		assert_true(gci_secure_shake(v.end[1], NULL) <= 0);
		assert_false(gci_secure_is_ready(v.end[1]));
		shown += (size_t)gci_secure_has_shown(v.end[1]);
		if (i == 100)
			before = resident_nbytes();
	}
	assert_int_equal(shown, 1); /* the first time that it was replayed */
	/* Nothing stays behind; sanitizers keep what was freed. */
	if (n > 10000 && !TEST_SANITIZED)
		assert_in_range(resident_nbytes(), 0, before + (n - 100) * 256 + (1u << 20));
	close_pair(&v);
}

static void strangers_get_little(void **state)
{
	struct gci_prng prng = {1};
	uint8_t hello[5] = {GCI_SECURE_HELLO, 3, 1, 0x3f, 0xff};
	struct pair w;
	size_t i;

	(void)state;
	/* A hello that goes on for ever. */
	open_pair(&w, &right, &right, &zero_to_one);
	put(w.to[1], hello, sizeof(hello));
	for (i = 0; i < 100000; i++) {
		uint8_t b = (uint8_t)gci_prng_below(&prng, 256);

		put(w.to[1], i ? &b : (const uint8_t[]){1}, 1);
	}
	assert_int_equal(gci_secure_shake(w.end[1], &w.e[1]), -EPROTO);
	assert_true(w.to[1]->lo <= GCI_SECURE_MAX_HANDSHAKE);
	close_pair(&w);
	/* And what is none. */
	open_pair(&w, &right, &right, &zero_to_one);
	put(w.to[1], "GET / HTTP/1.1\r\n\r\n", 18);
	assert_int_equal(gci_secure_shake(w.end[1], &w.e[1]), -EPROTO);
	close_pair(&w);
	/* And who hangs up. */
	open_pair(&w, &right, &right, &zero_to_one);
	w.to[1]->ended = 1;
	assert_int_equal(gci_secure_shake(w.end[1], &w.e[1]), -ECONNRESET);
	close_pair(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_serves_twice),
		cmocka_unit_test(a_hello_serves_once),
		cmocka_unit_test(at_a_glance),
		cmocka_unit_test(the_last_hellos_are_remembered),
		cmocka_unit_test(mutated_handshakes),
		cmocka_unit_test(strangers_get_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
