/* SPDX-License-Identifier: MIT
 * The optimal tree. With L(i, A) the least time in which host i, who has the message, gets it to
 * the hosts of A:
 *
 *	L(i, {}) = 0,  L(i, A) = t_i + min over j in A and B + C = A - {j} of max(L(i, B), L(j, C))
 *
 * Hosts of one cost are alike, so that A is how many are left of each type of host; and some
 * optimal tree has no child that is faster than its parent, the root excepted (lemma 2), so that C
 * has only hosts as slow as j or slower. HNOW (Banikazemi 1998), 5. */
#include "base/error.h"
#include "base/mem.h"
#include "collectives/models/hnow.h"

#include <string.h>

#define MOST_TYPES (GCI_HNOW_MOST_OPTIMAL - 1)

/* How many hosts of each type, and the set's number. */
struct set {
	int count[MOST_TYPES];
	uint32_t number;
};

struct split {
	int child;       /* type of j */
	struct set left; /* B */
	struct set sub;  /* C */
};

struct optimal {
	int ntypes; /* types rise in cost; the root is a type of its own, ntypes */
	uint64_t tini_ns[MOST_TYPES + 1];
	uint32_t unit[MOST_TYPES]; /* what a host of this type adds to a set's number */
	struct set all;
	uint32_t nsets;
	uint64_t *least_ns; /* L: [set * (ntypes + 1) + type of i] */
};

static uint64_t *least(const struct optimal *o, int type, uint32_t number)
{
	return &o->least_ns[(size_t)number * (unsigned)(o->ntypes + 1) + (unsigned)type];
}

static void move(const struct optimal *o, struct set *s, int type, int n)
{
	s->count[type] += n;
	s->number += (uint32_t)n * o->unit[type];
}

/* The next C: one host of type `child` or slower moves over from B; what has moved of faster ones
 * moves back. False after the last. */
static int next_split(const struct optimal *o, struct split *p)
{
	int type;

	for (type = p->child; type < o->ntypes; type++) {
		if (p->left.count[type]) {
			move(o, &p->left, type, -1);
			move(o, &p->sub, type, 1);
			return 1;
		}
		move(o, &p->left, type, p->sub.count[type]);
		move(o, &p->sub, type, -p->sub.count[type]);
	}
	return 0;
}

/* L(i, A) for a host of type `i`, A not being empty; and how. */
static uint64_t find_split(const struct optimal *o, int i, const struct set *a, struct split *best)
{
	uint64_t best_ns = UINT64_MAX;
	struct split p;

	for (p.child = 0; p.child < o->ntypes; p.child++) {
		if (!a->count[p.child])
			continue;
		p.left = *a;
		memset(&p.sub, 0, sizeof(p.sub));
		move(o, &p.left, p.child, -1);
		do {
			uint64_t x = *least(o, i, p.left.number);
			uint64_t y = *least(o, p.child, p.sub.number);

			if ((x > y ? x : y) < best_ns) {
				best_ns = x > y ? x : y;
				*best = p;
			}
		} while (next_split(o, &p));
	}
	return best_ns + o->tini_ns[i];
}

static struct set set_of(const struct optimal *o, uint32_t number)
{
	struct set s = {.number = number};
	int type;

	for (type = o->ntypes - 1; type >= 0; type--) {
		s.count[type] = (int)(number / o->unit[type]);
		number %= o->unit[type];
	}
	return s;
}

/* A part of a set has a lower number. */
static void fill(struct optimal *o)
{
	struct split unused;
	uint32_t number;
	int type;

	for (number = 1; number < o->nsets; number++) {
		struct set a = set_of(o, number);

		for (type = 0; type < o->ntypes; type++) {
			*least(o, type, number) = find_split(o, type, &a, &unused);
			if (a.count[type])
				break; /* slower hosts never have to reach this one */
		}
		*least(o, o->ntypes, number) = find_split(o, o->ntypes, &a, &unused);
	}
}

/* Types of the hosts after the root, who stand in the order of their costs. */
static void find_types(struct optimal *o, const struct gci_hnow *t)
{
	int i;

	memset(o, 0, sizeof(*o));
	o->nsets = 1;
	for (i = 1; i < t->n; i++) {
		if (i == 1 || t->tini_ns[i] != t->tini_ns[i - 1]) {
			o->tini_ns[o->ntypes] = t->tini_ns[i];
			o->unit[o->ntypes++] = o->nsets;
		}
		o->nsets += o->unit[o->ntypes - 1];
		move(o, &o->all, o->ntypes - 1, 1);
	}
	o->tini_ns[o->ntypes] = t->tini_ns[0];
}

/* A host of the tree who has others to reach. */
struct task {
	int place, type;
	struct set reach;
};

static void follow(const struct optimal *o, struct gci_hnow *t)
{
	struct task tasks[GCI_HNOW_MOST_OPTIMAL];
	int rank[GCI_HNOW_MOST_OPTIMAL], first[MOST_TYPES];
	int i, ntasks = 0, places = 1;

	memcpy(rank, t->rank, (size_t)t->n * sizeof(*rank));
	for (i = 0; i < o->ntypes; i++)
		first[i] = i ? first[i - 1] + o->all.count[i - 1] : 1;
	tasks[ntasks++] = (struct task){0, o->ntypes, o->all};
	while (ntasks) {
		struct task k = tasks[--ntasks];

		while (k.reach.number) {
			struct split p = {.child = 0};

			find_split(o, k.type, &k.reach, &p);
			t->rank[places] = rank[first[p.child]++];
			t->tini_ns[places] = o->tini_ns[p.child];
			t->parent[places] = k.place;
			tasks[ntasks++] = (struct task){places++, p.child, p.sub};
			k.reach = p.left;
		}
	}
}

int gci_hnow_optimal(struct gci_hnow *t)
{
	struct optimal o;

	if (t->n > GCI_HNOW_MOST_OPTIMAL)
		return GCOLL_ERR_INVAL;
	find_types(&o, t);
	o.least_ns = gci_calloc((size_t)o.nsets * (unsigned)(o.ntypes + 1), sizeof(*o.least_ns));
	if (!o.least_ns)
		return GCOLL_ERR_NOMEM;
	fill(&o);
	follow(&o, t);
	gci_free(o.least_ns);
	return 0;
}
