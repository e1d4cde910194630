/* SPDX-License-Identifier: MIT
 * Figure 9 of Gupta and Vadhiyar 2007: how many messages an allgather has under way between
 * clusters at a time, by simulation, with hosts that send one message and receive one at a time.
 *	bench_min3_wan [--steps] GRID NBYTES ALGORITHM...
 * NBYTES is each host's block. Prints for each algorithm: its time in ms, when the first message
 * between clusters begins, how many of them are under way on the mean and at most, the share of the
 * time with none, how many there are in all, and their bytes over those that must cross. With
 * --steps instead, for each algorithm, when their number changes and to what (ms, number), as
 * gnuplot reads it: algorithms are parted by two empty lines.
 *
 * A message is under way from when its first byte is sent until its receiver has the last one. */
#include "base/file.h"
#include "base/mem.h"
#include "base/units.h"
#include "collectives/sim/sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One message begins or ends. */
struct change {
	uint64_t ns;
	int by;
};

struct changes {
	const struct gci_simnet *net;
	struct change *v;
	size_t n, room; /* two for each message */
};

static int compare(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	return x->ns != y->ns ? x->ns < y->ns ? -1 : 1 : x->by - y->by;
}

static void note(void *ctx, const struct gci_sim_event *e)
{
	struct changes *w = ctx;
	const struct gci_topo *t = w->net->topo;
	int from, to = t->cluster[e->rank];

	if (e->s->kind != GCI_STEP_RECV || !e->s->dst.length)
		return;
	from = t->cluster[e->s->peer];
	if (from == to || w->n + 2 > w->room)
		return;
	w->v[w->n++] =
		(struct change){e->from_ns - w->net->links[from * t->nclusters + to].latency_ns, 1};
	w->v[w->n++] = (struct change){e->to_ns, -1};
}

/* Each cluster has to be told what all others have. */
static uint64_t least_wan_nbytes(const struct gci_topo *t, uint64_t nbytes)
{
	return (uint64_t)(t->nclusters - 1) * (uint64_t)t->nranks * nbytes;
}

static uint64_t wan_nbytes(const struct gci_topo *t, const struct gci_sim_result *r)
{
	uint64_t sum = 0;
	int a, b;

	for (a = 0; a < t->nclusters; a++)
		for (b = 0; b < t->nclusters; b++)
			sum += a == b ? 0 : r->wan_nbytes[a * t->nclusters + b];
	return sum;
}

static void print_steps(const struct changes *w, const char *name)
{
	int now = 0;
	size_t i;

	printf("# %s\n0 0\n", name);
	for (i = 0; i < w->n; i++) {
		now += w->v[i].by;
		if (i + 1 == w->n || w->v[i + 1].ns != w->v[i].ns)
			printf("%.3f %d\n", (double)w->v[i].ns / 1e6, now);
	}
	printf("\n\n");
}

static void print_row(
	const struct changes *w, const char *name, const struct gci_sim_result *r, uint64_t nbytes)
{
	uint64_t none_ns = w->n ? w->v[0].ns : 0, last = none_ns;
	double area = 0;
	int now = 0, most = 0;
	size_t i;

	for (i = 0; i < w->n; i++) {
		area += (double)now * (double)(w->v[i].ns - last);
		none_ns += now ? 0 : w->v[i].ns - last;
		last = w->v[i].ns;
		now += w->v[i].by;
		most = now > most ? now : most;
	}
	none_ns += r->ns - last;
	printf("%-16s %9.1f %9.1f %6.1f %5d %5.0f %6zu %6.2f\n", name, (double)r->ns / 1e6,
		w->n ? (double)w->v[0].ns / 1e6 : 0.0, area / (double)r->ns, most,
		100.0 * (double)none_ns / (double)r->ns, w->n / 2,
		(double)wan_nbytes(w->net->topo, r) /
			(double)least_wan_nbytes(w->net->topo, nbytes));
}

static int show(const struct gci_simnet *net, uint64_t nbytes, const char *name, int steps)
{
	struct gci_coll c = {.kind = GCI_ALLGATHER, .topo = net->topo, .count = nbytes, .esize = 1};
	struct changes w = {.net = net};
	struct gci_sim_op op = {.algorithm = gci_algorithm_find(GCI_ALLGATHER, name),
		.coll = &c,
		.trace = note,
		.ctx = &w};
	struct gci_sim_result r = {0};
	int rc;

	if (!op.algorithm || gci_ineligible(op.algorithm, &c)) {
		fprintf(stderr, "bench_min3_wan: %s: expected an allgather for %d ranks\n", name,
			net->topo->nranks);
		return 2;
	}
	rc = gci_simulate(net, &op, &r);
	w.room = 2 * r.nmessages;
	gci_sim_result_free(&r);
	w.v = gci_calloc(w.room ? w.room : 1, sizeof(*w.v));
	if (!rc && w.v)
		rc = gci_simulate(net, &op, &r);
	if (rc || !w.v) {
		fprintf(stderr, "bench_min3_wan: out of memory\n");
		gci_free(w.v);
		return 2;
	}
	qsort(w.v, w.n, sizeof(*w.v), compare);
	if (steps)
		print_steps(&w, name);
	else
		print_row(&w, name, &r, nbytes);
	gci_sim_result_free(&r);
	gci_free(w.v);
	return 0;
}

static int read_grid(struct gci_topo *t, const char *path)
{
	struct gci_buf text = {0};
	struct gci_error e = {0};
	int rc = gci_file_read(path, GCI_GRID_MAX_TEXT, &text, &e);

	if (!rc)
		rc = gci_topo_parse(t, gci_buf_cstr(&text), text.len, path, &e);
	if (rc)
		fprintf(stderr, "bench_min3_wan: %s\n", e.text);
	gci_buf_free(&text);
	return rc;
}

int main(int argc, char **argv)
{
	int steps = argc > 1 && !strcmp(argv[1], "--steps"), i, rc = 0;
	struct gci_simnet net;
	struct gci_topo t;
	uint64_t nbytes;

	if (argc < 4 + steps || gci_parse_bytes(argv[2 + steps], &nbytes) || !nbytes) {
		fprintf(stderr, "usage: bench_min3_wan [--steps] GRID NBYTES ALGORITHM...\n");
		return 2;
	}
	if (read_grid(&t, argv[1 + steps]))
		return 2;
	if (gci_simnet_init(&net, &t, NULL)) {
		gci_topo_free(&t);
		return 2;
	}
	net.host = GCI_HOST_FULL_DUPLEX;
	if (!steps)
		printf("%-16s %9s %9s %6s %5s %5s %6s %6s\n", "algorithm", "ms", "first ms", "mean",
			"most", "none%", "number", "bytes");
	for (i = 3 + steps; !rc && i < argc; i++)
		rc = show(&net, nbytes, argv[i], steps);
	gci_simnet_free(&net);
	gci_topo_free(&t);
	return rc;
}
