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

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void gci_agent_finish(int status);

/* ---- The processes of its ranks. */

#define KILL_AGAIN_MS 5

static void read_more(struct agent_stream *s);

static void send_ended(const struct agent_rank *k, int code, int sig, const char *why)
{
	const struct gci_agent_msg_ended m = {k->rank, code, sig, (char *)(uintptr_t)why};
	struct gci_buf b = {0};

	gci_agent_msg_put_ended(&b, GCI_AGENT_MSG_ENDED, &m);
	gci_agent_send_up(&b);
}

/* nbytes == 0: this stream has ended. */
static void send_output(const struct agent_stream *s, const void *data, size_t nbytes)
{
	struct gci_buf b = {0};
	size_t at = gci_agent_msg_begin(&b, GCI_AGENT_MSG_OUTPUT);

	gci_buf_put_u32(&b, s->rank->rank);
	gci_buf_put_u32(&b, s->which);
	gci_buf_put(&b, data, nbytes);
	gci_agent_msg_end(&b, at);
	gci_me.credit -= (uint32_t)nbytes;
	gci_agent_send_up(&b);
}

static void on_poll_closed(uv_handle_t *h)
{
	struct agent_stream *s = h->data;

	close(s->fd);
	s->fd = -1;
}

static void close_stream(struct agent_stream *s)
{
	if (s->fd < 0 || uv_is_closing((uv_handle_t *)&s->poll))
		return;
	send_output(s, NULL, 0);
	uv_close((uv_handle_t *)&s->poll, on_poll_closed);
}

static int open_still(const struct agent_stream *s)
{
	return s->fd >= 0 && !uv_is_closing((const uv_handle_t *)&s->poll);
}

static void on_readable(uv_poll_t *h, int status, int events)
{
	(void)status;
	(void)events;
	read_more(h->data);
}

static void set_polling(struct agent_stream *s, int on)
{
	if (s->polling == on)
		return;
	s->polling = on;
	if (on)
		uv_poll_start(&s->poll, UV_READABLE, on_readable);
	else
		uv_poll_stop(&s->poll);
}

static void lose_output(const struct agent_stream *s, int error)
{
	char text[128];

	snprintf(text, sizeof(text), "cannot read what rank %u printed: %s", s->rank->rank,
		strerror(error));
	gci_agent_send_error(text);
}

/* One piece; all there is, once the process has ended: then a pipe that is empty is at its end,
 * whoever else may hold it open. */
static void read_more(struct agent_stream *s)
{
	static char bytes[GCI_AGENT_MSG_DATA];
	ssize_t n;

	do {
		size_t room = gci_me.credit < sizeof(bytes) ? gci_me.credit : sizeof(bytes);

		if (!room) {
			set_polling(s, 0); /* until credit comes */
			return;
		}
		n = read(s->fd, bytes, room);
		if (n > 0)
			send_output(s, bytes, (size_t)n);
	} while ((n > 0 && !s->rank->pid) || (n < 0 && errno == EINTR));
	if (n > 0 || (n < 0 && errno == EAGAIN && s->rank->pid))
		return;
	if (n < 0 && errno != EAGAIN)
		lose_output(s, errno);
	close_stream(s);
}

static void gci_agent_on_credit(uint32_t n)
{
	uint32_t i;

	gci_me.credit += n;
	for (i = 0; i < 2 * gci_me.nranks; i++) {
		struct agent_stream *s = &gci_me.ranks[i / 2].out[i % 2];

		if (!open_still(s))
			continue;
		if (gci_me.ranks[i / 2].pid)
			set_polling(s, 1);
		else
			read_more(s);
	}
}

static void rank_ended(struct agent_rank *k, int status)
{
	int i;

	k->pid = 0;
	if (WIFSIGNALED(status))
		send_ended(k, 0, WTERMSIG(status), "");
	else
		send_ended(k, WEXITSTATUS(status), 0, "");
	for (i = 0; i < 2; i++)
		if (open_still(&k->out[i]))
			read_more(&k->out[i]);
}

/* Orphans come here as well; nobody asks for their status. */
static void gci_agent_on_children(uv_signal_t *h, int signum)
{
	int status;
	pid_t pid;
	uint32_t i;

	(void)h;
	(void)signum;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (gci_relay_reaped(pid, status))
			continue;
		for (i = 0; i < gci_me.nranks; i++)
			if (gci_me.ranks[i].pid == pid)
				rank_ended(&gci_me.ranks[i], status);
	}
	if (gci_me.ending && !gci_relay_end())
		gci_agent_finish(0);
}

static void on_stdin_closed(uv_handle_t *h)
{
	(void)h;
}

static void close_stdin(void)
{
	if (gci_me.stdin_open)
		uv_close((uv_handle_t *)&gci_me.rank0, on_stdin_closed);
	gci_me.stdin_open = 0;
}

static void on_stdin_written(uv_stream_t *to, size_t nbytes, int status)
{
	struct gci_buf b = {0};

	(void)to;
	gci_me.stdin_queued -= (uint32_t)nbytes;
	if (!status) {
		gci_agent_msg_put_u32(&b, GCI_AGENT_MSG_TAKEN, (uint32_t)nbytes);
		gci_agent_send_up(&b);
	}
	/* When rank 0 does not want it, nothing more is TAKEN, and no more will come. */
	if (status || (gci_me.stdin_ending && !gci_me.stdin_queued))
		close_stdin();
}

static void gci_agent_on_stdin(struct gci_reader *r)
{
	struct gci_buf b = {0};
	int rc;

	if (!gci_me.stdin_open)
		return;
	if (!r->len) {
		gci_me.stdin_ending = 1;
		if (!gci_me.stdin_queued)
			close_stdin();
		return;
	}
	gci_me.stdin_queued += (uint32_t)r->len;
	gci_buf_put(&b, r->data, r->len);
	rc = gci_pipe_send((uv_stream_t *)&gci_me.rank0, &b, on_stdin_written);
	if (rc == UV_ENOMEM) /* it must not take this for the end of its input */
		gci_agent_send_error("out of memory for standard input");
	else if (rc)
		close_stdin();
}

/* A rank that is not started yet never will be, and has ended as if it had been. */
static void end_unstarted(struct agent_rank *k, int sig)
{
	if (k->begun)
		return;
	k->begun = 1;
	if (!gci_me.ending)
		send_ended(k, 0, sig, "");
}

static void gci_agent_on_signal(int sig, uint32_t rank)
{
	int ends = sig == SIGINT || sig == SIGTERM || sig == SIGHUP || sig == SIGQUIT ||
		   sig == SIGKILL;
	uint32_t i;

	if (sig <= 0 || sig >= NSIG)
		return;
	for (i = 0; i < gci_me.nranks; i++) {
		struct agent_rank *k = &gci_me.ranks[i];

		if (rank != GCI_AGENT_MSG_ALL && rank != k->rank)
			continue;
		if (k->pid)
			kill(-k->pid, sig);
		else if (ends)
			end_unstarted(k, sig);
	}
}

static void gci_agent_on_hush(uint32_t which)
{
	uint32_t i;

	for (i = 0; i < gci_me.nranks && (which == 1 || which == 2); i++)
		close_stream(&gci_me.ranks[i].out[which - 1]);
}

/* Again and again, since a fork may have slipped through; gci_agent_on_children reaps. Agents
 * elsewhere hear of it themselves. */
static void gci_agent_on_kill(uv_timer_t *t)
{
	uint32_t i;

	for (i = 0; i < gci_me.nranks; i++)
		end_unstarted(&gci_me.ranks[i], SIGKILL);
	if (gci_tree_kill(gci_relay_is))
		uv_timer_start(t, gci_agent_on_kill, KILL_AGAIN_MS, 0);
}

/* The secret goes into a pipe, which holds it until the rank reads it: no file, no argument. */
static int secret_pipe(int *fd, struct gci_error *e)
{
	int fds[2], rc;

	rc = gci_pipe(fds, e);
	if (rc)
		return rc;
	if (write(fds[1], gci_me.job.secret, GCI_SECRET_NBYTES) != GCI_SECRET_NBYTES)
		rc = gci_error_errno(e, "cannot hand over the job's secret");
	close(fds[1]);
	*fd = fds[0];
	return rc;
}

/* Makes the pipe for fds[which], keeps our end. */
static int output_pipe(struct agent_rank *k, uint32_t which, int *fd, struct gci_error *e)
{
	struct agent_stream *s = &k->out[which - 1];
	int fds[2];

	if (gci_pipe(fds, e))
		return GCOLL_ERR_SYS;
	*fd = fds[1];
	s->rank = k;
	s->which = which;
	s->poll.data = s;
	if (uv_poll_init(&gci_me.loop, &s->poll, fds[0])) {
		close(fds[0]);
		return gci_error_set(e, GCOLL_ERR_SYS, "cannot watch a pipe");
	}
	s->fd = fds[0];
	set_polling(s, 1);
	return 0;
}

static int input_pipe(int *fd, struct gci_error *e)
{
	int fds[2];

	if (gci_pipe(fds, e))
		return GCOLL_ERR_SYS;
	*fd = fds[0];
	if (uv_pipe_open(&gci_me.rank0, fds[1])) {
		close(fds[1]);
		return gci_error_set(e, GCOLL_ERR_SYS, "cannot use a pipe");
	}
	gci_me.stdin_open = 1;
	return 0;
}

static int start_process(struct agent_rank *k, struct gci_error *e)
{
	struct gci_spawn s = {.argv = gci_me.job.argv,
		.cwd = *gci_me.job.cwd ? gci_me.job.cwd : NULL,
		.fds = {-1, -1, -1, -1},
		.death_signal = SIGKILL};
	char number[16];
	int i, rc;

	snprintf(number, sizeof(number), "%u", k->rank);
	setenv("GRIDCOLL_RANK", number, 1);
	rc = k->rank ? 0 : input_pipe(&s.fds[0], e);
	for (i = 1; i <= 2 && !rc; i++)
		rc = output_pipe(k, (uint32_t)i, &s.fds[i], e);
	if (!rc)
		rc = secret_pipe(&s.fds[3], e);
	if (!rc)
		rc = gci_spawn(&s, &k->pid, e);
	if (rc)
		k->pid = 0;
	for (i = 0; i < GCI_SPAWN_FDS; i++)
		if (s.fds[i] >= 0)
			close(s.fds[i]);
	return rc;
}

static void gci_agent_start_rank(struct agent_rank *k)
{
	struct gci_error e = {0};
	int i, code;

	errno = 0;
	if (!start_process(k, &e))
		return;
	code = errno == ENOENT ? 127 : 126; /* as a shell has it */
	for (i = 0; i < 2; i++)
		close_stream(&k->out[i]);
	send_ended(k, code, 0, e.text);
}

/* ---- The conversation with the launcher. */

#define END_TIMEOUT_NS (5 * GCI_NS_PER_S)
#define PATIENCE_MS    5000 /* with agents elsewhere that have lost their input */

struct agent gci_me;

/* Ends the agent, and all that it started. */
static void gci_agent_finish(int status)
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
	size_t at = gci_agent_msg_begin(&b, GCI_AGENT_MSG_ERROR);

	gci_buf_put_str(&b, text);
	gci_agent_msg_end(&b, at);
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
	char from[GCI_AGENT_MSG_ADDRESS + 1];

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

/* Ends the agent, once those that it started elsewhere have ended by themselves. */
static void gci_agent_end(void)
{
	gci_me.ending = 1;
	gci_agent_on_signal(SIGKILL, GCI_AGENT_MSG_ALL);
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
	struct gci_agent_msg_start *m = &gci_me.job;
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

static void on_start(struct gci_agent_msg *f)
{
	uint32_t i;

	if (gci_me.started || gci_agent_msg_get_start(f, &gci_me.job)) {
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

static void on_origin(struct gci_agent_msg *f)
{
	gci_free(gci_me.origin);
	gci_me.origin = gci_agent_msg_get_origin(f);
	if (!gci_me.origin)
		gci_agent_send_error("malformed message of whence ssh came");
}

static void answer(void)
{
	struct gci_buf b = {0};

	gci_agent_msg_end(&b, gci_agent_msg_begin(&b, GCI_AGENT_MSG_PONG));
	gci_agent_send_up(&b);
}

static void on_frame(struct gci_agent_msg *f)
{
	uint32_t n;

	switch (f->type) {
	case GCI_AGENT_MSG_START:
		on_start(f);
		break;
	case GCI_AGENT_MSG_STDIN:
		gci_agent_on_stdin(&f->r);
		break;
	case GCI_AGENT_MSG_CREDIT:
		gci_agent_on_credit(gci_read_u32(&f->r));
		break;
	case GCI_AGENT_MSG_SIGNAL:
		n = gci_read_u32(&f->r);
		gci_agent_on_signal((int)n, gci_read_u32(&f->r));
		break;
	case GCI_AGENT_MSG_HUSH:
		gci_agent_on_hush(gci_read_u32(&f->r));
		break;
	case GCI_AGENT_MSG_KILL:
		gci_agent_on_kill(&gci_me.kill_again);
		break;
	case GCI_AGENT_MSG_PING:
		answer();
		break;
	case GCI_AGENT_MSG_RELAY_START:
		gci_relay_start(f);
		break;
	case GCI_AGENT_MSG_RELAY_DATA:
		gci_relay_data(f);
		break;
	case GCI_AGENT_MSG_ORIGIN:
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
	struct gci_agent_msg f;
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
	while ((rc = gci_agent_msg_next(&gci_me.input, &at, &f, &e)) == 1)
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
	gci_buf_printf(&magic, "%s", GCI_AGENT_MSG_MAGIC);
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
	gci_me.credit = GCI_AGENT_MSG_WINDOW;
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
	gci_agent_msg_start_free(&gci_me.job);
	gci_free(gci_me.origin);
	return gci_me.status;
}
