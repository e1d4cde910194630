/* SPDX-License-Identifier: MIT */
#include "tests/tools/limits.h"

#include "tests/test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <unistd.h>

void drop_override(void)
{
	if (geteuid())
		return;
	prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0);
	prctl(PR_CAPBSET_DROP, CAP_DAC_READ_SEARCH, 0, 0, 0);
}

static void put_line(const char *path, const char *line)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, line, strlen(line)) < 0)
		print_message("%s: %s\n", path, strerror(errno));
	if (fd >= 0)
		close(fd);
}

int small_disk(const char *dir, const char *size)
{
	char map[64];
	unsigned uid = geteuid(), gid = getegid();

	if (unshare(uid ? CLONE_NEWUSER | CLONE_NEWNS : CLONE_NEWNS))
		return 0;
	if (uid) {
		put_line("/proc/self/setgroups", "deny");
		snprintf(map, sizeof(map), "0 %u 1", uid);
		put_line("/proc/self/uid_map", map);
		snprintf(map, sizeof(map), "0 %u 1", gid);
		put_line("/proc/self/gid_map", map);
	}
	mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
	return !mount("tmpfs", dir, "tmpfs", 0, size);
}
