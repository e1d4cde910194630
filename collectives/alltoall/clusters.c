/* SPDX-License-Identifier: MIT
 * Cluster-aware alltoall: between two clusters at most n ranks send, each one message to one
 * counterpart. Both clusters are cut into n shares; the message of a share has all that any rank of
 * the one cluster sends to a rank of the other's share:
 *
 *	collect		the ranks of a share each collect, from all ranks of their cluster, the
 *			blocks for some of the remote share's ranks: all local ranks take part in
 *			turning rows (by source) into columns (by destination)
 *	hand		they hand their columns to the share's first rank, the sender
 *	cross		which sends all to the first rank of the remote share
 *	distribute	which hands each rank of its share its column
 *	local		blocks within the cluster go directly, while the WAN is at work
 *
 * Where n is the size of both clusters nothing is handed on. Which rank is first goes round with
 * the number of the other cluster, so that many clusters do not meet at one rank.
 * Cost, C clusters of h ranks, blocks of m: 4 l + L + (h-1) m/B + 3 (C-1) h^2 m / nB, which
 * segments overlap to (C-1) h^2 m / nB. */
#include "base/mem.h"
#include "collectives/alltoall/alltoall.h"
#include "collectives/blocks/phases.h"

/* ---- columns: the blocks of some ranks for one; Bruck's hands them on, too */

uint64_t gci_column_len(const struct gci_coll *c, const struct gci_group *from, int to)
{
	uint64_t sum = 0;
	int i;

	if (!c->counts)
		return c->count * (unsigned)from->n;
	for (i = 0; i < from->n; i++)
		sum += gci_block_len(c, gci_group_rank(from, i), to);
	return sum;
}

/* The blocks from members [*at, end) as far as they stand one after the other in OUT. */
static struct gci_slice next_run(const struct gci_builder *b, const struct gci_coll *c,
	const struct gci_group *from, int *at, int end)
{
	struct gci_slice run = gci_slice(GCI_OUT, 0, 0);

	for (; *at < end; ++*at) {
		struct gci_slice s = gci_out_block(c, b->rank, gci_group_rank(from, *at));

		if (s.length && run.length && run.offset + run.length != s.offset)
			break;
		if (s.length && !run.length)
			run.offset = s.offset;
		run.length += s.length;
	}
	return run;
}

struct gci_slice gci_column_slice(
	struct gci_builder *b, const struct gci_coll *c, const struct gci_group *from)
{
	uint64_t len = gci_column_len(c, from, b->rank);
	int at = 0;
	struct gci_slice run = next_run(b, c, from, &at, from->n);

	return at == from->n ? run : gci_slice(GCI_TMP, gci_tmp(b, len), len);
}

void gci_column_place(struct gci_builder *b, const struct gci_coll *c, const struct gci_group *from,
	int a, int z, struct gci_slice packed)
{
	while (a < z && packed.buffer != GCI_OUT) {
		struct gci_slice run = next_run(b, c, from, &a, z), src = packed;

		src.length = run.length;
		packed.offset += run.length;
		gci_copy_some(b, run, src);
	}
}

/* ---- the emitter */

enum { COLLECT, HAND, CROSS, DISTRIBUTE, LOCAL };

/* What goes from one cluster to another, in the part that this rank is in. */
struct lane {
	struct gci_group from, to; /* each beginning with another rank for another cluster */
	int other;                 /* number of the cluster that this rank is not in */
	int n;                     /* senders */
	int share;
	int a, z;             /* members of `to` whose columns this rank collects */
	struct gci_slice all; /* these, and at the sender then all of the share's, in TMP */
};

struct work {
	struct gci_builder *b;
	const struct gci_coll *c;
	struct gci_group home;
	int mine;
	struct lane *lanes; /* to the other clusters, the next one first */
	int nlanes;
	int *column; /* [ncolumns]: ranks whose columns this one collects */
	int ncolumns;
	uint64_t *at;  /* [column * size of home + source]: where the block stands in TMP */
	uint32_t last; /* step + 1: what is received inside of the cluster comes in turn */
};

/* Share k of n of a cluster's members begins here. */
static int share_at(int k, int n, int size)
{
	return (int)((int64_t)k * size / n);
}

/* The number of the share that a member is in. */
static int share_with(int member, int n, int size)
{
	return (int)((((int64_t)member + 1) * n - 1) / size);
}

/* Member `me` of `from` collects the columns of members [*a, *z) of `to`: those of its share are
 * dealt out to the share's local members. */
static void columns_of(const struct lane *l, int me, int *a, int *z)
{
	int k = share_with(me, l->n, l->from.n);
	int first = share_at(k, l->n, l->from.n), n = share_at(k + 1, l->n, l->from.n) - first;
	int far = share_at(k, l->n, l->to.n), nfar = share_at(k + 1, l->n, l->to.n) - far;

	*a = far + (int)(((int64_t)(me - first) * nfar + n - 1) / n);
	*z = far + (int)(((int64_t)(me - first + 1) * nfar + n - 1) / n);
}

static struct lane lane_of(const struct gci_coll *c, int rank, int from, int to)
{
	const struct gci_topo *t = c->topo;
	struct lane l = {.n = gci_coll_senders(c, from, to)};

	l.from = gci_group_cluster(c, from, rank, to % gci_topo_size(t, from));
	l.to = gci_group_cluster(c, to, rank, from % gci_topo_size(t, to));
	if (l.from.me >= 0) {
		l.other = to;
		l.share = share_with(l.from.me, l.n, l.from.n);
		columns_of(&l, l.from.me, &l.a, &l.z);
	} else {
		l.other = from;
		l.share = share_with(l.to.me, l.n, l.to.n);
	}
	return l;
}

static uint64_t columns_len(
	const struct gci_coll *c, const struct gci_group *from, const struct lane *l, int a, int z)
{
	uint64_t sum = 0;

	for (; a < z; a++)
		sum += gci_column_len(c, from, gci_group_rank(&l->to, a));
	return sum;
}

static void recv_in_turn(struct work *w, int from, uint32_t tag, struct gci_slice dst)
{
	uint32_t step;

	if (!dst.length)
		return;
	step = gci_recv(w->b, from, tag, dst);
	if (w->last)
		gci_after(w->b, w->last - 1);
	w->last = step + 1;
}

/* ---- collect */

/* The blocks that local member `me` collects from this rank, in one message. */
static void send_rows(struct work *w, int me)
{
	int rank = gci_group_rank(&w->home, me), pass, i, a, z;
	struct gci_bundle u;
	uint64_t len = 0;

	for (pass = 0; pass < 2; pass++) {
		if (pass)
			gci_bundle_start(&u, w->b, len);
		for (i = 0; i < w->nlanes; i++) {
			const struct lane *l = &w->lanes[i];

			columns_of(l, gci_group_member(&l->from, me), &a, &z);
			for (; a < z; a++) {
				struct gci_slice s =
					gci_in_block(w->c, w->b->rank, gci_group_rank(&l->to, a));

				len += s.length;
				if (pass)
					gci_bundle_add(&u, s);
			}
		}
	}
	gci_send_some(w->b, rank, gci_tag(COLLECT, 0), gci_bundle_end(&u));
}

/* Block number i of what this rank collects from local member `me`: where it belongs. */
static struct gci_slice place_of(const struct work *w, int i, int me)
{
	return gci_slice(GCI_TMP, w->at[(int64_t)i * w->home.n + me],
		gci_block_len(w->c, gci_group_rank(&w->home, me), w->column[i]));
}

static void recv_rows(struct work *w, int me)
{
	int i, nblocks = 0, from = gci_group_rank(&w->home, me);
	struct gci_slice in = gci_slice(GCI_TMP, 0, 0), only = in;

	for (i = 0; i < w->ncolumns; i++) {
		struct gci_slice to = place_of(w, i, me);

		in.length += to.length;
		nblocks += to.length > 0;
		only = to.length ? to : only;
	}
	if (nblocks < 2) {
		recv_in_turn(w, from, gci_tag(COLLECT, 0), only);
		return;
	}
	in.offset = gci_tmp(w->b, in.length);
	recv_in_turn(w, from, gci_tag(COLLECT, 0), in);
	for (i = 0; i < w->ncolumns; i++) {
		struct gci_slice to = place_of(w, i, me);

		in.length = to.length;
		gci_copy_some(w->b, to, in);
		in.offset += to.length;
	}
}

static void collect(struct work *w)
{
	int i, n = w->home.n;

	for (i = 0; i < w->ncolumns; i++)
		gci_copy_some(w->b, place_of(w, i, w->home.me),
			gci_in_block(w->c, w->b->rank, w->column[i]));
	for (i = 1; i < n; i++) {
		send_rows(w, (w->home.me + i) % n);
		recv_rows(w, (w->home.me - i + n) % n);
	}
}

/* A cluster of one rank has its columns in its input. */
static void collect_alone(struct work *w)
{
	int i, x;

	for (i = 0; i < w->nlanes; i++) {
		struct lane *l = &w->lanes[i];
		struct gci_bundle u;

		gci_bundle_start(&u, w->b, l->all.length);
		for (x = l->a; x < l->z; x++)
			gci_bundle_add(
				&u, gci_in_block(w->c, w->b->rank, gci_group_rank(&l->to, x)));
		l->all = gci_bundle_end(&u);
	}
}

/* ---- between clusters */

/* The columns of lane `l` to its sender, and all of the share's over the WAN. */
static void send_columns(struct work *w, const struct lane *l)
{
	int first = share_at(l->share, l->n, l->from.n), a, z;
	int end = share_at(l->share + 1, l->n, l->from.n), i;
	int counterpart = gci_group_rank(&l->to, share_at(l->share, l->n, l->to.n));
	struct gci_slice part = l->all;

	if (l->from.me != first) {
		gci_send_some(w->b, gci_group_rank(&l->from, first),
			gci_tag(HAND, (uint32_t)l->other), l->all);
		return;
	}
	part.length = columns_len(w->c, &w->home, l, l->a, l->z);
	for (i = first + 1; i < end; i++) {
		part.offset += part.length;
		columns_of(l, i, &a, &z);
		part.length = columns_len(w->c, &w->home, l, a, z);
		recv_in_turn(
			w, gci_group_rank(&l->from, i), gci_tag(HAND, (uint32_t)l->other), part);
	}
	gci_send_some(w->b, counterpart, gci_tag(CROSS, 0), l->all);
}

/* The counterpart takes in its share's columns and hands out all but its own. */
static struct gci_slice distribute(
	struct work *w, const struct lane *l, const struct gci_group *from, int sender)
{
	int x = l->to.me, end = share_at(l->share + 1, l->n, l->to.n);
	uint64_t len = columns_len(w->c, from, l, x, end);
	struct gci_slice all = gci_slice(GCI_TMP, gci_tmp(w->b, len), len), part = all, own;

	gci_recv_some(w->b, sender, gci_tag(CROSS, 0), all);
	part.length = gci_column_len(w->c, from, w->b->rank);
	own = part;
	for (x++; x < end; x++) {
		part.offset += part.length;
		part.length = gci_column_len(w->c, from, gci_group_rank(&l->to, x));
		gci_send_some(w->b, gci_group_rank(&l->to, x),
			gci_tag(DISTRIBUTE, (uint32_t)l->other), part);
	}
	return own;
}

/* What comes from cluster `cluster`. */
static void recv_column(struct work *w, int cluster)
{
	struct gci_group from = gci_group_cluster(w->c, cluster, w->b->rank, 0);
	struct lane l = lane_of(w->c, w->b->rank, cluster, w->mine);
	int first = share_at(l.share, l.n, l.to.n);
	int end = share_at(l.share + 1, l.n, l.to.n);
	int sender = gci_group_rank(&l.from, share_at(l.share, l.n, l.from.n));
	struct gci_slice s;

	if (l.to.me == first && end - first > 1) {
		s = distribute(w, &l, &from, sender);
	} else {
		s = gci_column_slice(w->b, w->c, &from);
		if (l.to.me == first)
			gci_recv_some(w->b, sender, gci_tag(CROSS, 0), s);
		else
			recv_in_turn(w, gci_group_rank(&l.to, first),
				gci_tag(DISTRIBUTE, (uint32_t)cluster), s);
	}
	gci_column_place(w->b, w->c, &from, 0, from.n, s);
}

/* ---- all of it */

static void exchange_local(struct work *w)
{
	int i, n = w->home.n;

	for (i = 0; i < n; i++) {
		int to = gci_group_rank(&w->home, (w->home.me + i) % n);
		int from = gci_group_rank(&w->home, (w->home.me - i + n) % n);
		struct gci_slice in = gci_in_block(w->c, w->b->rank, to);
		struct gci_slice out = gci_out_block(w->c, w->b->rank, from);

		if (!i) {
			gci_copy_some(w->b, out, in);
			continue;
		}
		gci_send_some(w->b, to, gci_tag(LOCAL, 0), in);
		recv_in_turn(w, from, gci_tag(LOCAL, 0), out);
	}
}

/* Room for the columns that this rank collects, and for the whole share's where it is the sender.
 */
static void make_lanes(struct work *w)
{
	int i, n = w->c->topo->nclusters, sender;

	for (i = 0; i < w->nlanes; i++) {
		struct lane *l = &w->lanes[i];
		int to = (w->mine + 1 + i) % n, end;

		*l = lane_of(w->c, w->b->rank, w->mine, to);
		sender = l->from.me == share_at(l->share, l->n, l->from.n);
		end = sender ? share_at(l->share + 1, l->n, l->to.n) : l->z;
		l->all = gci_slice(GCI_TMP, 0, columns_len(w->c, &w->home, l, l->a, end));
		w->ncolumns += l->z - l->a;
		if (w->home.n > 1)
			l->all.offset = gci_tmp(w->b, l->all.length);
	}
}

static void make_columns(struct work *w)
{
	int i, x, k, column = 0, n = w->home.n;

	for (i = 0; i < w->nlanes; i++) {
		const struct lane *l = &w->lanes[i];
		uint64_t at = l->all.offset;

		for (x = l->a; x < l->z; x++, column++) {
			w->column[column] = gci_group_rank(&l->to, x);
			for (k = 0; k < n; k++) {
				w->at[(int64_t)column * n + k] = at;
				at += gci_block_len(
					w->c, gci_group_rank(&w->home, k), w->column[column]);
			}
		}
	}
}

static int make_work(struct work *w)
{
	w->lanes = gci_calloc((size_t)w->nlanes + 1, sizeof(*w->lanes));
	if (!w->lanes)
		return -1;
	make_lanes(w);
	w->column = gci_calloc((size_t)w->ncolumns + 1, sizeof(*w->column));
	w->at = gci_calloc((size_t)w->ncolumns * (size_t)w->home.n + 1, sizeof(*w->at));
	if (!w->column || !w->at)
		return -1;
	make_columns(w);
	return 0;
}

void gci_emit_alltoall_clusters(struct gci_builder *b, const struct gci_coll *c)
{
	int i, n = c->topo->nclusters, mine = c->topo->cluster[b->rank];
	struct work w = {.b = b, .c = c, .mine = mine, .nlanes = n - 1};

	w.home = gci_group_cluster(c, mine, b->rank, 0);
	if (make_work(&w)) {
		b->failed = 1;
		goto out;
	}
	if (w.home.n > 1)
		collect(&w);
	else
		collect_alone(&w);
	for (i = 0; i < w.nlanes; i++)
		send_columns(&w, &w.lanes[i]);
	exchange_local(&w);
	for (i = 1; i < n; i++)
		recv_column(&w, (mine - i + n) % n);
out:
	gci_free(w.lanes);
	gci_free(w.column);
	gci_free(w.at);
}
