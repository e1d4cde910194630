/* SPDX-License-Identifier: MIT */
#include "launcher/agent.h"

#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "launcher/frames.h"
#include "launcher/netns.h"
#include "launcher/pipes.h"
#include "launcher/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#define END_TIMEOUT_NS (5 * GCI_NS_PER_S)
#define KILL_AGAIN_MS  5

struct rank;

/* The reading end of a rank's standard output or error. */
struct stream {
	uv_poll_t poll;
	struct rank *rank;
	uint32_t which; /* 1 or 2 */
	int fd;         /* -1: closed */
	int polling;
};

struct rank {
	uint32_t rank;
	pid_t pid; /* 0: not started, or ended */
	struct stream out[2];
};

struct agent {
	uv_loop_t loop;
	uv_pipe_t in, up; /* from and to the launcher */
	uv_pipe_t rank0;  /* rank 0's standard input */
	uv_signal_t children, term;
	uv_timer_t watch, kill_again;
	struct gci_buf input;
	struct gci_frame_start job;
	struct rank *ranks;
	uint32_t nranks;
	uint32_t credit; /* payload bytes we may send */
	uint32_t stdin_queued;
	int started, stdin_open, stdin_ending;
	uint64_t heard_ns;
	int status;
};

static struct agent agent; /* one per process, as are its children */

static void read_more(struct stream *s);

static void finish(int status)
{
	agent.status = status;
	uv_stop(&agent.loop);
}

static void on_sent(uv_stream_t *to, size_t nbytes, int status)
{
	(void)to;
	(void)nbytes;
	if (status)
		finish(1); /* nobody listens any more */
}

static void send_up(struct gci_buf *b)
{
	if (gci_send((uv_stream_t *)&agent.up, b, on_sent))
		finish(1);
}

static void send_error(const char *text)
{
	struct gci_buf b = {0};
	size_t at = gci_frame_begin(&b, GCI_FRAME_ERROR);

	gci_buf_put_str(&b, text);
	gci_frame_end(&b, at);
	send_up(&b);
}

static void send_ended(const struct rank *k, int code, int sig, const char *why)
{
	struct gci_buf b = {0};
	size_t at = gci_frame_begin(&b, GCI_FRAME_ENDED);

	gci_buf_put_u32(&b, k->rank);
	gci_buf_put_u32(&b, (uint32_t)code);
	gci_buf_put_u32(&b, (uint32_t)sig);
	gci_buf_put_str(&b, why);
	gci_frame_end(&b, at);
	send_up(&b);
}

/* nbytes == 0: this stream has ended. */
static void send_output(const struct stream *s, const void *data, size_t nbytes)
{
	struct gci_buf b = {0};
	size_t at = gci_frame_begin(&b, GCI_FRAME_OUTPUT);

	gci_buf_put_u32(&b, s->rank->rank);
	gci_buf_put_u32(&b, s->which);
	gci_buf_put(&b, data, nbytes);
	gci_frame_end(&b, at);
	agent.credit -= (uint32_t)nbytes;
	send_up(&b);
}

static void on_poll_closed(uv_handle_t *h)
{
	struct stream *s = h->data;

	close(s->fd);
	s->fd = -1;
}

static void close_stream(struct stream *s)
{
	if (s->fd < 0 || uv_is_closing((uv_handle_t *)&s->poll))
		return;
	send_output(s, NULL, 0);
	uv_close((uv_handle_t *)&s->poll, on_poll_closed);
}

static int open_still(const struct stream *s)
{
	return s->fd >= 0 && !uv_is_closing((const uv_handle_t *)&s->poll);
}

static void on_readable(uv_poll_t *h, int status, int events)
{
	(void)status;
	(void)events;
	read_more(h->data);
}

static void set_polling(struct stream *s, int on)
{
	if (s->polling == on)
		return;
	s->polling = on;
	if (on)
		uv_poll_start(&s->poll, UV_READABLE, on_readable);
	else
		uv_poll_stop(&s->poll);
}

/* One piece; all there is, once the process has ended: then a pipe that is empty is at its end,
 * whoever else may hold it open. */
static void read_more(struct stream *s)
{
	static char bytes[GCI_FRAME_DATA];
	ssize_t n;

	do {
		size_t room = agent.credit < sizeof(bytes) ? agent.credit : sizeof(bytes);

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
	close_stream(s);
}

static void on_credit(uint32_t n)
{
	uint32_t i;

	agent.credit += n;
	for (i = 0; i < 2 * agent.nranks; i++) {
		struct stream *s = &agent.ranks[i / 2].out[i % 2];

		if (!open_still(s))
			continue;
		if (agent.ranks[i / 2].pid)
			set_polling(s, 1);
		else
			read_more(s);
	}
}

static void rank_ended(struct rank *k, int status)
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
static void on_children(uv_signal_t *h, int signum)
{
	int status;
	pid_t pid;
	uint32_t i;

	(void)h;
	(void)signum;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (i = 0; i < agent.nranks; i++)
			if (agent.ranks[i].pid == pid)
				rank_ended(&agent.ranks[i], status);
}

static void on_stdin_closed(uv_handle_t *h)
{
	(void)h;
}

static void close_stdin(void)
{
	if (agent.stdin_open)
		uv_close((uv_handle_t *)&agent.rank0, on_stdin_closed);
	agent.stdin_open = 0;
}

static void on_stdin_written(uv_stream_t *to, size_t nbytes, int status)
{
	struct gci_buf b = {0};

	(void)to;
	agent.stdin_queued -= (uint32_t)nbytes;
	if (!status) {
		gci_frame_put_u32(&b, GCI_FRAME_TAKEN, (uint32_t)nbytes);
		send_up(&b);
	}
	/* When rank 0 does not want it, nothing more is TAKEN, and no more will come. */
	if (status || (agent.stdin_ending && !agent.stdin_queued))
		close_stdin();
}

static void on_stdin(struct gci_reader *r)
{
	struct gci_buf b = {0};

	if (!agent.stdin_open)
		return;
	if (!r->len) {
		agent.stdin_ending = 1;
		if (!agent.stdin_queued)
			close_stdin();
		return;
	}
	agent.stdin_queued += (uint32_t)r->len;
	gci_buf_put(&b, r->data, r->len);
	if (gci_send((uv_stream_t *)&agent.rank0, &b, on_stdin_written))
		close_stdin();
}

static void on_signal(int sig, uint32_t rank)
{
	uint32_t i;

	if (sig <= 0 || sig >= NSIG)
		return;
	for (i = 0; i < agent.nranks; i++)
		if (agent.ranks[i].pid && (rank == GCI_FRAME_ALL || rank == agent.ranks[i].rank))
			kill(-agent.ranks[i].pid, sig);
}

static void on_hush(uint32_t which)
{
	uint32_t i;

	for (i = 0; i < agent.nranks && (which == 1 || which == 2); i++)
		close_stream(&agent.ranks[i].out[which - 1]);
}

/* Again and again, since a fork may have slipped through; on_children reaps. */
static void on_kill(uv_timer_t *t)
{
	if (gci_tree_kill())
		uv_timer_start(t, on_kill, KILL_AGAIN_MS, 0);
}

/* The secret goes into a pipe, which holds it until the rank reads it: no file, no argument. */
static int secret_pipe(int *fd, struct gci_error *e)
{
	int fds[2], rc;

	rc = gci_pipe(fds, e);
	if (rc)
		return rc;
	if (write(fds[1], agent.job.secret, GCI_SECRET_NBYTES) != GCI_SECRET_NBYTES)
		rc = gci_error_errno(e, "cannot hand over the job's secret");
	close(fds[1]);
	*fd = fds[0];
	return rc;
}

/* Makes the pipe for fds[which], keeps our end. */
static int output_pipe(struct rank *k, uint32_t which, int *fd, struct gci_error *e)
{
	struct stream *s = &k->out[which - 1];
	int fds[2];

	if (gci_pipe(fds, e))
		return GCOLL_ERR_SYS;
	*fd = fds[1];
	s->rank = k;
	s->which = which;
	s->poll.data = s;
	if (uv_poll_init(&agent.loop, &s->poll, fds[0])) {
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
	if (uv_pipe_open(&agent.rank0, fds[1])) {
		close(fds[1]);
		return gci_error_set(e, GCOLL_ERR_SYS, "cannot use a pipe");
	}
	agent.stdin_open = 1;
	return 0;
}

static int start_process(struct rank *k, struct gci_error *e)
{
	struct gci_spawn s = {.argv = agent.job.argv,
		.cwd = *agent.job.cwd ? agent.job.cwd : NULL,
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

static void start_rank(struct rank *k)
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

/* ":PORT" means the host that ssh came from, as seen from here. */
static const char *rendezvous(char *out, size_t size)
{
	const char *from = getenv("SSH_CONNECTION"), *given = agent.job.rendezvous;
	int len;

	if (*given != ':' || !from)
		return given;
	len = (int)strcspn(from, " ");
	if (memchr(from, ':', (size_t)len))
		snprintf(out, size, "[%.*s]%s", len, from, given);
	else
		snprintf(out, size, "%.*s%s", len, from, given);
	return out;
}

static void set_environment(void)
{
	char where[160], **env;

	for (env = agent.job.env; *env; env++) {
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

static void on_watch(uv_timer_t *t)
{
	(void)t;
	if (gci_now_ns() - agent.heard_ns > agent.job.dead_ns)
		finish(1);
}

static void on_start(struct gci_frame *f)
{
	uint32_t i;

	if (agent.started || gci_frame_get_start(f, &agent.job)) {
		send_error("malformed start message");
		return;
	}
	agent.ranks = gci_calloc(agent.job.nranks, sizeof(*agent.ranks));
	if (!agent.ranks) {
		send_error("out of memory");
		return;
	}
	agent.started = 1;
	agent.nranks = agent.job.nranks;
	set_environment();
	if (agent.job.dead_ns)
		uv_timer_start(&agent.watch, on_watch, 1000, 1000);
	for (i = 0; i < agent.nranks; i++) {
		agent.ranks[i].rank = agent.job.ranks[i];
		agent.ranks[i].out[0].fd = agent.ranks[i].out[1].fd = -1;
	}
	for (i = 0; i < agent.nranks; i++)
		start_rank(&agent.ranks[i]);
	memset(agent.job.secret, 0, sizeof(agent.job.secret));
}

static void on_frame(struct gci_frame *f)
{
	uint32_t n;

	switch (f->type) {
	case GCI_FRAME_START:
		on_start(f);
		break;
	case GCI_FRAME_STDIN:
		on_stdin(&f->r);
		break;
	case GCI_FRAME_CREDIT:
		on_credit(gci_read_u32(&f->r));
		break;
	case GCI_FRAME_SIGNAL:
		n = gci_read_u32(&f->r);
		on_signal((int)n, gci_read_u32(&f->r));
		break;
	case GCI_FRAME_HUSH:
		on_hush(gci_read_u32(&f->r));
		break;
	case GCI_FRAME_KILL:
		on_kill(&agent.kill_again);
		break;
	case GCI_FRAME_PING:
		break;
	default:
		send_error("unknown frame from the launcher");
	}
}

static void on_alloc(uv_handle_t *h, size_t want, uv_buf_t *buf)
{
	static char space[65536];

	(void)h;
	(void)want;
	*buf = uv_buf_init(space, sizeof(space));
}

static void on_input(uv_stream_t *from, ssize_t n, const uv_buf_t *buf)
{
	struct gci_error e = {0};
	struct gci_frame f;
	size_t at = 0;
	int rc;

	(void)from;
	agent.heard_ns = gci_now_ns();
	if (n < 0) {
		finish(0); /* the launcher is done, or gone */
		return;
	}
	gci_buf_put(&agent.input, buf->base, (size_t)n);
	while ((rc = gci_frame_next(&agent.input, &at, &f, &e)) == 1)
		on_frame(&f);
	gci_buf_consume(&agent.input, at);
	if (rc < 0)
		finish(1);
}

static void on_term(uv_signal_t *h, int signum)
{
	(void)h;
	finish(128 + signum);
}

static int open_up(struct gci_error *e)
{
	struct gci_buf magic = {0};

	uv_pipe_init(&agent.loop, &agent.in, 0);
	uv_pipe_init(&agent.loop, &agent.up, 0);
	uv_pipe_init(&agent.loop, &agent.rank0, 0);
	uv_timer_init(&agent.loop, &agent.watch);
	uv_timer_init(&agent.loop, &agent.kill_again);
	uv_signal_init(&agent.loop, &agent.children);
	uv_signal_init(&agent.loop, &agent.term);
	if (isatty(0) || uv_pipe_open(&agent.in, 0) || uv_pipe_open(&agent.up, 1))
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"--agent is for gridcoll-run's own use: expected pipes");
	uv_signal_start(&agent.children, on_children, SIGCHLD);
	uv_signal_start(&agent.term, on_term, SIGTERM);
	gci_buf_printf(&magic, "%s", GCI_FRAME_MAGIC);
	send_up(&magic);
	uv_read_start((uv_stream_t *)&agent.in, on_alloc, on_input);
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
	agent.credit = GCI_FRAME_WINDOW;
	if (netns)
		rc = gci_ns_join(netns, &e);
	if (!rc && uv_loop_init(&agent.loop))
		rc = gci_error_set(&e, GCOLL_ERR_SYS, "cannot make an event loop");
	if (!rc)
		rc = open_up(&e);
	if (rc) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	uv_run(&agent.loop, UV_RUN_DEFAULT);
	if (gci_tree_end(END_TIMEOUT_NS))
		fprintf(stderr, "some processes did not end\n");
	gci_buf_free(&agent.input);
	gci_frame_start_free(&agent.job);
	return agent.status;
}
