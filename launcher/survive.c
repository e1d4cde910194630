/* SPDX-License-Identifier: MIT
 * A job that goes on after failures: they are told as they happen, and processes that were left out
 * though they live are ended. */
#include "launcher/job.h"

#include <signal.h>
#include <string.h>

#define TERM_AFTER_MS 1000 /* they were told, and may end by themselves */
#define KILL_AFTER_MS 2000

static void tell_news(void)
{
	struct gci_buf news;
	char *line, *rest = NULL;

	gci_rdv_news(gci_job.server.rdv, &news);
	if (news.len && !gci_job.failing) {
		gci_buf_cstr(&news);
		for (line = strtok_r((char *)news.data, "\n", &rest); line;
			line = strtok_r(NULL, "\n", &rest))
			gci_job_say(line);
	}
	gci_buf_free(&news);
}

static void on_left_out(uv_timer_t *t)
{
	int again = 0;
	uint32_t i;

	for (i = 0; i < gci_job.plan->size; i++) {
		struct gci_job_rank *k = &gci_job.ranks[i];

		if (k->ended || !gci_rdv_is_left_out(gci_job.server.rdv, i))
			continue;
		gci_job_signal(i, k->asked_to_end ? SIGKILL : SIGTERM);
		gci_job_signal(i, SIGCONT); /* stopped, it cannot hear */
		again |= !k->asked_to_end;
		k->asked_to_end = 1;
	}
	if (again)
		uv_timer_start(t, on_left_out, KILL_AFTER_MS, 0);
}

void gci_job_go_on(void)
{
	uint32_t n = gci_rdv_nleft_out(gci_job.server.rdv);

	if (gci_rdv_is_over(gci_job.server.rdv))
		return;
	tell_news();
	if (n == gci_job.nleft_out || uv_is_active((uv_handle_t *)&gci_job.left_out))
		return;
	gci_job.nleft_out = n;
	uv_timer_start(&gci_job.left_out, on_left_out, TERM_AFTER_MS, 0);
}
