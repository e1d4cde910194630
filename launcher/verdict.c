/* SPDX-License-Identifier: MIT
 * Failures: who failed first, and why: facts about ranks in, one sentence out; and how the job goes on, if
 * it does. See rendezvous.h. */
#include "base/mem.h"
#include "launcher/rdv_internal.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- What ranks are told of it. */

void gci_rdv_drop(struct gci_rdv *r, struct gci_rdv_conn *c)
{
	c->closing = 1;
	gci_unauth_leave(&c->place);
	gci_rdv_mark_dirty(r, c);
}

void gci_rdv_turn_away(struct gci_rdv *r, struct gci_rdv_conn *c, int status, const char *why)
{
	struct gci_ctl_failure m = {.status = status, .rank = -1};

	snprintf(m.text, sizeof(m.text), "%s", why);
	gci_ctl_put_failure(&c->out, GCI_CTL_ABORT, &m);
	gci_rdv_drop(r, c);
}

static struct gci_ctl_failure what_abort_says(const struct gci_rdv *r)
{
	struct gci_ctl_failure m = {
		.status = r->verdict.status, .rank = gci_rdv_number(r, r->verdict.rank)};

	if (r->members.epoch > 1)
		snprintf(m.text, sizeof(m.text), "epoch %u: %.460s", r->members.epoch,
			r->verdict.sentence);
	else
		memcpy(m.text, r->verdict.sentence, sizeof(m.text));
	return m;
}

void gci_rdv_abort(struct gci_rdv *r, struct gci_rdv_conn *c)
{
	const struct gci_ctl_failure m = what_abort_says(r);

	gci_ctl_put_failure(&c->out, GCI_CTL_ABORT, &m);
	gci_rdv_drop(r, c);
}

static void send_abort(struct gci_rdv *r)
{
	const struct gci_ctl_failure m = what_abort_says(r);
	uint32_t i;

	for (i = 0; i < r->config.size; i++) {
		struct gci_rdv_conn *c = r->ranks[i].conn;

		if (!c || c->closing || !gci_rdv_counts(r, i))
			continue;
		gci_ctl_put_failure(&c->out, GCI_CTL_ABORT, &m);
		gci_rdv_mark_dirty(r, c);
	}
}

/* ---- What is known of ranks: the verdict is drawn from it. */

void gci_rdv_arm(struct gci_rdv *r, uint64_t now_ns, uint64_t wait_ns)
{
	if (!r->judged && now_ns + wait_ns < r->verdict_ns)
		r->verdict_ns = now_ns + wait_ns;
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

/* It has ended, or hung up. A rank that nothing reaches gives up as soon as we do: it cannot tell
 * why, or blames the peers that it does not hear. Where only what goes to it is lost, TCP keeps
 * what it says until it hangs up, and then we hear all of it at once. */
static void check_unreached(const struct gci_rdv *r, uint32_t rank, uint64_t now_ns)
{
	struct rdv_rank *k = &r->ranks[rank];

	if (k->told.text && (k->told.blamed < 0 || k->told.blamed == (int32_t)rank))
		return;
	if (now_ns - k->heard_ns > r->config.dead_ns / 2 ||
		(k->back_ns && now_ns - k->back_ns < r->config.grace_ns))
		k->silent = 1;
}

void gci_rdv_note_lost(struct gci_rdv *r, uint32_t rank, uint64_t now_ns)
{
	struct rdv_rank *k = &r->ranks[rank];

	k->lost = r->deaths = 1;
	k->lost_ns = now_ns;
	if (r->started && !k->bye)
		check_unreached(r, rank, now_ns);
	if (!k->bye && gci_rdv_counts(r, rank))
		gci_rdv_arm(r, now_ns, r->config.grace_ns);
}

int gci_rdv_is_gone(const struct gci_rdv *r, uint32_t rank)
{
	const struct rdv_rank *k = &r->ranks[rank];

	if (!gci_rdv_is_guest(r, rank))
		return 0;
	if (k->joined)
		return k->lost || k->exited;
	/* Without a job there is nobody to wait for: ranks of ours have ended, and none joined. */
	return r->judged || (!r->njoined && r->config.nguests < r->config.size);
}

/* A copy with nothing in it that a terminal would obey. */
static char *one_line(const char *text)
{
	char *copy = gci_strdup(text), *p;

	for (p = copy; p && *p; p++)
		if (iscntrl((unsigned char)*p))
			*p = '?';
	return copy;
}

void gci_rdv_answer(struct gci_rdv *r, uint32_t by, const char *text)
{
	struct rdv_rank *k = &r->ranks[by];

	if (!k->asked.answer && !r->judged)
		k->asked.answer = one_line(text);
}

static int blames_peer(const struct rdv_rank *k, uint32_t rank)
{
	return k->told.text && k->told.blamed >= 0 && k->told.blamed != (int32_t)rank;
}

/* Of a job that may go on. A rank that only says the verdict again says nothing of its own. */
static void take_last_words(struct gci_rdv *r, uint32_t by, int status, const char *text)
{
	struct rdv_rank *k = &r->ranks[by], *guilty = r->guilty < 0 ? NULL : &r->ranks[r->guilty];
	char cause[100]; /* which ABORT may have cut */

	snprintf(cause, sizeof(cause), "%.99s", r->verdict.cause);
	if (k->told.text || k->last_words || status != GCOLL_ERR_ABORTED || strstr(text, cause))
		return;
	k->last_words = one_line(text);
	if (!guilty || guilty->missing)
		r->guilty = (int32_t)by;
}

void gci_rdv_tell_last_words(struct gci_rdv *r)
{
	char who[GCI_RANKLIST_NBYTES];
	uint32_t i, k;

	for (i = 0; i < r->config.size; i++) {
		const char *words = r->ranks[i].last_words;

		for (k = 0; words && k < i; k++) /* what is wrong everywhere is said once */
			if (r->ranks[k].last_words && !strcmp(r->ranks[k].last_words, words))
				break;
		if (words && k == i)
			gci_buf_printf(&r->news, "%s failed: %s\n",
				gci_ranklist(&i, 1, r->config.names, who), words);
	}
	for (i = 0; i < r->config.size; i++) {
		gci_free(r->ranks[i].last_words);
		r->ranks[i].last_words = NULL;
	}
}

void gci_rdv_tell(struct gci_rdv *r, uint32_t by, int32_t blamed, int status, const char *text,
	uint64_t now_ns)
{
	struct rdv_rank *k = &r->ranks[by];

	if (r->judged && !gci_rdv_is_over(r))
		take_last_words(r, by, status, text);
	if (k->told.text || r->judged || !gci_rdv_counts(r, by))
		return; /* its first word counts */
	k->told.text = one_line(*text ? text : gcoll_strerror(status));
	k->told.status = status;
	k->told.blamed = blamed;
	k->told.at_ns = now_ns;
	if (blames_peer(k, by) && status == GCOLL_ERR_PEER)
		r->ranks[blamed].is_blamed = 1;
	gci_rdv_arm(r, now_ns, r->config.grace_ns);
}

/* A job that survives failures begins without those that cannot be started, unless nobody is left. */
static int begins_without(struct gci_rdv *r, uint32_t rank, const char *cause, uint64_t now_ns)
{
	struct rdv_rank *k = &r->ranks[rank];
	char who[GCI_RANKLIST_NBYTES];

	if (!r->config.survives || r->started || r->judged || k->joined || k->told.text ||
		r->nmissing + 1 == r->config.size)
		return 0;
	k->missing = 1;
	r->nmissing++;
	k->told.text = one_line(cause);
	k->told.status = GCOLL_ERR_PEER;
	k->told.blamed = (int32_t)rank;
	k->told.at_ns = now_ns;
	k->told.is_ours = 1;
	gci_buf_printf(&r->news, "%s is left out: %s\n",
		gci_ranklist(&rank, 1, r->config.names, who), k->told.text ? k->told.text : "");
	return 1;
}

int gci_rdv_note_failure(struct gci_rdv *r, uint32_t rank, const char *cause, uint64_t now_ns)
{
	struct rdv_rank *k = &r->ranks[rank];

	if (begins_without(r, rank, cause, now_ns))
		return 1;
	if (!k->told.text) {
		gci_rdv_tell(r, rank, (int32_t)rank, GCOLL_ERR_PEER, cause, now_ns);
		k->told.is_ours = 1;
	}
	if (gci_rdv_counts(r, rank))
		gci_rdv_arm(r, now_ns, 0);
	return 0;
}

/* Did the process end where it should not have, as far as we can tell by now? */
static int ended_badly(const struct gci_rdv *r, const struct rdv_rank *k)
{
	if (!k->exited)
		return 0;
	if (k->code || k->signal)
		return 1;
	if (k->joined)
		return !k->bye && (k->lost || k->silent);
	return r->njoined && !r->started; /* the others wait for it in vain */
}

void gci_rdv_note_end(struct gci_rdv *r, uint32_t rank, uint64_t now_ns)
{
	struct rdv_rank *k = &r->ranks[rank];

	if (k->code && k->joined && !k->lost)
		check_unreached(r, rank, now_ns);
	/* Its last words may still be under way on the control connection; and one that had blamed
	 * a peer is no witness of anything nearer to the cause than before. */
	if (ended_badly(r, k) && gci_rdv_counts(r, rank))
		gci_rdv_arm(r, now_ns,
			(k->signal && !blames_peer(k, rank)) || !r->njoined ? 0
									    : r->config.grace_ns);
}

void gci_rdv_check_leavers(struct gci_rdv *r, uint64_t now_ns)
{
	uint32_t i;

	for (i = 0; i < r->config.size; i++)
		if (!r->ranks[i].joined && ended_badly(r, &r->ranks[i]))
			gci_rdv_arm(r, now_ns, r->config.grace_ns);
}

/* ---- Ranks of which nothing is heard: told of after a quarter of the time after which they count as
 * dead, and blamed after all of it. */

static double seconds(uint64_t ns)
{
	return (double)(ns / (GCI_NS_PER_S / 10)) / 10;
}

static uint64_t warn_ns(const struct gci_rdv *r)
{
	return r->config.dead_ns / 4;
}

/* Those whose silence began in the same heartbeat belong together: one cause, one message. When one
 * has been silent for `ns`, so long the others have. */
static uint64_t together_ns(const struct gci_rdv *r, uint64_t ns)
{
	return ns > 2 * r->config.beat_ns ? ns - 2 * r->config.beat_ns : ns;
}

static void tell_of_missed(struct gci_rdv *r, uint64_t now_ns)
{
	uint32_t *list = gci_calloc(r->config.size, sizeof(*list));
	char who[GCI_RANKLIST_NBYTES];
	uint32_t i, n = 0;

	for (i = 0; list && i < r->config.size; i++) {
		struct rdv_rank *k = &r->ranks[i];

		if (!gci_rdv_counts(r, i) || !k->joined || k->lost || k->missed || k->bye ||
			k->exited || now_ns - k->heard_ns < together_ns(r, warn_ns(r)))
			continue;
		k->missed = 1;
		list[n++] = i;
	}
	if (n)
		gci_buf_printf(&r->news, "%s: no sign of life for %g s; dead after %g s\n",
			gci_ranklist(list, n, r->config.names, who), seconds(warn_ns(r)),
			seconds(r->config.dead_ns));
	gci_free(list);
}

/* The end of what tell_of_missed told, once in a heartbeat at most. */
static void tell_of_returned(struct gci_rdv *r)
{
	uint32_t *list = gci_calloc(r->config.size, sizeof(*list));
	char who[GCI_RANKLIST_NBYTES];
	uint32_t i, n = 0;

	for (i = 0; list && i < r->config.size; i++) {
		if (r->ranks[i].returned && gci_rdv_counts(r, i))
			list[n++] = i;
		r->ranks[i].returned = 0;
	}
	if (n)
		gci_buf_printf(&r->news, "%s: signs of life again\n",
			gci_ranklist(list, n, r->config.names, who));
	gci_free(list);
}

/* Ranks that others start may come hours later. Once, so that nobody waits for the time to pass that
 * has not begun. */
static void tell_of_nobody(struct gci_rdv *r, uint64_t now_ns)
{
	if (r->njoined || r->told_of_none || r->config.nguests < r->config.size ||
		now_ns - r->times.began_ns < r->config.start_ns)
		return;
	r->told_of_none = 1;
	gci_buf_printf(&r->news,
		"no rank has joined within %g s; waiting on, --start-timeout begins with the "
		"first\n",
		seconds(r->config.start_ns));
}

void gci_rdv_check_silence(struct gci_rdv *r, uint64_t now_ns)
{
	uint32_t i;
	int any_new = 0, any_back = 0;

	r->times.silence_ns = GCI_NEVER;
	if (gci_rdv_is_over(r))
		return;
	tell_of_nobody(r, now_ns);
	if (r->njoined && !r->started && now_ns - r->times.joined_ns >= r->config.start_ns) {
		r->start_timed_out = 1;
		gci_rdv_arm(r, now_ns, 0);
	}
	/* Ranks beat once they have START; until then start_ns is the limit. */
	for (i = 0; r->started && i < r->config.size; i++) {
		struct rdv_rank *k = &r->ranks[i];
		uint64_t dead_at_ns = k->heard_ns + r->config.dead_ns;

		if (!k->joined || k->lost || k->silent || (k->bye && k->exited) ||
			!gci_rdv_counts(r, i))
			continue;
		any_back |= k->returned;
		any_new |= !k->missed && now_ns - k->heard_ns >= warn_ns(r);
		if (now_ns >= dead_at_ns) {
			k->silent = r->deaths = 1;
			gci_rdv_arm(r, now_ns, 0); /* other witnesses have had time enough */
		} else if (dead_at_ns < r->times.silence_ns) {
			r->times.silence_ns = dead_at_ns;
		}
	}
	if (any_back && !r->judged)
		tell_of_returned(r);
	if (any_new && !r->judged)
		tell_of_missed(r, now_ns);
}

static void blame_silent(struct gci_rdv *r, uint64_t now_ns, struct gci_rdv_verdict *v)
{
	uint64_t long_ns = together_ns(r, r->config.dead_ns);
	uint32_t *list = gci_calloc(r->config.size, sizeof(*list));
	uint32_t i, n = 0;

	for (i = 0; i < r->config.size; i++) {
		struct rdv_rank *k = &r->ranks[i];

		if (!gci_rdv_counts(r, i))
			continue;
		k->silent |= k->joined && !k->exited && !k->lost && now_ns - k->heard_ns > long_ns;
		if (k->silent && list)
			list[n++] = i;
	}
	if (n)
		gci_ranklist(list, n, r->config.names, v->who);
	v->status = GCOLL_ERR_PEER;
	snprintf(v->cause, sizeof(v->cause), "no sign of life for %g s (%s, or %s stopped)",
		seconds(r->config.dead_ns),
		n > 1 ? "their hosts or their network link are down"
		      : "its host or its network link is down",
		n > 1 ? "they are" : "it is");
	gci_free(list);
}

/* ---- Who is left out. */

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

/* The verdict was drawn; `blamed` by another rank, or -1. */
static void end_epoch(struct gci_rdv *r, int32_t blamed)
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

/* ---- What ranks agree upon, and how a job goes on after a failure: what members.h decides is done here. */

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

/* Nothing more will be decided: who waits for that is turned away. One ABORT tells those in
 * gcoll_comm_agree of a failure only. */
static void end_agreeing(struct gci_rdv *r)
{
	uint32_t i;

	for (i = 0; r->config.survives && i < r->config.size; i++) {
		struct rdv_rank *k = &r->ranks[i];

		if (k->agrees && k->conn && !k->conn->closing)
			gci_rdv_turn_away(r, k->conn, GCOLL_ERR_ABORTED, r->verdict.sentence);
	}
}

void gci_rdv_on_shrink(
	struct gci_rdv *r, uint32_t rank, const struct gci_ctl_survivors *m, uint64_t now_ns)
{
	if (m->epoch == r->members.epoch && r->config.survives)
		gci_members_shrinks(&r->members, rank, now_ns);
}

/* Facts of the epoch before. What is for good (joined, exited) stays. */
static void forget(struct rdv_rank *k)
{
	gci_free(k->told.text);
	gci_free(k->asked.answer);
	gci_free(k->last_words);
	k->told = (struct rdv_word){0};
	k->asked = (struct rdv_question){0};
	k->last_words = NULL;
	k->bye = k->is_blamed = 0;
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
	for (k = 0; k < r->budgets.n; k++)
		gci_ctl_put_budget(&bytes, &r->budgets.v[k]);
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
		if (r->config.reports.renewed)
			r->config.reports.renewed(r->config.reports.user, r->members.ranks[i]);
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

/* Decides what can be decided. */
static void recover(struct gci_rdv *r, uint64_t now_ns)
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

/* ---- Who failed first. */

/* From the nearest to the cause to the farthest. */
enum witness { OWN, ENDED, SILENT, START, SELF, LOST, PEER, NOTHING };

/* A death by a signal may be heard of so much later than what follows from it. */
#define SIGNAL_LEAD_NS (50 * GCI_NS_PER_MS)

static enum witness what_speaks(
	const struct gci_rdv *r, const struct rdv_rank *k, uint32_t rank, uint64_t *at_ns)
{
	*at_ns = k->told.text ? k->told.at_ns : k->end_ns;
	if (!gci_rdv_counts(r, rank))
		return NOTHING;
	if (k->told.is_ours) /* of one that is missing, not before the others know who is there */
		return k->missing && !r->started ? NOTHING : OWN;
	if (k->silent && !k->signal) {
		*at_ns = k->heard_ns;
		return SILENT;
	}
	if (blames_peer(k, rank))
		return PEER; /* what it did after that is the consequence */
	if (ended_badly(r, k)) {
		*at_ns += k->signal ? 0 : SIGNAL_LEAD_NS;
		return ENDED;
	}
	*at_ns = k->told.at_ns;
	if (k->told.text)
		return SELF;
	*at_ns = k->lost_ns;
	if (k->bye)
		return NOTHING;
	/* Who is not back, and a peer's connection to it is lost as well, has ended most likely. */
	return k->lost || (k->conn && k->conn->away && k->is_blamed) ? LOST : NOTHING;
}

static void blame_missing(struct gci_rdv *r, struct gci_rdv_verdict *v)
{
	uint32_t *list = gci_calloc(r->config.size, sizeof(*list));
	uint32_t i, n = 0;

	for (i = 0; list && i < r->config.size; i++)
		if (!r->ranks[i].joined && !r->ranks[i].missing)
			list[n++] = i;
	v->rank = n ? (int32_t)list[0] : -1;
	if (n)
		gci_ranklist(list, n, r->config.names, v->who);
	v->status = GCOLL_ERR_TIMEOUT;
	snprintf(v->cause, sizeof(v->cause), "did not join the job within %g s of the first rank%s",
		(double)r->config.start_ns / (double)GCI_NS_PER_S,
		r->config.nguests ? ": look whether their manager started them, and with this "
				    "job's rendezvous and secret (--start-timeout waits longer)"
				  : "");
	gci_free(list);
}

static void blame_end(const struct gci_rdv *r, const struct rdv_rank *k, struct gci_rdv_verdict *v)
{
	v->is_partial = k->bye && !k->signal && k->code && k->code == r->config.partial;
	v->status = GCOLL_ERR_PEER;
	if (k->signal) {
		snprintf(v->cause, sizeof(v->cause), "killed by signal %d (%s)", k->signal,
			strsignal(k->signal));
	} else if (v->is_partial) {
		snprintf(v->cause, sizeof(v->cause), "a partial result (exit status %d)", k->code);
	} else if (k->code) {
		snprintf(v->cause, sizeof(v->cause), "exited with status %d", k->code);
	} else if (k->joined) {
		snprintf(v->cause, sizeof(v->cause),
			"exited with status 0 without leaving the job (gcoll_finalize)");
	} else {
		snprintf(v->cause, sizeof(v->cause),
			"exited with status 0 without joining the job (gcoll_init), "
			"and others wait for it");
	}
}

/* Of ranks that do not call the same, both sides are told. */
static void complete(struct gci_rdv_verdict *v, const struct rdv_rank *k)
{
	static const char unknown[] = GCI_CTL_SOMETHING_ELSE;
	size_t len = strlen(v->cause), n = sizeof(unknown) - 1;

	if (k->told.status != GCOLL_ERR_MISMATCH || !k->asked.answer || len < n ||
		strcmp(v->cause + len - n, unknown) != 0)
		return;
	snprintf(v->cause + len - n, sizeof(v->cause) - len + n, "%s", k->asked.answer);
}

static void blame_told(struct gci_rdv *r, uint32_t by, struct gci_rdv_verdict *v)
{
	const struct rdv_rank *k = &r->ranks[by];

	v->status = k->told.status;
	v->rank = k->told.blamed;
	v->who[0] = '\0';
	snprintf(v->cause, sizeof(v->cause), "%s", k->told.text);
	complete(v, k);
	if (v->rank >= 0)
		gci_ranklist(&(uint32_t){(uint32_t)v->rank}, 1, r->config.names, v->who);
}

/* One sentence of both. A rank's own text may begin with its name already. */
static void put_together(struct gci_rdv_verdict *v, enum witness w, const struct rdv_rank *k)
{
	size_t len = strlen(v->who);
	const char *verb = ":";

	if (len && !strncmp(v->cause, v->who, len) && v->cause[len] == ':') {
		const char *rest = v->cause + len + 1;

		rest += *rest == ' ';
		memmove(v->cause, rest, strlen(rest) + 1);
	}
	if (w == ENDED && !k->told.text)
		verb = k->signal ? " was" : v->is_partial ? ":" : "";
	else if (w == START)
		verb = "";
	if (!len)
		snprintf(v->sentence, sizeof(v->sentence), "%s", v->cause);
	else if (snprintf(v->sentence, sizeof(v->sentence), "%s%s %s", v->who, verb, v->cause) < 0)
		v->sentence[0] = '\0';
}

/* What this rank still says would not change a verdict. Who has left and is blamed even so may have
 * died on its way out. */
static int has_spoken(const struct rdv_rank *k)
{
	/* Words of its peer's are asked for, see complete(). */
	if (k->told.status == GCOLL_ERR_MISMATCH && !k->asked.answer && !k->exited)
		return 0;
	return k->told.text || (k->bye && !k->is_blamed) || (k->exited && (!k->joined || k->lost));
}

static int all_have_spoken(const struct gci_rdv *r)
{
	uint32_t i;

	for (i = 0; i < r->config.size && (!gci_rdv_counts(r, i) || has_spoken(&r->ranks[i])); i++)
		;
	return i == r->config.size;
}

/* Whose word the rank's own may follow from: that of the peer it takes for dead, which has ended its
 * connections because it found a peer dead itself. `rank`: none. */
static uint32_t cause_of(const struct gci_rdv *r, uint32_t rank)
{
	const struct rdv_rank *k = &r->ranks[rank];
	uint64_t at_ns;

	if (k->told.status != GCOLL_ERR_PEER || !blames_peer(k, rank) ||
		what_speaks(r, &r->ranks[k->told.blamed], (uint32_t)k->told.blamed, &at_ns) != PEER)
		return rank;
	return (uint32_t)k->told.blamed;
}

/* Of ranks that blame peers, the one at the beginning; of those that blame each other, around, the
 * first. */
static uint32_t origin(const struct gci_rdv *r, uint32_t rank)
{
	uint32_t i, first;

	for (i = 0; i < r->config.size; i++)
		rank = cause_of(r, rank);
	first = rank;
	for (i = cause_of(r, rank); i != rank; i = cause_of(r, i))
		if (r->ranks[i].told.at_ns < r->ranks[first].told.at_ns)
			first = i;
	return first;
}

/* Wrong arguments are wrong on all ranks: whoever was first, the lowest one speaks for those who
 * say the same of themselves. */
static uint32_t speaker(const struct gci_rdv *r, uint32_t rank)
{
	const struct rdv_rank *k = &r->ranks[rank];
	uint32_t i;

	if (!k->told.text || k->told.blamed != (int32_t)rank)
		return rank;
	for (i = 0; i < rank; i++)
		if (gci_rdv_counts(r, i) && r->ranks[i].told.text &&
			r->ranks[i].told.blamed == (int32_t)i &&
			!strcmp(r->ranks[i].told.text, k->told.text))
			break;
	return i;
}

void gci_rdv_judge(struct gci_rdv *r, uint64_t now_ns)
{
	struct gci_rdv_verdict *v = &r->verdict;
	enum witness best = r->start_timed_out ? START : NOTHING;
	uint64_t best_ns = 0, at_ns = 0;
	uint32_t i, rank = 0;

	recover(r, now_ns);
	if (r->judged || r->verdict_ns == GCI_NEVER ||
		(now_ns < r->verdict_ns && !all_have_spoken(r)))
		return;
	for (i = 0; i < r->config.size; i++) {
		enum witness w = what_speaks(r, &r->ranks[i], i, &at_ns);

		if (w < best || (w == best && w != START && w != NOTHING && at_ns < best_ns)) {
			best = w;
			best_ns = at_ns;
			rank = i;
		}
	}
	r->verdict_ns = GCI_NEVER;
	if (best ==
		NOTHING) { /* cleared up in the meantime: a connection closed, then BYE was read */
		recover(r, now_ns);
		return;
	}
	r->judged = 1;
	r->judged_ns = now_ns;
	rank = best == PEER ? origin(r, rank) : speaker(r, rank);
	v->rank = r->guilty = (int32_t)rank;
	if (best == PEER)
		r->guilty = r->ranks[rank].told.blamed;
	else if (best == SILENT || best == START)
		r->guilty = -1;
	gci_ranklist(&rank, 1, r->config.names, v->who);
	if (best == SILENT) {
		blame_silent(r, now_ns, v);
	} else if (best == START) {
		blame_missing(r, v);
	} else if (best == LOST) {
		v->status = GCOLL_ERR_PEER;
		snprintf(v->cause, sizeof(v->cause), "its control connection was lost%s",
			gci_rdv_is_guest(r, rank)
				? ": its process has ended, or its network is down"
				: "");
	} else if (r->ranks[rank].told.text) {
		blame_told(r, rank, v);
	} else {
		blame_end(r, &r->ranks[rank], v);
	}
	put_together(v, best, &r->ranks[rank]);
	send_abort(r);
	end_epoch(r, best == PEER ? v->rank : -1);
	recover(r, now_ns);
}

void gci_rdv_give_up(struct gci_rdv *r, int status, const char *cause, uint64_t now_ns)
{
	struct gci_rdv_verdict *v = &r->verdict;

	if (gci_rdv_is_over(r))
		return;
	r->judged = r->gave_up = 1;
	r->judged_ns = now_ns;
	r->verdict_ns = GCI_NEVER;
	v->status = status;
	v->rank = r->guilty = -1;
	snprintf(v->cause, sizeof(v->cause), "%s", cause);
	put_together(v, NOTHING, NULL);
	send_abort(r);
	end_agreeing(r);
}

const struct gci_rdv_verdict *gci_rdv_verdict(const struct gci_rdv *r)
{
	return r->judged ? &r->verdict : NULL;
}

int gci_rdv_is_silent(const struct gci_rdv *r, uint32_t rank)
{
	return r->ranks[rank].silent;
}

int gci_rdv_settled(const struct gci_rdv *r)
{
	uint32_t i;

	if (r->judged)
		return 1;
	if (r->verdict_ns != GCI_NEVER)
		return 0;
	for (i = 0; i < r->config.size; i++) {
		const struct rdv_rank *k = &r->ranks[i];

		if (!gci_rdv_counts(r, i) || gci_rdv_is_gone(r, i))
			continue;
		if (!k->exited || (k->joined && !k->bye && !k->lost))
			return 0;
	}
	return 1;
}

int gci_rdv_exit_status(const struct gci_rdv *r)
{
	const struct rdv_rank *k;

	if (!r->judged)
		return 0;
	if (r->guilty < 0)
		return 1;
	k = &r->ranks[r->guilty];
	/* A signal after the verdict is the launcher's own. */
	if (!k->exited || (!k->signal && !k->code))
		return 1;
	if (k->signal)
		return k->end_ns <= r->judged_ns ? 128 + k->signal : 1;
	return k->code;
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
