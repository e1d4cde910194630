/* SPDX-License-Identifier: MIT */
#include "collectives/blocks/blocks.h"

#define GRANULE_NBYTES (64u << 10)

struct gci_group gci_group_all(const struct gci_coll *c, int rank, int first)
{
	int n = c->topo->nranks;

	return (struct gci_group){NULL, n, first, (rank - first + n) % n};
}

struct gci_group gci_group_cluster(const struct gci_coll *c, int cluster, int rank, int first)
{
	const struct gci_topo *t = c->topo;
	int n = gci_topo_size(t, cluster);
	int me = t->cluster[rank] == cluster ? (t->index[rank] - first + n) % n : -1;

	return (struct gci_group){gci_topo_members(t, cluster), n, first, me};
}

struct gci_parts gci_parts_of(const struct gci_coll *c, int n)
{
	uint64_t granule = GRANULE_NBYTES / c->esize;
	uint64_t per_part = c->count / (unsigned)n;

	/* Cutting on granules costs balance: at most an eighth of a part. */
	if (!granule || GRANULE_NBYTES % c->esize || per_part < 8 * granule)
		granule = 1;
	return (struct gci_parts){c->count, granule, n};
}

/* The part that holds element `at`: the last that begins at its grain or before. */
static int part_of(const struct gci_parts *p, uint64_t at)
{
	unsigned __int128 units = (p->count + p->grain - 1) / p->grain;

	return (int)(((unsigned __int128)(at / p->grain + 1) * (unsigned)p->n - 1) / units);
}

void gci_parts_meeting(const struct gci_parts *p, struct gci_slice s, int *from, int *to)
{
	*from = *to = 0;
	if (!s.length)
		return;
	*from = part_of(p, s.offset);
	*to = part_of(p, s.offset + s.length - 1) + 1;
}

/* ---- blocks of ranks */

struct gci_shelf gci_shelf_tmp(struct gci_builder *b, const struct gci_coll *c,
	const struct gci_group *g, int first, int end)
{
	return (struct gci_shelf){
		GCI_SHELF_PACKED, GCI_TMP, gci_tmp(b, gci_blocks_len(c, g, first, end)), first};
}

uint64_t gci_blocks_len(const struct gci_coll *c, const struct gci_group *g, int a, int z)
{
	uint64_t sum = 0;

	if (!c->counts)
		return c->count * (uint64_t)(z - a);
	for (; a < z; a++)
		sum += gci_block_len(c, gci_group_rank(g, a), gci_group_rank(g, a));
	return sum;
}

/* The end of the run of members, from `a` on, whose blocks can go in one message. */
static int run_end(const struct gci_coll *c, const struct gci_group *g, int a, int z)
{
	int wrap = g->n - g->rotation;

	if (!gci_contiguous(c))
		return a + 1;
	if (!g->ranks)
		return a < wrap && wrap < z ? wrap : z;
	for (a++; a < z && gci_group_rank(g, a) == gci_group_rank(g, a - 1) + 1;)
		a++;
	return a;
}

/* Walks the runs of some members' blocks on a shelf. */
struct walk {
	const struct gci_builder *b;
	const struct gci_coll *c;
	const struct gci_group *g;
	const struct gci_shelf *shelf;
	uint64_t at; /* packed: of the next block */
};

static struct walk walk_from(const struct gci_builder *b, const struct gci_coll *c,
	const struct gci_group *g, const struct gci_shelf *shelf, int a)
{
	struct walk w = {b, c, g, shelf, shelf->base};

	if (shelf->kind == GCI_SHELF_PACKED)
		w.at += gci_blocks_len(c, g, shelf->first, a);
	return w;
}

static struct gci_slice walk_run(struct walk *w, int a, int end)
{
	uint64_t len = gci_blocks_len(w->c, w->g, a, end);
	struct gci_slice s;

	if (w->shelf->kind == GCI_SHELF_PACKED) {
		s = gci_slice(w->shelf->buffer, w->at, len);
		w->at += len;
		return s;
	}
	s = w->shelf->kind == GCI_SHELF_IN
		    ? gci_in_block(w->c, w->b->rank, gci_group_rank(w->g, a))
		    : gci_out_block(w->c, w->b->rank, gci_group_rank(w->g, a));
	s.length = len;
	return s;
}

void gci_send_blocks(struct gci_builder *b, const struct gci_coll *c, const struct gci_group *g,
	int peer, uint32_t tag, const struct gci_shelf *from, int a, int z)
{
	struct walk w = walk_from(b, c, g, from, a);
	int end;

	for (; a < z; a = end) {
		end = run_end(c, g, a, z);
		gci_send_some(b, gci_group_rank(g, peer), tag + (uint32_t)a, walk_run(&w, a, end));
	}
}

void gci_recv_blocks(struct gci_builder *b, const struct gci_coll *c, const struct gci_group *g,
	int peer, uint32_t tag, const struct gci_shelf *to, int a, int z)
{
	struct walk w = walk_from(b, c, g, to, a);
	int end;

	for (; a < z; a = end) {
		end = run_end(c, g, a, z);
		gci_recv_some(b, gci_group_rank(g, peer), tag + (uint32_t)a, walk_run(&w, a, end));
	}
}

void gci_copy_blocks(struct gci_builder *b, const struct gci_coll *c, const struct gci_group *g,
	const struct gci_shelf *to, const struct gci_shelf *from, int a, int z)
{
	struct walk src = walk_from(b, c, g, from, a), dst = walk_from(b, c, g, to, a);
	int end;

	for (; a < z; a = end) {
		struct gci_slice d;

		end = run_end(c, g, a, z);
		d = walk_run(&dst, a, end);
		gci_copy_some(b, d, walk_run(&src, a, end));
	}
}

void gci_recv_reduce_blocks(struct gci_builder *b, const struct gci_coll *c,
	const struct gci_group *g, int peer, uint32_t tag, const struct gci_shelf *to,
	const struct gci_shelf *from, int swapped, int a, int z)
{
	struct walk src = walk_from(b, c, g, from, a), dst = walk_from(b, c, g, to, a);
	int end;

	for (; a < z; a = end) {
		struct gci_slice d, s;

		end = run_end(c, g, a, z);
		d = walk_run(&dst, a, end);
		s = walk_run(&src, a, end);
		if (d.length)
			gci_recv_reduce(
				b, gci_group_rank(g, peer), tag + (uint32_t)a, d, s, swapped);
	}
}

/* ---- the vector in parts */

/* One round of recursive halving: members [a, z) fall into [a, mid) and [mid, z), the first
 * being the larger by at most one. */
struct range {
	int a, z;
};

static inline int middle(struct range r)
{
	return gci_middle(r.a, r.z);
}

static inline struct range half_of(struct range r, int me)
{
	int mid = middle(r);

	return me < mid ? (struct range){r.a, mid} : (struct range){mid, r.z};
}

/* In a round, member i of the first half and member i of the second are partners. If the first
 * half has one more, its last member is odd: it deals with the second half's first member. */
static int partner(struct range r, int me)
{
	int mid = middle(r), other = me < mid ? mid + (me - r.a) : r.a + (me - mid);

	return other < r.z ? other : mid;
}

static int odd_member(struct range r)
{
	int mid = middle(r);

	return mid - r.a > r.z - mid ? mid - 1 : -1;
}

int gci_halvings(int n, int me, struct gci_halving rounds[32])
{
	struct range r = {0, n};
	int count = 0;

	for (; r.z - r.a > 1; r = half_of(r, me))
		rounds[count++] =
			(struct gci_halving){r.a, middle(r), r.z, partner(r, me), odd_member(r)};
	return count;
}

void gci_scatter(struct gci_builder *b, const struct gci_group *g, const struct gci_parts *p,
	enum gci_buffer from, uint32_t phase)
{
	struct gci_stage s = {g, p, GCI_OUT, 0, from};

	gci_split(b, &s, gci_tag(phase, 0), 0, GCI_WHOLE_DEPTH);
}

void gci_gather(
	struct gci_builder *b, const struct gci_group *g, const struct gci_parts *p, uint32_t phase)
{
	struct gci_stage s = {g, p, GCI_OUT, 0, GCI_NBUFFERS};

	gci_collect(b, &s, gci_tag(phase, 0));
}

void gci_allgather(struct gci_builder *b, const struct gci_group *g, const struct gci_parts *p,
	enum gci_buffer first, uint32_t phase)
{
	struct gci_stage s = {g, p, GCI_OUT, 0, first};

	gci_merge(b, &s, phase, GCI_WHOLE_DEPTH, 0);
}

struct gci_slice gci_reduce_scatter_range(const struct gci_group *g, const struct gci_parts *p)
{
	struct range r = {0, g->n};

	if (g->n > 1)
		r = half_of(r, g->me);
	return gci_parts_slice(p, GCI_TMP, r.a, r.z);
}

static struct gci_slice based(struct gci_slice s, enum gci_buffer acc, uint64_t acc_base)
{
	if (s.buffer == acc)
		s.offset -= acc_base;
	return s;
}

enum gci_buffer gci_reduce_scatter(struct gci_builder *b, const struct gci_group *g,
	const struct gci_parts *p, enum gci_buffer in, enum gci_buffer acc, uint64_t acc_base,
	uint32_t phase)
{
	struct range r = {0, g->n};
	enum gci_buffer at = in; /* where this member's partial result stands */
	uint32_t round = 0;

	for (; g->me >= 0 && r.z - r.a > 1; r = half_of(r, g->me), round++) {
		int mid = middle(r), low = g->me < mid, odd = odd_member(r);
		int other = partner(r, g->me);
		struct range keep = half_of(r, g->me);
		struct gci_slice kept, give;
		uint32_t tag = gci_tag(phase, round);

		gci_round(b);
		give = low ? gci_parts_slice(p, at, mid, r.z) : gci_parts_slice(p, at, r.a, mid);
		if (at == acc && in != acc)
			give = based(give, acc, acc_base);
		gci_send_some(b, gci_group_rank(g, other), tag, give);
		if (g->me == odd)
			continue;
		kept = gci_parts_slice(p, acc, keep.a, keep.z);
		if (in != acc)
			kept = based(kept, acc, acc_base);
		if (kept.length) {
			struct gci_slice src = kept;

			if (at != acc)
				src = gci_parts_slice(p, at, keep.a, keep.z);
			gci_recv_reduce(b, gci_group_rank(g, other), tag, kept, src, !low);
			if (g->me == mid && odd > r.a)
				gci_recv_reduce(b, gci_group_rank(g, odd), tag, kept, kept, 1);
		}
		at = acc;
	}
	return at;
}

int gci_binomial(const struct gci_group *g, int *parent, int children[32])
{
	int n = 0, bit = 1;

	while (bit < g->n && !(g->me & bit))
		bit <<= 1;
	*parent = g->me ? g->me & ~bit : -1;
	for (bit >>= 1; bit; bit >>= 1)
		if (g->me + bit < g->n)
			children[n++] = g->me + bit;
	return n;
}

int gci_binary(const struct gci_group *g, int *parent, int children[32])
{
	int n = 0;
	int64_t child = 2 * (int64_t)g->me + 1;

	*parent = g->me ? (g->me - 1) / 2 : -1;
	for (; n < 2 && child + n < g->n; n++)
		children[n] = (int)child + n;
	return n;
}

int gci_chain(const struct gci_group *g, int *parent, int children[32])
{
	*parent = g->me - 1;
	children[0] = g->me + 1;
	return g->me + 1 < g->n;
}

/* ---- stages: a vector cut over a cluster, at some depth */

struct gci_range gci_range_at(int n, int depth, int i)
{
	struct gci_range r = {0, n};

	if (gci_nranges(n, depth) == n)
		return (struct gci_range){i, i + 1};
	while (depth-- > 0) {
		int mid = gci_middle(r.a, r.z);

		if (i >> depth & 1)
			r.a = mid;
		else
			r.z = mid;
	}
	return r;
}

int gci_range_of(int n, int depth, int member)
{
	struct gci_range r = {0, n};
	int i = 0;

	if (gci_nranges(n, depth) == n)
		return member;
	while (depth-- > 0) {
		int mid = gci_middle(r.a, r.z), high = member >= mid;

		i = 2 * i + high;
		if (high)
			r.a = mid;
		else
			r.z = mid;
	}
	return i;
}

struct gci_slice gci_stage_slice(const struct gci_stage *s, int a, int z)
{
	struct gci_slice x = gci_parts_slice(s->p, s->buffer, a, z);

	if (s->g->me == 0 && s->first != GCI_NBUFFERS)
		x.buffer = s->first;
	else
		x.offset -= s->base;
	return x;
}

void gci_split(struct gci_builder *b, const struct gci_stage *s, uint32_t tag, int from, int to)
{
	const struct gci_group *g = s->g;
	struct gci_halving rounds[32];
	int i, n = g->me < 0 ? 0 : gci_halvings(g->n, g->me, rounds);

	for (i = from; i < n && i < to; i++) {
		struct gci_halving r = rounds[i];

		gci_round(b);
		if (g->me == r.a)
			gci_send_some(
				b, gci_group_rank(g, r.mid), tag, gci_stage_slice(s, r.mid, r.z));
		else if (g->me == r.mid)
			gci_recv_some(
				b, gci_group_rank(g, r.a), tag, gci_stage_slice(s, r.mid, r.z));
	}
}

void gci_collect(struct gci_builder *b, const struct gci_stage *s, uint32_t tag)
{
	const struct gci_group *g = s->g;
	struct gci_halving rounds[32];
	int n = g->me < 0 ? 0 : gci_halvings(g->n, g->me, rounds);

	while (n-- > 0) {
		struct gci_halving r = rounds[n];

		gci_round(b);
		if (g->me == r.a)
			gci_recv_some(
				b, gci_group_rank(g, r.mid), tag, gci_stage_slice(s, r.mid, r.z));
		else if (g->me == r.mid)
			gci_send_some(
				b, gci_group_rank(g, r.a), tag, gci_stage_slice(s, r.mid, r.z));
	}
}

int gci_collect_end(int n, int member)
{
	struct gci_halving rounds[32];
	int i = gci_halvings(n, member, rounds), end = member + 1;

	while (i-- > 0 && rounds[i].a == member)
		end = rounds[i].z;
	return end;
}

static void merge_round(
	struct gci_builder *b, const struct gci_stage *s, const struct gci_halving *r, uint32_t tag)
{
	const struct gci_group *g = s->g;
	int low = g->me < r->mid, first_has_all = s->first != GCI_NBUFFERS;
	struct gci_slice mine =
		low ? gci_stage_slice(s, r->a, r->mid) : gci_stage_slice(s, r->mid, r->z);
	struct gci_slice theirs =
		low ? gci_stage_slice(s, r->mid, r->z) : gci_stage_slice(s, r->a, r->mid);

	gci_round(b);
	if (g->me != r->odd && !(first_has_all && r->other == 0))
		gci_send_some(b, gci_group_rank(g, r->other), tag, mine);
	if (g->me == r->mid && r->odd > r->a)
		gci_send_some(b, gci_group_rank(g, r->odd), tag, mine);
	if (!(first_has_all && g->me == 0))
		gci_recv_some(b, gci_group_rank(g, r->other), tag, theirs);
}

void gci_merge(struct gci_builder *b, const struct gci_stage *s, uint32_t phase, int from, int to)
{
	struct gci_halving rounds[32];
	int i, n = s->g->me < 0 ? 0 : gci_halvings(s->g->n, s->g->me, rounds);

	for (i = n < from ? n : from; i-- > to;)
		merge_round(b, s, &rounds[i], gci_tag(phase, (uint32_t)i));
}
