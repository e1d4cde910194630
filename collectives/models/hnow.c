/* SPDX-License-Identifier: MIT */
#include "collectives/models/hnow.h"

#include "base/error.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* ---- The optimal tree. With L(i, A) the least time in which host i, who has the message, gets it
 * to the hosts of A:
 *
 * 	L(i, {}) = 0,  L(i, A) = t_i + min over j in A and B + C = A - {j} of max(L(i, B), L(j, C))
 *
 * Hosts of one cost are alike, so that A is how many are left of each type of host; and some
 * optimal tree has no child that is faster than its parent, the root excepted (lemma 2), so that C
 * has only hosts as slow as j or slower. HNOW (Banikazemi 1998), 5. */

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

/* ---- the model, and the trees of SPOC and FNF */

struct host {
	uint64_t tini_ns;
	int distance; /* from the root */
};

static int compare_hosts(const void *a, const void *b)
{
	const struct host *x = a, *y = b;

	if (x->tini_ns != y->tini_ns)
		return x->tini_ns < y->tini_ns ? -1 : 1;
	return x->distance - y->distance;
}

static uint64_t slowest(const uint64_t *tini_ns, int n)
{
	uint64_t most = 1;
	int i;

	for (i = 0; i < n; i++)
		if (tini_ns[i] > most)
			most = tini_ns[i];
	return most;
}

static void place_hosts(struct gci_hnow *t, struct host *hosts, const uint64_t *tini_ns, int root)
{
	uint64_t unknown = slowest(tini_ns, t->n);
	int i;

	for (i = 0; i < t->n; i++) {
		uint64_t tini = tini_ns[(root + i) % t->n];

		hosts[i] = (struct host){tini ? tini : unknown, i};
	}
	qsort(hosts + 1, (size_t)t->n - 1, sizeof(*hosts), compare_hosts);
	for (i = 0; i < t->n; i++) {
		t->rank[i] = (root + hosts[i].distance) % t->n;
		t->tini_ns[i] = hosts[i].tini_ns;
		t->parent[i] = i - 1;
	}
}

int gci_hnow_init(struct gci_hnow *t, const uint64_t *tini_ns, int n, int root)
{
	struct host *hosts = gci_calloc((size_t)n, sizeof(*hosts));

	memset(t, 0, sizeof(*t));
	t->n = n;
	t->rank = gci_calloc((size_t)n, sizeof(*t->rank));
	t->parent = gci_calloc((size_t)n, sizeof(*t->parent));
	t->tini_ns = gci_calloc((size_t)n, sizeof(*t->tini_ns));
	t->free_ns = gci_calloc((size_t)n, sizeof(*t->free_ns));
	if (!hosts || !t->rank || !t->parent || !t->tini_ns || !t->free_ns) {
		gci_free(hosts);
		gci_hnow_free(t);
		return GCOLL_ERR_NOMEM;
	}
	place_hosts(t, hosts, tini_ns, root);
	gci_free(hosts);
	return 0;
}

void gci_hnow_free(struct gci_hnow *t)
{
	gci_free(t->rank);
	gci_free(t->parent);
	gci_free(t->tini_ns);
	gci_free(t->free_ns);
	memset(t, 0, sizeof(*t));
}

/* In each round all who have the message send it to one more, the lowest place to the lowest: then
 * a lower place never has fewer descendants than a higher one. */
void gci_hnow_spoc(struct gci_hnow *t)
{
	int place, round = 1;

	for (place = 1; place < t->n; place++) {
		if (place == 2 * round)
			round *= 2;
		t->parent[place] = place - round;
	}
}

/* Places that have the message, in a heap by when their next send ends. */
struct heap {
	const struct gci_hnow *t;
	int *places, n;
};

static uint64_t next_ns(const struct heap *h, int i)
{
	return h->t->free_ns[h->places[i]] + h->t->tini_ns[h->places[i]];
}

static int before(const struct heap *h, int i, int k)
{
	uint64_t a = next_ns(h, i), b = next_ns(h, k);

	return a < b || (a == b && h->places[i] < h->places[k]);
}

static void swap(struct heap *h, int i, int k)
{
	int place = h->places[i];

	h->places[i] = h->places[k];
	h->places[k] = place;
}

static void sift_down(struct heap *h)
{
	int i = 0, child;

	while ((child = 2 * i + 1) < h->n) {
		if (child + 1 < h->n && before(h, child + 1, child))
			child++;
		if (!before(h, child, i))
			return;
		swap(h, i, child);
		i = child;
	}
}

static void push(struct heap *h, int place)
{
	int i = h->n++;

	h->places[i] = place;
	for (; i && before(h, i, (i - 1) / 2); i = (i - 1) / 2)
		swap(h, i, (i - 1) / 2);
}

int gci_hnow_fnf(struct gci_hnow *t)
{
	struct heap h = {t, gci_calloc((size_t)t->n, sizeof(int)), 0};
	int place;

	if (!h.places)
		return GCOLL_ERR_NOMEM;
	t->free_ns[0] = 0;
	push(&h, 0);
	for (place = 1; place < t->n; place++) {
		int sender = h.places[0];

		t->parent[place] = sender;
		t->free_ns[sender] += t->tini_ns[sender];
		t->free_ns[place] = t->free_ns[sender];
		sift_down(&h);
		push(&h, place);
	}
	gci_free(h.places);
	return 0;
}

uint64_t gci_hnow_completion(struct gci_hnow *t)
{
	uint64_t last = 0;
	int place;

	t->free_ns[0] = 0;
	for (place = 1; place < t->n; place++) {
		int sender = t->parent[place];

		t->free_ns[sender] += t->tini_ns[sender];
		t->free_ns[place] = t->free_ns[sender];
		if (t->free_ns[place] > last)
			last = t->free_ns[place];
	}
	return last;
}
