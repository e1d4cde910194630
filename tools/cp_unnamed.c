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

int gct_cp_open_unnamed(int dir)
{
	char path[32];
	int fd = openat(dir, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);

	if (fd >= 0 && access(path_of(fd, path), F_OK)) { /* no /proc: it could not get a name */
		close(fd);
		fd = -1;
	}
	return fd;
}

static int give_name(int fd, int dir, const char *temporary, const char *name)
{
	char path[32];
	int copy = dup(fd);

	/* Closing one descriptor of it tells of a full disk as closing the last one does. */
	if (copy < 0 || close(copy))
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
