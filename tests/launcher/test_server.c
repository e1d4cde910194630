/* SPDX-License-Identifier: MIT
 * The control server on sockets: who is heard, and who gets in whatever others do. Ranks are child
 * processes. */
#include "tests/test.h"

#include "base/clock.h"
#include "base/mem.h"
#include "collectives/coll.h"
#include "gridcoll/gridcoll.h"
#include "job/control_io.h"
#include "launcher/server.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define SILENT  200
#define HANG_NS (60 * GCI_NS_PER_S) /* a guard only */

static const char *const names[] = {"k1", "k2"};
static const uint32_t hosts[] = {0, 1};
static uint8_t secret[GCI_SECRET_NBYTES] = "only for tests";
static uv_loop_t loop;
static struct gci_server server;
static char where[GCI_ADDRESS_TEXT];

static void on_change(void *user)
{
	(void)user;
}

static void open_server(uint32_t size, int tls)
{
	struct gci_rdv_config config = {.size = size,
		.names = names,
		.hosts = hosts,
		.grid = "[cluster k]\nhosts = k[1-2]\n",
		.beat_ns = GCI_NS_PER_S,
		.dead_ns = 20 * GCI_NS_PER_S,
		.start_ns = 60 * GCI_NS_PER_S,
		.grace_ns = GCI_NS_PER_S / 2};
	struct gci_server_place at = {.ip = "127.0.0.1", .tls = tls};

	memcpy(config.secret, secret, sizeof(secret));
	assert_int_equal(uv_loop_init(&loop), 0);
	assert_int_equal(gci_server_open(&server, &loop, &config, &at, on_change, NULL, NULL), 0);
	snprintf(where, sizeof(where), "127.0.0.1:%u", server.port);
}

static void close_one(uv_handle_t *h, void *arg)
{
	(void)arg;
	if (h == (uv_handle_t *)&server.listener || h == (uv_handle_t *)&server.timer ||
		h == (uv_handle_t *)&server.retry || h == (uv_handle_t *)&server.room)
		uv_close(h, NULL);
}

/* The test's side has hung up everywhere, so connections end by themselves. */
static void close_server(void)
{
	uv_walk(&loop, close_one, NULL);
	while (uv_run(&loop, UV_RUN_NOWAIT))
		;
	assert_int_equal(uv_loop_close(&loop), 0);
	gci_rdv_free(server.rdv);
	gci_secure_ctx_free(server.secure);
}

/* The server's n-th allocation from when the child was made; 0: none. */
static unsigned long fails_at;

/* Its exit status, once it has run against the server. */
static int run_child(int (*child)(int tls), int tls)
{
	uint64_t end = gci_now_ns() + HANG_NS;
	pid_t pid = fork();
	int status = 0;

	assert_true(pid >= 0);
	if (!pid)
		_exit(child(tls));
	gci_mem_fail_at(fails_at);
	while (!waitpid(pid, &status, WNOHANG)) {
		uv_run(&loop, UV_RUN_NOWAIT);
		if (gci_now_ns() > end)
			kill(pid, SIGKILL);
	}
	gci_mem_fail_at(0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* ---- ranks */

static int call(struct gci_control_io *io, int tls, uint32_t as)
{
	char ip[GCI_ADDRESS_TEXT];

	return gci_control_io_open(io, where, ip, NULL) ||
	       (tls && gci_control_io_secure(io, secret, as, 2, NULL));
}

/* And is over. 0: the launcher hangs up without a word. */
static int say_hello(struct gci_control_io *io, uint32_t rank)
{
	struct gci_ctl_hello m = {.version = GCI_CTL_VERSION,
		.rank = rank,
		.schedules = gci_build.schedules,
		.big_endian = gci_build.big_endian};
	struct gci_buf b = {0};
	int rc = 0;
	char byte;

	m.reach = (struct gci_reach){.port = 4000, .n = 1, .ip = {{127, 0, 0, 1}}};
	if (gci_ctl_token(secret, rank, m.token))
		return 9;
	gci_ctl_put_hello(&b, &m);
	if (gci_control_io_send(io, b.data, b.len, 0) != (ssize_t)b.len)
		rc = 8;
	else if (gci_control_io_recv(io, &byte, 1, 0) > 0)
		rc = 7;
	gci_buf_free(&b);
	gci_control_io_close(io);
	return rc;
}

static int speaks_plainly(int tls)
{
	struct gci_control_io io;

	(void)tls;
	return call(&io, 0, 0) ? 5 : say_hello(&io, 0);
}

static int says_another_name(int tls)
{
	struct gci_control_io io;

	return call(&io, tls, 1) ? 5 : say_hello(&io, 0);
}

static int is_itself(int tls)
{
	struct gci_control_io io;

	return call(&io, tls, 1) ? 5 : say_hello(&io, 1);
}

/* By the library: the job of one rank. */
static int joins(int tls)
{
	gcoll_comm *world;
	char number[16];
	int fds[2], rc;

	if (pipe(fds) || write(fds[1], secret, sizeof(secret)) != sizeof(secret))
		return 9;
	close(fds[1]);
	snprintf(number, sizeof(number), "%d", fds[0]);
	setenv("GRIDCOLL_SECRET_FD", number, 1);
	setenv("GRIDCOLL_RENDEZVOUS", where, 1);
	setenv("GRIDCOLL_RANK", "0", 1);
	setenv("GRIDCOLL_SIZE", "1", 1);
	setenv("GRIDCOLL_CONTROL_TLS", tls ? "1" : "0", 1);
	rc = gcoll_init(&world);
	if (rc)
		fprintf(stderr, "%s\n", gcoll_last_error());
	else
		gcoll_finalize(world);
	return rc ? 1 : 0;
}

/* ---- tests */

static void who_is_heard(void **state)
{
	(void)state;
	open_server(2, 1);
	assert_int_equal(run_child(speaks_plainly, 1), 0);
	assert_int_equal(run_child(says_another_name, 1), 0);
	assert_null(gci_rdv_verdict(server.rdv)); /* nobody has joined, nor left */
	assert_int_equal(run_child(is_itself, 1), 7);
	close_server();
	open_server(2, 0);
	assert_int_equal(run_child(is_itself, 0), 7);
	close_server();
}

static int knock(void)
{
	struct gci_address a;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(gci_address_parse(&a, where), 0);
	assert_int_equal(connect(fd, &a.any, a.len), 0);
	return fd;
}

static void a_silent_crowd(void **state)
{
	int fds[SILENT], i, tls;

	(void)state;
	for (tls = 0; tls < 2; tls++) {
		open_server(1, tls);
		for (i = 0; i < SILENT; i++) {
			fds[i] = knock();
			if (i % 3 == 1) /* as TLS and the protocol begin */
				send(fds[i], tls ? "\x16\x03" : "\x20\0", 2, MSG_NOSIGNAL);
		}
		assert_int_equal(run_child(joins, tls), 0);
		for (i = 0; i < SILENT; i++)
			close(fds[i]);
		close_server();
	}
}

/* At any of the allocations for a connection: those that wait are served, and a rank that was hung
 * up on comes again. */
static void short_of_memory(void **state)
{
	(void)state;
	for (fails_at = 1; fails_at < 4; fails_at++) {
		open_server(1, 0);
		assert_int_equal(run_child(joins, 0), 0);
		close_server();
	}
	fails_at = 0;
}

/* ---- a launcher that is none */

static void feed(int listener)
{
	int fd = accept(listener, NULL, NULL);
	uint8_t record[5] = {GCI_SECURE_HELLO, 3, 3, 0x0f, 0xf0}, zero = 0;

	if (write(fd, record, sizeof(record)) == sizeof(record))
		while (write(fd, &zero, 1) == 1)
			gci_sleep_ns(20 * GCI_NS_PER_MS);
	_exit(0);
}

/* It feeds the handshake byte by byte: that would take more than a minute. */
static void a_slow_launcher(void **state)
{
	const struct gci_ports any = {0};
	struct gci_control_io io;
	char ip[GCI_ADDRESS_TEXT];
	struct gci_address at;
	struct gci_error e = {0};
	uint64_t begin;
	pid_t pid;
	int fd;

	(void)state;
	assert_int_equal(gci_address_make(&at, "127.0.0.1", 0), 0);
	assert_int_equal(gci_listen(&at, &any, 0, &fd, NULL), 0);
	assert_int_equal(fcntl(fd, F_SETFL, 0), 0);
	gci_address_format(&at, where);
	pid = fork();
	if (!pid)
		feed(fd);
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(gci_control_io_open(&io, where, ip, NULL), 0);
	io.patience_ns = GCI_NS_PER_S / 5;
	begin = gci_now_ns();
	assert_int_equal(gci_control_io_secure(&io, secret, 0, 1, &e), GCOLL_ERR_PROTO);
	assert_non_null(strstr(e.text, "does not answer"));
	assert_true(gci_now_ns() - begin < 20 * GCI_NS_PER_S);
	gci_control_io_close(&io);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(fd);
}

static ssize_t take_all(void *user, void *buf, size_t n)
{
	ssize_t got = recv(*(int *)user, buf, n, MSG_DONTWAIT);

	return got < 0 ? -errno : got;
}

/* Whoever answers nothing but a handshake, and hangs up during it or behind it. */
static void hang_up(int fd, int shakes)
{
	struct gci_secure_config config = {.epoch = 1, .self = GCI_SECURE_LAUNCHER, .size = 1};
	struct gci_secure_ctx *ctx;
	struct gci_secure *s;
	const uint8_t *p;
	size_t n;
	int peer = accept(fd, NULL, NULL);

	memcpy(config.secret, secret, sizeof(secret));
	if (peer < 0 || gci_secure_ctx_create(&ctx, &config, NULL) ||
		gci_secure_create(&s, ctx, NULL, take_all, &peer, NULL))
		_exit(1);
	for (; shakes && gci_secure_shake(s, NULL) == 0; gci_sleep_ns(GCI_NS_PER_MS))
		while ((p = gci_secure_out(s, &n))) {
			if (write(peer, p, n) != (ssize_t)n)
				_exit(2);
			gci_secure_sent(s, n);
		}
	if (!shakes && recv(peer, &n, 1, 0) != 1)
		_exit(3);
	_exit(0);
}

/* A rank that was not heard calls again. */
static void a_launcher_that_hangs_up(void **state)
{
	const struct gci_ports any = {0};
	struct gci_control_io io;
	char ip[GCI_ADDRESS_TEXT], byte;
	struct gci_address at;
	int fd, shakes, status;
	pid_t pid;

	(void)state;
	for (shakes = 0; shakes < 2; shakes++) {
		assert_int_equal(gci_address_make(&at, "127.0.0.1", 0), 0);
		assert_int_equal(gci_listen(&at, &any, 0, &fd, NULL), 0);
		assert_int_equal(fcntl(fd, F_SETFL, 0), 0);
		gci_address_format(&at, where);
		pid = fork();
		if (!pid)
			hang_up(fd, shakes);
		assert_int_equal(gci_control_io_open(&io, where, ip, NULL), 0);
		assert_int_equal(gci_control_io_secure(&io, secret, 0, 1, NULL),
			shakes ? 0 : GCOLL_ERR_PROTO);
		if (shakes)
			assert_true(gci_control_io_recv(&io, &byte, 1, 0) <= 0);
		assert_false(io.heard);
		gci_control_io_close(&io);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		close(fd);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_is_heard),
		cmocka_unit_test(a_silent_crowd),
		cmocka_unit_test(short_of_memory),
		cmocka_unit_test(a_slow_launcher),
		cmocka_unit_test(a_launcher_that_hangs_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
