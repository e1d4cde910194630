/* SPDX-License-Identifier: MIT */
#include "tests/collectives/prove.h"

#include "collectives/planner/packed.h"

#include "tests/test.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ALGORITHMS 256
#define MAX_CLUSTERS   5
#define NSIZES         4 /* classes of numbers of ranks */
#define HUGE_COUNT     ((1ull << 33) + 7)

/* Around the number of ranks, a prime, on granules, beyond 4 GiB. */
enum count_class { NONE, ONE, ONE_LESS, AS_RANKS, PRIME, GRANULES, BEYOND_4GIB, NCOUNTS };

enum variant { PLAIN, SENDERS, DEGREE, COUNTS, COUNTS_AT, PART, STRIDE, NVARIANTS };

/* One case: what is proved, and what it stands for. */
struct proof {
	const struct gci_algorithm *a;
	struct gci_coll c;
	struct gci_packed *packed[2]; /* in any order, and in a fixed one */
	enum count_class count;
	enum variant variant;
};

/* What an algorithm was proved for. */
struct coverage {
	unsigned char ranks[PROVE_MAX_RANKS];
	unsigned char clusters[MAX_CLUSTERS + 1];
	unsigned char counts[NCOUNTS][NSIZES][MAX_CLUSTERS + 1];
	/* With and without segments, in place, and the order. */
	unsigned char variants[NVARIANTS][2][2][3][NSIZES][MAX_CLUSTERS + 1];
	unsigned char roots[NSIZES][MAX_CLUSTERS + 1][PROVE_MAX_RANKS];
};

static struct coverage coverage[MAX_ALGORITHMS];
static unsigned long proved;

int prove_left_out(const struct gci_algorithm *a)
{
	const char *only = getenv("GCI_ONLY"), *name = only ? strchr(only, ':') : NULL;
	size_t n = only ? (name ? (size_t)(name - only) : strlen(only)) : 0;

	if (!only)
		return 0;
	return strlen(gci_kind_name(a->kind)) != n || strncmp(gci_kind_name(a->kind), only, n) ||
	       (name && strcmp(name + 1, a->name));
}

static struct coverage *coverage_of(const struct gci_algorithm *a)
{
	const struct gci_algorithm *other;
	size_t i = 0;

	gci_each_algorithm (other) {
		if (other == a)
			break;
		i++;
	}
	assert_true(i < MAX_ALGORITHMS);
	return &coverage[i];
}

static int all_of_them(void)
{
	const char *all = getenv("GCI_ALL");

	return all && *all && strcmp(all, "0") != 0;
}

/* Marks it; true if it was not before. */
static int mark(unsigned char *seen)
{
	int fresh = !*seen;

	*seen = 1;
	return fresh;
}

/* One that searches for a plan of all ranks' schedules takes long for many. */
static int plans(const struct gci_algorithm *a)
{
	return a->max_ranks || a->traits & GCI_PACKS;
}

/* Does it cover anything new? */
static int covers(const struct proof *p)
{
	struct coverage *v = coverage_of(p->a);
	const struct gci_coll *c = &p->c;
	int n = c->topo->nranks, k = c->topo->nclusters, fresh;
	/* What plans for all ranks is not asked for all layouts on all sizes. */
	int size = plans(p->a) || TEST_SANITIZED ? 0 : (n > 1) + (n > 5) + (n > 17);

	fresh = mark(&v->ranks[n]);
	fresh += mark(&v->clusters[k]);
	fresh += mark(&v->counts[p->count][size][k]);
	fresh += mark(&v->variants[p->variant][c->segment != 0][c->in_place][c->order][size][k]);
	fresh += size < 3 && mark(&v->roots[size][k][c->root]);
	return fresh > 0;
}

static int in_sample(const struct proof *p)
{
	const struct gci_coll *c = &p->c;
	uint64_t n = (unsigned)c->topo->nranks, k = (unsigned)c->topo->nclusters, d, one_in;

	d = gci_digest_bytes(0, p->a->name, strlen(p->a->name));
	d = gci_digest(d, n << 32 | k << 16 | (unsigned)c->root);
	d = gci_digest(d, (uint64_t)p->count << 32 | (unsigned)p->variant << 8 |
				  (unsigned)c->in_place << 4 | (unsigned)c->order);
	d = gci_digest(d, gci_topo_digest(c->topo));
	d = gci_digest(d, (uint64_t)c->senders << 32 | c->degree);
	d = gci_digest(d, c->segment);
	/* The work grows with the square of the ranks, or worse. */
	if (all_of_them())
		one_in = n <= 9 ? 1 : 1 + n * n / 32;
	else
		/* Some search for a plan. */
		one_in = (32 + n * n) * (plans(p->a) ? 16 : 1);
	if (plans(p->a))
		one_in *= 1 + n;
	if (TEST_SANITIZED)
		one_in *= 4;
	return d % one_in == 0;
}

/* What plans for all ranks at once takes long for many: an ordinary run has some numbers only. */
static int too_dear(const struct gci_algorithm *a, int nranks)
{
	int most = a->traits & GCI_PACKS ? 9 : 17;

	return (plans(a) || TEST_SANITIZED) && nranks > most && nranks % 10 != 7 && !all_of_them();
}

static void prove(struct proof *p)
{
	struct gci_sched scheds[PROVE_MAX_RANKS];
	const struct gci_sched *list[PROVE_MAX_RANKS] = {NULL};
	const struct gci_algorithm *a = p->a;
	const struct gci_coll *c = &p->c;
	struct gci_error e = {0};
	int r, n = c->topo->nranks, fresh;

	if (gci_ineligible(a, c) || too_dear(a, n))
		return;
	fresh = covers(p);
	if (!fresh && !in_sample(p))
		return;
	for (r = 0; r < n; r++) {
		assert_int_equal(gci_emit(a, c, r, &scheds[r]), 0);
		list[r] = &scheds[r];
	}
	if (gci_verify(list, c, (a->traits & GCI_CAPS_SENDERS) != 0, NULL, &e))
		fail_msg("%s %s P=%d clusters=%d (cluster 0: %d) root=%d count=%" PRIu64
			 " segment=%" PRIu64 " senders=%u degree=%u in_place=%d order=%d"
			 " stride=%" PRIu64 " counts=%d at=%d part=%u/%u: %s",
			gci_kind_name(a->kind), a->name, n, c->topo->nclusters,
			gci_topo_size(c->topo, 0), c->root, c->count, c->segment, c->senders,
			c->degree, c->in_place, (int)c->order, c->stride, c->counts != NULL,
			c->in_at != NULL, c->part, c->nparts, e.text);
	for (r = 0; r < n; r++)
		gci_sched_free(&scheds[r]);
	proved++;
}

static int has_blocks(enum gci_kind kind)
{
	return kind >= GCI_REDUCE_SCATTER && kind <= GCI_ALLTOALL;
}

static int can_be_in_place(enum gci_kind kind)
{
	return kind != GCI_BCAST && kind != GCI_REDUCE_SCATTER && kind != GCI_BARRIER;
}

/* In all orders of reduction, in and out of place, with and without segments. */
static void prove_variants(struct proof p, enum variant variant)
{
	static const enum gci_order orders[] = {GCI_ANY_ORDER, GCI_CLUSTER_ORDER, GCI_RANK_ORDER};
	int norders = gci_kind_reduces(p.a->kind) ? 3 : 1, i;
	uint64_t segment = p.a->traits & GCI_USES_SEGMENT ? p.c.count / 5 + 1 : 0;
	int default_segment = p.count != BEYOND_4GIB || !segment;

	p.variant = variant;
	for (i = 0; i < norders; i++) {
		p.c.order = orders[i];
		p.c.packed = p.packed[i > 0];
		for (p.c.in_place = 0; p.c.in_place <= can_be_in_place(p.a->kind); p.c.in_place++) {
			/* Default segments of huge messages are too many to prove. */
			p.c.segment = 0;
			if (default_segment)
				prove(&p);
			p.c.segment = segment;
			if (segment)
				prove(&p);
		}
	}
}

/* Blocks of different lengths, some of them empty; alltoall in place has the same both ways. */
static void fill_counts(uint64_t *counts, const struct gci_coll *c, int in_place)
{
	uint64_t i, j, n = (unsigned)c->topo->nranks;

	for (i = 0; i < n && c->kind != GCI_ALLTOALL; i++)
		counts[i] = i * 7 % 5 * c->count + i % 2;
	for (i = 0; i < n && c->kind == GCI_ALLTOALL; i++)
		for (j = 0; j < n; j++)
			counts[i * n + j] = in_place ? (i + 1) * (j + 1) * 7 % 5 * c->count
						     : (i * 7 + j * 3) % 5 * c->count + j % 2;
}

/* In whole, in parts, and at places of their own: from the last to the first, with gaps. */
static void prove_counts(struct proof p)
{
	static uint64_t counts[PROVE_MAX_RANKS * PROVE_MAX_RANKS], at[PROVE_MAX_RANKS];
	uint64_t n = (unsigned)p.c.topo->nranks, i;

	for (i = 0; i < n; i++)
		at[i] = (n - 1 - i) * (4 * p.c.count + 3) + 1;
	/* Out of place is proved with the counts that in place takes, too: the same set. */
	fill_counts(counts, &p.c, 1);
	p.c.counts = counts;
	prove_variants(p, COUNTS);
	p.c.in_at = p.c.out_at = at;
	prove_variants(p, COUNTS_AT);
	p.c.in_at = p.c.out_at = NULL;
	p.c.nparts = 3;
	p.c.part = 1;
	prove_variants(p, PART);
	if (p.a->kind != GCI_ALLTOALL)
		return;
	fill_counts(counts, &p.c, 0);
	p.variant = COUNTS;
	prove(&p);
	p.c.nparts = p.c.part = 0;
	prove(&p);
	p.c.in_at = p.c.out_at = at;
	prove(&p);
}

/* All parameters of one algorithm for one count and root. */
static void prove_parameters(struct proof p)
{
	static const uint32_t senders[] = {1, 2, 3, 8};
	size_t i;

	prove_variants(p, PLAIN);
	for (i = 0; i < sizeof(senders) / sizeof(*senders); i++) {
		if (!(p.a->traits & GCI_USES_SENDERS) || p.c.topo->nclusters == 1)
			break;
		p.c.senders = senders[i];
		prove_variants(p, SENDERS);
	}
	p.c.senders = 0;
	for (p.c.degree = 1; p.a->traits & GCI_USES_DEGREE && p.c.degree <= 5; p.c.degree += 2)
		prove_variants(p, DEGREE);
	p.c.degree = 0;
	if (!has_blocks(p.a->kind) || p.count == GRANULES || p.count == BEYOND_4GIB)
		return;
	prove_counts(p);
	p.c.stride = p.c.count + 5; /* a window of longer blocks */
	p.c.shift = 2;
	prove_variants(p, STRIDE);
}

/* One packing for all counts and variants: making one takes longer than a proof. NULL for other algorithms. */
static struct gci_packed *pack_some(const struct proof *p, enum gci_order order)
{
	struct gci_coll c = p->c;
	struct gci_packed *packed = NULL;

	c.count = 100000;
	c.order = order;
	if (order != GCI_ANY_ORDER && !gci_kind_reduces(c.kind))
		return NULL;
	if (p->a->traits & GCI_PACKS && !too_dear(p->a, c.topo->nranks))
		assert_int_equal(gci_packed_make(&packed, &c, 0), 0);
	return packed;
}

void prove_topology(const struct gci_algorithm *a, const struct gci_topo *t, int all_roots)
{
	struct proof p = {.a = a, .c = {.kind = a->kind, .topo = t, .esize = 4}};
	int n = t->nranks, step = all_roots ? 1 : (n + 2) / 3;
	uint64_t counts[NCOUNTS] = {
		0, 1, (uint64_t)n - 1, (uint64_t)n, 997, 8 * 16384 * (uint64_t)n + 3, HUGE_COUNT};
	unsigned k;

	for (p.c.root = 0; p.c.root < (gci_kind_has_root(a->kind) ? n : 1); p.c.root += step) {
		p.c.packed = p.packed[0] = pack_some(&p, GCI_ANY_ORDER);
		p.packed[1] = pack_some(&p, GCI_CLUSTER_ORDER);
		for (k = 0; k < NCOUNTS; k++) {
			p.count = (enum count_class)k;
			p.c.count = counts[k];
			prove_parameters(p);
		}
		gci_packed_free(p.packed[0]);
		gci_packed_free(p.packed[1]);
	}
}

static void check_coverage(const struct gci_algorithm *a, int most_ranks)
{
	const struct coverage *v = coverage_of(a);
	int i, k, size, seen;

	for (i = 1; i <= most_ranks && (!a->max_ranks || i <= a->max_ranks); i++)
		if (!v->ranks[i] && !too_dear(a, i))
			fail_msg("%s %s: never on %d ranks", gci_kind_name(a->kind), a->name, i);
	for (i = 1; i <= MAX_CLUSTERS; i++)
		if (!v->clusters[i])
			fail_msg("%s %s: never on %d clusters", gci_kind_name(a->kind), a->name, i);
	for (i = 0; i < NCOUNTS; i++) {
		for (seen = 0, size = 0; size < NSIZES; size++)
			for (k = 1; k <= MAX_CLUSTERS; k++)
				seen += v->counts[i][size][k];
		if (!seen)
			fail_msg("%s %s: no count of class %d", gci_kind_name(a->kind), a->name, i);
	}
}

void prove_coverage(int most_ranks)
{
	const struct gci_algorithm *a;

	gci_each_algorithm (a)
		if (!prove_left_out(a))
			check_coverage(a, most_ranks);
	print_message("%lu sets of schedules proved\n", proved);
}
