/* SPDX-License-Identifier: MIT */
#include "netem/apply.h"

#include "base/mem.h"
#include "netem/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* "net.ipv4.tcp_rmem 4096 131072 33554432": /proc/sys/net shows the namespace we are in. A key that
 * this kernel lacks (IPv6 switched off) is passed over. */
static int set_sysctl(const char *line, size_t len, struct gci_error *e)
{
	char path[512] = "/proc/sys/", *p;
	size_t key = strcspn(line, " ");
	int fd, rc = 0;

	if (key + 11 > sizeof(path) || key >= len)
		return gci_error_set(e, GCOLL_ERR_INVAL, "bad sysctl line");
	memcpy(path + 10, line, key);
	path[10 + key] = '\0';
	for (p = path + 10; *p; p++)
		if (*p == '.')
			*p = '/';
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : gci_error_errno(e, "%s", path);
	if (write(fd, line + key + 1, len - key - 1) < 0)
		rc = gci_error_errno(e, "%.*s", (int)len, line);
	close(fd);
	return rc;
}

static int set_sysctls(const char *lines, struct gci_error *e)
{
	while (*lines) {
		size_t len = strcspn(lines, "\n");
		int rc = len ? set_sysctl(lines, len, e) : 0;

		if (rc)
			return rc;
		lines += len + (lines[len] == '\n');
	}
	return 0;
}

static int do_step(const struct gci_lab_step *s, struct gci_error *e)
{
	const char *argv[] = {s->tool == GCI_LAB_IP ? "ip" : "tc", "-batch", "-", NULL};

	if (s->tool == GCI_LAB_SYSCTL)
		return set_sysctls(s->lines, e);
	return gci_lab_tool_run(argv, s->lines, e);
}

int gci_lab_has_cubic(void)
{
	FILE *f = fopen("/proc/sys/net/ipv4/tcp_available_congestion_control", "re");
	char list[256] = "";

	if (!f)
		return 0;
	if (!fgets(list, sizeof(list), f))
		list[0] = '\0';
	fclose(f);
	return strstr(list, "cubic") != NULL;
}

int gci_lab_apply(const struct gci_lab_plan *plan, struct gci_error *e)
{
	struct gci_error why = {0};
	int home = gci_netns_open(NULL, e);
	size_t i;
	int rc = 0;

	if (home < 0)
		return GCOLL_ERR_SYS;
	for (i = 0; i < plan->nsteps && !rc; i++) {
		const struct gci_lab_step *s = &plan->steps[i];
		int back = s->netns ? dup(home) : -1;

		if (s->netns)
			rc = gci_netns_enter(s->netns, &why);
		if (!rc)
			rc = do_step(s, &why);
		if (back >= 0)
			gci_netns_leave(back);
		if (rc)
			gci_error_set(e, rc, "%s%s%s", s->netns ? s->netns : "",
				s->netns ? ": " : "", why.text);
	}
	close(home);
	return rc;
}
