/* SPDX-License-Identifier: MIT */
#include "tests/base/files.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char dir[64];

int files_setup(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/gridcoll-file-XXXXXX");
	return !mkdtemp(dir) || chdir(dir);
}

int files_teardown(void **state)
{
	static const char *const names[] = {"a", "link", "pipe", "d"};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
		remove(names[i]);
	return chdir("/") || rmdir(dir);
}

int files_put(const char *path, const char *text, struct gci_error *e)
{
	struct gci_buf b = {0};
	int rc;

	gci_error_clear(e);
	gci_buf_put(&b, text, strlen(text));
	rc = gci_file_write(path, &b, e);
	gci_buf_free(&b);
	return rc;
}

int files_count(void)
{
	DIR *d = opendir(".");
	int n = -2; /* . and .. */

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}
