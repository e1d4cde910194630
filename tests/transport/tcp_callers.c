/* SPDX-License-Identifier: MIT
 * Who may connect to a rank whose links are encrypted, and how many may try. */
#include "tests/transport/tcp_world.h"

#include "transport/secure.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* A rank by hand, and all that it sent. */
struct caller {
	int fd;
	struct gci_secure_ctx *ctx;
	struct gci_secure *tls;
	uint8_t sent[4096];
	size_t nsent;
};

static ssize_t take(void *user, void *buf, size_t n)
{
	ssize_t got = recv(((struct caller *)user)->fd, buf, n, MSG_DONTWAIT);

	return got < 0 ? -errno : got;
}

static void call(struct caller *c, const char *secret, uint32_t from, uint32_t to)
{
	struct gci_secure_config config = {.epoch = 3, .self = from, .size = 3};
	struct gci_secure_name name = {.epoch = 3, .client = from, .server = to};

	memset(c, 0, sizeof(*c));
	memcpy(config.secret, secret, strlen(secret));
	c->fd = knock(last_addrs[to]);
	assert_int_equal(gci_secure_ctx_create(&c->ctx, &config, NULL), 0);
	assert_int_equal(gci_secure_create(&c->tls, c->ctx, &name, take, c, NULL), 0);
}

static void flush(struct caller *c)
{
	const uint8_t *p;
	size_t n;

	while ((p = gci_secure_out(c->tls, &n)) != NULL) {
		assert_true(n <= sizeof(c->sent) - c->nsent);
		memcpy(c->sent + c->nsent, p, n);
		c->nsent += n;
		if (send(c->fd, p, n, MSG_NOSIGNAL) < 0)
			assert_true(errno == EPIPE || errno == ECONNRESET);
		gci_secure_sent(c->tls, n);
	}
}

/* 1: let in so far, else the reason. */
static int shake(struct world *w, struct caller *c)
{
	int i, rc = 0;

	for (i = 0; i < 10000 && !rc; i++) {
		rc = gci_secure_shake(c->tls, NULL);
		flush(c);
		own_step(w);
	}
	return rc;
}

static void introduce(struct caller *c, const char *secret, const struct gci_hello *h)
{
	uint8_t bytes[GCI_HELLO_NBYTES], key[32] = {0};
	struct iovec iov = {bytes, sizeof(bytes)};

	memcpy(key, secret, strlen(secret));
	assert_int_equal(gci_hello_encode(h, key, bytes), 0);
	assert_int_equal(gci_secure_write(c->tls, &iov, 1, 0, NULL), (ssize_t)sizeof(bytes));
	flush(c);
}

/* How many bytes of data it is answered; -1: it was turned away. */
static ssize_t answer(struct world *w, struct caller *c)
{
	uint8_t bytes[GCI_HELLO_NBYTES];
	struct iovec iov = {bytes, sizeof(bytes)};
	ssize_t n = -EAGAIN;
	int i;

	for (i = 0; i < 10000 && n == -EAGAIN; i++) {
		own_step(w);
		n = gci_secure_read(c->tls, &iov, 1, NULL);
	}
	return n > 0 ? n : -1;
}

static void hang_up(struct caller *c)
{
	gci_secure_free(c->tls);
	gci_secure_ctx_free(c->ctx);
	close(c->fd);
}

static int is_closed(struct world *w, int fd)
{
	uint8_t b[64];
	int i;

	for (i = 0; i < 3000; i++) {
		ssize_t n = recv(fd, b, sizeof(b), MSG_DONTWAIT);

		if (!n || (n < 0 && errno != EAGAIN))
			return 1;
		own_step(w);
	}
	return 0;
}

static void open_encrypted(struct world *w)
{
	struct gci_tp_link link = {.streams = 1, .eager_nbytes = 64 << 10, .encrypted = 1};

	world_open(w, &own, 3, &link);
}

static void callers_by_tls(void **state)
{
	struct gci_hello h;
	struct caller c, again;
	struct world w;

	(void)state;
	open_encrypted(&w);
	h = hello_of(&w, 0, 2);
	/* Another job's. */
	call(&c, "another job's", 0, 2);
	assert_int_equal(shake(&w, &c), -EPROTO);
	hang_up(&c);
	/* This one's, but with another's name: for TLS it is rank 1. */
	call(&c, SECRET, 1, 2);
	assert_int_equal(shake(&w, &c), 1);
	introduce(&c, SECRET, &h);
	assert_int_equal(answer(&w, &c), -1);
	hang_up(&c);
	/* One that knows the key for TLS only. */
	call(&c, SECRET, 0, 2);
	assert_int_equal(shake(&w, &c), 1);
	introduce(&c, "a guess", &h);
	assert_int_equal(answer(&w, &c), -1);
	hang_up(&c);
	/* As it should be. */
	call(&c, SECRET, 0, 2);
	assert_int_equal(shake(&w, &c), 1);
	introduce(&c, SECRET, &h);
	assert_int_equal(answer(&w, &c), GCI_HELLO_NBYTES);
	/* And all of that once more, by somebody who has only seen it. */
	again.fd = knock(last_addrs[2]);
	assert_int_equal(send(again.fd, c.sent, c.nsent, MSG_NOSIGNAL), (ssize_t)c.nsent);
	assert_true(is_closed(&w, again.fd));
	close(again.fd);
	assert_int_equal(w.nfailures[1] + w.nfailures[2], 0);
	hang_up(&c);
	world_close(&w);
}

static void another_jobs_rank(void **state)
{
	struct gci_tp_link link = {.streams = 1, .eager_nbytes = 64 << 10, .encrypted = 1};
	uint8_t b[2] = {0};
	struct message m[2];
	struct world w;

	(void)state;
	secret_of_rank_1 = "another job's";
	world_open(&w, &own, 2, &link);
	secret_of_rank_1 = SECRET;
	send_to(&w, 0, &m[0], 1, 1, b, 2);
	recv_from(&w, 0, &m[1], 1, 1, b, 2);
	world_finish(&w, m + 1, 1);
	assert_int_equal(m[1].status, GCOLL_ERR_PROTO);
	assert_non_null(strstr(w.failure[0].text, "is not rank 1 of this job: TLS"));
	assert_int_equal(w.nfailures[1], 0);
	world_close(&w);
}

/* The handshake's first flight, cut off at every so many bytes, and bytes that only begin like
 * one. */
static void half_handshakes(void **state)
{
	uint8_t garbage[6000];
	struct caller c;
	struct world w;
	size_t n;
	int fd;

	(void)state;
	open_encrypted(&w);
	call(&c, SECRET, 0, 2);
	assert_int_equal(gci_secure_shake(c.tls, NULL), 0);
	flush(&c);
	for (n = 1; n < c.nsent; n += c.nsent / 16) {
		fd = knock(last_addrs[2]);
		assert_int_equal(send(fd, c.sent, n, MSG_NOSIGNAL), (ssize_t)n);
		own_step(&w);
		shutdown(fd, SHUT_WR);
		assert_true(is_closed(&w, fd));
		close(fd);
	}
	fill(garbage, sizeof(garbage), 4);
	memcpy(garbage, "\x16\x03\x01\x3f\xff\x01\x00\x3f\xf0\x03\x03", 11);
	fd = knock(last_addrs[2]);
	assert_int_equal(send(fd, garbage, sizeof(garbage), MSG_NOSIGNAL), sizeof(garbage));
	assert_true(is_closed(&w, fd)); /* of 16 KiB that it announces, a quarter was taken */
	close(fd);
	exchange(&w);
	assert_int_equal(w.nfailures[0] + w.nfailures[1] + w.nfailures[2], 0);
	hang_up(&c);
	world_close(&w);
}

/* Whoever does not encrypt where it should is of this job: all are told. */
static void no_way_back_to_plain(void **state)
{
	struct gci_hello h;
	uint8_t bytes[GCI_HELLO_NBYTES], key[32] = SECRET;
	struct world w;
	int fd, i;

	(void)state;
	open_encrypted(&w);
	h = hello_of(&w, 0, 2);
	/* It lies that it came by TLS. */
	fd = knock(last_addrs[2]);
	assert_int_equal(gci_hello_encode(&h, key, bytes), 0);
	assert_int_equal(send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL), sizeof(bytes));
	assert_true(is_closed(&w, fd));
	close(fd);
	assert_int_equal(w.nfailures[2], 0);
	/* It says that it did not. */
	h.flags &= ~(uint64_t)GCI_HELLO_ENCRYPTED;
	fd = knock(last_addrs[2]);
	assert_int_equal(gci_hello_encode(&h, key, bytes), 0);
	assert_int_equal(send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL), sizeof(bytes));
	for (i = 0; i < 10000 && !w.nfailures[2]; i++)
		own_step(&w);
	assert_int_equal(w.failure[2].status, GCOLL_ERR_MISMATCH);
	assert_non_null(strstr(w.failure[2].text, "encryption off there"));
	close(fd);
	world_close(&w);
}

/* Those who feed a handshake byte by byte lose their places to others. */
static void slow_ones_do_not_block(void **state)
{
	enum { EACH = 40, SOURCES = 8 };
	struct world w;
	int fd[SOURCES][EACH], i, k;
	char ip[32];

	(void)state;
	open_encrypted(&w);
	for (i = 0; i < SOURCES; i++)
		for (k = 0; k < EACH; k++) {
			snprintf(ip, sizeof(ip), "127.0.%d.1", 9 * (i & 1) + i);
			fd[i][k] = knock_from(i ? ip : "127.0.0.1", last_addrs[1]);
			send(fd[i][k], "\x16", 1, MSG_NOSIGNAL);
			own_step(&w);
		}
	gci_tp_connect(w.tp[0], 1);
	for (i = 0; i < SOURCES; i++)
		for (k = 0; k < EACH; k++) {
			send(fd[i][k], "\x03", 1, MSG_NOSIGNAL);
			own_step(&w);
		}
	exchange(&w);
	assert_int_equal(w.nfailures[0] + w.nfailures[1], 0);
	for (i = 0; i < SOURCES; i++)
		for (k = 0; k < EACH; k++)
			close(fd[i][k]);
	world_close(&w);
}

/* Of a rank that has shown its key nobody takes the place, however many come before it goes on. */
static void who_has_shown_the_key_stays(void **state)
{
	enum { N = 200 };
	struct gci_hello h;
	struct caller c;
	struct world w;
	int fd[N], i;

	(void)state;
	open_encrypted(&w);
	h = hello_of(&w, 0, 2);
	call(&c, SECRET, 0, 2);
	assert_int_equal(gci_secure_shake(c.tls, NULL), 0);
	flush(&c);
	for (i = 0; i < N; i++) {
		fd[i] = knock(last_addrs[2]);
		own_step(&w);
	}
	assert_int_equal(shake(&w, &c), 1);
	introduce(&c, SECRET, &h);
	assert_int_equal(answer(&w, &c), GCI_HELLO_NBYTES);
	for (i = 0; i < N; i++)
		close(fd[i]);
	hang_up(&c);
	world_close(&w);
}

const struct CMUnitTest caller_tests[] = {
	cmocka_unit_test(callers_by_tls),
	cmocka_unit_test(another_jobs_rank),
	cmocka_unit_test(half_handshakes),
	cmocka_unit_test(no_way_back_to_plain),
	cmocka_unit_test(slow_ones_do_not_block),
	cmocka_unit_test(who_has_shown_the_key_stays),
};
const size_t caller_tests_n = sizeof(caller_tests) / sizeof(*caller_tests);
