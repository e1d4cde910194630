/* SPDX-License-Identifier: MIT
 * Lists of operations, sizes and algorithms as arguments, for commands that run or simulate each.
 */
#ifndef GCT_CASES_H
#define GCT_CASES_H

#include "base/buf.h"
#include "base/units.h"
#include "collectives/coll.h"

#define GCT_MAX_CASES 64 /* sizes, or algorithms, in one call */

#define GCT_MOST_NBYTES     (UINT64_C(1) << 50) /* of a message */
#define GCT_NBYTES_EXPECTED GCI_BYTES_EXPECTED ", at most 1024TiB"

/* What `take` of an option does (base/options.h): a list is cut up, and what is taken from it points
 * into it. 0 or GCOLL_ERR_INVAL. */
int gct_take_sizes(char *list, uint64_t sizes[GCT_MAX_CASES], int *n, struct gci_error *e);

/* Names are not looked up; "all" gives none. */
int gct_take_algorithms(char *list, const char *names[GCT_MAX_CASES], int *n, struct gci_error *e);

/* 0, or an exit status after saying what is wrong; `tool` is the subcommand's name. */
/* Each operation once; at least one; "all" is all of them. */
int gct_parse_operations(
	const char *tool, int argc, char **argv, enum gci_kind kinds[GCI_NKINDS], int *n);

/* "WHAT "VALUE", expected EXPECTED", as gct_wrong() says it. */
int gct_wrong_value(const char *tool, const char *what, const char *value, const char *expected);

/* The setting "streams"; 0: it is not asked for. */
int gct_set_streams(gcoll_comm *comm, uint64_t n);

/* gci_file_check() and gci_file_write() of a job: their errors as gci_comm_error() has them. */
int gct_try_to_write(const char *path);
int gct_write(const char *path, const struct gci_buf *text);

#endif
