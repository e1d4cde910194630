/* SPDX-License-Identifier: MIT
 * Packings for operations: what is to go from where to where, and in segments of which length. */
#include "collectives/planner/packed_impl.h"

#include "base/mem.h"
#include "collectives/blocks/blocks.h"
#include "collectives/blocks/windows.h"
#include "collectives/models/limit.h"
#include "collectives/planner/cuts.h"
#include "collectives/tuner/table.h"

#include <string.h>

#define LEAST_SEGMENT (8u << 10)
#define MOST_SEGMENT  (64u << 10)
#define TREE_SEGMENTS 512
#define PATH_SEGMENTS 1024
#define LONGER        4  /* times the first choice of a segment: the second */
#define LEEWAY        64 /* a part of the time, which hardly counts */
#define UNTIMED       16 /* and which does, where there is no timetable */
#define MOST_BOUNDED  8  /* clusters */

static void add_commodity(struct gci_packed *p, int from, int to, double part)
{
	if (part > 0)
		p->commodities[p->ncommodities++] = (struct gci_commodity){from, to, part};
}

static void fill_commodities(
	struct gci_packed *p, const struct gci_coll *c, const struct gci_network *net)
{
	int n = net->nclasses, a, b;
	double all = c->topo->nranks;

	if (gci_kind_has_vector(c->kind)) {
		add_commodity(p, n - 1, 0, 1);
		return;
	}
	for (a = 0; a < n; a++) {
		double here = gci_network_size(net, a);

		if (c->kind == GCI_ALLGATHER || c->kind == GCI_REDUCE_SCATTER)
			add_commodity(p, a, 0, here / all);
		else if (gci_kind_has_root(c->kind) && a < n - 1)
			add_commodity(p, n - 1, a, here / all);
		for (b = 0; c->kind == GCI_ALLTOALL && b < n; b++)
			add_commodity(p, a, b, here * (gci_network_size(net, b) - (a == b)) / all);
	}
}

static uint64_t segment_of(const struct gci_coll *c, uint64_t nbytes, int longer)
{
	uint64_t unit = gci_kind_has_vector(c->kind) ? nbytes : nbytes / (unsigned)c->topo->nranks;
	uint64_t n =
		nbytes / (gci_packed_shape(c->kind) == GCI_PATHS ? PATH_SEGMENTS : TREE_SEGMENTS);

	n = n < LEAST_SEGMENT ? LEAST_SEGMENT : n > MOST_SEGMENT ? MOST_SEGMENT : n;
	if (longer)
		n *= LONGER;
	if (c->segment)
		n = c->segment * c->esize;
	return n > unit && unit ? unit : n;
}

/* Without a timetable, messages wait for each other. */
static double time_of(const struct gci_packed *p)
{
	return p->times.start_ns ? p->times.ns : p->packing.ns * 9 / 8;
}

/* In which time another packing is better. Longer segments cost processors less: they may take a little more time, as long
 * as a port can keep some at once. Where there is no timetable, how long they take is not known as well as that: they are
 * dealt to columns less evenly, and are behind longer ones. And what is packed by spans leaves ports less idle, so that
 * hosts that are late delay more. */
static double enough_ns(const struct gci_packed *p, const struct gci_packed *new, int by_spans)
{
	double ns = time_of(p);
	int longer = new->segment_nbytes > p->segment_nbytes;

	if (longer && !new->times.start_ns)
		return ns - ns / UNTIMED;
	if (longer && new->segment_nbytes <= MOST_SEGMENT)
		return ns + ns / LEEWAY;
	return by_spans ? ns - ns / LEEWAY : ns;
}

void gci_packed_times_free(struct gci_packed_times *t)
{
	gci_free(t->start_ns);
	gci_free(t->first);
	memset(t, 0, sizeof(*t));
}

static void free_ways(struct gci_packed *p)
{
	gci_packing_free(&p->packing);
	gci_packed_times_free(&p->times);
}

/* Keeps what is faster. */
static int try_packing(struct gci_packed *p, const struct gci_coll *c, struct gci_packing_wish *w,
	uint64_t segment_nbytes)
{
	struct gci_packed new = *p;
	int rc, hopeless;

	w->segment_nbytes = (double)segment_nbytes;
	new.segment_nbytes = segment_nbytes;
	new.times = (struct gci_packed_times){0};
	rc = gci_pack(&new.packing, w);
	hopeless = w->by_spans && new.packing.least_ns >= time_of(p);
	if (!rc && !c->counts && !hopeless)
		rc = gci_packed_find_times(&new.times, &new, c);
	if (rc || hopeless ||
		(p->packing.columns && time_of(&new) >= enough_ns(p, &new, w->by_spans))) {
		free_ways(&new);
		return rc;
	}
	free_ways(p);
	*p = new;
	return 0;
}

/* The wish but for its segments; w->net points to `net`, which is to be freed. `order`: NULL: sums need not keep it, nor
 * senders the cap, which are no laws of nature. */
static int begin(struct gci_packed *p, const struct gci_coll *c, struct gci_network *net,
	struct gci_packing_wish *w, uint64_t nbytes, struct gci_sum_order *order)
{
	*w = (struct gci_packing_wish){.net = net,
		.shape = gci_packed_shape(c->kind),
		.message_ns = GCI_PACKED_MESSAGE_NS,
		.nbytes = nbytes ? (double)nbytes : 1};
	if (gci_packed_network(net, c, order != NULL))
		return GCOLL_ERR_NOMEM;
	p->commodities =
		gci_calloc((size_t)net->nclasses * (size_t)net->nclasses, sizeof(*p->commodities));
	if (!p->commodities)
		return GCOLL_ERR_NOMEM;
	p->nclasses = net->nclasses;
	p->sizes = gci_packed_sizes(net);
	fill_commodities(p, c, net);
	w->commodities = p->commodities;
	w->ncommodities = p->ncommodities;
	if (order && c->order != GCI_ANY_ORDER) {
		gci_packed_order(order, net, c);
		w->order = order;
	}
	return 0;
}

int gci_packed_make(struct gci_packed **out, const struct gci_coll *c, uint64_t nbytes)
{
	struct gci_packed *p = gci_calloc(1, sizeof(*p));
	struct gci_network net = {0};
	struct gci_sum_order order;
	struct gci_packing_wish w;
	int rc, longer;

	*out = NULL;
	if (!p)
		return GCOLL_ERR_NOMEM;
	if (!nbytes)
		nbytes = gci_table_round(gci_packed_total(c) * c->esize);
	p->nbytes = nbytes ? nbytes : 1;
	rc = begin(p, c, &net, &w, nbytes, &order);
	p->is_ordered = c->order != GCI_ANY_ORDER;
	p->root = gci_kind_has_root(c->kind) ? c->root : -1;
	/* A rank alone has nothing to send. */
	for (longer = 0; !rc && p->ncommodities && longer < 2; longer++)
		if (segment_of(c, nbytes, longer) != p->segment_nbytes)
			rc = try_packing(p, c, &w, segment_of(c, nbytes, longer));
	w.by_spans = 1;
	if (!rc && p->times.start_ns && p->packing.ns - p->packing.busy_ns > p->packing.ns / LEEWAY)
		rc = try_packing(p, c, &w, p->segment_nbytes);
	gci_network_free(&net);
	if (rc) {
		gci_packed_free(p);
		return rc;
	}
	p->timed = p->times.start_ns || (p->nbytes > GCI_WINDOW_NBYTES && c->topo->nclusters > 1 &&
						c->kind != GCI_ALLTOALL);
	p->ns = (uint64_t)time_of(p);
	*out = p;
	return 0;
}

double gci_packed_shares_ns(const struct gci_coll *c)
{
	struct gci_packed p = {0};
	struct gci_network net = {0};
	struct gci_sum_order order;
	struct gci_packing_wish w;
	uint64_t nbytes = gci_packed_total(c) * c->esize;
	double ns = 0;
	int rc = begin(&p, c, &net, &w, nbytes, &order);

	w.segment_nbytes = (double)segment_of(c, w.nbytes, 0);
	if (!rc && p.ncommodities && !gci_pack(&p.packing, &w))
		ns = p.packing.ns;
	gci_packing_free(&p.packing);
	gci_network_free(&net);
	gci_free(p.commodities);
	return ns;
}

int gci_packed_bound(const struct gci_coll *c, uint64_t *ns)
{
	struct gci_packed p = {0};
	struct gci_network net = {0};
	struct gci_packing_wish w;
	uint64_t nbytes = gci_packed_total(c) * c->esize;
	double cuts = 0;
	int rc = begin(&p, c, &net, &w, nbytes, NULL);

	*ns = 0;
	w.segment_nbytes = LEAST_SEGMENT;
	w.bound = 1;
	/* Parts are by ranks: with counts they would be no law of nature. */
	if (!rc && p.ncommodities && nbytes && !c->counts && !net.is_coarse &&
		c->topo->nranks > 1) {
		rc = gci_pack(&p.packing, &w);
		if (!rc)
			rc = gci_cuts_bound(&w, &cuts);
	}
	if (!rc)
		*ns = (uint64_t)(cuts > p.packing.bound_ns ? cuts : p.packing.bound_ns);
	gci_packing_free(&p.packing);
	gci_network_free(&net);
	gci_free(p.commodities);
	return rc;
}

static int are_flows_limited(const struct gci_topo *t)
{
	int i;

	for (i = 0; i < t->nclusters * t->nclusters; i++)
		if (t->links[i].flow_rate_bps)
			return 1;
	return 0;
}

uint64_t gci_bound_ns(const struct gci_coll *c, uint32_t streams)
{
	uint64_t limit = gci_limit_ns(c, streams), bound;
	const struct gci_topo *t = c->topo;

	if (!limit || t->nclusters < 2 || t->nclusters > MOST_BOUNDED ||
		(streams && are_flows_limited(t)) || gci_packed_bound(c, &bound))
		return limit;
	return bound > limit ? bound : limit;
}

void gci_packed_free(struct gci_packed *p)
{
	if (!p)
		return;
	free_ways(p);
	gci_free(p->commodities);
	gci_free(p);
}

/* ---- rows' emitter */

/* What a rank has of its own. */
static void copy_own(struct gci_builder *b, const struct gci_coll *c)
{
	int me = b->rank;

	if (c->kind == GCI_ALLGATHER || c->kind == GCI_ALLTOALL ||
		((c->kind == GCI_SCATTER || c->kind == GCI_GATHER) && me == c->root &&
			gci_has_out(c, me)))
		gci_copy_some(b, gci_out_block(c, me, me), gci_in_block(c, me, me));
}

/* Alone, or with nothing to send. */
static int is_trivial(const struct gci_coll *c)
{
	return c->topo->nranks == 1 || !gci_packed_longest(c);
}

void gci_emit_packed(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_packed *own = NULL;

	copy_own(b, c);
	if (c->topo->nranks == 1 && gci_kind_reduces(c->kind)) {
		if (c->kind == GCI_REDUCE_SCATTER)
			gci_copy_some(b, gci_out_block(c, 0, 0), gci_in_block(c, 0, 0));
		else
			gci_copy_some(b, gci_vector(c, GCI_OUT), gci_vector(c, gci_input(c, 0)));
	}
	if (is_trivial(c))
		return;
	if (!c->packed && gci_packed_make(&own, c, 0)) {
		b->failed = 1;
		return;
	}
	gci_packed_emit(b, c, c->packed ? c->packed : own);
	gci_packed_free(own);
}
