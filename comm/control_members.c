/* SPDX-License-Identifier: MIT
 * Agreeing and shrinking: questions to the launcher whose answers are waited for. */
#include "comm/control_impl.h"

#include "base/mem.h"
#include "base/threads.h"

void gci_control_init_members(struct gci_control_members *m)
{
	gci_cond_init(&m->news);
}

void gci_control_free_members(struct gci_control_members *m)
{
	gci_free(m->survivors.ranks);
	pthread_cond_destroy(&m->news);
}

void gci_control_end_members(struct gci_control_members *m, const struct gci_ctl_failure *why)
{
	if (!m->over)
		m->why = *why;
	m->over = 1;
	pthread_cond_broadcast(&m->news);
}

/* With SURVIVORS an epoch begins, in which nothing has happened yet. */
static void begin_epoch(struct gci_control *ctl, struct gci_ctl_survivors *s)
{
	gci_free(ctl->members.survivors.ranks);
	ctl->members.survivors = *s;
	ctl->members.has_survivors = 1;
	s->ranks = NULL;
	ctl->has_verdict = ctl->all_gone = 0;
	ctl->nasked = 0;
}

void gci_control_take_members(struct gci_control *ctl, struct gci_ctl_message *m)
{
	pthread_mutex_lock(&ctl->lock);
	if (m->type == GCI_CTL_SURVIVORS) {
		begin_epoch(ctl, &m->survivors);
	} else {
		ctl->members.agreed = m->agree;
		ctl->members.has_agreed = 1;
	}
	pthread_cond_broadcast(&ctl->members.news);
	pthread_mutex_unlock(&ctl->lock);
}

void gci_control_agree(struct gci_control *ctl, uint32_t epoch, uint64_t flags)
{
	const struct gci_ctl_agree m = {.epoch = epoch, .flags = flags};

	gci_control_begin_say(ctl);
	ctl->members.has_agreed = 0;
	gci_ctl_put_agree(&ctl->out, GCI_CTL_AGREE, &m);
	gci_control_end_say(ctl);
}

void gci_control_shrink(struct gci_control *ctl, uint32_t epoch)
{
	const struct gci_ctl_survivors m = {.epoch = epoch};

	gci_control_begin_say(ctl);
	ctl->members.has_survivors = 0;
	gci_ctl_put_survivors(&ctl->out, GCI_CTL_SHRINK, &m);
	gci_control_end_say(ctl);
}

/* Until *answer is set, the time is up, or none will come; with the lock held. */
static int await(struct gci_control *ctl, const int *answer, uint64_t timeout_ns,
	struct gci_ctl_failure *why)
{
	uint64_t now = gci_now_ns();
	uint64_t end = timeout_ns < GCI_NEVER - now ? now + timeout_ns : GCI_NEVER;
	int late = 0;

	while (!*answer && !ctl->members.over && !late)
		late = gci_cond_await(&ctl->members.news, &ctl->lock, end);
	if (*answer)
		return 1;
	if (!ctl->members.over)
		return 0;
	*why = ctl->members.why;
	return -1;
}

int gci_control_agreed(struct gci_control *ctl, uint64_t timeout_ns, struct gci_ctl_agree *m,
	struct gci_ctl_failure *why)
{
	int rc;

	pthread_mutex_lock(&ctl->lock);
	rc = await(ctl, &ctl->members.has_agreed, timeout_ns, why);
	if (rc > 0) {
		*m = ctl->members.agreed;
		ctl->members.has_agreed = 0;
	}
	pthread_mutex_unlock(&ctl->lock);
	return rc;
}

int gci_control_survivors(struct gci_control *ctl, uint64_t timeout_ns, struct gci_ctl_survivors *m,
	struct gci_ctl_failure *why)
{
	int rc;

	pthread_mutex_lock(&ctl->lock);
	rc = await(ctl, &ctl->members.has_survivors, timeout_ns, why);
	if (rc > 0) {
		*m = ctl->members.survivors;
		ctl->members.survivors.ranks = NULL;
		ctl->members.has_survivors = 0;
	}
	pthread_mutex_unlock(&ctl->lock);
	return rc;
}
