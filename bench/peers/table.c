/* SPDX-License-Identifier: MIT */
#include "bench/peers/table.h"

#include "base/median.h"
#include "base/mem.h"
#include "base/units.h"
#include "bench/peers/pair.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MANY_NBYTES (64u << 10) /* where bytes count, not only messages */
#define CPU_NBYTES  (16u << 20) /* the clock of processors ticks every 10 ms */

static const char *const libs[] = {"gridcoll", "gloo", "Open MPI", "MPICH", "sockets"};
#define NLIBS ((int)(sizeof(libs) / sizeof(*libs)))

static struct gcb_cell *new_cell(struct gcb_table *t)
{
	int cap = t->cap ? 2 * t->cap : 64;
	struct gcb_cell *bigger;

	if (t->n == t->cap) {
		bigger = gci_reallocarray(t->cells, (size_t)cap, sizeof(*bigger));
		if (!bigger)
			return NULL;
		t->cells = bigger;
		t->cap = cap;
	}
	memset(&t->cells[t->n], 0, sizeof(*t->cells));
	return &t->cells[t->n];
}

static int read_cell(struct gcb_cell *c, json_t *said)
{
	json_int_t nbytes, moved, least, wrong;
	const char *lib, *op;
	json_t *ns;
	int i;

	if (json_unpack(said, "{s:s, s:s, s:i, s:I, s:I, s:I, s:I, s:F, s:o}", "lib", &lib, "op",
		    &op, "ranks", &c->ranks, "bytes", &nbytes, "moved", &moved, "least", &least,
		    "wrong", &wrong, "cpu_ms", &c->cpu_ms, "ns", &ns) ||
		!json_array_size(ns))
		return -1;
	snprintf(c->lib, sizeof(c->lib), "%s", lib);
	snprintf(c->op, sizeof(c->op), "%s", op);
	c->nbytes = (uint64_t)nbytes;
	c->moved = (uint64_t)moved;
	c->least = (uint64_t)least;
	c->wrong = (uint64_t)wrong;
	c->n = (int)json_array_size(ns);
	c->ns = gci_calloc((size_t)c->n, sizeof(*c->ns));
	for (i = 0; c->ns && i < c->n; i++)
		c->ns[i] = (double)json_integer_value(json_array_get(ns, (size_t)i));
	return c->ns ? 0 : -1;
}

int gcb_table_add(struct gcb_table *t, const char *line)
{
	json_t *said = json_loads(line, 0, NULL);
	struct gcb_cell *c = said ? new_cell(t) : NULL;
	int rc = c ? read_cell(c, said) : -1;

	if (!rc)
		t->n++;
	json_decref(said);
	return rc;
}

void gcb_table_free(struct gcb_table *t)
{
	int i;

	for (i = 0; i < t->n; i++)
		gci_free(t->cells[i].ns);
	gci_free(t->cells);
	memset(t, 0, sizeof(*t));
}

/* ---- figures */

static const struct gcb_cell *find(
	const struct gcb_table *t, const struct gcb_cell *like, const char *lib)
{
	int i;

	for (i = 0; i < t->n; i++) {
		const struct gcb_cell *c = &t->cells[i];

		if (!strcmp(c->lib, lib) && !strcmp(c->op, like->op) && c->ranks == like->ranks &&
			c->nbytes == like->nbytes)
			return c;
	}
	return NULL;
}

/* Right, and over the network. */
static int is_good(const struct gcb_cell *c)
{
	return c && !c->wrong && c->moved >= c->least;
}

static double median(const struct gcb_cell *c)
{
	double *copy = gci_calloc((size_t)c->n, sizeof(*copy)), m = NAN;

	if (copy) {
		memcpy(copy, c->ns, (size_t)c->n * sizeof(*copy));
		m = gci_median(copy, (size_t)c->n);
	}
	gci_free(copy);
	return m;
}

/* How much faster `a` is than `b`: of pairs where they took turns, else of medians. */
static double speedup(const struct gcb_cell *a, const struct gcb_cell *b, int paired)
{
	double *ratio, m = NAN;
	int i;

	if (!paired || a->n != b->n)
		return median(b) / median(a);
	ratio = gci_calloc((size_t)a->n, sizeof(*ratio));
	for (i = 0; ratio && i < a->n; i++)
		ratio[i] = b->ns[i] / a->ns[i];
	if (ratio)
		m = gci_median(ratio, (size_t)a->n);
	gci_free(ratio);
	return m;
}

/* ---- text */

/* Processors' seconds for each GB that had to move. */
static void print_cpu(const struct gcb_cell *c)
{
	if (c->least < CPU_NBYTES)
		printf(" %5s", "-");
	else
		printf(" %5.2f", c->cpu_ms * 1e6 / (double)c->least);
}

static void print_other(
	const struct gcb_cell *own, const struct gcb_cell *c, unsigned dilation, int paired)
{
	char text[16];

	if (!c)
		printf(" %10s %6s %5s", "-", "-", "-");
	else if (!is_good(c))
		printf(" %17s %5s", c->wrong ? "wrong result" : "not on the wire", "-");
	else
		printf(" %10s %6.2f",
			gci_format_time((uint64_t)(median(c) / dilation), text, sizeof(text)),
			speedup(own, c, paired));
	if (is_good(c))
		print_cpu(c);
}

static int is_there(const struct gcb_table *t, const char *lib)
{
	int i;

	for (i = 0; i < t->n && strcmp(t->cells[i].lib, lib) != 0; i++)
		;
	return i < t->n;
}

static void print_row(const struct gcb_table *t, const struct gcb_cell *own)
{
	char bytes[16], text[16];
	int i;

	printf("%8s", gci_format_bytes(own->nbytes, bytes, sizeof(bytes)));
	if (is_good(own))
		printf(" %10s",
			gci_format_time((uint64_t)(median(own) / t->dilation), text, sizeof(text)));
	else
		printf(" %10s", own->wrong ? "wrong" : "no wire");
	print_cpu(own);
	for (i = 1; i < NLIBS; i++)
		if (is_there(t, libs[i]))
			print_other(own, find(t, own, libs[i]), t->dilation,
				!strcmp(libs[i], "gloo") || !strcmp(libs[i], "sockets"));
	printf("\n");
}

static void print_head(const struct gcb_table *t, const struct gcb_cell *c)
{
	int i;

	printf("\n%s, %d ranks\n%8s %10s %5s", c->op, c->ranks, "", libs[0], "cpu");
	for (i = 1; i < NLIBS; i++)
		if (is_there(t, libs[i]))
			printf(" %10s %6s %5s", libs[i], "x", "cpu");
	printf("\n");
}

/* Against Gloo, where bytes count. */
static void print_summary(const struct gcb_table *t)
{
	const struct gcb_cell *worst = NULL;
	double sum = 0, least = INFINITY, x;
	char bytes[16];
	int i, n = 0;

	for (i = 0; i < t->n; i++) {
		const struct gcb_cell *own = &t->cells[i], *other = find(t, own, libs[1]);

		if (strcmp(own->lib, libs[0]) != 0 || own->nbytes < MANY_NBYTES || !is_good(own) ||
			!is_good(other))
			continue;
		x = speedup(own, other, 1);
		sum += log(x);
		n++;
		if (x < least) {
			least = x;
			worst = own;
		}
	}
	if (n)
		printf("\nagainst Gloo from 64 KiB up: %.2f times as fast (geometric mean of %d "
		       "cells), least %.2f (%s of %s, %d ranks)\n",
			exp(sum / n), n, least, worst->op,
			gci_format_bytes(worst->nbytes, bytes, sizeof(bytes)), worst->ranks);
}

void gcb_table_print(const struct gcb_table *t)
{
	const struct gcb_cell *before = NULL;
	int i;

	if (t->dilation > 1)
		printf("times are measured times divided by k = %u\n", t->dilation);
	for (i = 0; i < t->n; i++) {
		const struct gcb_cell *c = &t->cells[i];

		if (strcmp(c->lib, libs[0]) != 0)
			continue;
		if (!before || strcmp(before->op, c->op) != 0 || before->ranks != c->ranks)
			print_head(t, c);
		print_row(t, c);
		before = c;
	}
	printf("\nx: how many times as long it takes as gridcoll; cpu: seconds of processors, of "
	       "all there is\n"
	       "on the machine, for each GB that the operation has to move; sockets: a pipeline of "
	       "bare ones\n");
	print_summary(t);
}

int gcb_table_write(const struct gcb_table *t, const char *path)
{
	json_t *list = json_array();
	int i, k, rc;

	for (i = 0; i < t->n; i++) {
		const struct gcb_cell *c = &t->cells[i];
		json_t *ns = json_array();

		for (k = 0; k < c->n; k++)
			json_array_append_new(ns, json_real(c->ns[k]));
		json_array_append_new(list,
			json_pack("{s:s, s:s, s:i, s:I, s:I, s:I, s:I, s:f, s:i, s:f, s:o}",
				"library", c->lib, "operation", c->op, "ranks", c->ranks, "bytes",
				(json_int_t)c->nbytes, "moved_bytes", (json_int_t)c->moved,
				"least_bytes", (json_int_t)c->least, "wrong", (json_int_t)c->wrong,
				"cpu_ms", c->cpu_ms, "dilation", (int)t->dilation, "median_ns",
				median(c), "ns", ns));
	}
	rc = json_dump_file(list, path, JSON_INDENT(1));
	if (rc)
		perror(path);
	json_decref(list);
	return rc;
}
