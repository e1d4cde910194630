/* SPDX-License-Identifier: MIT
 * Data behind the handshake: one end ours, and the other OpenSSL's own SSL_read and SSL_write; and
 * between two of ours, all that a peer may say, or may not. */
#include "tests/transport/secure_pair.h"

#include "base/prng.h"
#include "transport/secure_impl.h"

#include <errno.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>

#define MOST (200u << 10) /* moved at a time */

/* Ours at one end, OpenSSL at the other, which accepts if we connect. */
struct mixed {
	struct gci_secure_ctx *ctx;
	struct gci_secure *ours;
	SSL_CTX *ssl_ctx;
	SSL *ssl;
	BIO *to_ssl, *to_us; /* which SSL_free frees */
	size_t piece;        /* most that we take at a time */
};

/* ---- OpenSSL's end */

static uint8_t identity[GCI_SECURE_IDENTITY];

static SSL_SESSION *psk(SSL *ssl)
{
	const uint32_t numbers[] = {zero_to_one.epoch, zero_to_one.client, zero_to_one.server};
	SSL_SESSION *session = SSL_SESSION_new();
	uint8_t key[32];

	assert_int_equal(gci_derive(right.secret, "gridcoll tls 1", numbers, 3, key), 0);
	SSL_SESSION_set1_master_key(session, key, sizeof(key));
	SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, (const uint8_t[]){0x13, 0x01}));
	SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION);
	return session;
}

static int use_psk(SSL *ssl, const EVP_MD *md, const uint8_t **id, size_t *n, SSL_SESSION **session)
{
	(void)md;
	gci_secure_identity(&zero_to_one, identity);
	*id = identity;
	*n = sizeof(identity);
	*session = psk(ssl);
	return 1;
}

static int find_psk(SSL *ssl, const uint8_t *id, size_t n, SSL_SESSION **session)
{
	(void)id;
	(void)n;
	*session = psk(ssl);
	return 1;
}

static ssize_t take(void *user, void *buf, size_t n)
{
	struct mixed *m = user;
	int got = BIO_read(m->to_us, buf, (int)(n < m->piece ? n : m->piece));

	return got > 0 ? got : -EAGAIN;
}

static void pass_on(struct mixed *m)
{
	const uint8_t *p;
	size_t n;

	while ((p = gci_secure_out(m->ours, &n)) != NULL) {
		assert_int_equal(BIO_write(m->to_ssl, p, (int)n), n);
		gci_secure_sent(m->ours, n);
	}
}

/* `word` is what a client of OpenSSL's says at once with the end of its handshake. */
static void open_mixed(struct mixed *m, int we_connect, uint64_t rekey_records, const char *word)
{
	struct gci_secure_config config = right;
	int turn, rc = 0, said = !word;

	*m = (struct mixed){.piece = SIZE_MAX};
	config.self = !we_connect;
	config.rekey_records = rekey_records;
	assert_int_equal(gci_secure_ctx_create(&m->ctx, &config, NULL), 0);
	assert_int_equal(gci_secure_create(
				 &m->ours, m->ctx, we_connect ? &zero_to_one : NULL, take, m, NULL),
		0);
	m->ssl_ctx = SSL_CTX_new(TLS_method());
	SSL_CTX_set_ciphersuites(m->ssl_ctx, "TLS_AES_128_GCM_SHA256");
	SSL_CTX_set_min_proto_version(m->ssl_ctx, TLS1_3_VERSION);
	SSL_CTX_set_num_tickets(m->ssl_ctx, 0);
	SSL_CTX_clear_options(m->ssl_ctx, SSL_OP_ENABLE_MIDDLEBOX_COMPAT);
	SSL_CTX_set_psk_use_session_callback(m->ssl_ctx, use_psk);
	SSL_CTX_set_psk_find_session_callback(m->ssl_ctx, find_psk);
	m->ssl = SSL_new(m->ssl_ctx);
	m->to_ssl = BIO_new(BIO_s_mem());
	m->to_us = BIO_new(BIO_s_mem());
	SSL_set_bio(m->ssl, m->to_ssl, m->to_us);
	if (we_connect)
		SSL_set_accept_state(m->ssl);
	else
		SSL_set_connect_state(m->ssl);
	for (turn = 0; turn < 6 && !(rc > 0 && SSL_is_init_finished(m->ssl)); turn++) {
		rc = gci_secure_shake(m->ours, NULL);
		assert_true(rc >= 0);
		pass_on(m);
		if (SSL_do_handshake(m->ssl) == 1 && !said)
			said = SSL_write(m->ssl, word, (int)strlen(word)) > 0;
	}
	assert_int_equal(rc, 1);
	assert_true(said && SSL_is_init_finished(m->ssl));
	ERR_clear_error();
}

static void close_mixed(struct mixed *m)
{
	gci_secure_free(m->ours);
	gci_secure_ctx_free(m->ctx);
	SSL_free(m->ssl);
	SSL_CTX_free(m->ssl_ctx);
	ERR_clear_error();
}

/* ---- data both ways */

static uint8_t data[MOST], got[MOST];

static void we_send(struct mixed *m, size_t n, struct gci_prng *prng)
{
	size_t at = 0, have = 0, k, cut;

	while (have < n) {
		cut = gci_prng_below(prng, n - at + 1);
		const struct iovec v[2] = {{data, at + cut}, {data + at + cut, n - at - cut}};
		ssize_t sealed = gci_secure_write(m->ours, v, 2, at, NULL);

		assert_true(sealed >= 0 && sealed <= GCI_SECURE_BATCH);
		at += (size_t)sealed;
		pass_on(m);
		while (SSL_read_ex(m->ssl, got + have, sizeof(got) - have, &k))
			have += k;
	}
	assert_int_equal(have, n);
	assert_memory_equal(got, data, n);
	ERR_clear_error();
}

/* All that has come: -EAGAIN, or how it ended. */
static ssize_t we_read(struct mixed *m, size_t *have, struct gci_prng *prng)
{
	struct iovec v[2];
	ssize_t k;

	for (;; *have += (size_t)k) {
		v[0].iov_base = got + *have;
		v[0].iov_len = 1 + gci_prng_below(prng, (sizeof(got) - *have - 1) / 2 + 1);
		v[1].iov_base = got + *have + v[0].iov_len;
		v[1].iov_len = gci_prng_below(prng, 2) ? gci_prng_below(prng, 1000) : 0;
		if (v[1].iov_len > sizeof(got) - *have - v[0].iov_len)
			v[1].iov_len = sizeof(got) - *have - v[0].iov_len;
		k = gci_secure_read(m->ours, v, 2, NULL);
		if (k <= 0)
			return k;
	}
}

static void we_receive(struct mixed *m, size_t n, struct gci_prng *prng)
{
	size_t have = 0;

	if (SSL_write(m->ssl, data, (int)n) != (int)n)
		fail_msg("SSL_write: %s", gci_secure_why("?"));
	assert_int_equal(we_read(m, &have, prng), -EAGAIN);
	assert_int_equal(have, n);
	assert_memory_equal(got, data, n);
	assert_false(gci_secure_is_midway(m->ours));
}

/* Sizes up to several records of OpenSSL's, which are shorter or padded now and then, in pieces of
 * any length; keys are replaced from both ends. */
static void data_to_and_from_openssl(void **state)
{
	static const size_t pieces[] = {1, 7, 5000, SIZE_MAX};
	struct gci_prng prng = {21};
	struct mixed m;
	size_t i, n;

	(void)state;
	for (i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)gci_prng_next(&prng);
	for (i = 0; i < 400; i++) {
		if (i % 100 == 0)
			open_mixed(&m, i / 100 & 1, i < 200 ? 7 : 0, NULL);
		m.piece = pieces[i % 4];
		n = 1 +
		    (i < 200 ? i % 100 : gci_prng_below(&prng, m.piece == 1 ? 20000 : MOST - 1));
		/* Both at once OpenSSL does not manage. */
		SSL_set_max_send_fragment(m.ssl, i % 100 < 50 ? 512 + i * 20 : 16384);
		SSL_set_block_padding(m.ssl, i % 100 < 50 || i & 1 ? 0 : i * 13);
		we_send(&m, n, &prng);
		we_receive(&m, n, &prng);
		if (i % 10 == 9)
			SSL_key_update(m.ssl, SSL_KEY_UPDATE_NOT_REQUESTED);
		if (i % 100 == 99) {
			assert_int_equal(gci_secure_nrekeys(m.ours) > 10, i < 200);
			close_mixed(&m);
		}
	}
}

static void who_is_asked_replaces_its_key(void **state)
{
	struct gci_prng prng = {22};
	struct mixed m;
	unsigned i;

	(void)state;
	open_mixed(&m, 1, 0, NULL);
	for (i = 0; i < 3; i++) {
		assert_int_equal(gci_secure_nrekeys(m.ours), i);
		SSL_key_update(m.ssl, SSL_KEY_UPDATE_REQUESTED);
		we_receive(&m, 1000, &prng);
		assert_int_equal(gci_secure_nrekeys(m.ours), i); /* with the next word of ours */
		we_send(&m, 1000, &prng);
		we_send(&m, 1000, &prng);
		assert_int_equal(SSL_get_key_update_type(m.ssl), SSL_KEY_UPDATE_NONE);
	}
	assert_int_equal(gci_secure_nrekeys(m.ours), 3);
	close_mixed(&m);
}

/* What came along with the end of the handshake is not lost. */
static void words_behind_the_handshake(void **state)
{
	struct gci_prng prng = {23};
	struct mixed m;
	size_t have = 0;

	(void)state;
	open_mixed(&m, 0, 0, "at once");
	assert_int_equal(we_read(&m, &have, &prng), -EAGAIN);
	assert_int_equal(have, 7);
	assert_memory_equal(got, "at once", 7);
	we_send(&m, 5000, &prng);
	close_mixed(&m);
}

static void ends(void **state)
{
	struct gci_prng prng = {24};
	const struct iovec v = {data, 100};
	struct mixed m;
	uint8_t *p;
	size_t have = 0, n;

	(void)state;
	open_mixed(&m, 1, 0, NULL); /* by a close_notify: what came before it is read */
	assert_int_equal(SSL_write(m.ssl, data, 1000), 1000);
	SSL_shutdown(m.ssl);
	assert_int_equal(we_read(&m, &have, &prng), 0);
	assert_int_equal(have, 1000);
	assert_int_equal(we_read(&m, &have, &prng), 0);
	close_mixed(&m);

	open_mixed(&m, 0, 0, NULL); /* by an alert: OpenSSL has got what is not ours */
	assert_int_equal(gci_secure_write(m.ours, &v, 1, 0, NULL), 100);
	p = (uint8_t *)(uintptr_t)gci_secure_out(m.ours, &n);
	p[20] ^= 1;
	pass_on(&m);
	assert_int_equal(SSL_read_ex(m.ssl, got, sizeof(got), &have), 0);
	have = 0;
	assert_int_equal(we_read(&m, &have, &prng), -EBADMSG);
	assert_int_equal(have, 0);
	close_mixed(&m);
}

/* Long before what AES-GCM allows one key (2^24.5 records), whatever was asked for. */
static void a_key_s_time(void **state)
{
	static const uint64_t asked[] = {0, 1ull << 40, 1000};
	static const uint64_t most[] = {1ull << 22, 1ull << 22, 1000};
	const struct iovec v = {data, 100};
	struct iovec to = {got, sizeof(got)};
	size_t i, j;

	(void)state;
	for (i = 0; i < 3; i++) {
		struct gci_secure_config config = right;
		struct pair w;

		config.rekey_records = asked[i];
		open_pair(&w, &config, &right, &zero_to_one);
		assert_int_equal(shake(&w), 1);
		w.end[0]->tx.keys->nrecords = w.end[1]->rx.keys->nrecords = most[i] - 1;
		for (j = 0; j < 3; j++) {
			assert_int_equal(gci_secure_write(w.end[0], &v, 1, 0, NULL), 100);
			carry(&w, 0);
			assert_int_equal(gci_secure_read(w.end[1], &to, 1, NULL), 100);
			assert_int_equal(gci_secure_nrekeys(w.end[0]), j > 0);
		}
		close_pair(&w);
	}
}

/* ---- what a peer may say */

/* End 1's answer to a record of `n` bytes of that type, which end 0 makes. */
static ssize_t answer(struct pair *w, int type, const uint8_t *bytes, size_t n)
{
	uint8_t record[GCI_RECORD_WHOLE], out[64];
	const struct iovec v = {(void *)(uintptr_t)bytes, n};
	struct iovec to = {out, sizeof(out)};
	ssize_t nbytes =
		gci_records_seal(&w->end[0]->tx, (enum gci_record_type)type, &v, 1, 0, n, record);

	assert_true(nbytes > 0);
	put(w->to[1], record, (size_t)nbytes);
	return gci_secure_read(w->end[1], &to, 1, NULL);
}

static void messages(void **state)
{
	static const struct {
		int type;
		size_t n;
		uint8_t bytes[40];
		ssize_t rc;
	} cases[] = {
		{GCI_RECORD_DATA, 0, {0}, -EAGAIN},
		{GCI_RECORD_DATA, 3, {1, 2, 3}, 3},
		{GCI_RECORD_HANDSHAKE, 5, {24, 0, 0, 1, 2}, -EBADMSG}, /* asks for nothing known */
		{GCI_RECORD_HANDSHAKE, 4, {24, 0, 0, 1}, -EBADMSG},
		{GCI_RECORD_HANDSHAKE, 6, {24, 0, 0, 1, 0, 0}, -EBADMSG},
		{GCI_RECORD_HANDSHAKE, 10, {24, 0, 0, 1, 0, 24, 0, 0, 1}, -EBADMSG}, /* two */
		{GCI_RECORD_HANDSHAKE, 5, {24, 0, 1, 1, 0}, -EBADMSG},
		{GCI_RECORD_HANDSHAKE, 40, {4, 0, 0, 36}, -EBADMSG},  /* a ticket */
		{GCI_RECORD_HANDSHAKE, 5, {1, 0, 0, 1, 0}, -EBADMSG}, /* a hello */
		{GCI_RECORD_HANDSHAKE, 0, {0}, -EBADMSG},
		{GCI_RECORD_ALERT, 2, {1, 0}, 0},
		{GCI_RECORD_ALERT, 2, {2, 20}, -EBADMSG},
		{GCI_RECORD_ALERT, 0, {0}, -EBADMSG},
		{GCI_RECORD_ALERT, 1, {2}, -EBADMSG},
		{GCI_RECORD_ALERT, 4, {1, 0, 1, 0}, -EBADMSG},
		{20, 1, {1}, -EBADMSG}, /* change_cipher_spec */
		{0, 30, {0}, -EBADMSG}, /* nothing but padding */
		{24, 1, {1}, -EBADMSG},
	};
	const struct iovec v = {data, 5};
	struct pair w;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		ssize_t rc;

		open_pair(&w, &right, &right, &zero_to_one);
		assert_int_equal(shake(&w), 1);
		rc = answer(&w, cases[i].type, cases[i].bytes, cases[i].n);
		if (rc != cases[i].rc)
			fail_msg("case %zu: %zd", i, rc);
		/* What is broken stays so, and an end is one. */
		rc = answer(&w, GCI_RECORD_DATA, data, 5);
		assert_int_equal(rc, cases[i].rc == -EAGAIN || cases[i].rc > 0 ? 5 : cases[i].rc);
		rc = gci_secure_write(w.end[1], &v, 1, 0, NULL);
		assert_int_equal(rc, cases[i].rc == -EBADMSG ? -EBADMSG : 5);
		close_pair(&w);
	}
}

/* Records before a bad one are handed out, and nothing of it; nor of what follows it. */
static void nothing_of_a_bad_record(void **state)
{
	static uint8_t out[6 * GCI_RECORD_NBYTES];
	const size_t all = sizeof(out) / 2;
	const struct iovec v = {data, all};
	struct iovec to[2];
	struct pair w;
	size_t room, have;
	ssize_t k;

	(void)state;
	for (room = 100; room <= all; room = room * 5 + 37) {
		open_pair(&w, &right, &right, &zero_to_one);
		assert_int_equal(shake(&w), 1);
		assert_int_equal(gci_secure_write(w.end[0], &v, 1, 0, NULL), all);
		carry(&w, 0);
		w.to[1]->bytes[GCI_RECORD_WHOLE + 9000] ^= 4;
		for (have = 0;; have += (size_t)k) {
			to[0] = (struct iovec){out + have, room / 3};
			to[1] = (struct iovec){out + have + room / 3, room - room / 3};
			k = gci_secure_read(w.end[1], to, 2, NULL);
			if (k <= 0)
				break;
		}
		assert_int_equal(k, -EBADMSG);
		assert_int_equal(have, GCI_RECORD_NBYTES);
		assert_memory_equal(out, data, have);
		close_pair(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(data_to_and_from_openssl),
		cmocka_unit_test(who_is_asked_replaces_its_key),
		cmocka_unit_test(words_behind_the_handshake),
		cmocka_unit_test(ends),
		cmocka_unit_test(a_key_s_time),
		cmocka_unit_test(messages),
		cmocka_unit_test(nothing_of_a_bad_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
