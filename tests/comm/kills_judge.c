/* SPDX-License-Identifier: MIT */
#include "tests/comm/kills.h"

#include "gridcoll/gridcoll.h"
#include "tests/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what ranks noted */

static void read_failure(struct kills_rank *k, uint64_t ns, const char *text)
{
	struct kills_failure *f = &k->failures[k->nfailures];
	char *end;

	if (k->nfailures == KILLS_FAILURES)
		return;
	k->nfailures++;
	f->ns = ns;
	f->status = (int)strtol(text, &end, 10);
	snprintf(f->text, sizeof(f->text), "%s", end);
}

static void read_note(struct kills_story *s, struct kills_rank *k, uint64_t ns, const char *what,
	const char *text)
{
	if (!strcmp(what, "born"))
		k->born = 1;
	else if (!strcmp(what, "joined"))
		k->joined = 1;
	else if (!strcmp(what, "event") && atoi(text) < s->plan->nevents)
		s->event_ns[atoi(text)] = ns;
	else if (!strcmp(what, "begin"))
		k->begun_last |= atoi(text) == s->plan->steps - 1;
	else if (!strcmp(what, "failed"))
		read_failure(k, ns, text);
	else if (!strcmp(what, "shrunk"))
		k->size = atoi(text);
	else if (!strcmp(what, "leaving"))
		k->leaving = 1;
	else if (!strcmp(what, "left"))
		k->left = 1;
	else if (!strcmp(what, "wrong") || !strcmp(what, "out")) {
		*(*what == 'w' ? &k->wrong : &k->out) = 1;
		snprintf(k->words, sizeof(k->words), "%s", text);
	}
}

void kills_read(struct kills_story *s, const struct kills_plan *p, const char *log)
{
	char line[1600], what[16];
	FILE *f = fopen(log, "r");
	int rank, at;
	uint64_t ns;

	assert_non_null(f);
	s->plan = p;
	/* While ranks write, the last line may not be whole. */
	while (fgets(line, sizeof(line), f) && strchr(line, '\n')) {
		line[strcspn(line, "\n")] = '\0';
		assert_int_equal(sscanf(line, "%d %" SCNu64 " %15s %n", &rank, &ns, what, &at), 3);
		assert_in_range(rank, 0, p->nranks - 1);
		read_note(s, &s->ranks[rank], ns, what, line + at);
	}
	fclose(f);
}

/* ---- who died */

static int same_host(const struct kills_plan *p, int a, int b)
{
	return a / p->per_host == b / p->per_host;
}

static int happened_to(const struct kills_story *s, int event, int rank)
{
	const struct kills_event *e = &s->plan->events[event];

	if (!s->event_ns[event] || e->what == KILLS_LAUNCHER)
		return 0;
	return e->what == KILLS_AGENT ? same_host(s->plan, e->rank, rank) : e->rank == rank;
}

int kills_is_victim(const struct kills_story *s, int rank)
{
	int i, any = 0;

	for (i = 0; i < s->plan->nevents; i++)
		any |= happened_to(s, i, rank);
	/* It had done all it wanted. */
	return any && !s->ranks[rank].left;
}

static int happened(const struct kills_story *s, enum kills_what what)
{
	int i, any = 0;

	for (i = 0; i < s->plan->nevents; i++)
		any |= s->event_ns[i] && s->plan->events[i].what == what;
	return any;
}

/* ---- what those who live may say of it */

static int names(const struct kills_story *s, int event, const char *text)
{
	static const char *const causes[] = {"killed by signal 9", "killed by signal 9",
		"its agent was killed by signal 9", "launcher", "no sign of life"};
	const struct kills_event *e = &s->plan->events[event];
	char who[32];
	int r, any = e->what == KILLS_LAUNCHER;

	for (r = 0; r < s->plan->nranks; r++) {
		snprintf(who, sizeof(who), "rank %d on ", r);
		any |= happened_to(s, event, r) && strstr(text, who);
	}
	any &= strstr(text, causes[e->what]) ||
	       (e->what == KILLS_STOP && strstr(text, "did not join the job")) ||
	       /* where its agent had no processor for as long as the launcher waits to hear why */
	       (e->what < KILLS_LAUNCHER && strstr(text, "its control connection was lost"));
	return s->event_ns[event] && any;
}

/* As the header's table of errors says: a peer failed, or nothing more is known than that the job
 * has ended, or cannot be joined. */
static int status_of(const struct kills_story *s, const struct kills_failure *f)
{
	if (happened(s, KILLS_LAUNCHER))
		return strstr(f->text, "cannot reach the launcher") ? GCOLL_ERR_SYS
								    : GCOLL_ERR_ABORTED;
	return strstr(f->text, "did not join") ? GCOLL_ERR_TIMEOUT : GCOLL_ERR_PEER;
}

static int is_explained(const struct kills_story *s, const struct kills_failure *f)
{
	int i, any = 0;

	for (i = 0; i < s->plan->nevents; i++)
		any |= names(s, i, f->text) && f->ns >= s->event_ns[i];
	return any && f->status == status_of(s, f);
}

/* A call that failed is the answer to all that had happened by then, and late by the oldest. */
static void measure(struct kills_story *s, const struct kills_rank *k)
{
	uint64_t before_ns = 0;
	int f, i;

	for (f = 0; f < k->nfailures; f++) {
		uint64_t oldest_ns = UINT64_MAX, ns = k->failures[f].ns;

		for (i = 0; i < s->plan->nevents; i++)
			if (s->event_ns[i] > before_ns && s->event_ns[i] < oldest_ns)
				oldest_ns = s->event_ns[i];
		if (oldest_ns < ns && ns - oldest_ns > s->longest_ns)
			s->longest_ns = ns - oldest_ns;
		before_ns = ns;
	}
}

/* ---- the verdict */

#define WRONG(...) (snprintf(why, size, __VA_ARGS__), -1)

/* All have done the barrier at the end, or begun it and died. */
static int all_begun(const struct kills_story *s)
{
	int r, all = 1;

	for (r = 0; r < s->plan->nranks; r++)
		all &= s->ranks[r].begun_last;
	return all;
}

/* Somebody died before he knew that all had joined: that ends any job. */
static int may_end_before_it_began(const struct kills_story *s)
{
	int r, any = 0;

	for (r = 0; r < s->plan->nranks; r++)
		any |= kills_is_victim(s, r) && !s->ranks[r].joined;
	return any;
}

static int judge_failures(const struct kills_story *s, int rank, char *why, size_t size)
{
	const struct kills_rank *k = &s->ranks[rank];
	int f;

	for (f = 0; f < k->nfailures; f++)
		if (!is_explained(s, &k->failures[f]))
			return WRONG("rank %d was told %d:%s", rank, k->failures[f].status,
				k->failures[f].text);
	return 0;
}

static int judge_survivor(
	const struct kills_story *s, int rank, int goes_on, char *why, size_t size)
{
	const struct kills_rank *k = &s->ranks[rank];
	int launcher = happened(s, KILLS_LAUNCHER);

	if (k->out && !launcher)
		return WRONG("rank %d was left out: %s", rank, k->words);
	if (!k->leaving && !k->nfailures) {
		/* Its agent ends what it has started. */
		if (launcher || (!k->joined && may_end_before_it_began(s)))
			return 0;
		return WRONG("rank %d has not returned", rank);
	}
	if (!k->left && !launcher && (k->leaving || k->joined))
		return WRONG("rank %d has not left", rank);
	if (goes_on && !k->leaving)
		return WRONG("rank %d did not go on", rank);
	if (!s->plan->survives && k->leaving && (k->nfailures || !all_begun(s)))
		return WRONG("rank %d finished without the others", rank);
	return judge_failures(s, rank, why, size);
}

/* The last worlds of those who finished are of one size, and hold them all. */
static int judge_worlds(const struct kills_story *s, char *why, size_t size)
{
	int r, finished = 0, last = -1;

	for (r = 0; r < s->plan->nranks; r++) {
		const struct kills_rank *k = &s->ranks[r];

		if (!k->leaving)
			continue;
		if (last >= 0 && last != k->size)
			return WRONG("rank %d is in a world of %d ranks, others in one of %d", r,
				k->size, last);
		last = k->size;
		finished++;
	}
	if (last > 0 && (finished > last || last >= s->plan->nranks))
		return WRONG("%d ranks in a world of %d", finished, last);
	return 0;
}

static int judge_end(
	const struct kills_story *s, int status, const char *err, char *why, size_t size)
{
	int r, i, lives = 0, any = 0, leaver = 0;

	for (r = 0; r < s->plan->nranks; r++) {
		lives |= !kills_is_victim(s, r) && s->ranks[r].leaving;
		any |= kills_is_victim(s, r);
		for (i = 0; i < s->plan->nevents; i++)
			leaver |= happened_to(s, i, r) && s->ranks[r].begun_last;
	}
	if (happened(s, KILLS_LAUNCHER))
		return 0;
	if (!s->event_ns[0] && !s->event_ns[1]) /* all was over before */
		return status ? WRONG("exit status %d", status) : 0;
	/* Killed, or not, when all was done. */
	if ((!any || (s->plan->survives && leaver)) &&
		(status == 128 + 9 || !status || happened(s, KILLS_AGENT) ||
			happened(s, KILLS_STOP)))
		return 0;
	if (!any || (s->plan->survives && lives && status && !may_end_before_it_began(s)))
		return WRONG("exit status %d", status);
	if (!s->plan->survives &&
		status != (happened(s, KILLS_RANK) || happened(s, KILLS_EARLY) ? 137 : 1))
		return WRONG("exit status %d", status);
	return strstr(err, " failed: ") ? 0 : WRONG("gridcoll-run does not tell of it");
}

int kills_judge(struct kills_story *s, int status, const char *err, char *why, size_t size)
{
	int goes_on =
		s->plan->survives && !happened(s, KILLS_LAUNCHER) && !may_end_before_it_began(s);
	int r;

	for (r = 0; r < s->plan->nranks; r++) {
		const struct kills_rank *k = &s->ranks[r];

		if (k->wrong)
			return WRONG("rank %d: wrong result: %s", r, k->words);
		if (kills_is_victim(s, r)) {
			s->nvictims++;
			continue;
		}
		measure(s, k);
		s->nfailed += k->nfailures && !k->leaving;
		s->nshrunk += k->size > 0 && k->leaving;
		if (judge_survivor(s, r, goes_on, why, size))
			return -1;
	}
	return judge_worlds(s, why, size) || judge_end(s, status, err, why, size) ? -1 : 0;
}
