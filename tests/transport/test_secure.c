/* SPDX-License-Identifier: MIT
 * TLS between two engines, without any socket: whoever has the key is let in, in pieces of any
 * size; whoever has not is not. What strangers may try is in test_secure_hellos.c. */
#include "tests/transport/secure_pair.h"

#include "base/prng.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/rsa.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>

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
		cmocka_unit_test(what_is_changed_is_found),
		cmocka_unit_test(keys_are_replaced),
		cmocka_unit_test(identities),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
