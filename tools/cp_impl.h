/* SPDX-License-Identifier: MIT
 * What the parts of `gridcoll cp` have in common. */
#ifndef GCT_CP_IMPL_H
#define GCT_CP_IMPL_H

#include "tools/cp.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* rc of a public call, with what it said. */
static inline int gct_cp_operation_error(struct gci_error *e, int rc)
{
	return rc ? gci_error_set(e, rc, "%s", gcoll_last_error()) : 0;
}

/* Makes progress for at most so long; the job's failure, if there is one. (cp_move.c) */
int gct_cp_progress(gcoll_comm *comm, uint64_t timeout_ns, struct gci_error *e);

/* errno's. */
static inline int gct_cp_io_error(struct gci_error *e, const char *what, const char *path)
{
	return gci_error_set(e, GCOLL_ERR_IO, "cannot %s %s: %s", what, path, strerror(errno));
}

static inline int gct_cp_is_directory(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* True if a file has the size and the time of modification that the manifest says. A writer moves
 * the time even when the size stays. */
static inline int gct_cp_is_as_said(const struct stat *st, const struct gct_cp_file *f)
{
	return S_ISREG(st->st_mode) && (uint64_t)st->st_size == f->size &&
	       st->st_mtim.tv_sec == f->mtime_s && (uint32_t)st->st_mtim.tv_nsec == f->mtime_ns;
}

static inline uint64_t gct_cp_blocks_of(uint64_t nbytes)
{
	return nbytes / GCT_CP_BLOCK_NBYTES + (nbytes % GCT_CP_BLOCK_NBYTES != 0);
}

#endif
