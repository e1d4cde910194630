/* SPDX-License-Identifier: MIT */
#include "launcher/agents.h"

#include "base/clock.h"
#include "base/mem.h"
#include "launcher/spawn.h"
#include "launcher/ssh.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static void gci_agent_hear(struct gci_agent *a, const uint8_t *data, size_t nbytes);
static void gci_agent_hear_complaint(struct gci_agent *a, const char *data, size_t nbytes);
static void gci_agent_relayed_one_ended(struct gci_agent *a, const struct gci_agent_msg_ended *m);

/* ---- What agents say. */

#define MAX_COMPLAINT 300

/* It is of no more use, and those that it started are neither: they are lost with it, but it was the
 * first. Where ssh or a shell complained, its last line tells more than we know. */
static __attribute__((format(printf, 2, 3))) void gci_agent_lose(
	struct gci_agent *a, const char *fmt, ...)
{
	char why[GCI_CTL_TEXT];
	const char *said = gci_buf_cstr(&a->complaint);
	struct gci_agent *k;
	va_list ap;
	int n;

	if (a->lost || a->closed)
		return;
	a->lost = 1;
	va_start(ap, fmt);
	n = vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	if (*said && n >= 0 && (size_t)n < sizeof(why))
		snprintf(why + n, sizeof(why) - (size_t)n, ": %s", said);
	a->all->events->lost(a, why);
	for (k = a->starts; k; k = k->next)
		gci_agent_lose(k, "%s, which passed on what its agent said, is lost: %s",
			a->place->host, why);
}

static int has_rank(const struct gci_agent *a, uint32_t rank)
{
	return rank >= a->place->first && rank - a->place->first < a->place->nranks;
}

/* Of those that it started, by the number that it knows it by. */
static struct gci_agent *started_by(const struct gci_agent *a, uint32_t id)
{
	struct gci_agent *k = a->starts;

	while (k && k->place->first != id)
		k = k->next;
	return k && k->runs ? k : NULL;
}

static int on_output(struct gci_agent *a, struct gci_agent_msg *f)
{
	uint32_t rank = gci_read_u32(&f->r), stream = gci_read_u32(&f->r);

	if (f->r.failed || !has_rank(a, rank) || (stream != 1 && stream != 2))
		return -1;
	a->owed += (uint32_t)f->r.len;
	a->all->events->output(a, rank, stream, f->r.data, f->r.len);
	return 0;
}

static int on_ended(struct gci_agent *a, struct gci_agent_msg *f)
{
	struct gci_agent_msg_ended m;
	int rc = -1;

	if (gci_agent_msg_get_ended(f, &m))
		return -1;
	if (has_rank(a, m.id)) {
		a->all->events->ended(a, m.id, m.code, m.sig, m.why);
		rc = 0;
	}
	gci_free(m.why);
	return rc;
}

static int on_relay_data(struct gci_agent *a, struct gci_agent_msg *f)
{
	struct gci_agent_msg_relay_data m;
	struct gci_agent *k = gci_agent_msg_get_relay_data(f, &m) ? NULL : started_by(a, m.id);

	if (!k || !m.stream)
		return -1;
	if (m.stream == 1)
		gci_agent_hear(k, m.data, m.nbytes);
	else
		gci_agent_hear_complaint(k, (const char *)m.data, m.nbytes);
	return 0;
}

static int on_relay_ended(struct gci_agent *a, struct gci_agent_msg *f)
{
	struct gci_agent_msg_ended m;
	struct gci_agent *k;

	if (gci_agent_msg_get_ended(f, &m))
		return -1;
	k = started_by(a, m.id);
	if (k)
		gci_agent_relayed_one_ended(k, &m);
	gci_free(m.why);
	return k ? 0 : -1;
}

static int on_frame(struct gci_agent *a, struct gci_agent_msg *f)
{
	uint32_t n;
	char *text;

	switch (f->type) {
	case GCI_AGENT_MSG_OUTPUT:
		return on_output(a, f);
	case GCI_AGENT_MSG_ENDED:
		return on_ended(a, f);
	case GCI_AGENT_MSG_TAKEN:
		n = gci_read_u32(&f->r);
		if (!f->r.failed)
			a->all->events->taken(a, n);
		return f->r.failed;
	case GCI_AGENT_MSG_ERROR:
		text = gci_read_str(&f->r, GCI_AGENT_MSG_DATA);
		gci_agent_lose(a, "the agent failed: %s", text ? text : "");
		gci_free(text);
		return 0;
	case GCI_AGENT_MSG_PONG:
		a->answered = 1;
		return 0;
	case GCI_AGENT_MSG_RELAY_DATA:
		return on_relay_data(a, f);
	case GCI_AGENT_MSG_RELAY_ENDED:
		return on_relay_ended(a, f);
	default:
		return -1;
	}
}

/* What an agent of another release begins with. */
static int is_of_another_release(const struct gci_agent *a)
{
	static const char any[] = "\ngridcoll agent ";
	const uint8_t *at = memmem(a->input.data, a->input.len, any, sizeof(any) - 1);

	return at && memchr(at + 1, '\n', a->input.len - (size_t)(at + 1 - a->input.data));
}

/* A login script may have printed something before. */
static int find_magic(struct gci_agent *a)
{
	size_t len = strlen(GCI_AGENT_MSG_MAGIC);
	const uint8_t *at = memmem(a->input.data, a->input.len, GCI_AGENT_MSG_MAGIC, len);
	struct gci_agent *k;

	if (at) {
		a->spoke = 1;
		for (k = a->starts; k; k = k->next)
			k->tried_ns = a->heard_ns; /* what is held says so */
		gci_buf_consume(&a->input, (size_t)(at - a->input.data) + len);
		if (a->held.len)
			gci_agent_send(a, &a->held);
	} else if (is_of_another_release(a)) {
		gci_agent_lose(a, "gridcoll-run there is of another release than here");
	} else if (a->input.len > GCI_AGENT_MSG_MAX_NOISE) {
		gci_agent_lose(a, "no agent answered, but something else did");
	}
	return a->spoke;
}

/* Bytes of its standard output. */
static void gci_agent_hear(struct gci_agent *a, const uint8_t *data, size_t nbytes)
{
	struct gci_error e = {0};
	struct gci_agent_msg f;
	size_t at = 0;

	if (a->lost)
		return;
	a->heard_ns = gci_now_ns();
	gci_buf_put(&a->input, data, nbytes);
	if (a->input.failed) {
		gci_agent_lose(a, "out of memory for what its agent said");
		return;
	}
	if (!a->spoke && !find_magic(a))
		return;
	while (!a->lost && gci_agent_msg_next(&a->input, &at, &f, &e) == 1)
		if (on_frame(a, &f))
			gci_agent_lose(a, "the agent spoke nonsense (frame %d)", (int)f.type);
	gci_buf_consume(&a->input, at);
	if (e.status)
		gci_agent_lose(a, "the agent spoke nonsense (%s)", e.text);
}

/* Bytes of its standard error: keeps the last line that says something. */
static void gci_agent_hear_complaint(struct gci_agent *a, const char *data, size_t nbytes)
{
	size_t i;

	for (i = 0; i < nbytes; i++) {
		char c = data[i];

		if (c == '\n' || c == '\r') {
			a->nopen = 0; /* the next character begins a new line */
			if (a->spoke && c == '\n' && a->complaint.len)
				a->all->events->grumble(a, gci_buf_cstr(&a->complaint));
			continue;
		}
		if (!a->nopen)
			gci_buf_consume(&a->complaint, a->complaint.len);
		a->nopen = 1;
		if (a->complaint.len < MAX_COMPLAINT)
			gci_buf_put_u8(&a->complaint, (uint8_t)c);
	}
}

/* ---- Their processes, and what they are told. */

#define NO_MEMORY "out of memory for what its agent has to know"

static void on_alloc(uv_handle_t *h, size_t want, uv_buf_t *buf)
{
	static char space[65536];

	(void)h;
	(void)want;
	*buf = uv_buf_init(space, sizeof(space));
}

static void on_closed(uv_handle_t *h)
{
	(void)h;
}

static int is_open(const uv_pipe_t *p)
{
	return p->data && !uv_is_closing((const uv_handle_t *)p);
}

static void close_pipe(uv_pipe_t *p)
{
	if (is_open(p))
		uv_close((uv_handle_t *)p, on_closed);
}

static void on_up(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
	struct gci_agent *a = s->data;

	if (n < 0) {
		close_pipe(&a->up);
		/* Its process's end will tell why, if it comes. */
		if (!a->pid)
			gci_agent_lose(a, "the agent ended");
		return;
	}
	gci_agent_hear(a, (const uint8_t *)buf->base, (size_t)n);
}

static void on_err(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
	struct gci_agent *a = s->data;

	if (n < 0)
		close_pipe(&a->err);
	else
		gci_agent_hear_complaint(a, buf->base, (size_t)n);
}

static int start_here(struct gci_agent *a, uint64_t ssh_ns, struct gci_error *e)
{
	static char self[] = "/proc/self/exe", flag[] = "--agent", netns[] = "--netns";
	char *local[] = {self, flag, a->place->netns ? netns : NULL, a->place->netns, NULL};
	uv_pipe_t *const pipes[3] = {&a->down, &a->up, &a->err};
	/* An ssh that outlives us would keep the far agent alive; a local agent ends by itself, and
	 * must live long enough to end its descendants. */
	struct gci_spawn s = {.argv = local, .new_session = 1};
	struct gci_ssh ssh = {0};
	int rc = 0;

	if (a->place->how == GCI_PLACE_SSH) {
		rc = gci_ssh_make(&ssh, a->place->host, a->all->remote_path, ssh_ns);
		s.argv = ssh.argv;
		s.death_signal = SIGTERM;
	}
	if (rc)
		gci_error_set(e, rc, "out of memory");
	else
		rc = gci_pipe_spawn(a->all->loop, &s, pipes, &a->pid, e);
	gci_ssh_free(&ssh);
	a->runs = a->pid != 0;
	if (!a->tried_ns)
		a->tried_ns = gci_now_ns();
	if (rc)
		return rc;
	a->down.data = a->up.data = a->err.data = a;
	if (uv_read_start((uv_stream_t *)&a->up, on_alloc, on_up) ||
		uv_read_start((uv_stream_t *)&a->err, on_alloc, on_err))
		return gci_error_set(e, GCOLL_ERR_SYS, "cannot use a pipe");
	return 0;
}

static int start_there(struct gci_agent *a, struct gci_error *e)
{
	struct gci_buf b = {0};
	struct gci_ssh ssh;

	if (gci_ssh_make(&ssh, a->place->host, a->all->remote_path,
		    gci_ssh_elsewhere_ns(a->all->ssh_ns)))
		b.failed = 1;
	gci_agent_msg_put_relay_start(&b, a->place->first, ssh.argv);
	gci_ssh_free(&ssh);
	if (b.failed) {
		gci_buf_free(&b);
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	}
	a->held.secret = 1;
	a->runs = 1;
	a->next = a->starter->starts;
	a->starter->starts = a;
	gci_agent_send(a->starter, &b);
	return 0;
}

int gci_agent_start(struct gci_agent *a, const struct gci_agents *all,
	const struct gci_place *place, struct gci_agent *starter, struct gci_error *e)
{
	memset(a, 0, sizeof(*a));
	a->place = place;
	a->all = all;
	a->starter = starter;
	return starter ? start_there(a, e) : start_here(a, all->ssh_ns, e);
}

/* As the bytes that its starter passes on. */
static int send_there(struct gci_agent *a, struct gci_buf *b)
{
	struct gci_agent_msg_relay_data m = {.id = a->place->first};
	size_t at;

	for (at = 0; at < b->len; at += m.nbytes) {
		struct gci_buf part = {.secret = b->secret};

		m.data = b->data + at;
		m.nbytes =
			b->len - at < GCI_AGENT_MSG_RELAYED ? b->len - at : GCI_AGENT_MSG_RELAYED;
		gci_agent_msg_put_relay_data(&part, &m);
		if (part.failed) {
			gci_buf_free(&part);
			return UV_ENOMEM;
		}
		gci_agent_send(a->starter, &part);
	}
	return 0;
}

void gci_agent_send(struct gci_agent *a, struct gci_buf *b)
{
	int rc = 0;

	if (b->failed) {
		rc = UV_ENOMEM;
	} else if (!a->closed && !a->spoke && (a->starter || a->held.len)) {
		gci_buf_put(&a->held, b->data, b->len);
		rc = a->held.failed ? UV_ENOMEM : 0;
	} else if (!a->closed && a->starter) {
		rc = send_there(a, b);
	} else if (!a->closed && is_open(&a->down)) {
		rc = gci_pipe_send((uv_stream_t *)&a->down, b, NULL);
	}
	gci_buf_free(b);
	/* A pipe without reader is noticed at the agent's end. */
	if (rc == UV_ENOMEM)
		gci_agent_lose(a, NO_MEMORY);
}

/* With it, all ways to those that it started have ended. */
static void mark_ended(struct gci_agent *a)
{
	struct gci_agent *k;

	a->runs = 0;
	for (k = a->starts; k; k = k->next)
		mark_ended(k);
}

/* What to do, behind what ssh or a shell complained of. */
static void add_advice(struct gci_agent *a, int code)
{
	const char *then = a->complaint.len ? "; " : "";

	if (a->spoke || a->place->how != GCI_PLACE_SSH)
		return;
	if (code == 255 && strstr(gci_buf_cstr(&a->complaint), "timed out"))
		gci_buf_printf(&a->complaint, "; a host that is up but slow needs --ssh-timeout");
	else if (code == 255)
		gci_buf_printf(&a->complaint, "%s\"ssh %s true\" must work here without a question",
			then, a->place->host);
	else if (code == 127)
		gci_buf_printf(&a->complaint,
			"%sgridcoll must be installed there, see --remote-path", then);
}

static void lose_by_end(struct gci_agent *a, int code, int sig)
{
	const char *what = a->place->how == GCI_PLACE_SSH ? "its ssh" : "its agent";

	mark_ended(a);
	add_advice(a, code);
	if (sig)
		gci_agent_lose(a, "%s was killed by signal %d", what, sig);
	else
		gci_agent_lose(a, "%s ended with status %d", what, code);
}

static uint64_t ssh_time_left(const struct gci_agent *a)
{
	uint64_t past_ns = a->tried_ns ? gci_now_ns() - a->tried_ns : 0;

	return past_ns < a->all->ssh_ns ? a->all->ssh_ns - past_ns : 0;
}

/* Its ssh gave up on the other host, which may know other names and have no keys. */
static void start_here_instead(struct gci_agent *a, const struct gci_agent_msg_ended *m)
{
	const char *said = gci_buf_cstr(&a->complaint);
	struct gci_agent **at = &a->starter->starts;
	struct gci_error e = {0};
	char why[GCI_CTL_TEXT];

	snprintf(why, sizeof(why),
		"ssh from %s failed (%s), so it is started from here, "
		"as are others where that is so",
		a->starter->place->host,
		*m->why ? m->why
		: *said ? said
			: "without a word");
	while (*at != a)
		at = &(*at)->next;
	*at = a->next;
	a->starter = NULL;
	gci_buf_free(&a->complaint);
	gci_buf_free(&a->input);
	a->nopen = 0;
	a->heard_ns = 0;
	a->all->events->detour(a, why);
	if (!start_here(a, ssh_time_left(a), &e))
		return;
	if (!a->pid)
		mark_ended(a);
	gci_agent_lose(a, "%s", e.text);
}

/* The process of one that another had started. */
static void gci_agent_relayed_one_ended(struct gci_agent *a, const struct gci_agent_msg_ended *m)
{
	if (!a->spoke && !a->lost && !a->closed) {
		start_here_instead(a, m);
	} else if (*m->why) {
		mark_ended(a);
		gci_agent_lose(a, "%s", m->why);
	} else {
		lose_by_end(a, m->code, m->sig);
	}
}

void gci_agent_died(struct gci_agent *a, int wait_status)
{
	gci_pipe_drain(&a->up, on_up);
	gci_pipe_drain(&a->err, on_err);
	a->pid = 0;
	if (WIFSIGNALED(wait_status))
		lose_by_end(a, 0, WTERMSIG(wait_status));
	else
		lose_by_end(a, WEXITSTATUS(wait_status), 0);
}

static void end_ssh(struct gci_agent *a)
{
	struct gci_buf b = {0};

	if (!a->starter) {
		if (a->pid)
			kill(-a->pid, SIGKILL); /* and what it connects by, if that is a command */
		return;
	}
	gci_agent_msg_put_relay_data(&b, &(struct gci_agent_msg_relay_data){.id = a->place->first});
	gci_agent_send(a->starter, &b);
}

/* Of a name's several addresses ssh waits for each, and it waits for ever for a host that hangs once it
 * has begun to talk. */
static void check_ssh(struct gci_agent *a, uint64_t now_ns)
{
	uint64_t past_ns, elsewhere_ns = gci_ssh_elsewhere_ns(a->all->ssh_ns);

	if (a->place->how != GCI_PLACE_SSH || a->heard_ns || (a->starter && !a->starter->spoke))
		return;
	past_ns = now_ns - a->tried_ns;
	if (past_ns >= a->all->ssh_ns) {
		gci_agent_lose(a,
			"no answer by ssh within %.3g s, expected a login (--ssh-timeout waits "
			"longer)",
			(double)a->all->ssh_ns / GCI_NS_PER_S);
		end_ssh(a);
	} else if (a->starter && past_ns >= elsewhere_ns) {
		if (!a->complaint.len)
			gci_buf_printf(&a->complaint, "no answer within %.3g s",
				(double)elsewhere_ns / GCI_NS_PER_S);
		end_ssh(a);
	}
}

void gci_agent_paused(struct gci_agent *a, uint64_t now_ns)
{
	a->tried_ns = now_ns;
	if (a->heard_ns)
		a->heard_ns = now_ns;
}

/* A stopped agent's connection stands, and may for ever. One that was started elsewhere ends with its
 * starter's input. */
void gci_agent_check(struct gci_agent *a, uint64_t now_ns, uint64_t dead_ns)
{
	uint64_t most_ns = a->answered ? dead_ns : 3 * dead_ns;

	if (a->lost || a->closed)
		return;
	if (!a->spoke)
		check_ssh(a, now_ns);
	if (!a->spoke || now_ns - a->heard_ns < most_ns)
		return;
	gci_agent_lose(a, "no sign of life from its agent for %" PRIu64 " s",
		(now_ns - a->heard_ns) / GCI_NS_PER_S);
	if (a->pid)
		kill(a->pid, SIGKILL);
}

void gci_agent_close(struct gci_agent *a)
{
	a->closed = 1;
	close_pipe(&a->down); /* the end of its starter's input is that of its own, too */
}
