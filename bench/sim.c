/* SPDX-License-Identifier: MIT
 * How fast the simulator is, and what it says of a grid:
 *
 *	bench_sim [--check]			its speed, for some operations and many ranks
 *	bench_sim GRID OPERATION NBYTES		predicted time of every algorithm
 *
 * With --check the exit status is 1 if a million steps take more than a second, or 10,000 ranks
 * more than 10 s or 2 GiB.
 */
#include "base/clock.h"
#include "base/mem.h"
#include "base/units.h"
#include "collectives/models/limit.h"
#include "collectives/tuner/candidate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

/* Processor time: machines are shared. */
static uint64_t used_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * GCI_NS_PER_S + (uint64_t)t.tv_nsec;
}

static int topology(struct gci_topo *t, const char *text, const char *name)
{
	struct gci_error e = {0};
	int rc = gci_topo_parse(t, text, strlen(text), name, &e);

	if (rc)
		fprintf(stderr, "%s\n", e.text);
	return rc;
}

static struct gci_coll operation(const struct gci_topo *t, enum gci_kind kind, uint64_t nbytes)
{
	uint64_t n = gci_kind_has_vector(kind) ? 1 : (uint64_t)t->nranks;

	return (struct gci_coll){.kind = kind, .topo = t, .count = nbytes / 4 / n, .esize = 4};
}

static void every_algorithm(const struct gci_topo *t, enum gci_kind kind, uint64_t nbytes)
{
	struct gci_coll c = operation(t, kind, nbytes);
	uint64_t limit = gci_limit_ns(&c, 0);
	const struct gci_algorithm *a;
	struct gci_simnet net;

	if (gci_simnet_init(&net, t, NULL))
		return;
	printf("limit %.3f ms\n", (double)limit / 1e6);
	gci_each_algorithm (a) {
		struct gci_sim_op op = {.algorithm = a, .coll = &c};
		uint64_t start = used_ns();
		struct gci_sim_result r;

		if (a->kind != kind || gci_simulate(&net, &op, &r))
			continue;
		printf("%-24s %10.3f ms %6.2f x limit %9" PRIu64 " steps, %7.1f ms to simulate\n",
			a->name, (double)r.ns / 1e6, limit ? (double)r.ns / (double)limit : 0,
			r.nsteps, (double)(used_ns() - start) / 1e6);
		gci_sim_result_free(&r);
	}
	gci_simnet_free(&net);
}

static char *read_all(const char *path)
{
	FILE *f = fopen(path, "re");
	char *text = gci_calloc(1u << 20, 1);

	if (!f || !text || !fread(text, 1, (1u << 20) - 1, f)) {
		perror(path);
		gci_free(text);
		text = NULL;
	}
	if (f)
		fclose(f);
	return text;
}

static int of_grid(char **argv)
{
	int kind = gci_kind_find(argv[2]);
	char *text = read_all(argv[1]);
	struct gci_topo t;
	uint64_t nbytes;

	if (!text || kind < 0 || gci_parse_bytes(argv[3], &nbytes) || topology(&t, text, argv[1]))
		return 2;
	every_algorithm(&t, (enum gci_kind)kind, nbytes);
	gci_topo_free(&t);
	gci_free(text);
	return 0;
}

/* ---- speed */

static const struct load {
	enum gci_kind kind;
	const char *name;
	int nclusters, nhosts; /* of each */
	uint64_t nbytes, segment_nbytes;
} loads[] = {
	{GCI_BCAST, "chain", 2, 256, 32u << 20, 32u << 10},
	{GCI_BCAST, "binomial", 2, 256, 32u << 20, 32u << 10},
	{GCI_ALLGATHER, "ring", 2, 350, 32u << 20, 0},
	{GCI_ALLREDUCE, "ring", 2, 250, 32u << 20, 0},
	{GCI_ALLTOALL, "circular", 4, 175, 32u << 20, 0},
	{GCI_BCAST, "binomial", 10, 1000, 4u << 20, 64u << 10},
	{GCI_BCAST, "binary", 100, 100, 32u << 20, 1u << 20},
	{GCI_ALLREDUCE, "tree", 10, 1000, 8u << 20, 1u << 20},
};

static void clusters(struct gci_topo *t, const struct load *l)
{
	char *text = gci_calloc(1u << 20, 1);
	size_t n = 0, room = 1u << 20;
	int a, b;

	for (a = 0; text && a < l->nclusters; a++)
		n += (size_t)snprintf(text + n, room - n,
			"[cluster c%d]\nhosts = c%d-[1-%d]\nnic = 10Gbit\nlan_delay = 20us\n", a, a,
			l->nhosts);
	for (a = 0; text && a < l->nclusters; a++)
		for (b = a + 1; b < l->nclusters; b++)
			n += (size_t)snprintf(text + n, room - n,
				"[link c%d c%d]\nrate = 100Gbit\ndelay = 10ms\n", a, b);
	if (!text || topology(t, text, "grid"))
		exit(2);
	gci_free(text);
}

static int too_slow(
	const struct load *l, const struct gci_sim_result *r, uint64_t emit_ns, uint64_t ns)
{
	uint64_t per_million = (ns - emit_ns) * 1000000 / r->nsteps;
	struct rusage usage;
	uint64_t mib;

	getrusage(RUSAGE_SELF, &usage);
	mib = (uint64_t)usage.ru_maxrss / 1024;
	printf("%-10s %-9s %6d %9" PRIu64 " %9.0f %9.0f %11.0f %8" PRIu64 "\n",
		gci_kind_name(l->kind), l->name, l->nclusters * l->nhosts, r->nsteps,
		(double)emit_ns / 1e6, (double)(ns - emit_ns) / 1e6, (double)per_million / 1e6,
		mib);
	if (l->nclusters * l->nhosts < 10000)
		return per_million > GCI_NS_PER_S;
	return ns > 10 * GCI_NS_PER_S || mib > 2048;
}

static uint64_t emit_all(const struct gci_algorithm *a, const struct gci_coll *c)
{
	uint64_t start = used_ns();
	struct gci_sched s;
	int r;

	for (r = 0; r < c->topo->nranks; r++)
		if (!gci_emit(a, c, r, &s))
			gci_sched_free(&s);
	return used_ns() - start;
}

static int one_load(const struct load *l)
{
	struct gci_sim_result r;
	struct gci_simnet net;
	struct gci_sim_op op;
	struct gci_topo t;
	struct gci_coll c;
	uint64_t start, ns, emit_ns, least = UINT64_MAX;
	int i, rc = 0, bad = 1;

	clusters(&t, l);
	c = operation(&t, l->kind, l->nbytes);
	c.segment = l->segment_nbytes / c.esize;
	op = (struct gci_sim_op){.algorithm = gci_algorithm_find(l->kind, l->name), .coll = &c};
	if (!gci_simnet_init(&net, &t, NULL)) {
		emit_ns = emit_all(op.algorithm, &c);
		/* The first run also pays for pages that the process never had. */
		for (i = 0; i < 2 && !rc; i++) {
			start = used_ns();
			rc = gci_simulate(&net, &op, &r);
			ns = used_ns() - start;
			least = ns < least ? ns : least;
			if (!rc && i)
				bad = too_slow(l, &r, emit_ns, least);
			gci_sim_result_free(&r);
		}
		gci_simnet_free(&net);
	}
	gci_topo_free(&t);
	return bad;
}

static int speed(int check)
{
	size_t i;
	int bad = 0;

	printf("%-10s %-9s %6s %9s %9s %9s %11s %8s\n", "operation", "algorithm", "ranks", "steps",
		"emit ms", "run ms", "ms/M steps", "MiB");
	for (i = 0; i < sizeof(loads) / sizeof(*loads); i++)
		bad |= one_load(&loads[i]);
	return check && bad;
}

int main(int argc, char **argv)
{
	if (argc == 4)
		return of_grid(argv);
	if (argc == 1 || (argc == 2 && !strcmp(argv[1], "--check")))
		return speed(argc == 2);
	fprintf(stderr, "usage: bench_sim [--check] | GRID OPERATION NBYTES\n");
	return 2;
}
