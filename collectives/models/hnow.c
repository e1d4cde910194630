/* SPDX-License-Identifier: MIT */
#include "collectives/models/hnow.h"

#include "base/error.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

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
