/* SPDX-License-Identifier: MIT */
#include "shaping/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define CGROUP2_MAGIC 0x63677270
#define PREFIX        "gridcoll-"
#define TRIES         16

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

/* The descriptor of a cgroup that nobody else has locked, or -1. A lock ends with its holder,
 * however that ends; numbers of processes come again, and differ between containers. */
static int lock(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || !flock(fd, LOCK_EX | LOCK_NB))
		return fd;
	close(fd);
	return -1;
}

/* What a dead owner has left. One that is still in use stays. */
static void sweep(const char *parent)
{
	DIR *d = opendir(parent);
	char path[GCI_CGROUP_PATH];
	struct dirent *entry;
	int fd;

	while (d && (entry = readdir(d))) {
		if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) != 0 ||
			snprintf(path, sizeof(path), "%s/%s", parent, entry->d_name) >=
				(int)sizeof(path))
			continue;
		fd = lock(path);
		if (fd < 0)
			continue;
		rmdir(path);
		close(fd);
	}
	if (d)
		closedir(d);
}

/* -1 with errno; EAGAIN: somebody has swept it away before it was locked. */
static int make_locked(const char *path)
{
	struct stat named, locked;
	int fd;

	if (mkdir(path, 0755) && errno != EEXIST)
		return -1;
	fd = lock(path);
	if (fd >= 0 && !stat(path, &named) && !fstat(fd, &locked) && named.st_ino == locked.st_ino)
		return fd;
	if (fd >= 0)
		close(fd);
	errno = EAGAIN;
	return -1;
}

int gci_cgroup_make(char path[GCI_CGROUP_PATH], struct gci_error *e)
{
	char mine[GCI_CGROUP_PATH], parent[GCI_CGROUP_PATH];
	const char *top = mounted();
	int i, fd = -1;

	if (!top || own(mine, sizeof(mine)))
		return gci_error_set(e, GCOLL_ERR_UNSUPPORTED,
			"there is no cgroup of version 2: mount -t cgroup2 none /sys/fs/cgroup");
	if (snprintf(parent, sizeof(parent), "%s%s", top, strcmp(mine, "/") ? mine : "") >=
		GCI_CGROUP_PATH - 32)
		return gci_error_set(e, GCOLL_ERR_UNSUPPORTED, "path too long: %s", mine);
	sweep(parent);
	for (i = 0; fd < 0 && i < TRIES; i++) {
		snprintf(path, GCI_CGROUP_PATH, "%.*s/" PREFIX "%d-%d", GCI_CGROUP_PATH - 32,
			parent, (int)getpid(), i);
		fd = make_locked(path);
		if (fd < 0 && errno != EAGAIN)
			break;
	}
	if (fd >= 0)
		return fd;
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
