/* SPDX-License-Identifier: MIT
 * What the parts of `gridcoll cp` have in common. */
#ifndef GCT_CP_IMPL_H
#define GCT_CP_IMPL_H

#include "tools/cp/cp.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* rc of a public call, with what it said. */
static inline int gct_cp_operation_error(struct gci_error *e, int rc)
{
	return rc ? gci_error_set(e, rc, "%s", gcoll_last_error()) : 0;
}

/* Makes progress for at most so long; the job's failure, if there is one. (move.c) */
int gct_cp_progress(gcoll_comm *comm, uint64_t timeout_ns, struct gci_error *e);

/* errno's. */
static inline int gct_cp_io_error(struct gci_error *e, const char *what, const char *path)
{
	return gci_error_set(e, GCOLL_ERR_IO, "cannot %s %s: %s", what, path, strerror(errno));
}

#define GCT_CP_CHANGED "changed while it was being read"

/* A file of the source's for reading; -1: errno says why not. (move.c) */
int gct_cp_source_open(struct gct_cp_place *p, const struct gct_cp_file *f);
/* Its path, for messages. */
char *gct_cp_source_path(const struct gct_cp_manifest *m, uint32_t file);

/* A file's path below DEST (to be freed; NULL: out of memory). */
char *gct_cp_name_in_dest(const struct gct_cp_manifest *m, uint32_t file);

/* What a file is called in its directory here, and while it is not whole (to be freed). */
const char *gct_cp_sink_name(const struct gct_cp_sink *s, uint32_t file);
char *gct_cp_part_name(const char *name);

/* The part of a file, to be s->part_fd: locked, and under its name. With `make` it is made if it is
 * missing. 1; 0: it is another's to write to, or there are no locks here; -1: errno says why not.
 * (sink.c) */
int gct_cp_hold_part(struct gct_cp_sink *s, uint32_t file, int make);

/* What a signal removes, once gct_cp_sink_guard is called: in place of what that was, until the next
 * call; dir -1: nothing. (sink.c) */
enum gct_cp_guard { GCT_CP_GUARD_TEMPORARY, GCT_CP_GUARD_MARKER, GCT_CP_GUARDS };

void gct_cp_guard_name(enum gct_cp_guard which, int dir, const char *name);

/* True if nobody but this user has a hand in it. */
static inline int gct_cp_is_own(const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_uid == geteuid() && st->st_nlink == 1;
}

/* With --resume: no entry may be called as a file's part. GCOLL_ERR_INVAL names both. */
int gct_cp_check_parts(const struct gct_cp_manifest *m, struct gci_error *e);

/* What is there under this name, before anything is put in its place: 0, or an error that says what
 * is in the way. `path` is the name's. (sink.c) */
int gct_cp_check_target(int dir, const char *name, const char *path, struct gci_error *e);

/* True of a path that means what a directory holds, and has no name of its own. (scan.c) */
int gct_cp_is_contents(const char *path);

static inline int gct_cp_is_directory(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* True if a file has the size and the time of modification that the manifest says. A writer moves
 * the time even when the size stays. */
static inline int gct_cp_is_as_said(const struct stat *st, const struct gct_cp_file *f)
{
	return S_ISREG(st->st_mode) && (uint64_t)st->st_size == (f->whole ? f->whole : f->size) &&
	       st->st_mtim.tv_sec == f->mtime_s && (uint32_t)st->st_mtim.tv_nsec == f->mtime_ns;
}

static inline uint64_t gct_cp_blocks_of(uint64_t nbytes)
{
	return nbytes / GCT_CP_BLOCK_NBYTES + (nbytes % GCT_CP_BLOCK_NBYTES != 0);
}

#endif
