/* SPDX-License-Identifier: MIT */
#include "bench/peers/veth.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = write(fd, text, strlen(text));
	close(fd);
	return n == (ssize_t)strlen(text) ? 0 : -1;
}

/* Root does without a user namespace; others are root in one. */
static int unshare_all(struct gci_error *e)
{
	unsigned uid = geteuid(), gid = getegid();
	char map[64];

	if (!uid && !unshare(CLONE_NEWNET))
		return 0;
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return gci_error_set(e, GCOLL_ERR_UNSUPPORTED,
			"no network namespace of our own: %s", strerror(errno));
	snprintf(map, sizeof(map), "0 %u 1", uid);
	if (write_text("/proc/self/setgroups", "deny") || write_text("/proc/self/uid_map", map))
		return gci_error_set(
			e, GCOLL_ERR_UNSUPPORTED, "no user of our own: %s", strerror(errno));
	snprintf(map, sizeof(map), "0 %u 1", gid);
	write_text("/proc/self/gid_map", map);
	return 0;
}

int gcb_net_own(struct gci_error *e)
{
	int rc = unshare_all(e);

	if (!rc && system("ip link set lo up"))
		rc = gci_error_set(e, GCOLL_ERR_UNSUPPORTED, "ip cannot set lo up");
	return rc;
}

/* Ready when it has closed its end of the pipe. */
static pid_t hold_second(void)
{
	int ready[2];
	pid_t pid;
	char c;

	if (pipe(ready))
		return -1;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (unshare(CLONE_NEWNET))
			_exit(1);
		close(ready[0]);
		close(ready[1]);
		for (;;)
			pause();
	}
	close(ready[1]);
	if (pid > 0 && read(ready[0], &c, 1) < 0)
		errno = 0; /* its end is closed: that is all */
	close(ready[0]);
	return pid;
}

int gcb_veth_enter(struct gcb_veth *v, struct gci_error *e)
{
	char script[600];
	int rc = unshare_all(e);

	if (rc)
		return rc;
	v->holder = hold_second();
	if (v->holder < 0)
		return gci_error_set(e, GCOLL_ERR_UNSUPPORTED, "no process: %s", strerror(errno));
	snprintf(script, sizeof(script),
		"ip link set lo up && ip link add v0 type veth peer name v1 netns %d && "
		"ip address add " GCB_VETH_IP0 "/24 dev v0 && ip link set v0 up && "
		"nsenter --net=/proc/%d/ns/net sh -c 'ip link set lo up; "
		"ip address add " GCB_VETH_IP1 "/24 dev v1 && ip link set v1 up'",
		(int)v->holder, (int)v->holder);
	if (!system(script))
		return 0;
	gcb_veth_leave(v);
	return gci_error_set(e, GCOLL_ERR_UNSUPPORTED,
		"no veth pair between two namespaces could be made with ip and nsenter");
}

int gcb_veth_join(const struct gcb_veth *v)
{
	char path[64];
	int fd, rc;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)v->holder);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	rc = setns(fd, CLONE_NEWNET);
	close(fd);
	return rc;
}

void gcb_veth_leave(struct gcb_veth *v)
{
	if (v->holder <= 0)
		return;
	kill(v->holder, SIGKILL);
	waitpid(v->holder, NULL, 0);
	v->holder = 0;
}
