/* SPDX-License-Identifier: MIT
 * What it costs one rank of ten thousand to write its schedule.
 *	bench_emit [--check] [KIND[:NAME]]
 * prints, per algorithm and grid, the dearest of some ranks: the median time of its emits, steps,
 * bytes of the schedule per step, and the most memory that emitting took at a time. With --check
 * the exit status is 1 if a median is 10 ms or more, or memory is out of proportion to steps.
 * Algorithms that plan globally are shown, once and on fewer ranks, but not with --check. */
#include "base/buf.h"
#include "base/median.h"
#include "collectives/coll.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NRANKS       10000
#define NPLANNED     200 /* ranks, for algorithms that plan for all of them */
#define NRUNS        5
#define MOST_NS      10000000u
#define WINDOW       (8 << 20) /* elements, of 4 bytes */
#define BYTES_A_STEP 600       /* the builder's maps and lists are larger than the schedule */
#define BYTES_A_RANK 128       /* of orders of all ranks that an algorithm needs */

/* ---- memory: base/mem.c's calls of the C library come here (-Wl,--wrap) */

void *__real_calloc(size_t n, size_t size);
void *__real_reallocarray(void *p, size_t n, size_t size);
void __real_free(void *p);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);
void __wrap_free(void *p);

static size_t in_use, most_in_use;

static void *taken(void *p)
{
	in_use += malloc_usable_size(p);
	most_in_use = in_use > most_in_use ? in_use : most_in_use;
	return p;
}

void *__wrap_calloc(size_t n, size_t size)
{
	return taken(__real_calloc(n, size));
}

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
	size_t before = malloc_usable_size(p);
	void *q = __real_reallocarray(p, n, size);

	if (q)
		in_use -= before;
	return q ? taken(q) : NULL;
}

void __wrap_free(void *p)
{
	in_use -= malloc_usable_size(p);
	__real_free(p);
}

/* ---- grids */

static const struct shape {
	const char *name;
	int nclusters;
} shapes[] = {{"one cluster", 1}, {"two clusters", 2}, {"100 clusters", 100}};

static int make_topo(struct gci_topo *t, int nclusters, int nranks)
{
	struct gci_buf text = {0};
	struct gci_error e = {0};
	int i, k, rc;

	for (i = 0; i < nclusters; i++)
		gci_buf_printf(&text, "[cluster c%d]\nhosts = c%dh[1-%d]\nnic = 1Gbit\n", i, i,
			nranks / nclusters);
	for (i = 0; i < nclusters; i++)
		for (k = 0; k < i; k++)
			gci_buf_printf(&text, "[link c%d c%d]\nrate = 10Gbit\ndelay = %dms\n", k, i,
				10 + i % 7);
	rc = gci_topo_parse(t, gci_buf_cstr(&text), text.len, "bench", &e);
	gci_buf_free(&text);
	if (rc)
		fprintf(stderr, "%s\n", e.text);
	return rc;
}

/* ---- one algorithm on one grid */

struct result {
	uint64_t ns;
	size_t nsteps, nbytes, most_nbytes;
};

/* Of this process's own work, whatever else the machine does. */
static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int measure_rank(
	const struct gci_algorithm *a, const struct gci_coll *c, int rank, struct result *r)
{
	int nruns = a->max_ranks ? 1 : NRUNS, i, rc;
	double ns[NRUNS];
	uint64_t begin;
	struct gci_sched s;

	for (i = 0; i < nruns; i++) {
		size_t before = in_use;

		most_in_use = in_use;
		begin = cpu_ns();
		rc = gci_emit(a, c, rank, &s);
		if (rc)
			return rc;
		ns[i] = (double)(cpu_ns() - begin);
		r->nsteps = s.nsteps;
		r->nbytes = in_use - before;
		r->most_nbytes = most_in_use - before;
		gci_sched_free(&s);
	}
	r->ns = (uint64_t)gci_median(ns, (size_t)nruns);
	return 0;
}

static int is_dear(const struct result *r, int nranks)
{
	return r->ns >= MOST_NS ||
	       r->most_nbytes > BYTES_A_STEP * (r->nsteps + 64) + BYTES_A_RANK * (size_t)nranks;
}

/* Returns 1 if it costs too much, a negative status on failure. */
static int measure(const struct gci_algorithm *a, const struct gci_topo *t, const char *grid)
{
	int n = t->nranks, ranks[] = {0, 1, n / 2, n - 1}, i, rc, dear = 0;
	int blocks = a->kind >= GCI_REDUCE_SCATTER && a->kind <= GCI_ALLTOALL;
	struct gci_coll c = {.kind = a->kind,
		.topo = t,
		.count = blocks ? WINDOW / (unsigned)n : WINDOW,
		.esize = 4};
	struct result worst = {0};
	char name[64];

	for (i = 0; i < 4; i++) {
		struct result r = {0};

		rc = measure_rank(a, &c, ranks[i], &r);
		if (rc)
			return rc;
		dear |= !a->max_ranks && is_dear(&r, n);
		if (r.ns >= worst.ns)
			worst = r;
	}
	snprintf(name, sizeof(name), "%s:%s", gci_kind_name(a->kind), a->name);
	printf("%-34s %-13s %6d %9.3f %7zu %6zu %8zu%s\n", name, grid, n, (double)worst.ns / 1e6,
		worst.nsteps, worst.nsteps ? worst.nbytes / worst.nsteps : 0,
		worst.most_nbytes >> 10, dear ? "  too much" : "");
	return dear;
}

static int wanted(const struct gci_algorithm *a, const char *only)
{
	const char *name = only ? strchr(only, ':') : NULL, *kind = gci_kind_name(a->kind);
	size_t len = only ? (name ? (size_t)(name - only) : strlen(only)) : 0;

	return !only || (strlen(kind) == len && !strncmp(kind, only, len) &&
				(!name || !strcmp(name + 1, a->name)));
}

static int most_ranks(const struct gci_algorithm *a)
{
	if (!a->max_ranks)
		return NRANKS;
	return a->max_ranks < NPLANNED ? a->max_ranks : NPLANNED;
}

/* All algorithms on one grid; adds up in *dear. */
static int measure_all(const struct shape *shape, const char *only, int check, int *dear)
{
	const struct gci_algorithm *a;
	int rc = 0;

	gci_each_algorithm (a) {
		int n = most_ranks(a);
		struct gci_topo t;

		if (!wanted(a, only) || n < shape->nclusters || (check && a->max_ranks))
			continue;
		rc = make_topo(&t, shape->nclusters, n);
		if (rc)
			break;
		rc = measure(a, &t, shape->name);
		gci_topo_free(&t);
		if (rc < 0)
			break;
		*dear += rc;
	}
	return rc < 0 ? rc : 0;
}

int main(int argc, char **argv)
{
	int check = argc > 1 && !strcmp(argv[1], "--check"), dear = 0;
	const char *only = argc > 1 + check ? argv[1 + check] : NULL;
	size_t i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("%-34s %-13s %6s %9s %7s %6s %8s\n", "algorithm", "grid", "ranks", "ms", "steps",
		"B/step", "KiB peak");
	for (i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
		if (measure_all(&shapes[i], only, check, &dear)) {
			fprintf(stderr, "out of memory, or a bad grid\n");
			return 2;
		}
	if (check && dear)
		fprintf(stderr, "%d cost too much\n", dear);
	return check && dear ? 1 : 0;
}
