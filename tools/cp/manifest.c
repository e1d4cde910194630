/* SPDX-License-Identifier: MIT
 * The list of what is copied, as the source sends it. */
#include "base/mem.h"
#include "tools/cp/cp.h"

#include <string.h>

/* Encoded, with names of one byte. */
#define DIR_MIN_NBYTES  (4 + 1 + 4 + 4 + 8 + 4)
#define FILE_MIN_NBYTES (4 + 1 + 4 + 8 + 4 + 8 + 4)
#define LINK_MIN_NBYTES (4 + 1 + 4 + 1 + 4 + 8 + 4)

/* Each size is at most INT64_MAX - GCT_CP_TRAILER. */
int gct_cp_manifest_add_up(struct gct_cp_manifest *m)
{
	uint32_t i;

	m->stream_nbytes = 0;
	for (i = 0; i < m->nfiles && m->stream_nbytes <= INT64_MAX; i++)
		m->stream_nbytes += gct_cp_length(&m->files[i]);
	return m->stream_nbytes > INT64_MAX;
}

static void free_file(struct gct_cp_file *f)
{
	gci_free(f->name);
	gci_free(f->origin);
}

int gct_cp_manifest_scatter(struct gct_cp_manifest *m, int n, struct gci_error *e)
{
	const struct gct_cp_file *one = m->files;
	struct gct_cp_file *parts, *f;
	uint64_t begin = 0, end;
	uint32_t i;

	if (m->nfiles != 1 || m->ndirs || m->nlinks || n < 1 || (uint32_t)n > GCT_CP_MAX_FILES)
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"--scatter, expected one file, and a receiver at least");
	parts = gci_calloc((size_t)n, sizeof(*parts));
	for (i = 0; parts && i < (uint32_t)n; i++, begin = end) {
		end = (uint64_t)((unsigned __int128)one->size * (i + 1) / (uint32_t)n);
		f = &parts[i];
		*f = *one;
		f->name = gci_strdup(one->name);
		f->origin = gci_strdup(one->origin);
		f->begin = begin;
		f->whole = one->size;
		f->size = end - begin;
		if (!f->name || !f->origin)
			gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	}
	if (!parts)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	free_file(m->files);
	gci_free(m->files);
	m->files = parts;
	m->nfiles = (uint32_t)n;
	m->is_scattered = 1;
	gct_cp_manifest_add_up(m);
	return e->status;
}

struct gct_cp_manifest gct_cp_manifest_part(const struct gct_cp_manifest *m, uint32_t file)
{
	return (struct gct_cp_manifest){.files = &m->files[file],
		.nfiles = 1,
		.into_directory = m->into_directory,
		.stream_nbytes = gct_cp_length(&m->files[file])};
}

static void put_time(struct gci_buf *out, int64_t s, uint32_t ns)
{
	gci_buf_put_u64(out, (uint64_t)s);
	gci_buf_put_u32(out, ns);
}

void gct_cp_manifest_encode(const struct gct_cp_manifest *m, struct gci_buf *out)
{
	uint32_t i;

	gci_buf_put_u8(out, (uint8_t)(m->into_directory | m->is_scattered << 1));
	gci_buf_put_u32(out, m->ndirs);
	gci_buf_put_u32(out, m->nfiles);
	gci_buf_put_u32(out, m->nlinks);
	for (i = 0; i < m->ndirs; i++) {
		gci_buf_put_str(out, m->dirs[i].name);
		gci_buf_put_u32(out, m->dirs[i].parent);
		gci_buf_put_u32(out, m->dirs[i].mode);
		put_time(out, m->dirs[i].mtime_s, m->dirs[i].mtime_ns);
	}
	for (i = 0; i < m->nfiles; i++) {
		gci_buf_put_str(out, m->files[i].name);
		gci_buf_put_u32(out, m->files[i].dir);
		gci_buf_put_u64(out, m->files[i].size);
		gci_buf_put_u32(out, m->files[i].mode);
		put_time(out, m->files[i].mtime_s, m->files[i].mtime_ns);
	}
	for (i = 0; i < m->nlinks; i++) {
		gci_buf_put_str(out, m->links[i].name);
		gci_buf_put_u32(out, m->links[i].dir);
		gci_buf_put_str(out, m->links[i].target);
		put_time(out, m->links[i].mtime_s, m->links[i].mtime_ns);
	}
}

int gct_cp_is_name(const char *name)
{
	return *name && !strchr(name, '/') && strcmp(name, ".") && strcmp(name, "..");
}

static char *read_name(struct gci_reader *r)
{
	char *name = gci_read_str(r, GCT_CP_MAX_NAME);

	if (name && !gct_cp_is_name(name))
		r->failed = 1;
	return name;
}

static void read_time(struct gci_reader *r, int64_t *s, uint32_t *ns)
{
	*s = (int64_t)gci_read_u64(r);
	*ns = gci_read_u32(r);
	r->failed |= *ns > 999999999;
}

static uint32_t read_at_most(struct gci_reader *r, uint32_t most)
{
	uint32_t v = gci_read_u32(r);

	r->failed |= v > most;
	return v;
}

/* The next directory: the i-th of the list, in one before it. */
static void decode_dir(struct gct_cp_manifest *m, uint32_t i, struct gci_reader *r)
{
	struct gct_cp_dir *d = &m->dirs[i];

	d->name = read_name(r);
	d->parent = read_at_most(r, i);
	d->mode = read_at_most(r, 0777);
	read_time(r, &d->mtime_s, &d->mtime_ns);
	if (r->failed)
		return;
	d->depth = d->parent ? m->dirs[d->parent - 1].depth + 1 : 1;
	r->failed = d->depth > GCT_CP_MAX_DEPTH;
}

static void decode_file(struct gct_cp_manifest *m, uint32_t i, struct gci_reader *r)
{
	struct gct_cp_file *f = &m->files[i];

	f->name = read_name(r);
	f->dir = read_at_most(r, m->ndirs);
	f->size = gci_read_u64(r);
	f->mode = read_at_most(r, 0777);
	read_time(r, &f->mtime_s, &f->mtime_ns);
	r->failed |= f->size > INT64_MAX - GCT_CP_TRAILER;
}

static void decode_link(struct gct_cp_manifest *m, uint32_t i, struct gci_reader *r)
{
	struct gct_cp_link *l = &m->links[i];

	l->name = read_name(r);
	l->dir = read_at_most(r, m->ndirs);
	l->target = gci_read_str(r, GCT_CP_MAX_TARGET);
	read_time(r, &l->mtime_s, &l->mtime_ns);
	r->failed |= l->target && !*l->target;
}

static int malformed(struct gci_error *e)
{
	return gci_error_set(e, GCOLL_ERR_PROTO, "the list of files is malformed");
}

/* Memory for as many as are said to follow: the claims are checked before. */
static int allocate(struct gct_cp_manifest *m, const uint32_t n[3], const struct gci_reader *r,
	struct gci_error *e)
{
	uint64_t all = (uint64_t)n[0] + n[1] + n[2];
	uint64_t least = (uint64_t)n[0] * DIR_MIN_NBYTES + (uint64_t)n[1] * FILE_MIN_NBYTES +
			 (uint64_t)n[2] * LINK_MIN_NBYTES;

	if (r->failed || all > GCT_CP_MAX_FILES || least > r->len)
		return malformed(e);
	if ((!m->into_directory || m->is_scattered) && (n[0] || n[2]))
		return malformed(e);
	if (!m->into_directory && !m->is_scattered && n[1] != 1)
		return malformed(e);
	if (m->is_scattered && !n[1])
		return malformed(e);
	m->dirs = gci_calloc(n[0], sizeof(*m->dirs));
	m->files = gci_calloc(n[1], sizeof(*m->files));
	m->links = gci_calloc(n[2], sizeof(*m->links));
	if (!m->dirs || !m->files || !m->links)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	return 0;
}

int gct_cp_manifest_decode(
	struct gct_cp_manifest *m, const uint8_t *data, size_t len, struct gci_error *e)
{
	struct gci_reader r = {data, len, 0};
	uint32_t n[3];
	uint8_t how;
	int i;

	memset(m, 0, sizeof(*m));
	how = gci_read_u8(&r);
	r.failed |= how > 3;
	m->into_directory = how & 1;
	m->is_scattered = how >> 1 & 1;
	for (i = 0; i < 3; i++)
		n[i] = gci_read_u32(&r);
	if (allocate(m, n, &r, e))
		return e->status;
	while (m->ndirs < n[0] && !r.failed)
		decode_dir(m, m->ndirs++, &r);
	while (m->nfiles < n[1] && !r.failed)
		decode_file(m, m->nfiles++, &r);
	while (m->nlinks < n[2] && !r.failed)
		decode_link(m, m->nlinks++, &r);
	return r.failed || r.len || gct_cp_manifest_add_up(m) ? malformed(e) : 0;
}

void gct_cp_manifest_free(struct gct_cp_manifest *m)
{
	uint32_t i;

	for (i = 0; i < m->ndirs; i++) {
		gci_free(m->dirs[i].name);
		gci_free(m->dirs[i].origin);
	}
	for (i = 0; i < m->nfiles; i++)
		free_file(&m->files[i]);
	for (i = 0; i < m->nlinks; i++) {
		gci_free(m->links[i].name);
		gci_free(m->links[i].target);
	}
	gci_free(m->dirs);
	gci_free(m->files);
	gci_free(m->links);
	for (i = 0; i < m->nskipped && i < GCT_CP_NAMED; i++)
		gci_free(m->skipped[i]);
	gci_free(m->skipped);
	memset(m, 0, sizeof(*m));
}

char *gct_cp_path(const struct gct_cp_manifest *m, const char *root, uint32_t dir, const char *name,
	const char *origin)
{
	const struct gct_cp_dir *chain[GCT_CP_MAX_DEPTH];
	struct gci_buf out = {0};
	char *path;
	size_t n;

	if (!root && !dir)
		return gci_strdup(origin);
	for (n = 0; dir; dir = chain[n++]->parent)
		chain[n] = &m->dirs[dir - 1];
	gci_buf_printf(&out, "%s", root ? root : chain[--n]->origin);
	while (n)
		gci_buf_printf(&out, "/%s", chain[--n]->name);
	gci_buf_printf(&out, "/%s", name);
	path = out.failed ? NULL : gci_strdup(gci_buf_cstr(&out));
	gci_buf_free(&out);
	return path;
}

uint64_t gct_cp_stream_at(const struct gct_cp_manifest *m, uint32_t file, uint64_t offset)
{
	uint64_t at = offset;
	uint32_t i;

	for (i = 0; i < file; i++)
		at += gct_cp_length(&m->files[i]);
	return at;
}

void gct_cp_point_of(const struct gct_cp_manifest *m, uint64_t at, struct gct_cp_point *p)
{
	*p = (struct gct_cp_point){.offset = at};
	while (p->file < m->nfiles && p->offset >= gct_cp_length(&m->files[p->file]))
		p->offset -= gct_cp_length(&m->files[p->file++]);
}
