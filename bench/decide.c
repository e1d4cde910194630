/* SPDX-License-Identifier: MIT
 * What it costs a rank to choose how to run an operation without a table, by simulation.
 *	bench_decide [--check]		two clusters of hosts, 16 and 64 in all
 *	bench_decide GRID		what is chosen on this grid
 * prints, per operation and size, the processor time that the first call takes (median of some),
 * what is chosen, and what the best by estimates would take instead. With --check the exit
 * status is 1 if any median of up to 64 hosts is 50 ms or more. */
#include "collectives/tuner/decide.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NRUNS   5
#define MOST_NS (50 * GCI_NS_PER_MS)

static const uint64_t sizes[] = {1024, 65536, 1u << 20, 16u << 20, 256u << 20};

/* Of the processor: machines are shared. */
static uint64_t used_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * GCI_NS_PER_S + (uint64_t)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static struct gci_coll operation(const struct gci_topo *t, enum gci_kind kind, uint64_t nbytes)
{
	uint64_t n = gci_kind_has_vector(kind) ? 1 : (uint64_t)t->nranks;

	return (struct gci_coll){.kind = kind, .topo = t, .count = nbytes / n, .esize = 1};
}

/* The median of what one decision takes, each by a rank that knows of nothing yet. */
static uint64_t measure(
	const struct gci_topo *t, const struct gci_coll *c, struct gci_decision *how)
{
	uint64_t ns[NRUNS];
	int i;

	for (i = 0; i < NRUNS; i++) {
		struct gci_decider d;
		uint64_t before = used_ns();

		if (gci_decider_init(&d, t, 0) || gci_decide(&d, c, how)) {
			fprintf(stderr, "bench_decide: out of memory\n");
			exit(2);
		}
		gci_decider_free(&d);
		ns[i] = used_ns() - before;
	}
	qsort(ns, NRUNS, sizeof(*ns), compare);
	return ns[NRUNS / 2];
}

static uint64_t first_ns(const struct gci_topo *t, const struct gci_coll *c)
{
	struct gci_candidate first;
	const struct gci_predict_limits limits = {.most_steps = 1000000};
	struct gci_simnet net;
	uint64_t ns = 0;

	if (gci_decide_roughly(c, &first) || gci_simnet_init(&net, t, NULL))
		return 0;
	if (gci_predict(&net, c, &first, &limits, &ns))
		ns = 0;
	gci_simnet_free(&net);
	return ns;
}

/* Returns how many took too long. */
static int show(const char *name, const struct gci_topo *t)
{
	char size[16], took[16], best[16], first[16], how[GCI_CANDIDATE_NBYTES];
	struct gci_decision d;
	uint64_t ns;
	int kind, bad = 0;
	size_t i;

	printf("%s: %d ranks in %d clusters\n"
	       "%-15s %9s %9s  %-40s %10s %12s\n",
		name, t->nranks, t->nclusters, "operation", "size", "to choose", "chosen",
		"predicted", "by estimate");
	for (kind = 0; kind < GCI_BARRIER; kind++)
		for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
			struct gci_coll c = operation(t, (enum gci_kind)kind, sizes[i]);

			ns = measure(t, &c, &d);
			bad += ns >= MOST_NS;
			gci_candidate_print(&d.how, how);
			printf("%-15s %9s %9s  %-40s %10s %12s%s\n",
				gci_kind_name((enum gci_kind)kind),
				gci_format_bytes(sizes[i], size, sizeof(size)),
				gci_format_time(ns, took, sizeof(took)), how,
				gci_format_time(d.ns, best, sizeof(best)),
				gci_format_time(first_ns(t, &c), first, sizeof(first)),
				d.by == GCI_BY_DEFAULT ? "  not simulated" : "");
		}
	printf("\n");
	return bad;
}

static int run(const char *name, const char *text)
{
	struct gci_topo t = {0};
	struct gci_error e = {0};
	int bad;

	if (gci_topo_parse(&t, text, strlen(text), name, &e)) {
		fprintf(stderr, "bench_decide: %s\n", e.text);
		exit(2);
	}
	bad = show(name, &t);
	gci_topo_free(&t);
	return bad;
}

static int run_file(const char *path)
{
	struct gci_buf text = {0};
	char bytes[4096];
	FILE *f = fopen(path, "r");
	size_t n;

	while (f && text.len < GCI_GRID_MAX_TEXT && (n = fread(bytes, 1, sizeof(bytes), f)) > 0)
		gci_buf_put(&text, bytes, n);
	if (!f) {
		perror(path);
		return 2;
	}
	fclose(f);
	run(path, gci_buf_cstr(&text));
	gci_buf_free(&text);
	return 0;
}

int main(int argc, char **argv)
{
	static const int half[] = {8, 32};
	int check = argc == 2 && !strcmp(argv[1], "--check"), bad = 0;
	char text[256];
	size_t i;

	if (argc > 2 || (argc == 2 && !check && argv[1][0] == '-')) {
		fprintf(stderr, "usage: bench_decide [--check | GRID]\n");
		return 2;
	}
	if (argc == 2 && !check)
		return run_file(argv[1]);
	for (i = 0; i < sizeof(half) / sizeof(*half); i++) {
		snprintf(text, sizeof(text),
			"[cluster a]\nhosts = a[1-%d]\nnic = 1Gbit\nlan_delay = 50us\n"
			"[cluster b]\nhosts = b[1-%d]\nnic = 1Gbit\nlan_delay = 50us\n"
			"[link a b]\nrate = 10Gbit\ndelay = 10ms\n",
			half[i], half[i]);
		bad += run("two clusters", text);
	}
	return check && bad;
}
