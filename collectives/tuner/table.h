/* SPDX-License-Identifier: MIT
 * Decision tables: which way to run an operation, by its size, on one grid with so many ranks. What
 * a tuner writes, the launcher checks and hands out, and communicators look up.
 *
 *	rc = gci_table_parse(&t, text, len, "my.table", gci_grid_digest(&grid), &e);
 *	if (gci_table_find(&t, GCI_BCAST, 16, nbytes, &how))
 *		gci_candidate_apply(&how, &coll);
 *	gci_table_free(&t);
 *
 * As a file:
 *	{"version": 1, "date": "2026-03-01T12:00:00Z", "grid_digest": "0123456789abcdef",
 *	 "ranks": 16, "clusters": 2,
 *	 "operations": {
 *	  "bcast": [
 *	   {"nbytes": 65536, "algorithm": "tree", "predicted_ns": 10500000},
 *	   {"nbytes": 1048576, "algorithm": "chain:segment=64KiB", "predicted_ns": 21000000,
 *	    "measured_ns": 22100000}],
 *	  ...}}
 * "ranks" and "clusters": how many of the ranks' and of clusters with ranks. "predicted_ns" and
 * "measured_ns" may be left out. Times are of the grid as its file says, not of a dilated lab.
 *
 * Sizes are of all that the operation moves for one rank: the vector, or all blocks (alltoall: of
 * one rank's buffer), gci_table_nbytes(); barrier has one entry of size 0.
 *
 * Pure; a table is immutable once read and may be used by several threads. */
#ifndef GCI_COLLECTIVES_TUNER_TABLE_H
#define GCI_COLLECTIVES_TUNER_TABLE_H

#include "collectives/tuner/candidate.h"

#define GCI_TABLE_MAX_TEXT    (8u << 20)
#define GCI_TABLE_MAX_ENTRIES 4096 /* of all operations */
#define GCI_TABLE_MAX_NBYTES  (UINT64_C(1) << 60)

struct gci_table_entry {
	uint64_t nbytes;
	struct gci_candidate how;
	uint64_t predicted_ns, measured_ns; /* 0: not */
};

/* Zero it before the first gci_table_add; gci_table_parse does so. */
struct gci_table {
	uint64_t grid_digest;
	char date[32]; /* ISO 8601, UTC */
	int nranks;
	int nclusters;                               /* that have ranks */
	struct gci_table_entry *entries[GCI_NKINDS]; /* rising sizes */
	size_t nentries[GCI_NKINDS];
};

void gci_table_free(struct gci_table *t);

/* In its place among the sizes; an entry of the same size is replaced. 0, GCOLL_ERR_NOMEM, or
 * GCOLL_ERR_INVAL beyond the bounds above. */
int gci_table_add(struct gci_table *t, enum gci_kind kind, const struct gci_table_entry *entry);

/* Reads a table's text (`len` bytes). `name` stands before the line number in errors. grid_digest:
 * of the grid it is to be used on, else refused as made for another; 0: not compared. On failure
 * returns GCOLL_ERR_PARSE, _INVAL (of another grid) or _NOMEM with `t` empty. */
int gci_table_parse(struct gci_table *t, const char *text, size_t len, const char *name,
	uint64_t grid_digest, struct gci_error *e);

struct gci_buf;
/* As text that parses to the same table. */
void gci_table_print(const struct gci_table *t, struct gci_buf *out);

/* Digest of all in it that a choice depends on. */
uint64_t gci_table_digest(const struct gci_table *t);

/* All times k times as long. */
void gci_table_dilate(struct gci_table *t, uint32_t k);

/* True with the way to run an operation of this size in *out; false when the table does not know
 * it: another number of ranks, or no entry of this kind. Between two sizes the nearer one's (by
 * ratio), but with a segment in between when both are the same algorithm's; beyond the ends, the
 * end's. In integers: all ranks find the same. */
int gci_table_find(const struct gci_table *t, enum gci_kind kind, int nranks, uint64_t nbytes,
	struct gci_candidate *out);

/* The time that the table expects: measured, else predicted; between two sizes on a line between
 * them, beyond the last in proportion. 0: it does not know. */
uint64_t gci_table_ns(const struct gci_table *t, enum gci_kind kind, int nranks, uint64_t nbytes);

/* The size of an operation as tables count it. */
uint64_t gci_table_nbytes(const struct gci_coll *c);

/* The power of two that is nearest by ratio, at most GCI_TABLE_MAX_NBYTES; 0 for 0. */
uint64_t gci_table_round(uint64_t nbytes);

#endif
