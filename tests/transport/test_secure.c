/* SPDX-License-Identifier: MIT
 * TLS between two engines, without any socket: whoever has the key is let in, in pieces of any
 * size; whoever has not is not, whatever it sends. */
#include "tests/test.h"

#include "base/prng.h"
#include "transport/secure.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/rsa.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>

/* What is on its way in one direction. */
struct pipe {
	uint8_t bytes[4 << 20];
	size_t lo, hi;
	size_t piece; /* most that is handed over at a time */
	int ended;
};

/* [0] connects. */
struct pair {
	struct gci_secure_ctx *ctx[2];
	struct gci_secure *end[2];
	struct pipe *to[2];
	struct gci_error e[2];
};

static ssize_t take(void *user, void *buf, size_t n)
{
	struct pipe *p = user;

	if (p->lo == p->hi)
		return p->ended ? 0 : -EAGAIN;
	if (n > p->piece)
		n = p->piece;
	if (n > p->hi - p->lo)
		n = p->hi - p->lo;
	memcpy(buf, p->bytes + p->lo, n);
	p->lo += n;
	if (p->lo == p->hi)
		p->lo = p->hi = 0;
	return (ssize_t)n;
}

static void put(struct pipe *p, const void *bytes, size_t n)
{
	assert_true(n <= sizeof(p->bytes) - p->hi);
	memcpy(p->bytes + p->hi, bytes, n);
	p->hi += n;
}

/* Passes on what an end has for the other. */
static void carry(struct pair *w, int from)
{
	const uint8_t *p;
	size_t n;

	while ((p = gci_secure_out(w->end[from], &n)) != NULL) {
		put(w->to[!from], p, n);
		gci_secure_sent(w->end[from], n);
	}
}

static const struct gci_secure_config right = {
	.secret = "the job's", .epoch = 3, .self = 1, .size = 2};
static const struct gci_secure_name zero_to_one = {.epoch = 3, .client = 0, .server = 1};

static void open_pair(struct pair *w, const struct gci_secure_config *client,
	const struct gci_secure_config *server, const struct gci_secure_name *name)
{
	int i;

	memset(w, 0, sizeof(*w));
	for (i = 0; i < 2; i++) {
		w->to[i] = calloc(1, sizeof(*w->to[i]));
		assert_non_null(w->to[i]);
		w->to[i]->piece = SIZE_MAX;
		assert_int_equal(gci_secure_ctx_create(&w->ctx[i], i ? server : client, NULL), 0);
		assert_int_equal(gci_secure_create(&w->end[i], w->ctx[i], i ? NULL : name, take,
					 w->to[i], NULL),
			0);
	}
}

static void close_pair(struct pair *w)
{
	int i;

	for (i = 0; i < 2; i++) {
		gci_secure_free(w->end[i]);
		gci_secure_ctx_free(w->ctx[i]);
		free(w->to[i]);
	}
}

/* Goes on until both are ready, or one has failed: 1 or that one's status. */
static int shake(struct pair *w)
{
	int i, turn, rc[2] = {0, 0};

	for (turn = 0; turn < 20 && !(rc[0] > 0 && rc[1] > 0); turn++)
		for (i = 0; i < 2; i++) {
			rc[i] = gci_secure_shake(w->end[i], &w->e[i]);
			carry(w, i);
			if (rc[i] < 0)
				return rc[i];
		}
	assert_true(rc[0] > 0 && rc[1] > 0);
	return 1;
}

/* Sends n bytes one way, in slices of up to `most`, and checks that they come. */
static void move(struct pair *w, int from, size_t n, size_t most, struct gci_prng *prng)
{
	uint8_t *out = malloc(n), *in = calloc(1, n);
	size_t sent = 0, got = 0, i;
	ssize_t k;

	for (i = 0; i < n; i++)
		out[i] = (uint8_t)(i * 7 + i / 251);
	while (got < n) {
		struct iovec v[3];
		size_t at = sent;

		for (i = 0; i < 3; i++) {
			v[i].iov_base = out + at;
			v[i].iov_len = gci_prng_below(prng, most + 1);
			if (v[i].iov_len > n - at)
				v[i].iov_len = n - at;
			at += v[i].iov_len;
		}
		k = gci_secure_write(w->end[from], v, 3, 0, NULL);
		assert_true(k >= 0 && k <= GCI_SECURE_BATCH);
		sent += (size_t)k;
		carry(w, from);
		for (;;) {
			v[0].iov_base = in + got;
			v[0].iov_len = n - got < 5000 ? n - got : 5000;
			v[1].iov_base = in + got + v[0].iov_len;
			v[1].iov_len = n - got - v[0].iov_len;
			k = got < n ? gci_secure_read(w->end[!from], v, 2, NULL) : -EAGAIN;
			if (k < 0)
				break;
			assert_true(k > 0);
			got += (size_t)k;
		}
		assert_int_equal(k, -EAGAIN);
	}
	assert_memory_equal(in, out, n);
	free(out);
	free(in);
}

static void who_has_the_key_is_let_in(void **state)
{
	static const size_t pieces[] = {1, 7, 1000, SIZE_MAX};
	struct gci_prng prng = {5};
	struct pair w;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(pieces) / sizeof(*pieces); i++) {
		open_pair(&w, &right, &right, &zero_to_one);
		w.to[0]->piece = w.to[1]->piece = pieces[i];
		if (shake(&w) < 0)
			fail_msg("%s; %s", w.e[0].text, w.e[1].text);
		assert_int_equal(gci_secure_name(w.end[1]).client, 0);
		move(&w, 0, pieces[i] < 1000 ? 40000 : 900000, 300000, &prng);
		move(&w, 1, 40000, 100, &prng);
		close_pair(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_has_the_key_is_let_in),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
