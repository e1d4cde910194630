/* SPDX-License-Identifier: MIT */
#include "launcher/run.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "launcher/job.h"
#include "launcher/secret.h"
#include "launcher/spawn.h"
#include "shaping/budget.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void gci_job_give_up_rank(uint32_t rank);
static void gci_job_say(const char *text);
static void gci_job_check_end(void);
static void gci_job_signal(uint32_t rank, int sig);
static size_t gci_job_backlog(void);
static void gci_job_to_all(enum gci_agent_msg_type type, uint32_t v);

/* ---- Budgets of a job: those it begins with, and those it is told of while it runs. */

static int find_cluster(const struct gci_grid *g, const char *name, struct gci_error *e)
{
	struct gci_buf list = {0};
	int i;

	for (i = 0; i < g->nclusters; i++)
		if (!strcmp(g->clusters[i].name, name))
			return i;
	for (i = 0; i < g->nclusters; i++)
		gci_buf_printf(&list, "%s%s", i ? ", " : "", g->clusters[i].name);
	gci_error_set(e, GCOLL_ERR_INVAL, "unknown cluster %s, expected one of: %.300s", name,
		gci_buf_cstr(&list));
	gci_buf_free(&list);
	return -1;
}

/* The number of the link that a budget is for, among the grid's; or GCOLL_ERR_INVAL. */
static int gci_placement_link(
	const struct gci_placement *p, const struct gci_budget_order *o, struct gci_error *e)
{
	int from = find_cluster(&p->grid, o->from, e);
	int to = from < 0 ? -1 : find_cluster(&p->grid, o->to, e);

	if (to < 0)
		return GCOLL_ERR_INVAL;
	if (from == to)
		return gci_error_set(
			e, GCOLL_ERR_INVAL, "cluster %s to itself, expected two clusters", o->from);
	return (int)(gci_grid_link(&p->grid, from, to) - p->grid.links);
}

/* A lab's links are slower than the grid's by as much as its time is. */
static uint64_t in_lab(const struct gci_grid *g, uint64_t bps)
{
	return bps && bps < g->dilation ? 1 : bps / g->dilation;
}

static const char nobody_keeps[] = "with --pace off nobody keeps a budget";

int gci_placement_budgets(struct gci_placement *p, const struct gci_options *o, struct gci_error *e)
{
	const char *pace = o->pace ? o->pace : getenv("GRIDCOLL_PACE");
	struct gci_budget_order order;
	unsigned i;
	int link;

	p->unpaced = pace && !strcmp(pace, "off");
	if (p->unpaced && o->nbudgets)
		return gci_error_set(
			e, GCOLL_ERR_INVAL, "--wan-budget %.60s: %s", o->budgets[0], nobody_keeps);
	for (i = 0; i < o->nbudgets; i++) {
		struct gci_error why = {0};

		if (gci_budget_parse(&order, o->budgets[i], e))
			return e->status;
		link = gci_placement_link(p, &order, &why);
		if (link < 0)
			return gci_error_set(e, why.status, "--wan-budget %.60s: %.400s",
				o->budgets[i], why.text);
		p->grid.links[link].budget_bps = in_lab(&p->grid, order.bps);
	}
	return o->nbudgets ? gci_placement_retell(p, e) : 0;
}

int gci_job_budget(const struct gci_budget_order *o, struct gci_error *e)
{
	struct gci_grid *g = &gci_job.plan->grid;
	int link = gci_placement_link(gci_job.plan, o, e);
	struct gci_ctl_budget b;

	if (link < 0)
		return link;
	if (gci_job.plan->unpaced)
		return gci_error_set(e, GCOLL_ERR_UNSUPPORTED, "%s", nobody_keeps);
	b = (struct gci_ctl_budget){.from = (uint32_t)g->links[link].from,
		.to = (uint32_t)g->links[link].to,
		.bps = in_lab(g, o->bps)};
	if (gci_rdv_budget(gci_job.server.rdv, &b))
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	g->links[link].budget_bps = b.bps;
	gci_server_kick(&gci_job.server);
	return 0;
}

/* ---- A job that goes on after failures: they are told as they happen, and processes that were left out
 * though they live are ended. */

#define LOOK_EVERY_MS 250

/* From when a rank is left out: it was told, and may end by itself. */
#define TERM_AFTER_NS    (1000 * GCI_NS_PER_MS)
#define KILL_AFTER_NS    (3000 * GCI_NS_PER_MS)
#define GIVE_UP_AFTER_NS (3800 * GCI_NS_PER_MS)

static void tell_news(void)
{
	struct gci_buf news;
	const char *line, *end;

	gci_rdv_news(gci_job.server.rdv, &news);
	line = gci_job.failing ? "" : gci_buf_cstr(&news);
	for (; (end = strchr(line, '\n')); line = end + 1) {
		char text[GCI_RANKLIST_NBYTES + GCI_CTL_TEXT + 64];

		snprintf(text, sizeof(text), "%.*s", (int)(end - line), line);
		gci_job_say(text);
	}
	gci_buf_free(&news);
}

static void signal_once(uint32_t rank, int sig)
{
	struct gci_job_rank *k = &gci_job.ranks[rank];

	if (k->last_signal == sig)
		return;
	k->last_signal = sig;
	gci_job_signal(rank, sig);
	gci_job_signal(rank, SIGCONT); /* stopped, it cannot hear */
}

/* One step further; false when there is none any more. An agent that tells of no end even so is
 * as dead as its host may be. */
static int end_left_out(uint32_t rank, uint64_t age_ns)
{
	if (gci_job.ranks[rank].ended)
		return 0;
	if (age_ns >= GIVE_UP_AFTER_NS) {
		gci_job_give_up_rank(rank);
		return 0;
	}
	if (age_ns >= KILL_AFTER_NS)
		signal_once(rank, SIGKILL);
	else if (age_ns >= TERM_AFTER_NS)
		signal_once(rank, SIGTERM);
	return 1;
}

static void on_left_out(uv_timer_t *t)
{
	uint64_t now_ns = gci_now_ns();
	int any = 0;
	uint32_t i;

	for (i = 0; i < gci_job.plan->size; i++) {
		struct gci_job_rank *k = &gci_job.ranks[i];

		if (!gci_rdv_is_left_out(gci_job.server.rdv, i))
			continue;
		if (!k->left_out_ns)
			k->left_out_ns = now_ns;
		any |= end_left_out(i, now_ns - k->left_out_ns);
	}
	if (!any)
		uv_timer_stop(t);
	gci_job_check_end();
}

/* After each move of a job that goes on after failures. */
static void gci_job_go_on(void)
{
	uint32_t n = gci_rdv_nleft_out(gci_job.server.rdv);

	if (gci_rdv_is_over(gci_job.server.rdv))
		return;
	tell_news();
	if (n == gci_job.nleft_out)
		return;
	gci_job.nleft_out = n;
	if (!uv_is_active((uv_handle_t *)&gci_job.left_out))
		uv_timer_start(&gci_job.left_out, on_left_out, 0, LOOK_EVERY_MS);
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

static void rank_is_over(uint32_t rank)
{
	struct gci_job_rank *k = &gci_job.ranks[rank];
	int i;

	k->ended = 1;
	for (i = 0; i < 2; i++) {
		if (k->closed[i])
			continue;
		k->closed[i] = 1;
		gci_output_end(&gci_job.sinks[i].o, &k->lines[i]);
		gci_sink_flush(&gci_job.sinks[i]);
	}
}

/* Nothing more is expected of it, nor of its agent about it. */
static void gci_job_give_up_rank(uint32_t rank)
{
	struct gci_job_rank *k = &gci_job.ranks[rank];

	if (!k->ended)
		gci_rdv_exited(gci_job.server.rdv, rank, 0, SIGKILL, gci_now_ns());
	k->given_up |= !k->ended || !k->closed[0] || !k->closed[1];
	rank_is_over(rank);
}

static void gci_job_on_ended(struct gci_agent *a, uint32_t rank, int code, int sig, const char *why)
{
	(void)a;
	if (gci_job.ranks[rank].ended)
		return;
	gci_job.ranks[rank].ended = 1;
	if (*why) {
		rank_is_over(rank);
		gci_rdv_failed(gci_job.server.rdv, rank, code, why, gci_now_ns());
	} else {
		gci_rdv_exited(gci_job.server.rdv, rank, code, sig, gci_now_ns());
	}
	gci_server_kick(&gci_job.server);
}

static void gci_job_on_lost(struct gci_agent *a, const char *why)
{
	uint32_t i;

	for (i = a->place->first; i < a->place->first + a->place->nranks; i++) {
		if (!gci_job.ranks[i].ended)
			gci_rdv_failed(gci_job.server.rdv, i, 1, why, gci_now_ns());
		rank_is_over(i);
	}
	gci_server_kick(&gci_job.server);
}

static void gci_job_on_grumble(struct gci_agent *a, const char *text)
{
	char line[512];

	snprintf(line, sizeof(line), "gridcoll-run: %s: %s", a->place->host, text);
	gci_output_say(&gci_job.sinks[1].o, line);
	gci_sink_flush(&gci_job.sinks[1]);
}

/* Where one was not let in, mostly none is. */
static void gci_job_on_detour(struct gci_agent *a, const char *why)
{
	if (!gci_job.detours++)
		gci_job_on_grumble(a, why);
}

/* After a pause of our own, agents may have spoken without having been heard yet. */
static void gci_job_on_ping(uv_timer_t *t)
{
	uint64_t now_ns = gci_now_ns();
	int paused = now_ns - gci_job.pinged_ns > gci_job.dead_ns / 2;
	uint32_t i;

	(void)t;
	for (i = 0; i < gci_job.nagents; i++) {
		struct gci_agent *a = &gci_job.agents[i];

		if (paused)
			gci_agent_paused(a, now_ns);
		gci_agent_check(a, now_ns, gci_job.dead_ns);
	}
	gci_job.pinged_ns = now_ns;
	gci_job_to_all(GCI_AGENT_MSG_PING, 0);
}

static void gci_job_on_children(uv_signal_t *h, int signum)
{
	int status;
	pid_t pid;
	uint32_t i;

	(void)h;
	(void)signum;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (i = 0; i < gci_job.nagents; i++)
			if (gci_job.agents[i].pid == pid)
				gci_agent_died(&gci_job.agents[i], status);
	gci_job_check_end();
}

static void gci_job_say(const char *text)
{
	char line[GCI_RANKLIST_NBYTES + GCI_CTL_TEXT + 96];

	snprintf(line, sizeof(line), "gridcoll-run: %s", text);
	gci_output_say(&gci_job.sinks[1].o, line);
	gci_sink_flush(&gci_job.sinks[1]);
}

/* Of a failure that the job might have survived, tell_news has told. */
static void say_verdict(void)
{
	const struct gci_rdv_verdict *v = gci_rdv_verdict(gci_job.server.rdv);
	char line[GCI_RANKLIST_NBYTES + GCI_CTL_TEXT + 64];

	if (!v || gci_job.said)
		return;
	gci_job.said = 1;
	snprintf(line, sizeof(line), "%s%s%s", v->who, gci_rdv_verb(v), v->cause);
	if (gci_job.interrupts > 1) {
		gci_job_say("interrupted twice, all ranks killed");
		return;
	}
	/* No rank is to blame for having done as it was told. */
	if (gci_job.order && gci_rdv_exit_status(gci_job.server.rdv) == 128 + gci_job.order)
		snprintf(line, sizeof(line), "told to end (%s), as were all ranks",
			strsignal(gci_job.order));
	if (gci_rdv_is_over(gci_job.server.rdv)) {
		gci_job_say(line);
		return;
	}
	gci_rdv_tell_last_words(gci_job.server.rdv);
	gci_job_go_on();
}

static int has_told_all(const struct gci_agent *a)
{
	uint32_t i;

	for (i = a->place->first; i < a->place->first + a->place->nranks; i++)
		if (!gci_job.ranks[i].ended || gci_job.ranks[i].given_up)
			return 0;
	return !a->lost;
}

static void kill_agents(int (*spared)(const struct gci_agent *a))
{
	uint32_t i;

	for (i = 0; i < gci_job.nagents; i++)
		if (gci_job.agents[i].pid && !(spared && spared(&gci_job.agents[i])))
			kill(gci_job.agents[i].pid, SIGKILL);
}

static void on_agents_too_late(uv_timer_t *t)
{
	(void)t;
	kill_agents(NULL);
}

static void on_agents_late(uv_timer_t *t)
{
	kill_agents(has_told_all);
	uv_timer_start(t, on_agents_too_late, gci_job.dead_ns / GCI_NS_PER_MS, 0);
}

static int all_over(void)
{
	uint32_t i;

	for (i = 0; i < gci_job.plan->size; i++)
		if ((!gci_job.ranks[i].ended && !gci_rdv_is_gone(gci_job.server.rdv, i)) ||
			!gci_job.ranks[i].closed[0] || !gci_job.ranks[i].closed[1])
			return 0;
	return gci_rdv_settled(gci_job.server.rdv);
}

/* Goes on to the end when it is time. It has three steps: all ranks are over; all
 * agents are; all is written. */
static void gci_job_check_end(void)
{
	uint32_t i;

	if (!gci_job.closing && all_over()) {
		gci_job.closing = 1;
		gci_watch_end(&gci_job.watch);
		uv_timer_stop(&gci_job.escalation);
		for (i = 0; i < gci_job.nagents; i++)
			gci_agent_close(&gci_job.agents[i]);
		uv_timer_start(&gci_job.escalation, on_agents_late, AGENT_END_MS, 0);
	}
	if (!gci_job.closing)
		return;
	for (i = 0; i < gci_job.nagents; i++)
		if (gci_job.agents[i].runs)
			return;
	say_verdict();
	if (!gci_job_backlog() && !gci_sink_backlog(&gci_job.watch.file))
		uv_stop(&gci_job.loop);
}

/* ---- failure ---- */

static int all_ended(void)
{
	uint32_t i;

	for (i = 0; i < gci_job.plan->size; i++)
		if (!gci_job.ranks[i].ended)
			return 0;
	return 1;
}

static void on_give_up(uv_timer_t *t)
{
	uint32_t i;

	if (all_ended() && gci_job_backlog() >= GCI_JOB_BACKLOG_HIGH) {
		/* Only our reader is slow: what the ranks printed waits for it. */
		uv_timer_start(t, on_give_up, GIVE_UP_AFTER_MS, 0);
		return;
	}
	for (i = 0; i < gci_job.plan->size; i++)
		gci_job_give_up_rank(i);
	kill_agents(gci_job.interrupts > 1 ? NULL : has_told_all);
	gci_job_check_end();
}

static void gci_job_on_kill(uv_timer_t *t)
{
	gci_job_to_all(GCI_AGENT_MSG_KILL, 0);
	uv_timer_start(t, on_give_up, GIVE_UP_AFTER_MS, 0);
}

/* rank GCI_AGENT_MSG_ALL: to all of the agent's. */
static void send_signal(struct gci_agent *a, int sig, uint32_t rank)
{
	struct gci_buf b = {0};

	gci_agent_msg_put_signal(&b, sig, rank);
	gci_agent_send(a, &b);
}

static void gci_job_signal_all(int sig)
{
	uint32_t i;

	for (i = 0; i < gci_job.nagents; i++)
		send_signal(&gci_job.agents[i], sig, GCI_AGENT_MSG_ALL);
}

static void gci_job_signal(uint32_t rank, int sig)
{
	uint32_t i;

	for (i = 0; i < gci_job.nagents; i++) {
		const struct gci_place *l = gci_job.agents[i].place;

		if (rank >= l->first && rank < l->first + l->nranks)
			send_signal(&gci_job.agents[i], sig, rank);
	}
}

/* The verdict does not reach a rank behind a dead link; an agent may. */
static void end_silent_ranks(void)
{
	uint32_t i;

	for (i = 0; i < gci_job.plan->size; i++) {
		if (gci_job.ranks[i].ended || !gci_rdv_is_silent(gci_job.server.rdv, i))
			continue;
		gci_job_signal(i, SIGTERM);
		gci_job_signal(i, SIGCONT); /* stopped, it cannot hear */
	}
}

static void on_term(uv_timer_t *t)
{
	gci_job_signal_all(SIGTERM);
	gci_job_signal_all(SIGCONT);
	uv_timer_start(t, gci_job_on_kill, KILL_AFTER_MS, 0);
}

/* The state machine has moved. */
static void gci_job_on_change(void *user)
{
	(void)user;
	gci_job_go_on();
	if (!gci_job.failing && gci_rdv_is_over(gci_job.server.rdv)) {
		gci_job.failing = 1;
		end_silent_ranks();
		uv_timer_start(&gci_job.escalation, on_term, TERM_AFTER_MS, 0);
	}
	gci_job_check_end();
}

/* ---- The job while it runs. */

#define HELD_LONG_MS 500 /* twice this is too long */
#define MAX_GRACE_NS GCI_NS_PER_S

struct gci_job gci_job;

/* ---- output ---- */

static size_t gci_job_backlog(void)
{
	return gci_sink_backlog(&gci_job.sinks[0]) + gci_sink_backlog(&gci_job.sinks[1]);
}

static void give_credit(int force)
{
	uint32_t i;

	if (gci_job_backlog() >= GCI_JOB_BACKLOG_HIGH)
		return;
	for (i = 0; i < gci_job.nagents; i++) {
		struct gci_agent *a = &gci_job.agents[i];
		struct gci_buf b = {0};

		if (!a->owed || (!force && a->owed < GCI_AGENT_MSG_WINDOW / 4))
			continue;
		gci_agent_msg_put_u32(&b, GCI_AGENT_MSG_CREDIT, a->owed);
		a->owed = 0;
		gci_agent_send(a, &b);
	}
}

/* A frame of one u32 (or, with 0, of nothing) to all agents. */
static void gci_job_to_all(enum gci_agent_msg_type type, uint32_t v)
{
	uint32_t i;

	for (i = 0; i < gci_job.nagents; i++) {
		struct gci_buf b = {0};

		if (v)
			gci_agent_msg_put_u32(&b, type, v);
		else
			gci_agent_msg_put_plain(&b, type);
		gci_agent_send(&gci_job.agents[i], &b);
	}
}

/* What the ranks printed is lost, and that is no rank's fault. */
static void output_lost(uint32_t stream, int error)
{
	char cause[128];

	snprintf(cause, sizeof(cause), "standard %s: %s", stream == 2 ? "error" : "output",
		strerror(error));
	gci_rdv_give_up(gci_job.server.rdv, GCOLL_ERR_IO, cause, gci_now_ns());
	if (!gci_job.closing)
		gci_server_kick(&gci_job.server);
}

/* When our reader is gone, the ranks shall see that as they would without us between. */
static void on_drained(struct gci_sink *s)
{
	uint32_t stream = s == &gci_job.sinks[1] ? 2 : 1;

	if (s->error && !gci_job.hushed[stream - 1]) {
		gci_job.hushed[stream - 1] = 1;
		if (s->error != EPIPE)
			output_lost(stream, s->error);
		gci_job_to_all(GCI_AGENT_MSG_HUSH, stream);
	}
	give_credit(1);
	gci_job_check_end();
}

static void on_output(
	struct gci_agent *a, uint32_t rank, uint32_t stream, const uint8_t *data, size_t nbytes)
{
	struct gci_sink *s = &gci_job.sinks[stream - 1];
	struct gci_job_rank *k = &gci_job.ranks[rank];

	(void)a;
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
	give_credit(0);
	gci_job_check_end();
}

/* Others have waited for the end of a long line: half a second to a second is enough. */
static void on_held(uv_timer_t *t)
{
	int i;

	(void)t;
	for (i = 0; i < 2; i++) {
		gci_job.held_ticks[i] = gci_job.sinks[i].o.held ? gci_job.held_ticks[i] + 1 : 0;
		if (gci_job.held_ticks[i] < 2)
			continue;
		gci_job.held_ticks[i] = 0;
		gci_output_break(&gci_job.sinks[i].o);
		gci_sink_flush(&gci_job.sinks[i]);
	}
}

/* ---- input ---- */

static void read_stdin(void)
{
	if (gci_job.nagents && !gci_job.stdin_ended && !gci_job.closing)
		gci_source_read(&gci_job.input, gci_job.stdin_room);
}

static void on_stdin(struct gci_source *s, const char *data, size_t nbytes)
{
	struct gci_buf b = {0};
	size_t at = gci_agent_msg_begin(&b, GCI_AGENT_MSG_STDIN);

	(void)s;
	gci_buf_put(&b, data, nbytes);
	gci_agent_msg_end(&b, at);
	gci_agent_send(&gci_job.agents[0], &b);
	gci_job.stdin_room -= nbytes;
	gci_job.stdin_ended = !nbytes;
	read_stdin();
}

static void on_taken(struct gci_agent *a, uint32_t nbytes)
{
	(void)a;
	gci_job.stdin_room += nbytes;
	if (gci_job.stdin_room > GCI_AGENT_MSG_WINDOW)
		gci_job.stdin_room = GCI_AGENT_MSG_WINDOW;
	read_stdin();
}

static const struct gci_agent_events events = {.output = on_output,
	.ended = gci_job_on_ended,
	.taken = on_taken,
	.lost = gci_job_on_lost,
	.grumble = gci_job_on_grumble,
	.detour = gci_job_on_detour};

/* ---- signals ---- */

/* There is no process of ours to pass it on to. */
static void interrupt_service(int signum)
{
	char why[64];

	snprintf(why, sizeof(why), "gridcoll-run --serve was told to end (%s)", strsignal(signum));
	gci_rdv_give_up(gci_job.server.rdv, GCOLL_ERR_ABORTED, why, gci_now_ns());
	gci_server_kick(&gci_job.server);
}

static void on_signal(uv_signal_t *h, int signum)
{
	(void)h;
	if (signum == SIGCONT) {
		read_stdin();
		return;
	}
	if (gci_job.closing && (signum == SIGINT || signum == SIGTERM))
		_exit(128 + signum); /* only the writing is left */
	if (!gci_job.nagents && (signum == SIGINT || signum == SIGTERM || signum == SIGHUP))
		interrupt_service(signum);
	if (signum == SIGINT || signum == SIGTERM || signum == SIGHUP)
		gci_job.order = signum;
	/* The first is a request, which a rank may take its time for; the second is an order. */
	if ((signum == SIGINT || signum == SIGTERM) && gci_job.interrupts++) {
		gci_job.failing = 1;
		gci_job_on_kill(&gci_job.escalation);
		return;
	}
	gci_job_signal_all(signum);
	if (signum == SIGTERM || signum == SIGHUP)
		gci_job_signal_all(SIGCONT); /* a stopped rank would never see it */
}

static void watch_signals(void)
{
	static const int forwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT};
	struct sigaction now;
	size_t i;

	signal(SIGPIPE, SIG_IGN);
	uv_signal_init(&gci_job.loop, &gci_job.children);
	uv_signal_start(&gci_job.children, gci_job_on_children, SIGCHLD);
	for (i = 0; i < sizeof(forwarded) / sizeof(*forwarded); i++) {
		/* What is ignored from the beginning (nohup) stays so. */
		if (!sigaction(forwarded[i], NULL, &now) && now.sa_handler == SIG_IGN)
			continue;
		uv_signal_init(&gci_job.loop, &gci_job.signals[i]);
		uv_signal_start(&gci_job.signals[i], on_signal, forwarded[i]);
	}
}

/* ---- start ---- */

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

static const char *on_settled(void *plan, char *why, size_t size)
{
	const char *grid = gci_placement_settle(plan, why, size);

	if (grid)
		gci_watch_settle(&gci_job.watch);
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

static int open_server(const struct gci_options *o, struct gci_placement *p, struct gci_error *e)
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
		.grace_ns = grace_ns(p)};
	const struct gci_server_place at = {
		p->listen_ip, p->listen_netns, p->listen_ports, gci_job_tls(o, p)};
	int rc;

	c.report = gci_watch_report;
	c.flows = gci_watch_flows;
	c.renewed = gci_watch_renewed;
	c.user = &gci_job.watch;
	if (p->nguests) {
		c.nguests = p->nguests;
		c.arrive = gci_placement_arrive;
		c.settle = on_settled;
		c.guests = p;
	}
	memcpy(c.secret, gci_job.secret, sizeof(c.secret));
	gci_job.dead_ns = c.dead_ns;
	rc = gci_server_open(&gci_job.server, &gci_job.loop, &c, &at, gci_job_on_change, NULL, e);
	explicit_bzero(c.secret, sizeof(c.secret));
	return rc;
}

/* A job is worth more than its statistics. */
static void on_stats_drained(struct gci_sink *s)
{
	if (s->error && gci_job.watch.has_file) {
		gci_job.watch.has_file = 0;
		gci_log(GCI_LOG_WARN, "--stats: %s; no more is written", strerror(s->error));
	}
	gci_job_check_end();
}

static int open_job(const struct gci_options *o, struct gci_placement *p, struct gci_error *e)
{
	uint32_t i;
	int k;

	gci_job.plan = p;
	gci_job.ranks = gci_calloc(p->size, sizeof(*gci_job.ranks));
	gci_job.agents = gci_calloc(p->nplaces, sizeof(*gci_job.agents));
	if (!gci_job.ranks || !gci_job.agents)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	for (i = 0; i < p->size; i++)
		gci_job.ranks[i].lines[0].rank = gci_job.ranks[i].lines[1].rank = i;
	for (i = p->size - p->nguests; i < p->size; i++)
		gci_job.ranks[i].closed[0] = gci_job.ranks[i].closed[1] = 1;
	if (uv_loop_init(&gci_job.loop))
		return gci_error_set(e, GCOLL_ERR_SYS, "cannot make an event loop");
	if (gci_job_secret(o, gci_job.secret, e))
		return e->status;
	uv_timer_init(&gci_job.loop, &gci_job.escalation);
	uv_timer_init(&gci_job.loop, &gci_job.left_out);
	uv_timer_init(&gci_job.loop, &gci_job.held);
	uv_timer_init(&gci_job.loop, &gci_job.ping);
	for (k = 0; k < 2; k++) {
		gci_sink_open(&gci_job.sinks[k], &gci_job.loop, k + 1, on_drained, NULL);
		/* Of guests nothing comes this way. */
		gci_job.sinks[k].o.prefix = !o->quiet_prefix && !o->join;
		gci_job.sinks[k].o.solo = !gci_job.sinks[k].o.prefix && p->size - p->nguests == 1;
	}
	if (gci_job.sinks[0].o.terminal && gci_job.sinks[1].o.terminal)
		gci_job.sinks[0].o.beside = &gci_job.sinks[1].o;
	gci_source_open(&gci_job.input, &gci_job.loop, STDIN_FILENO, on_stdin, NULL);
	gci_job.stdin_room = GCI_AGENT_MSG_WINDOW;
	gci_tree_adopt();
	gci_raise_fd_limit();
	watch_signals();
	if (gci_watch_open(&gci_job.watch, o, p, &gci_job.loop, on_stats_drained, e) ||
		open_server(o, p, e))
		return e->status;
	gci_watch_start(&gci_job.watch, &gci_job.server);
	return 0;
}

/* A job without one runs as well. */
static void open_ctl(const struct gci_options *o)
{
	struct gci_error e = {0};

	if (gci_jobctl_open(&gci_job.ctl, &gci_job.loop, gci_job_commands, o->argv, &e))
		gci_log(GCI_LOG_WARN, "%s; gridcoll top and gridcoll ctl will not find this job",
			e.text);
}

/* For whoever starts the ranks. */
static void say_where(const struct gci_options *o)
{
	char self[256] = "";
	const char *host = o->address ? o->address : o->serve_ip;

	if (!*host && !gethostname(self, sizeof(self) - 1))
		host = self;
	printf(strchr(host, ':') ? "GRIDCOLL_RENDEZVOUS=[%s]:%u\n" : "GRIDCOLL_RENDEZVOUS=%s:%u\n",
		host, gci_job.server.port);
	fflush(stdout);
}

int gci_run(const struct gci_options *o, struct gci_placement *p)
{
	struct gci_error e = {0};
	int rc = open_job(o, p, &e);

	if (!rc)
		open_ctl(o);
	if (!rc)
		rc = gci_job_start(o, p, &events, &e);
	explicit_bzero(gci_job.secret, sizeof(gci_job.secret));
	if (rc) {
		fprintf(stderr, "gridcoll-run: %s\n", e.text);
		gci_jobctl_close(&gci_job.ctl);
		gci_tree_end(2 * GCI_NS_PER_S);
		return e.status == GCOLL_ERR_INVAL ? GCI_USAGE_STATUS : 1;
	}
	if (o->serve)
		say_where(o);
	uv_timer_start(&gci_job.held, on_held, HELD_LONG_MS, HELD_LONG_MS);
	uv_timer_start(&gci_job.ping, gci_job_on_ping, 1000, 1000);
	read_stdin();
	uv_run(&gci_job.loop, UV_RUN_DEFAULT);
	gci_jobctl_close(&gci_job.ctl);
	gci_tree_end(GCI_NS_PER_S);
	if (gci_job.interrupts > 1)
		return 128 + gci_job.order;
	return gci_rdv_exit_status(gci_job.server.rdv);
}
