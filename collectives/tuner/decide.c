/* SPDX-License-Identifier: MIT */
#include "collectives/tuner/decide.h"

#include "base/clock.h"
#include "base/mem.h"
#include "collectives/alltoall/alltoall.h"
#include "collectives/blocks/windows.h"
#include "collectives/models/limit.h"
#include "collectives/sim/sim.h"
#include "collectives/tuner/candidates.h"
#include "collectives/tuner/estimate.h"
#include "collectives/tuner/rates.h"

#include <string.h>

#define KNOWN_PACKINGS 32
#define KNOWN_RATES    16   /* then the oldest are forgotten */
#define KNOWN_FIRSTS   256  /* likewise */
#define KNOWN_TIMES    8    /* likewise */
#define RATES_PART     4    /* of a decision's steps are for its rates */
#define MOST_KNOWN     1024 /* decisions: then all are forgotten */
#define CLEARLY        20   /* a part of the time that another way must save */

const char *gci_decided_by_name(enum gci_decided_by by)
{
	static const char *const names[] = {"default", "set", "table", "simulated"};

	return names[by];
}

int gci_decide_roughly(const struct gci_coll *c, struct gci_candidate *how)
{
	struct gci_coll model = *c;
	struct gci_simnet net;
	int rc = gci_simnet_init(&net, c->topo, NULL);

	if (rc)
		return rc;
	if (c->counts) { /* as equal blocks */
		model.count = gci_packed_total(c) / (unsigned)c->topo->nranks;
		model.counts = NULL;
		model.nparts = 0;
	}
	rc = gci_candidate_rough(&net, &model, how);
	gci_simnet_free(&net);
	return rc;
}

int gci_decide_by_table(const struct gci_table *t, const struct gci_coll *c, struct gci_decision *d)
{
	struct gci_candidate how;
	int n = c->topo->nranks;

	/* Blocks of different lengths, and one cluster's ranks where all of them were measured, are
	 * something else. */
	if (c->counts || c->topo->nclusters != t->nclusters ||
		!gci_table_find(t, c->kind, n, gci_table_nbytes(c), &how) ||
		gci_ineligible(how.algorithm, c))
		return 0;
	*d = (struct gci_decision){
		how, GCI_BY_TABLE, gci_table_ns(t, c->kind, n, gci_table_nbytes(c))};
	return 1;
}

/* ---- by simulation */

/* What a decision depends on. */
struct key {
	enum gci_kind kind;
	enum gci_order order;
	uint64_t nbytes; /* rounded */
	int from; /* the first rank of the root's cluster with the root's NIC, or the root; else 0 */
};

struct gci_decided {
	struct key key;
	struct gci_decision how;
	struct gci_packed *packed; /* of a row with GCI_PACKS */
};

/* Of an algorithm that somebody else has decided upon: a user, a table. */
struct gci_decided_packing {
	struct key key;
	struct gci_packed *packed;
};

/* When a key was asked for first, and how that runs if it does without its packing. */
struct gci_decided_first {
	struct key key;
	uint64_t number;
	int without; /* it does */
	struct gci_decision how;
};

/* A timetable of blocks of different lengths, which are copied. */
struct gci_decided_times {
	struct key key;
	uint32_t esize;
	int root;
	uint64_t *counts; /* NULL: none yet */
	size_t ncounts;
	struct gci_packed_times times;
};

static void forget_all(struct gci_decider *d)
{
	size_t i;

	for (i = 0; i < d->nknown; i++)
		gci_packed_free(d->known[i].packed);
	d->nknown = 0;
}

struct gci_decided_rates {
	const struct gci_algorithm *algorithm; /* NULL: none yet */
	struct gci_coll coll;
	int rank, at_will;
	struct gci_rates rates; /* of NULL: at will */
};

int gci_decider_open(struct gci_decider *d, const struct gci_topo *t, uint32_t streams)
{
	return d->topo ? 0 : gci_decider_init(d, t, streams);
}

int gci_decider_init(struct gci_decider *d, const struct gci_topo *t, uint32_t streams)
{
	int a, b, n = t->nclusters;

	memset(d, 0, sizeof(*d));
	d->topo = t;
	/* Ranks of one host all simulate at the same time. */
	d->most_steps = GCI_DECIDE_STEPS;
	if (t->per_host > GCI_DECIDE_PER_HOST)
		d->most_steps = d->most_steps * GCI_DECIDE_PER_HOST / (unsigned)t->per_host;
	if (gci_simnet_init(&d->net, t, NULL))
		return GCOLL_ERR_NOMEM;
	gci_simnet_streams(&d->net, streams);
	for (a = 0; a < n; a++)
		for (b = 0; b < n; b++)
			d->blind |= a == b ? !t->nic_bps[a] : !gci_topo_link(t, a, b)->rate_bps;
	return 0;
}

void gci_decider_free(struct gci_decider *d)
{
	unsigned i;

	if (d->topo)
		gci_simnet_free(&d->net);
	forget_all(d);
	gci_free(d->known);
	for (i = 0; d->packings && i < KNOWN_PACKINGS; i++)
		gci_packed_free(d->packings[i].packed);
	gci_free(d->packings);
	gci_free(d->firsts);
	for (i = 0; d->times && i < KNOWN_TIMES; i++) {
		gci_free(d->times[i].counts);
		gci_packed_times_free(&d->times[i].times);
	}
	gci_free(d->times);
	for (i = 0; d->rates && i < KNOWN_RATES; i++)
		gci_free(d->rates[i].rates.bps);
	gci_free(d->rates);
	memset(d, 0, sizeof(*d));
}

/* The operation that a decision is made for: of this rank's call nothing but the key. */
static struct gci_coll model_of(const struct gci_decider *d, const struct key *k)
{
	uint64_t n = gci_kind_has_vector(k->kind) ? 1 : (uint64_t)d->topo->nranks;

	return (struct gci_coll){.kind = k->kind,
		.topo = d->topo,
		.order = k->order,
		.esize = 1,
		.count = k->nbytes && k->nbytes < n ? 1 : k->nbytes / n,
		.root = k->from};
}

/* All of it, within twice the effort. *ns is GCI_NEVER where it takes longer than until_ns (0: nothing does). 0,
 * GCOLL_ERR_INVAL: too much, or GCOLL_ERR_NOMEM. */
static int simulate_all(struct gci_decider *d, const struct gci_coll *c,
	const struct gci_candidate *how, uint64_t until_ns, uint64_t *ns)
{
	const struct gci_predict_limits limits = {
		.most_steps = 2 * d->most_steps, .until_ns = until_ns, .whole = 1};

	return gci_predict(&d->net, c, how, &limits, ns);
}

static uint64_t times(uint64_t ns, uint64_t part, uint64_t whole)
{
	return (uint64_t)((unsigned __int128)ns * whole / part);
}

static uint64_t clearly_less(uint64_t ns)
{
	return ns - ns / CLEARLY;
}

/* Between clusters a packing, where there is one, has the place of what is best by estimates. */
static int packing_is_first(const struct gci_coll *c)
{
	return c->packed && c->topo->nclusters > 1;
}

/* What pairs would lose if they sent at will, they send more slowly. */
static int pace(struct gci_decider *d, const struct gci_coll *c, const struct gci_candidate *how,
	uint64_t *ns)
{
	struct gci_coll own = *c;
	uint64_t paced, at_will;
	int rc;

	gci_candidate_apply(how, &own);
	rc = gci_rates_ns(
		&d->net, how->algorithm, &own, d->most_steps / RATES_PART, &paced, &at_will);
	if (!rc && paced > at_will)
		*ns = times(*ns, at_will, paced);
	return rc == GCOLL_ERR_NOMEM ? rc : 0;
}

/* Of one of the list; *ns is GCI_NEVER, or more than until_ns, where it takes longer. Where it is to replace a packing,
 * all of it is looked at, and as it is paced: between clusters first segments tell little of the rest. */
static int simulate_one(struct gci_decider *d, const struct gci_coll *c,
	const struct gci_candidate *how, struct gci_predict_limits *limits, uint64_t *ns)
{
	int is_partial = 0, rc;

	if (how->algorithm->traits & GCI_PACKS && c->packed) {
		*ns = c->packed->ns;
		return 0;
	}
	if (*limits->spent >= d->most_steps)
		return GCOLL_ERR_INVAL;
	limits->most_steps = (d->most_steps - *limits->spent) / 2 + 1;
	limits->is_partial = &is_partial;
	rc = gci_predict(&d->net, c, how, limits, ns);
	if (!packing_is_first(c))
		return rc;
	if (!rc && is_partial && *ns <= limits->until_ns)
		rc = simulate_all(d, c, how, limits->until_ns, ns);
	if (!rc && *ns <= limits->until_ns)
		rc = pace(d, c, how, ns);
	return rc;
}

/* Between clusters packings are made before, or the operation does without. */
static int does_without(const struct gci_coll *c, const struct gci_candidate *how)
{
	return how->algorithm->traits & GCI_PACKS && !c->packed && c->topo->nclusters > 1;
}

/* The fastest of the list that is clearly faster than *how, which takes usual_ns, if it can be simulated within the
 * effort. */
static int simulate_others(struct gci_decider *d, const struct gci_coll *c,
	const struct gci_candidate *list, size_t n, uint64_t *spent, uint64_t usual_ns,
	struct gci_decision *how)
{
	struct gci_predict_limits limits = {.spent = spent, .until_ns = clearly_less(usual_ns)};
	const struct gci_candidate first = how->how;
	uint64_t ns;
	size_t i;
	int rc;

	for (i = 0; i < n && limits.until_ns; i++) {
		if (gci_candidate_same(&list[i], &first) || does_without(c, &list[i]))
			continue;
		rc = simulate_one(d, c, &list[i], &limits, &ns);
		if (rc == GCOLL_ERR_NOMEM)
			return rc;
		if (rc || ns > limits.until_ns)
			continue;
		*how = (struct gci_decision){list[i], GCI_BY_SIMULATION, ns};
		limits.until_ns = ns - 1;
	}
	return 0;
}

/* What takes too long to simulate has a formula. Formulas err: half of what it says. */
static int guess(struct gci_decider *d, const struct gci_coll *c, const struct gci_candidate *how,
	uint64_t *ns)
{
	struct gci_estimator e;
	int rc = gci_estimator_init(&e, &d->net, c);

	*ns = rc ? 0 : gci_estimate(&e, how) / 2;
	gci_estimator_free(&e);
	return rc;
}

/* What a packing takes is known since it was made; of another first way, *usual_ns is a guess where it is too much to
 * simulate. */
static int simulate_first(struct gci_decider *d, const struct gci_coll *c, struct gci_decision *how,
	uint64_t *spent, uint64_t *usual_ns)
{
	const struct gci_predict_limits limits = {.spent = spent, .most_steps = d->most_steps / 2};
	int rc;

	if (packing_is_first(c)) {
		how->ns = c->packed->ns;
		rc = 0;
	} else {
		rc = gci_predict(&d->net, c, &how->how, &limits, &how->ns);
	}
	if (!rc)
		how->by = GCI_BY_SIMULATION;
	*usual_ns = how->ns;
	return rc == GCOLL_ERR_INVAL ? guess(d, c, &how->how, usual_ns) : rc;
}

static int is_known(const struct gci_decider *d, const struct gci_coll *c)
{
	return !d->blind && d->topo->nranks > 1 && (c->count || c->kind == GCI_BARRIER);
}

static int can_simulate(const struct gci_decider *d, const struct gci_coll *c)
{
	return is_known(d, c) && d->topo->nranks <= GCI_DECIDE_RANKS;
}

/* A packing, or what is best by estimates, unless another one is clearly faster. What costs too much to simulate
 * is left to that. */
static int decide(struct gci_decider *d, const struct gci_coll *c, struct gci_decision *how)
{
	struct gci_candidate *list = NULL;
	uint64_t spent = 0, usual_ns = 0;
	int rc;
	size_t n = 0;

	*how = (struct gci_decision){.how.algorithm = gci_candidate_packs(c)};
	rc = packing_is_first(c) ? 0 : gci_candidate_rough(&d->net, c, &how->how);
	if (rc)
		return rc;
	if (!can_simulate(d, c)) {
		if (packing_is_first(c)) {
			how->ns = c->packed->ns;
			how->by = GCI_BY_SIMULATION;
		}
		return 0;
	}
	rc = gci_candidates(&d->net, c, GCI_DECIDE_CANDIDATES, &list, &n);
	if (!rc)
		rc = simulate_first(d, c, how, &spent, &usual_ns);
	if (!rc)
		rc = simulate_others(d, c, list, n, &spent, usual_ns, how);
	gci_free(list);
	return rc == GCOLL_ERR_NOMEM ? rc : 0;
}

static int same(const struct key *a, const struct key *b)
{
	return a->kind == b->kind && a->order == b->order && a->nbytes == b->nbytes &&
	       a->from == b->from;
}

static const struct gci_decided *find(const struct gci_decider *d, const struct key *k)
{
	size_t i;

	for (i = 0; i < d->nknown; i++)
		if (same(&d->known[i].key, k))
			return &d->known[i];
	return NULL;
}

static int pack(struct gci_decider *d, const struct gci_algorithm *a, const struct gci_coll *c,
	uint64_t nbytes, struct gci_packed **out)
{
	return can_simulate(d, c) ? gci_timed_make(out, &d->net, a, c, nbytes, 2 * d->most_steps)
				  : gci_packed_make(out, c, nbytes);
}

static int make(struct gci_decider *d, const struct key *k, const struct gci_decided **out)
{
	struct gci_decided new = {.key = *k};
	struct gci_coll model = model_of(d, k);
	const struct gci_algorithm *packs = gci_candidate_packs(&model);
	int rc = 0;

	if (packs && (can_simulate(d, &model) || (is_known(d, &model) && d->topo->nclusters > 1)))
		rc = pack(d, packs, &model, k->nbytes, &new.packed);
	model.packed = new.packed;
	if (!rc)
		rc = decide(d, &model, &new.how);
	if (rc || !new.how.how.algorithm || !(new.how.how.algorithm->traits &GCI_PACKS)) {
		gci_packed_free(new.packed);
		new.packed = NULL;
	}
	if (d->nknown == MOST_KNOWN)
		forget_all(d);
	if (!rc && gci_grow(&d->known, &d->cap, d->nknown + 1, sizeof(*d->known)))
		rc = GCOLL_ERR_NOMEM;
	if (rc) {
		gci_packed_free(new.packed);
		return rc;
	}
	d->known[d->nknown] = new;
	*out = &d->known[d->nknown++];
	return 0;
}

void gci_decider_learn(struct gci_decider *d, struct gci_decider *from)
{
	size_t i;

	for (i = 0; i < from->nknown && d->nknown < MOST_KNOWN; i++)
		if (!find(d, &from->known[i].key) &&
			!gci_grow(&d->known, &d->cap, d->nknown + 1, sizeof(*d->known))) {
			d->known[d->nknown++] = from->known[i];
			from->known[i].packed = NULL;
		}
}

/* In a fixed order its place in its cluster counts. */
static int like_root(const struct gci_topo *t, int root, enum gci_order order)
{
	const int *m = gci_topo_members(t, t->cluster[root]);

	if (order != GCI_ANY_ORDER)
		return root;
	while (t->rank_nic_bps[*m] != t->rank_nic_bps[root])
		m++;
	return *m;
}

/* Of all of it; of an alltoall with counts, what a rank has on average. */
static uint64_t nbytes_of(const struct gci_coll *c)
{
	struct gci_coll whole = *c;
	uint64_t nbytes;

	if (c->kind == GCI_BARRIER)
		return 0;
	whole.nparts = 0;
	if (__builtin_mul_overflow(gci_packed_total(&whole), (uint64_t)c->esize, &nbytes))
		return UINT64_MAX;
	return nbytes;
}

static struct key key_of(const struct gci_decider *d, const struct gci_coll *c)
{
	return (struct key){.kind = c->kind,
		.order = c->order,
		.nbytes = gci_table_round(nbytes_of(c)),
		.from = gci_kind_has_root(c->kind) ? like_root(d->topo, c->root, c->order) : 0};
}

/* The oldest gives way. */
static const struct gci_packed *make_packing(struct gci_decider *d, const struct key *k,
	const struct gci_algorithm *a, const struct gci_coll *c)
{
	struct gci_decided_packing *p;
	unsigned i;

	if (!d->packings)
		d->packings = gci_calloc(KNOWN_PACKINGS, sizeof(*d->packings));
	if (!d->packings)
		return NULL;
	for (i = 0; i < KNOWN_PACKINGS; i++)
		if (d->packings[i].packed && same(&d->packings[i].key, k))
			return d->packings[i].packed;
	p = &d->packings[d->npackings++ % KNOWN_PACKINGS];
	gci_packed_free(p->packed);
	p->key = *k;
	if (pack(d, a, c, k->nbytes, &p->packed))
		p->packed = NULL;
	return p->packed;
}

/* The one of these counts; the oldest gives way to one that is new. NULL: out of memory. */
static struct gci_decided_times *find_times(struct gci_decider *d, const struct key *k,
	const struct gci_packed *p, const struct gci_coll *c)
{
	size_t n =
		(size_t)c->topo->nranks * (c->kind == GCI_ALLTOALL ? (size_t)c->topo->nranks : 1);
	struct gci_decided_times *t;
	unsigned i;

	if (!d->times)
		d->times = gci_calloc(KNOWN_TIMES, sizeof(*d->times));
	if (!d->times)
		return NULL;
	for (i = 0; i < KNOWN_TIMES; i++) {
		t = &d->times[i];
		if (t->counts && same(&t->key, k) && t->esize == c->esize && t->root == c->root &&
			!memcmp(t->counts, c->counts, n * sizeof(*t->counts)))
			return t;
	}
	t = &d->times[d->ntimes++ % KNOWN_TIMES];
	gci_free(t->counts);
	gci_packed_times_free(&t->times);
	*t = (struct gci_decided_times){.key = *k, .esize = c->esize, .root = c->root};
	t->counts = gci_calloc(n, sizeof(*t->counts));
	if (!t->counts)
		return NULL;
	memcpy(t->counts, c->counts, n * sizeof(*t->counts));
	return gci_packed_find_times(&t->times, p, c) ? NULL : t;
}

/* A packing of equal blocks, for those of different lengths, at times of their own. All ranks have the same but for
 * those. */
static const struct gci_packed *count(struct gci_decider *d, const struct key *k,
	const struct gci_packed *p, const struct gci_coll *c)
{
	const struct gci_decided_times *t;

	if (!p)
		return NULL;
	t = c->nparts ? NULL : find_times(d, k, p, c);
	d->counted = *p;
	d->counted.times = t ? t->times : (struct gci_packed_times){0};
	d->counted.times.counts = c->counts;
	d->counted.timed = d->counted.times.start_ns != NULL;
	return &d->counted;
}

const struct gci_packed *gci_decide_packed(
	struct gci_decider *d, const struct gci_algorithm *a, const struct gci_coll *c)
{
	struct gci_coll whole = *c;
	const struct gci_decided *known;
	const struct gci_packed *p;
	struct key k;

	if (!(a->traits & GCI_PACKS) || c->topo != d->topo)
		return NULL;
	k = key_of(d, c);
	if (c->counts)
		whole = model_of(d, &k);
	else
		whole.count = c->like ? c->like : c->count;
	whole.packed = NULL;
	whole.in_place = 0; /* ranks may call it either way */
	known = find(d, &k);
	p = known && known->packed ? known->packed : make_packing(d, &k, a, &whole);
	return c->counts ? count(d, &k, p, c) : p;
}

/* What was decided for a key, for one of those that have it. */
static void apply(const struct gci_decision *decided, const struct key *k, const struct gci_coll *c,
	struct gci_decision *how)
{
	uint64_t nbytes = nbytes_of(c);

	*how = *decided;
	if (c->counts)
		how->ns = 0; /* that was of equal blocks */
	if (nbytes > k->nbytes && k->nbytes)
		how->ns = times(how->ns, k->nbytes, nbytes);
}

int gci_decide(struct gci_decider *d, const struct gci_coll *c, struct gci_decision *how)
{
	struct key k = key_of(d, c);
	const struct gci_decided *known = find(d, &k);
	int rc = known ? 0 : make(d, &k, &known);

	if (!rc)
		apply(&known->how, &k, c, how);
	return rc;
}

int gci_decide_knows(const struct gci_decider *d, const struct gci_coll *c)
{
	struct key k = key_of(d, c);

	return find(d, &k) != NULL;
}

int gci_decide_alike(
	const struct gci_decider *d, const struct gci_coll *a, const struct gci_coll *b)
{
	struct key x = key_of(d, a), y = key_of(d, b);

	return same(&x, &y);
}

struct gci_coll gci_decide_model(const struct gci_decider *d, const struct gci_coll *c)
{
	struct key k = key_of(d, c);

	return model_of(d, &k);
}

static int is_slower_to_pack(const struct gci_decider *d, const struct gci_coll *model)
{
	uint64_t n = (uint64_t)d->topo->nclusters;

	return n > GCI_DECIDE_CLUSTERS && is_known(d, model) && gci_candidate_packs(model) &&
	       gci_limit_ns(model, 0) < n * GCI_DECIDE_CLUSTER_NS;
}

/* The one of this key; the oldest gives way to one that is new. 0, or errors of decide. */
static int find_first(struct gci_decider *d, const struct key *k, uint64_t number,
	const struct gci_decided_first **out)
{
	struct gci_coll model = model_of(d, k);
	struct gci_decided_first *f;
	unsigned i;
	int rc = 0;

	if (!d->firsts)
		d->firsts = gci_calloc(KNOWN_FIRSTS, sizeof(*d->firsts));
	if (!d->firsts)
		return GCOLL_ERR_NOMEM;
	for (i = 0; i < d->nfirsts && i < KNOWN_FIRSTS; i++)
		if (same(&d->firsts[i].key, k)) {
			*out = &d->firsts[i];
			return 0;
		}
	f = &d->firsts[d->nfirsts % KNOWN_FIRSTS];
	*f = (struct gci_decided_first){
		.key = *k, .number = number, .without = is_slower_to_pack(d, &model)};
	if (f->without)
		rc = decide(d, &model, &f->how);
	if (rc)
		*f = (struct gci_decided_first){.key.nbytes = UINT64_MAX}; /* of nothing */
	d->nfirsts += !rc;
	*out = f;
	return rc;
}

int gci_decide_without(
	struct gci_decider *d, const struct gci_coll *c, uint64_t number, struct gci_decision *how)
{
	struct key k = key_of(d, c);
	const struct gci_decided_first *f;
	int rc;

	/* The counts of an alltoall get to ranks while others' later operations begin. */
	if (d->topo->nclusters <= GCI_DECIDE_CLUSTERS || (c->counts && c->kind == GCI_ALLTOALL))
		return 0;
	rc = find_first(d, &k, number, &f);
	if (rc)
		return rc;
	if (!f->without || f->number != number)
		return 0;
	apply(&f->how, &k, c, how);
	return 1;
}

/* ---- how fast */

static const struct gci_decided_rates *find_rates(const struct gci_decider *d,
	const struct gci_algorithm *a, const struct gci_coll *c, int rank)
{
	unsigned i;

	for (i = 0; d->rates && i < KNOWN_RATES; i++) {
		const struct gci_decided_rates *r = &d->rates[i];

		if (r->algorithm == a && r->rank == rank && r->at_will == d->at_will &&
			gci_coll_same(&r->coll, c))
			return r;
	}
	return NULL;
}

/* 0: they are in `out`. */
static int make_rates(struct gci_decider *d, const struct gci_algorithm *a,
	const struct gci_coll *c, int rank, const struct gci_rates *out)
{
	if (gci_alltoall_is_even(a))
		return !gci_alltoall_even_bps(c, rank, out->bps);
	if (gci_packed_is_even(c) && !d->blind)
		return gci_rates_even(c, rank, out);
	if (c->packed && c->packed->timed && !d->at_will) { /* each SEND has its time */
		gci_rates_near(c->topo, rank, out);
		return 0;
	}
	if (d->blind || d->topo->nclusters < 2)
		return GCOLL_ERR_INVAL;
	return gci_rates(&d->net, a, c, rank,
		d->topo->nranks > GCI_DECIDE_RANKS ? 0 : d->most_steps / RATES_PART, out);
}

static const struct gci_rates *some(const struct gci_decided_rates *r)
{
	return r->rates.bps ? &r->rates : NULL;
}

const struct gci_rates *gci_decide_rates(
	struct gci_decider *d, const struct gci_algorithm *a, const struct gci_coll *c, int rank)
{
	const struct gci_decided_rates *known = c->counts ? NULL : find_rates(d, a, c, rank);
	size_t n = (size_t)c->topo->nranks;
	struct gci_coll whole = *c;
	struct gci_decided_rates *r;

	if (known)
		return some(known);
	whole.packed = gci_decide_packed(d, a, c);
	if (!d->rates)
		d->rates = gci_calloc(KNOWN_RATES, sizeof(*d->rates));
	if (!d->rates)
		return NULL;
	r = &d->rates[d->nrates++ % KNOWN_RATES];
	gci_free(r->rates.bps);
	*r = (struct gci_decided_rates){.algorithm = a,
		.coll = *c,
		.rank = rank,
		.at_will = d->at_will,
		.rates.bps = gci_calloc(2 * n, sizeof(*r->rates.bps))};
	r->rates.window_nbytes = r->rates.bps ? r->rates.bps + n : NULL;
	if (r->rates.bps && make_rates(d, a, &whole, rank, &r->rates)) {
		gci_free(r->rates.bps);
		r->rates.bps = NULL;
	}
	if (c->counts) /* the caller's */
		r->algorithm = NULL;
	return some(r);
}
