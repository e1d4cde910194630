/* SPDX-License-Identifier: MIT */
#include "collectives/planner/timetable.h"

#include "base/mem.h"

#include <string.h>

#define PACKET      1448.0 /* bytes: so many are there before the rest follows */
#define SLOT_NBYTES 8192.0
#define QUEUE \
	(128 << 10) /* bytes that may wait before a link or a receiver: a part of what a port holds */
#define SLOTS      2048       /* of about_ns, at most; and as many more behind it */
#define MOST_SLOTS (1u << 20) /* of all */

/* ---- what is to go */

uint32_t gci_timetable_add(struct gci_timetable *t, int from, int to, double nbytes, double key)
{
	if (gci_grow(&t->messages, &t->messages_cap, t->nmessages + 1, sizeof(*t->messages))) {
		t->failed = 1;
		return 0;
	}
	t->messages[t->nmessages] = (struct gci_timetable_message){from, to, nbytes, key, 0};
	return (uint32_t)t->nmessages++;
}

void gci_timetable_after(struct gci_timetable *t, uint32_t after, uint32_t before)
{
	if (gci_grow(&t->pairs, &t->pairs_cap, t->npairs + 1, sizeof(*t->pairs)))
		t->failed = 1;
	else
		t->pairs[t->npairs++] = (struct gci_timetable_pair){before, after};
}

void gci_timetable_free(struct gci_timetable *t)
{
	gci_free(t->messages);
	gci_free(t->pairs);
	memset(t, 0, sizeof(*t));
}

static double larger(double a, double b)
{
	return a > b ? a : b;
}

/* ---- a resource's time, in slots */

struct lane {
	double slot_ns;
	double *room;   /* [slot]: ns that nothing has taken */
	uint32_t *next; /* [slot]: itself, or nearer to the next one with room */
	uint32_t n;     /* the last has no end: its room is what is taken there, negative */
};

static int lane_init(struct lane *l, double rate, double about_ns, size_t nlanes)
{
	double slots = MOST_SLOTS / (double)nlanes;

	l->slot_ns = larger(SLOT_NBYTES / rate, about_ns / (slots < SLOTS ? slots : SLOTS));
	l->n = (uint32_t)(2 * about_ns / l->slot_ns) + 2;
	l->room = gci_calloc(l->n, sizeof(*l->room));
	l->next = gci_calloc(l->n, sizeof(*l->next));
	return l->room && l->next ? 0 : GCOLL_ERR_NOMEM;
}

static void lane_clear(struct lane *l)
{
	uint32_t i;

	for (i = 0; i < l->n; i++) {
		l->room[i] = l->slot_ns;
		l->next[i] = i;
	}
	l->room[l->n - 1] = 0;
}

static uint32_t slot_with_room(struct lane *l, uint32_t i)
{
	while (l->next[i] != i) {
		l->next[i] = l->next[l->next[i]];
		i = l->next[i];
	}
	return i;
}

static uint32_t slot_at(const struct lane *l, double ns)
{
	double at = ns / l->slot_ns;

	return at < l->n - 1 ? (uint32_t)at : l->n - 1;
}

/* From when on it has room: `ns`, or later. */
static double free_at(struct lane *l, double ns)
{
	uint32_t first = slot_at(l, ns), i = slot_with_room(l, first);

	if (i == l->n - 1) /* one after the other */
		return larger(ns, i * l->slot_ns - l->room[i]);
	return i == first ? ns : i * l->slot_ns;
}

static void take(struct lane *l, double ns, double cost_ns)
{
	uint32_t i = slot_with_room(l, slot_at(l, ns));

	l->room[i] -= cost_ns;
	while (l->room[i] <= 0 && i < l->n - 1) {
		double more = l->room[i];

		l->next[i] = i + 1;
		i = slot_with_room(l, i + 1);
		l->room[i] += more;
	}
}

/* ---- one direction */

/* How messages of a pair of classes travel, after their sender's NIC. */
struct way {
	int lane[GCI_MOST_ON_A_WAY], n;      /* of links */
	double rate[GCI_MOST_ON_A_WAY];      /* the sender's, links', and the receiver's */
	double before_ns[GCI_MOST_ON_A_WAY]; /* since the one before */
};

struct direction {
	struct way *ways; /* [from * nclasses + to] */
	const struct gci_network *net;
	struct gci_network turned; /* which `net` is, of the other direction */
	uint32_t *first,
		*next; /* [message], and one more: where those that wait for it start in `next` */
	uint32_t *nneeds; /* [message] */
};

struct item {
	double key;
	uint32_t message;
};

struct world {
	struct gci_timetable *t;
	struct direction way[2]; /* there, and back */
	struct lane *lanes;      /* [rank] out, [rank] in, [rank] processor, [link] */
	size_t nlanes;
	struct item *heap; /* those that may be placed */
	size_t nheap;
	uint32_t *needs;
	double *key, *ready, *start, *end; /* [message] */
	double *unasked;                   /* [from * nranks + to]: bytes that went */
};

static int is_before(const struct item *a, const struct item *b)
{
	return a->key != b->key ? a->key < b->key : a->message < b->message;
}

static void push(struct world *w, uint32_t message)
{
	struct item x = {w->key[message], message};
	size_t k = w->nheap++;

	for (; k && is_before(&x, &w->heap[(k - 1) / 4]); k = (k - 1) / 4)
		w->heap[k] = w->heap[(k - 1) / 4];
	w->heap[k] = x;
}

static uint32_t pop(struct world *w)
{
	struct item top = w->heap[0], x = w->heap[--w->nheap];
	size_t k = 0, i, best;

	for (;;) {
		best = 4 * k + 1;
		for (i = best + 1; i < 4 * k + 5 && i < w->nheap; i++)
			if (is_before(&w->heap[i], &w->heap[best]))
				best = i;
		if (best >= w->nheap || !is_before(&w->heap[best], &x))
			break;
		w->heap[k] = w->heap[best];
		k = best;
	}
	w->heap[k] = x;
	return top.message;
}

static void fill_ways(struct direction *d)
{
	int n = d->net->nclasses, a, b, i, way[GCI_MOST_ON_A_WAY];

	for (a = 0; a < n; a++)
		for (b = 0; b < n; b++) {
			struct way *w = &d->ways[a * n + b];

			w->n = gci_network_way(d->net, a, b, way) - 2;
			w->rate[0] = d->net->out[a];
			for (i = 1; i <= w->n + 1; i++) {
				int link = way[i] - 2 * n;

				w->lane[i] = i <= w->n ? 3 * d->net->nranks + link : -1;
				w->rate[i] = i <= w->n ? d->net->link_rate[link] : d->net->in[b];
				w->before_ns[i] = gci_network_before(d->net, a, b, i) -
						  gci_network_before(d->net, a, b, i - 1);
			}
		}
}

static int fill_direction(struct direction *d, const struct gci_timetable *t, int back)
{
	size_t n = t->nmessages, i;
	int k = t->net->nclasses;

	d->ways = gci_calloc((size_t)(k * k), sizeof(*d->ways));
	d->first = gci_calloc(n + 2, sizeof(*d->first));
	d->next = gci_calloc(t->npairs, sizeof(*d->next));
	d->nneeds = gci_calloc(n, sizeof(*d->nneeds));
	if (!d->ways || !d->first || !d->next || !d->nneeds)
		return GCOLL_ERR_NOMEM;
	d->net = t->net;
	if (back && gci_network_reverse(&d->turned, t->net))
		return GCOLL_ERR_NOMEM;
	if (back)
		d->net = &d->turned;
	fill_ways(d);
	for (i = 0; i < t->npairs; i++) {
		d->first[(back ? t->pairs[i].after : t->pairs[i].before) + 2]++;
		d->nneeds[back ? t->pairs[i].before : t->pairs[i].after]++;
	}
	for (i = 0; i < n; i++)
		d->first[i + 2] += d->first[i + 1];
	for (i = 0; i < t->npairs; i++) {
		uint32_t from = back ? t->pairs[i].after : t->pairs[i].before;

		d->next[d->first[from + 1]++] = back ? t->pairs[i].before : t->pairs[i].after;
	}
	return 0;
}

/* Where a message that starts at 0 is when: at[0] is 0; each stage's end comes no sooner than its end at the stage
 * before. */
static void fill_times(const struct way *way, double nbytes, double *at)
{
	double packet = nbytes < PACKET ? nbytes : PACKET;
	int i;

	at[0] = 0;
	for (i = 1; i <= way->n + 1; i++)
		at[i] = at[i - 1] + way->before_ns[i] +
			larger(packet / way->rate[i - 1],
				nbytes / way->rate[i - 1] - nbytes / way->rate[i]);
}

/* What a message takes of a resource, and when, from its start. */
struct stage {
	struct lane *lane;
	double at, cost;
	double queue; /* ns: that it may wait there */
};

static int fill_stages(
	struct world *w, const struct way *way, int from, int to, double nbytes, struct stage *s)
{
	struct lane *lanes = w->lanes;
	int p = w->t->net->nranks, k, n = 0;
	double message = w->t->message_ns, at[GCI_MOST_ON_A_WAY];

	fill_times(way, nbytes, at);
	s[n++] = (struct stage){&lanes[2 * p + from], 0, message, 0};
	for (k = 0; k <= way->n + 1; k++)
		s[n++] = (struct stage){&lanes[!k             ? from
						: k <= way->n ? way->lane[k]
							      : p + to],
			message + at[k], nbytes / way->rate[k], k ? QUEUE / way->rate[k] : 0};
	s[n] = (struct stage){&lanes[2 * p + to], s[n - 1].at + s[n - 1].cost, message, 1e9};
	return n + 1;
}

/* From when on a message may go: what is more than a peer takes unasked, when its receiver has asked for it. */
static double asked_ns(struct world *w, const struct gci_timetable_message *m)
{
	const struct gci_network *n = w->t->net;
	int a = n->class_of[m->from], b = n->class_of[m->to];
	double *unasked = &w->unasked[m->from * n->nranks + m->to];

	if (n->route_at[a * n->nclasses + b] == n->route_at[a * n->nclasses + b + 1])
		return 0;
	*unasked += m->nbytes + GCI_EAGER_MESSAGE;
	return *unasked > w->t->eager_nbytes ? n->delay_ns[b * n->nclasses + a] : 0;
}

static void place(struct world *w, int back, uint32_t i)
{
	const struct direction *d = &w->way[back];
	const struct gci_timetable_message *m = &w->t->messages[i];
	int from = back ? m->to : m->from, to = back ? m->from : m->to, k, n, late;
	const struct way *way =
		&d->ways[d->net->class_of[from] * d->net->nclasses + d->net->class_of[to]];
	struct stage stages[GCI_MOST_ON_A_WAY + 2];
	double start = w->ready[i], queued;

	w->start[i] = w->end[i] = start;
	if (from == to)
		return;
	if (!back)
		start = larger(start, asked_ns(w, m));
	n = fill_stages(w, way, from, to, m->nbytes, stages);
	do
		for (late = 0, queued = 0, k = 0; k < n; k++) {
			double at = start + stages[k].at + queued;
			double wait = free_at(stages[k].lane, at) - at;

			if (wait <= 0)
				continue;
			if (wait <= stages[k].queue) {
				queued += wait;
				continue;
			}
			start += wait - stages[k].queue + 1;
			late = 1;
		}
	while (late);
	for (queued = 0, k = 0; k < n; k++) {
		double at = start + stages[k].at + queued;
		double wait = free_at(stages[k].lane, at) - at;

		queued += wait > 0 ? wait : 0;
		take(stages[k].lane, start + stages[k].at + queued, stages[k].cost * w->t->spacing);
	}
	w->start[i] = start;
	w->end[i] = start + queued + stages[n - 1].at + stages[n - 1].cost;
}

/* All of it by w->key; *ns: until the last has come. */
static int run(struct world *w, int back, double *ns)
{
	const struct direction *d = &w->way[back];
	size_t n = w->t->nmessages, i, left = n;
	uint32_t k;

	for (i = 0; i < w->nlanes; i++)
		lane_clear(&w->lanes[i]);
	memcpy(w->needs, d->nneeds, n * sizeof(*w->needs));
	memset(w->ready, 0, n * sizeof(*w->ready));
	memset(w->unasked, 0,
		(size_t)w->t->net->nranks * (size_t)w->t->net->nranks * sizeof(*w->unasked));
	for (i = 0; i < n; i++)
		if (!w->needs[i])
			push(w, (uint32_t)i);
	for (*ns = 0; w->nheap; left--) {
		uint32_t m = pop(w);

		place(w, back, m);
		*ns = larger(*ns, w->end[m]);
		for (k = d->first[m]; k < d->first[m + 1]; k++) {
			uint32_t next = d->next[k];

			w->ready[next] = larger(w->ready[next], w->end[m]);
			if (!--w->needs[next])
				push(w, next);
		}
	}
	return left ? GCOLL_ERR_INVAL : 0;
}

/* ---- both */

static int init_lanes(struct world *w)
{
	const struct gci_network *n = w->t->net;
	size_t nhosts = (size_t)n->nranks, i;
	int rc = 0;

	w->nlanes = 3 * nhosts + (size_t)n->nlinks;
	w->lanes = gci_calloc(w->nlanes, sizeof(*w->lanes));
	if (!w->lanes)
		return GCOLL_ERR_NOMEM;
	for (i = 0; i < w->nlanes && !rc; i++) {
		int class = n->class_of[i % nhosts];
		double rate = i < 3 * nhosts ? larger(n->out[class], n->in[class])
					     : n->link_rate[i - 3 * nhosts];

		rc = lane_init(&w->lanes[i], rate, w->t->about_ns, w->nlanes);
	}
	return rc;
}

static int world_init(struct world *w, struct gci_timetable *t)
{
	size_t n = t->nmessages;

	memset(w, 0, sizeof(*w));
	w->t = t;
	w->heap = gci_calloc(n, sizeof(*w->heap));
	w->needs = gci_calloc(n, sizeof(*w->needs));
	w->key = gci_calloc(4 * n, sizeof(*w->key));
	w->unasked =
		gci_calloc((size_t)t->net->nranks * (size_t)t->net->nranks, sizeof(*w->unasked));
	if (!w->heap || !w->needs || !w->key || !w->unasked)
		return GCOLL_ERR_NOMEM;
	w->ready = w->key + n;
	w->start = w->ready + n;
	w->end = w->start + n;
	return init_lanes(w) || fill_direction(&w->way[0], t, 0) || fill_direction(&w->way[1], t, 1)
		       ? GCOLL_ERR_NOMEM
		       : 0;
}

static void world_free(struct world *w)
{
	size_t i;

	for (i = 0; i < 2; i++) {
		gci_free(w->way[i].ways);
		gci_free(w->way[i].first);
		gci_free(w->way[i].next);
		gci_free(w->way[i].nneeds);
		gci_network_free(&w->way[i].turned);
	}
	for (i = 0; w->lanes && i < w->nlanes; i++) {
		gci_free(w->lanes[i].room);
		gci_free(w->lanes[i].next);
	}
	gci_free(w->lanes);
	gci_free(w->heap);
	gci_free(w->needs);
	gci_free(w->key);
	gci_free(w->unasked);
}

int gci_timetable_find(struct gci_timetable *t)
{
	struct world w;
	double ns = 0;
	size_t i;
	int pass, rc;

	if (t->failed)
		return GCOLL_ERR_NOMEM;
	rc = world_init(&w, t);
	for (i = 0; !rc && i < t->nmessages; i++)
		w.key[i] = t->messages[i].key;
	t->ns = 0;
	for (pass = 0; !rc && pass < 3; pass++) {
		int back = pass == 1, better;

		rc = run(&w, back, &ns);
		better = !rc && !back && (!pass || ns < t->ns);
		for (i = 0; !rc && i < t->nmessages; i++) {
			if (better)
				t->messages[i].start_ns = w.start[i];
			w.key[i] = ns - w.end[i];
		}
		if (better)
			t->ns = ns;
	}
	world_free(&w);
	return rc;
}
