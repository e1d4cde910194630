/* SPDX-License-Identifier: MIT
 * Packings as schedules. All ranks walk through all segments in the same order, give each its column by
 * smooth weighted turns and its first host in each class by who has sent least, and note their own steps.
 *
 * Each step has a key, a time at which it may begin for all to end when the packing says: from a timetable of all
 * hosts' messages, where there is one, else the latest, by how deep trees are. Where SENDs are timed it is the earliest,
 * too (the latest, less a 32nd of the whole time). A rank emits its
 * steps by their keys, and a SEND waits for those whose keys are a good deal earlier: else what is there from the
 * beginning, such as the parts of leaves, would take the NIC from what has to go on now. Whatever a step waits for
 * has an earlier key, on this rank or another, so nobody waits for ever.
 *
 * Operations that collect (reduce, gather, reduce_scatter) are those that spread on the network with all
 * arrows turned, with all messages turned. */
#include "collectives/planner/packed_impl.h"

#include "base/clock.h"
#include "base/mem.h"
#include "collectives/blocks/blocks.h"
#include "collectives/blocks/windows.h"
#include "collectives/planner/timetable.h"

#include <stdlib.h>
#include <string.h>

#define MOST_SEGMENTS 2048 /* of all blocks together, besides one for each; of any block */
#define MOST_TAGS     (1u << 27)
#define EVEN_PART     32 /* of what ports and links take, that even rates leave */
#define EARLY         32 /* a part of the whole time by which timed SENDs go before they are due */
#define EARLY_NS      500000 /* and that at least: who sleeps may wake up as late */
#define SLACK         8 /* a part of the whole time by which SENDs of sums may be out of order */
#define MOST_TIMED    (1u << 18) /* messages in a timetable: more take too long */
#define MOST_HOSTS    1024       /* whose memory would be too much */
#define MOST_PARCELS  (1u << 22) /* likewise: places for segments of blocks as long as the longest */
/* Of counts, which may be others each time, a message may take so long of an operation's time: a fourth of that is
   longer than what a timetable takes, a microsecond a message. */
#define COUNTED_NS 4000
/* Of an alltoall no message waits for another host's. When hosts are a little late, what meets at a port is as if at random,
   and a port that has no time to spare overflows (the quickstart's grid, 32 MiB, dilation 4: 2.2 times the limit and 5,000
   segments resent in 9 operations; with a tenth to spare 1.15 and none). */
#define SPACING_OF_ALL 1.1

enum { PHASE_UP, PHASE_DOWN };

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

enum act_kind { ACT_RECV, ACT_RECV_REDUCE, ACT_REDUCE, ACT_COPY, ACT_SEND };

/* A step that this rank will have. */
struct act {
	double key; /* ns */
	size_t nth; /* in the order in which they were noted */
	enum act_kind kind;
	int swapped; /* of a REDUCE or RECV_REDUCE */
	int peer;
	uint32_t tag;
	struct gci_slice dst, src;
};

/* All hosts' messages. */
struct listing {
	struct gci_timetable table;
	int *parents;    /* [rank], twice: scratch */
	uint32_t *first; /* [parcel]: its first message */
};

struct emission {
	struct gci_builder *b; /* NULL: all hosts' messages are listed, or their rates added up */
	const struct gci_coll *c;
	const struct gci_packed *p;
	struct gci_network net;
	struct gci_sum_order order; /* if p->is_ordered */
	struct listing *list;       /* NULL: this rank's acts are noted */
	uint64_t *even_bps;         /* [from * nranks + to]; NULL: not asked for */
	const double
		*start_ns; /* [message]: p->times.start_ns; NULL: keys come from depths and tails */
	double scale;      /* of those */
	int me, nranks;
	int *first_column; /* [commodity], and one more */
	int64_t *turn;     /* [column]: of the smooth weighted round robin */
	uint64_t *duty;    /* [rank]: bytes that it was chosen to send */
	int *entry;        /* [class]: its first host, of the segment under way */
	int *place;        /* [rank]: in its class */
	int *slot; /* [rank]: among all, by class and place: the same for all roots that a packing serves */
	unsigned *rotation; /* [class]: of large ones */
	int *fanout; /* [nhosts * GCI_BINOMIAL_HOSTS + place]: of binomial trees over so many hosts */
	uint64_t segment;      /* elements */
	double ns;             /* of so many bytes, by their packing */
	int mine;              /* this rank's class */
	int *commodity;        /* [from * nclasses + to]; of trees, [from]; -1: none */
	uint64_t *copies;      /* [column * nclasses + class]: that the class's first host sends */
	struct timing *timing; /* [2 * column + second]: of its trees */
	struct act *acts;
	size_t nacts, acts_cap;
};

/* When a tree's segments pass, from the start of one at its root. */
struct timing {
	double *depth; /* [class]: until its first host has it */
	double *tail;  /* [class]: from then on until the last behind it has it */
	double *copies; /* [class]: of sums in a fixed order: how many go from its first host to the next */
	double *late; /* [class]: of sums: when what is below it may be complete where it ends, at the latest */
	double end; /* of all */
	double all; /* of both trees, of the first */
};

/* From one class to another, as bytes go. */
static double hop_ns(const struct emission *e, int from, int to)
{
	int pair = from * e->net.nclasses + to;

	return e->net.delay_ns[pair] + GCI_PACKED_MESSAGE_NS +
	       (double)(e->segment * e->c->esize) / e->net.rate[pair];
}

static double later(double a, double b)
{
	return a > b ? a : b;
}

static void note(struct emission *e, double key, struct act act)
{
	if (gci_grow(&e->acts, &e->acts_cap, e->nacts + 1, sizeof(*e->acts))) {
		e->b->failed = 1;
		return;
	}
	act.key = key;
	act.nth = e->nacts;
	e->acts[e->nacts++] = act;
}

static void fill_fanouts(struct emission *e)
{
	int n, i, parent, children[32];

	for (n = 1; n <= GCI_BINOMIAL_HOSTS; n++)
		for (i = 0; i < n; i++) {
			struct gci_group g = {.n = n, .me = i};

			e->fanout[n * GCI_BINOMIAL_HOSTS + i] = gci_binomial(&g, &parent, children);
		}
}

static void fill_commodity_numbers(struct emission *e)
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
static uint64_t emitted_segment(const struct emission *e)
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
static uint64_t timed_segment(const struct emission *e)
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
static int fits_times(const struct emission *e)
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
static double part_of(const struct gci_packed *p, const struct gci_coll *c)
{
	return (double)(elements_of(c) * c->esize) / (double)p->nbytes;
}

/* How long the bytes of c take. */
static double feed_of(const struct gci_packed *p, const struct gci_coll *c)
{
	return (p->packing.ns - delay_of(p)) * part_of(p, c);
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

static int start(struct emission *e, struct gci_builder *b, const struct gci_coll *c,
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

static void end(struct emission *e)
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
static int next_column(struct emission *e, int commodity)
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
static int choose_host(struct emission *e, int class, uint64_t more)
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

/* ---- trees */

/* Of the hosts of a class, from the first to the last. */
static double inside_ns(const struct emission *e, int class)
{
	if (e->p->is_ordered)
		return gci_packing_rounds(e->order.nhosts[class]) * hop_ns(e, class, class);
	return gci_packing_lan_hops(gci_network_size(&e->net, class)) * hop_ns(e, class, class);
}

/* An arc of a tree from its root. What goes up in an allreduce goes the other way, and the network is not
 * turned for that. */
static double arc_ns(const struct emission *e, int second, int from, int to)
{
	int up = e->c->kind == GCI_ALLREDUCE && !second;

	return up ? hop_ns(e, to, from) : hop_ns(e, from, to);
}

static int time_tree(struct emission *e, const struct gci_column *col, int second)
{
	int n = e->net.nclasses, i, c, k;
	const int *parent = col->way + 2 * n * second, *rest = parent + n;
	struct gci_sum_node nodes[GCI_GRID_MAX_CLUSTERS];
	struct timing *t = &e->timing[2 * (col - e->p->packing.columns) + second];

	t->depth = gci_calloc((size_t)(4 * n), sizeof(*t->depth));
	if (!t->depth)
		return GCOLL_ERR_NOMEM;
	t->tail = t->depth + n;
	t->late = t->tail + n;
	t->copies = t->late + n;
	for (c = 0; c < n; c++)
		t->copies[c] = e->p->is_ordered && !second
				       ? gci_sum_nodes(&e->order, parent, col->root, c, nodes)
				       : 1;
	for (i = 0; i < n; i++) /* as many rounds as a tree may be deep */
		for (c = 0; c < n; c++)
			if (c != col->root)
				t->depth[c] =
					t->depth[parent[c]] + arc_ns(e, second, parent[c], c) +
					(t->copies[c] - 1) * (double)(e->segment * e->c->esize) /
						e->net.rate[parent[c] * n + c];
	for (c = 0; c < n; c++) {
		double leaf = t->depth[c];

		if (gci_network_size(&e->net, c) > 1)
			leaf = rest[c] == c ? leaf + inside_ns(e, c)
					    : t->depth[rest[c]] + arc_ns(e, second, rest[c], c);
		if (leaf > t->end)
			t->end = leaf;
		/* Behind whom it has it from, and all before that. */
		for (k = rest[c] == c ? c : rest[c];; k = parent[k]) {
			if (leaf - t->depth[k] > t->tail[k])
				t->tail[k] = leaf - t->depth[k];
			if (k == col->root)
				break;
		}
		for (k = c;; k = parent[k]) {
			if (t->depth[c] - t->depth[k] > t->tail[k])
				t->tail[k] = t->depth[c] - t->depth[k];
			if (k == col->root)
				break;
		}
	}
	return 0;
}

static double leaf_ns(const struct emission *e, const struct timing *t, int class)
{
	return t->depth[class] + (gci_network_size(&e->net, class) > 1 ? inside_ns(e, class) : 0);
}

/* What is below the class that meets the root takes to or from it, and all else to or from the root. */
static void time_sides(const struct emission *e, const struct gci_column *col, int second,
	double *below, double *others)
{
	int n = e->net.nclasses, k;
	const int *parent = col->way + 2 * n * second;
	const struct timing *t = &e->timing[2 * (col - e->p->packing.columns) + second];

	*below = *others = 0;
	for (k = 0; k < n; k++) {
		double *most =
			gci_column_is_below(parent, col->root, k, col->meet) ? below : others;
		double ns = leaf_ns(e, t, k) - (most == below ? t->depth[col->meet] : 0);

		*most = ns > *most ? ns : *most;
	}
}

/* Both trees of a sum. Where two classes meet, each side has to be complete in time for itself and for the other. */
static void time_sum(struct emission *e, const struct gci_column *col)
{
	struct timing *in = &e->timing[2 * (col - e->p->packing.columns)], *out = in + 1;
	double in_x, in_root, out_x, out_root, to, from, at_root, at_x;
	int k;

	in->all = in->end + out->end;
	for (k = 0; k < e->net.nclasses; k++)
		in->late[k] = in->end;
	if (col->meet < 0)
		return;
	time_sides(e, col, 0, &in_x, &in_root);
	time_sides(e, col, 1, &out_x, &out_root);
	to = in->depth[col->meet];
	from = out->depth[col->meet];
	at_root = (in_root > in_x + to ? in_root : in_x + to) + out_root;
	at_x = (in_x > in_root + from ? in_x : in_root + from) + out_x;
	in->all = at_root > at_x ? at_root : at_x;
	at_root = in->all - (out_root > out_x + from ? out_root : out_x + from);
	at_x = in->all - (out_x > out_root + to ? out_x : out_root + to);
	for (k = 0; k < e->net.nclasses; k++)
		in->late[k] = gci_column_is_below(col->way, col->root, k, col->meet) ? at_x + to
										     : at_root;
}

/* A segment's way by one tree: `begin` is when it starts at the root; or, turned, the leaves. */
struct passage {
	const struct gci_column *col;
	const int *parent, *rest;
	const struct timing *t;
	int turned, second, nth, of_sum;
	uint64_t tree; /* of all of the operation's */
	double begin;
	uint32_t tag, span;        /* sums that go with the first one are so far apart */
	struct gci_slice own, all; /* what this rank gives, and what it gets */
};

/* This rank's neighbours in the tree of hosts, with the keys of the messages between. */
struct place {
	int parent; /* rank; -1: none */
	double parent_key;
	struct neighbour {
		int rank;
		double key;
		int class; /* of sums in a fixed order: if it is of another cluster; else -1 */
		int other_first; /* its operand is the left one */
	} * child;
	int nchildren;
	struct neighbour last; /* who has the whole for the root; rank -1: nobody */
};

/* The latest start of the message to (or, turned, from) someone of that class who has it `at` that time after the
 * start, with so much behind him, and a hop before. */
static double key_of(const struct passage *x, int class, double at_ns, double tail_ns, double hop)
{
	if (x->turned)
		return x->begin + (x->of_sum ? x->t->late[class] : x->t->end) - at_ns;
	return x->begin + x->t->end - (tail_ns + hop);
}

static void add_child(struct place *p, int rank, double key)
{
	p->child[p->nchildren++] = (struct neighbour){.rank = rank, .key = key, .class = -1};
}

/* Inside of a class: which round of a binomial tree, or level of a binary one, brings it to that member, and how
 * many there are behind. */
static double key_inside(const struct emission *e, const struct passage *x, int class, int member)
{
	int n = gci_network_size(&e->net, class), rounds = gci_packing_rounds(n), k = 0;
	double hop = hop_ns(e, class, class);

	if (n > GCI_BINOMIAL_HOSTS) {
		while (2 << k <= member + 1)
			k++; /* its level */
		return key_of(
			x, class, x->t->depth[class] + 2 * k * hop, 2 * (rounds - k) * hop, hop);
	}
	while (!(member >> k & 1))
		k++;
	return key_of(x, class, x->t->depth[class] + (rounds - k) * hop, k * hop, hop);
}

/* Of the message between a host and its parent, among all; the root's stands for what it has, or gets. */
static uint32_t number_of(const struct emission *e, const struct passage *x, int rank)
{
	return (uint32_t)(x->tree * (unsigned)e->nranks) + (unsigned)e->slot[rank];
}

/* When it goes: as it was found, or else by that formula. */
static double key_at(const struct emission *e, const struct passage *x, int rank, double formula)
{
	return e->start_ns ? e->start_ns[number_of(e, x, rank)] * e->scale : formula;
}

/* The hosts of a class but the first, below that. */
static void place_in_class(struct emission *e, const struct passage *x, struct place *p, int class)
{
	struct gci_group g = {.ranks = gci_network_members(&e->net, class),
		.n = gci_network_size(&e->net, class),
		.rotation = e->place[e->entry[class]]};
	int children[32], parent, i, n, binary = g.n > GCI_BINOMIAL_HOSTS,
					back = binary && x->nth & 1;

	g.me = gci_group_member(&g, e->place[e->me]);
	if (back && g.me)
		g.me = g.n - g.me; /* the others in reverse: inner hosts are leaves */
	n = (binary ? gci_binary : gci_binomial)(&g, &parent, children);
	if (parent >= 0) {
		p->parent_key = key_at(e, x, e->me, key_inside(e, x, class, g.me));
		p->parent = gci_group_rank(&g, back && parent ? g.n - parent : parent);
	}
	for (i = 0; i < n; i++) {
		int child = gci_group_rank(&g, back ? g.n - children[i] : children[i]);

		add_child(p, child, key_at(e, x, child, key_inside(e, x, class, children[i])));
	}
}

/* Whether sums keep a fixed order on this passage. */
static int keeps_order(const struct emission *e, const struct passage *x)
{
	return e->p->is_ordered && x->turned;
}

/* How many halves of halves of n there are down to that place. */
static int halvings(int n, int place)
{
	int a = 0, z = n, count = 0;

	for (; z - a > 1; count++) {
		int mid = gci_middle(a, z);

		if (place < mid)
			z = mid;
		else
			a = mid;
	}
	return count;
}

/* In its cluster, along the tree that all keep to (collectives/blocks/order.h). */
static void place_in_cluster(struct emission *e, const struct passage *x, struct place *p, int core)
{
	const struct gci_topo *t = e->c->topo;
	struct gci_join joins[GCI_MAX_JOINS];
	int i, n = gci_joins(t, 0, e->me, e->entry[core], joins);
	int depth = halvings(e->order.nhosts[core], t->index[e->me]);
	double hop = hop_ns(e, core, core);

	for (i = 0; i < n && i < depth && p->parent < 0; i++) {
		int other = joins[i].other, is_mine = other == e->me;
		double key = key_at(e, x, other,
			key_of(x, core, x->t->depth[core] + (depth - i) * hop, 0, hop));

		if (is_mine) {
			p->parent = joins[i].lead;
			p->parent_key = key;
		} else {
			add_child(p, other, key);
			p->child[p->nchildren - 1].other_first = joins[i].other_first;
		}
	}
}

/* The same place in a tree of sums that keep their order. */
static void find_sum_place(struct emission *e, const struct passage *x, struct place *p)
{
	int c, mine = e->mine, root = x->col->root, core = e->order.core[mine];
	int home = e->order.core[root];

	place_in_cluster(e, x, p, core);
	if (e->me == e->entry[root] && home != root)
		p->last = (struct neighbour){.rank = e->entry[home],
			.key = key_at(
				e, x, e->entry[home], key_of(x, home, x->t->depth[home], 0, 0))};
	if (e->me != e->entry[core])
		return;
	for (c = 0; c < e->net.nclasses; c++)
		if (c != root && e->order.core[c] == c && x->parent[c] == core) {
			add_child(p, e->entry[c],
				key_at(e, x, e->entry[c], key_of(x, c, x->t->depth[c], 0, 0)));
			p->child[p->nchildren - 1].class = c;
		}
	if (core != root) {
		p->parent = e->entry[x->parent[core]];
		p->parent_key = key_at(e, x, e->me, key_of(x, core, x->t->depth[core], 0, 0));
	}
}

static void find_place(struct emission *e, const struct passage *x, struct place *p)
{
	const int *m;
	int k, c, me = e->me, mine = e->mine, is_entry = e->entry[mine] == me;
	int root = x->col->root;

	p->parent = p->last.rank = -1;
	p->nchildren = 0;
	if (keeps_order(e, x)) {
		find_sum_place(e, x, p);
		return;
	}
	if (is_entry && mine != root) {
		p->parent = e->entry[x->parent[mine]];
		p->parent_key = key_at(e, x, me,
			key_of(x, mine, x->t->depth[mine], x->t->tail[mine],
				arc_ns(e, x->second, x->parent[mine], mine)));
	} else if (!is_entry && x->rest[mine] != mine) {
		double hop = arc_ns(e, x->second, x->rest[mine], mine);

		p->parent = e->entry[x->rest[mine]];
		p->parent_key =
			key_at(e, x, me, key_of(x, mine, x->t->depth[x->rest[mine]] + hop, 0, hop));
	}
	for (c = 0; is_entry && c < e->net.nclasses; c++) {
		double hop = arc_ns(e, x->second, mine, c);

		if (c != root && x->parent[c] == mine)
			add_child(p, e->entry[c],
				key_at(e, x, e->entry[c],
					key_of(x, c, x->t->depth[c], x->t->tail[c], hop)));
		if (x->rest[c] != mine || c == mine)
			continue;
		m = gci_network_members(&e->net, c);
		for (k = 0; k < gci_network_size(&e->net, c); k++)
			if (m[k] != e->entry[c])
				add_child(p, m[k],
					key_at(e, x, m[k],
						key_of(x, c, x->t->depth[mine] + hop, 0, hop)));
	}
	if (x->rest[mine] == mine && gci_network_size(&e->net, mine) > 1)
		place_in_class(e, x, p, mine);
}

/* What a segment counts. All like a full one, so that who is chosen does not depend on how long the last is: the same
 * for all sizes that a timetable serves. */
static uint64_t weight(const struct emission *e, uint64_t length)
{
	return e->c->counts ? length : e->segment;
}

/* How many copies first hosts send by a tree. */
static void add_copies(struct emission *e, const struct gci_column *col, int second)
{
	int n = e->net.nclasses, c;
	const int *parent = col->way + 2 * n * second, *rest = parent + n;
	const struct timing *t = &e->timing[2 * (col - e->p->packing.columns) + second];
	uint64_t *copies = e->copies + n * (col - e->p->packing.columns);

	for (c = 0; c < n; c++) {
		if (c != col->root)
			copies[parent[c]] += (uint64_t)t->copies[c];
		if (rest[c] != c)
			copies[rest[c]] += (uint64_t)gci_network_size(&e->net, c) - 1;
	}
}

/* What the hosts of a class send one another. */
static void add_lan_duties(struct emission *e, const int *rest, int class, uint64_t length)
{
	const int *m = gci_network_members(&e->net, class);
	int i, n = gci_network_size(&e->net, class), first;

	if (rest[class] != class || n > GCI_BINOMIAL_HOSTS)
		return;
	first = e->place[e->entry[class]];
	for (i = 0; i < n; i++)
		e->duty[m[(first + i) % n]] +=
			(unsigned)e->fanout[n * GCI_BINOMIAL_HOSTS + i] * length;
}

/* First hosts of all classes for a segment of so many bytes; `lead` is the root's, or -1. */
static void choose_entries(
	struct emission *e, const struct gci_column *col, int lead, uint64_t length)
{
	int n = e->net.nclasses, k;
	const uint64_t *copies = e->copies + n * (col - e->p->packing.columns);

	for (k = 0; k < n; k++) {
		if (k == col->root && lead >= 0) {
			e->entry[k] = lead;
			e->duty[lead] += copies[k] * length;
		} else if (e->p->is_ordered && e->order.core[k] != k && col->nway == 2 * n) {
			e->entry[k] = -1; /* all are leaves */
		} else {
			e->entry[k] = choose_host(e, k, copies[k] * length);
		}
		add_lan_duties(e, col->way + n, k, length);
		if (col->nway == 4 * n)
			add_lan_duties(e, col->way + 3 * n, k, length);
	}
}

/* A segment goes down the tree. */
static void pass_down(struct emission *e, const struct passage *x, const struct place *p)
{
	struct gci_slice from = p->parent >= 0 ? x->all : x->own;
	int i;

	if (p->parent >= 0)
		note(e, p->parent_key,
			(struct act){
				.kind = ACT_RECV, .peer = p->parent, .tag = x->tag, .dst = x->all});
	for (i = 0; i < p->nchildren; i++)
		note(e, p->child[i].key,
			(struct act){.kind = ACT_SEND,
				.peer = p->child[i].rank,
				.tag = x->tag,
				.src = from});
}

/* Sums what all children give with what this rank has, if there are any, in `sum`. All are asked at once, all but one
 * for a place of its own: credit that waited for the one before would cost a round trip. Returns when it may be complete,
 * at the latest. */
static double gather(
	struct emission *e, const struct passage *x, const struct place *p, struct gci_slice sum)
{
	struct gci_slice there;
	uint64_t length = x->own.length;
	double key = 0;
	int i;

	for (i = 0; i < p->nchildren; i++) {
		const struct neighbour *n = &p->child[i];

		if (n->key > key)
			key = n->key;
		if (!i) {
			note(e, n->key,
				(struct act){.kind = ACT_RECV_REDUCE,
					.peer = n->rank,
					.tag = x->tag,
					.dst = sum,
					.src = x->own});
			continue;
		}
		there = gci_slice(GCI_TMP, gci_tmp(e->b, length), length);
		note(e, n->key,
			(struct act){
				.kind = ACT_RECV, .peer = n->rank, .tag = x->tag, .dst = there});
	}
	for (i = 1; i < p->nchildren; i++)
		note(e, key,
			(struct act){.kind = ACT_REDUCE,
				.dst = sum,
				.src = gci_slice(GCI_TMP,
					there.offset - (uint64_t)(p->nchildren - 1 - i) * length,
					length)});
	return key;
}

static struct gci_slice room_for(struct emission *e, struct gci_slice like)
{
	return gci_slice(GCI_TMP, gci_tmp(e->b, like.length), like.length);
}

/* Sums of several clusters that one host has. */
struct sums {
	struct gci_sum_node node[GCI_GRID_MAX_CLUSTERS];
	struct gci_slice at[GCI_GRID_MAX_CLUSTERS];
	int n;
};

static void add_sum_node(struct sums *s, struct gci_sum_node node, struct gci_slice at)
{
	s->node[s->n] = node;
	s->at[s->n++] = at;
}

/* Appends what there is of clusters [a, z) to `out`, combined as far as their order lets it. True if that is one sum. What
 * is not in TMP is the user's. */
static int fold(
	struct emission *e, const struct sums *have, int a, int z, double key, struct sums *out)
{
	int i, before = out->n, mid = gci_middle(a, z), low, high;
	struct gci_slice left, right;

	for (i = 0; i < have->n; i++)
		if (have->node[i].a == a && have->node[i].z == z) {
			add_sum_node(out, have->node[i], have->at[i]);
			return 1;
		}
	if (z - a == 1)
		return 0;
	low = fold(e, have, a, mid, key, out);
	high = fold(e, have, mid, z, key, out);
	if (!low || !high)
		return 0;
	left = out->at[before];
	right = out->at[before + 1];
	low = left.buffer == GCI_TMP;
	note(e, key,
		(struct act){.kind = ACT_REDUCE,
			.swapped = !low,
			.dst = low ? left : right,
			.src = low ? right : left});
	out->n = before;
	add_sum_node(out, (struct gci_sum_node){a, z}, low ? left : right);
	return 1;
}

/* Its own cluster's sum, as far as it is made here. *key: when it may be complete, at the latest. */
static struct gci_slice sum_of_cluster(
	struct emission *e, const struct passage *x, const struct place *p, double *key)
{
	struct gci_slice there[GCI_MAX_JOINS], sum = x->own;
	int i, n = 0;

	for (i = 0; i < p->nchildren && p->child[i].class < 0; i++) {
		there[n++] = room_for(e, x->own);
		*key = later(*key, p->child[i].key);
		if (!i)
			sum = there[0];
		note(e, p->child[i].key,
			(struct act){.kind = i ? ACT_RECV : ACT_RECV_REDUCE,
				.swapped = p->child[i].other_first,
				.peer = p->child[i].rank,
				.tag = x->tag,
				.dst = there[i],
				.src = x->own});
	}
	for (i = 1; i < n; i++)
		note(e, *key,
			(struct act){.kind = ACT_REDUCE,
				.swapped = p->child[i].other_first,
				.dst = sum,
				.src = there[i]});
	return sum;
}

/* All that this rank sends on, or has in the end; returns when it may be complete, at the latest. */
static double gather_sums(
	struct emission *e, const struct passage *x, const struct place *p, struct sums *out)
{
	int i, j, n, mine = e->order.cluster[e->mine];
	struct gci_sum_node nodes[GCI_GRID_MAX_CLUSTERS];
	struct sums have = {.n = 0};
	double key = 0;

	add_sum_node(&have, (struct gci_sum_node){mine, mine + 1}, sum_of_cluster(e, x, p, &key));
	for (i = 0; i < p->nchildren; i++) {
		const struct neighbour *c = &p->child[i];

		if (c->class < 0)
			continue;
		key = later(key, c->key);
		n = gci_sum_nodes(&e->order, x->parent, x->col->root, c->class, nodes);
		for (j = 0; j < n; j++) {
			add_sum_node(&have, nodes[j], room_for(e, x->own));
			note(e, c->key,
				(struct act){.kind = ACT_RECV,
					.peer = c->rank,
					.tag = x->tag + (unsigned)j * x->span,
					.dst = have.at[have.n - 1]});
		}
	}
	out->n = 0;
	fold(e, &have, 0, e->order.nclusters, key, out);
	return key;
}

/* The same as below, in the order of clusters and their members. */
static void pass_sums_up(struct emission *e, const struct passage *x, const struct place *p)
{
	struct sums s;
	double key = gather_sums(e, x, p, &s);
	int i;

	for (i = 0; p->parent >= 0 && i < s.n; i++)
		note(e, p->parent_key,
			(struct act){.kind = ACT_SEND,
				.peer = p->parent,
				.tag = x->tag + (unsigned)i * x->span,
				.src = s.at[i]});
	if (p->last.rank >= 0)
		note(e, p->last.key,
			(struct act){.kind = ACT_RECV,
				.peer = p->last.rank,
				.tag = x->tag,
				.dst = x->all});
	else if (p->parent < 0)
		note(e, key, (struct act){.kind = ACT_COPY, .dst = x->all, .src = s.at[0]});
}

/* Sums go up; the root's is made in x->all. */
static void pass_up(struct emission *e, const struct passage *x, const struct place *p)
{
	struct gci_slice sum;

	if (keeps_order(e, x)) {
		pass_sums_up(e, x, p);
		return;
	}
	sum = p->nchildren && p->parent >= 0 ? room_for(e, x->own) : x->all;
	gather(e, x, p, sum);
	if (p->parent >= 0)
		note(e, p->parent_key,
			(struct act){.kind = ACT_SEND,
				.peer = p->parent,
				.tag = x->tag,
				.src = p->nchildren ? sum : x->own});
	else if (!p->nchildren)
		gci_copy_some(e->b, x->all, x->own);
}

/* Takes a child out; returns its key. */
static double take_child(struct place *p, int rank)
{
	double key = 0;
	int i, n = 0;

	for (i = 0; i < p->nchildren; i++)
		if (p->child[i].rank == rank)
			key = p->child[i].key;
		else
			p->child[n++] = p->child[i];
	p->nchildren = n;
	return key;
}

/* The root's first host and the other that it meets tell each other what they have; both add it in the same order. What
 * is left of `down` is the way from there. */
static void meet(struct emission *e, const struct passage *up, const struct passage *down,
	struct place *above, struct place *below)
{
	const struct gci_column *col = up->col;
	int is_root = e->mine == col->root, i;
	int peer = e->entry[is_root ? col->meet : col->root];
	double to = is_root ? take_child(below, peer) : above->parent_key;
	double from = is_root ? take_child(above, peer) : below->parent_key, key;
	/* In place, what comes must not meet what goes. */
	int apart = up->own.buffer == up->all.buffer, root_first = 1;
	struct gci_slice have, there = apart ? room_for(e, up->own) : up->all;
	struct sums s;

	if (e->p->is_ordered) {
		root_first = e->order.cluster[col->root] < gci_middle(0, e->order.nclusters);
		key = gather_sums(e, up, above, &s);
		have = s.at[0];
	} else {
		have = above->nchildren ? room_for(e, up->own) : up->own;
		key = gather(e, up, above, have);
	}
	/* What a host has of its own is there from the beginning, and gone before what comes takes its place. */
	if (!above->nchildren && from < to)
		to = from;
	note(e, later(to, key),
		(struct act){.kind = ACT_SEND,
			.peer = peer,
			.tag = is_root ? down->tag : up->tag,
			.src = have});
	note(e, from,
		(struct act){.kind = ACT_RECV,
			.peer = peer,
			.tag = is_root ? up->tag : down->tag,
			.dst = there});
	key = later(key, from);
	note(e, key,
		(struct act){.kind = ACT_REDUCE,
			.swapped = is_root == root_first,
			.dst = there,
			.src = have});
	if (apart)
		note(e, key, (struct act){.kind = ACT_COPY, .dst = up->all, .src = there});
	below->parent = -1;
	for (i = 0; i < below->nchildren; i++)
		below->child[i].key = later(below->child[i].key, key);
}

static int compare_acts(const void *a, const void *b)
{
	const struct act *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->nth < y->nth ? -1 : x->nth > y->nth;
}

/* The latest of the SENDs before this one whose key is earlier by `slack`; moves `*at` on. */
static void wait_for_earlier(struct emission *e, const struct act *a, double slack,
	const uint32_t *sent, const double *keys, size_t nsent, size_t *at)
{
	while (*at < nsent && keys[*at] <= a->key - slack)
		++*at;
	if (*at)
		gci_after(e->b, sent[*at - 1]);
}

/* By their keys. */
static void emit_acts(struct emission *e)
{
	double slack = e->ns / SLACK, early = e->start_ns ? 0 : later(e->ns / EARLY, EARLY_NS);
	uint32_t *sent = gci_calloc(e->nacts, sizeof(*sent));
	double *keys = gci_calloc(e->nacts, sizeof(*keys));
	size_t i, nsent = 0, at = 0;

	if (e->nacts)
		qsort(e->acts, e->nacts, sizeof(*e->acts), compare_acts);
	for (i = 0; sent && keys && i < e->nacts; i++) {
		const struct act *a = &e->acts[i];

		switch (a->kind) {
		case ACT_RECV:
			gci_recv(e->b, a->peer, a->tag, a->dst);
			break;
		case ACT_RECV_REDUCE:
			gci_recv_reduce(e->b, a->peer, a->tag, a->dst, a->src, a->swapped);
			break;
		case ACT_REDUCE:
			gci_reduce(e->b, a->dst, a->src, a->swapped);
			break;
		case ACT_COPY:
			gci_copy(e->b, a->dst, a->src);
			break;
		case ACT_SEND:
			sent[nsent] = gci_send(e->b, a->peer, a->tag, a->src);
			keys[nsent++] = a->key;
			if (e->p->timed)
				gci_not_before(e->b, 1 + (uint64_t)later(a->key - early, 0));
			if (gci_kind_reduces(e->c->kind))
				wait_for_earlier(e, a, slack, sent, keys, nsent - 1, &at);
			break;
		}
	}
	e->b->failed |= !sent || !keys;
	gci_free(sent);
	gci_free(keys);
}

static struct gci_slice part(struct gci_slice s, uint64_t segment, uint64_t i)
{
	uint64_t at = segment * i, left = s.length - at;

	return gci_slice(s.buffer, s.offset + at, left < segment ? left : segment);
}

static int look_at_trees(struct emission *e)
{
	int i, k, rc = 0;

	for (i = 0; i < e->p->packing.ncolumns; i++) {
		const struct gci_column *col = &e->p->packing.columns[i];

		for (k = 0; !rc && k < col->nway / (2 * e->net.nclasses); k++) {
			rc = time_tree(e, col, k);
			if (!rc)
				add_copies(e, col, k);
		}
		if (!rc && k == 2)
			time_sum(e, col);
	}
	return rc;
}

/* What passes by a column's first or second tree. A column is fed evenly until its last segment just gets through
 * in time: nth of so many. */
static struct passage passage_of(const struct emission *e, const struct gci_column *col, int second,
	uint64_t nth, uint64_t of)
{
	int n = e->net.nclasses;
	const struct timing *t = &e->timing[2 * (col - e->p->packing.columns)];
	int of_sum = col->nway == 4 * n;
	double all = of_sum ? t->all : t->end, left = e->ns - all;

	return (struct passage){.col = col,
		.parent = col->way + 2 * n * second,
		.rest = col->way + 2 * n * second + n,
		.t = t + second,
		.second = second,
		.of_sum = of_sum,
		.turned = gci_packed_is_turned(e->c->kind) ||
			  (e->c->kind == GCI_ALLREDUCE && !second),
		.nth = (int)(nth & 1),
		.tree = of_sum ? 2 * nth + (unsigned)second : nth,
		.begin = (left > 0 ? left * (double)nth / (double)of : 0) +
			 (second ? all - t[1].end : 0)};
}

static int meets(const struct emission *e, const struct gci_column *col)
{
	int me = e->me;

	return col->meet >= 0 && (e->entry[col->root] == me || e->entry[col->meet] == me);
}

/* ---- all hosts' messages, for a timetable */

/* How many that rank sends on. */
static double sums_of(const struct emission *e, const struct passage *x, int rank)
{
	int class = e->net.class_of[rank];

	return keeps_order(e, x) && e->entry[class] == rank && e->order.core[class] == class
		       ? x->t->copies[class]
		       : 1;
}

/* The messages of a tree; parents[rank]. */
static void add_tree(struct emission *e, const struct passage *x, struct place *p, int *parents)
{
	int me = e->me, mine = e->mine, r, i;

	for (i = 0; i < e->nranks; i++) {
		e->me = r = e->net.member[i];
		e->mine = e->net.class_of[r];
		find_place(e, x, p);
		parents[r] = p->parent;
		if (p->parent < 0)
			gci_timetable_add(&e->list->table, r, r, 0, 0);
		else
			gci_timetable_add(&e->list->table, x->turned ? r : p->parent,
				x->turned ? p->parent : r,
				(double)(x->own.length * e->c->esize) * sums_of(e, x, r),
				p->parent_key);
	}
	e->me = me;
	e->mine = mine;
}

/* What hosts pass on they have to have; all but `apart`. */
static void link_tree(struct emission *e, const struct passage *x, const int *parents, int apart)
{
	int r;

	for (r = 0; r < e->nranks; r++) {
		uint32_t mine = number_of(e, x, r);

		if (parents[r] < 0 || r == apart)
			continue;
		if (x->turned)
			gci_timetable_after(&e->list->table, number_of(e, x, parents[r]), mine);
		else
			gci_timetable_after(&e->list->table, mine, number_of(e, x, parents[r]));
	}
}

/* What goes down from a host that met the root has parts of all that came up to it. */
static void link_meeting(
	struct emission *e, const struct passage *up, const struct passage *down, int other)
{
	int a, b;

	gci_timetable_after(&e->list->table, number_of(e, down, other),
		number_of(e, up, e->entry[up->col->root]));
	for (a = 0; a < e->nranks; a++)
		for (b = 0; e->list->parents[a] == other && b < e->nranks; b++)
			if (e->list->parents[e->nranks + b] == other)
				gci_timetable_after(&e->list->table, number_of(e, down, b),
					number_of(e, up, a));
}

static void add_sum(
	struct emission *e, const struct passage *up, const struct passage *down, struct place *p)
{
	int root = e->entry[up->col->root], other = up->col->meet;

	other = other < 0 ? -1 : e->entry[other];
	add_tree(e, up, p, e->list->parents);
	add_tree(e, down, p, e->list->parents + e->nranks);
	link_tree(e, up, e->list->parents, other);
	link_tree(e, down, e->list->parents + e->nranks, other);
	gci_timetable_after(&e->list->table, number_of(e, down, root), number_of(e, up, root));
	if (other < 0)
		return;
	gci_timetable_after(&e->list->table, number_of(e, down, root), number_of(e, up, other));
	link_meeting(e, up, down, other);
}

/* allreduce: up one tree, down the other. */
static void pass_sum(struct emission *e, struct passage *up, struct gci_slice out, struct place *p,
	uint64_t i, uint64_t of)
{
	struct passage down = passage_of(e, up->col, 1, i, of);

	down.own = down.all = out;
	down.tag = gci_tag(PHASE_DOWN, (uint32_t)i);
	if (e->list) {
		add_sum(e, up, &down, p);
		return;
	}
	find_place(e, up, p);
	find_place(e, &down, p + 1);
	if (meets(e, up->col))
		meet(e, up, &down, p, p + 1);
	else
		pass_up(e, up, p);
	pass_down(e, &down, p + 1);
}

static void pass_tree(struct emission *e, const struct passage *x, struct place *p)
{
	if (e->list) {
		int root = x->col->root, home = keeps_order(e, x) ? e->order.core[root] : root;

		/* The root gets all, and has sent what it had before. */
		add_tree(e, x, p, e->list->parents);
		link_tree(e, x, e->list->parents, home == root ? -1 : e->entry[home]);
		return;
	}
	find_place(e, x, p);
	if (x->turned)
		pass_up(e, x, p);
	else
		pass_down(e, x, p);
}

/* bcast, reduce, allreduce */
static void pass_vector(struct emission *e, struct place *p)
{
	const struct gci_coll *c = e->c;
	int lead = c->kind == GCI_ALLREDUCE ? -1 : c->root;
	struct gci_slice in = gci_vector(c, gci_input(c, e->me)), out = gci_vector(c, GCI_OUT);
	uint64_t i, nsegments = gci_nsegments(c->count, e->segment);

	for (i = 0; i < nsegments; i++) {
		const struct gci_column *col = &e->p->packing.columns[next_column(e, 0)];
		struct passage x = passage_of(e, col, 0, i, nsegments);

		x.own = part(in, e->segment, i);
		x.all = c->kind == GCI_BCAST ? x.own : part(out, e->segment, i);
		x.tag = gci_tag(PHASE_UP, (uint32_t)i);
		x.span = (uint32_t)nsegments;
		choose_entries(e, col, lead, weight(e, x.own.length));
		if (c->kind == GCI_ALLREDUCE) {
			pass_sum(e, &x, x.all, p, i, nsegments);
			continue;
		}
		pass_tree(e, &x, p);
	}
}

/* allgather, reduce_scatter: a tree to or from each rank, for its block. */
static void pass_blocks(struct emission *e, struct place *p)
{
	const struct gci_coll *c = e->c;
	int r, me = e->me;
	uint64_t nsegments = gci_nsegments(gci_packed_longest(c), e->segment), i, ntrees = 0;

	for (i = 0; i < nsegments; i++)
		for (r = 0; r < e->nranks; r++) {
			uint64_t len = gci_block_len(c, r, r), at = i * e->segment;
			const struct gci_column *col;
			struct passage x;

			if (at >= len)
				continue;
			col = &e->p->packing
				       .columns[next_column(e, e->commodity[e->net.class_of[r]])];
			choose_entries(e, col, r,
				weight(e, len - at < e->segment ? len - at : e->segment));
			x = passage_of(e, col, 0, i, nsegments);
			x.nth = (int)((i + (unsigned)r) & 1);
			x.tag = gci_tag(
				PHASE_UP, (uint32_t)(i * (unsigned)e->nranks + (unsigned)r));
			x.span = (uint32_t)(nsegments * (unsigned)e->nranks);
			x.own = part(gci_in_block(c, me, r), e->segment, i);
			x.all = c->kind == GCI_ALLGATHER || r == me
					? part(gci_out_block(c, me, r), e->segment, i)
					: gci_slice(GCI_OUT, 0, 0);
			x.tree = ntrees++;
			if (e->list) /* whosever block it is */
				x.own.length = len - at < e->segment ? len - at : e->segment;
			pass_tree(e, &x, p);
		}
}

/* ---- paths */

/* A segment of a block on its way from one rank to another. */
struct parcel {
	int from, to;
	uint64_t i;      /* segment */
	uint64_t number; /* of all of the operation's */
	double nth;      /* of its like, from 0 to 1: when it is to go */
};

/* By which hosts, and when from each. */
static const struct gci_column *route_parcel(
	struct emission *e, const struct parcel *x, uint64_t len, int *hop, double *key)
{
	const struct gci_coll *c = e->c;
	int turned = gci_packed_is_turned(c->kind), k, n;
	int a = e->net.class_of[turned ? x->to : x->from],
	    b = e->net.class_of[turned ? x->from : x->to];
	const struct gci_column *col =
		&e->p->packing.columns[next_column(e, e->commodity[a * e->net.nclasses + b])];
	double left = e->ns - col->delay_ns;

	n = col->nway;
	for (k = 1; k < n - 1; k++)
		hop[turned ? n - 1 - k : k] = choose_host(e, col->way[k], weight(e, len));
	hop[0] = x->from;
	hop[n - 1] = x->to;
	key[0] = left > 0 ? left * x->nth : 0;
	for (k = 1; k < n; k++)
		key[k] = key[k - 1] + (turned ? hop_ns(e, col->way[n - 1 - k], col->way[n - k])
					      : hop_ns(e, col->way[k - 1], col->way[k]));
	for (k = 0; e->start_ns && k < n - 1; k++)
		key[k] = e->start_ns[e->p->times.first[x->number] + (unsigned)k] * e->scale;
	return col;
}

static void add_parcel(struct emission *e, const struct parcel *x, uint64_t len, const int *hop,
	const double *key, int n)
{
	int k;

	e->list->first[x->number] = (uint32_t)e->list->table.nmessages;
	for (k = 0; k < n - 1; k++) {
		uint32_t i = gci_timetable_add(
			&e->list->table, hop[k], hop[k + 1], (double)(len * e->c->esize), key[k]);

		if (k)
			gci_timetable_after(&e->list->table, i, i - 1);
	}
}

/* What comes late to its end has less time, but not so little that the few bytes of a quick end were most of a rate. */
static void add_rates(
	struct emission *e, const struct gci_column *col, uint64_t len, const int *hop)
{
	double most = e->p->packing.busy_ns, ns = e->p->packing.ns - col->delay_ns;
	int k;

	ns = ns > most ? most : ns < most / 2 ? most / 2 : ns;
	ns *= part_of(e->p, e->c);
	for (k = 0; k < col->nway - 1; k++)
		e->even_bps[(size_t)hop[k] * (size_t)e->nranks + (size_t)hop[k + 1]] +=
			(uint64_t)((double)(len * e->c->esize) * 8 * GCI_NS_PER_S / ns);
}

static void pass_parcel(struct emission *e, const struct parcel *x)
{
	const struct gci_coll *c = e->c;
	uint64_t len = gci_block_len(c, x->from, x->to) - x->i * e->segment;
	int hop[GCI_NETWORK_MOST_CLASSES], k, n, me = e->me;
	double key[GCI_NETWORK_MOST_CLASSES];
	const struct gci_column *col;
	struct gci_slice at;
	uint32_t tag = gci_tag(PHASE_UP, (uint32_t)x->number);

	len = len < e->segment ? len : e->segment;
	col = route_parcel(e, x, len, hop, key);
	n = col->nway;
	if (e->list)
		add_parcel(e, x, len, hop, key, n);
	if (e->even_bps)
		add_rates(e, col, len, hop);
	if (!e->b)
		return;
	for (k = 0; k < n && hop[k] != me; k++)
		;
	if (k == n)
		return;
	if (!k)
		at = part(gci_in_block(c, me, x->to), e->segment, x->i);
	else if (k == n - 1)
		at = part(gci_out_block(c, me, x->from), e->segment, x->i);
	else
		at = gci_slice(GCI_TMP, gci_tmp(e->b, len), len);
	if (k)
		note(e, key[k - 1],
			(struct act){.kind = ACT_RECV, .peer = hop[k - 1], .tag = tag, .dst = at});
	if (k < n - 1)
		note(e, key[k],
			(struct act){.kind = ACT_SEND, .peer = hop[k + 1], .tag = tag, .src = at});
}

/* All ranks' to their nth neighbours before those to the next; at even rates, some to each in turn. */
static void pass_all_to_all(struct emission *e)
{
	const struct gci_coll *c = e->c;
	int p = e->nranks, k, r, even = gci_packed_is_even(c);
	uint64_t nsegments = gci_nsegments(gci_packed_longest(c), e->segment), i;

	for (k = 1; k < p; k++)
		for (i = 0; i < nsegments; i++)
			for (r = 0; r < p; r++) {
				struct parcel x = {.from = r, .to = (r + k) % p, .i = i};
				double in_block = (double)i / (double)nsegments,
				       in_turn = (k - 1.0) / (p - 1);

				x.nth = even ? in_block + in_turn / (double)nsegments
					     : in_turn + in_block / (p - 1);
				x.number =
					((uint64_t)k * nsegments + i) * (unsigned)p + (unsigned)r;
				if (i * e->segment < gci_block_len(c, x.from, x.to))
					pass_parcel(e, &x);
			}
}

/* scatter, gather: the root is the last of all. */
static void pass_blocks_of_root(struct emission *e)
{
	const struct gci_coll *c = e->c;
	uint64_t nsegments = gci_nsegments(gci_packed_longest(c), e->segment), i;
	int k;

	for (k = 0; k < e->nranks - 1; k++)
		for (i = 0; i < nsegments; i++) {
			int other = e->net.member[k], class = e->net.class_of[other];
			struct parcel x = {.from = c->root, .to = other, .i = i};

			if (c->kind == GCI_GATHER) {
				x.from = other;
				x.to = c->root;
			}
			x.nth = (e->place[other] + (double)i / (double)nsegments) /
				gci_network_size(&e->net, class);
			x.number = (unsigned)k * nsegments + i;
			if (i * e->segment < gci_block_len(c, x.from, x.to))
				pass_parcel(e, &x);
		}
}

/* ---- */

static int pass_all(struct emission *e)
{
	size_t most = (size_t)e->nranks + 32;
	struct place place[2] = {{.child = gci_calloc(2 * most, sizeof(*place->child))}};
	int rc = 0;

	if (!place->child)
		return GCOLL_ERR_NOMEM;
	place[1].child = place->child + most;
	if (e->c->kind == GCI_ALLTOALL)
		pass_all_to_all(e);
	else if (gci_packed_shape(e->c->kind) == GCI_PATHS)
		pass_blocks_of_root(e);
	else
		rc = look_at_trees(e);
	if (!rc && gci_kind_has_vector(e->c->kind))
		pass_vector(e, place);
	else if (!rc && gci_packed_shape(e->c->kind) != GCI_PATHS)
		pass_blocks(e, place);
	gci_free(place->child);
	return rc;
}

void gci_packed_emit(struct gci_builder *b, const struct gci_coll *c, const struct gci_packed *p)
{
	struct emission e;

	if (start(&e, b, c, p) || pass_all(&e))
		b->failed = 1;
	else
		emit_acts(&e);
	end(&e);
}

/* What is asked of the fullest NIC or link, over what it takes. `asked`: zeros for the resources and twice the ranks. */
static double fullest(const struct emission *e, double *asked)
{
	const struct gci_network *net = &e->net;
	int n = e->nranks, from, to, i, k, way[GCI_MOST_ON_A_WAY];
	double *out = asked + gci_network_nresources(net), *in = out + n, most = 0;

	for (from = 0; from < n; from++)
		for (to = 0; to < n; to++) {
			double rate =
				(double)e->even_bps[(size_t)from * (size_t)n + (size_t)to] / 8e9;

			out[from] += rate;
			in[to] += rate;
			k = rate > 0 ? gci_network_way(
					       net, net->class_of[from], net->class_of[to], way)
				     : 0;
			for (i = 1; i < k - 1; i++)
				asked[way[i]] += rate;
		}
	for (i = 0; i < gci_network_nresources(net); i++)
		most = later(most, asked[i] / net->capacity[i]);
	for (i = 0; i < n; i++) {
		most = later(most, out[i] / net->out[net->class_of[i]]);
		most = later(most, in[i] / net->in[net->class_of[i]]);
	}
	return most;
}

/* Ports that are asked for all they take keep their queues. */
static int fit_rates(struct emission *e)
{
	size_t n = (size_t)e->nranks, i;
	double *asked = gci_calloc((size_t)gci_network_nresources(&e->net) + 2 * n, sizeof(*asked)),
	       most;

	if (!asked)
		return GCOLL_ERR_NOMEM;
	most = fullest(e, asked) * (1 + 1.0 / EVEN_PART);
	for (i = 0; most > 0 && i < n * n; i++)
		e->even_bps[i] = (uint64_t)((double)e->even_bps[i] / most);
	gci_free(asked);
	return 0;
}

int gci_packed_even_bps(const struct gci_coll *c, uint64_t **bps)
{
	size_t n = (size_t)c->topo->nranks;
	struct emission e;
	int rc = start(&e, NULL, c, c->packed);

	if (!rc)
		e.even_bps = gci_calloc(n * n, sizeof(*e.even_bps));
	if (!rc)
		rc = e.even_bps ? pass_all(&e) : GCOLL_ERR_NOMEM;
	if (!rc)
		rc = fit_rates(&e);
	if (rc)
		gci_free(e.even_bps);
	*bps = rc ? NULL : e.even_bps;
	end(&e);
	return rc;
}

/* Of all blocks, or of the vector. */
static uint64_t nsegments_of(const struct emission *e)
{
	const struct gci_coll *c = e->c;
	uint64_t n = (unsigned)e->nranks, sum = 0, i,
		 nblocks = c->kind == GCI_ALLTOALL        ? n * n
			   : gci_kind_has_vector(c->kind) ? 1
							  : n;

	if (!c->counts)
		return nblocks * gci_nsegments(c->count, e->segment);
	for (i = 0; i < nblocks; i++)
		sum += gci_nsegments(c->counts[i], e->segment);
	return sum;
}

/* About. */
static uint64_t nmessages(const struct emission *e)
{
	uint64_t n = nsegments_of(e);

	if (gci_packed_shape(e->c->kind) == GCI_PATHS)
		return 2 * n;
	return n * (unsigned)e->nranks * (e->c->kind == GCI_ALLREDUCE ? 2 : 1);
}

/* One for each segment, were all blocks as long as the longest. */
static uint64_t nparcels(const struct emission *e)
{
	uint64_t n = (unsigned)e->nranks;

	if (gci_packed_shape(e->c->kind) != GCI_PATHS)
		return 1;
	return n * gci_nsegments(gci_packed_longest(e->c), e->segment) *
	       (e->c->kind == GCI_ALLTOALL ? n : 1);
}

static int pays(const struct emission *e)
{
	uint64_t n = nmessages(e);

	if (n > MOST_TIMED || nparcels(e) > MOST_PARCELS)
		return 0;
	return !e->c->counts || (double)n * COUNTED_NS <= e->ns;
}

static int listing_init(struct listing *l, const struct emission *e)
{
	*l = (struct listing){.table = {.message_ns = GCI_PACKED_MESSAGE_NS,
				      .about_ns = e->p->packing.ns,
				      .spacing = e->c->kind == GCI_ALLTOALL ? SPACING_OF_ALL : 1,
				      .eager_nbytes = GCI_WAN_EAGER}};
	l->parents = gci_calloc(2 * (size_t)e->nranks, sizeof(*l->parents));
	l->first = gci_calloc(nparcels(e), sizeof(*l->first));
	return l->parents && l->first ? 0 : GCOLL_ERR_NOMEM;
}

static void listing_free(struct listing *l)
{
	gci_timetable_free(&l->table);
	gci_free(l->parents);
	gci_free(l->first);
}

/* Takes the parcels' numbers over. */
static int keep_times(struct gci_packed_times *times, struct listing *l)
{
	size_t i, n = l->table.nmessages;

	times->start_ns = gci_calloc(n, sizeof(*times->start_ns));
	if (!times->start_ns)
		return GCOLL_ERR_NOMEM;
	for (i = 0; i < n; i++)
		times->start_ns[i] = l->table.messages[i].start_ns;
	times->ns = l->table.ns;
	times->first = l->first;
	l->first = NULL;
	return 0;
}

/* On `real`: e->net, or that with its arrows turned back. */
static int list_and_time(
	struct emission *e, const struct gci_network *real, struct gci_packed_times *times)
{
	struct listing l;
	int rc = listing_init(&l, e);

	l.table.net = real;
	e->list = &l;
	if (!rc)
		rc = pass_all(e);
	if (!rc)
		rc = gci_timetable_find(&l.table);
	if (!rc)
		rc = keep_times(times, &l);
	listing_free(&l);
	return rc;
}

int gci_packed_find_times(
	struct gci_packed_times *t, const struct gci_packed *p, const struct gci_coll *c)
{
	unsigned n = (unsigned)c->topo->nranks;
	struct gci_coll model = {.kind = c->kind,
		.topo = c->topo,
		.root = c->root,
		.order = c->order,
		.esize = 1,
		.count = p->nbytes / (gci_kind_has_vector(c->kind) ? 1 : n)};
	struct gci_network real = {0};
	struct emission e;
	int rc, turned = gci_packed_is_turned(c->kind);

	if (c->counts)
		model = *c;
	if ((c->counts ? c->nparts : !model.count) || p->nbytes > GCI_WINDOW_NBYTES ||
		c->topo->nclusters < 2 || n > MOST_HOSTS)
		return 0;
	rc = start(&e, NULL, &model, p);
	t->unit_nbytes = model.count;
	t->segment_nbytes = e.segment * model.esize;
	t->counts = model.counts;
	if (!rc && pays(&e)) {
		if (turned)
			rc = gci_network_reverse(&real, &e.net);
		if (!rc)
			rc = list_and_time(&e, turned ? &real : &e.net, t);
	}
	gci_network_free(&real);
	end(&e);
	return rc;
}
