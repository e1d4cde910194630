/* SPDX-License-Identifier: MIT
 * Cgroups (v2) that programs can be attached to.
 *
 *	char path[GCI_CGROUP_PATH];
 *
 *	fd = gci_cgroup_make(path, &e);		(below our own)
 *	rc = gci_cgroup_enter(path, 0, &e);
 *	...	all that this process starts from now on is in it, too
 *	gci_cgroup_remove(path);		(when it is empty)
 *	close(fd);
 */
#ifndef GCI_SHAPING_CGROUP_H
#define GCI_SHAPING_CGROUP_H

#include "base/error.h"

#include <sys/types.h>

#define GCI_CGROUP_PATH 4096

/* A new one below that of this process, and a descriptor, which tells others that its owner lives;
 * empty ones there whose owners do not are removed. GCOLL_ERR_UNSUPPORTED without cgroup v2 or
 * rights to it. */
int gci_cgroup_make(char path[GCI_CGROUP_PATH], struct gci_error *e);

/* Moves a process (0: this one) there. */
int gci_cgroup_enter(const char *path, pid_t pid, struct gci_error *e);

/* Fails in silence while processes are in it. */
void gci_cgroup_remove(const char *path);

#endif
