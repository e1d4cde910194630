/* SPDX-License-Identifier: MIT */
#include "base/file.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define WRITER_MS 3000

/* As messages have it. */
static const char *shown(const char *path)
{
	return *path ? path : "\"\"";
}

int gci_file_read_from(
	int fd, const char *path, size_t most, struct gci_buf *out, struct gci_error *e)
{
	char bytes[16384];
	ssize_t n;

	do {
		n = read(fd, bytes, sizeof(bytes));
		if (n > 0)
			gci_buf_put(out, bytes, (size_t)n);
	} while ((n > 0 || (n < 0 && errno == EINTR)) && out->len <= most && !out->failed);
	if (out->secret)
		explicit_bzero(bytes, sizeof(bytes));
	if (n < 0)
		return gci_error_errno(e, "cannot read %s", shown(path));
	if (out->failed)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	if (out->len > most)
		return gci_error_set(e, GCOLL_ERR_PARSE, "%s:1: larger than %zu bytes", path, most);
	return 0;
}

/* Who opens a named pipe waits until somebody opens its other end, which may be never. So `fd` is
 * opened at once, and a writer may take WRITER_MS to come; one that is there, any time to write. */
static int await_writer(int fd, const char *path, struct gci_buf *out, struct gci_error *e)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	unsigned char byte;
	ssize_t n;
	int rc;

	do
		rc = poll(&p, 1, WRITER_MS);
	while (rc < 0 && errno == EINTR);
	if (rc > 0)
		return 0;
	n = read(fd, &byte, 1);
	if (n < 0 && errno != EAGAIN)
		return gci_error_errno(e, "cannot read %s", shown(path));
	if (!n)
		return gci_error_set(e, GCOLL_ERR_SYS,
			"cannot read %s: a pipe that nobody has opened to write to", shown(path));
	gci_buf_put(out, &byte, n > 0);
	return 0;
}

int gci_file_read(const char *path, size_t most, struct gci_buf *out, struct gci_error *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc = 0, off = 0;
	struct stat st;

	if (fd < 0)
		return gci_error_errno(e, "cannot read %s", shown(path));
	if (!fstat(fd, &st) && S_ISFIFO(st.st_mode))
		rc = await_writer(fd, path, out, e);
	if (!rc && ioctl(fd, FIONBIO, &off))
		rc = gci_error_errno(e, "cannot read %s", shown(path));
	if (!rc)
		rc = gci_file_read_from(fd, path, most, out, e);
	close(fd);
	return rc;
}

/* Is there something that another file must not take the place of? -1 with errno: that cannot be
 * told. */
static int is_special(const char *path, mode_t *mode)
{
	struct stat st;

	*mode = 0;
	if (lstat(path, &st))
		return errno == ENOENT ? 0 : -1;
	*mode = st.st_mode & 0777;
	return !S_ISREG(st.st_mode);
}

static int write_all(int fd, const struct gci_buf *text)
{
	size_t at = 0;

	while (at < text->len) {
		ssize_t n = write(fd, text->data + at, text->len - at);

		if (n < 0 && errno != EINTR)
			return -1;
		at += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

int gci_file_write_to(int fd, const struct gci_buf *text)
{
	int bad = write_all(fd, text), why = errno;

	if (close(fd) && !bad)
		return -1;
	errno = why;
	return bad;
}

static int overwrite(const char *path, const struct gci_buf *text)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

	return fd < 0 ? -1 : gci_file_write_to(fd, text);
}

/* By `tmp`, beside it. mode 0: it is a new file. */
static int replace(const char *path, const char *tmp, mode_t mode, const struct gci_buf *text)
{
	int fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666), bad, why;

	if (fd < 0)
		return -1;
	bad = mode && fchmod(fd, mode);
	why = errno;
	if (gci_file_write_to(fd, text)) {
		bad = -1;
		why = errno;
	}
	if (!bad && !rename(tmp, path))
		return 0;
	why = bad ? why : errno;
	unlink(tmp);
	errno = why;
	return -1;
}

/* Commands take "-" for standard output, where a job's lines may be those of other ranks, too. */
static int refuse_dash(const char *path, struct gci_error *e)
{
	return strcmp(path, "-") ? 0
				 : gci_error_set(e, GCOLL_ERR_INVAL,
					   "cannot write -, expected a file: /dev/stdout is "
					   "standard output, ./- is called so");
}

int gci_file_write(const char *path, const struct gci_buf *text, struct gci_error *e)
{
	mode_t mode;
	char *tmp;
	int special, bad = -1, why;

	if (refuse_dash(path, e))
		return GCOLL_ERR_INVAL;
	tmp = gci_asprintf("%s.%ld.new", path, (long)getpid());
	if (!tmp || text->failed) {
		gci_free(tmp);
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	}
	special = is_special(path, &mode);
	if (special >= 0)
		bad = special ? overwrite(path, text) : replace(path, tmp, mode, text);
	why = errno;
	gci_free(tmp);
	errno = why;
	return bad ? gci_error_errno(e, "cannot write %s", shown(path)) : 0;
}

int gci_file_check(const char *path, struct gci_error *e)
{
	const char *slash = strrchr(path, '/');
	int special, bad = -1;
	mode_t mode;
	char *dir;

	if (refuse_dash(path, e))
		return GCOLL_ERR_INVAL;
	dir = slash ? gci_strndup(path, (size_t)(slash - path) + 1) : gci_strdup(".");
	if (!dir)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	special = is_special(path, &mode);
	if (special > 0) {
		int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);

		bad = fd < 0 && errno != ENXIO; /* nobody reads the pipe yet */
		if (fd >= 0)
			close(fd);
	} else if (!special) {
		bad = access(dir, W_OK | X_OK) || (mode && access(path, W_OK));
	}
	if (bad)
		gci_error_errno(e, "cannot write %s", shown(path));
	gci_free(dir);
	return bad ? GCOLL_ERR_SYS : 0;
}

void gci_file_machine(char out[GCI_FILE_MACHINE])
{
	char boot[40] = "";
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, boot, sizeof(boot) - 1);
	struct stat root;

	if (fd >= 0)
		close(fd);
	*out = '\0';
	boot[strcspn(boot, "\n")] = '\0';
	if (n > 0 && !lstat("/", &root))
		snprintf(out, GCI_FILE_MACHINE, "%s-%llx-%llx", boot,
			(unsigned long long)root.st_dev, (unsigned long long)root.st_ino);
}
