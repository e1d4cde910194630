/* SPDX-License-Identifier: MIT
 * The line on a terminal that says how far a command is; of rank 0, and where standard error is no
 * terminal none.
 *
 *	gct_progress_stage(i, n);
 *	gct_progress("bcast of %s", bytes);	// "3/12 bcast of 1.05 MB"
 *	gct_progress_end();
 *	printf("...\n"); */
#ifndef GCT_PROGRESS_H
#define GCT_PROGRESS_H

#include <stddef.h>

/* Shows it in place of the one before, at most ten times a second. */
void gct_progress(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* True if it would: for texts that take time to make. */
int gct_progress_is_due(void);

/* The i-th of `n` things is under way, from 1; of one, it is not said. */
void gct_progress_stage(size_t i, size_t n);

/* Wipes it: before other output, and at the end. */
void gct_progress_end(void);

/* The line itself, for those who know when; of at most 78 characters. */
void gct_progress_line(const char *line);

#endif
