/* SPDX-License-Identifier: MIT */
#include "shaping/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define CGROUP2_MAGIC 0x63677270

/* Where version 2 is: alone, or beside version 1. */
static const char *mounted(void)
{
	static const char *const places[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
	struct statfs st;
	size_t i;

	for (i = 0; i < sizeof(places) / sizeof(*places); i++)
		if (!statfs(places[i], &st) && st.f_type == CGROUP2_MAGIC)
			return places[i];
	return NULL;
}

/* "0::/user.slice/..." */
static int own(char *path, size_t size)
{
	FILE *f = fopen("/proc/self/cgroup", "re");
	int found = 0;

	while (f && !found && fgets(path, (int)size, f))
		if (!strncmp(path, "0::/", 4)) {
			memmove(path, path + 3, strlen(path) - 2);
			path[strcspn(path, "\n")] = '\0';
			found = 1;
		}
	if (f)
		fclose(f);
	return found ? 0 : -1;
}

int gci_cgroup_make(char path[GCI_CGROUP_PATH], const char *name, struct gci_error *e)
{
	const char *top = mounted();
	char mine[GCI_CGROUP_PATH];

	if (!top || own(mine, sizeof(mine)))
		return gci_error_set(e, GCOLL_ERR_UNSUPPORTED,
			"there is no cgroup of version 2: mount -t cgroup2 none /sys/fs/cgroup");
	if (snprintf(path, GCI_CGROUP_PATH, "%s%s/%s", top, strcmp(mine, "/") ? mine : "", name) >=
		GCI_CGROUP_PATH)
		return gci_error_set(e, GCOLL_ERR_UNSUPPORTED, "path too long: %s", mine);
	if (!mkdir(path, 0755) || errno == EEXIST)
		return 0;
	return gci_error_set(
		e, GCOLL_ERR_UNSUPPORTED, "cannot make cgroup %.300s: %s", path, strerror(errno));
}

int gci_cgroup_enter(const char *path, pid_t pid, struct gci_error *e)
{
	char file[GCI_CGROUP_PATH + 16], text[16];
	int fd, len = snprintf(text, sizeof(text), "%d\n", (int)pid), rc = 0;

	snprintf(file, sizeof(file), "%s/cgroup.procs", path);
	fd = open(file, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, (size_t)len) != len)
		rc = gci_error_errno(e, "cannot enter cgroup %.300s", path);
	if (fd >= 0)
		close(fd);
	return rc;
}

void gci_cgroup_remove(const char *path)
{
	rmdir(path);
}
