/* SPDX-License-Identifier: MIT
 * The way into a directory: of the list, or of DEST, where it may have to be made. */
#include "base/mem.h"
#include "tools/cp/impl.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* O_DIRECTORY with O_NOFOLLOW: a symbolic link is an error, whatever it points at. */
#define FLAGS (O_PATH | O_DIRECTORY | O_CLOEXEC)

/* Where the way goes up, openat2 gives up whenever anything is renamed or mounted meanwhile. */
#define TRIES 100

void gct_cp_place_init(struct gct_cp_place *p, const struct gct_cp_manifest *m, const char *root)
{
	*p = (struct gct_cp_place){
		.manifest = m, .root = root, .fixed = root ? strlen(root) : 0, .fd = -1};
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

#define BENEATH 1u /* no link leads out of the beginning */
#define MAKE    2u /* what is missing is made */
#define SYNC    4u /* and on the disk */

/* `way` from `base`, of which `name` is the last part, in directory `last`. With BENEATH, openat2 keeps
 * every link on the way below `base`, at whatever moment somebody puts it there. Kernels before 5.6,
 * and sandboxes, have no openat2: then no link is followed and nothing goes up, so it stays below as
 * well, but links that would be harmless are refused. */
static int go(int base, int last, const char *way, const char *name, unsigned how)
{
	struct open_how beneath = {.flags = FLAGS, .resolve = RESOLVE_BENEATH};
	int fd, tries = 0;
	struct stat st;

	if (!(how & BENEATH))
		return openat(last, name, FLAGS);
	do
		fd = (int)syscall(SYS_openat2, base, way, &beneath, sizeof(beneath));
	while (fd < 0 && errno == EAGAIN && ++tries < TRIES);
	if (fd >= 0 || (errno != ENOSYS && errno != EPERM))
		return fd;
	if (!strcmp(name, "..")) {
		errno = EXDEV;
		return -1;
	}
	fd = openat(last, name, FLAGS | O_NOFOLLOW);
	if (fd < 0 && errno == ENOTDIR)
		errno = !fstatat(last, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISLNK(st.st_mode)
				? ELOOP
				: ENOTDIR;
	return fd;
}

/* True if it was made. */
static int make_synced(int dir, const char *name, unsigned how)
{
	int fd, bad, was;

	if (mkdirat(dir, name, 0777))
		return 0;
	if (!(how & SYNC))
		return 1;
	fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bad = fd < 0 || fsync(fd);
	was = errno;
	if (fd >= 0)
		close(fd);
	errno = was;
	return !bad;
}

/* Part by part. After an error `way` ends with the part that it is about. */
static int walk(int base, char *way, unsigned how)
{
	int last = base, next, was;
	char *p = way, *name, c;

	for (;;) {
		p += strspn(p, "/");
		if (!*p)
			return last;
		name = p;
		p += strcspn(p, "/");
		c = *p;
		*p = '\0';
		next = go(base, last, way, name, how);
		if (next < 0 && errno == ENOENT && (how & MAKE) &&
			(make_synced(last, name, how) || errno == EEXIST))
			next = go(base, last, way, name, how);
		was = errno;
		if (last != base)
			close(last);
		errno = was;
		if (next < 0)
			return -1;
		*p = c;
		last = next;
	}
}

/* From `base_path`, which is there. */
static int walk_from(const char *base_path, char *way, unsigned how)
{
	int base = open(base_path, FLAGS);
	int fd = base < 0 ? -1 : walk(base, way, how), was = errno;

	if (base >= 0 && fd != base)
		close(base);
	errno = was;
	return fd;
}

/* Cuts the last name off a path; false when there is none before it. */
static int cut_name(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash || slash == path)
		return 0;
	*slash = '\0';
	return 1;
}

int gct_cp_count_missing(const char *path, uint64_t *n, struct gci_error *e)
{
	char *way = gci_strdup(path);
	struct stat st;

	*n = 0;
	if (!way)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	do
		if (!lstat(way, &st) || errno != ENOENT)
			break;
	while (++*n, cut_name(way));
	gci_free(way);
	return 0;
}

/* Those below may never have been made, or be gone by another rank's hand. */
void gct_cp_remove_empty(char *path, uint64_t n)
{
	while (n-- && (!rmdir(path) || errno == ENOENT) && cut_name(path))
		;
}

int gct_cp_make_directories(const char *path, int sync, struct gci_error *e)
{
	char *way = gci_strdup(path);
	int fd, was;
	struct stat st;

	if (!way)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	fd = walk_from(*path == '/' ? "/" : ".", way, sync ? MAKE | SYNC : MAKE);
	was = errno;
	if (fd >= 0)
		close(fd);
	else
		gci_error_set(e, GCOLL_ERR_IO, "cannot make directory %s: %s", way,
			!lstat(way, &st) && !S_ISDIR(st.st_mode) ? "a file is called so"
								 : strerror(was));
	gci_free(way);
	return e->status;
}

int gct_cp_open_beneath(const char *path, size_t fixed, int make, int sync)
{
	char *base = fixed ? gci_strndup(path, fixed) : gci_strdup(".");
	char *way = gci_strdup(path + fixed + strspn(path + fixed, "/"));
	int fd = -1, was = ENOMEM;

	if (base && way) {
		fd = walk_from(base, way, BENEATH | (make ? MAKE : 0) | (sync ? SYNC : 0));
		was = errno;
	}
	gci_free(base);
	gci_free(way);
	errno = was;
	return fd;
}

/* The beginning of the way to `dir`: DEST, or the SOURCE that it is in. */
static int begin(struct gct_cp_place *p, uint32_t dir)
{
	if (p->root)
		return step(p, gct_cp_open_beneath(p->root, p->fixed, 0, 0), 0);
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

/* Whether a directory is another mount than the one it lies in; where there is no openat2, only another
 * device is seen. -1 and errno: it cannot be told. */
static int is_mount(int in, const char *name, const struct stat *dest)
{
	struct open_how how = {
		.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC, .resolve = RESOLVE_NO_XDEV};
	int fd = (int)syscall(SYS_openat2, in, name, &how, sizeof(how));
	struct stat st;

	if (fd >= 0)
		return close(fd);
	if (errno == EXDEV)
		return 1;
	if (errno != ENOSYS && errno != EPERM)
		return -1;
	return fstatat(in, name, &st, AT_SYMLINK_NOFOLLOW) ? -1 : st.st_dev != dest->st_dev;
}

int gct_cp_place_is_one(struct gct_cp_place *p)
{
	const struct gct_cp_dir *dirs = p->manifest->dirs;
	int in = gct_cp_place_go(p, 0), mount;
	struct stat dest;
	uint32_t i;

	if (in < 0 || fstat(in, &dest))
		return 0;
	for (i = 0; i < p->manifest->ndirs; i++) {
		in = gct_cp_place_go(p, dirs[i].parent);
		mount = in < 0 ? -1 : is_mount(in, dirs[i].name, &dest);
		if (mount > 0 || (mount < 0 && errno != ENOENT))
			return 0;
	}
	return 1;
}

int gct_cp_is_one(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

int gct_cp_is_within(char *path, const struct stat *directory)
{
	struct stat st = {0}, below;
	int fd, up, found = 0;

	while ((fd = open(path, FLAGS)) < 0 && cut_name(path))
		;
	if (fd < 0)
		fd = open(*path == '/' ? "/" : ".", FLAGS);
	for (; fd >= 0 && !found; fd = up) {
		below = st;
		up = fstat(fd, &st) || gct_cp_is_one(&st, &below) ? -1 : openat(fd, "..", FLAGS);
		found = gct_cp_is_one(&st, directory);
		close(fd);
	}
	if (fd >= 0)
		close(fd);
	return found;
}
