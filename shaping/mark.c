/* SPDX-License-Identifier: MIT */
#include "shaping/mark.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* What somebody put there instead of a file must not keep us. */
#define FLAGS (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)

/* Anyone may make files in one of these. */
static const char *const directories[] = {"/run/lock", "/tmp"};

/* Else it is closed. */
static int only_file(int fd)
{
	struct stat s;

	if (fd < 0 || (!fstat(fd, &s) && S_ISREG(s.st_mode)))
		return fd;
	close(fd);
	errno = EACCES;
	return -1;
}

int gci_mark_open(const char *what, const char *dev)
{
	struct stat s = {0};
	char path[160];
	int fd = -1;
	size_t i;

	stat("/proc/self/ns/net", &s);
	for (i = 0; i < sizeof(directories) / sizeof(*directories) && fd < 0; i++) {
		snprintf(path, sizeof(path), "%s/gridcoll-%s-%llu-%s", directories[i], what,
			(unsigned long long)s.st_ino, dev);
		/* O_CREAT is refused for others' files there (fs.protected_regular). */
		fd = open(path, FLAGS);
		if (fd < 0)
			fd = open(path, FLAGS | O_CREAT, 0644);
		fd = only_file(fd);
	}
	return fd;
}
