/* SPDX-License-Identifier: MIT
 * Which operations a run has called, with which sizes and how often: what a tuner needs to tune for
 * that application alone (Vadhiyar 2004, 4.1).
 *
 *	gci_record_count(&r, GCI_BCAST, 16, nbytes);		// at every call
 *	gci_record_print(&r, &text);				// at the end
 *	gci_record_free(&r);
 *
 * As a file:
 *	{"version": 1, "lost": 0, "operations": [
 *	 {"operation": "bcast", "ranks": 16, "nbytes": 65536, "calls": 120},
 *	 ...]}
 * Sizes are rounded to the nearest power of two, so a record is bounded however many calls there
 * are; as decision tables count them (collectives/tuner/table.h). */
#ifndef GCI_COLLECTIVES_TUNER_RECORD_H
#define GCI_COLLECTIVES_TUNER_RECORD_H

#include "collectives/coll.h"

#define GCI_RECORD_MAX_ENTRIES 4096
#define GCI_RECORD_MAX_TEXT    (1u << 20)

struct gci_record_entry {
	enum gci_kind kind;
	int nranks;
	uint64_t nbytes; /* 0 or a power of two */
	uint64_t calls;
};

/* Zero it before the first use. */
struct gci_record {
	struct gci_record_entry *entries; /* by kind, ranks and size */
	size_t n;
	uint64_t lost; /* calls that found no room, or no memory */
};

void gci_record_free(struct gci_record *r);

/* One more call. Never fails: what finds no room is counted as lost. */
void gci_record_count(struct gci_record *r, enum gci_kind kind, int nranks, uint64_t nbytes);

/* On failure GCOLL_ERR_PARSE ("NAME:LINE: what, expected what") or _NOMEM, with `r` empty. */
int gci_record_parse(
	struct gci_record *r, const char *text, size_t len, const char *name, struct gci_error *e);

struct gci_buf;
void gci_record_print(const struct gci_record *r, struct gci_buf *out);

#endif
