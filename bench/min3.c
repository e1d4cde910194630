/* SPDX-License-Identifier: MIT
 * What it costs to plan an allgather.
 *	bench_min3 [--check] [NHOSTS...]
 * prints, for 20 and 200 hosts or as many as asked for, per grid and planner, the median time of
 * planning and the time that the plan predicts. With --check the exit status is 1 if a median of
 * Min3 is 10 ms or more up to 20 hosts, or 2 s or more up to 200; but for clusters of one host,
 * where no two hosts are alike and little can be left out. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/median.h"
#include "base/mem.h"
#include "collectives/allgather/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NRUNS  5
#define NBYTES (256u << 10)

static const struct planner {
	const char *name;
	enum gci_planner how;
	int half_duplex;
} planners[] = {
	{"min3", GCI_PLAN_MIN3, 0},
	{"min3-half", GCI_PLAN_MIN3, 1},
	{"trees-greedy", GCI_PLAN_TREES_GREEDY, 0},
	{"trees-annealed", GCI_PLAN_TREES_ANNEALED, 0},
};

/* ---- grids of n hosts */

/* Gupta 2007, tables 1 and 2, in its proportions. */
static void three_sites(struct gci_buf *text, int n)
{
	static const char *const nics[] = {"85.19", "289.33", "81.86"};
	static const char *const flows[] = {
		"", "1.44", "1.25", "1.28", "", "4.75", "1.16", "4.75", ""};
	int sizes[] = {n - 3 * (n / 5), n / 5, 2 * (n / 5)}, a, b;

	for (a = 0; a < 3; a++)
		gci_buf_printf(text, "[cluster c%d]\nhosts = c%dh[1-%d]\nnic = %sMbit\n", a, a,
			sizes[a], nics[a]);
	for (a = 0; a < 3; a++)
		for (b = 0; b < 3; b++)
			if (a != b)
				gci_buf_printf(text,
					"[link c%d > c%d]\nflow_rate = %sMbit\nstreams = 1\n"
					"delay = %dms\n",
					a, b, flows[3 * a + b], a && b ? 76 : 50);
}

/* `size` hosts each, links with delays of their own. */
static void clusters(struct gci_buf *text, int n, int size)
{
	int a, b, nclusters = n / size;

	for (a = 0; a < nclusters; a++)
		gci_buf_printf(
			text, "[cluster c%d]\nhosts = c%dh[1-%d]\nnic = 1Gbit\n", a, a, size);
	for (a = 0; a < nclusters; a++)
		for (b = 0; b < a; b++)
			gci_buf_printf(text, "[link c%d c%d]\nrate = 10Gbit\ndelay = %dms\n", b, a,
				10 + (7 * a + 3 * b) % 11);
}

static void one_lan(struct gci_buf *text, int n)
{
	clusters(text, n, n);
}

static void clusters_of_five(struct gci_buf *text, int n)
{
	clusters(text, n, 5);
}

static void clusters_of_one(struct gci_buf *text, int n)
{
	clusters(text, n, 1);
}

static const struct shape {
	const char *name;
	void (*write)(struct gci_buf *text, int n);
} shapes[] = {
	{"three sites", three_sites},
	{"one LAN", one_lan},
	{"clusters of 5", clusters_of_five},
	{"clusters of 1", clusters_of_one},
};

static int make_net(struct gci_net *net, const struct shape *shape, int n)
{
	struct gci_buf text = {0};
	struct gci_error e = {0};
	struct gci_topo t;
	int rc;

	shape->write(&text, n);
	rc = gci_topo_parse(&t, gci_buf_cstr(&text), text.len, "bench", &e);
	gci_buf_free(&text);
	if (rc) {
		fprintf(stderr, "%s\n", e.text);
		return rc;
	}
	rc = gci_net_of(net, &t);
	gci_topo_free(&t);
	return rc;
}

/* ---- one planner */

/* The median; 0: failed. */
static uint64_t measure(const struct gci_net *net, const struct planner *p, const uint64_t *nbytes,
	uint64_t *predicted_ns)
{
	double ns[NRUNS];
	struct gci_plan plan;
	uint64_t begin;
	int i;

	for (i = 0; i < NRUNS; i++) {
		begin = gci_now_ns();
		if (gci_plan_make(&plan, net, nbytes, p->how, p->half_duplex))
			return 0;
		ns[i] = (double)(gci_now_ns() - begin);
		*predicted_ns = plan.end_ns;
		gci_plan_free(&plan);
	}
	return (uint64_t)gci_median(ns, NRUNS);
}

static int too_slow(const struct shape *shape, const struct planner *p, int n, uint64_t ns)
{
	return shape->write != clusters_of_one && p->how == GCI_PLAN_MIN3 &&
	       ((n <= 20 && ns >= 10 * GCI_NS_PER_MS) || (n <= 200 && ns >= 2 * GCI_NS_PER_S));
}

/* Blocks alike, and of as many lengths as there are hosts. */
static int measure_all(const struct shape *shape, int n, int check)
{
	uint64_t nbytes[2][GCI_PLAN_MAX_HOSTS], ns, predicted_ns = 0;
	struct gci_net net;
	int i, k, bad = 0;

	for (i = 0; i < n; i++) {
		nbytes[0][i] = NBYTES;
		nbytes[1][i] = NBYTES / 2 + 997 * (unsigned)i;
	}
	if (make_net(&net, shape, n))
		return 1;
	for (k = 0; k < 2; k++)
		for (i = 0; i < (int)(sizeof(planners) / sizeof(*planners)); i++) {
			ns = measure(&net, &planners[i], nbytes[k], &predicted_ns);
			printf("%4d hosts  %-14s %-16s %-10s %10.3f ms   predicts %10.3f s\n", n,
				shape->name, planners[i].name, k ? "unalike" : "alike",
				(double)ns / 1e6, (double)predicted_ns / 1e9);
			fflush(stdout);
			bad |= !ns || (check && too_slow(shape, &planners[i], n, ns));
		}
	gci_net_free(&net);
	return bad;
}

static int measure_size(const char *size, int check)
{
	int n = atoi(size), bad = 0;
	size_t i;

	if (n < 5 || n > GCI_PLAN_MAX_HOSTS) {
		fprintf(stderr, "bench_min3: %s hosts, expected 5 to %d\n", size,
			GCI_PLAN_MAX_HOSTS);
		return 2;
	}
	for (i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
		if (shapes[i].write != clusters_of_one || n <= GCI_GRID_MAX_CLUSTERS)
			bad |= measure_all(&shapes[i], n, check);
	return bad;
}

int main(int argc, char **argv)
{
	int check = argc > 1 && !strcmp(argv[1], "--check"), bad = 0, i;

	if (argc == 1 + check)
		return measure_size("20", check) | measure_size("200", check);
	for (i = 1 + check; i < argc; i++)
		bad |= measure_size(argv[i], check);
	return bad;
}
