/* SPDX-License-Identifier: MIT
 * Directories and symbolic links at a receiver. Directories are made before the first file, with
 * all permissions for their owner; they get theirs when nothing is written to them any more. */
#include "base/mem.h"
#include "tools/cp_impl.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* "cannot WHAT PATH: errno's text", or why if it is given. */
static int refuse(const struct gct_cp_sink *s, const char *what, uint32_t dir, const char *name,
	const char *why, struct gci_error *e)
{
	int was = errno;
	char *path = gct_cp_path(s->manifest, s->dest, dir, name, NULL);

	gci_error_set(e, GCOLL_ERR_IO, "cannot %s %s: %s", what, path ? path : name,
		why ? why : strerror(was));
	gci_free(path);
	return e->status;
}

/* ---- before */

static int make_dir(struct gct_cp_sink *s, const struct gct_cp_dir *d, struct gci_error *e)
{
	static const char what[] = "make directory";
	int in = gct_cp_place_go(&s->place, d->parent), was;
	struct stat st;

	if (in < 0)
		return refuse(s, what, d->parent, d->name, NULL, e);
	if (!mkdirat(in, d->name, 0700))
		return 0;
	/* Some file systems refuse before they see that it is there. */
	was = errno;
	if (fstatat(in, d->name, &st, AT_SYMLINK_NOFOLLOW)) {
		errno = was;
		return refuse(s, what, d->parent, d->name, NULL, e);
	}
	if (!S_ISDIR(st.st_mode))
		return refuse(s, what, d->parent, d->name,
			S_ISLNK(st.st_mode) ? "a symbolic link is called so"
					    : "a file is called so",
			e);
	/* One that a copy has left as its source is: not to be written to. */
	if ((st.st_mode & 0700) != 0700 && st.st_uid == geteuid() &&
		fchmodat(in, d->name, (st.st_mode & 07777) | 0700, AT_SYMLINK_NOFOLLOW))
		return refuse(s, what, d->parent, d->name, NULL, e);
	return 0;
}

/* Only a file or a link gives way to a link. */
static int check_link(struct gct_cp_sink *s, const struct gct_cp_link *l, struct gci_error *e)
{
	int in = gct_cp_place_go(&s->place, l->dir);
	struct stat st;

	if (in < 0)
		return refuse(s, "write", l->dir, l->name, NULL, e);
	if (fstatat(in, l->name, &st, AT_SYMLINK_NOFOLLOW) || S_ISREG(st.st_mode) ||
		S_ISLNK(st.st_mode))
		return 0;
	return refuse(s, "write", l->dir, l->name,
		S_ISDIR(st.st_mode) ? "it is a directory" : "it is there and no regular file", e);
}

int gct_cp_make_tree(struct gct_cp_sink *s, struct gci_error *e)
{
	const struct gct_cp_manifest *m = s->manifest;
	uint32_t i;

	for (i = 0; i < m->ndirs && !s->has_tree && !e->status; i++)
		make_dir(s, &m->dirs[i], e);
	for (i = 0; i < m->nlinks && !s->has_tree && !e->status; i++)
		check_link(s, &m->links[i], e);
	s->has_tree = !e->status;
	return e->status;
}

/* ---- behind */

/* True if the link is there already. */
static int is_same(int in, const struct gct_cp_link *l)
{
	char target[GCT_CP_MAX_TARGET + 1];
	ssize_t len = readlinkat(in, l->name, target, sizeof(target));

	return len >= 0 && (size_t)len == strlen(l->target) &&
	       !memcmp(target, l->target, (size_t)len);
}

/* In one step, like a file. */
static int put_link(struct gct_cp_sink *s, int in, const struct gct_cp_link *l, struct gci_error *e)
{
	if (symlinkat(l->target, in, s->temporary)) {
		refuse(s, "write", l->dir, l->name, NULL, e);
	} else if (renameat(in, s->temporary, in, l->name)) {
		refuse(s, "write", l->dir, l->name, NULL, e);
		unlinkat(in, s->temporary, 0);
	}
	return e->status;
}

static int make_link(struct gct_cp_sink *s, const struct gct_cp_link *l, struct gci_error *e)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
		{.tv_sec = (time_t)l->mtime_s, .tv_nsec = (long)l->mtime_ns}};
	int in;

	if (check_link(s, l, e))
		return e->status;
	in = gct_cp_place_go(&s->place, l->dir);
	if (!is_same(in, l) && put_link(s, in, l, e))
		return e->status;
	/* Not every file system has times of links. */
	if (utimensat(in, l->name, times, AT_SYMLINK_NOFOLLOW) && errno != ENOTSUP &&
		errno != ENOSYS && errno != EPERM)
		return refuse(s, "write", l->dir, l->name, NULL, e);
	return 0;
}

/* Another user's directory, which was there, keeps its mode and its time. */
static int complete(struct gct_cp_sink *s, const struct gct_cp_dir *d, struct gci_error *e)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
		{.tv_sec = (time_t)d->mtime_s, .tv_nsec = (long)d->mtime_ns}};
	int in = gct_cp_place_go(&s->place, d->parent);
	int fd = in < 0 ? -1 : openat(in, d->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		refuse(s, "write", d->parent, d->name, NULL, e);
	else if ((st.st_uid == geteuid() || !geteuid()) &&
		 (futimens(fd, times) || fchmod(fd, (st.st_mode & 07000) | d->mode)))
		refuse(s, "set mode and time of", d->parent, d->name, NULL, e);
	else if (s->sync && fsync(fd))
		refuse(s, "sync", d->parent, d->name, NULL, e);
	if (fd >= 0)
		close(fd);
	return e->status;
}

int gct_cp_finish_tree(struct gct_cp_sink *s, struct gci_error *e)
{
	const struct gct_cp_manifest *m = s->manifest;
	uint32_t i;

	if (gct_cp_make_tree(s, e)) /* of a list without files nobody may have done it */
		return e->status;
	for (i = 0; i < m->nlinks && !e->status; i++)
		make_link(s, &m->links[i], e);
	/* From below: who may not enter a directory any more has been in it. */
	for (i = m->ndirs; i-- && !e->status;)
		complete(s, &m->dirs[i], e);
	gct_cp_place_close(&s->place);
	return e->status;
}
