/* SPDX-License-Identifier: MIT
 * ATCC's descents (Vadhiyar 2004, 4.2): time over segment size falls exponentially to a plateau
 * with several minima near the largest size, and small segments are what takes long to measure. So
 * they begin at the largest, go in one direction, and look beyond the first minimum. */
#include "base/clock.h"
#include "base/mem.h"
#include "collectives/tuner/search_impl.h"

#define BEYOND            3
#define DOUBTS            2
#define THRESHOLD_PERCENT 98 /* a gain below what measurements are off is none */

/* One method on its way down. */
struct lane {
	size_t method, next, nsegments; /* segments are counted from the largest */
	uint64_t best, last, before;    /* ns; `before` the last, 0: there was none */
	uint64_t mark;                  /* the best when it last was clearly better than before */
	unsigned fruitless;             /* segments since then */
	unsigned doubts;                /* in a row: it promised too little */
	int over;
};

static unsigned beyond(const struct gci_search *s)
{
	return s->beyond ? s->beyond : BEYOND;
}

/* By more than measurements are off. */
static int is_clearly_less(const struct gci_search *s, uint64_t ns, uint64_t than)
{
	uint32_t percent = s->threshold_percent ? s->threshold_percent : THRESHOLD_PERCENT;

	return (unsigned __int128)ns * 100 <= (unsigned __int128)than * percent;
}

static struct lane begin(const struct gci_asking *a, size_t method)
{
	return (struct lane){.method = method,
		.nsegments = gci_asking_nsegments(a, method),
		.best = GCI_NEVER,
		.mark = GCI_NEVER};
}

/* The next smaller segment. */
static void step(struct gci_asking *a, struct lane *l)
{
	uint64_t ns = gci_ask(a, l->method, gci_asking_segment(a, l->method, l->next));

	l->before = l->last;
	l->last = ns;
	l->fruitless = is_clearly_less(a->s, ns, l->mark) ? 0 : l->fruitless + 1;
	if (!l->fruitless)
		l->mark = ns;
	if (ns < l->best)
		l->best = ns;
	l->next++;
	l->over = l->next == l->nsegments || l->fruitless >= beyond(a->s);
}

int gci_search_mgd(const struct gci_search *s, struct gci_search_result *r)
{
	struct gci_asking a = gci_asking_begin(s, r);
	size_t m;

	for (m = 0; m < s->nmethods && !a.rc; m++) {
		struct lane l = begin(&a, m);

		while (!l.over && !a.rc)
			step(&a, &l);
	}
	return a.rc;
}

/* ---- SMGD */

/* The least that the next few segments may come to if the time goes on falling at its latest rate,
 * or, where none is known yet, if each halves it. Rates nearer to 1 come later on the curve, so
 * this promises rather too much. */
static uint64_t outlook(const struct lane *l, unsigned looks)
{
	uint64_t ns = l->last;
	size_t left = l->nsegments - l->next;
	unsigned i;

	for (i = 0; i < looks && i < left; i++) {
		if (!l->before || l->last <= l->before / 2)
			ns /= 2;
		else if (l->last < l->before)
			ns = (uint64_t)((unsigned __int128)ns * l->last / l->before);
	}
	return ns;
}

/* Does this method promise to beat the best? Who leads need not: it looks beyond a minimum all the
 * same. */
static int is_promising(const struct gci_asking *a, const struct lane *l)
{
	return l->best <= a->r->best_ns ||
	       is_clearly_less(a->s, outlook(l, beyond(a->s)), a->r->best_ns);
}

/* After a step: one bad measurement is no reason to give a method up, unless it is far behind: by
 * half of the best's time. */
static void judge(const struct gci_asking *a, struct lane *l)
{
	l->doubts = is_promising(a, l) ? 0 : l->doubts + 1;
	if (l->doubts >= DOUBTS || (l->doubts && l->last / 3 * 2 > a->r->best_ns))
		l->over = 1;
}

/* Of those that go on, the one that promises most; NULL: none does. */
static struct lane *most_promising(const struct gci_asking *a, struct lane *lanes)
{
	uint64_t ns, least = GCI_NEVER;
	struct lane *found = NULL, *l;

	for (l = lanes; l < lanes + a->s->nmethods; l++) {
		ns = outlook(l, beyond(a->s));
		if (l->over || ns > least || (found && ns == least && l->best >= found->best))
			continue;
		least = ns;
		found = l;
	}
	return found;
}

int gci_search_smgd(const struct gci_search *s, struct gci_search_result *r)
{
	struct gci_asking a = gci_asking_begin(s, r);
	struct lane *lanes = gci_calloc(s->nmethods, sizeof(*lanes)), *l;
	size_t m;

	if (!lanes)
		return GCOLL_ERR_NOMEM;
	a.hasty = 1;
	for (m = 0; m < s->nmethods && !a.rc; m++) {
		lanes[m] = begin(&a, m);
		step(&a, &lanes[m]);
	}
	for (m = 0; m < s->nmethods && !a.rc; m++)
		judge(&a, &lanes[m]);
	while (!a.rc && (l = most_promising(&a, lanes))) {
		step(&a, l);
		judge(&a, l);
	}
	gci_free(lanes);
	return a.rc;
}
