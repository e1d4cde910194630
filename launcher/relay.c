/* SPDX-License-Identifier: MIT */
#include "launcher/relay.h"

#include "base/mem.h"
#include "launcher/agent_internal.h"
#include "launcher/pipes.h"
#include "launcher/spawn.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A command line of the longest kind for each of many agents behind one that does not read yet. */
#define MOST_QUEUED (64u << 20)

struct relay {
	struct relay *next;
	uint32_t id;
	pid_t pid;
	uv_pipe_t pipes[3];  /* its standard input, output and error */
	unsigned nopen;      /* of these, those that libuv knows */
	int waits, overfull; /* its output, for the launcher; it was given up */
};

static struct relay *relays;

static struct relay *find(uint32_t id)
{
	struct relay *r = relays;

	while (r && r->id != id)
		r = r->next;
	return r;
}

int gci_relay_is(pid_t pid)
{
	struct relay *r = relays;

	while (r && r->pid != pid)
		r = r->next;
	return r != NULL;
}

static void send_ended(uint32_t id, int code, int sig, const char *why)
{
	const struct gci_agent_msg_ended m = {id, code, sig, (char *)(uintptr_t)why};
	struct gci_buf b = {0};

	gci_agent_msg_put_ended(&b, GCI_AGENT_MSG_RELAY_ENDED, &m);
	gci_agent_send_up(&b);
}

/* ---- what it says ---- */

static void on_alloc(uv_handle_t *h, size_t want, uv_buf_t *buf)
{
	static char space[GCI_AGENT_MSG_RELAYED];

	(void)h;
	(void)want;
	*buf = uv_buf_init(space, sizeof(space));
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
	struct relay *r = s->data;
	struct gci_agent_msg_relay_data m = {.id = r->id, .data = (const uint8_t *)buf->base};
	struct gci_buf b = {0};

	if (n < 0) {
		uv_read_stop(s); /* the end of its process tells all */
		return;
	}
	m.stream = s == (uv_stream_t *)&r->pipes[1] ? 1 : 2;
	m.nbytes = (size_t)n;
	gci_agent_msg_put_relay_data(&b, &m);
	gci_agent_send_up(&b);
	if (gci_agent_behind() <= GCI_RELAY_BEHIND)
		return;
	r->waits = 1;
	uv_read_stop((uv_stream_t *)&r->pipes[1]);
	uv_read_stop((uv_stream_t *)&r->pipes[2]);
}

static void read_on(struct relay *r)
{
	int i;

	r->waits = 0;
	for (i = 1; i < 3; i++)
		uv_read_start((uv_stream_t *)&r->pipes[i], on_alloc, on_read);
}

void gci_relay_resume(void)
{
	struct relay *r;

	for (r = relays; r && gci_agent_behind() < GCI_RELAY_BEHIND / 2; r = r->next)
		if (r->waits)
			read_on(r);
}

/* ---- what it is told ---- */

static void put_down(struct relay *r, struct gci_buf *b)
{
	uv_stream_t *down = (uv_stream_t *)&r->pipes[0];

	if (uv_is_closing((uv_handle_t *)down)) {
		gci_buf_free(b);
		return;
	}
	r->overfull |= uv_stream_get_write_queue_size(down) + b->len > MOST_QUEUED;
	if (!r->overfull)
		r->overfull = gci_pipe_send(down, b, NULL) == UV_ENOMEM;
	if (r->overfull)
		kill(r->pid, SIGKILL); /* a part of it would be nonsense */
	gci_buf_free(b);
}

static void on_closed(uv_handle_t *h)
{
	struct relay *r = h->data;

	if (!--r->nopen)
		gci_free(r);
}

static void close_pipe(uv_pipe_t *p)
{
	if (!uv_is_closing((uv_handle_t *)p))
		uv_close((uv_handle_t *)p, on_closed);
}

static void close_pipes(struct relay *r)
{
	int i;

	for (i = 0; i < 3; i++)
		close_pipe(&r->pipes[i]);
}

/* It knows better than the host behind it from where ssh came to the first of us. */
static void tell_origin(struct relay *r)
{
	char from[GCI_AGENT_MSG_ADDRESS + 1];
	struct gci_buf b = {0};

	if (gci_agent_origin(from, sizeof(from)))
		return;
	gci_agent_msg_put_origin(&b, from);
	put_down(r, &b);
}

static int spawn(struct relay *r, char **argv, struct gci_error *e)
{
	uv_pipe_t *const pipes[3] = {&r->pipes[0], &r->pipes[1], &r->pipes[2]};
	/* One that outlives us would keep the agent alive that it leads to. */
	struct gci_spawn s = {.argv = argv, .death_signal = SIGTERM, .new_session = 1};
	int i, rc = gci_pipe_spawn(&gci_me.loop, &s, pipes, &r->pid, e);

	if (!r->pid)
		return rc;
	for (i = 0; i < 3; i++)
		r->pipes[i].data = r;
	r->nopen = 3;
	r->next = relays;
	relays = r;
	if (rc) {
		kill(r->pid, SIGKILL);
		return 0;
	}
	tell_origin(r);
	read_on(r);
	return 0;
}

void gci_relay_start(struct gci_agent_msg *f)
{
	struct gci_error e = {0};
	struct relay *r;
	char **argv;
	uint32_t id;

	if (gci_agent_msg_get_relay_start(f, &id, &argv) || find(id)) {
		gci_agent_msg_argv_free(argv);
		gci_agent_send_error("malformed message to start another agent");
		return;
	}
	r = gci_calloc(1, sizeof(*r));
	if (r)
		r->id = id;
	if (!r || spawn(r, argv, &e)) {
		send_ended(id, 1, 0, r ? e.text : "out of memory");
		gci_free(r);
	}
	gci_agent_msg_argv_free(argv);
}

void gci_relay_data(struct gci_agent_msg *f)
{
	struct gci_agent_msg_relay_data m;
	struct gci_buf b = {.secret = 1}; /* which may be in it */
	struct relay *r;

	if (gci_agent_msg_get_relay_data(f, &m) || m.stream) {
		gci_agent_send_error("malformed message for another agent");
		return;
	}
	r = find(m.id);
	if (!r)
		return;
	if (!m.nbytes) {
		kill(-r->pid, SIGKILL);
		return;
	}
	gci_buf_put(&b, m.data, m.nbytes);
	put_down(r, &b);
}

/* ---- its end ---- */

int gci_relay_reaped(pid_t pid, int status)
{
	struct relay **at = &relays, *r;

	while ((r = *at) && r->pid != pid)
		at = &r->next;
	if (!r)
		return 0;
	gci_pipe_drain(&r->pipes[1], on_read);
	gci_pipe_drain(&r->pipes[2], on_read);
	*at = r->next;
	if (r->overfull)
		send_ended(r->id, 1, 0, "more was said to it than it took");
	else if (WIFSIGNALED(status))
		send_ended(r->id, 0, WTERMSIG(status), "");
	else
		send_ended(r->id, WEXITSTATUS(status), 0, "");
	close_pipes(r);
	return 1;
}

int gci_relay_end(void)
{
	struct relay *r;
	int n = 0;

	for (r = relays; r; r = r->next, n++)
		close_pipe(&r->pipes[0]);
	return n;
}
