/* SPDX-License-Identifier: MIT */
#include "tests/test.h"

#include "base/mem.h"
#include "base/prng.h"
#include "gridcoll/gridcoll.h"
#include "launcher/placement.h"

#include <stdio.h>

#define MOST 1000

struct shape {
	uint32_t nhosts, nclusters, fanout;
	int own;
	uint32_t clusters[MOST], starters[MOST];
};

/* The hosts of each cluster together, or dealt out, or at random. */
static void deal(struct shape *s, int how, struct gci_prng *prng)
{
	uint32_t i;

	for (i = 0; i < s->nhosts; i++)
		s->clusters[i] = how == 0   ? i * s->nclusters / s->nhosts
				 : how == 1 ? i % s->nclusters
					    : (uint32_t)gci_prng_below(prng, s->nclusters);
}

static int cluster_of(const struct shape *s, uint32_t host)
{
	return host == GCI_STARTER_SELF ? s->own : (int)s->clusters[host];
}

/* Of the deepest host; also that who starts comes before whom it starts, and starts few. */
static uint32_t check_numbers(const struct shape *s)
{
	static uint32_t depth[MOST], starts[MOST + 1];
	uint32_t i, deepest = 0;

	memset(starts, 0, sizeof(starts));
	for (i = 0; i < s->nhosts; i++) {
		uint32_t by = s->starters[i];

		assert_true(by == GCI_STARTER_SELF || by < i);
		depth[i] = by == GCI_STARTER_SELF ? 1 : depth[by] + 1;
		deepest = depth[i] > deepest ? depth[i] : deepest;
		assert_true(++starts[by == GCI_STARTER_SELF ? MOST : by] <= s->fanout);
	}
	return deepest;
}

/* One connection into each cluster, to its first host; none into our own. */
static void check_clusters(const struct shape *s)
{
	static uint32_t into[MOST];
	uint32_t i;

	memset(into, 0, sizeof(into));
	for (i = 0; i < s->nhosts; i++) {
		int c = cluster_of(s, i);

		if (c == cluster_of(s, s->starters[i]))
			continue;
		assert_true(c != s->own);
		assert_int_equal(into[c]++, 0);
	}
}

/* Levels that `n` need where each host starts `fanout`. */
static uint32_t levels(uint32_t n, uint32_t fanout)
{
	uint32_t level = 0, width = 1;

	while (n) {
		width = width > n / fanout ? n : width * fanout;
		n -= width;
		level++;
	}
	return level;
}

static void check(struct shape *s)
{
	uint32_t deepest;

	assert_int_equal(
		gci_starters(s->clusters, s->nhosts, s->nclusters, s->own, s->fanout, s->starters),
		0);
	deepest = check_numbers(s);
	if (s->nhosts <= s->fanout) {
		assert_in_range(deepest, 0, 1);
		return;
	}
	check_clusters(s);
	/* To the first of a cluster, which may have one place left for it, and down from that. */
	assert_in_range(
		deepest, 2, levels(s->nclusters, s->fanout - 1) + 1 + levels(s->nhosts, s->fanout));
}

static void all_shapes(void **state)
{
	static const uint32_t sizes[] = {1, 2, 7, 32, 33, 100, 1000},
			      fanouts[] = {2, 3, 5, 32, 2000};
	static const uint32_t clusters[] = {1, 2, 3, 4, 5, 40};
	struct gci_prng prng = {.state = 1};
	static struct shape s;
	size_t i, k, f;
	int how;

	(void)state;
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		for (k = 0; k < sizeof(clusters) / sizeof(*clusters); k++)
			for (f = 0; f < sizeof(fanouts) / sizeof(*fanouts); f++)
				for (how = 0; how < 3; how++) {
					s.nhosts = sizes[i];
					s.nclusters = clusters[k];
					s.fanout = fanouts[f];
					deal(&s, how, &prng);
					for (s.own = -1; s.own < (int)s.nclusters; s.own++)
						check(&s);
				}
}

/* At the border, and at the size that was asked for. */
static void known_depths(void **state)
{
	static const struct {
		uint32_t nhosts, nclusters;
		int own;
		uint32_t depth;
	} known[] = {
		{32, 1, 0, 1},
		{33, 1, 0, 2},
		{1000, 1, 0, 2},
		{33, 1, -1, 2},
		{1000, 1, -1, 3},
		{1000, 5, -1, 3},
		{1000, 5, 0, 3},
		{1000, 1000, -1, 2},
	};
	static struct shape s;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(known) / sizeof(*known); i++) {
		s.nhosts = known[i].nhosts;
		s.nclusters = known[i].nclusters;
		s.own = known[i].own;
		s.fanout = GCI_STARTERS_FANOUT;
		deal(&s, 0, NULL);
		check(&s);
		assert_int_equal(check_numbers(&s), known[i].depth);
	}
}

static void one_by_one(void **state)
{
	/* Two in our cluster, four in another, one in a third. */
	static const uint32_t clusters[] = {0, 0, 1, 1, 1, 1, 2};
	static const uint32_t expected[] = {GCI_STARTER_SELF, 0, GCI_STARTER_SELF, 2, 3, 3, 2};
	uint32_t starters[7];

	(void)state;
	assert_int_equal(gci_starters(clusters, 7, 3, 0, 2, starters), 0);
	assert_memory_equal(starters, expected, sizeof(expected));
}

static void lack_of_memory(void **state)
{
	static const uint32_t clusters[] = {0, 0, 0};
	uint32_t starters[3];
	unsigned long n;

	(void)state;
	for (n = 1; n <= 2; n++) {
		gci_mem_fail_at(n);
		assert_int_equal(gci_starters(clusters, 3, 1, 0, 2, starters), GCOLL_ERR_NOMEM);
	}
	gci_mem_fail_at(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_shapes),
		cmocka_unit_test(known_depths),
		cmocka_unit_test(one_by_one),
		cmocka_unit_test(lack_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
