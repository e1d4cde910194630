/* SPDX-License-Identifier: MIT
 * What a job has, by a mark in its processes' environment, and what it leaves. */
#include "tests/comm/kills.h"
#include "tests/test.h"

#include "base/clock.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MARK "GRIDCOLL_TEST_KILLS"

static char mark[64];

void kills_mark(uint64_t seed)
{
	snprintf(mark, sizeof(mark), MARK "=%d-%" PRIu64, (int)getpid(), seed);
	setenv(MARK, strchr(mark, '=') + 1, 1);
}

/* Sends `sig` (0: none) to each process that has the mark, and in its environment `text` as well,
 * if not NULL; how many there are. */
static int each_process(const char *text, int sig)
{
	static char env[65536];
	DIR *proc = opendir("/proc");
	struct dirent *d;
	char path[64];
	int n = 0;

	assert_non_null(proc);
	while ((d = readdir(proc))) {
		pid_t pid = atoi(d->d_name);
		ssize_t got;
		int fd;

		if (pid <= 0 || pid == getpid())
			continue;
		snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		got = fd < 0 ? 0 : read(fd, env, sizeof(env));
		if (fd >= 0)
			close(fd);
		if (got <= 0 || !memmem(env, (size_t)got, mark, strlen(mark) + 1) ||
			(text && !memmem(env, (size_t)got, text, strlen(text) + 1)))
			continue;
		n += !sig || !kill(pid, sig);
	}
	closedir(proc);
	return n;
}

int kills_processes(void)
{
	return each_process(NULL, 0);
}

void kills_signal_all(int sig)
{
	each_process(NULL, sig);
}

int kills_signal_rank(int rank, int sig)
{
	char text[32];

	snprintf(text, sizeof(text), "GRIDCOLL_RANK=%d", rank);
	return each_process(text, sig);
}

/* Files in it, at any depth. */
static int files_in(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;
	char below[512];
	struct stat st;
	int n = 0;

	while (d && (e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		snprintf(below, sizeof(below), "%s/%s", path, e->d_name);
		n += lstat(below, &st) || !S_ISDIR(st.st_mode) ? 1 : files_in(below);
	}
	if (d)
		closedir(d);
	return n;
}

int kills_mounts(void)
{
	FILE *f = fopen("/proc/self/mountinfo", "r");
	int n = 0, c;

	while (f && (c = fgetc(f)) != EOF)
		n += c == '\n';
	if (f)
		fclose(f);
	return n;
}

int kills_leftovers(
	const char *const *dirs, int nleft, uint64_t patience_ns, char *why, size_t size)
{
	uint64_t end_ns = gci_now_ns() + patience_ns;
	int n;

	while ((n = kills_processes()) && gci_now_ns() < end_ns)
		gci_sleep_ns(5 * GCI_NS_PER_MS);
	if (n) {
		kills_signal_all(SIGKILL);
		return snprintf(why, size, "%d processes are left", n), -1;
	}
	for (n = -nleft; *dirs; dirs++)
		n += files_in(*dirs);
	return n > 0 ? (snprintf(why, size, "%d files are left", n), -1) : 0;
}
