/* SPDX-License-Identifier: MIT */
#include "tools/cp/copy.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/prng.h"
#include "base/units.h"
#include "comm/comm.h"
#include "tools/cp/impl.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

/* ---- --resume, as all ranks do it together: each receiver learns how far it has the stream, and
 * all which files need not be in it, because every receiver has them. */

/* What ranks claim before anything is compared; of all of them the largest. */
struct claims {
	uint64_t nblocks; /* see gct_cp_claim */
	uint64_t spread;
	uint64_t has_none; /* true: somebody has no file whole, so there is none that all have */
};

#define CLAIMS_WORDS (sizeof(struct claims) / sizeof(uint64_t))

enum spread {
	NO_FILES,
	IN_A_ROW, /* from the first one on */
	WITH_GAPS
};

static enum spread spread_of(const struct gct_cp_manifest *m, const uint64_t *set)
{
	uint32_t i, first = gct_cp_first_missing(m, set);

	for (i = first; i < m->nfiles; i++)
		if (gct_cp_is_in(set, i))
			return WITH_GAPS;
	return first ? IN_A_ROW : NO_FILES;
}

/* In a world after another's failure, this rank knows already what all have. */
static int has_agreed(const struct gct_cp_copy *c)
{
	return c->phase > GCT_CP_RESUME;
}

/* What this rank has, or seems to have; who is no receiver has nothing against any file. */
static struct claims claim(struct gct_cp_copy *c, uint64_t *set)
{
	const struct gct_cp_manifest *m = &c->manifest;
	int asks = c->writes && !has_agreed(c);
	struct claims mine = {.nblocks = asks ? gct_cp_claim(&c->sink, set) : 0};
	uint32_t i;

	for (i = 0; i < m->nfiles && !asks; i++)
		gct_cp_put(set, i, !has_agreed(c) || m->files[i].is_there);
	if (!asks && !has_agreed(c))
		return mine;
	mine.spread = spread_of(m, set);
	/* Of a single file nothing stands behind what is missing. */
	mine.has_none = m->nfiles < 2 || mine.spread == NO_FILES;
	return mine;
}

/* Others' failures do not wait until all is read; then what was summed stays. */
static int on_block(void *user, uint64_t n, struct gci_error *e)
{
	struct gct_cp_copy *c = user;

	gct_cp_show_compared(c, n);
	return gct_cp_progress(c->comm, 0, e);
}

/* Room for n checksums; those that are made stay. */
static int make_room(struct gct_cp_copy *c, uint64_t n, struct gci_error *e)
{
	uint32_t *more;

	c->nwanted = n;
	if (c->crcs && n <= c->ncrcs)
		return 0;
	more = gci_reallocarray(c->crcs, n + 1, sizeof(*more));
	if (!more)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	memset(more + c->ncrcs, 0, (n - c->ncrcs) * sizeof(*more));
	c->crcs = more;
	c->ncrcs = n;
	return 0;
}

/* The root sums up the first n blocks and the files in the set, and all get it; what is between them
 * is not known. */
static int share_sums(struct gct_cp_copy *c, uint64_t n, uint64_t *set,
	const struct gct_cp_look *look, struct gci_error *e)
{
	if (make_room(c, gct_cp_reach(&c->manifest, set, n), e))
		return e->status;
	if (gct_cp_is_root(c)) {
		gct_cp_sum_blocks(&c->manifest, c->crcs, n, set, look, e);
		c->source.crcs = c->crcs;
		c->source.ncrcs = c->ncrcs;
	}
	return e->status ? e->status
			 : gct_cp_operation_error(e, gcoll_bcast(c->crcs, c->nwanted, GCOLL_UINT32,
							     c->root, c->comm));
}

/* What is in every rank's set. */
static int intersect(
	struct gct_cp_copy *c, const uint64_t *mine, uint64_t *all, struct gci_error *e)
{
	return gct_cp_operation_error(e, gcoll_allreduce(mine, all, gct_cp_set_words(&c->manifest),
						 GCOLL_UINT64, GCOLL_BAND, c->comm));
}

/* Files that all have leave the stream. What this rank lacks is not among them; and to one that has
 * agreed before, nothing is new. */
static int leave_out(
	struct gct_cp_copy *c, const uint64_t *mine, const uint64_t *all, struct gci_error *e)
{
	struct gct_cp_manifest *m = &c->manifest;
	uint32_t i;

	for (i = 0; i < m->nfiles; i++) {
		int is_in = gct_cp_is_in(all, i), had = gct_cp_is_in(mine, i);

		if (is_in > had || (has_agreed(c) && is_in != had))
			return gci_error_set(e, GCOLL_ERR_PROTO,
				"the ranks do not agree on what all of them have");
		m->files[i].is_there = is_in;
	}
	gct_cp_manifest_add_up(m);
	return 0;
}

/* What this rank claims is compared; then what all have whole. `mine` and `all` are what is claimed
 * here, and everywhere. */
static int compare(struct gct_cp_copy *c, enum spread spread, uint64_t *mine, uint64_t *all,
	const struct gct_cp_look *look, struct gci_error *e)
{
	uint32_t i, first = gct_cp_first_missing(&c->manifest, mine);
	int asks = c->writes && !has_agreed(c);
	struct gct_cp_point p;

	/* Behind the first one that is missing, it is of no use what others lack. */
	for (i = first; i < c->manifest.nfiles && asks; i++)
		gct_cp_put(mine, i, gct_cp_is_in(all, i));
	if (asks && gct_cp_verify(&c->sink, c->crcs, c->nwanted, mine, &p, look, e))
		return e->status;
	memset(all, 0, gct_cp_set_words(&c->manifest) * sizeof(*all));
	if ((spread != NO_FILES && intersect(c, mine, all, e)) || leave_out(c, mine, all, e) ||
		!asks)
		return e->status;
	c->had_nbytes = gct_cp_had(&c->manifest, &p);
	if (!gct_cp_sink_resume(&c->sink, &p, e))
		gct_cp_sink_start(&c->sink, e);
	return e->status;
}

/* `mine` and `all` have room for a set each. */
static int resume(struct gct_cp_copy *c, uint64_t *mine, uint64_t *all, struct gci_error *e)
{
	const struct gct_cp_look look = {on_block, c};
	const struct gct_cp_manifest *m = &c->manifest;
	struct claims claims = claim(c, mine);
	enum spread spread;

	if (gct_cp_operation_error(e, gcoll_allreduce(GCOLL_IN_PLACE, &claims, CLAIMS_WORDS,
					      GCOLL_UINT64, GCOLL_MAX, c->comm)))
		return e->status;
	if (claims.nblocks > GCT_CP_MAX_BLOCKS || claims.nblocks > gct_cp_nblocks(m))
		return gci_error_set(e, GCOLL_ERR_PROTO, "somebody has more than there is");
	spread = claims.has_none ? NO_FILES : (enum spread)claims.spread;
	if (spread == WITH_GAPS && intersect(c, mine, all, e))
		return e->status;
	return share_sums(c, claims.nblocks, all, &look, e)
		       ? e->status
		       : compare(c, spread, mine, all, &look, e);
}

/* The phase of that name: what each has, by checksums, and what all have. */
static int gct_cp_resume(struct gct_cp_copy *c, struct gci_error *e)
{
	size_t nwords = gct_cp_set_words(&c->manifest);
	uint64_t *mine, *all;

	if (!c->o->resume)
		return 0;
	if (!c->begun_ns)
		c->begun_ns = c->shown_ns = gci_now_ns();
	mine = gci_calloc(nwords, sizeof(*mine));
	all = gci_calloc(nwords, sizeof(*all));
	if (mine && all)
		resume(c, mine, all, e);
	else
		gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	gci_free(mine);
	gci_free(all);
	return e->status;
}

/* ---- --gather: a file of each rank's to the root, one after the other in one stream. */

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

/* In place of the first two phases and of one sink. */
static int gct_cp_gather_list(struct gct_cp_copy *c, struct gci_error *e)
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
	if (into && (gct_cp_count_missing(k->dest, &k->nmissing, e) ||
			    make_fixed(k->dest, fixed, c->o->sync, e)))
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

static int gct_cp_gather_dest(struct gct_cp_copy *c, struct gci_error *e)
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

static struct gct_cp_sink *gct_cp_gather_sink(void *user, uint32_t span)
{
	struct gct_cp_copy *c = user;

	return &c->collected[span].sink;
}

static uint64_t gct_cp_gather_count(const struct gct_cp_copy *c)
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

/* ---- the phases of a copy */

/* Everybody gets the source's list of files. */
static int share_list(struct gct_cp_copy *c, struct gci_error *e)
{
	struct gci_buf buf = {0};
	uint64_t len = 0, head[4] = {0, (uint64_t)c->has_bar, 0, (uint64_t)c->may_meet};
	int is_root = gct_cp_is_root(c);

	if (is_root) {
		gct_cp_manifest_encode(&c->manifest, &buf);
		len = buf.len;
		if (buf.failed || len > GCT_CP_MAX_MANIFEST)
			gci_error_set(e, GCOLL_ERR_NOMEM, "too many files for one call");
		head[0] = len;
		if (getrandom(&head[2], sizeof(head[2]), 0) != sizeof(head[2]))
			gci_error_errno(e, "getrandom");
	}
	if (!e->status)
		gct_cp_operation_error(e, gcoll_bcast(head, 4, GCOLL_UINT64, c->root, c->comm));
	len = head[0];
	c->move.tells_clusters = head[1] == 1;
	c->nonce = head[2];
	c->may_meet = head[3] == 1;
	if (!e->status && !is_root) {
		if (len > GCT_CP_MAX_MANIFEST)
			gci_error_set(e, GCOLL_ERR_PROTO, "the list of files is malformed");
		else
			buf.data = gci_calloc(len, 1);
		if (!e->status && !buf.data)
			gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	}
	if (!e->status)
		gct_cp_operation_error(e, gcoll_bcast(buf.data, len, GCOLL_BYTE, c->root, c->comm));
	if (!e->status && !is_root && c->phase == GCT_CP_LIST)
		gct_cp_manifest_decode(&c->manifest, buf.data, len, e);
	gci_buf_free(&buf);
	return e->status;
}

/* "a//" is called "a" in messages. */
static void drop_slashes(char *path)
{
	size_t len = strlen(path);

	while (len > 1 && path[len - 1] == '/')
		path[--len] = '\0';
}

static int count_receivers(const struct gct_cp_copy *c)
{
	int r, n = 0;

	for (r = 0; r < gcoll_size(c->first); r++)
		n += c->receives[r];
	return n;
}

/* This rank's DEST. */
static int expand_dest(struct gct_cp_copy *c, struct gci_error *e)
{
	gci_free(c->dest);
	c->dest = gct_cp_expand(c->o->dest, c->was, gcoll_host(c->first, c->was), e);
	if (c->dest)
		drop_slashes(c->dest);
	return e->status;
}

/* How much of DEST is missing, which all look up before one makes it: receivers may have directories
 * above theirs in common, and each can remove then what any of them has made, whoever is the last to
 * go. With --keep-going nothing is removed. */
static int look_at_dest(struct gct_cp_copy *c, struct gci_error *e)
{
	if (!c->manifest.into_directory || c->o->keep_going)
		return 0;
	if (c->receives[c->was] &&
		(expand_dest(c, e) || gct_cp_count_missing(c->dest, &c->nmissing, e)))
		return e->status;
	return count_receivers(c) > 1 ? gct_cp_operation_error(e, gcoll_barrier(c->comm)) : 0;
}

/* The phase of the list. */
static int share_manifest(struct gct_cp_copy *c, struct gci_error *e)
{
	if (c->o->gather)
		return gct_cp_gather_list(c, e);
	return share_list(c, e) ? e->status : look_at_dest(c, e);
}

/* Which part of the stream each rank is to have; this one's list of files. */
static int deal_parts(struct gct_cp_copy *c, struct gci_error *e)
{
	const struct gct_cp_manifest *m = &c->manifest;
	int r, size = gcoll_size(c->comm);
	uint32_t part = 0;

	gci_free(c->end);
	c->end = gci_calloc((size_t)size, sizeof(*c->end));
	if (!c->end)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	if (!m->is_scattered || m->nfiles != (uint32_t)count_receivers(c))
		return gci_error_set(e, GCOLL_ERR_PROTO, "as many parts as receivers are expected");
	for (r = 0; r < size; r++) {
		if (!c->receives[r])
			continue;
		if (r == c->was)
			c->part = gct_cp_manifest_part(m, part);
		c->end[r] = gct_cp_stream_at(m, ++part, 0);
	}
	return 0;
}

/* Where this rank's copies go; ready to be written to. Done again if it was not done. */
static int prepare_dest(struct gct_cp_copy *c, struct gci_error *e)
{
	int into = c->manifest.into_directory;

	if (c->o->gather)
		return gct_cp_gather_dest(c, e);
	if (c->o->scatter && deal_parts(c, e))
		return e->status;
	if (!c->writes)
		return 0;
	gct_cp_sink_close(&c->sink);
	if (expand_dest(c, e) || (into && gct_cp_make_directories(c->dest, c->o->sync, e)))
		return e->status;
	/* One file onto an existing directory goes into it, as with cp. */
	into = into || gct_cp_is_directory(c->dest);
	if (gct_cp_sink_init(&c->sink, c->o->scatter ? &c->part : &c->manifest, c->dest, into,
		    (c->o->sync ? GCT_CP_SYNC : 0) | (c->o->resume ? GCT_CP_KEEP : 0), e))
		return e->status;
	gct_cp_sink_guard(&c->sink);
	return 0;
}

/* ---- receivers that have one directory between them */

/* One more than the rank that made the marker; 0: there is none. */
static uint64_t read_marker(const struct gct_cp_copy *c, int dir, const char *marker)
{
	char target[24];
	uint64_t rank;
	ssize_t len = readlinkat(dir, marker, target, sizeof(target) - 1);

	if (len <= 0)
		return 0;
	target[len] = '\0';
	return gci_parse_uint(target, (uint64_t)gcoll_size(c->first) - 1, &rank) ? 0 : rank + 1;
}

/* The group of those whose copies go to this directory: a symbolic link in it, whose name only they
 * know, has the number of the rank that came first. Nothing less proves it: clones of a virtual
 * machine have equal boot ids, devices and inodes, and hosts with NFS have different ones. 0: no link
 * can be made here, or it is another user's. */
static uint64_t join_group(const struct gct_cp_copy *c, int dir, const char *marker)
{
	char target[24];
	struct stat st;

	snprintf(target, sizeof(target), "%d", c->was);
	if (!symlinkat(target, dir, marker))
		return (uint64_t)c->was + 1;
	if (fstatat(dir, marker, &st, AT_SYMLINK_NOFOLLOW) || st.st_uid != geteuid())
		return 0;
	return read_marker(c, dir, marker);
}

/* The first receiver of this world in the group of rank `was`. */
static int find_writer(const struct gct_cp_copy *c, int was)
{
	int r;

	for (r = 0; r < was; r++)
		if (c->receives[r] && c->groups[r] && c->groups[r] == c->groups[was] &&
			gcoll_comm_translate(c->first, r, c->comm) >= 0)
			break;
	return r;
}

/* The marker in a directory whose first file is called as this sink's. */
static void marker_name(const struct gct_cp_copy *c, const struct gct_cp_sink *s, char out[32])
{
	const char *name = s->manifest->nfiles ? gct_cp_sink_name(s, 0) : "";

	snprintf(out, 32, ".gridcoll-%016" PRIx64, gci_digest_bytes(c->nonce, name, strlen(name)));
}

/* ---- Copies onto their own source. Where a receiver's DEST is a path of the source's as well, it is
 * compared with what is copied; that it is the receiver's, and not the same path on another host, is
 * known by the receiver's marker. */

/* GCOLL_ERR_INVAL: at `dest`, this rank's, the copy would replace that source, or be in it. */
static int check_apart(const struct gct_cp_copy *c, int rank, const char *dest, int into,
	const char *source, struct gci_error *e)
{
	const char *slash = strrchr(source, '/'), *name = slash ? slash + 1 : source;
	const char *host = gcoll_host(c->first, rank);
	int keeps_name = into && !(c->o->recursive && gct_cp_is_contents(source));
	char *path = keeps_name ? gci_asprintf("%s/%s", dest, name) : gci_strdup(dest);
	struct stat from, to;

	if (!path)
		return no_memory(e);
	if (c->o->recursive ? lstat(source, &from) : stat(source, &from))
		; /* it has gone meanwhile */
	else if (!(S_ISLNK(from.st_mode) ? lstat(path, &to) : stat(path, &to)) &&
		 gct_cp_is_one(&from, &to))
		gci_error_set(e, GCOLL_ERR_INVAL, "%s and %s of rank %d on %s are the same %s",
			source, path, rank, host, S_ISDIR(from.st_mode) ? "directory" : "file");
	else if (S_ISDIR(from.st_mode) && gct_cp_is_within(path, &from))
		gci_error_set(e, GCOLL_ERR_INVAL,
			"cannot copy %s into itself, to %s of rank %d on %s", source, dest, rank,
			host);
	gci_free(path);
	return e->status;
}

/* One more than a rank that writes there, in this directory of the source's; 0: none does. */
static uint64_t who_writes(
	const struct gct_cp_copy *c, const char *dest, int into, struct gci_error *e)
{
	struct gct_cp_sink s;
	char marker[32];
	uint64_t who = 0;
	int dir;

	if (!gct_cp_sink_init(&s, &c->manifest, dest, into, 0, e)) {
		marker_name(c, &s, marker);
		dir = gct_cp_place_go(&s.place, 0);
		who = dir < 0 ? 0 : read_marker(c, dir, marker);
	}
	gct_cp_sink_close(&s);
	return who;
}

/* A receiver's DEST and all sources. */
static int check_receiver(
	const struct gct_cp_copy *c, int rank, char *dest, int proved, struct gci_error *e)
{
	int i, into = c->manifest.into_directory || gct_cp_is_directory(dest);
	uint64_t who = proved ? who_writes(c, dest, into, e) : 1;

	if (who && proved)
		rank = find_writer(c, (int)who - 1);
	for (i = 0; who && i < c->o->nsources && !e->status; i++)
		check_apart(c, rank, dest, into, c->o->sources[i], e);
	return e->status;
}

/* At the source. Without `proved`, what only seems so is GCOLL_ERR_INVAL as well. */
static int check_receivers(const struct gct_cp_copy *c, int proved, struct gci_error *e)
{
	char *dest, *last = NULL;
	int r;

	for (r = 0; r < gcoll_size(c->first) && !e->status; r++) {
		if (!c->receives[r])
			continue;
		dest = gct_cp_expand(c->o->dest, r, gcoll_host(c->first, r), e);
		if (!dest)
			break;
		drop_slashes(dest);
		if (!last || strcmp(dest, last))
			check_receiver(c, r, dest, proved, e);
		gci_free(last);
		last = dest;
	}
	gci_free(last);
	return e->status;
}

/* Whether it is worth the receivers' markers. */
static int look_for_own(struct gct_cp_copy *c, struct gci_error *e)
{
	check_receivers(c, 0, e);
	c->may_meet = e->status == GCOLL_ERR_INVAL;
	if (c->may_meet)
		gci_error_clear(e);
	return e->status;
}

/* Each joins its group, and learns of the others'. Only then, and when the source has looked for them,
 * are links removed, by whom they have served: the one who made it may be dead. */
static int form_groups(struct gct_cp_copy *c, struct gci_error *e)
{
	int i, n = gcoll_size(c->comm), dir = -1;
	uint64_t mine[2] = {(uint64_t)c->was, 0}; /* and its group */
	uint64_t *all = gci_calloc((size_t)n, sizeof(mine));
	char marker[32];

	if (!c->groups)
		c->groups = gci_calloc((size_t)gcoll_size(c->first), sizeof(*c->groups));
	if (!all || !c->groups) {
		gci_free(all);
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	}
	if (c->receives[c->was] && gct_cp_place_is_one(&c->sink.place)) {
		marker_name(c, &c->sink, marker);
		dir = gct_cp_place_go(&c->sink.place, 0);
		gct_cp_guard_name(GCT_CP_GUARD_MARKER, dir, marker);
		mine[1] = dir < 0 ? 0 : join_group(c, dir, marker);
	}
	gct_cp_operation_error(e, gcoll_allgather(mine, all, 2, GCOLL_UINT64, c->comm));
	for (i = 0; i < n && !e->status; i++)
		if (all[2 * i] < (uint64_t)gcoll_size(c->first))
			c->groups[all[2 * i]] = all[2 * i + 1];
	if (c->may_meet && !e->status && gct_cp_is_root(c))
		check_receivers(c, 1, e);
	if (c->may_meet && !e->status)
		gct_cp_operation_error(e, gcoll_barrier(c->comm));
	if (mine[1])
		unlinkat(dir, marker, 0);
	gct_cp_guard_name(GCT_CP_GUARD_MARKER, -1, "");
	gci_free(all);
	return e->status;
}

/* One rank writes for all that have the directory; the others count as sharing. */
static int share_dest(struct gct_cp_copy *c, struct gci_error *e)
{
	char *path;

	if (c->o->gather)
		return 0;
	if (count_receivers(c) > 1 || c->may_meet) {
		if (form_groups(c, e))
			return e->status;
		c->writes = c->receives[c->was] && find_writer(c, c->was) == c->was;
	}
	if (c->receives[c->was] && !c->writes && c->o->scatter) {
		path = gct_cp_sink_path(&c->sink, 0);
		gci_error_set(e, GCOLL_ERR_INVAL,
			"two ranks' parts go to %s, expected %%r or %%h in DEST",
			path ? path : c->dest);
		gci_free(path);
		return e->status;
	}
	return c->writes && !c->o->resume && !c->sink.has_tree ? gct_cp_sink_start(&c->sink, e) : 0;
}

/* In a world without the one who wrote for it, this rank may have to write: from the beginning, but
 * for files that all have. */
static int take_over(struct gct_cp_copy *c, struct gci_error *e)
{
	const struct gct_cp_point begin = {0};

	if (!c->writes || c->o->gather || c->sink.has_tree)
		return 0;
	c->had_nbytes = gct_cp_had(&c->manifest, &begin);
	return gct_cp_sink_resume(&c->sink, &begin, e) ? e->status : gct_cp_sink_start(&c->sink, e);
}

static void say_skipped(const struct gct_cp_manifest *m)
{
	uint32_t i;

	for (i = 0; i < m->nskipped && i < GCT_CP_NAMED; i++)
		fprintf(stderr, "gridcoll cp: skipped %s: no file, directory or link\n",
			m->skipped[i]);
	if (i < m->nskipped)
		fprintf(stderr, "gridcoll cp: skipped %" PRIu32 " more\n", m->nskipped - i);
}

static int are_one(const char *a, const char *b)
{
	struct stat x, y;

	return !stat(a, &x) && !stat(b, &y) && gct_cp_is_one(&x, &y);
}

/* What is told of the copy does not replace a file that is named as its source; what is in a directory
 * may well be a list of it, made anew. */
static int check_report(
	const struct gct_cp_options *o, const char *option, const char *path, struct gci_error *e)
{
	int i;

	for (i = 0; path && i < o->nsources; i++)
		if (are_one(path, o->sources[i]))
			return gci_error_set(e, GCOLL_ERR_INVAL,
				"gridcoll cp: %s %s, expected a file that is no SOURCE", option,
				path);
	return path ? gci_file_check(path, e) : 0;
}

static int scan(struct gct_cp_copy *c, struct gci_error *e)
{
	const struct gct_cp_options *o = c->o;
	size_t len = strlen(o->dest);

	if (!gct_cp_is_root(c))
		return 0;
	if (check_report(o, "--json", o->json, e) || check_report(o, "--manifest", o->checksums, e))
		return e->status;
	if (o->gather)
		return 0;
	if (gct_cp_manifest_scan(&c->manifest, o->sources, o->nsources,
		    (o->nsources > 1 || o->dest[len - 1] == '/' ? GCT_CP_INTO : 0) |
			    (o->recursive ? GCT_CP_RECURSIVE : 0),
		    e))
		return e->status;
	if (o->resume && gct_cp_check_parts(&c->manifest, e))
		return e->status;
	if (look_for_own(c, e))
		return e->status;
	say_skipped(&c->manifest);
	if (o->scatter && gct_cp_manifest_scatter(&c->manifest, count_receivers(c), e))
		return e->status;
	gct_cp_source_init(&c->source, &c->manifest);
	if (!o->json && !o->checksums)
		return 0;
	c->source.sums = &c->sums;
	return gct_cp_sums_init(&c->sums, &c->manifest, o->checksums != NULL, e);
}

static struct gct_cp_outcome outcome(const struct gct_cp_copy *c)
{
	uint64_t done_ns = c->move.done_ns ? c->move.done_ns : gci_now_ns();

	return (struct gct_cp_outcome){.was = (uint64_t)c->was,
		.writes = (uint64_t)c->writes,
		.ncopies = c->sink.nfiles_done + gct_cp_gather_count(c),
		.had_nbytes = c->had_nbytes,
		.done_ns = done_ns - c->begun_ns,
		.busy_ns = c->move.busy_ns};
}

/* The root's report. All know before its failure is heard of that the copy is done. */
static int report(struct gct_cp_copy *c, const struct gct_cp_outcome *all, struct gci_error *e)
{
	struct gci_error why = {0};

	if (gct_cp_is_root(c))
		gct_cp_report(c, all, &why);
	if ((c->o->json || c->o->checksums) && !c->o->keep_going)
		gct_cp_operation_error(e, gcoll_barrier(c->comm));
	if (why.status)
		*e = why;
	return e->status;
}

/* All have written all they were to write, and all know it: only now is it done. */
static int agree(struct gct_cp_copy *c, struct gci_error *e)
{
	struct gct_cp_outcome mine = outcome(c), *all;
	uint64_t done;

	all = gci_calloc((size_t)gcoll_size(c->comm), sizeof(*all));
	if (!all)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	gct_cp_operation_error(
		e, gcoll_allgather(&mine, all, GCT_CP_OUTCOME_WORDS, GCOLL_UINT64, c->comm));
	done = !e->status;
	if (c->o->keep_going && (gcoll_comm_agree(c->comm, &done) || !done) && !e->status)
		gct_cp_operation_error(e, GCOLL_ERR_PEER);
	c->is_done = !e->status;
	if (c->is_done)
		report(c, all, e);
	gci_free(all);
	return e->status;
}

/* ---- the copy */

/* How far everybody is: of the first attempt without --resume it is the beginning. Who tells can
 * write: nobody's file is replaced before all can write theirs. */
static int share_places(struct gct_cp_copy *c, struct gci_error *e)
{
	uint64_t mine = c->writes ? 0 : UINT64_MAX;

	if (take_over(c, e))
		return e->status;
	if (c->writes && !c->o->gather)
		mine = gct_cp_sink_at(&c->sink);
	if (c->writes && c->o->scatter)
		mine += c->end[c->was] - c->part.stream_nbytes;

	gci_free(c->at);
	c->at = gci_calloc((size_t)gcoll_size(c->comm), sizeof(*c->at));
	if (!c->at)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	return gct_cp_operation_error(e, gcoll_allgather(&mine, c->at, 1, GCOLL_UINT64, c->comm));
}

/* Of those there were at first. */
static int is_any_receiver_left(const struct gct_cp_copy *c)
{
	int r, n = gcoll_size(c->comm);

	for (r = 0; r < n && c->at[r] == UINT64_MAX; r++)
		;
	return r < n || c->comm == c->first;
}

/* Who wants to go on later is told that it will not be possible. */
static void say_unlocked(const struct gct_cp_copy *c)
{
	if (c->writes && c->sink.lock_errno && c->comm == c->first)
		fprintf(stderr,
			"gridcoll cp: no file locks in %s (%s): what is not whole is not kept\n",
			c->sink.root, strerror(c->sink.lock_errno));
}

static int move(struct gct_cp_copy *c, struct gci_error *e)
{
	if (!is_any_receiver_left(c))
		return gci_error_set(e, GCOLL_ERR_PEER, "no receiver is left");
	say_unlocked(c);
	c->move.comm = c->comm;
	c->move.root = c->root;
	c->move.source = gct_cp_is_root(c) || c->o->gather ? &c->source : NULL;
	c->move.sink = c->writes && !c->o->gather ? &c->sink : NULL;
	c->move.nbytes = c->manifest.stream_nbytes;
	c->move.at = c->at;
	c->move.end = c->end;
	c->move.spans = c->spans;
	c->move.nspans = c->manifest.nfiles;
	c->move.sink_of = c->collected ? gct_cp_gather_sink : NULL;
	c->move.progress = gct_cp_show;
	c->move.user = c;
	c->move.throttle.rate = c->o->limit;
	if (!c->begun_ns)
		c->begun_ns = c->shown_ns = gci_now_ns(); /* a short transfer shows none */
	c->move.begun_ns = c->begun_ns;
	if (gct_cp_move(&c->move, e))
		return e->status;
	return c->move.sink && gct_cp_sink_finish(&c->sink, e) ? e->status : 0;
}

/* From `from` on, which is behind c->phase where others have yet to do what this rank has done. */
static int copy_files(struct gct_cp_copy *c, enum gct_cp_phase from, struct gci_error *e)
{
	static int (*const steps[])(struct gct_cp_copy *, struct gci_error *) = {
		share_manifest, prepare_dest, share_dest, gct_cp_resume, share_places, move, agree};
	enum gct_cp_phase p;

	for (p = from; p < sizeof(steps) / sizeof(*steps) && !e->status; p++) {
		if (p == GCT_CP_DEST && c->phase > GCT_CP_DEST)
			continue;
		if (!steps[p](c, e) && c->phase == p)
			c->phase = p + 1;
	}
	return e->status;
}

/* Another rank has failed, and we may go on without it. Who cannot write would be in the way. */
static int may_go_on(const struct gct_cp_copy *c)
{
	return c->o->keep_going && !c->sink.failed && gci_engine_check(c->comm->engine);
}

/* Where is everybody, and the source? */
static int take_stock(struct gct_cp_copy *c, enum gct_cp_phase *from, struct gci_error *e)
{
	int32_t least[2] = {(int32_t)c->phase, gct_cp_is_root(c) ? -gcoll_rank(c->comm) : 1};

	if (gct_cp_operation_error(
		    e, gcoll_allreduce(GCOLL_IN_PLACE, least, 2, GCOLL_INT32, GCOLL_MIN, c->comm)))
		return e->status;
	if (least[1] > 0)
		return gci_error_set(e, GCOLL_ERR_PEER, "the source is lost: rank %d on %s",
			c->root_was, gcoll_host(c->first, c->root_was));
	c->root = -least[1];
	*from = least[0] < (int32_t)GCT_CP_READY ? (enum gct_cp_phase)least[0] : GCT_CP_READY;
	c->phase = c->phase < GCT_CP_READY ? c->phase : GCT_CP_READY;
	if (c->phase > GCT_CP_SHARE && c->groups && c->receives[c->was])
		c->writes |= find_writer(c, c->was) == c->was;
	return 0;
}

/* In a world without it; or without another that is lost while we look around. A shrink that fails
 * is not tried again: this rank was left out, or lacks what a new world takes. */
static int go_on(struct gct_cp_copy *c, enum gct_cp_phase *from, struct gci_error *e)
{
	do {
		gci_error_clear(e);
		if (gct_cp_operation_error(e, gcoll_comm_shrink(c->comm, &c->comm)))
			return e->status;
	} while (take_stock(c, from, e) && may_go_on(c));
	return e->status;
}

/* What is kept has a name that nobody would look for. One rank tells it, the first. */
static void say_kept(const struct gct_cp_copy *c)
{
	const struct gct_cp_sink *s = &c->sink;
	char *path, *part;

	if (s->fd < 0 || !s->part || !s->offset || memchr(c->receives, 1, (size_t)c->was))
		return;
	path = gct_cp_sink_path(s, s->file);
	part = gct_cp_sink_part(s, s->file);
	if (path)
		gci_make_printable(path);
	if (part) {
		gci_make_printable(part);
		fprintf(stderr,
			"gridcoll cp: what has come of %s is kept as %s, and --resume goes on from "
			"it\n",
			path ? path : c->dest, part);
	}
	gci_free(path);
	gci_free(part);
}

/* With --keep-going others may be at work in them. */
void gct_cp_undo(struct gct_cp_copy *c)
{
	uint32_t i;

	if (c->is_done)
		return;
	say_kept(c);
	if (c->o->keep_going)
		return;
	gct_cp_sink_undo(&c->sink);
	if (c->dest)
		gct_cp_remove_empty(c->dest, c->nmissing);
	for (i = c->collected ? c->manifest.nfiles : 0; i--;) {
		gct_cp_sink_undo(&c->collected[i].sink);
		if (c->collected[i].dest)
			gct_cp_remove_empty(c->collected[i].dest, c->collected[i].nmissing);
	}
}

int gct_cp_run(struct gct_cp_copy *c, struct gci_error *e)
{
	const char *bar = getenv("GRIDCOLL_PROGRESS");
	enum gct_cp_phase from = GCT_CP_LIST;

	c->has_bar = gct_cp_is_root(c) && !c->o->quiet && bar && !strcmp(bar, "1");
	if (scan(c, e))
		return e->status;
	while (copy_files(c, from, e) && may_go_on(c) && !go_on(c, &from, e))
		;
	return e->status;
}
