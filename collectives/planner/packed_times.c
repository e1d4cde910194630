/* SPDX-License-Identifier: MIT
 * All hosts' messages of a packing at once: their timetable, and the rates at which pairs send them. */
#include "base/clock.h"
#include "base/mem.h"
#include "collectives/blocks/windows.h"
#include "collectives/planner/emission.h"

#define EVEN_PART    32         /* of what ports and links take, that even rates leave */
#define MOST_TIMED   (1u << 18) /* messages in a timetable: more take too long */
#define MOST_HOSTS   1024       /* whose memory would be too much */
#define MOST_PARCELS (1u << 22) /* likewise: places for segments of blocks as long as the longest */
/* Of counts, which may be others each time, a message may take so long of an operation's time: a fourth of that is
   longer than what a timetable takes, a microsecond a message. */
#define COUNTED_NS 4000
/* Of an alltoall no message waits for another host's. When hosts are a little late, what meets at a port is as if at random,
   and a port that has no time to spare overflows (the quickstart's grid, 32 MiB, dilation 4: 2.2 times the limit and 5,000
   segments resent in 9 operations; with a tenth to spare 1.15 and none). */
#define SPACING_OF_ALL 1.1
/* Sums of many blocks are a little late each, and what is late by more than a port keeps is lost and comes a round trip later:
   of 48 random cases two took 1.65 and 1.18 times the limit, and with this 1.16 and 1.05. It costs the others up to 2.6 %. */
#define SPACING_OF_BLOCKS 1.02

/* What is asked of the fullest NIC or link, over what it takes. `asked`: zeros for the resources and twice the ranks. */
static double fullest(const struct gci_emission *e, double *asked)
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
		most = gci_later(most, asked[i] / net->capacity[i]);
	for (i = 0; i < n; i++) {
		most = gci_later(most, out[i] / net->out[net->class_of[i]]);
		most = gci_later(most, in[i] / net->in[net->class_of[i]]);
	}
	return most;
}

/* Ports that are asked for all they take keep their queues. */
static int fit_rates(struct gci_emission *e)
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
	struct gci_emission e;
	int rc = gci_emission_start(&e, NULL, c, c->packed);

	if (!rc)
		e.even_bps = gci_calloc(n * n, sizeof(*e.even_bps));
	if (!rc)
		rc = e.even_bps ? gci_emission_pass(&e) : GCOLL_ERR_NOMEM;
	if (!rc)
		rc = fit_rates(&e);
	if (rc)
		gci_free(e.even_bps);
	*bps = rc ? NULL : e.even_bps;
	gci_emission_end(&e);
	return rc;
}

/* Of all blocks, or of the vector. */
static uint64_t nsegments_of(const struct gci_emission *e)
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
static uint64_t nmessages(const struct gci_emission *e)
{
	uint64_t n = nsegments_of(e);

	if (gci_packed_shape(e->c->kind) == GCI_PATHS)
		return 2 * n;
	return n * (unsigned)e->nranks * (e->c->kind == GCI_ALLREDUCE ? 2 : 1);
}

/* One for each segment, were all blocks as long as the longest. */
static uint64_t nparcels(const struct gci_emission *e)
{
	uint64_t n = (unsigned)e->nranks;

	if (gci_packed_shape(e->c->kind) != GCI_PATHS)
		return 1;
	return n * gci_nsegments(gci_packed_longest(e->c), e->segment) *
	       (e->c->kind == GCI_ALLTOALL ? n : 1);
}

static int pays(const struct gci_emission *e)
{
	uint64_t n = nmessages(e);

	if (n > MOST_TIMED || nparcels(e) > MOST_PARCELS)
		return 0;
	return !e->c->counts || (double)n * COUNTED_NS <= e->ns;
}

static int listing_init(struct gci_listing *l, const struct gci_emission *e)
{
	*l = (struct gci_listing){
		.table = {.message_ns = GCI_PACKED_MESSAGE_NS,
			.about_ns = e->p->packing.ns,
			.spacing = e->c->kind == GCI_ALLTOALL         ? SPACING_OF_ALL
				   : e->c->kind == GCI_REDUCE_SCATTER ? SPACING_OF_BLOCKS
								      : 1,
			.eager_nbytes = GCI_WAN_EAGER}};
	l->parents = gci_calloc(2 * (size_t)e->nranks, sizeof(*l->parents));
	l->first = gci_calloc(nparcels(e), sizeof(*l->first));
	return l->parents && l->first ? 0 : GCOLL_ERR_NOMEM;
}

static void listing_free(struct gci_listing *l)
{
	gci_timetable_free(&l->table);
	gci_free(l->parents);
	gci_free(l->first);
}

/* Takes the parcels' numbers over. */
static int keep_times(struct gci_packed_times *times, struct gci_listing *l)
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
	struct gci_emission *e, const struct gci_network *real, struct gci_packed_times *times)
{
	struct gci_listing l;
	int rc = listing_init(&l, e);

	l.table.net = real;
	e->list = &l;
	if (!rc)
		rc = gci_emission_pass(e);
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
	struct gci_emission e;
	int rc, turned = gci_packed_is_turned(c->kind);

	if (c->counts)
		model = *c;
	if ((c->counts ? c->nparts : !model.count) || p->nbytes > GCI_WINDOW_NBYTES ||
		c->topo->nclusters < 2 || n > MOST_HOSTS)
		return 0;
	rc = gci_emission_start(&e, NULL, &model, p);
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
	gci_emission_end(&e);
	return rc;
}
