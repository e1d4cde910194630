/* SPDX-License-Identifier: MIT
 * Runs gnuplot: a script in, what it draws out. Both go through files in memory, so neither side
 * waits for the other. */
#include "base/file.h"
#include "launcher/spawn.h"
#include "tools/bench.h"
#include "tools/cases.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define HINT "expected gnuplot to be installed (Debian: apt-get install gnuplot-nox)"

static int run(const char *option, int in, int out, struct gci_error *e)
{
	static char name[] = "gnuplot";
	char argument[16];
	char *argv[] = {name, *option ? argument : NULL, NULL};
	const struct gci_spawn s = {
		.argv = argv, .fds = {in, out, STDERR_FILENO, -1}, .death_signal = 9};
	int status;
	pid_t pid;

	snprintf(argument, sizeof(argument), "%s", option);
	if (gci_spawn(&s, &pid, e))
		return e->status;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return gci_error_errno(e, "gnuplot");
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return gci_error_set(e, GCOLL_ERR_SYS, "gnuplot failed");
	return 0;
}

int gct_bench_can_plot(void)
{
	struct gci_error e = {0};

	if (run("--version", -1, -1, &e))
		return gci_comm_error(GCOLL_ERR_INVAL, "--plot: %s, " HINT, e.text);
	return 0;
}

/* It stays open, to be read from its beginning. */
static int fill(int fd, const struct gci_buf *text)
{
	return gci_file_write_to(dup(fd), text) || lseek(fd, 0, SEEK_SET) < 0 ? -1 : 0;
}

static int drain(int fd, struct gci_buf *out)
{
	char chunk[16384];
	ssize_t n;

	if (lseek(fd, 0, SEEK_SET) < 0)
		return -1;
	while ((n = read(fd, chunk, sizeof(chunk))) > 0)
		gci_buf_put(out, chunk, (size_t)n);
	return n < 0 || out->failed ? -1 : 0;
}

static int draw(const struct gci_buf *script, struct gci_buf *picture, struct gci_error *e)
{
	int in = memfd_create("script", MFD_CLOEXEC), out = memfd_create("picture", MFD_CLOEXEC);
	int rc = 0;

	if (in < 0 || out < 0 || fill(in, script))
		rc = gci_error_errno(e, "a file in memory");
	if (!rc)
		rc = run("", in, out, e);
	if (!rc && (drain(out, picture) || !picture->len))
		rc = gci_error_set(e, GCOLL_ERR_SYS, "gnuplot has drawn nothing");
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	return rc;
}

int gct_bench_plot(
	const struct gct_bench *b, const struct gct_bench_result *r, int n, const char *path)
{
	struct gci_buf script = {0}, picture = {0};
	struct gci_error e = {0};
	int rc = 0;

	if (gct_bench_plot_script(b, r, n, &script))
		gci_error_set(&e, GCOLL_ERR_INVAL, "no operation with a size was measured");
	else if (script.failed)
		gci_error_set(&e, GCOLL_ERR_NOMEM, "out of memory");
	else
		draw(&script, &picture, &e);
	rc = e.status ? gci_comm_error(e.status, "--plot %s: %s", path, e.text)
		      : gct_write(path, &picture);
	gci_buf_free(&script);
	gci_buf_free(&picture);
	return rc;
}
