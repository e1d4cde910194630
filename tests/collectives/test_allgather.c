/* SPDX-License-Identifier: MIT
 * What is special in each allgather: how many messages, and how much over the WAN. */
#include "tests/test.h"

#include "tests/collectives/traffic.h"

static struct scheds x;

static void emit(const char *name, struct gci_coll c, const int *sizes, int mixed)
{
	traffic_emit(&x, GCI_ALLGATHER, name, c, sizes, mixed);
}

static int rounds_of(int nranks)
{
	int n = 0;

	while (1 << n < nranks)
		n++;
	return n;
}

/* Between any two clusters: `messages`, together each block of the one once. */
static void check_wan(uint64_t messages, uint64_t count)
{
	int from, to;

	for (from = 0; from < x.topo.nclusters; from++)
		for (to = 0; to < x.topo.nclusters; to++) {
			struct traffic t = traffic_between(&x, from, to);

			if (from == to)
				continue;
			assert_int_equal(t.messages, messages);
			assert_int_equal(
				t.elements, (uint64_t)gci_topo_size(&x.topo, from) * count);
			assert_int_equal(t.senders, 1);
		}
}

/* MagPIe (Kielmann 2001), 3.4: coordinators send what they have gathered once to each other, in one
 * message whatever the layout, or in as many as there are segments. */
static void magpie_crosses_once(void **state)
{
	int mixed, stride;

	(void)state;
	for (mixed = 0; mixed < 2; mixed++)
		for (stride = 0; stride <= 150; stride += 150) {
			struct gci_coll c = {.count = 100, .stride = (uint64_t)stride};

			emit("magpie", c, (int[]){4, 1, 3, 6, 0}, mixed);
			check_wan(1, 100);
			scheds_free(&x);
			c.segment = 30;
			emit("magpie-segmented", c, (int[]){4, 1, 3, 6, 0}, mixed);
			check_wan(4, 100);
			scheds_free(&x);
		}
}

/* A coordinator sends one segment after the other, whatever has come in. */
static void magpie_segments_do_not_wait(void **state)
{
	struct gci_coll c = {.count = 1000, .segment = 100};
	uint32_t i, d;
	int sends = 0;

	(void)state;
	emit("magpie-segmented", c, (int[]){1, 1, 1, 1, 0}, 0);
	for (i = 0; i < x.s[2].nsteps; i++) {
		const struct gci_step *p = &x.s[2].steps[i];

		if (p->kind != GCI_STEP_SEND)
			continue;
		sends++;
		for (d = 0; d < p->ndeps; d++)
			assert_int_equal(
				x.s[2].steps[x.s[2].deps[p->deps + d]].kind, GCI_STEP_COPY);
	}
	assert_int_equal(sends, 3 * 10);
	scheds_free(&x);
}

/* MPICH-G2's coordinators pass on what they have: of four clusters, each gets the pair that is far
 * from it in one go. */
static void mpich_g2_doubles_between_clusters(void **state)
{
	struct gci_coll c = {.count = 10};

	(void)state;
	emit("mpich-g2", c, (int[]){3, 3, 3, 3, 0}, 0);
	assert_int_equal(traffic_between(&x, 0, 1).elements, 3 * 10);
	assert_int_equal(traffic_between(&x, 0, 2).elements, 6 * 10);
	assert_int_equal(traffic_between(&x, 0, 2).messages, 1);
	assert_int_equal(traffic_between(&x, 0, 3).messages, 0);
	assert_int_equal(x.report.wan_elements, 4 * (3 + 6) * 10);
	scheds_free(&x);
}

/* Each rank: ceil(log2 P) rounds, every block in once; a run that passes the end of the ranks is
 * two messages. */
static void dissemination_has_few_rounds(void **state)
{
	struct gci_coll c = {.count = 10};
	int p, r;

	(void)state;
	for (p = 2; p <= 20; p++) {
		emit("dissemination", c, (int[]){p, 0}, 0);
		for (r = 0; r < p; r++) {
			struct traffic t = traffic_from(&x, r);

			assert_int_equal(t.receivers, rounds_of(p));
			assert_in_range(t.messages, t.receivers, 2 * t.receivers);
			assert_int_equal(t.elements, (p - 1) * 10);
		}
		scheds_free(&x);
	}
}

/* Recursive doubling: for powers of two one message a round; else no rank gets a block twice, and
 * none sends more than two messages a round. */
static void doubling_has_few_rounds(void **state)
{
	struct gci_coll c = {.count = 10};
	int p, r;

	(void)state;
	for (p = 2; p <= 20; p++) {
		emit("doubling", c, (int[]){p, 0}, 0);
		for (r = 0; r < p; r++) {
			struct traffic t = traffic_from(&x, r);
			uint64_t most = (p & (p - 1) ? 2u : 1u) * (unsigned)rounds_of(p);

			assert_in_range(t.messages, p & (p - 1) ? 1 : most, most);
		}
		assert_int_equal(x.report.most_in, (p - 1) * 10);
		scheds_free(&x);
	}
}

/* With blocks of different lengths, too, everybody gets each once. */
static void nobody_receives_twice(void **state)
{
	static const char *const names[] = {
		"ring", "simple", "spreading", "doubling", "dissemination"};
	static const uint64_t counts[] = {5, 0, 7, 100, 1, 30, 0};
	struct gci_coll c = {.count = 100, .counts = counts};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		emit(names[i], c, (int[]){4, 3, 0}, 1);
		assert_int_equal(x.report.most_in, 143); /* of those who have none themselves */
		scheds_free(&x);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(magpie_crosses_once),
		cmocka_unit_test(magpie_segments_do_not_wait),
		cmocka_unit_test(mpich_g2_doubles_between_clusters),
		cmocka_unit_test(dissemination_has_few_rounds),
		cmocka_unit_test(doubling_has_few_rounds),
		cmocka_unit_test(nobody_receives_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
