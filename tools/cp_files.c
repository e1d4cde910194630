/* SPDX-License-Identifier: MIT
 * The two ends of the stream. */
#include "base/crc32c.h"
#include "base/mem.h"
#include "base/units.h"
#include "tools/cp.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static int source_open(struct gct_cp_source *s, struct gci_error *e)
{
	const struct gct_cp_file *f = &s->manifest->files[s->file];
	struct stat st;

	s->fd = open(s->paths[s->file], O_RDONLY | O_CLOEXEC);
	if (s->fd < 0 || fstat(s->fd, &st))
		return io_error(e, "read", s->paths[s->file]);
	if ((uint64_t)st.st_size != f->size)
		return changed(s, e);
	posix_fadvise(s->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	s->crc = 0;
	return 0;
}

/* Contents of the file in hand, as many of n bytes as it has left. */
static int source_contents(struct gct_cp_source *s, char *buf, size_t *n, struct gci_error *e)
{
	uint64_t left = s->manifest->files[s->file].size - s->offset;
	ssize_t got;

	if (*n > left)
		*n = (size_t)left;
	do {
		got = read(s->fd, buf, *n);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return io_error(e, "read", s->paths[s->file]);
	if (!got)
		return changed(s, e);
	*n = (size_t)got;
	s->crc = gci_crc32c(s->crc, buf, *n);
	return 0;
}

/* Bytes of the trailer, and on to the next file after its last. */
static int source_trailer(struct gct_cp_source *s, char *buf, size_t *n, struct gci_error *e)
{
	uint64_t at = s->offset - s->manifest->files[s->file].size;
	uint8_t trailer[GCT_CP_TRAILER];
	struct stat st;

	if (!at && (fstat(s->fd, &st) || (uint64_t)st.st_size != s->manifest->files[s->file].size))
		return changed(s, e);
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

void gct_cp_sink_init(struct gct_cp_sink *s, const struct gct_cp_manifest *m, const char *dest)
{
	*s = (struct gct_cp_sink){.manifest = m, .dest = dest, .fd = -1};
}

static void forget(struct gct_cp_sink *s)
{
	if (s->fd >= 0)
		close(s->fd);
	gci_free(s->path);
	gci_free(s->temporary);
	s->fd = -1;
	s->path = s->temporary = NULL;
}

void gct_cp_sink_close(struct gct_cp_sink *s)
{
	if (s->fd >= 0)
		unlink(s->temporary);
	forget(s);
}

static int sink_open(struct gct_cp_sink *s, struct gci_error *e)
{
	const struct gct_cp_file *f = &s->manifest->files[s->file];
	const char *slash;
	struct stat st;

	s->crc = s->want = 0;
	s->path = s->manifest->into_directory ? gci_asprintf("%s/%s", s->dest, f->name)
					      : gci_strdup(s->dest);
	if (!s->path)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	slash = strrchr(s->path, '/');
	s->temporary = gci_asprintf("%.*s.%.200s.gridcoll-XXXXXX",
		slash ? (int)(slash + 1 - s->path) : 0, s->path, slash ? slash + 1 : s->path);
	if (!s->temporary)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	if (!stat(s->path, &st) && S_ISDIR(st.st_mode))
		return gci_error_set(
			e, GCOLL_ERR_IO, "cannot write %s: it is a directory", s->path);
	s->fd = mkostemp(s->temporary, O_CLOEXEC);
	if (s->fd < 0)
		return io_error(e, "write", s->path);
	/* The length now, so that zeros at the end need no writing. */
	return ftruncate(s->fd, (off_t)f->size) ? io_error(e, "write", s->path) : 0;
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
		if (put < 0)
			return io_error(e, "write", s->path);
		data += put;
		at += (uint64_t)put;
		n -= (size_t)put;
	}
	return 0;
}

static int sink_finish(struct gct_cp_sink *s, struct gci_error *e)
{
	const struct gct_cp_file *f = &s->manifest->files[s->file];
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
		{.tv_sec = (time_t)f->mtime_s, .tv_nsec = (long)f->mtime_ns}};
	int rc;

	if (s->crc != s->want)
		return gci_error_set(e, GCOLL_ERR_CORRUPT,
			"%s arrived corrupted: checksum %08x, expected %08x", f->name, s->crc,
			s->want);
	if (fchmod(s->fd, f->mode) || futimens(s->fd, times))
		return io_error(e, "write", s->path);
	rc = close(s->fd); /* NFS and quotas tell of a full disk here */
	s->fd = -1;
	if (rc || rename(s->temporary, s->path)) {
		io_error(e, "write", s->path);
		unlink(s->temporary);
		return e->status;
	}
	forget(s);
	s->nfiles_done++;
	s->file++;
	s->offset = 0;
	return 0;
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
		if (s->offset < f->size) {
			if (put(s, data, some, e))
				return e->status;
		} else {
			for (size_t i = 0; i < some; i++)
				s->want |= (uint32_t)(uint8_t)data[i]
					   << (8 * (s->offset - f->size + i));
		}
		s->offset += some;
		data += some;
		n -= some;
		if (s->offset == f->size + GCT_CP_TRAILER && sink_finish(s, e))
			return e->status;
	}
	return 0;
}

/* ---- names */

char *gct_cp_expand(const char *pattern, int rank, const char *host, struct gci_error *e)
{
	struct gci_buf out = {0};
	int bad = 0;
	const char *p;
	char *result;

	for (p = pattern; *p; p++) {
		if (*p != '%')
			gci_buf_put_u8(&out, (uint8_t)*p);
		else if (*++p == 'r')
			gci_buf_printf(&out, "%d", rank);
		else if (*p == 'h')
			gci_buf_printf(&out, "%s", host);
		else if (*p == '%')
			gci_buf_put_u8(&out, '%');
		else
			bad = 1;
		if (bad)
			break;
	}
	result = bad ? NULL : gci_strdup(gci_buf_cstr(&out));
	if (bad)
		gci_error_set(e, GCOLL_ERR_INVAL,
			"destination \"%s\": expected %%r (rank), %%h (host) or %%%% after %%",
			pattern);
	else if (!result || out.failed)
		gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	gci_buf_free(&out);
	return result;
}

int gct_cp_make_directories(const char *path, struct gci_error *e)
{
	char *copy = gci_strdup(path), *p;
	struct stat st;

	if (!copy)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	for (p = copy + 1; *copy && !e->status; p++) {
		char was = *p;

		if (was && was != '/')
			continue;
		*p = '\0';
		if (mkdir(copy, 0777) && errno != EEXIST)
			io_error(e, "make directory", copy);
		*p = was;
		if (!was)
			break;
	}
	if (!e->status && (stat(path, &st) || !S_ISDIR(st.st_mode))) {
		errno = ENOTDIR;
		io_error(e, "write into", path);
	}
	gci_free(copy);
	return e->status;
}

/* ---- progress */

void gct_cp_progress_line(char *out, size_t size, uint64_t done, uint64_t all, uint64_t elapsed_ns)
{
	enum { WIDTH = 30 };
	char bar[WIDTH + 1], rate[16] = "-", left[32] = "";
	unsigned percent = all ? (unsigned)((unsigned __int128)done * 100 / all) : 100;
	unsigned filled = percent * WIDTH / 100;

	memset(bar, ' ', WIDTH);
	memset(bar, '=', filled);
	if (filled < WIDTH)
		bar[filled] = '>';
	bar[WIDTH] = '\0';
	if (elapsed_ns) {
		double per_s = (double)done * 1e9 / (double)elapsed_ns;

		gci_format_bytes((uint64_t)per_s, rate, sizeof(rate));
		if (per_s >= 1 && done < all) {
			uint64_t s = (uint64_t)((double)(all - done) / per_s + 0.5);

			snprintf(left, sizeof(left), "  %" PRIu64 ":%02u left", s / 60,
				(unsigned)(s % 60));
		}
	}
	snprintf(out, size, "%3u %% [%s] %s/s%s", percent, bar, rate, left);
}
