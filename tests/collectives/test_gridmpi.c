/* SPDX-License-Identifier: MIT
 * The modified van de Geijn bcast and Rabenseifner allreduce keep what their paper says (Matsuda
 * 2006, 2.2 to 2.5): how many nodes send between each pair of clusters, how much, and who. */
#include "tests/test.h"

#include "base/mem.h"
#include "testing/verify.h"
#include "tests/collectives/topologies.h"

#include <stdio.h>
#include <string.h>

#define MAX_RANKS    40
#define MAX_CLUSTERS 5

/* What the schedules of one operation send between clusters. */
struct wan {
	int nsenders[MAX_CLUSTERS][MAX_CLUSTERS];
	uint64_t elements[MAX_CLUSTERS][MAX_CLUSTERS];
	uint64_t sent[MAX_RANKS][MAX_CLUSTERS]; /* [rank][to cluster] */
	uint64_t received[MAX_RANKS];           /* from other clusters */
	int first_to[MAX_CLUSTERS];             /* cluster that member 0's first message goes to */
	uint64_t most_out, most_in, all_elements; /* of the verifier */
};

static void count_rank(struct wan *w, const struct gci_topo *t, const struct gci_sched *s)
{
	int mine = t->cluster[s->rank];
	uint32_t i;

	for (i = 0; i < s->nsteps; i++) {
		const struct gci_step *p = &s->steps[i];
		int to = p->kind == GCI_STEP_SEND ? t->cluster[p->peer] : mine;

		if (to == mine || !p->src.length)
			continue;
		if (!t->index[s->rank] && w->first_to[mine] < 0)
			w->first_to[mine] = to;
		w->nsenders[mine][to] += !w->sent[s->rank][to];
		w->sent[s->rank][to] += p->src.length;
		w->received[p->peer] += p->src.length;
		w->elements[mine][to] += p->src.length;
	}
}

static const struct gci_algorithm *find(enum gci_kind kind, const char *name)
{
	const struct gci_algorithm *a = gci_algorithm_find(kind, name);

	assert_non_null(a);
	return a;
}

/* Emits, proves and counts. */
static void run(struct wan *w, const struct gci_topo *t, enum gci_kind kind, const char *name,
	uint64_t count, uint32_t senders, struct gci_sched *keep)
{
	struct gci_coll c = {
		.kind = kind, .topo = t, .count = count, .esize = 4, .senders = senders};
	struct gci_sched scheds[MAX_RANKS];
	const struct gci_sched *list[MAX_RANKS] = {NULL};
	struct gci_verify_report report;
	struct gci_error e = {0};
	int r;

	memset(w, 0, sizeof(*w));
	memset(w->first_to, -1, sizeof(w->first_to));
	for (r = 0; r < t->nranks; r++) {
		assert_int_equal(gci_emit(find(kind, name), &c, r, &scheds[r]), 0);
		list[r] = &scheds[r];
		count_rank(w, t, &scheds[r]);
	}
	if (gci_verify(list, &c, 1, &report, &e))
		fail_msg("%s: %s", name, e.text);
	w->most_out = report.most_out;
	w->most_in = report.most_in;
	w->all_elements = report.wan_elements;
	for (r = 0; r < t->nranks; r++)
		if (keep)
			keep[r] = scheds[r];
		else
			gci_sched_free(&scheds[r]);
}

static uint32_t power_of_two_within(uint32_t n)
{
	uint32_t p = 1;

	while (2 * p <= n)
		p *= 2;
	return p;
}

/* With forwarding, exactly as many as were asked for, each sending M/n; with the others, the next
 * power of two below, or all. */
static void as_many_senders_as_asked_for(void **state)
{
	static const struct {
		enum gci_kind kind;
		const char *name;
		int any;
	} all[] = {
		{GCI_BCAST, "vandegeijn-mod", 1},
		{GCI_BCAST, "vandegeijn-mod-early", 0},
		{GCI_BCAST, "vandegeijn-mod-merge", 0},
		{GCI_ALLREDUCE, "rabenseifner-mod", 1},
		{GCI_ALLREDUCE, "rabenseifner-mod-merge", 0},
	};
	static const int sizes[][4] = {{8, 8, 0}, {6, 6, 0}, {8, 8, 8, 0}, {7, 5, 9, 0}};
	struct gci_topo t;
	struct wan w;
	uint32_t n;
	size_t i, k;
	int a, b;

	(void)state;
	for (k = 0; k < sizeof(sizes) / sizeof(*sizes); k++) {
		topology_make(&t, sizes[k], (int)k & 1, 10);
		for (i = 0; i < sizeof(all) / sizeof(*all); i++)
			for (n = 1; n <= 9; n++) {
				run(&w, &t, all[i].kind, all[i].name, 5040, n, NULL);
				for (a = 0; a < t.nclusters; a++)
					for (b = 0; b < t.nclusters; b++) {
						int to = gci_topo_size(&t, b);
						int h = gci_topo_size(&t, a);
						uint32_t least = (uint32_t)(h < to ? h : to);
						uint32_t want = n < least ? n : least;

						if (!all[i].any && want < (uint32_t)h)
							want = power_of_two_within(want);
						if (a == b || (all[i].kind == GCI_BCAST && a))
							want = 0;
						assert_int_equal(w.nsenders[a][b], want);
					}
			}
		gci_topo_free(&t);
	}
}

/* Links of different width, and different in the two directions: each pair has its own number. */
static void a_number_of_its_own_for_each_pair(void **state)
{
	static const char text[] = "[cluster a]\nhosts = a[1-8]\nnic = 1Gbit\n"
				   "[cluster b]\nhosts = b[1-8]\nnic = 1Gbit\n"
				   "[cluster c]\nhosts = c[1-6]\nnic = 2Gbit\n"
				   "[link a > b]\nrate = 3Gbit\ndelay = 10ms\n[link b > a]\nrate = "
				   "7Gbit\ndelay = 10ms\n"
				   "[link a c]\nrate = 10Gbit\ndelay = 10ms\n"
				   "[link b > c]\nrate = 900Mbit\ndelay = 10ms\n"
				   "[link c > b]\nrate = 10Gbit\nsenders = 2\ndelay = 10ms\n";
	static const int want[3][3] = {{0, 3, 6}, {7, 0, 1}, {5, 2, 0}};
	struct gci_topo t;
	struct wan w;
	int i, k;

	(void)state;
	topology_parse(&t, text);
	run(&w, &t, GCI_ALLREDUCE, "rabenseifner-mod", 100000, 0, NULL);
	for (i = 0; i < 3; i++)
		for (k = 0; k < 3; k++)
			assert_int_equal(w.nsenders[i][k], want[i][k]);
	run(&w, &t, GCI_BCAST, "vandegeijn-mod", 100000, 0, NULL);
	for (k = 0; k < 3; k++)
		assert_int_equal(w.nsenders[0][k], want[0][k]);
	gci_topo_free(&t);
}

/* 2.5: one city in the middle of two others. Pairs that share a link of 6 senders have three each,
 * whether or not the city has ranks itself; a link that nobody shares has all. */
static void pairs_by_a_city_in_the_middle_share(void **state)
{
	static const char text[] =
		"[cluster kyoto]\nhosts = k[1-8]\nnic = 1Gbit\n"
		"[cluster tokyo]\nhosts = t[1-8]\nnic = 1Gbit\n"
		"[cluster sendai]\nhosts = s[1-8]\nnic = 1Gbit\n"
		"[cluster osaka]\nhosts = o[1-8]\nnic = 1Gbit\n"
		"[link kyoto osaka]\nrate = 6Gbit\n[link osaka tokyo]\nrate = 10Gbit\n"
		"[link kyoto tokyo]\nvia = osaka\n[link kyoto sendai]\nvia = osaka\n"
		"[link osaka sendai]\nrate = 8Gbit\n[link tokyo sendai]\nrate = 7Gbit\n";
	static const int with[4][4] = {{0, 2, 2, 2}, {2, 0, 7, 5}, {2, 7, 0, 4}, {2, 5, 4, 0}};
	static const int without[3][3] = {{0, 3, 3}, {3, 0, 7}, {3, 7, 0}};
	struct gci_error e = {0};
	struct gci_grid g;
	struct gci_topo t;
	struct wan w;
	int i, k, n;

	(void)state;
	assert_int_equal(gci_grid_parse(&g, text, strlen(text), "g", &e), 0);
	for (n = 4; n >= 3; n--) {
		assert_int_equal(gci_topo_create(&t, &g, NULL, 8 * n), 0);
		run(&w, &t, GCI_ALLREDUCE, "rabenseifner-mod", 1 << 16, 0, NULL);
		for (i = 0; i < n; i++)
			for (k = 0; k < n; k++)
				assert_int_equal(
					w.nsenders[i][k], n == 4 ? with[i][k] : without[i][k]);
		gci_topo_free(&t);
	}
	gci_grid_free(&g);
}

/* Table 1: M/nB over the WAN, M/B + M/B at the busiest NIC besides. */
static void traffic_of_table_1(void **state)
{
	const uint64_t m = 8 * 8 << 14;
	struct gci_topo t;
	struct wan w;
	uint32_t n;
	int r;

	(void)state;
	topology_make(&t, (int[]){8, 8, 0}, 0, 10);
	for (n = 1; n <= 8; n *= 2) {
		run(&w, &t, GCI_BCAST, "vandegeijn-mod", m, n, NULL);
		assert_true(w.all_elements == m);
		for (r = 0; r < 8; r++)
			assert_true(w.sent[r][1] == ((uint32_t)r < n ? m / n : 0));
		assert_true(w.most_out == 2 * (m - m / 8) + m / n);
		run(&w, &t, GCI_ALLREDUCE, "rabenseifner-mod", m, n, NULL);
		assert_true(w.all_elements == 2 * m);
		for (r = 0; r < 16; r++)
			assert_true(w.sent[r][r < 8] == ((uint32_t)r % 8 < n ? m / n : 0));
		assert_true(w.most_out == 2 * (m - m / 8) + m / n);
	}
	/* At n = h the copy is from each to its opposite alone. */
	for (r = 8; r < 16; r++)
		assert_true(w.received[r] == m / 8);
	gci_topo_free(&t);
	topology_make(&t, (int[]){8, 8, 8, 8, 0}, 0, 10); /* one to all, all to all */
	run(&w, &t, GCI_BCAST, "vandegeijn-mod", m, 4, NULL);
	assert_true(w.all_elements == 3 * m);
	run(&w, &t, GCI_ALLREDUCE, "rabenseifner-mod", m, 4, NULL);
	assert_true(w.all_elements == 4 * 3 * m);
	gci_topo_free(&t);
}

/* How many ranks of a cluster have to do with the WAN. */
static int communicating(const struct wan *w, const struct gci_topo *t, int cluster)
{
	int r, k, n = 0;

	for (r = 0; r < t->nranks; r++) {
		uint64_t some = w->received[r];

		for (k = 0; k < t->nclusters; k++)
			some += w->sent[r][k];
		n += t->cluster[r] == cluster && some;
	}
	return n;
}

/* 2.5: where clusters differ by more than two times, the larger one does not cut finer than the
 * smaller one, up to a power of two; where by less, all take part. */
static void unequal_clusters_are_matched(void **state)
{
	struct gci_topo t;
	struct wan w;

	(void)state;
	topology_make(&t, (int[]){19, 4, 0}, 0, 10);
	run(&w, &t, GCI_BCAST, "vandegeijn-mod", 1 << 16, 0, NULL);
	assert_int_equal(communicating(&w, &t, 0), 4);
	assert_int_equal(communicating(&w, &t, 1), 4);
	run(&w, &t, GCI_ALLREDUCE, "rabenseifner-mod", 1 << 16, 0, NULL);
	assert_int_equal(communicating(&w, &t, 0), 4);
	assert_int_equal(communicating(&w, &t, 1), 4);
	assert_true(w.elements[0][1] == 1 << 16 && w.elements[1][0] == 1 << 16);
	gci_topo_free(&t);

	topology_make(&t, (int[]){3, 16, 0}, 0, 10);
	run(&w, &t, GCI_BCAST, "vandegeijn-mod", 1 << 16, 0, NULL);
	assert_int_equal(communicating(&w, &t, 0), 3);
	assert_int_equal(communicating(&w, &t, 1), 4);
	gci_topo_free(&t);

	topology_make(&t, (int[]){1, 33, 0}, 0, 10);
	run(&w, &t, GCI_ALLREDUCE, "rabenseifner-mod", 1 << 16, 0, NULL);
	assert_int_equal(communicating(&w, &t, 1), 1);
	gci_topo_free(&t);

	topology_make(&t, (int[]){6, 4, 0}, 0, 10);
	run(&w, &t, GCI_BCAST, "vandegeijn-mod", 6 << 10, 0, NULL);
	assert_int_equal(communicating(&w, &t, 1), 4);
	run(&w, &t, GCI_ALLREDUCE, "rabenseifner-mod", 6 << 10, 0, NULL);
	assert_int_equal(communicating(&w, &t, 0), 6);
	gci_topo_free(&t);
}

/* With more clusters, senders to different ones are different nodes while there are enough, and
 * the clusters do not all begin with the same one. */
static void senders_are_skewed(void **state)
{
	struct gci_topo t;
	struct wan w;
	int r, k;

	(void)state;
	topology_make(&t, (int[]){9, 9, 9, 9, 0}, 1, 10);
	run(&w, &t, GCI_ALLREDUCE, "rabenseifner-mod", 9 << 10, 3, NULL);
	for (r = 0; r < t.nranks; r++) {
		int to = 0;

		for (k = 0; k < t.nclusters; k++)
			to += w.sent[r][k] != 0;
		assert_int_equal(to, 1);
	}
	run(&w, &t, GCI_ALLREDUCE, "rabenseifner-mod", 9 << 10, 9, NULL);
	for (k = 0; k < t.nclusters; k++)
		assert_int_equal(w.first_to[k], (k + 1) % t.nclusters);
	gci_topo_free(&t);
}

/* Marks all that step `i` waits for. */
static void mark(const struct gci_sched *s, uint32_t i, char *marks)
{
	uint32_t k;

	for (k = 0; k < s->steps[i].ndeps; k++) {
		uint32_t on = s->deps[s->steps[i].deps + k];

		if (!marks[on]) {
			marks[on] = 1;
			mark(s, on, marks);
		}
	}
}

/* Nothing waits for an answer from the other side, which the last phase of allreduce could. What was
 * forwarded is sent when it has come, in its turn; a sender's own part when all has come that others
 * forward to it, and is the last. */
static void nothing_waits_that_need_not(void **state)
{
	struct gci_sched scheds[16];
	struct gci_topo t;
	struct wan w;
	uint32_t i, k;
	int r;

	(void)state;
	topology_make(&t, (int[]){8, 8, 0}, 0, 10);
	run(&w, &t, GCI_ALLREDUCE, "rabenseifner-mod", 1 << 14, 1, scheds);
	for (r = 0; r < 16; r++) {
		const struct gci_sched *s = &scheds[r];
		char *marks = gci_calloc(s->nsteps, 1);
		int sends[8] = {0}; /* [n]: those that wait for n to come */

		assert_non_null(marks);
		for (i = 0; i < s->nsteps; i++) {
			const struct gci_step *p = &s->steps[i];
			int came = 0;

			for (k = 0; k < p->ndeps; k++) {
				const struct gci_step *on = &s->steps[s->deps[p->deps + k]];

				assert_false(on->kind == GCI_STEP_SEND && on->peer / 8 != r / 8);
			}
			if (p->kind != GCI_STEP_SEND || p->peer / 8 == r / 8)
				continue;
			memset(marks, 0, s->nsteps);
			mark(s, i, marks);
			for (k = 0; k < s->nsteps; k++) {
				if (!marks[k] || s->steps[k].kind != GCI_STEP_RECV)
					continue;
				assert_int_equal(s->steps[k].peer / 8, r / 8);
				came++;
			}
			assert_in_range(came, 1, 7);
			sends[came]++;
		}
		for (k = 1; k < 8; k++)
			assert_int_equal(sends[k], r % 8 ? 0 : 1 + (k == 7));
		gci_free(marks);
	}
	for (r = 0; r < 16; r++)
		gci_sched_free(&scheds[r]);
	gci_topo_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_many_senders_as_asked_for),
		cmocka_unit_test(a_number_of_its_own_for_each_pair),
		cmocka_unit_test(pairs_by_a_city_in_the_middle_share),
		cmocka_unit_test(traffic_of_table_1),
		cmocka_unit_test(unequal_clusters_are_matched),
		cmocka_unit_test(senders_are_skewed),
		cmocka_unit_test(nothing_waits_that_need_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
