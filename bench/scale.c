/* SPDX-License-Identifier: MIT
 * What a job of many ranks costs each of them, on one machine over loopback:
 *	gridcoll-run -n 512 --quiet-prefix bench_scale [OPTION=VALUE ...]
 * runs barriers, broadcasts and allreduces, checks their results, and prints what a rank took:
 * connections, descriptors, threads, memory besides its own buffers, and what it used while it
 * waited. The status is 1 if a result is wrong, or a limit does not hold.
 *	count=BYTES		of broadcasts and allreduces (1MiB)
 *	repeat=N		of each of them (3)
 *	short=N			short operations, after which no descriptor may be left (1000)
 *	idle=TIME		wait so long for rank 0 (1s)
 *	connections=N		the limit per rank (0: none)
 *	memory=BYTES		the limit per rank, at its peak (0: none)
 *	tuning=NAME, allreduce=NAME, and so on	as gcoll_comm_set() */
#include "bench/scale.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/units.h"

#include <gridcoll/gridcoll.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

struct options {
	uint64_t count, repeat, ops, idle_ns;
	struct scale_limits limits;
};

static gcoll_comm *world;
static int rank, size;
static uint32_t *in, *out;
static int wrong;

static void must(int rc, const char *what)
{
	if (!rc)
		return;
	fprintf(stderr, "rank %d: %s: %s\n", rank, what, gcoll_last_error());
	exit(1);
}

static void check(int ok, const char *what)
{
	if (!ok && !wrong++)
		fprintf(stderr, "rank %d: %s: wrong result\n", rank, what);
}

/* ---- operations */

static void one_bcast(uint64_t n)
{
	const int root = size / 3;
	uint32_t bad = 0;
	uint64_t i;

	for (i = 0; i < n; i++)
		out[i] = rank == root ? (uint32_t)i * 2654435761u : 0;
	must(gcoll_bcast(out, n, GCOLL_UINT32, root, world), "bcast");
	for (i = 0; i < n; i++)
		bad |= out[i] ^ (uint32_t)i * 2654435761u;
	check(!bad, "bcast");
}

static void one_allreduce(uint64_t n)
{
	uint32_t bad = 0, p = (uint32_t)size;
	uint64_t i;

	for (i = 0; i < n; i++)
		in[i] = (uint32_t)i + (uint32_t)rank;
	must(gcoll_allreduce(in, out, n, GCOLL_UINT32, GCOLL_SUM, world), "allreduce");
	for (i = 0; i < n; i++)
		bad |= out[i] ^ (p * (uint32_t)i + p * (p - 1) / 2);
	check(!bad, "allreduce");
}

static void one_barrier(uint64_t n)
{
	(void)n;
	must(gcoll_barrier(world), "barrier");
}

/* Each begins when all are there; rank 0 tells how long it took there, filling and checking
 * included. */
static void repeat(const char *name, void (*one)(uint64_t n), const struct options *o)
{
	uint64_t i, before;

	if (!rank)
		printf("%-9s", name);
	for (i = 0; i < o->repeat; i++) {
		must(gcoll_barrier(world), "barrier");
		before = gci_now_ns();
		one(o->count / sizeof(*in));
		if (!rank)
			printf(" %9.1f ms", (double)(gci_now_ns() - before) / 1e6);
	}
	if (!rank)
		printf("\n");
	fflush(stdout);
}

/* What a program does many times, and what makes and frees something each time. */
static void short_operation(uint64_t i)
{
	gcoll_comm *twin;
	gcoll_req *req;

	switch (i % 4) {
	case 0:
		one_bcast(2);
		break;
	case 1:
		one_allreduce(2);
		break;
	case 2:
		must(gcoll_ibarrier(world, &req), "ibarrier");
		must(gcoll_wait(&req), "wait");
		break;
	default:
		must(gcoll_comm_dup(world, &twin), "dup");
		must(gcoll_barrier(twin), "barrier of a duplicate");
		must(gcoll_comm_free(&twin), "free");
	}
}

static uint64_t processor_ns(const struct rusage *r)
{
	return ((uint64_t)r->ru_utime.tv_sec + (uint64_t)r->ru_stime.tv_sec) * GCI_NS_PER_S +
	       ((uint64_t)r->ru_utime.tv_usec + (uint64_t)r->ru_stime.tv_usec) * 1000;
}

/* Rank 0 comes late. */
static void idle(uint64_t ns, struct scale_usage *u)
{
	struct rusage before, after;

	must(gcoll_barrier(world), "barrier");
	getrusage(RUSAGE_SELF, &before);
	if (!rank)
		gci_sleep_ns(ns);
	must(gcoll_barrier(world), "barrier");
	getrusage(RUSAGE_SELF, &after);
	u->idle_ns = processor_ns(&after) - processor_ns(&before);
	u->idle_switches = (uint64_t)(after.ru_nvcsw - before.ru_nvcsw);
}

/* ---- options */

static int take(struct options *o, const char *key, const char *value)
{
	if (!strcmp(key, "count"))
		return gci_parse_bytes(value, &o->count) || o->count > 1u << 30 || o->count < 8;
	if (!strcmp(key, "repeat"))
		return gci_parse_uint(value, 1000000, &o->repeat);
	if (!strcmp(key, "short"))
		return gci_parse_uint(value, 1000000000, &o->ops);
	if (!strcmp(key, "idle"))
		return gci_parse_time(value, &o->idle_ns);
	if (!strcmp(key, "connections"))
		return gci_parse_uint(value, 65536, &o->limits.connections);
	if (!strcmp(key, "memory"))
		return gci_parse_bytes(value, &o->limits.memory_nbytes);
	return gcoll_comm_set(world, key, value);
}

static void parse(struct options *o, int argc, char **argv)
{
	char key[32];
	int i;

	for (i = 1; i < argc; i++) {
		size_t len = strcspn(argv[i], "=");

		if (!argv[i][len] || len >= sizeof(key))
			len = 0;
		memcpy(key, argv[i], len);
		key[len] = '\0';
		if (len && !take(o, key, argv[i] + len + 1))
			continue;
		if (!rank)
			fprintf(stderr,
				"bench_scale: %s, expected OPTION=VALUE (see bench/scale.c)\n",
				argv[i]);
		gcoll_finalize(world);
		exit(2);
	}
}

/* Rank 0 prints; the others learn whether all is well. */
static int report(const struct options *o, const struct scale_usage *own)
{
	struct scale_usage *all = rank ? NULL : gci_calloc((size_t)size, sizeof(*all));
	int bad = wrong;

	if (!rank && !all)
		gcoll_comm_abort(world, "out of memory");
	must(gcoll_gather(own, all, sizeof(*own), GCOLL_BYTE, 0, world), "gather");
	if (!rank)
		bad += scale_report(all, size, &o->limits);
	gci_free(all);
	return bad;
}

int main(int argc, char **argv)
{
	struct options o = {.count = 1u << 20, .repeat = 3, .ops = 1000, .idle_ns = GCI_NS_PER_S};
	struct scale_usage own = {.started_ns = scale_started_ns()};
	uint64_t i;
	int bad;

	must(gcoll_init(&world), "init");
	own.joined_ns = scale_now_ns();
	rank = gcoll_rank(world);
	size = gcoll_size(world);
	parse(&o, argc, argv);
	in = gci_calloc(1, o.count);
	out = gci_calloc(1, o.count);
	if (!in || !out)
		gcoll_comm_abort(world, "out of memory");
	memset(in, 1, o.count);
	memset(out, 1, o.count);
	repeat("barrier", one_barrier, &o);
	repeat("bcast", one_bcast, &o);
	repeat("allreduce", one_allreduce, &o);
	for (i = 0; i < 16; i++) /* until all connections are open that they need */
		short_operation(i);
	own.descriptors_before = scale_descriptors();
	for (i = 0; i < o.ops; i++)
		short_operation(i);
	/* Now: faster ranks may soon connect for the operation that gathers all this. */
	own.descriptors = scale_descriptors();
	own.connections = scale_connections(world);
	idle(o.idle_ns, &own);
	scale_usage_read(&own, 2 * o.count);
	bad = report(&o, &own);
	gci_free(in);
	gci_free(out);
	gcoll_finalize(world);
	return bad ? 1 : 0;
}
