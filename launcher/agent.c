/* SPDX-License-Identifier: MIT */
#include "launcher/agent.h"

#include "base/log.h"
#include "base/mem.h"
#include "launcher/agent_msg.h"
#include "launcher/netns.h"
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
#include <uv.h>

struct agent_rank;

/* The reading end of a rank's standard output or error. */
struct agent_stream {
	uv_poll_t poll;
	struct agent_rank *rank;
	uint32_t which; /* 1 or 2 */
	int fd;         /* -1: closed */
	int polling;
};

struct agent_rank {
	uint32_t rank;
	pid_t pid; /* 0: not started, or ended */
	int begun; /* was started, or never will be */
	struct agent_stream out[2];
};

/* Another agent, which this one has started. */
struct relay {
	struct relay *next;
	uint32_t id;
	pid_t pid;
	uv_pipe_t pipes[3];  /* its standard input, output and error */
	unsigned nopen;      /* of these, those that libuv knows */
	int waits, overfull; /* its output, for the launcher; it was given up */
};

struct agent {
	uv_loop_t loop;
	uv_pipe_t in, up; /* from and to the launcher */
	uv_pipe_t rank0;  /* rank 0's standard input */
	uv_signal_t children, term;
	uv_timer_t watch, kill_again, patience;
	uv_idle_t starting; /* while ranks are to be started */
	struct gci_buf input;
	struct gci_agent_msg_start job;
	char *origin; /* from where ssh came to the first agent on the way here; NULL: to this one */
	struct agent_rank *ranks;
	struct relay *relays;
	uint32_t nranks, next; /* of them to be started */
	uint32_t credit;       /* payload bytes we may send */
	uint32_t stdin_queued;
	int started, stdin_open, stdin_ending, ending;
	uint64_t heard_ns;
	int status;
};

/* ---- What it says to the launcher. */

static void resume_relays(struct agent *me);

/* Ends the agent, and all that it started. */
static void finish(struct agent *me, int status)
{
	me->status = status;
	uv_stop(&me->loop);
}

static void on_alloc(uv_handle_t *h, size_t want, uv_buf_t *buf)
{
	static char space[GCI_AGENT_MSG_RELAYED]; /* used up before the next read */

	(void)h;
	(void)want;
	*buf = uv_buf_init(space, sizeof(space));
}

static void on_sent(uv_stream_t *to, size_t nbytes, int status)
{
	struct agent *me = to->loop->data;

	(void)nbytes;
	if (status)
		finish(me, 1); /* nobody listens any more */
	else
		resume_relays(me);
}

/* Bytes that wait for the launcher. */
static size_t behind(struct agent *me)
{
	return uv_stream_get_write_queue_size((uv_stream_t *)&me->up);
}

static void send_up(struct agent *me, struct gci_buf *b)
{
	int rc = gci_pipe_send((uv_stream_t *)&me->up, b, on_sent);

	if (rc == UV_ENOMEM)
		fprintf(stderr, "out of memory\n");
	if (rc)
		finish(me, 1);
}

/* The launcher gives this agent up, and says why. */
static void send_error(struct agent *me, const char *text)
{
	struct gci_buf b = {0};
	size_t at = gci_agent_msg_begin(&b, GCI_AGENT_MSG_ERROR);

	gci_buf_put_str(&b, text);
	gci_agent_msg_end(&b, at);
	send_up(me, &b);
}

/* How a rank ended, or another agent's command. */
static void send_ended(struct agent *me, enum gci_agent_msg_type type, uint32_t id, int code,
	int sig, const char *why)
{
	const struct gci_agent_msg_ended m = {id, code, sig, (char *)(uintptr_t)why};
	struct gci_buf b = {0};

	gci_agent_msg_put_ended(&b, type, &m);
	send_up(me, &b);
}

/* The launcher's address as ssh's server saw it, the first on the way here. 0 or -1. */
static int find_origin(struct agent *me, char *out, size_t size)
{
	const char *from = me->origin ? me->origin : getenv("SSH_CONNECTION");

	if (!from)
		return -1;
	snprintf(out, size, "%.*s", (int)strcspn(from, " "), from);
	return 0;
}

/* ---- Other agents, which it starts on other hosts by commands that it is given, and whose bytes it
 * passes on. What the launcher says to them is as much as its flow control lets it (agent_msg.h). What
 * they say waits in their pipes while more than RELAY_BEHIND bytes wait for the launcher, which always
 * reads. */

#define RELAY_BEHIND (1u << 20)
/* A command line of the longest kind for each of many agents behind one that does not read yet. */
#define MOST_QUEUED (64u << 20)

static struct relay *find_relay(struct agent *me, uint32_t id)
{
	struct relay *r = me->relays;

	while (r && r->id != id)
		r = r->next;
	return r;
}

static int relay_is(void *user, pid_t pid)
{
	struct agent *me = user;
	struct relay *r = me->relays;

	while (r && r->pid != pid)
		r = r->next;
	return r != NULL;
}

/* ---- what it says ---- */

static void on_relay_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
	struct agent *me = s->loop->data;
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
	send_up(me, &b);
	if (behind(me) <= RELAY_BEHIND)
		return;
	r->waits = 1;
	uv_read_stop((uv_stream_t *)&r->pipes[1]);
	uv_read_stop((uv_stream_t *)&r->pipes[2]);
}

static void read_relay(struct relay *r)
{
	int i;

	r->waits = 0;
	for (i = 1; i < 3; i++)
		uv_read_start((uv_stream_t *)&r->pipes[i], on_alloc, on_relay_read);
}

static void resume_relays(struct agent *me)
{
	struct relay *r;

	for (r = me->relays; r && behind(me) < RELAY_BEHIND / 2; r = r->next)
		if (r->waits)
			read_relay(r);
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

static void on_relay_closed(uv_handle_t *h)
{
	struct relay *r = h->data;

	if (!--r->nopen)
		gci_free(r);
}

static void close_relay_pipe(uv_pipe_t *p)
{
	if (!uv_is_closing((uv_handle_t *)p))
		uv_close((uv_handle_t *)p, on_relay_closed);
}

static void close_relay(struct relay *r)
{
	int i;

	for (i = 0; i < 3; i++)
		close_relay_pipe(&r->pipes[i]);
}

/* It knows better than the host behind it from where ssh came to the first of us. */
static void tell_origin(struct agent *me, struct relay *r)
{
	char from[GCI_AGENT_MSG_ADDRESS + 1];
	struct gci_buf b = {0};

	if (find_origin(me, from, sizeof(from)))
		return;
	gci_agent_msg_put_origin(&b, from);
	put_down(r, &b);
}

static int spawn_relay(struct agent *me, struct relay *r, char **argv, struct gci_error *e)
{
	uv_pipe_t *const pipes[3] = {&r->pipes[0], &r->pipes[1], &r->pipes[2]};
	/* One that outlives us would keep the agent alive that it leads to. */
	struct gci_spawn s = {.argv = argv, .death_signal = SIGTERM, .new_session = 1};
	int i, rc = gci_pipe_spawn(&me->loop, &s, pipes, &r->pid, e);

	if (!r->pid)
		return rc;
	for (i = 0; i < 3; i++)
		r->pipes[i].data = r;
	r->nopen = 3;
	r->next = me->relays;
	me->relays = r;
	if (rc) {
		kill(r->pid, SIGKILL);
		return 0;
	}
	tell_origin(me, r);
	read_relay(r);
	return 0;
}

static void start_relay(struct agent *me, struct gci_agent_msg *f)
{
	struct gci_error e = {0};
	struct relay *r;
	char **argv;
	uint32_t id;

	if (gci_agent_msg_get_relay_start(f, &id, &argv) || find_relay(me, id)) {
		gci_agent_msg_argv_free(argv);
		send_error(me, "malformed message to start another agent");
		return;
	}
	r = gci_calloc(1, sizeof(*r));
	if (r)
		r->id = id;
	if (!r || spawn_relay(me, r, argv, &e)) {
		send_ended(me, GCI_AGENT_MSG_RELAY_ENDED, id, 1, 0, r ? e.text : "out of memory");
		gci_free(r);
	}
	gci_agent_msg_argv_free(argv);
}

static void pass_on(struct agent *me, struct gci_agent_msg *f)
{
	struct gci_agent_msg_relay_data m;
	struct gci_buf b = {.secret = 1}; /* which may be in it */
	struct relay *r;

	if (gci_agent_msg_get_relay_data(f, &m) || m.stream) {
		send_error(me, "malformed message for another agent");
		return;
	}
	r = find_relay(me, m.id);
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

/* Not a relay's command: 0. */
static int relay_reaped(struct agent *me, pid_t pid, int status)
{
	struct relay **at = &me->relays, *r;

	while ((r = *at) && r->pid != pid)
		at = &r->next;
	if (!r)
		return 0;
	gci_pipe_drain(&r->pipes[1], on_relay_read);
	gci_pipe_drain(&r->pipes[2], on_relay_read);
	*at = r->next;
	if (r->overfull)
		send_ended(me, GCI_AGENT_MSG_RELAY_ENDED, r->id, 1, 0,
			"more was said to it than it took");
	else if (WIFSIGNALED(status))
		send_ended(me, GCI_AGENT_MSG_RELAY_ENDED, r->id, 0, WTERMSIG(status), "");
	else
		send_ended(me, GCI_AGENT_MSG_RELAY_ENDED, r->id, WEXITSTATUS(status), 0, "");
	close_relay(r);
	return 1;
}

/* How many have not been reaped. */
static int end_relays(struct agent *me)
{
	struct relay *r;
	int n = 0;

	for (r = me->relays; r; r = r->next, n++)
		close_relay_pipe(&r->pipes[0]);
	return n;
}

/* ---- The processes of its ranks. */

#define KILL_AGAIN_MS 5

static void read_more(struct agent *me, struct agent_stream *s);

/* nbytes == 0: this stream has ended. */
static void send_output(
	struct agent *me, const struct agent_stream *s, const void *data, size_t nbytes)
{
	struct gci_buf b = {0};
	size_t at = gci_agent_msg_begin(&b, GCI_AGENT_MSG_OUTPUT);

	gci_buf_put_u32(&b, s->rank->rank);
	gci_buf_put_u32(&b, s->which);
	gci_buf_put(&b, data, nbytes);
	gci_agent_msg_end(&b, at);
	me->credit -= (uint32_t)nbytes;
	send_up(me, &b);
}

static void on_poll_closed(uv_handle_t *h)
{
	struct agent_stream *s = h->data;

	close(s->fd);
	s->fd = -1;
}

static void close_stream(struct agent *me, struct agent_stream *s)
{
	if (s->fd < 0 || uv_is_closing((uv_handle_t *)&s->poll))
		return;
	send_output(me, s, NULL, 0);
	uv_close((uv_handle_t *)&s->poll, on_poll_closed);
}

static int open_still(const struct agent_stream *s)
{
	return s->fd >= 0 && !uv_is_closing((const uv_handle_t *)&s->poll);
}

static void on_readable(uv_poll_t *h, int status, int events)
{
	struct agent *me = h->loop->data;

	(void)status;
	(void)events;
	read_more(me, h->data);
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

static void lose_output(struct agent *me, const struct agent_stream *s, int error)
{
	char text[128];

	snprintf(text, sizeof(text), "cannot read what rank %u printed: %s", s->rank->rank,
		strerror(error));
	send_error(me, text);
}

/* One piece; all there is, once the process has ended: then a pipe that is empty is at its end,
 * whoever else may hold it open. */
static void read_more(struct agent *me, struct agent_stream *s)
{
	static char bytes[GCI_AGENT_MSG_DATA];
	ssize_t n;

	do {
		size_t room = me->credit < sizeof(bytes) ? me->credit : sizeof(bytes);

		if (!room) {
			set_polling(s, 0); /* until credit comes */
			return;
		}
		n = read(s->fd, bytes, room);
		if (n > 0)
			send_output(me, s, bytes, (size_t)n);
	} while ((n > 0 && !s->rank->pid) || (n < 0 && errno == EINTR));
	if (n > 0 || (n < 0 && errno == EAGAIN && s->rank->pid))
		return;
	if (n < 0 && errno != EAGAIN)
		lose_output(me, s, errno);
	close_stream(me, s);
}

static void on_credit(struct agent *me, uint32_t n)
{
	uint32_t i;

	me->credit += n;
	for (i = 0; i < 2 * me->nranks; i++) {
		struct agent_stream *s = &me->ranks[i / 2].out[i % 2];

		if (!open_still(s))
			continue;
		if (me->ranks[i / 2].pid)
			set_polling(s, 1);
		else
			read_more(me, s);
	}
}

static void rank_ended(struct agent *me, struct agent_rank *k, int status)
{
	int i;

	k->pid = 0;
	if (WIFSIGNALED(status))
		send_ended(me, GCI_AGENT_MSG_ENDED, k->rank, 0, WTERMSIG(status), "");
	else
		send_ended(me, GCI_AGENT_MSG_ENDED, k->rank, WEXITSTATUS(status), 0, "");
	for (i = 0; i < 2; i++)
		if (open_still(&k->out[i]))
			read_more(me, &k->out[i]);
}

/* Orphans come here as well; nobody asks for their status. */
static void on_children(uv_signal_t *h, int signum)
{
	struct agent *me = h->loop->data;
	int status;
	pid_t pid;
	uint32_t i;

	(void)signum;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (relay_reaped(me, pid, status))
			continue;
		for (i = 0; i < me->nranks; i++)
			if (me->ranks[i].pid == pid)
				rank_ended(me, &me->ranks[i], status);
	}
	if (me->ending && !end_relays(me))
		finish(me, 0);
}

static void on_stdin_closed(uv_handle_t *h)
{
	(void)h;
}

static void close_stdin(struct agent *me)
{
	if (me->stdin_open)
		uv_close((uv_handle_t *)&me->rank0, on_stdin_closed);
	me->stdin_open = 0;
}

static void on_stdin_written(uv_stream_t *to, size_t nbytes, int status)
{
	struct agent *me = to->loop->data;
	struct gci_buf b = {0};

	me->stdin_queued -= (uint32_t)nbytes;
	if (!status) {
		gci_agent_msg_put_u32(&b, GCI_AGENT_MSG_TAKEN, (uint32_t)nbytes);
		send_up(me, &b);
	}
	/* When rank 0 does not want it, nothing more is TAKEN, and no more will come. */
	if (status || (me->stdin_ending && !me->stdin_queued))
		close_stdin(me);
}

static void on_stdin(struct agent *me, struct gci_reader *r)
{
	struct gci_buf b = {0};
	int rc;

	if (!me->stdin_open)
		return;
	if (!r->len) {
		me->stdin_ending = 1;
		if (!me->stdin_queued)
			close_stdin(me);
		return;
	}
	me->stdin_queued += (uint32_t)r->len;
	gci_buf_put(&b, r->data, r->len);
	rc = gci_pipe_send((uv_stream_t *)&me->rank0, &b, on_stdin_written);
	if (rc == UV_ENOMEM) /* it must not take this for the end of its input */
		send_error(me, "out of memory for standard input");
	else if (rc)
		close_stdin(me);
}

/* A rank that is not started yet never will be, and has ended as if it had been. */
static void end_unstarted(struct agent *me, struct agent_rank *k, int sig)
{
	if (k->begun)
		return;
	k->begun = 1;
	if (!me->ending)
		send_ended(me, GCI_AGENT_MSG_ENDED, k->rank, 0, sig, "");
}

static void on_signal(struct agent *me, int sig, uint32_t rank)
{
	int ends = sig == SIGINT || sig == SIGTERM || sig == SIGHUP || sig == SIGQUIT ||
		   sig == SIGKILL;
	uint32_t i;

	if (sig <= 0 || sig >= NSIG)
		return;
	for (i = 0; i < me->nranks; i++) {
		struct agent_rank *k = &me->ranks[i];

		if (rank != GCI_AGENT_MSG_ALL && rank != k->rank)
			continue;
		if (k->pid)
			kill(-k->pid, sig);
		else if (ends)
			end_unstarted(me, k, sig);
	}
}

static void on_hush(struct agent *me, uint32_t which)
{
	uint32_t i;

	for (i = 0; i < me->nranks && (which == 1 || which == 2); i++)
		close_stream(me, &me->ranks[i].out[which - 1]);
}

/* Again and again, since a fork may have slipped through; on_children reaps. Agents elsewhere hear of it
 * themselves. */
static void on_kill(uv_timer_t *t)
{
	struct agent *me = t->loop->data;
	uint32_t i;

	for (i = 0; i < me->nranks; i++)
		end_unstarted(me, &me->ranks[i], SIGKILL);
	if (gci_tree_kill(relay_is, me))
		uv_timer_start(t, on_kill, KILL_AGAIN_MS, 0);
}

/* The secret goes into a pipe, which holds it until the rank reads it: no file, no argument. */
static int secret_pipe(const uint8_t *secret, int *fd, struct gci_error *e)
{
	int fds[2], rc;

	rc = gci_pipe(fds, e);
	if (rc)
		return rc;
	if (write(fds[1], secret, GCI_SECRET_NBYTES) != GCI_SECRET_NBYTES)
		rc = gci_error_errno(e, "cannot hand over the job's secret");
	close(fds[1]);
	*fd = fds[0];
	return rc;
}

/* Makes the pipe for fds[which], keeps our end. */
static int output_pipe(
	struct agent *me, struct agent_rank *k, uint32_t which, int *fd, struct gci_error *e)
{
	struct agent_stream *s = &k->out[which - 1];
	int fds[2];

	if (gci_pipe(fds, e))
		return GCOLL_ERR_SYS;
	*fd = fds[1];
	s->rank = k;
	s->which = which;
	s->poll.data = s;
	if (uv_poll_init(&me->loop, &s->poll, fds[0])) {
		close(fds[0]);
		return gci_error_set(e, GCOLL_ERR_SYS, "cannot watch a pipe");
	}
	s->fd = fds[0];
	set_polling(s, 1);
	return 0;
}

static int input_pipe(struct agent *me, int *fd, struct gci_error *e)
{
	int fds[2];

	if (gci_pipe(fds, e))
		return GCOLL_ERR_SYS;
	*fd = fds[0];
	if (uv_pipe_open(&me->rank0, fds[1])) {
		close(fds[1]);
		return gci_error_set(e, GCOLL_ERR_SYS, "cannot use a pipe");
	}
	me->stdin_open = 1;
	return 0;
}

static int start_process(struct agent *me, struct agent_rank *k, struct gci_error *e)
{
	struct gci_spawn s = {.argv = me->job.argv,
		.cwd = *me->job.cwd ? me->job.cwd : NULL,
		.fds = {-1, -1, -1, -1},
		.death_signal = SIGKILL};
	char number[16];
	int i, rc;

	snprintf(number, sizeof(number), "%u", k->rank);
	setenv("GRIDCOLL_RANK", number, 1);
	rc = k->rank ? 0 : input_pipe(me, &s.fds[0], e);
	for (i = 1; i <= 2 && !rc; i++)
		rc = output_pipe(me, k, (uint32_t)i, &s.fds[i], e);
	if (!rc)
		rc = secret_pipe(me->job.secret, &s.fds[3], e);
	if (!rc)
		rc = gci_spawn(&s, &k->pid, e);
	if (rc)
		k->pid = 0;
	for (i = 0; i < GCI_SPAWN_FDS; i++)
		if (s.fds[i] >= 0)
			close(s.fds[i]);
	return rc;
}

static void start_rank(struct agent *me, struct agent_rank *k)
{
	struct gci_error e = {0};
	int i, code;

	errno = 0;
	if (!start_process(me, k, &e))
		return;
	code = errno == ENOENT ? 127 : 126; /* as a shell has it */
	for (i = 0; i < 2; i++)
		close_stream(me, &k->out[i]);
	send_ended(me, GCI_AGENT_MSG_ENDED, k->rank, code, 0, e.text);
}

/* ---- The conversation with the launcher. */

#define END_TIMEOUT_NS (5 * GCI_NS_PER_S)
#define PATIENCE_MS    5000 /* with agents elsewhere that have lost their input */

/* ":PORT" means the host that ssh came from, as seen from here. */
static const char *rendezvous(struct agent *me, char *out, size_t size)
{
	const char *given = me->job.rendezvous;
	char from[GCI_AGENT_MSG_ADDRESS + 1];

	if (*given != ':' || find_origin(me, from, sizeof(from)))
		return given;
	snprintf(out, size, strchr(from, ':') ? "[%s]%s" : "%s%s", from, given);
	return out;
}

static void set_environment(struct agent *me)
{
	char where[160], **env;

	for (env = me->job.env; *env; env++) {
		char *eq = strchr(*env, '=');

		if (!eq) {
			unsetenv(*env);
			continue;
		}
		*eq = '\0';
		setenv(*env, eq + 1, 1);
	}
	setenv("GRIDCOLL_RENDEZVOUS", rendezvous(me, where, sizeof(where)), 1);
	setenv("GRIDCOLL_SECRET_FD", "3", 1);
}

static void on_impatience(uv_timer_t *t)
{
	struct agent *me = t->loop->data;

	finish(me, 0);
}

/* Ends the agent, once those that it started elsewhere have ended by themselves. */
static void end_all(struct agent *me)
{
	me->ending = 1;
	on_signal(me, SIGKILL, GCI_AGENT_MSG_ALL);
	if (end_relays(me))
		uv_timer_start(&me->patience, on_impatience, PATIENCE_MS, 0);
	else
		finish(me, 0);
}

static void on_watch(uv_timer_t *t)
{
	struct agent *me = t->loop->data;

	if (gci_now_ns() - me->heard_ns <= me->job.dead_ns)
		return;
	fprintf(stderr, "heard nothing from gridcoll-run for %" PRIu64 " s\n",
		me->job.dead_ns / GCI_NS_PER_S);
	finish(me, 1);
}

/* Whoever started the job may have been where this host has no directory. */
static void choose_directory(struct gci_agent_msg_start *m)
{
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
	struct agent *me = h->loop->data;
	struct agent_rank *k;

	while (me->next < me->nranks) {
		k = &me->ranks[me->next++];
		if (k->begun)
			continue;
		k->begun = 1;
		start_rank(me, k);
		return;
	}
	uv_idle_stop(h);
	explicit_bzero(me->job.secret, sizeof(me->job.secret));
}

static void on_start(struct agent *me, struct gci_agent_msg *f)
{
	uint32_t i;

	if (me->started || gci_agent_msg_get_start(f, &me->job)) {
		send_error(me, "malformed start message");
		return;
	}
	me->ranks = gci_calloc(me->job.nranks, sizeof(*me->ranks));
	if (!me->ranks) {
		send_error(me, "out of memory");
		return;
	}
	me->started = 1;
	me->nranks = me->job.nranks;
	set_environment(me);
	choose_directory(&me->job);
	if (me->job.dead_ns)
		uv_timer_start(&me->watch, on_watch, 1000, 1000);
	for (i = 0; i < me->nranks; i++) {
		me->ranks[i].rank = me->job.ranks[i];
		me->ranks[i].out[0].fd = me->ranks[i].out[1].fd = -1;
	}
	uv_idle_start(&me->starting, on_starting);
	on_starting(&me->starting); /* rank 0, if it is here: its input may be next */
}

static void on_origin(struct agent *me, struct gci_agent_msg *f)
{
	gci_free(me->origin);
	me->origin = gci_agent_msg_get_origin(f);
	if (!me->origin)
		send_error(me, "malformed message of whence ssh came");
}

static void answer(struct agent *me)
{
	struct gci_buf b = {0};

	gci_agent_msg_put_plain(&b, GCI_AGENT_MSG_PONG);
	send_up(me, &b);
}

static void on_frame(struct agent *me, struct gci_agent_msg *f)
{
	uint32_t n;

	switch (f->type) {
	case GCI_AGENT_MSG_START:
		on_start(me, f);
		break;
	case GCI_AGENT_MSG_STDIN:
		on_stdin(me, &f->r);
		break;
	case GCI_AGENT_MSG_CREDIT:
		on_credit(me, gci_read_u32(&f->r));
		break;
	case GCI_AGENT_MSG_SIGNAL:
		n = gci_read_u32(&f->r);
		on_signal(me, (int)n, gci_read_u32(&f->r));
		break;
	case GCI_AGENT_MSG_HUSH:
		on_hush(me, gci_read_u32(&f->r));
		break;
	case GCI_AGENT_MSG_KILL:
		on_kill(&me->kill_again);
		break;
	case GCI_AGENT_MSG_PING:
		answer(me);
		break;
	case GCI_AGENT_MSG_RELAY_START:
		start_relay(me, f);
		break;
	case GCI_AGENT_MSG_RELAY_DATA:
		pass_on(me, f);
		break;
	case GCI_AGENT_MSG_ORIGIN:
		on_origin(me, f);
		break;
	default:
		send_error(me, "unknown frame from the launcher");
	}
}

/* Below here, where registers were saved that memcpy had the secret in. */
static __attribute__((noinline)) void wipe_stack(void)
{
	uint8_t below[16384];

	explicit_bzero(below, sizeof(below));
}

static void on_input(uv_stream_t *from, ssize_t n, const uv_buf_t *buf)
{
	struct agent *me = from->loop->data;
	struct gci_error e = {0};
	struct gci_agent_msg f;
	size_t at = 0;
	int rc;

	me->heard_ns = gci_now_ns();
	if (n < 0) {
		end_all(me); /* the launcher is done, or gone */
		return;
	}
	gci_buf_put(&me->input, buf->base, (size_t)n);
	explicit_bzero(buf->base, (size_t)n); /* the secret may be in it, our own or for others */
	while ((rc = gci_agent_msg_next(&me->input, &at, &f, &e)) == 1)
		on_frame(me, &f);
	gci_buf_consume(&me->input, at);
	if (!me->input.len) {
		gci_buf_free(&me->input);
		me->input.secret = 1;
		wipe_stack();
	}
	if (rc < 0) {
		fprintf(stderr, "%s\n", e.text);
		finish(me, 1);
	}
}

static void on_term(uv_signal_t *h, int signum)
{
	struct agent *me = h->loop->data;

	finish(me, 128 + signum);
}

static int open_up(struct agent *me, struct gci_error *e)
{
	struct gci_buf magic = {0};

	uv_pipe_init(&me->loop, &me->in, 0);
	uv_pipe_init(&me->loop, &me->up, 0);
	uv_pipe_init(&me->loop, &me->rank0, 0);
	uv_timer_init(&me->loop, &me->watch);
	uv_timer_init(&me->loop, &me->kill_again);
	uv_timer_init(&me->loop, &me->patience);
	uv_idle_init(&me->loop, &me->starting);
	uv_signal_init(&me->loop, &me->children);
	uv_signal_init(&me->loop, &me->term);
	if (isatty(0) || uv_pipe_open(&me->in, 0) || uv_pipe_open(&me->up, 1))
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"--agent is for gridcoll-run's own use: expected pipes");
	uv_signal_start(&me->children, on_children, SIGCHLD);
	uv_signal_start(&me->term, on_term, SIGTERM);
	gci_buf_printf(&magic, "%s", GCI_AGENT_MSG_MAGIC);
	send_up(me, &magic);
	uv_read_start((uv_stream_t *)&me->in, on_alloc, on_input);
	return 0;
}

int gci_agent_main(const char *netns)
{
	/* Not on the stack: what it holds is there until the process ends. */
	static struct agent me = {.credit = GCI_AGENT_MSG_WINDOW, .input = {.secret = 1}};
	struct gci_error e = {0};
	int rc = 0;

	gci_log_init("gridcoll-run --agent");
	signal(SIGPIPE, SIG_IGN);
	gci_tree_adopt();
	gci_raise_fd_limit();
	if (netns)
		rc = gci_ns_join(netns, &e);
	if (!rc && uv_loop_init(&me.loop))
		rc = gci_error_set(&e, GCOLL_ERR_SYS, "cannot make an event loop");
	me.loop.data = &me;
	if (!rc)
		rc = open_up(&me, &e);
	if (rc) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	uv_run(&me.loop, UV_RUN_DEFAULT);
	if (gci_tree_end(END_TIMEOUT_NS))
		fprintf(stderr, "some processes did not end\n");
	gci_edt_sweep(); /* after ranks that could not */
	gci_buf_free(&me.input);
	gci_agent_msg_start_free(&me.job);
	gci_free(me.origin);
	return me.status;
}
