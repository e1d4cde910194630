/* SPDX-License-Identifier: MIT */
#include "launcher/agent.h"

#include "base/log.h"
#include "base/mem.h"
#include "launcher/agent_internal.h"
#include "launcher/netns.h"
#include "launcher/pipes.h"
#include "launcher/relay.h"
#include "launcher/spawn.h"
#include "shaping/edt.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define END_TIMEOUT_NS (5 * GCI_NS_PER_S)
#define PATIENCE_MS    5000 /* with agents elsewhere that have lost their input */

struct agent gci_me;

void gci_agent_finish(int status)
{
	gci_me.status = status;
	uv_stop(&gci_me.loop);
}

static void on_sent(uv_stream_t *to, size_t nbytes, int status)
{
	(void)to;
	(void)nbytes;
	if (status)
		gci_agent_finish(1); /* nobody listens any more */
	else
		gci_relay_resume();
}

size_t gci_agent_behind(void)
{
	return uv_stream_get_write_queue_size((uv_stream_t *)&gci_me.up);
}

void gci_agent_send_up(struct gci_buf *b)
{
	int rc = gci_pipe_send((uv_stream_t *)&gci_me.up, b, on_sent);

	if (rc == UV_ENOMEM)
		fprintf(stderr, "out of memory\n");
	if (rc)
		gci_agent_finish(1);
}

void gci_agent_send_error(const char *text)
{
	struct gci_buf b = {0};
	size_t at = gci_frame_begin(&b, GCI_FRAME_ERROR);

	gci_buf_put_str(&b, text);
	gci_frame_end(&b, at);
	gci_agent_send_up(&b);
}

int gci_agent_origin(char *out, size_t size)
{
	const char *from = gci_me.origin ? gci_me.origin : getenv("SSH_CONNECTION");

	if (!from)
		return -1;
	snprintf(out, size, "%.*s", (int)strcspn(from, " "), from);
	return 0;
}

/* ":PORT" means the host that ssh came from, as seen from here. */
static const char *rendezvous(char *out, size_t size)
{
	const char *given = gci_me.job.rendezvous;
	char from[GCI_FRAME_ADDRESS + 1];

	if (*given != ':' || gci_agent_origin(from, sizeof(from)))
		return given;
	snprintf(out, size, strchr(from, ':') ? "[%s]%s" : "%s%s", from, given);
	return out;
}

static void set_environment(void)
{
	char where[160], **env;

	for (env = gci_me.job.env; *env; env++) {
		char *eq = strchr(*env, '=');

		if (!eq) {
			unsetenv(*env);
			continue;
		}
		*eq = '\0';
		setenv(*env, eq + 1, 1);
	}
	setenv("GRIDCOLL_RENDEZVOUS", rendezvous(where, sizeof(where)), 1);
	setenv("GRIDCOLL_SECRET_FD", "3", 1);
}

static void on_impatience(uv_timer_t *t)
{
	(void)t;
	gci_agent_finish(0);
}

void gci_agent_end(void)
{
	gci_me.ending = 1;
	gci_agent_on_signal(SIGKILL, GCI_FRAME_ALL);
	if (gci_relay_end())
		uv_timer_start(&gci_me.patience, on_impatience, PATIENCE_MS, 0);
	else
		gci_agent_finish(0);
}

static void on_watch(uv_timer_t *t)
{
	(void)t;
	if (gci_now_ns() - gci_me.heard_ns <= gci_me.job.dead_ns)
		return;
	fprintf(stderr, "heard nothing from gridcoll-run for %" PRIu64 " s\n",
		gci_me.job.dead_ns / GCI_NS_PER_S);
	gci_agent_finish(1);
}

/* Whoever started the job may have been where this host has no directory. */
static void choose_directory(void)
{
	struct gci_frame_start *m = &gci_me.job;
	const char *home = getenv("HOME");
	char *own;

	if (!m->or_home || !*m->cwd || !access(m->cwd, X_OK) || !home || access(home, X_OK))
		return;
	own = gci_strdup(home);
	if (!own)
		return; /* then it is told that there is no such directory */
	fprintf(stderr, "cannot enter %.200s there, its ranks run in %.200s (see --chdir)\n",
		m->cwd, home);
	gci_free(m->cwd);
	m->cwd = own;
}

/* One rank at a time: between them the agent hears, answers and ends as at any other time. */
static void on_starting(uv_idle_t *h)
{
	struct agent_rank *k;

	while (gci_me.next < gci_me.nranks) {
		k = &gci_me.ranks[gci_me.next++];
		if (k->begun)
			continue;
		k->begun = 1;
		gci_agent_start_rank(k);
		return;
	}
	uv_idle_stop(h);
	explicit_bzero(gci_me.job.secret, sizeof(gci_me.job.secret));
}

static void on_start(struct gci_frame *f)
{
	uint32_t i;

	if (gci_me.started || gci_frame_get_start(f, &gci_me.job)) {
		gci_agent_send_error("malformed start message");
		return;
	}
	gci_me.ranks = gci_calloc(gci_me.job.nranks, sizeof(*gci_me.ranks));
	if (!gci_me.ranks) {
		gci_agent_send_error("out of memory");
		return;
	}
	gci_me.started = 1;
	gci_me.nranks = gci_me.job.nranks;
	set_environment();
	choose_directory();
	if (gci_me.job.dead_ns)
		uv_timer_start(&gci_me.watch, on_watch, 1000, 1000);
	for (i = 0; i < gci_me.nranks; i++) {
		gci_me.ranks[i].rank = gci_me.job.ranks[i];
		gci_me.ranks[i].out[0].fd = gci_me.ranks[i].out[1].fd = -1;
	}
	uv_idle_start(&gci_me.starting, on_starting);
	on_starting(&gci_me.starting); /* rank 0, if it is here: its input may be next */
}

static void on_origin(struct gci_frame *f)
{
	gci_free(gci_me.origin);
	gci_me.origin = gci_frame_get_origin(f);
	if (!gci_me.origin)
		gci_agent_send_error("malformed message of whence ssh came");
}

static void answer(void)
{
	struct gci_buf b = {0};

	gci_frame_end(&b, gci_frame_begin(&b, GCI_FRAME_PONG));
	gci_agent_send_up(&b);
}

static void on_frame(struct gci_frame *f)
{
	uint32_t n;

	switch (f->type) {
	case GCI_FRAME_START:
		on_start(f);
		break;
	case GCI_FRAME_STDIN:
		gci_agent_on_stdin(&f->r);
		break;
	case GCI_FRAME_CREDIT:
		gci_agent_on_credit(gci_read_u32(&f->r));
		break;
	case GCI_FRAME_SIGNAL:
		n = gci_read_u32(&f->r);
		gci_agent_on_signal((int)n, gci_read_u32(&f->r));
		break;
	case GCI_FRAME_HUSH:
		gci_agent_on_hush(gci_read_u32(&f->r));
		break;
	case GCI_FRAME_KILL:
		gci_agent_on_kill(&gci_me.kill_again);
		break;
	case GCI_FRAME_PING:
		answer();
		break;
	case GCI_FRAME_RELAY_START:
		gci_relay_start(f);
		break;
	case GCI_FRAME_RELAY_DATA:
		gci_relay_data(f);
		break;
	case GCI_FRAME_ORIGIN:
		on_origin(f);
		break;
	default:
		gci_agent_send_error("unknown frame from the launcher");
	}
}

static void on_alloc(uv_handle_t *h, size_t want, uv_buf_t *buf)
{
	static char space[65536];

	(void)h;
	(void)want;
	*buf = uv_buf_init(space, sizeof(space));
}

/* Below here, where registers were saved that memcpy had the secret in. */
static __attribute__((noinline)) void wipe_stack(void)
{
	uint8_t below[16384];

	explicit_bzero(below, sizeof(below));
}

static void on_input(uv_stream_t *from, ssize_t n, const uv_buf_t *buf)
{
	struct gci_error e = {0};
	struct gci_frame f;
	size_t at = 0;
	int rc;

	(void)from;
	gci_me.heard_ns = gci_now_ns();
	if (n < 0) {
		gci_agent_end(); /* the launcher is done, or gone */
		return;
	}
	gci_buf_put(&gci_me.input, buf->base, (size_t)n);
	explicit_bzero(buf->base, (size_t)n); /* the secret may be in it, our own or for others */
	while ((rc = gci_frame_next(&gci_me.input, &at, &f, &e)) == 1)
		on_frame(&f);
	gci_buf_consume(&gci_me.input, at);
	if (!gci_me.input.len) {
		gci_buf_free(&gci_me.input);
		gci_me.input.secret = 1;
		wipe_stack();
	}
	if (rc < 0) {
		fprintf(stderr, "%s\n", e.text);
		gci_agent_finish(1);
	}
}

static void on_term(uv_signal_t *h, int signum)
{
	(void)h;
	gci_agent_finish(128 + signum);
}

static int open_up(struct gci_error *e)
{
	struct gci_buf magic = {0};

	uv_pipe_init(&gci_me.loop, &gci_me.in, 0);
	uv_pipe_init(&gci_me.loop, &gci_me.up, 0);
	uv_pipe_init(&gci_me.loop, &gci_me.rank0, 0);
	uv_timer_init(&gci_me.loop, &gci_me.watch);
	uv_timer_init(&gci_me.loop, &gci_me.kill_again);
	uv_timer_init(&gci_me.loop, &gci_me.patience);
	uv_idle_init(&gci_me.loop, &gci_me.starting);
	uv_signal_init(&gci_me.loop, &gci_me.children);
	uv_signal_init(&gci_me.loop, &gci_me.term);
	if (isatty(0) || uv_pipe_open(&gci_me.in, 0) || uv_pipe_open(&gci_me.up, 1))
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"--agent is for gridcoll-run's own use: expected pipes");
	uv_signal_start(&gci_me.children, gci_agent_on_children, SIGCHLD);
	uv_signal_start(&gci_me.term, on_term, SIGTERM);
	gci_buf_printf(&magic, "%s", GCI_FRAME_MAGIC);
	gci_agent_send_up(&magic);
	uv_read_start((uv_stream_t *)&gci_me.in, on_alloc, on_input);
	return 0;
}

int gci_agent_main(const char *netns)
{
	struct gci_error e = {0};
	int rc = 0;

	gci_log_init("gridcoll-run --agent");
	signal(SIGPIPE, SIG_IGN);
	gci_tree_adopt();
	gci_raise_fd_limit();
	gci_me.credit = GCI_FRAME_WINDOW;
	gci_me.input.secret = 1;
	if (netns)
		rc = gci_ns_join(netns, &e);
	if (!rc && uv_loop_init(&gci_me.loop))
		rc = gci_error_set(&e, GCOLL_ERR_SYS, "cannot make an event loop");
	if (!rc)
		rc = open_up(&e);
	if (rc) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	uv_run(&gci_me.loop, UV_RUN_DEFAULT);
	if (gci_tree_end(END_TIMEOUT_NS))
		fprintf(stderr, "some processes did not end\n");
	gci_edt_sweep(); /* after ranks that could not */
	gci_buf_free(&gci_me.input);
	gci_frame_start_free(&gci_me.job);
	gci_free(gci_me.origin);
	return gci_me.status;
}
