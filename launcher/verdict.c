/* SPDX-License-Identifier: MIT
 * Who failed first, and why: facts about ranks in, one sentence out. See rendezvous.h. */
#include "base/mem.h"
#include "launcher/rdv_internal.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* From the nearest to the cause to the farthest. */
enum witness { OWN, ENDED, SILENT, START, SELF, LOST, PEER, NOTHING };

/* A death by a signal may be heard of so much later than what follows from it. */
#define SIGNAL_LEAD_NS (50 * GCI_NS_PER_MS)

void gci_rdv_arm(struct gci_rdv *r, uint64_t now_ns, uint64_t wait_ns)
{
	if (!r->judged && now_ns + wait_ns < r->verdict_ns)
		r->verdict_ns = now_ns + wait_ns;
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

	if (!k->called && !r->judged)
		k->called = one_line(text);
}

static int blames_peer(const struct rdv_rank *k, uint32_t rank)
{
	return k->told && k->blamed >= 0 && k->blamed != (int32_t)rank;
}

/* Of a job that may go on. A rank that only says the verdict again says nothing of its own. */
static void take_last_words(struct gci_rdv *r, uint32_t by, int status, const char *text)
{
	struct rdv_rank *k = &r->ranks[by], *guilty = r->guilty < 0 ? NULL : &r->ranks[r->guilty];
	char cause[100]; /* which ABORT may have cut */

	snprintf(cause, sizeof(cause), "%.99s", r->verdict.cause);
	if (k->told || k->last_words || status != GCOLL_ERR_ABORTED || strstr(text, cause))
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
	if (k->told || r->judged || !gci_rdv_counts(r, by))
		return; /* its first word counts */
	k->told = one_line(*text ? text : gcoll_strerror(status));
	k->told_status = status;
	k->blamed = blamed;
	k->told_ns = now_ns;
	if (blames_peer(k, by) && status == GCOLL_ERR_PEER)
		r->ranks[blamed].is_blamed = 1;
	gci_rdv_arm(r, now_ns, r->config.grace_ns);
}

/* A job that survives failures begins without those that cannot be started, unless nobody is left. */
static int begins_without(struct gci_rdv *r, uint32_t rank, const char *cause, uint64_t now_ns)
{
	struct rdv_rank *k = &r->ranks[rank];
	char who[GCI_RANKLIST_NBYTES];

	if (!r->config.survives || r->started || r->judged || k->joined || k->told ||
		r->nmissing + 1 == r->config.size)
		return 0;
	k->missing = 1;
	r->nmissing++;
	k->told = one_line(cause);
	k->told_status = GCOLL_ERR_PEER;
	k->blamed = (int32_t)rank;
	k->told_ns = now_ns;
	k->own_failure = 1;
	gci_buf_printf(&r->news, "%s is left out: %s\n",
		gci_ranklist(&rank, 1, r->config.names, who), k->told ? k->told : "");
	gci_rdv_begin_if_all(r, now_ns);
	return 1;
}

void gci_rdv_failed(
	struct gci_rdv *r, uint32_t rank, int exit_status, const char *cause, uint64_t now_ns)
{
	struct rdv_rank *k = &r->ranks[rank];

	if (k->exited)
		return;
	k->exited = r->deaths = 1;
	k->code = exit_status;
	k->end_ns = now_ns;
	gci_rdv_end_away(r, rank, now_ns);
	if (begins_without(r, rank, cause, now_ns)) {
		gci_rdv_judge(r, now_ns);
		return;
	}
	if (!k->told) {
		gci_rdv_tell(r, rank, (int32_t)rank, GCOLL_ERR_PEER, cause, now_ns);
		k->own_failure = 1;
	}
	if (gci_rdv_counts(r, rank))
		gci_rdv_arm(r, now_ns, 0);
	gci_rdv_judge(r, now_ns);
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

void gci_rdv_check_leavers(struct gci_rdv *r, uint64_t now_ns)
{
	uint32_t i;

	for (i = 0; i < r->config.size; i++)
		if (!r->ranks[i].joined && ended_badly(r, &r->ranks[i]))
			gci_rdv_arm(r, now_ns, r->config.grace_ns);
}

void gci_rdv_exited(struct gci_rdv *r, uint32_t rank, int code, int signal, uint64_t now_ns)
{
	struct rdv_rank *k = &r->ranks[rank];

	if (k->exited)
		return;
	k->exited = r->deaths = 1;
	k->code = code;
	k->signal = signal;
	k->end_ns = now_ns;
	gci_rdv_end_away(r, rank, now_ns);
	if (code && k->joined && !k->lost)
		gci_rdv_check_unreached(r, rank, now_ns);
	/* Its last words may still be under way on the control connection; and one that had blamed
	 * a peer is no witness of anything nearer to the cause than before. */
	if (ended_badly(r, k) && gci_rdv_counts(r, rank))
		gci_rdv_arm(r, now_ns,
			(signal && !blames_peer(k, rank)) || !r->njoined ? 0 : r->config.grace_ns);
	gci_rdv_judge(r, now_ns);
}

void gci_rdv_note_lost(struct gci_rdv *r, uint32_t rank, uint64_t now_ns)
{
	struct rdv_rank *k = &r->ranks[rank];

	k->lost = r->deaths = 1;
	k->lost_ns = now_ns;
	if (r->started && !k->bye)
		gci_rdv_check_unreached(r, rank, now_ns);
	if (!k->bye && gci_rdv_counts(r, rank))
		gci_rdv_arm(r, now_ns, r->config.grace_ns);
}

static enum witness what_speaks(
	const struct gci_rdv *r, const struct rdv_rank *k, uint32_t rank, uint64_t *at_ns)
{
	*at_ns = k->told ? k->told_ns : k->end_ns;
	if (!gci_rdv_counts(r, rank))
		return NOTHING;
	if (k->own_failure) /* of one that is missing, not before the others know who is there */
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
	*at_ns = k->told_ns;
	if (k->told)
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

	if (k->told_status != GCOLL_ERR_MISMATCH || !k->called || len < n ||
		strcmp(v->cause + len - n, unknown) != 0)
		return;
	snprintf(v->cause + len - n, sizeof(v->cause) - len + n, "%s", k->called);
}

static void blame_told(struct gci_rdv *r, uint32_t by, struct gci_rdv_verdict *v)
{
	const struct rdv_rank *k = &r->ranks[by];

	v->status = k->told_status;
	v->rank = k->blamed;
	v->who[0] = '\0';
	snprintf(v->cause, sizeof(v->cause), "%s", k->told);
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
	if (w == ENDED && !k->told)
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
	if (k->told_status == GCOLL_ERR_MISMATCH && !k->called && !k->exited)
		return 0;
	return k->told || (k->bye && !k->is_blamed) || (k->exited && (!k->joined || k->lost));
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

	if (k->told_status != GCOLL_ERR_PEER ||
		what_speaks(r, &r->ranks[k->blamed], (uint32_t)k->blamed, &at_ns) != PEER)
		return rank;
	return (uint32_t)k->blamed;
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
		if (r->ranks[i].told_ns < r->ranks[first].told_ns)
			first = i;
	return first;
}

/* Wrong arguments are wrong on all ranks: whoever was first, the lowest one speaks for those who
 * say the same of themselves. */
static uint32_t speaker(const struct gci_rdv *r, uint32_t rank)
{
	const struct rdv_rank *k = &r->ranks[rank];
	uint32_t i;

	if (!k->told || k->blamed != (int32_t)rank)
		return rank;
	for (i = 0; i < rank; i++)
		if (gci_rdv_counts(r, i) && r->ranks[i].told && r->ranks[i].blamed == (int32_t)i &&
			!strcmp(r->ranks[i].told, k->told))
			break;
	return i;
}

void gci_rdv_judge(struct gci_rdv *r, uint64_t now_ns)
{
	struct gci_rdv_verdict *v = &r->verdict;
	enum witness best = r->start_timed_out ? START : NOTHING;
	uint64_t best_ns = 0, at_ns = 0;
	uint32_t i, rank = 0;

	gci_rdv_recover(r, now_ns);
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
		gci_rdv_recover(r, now_ns);
		return;
	}
	r->judged = 1;
	r->judged_ns = now_ns;
	rank = best == PEER ? origin(r, rank) : speaker(r, rank);
	v->rank = r->guilty = (int32_t)rank;
	if (best == PEER)
		r->guilty = r->ranks[rank].blamed;
	else if (best == SILENT || best == START)
		r->guilty = -1;
	gci_ranklist(&rank, 1, r->config.names, v->who);
	if (best == SILENT) {
		gci_rdv_blame_silent(r, now_ns, v);
	} else if (best == START) {
		blame_missing(r, v);
	} else if (best == LOST) {
		v->status = GCOLL_ERR_PEER;
		snprintf(v->cause, sizeof(v->cause), "its control connection was lost%s",
			gci_rdv_is_guest(r, rank)
				? ": its process has ended, or its network is down"
				: "");
	} else if (r->ranks[rank].told) {
		blame_told(r, rank, v);
	} else {
		blame_end(r, &r->ranks[rank], v);
	}
	put_together(v, best, &r->ranks[rank]);
	gci_rdv_send_abort(r);
	gci_rdv_end_epoch(r, best == PEER ? v->rank : -1);
	gci_rdv_recover(r, now_ns);
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
	gci_rdv_send_abort(r);
	gci_rdv_end_agreeing(r);
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
