/* SPDX-License-Identifier: MIT */
#include "launcher/run.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "launcher/agents.h"
#include "launcher/ctl.h"
#include "launcher/output.h"
#include "launcher/secret.h"
#include "launcher/server.h"
#include "launcher/spawn.h"
#include "launcher/start.h"
#include "launcher/watch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Output that nobody has read yet holds the ranks up beyond this. */
#define BACKLOG_HIGH (1u << 20)

struct job_rank {
	struct gci_line lines[2];
	int ended;
	uint64_t left_out_ns; /* since when, of a job that goes on; 0: it is not */
	int last_signal;      /* that it was sent for that reason */
	int closed[2];        /* no more output comes */
	int given_up;         /* we said that it has ended, since its agent did not */
};

/* Standard output or error. */
struct out {
	struct gci_sink sink;
	int hushed, held_ticks;
};

struct job {
	struct gci_placement *plan;
	uv_loop_t loop;
	struct gci_server server;
	struct gci_jobctl ctl;
	struct gci_watch watch;
	struct gci_agents agents;
	struct job_rank *ranks;
	uint8_t secret[GCI_SECRET_NBYTES]; /* wiped once handed out */
	uint64_t dead_ns, pinged_ns;
	struct out out[2];
	struct gci_source input;
	size_t stdin_room;
	int stdin_ended;
	uv_signal_t children, signals[6];
	uv_timer_t escalation, held, ping, left_out;
	uint32_t nleft_out; /* that are taken care of */
	int failing, closing, said, interrupts;
	int detours; /* one is told of */
	int order;   /* the last signal that tells ranks to end; 0: none came */
};

static void give_up_rank(struct job *job, uint32_t rank);
static void say(struct job *job, const char *text);
static void check_end(struct job *job);
static void signal_rank(struct job *job, uint32_t rank, int sig);
static size_t backlog(struct job *job);
static void tell_agents(struct job *job, enum gci_agent_msg_type type, uint32_t v);

/* ---- A job that goes on after failures: they are told as they happen, and processes that were left out
 * though they live are ended. */

#define LOOK_EVERY_MS 250

/* From when a rank is left out: it was told, and may end by itself. */
#define TERM_AFTER_NS    (1000 * GCI_NS_PER_MS)
#define KILL_AFTER_NS    (3000 * GCI_NS_PER_MS)
#define GIVE_UP_AFTER_NS (3800 * GCI_NS_PER_MS)

static void tell_news(struct job *job)
{
	struct gci_buf news;
	const char *line, *end;

	gci_rdv_news(job->server.rdv, &news);
	line = job->failing ? "" : gci_buf_cstr(&news);
	for (; (end = strchr(line, '\n')); line = end + 1) {
		char text[GCI_RANKLIST_NBYTES + GCI_CTL_TEXT + 64];

		snprintf(text, sizeof(text), "%.*s", (int)(end - line), line);
		say(job, text);
	}
	gci_buf_free(&news);
}

static void signal_once(struct job *job, uint32_t rank, int sig)
{
	struct job_rank *k = &job->ranks[rank];

	if (k->last_signal == sig)
		return;
	k->last_signal = sig;
	signal_rank(job, rank, sig);
	signal_rank(job, rank, SIGCONT); /* stopped, it cannot hear */
}

/* One step further; false when there is none any more. An agent that tells of no end even so is
 * as dead as its host may be. */
static int end_left_out(struct job *job, uint32_t rank, uint64_t age_ns)
{
	if (job->ranks[rank].ended)
		return 0;
	if (age_ns >= GIVE_UP_AFTER_NS) {
		give_up_rank(job, rank);
		return 0;
	}
	if (age_ns >= KILL_AFTER_NS)
		signal_once(job, rank, SIGKILL);
	else if (age_ns >= TERM_AFTER_NS)
		signal_once(job, rank, SIGTERM);
	return 1;
}

static void on_left_out(uv_timer_t *t)
{
	struct job *job = t->loop->data;
	uint64_t now_ns = gci_now_ns();
	int any = 0;
	uint32_t i;

	for (i = 0; i < job->plan->size; i++) {
		struct job_rank *k = &job->ranks[i];

		if (!gci_rdv_is_left_out(job->server.rdv, i))
			continue;
		if (!k->left_out_ns)
			k->left_out_ns = now_ns;
		any |= end_left_out(job, i, now_ns - k->left_out_ns);
	}
	if (!any)
		uv_timer_stop(t);
	check_end(job);
}

/* After each move of a job that goes on after failures. */
static void go_on(struct job *job)
{
	uint32_t n = gci_rdv_nleft_out(job->server.rdv);

	if (gci_rdv_is_over(job->server.rdv))
		return;
	tell_news(job);
	if (n == job->nleft_out)
		return;
	job->nleft_out = n;
	if (!uv_is_active((uv_handle_t *)&job->left_out))
		uv_timer_start(&job->left_out, on_left_out, 0, LOOK_EVERY_MS);
}

/* ---- How a job ends: the ends of its processes, the verdict and what follows from it. */

/* From the verdict on: ranks that were told may end by themselves, are then asked to, then
 * killed; an agent that does not answer even so is given up. */
#define TERM_AFTER_MS    2000
#define KILL_AFTER_MS    1000
#define GIVE_UP_AFTER_MS 800

/* Agents whose ranks have ended end what these left behind: that takes as long as it takes, or as a job
 * bears silence (dead_ns). Others are not worth waiting for. */
#define AGENT_END_MS 600

static void rank_is_over(struct job *job, uint32_t rank)
{
	struct job_rank *k = &job->ranks[rank];
	int i;

	k->ended = 1;
	for (i = 0; i < 2; i++) {
		if (k->closed[i])
			continue;
		k->closed[i] = 1;
		gci_output_end(&job->out[i].sink.o, &k->lines[i]);
		gci_sink_flush(&job->out[i].sink);
	}
}

/* Nothing more is expected of it, nor of its agent about it. */
static void give_up_rank(struct job *job, uint32_t rank)
{
	struct job_rank *k = &job->ranks[rank];

	if (!k->ended)
		gci_rdv_exited(job->server.rdv, rank, 0, SIGKILL, gci_now_ns());
	k->given_up |= !k->ended || !k->closed[0] || !k->closed[1];
	rank_is_over(job, rank);
}

static void on_ended(struct gci_agent *a, uint32_t rank, int code, int sig, const char *why)
{
	struct job *job = a->all->user;

	if (job->ranks[rank].ended)
		return;
	job->ranks[rank].ended = 1;
	if (*why) {
		rank_is_over(job, rank);
		gci_rdv_failed(job->server.rdv, rank, code, why, gci_now_ns());
	} else {
		gci_rdv_exited(job->server.rdv, rank, code, sig, gci_now_ns());
	}
	gci_server_kick(&job->server);
}

static void on_lost(struct gci_agent *a, const char *why)
{
	struct job *job = a->all->user;
	uint32_t i;

	for (i = a->place->first; i < a->place->first + a->place->nranks; i++) {
		if (!job->ranks[i].ended)
			gci_rdv_failed(job->server.rdv, i, 1, why, gci_now_ns());
		rank_is_over(job, i);
	}
	gci_server_kick(&job->server);
}

static void on_grumble(struct gci_agent *a, const char *text)
{
	struct job *job = a->all->user;
	char line[512];

	snprintf(line, sizeof(line), "gridcoll-run: %s: %s", a->place->host, text);
	gci_output_say(&job->out[1].sink.o, line);
	gci_sink_flush(&job->out[1].sink);
}

/* Where one was not let in, mostly none is. */
static void on_detour(struct gci_agent *a, const char *why)
{
	struct job *job = a->all->user;

	if (!job->detours++)
		on_grumble(a, why);
}

/* After a pause of our own, agents may have spoken without having been heard yet. */
static void on_ping(uv_timer_t *t)
{
	struct job *job = t->loop->data;
	uint64_t now_ns = gci_now_ns();
	int paused = now_ns - job->pinged_ns > job->dead_ns / 2;
	uint32_t i;

	for (i = 0; i < job->agents.n; i++) {
		struct gci_agent *a = &job->agents.v[i];

		if (paused)
			gci_agent_paused(a, now_ns);
		gci_agent_check(a, now_ns, job->dead_ns);
	}
	job->pinged_ns = now_ns;
	tell_agents(job, GCI_AGENT_MSG_PING, 0);
}

static void on_children(uv_signal_t *h, int signum)
{
	struct job *job = h->loop->data;
	int status;
	pid_t pid;
	uint32_t i;

	(void)signum;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (i = 0; i < job->agents.n; i++)
			if (job->agents.v[i].pid == pid)
				gci_agent_died(&job->agents.v[i], status);
	check_end(job);
}

static void say(struct job *job, const char *text)
{
	char line[GCI_RANKLIST_NBYTES + GCI_CTL_TEXT + 96];

	snprintf(line, sizeof(line), "gridcoll-run: %s", text);
	gci_output_say(&job->out[1].sink.o, line);
	gci_sink_flush(&job->out[1].sink);
}

/* Of a failure that the job might have survived, tell_news has told. */
static void say_verdict(struct job *job)
{
	const struct gci_rdv_verdict *v = gci_rdv_verdict(job->server.rdv);
	char line[GCI_RANKLIST_NBYTES + GCI_CTL_TEXT + 64];

	if (!v || job->said)
		return;
	job->said = 1;
	snprintf(line, sizeof(line), "%s%s%s", v->who, gci_rdv_verb(v), v->cause);
	if (job->interrupts > 1) {
		say(job, "interrupted twice, all ranks killed");
		return;
	}
	/* No rank is to blame for having done as it was told. */
	if (job->order && gci_rdv_exit_status(job->server.rdv) == 128 + job->order)
		snprintf(line, sizeof(line), "told to end (%s), as were all ranks",
			strsignal(job->order));
	if (gci_rdv_is_over(job->server.rdv)) {
		say(job, line);
		return;
	}
	gci_rdv_tell_last_words(job->server.rdv);
	go_on(job);
}

static int has_told_all(const struct gci_agent *a)
{
	struct job *job = a->all->user;
	uint32_t i;

	for (i = a->place->first; i < a->place->first + a->place->nranks; i++)
		if (!job->ranks[i].ended || job->ranks[i].given_up)
			return 0;
	return !a->lost;
}

static void kill_agents(struct job *job, int (*spared)(const struct gci_agent *a))
{
	uint32_t i;

	for (i = 0; i < job->agents.n; i++)
		if (job->agents.v[i].pid && !(spared && spared(&job->agents.v[i])))
			kill(job->agents.v[i].pid, SIGKILL);
}

static void on_agents_too_late(uv_timer_t *t)
{
	struct job *job = t->loop->data;

	kill_agents(job, NULL);
}

static void on_agents_late(uv_timer_t *t)
{
	struct job *job = t->loop->data;

	kill_agents(job, has_told_all);
	uv_timer_start(t, on_agents_too_late, job->dead_ns / GCI_NS_PER_MS, 0);
}

static int all_over(struct job *job)
{
	uint32_t i;

	for (i = 0; i < job->plan->size; i++)
		if ((!job->ranks[i].ended && !gci_rdv_is_gone(job->server.rdv, i)) ||
			!job->ranks[i].closed[0] || !job->ranks[i].closed[1])
			return 0;
	return gci_rdv_settled(job->server.rdv);
}

/* Goes on to the end when it is time. It has three steps: all ranks are over; all
 * agents are; all is written. */
static void check_end(struct job *job)
{
	uint32_t i;

	if (!job->closing && all_over(job)) {
		job->closing = 1;
		gci_watch_end(&job->watch);
		uv_timer_stop(&job->escalation);
		for (i = 0; i < job->agents.n; i++)
			gci_agent_close(&job->agents.v[i]);
		uv_timer_start(&job->escalation, on_agents_late, AGENT_END_MS, 0);
	}
	if (!job->closing)
		return;
	for (i = 0; i < job->agents.n; i++)
		if (job->agents.v[i].runs)
			return;
	say_verdict(job);
	if (!backlog(job) && !gci_sink_backlog(&job->watch.file))
		uv_stop(&job->loop);
}

/* ---- failure ---- */

static int all_ended(struct job *job)
{
	uint32_t i;

	for (i = 0; i < job->plan->size; i++)
		if (!job->ranks[i].ended)
			return 0;
	return 1;
}

static void on_give_up(uv_timer_t *t)
{
	struct job *job = t->loop->data;
	uint32_t i;

	if (all_ended(job) && backlog(job) >= BACKLOG_HIGH) {
		/* Only our reader is slow: what the ranks printed waits for it. */
		uv_timer_start(t, on_give_up, GIVE_UP_AFTER_MS, 0);
		return;
	}
	for (i = 0; i < job->plan->size; i++)
		give_up_rank(job, i);
	kill_agents(job, job->interrupts > 1 ? NULL : has_told_all);
	check_end(job);
}

static void on_kill(uv_timer_t *t)
{
	struct job *job = t->loop->data;

	tell_agents(job, GCI_AGENT_MSG_KILL, 0);
	uv_timer_start(t, on_give_up, GIVE_UP_AFTER_MS, 0);
}

/* rank GCI_AGENT_MSG_ALL: to all of the agent's. */
static void send_signal(struct gci_agent *a, int sig, uint32_t rank)
{
	struct gci_buf b = {0};

	gci_agent_msg_put_signal(&b, sig, rank);
	gci_agent_send(a, &b);
}

static void signal_all(struct job *job, int sig)
{
	uint32_t i;

	for (i = 0; i < job->agents.n; i++)
		send_signal(&job->agents.v[i], sig, GCI_AGENT_MSG_ALL);
}

static void signal_rank(struct job *job, uint32_t rank, int sig)
{
	uint32_t i;

	for (i = 0; i < job->agents.n; i++) {
		const struct gci_place *l = job->agents.v[i].place;

		if (rank >= l->first && rank < l->first + l->nranks)
			send_signal(&job->agents.v[i], sig, rank);
	}
}

/* The verdict does not reach a rank behind a dead link; an agent may. */
static void end_silent_ranks(struct job *job)
{
	uint32_t i;

	for (i = 0; i < job->plan->size; i++) {
		if (job->ranks[i].ended || !gci_rdv_is_silent(job->server.rdv, i))
			continue;
		signal_rank(job, i, SIGTERM);
		signal_rank(job, i, SIGCONT); /* stopped, it cannot hear */
	}
}

static void on_term(uv_timer_t *t)
{
	struct job *job = t->loop->data;

	signal_all(job, SIGTERM);
	signal_all(job, SIGCONT);
	uv_timer_start(t, on_kill, KILL_AFTER_MS, 0);
}

/* The state machine has moved. */
static void on_change(void *user)
{
	struct job *job = user;

	go_on(job);
	if (!job->failing && gci_rdv_is_over(job->server.rdv)) {
		job->failing = 1;
		end_silent_ranks(job);
		uv_timer_start(&job->escalation, on_term, TERM_AFTER_MS, 0);
	}
	check_end(job);
}

/* ---- The job while it runs: output. */

#define HELD_LONG_MS 500 /* twice this is too long */

static size_t backlog(struct job *job)
{
	return gci_sink_backlog(&job->out[0].sink) + gci_sink_backlog(&job->out[1].sink);
}

static void give_credit(struct job *job, int force)
{
	uint32_t i;

	if (backlog(job) >= BACKLOG_HIGH)
		return;
	for (i = 0; i < job->agents.n; i++) {
		struct gci_agent *a = &job->agents.v[i];
		struct gci_buf b = {0};

		if (!a->owed || (!force && a->owed < GCI_AGENT_MSG_WINDOW / 4))
			continue;
		gci_agent_msg_put_u32(&b, GCI_AGENT_MSG_CREDIT, a->owed);
		a->owed = 0;
		gci_agent_send(a, &b);
	}
}

/* A frame of one u32 (or, with 0, of nothing) to all agents. */
static void tell_agents(struct job *job, enum gci_agent_msg_type type, uint32_t v)
{
	uint32_t i;

	for (i = 0; i < job->agents.n; i++) {
		struct gci_buf b = {0};

		if (v)
			gci_agent_msg_put_u32(&b, type, v);
		else
			gci_agent_msg_put_plain(&b, type);
		gci_agent_send(&job->agents.v[i], &b);
	}
}

/* What the ranks printed is lost, and that is no rank's fault. */
static void output_lost(struct job *job, uint32_t stream, int error)
{
	char cause[128];

	snprintf(cause, sizeof(cause), "standard %s: %s", stream == 2 ? "error" : "output",
		strerror(error));
	gci_rdv_give_up(job->server.rdv, GCOLL_ERR_IO, cause, gci_now_ns());
	if (!job->closing)
		gci_server_kick(&job->server);
}

/* When our reader is gone, the ranks shall see that as they would without us between. */
static void on_drained(struct gci_sink *s)
{
	struct job *job = s->user;
	uint32_t stream = s == &job->out[1].sink ? 2 : 1;

	if (s->error && !job->out[stream - 1].hushed) {
		job->out[stream - 1].hushed = 1;
		if (s->error != EPIPE)
			output_lost(job, stream, s->error);
		tell_agents(job, GCI_AGENT_MSG_HUSH, stream);
	}
	give_credit(job, 1);
	check_end(job);
}

static void on_output(
	struct gci_agent *a, uint32_t rank, uint32_t stream, const uint8_t *data, size_t nbytes)
{
	struct job *job = a->all->user;
	struct gci_sink *s = &job->out[stream - 1].sink;
	struct job_rank *k = &job->ranks[rank];

	if (nbytes && !k->closed[stream - 1]) {
		gci_output_put(&s->o, &k->lines[stream - 1], data, nbytes);
	} else if (!k->closed[stream - 1]) {
		k->closed[stream - 1] = 1;
		gci_output_end(&s->o, &k->lines[stream - 1]);
	}
	if (k->lines[stream - 1].part.failed || s->o.out.failed) {
		fprintf(stderr, "gridcoll-run: out of memory\n");
		_exit(1); /* rather than drop output; the agents end all the rest */
	}
	gci_sink_flush(s);
	give_credit(job, 0);
	check_end(job);
}

/* Others have waited for the end of a long line: half a second to a second is enough. */
static void on_held(uv_timer_t *t)
{
	struct job *job = t->loop->data;
	int i;

	for (i = 0; i < 2; i++) {
		job->out[i].held_ticks = job->out[i].sink.o.held ? job->out[i].held_ticks + 1 : 0;
		if (job->out[i].held_ticks < 2)
			continue;
		job->out[i].held_ticks = 0;
		gci_output_break(&job->out[i].sink.o);
		gci_sink_flush(&job->out[i].sink);
	}
}

/* ---- input ---- */

static void read_stdin(struct job *job)
{
	if (job->agents.n && !job->stdin_ended && !job->closing)
		gci_source_read(&job->input, job->stdin_room);
}

static void on_stdin(struct gci_source *s, const char *data, size_t nbytes)
{
	struct job *job = s->user;
	struct gci_buf b = {0};
	size_t at = gci_agent_msg_begin(&b, GCI_AGENT_MSG_STDIN);

	gci_buf_put(&b, data, nbytes);
	gci_agent_msg_end(&b, at);
	gci_agent_send(&job->agents.v[0], &b);
	job->stdin_room -= nbytes;
	job->stdin_ended = !nbytes;
	read_stdin(job);
}

static void on_taken(struct gci_agent *a, uint32_t nbytes)
{
	struct job *job = a->all->user;

	job->stdin_room += nbytes;
	if (job->stdin_room > GCI_AGENT_MSG_WINDOW)
		job->stdin_room = GCI_AGENT_MSG_WINDOW;
	read_stdin(job);
}

static const struct gci_agent_events events = {.output = on_output,
	.ended = on_ended,
	.taken = on_taken,
	.lost = on_lost,
	.grumble = on_grumble,
	.detour = on_detour};

/* ---- signals ---- */

/* There is no process of ours to pass it on to. */
static void interrupt_service(struct job *job, int signum)
{
	char why[64];

	snprintf(why, sizeof(why), "gridcoll-run --serve was told to end (%s)", strsignal(signum));
	gci_rdv_give_up(job->server.rdv, GCOLL_ERR_ABORTED, why, gci_now_ns());
	gci_server_kick(&job->server);
}

static void on_signal(uv_signal_t *h, int signum)
{
	struct job *job = h->loop->data;

	if (signum == SIGCONT) {
		read_stdin(job);
		return;
	}
	if (job->closing && (signum == SIGINT || signum == SIGTERM))
		_exit(128 + signum); /* only the writing is left */
	if (!job->agents.n && (signum == SIGINT || signum == SIGTERM || signum == SIGHUP))
		interrupt_service(job, signum);
	if (signum == SIGINT || signum == SIGTERM || signum == SIGHUP)
		job->order = signum;
	/* The first is a request, which a rank may take its time for; the second is an order. */
	if ((signum == SIGINT || signum == SIGTERM) && job->interrupts++) {
		job->failing = 1;
		on_kill(&job->escalation);
		return;
	}
	signal_all(job, signum);
	if (signum == SIGTERM || signum == SIGHUP)
		signal_all(job, SIGCONT); /* a stopped rank would never see it */
}

static void watch_signals(struct job *job)
{
	static const int forwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT};
	struct sigaction now;
	size_t i;

	signal(SIGPIPE, SIG_IGN);
	uv_signal_init(&job->loop, &job->children);
	uv_signal_start(&job->children, on_children, SIGCHLD);
	for (i = 0; i < sizeof(forwarded) / sizeof(*forwarded); i++) {
		/* What is ignored from the beginning (nohup) stays so. */
		if (!sigaction(forwarded[i], NULL, &now) && now.sa_handler == SIG_IGN)
			continue;
		uv_signal_init(&job->loop, &job->signals[i]);
		uv_signal_start(&job->signals[i], on_signal, forwarded[i]);
	}
}

/* ---- start ---- */

#define MAX_GRACE_NS GCI_NS_PER_S

/* In a slow network the last words of a rank take longer. */
static uint64_t grace_ns(const struct gci_placement *p)
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

/* What a rank says may stand in the links' queues, for long in a dilated lab. Half of this is when
 * the first question goes out (keepalive), so the answer must have come in the other half. */
static uint64_t dead_ns(const struct gci_options *o, const struct gci_placement *p)
{
	return (o->fast_timers ? 4 : 20) * GCI_NS_PER_S + 2 * gci_grid_held_ns(&p->grid);
}

static int on_arrived(
	void *user, uint32_t rank, const char *host, const char *cluster, char *why, size_t size)
{
	struct job *job = user;

	return gci_placement_arrive(job->plan, rank, host, cluster, why, size);
}

static const char *on_settled(void *user, char *why, size_t size)
{
	struct job *job = user;
	const char *grid = gci_placement_settle(job->plan, why, size);

	if (grid)
		gci_watch_settle(&job->watch);
	return grid;
}

/* Only of our own command is it known what it means by its exit status. */
static int is_copy(char *const *argv)
{
	const char *name = argv[0]; /* NULL: others start all ranks */
	const char *slash = name ? strrchr(name, '/') : NULL;

	return name && !strcmp(slash ? slash + 1 : name, "gridcoll") && argv[1] &&
	       !strcmp(argv[1], "cp");
}

static int open_server(
	struct job *job, const struct gci_options *o, struct gci_placement *p, struct gci_error *e)
{
	struct gci_rdv_config c = {.size = p->size,
		.names = p->names,
		.hosts = p->hosts,
		.grid = p->grid_text,
		.table = p->table_text,
		.table_digest = p->table_digest,
		.beat_ns = o->fast_timers ? GCI_NS_PER_S / 4 : GCI_NS_PER_S,
		.dead_ns = dead_ns(o, p),
		.start_ns = o->start_ns,
		.survives = o->survives,
		.partial = is_copy(o->argv) ? GCI_EXIT_PARTIAL : 0,
		.shrink_ns = o->shrink_ns,
		.reports = gci_watch_reports(&job->watch),
		.grace_ns = grace_ns(p)};
	const struct gci_server_place at = {
		p->listen_ip, p->listen_netns, p->listen_ports, gci_start_tls(o, p)};
	int rc;

	if (p->nguests) {
		c.nguests = p->nguests;
		c.arrive = on_arrived;
		c.settle = on_settled;
		c.guests = job;
	}
	memcpy(c.secret, job->secret, sizeof(c.secret));
	job->dead_ns = c.dead_ns;
	rc = gci_server_open(&job->server, &job->loop, &c, &at, on_change, job, e);
	explicit_bzero(c.secret, sizeof(c.secret));
	return rc;
}

/* A job is worth more than its statistics: it goes on, and its end tells. */
static void on_stats_drained(struct gci_sink *s)
{
	struct job *job = s->loop->data;

	if (s->error && job->watch.has_file) {
		job->watch.has_file = 0;
		gci_log(GCI_LOG_ERROR,
			"--stats: cannot write %s: %s; no more is written, the job goes on",
			job->watch.path, strerror(s->error));
	}
	check_end(job);
}

static int open_job(
	struct job *job, const struct gci_options *o, struct gci_placement *p, struct gci_error *e)
{
	uint32_t i;
	int k;

	job->plan = p;
	job->ranks = gci_calloc(p->size, sizeof(*job->ranks));
	job->agents.v = gci_calloc(p->nplaces, sizeof(*job->agents.v));
	if (!job->ranks || !job->agents.v)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	for (i = 0; i < p->size; i++)
		job->ranks[i].lines[0].rank = job->ranks[i].lines[1].rank = i;
	for (i = p->size - p->nguests; i < p->size; i++)
		job->ranks[i].closed[0] = job->ranks[i].closed[1] = 1;
	if (uv_loop_init(&job->loop))
		return gci_error_set(e, GCOLL_ERR_SYS, "cannot make an event loop");
	job->loop.data = job;
	if (gci_job_secret(o, job->secret, e))
		return e->status;
	uv_timer_init(&job->loop, &job->escalation);
	uv_timer_init(&job->loop, &job->left_out);
	uv_timer_init(&job->loop, &job->held);
	uv_timer_init(&job->loop, &job->ping);
	for (k = 0; k < 2; k++) {
		gci_sink_open(&job->out[k].sink, &job->loop, k + 1, on_drained, job);
		/* Of guests nothing comes this way. */
		job->out[k].sink.o.prefix = !o->quiet_prefix && !o->guests.join;
		job->out[k].sink.o.solo = !job->out[k].sink.o.prefix && p->size - p->nguests == 1;
	}
	if (job->out[0].sink.o.terminal && job->out[1].sink.o.terminal)
		job->out[0].sink.o.beside = &job->out[1].sink.o;
	gci_source_open(&job->input, &job->loop, STDIN_FILENO, on_stdin, job);
	job->stdin_room = GCI_AGENT_MSG_WINDOW;
	gci_tree_adopt();
	gci_raise_fd_limit();
	watch_signals(job);
	if (gci_watch_open(&job->watch, o, p, &job->loop, on_stats_drained, e) ||
		open_server(job, o, p, e))
		return e->status;
	gci_watch_start(&job->watch, &job->server);
	return 0;
}

/* A job without one runs as well. */
static void open_ctl(struct job *job)
{
	struct gci_error e = {0};

	if (gci_jobctl_open(&job->ctl, &job->loop, gci_watch_commands, &job->watch, &e))
		gci_log(GCI_LOG_WARN, "%s; gridcoll top and gridcoll ctl will not find this job",
			e.text);
}

/* For whoever starts the ranks. */
static void say_where(struct job *job, const struct gci_options *o)
{
	char self[256] = "";
	const char *host = o->net.address ? o->net.address : o->guests.serve_ip;

	if (!*host && !gethostname(self, sizeof(self) - 1))
		host = self;
	printf(strchr(host, ':') ? "GRIDCOLL_RENDEZVOUS=[%s]:%u\n" : "GRIDCOLL_RENDEZVOUS=%s:%u\n",
		host, job->server.port);
	fflush(stdout);
}

static int start_agents(struct job *job, const struct gci_options *o, struct gci_error *e)
{
	const struct gci_start s = {
		.port = job->server.port, .dead_ns = job->dead_ns, .secret = job->secret};

	job->agents.loop = &job->loop;
	job->agents.remote_path = o->ssh.remote_path;
	job->agents.ssh_ns = o->ssh.limit_ns;
	job->agents.events = &events;
	job->agents.user = job;
	return gci_agents_start(&job->agents, o, job->plan, &s, e);
}

int gci_run(const struct gci_options *o, struct gci_placement *p)
{
	static struct job job; /* there until the process ends: threads may use it */
	struct gci_error e = {0};
	int status, rc = open_job(&job, o, p, &e);

	if (!rc)
		open_ctl(&job);
	if (!rc)
		rc = start_agents(&job, o, &e);
	explicit_bzero(job.secret, sizeof(job.secret));
	if (rc) {
		fprintf(stderr, "gridcoll-run: %s\n", e.text);
		gci_jobctl_close(&job.ctl);
		gci_tree_end(2 * GCI_NS_PER_S);
		return e.status == GCOLL_ERR_INVAL ? GCI_USAGE_STATUS : 1;
	}
	if (o->guests.serve)
		say_where(&job, o);
	uv_timer_start(&job.held, on_held, HELD_LONG_MS, HELD_LONG_MS);
	uv_timer_start(&job.ping, on_ping, 1000, 1000);
	read_stdin(&job);
	uv_run(&job.loop, UV_RUN_DEFAULT);
	gci_jobctl_close(&job.ctl);
	gci_tree_end(GCI_NS_PER_S);
	if (job.interrupts > 1)
		return 128 + job.order;
	status = gci_rdv_exit_status(job.server.rdv);
	return !status && gci_watch_failed(&job.watch) ? 1 : status;
}
