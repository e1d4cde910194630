/* SPDX-License-Identifier: MIT */
#include "job/control_client.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/threads.h"
#include "base/units.h"
#include "job/control_io.h"
#include "transport/sockopt.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define GCI_CONTROL_ASKED 64 /* kept; who is not heard asks again */

/* What the launcher has answered to AGREE and SHRINK. */
struct gci_control_members {
	pthread_cond_t news;
	int over; /* no more answers come, for this reason: */
	struct gci_ctl_failure why;
	int has_agreed, has_survivors;
	struct gci_ctl_agree agreed;
	struct gci_ctl_survivors survivors;
};

struct gci_control {
	struct gci_control_io io;
	char where[GCI_ADDRESS_TEXT]; /* the launcher is */
	int event_fd;
	int running; /* the thread is */
	pthread_t thread;
	void (*wake)(void *user);
	int (*called)(void *user, struct gci_ctl_call *m);
	void *user;
	void (*watch)(void *user, const struct gci_ctl_watch *m); /* may be NULL */
	void *watch_user;
	uint64_t beat_ns, dead_ns;
	int survives;        /* the job does, failures of its ranks */
	struct gci_buf in;   /* the thread's, once it runs */
	struct gci_buf wire; /* likewise: on its way by this connection */
	uint8_t *key;        /* for RESUME: 32 bytes */
	uint8_t session[GCI_CTL_SESSION];
	uint32_t rank, life;
	uint64_t looked_ns; /* atomic */

	pthread_mutex_t lock; /* guards what follows */
	struct gci_buf out;   /* said, and no connection's yet */
	struct gci_ctl_link link;
	int quit, has_verdict, all_gone;
	struct gci_ctl_failure verdict;
	struct gci_ctl_wait asked[GCI_CONTROL_ASKED];
	unsigned nasked;
	struct gci_control_members members;
	struct gci_ctl_budget *budgets; /* not taken yet */
	size_t nbudgets, budgets_cap;
};

/* The launcher has ended its connection; or that was lost otherwise, and may be made again. */
#define GCI_CONTROL_GONE   (-1)
#define GCI_CONTROL_BROKEN (-2)

static void gci_control_begin_say(struct gci_control *ctl);
static void gci_control_end_say(struct gci_control *ctl);

/* ---- The bytes of a rank's connection to the launcher: plain, or by TLS. */

#define JOIN_PATIENCE (30 * GCI_NS_PER_S)

static int local_ip(int fd, char *ip)
{
	struct gci_address a = {.len = sizeof(a.v6)};

	if (getsockname(fd, &a.any, &a.len))
		return -1;
	gci_address_ip(&a, ip);
	return 0;
}

static int connect_to(const struct sockaddr *to, socklen_t len, uint64_t patience_ns)
{
	/* The launcher beats from HELLO on: so long a silence is its end. */
	const struct timeval patience = {.tv_sec = (time_t)(patience_ns / GCI_NS_PER_S),
		.tv_usec = (suseconds_t)(patience_ns % GCI_NS_PER_S / 1000)};
	int fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0), why;

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (!connect(fd, to, len)) {
		gci_sockopt_control(fd);
		return fd;
	}
	why = errno;
	close(fd);
	errno = why;
	return -1;
}

/* "HOST:PORT": at the first of its addresses that answers. */
static int connect_by_name(const char *rendezvous, struct gci_error *e)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL, *it;
	const char *colon = strrchr(rendezvous, ':');
	char host[256];
	uint64_t port;
	int rc, fd = -1;

	if (!colon || colon == rendezvous || (size_t)(colon - rendezvous) >= sizeof(host) ||
		strcspn(rendezvous, ":[]/") != (size_t)(colon - rendezvous) ||
		gci_parse_uint(colon + 1, 65535, &port) || !port) {
		gci_error_set(e, GCOLL_ERR_INVAL,
			"GRIDCOLL_RENDEZVOUS=%s, expected HOST:PORT, IP:PORT or [IP]:PORT",
			rendezvous);
		return -1;
	}
	snprintf(host, sizeof(host), "%.*s", (int)(colon - rendezvous), rendezvous);
	rc = getaddrinfo(host, colon + 1, &hints, &list);
	if (rc) {
		gci_error_set(e, GCOLL_ERR_SYS, "cannot reach the launcher at %s: %s", rendezvous,
			gai_strerror(rc));
		return -1;
	}
	for (it = list; it && fd < 0; it = it->ai_next)
		fd = connect_to(it->ai_addr, it->ai_addrlen, JOIN_PATIENCE);
	if (fd < 0)
		gci_error_errno(e, "cannot reach the launcher at %s", rendezvous);
	freeaddrinfo(list);
	return fd;
}

static int open_socket(const char *rendezvous, struct gci_error *e)
{
	struct gci_address a;
	int fd;

	if (gci_address_parse(&a, rendezvous))
		return connect_by_name(rendezvous, e);
	fd = connect_to(&a.any, a.len, JOIN_PATIENCE);
	if (fd < 0)
		gci_error_errno(e, "cannot reach the launcher at %s", rendezvous);
	return fd;
}

int gci_control_io_open(struct gci_control_io *io, const char *rendezvous,
	char ip[GCI_ADDRESS_TEXT], struct gci_error *e)
{
	*io = (struct gci_control_io){
		.fd = open_socket(rendezvous, e), .patience_ns = JOIN_PATIENCE};
	if (io->fd < 0)
		return e->status ? e->status : GCOLL_ERR_SYS;
	io->peer.len = sizeof(io->peer.v6);
	if (!local_ip(io->fd, ip) && !getpeername(io->fd, &io->peer.any, &io->peer.len))
		return 0;
	gci_error_errno(e, "joining the job");
	gci_control_io_close(io);
	return GCOLL_ERR_SYS;
}

static ssize_t take(void *user, void *buf, size_t n)
{
	struct gci_control_io *io = user;
	ssize_t got;

	do
		got = recv(io->fd, buf, n, io->flags);
	while (got < 0 && errno == EINTR);
	if (got > 0) { /* it may be enough: no more waiting */
		io->flags |= MSG_DONTWAIT;
		io->got = 1;
	}
	if (!got && gci_sockopt_was_reset(io->fd)) {
		got = -1;
		errno = ECONNRESET;
	}
	io->hung_up |= got == 0 || (got < 0 && errno == ECONNRESET);
	return got < 0 ? -errno : got;
}

/* Sends what is encrypted: 0, or -1 with errno. */
static int push(struct gci_control_io *io, int flags)
{
	const uint8_t *p;
	size_t left;
	ssize_t n;

	while ((p = gci_secure_out(io->tls, &left)) != NULL) {
		n = send(io->fd, p, left, flags | MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		gci_secure_sent(io->tls, (size_t)n);
	}
	return 0;
}

/* True if something can be read. */
static int wait_until(int fd, uint64_t end_ns)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	uint64_t now = gci_now_ns();
	int n;

	for (; now < end_ns; now = gci_now_ns()) {
		n = poll(&p, 1, (int)((end_ns - now) / GCI_NS_PER_MS) + 1);
		if (n > 0 || (n < 0 && errno != EINTR))
			return n > 0;
	}
	return 0;
}

static int shake_hands(struct gci_control_io *io, struct gci_error *e)
{
	const uint64_t end_ns = gci_now_ns() + io->patience_ns;
	struct gci_error why = {0};
	int rc = gci_secure_create(&io->tls, io->ctx, &io->name, take, io, e);

	if (rc)
		return rc;
	io->flags = MSG_DONTWAIT;
	do {
		rc = gci_secure_shake(io->tls, &why);
		if (push(io, 0) && rc >= 0)
			return gci_error_errno(e, "joining the job");
	} while (!rc && wait_until(io->fd, end_ns));
	if (rc == 1)
		return 0;
	io->heard = rc < 0 && io->got && !io->hung_up;
	return gci_error_set(e, GCOLL_ERR_PROTO, "whoever listens at the launcher's address: %s",
		rc ? why.text : "it does not answer");
}

int gci_control_io_secure(struct gci_control_io *io, const uint8_t secret[GCI_SECRET_NBYTES],
	uint32_t rank, uint32_t size, struct gci_error *e)
{
	struct gci_secure_config config = {.epoch = 1, .self = rank, .size = size};
	int rc;

	io->name =
		(struct gci_secure_name){.epoch = 1, .client = rank, .server = GCI_SECURE_LAUNCHER};
	memcpy(config.secret, secret, sizeof(config.secret));
	rc = gci_secure_ctx_create(&io->ctx, &config, e);
	OPENSSL_cleanse(&config, sizeof(config));
	return rc ? rc : shake_hands(io, e);
}

/* After the loss of a connection: makes another to the same address, and shakes hands as before. Blocks
 * for a few times io->patience_ns at most. 0, or -1 with errno; to be closed either way. */
static int gci_control_io_again(struct gci_control_io *io)
{
	const struct linger now = {.l_onoff = 1};
	struct gci_error e = {0};

	gci_secure_free(io->tls);
	io->tls = NULL;
	if (io->fd >= 0) {
		/* An end in order would be ours, for whoever may still hear of it. */
		setsockopt(io->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
		close(io->fd);
	}
	io->fd = connect_to(&io->peer.any, io->peer.len, io->patience_ns);
	if (io->fd < 0 || !io->ctx || !shake_hands(io, &e))
		return io->fd < 0 ? -1 : 0;
	errno = ECONNRESET; /* whatever was wrong with the handshake, the next one may do */
	return -1;
}

ssize_t gci_control_io_recv(struct gci_control_io *io, void *buf, size_t n, int flags)
{
	struct iovec iov = {.iov_base = buf, .iov_len = n};
	ssize_t got;

	if (!io->tls) {
		do /* SO_RCVTIMEO lets every signal end it, SA_RESTART or not */
			got = recv(io->fd, buf, n, flags);
		while (got < 0 && errno == EINTR);
		io->heard |= got > 0;
		if (got || !gci_sockopt_was_reset(io->fd))
			return got;
		errno = ECONNRESET;
		return -1;
	}
	do {
		io->flags = flags;
		io->got = 0;
		got = gci_secure_read(io->tls, &iov, 1, NULL);
	} while (got == -EAGAIN && io->got && !(flags & MSG_DONTWAIT));
	io->heard |= got > 0;
	if (got >= 0)
		return got;
	errno = (int)-got;
	return -1;
}

ssize_t gci_control_io_send(struct gci_control_io *io, const void *data, size_t n, int flags)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)data, .iov_len = n};
	ssize_t taken;

	if (!io->tls)
		return send(io->fd, data, n, flags | MSG_NOSIGNAL);
	if (push(io, flags))
		return -1;
	taken = gci_secure_write(io->tls, &iov, 1, 0, NULL);
	if (taken < 0) {
		errno = (int)-taken;
		return -1;
	}
	/* What does not go now is held. */
	return push(io, flags) && errno != EAGAIN ? -1 : taken;
}

/* Some of what was sent waits for room in the socket. */
static int gci_control_io_holds(const struct gci_control_io *io)
{
	size_t n = 0;

	if (io->tls)
		gci_secure_out(io->tls, &n);
	return n > 0;
}

void gci_control_io_close(struct gci_control_io *io)
{
	gci_secure_free(io->tls);
	gci_secure_ctx_free(io->ctx);
	if (io->fd >= 0) {
		shutdown(io->fd, SHUT_RDWR); /* children by fork may have it as well */
		close(io->fd);
	}
	io->fd = -1;
	io->tls = NULL;
	io->ctx = NULL;
}

/* ---- Agreeing and shrinking: questions to the launcher whose answers are waited for. */

static void gci_control_init_members(struct gci_control_members *m)
{
	gci_cond_init(&m->news);
}

static void gci_control_free_members(struct gci_control_members *m)
{
	gci_free(m->survivors.ranks);
	pthread_cond_destroy(&m->news);
}

/* With the lock held. */
static void gci_control_end_members(
	struct gci_control_members *m, const struct gci_ctl_failure *why)
{
	if (!m->over)
		m->why = *why;
	m->over = 1;
	pthread_cond_broadcast(&m->news);
}

/* With SURVIVORS an epoch begins, in which nothing has happened yet. */
static void begin_epoch(struct gci_control *ctl, struct gci_ctl_survivors *s)
{
	gci_free(ctl->members.survivors.ranks);
	ctl->members.survivors = *s;
	ctl->members.has_survivors = 1;
	s->ranks = NULL;
	ctl->has_verdict = ctl->all_gone = 0;
	ctl->nasked = 0;
}

static void gci_control_take_members(struct gci_control *ctl, struct gci_ctl_message *m)
{
	pthread_mutex_lock(&ctl->lock);
	if (m->type == GCI_CTL_SURVIVORS) {
		begin_epoch(ctl, &m->survivors);
	} else {
		ctl->members.agreed = m->agree;
		ctl->members.has_agreed = 1;
	}
	pthread_cond_broadcast(&ctl->members.news);
	pthread_mutex_unlock(&ctl->lock);
}

void gci_control_agree(struct gci_control *ctl, uint32_t epoch, uint64_t flags)
{
	const struct gci_ctl_agree m = {.epoch = epoch, .flags = flags};

	gci_control_begin_say(ctl);
	ctl->members.has_agreed = 0;
	gci_ctl_put_agree(&ctl->out, GCI_CTL_AGREE, &m);
	gci_control_end_say(ctl);
}

void gci_control_shrink(struct gci_control *ctl, uint32_t epoch)
{
	const struct gci_ctl_survivors m = {.epoch = epoch};

	gci_control_begin_say(ctl);
	ctl->members.has_survivors = 0;
	gci_ctl_put_survivors(&ctl->out, GCI_CTL_SHRINK, &m);
	gci_control_end_say(ctl);
}

/* Until *answer is set, the time is up, or none will come; with the lock held. */
static int await(struct gci_control *ctl, const int *answer, uint64_t timeout_ns,
	struct gci_ctl_failure *why)
{
	uint64_t now = gci_now_ns();
	uint64_t end = timeout_ns < GCI_NEVER - now ? now + timeout_ns : GCI_NEVER;
	int late = 0;

	while (!*answer && !ctl->members.over && !late)
		late = gci_cond_await(&ctl->members.news, &ctl->lock, end);
	if (*answer)
		return 1;
	if (!ctl->members.over)
		return 0;
	*why = ctl->members.why;
	return -1;
}

int gci_control_agreed(struct gci_control *ctl, uint64_t timeout_ns, struct gci_ctl_agree *m,
	struct gci_ctl_failure *why)
{
	int rc;

	pthread_mutex_lock(&ctl->lock);
	rc = await(ctl, &ctl->members.has_agreed, timeout_ns, why);
	if (rc > 0) {
		*m = ctl->members.agreed;
		ctl->members.has_agreed = 0;
	}
	pthread_mutex_unlock(&ctl->lock);
	return rc;
}

int gci_control_survivors(struct gci_control *ctl, uint64_t timeout_ns, struct gci_ctl_survivors *m,
	struct gci_ctl_failure *why)
{
	int rc;

	pthread_mutex_lock(&ctl->lock);
	rc = await(ctl, &ctl->members.has_survivors, timeout_ns, why);
	if (rc > 0) {
		*m = ctl->members.survivors;
		ctl->members.survivors.ranks = NULL;
		ctl->members.has_survivors = 0;
	}
	pthread_mutex_unlock(&ctl->lock);
	return rc;
}

/* ---- The thread that beats, and hears the launcher. */

#define MAX_BUDGETS 65536                /* as many pairs as clusters can make */
#define FIRST_PAUSE (10 * GCI_NS_PER_MS) /* before the launcher is called again */
#define LAST_PAUSE  (500 * GCI_NS_PER_MS)

/* Reads what has come: 1 something, 0 nothing now, or GCI_CONTROL_*. */
static int gci_control_receive(struct gci_control *ctl, int flags)
{
	uint8_t chunk[4096];
	ssize_t n = gci_control_io_recv(&ctl->io, chunk, sizeof(chunk), flags);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return n ? GCI_CONTROL_BROKEN : GCI_CONTROL_GONE;
	do { /* by TLS, all: no poll tells of the rest */
		gci_buf_put(&ctl->in, chunk, (size_t)n);
		n = ctl->io.tls ? gci_control_io_recv(&ctl->io, chunk, sizeof(chunk), MSG_DONTWAIT)
				: 0;
	} while (n > 0);
	return ctl->in.failed ? GCI_CONTROL_GONE : 1;
}

/* What was said goes on its way once nothing is before it, and is kept until it has come. */
static void put_on_wire(struct gci_control *ctl)
{
	pthread_mutex_lock(&ctl->lock);
	if (!ctl->wire.len && ctl->out.len) {
		gci_ctl_link_keep(&ctl->link, ctl->out.data, ctl->out.len);
		gci_buf_free(&ctl->wire);
		ctl->wire = ctl->out;
		ctl->out = (struct gci_buf){0};
	}
	pthread_mutex_unlock(&ctl->lock);
}

/* Sends what `out` holds, as far as goes: 0, or GCI_CONTROL_*. */
static int gci_control_flush(struct gci_control *ctl, int flags)
{
	for (;;) {
		ssize_t n;

		put_on_wire(ctl);
		if (!ctl->wire.len && !gci_control_io_holds(&ctl->io))
			return 0;
		n = gci_control_io_send(
			&ctl->io, ctl->wire.data, ctl->wire.len, flags | MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n < 0) /* behind an end in order nobody reads */
			return errno != EPIPE || gci_sockopt_was_reset(ctl->io.fd)
				       ? GCI_CONTROL_BROKEN
				       : GCI_CONTROL_GONE;
		gci_buf_consume(&ctl->wire, (size_t)n);
	}
}

/* The launcher's word. After it, and whenever `last`, nothing more is to be waited for. */
static void set_verdict(struct gci_control *ctl, const struct gci_ctl_failure *f, int last)
{
	pthread_mutex_lock(&ctl->lock);
	if (!ctl->all_gone) {
		if (last || ctl->has_verdict || !ctl->survives)
			gci_control_end_members(&ctl->members, f);
		if (!ctl->has_verdict)
			ctl->verdict = *f;
		__atomic_store_n(&ctl->has_verdict, 1, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&ctl->lock);
	ctl->wake(ctl->user);
}

static void take_wait(struct gci_control *ctl, const struct gci_ctl_wait *w)
{
	pthread_mutex_lock(&ctl->lock);
	if (ctl->nasked < GCI_CONTROL_ASKED)
		ctl->asked[ctl->nasked++] = *w;
	pthread_mutex_unlock(&ctl->lock);
	ctl->wake(ctl->user);
}

/* One that comes while memory is short is lost; the next one counts. */
static void take_budget(struct gci_control *ctl, const struct gci_ctl_budget *b)
{
	size_t i = 0;

	pthread_mutex_lock(&ctl->lock);
	while (i < ctl->nbudgets &&
		(ctl->budgets[i].from != b->from || ctl->budgets[i].to != b->to))
		i++;
	if (i < MAX_BUDGETS &&
		!gci_grow(&ctl->budgets, &ctl->budgets_cap, i + 1, sizeof(*ctl->budgets))) {
		ctl->budgets[i] = *b;
		if (i == ctl->nbudgets)
			__atomic_store_n(&ctl->nbudgets, i + 1, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&ctl->lock);
	ctl->wake(ctl->user);
}

#define GONE   "is gone"
#define SILENT "gives no sign of life (its host or its network link is down)"

static struct gci_ctl_failure loss(const struct gci_control *ctl, const char *how)
{
	struct gci_ctl_failure f = {.status = GCOLL_ERR_ABORTED, .rank = -1};

	snprintf(f.text, sizeof(f.text), "the launcher at %s %s", ctl->where, how);
	return f;
}

static void lost(struct gci_control *ctl, const char *how)
{
	struct gci_ctl_failure f = loss(ctl, how);

	set_verdict(ctl, &f, 1);
}

static void gci_control_put_call(
	struct gci_control *ctl, enum gci_ctl_type type, const struct gci_ctl_call *m)
{
	pthread_mutex_lock(&ctl->lock);
	gci_ctl_put_call(&ctl->out, type, m);
	pthread_mutex_unlock(&ctl->lock);
}

/* The thread sends it in its next round. */
static void answer(struct gci_control *ctl, const struct gci_ctl_call *asked)
{
	struct gci_ctl_call m = *asked;

	if (ctl->called(ctl->user, &m))
		gci_control_put_call(ctl, GCI_CTL_CALLED, &m);
}

/* -1: what is acknowledged cannot be. */
static int count(struct gci_control *ctl, const struct gci_ctl_message *m)
{
	int rc = 0;

	pthread_mutex_lock(&ctl->lock);
	ctl->link.got += (uint64_t)gci_ctl_counts(m->type);
	if (m->type == GCI_CTL_BEAT)
		rc = gci_ctl_link_acked(&ctl->link, m->got.n);
	pthread_mutex_unlock(&ctl->lock);
	return rc;
}

static void on_message(struct gci_control *ctl, struct gci_ctl_message *m)
{
	if (m->type == GCI_CTL_ABORT) {
		set_verdict(ctl, &m->failure, 0);
	} else if (m->type == GCI_CTL_BYE) {
		pthread_mutex_lock(&ctl->lock);
		ctl->all_gone = 1;
		pthread_mutex_unlock(&ctl->lock);
		ctl->wake(ctl->user);
	} else if (m->type == GCI_CTL_WAIT) {
		take_wait(ctl, &m->wait);
	} else if (m->type == GCI_CTL_ASK) {
		answer(ctl, &m->call);
	} else if (m->type == GCI_CTL_BUDGET) {
		take_budget(ctl, &m->budget);
	} else if (m->type == GCI_CTL_WATCH && ctl->watch) {
		ctl->watch(ctl->watch_user, &m->watch);
	} else if (m->type == GCI_CTL_AGREED || m->type == GCI_CTL_SURVIVORS) {
		gci_control_take_members(ctl, m);
		ctl->wake(ctl->user);
	}
}

/* Handles all whole messages; -1 after a malformed one. */
static int dispatch(struct gci_control *ctl)
{
	struct gci_ctl_message m;
	struct gci_error e = {0};
	int rc;

	while ((rc = gci_ctl_get(&ctl->in, GCI_CTL_MAX_MESSAGE, &m, &e)) > 0) {
		rc = count(ctl, &m);
		on_message(ctl, &m);
		gci_ctl_message_free(&m);
		if (rc)
			break;
	}
	return rc;
}

/* ---- a connection that was lost */

/* The launcher is to tell something yet. */
static int is_needed(struct gci_control *ctl)
{
	int needed;

	pthread_mutex_lock(&ctl->lock);
	needed = !ctl->quit && !ctl->all_gone && !ctl->members.over;
	pthread_mutex_unlock(&ctl->lock);
	return needed;
}

static int say_resume(struct gci_control *ctl)
{
	struct gci_ctl_resume m = {.rank = ctl->rank, .life = ++ctl->life};
	ssize_t n = 0;

	pthread_mutex_lock(&ctl->lock);
	m.got = ctl->link.got;
	pthread_mutex_unlock(&ctl->lock);
	if (gci_ctl_resume_token(ctl->key, &m, ctl->session, m.token))
		return -1;
	gci_buf_free(&ctl->in);
	gci_buf_free(&ctl->wire);
	gci_ctl_put_resume(&ctl->wire, &m);
	while ((ctl->wire.len || gci_control_io_holds(&ctl->io)) && n >= 0) {
		n = gci_control_io_send(&ctl->io, ctl->wire.data, ctl->wire.len, MSG_NOSIGNAL);
		gci_buf_consume(&ctl->wire, n > 0 ? (size_t)n : 0);
	}
	return n < 0 ? -1 : 0;
}

/* What has not come is said again. */
static int on_resumed(struct gci_control *ctl, uint64_t got)
{
	int rc;

	pthread_mutex_lock(&ctl->lock);
	rc = gci_ctl_link_acked(&ctl->link, got) || ctl->link.gap;
	if (!rc)
		gci_buf_put(&ctl->wire, ctl->link.kept.data, ctl->link.kept.len);
	pthread_mutex_unlock(&ctl->lock);
	return rc || ctl->wire.failed ? 1 : 0;
}

/* 0; -1, to be tried again; or 1, in vain, with the reason. */
static int resume_once(struct gci_control *ctl, struct gci_ctl_failure *why)
{
	struct gci_ctl_message m;
	struct gci_error e = {0};
	int rc;

	if (gci_control_io_again(&ctl->io) || say_resume(ctl))
		return -1;
	errno = 0; /* it did not refuse us */
	while (!(rc = gci_ctl_get(&ctl->in, GCI_CTL_MAX_MESSAGE, &m, &e))) {
		rc = gci_control_receive(ctl, 0);
		if (rc <= 0) {
			errno = rc == GCI_CONTROL_GONE ? EPIPE : ECONNRESET;
			return -1;
		}
	}
	if (rc < 0)
		return -1;
	rc = -1;
	if (m.type == GCI_CTL_RESUMED) {
		rc = on_resumed(ctl, m.got.n);
		*why = loss(ctl, "has lost messages of this rank");
	} else if (m.type == GCI_CTL_ABORT) {
		rc = 1;
		*why = m.failure;
	}
	gci_ctl_message_free(&m);
	return rc;
}

/* Ends early when there is something to be done. */
static void pause_for(struct gci_control *ctl, uint64_t ns)
{
	struct pollfd p = {.fd = ctl->event_fd, .events = POLLIN};
	uint64_t ticks;

	if (poll(&p, 1, (int)(ns / GCI_NS_PER_MS)) > 0 &&
		read(ctl->event_fd, &ticks, sizeof(ticks)) < 0)
		return;
}

/* After BROKEN: 0, the job goes on by another connection; or -1, with the reason why not in *why, when
 * the launcher has said it, or does not answer until `until_ns`. Where its address refuses
 * connections, the launcher has ended, or a host on the way comes up again. */
static int gci_control_resume(
	struct gci_control *ctl, uint64_t until_ns, struct gci_ctl_failure *why)
{
	uint64_t now = gci_now_ns(), pause = FIRST_PAUSE, patience = ctl->dead_ns / 32;
	const uint64_t refused_ns = now + ctl->dead_ns / 4;
	int rc;

	*why = loss(ctl, GONE);
	while (is_needed(ctl)) {
		ctl->io.patience_ns = patience;
		patience = patience < ctl->dead_ns / 4 ? 2 * patience : patience;
		rc = resume_once(ctl, why);
		if (rc >= 0)
			return rc ? -1 : 0;
		rc = errno;
		now = gci_now_ns();
		if (rc == ECONNREFUSED && now >= refused_ns)
			break;
		if (rc == EPIPE && !ctl->io.heard) /* it may not know us yet */
			break;
		if (now >= until_ns) {
			*why = loss(ctl, SILENT);
			break;
		}
		pause_for(ctl, pause);
		pause = pause < LAST_PAUSE ? 2 * pause : pause;
	}
	return -1;
}

static void gci_control_put_plain(struct gci_control *ctl, enum gci_ctl_type type)
{
	pthread_mutex_lock(&ctl->lock);
	gci_ctl_put_plain(&ctl->out, type);
	pthread_mutex_unlock(&ctl->lock);
}

static int wants_to_quit(struct gci_control *ctl)
{
	int quit;

	pthread_mutex_lock(&ctl->lock);
	quit = ctl->quit;
	pthread_mutex_unlock(&ctl->lock);
	return quit;
}

static int pending(struct gci_control *ctl)
{
	size_t n;

	pthread_mutex_lock(&ctl->lock);
	n = ctl->out.len;
	pthread_mutex_unlock(&ctl->lock);
	return n || ctl->wire.len;
}

/* What had come by then was taken. */
static void set_looked(struct gci_control *ctl, uint64_t at_ns)
{
	__atomic_store_n(&ctl->looked_ns, at_ns, __ATOMIC_RELEASE);
}

static void gci_control_put_beat(struct gci_control *ctl)
{
	pthread_mutex_lock(&ctl->lock);
	gci_ctl_put_got(&ctl->out, GCI_CTL_BEAT, ctl->link.got);
	pthread_mutex_unlock(&ctl->lock);
}

/* Whatever ended the connection, the launcher's last word may be here already. 0: there is another. */
static int go_on(struct gci_control *ctl, int how, uint64_t until_ns)
{
	struct gci_ctl_failure why = loss(ctl, GONE);

	while (gci_control_receive(ctl, MSG_DONTWAIT) > 0)
		;
	if (!dispatch(ctl) && how == GCI_CONTROL_BROKEN && !gci_control_resume(ctl, until_ns, &why))
		return dispatch(ctl); /* what came right behind RESUMED */
	set_verdict(ctl, &why, 1);
	return -1;
}

/* The thread; `arg` is its struct gci_control. */
static void *gci_control_beat(void *arg)
{
	struct gci_control *ctl = arg;
	uint64_t now = gci_now_ns(), next_beat = now, heard = now, ticks;
	struct pollfd fds[2] = {{.fd = ctl->io.fd}, {.fd = ctl->event_fd, .events = POLLIN}};

	if (dispatch(ctl) < 0) /* what came right behind START */
		lost(ctl, GONE);
	while (!wants_to_quit(ctl)) {
		int rc;

		now = gci_now_ns();
		if (now >= next_beat) {
			gci_control_put_beat(ctl);
			next_beat = now + ctl->beat_ns;
		}
		if (now - heard >= ctl->dead_ns) {
			lost(ctl, SILENT);
			break;
		}
		rc = gci_control_flush(ctl, MSG_DONTWAIT);
		if (rc) {
			if (go_on(ctl, rc, heard + ctl->dead_ns))
				break;
			next_beat = heard = gci_now_ns();
			fds[0].fd = ctl->io.fd;
			continue;
		}
		fds[0].events =
			(short)(POLLIN |
				(pending(ctl) || gci_control_io_holds(&ctl->io) ? POLLOUT : 0));
		if (poll(fds, 2, (int)((next_beat - now) / GCI_NS_PER_MS) + 1) < 0 &&
			errno != EINTR) {
			lost(ctl, "cannot be heard any more: poll failed");
			break;
		}
		/* Time in which we were stopped (as by Ctrl-Z) is not the launcher's silence. */
		now = gci_now_ns();
		if (now > next_beat + ctl->beat_ns)
			heard += now - next_beat;
		if (fds[1].revents && read(ctl->event_fd, &ticks, sizeof(ticks)) < 0 &&
			errno != EAGAIN)
			break;
		rc = gci_control_receive(ctl, MSG_DONTWAIT);
		if (rc > 0) {
			heard = gci_now_ns();
			rc = dispatch(ctl) ? GCI_CONTROL_GONE : 0;
		} else if (!rc) {
			set_looked(ctl, now);
		}
		if (rc < 0) {
			if (go_on(ctl, rc, heard + ctl->dead_ns))
				break;
			next_beat = heard = gci_now_ns();
			fds[0].fd = ctl->io.fd;
		}
	}
	set_looked(ctl, UINT64_MAX);
	gci_control_flush(ctl, MSG_DONTWAIT); /* a last FAIL */
	return NULL;
}

/* ---- Joining a job, and what is said and asked in it. */

#define MAX_BACKLOG  (256u << 10) /* of reports that the launcher does not read */
#define JOIN_SILENCE (30 * GCI_NS_PER_S)

int gci_control_connect(struct gci_control **out, const char *rendezvous, char ip[GCI_ADDRESS_TEXT],
	struct gci_error *e)
{
	struct gci_control *ctl = gci_calloc(1, sizeof(*ctl));
	int rc;

	*out = NULL;
	if (!ctl)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	pthread_mutex_init(&ctl->lock, NULL);
	gci_control_init_members(&ctl->members);
	snprintf(ctl->where, sizeof(ctl->where), "%s", rendezvous);
	ctl->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = gci_control_io_open(&ctl->io, rendezvous, ip, e);
	if (!rc && ctl->event_fd < 0)
		rc = gci_error_errno(e, "joining the job");
	if (rc)
		gci_control_free(ctl);
	else
		*out = ctl;
	return rc;
}

int gci_control_secure(struct gci_control *ctl, const uint8_t secret[GCI_SECRET_NBYTES],
	uint32_t rank, uint32_t size, struct gci_error *e)
{
	return gci_control_io_secure(&ctl->io, secret, rank, size, e);
}

int gci_control_was_heard(const struct gci_control *ctl)
{
	return ctl->io.heard;
}

int gci_control_survives(const struct gci_control *ctl)
{
	return ctl->survives;
}

/* Beats meanwhile: a connection that something on the way has forgotten shows when it is used. 1; 0,
 * nothing came; or GCI_CONTROL_*. */
static int wait_for_more(struct gci_control *ctl)
{
	const uint64_t end_ns = gci_now_ns() + JOIN_SILENCE;
	struct pollfd p = {.fd = ctl->io.fd, .events = POLLIN};
	int rc = 0;

	while (!rc && gci_now_ns() < end_ns) {
		if (!poll(&p, 1, 1000))
			gci_control_put_beat(ctl);
		rc = gci_control_receive(ctl, MSG_DONTWAIT);
		if (!rc)
			rc = gci_control_flush(ctl, MSG_DONTWAIT);
	}
	return rc;
}

static int wait_for_start(
	struct gci_control *ctl, struct gci_ctl_message *start, struct gci_error *e)
{
	struct gci_ctl_failure why;
	int rc;

	for (;;) {
		rc = gci_ctl_get(&ctl->in, GCI_CTL_MAX_MESSAGE, start, e);
		if (rc < 0)
			return rc;
		if (rc > 0 && start->type == GCI_CTL_START)
			return 0;
		if (rc > 0 && start->type == GCI_CTL_ABORT)
			return gci_error_set(e, start->failure.status, "%s", start->failure.text);
		if (rc > 0) {
			gci_ctl_message_free(start);
			continue;
		}
		rc = wait_for_more(ctl);
		if (rc > 0 || (rc == GCI_CONTROL_BROKEN &&
				      !gci_control_resume(ctl, gci_now_ns() + ctl->dead_ns, &why)))
			continue;
		return gci_error_set(
			e, GCOLL_ERR_ABORTED, "the launcher was lost before the job began");
	}
}

/* What a lost connection is made again with. */
static int begin_session(struct gci_control *ctl, struct gci_ctl_hello *hello,
	const uint8_t secret[GCI_SECRET_NBYTES], struct gci_error *e)
{
	ctl->rank = hello->rank;
	ctl->key = gci_secret_alloc(32);
	if (!ctl->key || RAND_bytes(ctl->session, sizeof(ctl->session)) != 1 ||
		gci_ctl_resume_key(secret, hello->rank, ctl->key))
		return gci_error_set(e, GCOLL_ERR_SYS, "no random numbers, or out of memory");
	memcpy(hello->session, ctl->session, sizeof(hello->session));
	return 0;
}

int gci_control_join(struct gci_control *ctl, const struct gci_ctl_hello *hello,
	const uint8_t secret[GCI_SECRET_NBYTES], void (*wake)(void *user),
	int (*called)(void *user, struct gci_ctl_call *m), void *user,
	struct gci_ctl_message *start, struct gci_error *e)
{
	struct gci_ctl_hello m = *hello;
	int rc = begin_session(ctl, &m, secret, e);

	if (rc)
		return rc;
	ctl->wake = wake;
	ctl->called = called;
	ctl->user = user;
	ctl->dead_ns = GCI_CTL_JOINING_NS;
	gci_ctl_put_hello(&ctl->out, &m);
	OPENSSL_cleanse(m.token, sizeof(m.token));
	if (ctl->out.failed)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	if (gci_control_flush(ctl, 0))
		return gci_error_errno(e, "joining the job");
	memset(start, 0, sizeof(*start));
	rc = wait_for_start(ctl, start, e);
	if (rc)
		return rc;
	ctl->beat_ns = start->start.beat_ns;
	ctl->dead_ns = start->start.dead_ns;
	ctl->survives = start->start.survives;
	rc = gci_thread_create(&ctl->thread, gci_control_beat, ctl);
	if (rc) {
		gci_ctl_message_free(start);
		errno = rc;
		return gci_error_errno(e, "starting the heartbeat thread");
	}
	ctl->running = 1;
	return 0;
}

/* The thread has something new in `out`. */
static void gci_control_nudge(struct gci_control *ctl)
{
	uint64_t one = 1;

	if (write(ctl->event_fd, &one, sizeof(one)) < 0)
		return; /* the counter is full: the thread is awake anyway */
}

/* Between them, what is put into `out` is for the thread to send. */
static void gci_control_begin_say(struct gci_control *ctl)
{
	pthread_mutex_lock(&ctl->lock);
}

static void gci_control_end_say(struct gci_control *ctl)
{
	pthread_mutex_unlock(&ctl->lock);
	gci_control_nudge(ctl);
}

void gci_control_fail(struct gci_control *ctl, const struct gci_ctl_failure *f)
{
	gci_control_begin_say(ctl);
	gci_ctl_put_failure(&ctl->out, GCI_CTL_FAIL, f);
	gci_control_end_say(ctl);
}

void gci_control_ask_call(struct gci_control *ctl, const struct gci_ctl_call *m)
{
	gci_control_put_call(ctl, GCI_CTL_ASK, m);
	gci_control_nudge(ctl);
}

void gci_control_on_watch(struct gci_control *ctl,
	void (*watch)(void *user, const struct gci_ctl_watch *m), void *user)
{
	ctl->watch = watch;
	ctl->watch_user = user;
}

void gci_control_report(struct gci_control *ctl, const struct gci_ctl_report *m)
{
	gci_control_begin_say(ctl);
	if (ctl->out.len < MAX_BACKLOG)
		gci_ctl_put_report(&ctl->out, m);
	gci_control_end_say(ctl);
}

void gci_control_flows(struct gci_control *ctl, const struct gci_ctl_flows *m)
{
	gci_control_begin_say(ctl);
	if (ctl->out.len < MAX_BACKLOG)
		gci_ctl_put_flows(&ctl->out, m);
	gci_control_end_say(ctl);
}

int gci_control_verdict(struct gci_control *ctl, struct gci_ctl_failure *f)
{
	int has;

	/* As a rule there is none; whoever makes progress asks each time. */
	if (!__atomic_load_n(&ctl->has_verdict, __ATOMIC_ACQUIRE))
		return 0;
	pthread_mutex_lock(&ctl->lock);
	has = ctl->has_verdict;
	if (has)
		*f = ctl->verdict;
	pthread_mutex_unlock(&ctl->lock);
	return has;
}

uint64_t gci_control_looked_ns(const struct gci_control *ctl)
{
	return __atomic_load_n(&ctl->looked_ns, __ATOMIC_ACQUIRE);
}

void gci_control_wait(struct gci_control *ctl, const struct gci_ctl_wait *w)
{
	gci_control_begin_say(ctl);
	gci_ctl_put_wait(&ctl->out, w);
	gci_control_end_say(ctl);
}

int gci_control_asked(struct gci_control *ctl, struct gci_ctl_wait *w)
{
	int has;

	pthread_mutex_lock(&ctl->lock);
	has = ctl->nasked > 0;
	if (has)
		*w = ctl->asked[--ctl->nasked];
	pthread_mutex_unlock(&ctl->lock);
	return has;
}

int gci_control_budget(struct gci_control *ctl, struct gci_ctl_budget *b)
{
	size_t n;

	/* As a rule there is none; whoever makes progress asks each time. */
	if (!__atomic_load_n(&ctl->nbudgets, __ATOMIC_ACQUIRE))
		return 0;
	pthread_mutex_lock(&ctl->lock);
	n = ctl->nbudgets;
	*b = ctl->budgets[n - 1];
	__atomic_store_n(&ctl->nbudgets, n - 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&ctl->lock);
	return 1;
}

void gci_control_bye(struct gci_control *ctl)
{
	gci_control_put_plain(ctl, GCI_CTL_BYE);
	gci_control_nudge(ctl);
}

int gci_control_all_gone(struct gci_control *ctl)
{
	int gone;

	pthread_mutex_lock(&ctl->lock);
	gone = ctl->all_gone;
	pthread_mutex_unlock(&ctl->lock);
	return gone;
}

void gci_control_free(struct gci_control *ctl)
{
	if (!ctl)
		return;
	if (ctl->running) {
		pthread_mutex_lock(&ctl->lock);
		ctl->quit = 1;
		pthread_mutex_unlock(&ctl->lock);
		gci_control_nudge(ctl);
		pthread_join(ctl->thread, NULL);
	}
	gci_control_io_close(&ctl->io);
	if (ctl->event_fd >= 0)
		close(ctl->event_fd);
	gci_buf_free(&ctl->in);
	gci_buf_free(&ctl->out);
	gci_buf_free(&ctl->wire);
	gci_ctl_link_free(&ctl->link);
	gci_secret_free(ctl->key);
	gci_free(ctl->budgets);
	gci_control_free_members(&ctl->members);
	pthread_mutex_destroy(&ctl->lock);
	gci_free(ctl);
}
