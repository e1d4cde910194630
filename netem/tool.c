/* SPDX-License-Identifier: MIT
 * Running ip and tc. */
#include "netem/apply.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int write_all(int fd, const char *s)
{
	size_t len = strlen(s);

	while (len) {
		ssize_t n = write(fd, s, len);

		if (n < 0 && errno != EINTR)
			return -1;
		if (n > 0) {
			s += n;
			len -= (size_t)n;
		}
	}
	return lseek(fd, 0, SEEK_SET) < 0 ? -1 : 0;
}

/* Users' PATHs often lack the directories where ip and tc are. */
static void exec_tool(const char *const *argv)
{
	static const char *const dirs[] = {"/usr/sbin", "/sbin", "/usr/local/sbin"};
	char path[256];
	size_t i;

	execvp(argv[0], (char *const *)argv);
	for (i = 0; errno == ENOENT && i < sizeof(dirs) / sizeof(*dirs); i++) {
		snprintf(path, sizeof(path), "%s/%s", dirs[i], argv[0]);
		execv(path, (char *const *)argv);
	}
	fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

/* Reads what the tool says; the first line of it stays in `text`. */
static void first_line(int fd, char *text, size_t size)
{
	size_t len = 0;
	char rest[256];
	ssize_t n;

	for (;;) {
		n = len < size - 1 ? read(fd, text + len, size - 1 - len)
				   : read(fd, rest, sizeof(rest));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		if (len < size - 1)
			len += (size_t)n;
	}
	text[len] = '\0';
	text[strcspn(text, "\n")] = '\0';
}

/* "Command failed -:12" tells the line. */
static int failing_line(const char *says, const char *input, char *out, size_t size)
{
	int number;
	const char *at = strstr(says, "-:");

	if (!at || !input || sscanf(at, "-:%d", &number) != 1)
		return 0;
	while (--number > 0 && (input = strchr(input, '\n')))
		input++;
	if (!input)
		return 0;
	snprintf(out, size, "%.*s", (int)strcspn(input, "\n"), input);
	return 1;
}

int gci_lab_tool_run(const char *const *argv, const char *input, struct gci_error *e)
{
	char says[2048], line[200] = "";
	int in = -1, err[2] = {-1, -1}, status = 0;
	pid_t pid;

	in = input ? memfd_create("gridcoll-batch", MFD_CLOEXEC) : open("/dev/null", O_RDONLY);
	if (in < 0 || (input && write_all(in, input)) || pipe2(err, O_CLOEXEC)) {
		gci_error_errno(e, "cannot run %s", argv[0]);
		if (in >= 0)
			close(in);
		return GCOLL_ERR_SYS;
	}
	pid = fork();
	if (!pid) {
		dup2(in, 0);
		dup2(err[1], 1);
		dup2(err[1], 2);
		exec_tool(argv);
	}
	close(in);
	close(err[1]);
	if (pid < 0) {
		close(err[0]);
		return gci_error_errno(e, "cannot run %s", argv[0]);
	}
	first_line(err[0], says, sizeof(says));
	close(err[0]);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return 0;
	if (failing_line(says, input, line, sizeof(line)))
		return gci_error_set(e, GCOLL_ERR_SYS, "%s %s: failed", argv[0], line);
	return gci_error_set(
		e, GCOLL_ERR_SYS, "%s: %s", argv[0], *says ? says : "failed without a word");
}
