/* SPDX-License-Identifier: MIT
 * A job that goes on after failures: they are told as they happen, and processes that were left out
 * though they live are ended. */
#include "launcher/job.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

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

void gci_job_go_on(void)
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
