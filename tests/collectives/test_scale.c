/* SPDX-License-Identifier: MIT
 * Ten thousand ranks: too many to prove, but a sample of ranks and all their peers agree on their
 * messages, and nobody's schedule is made by building everybody's. */
#include "tests/test.h"

#include "base/mem.h"
#include "collectives/planner/packed.h"
#include "tests/collectives/prove.h"
#include "tests/collectives/topologies.h"

#include <stdlib.h>
#include <string.h>

#define NRANKS       10000
#define MOST_CHECKED 10   /* messages of a rank */
#define NSEGMENTS    1024 /* a window makes no more by default */

static uint64_t length_of(const struct gci_step *p)
{
	return p->kind == GCI_STEP_SEND ? p->src.length : p->dst.length;
}

/* `p` is a step of `rank`; exactly one of the peer's steps is at its other end. */
static void check_message(
	const struct gci_algorithm *a, const struct gci_coll *c, int rank, const struct gci_step *p)
{
	struct gci_sched peer;
	uint32_t i, found = 0;

	assert_int_equal(gci_emit(a, c, p->peer, &peer), 0);
	for (i = 0; i < peer.nsteps; i++) {
		const struct gci_step *q = &peer.steps[i];

		if (q->kind > GCI_STEP_RECV_REDUCE || q->peer != rank || q->tag != p->tag ||
			(q->kind == GCI_STEP_SEND) == (p->kind == GCI_STEP_SEND))
			continue;
		assert_true(length_of(q) == length_of(p));
		found++;
	}
	if (found != 1)
		fail_msg("%s %s: rank %d and %d, tag 0x%x: %u counterparts", gci_kind_name(a->kind),
			a->name, rank, p->peer, p->tag, found);
	gci_sched_free(&peer);
}

/* The most steps that the kind asks of one rank, be it the root: with every other rank one message
 * or two, and what it does with each; in a tree, the segments to and from some others. */
static uint64_t most_steps(const struct gci_algorithm *a)
{
	uint64_t segments = a->traits & GCI_USES_SEGMENT ? 16 * NSEGMENTS : 0;

	switch (a->kind) {
	case GCI_BCAST:
	case GCI_SCATTER:
	case GCI_GATHER:
	case GCI_BARRIER:
		return 2 * NRANKS + 100 + segments;
	case GCI_REDUCE:
		return 3 * NRANKS + 100 + segments;
	default: /* everybody with everybody, both ways */
		return 5 * NRANKS + 100 + segments;
	}
}

static void check_rank(const struct gci_algorithm *a, const struct gci_coll *c, int rank)
{
	struct gci_sched s;
	uint32_t i, stride;

	assert_int_equal(gci_emit(a, c, rank, &s), 0);
	if (s.nsteps > most_steps(a))
		fail_msg("%s %s: rank %d has %u steps", gci_kind_name(a->kind), a->name, rank,
			s.nsteps);
	if (s.next_at[s.nsteps] > 16 * (uint64_t)s.nsteps)
		fail_msg("%s %s: rank %d has %u edges for %u steps", gci_kind_name(a->kind),
			a->name, rank, s.next_at[s.nsteps], s.nsteps);
	/* A peer of long schedules has one, too. */
	stride = 1 + s.nsteps / (s.nsteps < NRANKS / 2 ? MOST_CHECKED : MOST_CHECKED / 3);
	for (i = 0; i < s.nsteps; i += stride)
		if (s.steps[i].kind <= GCI_STEP_RECV_REDUCE)
			check_message(a, c, rank, &s.steps[i]);
	gci_sched_free(&s);
}

static void check_topology(const int *sizes, uint32_t senders)
{
	static const int ranks[] = {0, 10, 4999, 5000, 9999};
	const struct gci_algorithm *a;
	struct gci_topo t;
	size_t i;

	topology_make(&t, sizes, 0, 10);
	assert_int_equal(t.nranks, NRANKS);
	gci_each_algorithm (a) {
		/* One WAN sender has the most to do. A whole window of 8 Mi floats. */
		int blocks = a->kind >= GCI_REDUCE_SCATTER && a->kind <= GCI_ALLTOALL;
		struct gci_coll c = {.kind = a->kind,
			.topo = &t,
			.count = (8 << 20) / (blocks ? NRANKS : 1),
			.esize = 4,
			.root = 10,
			.senders = senders};

		struct gci_packed *packed = NULL;

		if (a->max_ranks || prove_left_out(a))
			continue;
		if (a->traits & GCI_PACKS)
			assert_int_equal(gci_packed_make(&packed, &c, 0), 0);
		c.packed = packed;
		for (i = 0; i < sizeof(ranks) / sizeof(*ranks); i += TEST_SANITIZED ? 4 : 1)
			check_rank(a, &c, ranks[i]);
		gci_packed_free(packed);
	}
	gci_topo_free(&t);
}

static void one_cluster(void **state)
{
	(void)state;
	check_topology((int[]){NRANKS, 0}, 0);
}

static void two_clusters(void **state)
{
	(void)state;
	check_topology((int[]){5000, 5000, 0}, 1);
	check_topology((int[]){9990, 10, 0}, 0);
}

static void many_clusters(void **state)
{
	int sizes[101] = {0}, i;

	(void)state;
	for (i = 0; i < 100; i++)
		sizes[i] = i % 2 ? 150 : 50;
	check_topology(sizes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_cluster),
		cmocka_unit_test(two_clusters),
		cmocka_unit_test(many_clusters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
