/* SPDX-License-Identifier: MIT
 * MagPIe's allgather in three phases: the coordinator of each cluster, its first rank, gathers the
 * blocks of the cluster; coordinators exchange what they have gathered; each broadcasts the whole
 * in its cluster. Every byte crosses the WAN once to each other cluster. MagPIe (Kielmann 2001),
 * 3.4; the exchange is spreading simple, and the bcast binomial, as in Min3 (Gupta 2007), 2.
 *
 * `magpie-segmented` exchanges in k rounds: in each a coordinator sends one segment to all others,
 * without waiting for those before, and passes on in its cluster what came. The exchange costs
 *	(k-1) g(s) + (C-2) o + g(s) + L
 * with segments of s, g being the larger of the WAN's gap and the time to send and receive one
 * segment for each of the C-1 others, o the cost to start one. Unsegmented it costs
 * (C-1) (L + M/C B), and the bcast ceil(log2 h) M/B more, M being all blocks. */
#include "collectives/allgather/allgather.h"
#include "collectives/blocks/phases.h"

enum { GATHER, EXCHANGE, BCAST };

/* Where the algorithm has the choice. */
#define SEGMENT_NBYTES (64u << 10)
#define MOST_SEGMENTS  1024 /* of all clusters */

/* For tags, whatever is asked for. */
#define TOO_MANY_SEGMENTS (1 << 19)

/* The blocks of one cluster as one piece: where they stand in OUT, or packed in TMP when they do
 * not stand there one after the other. */
struct slab {
	struct gci_shelf shelf; /* for gci_group_by_clusters() */
	struct gci_slice all;
	struct gci_parts parts; /* segments */
};

struct magpie {
	struct gci_builder *b;
	const struct gci_coll *c;
	struct gci_group ranks; /* by clusters */
	struct gci_group home;  /* this rank's cluster */
	int mine;               /* its number */
	int n;                  /* segments */
	struct slab slabs[GCI_GRID_MAX_CLUSTERS];
};

static int is_one_run(const struct gci_coll *c, int cluster)
{
	const int *ranks = gci_topo_members(c->topo, cluster);
	int n = gci_topo_size(c->topo, cluster);

	return n == 1 || (gci_contiguous(c) && ranks[n - 1] - ranks[0] == n - 1);
}

static void make_slab(struct magpie *m, int cluster)
{
	const struct gci_topo *t = m->c->topo;
	int a = t->first[cluster], z = t->first[cluster + 1];
	struct slab *s = &m->slabs[cluster];
	struct gci_coll whole = *m->c;

	whole.count = gci_blocks_len(m->c, &m->ranks, a, z);
	if (is_one_run(m->c, cluster)) {
		s->shelf = gci_shelf_out();
		s->all = gci_out_block(m->c, m->b->rank, gci_group_rank(&m->ranks, a));
		s->all.length = whole.count;
	} else {
		s->shelf = gci_shelf_tmp(m->b, m->c, &m->ranks, a, z);
		s->all = gci_slice(GCI_TMP, s->shelf.base, whole.count);
	}
	s->parts = gci_parts_of(&whole, m->n);
}

static struct gci_slice segment_of(const struct slab *s, int i)
{
	struct gci_slice part = gci_parts_slice(&s->parts, s->all.buffer, i, i + 1);

	part.offset += s->all.offset;
	return part;
}

static void unpack_slab(struct magpie *m, int cluster)
{
	const struct gci_topo *t = m->c->topo;
	struct gci_shelf out = gci_shelf_out();

	gci_copy_blocks(m->b, m->c, &m->ranks, &out, &m->slabs[cluster].shelf, t->first[cluster],
		t->first[cluster + 1]);
}

static void gather(struct magpie *m)
{
	struct gci_shelf in = gci_shelf_in(), to;

	if (m->home.me) {
		gci_gather_blocks(m->b, m->c, &m->home, &in, NULL, GATHER);
		return;
	}
	to = m->slabs[m->mine].shelf;
	to.first = 0;
	gci_gather_blocks(m->b, m->c, &m->home, &in, &to, GATHER);
}

/* Segment i with the coordinators at distance d. */
static void exchange(struct magpie *m, int i, int d)
{
	int n = m->c->topo->nclusters, to = (m->mine + d) % n, from = (m->mine - d + n) % n;
	uint32_t tag = gci_tag(EXCHANGE, (uint32_t)i);

	gci_send_some(
		m->b, *gci_topo_members(m->c->topo, to), tag, segment_of(&m->slabs[m->mine], i));
	gci_recv_some(
		m->b, *gci_topo_members(m->c->topo, from), tag, segment_of(&m->slabs[from], i));
}

/* Segment i of every cluster's slab to the ranks of this one. */
static void spread(struct magpie *m, int i)
{
	int d, n = m->c->topo->nclusters;

	for (d = 0; d < n; d++) {
		int from = (m->mine - d + n) % n;

		gci_bcast(m->b, &m->home, segment_of(&m->slabs[from], i),
			gci_tag(BCAST, (uint32_t)(from * m->n + i)));
	}
}

/* `whole`: ranks other than coordinators get all in one piece, and need no slabs. */
static void start(
	struct magpie *m, struct gci_builder *b, const struct gci_coll *c, int n, int whole)
{
	int k;

	m->b = b;
	m->c = c;
	m->n = n;
	m->mine = c->topo->cluster[b->rank];
	m->ranks = gci_group_by_clusters(c, b->rank);
	m->home = gci_group_cluster(c, m->mine, b->rank, 0);
	for (k = 0; k < c->topo->nclusters; k++)
		if (!m->home.me || !whole)
			make_slab(m, k);
	gather(m);
}

void gci_emit_allgather_magpie(struct gci_builder *b, const struct gci_coll *c)
{
	int d, k, n = c->topo->nclusters, one = gci_contiguous(c);
	struct magpie m;

	start(&m, b, c, 1, one);
	for (d = 1; !m.home.me && d < n; d++) {
		gci_round(b);
		exchange(&m, 0, d);
	}
	if (!one)
		spread(&m, 0);
	for (k = 0; k < n; k++)
		if (!m.home.me || !one)
			unpack_slab(&m, k);
	if (one)
		gci_bcast_all(b, c, &m.home, BCAST);
}

static int nsegments(const struct gci_coll *c)
{
	uint64_t nbytes, most = 0;
	int k;

	if (c->segment) {
		uint32_t n = gci_nsegments_of(c);

		return n < TOO_MANY_SEGMENTS ? (int)n : TOO_MANY_SEGMENTS;
	}
	for (k = 0; k < c->topo->nclusters; k++)
		if ((uint64_t)gci_topo_size(c->topo, k) > most)
			most = (uint64_t)gci_topo_size(c->topo, k);
	nbytes = gci_total(c) / (unsigned)c->topo->nranks * most * c->esize;
	most = MOST_SEGMENTS / (unsigned)c->topo->nclusters;
	return nbytes / SEGMENT_NBYTES < most ? (int)(nbytes / SEGMENT_NBYTES) + 1 : (int)most;
}

void gci_emit_allgather_magpie_segmented(struct gci_builder *b, const struct gci_coll *c)
{
	int i, d, k, n = c->topo->nclusters;
	struct magpie m;

	start(&m, b, c, nsegments(c), 0);
	for (i = 0; i < m.n; i++) {
		for (d = 1; !m.home.me && d < n; d++)
			exchange(&m, i, d);
		spread(&m, i);
	}
	for (k = 0; k < n; k++)
		unpack_slab(&m, k);
}
