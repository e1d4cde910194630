/* SPDX-License-Identifier: MIT */
#include "launcher/agent_internal.h"
#include "launcher/pipes.h"
#include "launcher/relay.h"
#include "launcher/spawn.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define KILL_AGAIN_MS 5

static void read_more(struct agent_stream *s);

static void send_ended(const struct agent_rank *k, int code, int sig, const char *why)
{
	const struct gci_frame_ended m = {k->rank, code, sig, (char *)(uintptr_t)why};
	struct gci_buf b = {0};

	gci_frame_put_ended(&b, GCI_FRAME_ENDED, &m);
	gci_agent_send_up(&b);
}

/* nbytes == 0: this stream has ended. */
static void send_output(const struct agent_stream *s, const void *data, size_t nbytes)
{
	struct gci_buf b = {0};
	size_t at = gci_frame_begin(&b, GCI_FRAME_OUTPUT);

	gci_buf_put_u32(&b, s->rank->rank);
	gci_buf_put_u32(&b, s->which);
	gci_buf_put(&b, data, nbytes);
	gci_frame_end(&b, at);
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
	static char bytes[GCI_FRAME_DATA];
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

void gci_agent_on_credit(uint32_t n)
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
void gci_agent_on_children(uv_signal_t *h, int signum)
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
		gci_frame_put_u32(&b, GCI_FRAME_TAKEN, (uint32_t)nbytes);
		gci_agent_send_up(&b);
	}
	/* When rank 0 does not want it, nothing more is TAKEN, and no more will come. */
	if (status || (gci_me.stdin_ending && !gci_me.stdin_queued))
		close_stdin();
}

void gci_agent_on_stdin(struct gci_reader *r)
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

void gci_agent_on_signal(int sig, uint32_t rank)
{
	int ends = sig == SIGINT || sig == SIGTERM || sig == SIGHUP || sig == SIGQUIT ||
		   sig == SIGKILL;
	uint32_t i;

	if (sig <= 0 || sig >= NSIG)
		return;
	for (i = 0; i < gci_me.nranks; i++) {
		struct agent_rank *k = &gci_me.ranks[i];

		if (rank != GCI_FRAME_ALL && rank != k->rank)
			continue;
		if (k->pid)
			kill(-k->pid, sig);
		else if (ends)
			end_unstarted(k, sig);
	}
}

void gci_agent_on_hush(uint32_t which)
{
	uint32_t i;

	for (i = 0; i < gci_me.nranks && (which == 1 || which == 2); i++)
		close_stream(&gci_me.ranks[i].out[which - 1]);
}

/* Again and again, since a fork may have slipped through; gci_agent_on_children reaps. Agents
 * elsewhere hear of it themselves. */
void gci_agent_on_kill(uv_timer_t *t)
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

void gci_agent_start_rank(struct agent_rank *k)
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
