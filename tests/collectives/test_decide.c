/* SPDX-License-Identifier: MIT */

#include "tests/test.h"

#include "base/mem.h"
#include "collectives/alltoall/alltoall.h"
#include "collectives/blocks/windows.h"
#include "collectives/tuner/candidates.h"
#include "collectives/tuner/decide.h"
#include "collectives/tuner/rates.h"
#include "testing/random_grid.h"
#include "tests/collectives/topologies.h"

#include <stdio.h>
#include <string.h>

/* Pairs of hosts get a fortieth of the link, so that it takes many senders to fill it. */
static const char narrow[] = "[cluster a]\nhosts = a[1-8]\nnic = 100Mbit\nlan_delay = 50us\n"
			     "[cluster b]\nhosts = b[1-8]\nnic = 100Mbit\nlan_delay = 50us\n"
			     "[link a b]\nrate = 100Mbit\ndelay = 50ms\nflow_rate = 2500kbit\n"
			     "streams = 1\n";

static void make_topo(struct gci_topo *t, const char *text, const char *more)
{
	char whole[1024];

	snprintf(whole, sizeof(whole), "%s%s", text, more);
	topology_parse(t, whole);
}

static struct gci_coll call_of(const struct gci_topo *t, enum gci_kind kind, uint64_t nbytes)
{
	uint64_t n = gci_kind_has_vector(kind) ? 1 : (uint64_t)t->nranks;

	return (struct gci_coll){.kind = kind, .topo = t, .count = nbytes / n, .esize = 1};
}

static struct gci_decision decide(struct gci_decider *d, const struct gci_coll *c)
{
	struct gci_decision how;

	assert_int_equal(gci_decide(d, c, &how), 0);
	assert_null(gci_ineligible(how.how.algorithm, c));
	return how;
}

static uint64_t simulate(
	const struct gci_topo *t, const struct gci_coll *c, const struct gci_candidate *how)
{
	struct gci_simnet net;
	uint64_t ns;

	assert_int_equal(gci_simnet_init(&net, t, NULL), 0);
	assert_int_equal(gci_predict(&net, c, how, NULL, &ns), 0);
	gci_simnet_free(&net);
	return ns;
}

/* Between clusters: a packing, or who is at least a twentieth faster, simulated in full. Returns whether one is. */
static int beats_the_packing(struct gci_decider *d, const struct gci_coll *c)
{
	struct gci_candidate packed = {.algorithm = gci_algorithm_find(c->kind, "packed")};
	struct gci_decision how = decide(d, c);
	struct gci_coll own = *c;

	assert_int_equal(how.by, GCI_BY_SIMULATION);
	if (gci_candidate_same(&how.how, &packed))
		return 0;
	own.packed = gci_decide_packed(d, packed.algorithm, c);
	assert_true(simulate(d->topo, c, &how.how) * 20 <= own.packed->ns * 19 + 20);
	assert_true(how.ns >= simulate(d->topo, c, &how.how)); /* as it is paced */
	return 1;
}

static void another_one_must_be_clearly_faster(void **state)
{
	static const uint64_t sizes[] = {1024, 65536};
	struct gci_decider d;
	int kind, others = 0;
	struct gci_topo t;
	size_t i;

	(void)state;
	make_topo(&t, narrow, "");
	assert_int_equal(gci_decider_init(&d, &t, 0), 0);
	for (kind = 0; kind < GCI_BARRIER; kind++)
		for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
			struct gci_coll c = call_of(&t, (enum gci_kind)kind, sizes[i]);

			others += beats_the_packing(&d, &c);
		}
	assert_true(others > 0);
	gci_decider_free(&d);
	gci_topo_free(&t);
}

/* Pipelines too, of which the first segments promise more than the whole keeps. */
static void the_whole_must_be_faster(void **state)
{
	struct gci_decider d;
	int kind;
	struct gci_topo t;

	(void)state;
	make_topo(&t,
		"[cluster kyoto]\nhosts = k[1-8]\nnic = 1Gbit\n"
		"[cluster tokyo]\nhosts = t[1-8]\nnic = 1Gbit\n"
		"[link kyoto tokyo]\nrate = 10Gbit\ndelay = 10ms\n",
		"");
	assert_int_equal(gci_decider_init(&d, &t, 0), 0);
	for (kind = GCI_BCAST; kind <= GCI_ALLREDUCE; kind++) {
		struct gci_coll c = call_of(&t, (enum gci_kind)kind, 32 << 20);

		beats_the_packing(&d, &c);
	}
	gci_decider_free(&d);
	gci_topo_free(&t);
}

/* In a single cluster, signals between all ranks take half as long as by way of one of them. */
static void barriers_are_simulated(void **state)
{
	struct gci_coll c = {.kind = GCI_BARRIER, .esize = 1};
	struct gci_candidate first = {.algorithm = gci_barriers};
	struct gci_decision how;
	struct gci_decider d;
	struct gci_topo t;

	(void)state;
	make_topo(&t, "[cluster a]\nhosts = a[1-16]\nnic = 1Gbit\nlan_delay = 50us\n", "");
	c.topo = &t;
	assert_int_equal(gci_decider_init(&d, &t, 0), 0);
	how = decide(&d, &c);
	assert_int_equal(how.by, GCI_BY_SIMULATION);
	assert_true(how.ns * 3 < simulate(&t, &c, &first) * 2);
	gci_decider_free(&d);
	gci_topo_free(&t);
}

/* The same for all that a decision does not depend on; and again when it was forgotten. */
static void decisions_are_functions_of_their_key(void **state)
{
	struct gci_decider d;
	struct gci_topo t;
	struct gci_coll c;
	struct gci_decision a, b;

	(void)state;
	make_topo(&t, narrow, "");
	assert_int_equal(gci_decider_init(&d, &t, 0), 0);
	c = call_of(&t, GCI_REDUCE, 65536);
	a = decide(&d, &c);
	assert_int_equal(d.nknown, 1);
	c.count = 60000;
	c.in_place = 1;
	c.root = 7;
	b = decide(&d, &c);
	assert_int_equal(d.nknown, 1);
	assert_memory_equal(&a.how, &b.how, sizeof(a.how));
	c.root = 8;
	decide(&d, &c);
	assert_int_equal(d.nknown, 2);
	c.order = GCI_CLUSTER_ORDER;
	decide(&d, &c);
	assert_int_equal(d.nknown, 3);
	c = call_of(&t, GCI_REDUCE, 65536);
	gci_decider_free(&d); /* as when there were too many */
	assert_int_equal(gci_decider_init(&d, &t, 0), 0);
	b = decide(&d, &c);
	assert_memory_equal(&a.how, &b.how, sizeof(a.how));
	assert_true(a.ns == b.ns);
	gci_decider_free(&d);
	gci_topo_free(&t);
}

/* The grid's own word on senders is kept to. */
static void caps_of_the_grid_are_kept(void **state)
{
	struct gci_decider d;
	struct gci_topo t;
	int kind;

	(void)state;
	make_topo(&t, narrow, "senders = 2\n");
	assert_int_equal(gci_decider_init(&d, &t, 0), 0);
	for (kind = 0; kind < GCI_BARRIER; kind++) {
		struct gci_coll c = call_of(&t, (enum gci_kind)kind, 65536);
		struct gci_decision how = decide(&d, &c);

		assert_int_equal(how.how.senders, 0);
		assert_true(how.how.algorithm->traits & (GCI_CAPS_SENDERS | GCI_PACKS));
	}
	gci_decider_free(&d);
	gci_topo_free(&t);
}

static struct gci_candidate roughly(const struct gci_coll *c)
{
	struct gci_candidate how;

	assert_int_equal(gci_decide_roughly(c, &how), 0);
	return how;
}

/* Without rates, or with too many ranks. */
static void what_cannot_be_simulated_is_estimated(void **state)
{
	static const char unknown[] = "[cluster a]\nhosts = a[1-8]\n";
	static const char many[] = "[cluster a]\nhosts = a[1-300]\nnic = 1Gbit\n";
	static const char alone[] = "[cluster a]\nhosts = a\nnic = 1Gbit\n";
	const char *const texts[] = {unknown, many, alone};
	struct gci_decider d;
	struct gci_topo t;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct gci_candidate rough;
		struct gci_decision how;
		struct gci_coll c;

		make_topo(&t, texts[i], "");
		assert_int_equal(gci_decider_init(&d, &t, 0), 0);
		c = call_of(&t, GCI_BCAST, 1 << 20);
		how = decide(&d, &c);
		assert_int_equal(how.by, GCI_BY_DEFAULT);
		rough = roughly(&c);
		assert_true(gci_candidate_same(&how.how, &rough));
		assert_true(how.ns == 0);
		gci_decider_free(&d);
		gci_topo_free(&t);
	}
}

static struct gci_decision decide_on(const struct gci_topo *t, enum gci_kind kind, uint64_t nbytes)
{
	struct gci_coll c = call_of(t, kind, nbytes);
	struct gci_decision how;
	struct gci_decider d;

	assert_int_equal(gci_decider_init(&d, t, 0), 0);
	how = decide(&d, &c);
	gci_decider_free(&d);
	return how;
}

static void make_random_topo(struct gci_topo *t, unsigned nclusters, uint64_t seed)
{
	struct gci_prng r = {.state = seed};
	struct gci_buf text = {0};
	struct gci_error e = {0};

	gci_random_grid(&r, nclusters, 0, &text);
	assert_int_equal(
		gci_topo_parse(t, (const char *)text.data, text.len, "random.grid", &e), 0);
	gci_buf_free(&text);
}

/* A packing of many clusters is not made while a short operation waits for it: the first does without, on all ranks;
 * the next has it. */
static void the_first_of_many_clusters_does_without(void **state)
{
	struct gci_decision without, again, later;
	struct gci_coll c, longer;
	struct gci_decider d;
	struct gci_topo t;

	(void)state;
	make_random_topo(&t, GCI_DECIDE_CLUSTERS + 1, 31);
	assert_int_equal(gci_decider_init(&d, &t, 0), 0);
	c = call_of(&t, GCI_BCAST, 65536);
	longer = call_of(&t, GCI_BCAST, UINT64_C(1) << 33);
	assert_int_equal(gci_decide_without(&d, &c, 7, &without), 1);
	assert_null(gci_ineligible(without.how.algorithm, &c));
	assert_false(without.how.algorithm->traits & GCI_PACKS);
	assert_false(gci_decide_knows(&d, &c));
	later = decide(&d, &c);
	assert_true(gci_decide_knows(&d, &c));
	assert_true(later.how.algorithm->traits & GCI_PACKS);
	assert_int_equal(gci_decide_without(&d, &c, 7, &again), 1);
	assert_true(gci_candidate_same(&without.how, &again.how));
	assert_int_equal(gci_decide_without(&d, &c, 8, &again), 0);
	assert_int_equal(gci_decide_without(&d, &longer, 9, &again), 0);
	gci_decider_free(&d);
	gci_topo_free(&t);

	make_random_topo(&t, GCI_DECIDE_CLUSTERS, 31);
	assert_int_equal(gci_decider_init(&d, &t, 0), 0);
	c.topo = &t;
	assert_int_equal(gci_decide_without(&d, &c, 7, &again), 0);
	gci_decider_free(&d);
	gci_topo_free(&t);
}

/* What is too much to simulate has a timetable still. */
static void more_ranks_than_are_simulated_have_packings(void **state)
{
	static const char two[] = "[cluster a]\nhosts = a[1-140]\nnic = 1Gbit\n"
				  "[cluster b]\nhosts = b[1-140]\nnic = 1Gbit\n"
				  "[link a b]\nrate = 10Gbit\ndelay = 10ms\n";
	const struct gci_packed *p;
	struct gci_decision how;
	struct gci_decider d;
	struct gci_topo t;
	struct gci_coll c;

	(void)state;
	make_topo(&t, two, "");
	assert_true(t.nranks > GCI_DECIDE_RANKS);
	assert_int_equal(gci_decider_init(&d, &t, 0), 0);
	c = call_of(&t, GCI_BCAST, 4 << 20);
	how = decide(&d, &c);
	assert_true(how.how.algorithm->traits & GCI_PACKS);
	p = gci_decide_packed(&d, how.how.algorithm, &c);
	assert_non_null(p);
	assert_true(p->timed);
	assert_true(how.ns == p->ns);
	gci_decider_free(&d);
	gci_topo_free(&t);
}

/* They run as equal ones of as many bytes do, and each set of lengths has times of its own, the latest few of which
 * are remembered. */
static void blocks_of_different_lengths_share_a_packing(void **state)
{
	uint64_t counts[48], i, n;
	const struct gci_packed *p, *even;
	const double *start_ns = NULL;
	struct gci_decision how, even_how;
	struct gci_decider d;
	struct gci_topo t;
	struct gci_coll c;

	(void)state;
	make_random_topo(&t, 4, 31);
	assert_in_range(t.nranks, 4, 48);
	assert_int_equal(gci_decider_init(&d, &t, 0), 0);
	c = call_of(&t, GCI_ALLGATHER, 1 << 20);
	even_how = decide(&d, &c);
	assert_true(even_how.how.algorithm->traits & GCI_PACKS);
	even = gci_decide_packed(&d, even_how.how.algorithm, &c);
	assert_null(even->times.counts);
	for (n = 0; n < 10; n++) {
		for (i = 0; i < 48; i++)
			counts[i] = (1 << 20) / (unsigned)t.nranks + (i % 2 ? n : -n);
		c.counts = counts;
		c.count = 0;
		how = decide(&d, &c);
		assert_int_equal(d.nknown, 1);
		assert_true(gci_candidate_same(&how.how, &even_how.how));
		assert_true(how.ns == 0);
		p = gci_decide_packed(&d, how.how.algorithm, &c);
		assert_ptr_equal(p->packing.columns, even->packing.columns);
		assert_true(p->timed);
		assert_ptr_equal(p->times.counts, counts);
		assert_ptr_not_equal(p->times.start_ns, start_ns);
		start_ns = p->times.start_ns;
		assert_ptr_equal(
			gci_decide_packed(&d, how.how.algorithm, &c)->times.start_ns, start_ns);
	}
	/* Of several windows none has a timetable. */
	c.nparts = 2;
	p = gci_decide_packed(&d, how.how.algorithm, &c);
	assert_ptr_equal(p->packing.columns, even->packing.columns);
	assert_false(p->timed);
	gci_decider_free(&d);
	gci_topo_free(&t);
}

/* Windows follow one another without the wait that each would have alone. What long messages are
 * run by is about as fast as what is best by estimates at least, when all that the simulator can tell is
 * asked. */
static void long_messages_are_not_one_window(void **state)
{
	static const char many[] = "[cluster a]\nhosts = a[1-64]\nnic = 1Gbit\n"
				   "lan_delay = 50us\n";
	static const enum gci_kind kinds[] = {GCI_BCAST, GCI_REDUCE, GCI_ALLGATHER};
	const uint64_t most = 256u << 20;
	struct gci_topo t;
	size_t i;

	(void)state;
	make_topo(&t, many, "");
	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		struct gci_coll c = call_of(&t, kinds[i], most);
		struct gci_candidate first = roughly(&c);
		struct gci_decision how = decide_on(&t, kinds[i], most);
		const struct gci_predict_limits limits = {.most_steps = 1000000};
		struct gci_simnet net;
		uint64_t usual, ns;

		assert_int_equal(how.by, GCI_BY_SIMULATION);
		assert_int_equal(gci_simnet_init(&net, &t, NULL), 0);
		assert_int_equal(gci_predict(&net, &c, &first, &limits, &usual), 0);
		assert_int_equal(gci_predict(&net, &c, &how.how, &limits, &ns), 0);
		assert_true(ns <= usual + usual / 100); /* part of it was extrapolated */
		assert_in_range(how.ns, ns / 10 * 9, ns / 10 * 11);
		gci_simnet_free(&net);
	}
	gci_topo_free(&t);
}

/* Bounded, however long the message; and longer ones are expected to take longer. */
static void any_length_can_be_decided_on(void **state)
{
	uint64_t nbytes = 1u << 20, last = 0;
	struct gci_topo t;

	(void)state;
	make_topo(&t, narrow, "");
	for (; nbytes && nbytes < UINT64_C(1) << 50; nbytes *= 32) {
		struct gci_decision how = decide_on(&t, GCI_BCAST, nbytes);

		assert_int_equal(how.by, GCI_BY_SIMULATION);
		assert_true(how.ns > 8 * last);
		last = how.ns;
	}
	gci_topo_free(&t);
}

/* Allgathers of long blocks on two clusters, as the GridMPI paper has them: simulated too. */
static void long_blocks_are_simulated(void **state)
{
	static const char two[] = "[cluster a]\nhosts = a[1-%d]\nnic = 1Gbit\nlan_delay = 50us\n"
				  "[cluster b]\nhosts = b[1-%d]\nnic = 1Gbit\nlan_delay = 50us\n"
				  "[link a b]\nrate = 10Gbit\ndelay = 10ms\n";
	static const enum gci_kind kinds[] = {GCI_ALLGATHER, GCI_REDUCE_SCATTER, GCI_ALLTOALL};
	char text[400];
	struct gci_topo t;
	size_t i;
	int n;

	(void)state;
	for (n = 8; n <= 32; n *= 4) {
		snprintf(text, sizeof(text), two, n, n);
		make_topo(&t, text, "");
		for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
			assert_int_equal(decide_on(&t, kinds[i], 16u << 20).by, GCI_BY_SIMULATION);
			assert_int_equal(decide_on(&t, kinds[i], 256u << 20).by, GCI_BY_SIMULATION);
		}
		gci_topo_free(&t);
	}
}

static void streams_count(void **state)
{
	struct gci_decision one, many;
	struct gci_decider d;
	struct gci_topo t;
	struct gci_coll c;

	(void)state;
	make_topo(&t, narrow, "");
	c = call_of(&t, GCI_BCAST, 1 << 20);
	assert_int_equal(gci_decider_init(&d, &t, 0), 0);
	one = decide(&d, &c);
	gci_decider_free(&d);
	assert_int_equal(gci_decider_init(&d, &t, 32), 0);
	many = decide(&d, &c);
	assert_true(many.ns < one.ns);
	gci_decider_free(&d);
	gci_topo_free(&t);
}

/* All of a host's ranks simulate at once: together no more than a few of them would. */
static void ranks_of_one_host_share_the_effort(void **state)
{
	int host[64], few[4] = {0, 1, 2, 3}, i;
	struct gci_topo t, part;
	struct gci_error e = {0};
	struct gci_decider d;
	struct gci_grid g;

	(void)state;
	assert_int_equal(gci_grid_parse(&g, narrow, strlen(narrow), "narrow", &e), 0);
	for (i = 0; i < 64; i++)
		host[i] = i / 32;
	assert_int_equal(gci_topo_create(&t, &g, host, 64), 0);
	assert_int_equal(t.per_host, 32);
	assert_int_equal(gci_decider_init(&d, &t, 0), 0);
	assert_int_equal(d.most_steps * 32 / GCI_DECIDE_PER_HOST, GCI_DECIDE_STEPS);
	gci_decider_free(&d);
	/* The ranks that are left out may be in such a group of their own. */
	assert_int_equal(gci_topo_sub(&part, &t, few, 4), 0);
	assert_int_equal(part.per_host, 32);
	gci_topo_free(&part);
	gci_topo_free(&t);
	gci_grid_free(&g);
}

/* Over loopback a message costs as much as many bytes: there are fewer of them. */
static void one_host_sends_long_segments(void **state)
{
	static const char text[] = "[cluster a]\nhosts = a[1-4]\n";
	struct gci_coll c = {.kind = GCI_BCAST, .count = 4 << 20, .esize = 1};
	struct gci_sched s[2];
	struct gci_candidate how;
	uint64_t digest[2];
	struct gci_topo t;
	int i;

	(void)state;
	assert_int_equal(gci_topo_parse(&t, text, sizeof(text) - 1, "a", NULL), 0);
	c.topo = &t;
	for (i = 0; i < 2; i++) {
		t.one_host = i;
		digest[i] = gci_topo_digest(&t);
		how = roughly(&c);
		gci_candidate_apply(&how, &c);
		assert_int_equal(gci_emit(how.algorithm, &c, 1, &s[i]), 0);
	}
	assert_true(digest[0] != digest[1]);
	assert_true(s[1].nsteps > 2 && s[1].nsteps * 4 <= s[0].nsteps);
	gci_sched_free(&s[0]);
	gci_sched_free(&s[1]);
	gci_topo_free(&t);
}

static void memory_may_fail_anywhere(void **state)
{
	struct gci_decision how;
	struct gci_decider d;
	struct gci_topo t;
	struct gci_coll c;
	unsigned long n;
	int rc;

	(void)state;
	make_topo(&t, "[cluster a]\nhosts = a[1-3]\nnic = 1Gbit\n", "");
	c = call_of(&t, GCI_SCATTER, 300);
	for (n = 1;; n++) {
		gci_mem_fail_at(n);
		rc = gci_decider_init(&d, &t, 0);
		if (!rc)
			rc = gci_decide(&d, &c, &how);
		gci_decider_free(&d);
		if (!gci_mem_failed())
			break;
		/* Never another choice: other ranks have memory. */
		assert_int_equal(rc, GCOLL_ERR_NOMEM);
	}
	gci_mem_fail_at(0);
	assert_int_equal(rc, 0);
	assert_true(n > 10);
	gci_topo_free(&t);
}

/* Of the same call they are the same; of an `even` alltoall those of its formula; where rates are not
 * known there are none. */
static void rates_are_remembered(void **state)
{
	static const char blind[] = "[cluster a]\nhosts = a[1-2]\n[cluster b]\nhosts = b[1-2]\n";
	struct gci_decider d;
	struct gci_topo t;
	struct gci_coll c;
	const struct gci_algorithm *a = gci_algorithm_find(GCI_GATHER, "sequential");
	const struct gci_rates *rates;
	uint64_t even[16];
	int i;

	(void)state;
	make_topo(&t, narrow, "");
	assert_int_equal(gci_decider_init(&d, &t, 0), 0);
	c = call_of(&t, GCI_GATHER, 8 << 20);
	rates = gci_decide_rates(&d, a, &c, 9);
	assert_non_null(rates);
	assert_true(rates->bps[0] > 0);
	assert_ptr_equal(gci_decide_rates(&d, a, &c, 9), rates);
	assert_ptr_not_equal(gci_decide_rates(&d, a, &c, 10), rates);
	for (i = 0; i < 40; i++) {
		c.count++;
		assert_true(gci_decide_rates(&d, a, &c, 9)->bps[0] > 0);
	}
	c = call_of(&t, GCI_ALLTOALL, 8 << 20);
	rates = gci_decide_rates(&d, gci_algorithm_find(GCI_ALLTOALL, "even"), &c, 3);
	assert_true(gci_alltoall_even_bps(&c, 3, even));
	assert_memory_equal(rates->bps, even, sizeof(even));
	gci_decider_free(&d);
	gci_topo_free(&t);

	make_topo(&t, blind, "[link a b]\ndelay = 10ms\n");
	assert_int_equal(gci_decider_init(&d, &t, 0), 0);
	c = call_of(&t, GCI_GATHER, 8 << 20);
	assert_null(gci_decide_rates(&d, a, &c, 1));
	gci_decider_free(&d);
	gci_topo_free(&t);
}

/* How many SENDs of all ranks' first window have a time. */
static unsigned count_due(const struct gci_algorithm *a, const struct gci_coll *c)
{
	struct gci_coll whole = *c, window;
	struct gci_windows w;
	unsigned n = 0;
	uint32_t i;
	int r;

	whole.like = whole.count;
	gci_windows_cut(&w, &whole, GCI_WINDOW_NBYTES);
	window = gci_window_of(&w, &whole, 0);
	for (r = 0; r < c->topo->nranks; r++) {
		struct gci_sched s;

		assert_int_equal(gci_emit(a, &window, r, &s), 0);
		for (i = 0; i < s.nsteps; i++)
			n += s.steps[i].due_ns != 0;
		gci_sched_free(&s);
	}
	return n;
}

/* Pairs have rates, or SENDs their times, also where they go in windows; never both, nor neither. */
static void rates_or_times(void **state)
{
	static const char text[] = "[cluster a]\nhosts = a[1-3]\nnic = 100Mbit\n"
				   "[cluster b]\nhosts = b[1-2]\nnic = 100Mbit\n"
				   "[link a b]\nrate = 150Mbit\ndelay = 10ms\n";
	static const uint64_t sizes[] = {8 << 20, 40 << 20};
	const struct gci_rates *rates;
	struct gci_decider d;
	struct gci_topo t;
	unsigned ntimed = 0, npaced = 0;
	size_t s;
	int k, i;

	(void)state;
	make_topo(&t, text, "");
	assert_int_equal(gci_decider_init(&d, &t, 0), 0);
	for (k = 0; k < GCI_BARRIER; k++)
		for (s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
			const struct gci_algorithm *a =
				gci_algorithm_find((enum gci_kind)k, "packed");
			struct gci_coll c = call_of(&t, (enum gci_kind)k, sizes[s]);

			c.packed = gci_decide_packed(&d, a, &c);
			assert_non_null(c.packed);
			assert_int_equal(count_due(a, &c) > 0, c.packed->timed);
			d.at_will = 0;
			rates = gci_decide_rates(&d, a, &c, 1);
			assert_non_null(rates);
			if (c.packed->timed) {
				for (i = 0; i < t.nranks; i++)
					assert_int_equal(rates->bps[i], 0);
				assert_true(rates->window_nbytes[0] > 0);
				assert_int_equal(rates->window_nbytes[t.nranks - 1], 0);
				ntimed++;
			}
			d.at_will = 1; /* nothing waits for its time */
			rates = gci_decide_rates(&d, a, &c, 1);
			assert_non_null(rates);
			for (i = 0; i < t.nranks; i++)
				npaced += rates->bps[i] > 0;
		}
	assert_true(ntimed > 0 && npaced > 0);
	gci_decider_free(&d);
	gci_topo_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rates_are_remembered),
		cmocka_unit_test(rates_or_times),
		cmocka_unit_test(another_one_must_be_clearly_faster),
		cmocka_unit_test(the_whole_must_be_faster),
		cmocka_unit_test(barriers_are_simulated),
		cmocka_unit_test(decisions_are_functions_of_their_key),
		cmocka_unit_test(caps_of_the_grid_are_kept),
		cmocka_unit_test(what_cannot_be_simulated_is_estimated),
		cmocka_unit_test(the_first_of_many_clusters_does_without),
		cmocka_unit_test(more_ranks_than_are_simulated_have_packings),
		cmocka_unit_test(blocks_of_different_lengths_share_a_packing),
		cmocka_unit_test(long_messages_are_not_one_window),
		cmocka_unit_test(any_length_can_be_decided_on),
		cmocka_unit_test(long_blocks_are_simulated),
		cmocka_unit_test(streams_count),
		cmocka_unit_test(ranks_of_one_host_share_the_effort),
		cmocka_unit_test(one_host_sends_long_segments),
		cmocka_unit_test(memory_may_fail_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
