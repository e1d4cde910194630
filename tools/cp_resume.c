/* SPDX-License-Identifier: MIT
 * What a receiver has of an earlier copy. Names and sizes only say where to look; checksums decide.
 */
#include "base/crc32c.h"
#include "base/mem.h"
#include "tools/cp.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK GCT_CP_BLOCK_NBYTES

uint64_t gct_cp_stream_at(const struct gct_cp_manifest *m, uint32_t file, uint64_t offset)
{
	uint64_t at = offset;
	uint32_t i;

	for (i = 0; i < file; i++)
		at += m->files[i].size + GCT_CP_TRAILER;
	return at;
}

void gct_cp_point_of(const struct gct_cp_manifest *m, uint64_t at, struct gct_cp_point *p)
{
	*p = (struct gct_cp_point){.offset = at};
	while (p->file < m->nfiles && p->offset >= m->files[p->file].size + GCT_CP_TRAILER)
		p->offset -= m->files[p->file++].size + GCT_CP_TRAILER;
}

static uint64_t blocks_of(uint64_t nbytes)
{
	return nbytes / BLOCK + (nbytes % BLOCK != 0);
}

uint64_t gct_cp_nblocks(const struct gct_cp_manifest *m)
{
	uint64_t n = 0;
	uint32_t i;

	for (i = 0; i < m->nfiles; i++)
		n += blocks_of(m->files[i].size);
	return n;
}

static uint64_t block_nbytes(const struct gct_cp_file *f, uint64_t offset)
{
	return f->size - offset < BLOCK ? f->size - offset : BLOCK;
}

/* True if all n bytes are there. */
static int read_all(int fd, char *buf, uint64_t n, uint64_t offset)
{
	uint64_t have = 0;

	while (have < n) {
		ssize_t got = pread(fd, buf + have, n - have, (off_t)(offset + have));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return 0;
		have += (uint64_t)got;
	}
	return 1;
}

/* ---- rank 0 */

static int is_as_said(int fd, const struct gct_cp_file *f)
{
	struct stat st;

	return fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) &&
	       (uint64_t)st.st_size == f->size && st.st_mtim.tv_sec == f->mtime_s &&
	       (uint32_t)st.st_mtim.tv_nsec == f->mtime_ns;
}

static int sum_file(const struct gct_cp_file *f, const char *path, char *buf, uint32_t *crcs,
	uint64_t n, struct gci_error *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	uint64_t i;

	for (i = 0; i < n && !e->status; i++) {
		uint64_t len = block_nbytes(f, i * BLOCK);

		if (!is_as_said(fd, f) || !read_all(fd, buf, len, i * BLOCK))
			gci_error_set(e, GCOLL_ERR_IO, "%s changed while it was being read", path);
		else
			crcs[i] = gci_crc32c(0, buf, len);
	}
	if (fd >= 0)
		close(fd);
	return e->status;
}

int gct_cp_sum_blocks(const struct gct_cp_manifest *m, char *const *paths, uint32_t *crcs,
	uint64_t n, struct gci_error *e)
{
	char *buf = gci_calloc(BLOCK, 1);
	uint32_t i;

	if (!buf)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	for (i = 0; i < m->nfiles && n && !e->status; i++) {
		uint64_t some = blocks_of(m->files[i].size);

		some = some < n ? some : n;
		sum_file(&m->files[i], paths[i], buf, crcs, some, e);
		crcs += some;
		n -= some;
	}
	gci_free(buf);
	return e->status;
}

/* ---- receivers */

/* Opens what looks like a file, whole or in part: *nbytes of it. -1: nothing is there. */
static int open_own(const struct gct_cp_sink *s, uint32_t file, int whole, uint64_t *nbytes)
{
	const struct gct_cp_file *f = &s->manifest->files[file];
	char *path = whole ? gct_cp_sink_path(s, file) : gct_cp_sink_part(s, file);
	int fd = path ? open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
	struct stat st;

	gci_free(path);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || (whole && !is_as_said(fd, f))) {
		close(fd);
		return -1;
	}
	*nbytes = (uint64_t)st.st_size < f->size ? (uint64_t)st.st_size : f->size;
	return fd;
}

uint64_t gct_cp_claim(const struct gct_cp_sink *s)
{
	const struct gct_cp_manifest *m = s->manifest;
	uint64_t n = 0, nbytes;
	uint32_t i;
	int fd;

	for (i = 0; i < m->nfiles; i++) {
		fd = open_own(s, i, 1, &nbytes);
		if (fd < 0)
			break;
		close(fd);
		n += blocks_of(nbytes);
	}
	fd = i < m->nfiles ? open_own(s, i, 0, &nbytes) : -1;
	if (fd >= 0) {
		close(fd);
		n += nbytes == m->files[i].size ? blocks_of(nbytes) : nbytes / BLOCK;
	}
	return n < GCT_CP_MAX_BLOCKS ? n : GCT_CP_MAX_BLOCKS;
}

/* Compares a file's blocks with up to n checksums; how many bytes agree from its beginning on. */
static uint64_t compare(const struct gct_cp_file *f, int fd, char *buf, const uint32_t *crcs,
	uint64_t n, uint32_t *crc)
{
	uint64_t i, len, same = 0;

	*crc = 0;
	for (i = 0; i < n && same < f->size; i++) {
		len = block_nbytes(f, same);
		if (!read_all(fd, buf, len, same) || gci_crc32c(0, buf, len) != crcs[i])
			break;
		*crc = gci_crc32c(*crc, buf, len);
		same += len;
	}
	return same;
}

int gct_cp_verify(
	const struct gct_cp_sink *s, const uint32_t *crcs, uint64_t n, struct gct_cp_point *p)
{
	const struct gct_cp_manifest *m = s->manifest;
	char *buf = gci_calloc(BLOCK, 1);
	uint64_t nbytes, same, some;
	int fd;

	*p = (struct gct_cp_point){.file = 0};
	if (!buf)
		return GCOLL_ERR_NOMEM;
	for (; p->file < m->nfiles; p->file++) {
		const struct gct_cp_file *f = &m->files[p->file];

		some = blocks_of(f->size);
		fd = open_own(s, p->file, 1, &nbytes);
		if (fd < 0 || some > n)
			break;
		same = compare(f, fd, buf, crcs, some, &p->crc);
		close(fd);
		fd = -1;
		if (same < f->size)
			break;
		crcs += some;
		n -= some;
	}
	if (fd >= 0)
		close(fd);
	p->crc = 0;
	fd = p->file < m->nfiles ? open_own(s, p->file, 0, &nbytes) : -1;
	if (fd >= 0) {
		p->offset = compare(&m->files[p->file], fd, buf, crcs, n, &p->crc);
		close(fd);
	}
	gci_free(buf);
	return 0;
}
