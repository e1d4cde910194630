/* SPDX-License-Identifier: MIT
 * How a job ends: the ends of its processes, the verdict and what follows from it. */
#include "launcher/job.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

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

void gci_job_give_up_rank(uint32_t rank)
{
	struct gci_job_rank *k = &gci_job.ranks[rank];

	if (!k->ended)
		gci_rdv_exited(gci_job.server.rdv, rank, 0, SIGKILL, gci_now_ns());
	k->given_up |= !k->ended || !k->closed[0] || !k->closed[1];
	rank_is_over(rank);
}

void gci_job_on_ended(struct gci_agent *a, uint32_t rank, int code, int sig, const char *why)
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

void gci_job_on_lost(struct gci_agent *a, const char *why)
{
	uint32_t i;

	for (i = a->place->first; i < a->place->first + a->place->nranks; i++) {
		if (!gci_job.ranks[i].ended)
			gci_rdv_failed(gci_job.server.rdv, i, 1, why, gci_now_ns());
		rank_is_over(i);
	}
	gci_server_kick(&gci_job.server);
}

void gci_job_on_grumble(struct gci_agent *a, const char *text)
{
	char line[512];

	snprintf(line, sizeof(line), "gridcoll-run: %s: %s", a->place->host, text);
	gci_output_say(&gci_job.sinks[1].o, line);
	gci_sink_flush(&gci_job.sinks[1]);
}

/* Where one was not let in, mostly none is. */
void gci_job_on_detour(struct gci_agent *a, const char *why)
{
	if (!gci_job.detours++)
		gci_job_on_grumble(a, why);
}

/* After a pause of our own, agents may have spoken without having been heard yet. */
void gci_job_on_ping(uv_timer_t *t)
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
	gci_job_to_all(GCI_FRAME_PING, 0);
}

void gci_job_on_children(uv_signal_t *h, int signum)
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

void gci_job_say(const char *text)
{
	char line[GCI_RANKLIST_NBYTES + GCI_CTL_TEXT + 96];

	snprintf(line, sizeof(line), "gridcoll-run: %s", text);
	gci_output_say(&gci_job.sinks[1].o, line);
	gci_sink_flush(&gci_job.sinks[1]);
}

/* Of a failure that the job might have survived, survive.c has told. */
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

/* The end has three steps: all ranks are over; all agents are; all is written. */
void gci_job_check_end(void)
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

void gci_job_on_kill(uv_timer_t *t)
{
	gci_job_to_all(GCI_FRAME_KILL, 0);
	uv_timer_start(t, on_give_up, GIVE_UP_AFTER_MS, 0);
}

/* rank GCI_FRAME_ALL: to all of the agent's. */
static void send_signal(struct gci_agent *a, int sig, uint32_t rank)
{
	struct gci_buf b = {0};

	gci_frame_put_signal(&b, sig, rank);
	gci_agent_send(a, &b);
}

void gci_job_signal_all(int sig)
{
	uint32_t i;

	for (i = 0; i < gci_job.nagents; i++)
		send_signal(&gci_job.agents[i], sig, GCI_FRAME_ALL);
}

void gci_job_signal(uint32_t rank, int sig)
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
void gci_job_on_change(void *user)
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
