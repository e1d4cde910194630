/* SPDX-License-Identifier: MIT
 * The stream in chunks: each a bcast to those that need it, several under way. Files are read and
 * written by a thread, for disks may be slow and others wait for what this rank passes on.
 *
 * A barrier follows each group of chunks: a rank enters it when they are written. When it ends, all
 * ranks have them; that is what the progress bar shows, and no rank runs far ahead of the slowest.
 * Nobody waits for it while there are chunks to move, and without a bar the last ones have none: the
 * end of the copy tells.
 *
 * Memory is taken for a chunk when its bcast begins, and as few are under way as keep the links
 * busy: what was used last is taken first, and still in the cache. A chunk that waits for the disk
 * takes more. */
#include "base/clock.h"
#include "base/crc32c.h"
#include "base/mem.h"
#include "base/units.h"
#include "comm/comm.h"
#include "comm/progress.h"
#include "tools/cp/cp.h"
#include "tools/cp/impl.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

/* ---- --bwlimit: how much of the stream may leave the source. What goes to receivers and over
 * links follows from it, since each byte of the stream goes to each of them once. */

#define STEP_NBYTES (64u << 10)
#define PER_SECOND  8 /* chunks, at least: a limited stream is not to come in bursts */

/* Under way: most of a second's. What all have is known when that many more were sent. */
#define LEAST_CHUNKS (PER_SECOND * 3 / 4)

int gct_cp_parse_limit(const char *s, uint64_t *rate)
{
	uint64_t v;

	if (!gci_parse_rate(s, &v))
		v /= 8;
	else if (!s[strspn(s, "0123456789.")] || gci_parse_bytes(s, &v))
		return -1; /* a bare number is kilobytes here, kilobits there: not said */
	if (!v)
		return -1;
	*rate = v;
	return 0;
}

size_t gct_cp_chunk_nbytes(uint64_t rate)
{
	uint64_t n = rate / PER_SECOND / STEP_NBYTES * STEP_NBYTES;

	if (!rate || n > GCT_CP_CHUNK_NBYTES)
		return GCT_CP_CHUNK_NBYTES;
	return n ? (size_t)n : STEP_NBYTES;
}

int gct_cp_chunks(uint64_t rate)
{
	uint64_t n = rate / PER_SECOND / gct_cp_chunk_nbytes(rate);

	if (!rate || n > GCT_CP_CHUNKS / LEAST_CHUNKS)
		return GCT_CP_CHUNKS;
	return n ? (int)n * LEAST_CHUNKS : LEAST_CHUNKS;
}

/* What n bytes take. */
static uint64_t duration_ns(const struct gct_cp_throttle *t, uint64_t nbytes)
{
	unsigned __int128 ns = (unsigned __int128)nbytes * GCI_NS_PER_S / t->rate;

	return ns > INT64_MAX / 2 ? INT64_MAX / 2 : (uint64_t)ns;
}

uint64_t gct_cp_throttle_wait(struct gct_cp_throttle *t, uint64_t nbytes, uint64_t now_ns)
{
	uint64_t due_ns;

	if (!t->rate)
		return 0;
	if (!t->from_ns)
		t->from_ns = now_ns;
	due_ns = t->from_ns + duration_ns(t, nbytes);
	return due_ns > now_ns ? due_ns - now_ns : 0;
}

void gct_cp_throttle_sent(struct gct_cp_throttle *t, uint64_t nbytes, uint64_t now_ns)
{
	uint64_t ns, least;

	if (!t->rate)
		return;
	/* Who was late may make up for one chunk, not for a pause. */
	ns = duration_ns(t, nbytes);
	least = now_ns > ns ? now_ns - ns : 0;
	t->from_ns = t->from_ns + ns > least ? t->from_ns + ns : least;
}

/* ---- Checksums of whole files, at the source: made while they are read for the stream; what was
 * not read, since all receivers had it, is read for them. */

#define PIECE_NBYTES (1u << 20) /* of what is read again */

enum { HAS_CRC = 1, HAS_SHA256 = 2 };

int gct_cp_sums_init(struct gct_cp_sums *s, const struct gct_cp_manifest *m, int wants_sha256,
	struct gci_error *e)
{
	*s = (struct gct_cp_sums){.manifest = m, .wants_sha256 = wants_sha256};
	s->files = gci_calloc(m->nfiles, sizeof(*s->files));
	s->md = wants_sha256 ? EVP_MD_CTX_new() : NULL;
	if (!s->files || (wants_sha256 && !s->md))
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	return 0;
}

void gct_cp_sums_free(struct gct_cp_sums *s)
{
	EVP_MD_CTX_free(s->md);
	gci_free(s->files);
	memset(s, 0, sizeof(*s));
}

/* What was read of a file, in its order; and its end. Of no use is what does not begin at 0. */
static void gct_cp_sums_add(
	struct gct_cp_sums *s, uint32_t file, uint64_t offset, const char *data, size_t n)
{
	if (!s->wants_sha256)
		return;
	if (!offset) {
		s->file = file;
		s->at = 0;
		s->failed = !EVP_DigestInit_ex(s->md, EVP_sha256(), NULL);
	}
	/* One whose beginning was not read is left for later. */
	if (file != s->file || offset != s->at)
		return;
	s->failed |= !EVP_DigestUpdate(s->md, data, n);
	s->at += n;
}

static void gct_cp_sums_end(struct gct_cp_sums *s, uint32_t file, uint32_t crc)
{
	struct gct_cp_sum *sum = &s->files[file];
	uint64_t size = s->manifest->files[file].size;

	sum->crc = crc;
	sum->has |= HAS_CRC;
	if (!size)
		gct_cp_sums_add(s, file, 0, "", 0);
	if (!s->wants_sha256 || file != s->file || size != s->at || s->failed)
		return;
	if (EVP_DigestFinal_ex(s->md, sum->sha256, NULL))
		sum->has |= HAS_SHA256;
	s->at = UINT64_MAX;
}

/* The file's blocks' sums, of which the first is crcs[0], joined. True if all are known. */
static int join_blocks(const struct gct_cp_file *f, const uint32_t *crcs, uint32_t *crc)
{
	uint64_t at, n, i = 0;

	*crc = 0;
	for (at = 0; at < f->size && crcs[i]; at += n) {
		n = f->size - at < GCT_CP_BLOCK_NBYTES ? f->size - at : GCT_CP_BLOCK_NBYTES;
		*crc = gci_crc32c_join(*crc, crcs[i++], n);
	}
	return at == f->size;
}

static int sums_changed(const struct gct_cp_sums *s, uint32_t file, struct gci_error *e)
{
	char *path = gct_cp_source_path(s->manifest, file);

	gci_error_set(
		e, GCOLL_ERR_IO, "%s " GCT_CP_CHANGED, path ? path : s->manifest->files[file].name);
	gci_free(path);
	return e->status;
}

static int read_file(struct gct_cp_sums *s, struct gct_cp_place *place, uint32_t file, char *buf,
	const struct gct_cp_look *look, struct gci_error *e)
{
	const struct gct_cp_file *f = &s->manifest->files[file];
	int fd = gct_cp_source_open(place, f);
	uint64_t at = 0;
	uint32_t crc = 0;
	struct stat st;
	ssize_t n = 1;

	while (fd >= 0 && n > 0 && at < f->size && !e->status) {
		n = read(fd, buf, PIECE_NBYTES);
		if (n <= 0 || (uint64_t)n > f->size - at)
			break;
		crc = gci_crc32c(crc, buf, (size_t)n);
		gct_cp_sums_add(s, file, at, buf, (size_t)n);
		at += (uint64_t)n;
		look->look(look->user, 0, e);
	}
	if (!e->status && (fd < 0 || at < f->size || fstat(fd, &st) || !gct_cp_is_as_said(&st, f)))
		sums_changed(s, file, e);
	if (fd >= 0)
		close(fd);
	if (!e->status)
		gct_cp_sums_end(s, file, crc);
	if (!e->status && s->wants_sha256 && !(s->files[file].has & HAS_SHA256))
		gci_error_set(e, GCOLL_ERR_SYS, "no SHA-256 to be had of libcrypto");
	return e->status;
}

int gct_cp_sums_rest(struct gct_cp_sums *s, const uint32_t *crcs, uint64_t ncrcs,
	const struct gct_cp_look *look, struct gci_error *e)
{
	int wanted = HAS_CRC | (s->wants_sha256 ? HAS_SHA256 : 0);
	char *buf = gci_calloc(PIECE_NBYTES, 1);
	struct gct_cp_place place;
	uint64_t block = 0, n;
	uint32_t i;

	if (!buf)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	gct_cp_place_init(&place, s->manifest, NULL);
	for (i = 0; i < s->manifest->nfiles && !e->status; i++, block += n) {
		const struct gct_cp_file *f = &s->manifest->files[i];
		struct gct_cp_sum *sum = &s->files[i];

		n = gct_cp_blocks_of(f->size);
		if (!(sum->has & HAS_CRC) && block + n <= ncrcs &&
			join_blocks(f, crcs + block, &sum->crc))
			sum->has |= HAS_CRC;
		if ((sum->has & wanted) != wanted)
			read_file(s, &place, i, buf, look, e);
	}
	gct_cp_place_close(&place);
	gci_free(buf);
	return e->status;
}

/* ---- in the format of sha256sum(1) */

static void put_name(struct gci_buf *out, const char *name)
{
	for (; *name; name++) {
		if (*name == '\n' || *name == '\\')
			gci_buf_printf(out, "\\%c", *name == '\n' ? 'n' : '\\');
		else
			gci_buf_put_u8(out, (uint8_t)*name);
	}
}

char *gct_cp_name_in_dest(const struct gct_cp_manifest *m, uint32_t file)
{
	const struct gct_cp_file *f = &m->files[file];
	char *path = gct_cp_path(m, "", f->dir, f->name, NULL), *name;

	name = path ? gci_strdup(path + 1) : NULL;
	gci_free(path);
	return name;
}

int gct_cp_sums_print(const struct gct_cp_sums *s, struct gci_buf *out)
{
	char hex[2 * sizeof(s->files->sha256) + 1], *name;
	uint32_t i;

	for (i = 0; i < s->manifest->nfiles; i++) {
		name = gct_cp_name_in_dest(s->manifest, i);
		if (!name)
			return GCOLL_ERR_NOMEM;
		gci_format_hex(s->files[i].sha256, sizeof(s->files->sha256), hex);
		gci_buf_printf(out, "%s%s  ", strpbrk(name, "\n\\") ? "\\" : "", hex);
		put_name(out, name);
		gci_buf_put_u8(out, '\n');
		gci_free(name);
	}
	return out->failed ? GCOLL_ERR_NOMEM : 0;
}

/* ---- The stream's beginning, at the source: files are read. */

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

/* ---- chunks on their way */

#define LOOK_EVERY (100 * GCI_NS_PER_MS) /* at the clock, for the progress bar */
#define GROUP      4                     /* chunks to a barrier */
#define LEAST      4                     /* chunks under way */

/* What a chunk is. */
struct piece {
	int root;
	uint32_t span;
	uint64_t begin; /* in the stream */
	size_t n;
	int is_last; /* of its span */
};

struct mover {
	struct gct_cp_move *m;
	int rank;
	gcoll_req *bcast[GCT_CP_CHUNKS], *barrier[GCT_CP_CHUNKS];
	uint64_t first, nchunks; /* those before `first` all have */
	int *dests;
	uint64_t posted, ended;   /* bcasts */
	uint64_t entered, agreed; /* barriers; as many as there are groups */
	uint64_t group, ngroups;
	uint64_t at;      /* how far this rank had the stream in the beginning */
	uint64_t end;     /* and up to where it wants it */
	uint64_t filed;   /* chunks that the thread has read or written, as last seen */
	size_t chunk;     /* bytes */
	uint64_t nring;   /* chunks that there is memory for */
	uint64_t ahead;   /* chunks under way that keep the links busy */
	uint64_t *starts; /* the first chunk of each span, and all; NULL: no spans */
	uint64_t wait_ns; /* until the next chunk may go */

	pthread_t thread;
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t changed;
	uint64_t may, done;        /* chunks that have come, and that the thread has handled */
	uint64_t freed;            /* chunks whose memory is free again */
	uint64_t done_ns, busy_ns; /* see struct gct_cp_move */
	int stop;
	struct gci_error error; /* the thread's */
};

static uint64_t count_chunks(uint64_t nbytes, size_t chunk)
{
	return nbytes / chunk + (nbytes % chunk != 0);
}

/* Spans do not share chunks: each comes from one rank. */
static int find_starts(struct mover *v, struct gci_error *e)
{
	const struct gct_cp_move *m = v->m;
	uint32_t s;

	if (!m->spans)
		return 0;
	v->starts = gci_calloc(m->nspans + 1, sizeof(*v->starts));
	if (!v->starts)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	for (s = 0; s < m->nspans; s++)
		v->starts[s + 1] = v->starts[s] + count_chunks(m->spans[s].nbytes, v->chunk);
	v->nchunks = v->starts[m->nspans];
	return 0;
}

static struct piece piece(const struct mover *v, uint64_t i)
{
	const struct gct_cp_move *m = v->m;
	uint32_t least = 0, most = m->nspans, middle;
	uint64_t at = i * v->chunk, left = m->nbytes - at;

	if (!m->spans)
		return (struct piece){m->root, 0, at, left < v->chunk ? (size_t)left : v->chunk, 0};
	while (most - least > 1) {
		middle = least + (most - least) / 2;
		if (v->starts[middle] <= i)
			least = middle;
		else
			most = middle;
	}
	at = (i - v->starts[least]) * v->chunk;
	left = m->spans[least].nbytes - at;
	return (struct piece){m->spans[least].root, least, m->spans[least].begin + at,
		left < v->chunk ? (size_t)left : v->chunk, left <= v->chunk};
}

/* ---- memory of chunks */

/* Call with the lock held, as the next one. */
static void give(struct gct_cp_move *m, uint64_t at)
{
	gci_blocks_give(&m->chunks, m->memory[at]);
	m->memory[at] = NULL;
}

/* For chunk i. What has been moved and handled is free, in the order of the stream. */
static char *take(struct mover *v, uint64_t i, struct gci_error *e)
{
	char *chunk;

	for (; v->freed < v->may && v->freed < v->done; v->freed++)
		give(v->m, v->freed % v->nring);
	chunk = gci_blocks_take(&v->m->chunks);
	if (!chunk)
		gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	return v->m->memory[i % v->nring] = chunk;
}

/* ---- the thread */

static void handle_chunk(struct mover *v, uint64_t i, char *chunk, struct gci_error *e)
{
	struct gct_cp_move *m = v->m;
	struct piece p = piece(v, i);
	struct gct_cp_sink *sink = m->spans && m->sink_of ? m->sink_of(m->user, p.span) : m->sink;
	uint64_t from, to;

	if (p.root == v->rank && gct_cp_source_read(m->source, chunk, p.n, e))
		return;
	if (!sink)
		return;
	/* Some of it may be here already, or another's. */
	from = v->at > p.begin ? v->at - p.begin : 0;
	to = v->end > p.begin ? v->end - p.begin : 0;
	to = to < p.n ? to : p.n;
	if (from < to && gct_cp_sink_write(sink, chunk + from, (size_t)(to - from), e))
		return;
	if (p.is_last && !gct_cp_sink_finish(sink, e))
		gct_cp_place_close(&sink->place); /* there may be many */
}

static int is_read(const struct mover *v, uint64_t i)
{
	return piece(v, i).root == v->rank;
}

/* Whether chunk i may be handled: read, if it is not too early, or written, when it has come. */
static int may_handle(const struct mover *v, uint64_t i)
{
	return i < (is_read(v, i) ? v->may + v->ahead : v->may);
}

static void *handle_chunks(void *arg)
{
	struct mover *v = arg;
	struct gci_error e = {0};
	uint64_t begun_ns, now_ns;
	char *chunk;

	pthread_mutex_lock(&v->lock);
	while (!e.status && v->done < v->nchunks) {
		while (!v->stop && !may_handle(v, v->done))
			pthread_cond_wait(&v->changed, &v->lock);
		if (v->stop)
			break;
		chunk = is_read(v, v->done) ? take(v, v->done, &e)
					    : v->m->memory[v->done % v->nring];
		pthread_mutex_unlock(&v->lock);
		begun_ns = gci_now_ns();
		if (chunk)
			handle_chunk(v, v->done, chunk, &e);
		now_ns = gci_now_ns();
		pthread_mutex_lock(&v->lock);
		v->busy_ns += now_ns - begun_ns;
		v->done_ns = now_ns;
		v->error = e;
		v->done += !e.status;
		gci_tp_wake(v->m->comm->engine->tp);
	}
	pthread_mutex_unlock(&v->lock);
	return NULL;
}

/* What the thread may handle by now, for what it has. */
static void exchange(struct mover *v, struct gci_error *e)
{
	pthread_mutex_lock(&v->lock);
	if (v->may != v->ended) {
		v->may = v->ended;
		pthread_cond_signal(&v->changed);
	}
	v->filed = v->done;
	if (v->error.status)
		gci_error_set(e, v->error.status, "%s", v->error.text);
	pthread_mutex_unlock(&v->lock);
}

static void end_thread(struct mover *v)
{
	pthread_mutex_lock(&v->lock);
	v->stop = 1;
	pthread_cond_signal(&v->changed);
	pthread_mutex_unlock(&v->lock);
	pthread_join(v->thread, NULL);
}

/* ---- the network */

static uint64_t end_of(const struct gct_cp_move *m, int rank)
{
	return m->end ? m->end[rank] : m->nbytes;
}

/* Chunk i goes to those that have not all of it that is theirs. */
static void post_chunk(struct mover *v, uint64_t i, struct gci_error *e)
{
	gcoll_comm *comm = v->m->comm;
	gcoll_req **req = &v->bcast[i % v->nring];
	struct piece p = piece(v, i);
	int n = 0, r, size = gcoll_size(comm);
	char *chunk;

	pthread_mutex_lock(&v->lock);
	chunk = is_read(v, i) ? v->m->memory[i % v->nring] : take(v, i, e);
	pthread_mutex_unlock(&v->lock);
	if (!chunk)
		return;
	for (r = 0; r < size; r++)
		if (r != p.root && v->m->at[r] < p.begin + p.n && end_of(v->m, r) > p.begin)
			v->dests[n++] = r;
	gct_cp_operation_error(e,
		n == size - 1
			? gcoll_ibcast(chunk, p.n, GCOLL_BYTE, p.root, comm, req)
			: gcoll_imulticast(chunk, p.n, GCOLL_BYTE, p.root, v->dests, n, comm, req));
}

/* When the limit lets it go. */
static int may_go(struct mover *v, uint64_t i)
{
	struct gct_cp_throttle *t = &v->m->throttle;
	uint64_t now_ns;

	if (!t->rate)
		return 1;
	now_ns = gci_now_ns();
	v->wait_ns = gct_cp_throttle_wait(t, piece(v, i).n, now_ns);
	if (v->wait_ns)
		return 0;
	gct_cp_throttle_sent(t, piece(v, i).n, now_ns);
	return 1;
}

/* This rank has written group i, as all others have when it ends. To tell by cluster who was the
 * last is a reduction, and as good as a barrier: it too ends when all have come. */
static int post_written(struct mover *v, uint64_t i)
{
	struct gct_cp_move *m = v->m;
	gcoll_req **req = &v->barrier[i % v->nring];
	uint64_t *reached = m->reached[i % v->nring];
	int n = gcoll_clusters(m->comm), rank = gcoll_rank(m->comm);

	if (!m->tells_clusters)
		return gcoll_ibarrier(m->comm, req);
	memset(reached, 0, (size_t)n * sizeof(*reached));
	if (m->sink)
		reached[gcoll_cluster(m->comm, rank)] =
			GCT_CP_REACHED(gci_now_ns() - m->begun_ns, rank);
	return gcoll_iallreduce(
		GCOLL_IN_PLACE, reached, (uint64_t)n, GCOLL_UINT64, GCOLL_MAX, m->comm, req);
}

/* The chunk that ends the first n groups. */
static uint64_t end_of_groups(const struct mover *v, uint64_t n)
{
	uint64_t end = v->first + n * v->group;

	return end < v->nchunks ? end : v->nchunks;
}

/* Starts the next operation, if its time has come. The order is the same on every rank: as many
 * bcasts as there is memory for, then a barrier before those that take its group's memory. Returns
 * whether it did. */
static int post(struct mover *v, struct gci_error *e)
{
	uint64_t i = v->posted, have = v->ended < v->filed ? v->ended : v->filed;

	if (i < v->nchunks && i < end_of_groups(v, v->entered) + v->nring) {
		if (is_read(v, i) ? v->filed <= i || !may_go(v, i) : i >= v->ended + v->ahead)
			return 0;
		post_chunk(v, i, e);
		v->posted++;
		return 1;
	}
	if (v->entered == v->ngroups || have < end_of_groups(v, v->entered + 1) ||
		v->entered - v->agreed == v->nring / v->group)
		return 0;
	gct_cp_operation_error(e, post_written(v, v->entered));
	v->entered++;
	return 1;
}

/* Takes the ends of operations in their order. Returns whether there was one. */
static int collect(const struct mover *v, gcoll_req **ring, uint64_t *ended, uint64_t started,
	struct gci_error *e)
{
	int done, any = 0;

	while (!e->status && *ended < started) {
		gct_cp_operation_error(e, gcoll_test(&ring[*ended % v->nring], &done));
		if (!done)
			break;
		++*ended;
		any = 1;
	}
	return any;
}

int gct_cp_progress(gcoll_comm *comm, uint64_t timeout_ns, struct gci_error *e)
{
	struct gci_engine *engine = comm->engine;
	int rc;

	gci_enter(engine); /* connections may be warming up (flow/warm.h) */
	rc = gci_engine_progress(engine, timeout_ns);
	gci_leave(engine);
	if (!rc)
		return 0;
	gci_engine_await_verdict(engine, GCI_NEVER);
	return gci_error_set(e, engine->failure.status, "%s", engine->failure.text);
}

/* Of the last chunk that all have. */
static const uint64_t *reached(const struct mover *v)
{
	if (!v->m->tells_clusters || !v->agreed)
		return NULL;
	return v->m->reached[(v->agreed - 1) % v->nring];
}

static int is_over(const struct mover *v)
{
	return v->agreed == v->ngroups && v->ended == v->nchunks && v->filed == v->nchunks;
}

static void move(struct mover *v, struct gci_error *e)
{
	while (!e->status && !is_over(v)) {
		uint64_t all = v->m->nbytes, at;
		int moved = 0;

		v->wait_ns = 0;
		exchange(v, e);
		while (!e->status && post(v, e))
			moved = 1;
		moved |= collect(v, v->bcast, &v->ended, v->posted, e);
		moved |= collect(v, v->barrier, &v->agreed, v->entered, e);
		at = end_of_groups(v, v->agreed);
		at = at < v->nchunks ? piece(v, at).begin : all;
		v->m->progress(v->m->user, at, reached(v));
		if (!moved && !e->status) /* a failure must not wait for this rank's disk */
			gct_cp_progress(v->m->comm,
				v->wait_ns && v->wait_ns < LOOK_EVERY ? v->wait_ns : LOOK_EVERY, e);
	}
}

static int allocate(struct mover *v, struct gci_error *e)
{
	uint64_t i, n = v->ngroups < v->nring ? v->ngroups : v->nring;

	for (i = 0; i < GCT_CP_CHUNKS; i++) /* of an attempt that failed */
		give(v->m, i);
	gci_blocks_drain(&v->m->chunks);
	v->m->chunks.size = v->m->nbytes < v->chunk ? v->m->nbytes : v->chunk;
	v->m->chunks.most = v->nchunks < GCT_CP_CHUNKS ? (unsigned)v->nchunks : GCT_CP_CHUNKS;
	v->dests = gci_calloc((size_t)gcoll_size(v->m->comm), sizeof(*v->dests));
	for (i = 0; i < n && v->dests; i++) {
		uint64_t **reached = &v->m->reached[i];

		/* For any world: in another attempt there are fewer clusters. */
		if (!*reached)
			*reached =
				gci_calloc((size_t)gcoll_clusters(v->m->comm), sizeof(**reached));
		if (!*reached)
			break;
	}
	if (v->dests && i == n)
		return 0;
	gci_free(v->dests);
	return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
}

/* The chunk that somebody needs first. */
static uint64_t find_first(const struct gct_cp_move *m, size_t chunk)
{
	uint64_t least = UINT64_MAX;
	int r;

	for (r = 0; r < gcoll_size(m->comm); r++)
		least = m->at[r] < least ? m->at[r] : least;
	if (least == UINT64_MAX) /* a rank alone, which only reads */
		return 0;
	return least < m->nbytes ? least / chunk : count_chunks(m->nbytes, chunk);
}

/* Bytes that the links between clusters hold, twice: on their way, and while credit for more comes
 * back. UINT64_MAX: not known. */
static uint64_t in_flight(const gcoll_comm *comm)
{
	const struct gci_topo *t = &comm->topo;
	uint64_t most = 0;
	struct gci_flight f;
	int a, b;

	for (a = 0; a < t->nclusters; a++)
		for (b = 0; b < t->nclusters; b++) {
			if (a == b)
				continue;
			gci_topo_flight(t, a, b, comm->engine->settings.streams, &f);
			if (!f.nbytes)
				return UINT64_MAX;
			most = f.nbytes > most ? f.nbytes : most;
		}
	return 2 * most;
}

/* All of this is the same on every rank: it makes the order of operations. */
static void plan(struct mover *v)
{
	const struct gct_cp_move *m = v->m;
	uint64_t nbytes = in_flight(m->comm);

	v->chunk = gct_cp_chunk_nbytes(m->throttle.rate);
	v->nring = (uint64_t)gct_cp_chunks(m->throttle.rate);
	v->ahead = nbytes / v->chunk + LEAST;
	v->ahead = v->ahead < v->nring ? v->ahead : v->nring;
	v->group = GROUP;
	/* Who watches wants to see each chunk, and soon. */
	if (m->tells_clusters || m->throttle.rate)
		v->group = 1;
	if (m->tells_clusters && v->nring > 2 * v->ahead)
		v->nring = 2 * v->ahead;
	v->first = find_first(m, v->chunk);
	v->nchunks = count_chunks(m->nbytes, v->chunk);
}

/* How many barriers there are: without a bar, those that a bcast comes after. */
static uint64_t count_groups(const struct mover *v)
{
	uint64_t n = v->nchunks > v->first ? v->nchunks - v->first : 0;

	if (!v->m->tells_clusters)
		n = n > v->nring ? n - v->nring : 0;
	return count_chunks(n, v->group);
}

int gct_cp_move(struct gct_cp_move *m, struct gci_error *e)
{
	struct mover v = {.m = m,
		.rank = gcoll_rank(m->comm),
		.at = m->at[gcoll_rank(m->comm)],
		.end = end_of(m, gcoll_rank(m->comm))};

	plan(&v);
	m->comm->stream_nbytes = m->nbytes;
	if (!m->spans && m->source && v.first < v.nchunks &&
		gct_cp_source_seek(m->source, v.first * v.chunk, e))
		return e->status;
	if (!find_starts(&v, e)) {
		v.posted = v.ended = v.filed = v.may = v.done = v.freed = v.first;
		v.ngroups = count_groups(&v);
	}
	if (e->status || allocate(&v, e)) {
		gci_free(v.starts);
		return e->status;
	}
	pthread_mutex_init(&v.lock, NULL);
	pthread_cond_init(&v.changed, NULL);
	errno = pthread_create(&v.thread, NULL, handle_chunks, &v);
	if (errno) {
		gci_error_errno(e, "starting a thread");
	} else {
		move(&v, e);
		end_thread(&v);
		m->done_ns = v.done_ns ? v.done_ns : m->done_ns;
		m->busy_ns += v.busy_ns;
		if (v.error.status) /* this rank's own, also when another's was known before it */
			*e = v.error;
	}
	m->comm->stream_nbytes = 0;
	pthread_cond_destroy(&v.changed);
	pthread_mutex_destroy(&v.lock);
	gci_free(v.starts);
	gci_free(v.dests);
	return e->status;
}

void gct_cp_move_free(struct gct_cp_move *m)
{
	int i;

	for (i = 0; i < GCT_CP_CHUNKS; i++) {
		give(m, (uint64_t)i);
		gci_free(m->reached[i]);
	}
	gci_blocks_drain(&m->chunks);
}
