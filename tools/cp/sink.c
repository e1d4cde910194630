/* SPDX-License-Identifier: MIT
 * The stream's end at a receiver: files, directories and links are written. */
#include "base/crc32c.h"
#include "base/mem.h"
#include "base/prng.h"
#include "tools/cp/impl.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

/* ---- Files that have no name while they are written: whatever ends the process, nothing is
 * left. */

static const char *path_of(int fd, char out[32])
{
	snprintf(out, 32, "/proc/self/fd/%d", fd);
	return out;
}

static int open_unnamed(int dir)
{
	return openat(dir, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
}

/* Without /proc one could get no name, nor where a file system makes such files but no links to
 * them, as by FUSE it may: known before anything is written. */
static int can_be_named(int dir, const char *temporary)
{
	char path[32];
	int fd = open_unnamed(dir), bad;

	if (fd < 0)
		return 0;
	bad = linkat(AT_FDCWD, path_of(fd, path), dir, temporary, AT_SYMLINK_FOLLOW) ||
	      unlinkat(dir, temporary, 0);
	close(fd);
	return !bad;
}

/* A file in this directory that has no name yet; -1 where there is none such, or it could not get
 * one. */
static int gct_cp_open_unnamed(struct gct_cp_sink *s, int dir)
{
	struct stat st;

	if (fstat(dir, &st))
		return -1;
	if (s->has_unnamed < 0 || s->device != st.st_dev) {
		s->has_unnamed = can_be_named(dir, s->temporary);
		s->device = st.st_dev;
	}
	return s->has_unnamed ? open_unnamed(dir) : -1;
}

/* Of a file that was written: NFS and quotas tell of a full disk when one descriptor of it is closed,
 * though it is not the last one. 0, or -1 and errno. */
static int gct_cp_flush(int fd)
{
	int copy = dup(fd);

	return copy < 0 ? -1 : close(copy);
}

static int link_name(int fd, int dir, const char *temporary, const char *name)
{
	char path[32];

	if (gct_cp_flush(fd))
		return -1;
	path_of(fd, path);
	if (!linkat(AT_FDCWD, path, dir, name, AT_SYMLINK_FOLLOW))
		return 0;
	/* A link is in nothing's place; a rename is. */
	if (errno != EEXIST || linkat(AT_FDCWD, path, dir, temporary, AT_SYMLINK_FOLLOW))
		return -1;
	return renameat(dir, temporary, dir, name);
}

/* In the place of what is called so, by way of a temporary name if there is such; and closes it. 0,
 * or -1 and errno: the temporary name may be there then. */
static int gct_cp_name_unnamed(int fd, int dir, const char *temporary, const char *name)
{
	int rc = link_name(fd, dir, temporary, name);

	return close(fd) ? -1 : rc;
}

/* ---- Directories and symbolic links at a receiver. Directories are made before the first file,
 * with all permissions for their owner; they get theirs when nothing is written to them any
 * more. */

/* "cannot WHAT PATH: errno's text", or why if it is given. */
static int refuse_in_tree(const struct gct_cp_sink *s, const char *what, uint32_t dir,
	const char *name, const char *why, struct gci_error *e)
{
	int was = errno;
	char *path = gct_cp_path(s->manifest, s->dest, dir, name, NULL);

	gci_error_set(e, GCOLL_ERR_IO, "cannot %s %s: %s", what, path ? path : name,
		why ? why : strerror(was));
	gci_free(path);
	return e->status;
}

/* ---- before */

static int no_memory(struct gci_error *e)
{
	return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
}

static int make_dir(struct gct_cp_sink *s, const struct gct_cp_dir *d, struct gci_error *e)
{
	static const char what[] = "make directory";
	int in = gct_cp_place_go(&s->place, d->parent), was;
	struct stat st;

	if (in < 0)
		return refuse_in_tree(s, what, d->parent, d->name, NULL, e);
	if (!mkdirat(in, d->name, 0700)) {
		s->made[d - s->manifest->dirs] = 1;
		return 0;
	}
	/* Some file systems refuse before they see that it is there. */
	was = errno;
	if (fstatat(in, d->name, &st, AT_SYMLINK_NOFOLLOW)) {
		errno = was;
		return refuse_in_tree(s, what, d->parent, d->name, NULL, e);
	}
	if (!S_ISDIR(st.st_mode))
		return refuse_in_tree(s, what, d->parent, d->name,
			S_ISLNK(st.st_mode) ? "a symbolic link is called so"
					    : "a file is called so",
			e);
	/* One that a copy has left as its source is: not to be written to. */
	if ((st.st_mode & 0700) != 0700 && st.st_uid == geteuid() &&
		fchmodat(in, d->name, (st.st_mode & 07777) | 0700, AT_SYMLINK_NOFOLLOW))
		return refuse_in_tree(s, what, d->parent, d->name, NULL, e);
	return 0;
}

/* Only a file or a link gives way to a link. */
static int check_link(struct gct_cp_sink *s, const struct gct_cp_link *l, struct gci_error *e)
{
	int in = gct_cp_place_go(&s->place, l->dir);
	struct stat st;

	if (in < 0)
		return refuse_in_tree(s, "write", l->dir, l->name, NULL, e);
	if (fstatat(in, l->name, &st, AT_SYMLINK_NOFOLLOW) || S_ISREG(st.st_mode) ||
		S_ISLNK(st.st_mode))
		return 0;
	return refuse_in_tree(s, "write", l->dir, l->name,
		S_ISDIR(st.st_mode) ? "it is a directory" : "it is there and no regular file", e);
}

/* The directories of the list, where they are missing; and whether its links can be made. */
static int gct_cp_make_tree(struct gct_cp_sink *s, struct gci_error *e)
{
	const struct gct_cp_manifest *m = s->manifest;
	uint32_t i;

	if (!s->made)
		s->made = gci_calloc(m->ndirs + 1, sizeof(*s->made));
	if (!s->made)
		return no_memory(e);
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
		refuse_in_tree(s, "write", l->dir, l->name, NULL, e);
	} else if (renameat(in, s->temporary, in, l->name)) {
		refuse_in_tree(s, "write", l->dir, l->name, NULL, e);
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
		return refuse_in_tree(s, "write", l->dir, l->name, NULL, e);
	return 0;
}

/* Another user's directory, which was there, keeps its mode and its time. */
static int complete_tree(struct gct_cp_sink *s, const struct gct_cp_dir *d, struct gci_error *e)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
		{.tv_sec = (time_t)d->mtime_s, .tv_nsec = (long)d->mtime_ns}};
	int in = gct_cp_place_go(&s->place, d->parent);
	int fd = in < 0 ? -1 : openat(in, d->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		refuse_in_tree(s, "write", d->parent, d->name, NULL, e);
	else if ((st.st_uid == geteuid() || !geteuid()) &&
		 (futimens(fd, times) || fchmod(fd, (st.st_mode & 07000) | d->mode)))
		refuse_in_tree(s, "set mode and time of", d->parent, d->name, NULL, e);
	else if (s->sync && fsync(fd))
		refuse_in_tree(s, "sync", d->parent, d->name, NULL, e);
	if (fd >= 0)
		close(fd);
	return e->status;
}

/* Links, then directories' times and modes. */
static int gct_cp_finish_tree(struct gct_cp_sink *s, struct gci_error *e)
{
	const struct gct_cp_manifest *m = s->manifest;
	uint32_t i;

	if (gct_cp_make_tree(s, e)) /* of a list without files nobody may have done it */
		return e->status;
	for (i = 0; i < m->nlinks && !e->status; i++)
		make_link(s, &m->links[i], e);
	/* From below: who may not enter a directory any more has been in it. */
	for (i = m->ndirs; i-- && !e->status;)
		complete_tree(s, &m->dirs[i], e);
	gct_cp_place_close(&s->place);
	return e->status;
}

/* Whether a name still is that of an open file. The name is opened once more: NFS asks the server
 * then, and else might tell what it was a while ago. */
static int is_called(int fd, int dir, const char *name)
{
	int again = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat a, b;
	int same = again >= 0 && !fstat(fd, &a) && !fstat(again, &b) && a.st_dev == b.st_dev &&
		   a.st_ino == b.st_ino;

	if (again >= 0)
		close(again);
	return same;
}

/* Opened for writing, for the locks of NFS. With `make` *is_new tells whether it was made. */
static int open_part(int dir, const char *part, int make, int *is_new)
{
	int flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	int fd = openat(dir, part, flags);

	*is_new = fd < 0 && errno == ENOENT && make;
	return *is_new ? openat(dir, part, flags | O_CREAT | O_EXCL, 0600) : fd;
}

/* One that has its file's mode already, with which it cannot be opened: a process was ended before it
 * gave the file its name, if the lock is free. 0: try again; -1 and errno. */
static int make_writable(int dir, const char *part)
{
	int fd = openat(dir, part, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), why = EACCES;
	struct stat st;

	if (fd < 0)
		return errno == ENOENT ? 0 : -1;
	if (!fstat(fd, &st) && gct_cp_is_own(&st)) {
		if (flock(fd, LOCK_EX | LOCK_NB))
			why = errno == EWOULDBLOCK ? errno : EACCES;
		else if (!is_called(fd, dir, part) || !fchmod(fd, 0600))
			why = 0;
	}
	close(fd);
	errno = why;
	return why ? -1 : 0;
}

/* -1 and errno; EWOULDBLOCK: another process has it, or nobody can lock it. */
static int open_locked(struct gct_cp_sink *s, int dir, const char *part, int make)
{
	int tries, fd, bad, is_new;

	/* Again, if whoever had it locked gives the file its name meanwhile, or removes it. */
	for (tries = 0; tries < 10; tries++) {
		fd = open_part(dir, part, make, &is_new);
		if (fd < 0 && is_new && errno == EEXIST)
			continue;
		if (fd < 0 && !is_new && errno == EACCES && !make_writable(dir, part))
			continue;
		if (fd < 0)
			return -1;
		while ((bad = flock(fd, LOCK_EX | LOCK_NB)) && errno == EINTR)
			;
		if (!bad && is_called(fd, dir, part))
			return fd;
		if (bad && errno != EWOULDBLOCK) {
			s->lock_errno = errno;
			if (is_new)
				unlinkat(dir, part, 0);
		}
		close(fd);
		if (bad)
			break;
	}
	errno = EWOULDBLOCK;
	return -1;
}

int gct_cp_hold_part(struct gct_cp_sink *s, uint32_t file, int make)
{
	char *part;
	int dir;

	if (s->part_fd >= 0 && s->part_file == file)
		return 1;
	if (s->part_fd >= 0)
		close(s->part_fd);
	s->part_fd = -1;
	if (s->taken == file)
		return 0; /* by now it may be free, but nobody has compared what is in it */
	dir = gct_cp_place_go(&s->place, s->manifest->files[file].dir);
	if (dir < 0)
		return -1;
	part = gct_cp_part_name(gct_cp_sink_name(s, file));
	errno = ENOMEM;
	s->part_fd = part ? open_locked(s, dir, part, make) : -1;
	s->part_file = file;
	gci_free(part);
	if (s->part_fd >= 0)
		return 1;
	if (errno != EWOULDBLOCK)
		return -1;
	s->taken = file;
	return 0;
}

/* ---- files */

#define BLOCK_NBYTES (64u << 10) /* of zeros that is not written */

/* Bytes of the path up to its last name. */
static int directory_length(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (int)(slash + 1 - path) : 0;
}

int gct_cp_sink_init(struct gct_cp_sink *s, const struct gct_cp_manifest *m, const char *dest,
	int into_directory, unsigned how, struct gci_error *e)
{
	int len = directory_length(dest);
	uint64_t random;

	*s = (struct gct_cp_sink){.manifest = m,
		.dest = dest,
		.into_directory = into_directory,
		.sync = how & GCT_CP_SYNC,
		.keep = how & GCT_CP_KEEP,
		.fd = -1,
		.part_fd = -1,
		.taken = UINT32_MAX,
		.has_unnamed = -1};
	if (into_directory)
		s->root = gci_strdup(dest);
	else
		s->root = len ? gci_strndup(dest, (size_t)len) : gci_strdup(".");
	if (!s->root)
		return no_memory(e);
	gct_cp_place_init(&s->place, m, s->root);
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return gci_error_errno(e, "getrandom");
	s->temporary = gci_asprintf(".gridcoll-%016" PRIx64, random);
	return s->temporary ? 0 : no_memory(e);
}

/* What has come of the file in hand, for another time. */
static int keep(struct gct_cp_sink *s)
{
	const struct gct_cp_file *f = &s->manifest->files[s->file];

	/* It may have got its file's mode, with which it could not be gone on with. */
	return s->part && s->offset && !fchmod(s->fd, 0600) &&
	       !ftruncate(s->fd, (off_t)(s->offset < f->size ? s->offset : f->size));
}

static void remove_temporary(struct gct_cp_sink *s)
{
	int dir = gct_cp_place_go(&s->place, s->manifest->files[s->file].dir);

	if (dir >= 0)
		unlinkat(dir, s->part ? s->part : s->temporary, 0);
}

static void close_file(struct gct_cp_sink *s)
{
	if (s->fd < 0)
		return;
	if (!keep(s))
		remove_temporary(s);
	close(s->fd); /* and only now another may have what is kept */
	s->fd = -1;
}

void gct_cp_sink_undo(struct gct_cp_sink *s)
{
	uint32_t i;
	int in;

	close_file(s);
	for (i = s->made ? s->manifest->ndirs : 0; i--;) {
		in = s->made[i] ? gct_cp_place_go(&s->place, s->manifest->dirs[i].parent) : -1;
		if (in >= 0)
			unlinkat(in, s->manifest->dirs[i].name, AT_REMOVEDIR);
	}
}

void gct_cp_sink_close(struct gct_cp_sink *s)
{
	close_file(s);
	if (s->root) {
		if (s->part_fd >= 0)
			close(s->part_fd);
		gct_cp_place_close(&s->place);
	}
	gci_free(s->root);
	gci_free(s->path);
	gci_free(s->temporary);
	gci_free(s->part);
	gci_free(s->made);
	s->part_fd = -1;
	s->root = s->path = s->temporary = s->part = NULL;
	s->made = NULL;
}

static struct {
	char name[64];
	atomic_int dir; /* where that is, as long as it may be there */
} doomed[GCT_CP_GUARDS] = {{"", -1}, {"", -1}};

static void on_signal(int sig)
{
	int was = errno, i;

	/* Another thread may be at work on it; whatever it does, it has no time to finish. The name
	 * is nobody else's, should the descriptor be of another directory by now. */
	for (i = 0; i < GCT_CP_GUARDS; i++)
		unlinkat(atomic_load(&doomed[i].dir), doomed[i].name, 0);
	raise(sig); /* by default this time: SA_RESETHAND; once we return */
	errno = was;
}

void gct_cp_guard_name(enum gct_cp_guard which, int dir, const char *name)
{
	atomic_store(&doomed[which].dir, -1);
	snprintf(doomed[which].name, sizeof(doomed[which].name), "%s", name);
	atomic_store(&doomed[which].dir, dir);
}

void gct_cp_sink_guard(const struct gct_cp_sink *s)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction ours = {.sa_handler = on_signal, .sa_flags = SA_RESETHAND}, was;
	size_t i;

	gct_cp_guard_name(GCT_CP_GUARD_TEMPORARY, -1, s->temporary);
	for (i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		if (!sigaction(signals[i], NULL, &was) && was.sa_handler != SIG_IGN)
			sigaction(signals[i], &ours, NULL);
}

/* A rename would put our file in the place of a device or a FIFO. */
int gct_cp_check_target(int dir, const char *name, const char *path, struct gci_error *e)
{
	struct stat st;

	if (fstatat(dir, name, &st, 0) || S_ISREG(st.st_mode))
		return 0;
	return gci_error_set(e, GCOLL_ERR_IO, "cannot write %s: it is %s", path,
		S_ISDIR(st.st_mode) ? "a directory" : "there and no regular file");
}

/* One that another call has left. Nobody else may have a hand in it. */
static int check_part(const struct gct_cp_sink *s, struct gci_error *e)
{
	struct stat st;
	char *part;

	if (fstat(s->part_fd, &st))
		return gct_cp_io_error(e, "write", s->path);
	if (gct_cp_is_own(&st))
		return 0;
	part = gct_cp_sink_part(s, s->file);
	gci_error_set(e, GCOLL_ERR_IO, "cannot write %s: it is not a file of this user's alone",
		part ? part : s->path);
	gci_free(part);
	return e->status;
}

/* The part of the file in hand, if it is nobody else's: true, or an error. */
static int take_part(struct gct_cp_sink *s, struct gci_error *e)
{
	int held = s->keep ? gct_cp_hold_part(s, s->file, 1) : 0;

	if (held < 0)
		gct_cp_io_error(e, "write", s->path);
	if (held <= 0 || check_part(s, e))
		return 0;
	s->part = gct_cp_part_name(gct_cp_sink_name(s, s->file));
	if (!s->part) {
		no_memory(e);
		return 0;
	}
	s->fd = s->part_fd;
	s->part_fd = -1;
	return 1;
}

/* The file in hand, of which `have` bytes are there already. */
static int sink_open(struct gct_cp_sink *s, uint64_t have, struct gci_error *e)
{
	const struct gct_cp_file *f = &s->manifest->files[s->file];
	int dir;

	gci_free(s->path); /* of a try that failed */
	s->path = gct_cp_sink_path(s, s->file);
	if (!s->path)
		return no_memory(e);
	dir = gct_cp_place_go(&s->place, f->dir);
	if (dir < 0)
		return gct_cp_io_error(e, "write", s->path);
	if (gct_cp_check_target(dir, gct_cp_sink_name(s, s->file), s->path, e))
		return e->status;
	atomic_store(&doomed[GCT_CP_GUARD_TEMPORARY].dir, dir);
	s->is_unnamed = 0;
	if (!take_part(s, e)) {
		if (e->status)
			return e->status;
		if (have)
			return gci_error_set(e, GCOLL_ERR_IO,
				"cannot write %s: another process goes on with what there is of it",
				s->path);
		s->fd = gct_cp_open_unnamed(s, dir);
		s->is_unnamed = s->fd >= 0;
		if (s->fd < 0)
			s->fd = openat(dir, s->temporary,
				O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (s->fd < 0)
			return gct_cp_io_error(e, "write", s->path);
	}
	/* The length now, so that zeros at the end need no writing; and nothing else in between. */
	return ftruncate(s->fd, (off_t)have) || ftruncate(s->fd, (off_t)f->size)
		       ? gct_cp_io_error(e, "write", s->path)
		       : 0;
}

const char *gct_cp_sink_name(const struct gct_cp_sink *s, uint32_t file)
{
	return s->into_directory ? s->manifest->files[file].name
				 : s->dest + directory_length(s->dest);
}

char *gct_cp_part_name(const char *name)
{
	return gci_asprintf(
		".gridcoll-%016" PRIx64 ".part", gci_digest_bytes(0, name, strlen(name)));
}

char *gct_cp_sink_path(const struct gct_cp_sink *s, uint32_t file)
{
	const struct gct_cp_file *f = &s->manifest->files[file];

	return s->into_directory ? gct_cp_path(s->manifest, s->dest, f->dir, f->name, NULL)
				 : gci_strdup(s->dest);
}

char *gct_cp_sink_part(const struct gct_cp_sink *s, uint32_t file)
{
	char *name = gct_cp_part_name(gct_cp_sink_name(s, file)), *path;

	if (!name)
		return NULL;
	if (s->into_directory)
		path = gct_cp_path(s->manifest, s->dest, s->manifest->files[file].dir, name, NULL);
	else
		path = gci_asprintf("%.*s%s", directory_length(s->dest), s->dest, name);
	gci_free(name);
	return path;
}

uint64_t gct_cp_sink_at(const struct gct_cp_sink *s)
{
	return gct_cp_stream_at(s->manifest, s->file, s->offset);
}

/* What does not come, for all receivers have it. */
static void pass_over(struct gct_cp_sink *s)
{
	for (; s->file < s->manifest->nfiles && s->manifest->files[s->file].is_there; s->file++)
		s->nfiles_done++;
}

int gct_cp_sink_resume(struct gct_cp_sink *s, const struct gct_cp_point *p, struct gci_error *e)
{
	s->file = p->file;
	s->nfiles_done = p->file;
	s->offset = p->offset;
	s->crc = p->crc;
	pass_over(s);
	if (p->offset)
		s->failed = sink_open(s, p->offset, e);
	return s->failed;
}

static int refuse(const struct gct_cp_sink *s, struct gci_error *e)
{
	return gci_error_set(e, s->failed, "cannot write to %s any more", s->dest);
}

int gct_cp_sink_start(struct gct_cp_sink *s, struct gci_error *e)
{
	if (s->failed)
		return refuse(s, e);
	s->failed = gct_cp_make_tree(s, e);
	if (!s->failed && s->file < s->manifest->nfiles && s->fd < 0)
		s->failed = sink_open(s, 0, e);
	return s->failed;
}

static int is_zero(const char *data, size_t n)
{
	return !n || (!data[0] && !memcmp(data, data + 1, n - 1));
}

static int put(struct gct_cp_sink *s, const char *data, size_t n, struct gci_error *e)
{
	uint64_t at = s->offset;

	s->crc = gci_crc32c(s->crc, data, n);
	while (n) {
		size_t some = n < BLOCK_NBYTES ? n : BLOCK_NBYTES;
		ssize_t put = (ssize_t)some;

		if (!is_zero(data, some)) {
			/* Not zero: on with all up to the next zero block. */
			while (some < n &&
				!is_zero(data + some,
					n - some < BLOCK_NBYTES ? n - some : BLOCK_NBYTES))
				some += n - some < BLOCK_NBYTES ? n - some : BLOCK_NBYTES;
			put = pwrite(s->fd, data, some, (off_t)at);
		}
		if (put < 0 && errno == EINTR)
			continue;
		if (!put)
			errno = ENOSPC;
		if (put <= 0)
			return gct_cp_io_error(e, "write", s->path);
		data += put;
		at += (uint64_t)put;
		n -= (size_t)put;
	}
	return 0;
}

/* And closes it, or removes it: as long as it has the name of a part, with its lock. */
static int give_name(struct gct_cp_sink *s, int dir)
{
	const char *name = gct_cp_sink_name(s, s->file), *own = s->part ? s->part : s->temporary;
	int fd = s->fd, rc, was;

	s->fd = -1;
	if (s->is_unnamed)
		rc = gct_cp_name_unnamed(fd, dir, own, name);
	else
		rc = gct_cp_flush(fd) || renameat(dir, own, dir, name) ? -1 : 0;
	was = errno;
	if (rc)
		unlinkat(dir, own, 0);
	if (!s->is_unnamed && close(fd) && !rc)
		return -1;
	errno = was;
	return rc;
}

/* The file is whole if its checksum agrees: now it gets its mode, its time and its name. */
static int complete(struct gct_cp_sink *s, struct gci_error *e)
{
	const struct gct_cp_file *f = &s->manifest->files[s->file];
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
		{.tv_sec = (time_t)f->mtime_s, .tv_nsec = (long)f->mtime_ns}};
	int dir;

	if (s->crc != s->want)
		return gci_error_set(e, GCOLL_ERR_CORRUPT,
			"%s arrived corrupted: checksum %08x, expected %08x", f->name, s->crc,
			s->want);
	/* The mode last: what fails before it can be opened for writing again. */
	if ((s->sync && fsync(s->fd)) || futimens(s->fd, times) || fchmod(s->fd, f->mode) ||
		(s->sync && fsync(s->fd)))
		return gct_cp_io_error(e, "write", s->path);
	dir = gct_cp_place_go(&s->place, f->dir);
	if (dir < 0 || give_name(s, dir))
		return gct_cp_io_error(e, "write", s->path);
	gci_free(s->path);
	gci_free(s->part);
	s->path = s->part = NULL;
	s->nfiles_done++;
	s->file++;
	s->offset = 0;
	s->crc = s->want = 0;
	pass_over(s);
	return 0;
}

static void take_trailer(struct gct_cp_sink *s, uint64_t at, const char *data, size_t n)
{
	for (size_t i = 0; i < n; i++)
		s->want |= (uint32_t)(uint8_t)data[i] << (8 * (at + i));
}

static int write_all(struct gct_cp_sink *s, const char *data, size_t n, struct gci_error *e)
{
	while (n) {
		const struct gct_cp_file *f = &s->manifest->files[s->file];
		uint64_t left;
		size_t some;

		if (s->file == s->manifest->nfiles)
			return gci_error_set(e, GCOLL_ERR_PROTO, "more data than files");
		if (s->fd < 0 && sink_open(s, 0, e))
			return e->status;
		left = s->offset < f->size ? f->size - s->offset
					   : f->size + GCT_CP_TRAILER - s->offset;
		some = n < left ? n : (size_t)left;
		if (s->offset >= f->size)
			take_trailer(s, s->offset - f->size, data, some);
		else if (put(s, data, some, e))
			return e->status;
		s->offset += some;
		data += some;
		n -= some;
		if (s->offset == f->size + GCT_CP_TRAILER && complete(s, e))
			return e->status;
	}
	return 0;
}

int gct_cp_sink_write(struct gct_cp_sink *s, const char *data, size_t n, struct gci_error *e)
{
	if (s->failed)
		return refuse(s, e);
	s->failed = write_all(s, data, n, e);
	return s->failed;
}

int gct_cp_sink_finish(struct gct_cp_sink *s, struct gci_error *e)
{
	int dir, fd;

	if (s->file != s->manifest->nfiles)
		return gci_error_set(e, GCOLL_ERR_PROTO, "the data ended before the last file");
	if (s->is_finished)
		return 0;
	s->failed = gct_cp_finish_tree(s, e);
	if (s->failed)
		return s->failed;
	s->is_finished = 1;
	if (!s->sync)
		return 0;
	/* The names, too. */
	dir = gct_cp_place_go(&s->place, 0);
	fd = dir < 0 ? -1 : openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fsync(fd))
		gct_cp_io_error(e, "sync", s->root);
	if (fd >= 0)
		close(fd);
	return e->status;
}
