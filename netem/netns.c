/* SPDX-License-Identifier: MIT */
#include "netem/netns.h"

#include "base/clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static int path_of(char *out, size_t size, const char *name, struct gci_error *e)
{
	int n = snprintf(out, size, GCI_NETNS_DIR "/%s", name);

	if (n < 0 || (size_t)n >= size || strchr(name, '/') || !*name || *name == '.')
		return gci_error_set(e, GCOLL_ERR_INVAL, "bad namespace name \"%s\"", name);
	return 0;
}

int gci_netns_open(const char *name, struct gci_error *e)
{
	char path[512] = "/proc/thread-self/ns/net";
	int fd;

	if (name && path_of(path, sizeof(path), name, e))
		return -1;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		gci_error_errno(e, "namespace %s", path);
	return fd;
}

int gci_netns_enter(const char *name, struct gci_error *e)
{
	int fd = gci_netns_open(name, e);
	int rc = 0;

	if (fd < 0)
		return GCOLL_ERR_SYS;
	if (setns(fd, CLONE_NEWNET))
		rc = gci_error_errno(e, "cannot enter namespace %s", name);
	close(fd);
	return rc;
}

void gci_netns_leave(int fd)
{
	/* It was ours a moment ago, so this cannot fail but by a lost privilege: and to go on in
	 * the wrong namespace would do harm. */
	if (setns(fd, CLONE_NEWNET))
		abort();
	close(fd);
}

/* Sends `sig` to every process whose network is the one of `st`; how many there are. */
static int signal_all(const struct stat *st, int sig)
{
	DIR *proc = opendir("/proc");
	const struct dirent *d;
	int n = 0;

	if (!proc)
		return 0;
	while ((d = readdir(proc))) {
		char path[64];
		struct stat theirs;
		long pid = strtol(d->d_name, NULL, 10);

		if (pid <= 1 || pid == (long)getpid())
			continue;
		snprintf(path, sizeof(path), "/proc/%ld/ns/net", pid);
		if (!stat(path, &theirs) && theirs.st_ino == st->st_ino &&
			theirs.st_dev == st->st_dev) {
			kill((pid_t)pid, sig);
			n++;
		}
	}
	closedir(proc);
	return n;
}

int gci_netns_remove(const char *name, struct gci_error *e)
{
	char path[512];
	struct stat st, own;
	int tries;

	if (path_of(path, sizeof(path), name, e))
		return GCOLL_ERR_INVAL;
	if (stat(path, &st))
		return 0;
	/* A name without its namespace (its mount is gone) is a file like any other. */
	if (!stat("/proc/self/ns/net", &own) && own.st_dev == st.st_dev && own.st_ino != st.st_ino)
		for (tries = 0; tries < 20 && signal_all(&st, tries < 10 ? SIGTERM : SIGKILL);
			tries++)
			gci_sleep_ns(50 * GCI_NS_PER_MS);
	if (umount2(path, MNT_DETACH) && errno != EINVAL)
		return gci_error_errno(e, "cannot unmount %s", path);
	if (unlink(path) && errno != ENOENT)
		return gci_error_errno(e, "cannot remove %s", path);
	return 0;
}
