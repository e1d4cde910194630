/* SPDX-License-Identifier: MIT */
#include "base/private.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* The reason why not, or NULL. */
static const char *unfit(const struct stat *st)
{
	if (!S_ISREG(st->st_mode))
		return "expected a regular file";
	if (st->st_uid != geteuid() && st->st_uid)
		return "it belongs to another user, expected a file of your own";
	if (st->st_mode & (S_IRWXO | S_IWGRP | S_IXGRP) || (st->st_mode & S_IRGRP && st->st_uid))
		return "others may read or write it, expected mode 0600 (chmod 600)";
	return NULL;
}

int gci_private_read(const char *path, size_t most, struct gci_buf *out, struct gci_error *e)
{
	/* Of a pipe nobody writes to, opening it would wait for ever. */
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC), rc = 0;
	const char *why;
	struct stat st;

	if (fd < 0)
		return gci_error_errno(e, "cannot read %s", path);
	if (fstat(fd, &st)) {
		rc = gci_error_errno(e, "cannot read %s", path);
	} else {
		why = unfit(&st);
		rc = why ? gci_error_set(e, GCOLL_ERR_INVAL, "%s: %s", path, why)
			 : gci_file_read_from(fd, path, most, out, e);
	}
	close(fd);
	return rc;
}

int gci_private_create(const char *path, const struct gci_buf *text, struct gci_error *e)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600), why;

	if (fd < 0)
		return gci_error_errno(e, "cannot make %s", path);
	if (!gci_file_write_to(fd, text))
		return 0;
	why = errno;
	unlink(path);
	errno = why;
	return gci_error_errno(e, "cannot write %s", path);
}
