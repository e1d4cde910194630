/* SPDX-License-Identifier: MIT
 * Preloaded: all directories have one device and inode number, as those of equal images have on
 * machines that are clones; and with GRIDCOLL_TEST_HOLD who has made a link does not go on. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SEEN __attribute__((visibility("default")))

SEEN int fstat(int fd, struct stat *st)
{
	int rc = fstatat(fd, "", st, AT_EMPTY_PATH);

	if (!rc && S_ISDIR(st->st_mode))
		st->st_dev = st->st_ino = 1;
	return rc;
}

SEEN int symlinkat(const char *target, int dir, const char *path)
{
	int rc = (int)syscall(SYS_symlinkat, target, dir, path);

	while (getenv("GRIDCOLL_TEST_HOLD"))
		pause();
	return rc;
}
