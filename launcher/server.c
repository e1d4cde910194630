/* SPDX-License-Identifier: MIT */
#include "launcher/server.h"

#include "base/log.h"
#include "base/mem.h"
#include "launcher/netns.h"
#include "launcher/spawn.h"
#include "transport/sockopt.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define BACKLOG  4096
#define RETRY_MS 100

struct conn {
	uv_tcp_t tcp;
	struct gci_server *server;
	struct gci_rdv_conn *handle; /* NULL: the state machine is done with it */
	struct gci_secure *tls;      /* NULL: it is plain */
	struct gci_buf in;           /* what TLS has not taken yet */
	int named;                   /* the state machine knows who it is */
	int joined;                  /* a rank has, by it */
	int told;                    /* something was sent to it */
};

static void on_closed(uv_handle_t *h)
{
	struct conn *c = h->data;

	gci_secure_free(c->tls);
	gci_buf_free(&c->in);
	gci_free(c);
}

static void hang_up(struct conn *c)
{
	if (uv_is_closing((uv_handle_t *)&c->tcp))
		return;
	if (!c->joined)
		gci_backoff_refused(&c->server->backoff, gci_now_ns());
	uv_close((uv_handle_t *)&c->tcp, on_closed);
}

/* The state machine is told that it is gone. What we close ourselves for lack of memory the rank takes
 * for our end. */
static void drop(struct conn *c, int broken)
{
	if (c->handle)
		gci_rdv_closed(c->server->rdv, c->handle, broken, gci_now_ns());
	c->handle = NULL;
	hang_up(c);
}

static void lost(struct conn *c, int broken)
{
	drop(c, broken);
	gci_server_kick(c->server);
}

static void on_shut(uv_shutdown_t *req, int status)
{
	(void)status;
	hang_up(req->data);
	gci_free(req);
}

/* What was sent before goes out first. */
static void close_politely(struct conn *c)
{
	uv_shutdown_t *req;

	c->handle = NULL;
	if (!c->told) {
		hang_up(c);
		return;
	}
	req = gci_calloc(1, sizeof(*req));
	uv_read_stop((uv_stream_t *)&c->tcp);
	if (req) {
		req->data = c;
		if (!uv_shutdown(req, (uv_stream_t *)&c->tcp, on_shut))
			return;
	}
	gci_free(req);
	hang_up(c);
}

static ssize_t take(void *user, void *buf, size_t n)
{
	struct conn *c = user;

	if (!c->in.len)
		return -EAGAIN;
	if (n > c->in.len)
		n = c->in.len;
	memcpy(buf, c->in.data, n);
	gci_buf_consume(&c->in, n);
	return (ssize_t)n;
}

/* Frees the bytes; false: there is no memory. A broken connection shows in reading, too, behind
 * what may have come before. */
static int put_out(struct conn *c, struct gci_buf *b)
{
	c->told = 1;
	return gci_pipe_send((uv_stream_t *)&c->tcp, b, NULL) != UV_ENOMEM;
}

/* Sends what TLS has to send; false: there is no memory. */
static int push(struct conn *c)
{
	struct gci_buf b = {0};
	const uint8_t *p;
	size_t n;

	p = gci_secure_out(c->tls, &n);
	if (!p)
		return 1;
	gci_buf_put(&b, p, n);
	gci_secure_sent(c->tls, n);
	return put_out(c, &b);
}

/* False: there is no memory. */
static int say(struct conn *c, struct gci_buf *b)
{
	struct iovec iov = {.iov_base = b->data, .iov_len = b->len};
	size_t at = 0;
	ssize_t n = 0;
	int ok = 1;

	if (!c->tls)
		return put_out(c, b);
	for (; at < b->len && ok && n >= 0; at += n > 0 ? (size_t)n : 0) {
		n = gci_secure_write(c->tls, &iov, 1, at, NULL);
		ok = push(c) && n != -ENOMEM;
	}
	gci_buf_free(b);
	return ok;
}

/* Hands over what came by TLS; false: nobody of this job's is there. */
static int hear(struct conn *c)
{
	static uint8_t space[65536];
	struct iovec iov = {.iov_base = space, .iov_len = sizeof(space)};
	struct gci_error e = {0};
	ssize_t n;

	n = gci_secure_shake(c->tls, &e);
	if (!push(c))
		return 0;
	if (!c->named && (n > 0 || gci_secure_has_shown(c->tls))) {
		gci_rdv_named(c->handle, gci_secure_name(c->tls).client);
		c->named = 1;
	}
	while (n > 0 && c->handle) {
		n = gci_secure_read(c->tls, &iov, 1, &e);
		if (n > 0)
			gci_rdv_input(c->server->rdv, c->handle, space, (size_t)n, gci_now_ns());
	}
	if (e.status)
		gci_log(GCI_LOG_INFO, "turned away a connection: %s", e.text);
	return !c->in.failed && (n >= 0 || n == -EAGAIN);
}

static void on_timer(uv_timer_t *t)
{
	struct gci_server *s = t->data;

	gci_rdv_tick(s->rdv, gci_now_ns());
	gci_server_kick(s);
}

void gci_server_kick(struct gci_server *s)
{
	struct gci_rdv_event ev;
	uint64_t now, deadline;

	while (gci_rdv_next(s->rdv, &ev)) {
		struct conn *c = ev.user;

		if (ev.type == GCI_RDV_CLOSE)
			close_politely(c);
		else if (!say(c, &ev.data))
			drop(c, 0);
	}
	deadline = gci_rdv_deadline(s->rdv);
	now = gci_now_ns();
	uv_update_time(s->loop);
	uv_timer_start(&s->timer, on_timer,
		deadline > now ? (deadline - now + GCI_NS_PER_MS - 1) / GCI_NS_PER_MS : 0, 0);
	s->on_change(s->user);
}

static void on_alloc(uv_handle_t *h, size_t want, uv_buf_t *buf)
{
	static char space[65536]; /* used up before the next read */

	(void)h;
	(void)want;
	*buf = uv_buf_init(space, sizeof(space));
}

/* False: what has come is not the beginning of TLS in this job, or there is no memory for it. */
static int begin_tls(struct conn *c, const void *data, size_t nbytes)
{
	struct gci_error e = {.text = "out of memory"};
	struct gci_buf alert = {0};
	int rc = -1;

	gci_buf_put(&c->in, data, nbytes);
	if (!c->in.failed)
		rc = gci_secure_answer(
			&c->tls, c->server->secure, c->in.data, c->in.len, take, c, &e);
	if (rc < 0)
		gci_log(GCI_LOG_INFO, "turned away a connection: %s", e.text);
	if (rc == GCI_SECURE_NO_KEY) {
		gci_rdv_wrong_secret(c->server->rdv, c->handle, gci_now_ns());
		gci_buf_put(&alert, gci_secure_alert, GCI_SECURE_ALERT);
		put_out(c, &alert);
	}
	return rc >= 0 && (!rc || hear(c));
}

/* False: it is to be closed. */
static int take_bytes(struct conn *c, const void *data, size_t nbytes)
{
	if (!c->server->secure) {
		gci_rdv_input(c->server->rdv, c->handle, data, nbytes, gci_now_ns());
		return 1;
	}
	if (!c->tls)
		return begin_tls(c, data, nbytes);
	gci_buf_put(&c->in, data, nbytes);
	return hear(c);
}

/* Of a rank, not of anybody who calls. */
static void join(struct conn *c)
{
	uv_os_fd_t fd;

	c->joined = 1;
	if (!uv_fileno((uv_handle_t *)&c->tcp, &fd))
		gci_sockopt_control(fd);
}

static void on_retry(uv_timer_t *t);

static int is_broken(const struct conn *c, ssize_t error)
{
	uv_os_fd_t fd;

	return error != UV_EOF ||
	       (!uv_fileno((const uv_handle_t *)&c->tcp, &fd) && gci_sockopt_was_reset(fd));
}

static void on_read(uv_stream_t *from, ssize_t n, const uv_buf_t *buf)
{
	struct conn *c = from->data;

	if (n < 0) {
		lost(c, is_broken(c, n));
		return;
	}
	if (!n || !c->handle)
		return;
	if (!take_bytes(c, buf->base, (size_t)n)) {
		lost(c, 0);
		return;
	}
	if (!c->joined && !gci_rdv_is_stranger(c->handle))
		join(c);
	gci_server_kick(c->server);
}

static struct gci_reach caller_of(const uv_tcp_t *tcp)
{
	struct gci_address a = {.len = sizeof(a.v6)};
	int len = (int)a.len;

	uv_tcp_getpeername(tcp, &a.any, &len); /* nothing, if it is gone already */
	a.len = (socklen_t)len;
	return gci_reach_of(&a);
}

static void accept_one(struct gci_server *s)
{
	struct conn *c = gci_calloc(1, sizeof(*c));
	int crowded = gci_rdv_is_crowded(s->rdv);
	struct gci_reach from;

	if (!c) { /* libuv tells of no other until this one is accepted */
		uv_timer_start(&s->retry, on_retry, RETRY_MS, 0);
		return;
	}
	c->server = s;
	uv_tcp_init(s->loop, &c->tcp);
	c->tcp.data = c;
	if (uv_accept((uv_stream_t *)&s->listener, (uv_stream_t *)&c->tcp)) {
		hang_up(c);
		return;
	}
	from = caller_of(&c->tcp);
	c->handle = gci_rdv_open(s->rdv, c, &from, gci_now_ns());
	if (!c->handle || uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read))
		lost(c, 0);
	else if (crowded)
		gci_server_kick(s); /* somebody has given way */
}

static void on_room(uv_idle_t *idle)
{
	uv_idle_stop(idle);
	accept_one(idle->data);
}

/* Where one has to give way, what those who are there have said comes first: the loop's next round
 * finds all of it read. */
static void let_in(struct gci_server *s)
{
	uint64_t wait_ns = gci_backoff_wait(&s->backoff, gci_now_ns());

	if (wait_ns) { /* libuv tells of no other until this one is accepted */
		uv_update_time(s->loop);
		uv_timer_start(
			&s->retry, on_retry, (wait_ns + GCI_NS_PER_MS - 1) / GCI_NS_PER_MS, 0);
	} else if (gci_rdv_is_crowded(s->rdv)) {
		uv_idle_start(&s->room, on_room);
	} else {
		accept_one(s);
	}
}

static void on_retry(uv_timer_t *t)
{
	let_in(t->data);
}

static void on_connection(uv_stream_t *listener, int status)
{
	if (!status)
		let_in(listener->data);
}

/* A socket stays in the namespace it was made in, whoever uses it. */
static int listen_inside(const struct gci_server_place *at, uint16_t *port, struct gci_error *e)
{
	struct gci_address a;
	int back, fd = -1;

	if (gci_address_make(&a, at->ip ? at->ip : "::", 0)) {
		gci_error_set(e, GCOLL_ERR_INVAL, "cannot listen on \"%s\": expected an IP address",
			at->ip);
		return -1;
	}
	if (at->netns && gci_ns_visit(at->netns, &back, e))
		return -1;
	gci_listen(&a, &at->ports, 0, &fd, e);
	if (at->netns && gci_ns_return(back, e) && fd >= 0) {
		close(fd);
		fd = -1;
	}
	*port = gci_address_port(&a);
	return fd;
}

int gci_server_open(struct gci_server *s, uv_loop_t *loop, const struct gci_rdv_config *config,
	const struct gci_server_place *at, void (*on_change)(void *user), void *user,
	struct gci_error *e)
{
	int fd, rc;

	memset(s, 0, sizeof(*s));
	s->loop = loop;
	s->on_change = on_change;
	s->user = user;
	if (at->tls) {
		struct gci_secure_config tls = {
			.epoch = 1, .self = GCI_SECURE_LAUNCHER, .size = config->size};

		if (config->nguests) /* who has a wrong number is told so */
			tls.size = GCI_CTL_MAX_RANKS;

		memcpy(tls.secret, config->secret, sizeof(tls.secret));
		rc = gci_secure_ctx_create(&s->secure, &tls, e);
		explicit_bzero(&tls, sizeof(tls));
		if (rc)
			return rc;
	}
	fd = listen_inside(at, &s->port, e);
	if (fd < 0)
		return e->status;
	if (gci_rdv_create(&s->rdv, config, gci_now_ns())) {
		close(fd);
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	}
	uv_tcp_init(loop, &s->listener);
	uv_timer_init(loop, &s->timer);
	uv_timer_init(loop, &s->retry);
	uv_idle_init(loop, &s->room);
	s->listener.data = s->timer.data = s->retry.data = s->room.data = s;
	rc = uv_tcp_open(&s->listener, fd);
	if (!rc)
		rc = uv_listen((uv_stream_t *)&s->listener, BACKLOG, on_connection);
	if (rc)
		return gci_error_set(e, GCOLL_ERR_SYS, "cannot listen: %s", uv_strerror(rc));
	uv_timer_start(&s->timer, on_timer, 1, 0);
	return 0;
}
