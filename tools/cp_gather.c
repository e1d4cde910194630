/* SPDX-License-Identifier: MIT
 * --gather: a file of each rank's to the root, one after the other in one stream. */
#include "tools/cp_copy.h"

#include "base/mem.h"
#include "comm/comm.h"
#include "tools/cp_impl.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* What a rank tells of its file. */
struct record {
	uint64_t sends, size, mode, mtime_s, mtime_ns;
	char name[GCT_CP_MAX_NAME + 1];
};

static int no_memory(struct gci_error *e)
{
	return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
}

/* This rank's own file. */
static int scan_own(struct gct_cp_copy *c, struct record *own, struct gci_error *e)
{
	const struct gct_cp_file *f;
	char *path = gct_cp_expand(c->o->sources[0], c->was, gcoll_host(c->first, c->was), e);

	if (!path)
		return e->status;
	gct_cp_manifest_scan(&c->part, &path, 1, 0, e);
	gci_free(path);
	if (e->status)
		return e->status;
	gct_cp_source_init(&c->source, &c->part);
	f = &c->part.files[0];
	*own = (struct record){1, f->size, f->mode, (uint64_t)f->mtime_s, f->mtime_ns, ""};
	snprintf(own->name, sizeof(own->name), "%s", f->name);
	return 0;
}

/* All files and whose they are, on every rank. */
static int make_list(struct gct_cp_copy *c, struct record *all, struct gci_error *e)
{
	struct gct_cp_manifest *m = &c->manifest;
	int r, n = gcoll_size(c->comm);
	uint64_t at = 0;

	gct_cp_manifest_free(m);
	gci_free(c->spans);
	m->files = gci_calloc((size_t)n, sizeof(*m->files));
	c->spans = gci_calloc((size_t)n, sizeof(*c->spans));
	if (!m->files || !c->spans)
		return no_memory(e);
	for (r = 0; r < n; r++) {
		struct gct_cp_file *f = &m->files[m->nfiles];

		if (!all[r].sends)
			continue;
		all[r].name[GCT_CP_MAX_NAME] = '\0';
		if (!gct_cp_is_name(all[r].name) || all[r].size > INT64_MAX - GCT_CP_TRAILER)
			return gci_error_set(
				e, GCOLL_ERR_PROTO, "rank %d's file is none that can be", r);
		*f = (struct gct_cp_file){.name = gci_strdup(all[r].name),
			.size = all[r].size,
			.mode = (uint32_t)all[r].mode & 0777,
			.mtime_s = (int64_t)all[r].mtime_s,
			.mtime_ns = (uint32_t)all[r].mtime_ns % 1000000000};
		c->spans[m->nfiles++] = (struct gct_cp_span){r, at, f->size + GCT_CP_TRAILER};
		at += f->size + GCT_CP_TRAILER;
		if (!f->name)
			return no_memory(e);
	}
	if (gct_cp_manifest_add_up(m) || !m->nfiles)
		return gci_error_set(e, GCOLL_ERR_INVAL,
			m->nfiles ? "the sources are larger than any disk"
				  : "--gather, expected two ranks, or --include-source");
	return 0;
}

int gct_cp_gather_list(struct gct_cp_copy *c, struct gci_error *e)
{
	struct record own = {0}, *all = gci_calloc((size_t)gcoll_size(c->comm), sizeof(*all));

	if (!all)
		return no_memory(e);
	if (c->receives[c->was])
		scan_own(c, &own, e);
	if (!e->status)
		gct_cp_operation_error(
			e, gcoll_allgather(&own, all, sizeof(own), GCOLL_BYTE, c->comm));
	if (!e->status)
		make_list(c, all, e);
	gci_free(all);
	c->writes = gct_cp_is_root(c);
	return e->status;
}

/* ---- the root */

/* What of DEST is the same for all ranks. */
static int make_fixed(const char *dest, size_t fixed, int sync, struct gci_error *e)
{
	char *path = gci_strndup(dest, fixed);

	if (!path)
		return no_memory(e);
	gct_cp_make_directories(path, sync, e);
	gci_free(path);
	return e->status;
}

/* Ranks may choose what they and their hosts are called: so they choose among what is in that
 * directory, and links there, but get nowhere else. */
static int check_place(struct gct_cp_collected *k, int make, struct gci_error *e)
{
	char *path = gct_cp_sink_path(&k->sink, 0);
	size_t fixed = k->sink.place.fixed;
	int dir = gct_cp_open_beneath(k->sink.root, fixed, make, k->sink.sync);
	struct stat st = {0};

	if (!path)
		no_memory(e);
	else if (dir < 0 && errno == EXDEV)
		gci_error_set(e, GCOLL_ERR_IO, "cannot write %s: a link leads out of %.*s", path,
			fixed ? (int)fixed : 1, fixed ? k->dest : ".");
	else if (dir < 0 || fstat(dir, &st))
		gct_cp_io_error(e, "write", path);
	else
		gct_cp_check_target(dir, gct_cp_sink_name(&k->sink, 0), path, e);
	if (dir >= 0)
		close(dir);
	gci_free(path);
	k->dev = st.st_dev;
	k->ino = st.st_ino;
	return e->status;
}

/* Where the file of a rank goes; ready to be written to, but for a name to write under. */
static int make_sink(struct gct_cp_copy *c, uint32_t i, struct gci_error *e)
{
	struct gct_cp_collected *k = &c->collected[i];
	size_t len = strlen(c->o->dest);
	int into = c->o->dest[len - 1] == '/', rank = c->spans[i].root;
	size_t fixed = gct_cp_fixed_length(c->o->dest);

	k->sink.fd = -1;
	k->part = gct_cp_manifest_part(&c->manifest, i);
	k->dest = gct_cp_expand(c->o->dest, rank, gcoll_host(c->first, rank), e);
	if (!k->dest)
		return e->status;
	for (len = strlen(k->dest); len > 1 && k->dest[len - 1] == '/'; len--)
		k->dest[len - 1] = '\0';
	if (into && make_fixed(k->dest, fixed, c->o->sync, e))
		return e->status;
	if (gct_cp_sink_init(&k->sink, &k->part, k->dest, into || gct_cp_is_directory(k->dest),
		    c->o->sync ? GCT_CP_SYNC : 0, e))
		return e->status;
	if (fixed < k->sink.place.fixed)
		k->sink.place.fixed = fixed;
	return check_place(k, into, e);
}

/* One temporary name for all, which a signal removes. */
static int share_temporary(struct gct_cp_copy *c, struct gci_error *e)
{
	uint32_t i;

	for (i = 1; i < c->manifest.nfiles; i++) {
		struct gct_cp_sink *s = &c->collected[i].sink;

		gci_free(s->temporary);
		s->temporary = gci_strdup(c->collected[0].sink.temporary);
		if (!s->temporary)
			return no_memory(e);
	}
	gct_cp_sink_guard(&c->collected[0].sink);
	return 0;
}

/* By the place, by whatever path it is reached. */
static int compare_places(const void *a, const void *b)
{
	const struct gct_cp_collected *x = *(struct gct_cp_collected *const *)a,
				      *y = *(struct gct_cp_collected *const *)b;

	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	if (x->ino != y->ino)
		return x->ino < y->ino ? -1 : 1;
	return strcmp(gct_cp_sink_name(&x->sink, 0), gct_cp_sink_name(&y->sink, 0));
}

static void refuse_both(
	const struct gct_cp_collected *x, const struct gct_cp_collected *y, struct gci_error *e)
{
	char *path = gct_cp_sink_path(&(x < y ? y : x)->sink, 0);

	if (path)
		gci_error_set(e, GCOLL_ERR_INVAL,
			"two ranks' files go to %s, expected %%r or %%h in DEST", path);
	else
		no_memory(e);
	gci_free(path);
}

/* Two files at one place would overwrite each other. */
static int check_places(struct gct_cp_copy *c, struct gci_error *e)
{
	uint32_t i, n = c->manifest.nfiles;
	struct gct_cp_collected **all = gci_calloc(n, sizeof(*all));

	if (!all)
		return no_memory(e);
	for (i = 0; i < n; i++)
		all[i] = &c->collected[i];
	qsort(all, n, sizeof(*all), compare_places);
	for (i = 1; i < n && !e->status; i++)
		if (!compare_places(&all[i - 1], &all[i]))
			refuse_both(all[i - 1], all[i], e);
	gci_free(all);
	return e->status;
}

int gct_cp_gather_dest(struct gct_cp_copy *c, struct gci_error *e)
{
	uint32_t i;

	if (!gct_cp_is_root(c))
		return 0;
	c->collected = gci_calloc(c->manifest.nfiles, sizeof(*c->collected));
	if (!c->collected)
		return no_memory(e);
	for (i = 0; i < c->manifest.nfiles; i++)
		c->collected[i].sink.fd = -1;
	for (i = 0; i < c->manifest.nfiles && !e->status; i++)
		make_sink(c, i, e);
	if (e->status || check_places(c, e) || share_temporary(c, e))
		return e->status;
	return gct_cp_sink_start(&c->collected[0].sink, e);
}

struct gct_cp_sink *gct_cp_gather_sink(void *user, uint32_t span)
{
	struct gct_cp_copy *c = user;

	return &c->collected[span].sink;
}

uint64_t gct_cp_gather_count(const struct gct_cp_copy *c)
{
	uint64_t n = 0;
	uint32_t i;

	for (i = 0; c->collected && i < c->manifest.nfiles; i++)
		n += c->collected[i].sink.nfiles_done;
	return n;
}

void gct_cp_gather_free(struct gct_cp_copy *c)
{
	uint32_t i;

	for (i = 0; c->collected && i < c->manifest.nfiles; i++) {
		gct_cp_sink_close(&c->collected[i].sink);
		gci_free(c->collected[i].dest);
	}
	gci_free(c->collected);
	gci_free(c->spans);
	if (c->o->gather)
		gct_cp_manifest_free(&c->part);
}
