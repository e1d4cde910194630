/* SPDX-License-Identifier: MIT */
#include "tools/cp_copy.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/prng.h"
#include "base/units.h"
#include "comm/comm.h"
#include "tools/cp_impl.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

/* Everybody gets the source's list of files. */
static int share_manifest(struct gct_cp_copy *c, struct gci_error *e)
{
	struct gci_buf buf = {0};
	uint64_t len = 0, head[3] = {0, (uint64_t)c->has_bar, 0};
	int is_root = gct_cp_is_root(c);

	if (c->o->gather)
		return gct_cp_gather_list(c, e);
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
		gct_cp_operation_error(e, gcoll_bcast(head, 3, GCOLL_UINT64, c->root, c->comm));
	len = head[0];
	c->move.tells_clusters = head[1] == 1;
	c->nonce = head[2];
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
	gci_free(c->dest);
	c->dest = gct_cp_expand(c->o->dest, c->was, gcoll_host(c->first, c->was), e);
	if (!c->dest)
		return e->status;
	drop_slashes(c->dest);
	if (into && gct_cp_make_directories(c->dest, c->o->sync, e))
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

/* The group of those whose copies go to this directory: a symbolic link in it, whose name only they
 * know, has the number of the rank that came first. Nothing less proves it: clones of a virtual
 * machine have equal boot ids, devices and inodes, and hosts with NFS have different ones. 0: no link
 * can be made here, or it is another user's. */
static uint64_t join_group(const struct gct_cp_copy *c, int dir, const char *marker)
{
	char target[24];
	struct stat st;
	uint64_t rank;
	ssize_t len;

	snprintf(target, sizeof(target), "%d", c->was);
	if (!symlinkat(target, dir, marker))
		return (uint64_t)c->was + 1;
	len = readlinkat(dir, marker, target, sizeof(target) - 1);
	if (len <= 0 || fstatat(dir, marker, &st, AT_SYMLINK_NOFOLLOW) || st.st_uid != geteuid())
		return 0;
	target[len] = '\0';
	return gci_parse_uint(target, (uint64_t)gcoll_size(c->first) - 1, &rank) ? 0 : rank + 1;
}

/* Each joins its group, and learns of the others'. Only then are links removed, by whom they have
 * served: the one who made it may be dead. */
static int form_groups(struct gct_cp_copy *c, struct gci_error *e)
{
	int i, n = gcoll_size(c->comm), dir = -1;
	uint64_t mine[2] = {(uint64_t)c->was, 0}, *all = gci_calloc((size_t)n, sizeof(mine));
	const char *name;
	char marker[32];

	if (!c->groups)
		c->groups = gci_calloc((size_t)gcoll_size(c->first), sizeof(*c->groups));
	if (!all || !c->groups) {
		gci_free(all);
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	}
	if (c->receives[c->was] && gct_cp_place_is_one(&c->sink.place)) {
		name = c->sink.manifest->nfiles ? gct_cp_sink_name(&c->sink, 0) : "";
		snprintf(marker, sizeof(marker), ".gridcoll-%016" PRIx64,
			gci_digest_bytes(c->nonce, name, strlen(name)));
		dir = gct_cp_place_go(&c->sink.place, 0);
		gct_cp_guard_name(GCT_CP_GUARD_MARKER, dir, marker);
		mine[1] = dir < 0 ? 0 : join_group(c, dir, marker);
	}
	gct_cp_operation_error(e, gcoll_allgather(mine, all, 2, GCOLL_UINT64, c->comm));
	for (i = 0; i < n && !e->status; i++)
		if (all[2 * i] < (uint64_t)gcoll_size(c->first))
			c->groups[all[2 * i]] = all[2 * i + 1];
	if (mine[1])
		unlinkat(dir, marker, 0);
	gct_cp_guard_name(GCT_CP_GUARD_MARKER, -1, "");
	gci_free(all);
	return e->status;
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

/* One rank writes for all that have the directory; the others count as sharing. */
static int share_dest(struct gct_cp_copy *c, struct gci_error *e)
{
	char *path;

	if (c->o->gather)
		return 0;
	if (count_receivers(c) > 1) {
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

static int scan(struct gct_cp_copy *c, struct gci_error *e)
{
	const struct gct_cp_options *o = c->o;
	size_t len = strlen(o->dest);

	if (!gct_cp_is_root(c))
		return 0;
	if ((o->json && gci_file_check(o->json, e)) ||
		(o->checksums && gci_file_check(o->checksums, e)))
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
	if (!e->status && gct_cp_is_root(c))
		gct_cp_report(c, all, e);
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
