/* SPDX-License-Identifier: MIT */
#include "collectives/tuner/candidates.h"

#include "base/clock.h"
#include "base/mem.h"
#include "collectives/tuner/estimate.h"

#include <stdlib.h>
#include <string.h>

/* Over loopback a message costs as much processor time as so many bytes of it, and the processors
 * are what there is to share. */
#define LOOPBACK_LEAST (256u << 10)
/* Estimates count neither what a message costs processors that many ranks share, nor connections to open, which takes
 * some round trips: without a simulation segments are longer, and with few bytes only what keeps to few pairs between
 * clusters will do. */
#define ROUGH_LEAST (16u << 10)
#define FEW_NBYTES  (256u << 10)

/* With its estimate, and what it is sorted by. */
struct option {
	struct gci_candidate how;
	uint64_t ns, key;
	size_t number; /* in which order it was found: to break ties alike everywhere */
	size_t group;  /* the number of the first with the same formula */
};

struct options {
	struct gci_estimator e;
	struct option *list;
	size_t n, cap;
	int brief;  /* few are wanted */
	int rough;  /* only what needs no simulation */
	int capped; /* few are to send at once, and something can keep to it */
};

/* ---- values of parameters */

static size_t insert(uint32_t *list, size_t n, uint32_t v)
{
	size_t i = n;

	while (i && list[i - 1] > v)
		i--;
	if ((i && list[i - 1] == v) || n == GCI_MOST_SENDER_COUNTS)
		return n;
	memmove(list + i + 1, list + i, (n - i) * sizeof(*list));
	list[i] = v;
	return n + 1;
}

/* As many pairs as fill the link; 0: no number does. */
static uint32_t knee(const struct gci_simnet *net, int a, int b)
{
	const struct gci_simnet_link *l = &net->links[a * net->topo->nclusters + b];
	uint64_t each = net->nic_bps[a];

	if (l->pair_bps && (!each || l->pair_bps < each))
		each = l->pair_bps;
	if (!l->bps || !each)
		return 0;
	return (l->bps - 1) / each < GCI_GRID_MAX_HOSTS ? (uint32_t)((l->bps - 1) / each + 1) : 0;
}

size_t gci_sender_counts(const struct gci_simnet *net, uint32_t out[GCI_MOST_SENDER_COUNTS])
{
	const struct gci_topo *t = net->topo;
	uint32_t most = 1, v;
	size_t n = 0;
	int a, b;

	if (t->nclusters == 1)
		return 0;
	for (a = 0; a < t->nclusters; a++)
		for (b = 0; b < a; b++) {
			int x = gci_topo_size(t, a), y = gci_topo_size(t, b);

			v = (uint32_t)(x < y ? x : y);
			most = v > most ? v : most;
		}
	for (v = 1; v < most && n < GCI_MOST_SENDER_COUNTS - 3; v *= 2)
		n = insert(out, n, v);
	n = insert(out, n, most);
	for (a = 0; a < t->nclusters; a++)
		for (b = 0; b < t->nclusters; b++) {
			if (a == b)
				continue;
			v = (uint32_t)gci_topo_senders(t, a, b);
			n = insert(out, n, v < most ? v : most);
			v = knee(net, a, b);
			n = v && v < most ? insert(out, n, v) : n;
		}
	return n;
}

size_t gci_segment_sizes(const struct gci_coll *c, uint64_t least, uint64_t out[GCI_MOST_SEGMENTS])
{
	uint64_t all = c->count * c->esize, s = 1;
	size_t n = 0;

	least = least > c->esize ? least : c->esize;
	while (s < least)
		s *= 2;
	for (; s < all && n < GCI_MOST_SEGMENTS - 1; s *= 2)
		out[n++] = s;
	if (all)
		out[n++] = all;
	return n;
}

/* ---- the list */

static size_t group_of(const struct options *o, const struct gci_algorithm *a)
{
	size_t i = 0;

	while (i < o->n && o->list[i].how.algorithm != a &&
		(!a->estimate || o->list[i].how.algorithm->estimate != a->estimate))
		i++;
	return i;
}

static int add(struct options *o, const struct gci_candidate *how)
{
	if (gci_grow(&o->list, &o->cap, o->n + 1, sizeof(*o->list)))
		return GCOLL_ERR_NOMEM;
	o->list[o->n] = (struct option){.how = *how,
		.ns = gci_estimate(&o->e, how),
		.number = o->n,
		.group = group_of(o, how->algorithm)};
	o->n++;
	return 0;
}

static uint64_t least_segment(const struct options *o)
{
	return o->e.c->topo->one_host ? LOOPBACK_LEAST : o->rough ? ROUGH_LEAST : GCI_LEAST_SEGMENT;
}

/* With each segment. The whole message is what algorithms run by segments do anyway. */
static int add_segments(struct options *o, struct gci_candidate how)
{
	uint64_t sizes[GCI_MOST_SEGMENTS];
	size_t i, n = 0;
	int rc = add(o, &how);

	if (how.algorithm->traits & GCI_USES_SEGMENT)
		n = gci_segment_sizes(o->e.c, least_segment(o), sizes);
	if (n && how.algorithm->traits & GCI_BY_SEGMENT)
		n--;
	for (i = 0; i < n && !rc; i++) {
		how.segment_nbytes = sizes[i];
		rc = add(o, &how);
	}
	return rc;
}

static int add_degrees(struct options *o, struct gci_candidate how)
{
	uint32_t d, most = (uint32_t)o->e.c->topo->nclusters;
	int rc = add_segments(o, how);

	if (!(how.algorithm->traits & GCI_USES_DEGREE))
		return rc;
	for (d = 1; d < most && !rc; d *= 2) {
		how.degree = d;
		rc = add_segments(o, how);
	}
	return rc;
}

/* An algorithm with all of its parameters' values; first of all with its own choices. */
static int add_algorithm(struct options *o, const struct gci_algorithm *a)
{
	uint32_t counts[GCI_MOST_SENDER_COUNTS];
	struct gci_candidate how = {.algorithm = a};
	size_t i, n = 0;
	int rc;

	rc = add_degrees(o, how);
	if (a->traits & GCI_USES_SENDERS && !(o->brief && o->capped))
		n = gci_sender_counts(o->e.net, counts);
	for (i = 0; i < n && !rc; i++) {
		how.senders = counts[i];
		rc = add_degrees(o, how);
	}
	return rc;
}

static int by_estimate(const void *a, const void *b)
{
	const struct option *x = a, *y = b;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	if (x->ns != y->ns)
		return x->ns < y->ns ? -1 : 1;
	if (x->how.senders != y->how.senders)
		return x->how.senders > y->how.senders ? -1 : 1;
	return x->number < y->number ? -1 : 1;
}

static int by_key(const void *a, const void *b)
{
	const struct option *x = a, *y = b;

	return x->key != y->key ? (x->key < y->key ? -1 : 1) : (x->number < y->number ? -1 : 1);
}

/* Of one formula, each way but the best comes a quarter later than the one before. A packing is always worth
 * a look: only making it tells how good it is. */
static void sort(struct options *o)
{
	uint64_t place = 0;
	size_t i;

	if (!o->n)
		return;
	qsort(o->list, o->n, sizeof(*o->list), by_estimate);
	for (i = 0; i < o->n; i++) {
		struct option *x = &o->list[i];

		place = i && x->group == x[-1].group ? place + 1 : 0;
		x->key = x->ns > GCI_NEVER / (4 + place) ? GCI_NEVER : x->ns * (4 + place) / 4;
		if (x->how.algorithm->traits & GCI_PACKS)
			x->key = 0;
	}
	qsort(o->list, o->n, sizeof(*o->list), by_key);
}

static int take(const struct options *o, size_t most, struct gci_candidate **list, size_t *n)
{
	size_t i, taken = o->n < most ? o->n : most;

	*list = gci_calloc(taken, sizeof(**list));
	if (!*list)
		return GCOLL_ERR_NOMEM;
	for (i = 0; i < taken; i++)
		(*list)[i] = o->list[i].how;
	*n = taken;
	return 0;
}

static int is_capped(const struct gci_topo *t)
{
	int a, b;

	for (a = 0; a < t->nclusters; a++)
		for (b = 0; b < t->nclusters; b++)
			if (a != b && t->cap[a * t->nclusters + b])
				return 1;
	return 0;
}

static int is_for_few_pairs(const struct options *o)
{
	return o->rough && o->e.nclusters > 1 && o->e.nbytes < FEW_NBYTES;
}

static int can_run(const struct gci_algorithm *a, const struct gci_coll *c)
{
	return a->kind == c->kind && !gci_ineligible(a, c);
}

const struct gci_algorithm *gci_candidate_packs(const struct gci_coll *c)
{
	const struct gci_algorithm *a;

	if (c->topo->nranks > GCI_PACKED_RANKS)
		return NULL;
	gci_each_algorithm (a)
		if (a->traits & GCI_PACKS && can_run(a, c))
			return a;
	return NULL;
}

static int is_for_brief(const struct options *o, const struct gci_algorithm *a)
{
	if (a->traits & GCI_PACKS)
		return !o->rough && a == gci_candidate_packs(o->e.c);
	return !(a->traits & GCI_PLANS) && (!o->capped || a->traits & GCI_CAPS_SENDERS);
}

static int list(struct options *o, const struct gci_simnet *net, const struct gci_coll *c,
	size_t most, struct gci_candidate **list, size_t *n)
{
	const struct gci_algorithm *a;
	int rc = gci_estimator_init(&o->e, net, c);

	*list = NULL;
	*n = 0;
	gci_each_algorithm (a)
		if (can_run(a, c) && a->traits & GCI_CAPS_SENDERS)
			o->capped = is_capped(c->topo) || is_for_few_pairs(o);
	gci_each_algorithm (a)
		if (!rc && can_run(a, c) && (!o->brief || is_for_brief(o, a)))
			rc = add_algorithm(o, a);
	sort(o);
	if (!rc)
		rc = take(o, most, list, n);
	gci_free(o->list);
	gci_estimator_free(&o->e);
	return rc;
}

int gci_candidates(const struct gci_simnet *net, const struct gci_coll *c, size_t most,
	struct gci_candidate **out, size_t *n)
{
	struct options o = {.brief = most < GCI_SHORT_LIST};

	return list(&o, net, c, most, out, n);
}

int gci_candidate_rough(
	const struct gci_simnet *net, const struct gci_coll *c, struct gci_candidate *how)
{
	struct options o = {.brief = 1, .rough = 1};
	struct gci_candidate *found;
	size_t n;
	int rc = list(&o, net, c, 1, &found, &n);

	if (!rc && !n)
		rc = GCOLL_ERR_INVAL;
	if (!rc)
		*how = *found;
	gci_free(found);
	return rc;
}
