/* SPDX-License-Identifier: MIT */
#include "launcher/text.h"

#include "base/buf.h"

#include <fcntl.h>
#include <unistd.h>

int gci_text_read(const char *path, size_t most, struct gci_buf *out, struct gci_error *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc = 0;
	char bytes[16384];
	ssize_t n = -1;

	if (fd < 0)
		return gci_error_errno(e, "%s", path);
	while (out->len <= most && (n = read(fd, bytes, sizeof(bytes))) > 0)
		gci_buf_put(out, bytes, (size_t)n);
	if (n < 0)
		rc = gci_error_errno(e, "%s", path);
	else if (out->failed)
		rc = gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	close(fd);
	return rc;
}
