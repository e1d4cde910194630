/* SPDX-License-Identifier: MIT
 * How the time of operations grows with the message and with the ranks, over loopback: data for
 * gnuplot, and the pictures.
 *
 *	bench_growth [--dir .] [--max-bytes 1GiB] [--max-ranks 512] [--only size|ranks]
 *
 * The limit is what bare sockets show to be possible on this machine, measured first: so many bytes
 * must move and so many ranks must hear of something, each costs so much processor time on both
 * sides, and all processors that we may use work on it; and nothing is faster than one message's
 * way. */
#include "bench/peers/pair.h"
#include "bench/peers/veth.h"

#include "base/buf.h"
#include "base/median.h"
#include "base/mem.h"
#include "base/units.h"

#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIZES_RANKS 4          /* while the message grows */
#define RANKS_BYTES (1u << 20) /* while the ranks grow */
#define RUNS        5
#define BARE_NBYTES (256u << 20)
#define TRIPS       5000
#define LONG_NBYTES (16u << 20)

static const char *const ops[] = {"bcast", "allreduce", "allgather", "barrier"};
#define NOPS 4

struct limits {
	double cpu_ns_per_byte, way_ns, cpu_ns_per_message; /* one message, one way */
	double processors;
};

struct growth {
	const char *dir;
	uint64_t max_nbytes, max_ranks;
	const char *only; /* of "size" and "ranks"; NULL: both */
	struct limits limits;
	struct gci_buf rows[NOPS]; /* of the plot that is being made */
};

/* ---- what bare sockets do */

static double processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) ? 1 : (double)CPU_COUNT(&set);
}

static int median_of(struct gcb_pair *p, const struct gcb_way *way, double *ns, double *cpu_ns,
	struct gci_error *e)
{
	double all[RUNS], cpu[RUNS];
	struct gcb_pair_result r;
	int i, rc = 0;

	for (i = 0; i < RUNS && !rc; i++) {
		rc = gcb_pair_run(p, way, &r, e);
		all[i] = (double)r.ns;
		cpu[i] = (double)(r.cpu_ns[0] + r.cpu_ns[1]);
	}
	if (rc)
		return rc;
	*ns = gci_median(all, RUNS);
	*cpu_ns = gci_median(cpu, RUNS);
	return 0;
}

static int measure_limits(struct limits *l, struct gci_error *e)
{
	double ns = 0, cpu_ns = 0;
	struct gcb_pair p;
	int rc = gcb_pair_open(&p, BARE_NBYTES, NULL, e);

	l->processors = processors();
	if (!rc)
		rc = median_of(&p, &gcb_bare_stream, &ns, &cpu_ns, e);
	l->cpu_ns_per_byte = cpu_ns / BARE_NBYTES;
	gcb_pair_close(&p);
	if (!rc)
		rc = gcb_pair_open(&p, 4096, NULL, e);
	p.rounds = TRIPS;
	if (!rc)
		rc = median_of(&p, &gcb_bare_pingpong, &ns, &cpu_ns, e);
	l->way_ns = ns / TRIPS / 2;
	l->cpu_ns_per_message = cpu_ns / TRIPS / 2;
	gcb_pair_close(&p);
	return rc;
}

/* Bytes that ranks must take in, all together. */
static double must_move(int op, double ranks, double nbytes)
{
	switch (op) {
	case 0: /* everybody but the root has it to get */
	case 2: /* everybody has all to get but the own block */
		return (ranks - 1) * nbytes;
	case 1: /* everybody's parts into one sum, and that to everybody */
		return 2 * (ranks - 1) * nbytes;
	default:
		return 0;
	}
}

/* And each rank has something to hear; the root of a bcast need not. */
static double must_hear(int op, double ranks)
{
	return op ? ranks : ranks - 1;
}

static double limit_ns(const struct limits *l, int op, double ranks, double nbytes)
{
	double bytes = must_move(op, ranks, nbytes) * l->cpu_ns_per_byte;
	double messages = must_hear(op, ranks) * l->cpu_ns_per_message;
	double work = (bytes > messages ? bytes : messages) / l->processors;

	return work > l->way_ns ? work : l->way_ns;
}

/* ---- what gridcoll does */

static int take_results(struct growth *g, int ranks, int by_ranks, const char *path)
{
	json_t *root = json_load_file(path, 0, NULL), *row;
	json_int_t nbytes, ns;
	const char *op;
	size_t i;
	int k, n = 0;

	json_array_foreach (json_object_get(root, "results"), i, row) {
		if (json_unpack(row, "{s:s, s:I, s:I}", "operation", &op, "bytes", &nbytes,
			    "median_ns", &ns))
			continue;
		for (k = 0; k < NOPS && strcmp(op, ops[k]) != 0; k++)
			;
		if (k == NOPS)
			continue;
		gci_buf_printf(&g->rows[k], "%g %g %g\n", by_ranks ? ranks : (double)nbytes,
			(double)ns / 1e9, limit_ns(&g->limits, k, ranks, (double)nbytes) / 1e9);
		n++;
	}
	json_decref(root);
	return n ? 0 : -1;
}

static int run(struct growth *g, int ranks, uint64_t nbytes, int by_ranks)
{
	struct gci_buf command = {0};
	char path[300];
	int rc;

	snprintf(path, sizeof(path), "%s/growth.json", g->dir);
	gci_buf_printf(&command,
		GCB_RUN " -n %d " GCB_GRIDCOLL
			" bench bcast allreduce allgather%s --bytes %llu --iters %d --json %s"
			" >/dev/null",
		ranks, by_ranks ? " barrier" : "", (unsigned long long)nbytes,
		nbytes > LONG_NBYTES ? 3 : 7, path);
	rc = system(gci_buf_cstr(&command));
	if (rc || take_results(g, ranks, by_ranks, path)) {
		fprintf(stderr, "failed: %s\n", gci_buf_cstr(&command));
		rc = -1;
	}
	unlink(path);
	gci_buf_free(&command);
	return rc;
}

static int write_rows(const struct growth *g, const char *path)
{
	FILE *f = fopen(path, "we");
	int k;

	if (!f) {
		perror(path);
		return -1;
	}
	/* Blocks that gnuplot knows by their number. */
	for (k = 0; k < NOPS; k++)
		fprintf(f, "# %s: x, seconds (median), limit\n%s\n\n", ops[k],
			gci_buf_cstr((struct gci_buf *)&g->rows[k]));
	return fclose(f) ? -1 : 0;
}

static int draw(const struct growth *g, const char *name, const char *title, const char *axis)
{
	char data[300];
	FILE *f;
	int k;

	snprintf(data, sizeof(data), "%s/growth-%s.dat", g->dir, name);
	if (write_rows(g, data))
		return -1;
	f = popen("gnuplot", "we");
	if (!f)
		return -1;
	fprintf(f,
		"set terminal svg size 900,520 dynamic font 'sans,13' background '#ffffff'\n"
		"set output '%s/growth-%s.svg'\nset title '%s'\nset logscale x 2\n"
		"set logscale y 10\nset format y '10^{%%T} s'\nset format x '%s'\n"
		"set xlabel '%s'\nset key outside right\nset grid\nplot ",
		g->dir, name, title, !strcmp(name, "size") ? "%.0b%BB" : "%.0f", axis);
	for (k = 0; k < NOPS; k++) {
		if (!g->rows[k].len)
			continue;
		fprintf(f,
			"%s'%s' index %d using 1:2 with linespoints lt %d lw 2 pt 7 ps 0.6 "
			"title '%s', '' index %d using 1:3 with lines lt %d lw 1 dt 2 "
			"title '%s, limit'",
			k ? ", " : "", data, k, k + 1, ops[k], k, k + 1, ops[k]);
	}
	fprintf(f, "\n");
	return pclose(f) ? -1 : 0;
}

static void forget(struct growth *g)
{
	int k;

	for (k = 0; k < NOPS; k++)
		gci_buf_free(&g->rows[k]);
	memset(g->rows, 0, sizeof(g->rows));
}

static int wants(const struct growth *g, const char *which)
{
	return !g->only || !strcmp(g->only, which);
}

/* What there is when a run fails is drawn all the same. */
static int grow_size(struct growth *g)
{
	uint64_t n;
	int rc = 0;

	for (n = 1024; n <= g->max_nbytes && !rc; n *= 4)
		rc = run(g, SIZES_RANKS, n, 0);
	rc |= draw(g, "size", "4 ranks over loopback", "message");
	forget(g);
	return rc;
}

static int grow_ranks(struct growth *g)
{
	uint64_t n;
	int rc = 0;

	for (n = 2; n <= g->max_ranks && !rc; n *= 2)
		rc = run(g, (int)n, RANKS_BYTES, 1);
	rc |= draw(g, "ranks", "1 MiB over loopback", "ranks");
	forget(g);
	return rc;
}

static int grow(struct growth *g)
{
	int rc = wants(g, "size") ? grow_size(g) : 0;

	return wants(g, "ranks") ? rc | grow_ranks(g) : rc;
}

static int usage(void)
{
	fprintf(stderr, "usage: bench_growth [--dir DIR] [--max-bytes SIZE] [--max-ranks N] "
			"[--only size|ranks]\n");
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {{"dir", 1, NULL, 'd'}, {"max-bytes", 1, NULL, 'b'},
		{"max-ranks", 1, NULL, 'r'}, {"only", 1, NULL, 'o'}, {NULL, 0, NULL, 0}};
	struct growth g = {.dir = ".", .max_nbytes = 1u << 30, .max_ranks = 512};
	struct gci_error e = {0};
	int c;

	while ((c = getopt_long(argc, argv, "d:b:r:o:", longs, NULL)) != -1) {
		if (c == 'b' && !gci_parse_bytes(optarg, &g.max_nbytes))
			continue;
		if (c == 'r' && !gci_parse_uint(optarg, 4096, &g.max_ranks))
			continue;
		if (c == 'o' && (!strcmp(optarg, "size") || !strcmp(optarg, "ranks")))
			g.only = optarg;
		else if (c == 'd')
			g.dir = optarg;
		else
			return usage();
	}
	if (measure_limits(&g.limits, &e)) {
		fprintf(stderr, "bench_growth: %s\n", e.text);
		return 1;
	}
	printf("bare sockets: %.3f CPU s/GB on %.0f processors, %.1f us one way\n",
		g.limits.cpu_ns_per_byte, g.limits.processors, g.limits.way_ns / 1000);
	return grow(&g) != 0;
}
