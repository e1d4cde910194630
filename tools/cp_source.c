/* SPDX-License-Identifier: MIT
 * The stream's beginning, at the source: files are read. */
#include "base/crc32c.h"
#include "base/mem.h"
#include "tools/cp_impl.h"

#include <fcntl.h>
#include <unistd.h>

#define PIECE_NBYTES (1u << 20) /* of what is read again */

void gct_cp_source_init(struct gct_cp_source *s, const struct gct_cp_manifest *m)
{
	*s = (struct gct_cp_source){.manifest = m, .fd = -1};
	gct_cp_place_init(&s->place, m, NULL);
}

static void close_file(struct gct_cp_source *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

void gct_cp_source_close(struct gct_cp_source *s)
{
	close_file(s);
	gct_cp_place_close(&s->place);
}

char *gct_cp_source_path(const struct gct_cp_manifest *m, uint32_t file)
{
	const struct gct_cp_file *f = &m->files[file];

	return gct_cp_path(m, NULL, f->dir, f->name, f->origin);
}

int gct_cp_source_open(struct gct_cp_place *p, const struct gct_cp_file *f)
{
	/* Not to wait for a FIFO that took the file's place. */
	int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
	int dir = AT_FDCWD;

	if (p->manifest->recursive)
		flags |= O_NOFOLLOW;
	if (f->dir)
		dir = gct_cp_place_go(p, f->dir);
	return f->dir && dir < 0 ? -1 : openat(dir, f->dir ? f->name : f->origin, flags);
}

static int changed(const struct gct_cp_source *s, const char *how, struct gci_error *e)
{
	char *path = gct_cp_source_path(s->manifest, s->file);

	gci_error_set(
		e, GCOLL_ERR_IO, "%s %s", path ? path : s->manifest->files[s->file].name, how);
	gci_free(path);
	return e->status;
}

static int cannot_read(const struct gct_cp_source *s, struct gci_error *e)
{
	int was = errno;
	char *path = gct_cp_source_path(s->manifest, s->file);

	errno = was;
	gct_cp_io_error(e, "read", path ? path : s->manifest->files[s->file].name);
	gci_free(path);
	return e->status;
}

/* Is the open file still what the manifest says? */
static int compare(const struct gct_cp_source *s, struct gci_error *e)
{
	const struct gct_cp_file *f = &s->manifest->files[s->file];
	struct stat st;

	if (fstat(s->fd, &st))
		return cannot_read(s, e);
	return gct_cp_is_as_said(&st, f) ? 0 : changed(s, GCT_CP_CHANGED, e);
}

static int source_open(struct gct_cp_source *s, struct gci_error *e)
{
	s->fd = gct_cp_source_open(&s->place, &s->manifest->files[s->file]);
	if (s->fd < 0)
		return cannot_read(s, e);
	if (compare(s, e))
		return e->status;
	posix_fadvise(s->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	s->stretch_end = 0;
	return 0;
}

/* Holes need no reading, which would fill the page cache with their zeros. */
static void find_stretch(struct gct_cp_source *s)
{
	const struct gct_cp_file *f = &s->manifest->files[s->file];
	off_t at = (off_t)(f->begin + s->offset), end = lseek(s->fd, at, SEEK_DATA);

	s->in_hole = end < 0 ? errno == ENXIO : end > at;
	if (!s->in_hole && end >= 0)
		end = lseek(s->fd, at, SEEK_HOLE);
	s->stretch_end =
		end > at && (uint64_t)end < f->begin + f->size ? (uint64_t)end - f->begin : f->size;
}

/* Contents of the file in hand, as many of n bytes as it has left. */
static int source_contents(struct gct_cp_source *s, char *buf, size_t *n, struct gci_error *e)
{
	uint64_t begin = s->manifest->files[s->file].begin;
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
			got = pread(s->fd, buf, *n, (off_t)(begin + s->offset));
		} while (got < 0 && errno == EINTR);
	}
	if (got < 0)
		return cannot_read(s, e);
	if (!got)
		return changed(s, GCT_CP_CHANGED, e);
	*n = (size_t)got;
	s->crc = gci_crc32c(s->crc, buf, *n);
	if (s->sums)
		gct_cp_sums_add(s->sums, s->file, s->offset, buf, *n);
	return compare(s, e); /* now, and not only after the last byte */
}

/* Bytes of the trailer, and on to the next file after its last. */
static int source_trailer(struct gct_cp_source *s, char *buf, size_t *n, struct gci_error *e)
{
	const struct gct_cp_file *f = &s->manifest->files[s->file];
	uint64_t at = s->offset - f->size;
	uint8_t trailer[GCT_CP_TRAILER];

	if (!at && compare(s, e))
		return e->status;
	/* Files of /proc have contents, and the size 0. */
	if (!at && !f->whole && pread(s->fd, trailer, 1, (off_t)s->offset) > 0)
		return changed(s, "holds more than its size says", e);
	if (!at && s->sums)
		gct_cp_sums_end(s->sums, s->file, s->crc);
	gci_store_u32(trailer, s->crc);
	if (*n > GCT_CP_TRAILER - at)
		*n = (size_t)(GCT_CP_TRAILER - at);
	memcpy(buf, trailer + at, *n);
	return 0;
}

int gct_cp_source_read(struct gct_cp_source *s, char *buf, size_t n, struct gci_error *e)
{
	s->marks[s->nmarks++ % GCT_CP_MARKS] = (struct gct_cp_point){s->file, s->offset, s->crc};
	while (n) {
		size_t some = n;
		const struct gct_cp_file *f = &s->manifest->files[s->file];

		if (f->is_there) {
			s->file++;
			continue;
		}
		if (s->fd < 0 && source_open(s, e))
			return e->status;
		if (s->offset < f->size ? source_contents(s, buf, &some, e)
					: source_trailer(s, buf, &some, e))
			return e->status;
		buf += some;
		n -= some;
		s->offset += some;
		if (s->offset == f->size + GCT_CP_TRAILER) {
			close_file(s);
			s->file++;
			s->offset = 0;
			s->crc = 0;
		}
	}
	return 0;
}

/* The checksum of what is before p in its file, if a read began there. */
static int find_mark(const struct gct_cp_source *s, struct gct_cp_point *p)
{
	size_t i, n = s->nmarks < GCT_CP_MARKS ? (size_t)s->nmarks : GCT_CP_MARKS;

	for (i = 0; i < n; i++)
		if (s->marks[i].file == p->file && s->marks[i].offset == p->offset) {
			p->crc = s->marks[i].crc;
			return 1;
		}
	return 0;
}

/* As near to p as there are checksums of blocks. */
static void find_block(
	const struct gct_cp_source *s, const struct gct_cp_point *p, struct gct_cp_point *near)
{
	const struct gct_cp_file *files = s->manifest->files;
	uint64_t before = 0, n;
	uint32_t i;

	*near = (struct gct_cp_point){.file = p->file};
	for (i = 0; i < p->file; i++)
		before += gct_cp_blocks_of(files[i].size);
	n = (p->offset < files[i].size ? p->offset : files[i].size) / GCT_CP_BLOCK_NBYTES;
	for (; n && before < s->ncrcs && s->crcs[before]; n--, before++) {
		near->crc = gci_crc32c_join(near->crc, s->crcs[before], GCT_CP_BLOCK_NBYTES);
		near->offset += GCT_CP_BLOCK_NBYTES;
	}
}

int gct_cp_source_seek(struct gct_cp_source *s, uint64_t at, struct gci_error *e)
{
	struct gct_cp_point p, from;
	char *buf;

	close_file(s);
	gct_cp_point_of(s->manifest, at, &p);
	if (!p.offset || find_mark(s, &p))
		from = p;
	else
		find_block(s, &p, &from);
	s->file = from.file;
	s->offset = from.offset;
	s->crc = from.crc;
	if (from.offset == p.offset)
		return 0;
	/* Once more from there on, for its checksum. */
	buf = gci_calloc(PIECE_NBYTES, 1);
	if (!buf)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	while (!e->status && s->offset < p.offset) {
		uint64_t left = p.offset - s->offset;

		gct_cp_source_read(s, buf, left < PIECE_NBYTES ? (size_t)left : PIECE_NBYTES, e);
	}
	gci_free(buf);
	return e->status;
}
