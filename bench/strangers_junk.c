/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "bench/strangers.h"
#include "transport/address.h"
#include "transport/secure.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define OPEN_AT_ONCE 300 /* more than there are places */
#define MOST_HEARD   4096
#define SOURCES      20

enum { SILENT, GARBAGE, HALF, HEARD, FORGED };

const char *const junk_kinds[JUNK_KINDS] = {"silent", "garbage", "half", "heard", "forged"};

/* What one who listens on the way hears of rank 0 when it calls rank 1. */
struct heard {
	uint8_t bytes[MOST_HEARD], forged[MOST_HEARD];
	size_t nbytes, hello_nbytes;
};

struct decoys {
	int *fds;
	uint16_t *ports;
	unsigned n;
};

/* Bytes on their way between two engines. */
struct wire {
	uint8_t bytes[MOST_HEARD];
	size_t lo, hi;
};

static ssize_t take(void *user, void *buf, size_t n)
{
	struct wire *w = user;

	if (w->lo == w->hi)
		return -EAGAIN;
	n = n < w->hi - w->lo ? n : w->hi - w->lo;
	memcpy(buf, w->bytes + w->lo, n);
	w->lo += n;
	return (ssize_t)n;
}

static void carry(struct gci_secure *from, struct wire *to, struct heard *heard)
{
	const uint8_t *p;
	size_t n;

	while ((p = gci_secure_out(from, &n)) != NULL) {
		if (n > sizeof(to->bytes) - to->hi)
			n = sizeof(to->bytes) - to->hi;
		memcpy(to->bytes + to->hi, p, n);
		to->hi += n;
		if (heard && n <= sizeof(heard->bytes) - heard->nbytes) {
			memcpy(heard->bytes + heard->nbytes, p, n);
			heard->nbytes += n;
		}
		gci_secure_sent(from, n);
	}
}

static int listen_in(const struct junk *j, struct heard *h)
{
	static struct wire to[2];
	struct gci_secure_config config = {.epoch = 1, .self = 1, .size = j->size};
	const struct gci_secure_name name = {.epoch = 1, .client = 0, .server = 1};
	struct gci_secure_ctx *ctx;
	struct gci_secure *end[2] = {NULL};
	int round, rc;

	memset(h, 0, sizeof(*h));
	memcpy(config.secret, j->secret, sizeof(config.secret));
	rc = gci_secure_ctx_create(&ctx, &config, NULL);
	explicit_bzero(&config, sizeof(config));
	if (rc)
		return rc;
	rc = gci_secure_create(&end[0], ctx, &name, take, &to[0], NULL);
	if (!rc)
		rc = gci_secure_create(&end[1], ctx, NULL, take, &to[1], NULL);
	for (round = 0; round < 3 && !rc; round++) {
		gci_secure_shake(end[0], NULL);
		carry(end[0], &to[1], h);
		if (!round)
			h->hello_nbytes = h->nbytes;
		gci_secure_shake(end[1], NULL);
		carry(end[1], &to[0], NULL);
	}
	if (!rc && !gci_secure_is_ready(end[1]))
		rc = -1;
	gci_secure_free(end[0]);
	gci_secure_free(end[1]);
	gci_secure_ctx_free(ctx);
	return rc;
}

/* From addresses that ranks have, and from others. -1: it could not be made. */
static int knock(uint16_t port, unsigned turn)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	char ip[] = "127.0.9.100";
	struct gci_address from, to;

	ip[9] = (char)('0' + turn % SOURCES / 10);
	ip[10] = (char)('0' + turn % 10);
	if (fd < 0 || gci_address_make(&to, "127.0.0.1", port) || gci_address_make(&from, ip, 0))
		return -1;
	if (((turn & 1) && bind(fd, &from.any, from.len)) ||
		(connect(fd, &to.any, to.len) && errno != EINPROGRESS)) {
		close(fd);
		return -1;
	}
	return fd;
}

static void say(int fd, int kind, struct heard *h, unsigned turn)
{
	static const uint8_t garbage[300] = {GCI_SECURE_HELLO, 3, 1, 1, 0x27, 1, 0, 1, 0x23, 3, 3};
	const uint8_t *p = kind == GARBAGE ? garbage : h->bytes;
	size_t n = kind == GARBAGE ? sizeof(garbage)
		   : kind == HALF  ? h->hello_nbytes / 2
				   : h->nbytes;

	if (kind == FORGED) { /* the client's random, which the key was used with */
		memcpy(h->forged, h->bytes, h->nbytes);
		memcpy(h->forged + 11, &turn, sizeof(turn));
		p = h->forged;
	}
	if (kind != SILENT && send(fd, p, n, MSG_NOSIGNAL) < 0)
		return; /* it was turned away already */
}

/* Listens at ports that the system chooses. */
static int open_decoys(struct decoys *d, unsigned n)
{
	const struct gci_ports any = {0, 0};
	struct gci_address at;
	unsigned i;

	d->n = n;
	d->fds = calloc(n, sizeof(*d->fds));
	d->ports = calloc(n, sizeof(*d->ports));
	for (i = 0; d->fds && d->ports && i < n; i++) {
		if (gci_address_make(&at, "127.0.0.1", 0) ||
			gci_listen(&at, &any, 0, &d->fds[i], NULL))
			return -1;
		d->ports[i] = gci_address_port(&at);
	}
	return d->fds && d->ports ? 0 : -1;
}

static void empty(const struct decoys *d)
{
	unsigned i;
	int fd;

	for (i = 0; i < d->n; i++)
		while ((fd = accept4(d->fds[i], NULL, NULL, SOCK_CLOEXEC)) >= 0)
			close(fd);
}

/* Until there is something to do. */
static enum junk_at wait_for_work(const struct junk *j, const struct decoys *d, uint64_t *next)
{
	while (j->state->at == JUNK_NOWHERE) {
		empty(d);
		gci_sleep_ns(GCI_NS_PER_MS);
		*next = gci_now_ns();
	}
	return (enum junk_at)j->state->at;
}

static void run(const struct junk *j, const struct decoys *d, struct heard *h)
{
	int fds[OPEN_AT_ONCE], kind;
	uint64_t next = gci_now_ns(), now;
	unsigned turn = 0, i;
	enum junk_at at;

	for (i = 0; i < OPEN_AT_ONCE; i++)
		fds[i] = -1;
	for (;; turn++) {
		at = wait_for_work(j, d, &next);
		now = gci_now_ns();
		if (next > now)
			gci_sleep_ns(next - now);
		next += GCI_NS_PER_S / j->rate;
		i = turn % OPEN_AT_ONCE;
		if (fds[i] >= 0)
			close(fds[i]);
		kind = j->only >= 0 ? j->only : (int)(turn / (2 * j->nports) % JUNK_KINDS);
		fds[i] = knock(
			(at == JUNK_AT_JOB ? j->ports : d->ports)[turn / 2 % j->nports], turn);
		if (fds[i] < 0) {
			j->state->refused++;
			continue;
		}
		say(fds[i], kind, h, turn);
		j->state->made[kind] += at == JUNK_AT_JOB;
	}
}

pid_t junk_start(struct junk *j)
{
	static struct heard heard;
	pid_t pid, parent = getpid();
	struct decoys decoys;
	cpu_set_t set;

	if (listen_in(j, &heard)) {
		errno = EPROTO;
		return -1;
	}
	pid = fork();
	if (pid)
		return pid;
	close_range(3, ~0u, 0); /* the rank is connected by some of these */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	CPU_ZERO(&set);
	CPU_SET(j->cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
	if (!open_decoys(&decoys, j->nports))
		run(j, &decoys, &heard);
	_exit(0);
}
