/* SPDX-License-Identifier: MIT
 * What ranks agree upon, and how a job goes on after a failure: what members.h decides is done
 * here. */
#include "base/mem.h"
#include "launcher/rdv_internal.h"

#include <stdio.h>
#include <string.h>

int32_t gci_rdv_job_rank(const struct gci_rdv *r, int32_t number)
{
	return number >= 0 && (uint32_t)number < r->members.n ? (int32_t)r->members.ranks[number]
							      : -1;
}

int32_t gci_rdv_number(const struct gci_rdv *r, int32_t rank)
{
	return rank < 0 ? -1 : (int32_t)r->members.of[rank].number;
}

/* It may go on after a failure of its present epoch. */
static int survives(const struct gci_rdv *r)
{
	return r->config.survives && r->started && !r->gave_up;
}

int gci_rdv_is_over(const struct gci_rdv *r)
{
	return r->judged && !survives(r);
}

int gci_rdv_is_left_out(const struct gci_rdv *r, uint32_t rank)
{
	return r->ranks[rank].left_out;
}

uint32_t gci_rdv_nleft_out(const struct gci_rdv *r)
{
	return r->nleft_out;
}

void gci_rdv_news(struct gci_rdv *r, struct gci_buf *out)
{
	*out = r->news;
	r->news = (struct gci_buf){0};
}

/* ---- who is left out */

static void leave_out(struct gci_rdv *r, uint32_t rank, const char *why)
{
	struct rdv_rank *k = &r->ranks[rank];
	char text[GCI_CTL_TEXT];

	gci_members_gone(&r->members, rank);
	k->left_out = !k->exited;
	r->nleft_out += !k->exited;
	if (!k->conn || k->conn->closing)
		return;
	snprintf(text, sizeof(text), "the job goes on without this rank: %.440s", why);
	gci_rdv_turn_away(r, k->conn, GCOLL_ERR_ABORTED, text);
}

/* Who is dead, or as good as that. */
static void look_for_the_dead(struct gci_rdv *r)
{
	uint32_t i;

	r->deaths = 0;
	for (i = 0; i < r->config.size; i++) {
		const struct rdv_rank *k = &r->ranks[i];

		if (!gci_rdv_counts(r, i))
			continue;
		if (k->exited || (k->lost && k->bye))
			gci_members_gone(&r->members, i);
		else if (k->lost)
			leave_out(r, i, "its control connection was lost");
		else if (k->silent)
			leave_out(r, i, "it gave no sign of life for too long");
	}
}

/* Who has left belongs to no epoch after a failure. If it fell silent before that, its process is
 * looked after all the same: stopped, it would never end. */
static void leave_out_silent_leavers(struct gci_rdv *r)
{
	uint32_t i;

	for (i = 0; i < r->config.size; i++) {
		const struct rdv_rank *k = &r->ranks[i];

		if (gci_rdv_counts(r, i) && k->bye && k->silent && !k->exited)
			leave_out(r, i, "it gave no sign of life for too long");
	}
}

void gci_rdv_end_epoch(struct gci_rdv *r, int32_t blamed)
{
	const struct gci_rdv_verdict *v = &r->verdict;

	if (survives(r))
		leave_out_silent_leavers(r);
	gci_members_fail(&r->members);
	r->deaths = 1;
	if (!survives(r))
		return;
	if (v->rank < 0 || !r->ranks[v->rank].missing) /* that was told */
		gci_buf_printf(&r->news, "%s%s%s\n", v->who, gci_rdv_verb(v), v->cause);
	if (blamed >= 0 && v->status != GCOLL_ERR_MISMATCH)
		leave_out(r, (uint32_t)blamed, v->sentence);
}

static void leave_out_late(struct gci_rdv *r, uint32_t rank)
{
	char why[GCI_CTL_TEXT], who[GCI_RANKLIST_NBYTES];

	gci_ranklist(&rank, 1, r->config.names, who);
	snprintf(why, sizeof(why),
		"did not come to gcoll_comm_shrink within %g s of the first rank",
		(double)r->config.shrink_ns / (double)GCI_NS_PER_S);
	gci_buf_printf(&r->news, "%s %s\n", who, why);
	leave_out(r, rank, why);
}

/* ---- agreeing */

/* To all that were in gcoll_comm_agree, and are not any more. */
static void answer(struct gci_rdv *r, const struct gci_ctl_agree *m)
{
	uint32_t i;

	for (i = 0; i < r->members.n; i++) {
		struct rdv_rank *k = &r->ranks[r->members.ranks[i]];

		if (!k->agrees)
			continue;
		k->agrees = 0;
		if (!k->conn || k->conn->closing)
			continue;
		gci_ctl_put_agree(&k->conn->out, GCI_CTL_AGREED, m);
		gci_rdv_mark_dirty(r, k->conn);
	}
}

static void tell_agreed(struct gci_rdv *r, const struct gci_members_decision *d)
{
	struct gci_ctl_agree m = {.epoch = r->members.epoch, .flags = d->flags};

	if (d->missing != GCI_MEMBERS_NONE) {
		m.status = r->verdict.status;
		memcpy(m.text, r->verdict.sentence, sizeof(m.text));
	}
	answer(r, &m);
}

static void tell_astray(struct gci_rdv *r, uint32_t other)
{
	struct gci_ctl_agree m = {.epoch = r->members.epoch, .status = GCOLL_ERR_MISMATCH};
	char who[GCI_RANKLIST_NBYTES];

	gci_ranklist(&other, 1, r->config.names, who);
	snprintf(m.text, sizeof(m.text), "gcoll_comm_agree: %s calls %s", who,
		r->members.failed ? "gcoll_comm_shrink" : "gcoll_finalize");
	answer(r, &m);
}

void gci_rdv_on_agree(struct gci_rdv *r, uint32_t rank, const struct gci_ctl_agree *m)
{
	if (m->epoch != r->members.epoch || !gci_rdv_counts(r, rank))
		return;
	r->ranks[rank].agrees = 1;
	gci_members_agrees(&r->members, rank, m->flags);
}

/* One ABORT tells those in gcoll_comm_agree of a failure only. */
void gci_rdv_end_agreeing(struct gci_rdv *r)
{
	uint32_t i;

	for (i = 0; r->config.survives && i < r->config.size; i++) {
		struct rdv_rank *k = &r->ranks[i];

		if (k->agrees && k->conn && !k->conn->closing)
			gci_rdv_turn_away(r, k->conn, GCOLL_ERR_ABORTED, r->verdict.sentence);
	}
}

/* ---- shrinking */

void gci_rdv_on_shrink(
	struct gci_rdv *r, uint32_t rank, const struct gci_ctl_survivors *m, uint64_t now_ns)
{
	if (m->epoch == r->members.epoch && r->config.survives)
		gci_members_shrinks(&r->members, rank, now_ns);
}

/* Facts of the epoch before. What is for good (joined, exited) stays. */
static void forget(struct rdv_rank *k)
{
	gci_free(k->told);
	gci_free(k->called);
	gci_free(k->last_words);
	k->told = k->called = k->last_words = NULL;
	k->told_status = k->own_failure = k->asks = k->bye = k->is_blamed = 0;
}

static void tell_losses(struct gci_rdv *r)
{
	const struct gci_members *m = &r->members;
	char who[GCI_RANKLIST_NBYTES] = "";

	if (m->nlost)
		gci_ranklist(m->lost, m->nlost, r->config.names, who);
	gci_buf_printf(&r->news, "epoch %u: %u of %u ranks go on%s%s\n", m->epoch, m->n,
		m->n + m->nlost, m->nlost ? ", without " : "", who);
}

/* They have numbers in the new epoch, and what the launcher knows besides START. */
static void tell_survivors(struct gci_rdv *r)
{
	const struct gci_members *m = &r->members;
	const struct gci_ctl_survivors s = {.epoch = m->epoch, .n = m->n, .ranks = m->ranks};
	struct gci_buf bytes = {0};
	uint32_t i;
	size_t k;

	gci_ctl_put_survivors(&bytes, GCI_CTL_SURVIVORS, &s);
	for (k = 0; k < r->nbudgets; k++)
		gci_ctl_put_budget(&bytes, &r->budgets[k]);
	for (i = 0; i < m->n; i++) {
		struct gci_rdv_conn *c = r->ranks[m->ranks[i]].conn;

		if (!c || c->closing)
			continue;
		gci_buf_put(&c->out, bytes.data, bytes.len);
		c->out.failed |= bytes.failed;
		gci_rdv_mark_dirty(r, c);
	}
	gci_buf_free(&bytes);
}

static void begin_epoch(struct gci_rdv *r)
{
	uint32_t i;

	for (i = 0; i < r->members.n; i++) {
		forget(&r->ranks[r->members.ranks[i]]);
		if (r->config.renewed)
			r->config.renewed(r->config.user, r->members.ranks[i]);
	}
	gci_rdv_tell_last_words(r); /* of who is not in it */
	tell_losses(r);
	r->judged = 0;
	r->nbye = 0;
	r->guilty = -1;
	r->verdict_ns = GCI_NEVER;
	memset(&r->verdict, 0, sizeof(r->verdict));
	tell_survivors(r);
}

/* ---- what was decided, and the end of an epoch */

static void act(struct gci_rdv *r, const struct gci_members_decision *d)
{
	if (d->what == GCI_MEMBERS_AGREED)
		tell_agreed(r, d);
	else if (d->what == GCI_MEMBERS_ASTRAY)
		tell_astray(r, d->rank);
	else if (d->what == GCI_MEMBERS_LATE)
		leave_out_late(r, d->rank);
	else if (d->what == GCI_MEMBERS_SHRUNK)
		begin_epoch(r);
}

void gci_rdv_recover(struct gci_rdv *r, uint64_t now_ns)
{
	struct gci_members_decision d;

	if (!r->started || gci_rdv_is_over(r))
		return;
	/* A failure that was told comes before what is agreed upon: who has the answer may shrink.
	 */
	if (!r->judged && r->verdict_ns != GCI_NEVER)
		return;
	if (r->judged && r->deaths)
		look_for_the_dead(r);
	do {
		gci_members_next(&r->members, now_ns, &d);
		act(r, &d);
	} while (d.what != GCI_MEMBERS_NOTHING);
}
