/* SPDX-License-Identifier: MIT
 * Ten thousand ranks: too many to prove, but a sample of ranks and all their peers agree on their
 * messages, and nobody's schedule is made by building everybody's. */
#include "tests/test.h"

#include "base/mem.h"
#include "collectives/coll.h"
#include "tests/collectives/topologies.h"

#include <stdlib.h>
#include <string.h>

#define MOST_CHECKED 40 /* messages of a rank */

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
		fail_msg("%s: rank %d and %d, tag 0x%x: %u counterparts", a->name, rank, p->peer,
			p->tag, found);
	gci_sched_free(&peer);
}

static void check_rank(const struct gci_algorithm *a, const struct gci_coll *c, int rank)
{
	struct gci_sched s;
	uint32_t i, stride;

	assert_int_equal(gci_emit(a, c, rank, &s), 0);
	/* Nobody needs more than a message with everybody, or one for each of 1024 segments in
	 * and out, and some rounds. */
	assert_in_range(s.nsteps, 0, 24000);
	assert_in_range(s.next_at[s.nsteps], 0, 16 * (uint64_t)s.nsteps);
	stride = 1 + s.nsteps / MOST_CHECKED;
	for (i = 0; i < s.nsteps; i += stride)
		if (s.steps[i].kind <= GCI_STEP_RECV_REDUCE)
			check_message(a, c, rank, &s.steps[i]);
	gci_sched_free(&s);
}

static void check_topology(const int *sizes, uint32_t senders)
{
	static const int ranks[] = {0, 1, 9, 10, 4999, 5000, 5001, 7777, 9999};
	const struct gci_algorithm *a;
	struct gci_topo t;
	size_t i;

	topology_make(&t, sizes, 0, 10);
	assert_int_equal(t.nranks, 10000);
	gci_each_algorithm (a) {
		/* One WAN sender has the most to do. 8 Mi elements: a whole window of floats. */
		struct gci_coll c = {.kind = a->kind,
			.topo = &t,
			.count = 8 << 20,
			.esize = 4,
			.root = 10,
			.senders = senders};

		for (i = 0; i < sizeof(ranks) / sizeof(*ranks); i++)
			check_rank(a, &c, ranks[i]);
	}
	gci_topo_free(&t);
}

static void one_cluster(void **state)
{
	(void)state;
	check_topology((int[]){10000, 0}, 0);
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
