/* SPDX-License-Identifier: MIT */
#include "tests/collectives/traffic.h"

#include "tests/test.h"

#include <string.h>

void traffic_emit(struct scheds *x, enum gci_kind kind, const char *name, struct gci_coll c,
	const int *sizes, int mixed)
{
	const struct gci_algorithm *a = gci_algorithm_find(kind, name);

	assert_non_null(a);
	c.esize = 4;
	if (mixed)
		scheds_emit_mixed(x, a, &c, sizes);
	else
		scheds_emit(x, a, &c, sizes);
	if (scheds_verify(x))
		fail_msg("%s: %s", name, x->e.text);
}

/* Counts the SENDs of `rank` to ranks of `cluster`, or all if that is -1. */
static void count(const struct scheds *x, int rank, int cluster, struct traffic *t, char *reached)
{
	const struct gci_sched *s = &x->s[rank];
	uint64_t before = t->messages;
	uint32_t i;

	for (i = 0; i < s->nsteps; i++) {
		const struct gci_step *p = &s->steps[i];

		if (p->kind != GCI_STEP_SEND ||
			(cluster >= 0 && x->topo.cluster[p->peer] != cluster))
			continue;
		t->messages++;
		t->elements += p->src.length;
		t->receivers += !reached[p->peer];
		reached[p->peer] = 1;
	}
	t->senders += t->messages > before;
}

struct traffic traffic_between(const struct scheds *x, int from_cluster, int to_cluster)
{
	char reached[SCHEDS_MAX] = {0};
	struct traffic t = {0};
	int r;

	for (r = 0; r < x->n; r++)
		if (x->topo.cluster[r] == from_cluster)
			count(x, r, to_cluster, &t, reached);
	return t;
}

struct traffic traffic_from(const struct scheds *x, int rank)
{
	char reached[SCHEDS_MAX] = {0};
	struct traffic t = {0};

	count(x, rank, -1, &t, reached);
	return t;
}
