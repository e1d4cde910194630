/* SPDX-License-Identifier: MIT */
#include "netem/modules.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int load_file(const char *dir, const char *path, struct gci_error *e)
{
	char full[4096];
	int fd, rc = 0;

	if (snprintf(full, sizeof(full), "%s/%s", dir, path) >= (int)sizeof(full))
		return gci_error_set(e, GCOLL_ERR_INVAL, "path too long: %s", path);
	fd = open(full, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return gci_error_errno(e, "%s", full);
	if (syscall(SYS_finit_module, fd, "", 0) && errno != EEXIST)
		rc = gci_error_errno(e, "cannot load %s", full);
	close(fd);
	return rc;
}

/* "kernel/net/802/stp.ko: kernel/net/llc/llc.ko ...": what it needs is loaded last to first. */
static int load_line(const char *dir, char *line, struct gci_error *e)
{
	char *paths[64], *save = NULL, *p;
	int n = 0, rc = 0;

	for (p = strtok_r(line, ": \n", &save); p && n < 64; p = strtok_r(NULL, ": \n", &save))
		paths[n++] = p;
	while (n-- > 0 && !rc)
		rc = load_file(dir, paths[n], e);
	return rc;
}

/* Whether this line of modules.dep is about module `name`. */
static int is_about(const char *line, const char *name)
{
	const char *end = strchr(line, ':');
	const char *base = end;
	size_t len = strlen(name);

	if (!end)
		return 0;
	while (base > line && base[-1] != '/')
		base--;
	return !strncmp(base, name, len) && !strncmp(base + len, ".ko", 3) && base + len + 3 <= end;
}

int gci_modules_load(const char *dir, const char *const *names, struct gci_error *e)
{
	char path[4096], *line = NULL;
	size_t cap = 0;
	int rc = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/modules.dep", dir);
	f = fopen(path, "re");
	if (!f)
		return gci_error_errno(e, "%s", path);
	for (; *names && !rc; names++) {
		rewind(f);
		while (!rc && getline(&line, &cap, f) > 0)
			if (is_about(line, *names)) {
				rc = load_line(dir, line, e);
				break;
			}
	}
	free(line);
	fclose(f);
	return rc;
}
