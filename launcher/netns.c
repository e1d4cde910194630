/* SPDX-License-Identifier: MIT */
#include "launcher/netns.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

static int enter(const char *name, struct gci_error *e)
{
	char path[300];
	int fd, rc;

	if (!*name || strchr(name, '/') || strlen(name) > 255)
		return gci_error_set(e, GCOLL_ERR_INVAL, "bad network namespace name \"%s\"", name);
	snprintf(path, sizeof(path), "/run/netns/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return gci_error_errno(e, "network namespace %s", name);
	rc = setns(fd, CLONE_NEWNET) ? gci_error_errno(e, "cannot enter network namespace %s", name)
				     : 0;
	close(fd);
	return rc;
}

int gci_ns_join(const char *name, struct gci_error *e)
{
	int rc = enter(name, e);

	if (rc)
		return rc;
	/* /sys shows the devices of the namespace it was mounted in. A convenience: a program can
	 * do without (/proc/net follows by itself). */
	if (unshare(CLONE_NEWNS) || mount("", "/", "none", MS_SLAVE | MS_REC, NULL) ||
		mount(name, "/sys", "sysfs", 0, NULL))
		gci_log(GCI_LOG_INFO, "no /sys for namespace %s: %s", name, strerror(errno));
	return 0;
}

int gci_ns_visit(const char *name, int *back, struct gci_error *e)
{
	int rc;

	*back = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (*back < 0)
		return gci_error_errno(e, "cannot open /proc/self/ns/net");
	rc = enter(name, e);
	if (rc)
		close(*back);
	return rc;
}

int gci_ns_return(int back, struct gci_error *e)
{
	int rc = setns(back, CLONE_NEWNET)
			 ? gci_error_errno(e, "cannot return from a network namespace")
			 : 0;

	close(back);
	return rc;
}
