/* SPDX-License-Identifier: MIT
 * What packings ask of their operations, and what all walks through segments share: turns of columns, hosts by who has
 * sent least. */
#include "collectives/planner/emission.h"

#include "base/mem.h"
#include "collectives/blocks/windows.h"

#include <string.h>

#define MOST_SEGMENTS 2048 /* of all blocks together, besides one for each; of any block */
#define MOST_TAGS     (1u << 27)

int gci_packed_is_turned(enum gci_kind k)
{
	return k == GCI_REDUCE || k == GCI_GATHER || k == GCI_REDUCE_SCATTER;
}

int gci_packed_network(struct gci_network *net, const struct gci_coll *c, int capped)
{
	struct gci_network there;
	int rc = gci_network_of(&there, c->topo, gci_kind_has_root(c->kind) ? c->root : -1, capped);

	if (rc || !gci_packed_is_turned(c->kind)) {
		*net = there;
		return rc;
	}
	rc = gci_network_reverse(net, &there);
	gci_network_free(&there);
	return rc;
}

void gci_packed_order(
	struct gci_sum_order *o, const struct gci_network *net, const struct gci_coll *c)
{
	gci_sum_order_of(o, net, c->topo, gci_packed_is_turned(c->kind),
		gci_kind_has_root(c->kind) ? net->nclasses - 1 : -1);
}

uint64_t gci_packed_sizes(const struct gci_network *net)
{
	return gci_digest_bytes(0, net->first, ((size_t)net->nclasses + 1) * sizeof(*net->first));
}

enum gci_packing_shape gci_packed_shape(enum gci_kind k)
{
	if (k == GCI_ALLREDUCE)
		return GCI_SUMS;
	return k == GCI_SCATTER || k == GCI_GATHER || k == GCI_ALLTOALL ? GCI_PATHS : GCI_TREES;
}

uint64_t gci_packed_total(const struct gci_coll *c)
{
	uint64_t sum = 0, n = (unsigned)c->topo->nranks, i;

	if (!c->counts)
		return (c->like ? c->like : c->count) * (gci_kind_has_vector(c->kind) ? 1 : n);
	if (c->kind != GCI_ALLTOALL)
		return gci_total(c);
	for (i = 0; i < n * n; i++)
		sum += gci_block_len(c, (int)(i / n), (int)(i % n));
	return sum / n;
}

/* The same of `c` alone, which may be a window. */
static uint64_t elements_of(const struct gci_coll *c)
{
	struct gci_coll own = *c;

	own.like = 0;
	return gci_packed_total(&own);
}

/* ---- turns */

/* From one class to another, as bytes go. */
double gci_emission_hop_ns(const struct gci_emission *e, int from, int to)
{
	int pair = from * e->net.nclasses + to;

	return e->net.delay_ns[pair] + GCI_PACKED_MESSAGE_NS +
	       (double)(e->segment * e->c->esize) / e->net.rate[pair];
}

void gci_emission_note(struct gci_emission *e, double key, struct gci_act act)
{
	if (gci_grow(&e->acts, &e->acts_cap, e->nacts + 1, sizeof(*e->acts))) {
		e->b->failed = 1;
		return;
	}
	act.key = key;
	act.nth = e->nacts;
	e->acts[e->nacts++] = act;
}

static void fill_fanouts(struct gci_emission *e)
{
	int n, i, parent, children[32];

	for (n = 1; n <= GCI_BINOMIAL_HOSTS; n++)
		for (i = 0; i < n; i++) {
			struct gci_group g = {.n = n, .me = i};

			e->fanout[n * GCI_BINOMIAL_HOSTS + i] = gci_binomial(&g, &parent, children);
		}
}

static void fill_commodity_numbers(struct gci_emission *e)
{
	int n = e->net.nclasses, i, trees = gci_packed_shape(e->c->kind) == GCI_TREES;

	for (i = 0; i < n * n; i++)
		e->commodity[i] = -1;
	for (i = 0; i < e->p->ncommodities; i++) {
		const struct gci_commodity *m = &e->p->commodities[i];

		e->commodity[trees ? m->from : m->from * n + m->to] = i;
	}
}

uint64_t gci_packed_longest(const struct gci_coll *c)
{
	uint64_t most = 0, n;
	int i, k;

	if (!c->counts)
		return c->count;
	for (i = 0; i < c->topo->nranks; i++)
		for (k = 0; k < (c->kind == GCI_ALLTOALL ? c->topo->nranks : 1); k++) {
			n = gci_block_len(c, i, c->kind == GCI_ALLTOALL ? k : i);
			most = n > most ? n : most;
		}
	return most;
}

/* Elements. All ranks' schedules have so many, and an alltoall has a tag for each of any block. */
static uint64_t emitted_segment(const struct gci_emission *e)
{
	const struct gci_coll *c = e->c;
	uint64_t n = e->p->segment_nbytes / c->esize, p = (unsigned)c->topo->nranks, least, all;

	all = elements_of(c);
	least = (all > gci_packed_longest(c) ? all : gci_packed_longest(c)) / MOST_SEGMENTS + 1;
	n = n < least ? least : n;
	if (c->kind != GCI_ALLTOALL)
		return n;
	least = gci_packed_longest(c) / (MOST_TAGS / (p * p)) + 1;
	return n < least ? least : n;
}

/* As many as in the timetable, or as long: then those of trees are the first of those. */
static uint64_t timed_segment(const struct gci_emission *e)
{
	const struct gci_packed_times *t = &e->p->times;
	uint64_t length = gci_packed_longest(e->c), esize = e->c->esize;
	uint64_t most = gci_nsegments(t->unit_nbytes, t->segment_nbytes);
	uint64_t n = !t->counts && 2 * length * esize > t->unit_nbytes ? (length + most - 1) / most
								       : t->segment_nbytes / esize;

	return n ? n : 1;
}

/* Whether the packing's timetable serves for c: for a whole operation of about as many bytes, or a shorter one.
 * Elements must not be so long that segments of them were far longer. Segments of paths are numbered block by block: where
 * blocks have other numbers of them they have other ways, too. */
static int fits_times(const struct gci_emission *e)
{
	const struct gci_packed_times *t = &e->p->times;
	const struct gci_coll *c = e->c;
	uint64_t length = gci_packed_longest(c);

	if (c->counts || t->counts)
		return t->start_ns && t->counts == c->counts && !c->nparts;
	return t->start_ns && length * c->esize <= t->unit_nbytes * 3 / 2 &&
	       (8 * c->esize < t->segment_nbytes || t->unit_nbytes <= t->segment_nbytes) &&
	       (gci_packed_shape(c->kind) != GCI_PATHS ||
		       gci_nsegments(length, timed_segment(e)) ==
			       gci_nsegments(t->unit_nbytes, t->segment_nbytes));
}

/* Of its time, what stays however many bytes there are. */
static double delay_of(const struct gci_packed *p)
{
	double delay = 0;
	int i;

	for (i = 0; i < p->packing.ncolumns; i++)
		if (p->packing.columns[i].delay_ns > delay)
			delay = p->packing.columns[i].delay_ns;
	return delay < p->packing.ns ? delay : p->packing.ns;
}

/* Of what it was made for, c is so much: about all, or a window. */
double gci_emission_part_of(const struct gci_packed *p, const struct gci_coll *c)
{
	return (double)(elements_of(c) * c->esize) / (double)p->nbytes;
}

/* How long the bytes of c take. */
static double feed_of(const struct gci_packed *p, const struct gci_coll *c)
{
	return (p->packing.ns - delay_of(p)) * gci_emission_part_of(p, c);
}

uint64_t gci_packed_window_ns(const struct gci_packed *p, const struct gci_coll *c)
{
	return p && p->timed ? (uint64_t)feed_of(p, c) : 0;
}

int gci_packed_is_even(const struct gci_coll *c)
{
	return c->kind == GCI_ALLTOALL && c->packed && !c->packed->timed && c->count &&
	       !c->counts && c->topo->nclusters > 1;
}

int gci_emission_start(struct gci_emission *e, struct gci_builder *b, const struct gci_coll *c,
	const struct gci_packed *p)
{
	size_t n;
	int i, k;

	memset(e, 0, sizeof(*e));
	e->b = b;
	e->c = c;
	e->p = p;
	e->me = b ? b->rank : 0;
	e->nranks = c->topo->nranks;
	e->ns = delay_of(p) + feed_of(p, c);
	if (gci_packed_network(&e->net, c, 1))
		return GCOLL_ERR_NOMEM;
	if (e->net.nclasses != p->nclasses || gci_packed_sizes(&e->net) != p->sizes ||
		p->is_ordered != (c->order != GCI_ANY_ORDER) ||
		(p->is_ordered && p->root >= 0 && p->root != c->root))
		return GCOLL_ERR_INVAL; /* that of another root, or of another order */
	if (p->is_ordered)
		gci_packed_order(&e->order, &e->net, c);
	n = (size_t)e->net.nclasses;
	e->first_column = gci_calloc((size_t)p->ncommodities + 1, sizeof(*e->first_column));
	e->turn = gci_calloc((size_t)p->packing.ncolumns, sizeof(*e->turn));
	e->duty = gci_calloc((size_t)e->nranks, sizeof(*e->duty));
	e->entry = gci_calloc(n, sizeof(*e->entry));
	e->place = gci_calloc(2 * (size_t)e->nranks, sizeof(*e->place));
	e->rotation = gci_calloc(n, sizeof(*e->rotation));
	e->fanout = gci_calloc((GCI_BINOMIAL_HOSTS + 1) * GCI_BINOMIAL_HOSTS, sizeof(*e->fanout));
	e->commodity = gci_calloc(n * n, sizeof(*e->commodity));
	e->copies = gci_calloc(n * (size_t)p->packing.ncolumns, sizeof(*e->copies));
	e->timing = gci_calloc(2 * (size_t)p->packing.ncolumns, sizeof(*e->timing));
	if (!e->first_column || !e->turn || !e->duty || !e->entry || !e->timing || !e->commodity ||
		!e->copies || !e->place || !e->rotation || !e->fanout)
		return GCOLL_ERR_NOMEM;
	for (i = 0, k = 0; i <= p->ncommodities; i++) {
		while (k < p->packing.ncolumns && p->packing.columns[k].commodity < i)
			k++;
		e->first_column[i] = k;
	}
	e->start_ns = b && p->timed && fits_times(e) ? p->times.start_ns : NULL;
	e->scale = e->ns / p->packing.ns;
	if (e->start_ns)
		e->ns *= p->times.ns / p->packing.ns;
	e->segment = e->start_ns ? timed_segment(e) : emitted_segment(e);
	e->mine = e->net.class_of[e->me];
	e->slot = e->place + e->nranks;
	for (i = 0; i < e->nranks; i++) {
		int rank = e->net.member[i];

		e->place[rank] = i - e->net.first[e->net.class_of[rank]];
		e->slot[rank] = i;
	}
	fill_fanouts(e);
	fill_commodity_numbers(e);
	return 0;
}

void gci_emission_end(struct gci_emission *e)
{
	int i;

	for (i = 0; e->timing && i < 2 * e->p->packing.ncolumns; i++)
		gci_free(e->timing[i].depth);
	gci_free(e->timing);
	gci_free(e->commodity);
	gci_free(e->copies);
	gci_free(e->acts);
	gci_network_free(&e->net);
	gci_free(e->first_column);
	gci_free(e->turn);
	gci_free(e->duty);
	gci_free(e->entry);
	gci_free(e->place);
	gci_free(e->rotation);
	gci_free(e->fanout);
}

/* Whose turn it is among a commodity's columns. */
int gci_emission_next_column(struct gci_emission *e, int commodity)
{
	int i, best = e->first_column[commodity], to = e->first_column[commodity + 1];
	int64_t total = 0;

	for (i = e->first_column[commodity]; i < to; i++) {
		e->turn[i] += e->p->packing.columns[i].share;
		total += e->p->packing.columns[i].share;
		if (e->turn[i] > e->turn[best])
			best = i;
	}
	e->turn[best] -= total;
	return best;
}

/* The host of a class that has sent least, the first of equals; of large classes one after the other. */
int gci_emission_choose_host(struct gci_emission *e, int class, uint64_t more)
{
	const int *m = gci_network_members(&e->net, class);
	int i, n = gci_network_size(&e->net, class), best = m[0];

	if (n > GCI_BINOMIAL_HOSTS)
		return m[e->rotation[class]++ % (unsigned)n];
	for (i = 1; i < n; i++)
		if (e->duty[m[i]] < e->duty[best])
			best = m[i];
	e->duty[best] += more;
	return best;
}

/* What a segment counts. All like a full one, so that who is chosen does not depend on how long the last is: the same
 * for all sizes that a timetable serves. */
uint64_t gci_emission_weight(const struct gci_emission *e, uint64_t length)
{
	return e->c->counts ? length : e->segment;
}

struct gci_slice gci_emission_part(struct gci_slice s, uint64_t segment, uint64_t i)
{
	uint64_t at = segment * i, left = s.length - at;

	return gci_slice(s.buffer, s.offset + at, left < segment ? left : segment);
}
