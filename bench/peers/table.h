/* SPDX-License-Identifier: MIT
 * What the ranks of a comparison said: a cell for each operation, number of ranks, size and
 * library.
 *
 *	struct gcb_table t = {.dilation = 1};
 *	gcb_table_add(&t, line);		// of rank.c
 *	gcb_table_print(&t);
 *	gcb_table_free(&t); */
#ifndef GCB_TABLE_H
#define GCB_TABLE_H

#include <stdint.h>

struct gcb_cell {
	char lib[16], op[16];
	int ranks, n;
	uint64_t nbytes, moved, least, wrong;
	double *ns, cpu_ms; /* cpu_ms: of the machine's processors, per operation */
};

struct gcb_table {
	struct gcb_cell *cells;
	int n, cap;
	unsigned dilation; /* times are divided by it */
};

/* 0, or -1: this is no such line. */
int gcb_table_add(struct gcb_table *t, const char *line);

/* A block for each operation and number of ranks; then what stands out. */
void gcb_table_print(const struct gcb_table *t);

/* As JSON; -1 after saying why. */
int gcb_table_write(const struct gcb_table *t, const char *path);
void gcb_table_free(struct gcb_table *t);

#endif
