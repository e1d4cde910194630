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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* Both must refuse: neither gets as far as a byte of data. */
static void expect_refused(const struct gci_secure_config *client,
	const struct gci_secure_config *server, const struct gci_secure_name *name)
{
	struct pair w;

	open_pair(&w, client, server, name);
	assert_int_equal(shake(&w), -EPROTO);
	assert_false(gci_secure_is_ready(w.end[1]));
	close_pair(&w);
}

static void who_has_not_is_not(void **state)
{
	struct gci_secure_config other = right, client = right;
	struct gci_secure_name name = zero_to_one;

	(void)state;
	client.self = 0;
	memcpy(other.secret, "another's", 10);
	expect_refused(&other, &right, &zero_to_one);
	other = right;
	other.epoch = 4;
	expect_refused(&client, &other, &zero_to_one);
	other = right;
	other.self = 2; /* whom it does not want */
	expect_refused(&client, &other, &zero_to_one);
	name.client = 2; /* of a job of two */
	name.server = 3;
	other.self = 3;
	expect_refused(&client, &other, &name);
	name.client = name.server = 1;
	expect_refused(&client, &right, &name);
}

/* A key and a certificate that OpenSSL would take for a server's. */
static void make_certificate(SSL_CTX *ctx)
{
	EVP_PKEY *key = EVP_RSA_gen(2048);
	X509 *x = X509_new();

	ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
	X509_gmtime_adj(X509_getm_notBefore(x), 0);
	X509_gmtime_adj(X509_getm_notAfter(x), 3600);
	X509_set_pubkey(x, key);
	X509_NAME_add_entry_by_txt(
		X509_get_subject_name(x), "CN", MBSTRING_ASC, (const uint8_t *)"x", -1, -1, 0);
	X509_set_issuer_name(x, X509_get_subject_name(x));
	assert_true(X509_sign(x, key, EVP_sha256()) > 0);
	assert_int_equal(SSL_CTX_use_certificate(ctx, x), 1);
	assert_int_equal(SSL_CTX_use_PrivateKey(ctx, key), 1);
	X509_free(x);
	EVP_PKEY_free(key);
}

/* A server of TLS that knows no key, but has a certificate: not one of ours. */
static void a_certificate_is_nothing(void **state)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_method());
	SSL *ssl;
	BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
	struct pair w;
	uint8_t bytes[8192];
	int i, n, rc = 0;

	(void)state;
	make_certificate(ctx);
	ssl = SSL_new(ctx);
	SSL_set_bio(ssl, in, out);
	SSL_set_accept_state(ssl);
	open_pair(&w, &right, &right, &zero_to_one);
	for (i = 0; i < 4 && !rc; i++) {
		size_t have;
		const uint8_t *p;

		rc = gci_secure_shake(w.end[0], &w.e[0]);
		while ((p = gci_secure_out(w.end[0], &have)) != NULL) {
			BIO_write(in, p, (int)have);
			gci_secure_sent(w.end[0], have);
		}
		SSL_do_handshake(ssl);
		while ((n = BIO_read(out, bytes, sizeof(bytes))) > 0)
			put(w.to[0], bytes, (size_t)n);
	}
	assert_true(i > 1); /* it has answered */
	assert_int_equal(rc, -EPROTO);
	assert_false(gci_secure_is_ready(w.end[0]));
	close_pair(&w);
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	ERR_clear_error();
}

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
	gci_secure_free(w.end[1]);
	assert_int_equal(gci_secure_create(&w.end[1], w.ctx[1], NULL, take, w.to[1], NULL), 0);
	put(w.to[1], heard, nheard);
	assert_int_equal(gci_secure_shake(w.end[1], NULL), -EPROTO);
	assert_false(gci_secure_has_shown(w.end[1]));
	gci_secure_out(w.end[1], &n);
	assert_in_range(n, 1, 16); /* an alert */
	/* Its random changed, it is not what the key was used for. */
	gci_secure_free(w.end[1]);
	assert_int_equal(gci_secure_create(&w.end[1], w.ctx[1], NULL, take, w.to[1], NULL), 0);
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

/* Before anything is made for it. */
static void at_a_glance(void **state)
{
	static uint8_t heard[16 << 10], other[16 << 10];
	struct gci_secure_config later = right;
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
	later.epoch = 4;
	assert_int_equal(gci_secure_ctx_create(&ctx, &later, NULL), 0);
	assert_int_equal(gci_secure_glance(ctx, heard, first), -1);
	gci_secure_ctx_free(ctx);
	for (n = 0; n < first; n++) { /* it may look at anything, but no further */
		memcpy(other, heard, first);
		other[n] ^= 0x81;
		assert_in_range(gci_secure_glance(w.ctx[1], other, first) + 1, 0, 2);
	}
	assert_int_equal(gci_secure_glance(w.ctx[1], (const uint8_t *)"\x16\x03\x01\x02\0", 5), -1);
	assert_int_equal(gci_secure_glance(w.ctx[1], (const uint8_t *)"GET /", 1), -1);
	/* Once it has served, it does not look so any more. */
	put(w.to[1], heard, first);
	assert_int_equal(gci_secure_shake(w.end[1], NULL), 0);
	assert_int_equal(gci_secure_glance(w.ctx[1], heard, first), -1);
	close_pair(&w);
}

static int is_cut(struct pair *w, size_t nbytes)
{
	uint8_t *all = malloc(nbytes);
	struct iovec v = {all, nbytes};
	struct gci_error e = {0};
	ssize_t n;

	do
		n = gci_secure_read(w->end[1], &v, 1, &e);
	while (n > 0);
	free(all);
	return n == -EBADMSG;
}

/* A bit of any record, and a record left out, twice, or in another's place. */
static void what_is_changed_is_found(void **state)
{
	static uint8_t data[40000];
	struct iovec v = {data, sizeof(data)};
	struct gci_prng prng = {3};
	size_t record = 16384 + 22, i;
	struct pair w;

	(void)state;
	for (i = 0; i < 60; i++) {
		uint8_t *b;

		open_pair(&w, &right, &right, &zero_to_one);
		assert_int_equal(shake(&w), 1);
		assert_int_equal(gci_secure_write(w.end[0], &v, 1, 0, NULL), sizeof(data));
		carry(&w, 0);
		b = w.to[1]->bytes;
		if (i < 57) {
			size_t bit = gci_prng_below(&prng, 8 * w.to[1]->hi);

			/* All but the length: a longer record is only not there yet. */
			if (bit / 8 % record == 3 || bit / 8 % record == 4)
				bit += 16;
			b[bit / 8] ^= (uint8_t)(1 << bit % 8);
		} else if (i == 57) { /* the second one twice */
			memcpy(b, b + record, record);
		} else if (i == 58) { /* the first one is left out */
			w.to[1]->lo = record;
		} else { /* and in another connection's place */
			struct pair o;

			open_pair(&o, &right, &right, &zero_to_one);
			assert_int_equal(shake(&o), 1);
			assert_true(gci_secure_write(o.end[0], &v, 1, 0, NULL) > 0);
			carry(&o, 0);
			memcpy(b, o.to[1]->bytes, record);
			close_pair(&o);
		}
		if (!is_cut(&w, sizeof(data)))
			fail_msg("change %zu was not found", i);
		close_pair(&w);
	}
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

		gci_secure_free(v.end[1]);
		to->lo = to->hi = 0;
		to->piece = i % 3 ? SIZE_MAX : 1 + gci_prng_below(&prng, 300);
		assert_int_equal(gci_secure_create(&v.end[1], v.ctx[1], NULL, take, to, NULL), 0);
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
	if (!TEST_SANITIZED)        /* which keeps what was freed */
		assert_true(resident_nbytes() < before + (32u << 20));
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

static void keys_are_replaced(void **state)
{
	struct gci_secure_config often = right;
	struct gci_prng prng = {9};
	struct pair w;
	int i;

	(void)state;
	often.rekey_records = 5;
	open_pair(&w, &often, &often, &zero_to_one);
	assert_int_equal(shake(&w), 1);
	for (i = 0; i < 6; i++)
		move(&w, i & 1, 700000, 200000, &prng);
	assert_in_range(gci_secure_nrekeys(w.end[0]), 20, 200);
	assert_in_range(gci_secure_nrekeys(w.end[1]), 20, 200);
	close_pair(&w);
}

static void identities(void **state)
{
	struct gci_secure_name name = {.epoch = 1, .client = 2, .server = 70000}, got;
	uint8_t bytes[GCI_SECURE_IDENTITY];
	size_t n;

	(void)state;
	gci_secure_identity(&name, bytes);
	assert_int_equal(gci_secure_identify(bytes, sizeof(bytes), &got), 0);
	assert_memory_equal(&got, &name, sizeof(name));
	for (n = 0; n < sizeof(bytes); n++)
		assert_int_equal(gci_secure_identify(bytes, n, &got), -1);
	bytes[3] ^= 1;
	assert_int_equal(gci_secure_identify(bytes, sizeof(bytes), &got), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_has_the_key_is_let_in),
		cmocka_unit_test(who_has_not_is_not),
		cmocka_unit_test(a_certificate_is_nothing),
		cmocka_unit_test(nothing_serves_twice),
		cmocka_unit_test(a_hello_serves_once),
		cmocka_unit_test(at_a_glance),
		cmocka_unit_test(what_is_changed_is_found),
		cmocka_unit_test(mutated_handshakes),
		cmocka_unit_test(strangers_get_little),
		cmocka_unit_test(keys_are_replaced),
		cmocka_unit_test(identities),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
