/* SPDX-License-Identifier: MIT
 * Files that have no name while they are written: whatever ends the process, nothing is left. */
#include "tools/cp_impl.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static const char *path_of(int fd, char out[32])
{
	snprintf(out, 32, "/proc/self/fd/%d", fd);
	return out;
}

static int open_unnamed(int dir)
{
	return openat(dir, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
}

/* Without /proc one could get no name, nor where a file system makes such files but no links to
 * them, as by FUSE it may: known before anything is written. */
static int can_be_named(int dir, const char *temporary)
{
	char path[32];
	int fd = open_unnamed(dir), bad;

	if (fd < 0)
		return 0;
	bad = linkat(AT_FDCWD, path_of(fd, path), dir, temporary, AT_SYMLINK_FOLLOW) ||
	      unlinkat(dir, temporary, 0);
	close(fd);
	return !bad;
}

int gct_cp_open_unnamed(struct gct_cp_sink *s, int dir)
{
	struct stat st;

	if (fstat(dir, &st))
		return -1;
	if (s->has_unnamed < 0 || s->device != st.st_dev) {
		s->has_unnamed = can_be_named(dir, s->temporary);
		s->device = st.st_dev;
	}
	return s->has_unnamed ? open_unnamed(dir) : -1;
}

int gct_cp_flush(int fd)
{
	int copy = dup(fd);

	return copy < 0 ? -1 : close(copy);
}

static int give_name(int fd, int dir, const char *temporary, const char *name)
{
	char path[32];

	if (gct_cp_flush(fd))
		return -1;
	path_of(fd, path);
	if (!linkat(AT_FDCWD, path, dir, name, AT_SYMLINK_FOLLOW))
		return 0;
	/* A link is in nothing's place; a rename is. */
	if (errno != EEXIST || linkat(AT_FDCWD, path, dir, temporary, AT_SYMLINK_FOLLOW))
		return -1;
	return renameat(dir, temporary, dir, name);
}

int gct_cp_name_unnamed(int fd, int dir, const char *temporary, const char *name)
{
	int rc = give_name(fd, dir, temporary, name);

	return close(fd) ? -1 : rc;
}
