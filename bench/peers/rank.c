/* SPDX-License-Identifier: MIT
 * A rank of bench_peers, started by gridcoll-run or an mpirun. Rank 0 prints a line of JSON for
 * each operation, size and library:
 *
 *	{"lib": "gloo", "op": "bcast", "bytes": 65536, "moved": 458752, "least": 458752,
 *	 "cpu_ms": 130.0, "ns": [...], "wrong": 0}
 *
 * moved: what the interfaces' counters grew by, per operation (least over the iterations); least:
 * what the operation must have moved; cpu_ms: how long the machine's processors were busy, per
 * operation, links that are emulated and all. */
#include "bench/peers/rank.h"
#include "bench/peers/meeting.h"

#include "base/mem.h"
#include "base/units.h"
#include "netem/cpu.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_LIBS    4
#define MAX_SIZES   32
#define MAX_ITERS   1000
#define LONG_NBYTES (4u << 20) /* longer ones are measured a third as often */

enum op { BCAST, ALLREDUCE, ALLGATHER, BARRIER, NOPS };
static const char *const op_names[NOPS] = {"bcast", "allreduce", "allgather", "barrier"};

struct bench {
	struct gcb_place place;
	struct gcb_meeting meeting;
	const struct gcb_lib *libs[MAX_LIBS];
	int nlibs, nops, nsizes;
	enum op ops[NOPS];
	uint64_t sizes[MAX_SIZES], iters, warm, seed;
	char dir[64];
	char *in, *out;
};

struct cell {
	uint64_t ns[MAX_ITERS], iters, moved, wrong, ticks;
};

/* ---- data: small whole numbers, which floats add exactly, new ones each time */

static uint32_t word(const struct bench *b, uint64_t i)
{
	return (uint32_t)((b->seed + i * 2654435761u) >> 16) & 0xffff;
}

/* Elements of one rank's part, so many of them; returns how many of `against` differ. */
static uint64_t pattern(const struct bench *b, float *data, uint64_t n, uint64_t first,
	uint32_t factor, uint32_t add, int compare)
{
	uint64_t i, bad = 0;

	for (i = 0; i < n; i++) {
		float v = (float)(factor * word(b, first + i) + add);

		if (compare)
			bad += data[i] != v;
		else
			data[i] = v;
	}
	return bad;
}

/* Writes a rank's input (compare 0), or counts what is wrong in its result (1). */
static uint64_t data_of(struct bench *b, enum op op, uint64_t n, int compare)
{
	uint32_t p = (uint32_t)b->place.size, rank = (uint32_t)b->place.rank;
	float *in = (float *)b->in, *out = (float *)b->out;
	uint64_t r, bad = 0;

	switch (op) {
	case BCAST:
		return !compare && rank ? 0 : pattern(b, out, n, 0, 1, 0, compare);
	case ALLREDUCE:
		if (!compare)
			return pattern(b, in, n, 0, 1, rank, 0);
		return pattern(b, out, n, 0, p, p * (p - 1) / 2, 1);
	case ALLGATHER:
		if (!compare)
			return pattern(b, in, n, rank * n, 1, rank, 0);
		for (r = 0; r < p; r++)
			bad += pattern(b, out + r * n, n, r * n, 1, (uint32_t)r, 1);
		return bad;
	default:
		return 0;
	}
}

static int has(const struct gcb_lib *lib, enum op op)
{
	return op == ALLREDUCE ? lib->allreduce != NULL : op != ALLGATHER || lib->allgather != NULL;
}

static int operate(const struct bench *b, const struct gcb_lib *lib, enum op op, uint64_t n)
{
	switch (op) {
	case BCAST:
		return lib->bcast(b->out, n * sizeof(float));
	case ALLREDUCE:
		return lib->allreduce((float *)b->in, (float *)b->out, n);
	case ALLGATHER:
		return lib->allgather(b->in, b->out, n * sizeof(float));
	default:
		return lib->barrier();
	}
}

/* Elements of the vector, or of each rank's block. */
static uint64_t count_of(const struct bench *b, enum op op, uint64_t nbytes)
{
	if (op == BARRIER)
		return 0;
	return nbytes / sizeof(float) / (op == ALLGATHER ? (uint64_t)b->place.size : 1);
}

/* Every rank but the first must take in the vector, or the others' blocks; of a reduction, its sum
 * must gather all parts as well. */
static uint64_t least_moved(const struct bench *b, enum op op, uint64_t n)
{
	uint64_t others = (uint64_t)b->place.size - 1, nbytes = n * sizeof(float);

	switch (op) {
	case BCAST:
		return others * nbytes;
	case ALLREDUCE:
		return 2 * others * nbytes;
	case ALLGATHER:
		return others * nbytes * (uint64_t)b->place.size;
	default:
		return others;
	}
}

/* ---- measuring */

static int once(struct bench *b, const struct gcb_lib *lib, enum op op, uint64_t n, uint64_t *ns,
	struct cell *c)
{
	uint64_t moved, bad, busy[2], all;
	int rc;

	b->seed = b->seed * 6364136223846793005u + 1442695040888963407u;
	data_of(b, op, n, 0);
	rc = lib->barrier();
	gcb_meeting_start(&b->meeting);
	gci_cpu_read(&busy[0], &all);
	if (!rc)
		rc = operate(b, lib, op, n);
	gcb_meeting_end(&b->meeting);
	/* What a library still has to send, it sends in here. */
	if (!rc)
		rc = lib->barrier();
	gci_cpu_read(&busy[1], &all);
	c->ticks += busy[1] - busy[0];
	gcb_meeting_wait(&b->meeting); /* who compares needs processors, too */
	bad = data_of(b, op, n, 1);
	*ns = gcb_meeting_collect(&b->meeting, !bad, &moved);
	if (!c->moved || moved < c->moved)
		c->moved = moved;
	c->wrong += !*ns;
	return rc;
}

static void print_cell(const struct bench *b, const struct gcb_lib *lib, enum op op, uint64_t n,
	const struct cell *c)
{
	uint64_t i, nbytes = n * sizeof(float) * (op == ALLGATHER ? (uint64_t)b->place.size : 1);

	if (b->place.rank)
		return;
	printf("{\"lib\": \"%s\", \"op\": \"%s\", \"ranks\": %d, \"bytes\": %llu, \"moved\": %llu, "
	       "\"least\": %llu, \"wrong\": %llu, \"cpu_ms\": %.1f, \"ns\": [",
		lib->name, op_names[op], b->place.size, (unsigned long long)nbytes,
		(unsigned long long)c->moved, (unsigned long long)least_moved(b, op, n),
		(unsigned long long)c->wrong,
		(double)c->ticks * 1e3 / (double)sysconf(_SC_CLK_TCK) / (double)c->iters);
	for (i = 0; i < c->iters; i++)
		printf("%s%llu", i ? ", " : "", (unsigned long long)c->ns[i]);
	printf("]}\n");
	fflush(stdout);
}

/* Libraries take turns, and a different one begins each time. */
static int measure(struct bench *b, enum op op, uint64_t nbytes)
{
	static struct cell cells[MAX_LIBS];
	uint64_t i, ns, n = count_of(b, op, nbytes);
	uint64_t iters = nbytes > LONG_NBYTES ? (b->iters + 2) / 3 : b->iters;
	int l, rc = 0;

	memset(cells, 0, sizeof(cells));
	for (i = 0; i < b->warm + iters; i++) {
		for (l = 0; l < b->nlibs && !rc; l++) {
			int k = (l + (int)i) % b->nlibs;

			if (!has(b->libs[k], op))
				continue;
			if (i == b->warm)
				cells[k].moved = cells[k].ticks = 0;
			rc = once(b, b->libs[k], op, n, &ns, &cells[k]);
			if (i >= b->warm)
				cells[k].ns[i - b->warm] = ns;
		}
	}
	for (l = 0; l < b->nlibs; l++)
		cells[l].iters = iters;
	for (l = 0; l < b->nlibs && !rc; l++)
		if (has(b->libs[l], op))
			print_cell(b, b->libs[l], op, n, &cells[l]);
	return rc;
}

static int measure_all(struct bench *b)
{
	uint64_t most = 0;
	int i, k, rc = 0;

	for (i = 0; i < b->nsizes; i++)
		most = b->sizes[i] > most ? b->sizes[i] : most;
	b->in = gci_calloc(most + 64, 1);
	b->out = gci_calloc(most + 64, 1);
	if (!b->in || !b->out) {
		fprintf(stderr, "out of memory\n");
		return -1;
	}
	memset(b->in, 1, most);
	memset(b->out, 1, most);
	for (i = 0; i < b->nops && !rc; i++)
		for (k = 0; k < (b->ops[i] == BARRIER ? 1 : b->nsizes) && !rc; k++)
			rc = measure(b, b->ops[i], b->sizes[k]);
	gci_free(b->in);
	gci_free(b->out);
	return rc;
}

/* ---- the job */

static int is_chosen(const char *list, const char *name)
{
	size_t n = strlen(name);
	const char *at;

	for (at = list; at && (at = strstr(at, name)); at += n)
		if ((at == list || at[-1] == ',') && (!at[n] || at[n] == ','))
			return 1;
	return !list;
}

static int open_libs(struct bench *b, const char *chosen)
{
	const struct gcb_lib *const *l = gcb_libs;
	struct gcb_place *p = &b->place;
	int rc = l[0]->open(p);

	if (rc)
		return rc;
	snprintf(b->dir, sizeof(b->dir), "%s", "/dev/shm/gridcoll-peers-XXXXXX");
	if (!p->rank && !mkdtemp(b->dir)) {
		perror(b->dir);
		return -1;
	}
	rc = l[0]->bcast(b->dir, sizeof(b->dir));
	if (!rc && gcb_meeting_open(&b->meeting, b->dir, p->rank, p->size)) {
		perror("no meeting of the ranks");
		return -1;
	}
	p->dir = b->dir;
	p->one_net = gcb_meeting_one_net(&b->meeting);
	for (; *l && !rc; l++) {
		if (l != gcb_libs && !is_chosen(chosen, (*l)->name))
			continue;
		if (l != gcb_libs)
			rc = (*l)->open(p);
		if (is_chosen(chosen, (*l)->name))
			b->libs[b->nlibs++] = *l;
	}
	return rc;
}

static void remove_dir(const struct bench *b)
{
	char command[100];

	if (b->place.rank || strncmp(b->dir, "/dev/shm/gridcoll-peers-", 24) != 0)
		return;
	snprintf(command, sizeof(command), "rm -rf %s", b->dir);
	if (system(command))
		fprintf(stderr, "%s is left behind\n", b->dir);
}

static int parse_list(struct bench *b, const char *ops, char *sizes)
{
	char *s, *rest = NULL;
	int i;

	for (i = 0; i < NOPS; i++)
		if (is_chosen(ops, op_names[i]))
			b->ops[b->nops++] = (enum op)i;
	for (s = strtok_r(sizes, ",", &rest); s; s = strtok_r(NULL, ",", &rest))
		if (b->nsizes == MAX_SIZES || gci_parse_bytes(s, &b->sizes[b->nsizes++]))
			return -1;
	return b->nsizes && b->nops ? 0 : -1;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {{"ops", 1, NULL, 'o'}, {"bytes", 1, NULL, 'b'},
		{"iters", 1, NULL, 'i'}, {"libs", 1, NULL, 'l'}, {"warm", 1, NULL, 'w'},
		{NULL, 0, NULL, 0}};
	static struct bench b = {.iters = 5, .warm = 2};
	char *ops = NULL, *libs = NULL, *sizes = NULL;
	int c, rc = 0;

	b.place.argc = 1;
	b.place.argv = argv;
	while ((c = getopt_long(argc, argv, "o:b:i:l:w:", longs, NULL)) != -1) {
		if (c == 'o' || c == 'l' || c == 'b')
			*(c == 'o' ? &ops : c == 'l' ? &libs : &sizes) = optarg;
		else if ((c != 'i' && c != 'w') ||
			 gci_parse_uint(optarg, MAX_ITERS, c == 'i' ? &b.iters : &b.warm))
			rc = 2;
	}
	if (rc || !b.iters || parse_list(&b, ops, sizes ? sizes : (char[]){"65536"})) {
		fprintf(stderr, "usage: peers_rank [--ops LIST] [--bytes LIST] [--iters N] "
				"[--warm N] [--libs LIST]\n");
		return 2;
	}
	rc = open_libs(&b, libs);
	if (!rc)
		rc = measure_all(&b);
	if (!rc)
		for (c = b.nlibs - 1; c > 0; c--)
			b.libs[c]->close();
	gcb_meeting_close(&b.meeting);
	remove_dir(&b);
	gcb_libs[0]->close();
	return rc != 0;
}
