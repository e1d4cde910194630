/* SPDX-License-Identifier: MIT */
#include "base/mem.h"
#include "tools/cp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MIN_NBYTES (4 + 1 + 8 + 4 + 8 + 4) /* encoded, with a name of one byte */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int scan_one(struct gct_cp_file *f, const char *path, struct gci_error *e)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 || fstat(fd, &st)) {
		gci_error_set(e, GCOLL_ERR_IO, "cannot read %s: %s", path, strerror(errno));
	} else if (!S_ISREG(st.st_mode)) {
		gci_error_set(e, GCOLL_ERR_IO, "%s is %s, expected a regular file", path,
			S_ISDIR(st.st_mode) ? "a directory" : "no file with contents");
	} else {
		*f = (struct gct_cp_file){gci_strdup(base_name(path)), (uint64_t)st.st_size,
			st.st_mode & 0777, st.st_mtim.tv_sec, (uint32_t)st.st_mtim.tv_nsec};
		if (!f->name)
			gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	}
	if (fd >= 0)
		close(fd);
	return e->status;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Two sources of one name would overwrite each other. */
static int check_names(const struct gct_cp_manifest *m, struct gci_error *e)
{
	char **names = gci_calloc(m->nfiles, sizeof(*names));
	uint32_t i;

	if (!names)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	for (i = 0; i < m->nfiles; i++)
		names[i] = m->files[i].name;
	qsort(names, m->nfiles, sizeof(*names), compare_names);
	for (i = 1; i < m->nfiles; i++)
		if (!strcmp(names[i - 1], names[i]))
			gci_error_set(e, GCOLL_ERR_INVAL,
				"two sources are called %s, expected different names", names[i]);
	gci_free(names);
	return e->status;
}

/* Each size is at most INT64_MAX - GCT_CP_TRAILER. True if their sum is more than INT64_MAX. */
static int add_up(struct gct_cp_manifest *m)
{
	uint32_t i;

	m->stream_nbytes = 0;
	for (i = 0; i < m->nfiles && m->stream_nbytes <= INT64_MAX; i++)
		m->stream_nbytes += m->files[i].size + GCT_CP_TRAILER;
	return m->stream_nbytes > INT64_MAX;
}

int gct_cp_manifest_scan(struct gct_cp_manifest *m, char *const *paths, int npaths,
	int into_directory, struct gci_error *e)
{
	memset(m, 0, sizeof(*m));
	m->into_directory = into_directory;
	if ((uint32_t)npaths > GCT_CP_MAX_FILES)
		return gci_error_set(e, GCOLL_ERR_INVAL, "%d sources, expected at most %u", npaths,
			GCT_CP_MAX_FILES);
	m->files = gci_calloc((size_t)npaths, sizeof(*m->files));
	if (!m->files)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	for (; m->nfiles < (uint32_t)npaths; m->nfiles++)
		if (scan_one(&m->files[m->nfiles], paths[m->nfiles], e))
			return e->status;
	if (add_up(m))
		return gci_error_set(e, GCOLL_ERR_IO, "the sources are larger than any disk");
	return check_names(m, e);
}

void gct_cp_manifest_encode(const struct gct_cp_manifest *m, struct gci_buf *out)
{
	uint32_t i;

	gci_buf_put_u8(out, (uint8_t)m->into_directory);
	gci_buf_put_u32(out, m->nfiles);
	for (i = 0; i < m->nfiles; i++) {
		gci_buf_put_str(out, m->files[i].name);
		gci_buf_put_u64(out, m->files[i].size);
		gci_buf_put_u32(out, m->files[i].mode);
		gci_buf_put_u64(out, (uint64_t)m->files[i].mtime_s);
		gci_buf_put_u32(out, m->files[i].mtime_ns);
	}
}

static int decode_one(struct gct_cp_file *f, struct gci_reader *r)
{
	f->name = gci_read_str(r, GCT_CP_MAX_NAME);
	f->size = gci_read_u64(r);
	f->mode = gci_read_u32(r);
	f->mtime_s = (int64_t)gci_read_u64(r);
	f->mtime_ns = gci_read_u32(r);
	return r->failed || !*f->name || strchr(f->name, '/') || !strcmp(f->name, ".") ||
	       !strcmp(f->name, "..") || f->size > INT64_MAX - GCT_CP_TRAILER || f->mode > 0777 ||
	       f->mtime_ns > 999999999;
}

int gct_cp_manifest_decode(
	struct gct_cp_manifest *m, const uint8_t *data, size_t len, struct gci_error *e)
{
	struct gci_reader r = {data, len, 0};
	uint32_t n;
	uint8_t into_directory;
	int bad = 0;

	memset(m, 0, sizeof(*m));
	into_directory = gci_read_u8(&r);
	n = gci_read_u32(&r);
	/* The claim is checked before memory is taken for it. */
	if (r.failed || into_directory > 1 || n > GCT_CP_MAX_FILES || n > r.len / FILE_MIN_NBYTES ||
		!n || (n > 1 && !into_directory))
		return gci_error_set(e, GCOLL_ERR_PROTO, "the list of files is malformed");
	m->into_directory = into_directory;
	m->files = gci_calloc(n, sizeof(*m->files));
	if (!m->files)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	while (m->nfiles < n && !bad)
		bad = decode_one(&m->files[m->nfiles++], &r);
	if (bad || r.len || add_up(m))
		return gci_error_set(e, GCOLL_ERR_PROTO, "the list of files is malformed");
	return 0;
}

void gct_cp_manifest_free(struct gct_cp_manifest *m)
{
	uint32_t i;

	for (i = 0; m->files && i < m->nfiles; i++)
		gci_free(m->files[i].name);
	gci_free(m->files);
	memset(m, 0, sizeof(*m));
}
