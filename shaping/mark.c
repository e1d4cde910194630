/* SPDX-License-Identifier: MIT */
#include "shaping/mark.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

/* Anyone may make files in one of these. */
static const char *const directories[] = {"/run/lock", "/tmp"};

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
		fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			fd = open(path, O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
	}
	return fd;
}
