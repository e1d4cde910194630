/* SPDX-License-Identifier: MIT
 * Checksums of whole files, at the source: made while they are read for the stream; what was not
 * read, since all receivers had it, is read for them. */
#include "base/crc32c.h"
#include "base/mem.h"
#include "base/units.h"
#include "tools/cp_impl.h"

#include <openssl/evp.h>
#include <unistd.h>

#define PIECE_NBYTES (1u << 20)

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

void gct_cp_sums_add(
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

void gct_cp_sums_end(struct gct_cp_sums *s, uint32_t file, uint32_t crc)
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

static int changed(const struct gct_cp_sums *s, uint32_t file, struct gci_error *e)
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
		changed(s, file, e);
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
