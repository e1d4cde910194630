/* SPDX-License-Identifier: MIT */
#include "launcher/members.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"

#include <string.h>

int gci_members_create(struct gci_members *m, uint32_t size, uint64_t bound_ns)
{
	uint32_t i;

	*m = (struct gci_members){
		.size = size, .n = size, .epoch = 1, .bound_ns = bound_ns, .late_ns = GCI_NEVER};
	m->count[GCI_MEMBER_RUNS] = size;
	m->ranks = gci_calloc(size, sizeof(*m->ranks));
	m->lost = gci_calloc(size, sizeof(*m->lost));
	m->of = gci_calloc(size, sizeof(*m->of));
	if (!m->ranks || !m->lost || !m->of) {
		gci_members_free(m);
		return GCOLL_ERR_NOMEM;
	}
	for (i = 0; i < size; i++) {
		m->ranks[i] = i;
		m->of[i] = (struct gci_member){.state = GCI_MEMBER_RUNS, .number = i};
	}
	return 0;
}

void gci_members_free(struct gci_members *m)
{
	gci_free(m->ranks);
	gci_free(m->lost);
	gci_free(m->of);
	memset(m, 0, sizeof(*m));
}

/* ---- what ranks do */

static void set(struct gci_members *m, uint32_t rank, enum gci_member_state state)
{
	if (!gci_members_in(m, rank))
		return;
	m->count[m->of[rank].state]--;
	m->count[state]++;
	m->of[rank].state = state;
}

void gci_members_agrees(struct gci_members *m, uint32_t rank, uint64_t flags)
{
	set(m, rank, GCI_MEMBER_AGREES);
	m->of[rank].flags = flags;
}

void gci_members_shrinks(struct gci_members *m, uint32_t rank, uint64_t now_ns)
{
	if (!gci_members_in(m, rank))
		return;
	if (!m->count[GCI_MEMBER_SHRINKS])
		m->late_ns = m->bound_ns < GCI_NEVER - now_ns ? now_ns + m->bound_ns : GCI_NEVER;
	set(m, rank, GCI_MEMBER_SHRINKS);
}

void gci_members_postpone(struct gci_members *m, uint64_t ns)
{
	m->late_ns = ns < GCI_NEVER - m->late_ns ? m->late_ns + ns : GCI_NEVER;
}

void gci_members_leaves(struct gci_members *m, uint32_t rank)
{
	set(m, rank, m->failed ? GCI_MEMBER_OUT : GCI_MEMBER_LEAVES);
}

void gci_members_gone(struct gci_members *m, uint32_t rank)
{
	set(m, rank, GCI_MEMBER_OUT);
}

void gci_members_fail(struct gci_members *m)
{
	uint32_t i;

	m->failed = 1;
	for (i = 0; i < m->n; i++)
		if (m->of[m->ranks[i]].state == GCI_MEMBER_LEAVES)
			gci_members_gone(m, m->ranks[i]);
}

/* ---- what follows */

/* A rank in this state, or NONE. */
static uint32_t find(const struct gci_members *m, enum gci_member_state state)
{
	uint32_t i;

	for (i = 0; m->count[state] && i < m->n; i++)
		if (m->of[m->ranks[i]].state == state)
			return m->ranks[i];
	return GCI_MEMBERS_NONE;
}

/* Those who agree do something else again. */
static void run_again(struct gci_members *m)
{
	uint32_t i;

	for (i = 0; i < m->n; i++)
		if (m->of[m->ranks[i]].state == GCI_MEMBER_AGREES)
			set(m, m->ranks[i], GCI_MEMBER_RUNS);
}

static void agree(struct gci_members *m, struct gci_members_decision *d)
{
	uint32_t i;

	/* Who is gone has a reason, which is about to be known. */
	d->missing = find(m, GCI_MEMBER_OUT);
	if (d->missing != GCI_MEMBERS_NONE && !m->failed)
		return;
	d->what = GCI_MEMBERS_AGREED;
	d->flags = UINT64_MAX;
	for (i = 0; i < m->n; i++)
		if (m->of[m->ranks[i]].state == GCI_MEMBER_AGREES)
			d->flags &= m->of[m->ranks[i]].flags;
	run_again(m);
}

static void begin_epoch(struct gci_members *m)
{
	uint32_t i, n = 0;

	m->nlost = 0;
	for (i = 0; i < m->n; i++) {
		uint32_t rank = m->ranks[i];

		if (m->of[rank].state != GCI_MEMBER_SHRINKS) {
			m->lost[m->nlost++] = rank;
			continue;
		}
		m->of[rank] = (struct gci_member){.state = GCI_MEMBER_RUNS, .number = n};
		m->ranks[n++] = rank;
	}
	memset(m->count, 0, sizeof(m->count));
	m->count[GCI_MEMBER_RUNS] = m->n = n;
	m->epoch++;
	m->failed = 0;
	m->late_ns = GCI_NEVER;
}

/* One that has not come in time, or NONE. */
static uint32_t find_late(const struct gci_members *m, uint64_t now_ns)
{
	uint32_t late;

	if (now_ns < gci_members_deadline(m))
		return GCI_MEMBERS_NONE;
	late = find(m, GCI_MEMBER_RUNS);
	return late != GCI_MEMBERS_NONE ? late : find(m, GCI_MEMBER_AGREES);
}

void gci_members_next(struct gci_members *m, uint64_t now_ns, struct gci_members_decision *d)
{
	uint32_t agreeing = m->count[GCI_MEMBER_AGREES];
	uint32_t shrinking = m->failed ? m->count[GCI_MEMBER_SHRINKS] : 0;

	*d = (struct gci_members_decision){
		.what = GCI_MEMBERS_NOTHING, .missing = GCI_MEMBERS_NONE};
	d->rank = find_late(m, now_ns);
	if (d->rank != GCI_MEMBERS_NONE) {
		d->what = GCI_MEMBERS_LATE;
		gci_members_gone(m, d->rank);
		return;
	}
	if (m->count[GCI_MEMBER_RUNS])
		return;
	if (agreeing && (shrinking || m->count[GCI_MEMBER_LEAVES])) {
		d->what = GCI_MEMBERS_ASTRAY;
		d->rank = find(m, shrinking ? GCI_MEMBER_SHRINKS : GCI_MEMBER_LEAVES);
		run_again(m);
	} else if (agreeing) {
		agree(m, d);
	} else if (shrinking) {
		d->what = GCI_MEMBERS_SHRUNK;
		begin_epoch(m);
	}
}

uint64_t gci_members_deadline(const struct gci_members *m)
{
	return m->failed && m->count[GCI_MEMBER_SHRINKS] ? m->late_ns : GCI_NEVER;
}
