/* SPDX-License-Identifier: MIT */
#include "launcher/run.h"

#include "base/clock.h"
#include "base/mem.h"
#include "launcher/job.h"
#include "launcher/spawn.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

/* From the verdict on: ranks that were told may end by themselves, are then asked to, then
 * killed; an agent that does not answer even so is given up. */
#define TERM_AFTER_MS    2000
#define KILL_AFTER_MS    1000
#define GIVE_UP_AFTER_MS 800
#define AGENT_END_MS     600

#define BACKLOG_HIGH (1u << 20)
#define HELD_LONG_MS 500 /* twice this is too long */
#define MAX_GRACE_NS GCI_NS_PER_S

struct job job;

static void check_end(void);

/* ---- output ---- */

static size_t backlog(void)
{
	return gci_sink_backlog(&job.sinks[0]) + gci_sink_backlog(&job.sinks[1]);
}

static void give_credit(int force)
{
	uint32_t i;

	if (backlog() >= BACKLOG_HIGH)
		return;
	for (i = 0; i < job.nagents; i++) {
		struct gci_agent *a = &job.agents[i];
		struct gci_buf b = {0};

		if (!a->owed || (!force && a->owed < GCI_FRAME_WINDOW / 4))
			continue;
		gci_frame_put_u32(&b, GCI_FRAME_CREDIT, a->owed);
		a->owed = 0;
		gci_agent_send(a, &b);
	}
}

static void to_all(enum gci_frame_type type, uint32_t v)
{
	uint32_t i;

	for (i = 0; i < job.nagents; i++) {
		struct gci_buf b = {0};

		if (v)
			gci_frame_put_u32(&b, type, v);
		else
			gci_frame_put_plain(&b, type);
		gci_agent_send(&job.agents[i], &b);
	}
}

/* Our reader is gone: the ranks shall see that as they would without us between. */
static void on_drained(struct gci_sink *s)
{
	uint32_t stream = s == &job.sinks[1] ? 2 : 1;

	if (s->error && !job.hushed[stream - 1]) {
		job.hushed[stream - 1] = 1;
		to_all(GCI_FRAME_HUSH, stream);
	}
	give_credit(1);
	check_end();
}

static void on_output(
	struct gci_agent *a, uint32_t rank, uint32_t stream, const uint8_t *data, size_t nbytes)
{
	struct gci_sink *s = &job.sinks[stream - 1];
	struct job_rank *k = &job.ranks[rank];

	(void)a;
	if (nbytes && !k->closed[stream - 1]) {
		gci_output_put(&s->o, &k->lines[stream - 1], data, nbytes);
	} else if (!k->closed[stream - 1]) {
		k->closed[stream - 1] = 1;
		gci_output_end(&s->o, &k->lines[stream - 1]);
	}
	gci_sink_flush(s);
	give_credit(0);
	check_end();
}

/* Others have waited for the end of a long line: half a second to a second is enough. */
static void on_held(uv_timer_t *t)
{
	int i;

	(void)t;
	for (i = 0; i < 2; i++) {
		job.held_ticks[i] = job.sinks[i].o.held ? job.held_ticks[i] + 1 : 0;
		if (job.held_ticks[i] < 2)
			continue;
		job.held_ticks[i] = 0;
		gci_output_break(&job.sinks[i].o);
		gci_sink_flush(&job.sinks[i]);
	}
}

/* ---- input ---- */

static void read_stdin(void)
{
	if (!job.stdin_ended && !job.closing)
		gci_source_read(&job.input, job.stdin_room);
}

static void on_stdin(struct gci_source *s, const char *data, size_t nbytes)
{
	struct gci_buf b = {0};
	size_t at = gci_frame_begin(&b, GCI_FRAME_STDIN);

	(void)s;
	gci_buf_put(&b, data, nbytes);
	gci_frame_end(&b, at);
	gci_agent_send(&job.agents[0], &b);
	job.stdin_room -= nbytes;
	job.stdin_ended = !nbytes;
	read_stdin();
}

static void on_taken(struct gci_agent *a, uint32_t nbytes)
{
	(void)a;
	job.stdin_room += nbytes;
	if (job.stdin_room > GCI_FRAME_WINDOW)
		job.stdin_room = GCI_FRAME_WINDOW;
	read_stdin();
}

/* ---- ends ---- */

static void rank_is_over(uint32_t rank)
{
	struct job_rank *k = &job.ranks[rank];
	int i;

	k->ended = 1;
	for (i = 0; i < 2; i++) {
		if (k->closed[i])
			continue;
		k->closed[i] = 1;
		gci_output_end(&job.sinks[i].o, &k->lines[i]);
		gci_sink_flush(&job.sinks[i]);
	}
}

static void on_ended(struct gci_agent *a, uint32_t rank, int code, int sig, const char *why)
{
	(void)a;
	if (job.ranks[rank].ended)
		return;
	job.ranks[rank].ended = 1;
	if (*why) {
		rank_is_over(rank);
		gci_rdv_failed(job.server.rdv, rank, code, why, gci_now_ns());
	} else {
		gci_rdv_exited(job.server.rdv, rank, code, sig, gci_now_ns());
	}
	gci_server_kick(&job.server);
}

static void on_lost(struct gci_agent *a, const char *why)
{
	uint32_t i;

	for (i = a->place->first; i < a->place->first + a->place->nranks; i++) {
		if (!job.ranks[i].ended)
			gci_rdv_failed(job.server.rdv, i, 1, why, gci_now_ns());
		rank_is_over(i);
	}
	gci_server_kick(&job.server);
}

static void on_grumble(struct gci_agent *a, const char *text)
{
	char line[512];

	snprintf(line, sizeof(line), "gridcoll-run: %s: %s", a->place->host, text);
	gci_output_say(&job.sinks[1].o, line);
	gci_sink_flush(&job.sinks[1]);
}

static const struct gci_agent_events events = {.output = on_output,
	.ended = on_ended,
	.taken = on_taken,
	.lost = on_lost,
	.grumble = on_grumble};

static void on_children(uv_signal_t *h, int signum)
{
	int status;
	pid_t pid;
	uint32_t i;

	(void)h;
	(void)signum;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (i = 0; i < job.nagents; i++)
			if (job.agents[i].pid == pid)
				gci_agent_died(&job.agents[i], status);
	check_end();
}

static void say_verdict(void)
{
	const struct gci_rdv_verdict *v = gci_rdv_verdict(job.server.rdv);
	char line[GCI_RANKLIST_NBYTES + GCI_CTL_TEXT + 64];

	if (!v || job.said)
		return;
	job.said = 1;
	if (job.interrupts > 1)
		snprintf(line, sizeof(line), "gridcoll-run: interrupted twice, all ranks killed");
	else
		snprintf(line, sizeof(line), "gridcoll-run: %s%s%s", v->who,
			*v->who ? " failed: " : "", v->cause);
	gci_output_say(&job.sinks[1].o, line);
	gci_sink_flush(&job.sinks[1]);
}

static void on_agents_late(uv_timer_t *t)
{
	uint32_t i;

	(void)t;
	for (i = 0; i < job.nagents; i++)
		if (job.agents[i].pid)
			kill(job.agents[i].pid, SIGKILL);
}

static int all_over(void)
{
	uint32_t i;

	for (i = 0; i < job.plan->size; i++)
		if (!job.ranks[i].ended || !job.ranks[i].closed[0] || !job.ranks[i].closed[1])
			return 0;
	return gci_rdv_settled(job.server.rdv);
}

/* The end has three steps: all ranks are over; all agents are; all is written. */
static void check_end(void)
{
	uint32_t i;

	if (!job.closing && all_over()) {
		job.closing = 1;
		uv_timer_stop(&job.escalation);
		for (i = 0; i < job.nagents; i++)
			gci_agent_close(&job.agents[i]);
		uv_timer_start(&job.escalation, on_agents_late, AGENT_END_MS, AGENT_END_MS);
	}
	if (!job.closing)
		return;
	for (i = 0; i < job.nagents; i++)
		if (job.agents[i].pid)
			return;
	say_verdict();
	if (!backlog())
		uv_stop(&job.loop);
}

/* ---- failure ---- */

static int all_ended(void)
{
	uint32_t i;

	for (i = 0; i < job.plan->size; i++)
		if (!job.ranks[i].ended)
			return 0;
	return 1;
}

static void on_give_up(uv_timer_t *t)
{
	uint32_t i;

	if (all_ended() && backlog() >= BACKLOG_HIGH) {
		/* Only our reader is slow: what the ranks printed waits for it. */
		uv_timer_start(t, on_give_up, GIVE_UP_AFTER_MS, 0);
		return;
	}
	for (i = 0; i < job.plan->size; i++) {
		if (!job.ranks[i].ended)
			gci_rdv_exited(job.server.rdv, i, 0, SIGKILL, gci_now_ns());
		rank_is_over(i);
	}
	on_agents_late(NULL);
	check_end();
}

static void on_kill(uv_timer_t *t)
{
	to_all(GCI_FRAME_KILL, 0);
	uv_timer_start(t, on_give_up, GIVE_UP_AFTER_MS, 0);
}

/* rank GCI_FRAME_ALL: to all of the agent's. */
static void send_signal(struct gci_agent *a, int sig, uint32_t rank)
{
	struct gci_buf b = {0};

	gci_frame_put_signal(&b, sig, rank);
	gci_agent_send(a, &b);
}

static void signal_all(int sig)
{
	uint32_t i;

	for (i = 0; i < job.nagents; i++)
		send_signal(&job.agents[i], sig, GCI_FRAME_ALL);
}

/* The verdict does not reach a rank behind a dead link; an agent may. */
static void end_silent_ranks(void)
{
	uint32_t i, k;

	for (i = 0; i < job.nagents; i++) {
		const struct gci_place *l = job.agents[i].place;

		for (k = l->first; k < l->first + l->nranks; k++) {
			if (job.ranks[k].ended || !gci_rdv_is_silent(job.server.rdv, k))
				continue;
			send_signal(&job.agents[i], SIGTERM, k);
			send_signal(&job.agents[i], SIGCONT, k); /* stopped, it cannot hear */
		}
	}
}

static void on_term(uv_timer_t *t)
{
	signal_all(SIGTERM);
	signal_all(SIGCONT);
	uv_timer_start(t, on_kill, KILL_AFTER_MS, 0);
}

/* The state machine has moved. */
static void on_change(void *user)
{
	(void)user;
	if (!job.failing && gci_rdv_verdict(job.server.rdv)) {
		job.failing = 1;
		end_silent_ranks();
		uv_timer_start(&job.escalation, on_term, TERM_AFTER_MS, 0);
	}
	check_end();
}

/* ---- signals ---- */

static void on_signal(uv_signal_t *h, int signum)
{
	(void)h;
	if (signum == SIGCONT) {
		read_stdin();
		return;
	}
	if (job.closing && (signum == SIGINT || signum == SIGTERM))
		_exit(128 + signum); /* only the writing is left */
	if (signum == SIGINT && job.interrupts++) {
		job.failing = 1;
		on_kill(&job.escalation);
		return;
	}
	signal_all(signum);
}

static void watch_signals(void)
{
	static const int forwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT};
	struct sigaction now;
	size_t i;

	signal(SIGPIPE, SIG_IGN);
	uv_signal_init(&job.loop, &job.children);
	uv_signal_start(&job.children, on_children, SIGCHLD);
	for (i = 0; i < sizeof(forwarded) / sizeof(*forwarded); i++) {
		/* What is ignored from the beginning (nohup) stays so. */
		if (!sigaction(forwarded[i], NULL, &now) && now.sa_handler == SIG_IGN)
			continue;
		uv_signal_init(&job.loop, &job.signals[i]);
		uv_signal_start(&job.signals[i], on_signal, forwarded[i]);
	}
}

/* ---- start ---- */

/* In a slow network the last words of a rank take longer. */
static uint64_t grace_ns(const struct gci_plan *p)
{
	uint64_t longest = 0;
	int i;

	for (i = 0; i < p->grid.nlinks; i++)
		if (p->grid.links[i].delay_ns > longest)
			longest = p->grid.links[i].delay_ns;
	longest = longest > MAX_GRACE_NS ? MAX_GRACE_NS : longest;
	longest = GCI_NS_PER_S / 2 + 2 * longest;
	return longest > MAX_GRACE_NS ? MAX_GRACE_NS : longest;
}

static int open_server(const struct gci_options *o, const struct gci_plan *p, struct gci_error *e)
{
	struct gci_rdv_config c = {.size = p->size,
		.names = p->names,
		.hosts = p->hosts,
		.grid = p->grid_text,
		.beat_ns = o->fast_timers ? GCI_NS_PER_S / 4 : GCI_NS_PER_S,
		.dead_ns = o->fast_timers ? 4 * GCI_NS_PER_S : 20 * GCI_NS_PER_S,
		.start_ns = o->start_ns,
		.grace_ns = grace_ns(p)};
	int rc;

	memcpy(c.secret, job.secret, sizeof(c.secret));
	job.dead_ns = c.dead_ns;
	rc = gci_server_open(&job.server, &job.loop, &c, p->listen_ip, p->listen_netns, o->port_lo,
		o->port_hi, on_change, NULL, e);
	explicit_bzero(c.secret, sizeof(c.secret));
	return rc;
}

static void on_ping(uv_timer_t *t)
{
	(void)t;
	to_all(GCI_FRAME_PING, 0);
}

static int open_job(const struct gci_options *o, const struct gci_plan *p, struct gci_error *e)
{
	uint32_t i;
	int k;

	job.plan = p;
	job.ranks = gci_calloc(p->size, sizeof(*job.ranks));
	job.agents = gci_calloc(p->nplaces, sizeof(*job.agents));
	if (!job.ranks || !job.agents)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	for (i = 0; i < p->size; i++)
		job.ranks[i].lines[0].rank = job.ranks[i].lines[1].rank = i;
	if (uv_loop_init(&job.loop))
		return gci_error_set(e, GCOLL_ERR_SYS, "cannot make an event loop");
	if (getrandom(job.secret, sizeof(job.secret), 0) != sizeof(job.secret))
		return gci_error_errno(e, "cannot make the job's secret");
	uv_timer_init(&job.loop, &job.escalation);
	uv_timer_init(&job.loop, &job.held);
	uv_timer_init(&job.loop, &job.ping);
	for (k = 0; k < 2; k++) {
		gci_sink_open(&job.sinks[k], &job.loop, k + 1, on_drained, NULL);
		job.sinks[k].o.prefix = !o->quiet_prefix;
		job.sinks[k].o.solo = o->quiet_prefix && p->size == 1;
	}
	gci_source_open(&job.input, &job.loop, STDIN_FILENO, on_stdin, NULL);
	job.stdin_room = GCI_FRAME_WINDOW;
	gci_tree_adopt();
	gci_raise_fd_limit();
	watch_signals();
	return open_server(o, p, e);
}

int gci_run(const struct gci_options *o, const struct gci_plan *p)
{
	struct gci_error e = {0};
	int rc = open_job(o, p, &e);

	if (!rc)
		rc = gci_job_start(o, p, &events, &e);
	explicit_bzero(job.secret, sizeof(job.secret));
	if (rc) {
		fprintf(stderr, "gridcoll-run: %s\n", e.text);
		gci_tree_end(2 * GCI_NS_PER_S);
		return 1;
	}
	uv_timer_start(&job.held, on_held, HELD_LONG_MS, HELD_LONG_MS);
	uv_timer_start(&job.ping, on_ping, 1000, 1000);
	read_stdin();
	uv_run(&job.loop, UV_RUN_DEFAULT);
	gci_tree_end(GCI_NS_PER_S);
	if (job.interrupts > 1)
		return 128 + SIGINT;
	return gci_rdv_exit_status(job.server.rdv);
}
