/* SPDX-License-Identifier: MIT
 * The two ends of the stream. */
#include "base/crc32c.h"
#include "base/mem.h"
#include "tools/cp.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK_NBYTES (64u << 10) /* of zeros that is not written */

static int io_error(struct gci_error *e, const char *what, const char *path)
{
	return gci_error_set(e, GCOLL_ERR_IO, "cannot %s %s: %s", what, path, strerror(errno));
}

/* ---- source */

void gct_cp_source_init(
	struct gct_cp_source *s, const struct gct_cp_manifest *m, char *const *paths)
{
	*s = (struct gct_cp_source){.manifest = m, .paths = paths, .fd = -1};
}

void gct_cp_source_close(struct gct_cp_source *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

static int changed(const struct gct_cp_source *s, struct gci_error *e)
{
	return gci_error_set(
		e, GCOLL_ERR_IO, "%s changed while it was being read", s->paths[s->file]);
}

/* Is the open file still what the manifest says? A writer moves the time of modification even
 * when the size stays. */
static int compare(const struct gct_cp_source *s, struct gci_error *e)
{
	const struct gct_cp_file *f = &s->manifest->files[s->file];
	struct stat st;

	if (fstat(s->fd, &st))
		return io_error(e, "read", s->paths[s->file]);
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != f->size ||
		st.st_mtim.tv_sec != f->mtime_s || (uint32_t)st.st_mtim.tv_nsec != f->mtime_ns)
		return changed(s, e);
	return 0;
}

static int source_open(struct gct_cp_source *s, struct gci_error *e)
{
	/* Not to wait for a FIFO that took the file's place. */
	s->fd = open(s->paths[s->file], O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (s->fd < 0)
		return io_error(e, "read", s->paths[s->file]);
	if (compare(s, e))
		return e->status;
	posix_fadvise(s->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	s->crc = 0;
	s->stretch_end = 0;
	return 0;
}

/* Holes need no reading, which would fill the page cache with their zeros. */
static void find_stretch(struct gct_cp_source *s)
{
	uint64_t size = s->manifest->files[s->file].size;
	off_t at = (off_t)s->offset, end = lseek(s->fd, at, SEEK_DATA);

	s->in_hole = end < 0 ? errno == ENXIO : end > at;
	if (!s->in_hole && end >= 0)
		end = lseek(s->fd, at, SEEK_HOLE);
	s->stretch_end = end > at && (uint64_t)end < size ? (uint64_t)end : size;
}

/* Contents of the file in hand, as many of n bytes as it has left. */
static int source_contents(struct gct_cp_source *s, char *buf, size_t *n, struct gci_error *e)
{
	ssize_t got;

	if (s->offset >= s->stretch_end)
		find_stretch(s);
	if (*n > s->stretch_end - s->offset)
		*n = (size_t)(s->stretch_end - s->offset);
	if (s->in_hole) {
		memset(buf, 0, *n);
		got = (ssize_t)*n;
	} else {
		do {
			got = pread(s->fd, buf, *n, (off_t)s->offset);
		} while (got < 0 && errno == EINTR);
	}
	if (got < 0)
		return io_error(e, "read", s->paths[s->file]);
	if (!got)
		return changed(s, e);
	*n = (size_t)got;
	s->crc = gci_crc32c(s->crc, buf, *n);
	return compare(s, e); /* now, and not only after the last byte */
}

/* Bytes of the trailer, and on to the next file after its last. */
static int source_trailer(struct gct_cp_source *s, char *buf, size_t *n, struct gci_error *e)
{
	uint64_t at = s->offset - s->manifest->files[s->file].size;
	uint8_t trailer[GCT_CP_TRAILER];

	if (!at && compare(s, e))
		return e->status;
	/* Files of /proc have contents, and the size 0. */
	if (!at && pread(s->fd, trailer, 1, (off_t)s->offset) > 0)
		return gci_error_set(
			e, GCOLL_ERR_IO, "%s holds more than its size says", s->paths[s->file]);
	gci_store_u32(trailer, s->crc);
	if (*n > GCT_CP_TRAILER - at)
		*n = (size_t)(GCT_CP_TRAILER - at);
	memcpy(buf, trailer + at, *n);
	return 0;
}

int gct_cp_source_read(struct gct_cp_source *s, char *buf, size_t n, struct gci_error *e)
{
	while (n) {
		size_t some = n;
		const struct gct_cp_file *f = &s->manifest->files[s->file];

		if (s->fd < 0 && source_open(s, e))
			return e->status;
		if (s->offset < f->size ? source_contents(s, buf, &some, e)
					: source_trailer(s, buf, &some, e))
			return e->status;
		buf += some;
		n -= some;
		s->offset += some;
		if (s->offset == f->size + GCT_CP_TRAILER) {
			gct_cp_source_close(s);
			s->file++;
			s->offset = 0;
		}
	}
	return 0;
}

/* ---- sink */

/* Bytes of the path up to its last name. */
static int directory_length(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (int)(slash + 1 - path) : 0;
}

int gct_cp_sink_init(struct gct_cp_sink *s, const struct gct_cp_manifest *m, const char *dest,
	int into_directory, int sync, struct gci_error *e)
{
	uint64_t random;

	*s = (struct gct_cp_sink){.manifest = m,
		.dest = dest,
		.into_directory = into_directory,
		.sync = sync,
		.fd = -1};
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return gci_error_errno(e, "getrandom");
	s->temporary = gci_asprintf("%.*s%s.gridcoll-%016" PRIx64,
		into_directory ? (int)strlen(dest) : directory_length(dest), dest,
		into_directory ? "/" : "", random);
	return s->temporary ? 0 : gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
}

void gct_cp_sink_close(struct gct_cp_sink *s)
{
	if (s->fd >= 0) {
		close(s->fd);
		unlink(s->temporary);
	}
	gci_free(s->path);
	gci_free(s->temporary);
	s->fd = -1;
	s->path = s->temporary = NULL;
}

static char doomed[PATH_MAX];

static void on_signal(int sig)
{
	int was = errno;

	/* Another thread may be at work on it; whatever it does, it has no time to finish. */
	unlink(doomed);
	raise(sig); /* by default this time: SA_RESETHAND; once we return */
	errno = was;
}

void gct_cp_sink_guard(const struct gct_cp_sink *s)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction ours = {.sa_handler = on_signal, .sa_flags = SA_RESETHAND}, was;
	size_t i;

	/* A longer path would not have been opened. */
	snprintf(doomed, sizeof(doomed), "%s", s->temporary);
	for (i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		if (!sigaction(signals[i], NULL, &was) && was.sa_handler != SIG_IGN)
			sigaction(signals[i], &ours, NULL);
}

/* A rename would put our file in the place of a device or a FIFO. */
static int check_target(const char *path, struct gci_error *e)
{
	struct stat st;

	if (stat(path, &st) || S_ISREG(st.st_mode))
		return 0;
	return gci_error_set(e, GCOLL_ERR_IO, "cannot write %s: it is %s", path,
		S_ISDIR(st.st_mode) ? "a directory" : "there and no regular file");
}

static int sink_open(struct gct_cp_sink *s, struct gci_error *e)
{
	const struct gct_cp_file *f = &s->manifest->files[s->file];

	s->crc = s->want = 0;
	s->path = s->into_directory ? gci_asprintf("%s/%s", s->dest, f->name) : gci_strdup(s->dest);
	if (!s->path)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	if (check_target(s->path, e))
		return e->status;
	s->fd = open(s->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (s->fd < 0)
		return io_error(e, "write", s->path);
	/* The length now, so that zeros at the end need no writing. */
	return ftruncate(s->fd, (off_t)f->size) ? io_error(e, "write", s->path) : 0;
}

int gct_cp_sink_start(struct gct_cp_sink *s, struct gci_error *e)
{
	return s->manifest->nfiles && s->fd < 0 ? sink_open(s, e) : 0;
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
			return io_error(e, "write", s->path);
		data += put;
		at += (uint64_t)put;
		n -= (size_t)put;
	}
	return 0;
}

/* The file is whole if its checksum agrees: now it gets its mode, its time and its name. */
static int complete(struct gct_cp_sink *s, struct gci_error *e)
{
	const struct gct_cp_file *f = &s->manifest->files[s->file];
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
		{.tv_sec = (time_t)f->mtime_s, .tv_nsec = (long)f->mtime_ns}};
	int rc;

	if (s->crc != s->want)
		return gci_error_set(e, GCOLL_ERR_CORRUPT,
			"%s arrived corrupted: checksum %08x, expected %08x", f->name, s->crc,
			s->want);
	if (fchmod(s->fd, f->mode) || futimens(s->fd, times) || (s->sync && fsync(s->fd)))
		return io_error(e, "write", s->path);
	rc = close(s->fd); /* NFS and quotas tell of a full disk here */
	s->fd = -1;
	if (rc || rename(s->temporary, s->path)) {
		io_error(e, "write", s->path);
		unlink(s->temporary);
		return e->status;
	}
	gci_free(s->path);
	s->path = NULL;
	s->nfiles_done++;
	s->file++;
	s->offset = 0;
	return 0;
}

static void take_trailer(struct gct_cp_sink *s, uint64_t at, const char *data, size_t n)
{
	for (size_t i = 0; i < n; i++)
		s->want |= (uint32_t)(uint8_t)data[i] << (8 * (at + i));
}

int gct_cp_sink_write(struct gct_cp_sink *s, const char *data, size_t n, struct gci_error *e)
{
	while (n) {
		const struct gct_cp_file *f = &s->manifest->files[s->file];
		uint64_t left;
		size_t some;

		if (s->file == s->manifest->nfiles)
			return gci_error_set(e, GCOLL_ERR_PROTO, "more data than files");
		if (s->fd < 0 && sink_open(s, e))
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

int gct_cp_sink_finish(struct gct_cp_sink *s, struct gci_error *e)
{
	char *dir;
	int fd, rc;

	if (s->file != s->manifest->nfiles)
		return gci_error_set(e, GCOLL_ERR_PROTO, "the data ended before the last file");
	if (!s->sync)
		return 0;
	/* The names, too. */
	dir = gci_strndup(s->temporary, (size_t)directory_length(s->temporary));
	if (!dir)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	fd = open(*dir ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rc = fd < 0 || fsync(fd) ? io_error(e, "sync", *dir ? dir : ".") : 0;
	if (fd >= 0)
		close(fd);
	gci_free(dir);
	return rc;
}
