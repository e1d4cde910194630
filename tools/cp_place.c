/* SPDX-License-Identifier: MIT
 * The way into a directory of the list. */
#include "tools/cp.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* O_DIRECTORY with O_NOFOLLOW: a symbolic link is an error, whatever it points at. */
#define FLAGS (O_PATH | O_DIRECTORY | O_CLOEXEC)

void gct_cp_place_init(struct gct_cp_place *p, const struct gct_cp_manifest *m, const char *root)
{
	*p = (struct gct_cp_place){.manifest = m, .root = root, .fd = -1};
}

void gct_cp_place_close(struct gct_cp_place *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
}

/* Takes the next step of the way, which may have failed. */
static int step(struct gct_cp_place *p, int fd, uint32_t dir)
{
	int was = errno;

	gct_cp_place_close(p);
	p->fd = fd;
	p->dir = dir;
	errno = was;
	return fd;
}

/* The beginning of the way to `dir`: DEST, or the SOURCE that it is in. */
static int begin(struct gct_cp_place *p, uint32_t dir)
{
	if (p->root)
		return step(p, open(p->root, FLAGS), 0);
	if (!dir) {
		errno = ENOENT;
		return -1;
	}
	return step(p, open(p->manifest->dirs[dir - 1].origin, FLAGS | O_NOFOLLOW), dir);
}

int gct_cp_place_go(struct gct_cp_place *p, uint32_t dir)
{
	const struct gct_cp_dir *dirs = p->manifest->dirs;
	uint32_t way[GCT_CP_MAX_DEPTH + 1], at = dir;
	size_t n = 0;

	/* Up, until it is where we are or there is nothing above; then down. */
	while (at && (p->fd < 0 || at != p->dir)) {
		way[n++] = at;
		at = dirs[at - 1].parent;
	}
	if (p->fd < 0 || at != p->dir) {
		if (begin(p, n ? way[n - 1] : 0) < 0)
			return -1;
		n -= !p->root;
	}
	while (n--)
		if (step(p, openat(p->fd, dirs[way[n] - 1].name, FLAGS | O_NOFOLLOW), way[n]) < 0)
			return -1;
	return p->fd;
}
