/* SPDX-License-Identifier: MIT
 * What a job chooses by itself (collectives/tuner/decide.h), against the best of all candidates,
 * both by simulation.
 *	bench_choices [--bests FILE] GRID...
 * prints, per grid file, operation and size from 4 KiB to 32 MiB, what is chosen and what is best,
 * with their times in ms, and how much longer the choice takes; then the worst cell, and the share
 * of cells within 5 %. With --bests, which takes the best ones by name from what was printed
 * before, that takes seconds. Exit status 1: fewer than 95 % of the cells are within 5 %, or one
 * takes more than 20 % longer. */
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "collectives/tuner/candidates.h"
#include "collectives/tuner/decide.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUGH_STEPS 40000  /* simulated of each candidate */
#define FINE_STEPS  400000 /* of those that were fastest */
#define NFINE       6
#define MOST_TEXT   (1u << 20)

static const uint64_t sizes[] = {
	4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 32 << 20};

struct cell {
	const char *grid;
	struct gci_coll coll;
	uint64_t nbytes;
};

struct timed {
	struct gci_candidate how;
	uint64_t ns;
};

struct tally {
	unsigned cells, near, worst; /* `worst`: tenths of a percent that it takes longer */
	char worst_cell[96];
};

static void out_of_memory(void)
{
	fprintf(stderr, "bench_choices: out of memory\n");
	exit(2);
}

static struct gci_coll operation(const struct gci_topo *t, enum gci_kind kind, uint64_t nbytes)
{
	uint64_t n = gci_kind_has_vector(kind) ? 1 : (uint64_t)t->nranks;

	return (struct gci_coll){
		.kind = kind, .topo = t, .count = kind == GCI_BARRIER ? 0 : nbytes / n, .esize = 1};
}

/* A word. */
static const char *size_text(uint64_t nbytes, char out[32])
{
	int mib = nbytes >= 1 << 20;

	snprintf(out, 32, "%" PRIu64 "%s", nbytes >> (mib ? 20 : 10), mib ? "MiB" : "KiB");
	return out;
}

/* GCI_NEVER: longer than until_ns (0: any time), or it cannot be simulated with so few steps. */
static uint64_t simulate(const struct gci_simnet *net, const struct gci_coll *c,
	const struct gci_candidate *how, uint64_t most_steps, uint64_t until_ns)
{
	const struct gci_predict_limits limits = {.most_steps = most_steps, .until_ns = until_ns};
	uint64_t ns;
	int rc = gci_predict(net, c, how, &limits, &ns);

	if (rc == GCOLL_ERR_NOMEM)
		out_of_memory();
	return rc ? GCI_NEVER : ns;
}

/* ---- the best */

static int by_time(const void *a, const void *b)
{
	const struct timed *x = a, *y = b;

	return x->ns < y->ns ? -1 : x->ns > y->ns;
}

/* `best` has a time already, to beat. */
static void search(const struct gci_simnet *net, const struct gci_coll *c, struct timed *best)
{
	uint64_t rough_ns = best->ns;
	struct gci_candidate *list;
	struct timed *tried;
	size_t i, n;

	if (gci_candidates(net, c, SIZE_MAX, &list, &n))
		out_of_memory();
	tried = gci_calloc(n, sizeof(*tried));
	if (!tried)
		out_of_memory();
	for (i = 0; i < n; i++) {
		uint64_t ns = simulate(net, c, &list[i], ROUGH_STEPS, rough_ns + rough_ns / 8);

		tried[i] = (struct timed){list[i], ns};
		rough_ns = ns < rough_ns ? ns : rough_ns;
	}
	qsort(tried, n, sizeof(*tried), by_time);
	for (i = 0; i < n && i < NFINE && tried[i].ns != GCI_NEVER; i++) {
		tried[i].ns = simulate(net, c, &tried[i].how, FINE_STEPS, best->ns);
		if (tried[i].ns < best->ns)
			*best = tried[i];
	}
	gci_free(tried);
	gci_free(list);
}

/* In what was printed before: GRID OPERATION SIZE CHOICE TIME BEST ... */
static int look_up(const char *text, const struct cell *x, struct gci_candidate *how)
{
	const char *kind = gci_kind_name(x->coll.kind);
	char grid[256], operation[32], nbytes[32], name[128], size[32];

	size_text(x->nbytes, size);
	for (; text; text = strchr(text, '\n')) {
		text += *text == '\n';
		if (sscanf(text, "%255s %31s %31s %*s %*s %127s", grid, operation, nbytes, name) ==
				4 &&
			!strcmp(grid, x->grid) && !strcmp(operation, kind) && !strcmp(nbytes, size))
			return !gci_candidate_parse(how, x->coll.kind, name, NULL);
	}
	return 0;
}

/* ---- the table */

static void count(struct tally *t, const struct cell *x, unsigned loss)
{
	char size[32];

	t->cells++;
	t->near += loss <= 50;
	if (t->cells > 1 && loss <= t->worst)
		return;
	t->worst = loss;
	snprintf(t->worst_cell, sizeof(t->worst_cell), "%s of %s on %s",
		gci_kind_name(x->coll.kind), size_text(x->nbytes, size), x->grid);
}

static void show(
	struct gci_decider *d, const struct cell *x, const char *bests, struct tally *tally)
{
	char size[32], chosen[GCI_CANDIDATE_NBYTES], name[GCI_CANDIDATE_NBYTES];
	struct gci_decision how;
	struct timed choice, best;
	unsigned loss;

	if (gci_decide(d, &x->coll, &how))
		out_of_memory();
	choice = (struct timed){how.how, simulate(&d->net, &x->coll, &how.how, FINE_STEPS, 0)};
	best = choice;
	if (!bests || !look_up(bests, x, &best.how))
		search(&d->net, &x->coll, &best);
	else
		best.ns = simulate(&d->net, &x->coll, &best.how, FINE_STEPS, 0);
	if (choice.ns <= best.ns)
		best = choice;
	loss = (unsigned)((choice.ns - best.ns) * 1000 / (best.ns ? best.ns : 1));
	gci_candidate_print(&choice.how, chosen);
	gci_candidate_print(&best.how, name);
	printf("%s %-14s %6s  %-36s %10.3f  %-36s %10.3f %4u.%u %%\n", x->grid,
		gci_kind_name(x->coll.kind), size_text(x->nbytes, size), chosen,
		(double)choice.ns / GCI_NS_PER_MS, name, (double)best.ns / GCI_NS_PER_MS, loss / 10,
		loss % 10);
	fflush(stdout);
	count(tally, x, loss);
}

static void show_grid(const char *path, const char *bests, struct tally *tally)
{
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	struct gci_buf text = {0};
	struct gci_error e = {0};
	struct gci_decider d;
	struct gci_topo t;
	size_t i;
	int kind;

	if (gci_file_read(path, GCI_GRID_MAX_TEXT, &text, &e) ||
		gci_topo_parse(&t, gci_buf_cstr(&text), text.len, path, &e)) {
		fprintf(stderr, "bench_choices: %s\n", e.text);
		exit(2);
	}
	if (gci_decider_init(&d, &t, 0))
		out_of_memory();
	for (kind = 0; kind < GCI_NKINDS; kind++)
		for (i = 0; i < (kind == GCI_BARRIER ? 1 : sizeof(sizes) / sizeof(*sizes)); i++) {
			uint64_t nbytes = kind == GCI_BARRIER ? 0 : sizes[i];
			struct cell x = {name, operation(&t, (enum gci_kind)kind, nbytes), nbytes};

			show(&d, &x, bests, tally);
		}
	gci_decider_free(&d);
	gci_topo_free(&t);
	gci_buf_free(&text);
}

int main(int argc, char **argv)
{
	struct gci_buf bests = {0};
	struct gci_error e = {0};
	struct tally t = {0};
	int at = 1;

	if (argc > 2 && !strcmp(argv[1], "--bests")) {
		if (gci_file_read(argv[2], MOST_TEXT, &bests, &e)) {
			fprintf(stderr, "bench_choices: %s\n", e.text);
			return 2;
		}
		at = 3;
	}
	if (at >= argc || argv[at][0] == '-') {
		fprintf(stderr, "usage: bench_choices [--bests FILE] GRID...\n");
		return 2;
	}
	for (; at < argc; at++)
		show_grid(argv[at], bests.len ? gci_buf_cstr(&bests) : NULL, &t);
	gci_buf_free(&bests);
	printf("%u of %u cells within 5 %%; worst %s: %u.%u %% slower\n", t.near, t.cells,
		t.worst_cell, t.worst / 10, t.worst % 10);
	return t.near * 100 < t.cells * 95 || t.worst > 200;
}
