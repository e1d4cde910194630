/* SPDX-License-Identifier: MIT
 * What a receiver has of an earlier copy. Names and sizes only say where to look; checksums decide.
 */
#include "base/crc32c.h"
#include "base/mem.h"
#include "tools/cp/impl.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#define BLOCK GCT_CP_BLOCK_NBYTES

uint64_t gct_cp_nblocks(const struct gct_cp_manifest *m)
{
	uint64_t n = 0;
	uint32_t i;

	for (i = 0; i < m->nfiles; i++)
		n += gct_cp_blocks_of(m->files[i].size);
	return n;
}

uint32_t gct_cp_first_missing(const struct gct_cp_manifest *m, const uint64_t *set)
{
	uint32_t i;

	for (i = 0; i < m->nfiles && gct_cp_is_in(set, i); i++)
		;
	return i;
}

uint64_t gct_cp_reach(const struct gct_cp_manifest *m, uint64_t *set, uint64_t n)
{
	uint64_t end = 0;
	uint32_t i;

	for (i = 0; i < m->nfiles; i++) {
		end += gct_cp_blocks_of(m->files[i].size);
		if (end > GCT_CP_MAX_BLOCKS)
			gct_cp_put(set, i, 0);
		else if (end > n && gct_cp_is_in(set, i))
			n = end;
	}
	return n;
}

uint64_t gct_cp_had(const struct gct_cp_manifest *m, const struct gct_cp_point *p)
{
	uint64_t n = 0;
	uint32_t i;

	for (i = 0; i < m->nfiles; i++)
		if (i < p->file || m->files[i].is_there)
			n += m->files[i].size;
	return n + p->offset;
}

static uint64_t block_nbytes(const struct gct_cp_file *f, uint64_t offset)
{
	return f->size - offset < BLOCK ? f->size - offset : BLOCK;
}

/* Of so many zeros, without them. */
static uint32_t crc_of_zeros(uint64_t n)
{
	uint32_t crc = 0, some_crc = gci_crc32c(0, "", 1);
	uint64_t some;

	for (some = 1; n; some *= 2, n /= 2) {
		if (n & 1)
			crc = gci_crc32c_join(crc, some_crc, some);
		some_crc = gci_crc32c_join(some_crc, some_crc, some);
	}
	return crc;
}

/* True if there are no data from `at` to `end`: a file system that knows no holes has data all
 * over. */
static int is_hole(int fd, uint64_t at, uint64_t end)
{
	off_t data = lseek(fd, (off_t)at, SEEK_DATA);

	return data < 0 ? errno == ENXIO : (uint64_t)data >= end;
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

/* The checksum of len bytes; holes are not read, which would fill the page cache with their zeros.
 * True if all of them are there. */
static int sum_block(int fd, char *buf, uint64_t len, uint64_t at, uint32_t *crc)
{
	struct stat st;

	if (fstat(fd, &st) || (uint64_t)st.st_size < at + len)
		return 0;
	if (is_hole(fd, at, at + len)) {
		*crc = crc_of_zeros(len);
		return 1;
	}
	if (!read_all(fd, buf, len, at))
		return 0;
	*crc = gci_crc32c(0, buf, len);
	return 1;
}

/* ---- the source */

static int look_around(const struct gct_cp_look *look, uint64_t n, struct gci_error *e)
{
	return look ? look->look(look->user, n, e) : 0;
}

/* Of the file whose first block is `begin`, the blocks before `end`, as far as they are not known. */
static int sum_file(struct gct_cp_place *place, uint32_t file, char *buf, uint32_t *crcs,
	uint64_t begin, uint64_t end, const struct gct_cp_look *look, struct gci_error *e)
{
	const struct gct_cp_file *f = &place->manifest->files[file];
	int fd = gct_cp_source_open(place, f);
	struct stat st;
	char *path;
	uint64_t i, at;

	for (i = begin; i < end && !e->status; i++) {
		at = (i - begin) * BLOCK;
		if (crcs[i])
			continue;
		if (fd < 0 || fstat(fd, &st) || !gct_cp_is_as_said(&st, f) ||
			!sum_block(fd, buf, block_nbytes(f, at), at, &crcs[i])) {
			path = gct_cp_source_path(place->manifest, file);
			gci_error_set(e, GCOLL_ERR_IO, "%s " GCT_CP_CHANGED, path ? path : f->name);
			gci_free(path);
			break;
		}
		look_around(look, i + 1, e);
	}
	if (fd >= 0)
		close(fd);
	return e->status;
}

static int are_known(const uint32_t *crcs, uint64_t begin, uint64_t end)
{
	while (begin < end && crcs[begin])
		begin++;
	return begin >= end;
}

int gct_cp_sum_blocks(const struct gct_cp_manifest *m, uint32_t *crcs, uint64_t n,
	const uint64_t *set, const struct gct_cp_look *look, struct gci_error *e)
{
	struct gct_cp_place place;
	char *buf = gci_calloc(BLOCK, 1);
	uint64_t begin = 0, next, end;
	uint32_t i;

	if (!buf)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	gct_cp_place_init(&place, m, NULL);
	for (i = 0; i < m->nfiles && !e->status; i++, begin = next) {
		next = begin + gct_cp_blocks_of(m->files[i].size);
		end = next < n || (set && gct_cp_is_in(set, i)) ? next : n;
		if (!are_known(crcs, begin, end))
			sum_file(&place, i, buf, crcs, begin, end, look, e);
	}
	gct_cp_place_close(&place);
	gci_free(buf);
	return e->status;
}

/* ---- receivers */

/* Opens what looks like a file that is whole. -1: nothing is there. */
static int open_whole(struct gct_cp_sink *s, uint32_t file)
{
	const struct gct_cp_file *f = &s->manifest->files[file];
	int dir = gct_cp_place_go(&s->place, f->dir), fd = -1;
	struct stat st;

	if (dir >= 0)
		fd = openat(dir, gct_cp_sink_name(s, file),
			O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || (!fstat(fd, &st) && gct_cp_is_as_said(&st, f)))
		return fd;
	close(fd);
	return -1;
}

/* What was kept of a file, if there is some: a descriptor that is the sink's, or -1. */
static int find_part(struct gct_cp_sink *s, uint32_t file)
{
	struct stat st;

	return gct_cp_hold_part(s, file, 0) > 0 && !fstat(s->part_fd, &st) && gct_cp_is_own(&st)
		       ? s->part_fd
		       : -1;
}

/* Blocks of one that was kept, up to the last that has data: its length is the whole file's from
 * the beginning, and what follows a SIGKILL is a hole. */
static uint64_t claim_part(int fd, const struct gct_cp_file *f)
{
	struct stat st;
	uint64_t nbytes, most, least = 0;

	if (fstat(fd, &st))
		return 0;
	nbytes = (uint64_t)st.st_size < f->size ? (uint64_t)st.st_size : f->size;
	most = nbytes == f->size ? gct_cp_blocks_of(nbytes) : nbytes / BLOCK;
	while (least < most) {
		uint64_t middle = least + (most - least) / 2;

		if (is_hole(fd, middle * BLOCK, nbytes))
			most = middle;
		else
			least = middle + 1;
	}
	return least;
}

uint64_t gct_cp_claim(struct gct_cp_sink *s, uint64_t *set)
{
	const struct gct_cp_manifest *m = s->manifest;
	uint64_t n = 0;
	uint32_t i, first;
	int fd;

	for (i = 0; i < m->nfiles; i++) {
		fd = open_whole(s, i);
		gct_cp_put(set, i, fd >= 0);
		if (fd >= 0)
			close(fd);
	}
	first = gct_cp_first_missing(m, set);
	for (i = 0; i < first; i++)
		n += gct_cp_blocks_of(m->files[i].size);
	fd = first < m->nfiles ? find_part(s, first) : -1;
	if (fd >= 0)
		n += claim_part(fd, &m->files[first]);
	return n < GCT_CP_MAX_BLOCKS ? n : GCT_CP_MAX_BLOCKS;
}

/* What the receiver has is compared with. */
struct sums {
	char *buf; /* a block */
	const uint32_t *crcs;
	uint64_t n;
	const struct gct_cp_look *look;
};

/* Compares blocks of p's file, which is there whole or in part, with the checksums from `begin` on:
 * p is moved to the first that does not agree. True if the file is there and all do. */
static int agrees(struct gct_cp_sink *s, int whole, const struct sums *sums, uint64_t begin,
	struct gct_cp_point *p, struct gci_error *e)
{
	const struct gct_cp_file *f = &s->manifest->files[p->file];
	uint64_t i, len;
	int fd = whole ? open_whole(s, p->file) : find_part(s, p->file);
	uint32_t crc;

	p->offset = p->crc = 0;
	for (i = begin; fd >= 0 && i < sums->n && sums->crcs[i] && p->offset < f->size; i++) {
		len = block_nbytes(f, p->offset);
		if (!sum_block(fd, sums->buf, len, p->offset, &crc) || crc != sums->crcs[i] ||
			look_around(sums->look, i + 1, e))
			break;
		p->crc = gci_crc32c_join(p->crc, crc, len);
		p->offset += len;
	}
	if (fd < 0)
		return 0;
	if (whole)
		close(fd);
	return p->offset == f->size;
}

int gct_cp_verify(struct gct_cp_sink *s, const uint32_t *crcs, uint64_t n, uint64_t *set,
	struct gct_cp_point *p, const struct gct_cp_look *look, struct gci_error *e)
{
	const struct gct_cp_manifest *m = s->manifest;
	struct sums sums = {.buf = gci_calloc(BLOCK, 1), .crcs = crcs, .n = n, .look = look};
	struct gct_cp_point at = {.file = 0};
	uint64_t begin = 0, begins = 0; /* of the first file that is missing */

	*p = (struct gct_cp_point){.file = m->nfiles};
	if (!sums.buf)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	for (; at.file < m->nfiles && !e->status; at.file++) {
		if (gct_cp_is_in(set, at.file))
			gct_cp_put(set, at.file, agrees(s, 1, &sums, begin, &at, e));
		if (!gct_cp_is_in(set, at.file) && p->file == m->nfiles) {
			p->file = at.file;
			begins = begin;
		}
		begin += gct_cp_blocks_of(m->files[at.file].size);
	}
	if (p->file < m->nfiles && !e->status)
		agrees(s, 0, &sums, begins, p, e);
	gci_free(sums.buf);
	return e->status;
}
