/* SPDX-License-Identifier: MIT */
#include "tools/files.h"

#include <stdio.h>

int gct_write_file(const char *path, const struct gci_buf *text, struct gci_error *e)
{
	FILE *f = fopen(path, "we");

	if (!f)
		return gci_error_errno(e, "%s", path);
	if (text->failed)
		gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	else if (fwrite(text->data, 1, text->len, f) != text->len)
		gci_error_errno(e, "%s", path);
	if (fclose(f))
		gci_error_errno(e, "%s", path);
	return e->status;
}
