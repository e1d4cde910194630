/* SPDX-License-Identifier: MIT
 * What the root says when all is done: a line, and the files of --json and --manifest. */
#include "tools/cp_copy.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/units.h"
#include "comm/comm.h"
#include "tools/cp_impl.h"
#include "tools/json_out.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>

struct report {
	const struct gct_cp_copy *c;
	const struct gct_cp_outcome *all; /* [n], by number in the first world */
	int n;
	uint64_t nbytes, moved; /* of the files; of them by each receiver, on average */
	uint64_t nwriters, ncopies, had_nbytes, ns;
	uint64_t nsharing; /* receivers for which another one has written */
};

static void add_up(struct report *r)
{
	const struct gct_cp_manifest *m = &r->c->manifest;
	uint64_t had_each;
	uint32_t k;
	int i;

	for (k = 0; k < m->nfiles; k++)
		r->nbytes += m->files[k].size;
	for (i = 0; i < r->n; i++) {
		r->nwriters += r->all[i].writes;
		r->nsharing += !r->all[i].writes && r->c->receives[r->all[i].was];
		r->ncopies += r->all[i].ncopies;
		r->had_nbytes += r->all[i].had_nbytes;
	}
	had_each = r->nwriters ? r->had_nbytes / r->nwriters : 0;
	r->moved = r->nbytes > had_each ? r->nbytes - had_each : 0;
	r->ns = gci_now_ns() - r->c->begun_ns;
}

static uint64_t per_second(uint64_t nbytes, uint64_t ns)
{
	return (uint64_t)((double)nbytes * 1e9 / (double)(ns ? ns : 1));
}

/* Until a receiver had all. Its beginning may be a moment before the root's. */
static uint64_t duration_ns(const struct report *r, const struct gct_cp_outcome *o)
{
	return o->done_ns < r->ns ? o->done_ns : r->ns;
}

int gct_cp_next_left_out(const struct gct_cp_copy *c, int rank)
{
	for (; rank < gcoll_size(c->first); rank++)
		if (c->receives[rank] && gcoll_comm_translate(c->first, rank, c->comm) < 0)
			return rank;
	return -1;
}

/* ---- for people */

/* "2 files". */
static const char *count(char out[40], uint64_t n, const char *one, const char *many)
{
	snprintf(out, 40, "%" PRIu64 " %s", n, n == 1 ? one : many);
	return out;
}

/* "3.00 MB in 2 files, 1 directory": with `all`, of what is no file as well. */
static void name_what(const struct report *r, int all, struct gci_buf *out)
{
	const struct gct_cp_manifest *m = &r->c->manifest;
	char text[40], bytes[16];
	const char *one = m->is_scattered ? "part" : "file";

	gci_buf_printf(out, "%s in %s", gci_format_bytes(r->nbytes, bytes, sizeof(bytes)),
		count(text, m->nfiles, one, m->is_scattered ? "parts" : "files"));
	if (all && m->ndirs)
		gci_buf_printf(out, ", %s", count(text, m->ndirs, "directory", "directories"));
	if (all && m->nlinks)
		gci_buf_printf(out, ", %s", count(text, m->nlinks, "link", "links"));
}

static void say(const struct report *r)
{
	const struct gct_cp_manifest *m = &r->c->manifest;
	const char *source = gcoll_host(r->c->first, r->c->root_was);
	char t[16], rate[16], had[16], ranks[40], copies[40];
	int one_by_one = m->is_scattered || r->c->o->gather;
	struct gci_buf text = {0};

	name_what(r, !one_by_one, &text);
	gci_format_time(r->ns, t, sizeof(t));
	gci_format_bytes(per_second(r->moved, r->ns), rate, sizeof(rate));
	count(ranks, r->nwriters, "rank", "ranks");
	count(copies, r->ncopies, "copy", "copies");
	if (!r->nwriters && gcoll_size(r->c->first) == 1)
		fprintf(stderr, "nothing copied: the job's one rank has the file (expected "
				"gridcoll-run -n 2 or more, or --include-source)\n");
	else if (one_by_one)
		fprintf(stderr, "%s %s %s %s in %s, %s/s: %" PRIu64 " verified\n",
			m->is_scattered ? "scattered" : "gathered", gci_buf_cstr(&text),
			m->is_scattered ? "from" : "to", source, t, rate, r->ncopies);
	else if (r->nbytes && r->had_nbytes == r->nbytes * r->nwriters)
		fprintf(stderr, "all up to date: %s from %s on %s, compared in %s: %s verified\n",
			gci_buf_cstr(&text), source, ranks, t, copies);
	else
		fprintf(stderr, "copied %s from %s to %s in %s, %s/s each: %s verified\n",
			gci_buf_cstr(&text), source, ranks, t, rate, copies);
	if (r->nsharing && !r->c->o->gather)
		fprintf(stderr, "%s the directory of one of these: written once\n",
			count(ranks, r->nsharing, "more rank has", "more ranks have"));
	if (r->had_nbytes)
		fprintf(stderr, "%s%s of these copies were there already\n",
			r->had_nbytes == r->nbytes * r->nwriters ? "all " : "",
			gci_format_bytes(r->had_nbytes, had, sizeof(had)));
	gci_buf_free(&text);
}

/* An error is said to who wants it quiet, too. */
static void say_left_out(const struct gct_cp_copy *c)
{
	struct gci_buf out = {0};
	int rank = -1;

	while ((rank = gct_cp_next_left_out(c, rank + 1)) >= 0)
		gci_buf_printf(&out, "%srank %d on %s", out.len ? ", " : "left out: ", rank,
			gcoll_host(c->first, rank));
	if (out.len)
		fprintf(stderr, "%s\n", gci_buf_cstr(&out));
	gci_buf_free(&out);
}

/* ---- for programs */

/* Names need not be UTF-8; what is not is not shown. */
static json_t *text(const char *s)
{
	json_t *v = json_string(s);
	char *copy, *p;

	if (v)
		return v;
	copy = gci_strdup(s);
	for (p = copy; p && *p; p++)
		if (!isascii((unsigned char)*p))
			*p = '?';
	v = copy ? json_string(copy) : NULL;
	gci_free(copy);
	return v;
}

static int cluster_of(const struct report *r, const struct gct_cp_outcome *o)
{
	return gcoll_cluster(r->c->first, (int)o->was);
}

static json_t *rank_json(const struct report *r, int rank, int *failed)
{
	json_t *o = json_object();

	gct_json_set(o, "rank", json_integer(rank), failed);
	gct_json_set(o, "host", text(gcoll_host(r->c->first, rank)), failed);
	gct_json_set(o, "cluster",
		text(gct_cp_cluster_name(r->c->first, gcoll_cluster(r->c->first, rank))), failed);
	return o;
}

static json_t *receivers_json(const struct report *r, int *failed)
{
	json_t *list = json_array();
	int i;

	for (i = 0; i < r->n; i++) {
		const struct gct_cp_outcome *one = &r->all[i];
		json_t *o;

		if (!one->writes)
			continue;
		o = rank_json(r, (int)one->was, failed);
		gct_json_set(o, "copies", gct_json_whole(one->ncopies), failed);
		gct_json_set(o, "duration_ns", gct_json_whole(duration_ns(r, one)), failed);
		gct_json_set(o, "writing_ns", gct_json_whole(one->busy_ns), failed);
		gct_json_set(o, "resumed_bytes", gct_json_whole(one->had_nbytes), failed);
		gct_json_append(list, o, failed);
	}
	return list;
}

static json_t *left_out_json(const struct report *r, int *failed)
{
	json_t *list = json_array();
	int rank = -1;

	while ((rank = gct_cp_next_left_out(r->c, rank + 1)) >= 0)
		gct_json_append(list, rank_json(r, rank, failed), failed);
	return list;
}

/* The receiver that was done last, in a cluster or (-1) of all; NULL: there is none. */
static const struct gct_cp_outcome *find_slowest(const struct report *r, int cluster)
{
	const struct gct_cp_outcome *slowest = NULL;
	int i;

	for (i = 0; i < r->n; i++)
		if (r->all[i].writes && (cluster < 0 || cluster_of(r, &r->all[i]) == cluster) &&
			(!slowest || r->all[i].done_ns > slowest->done_ns))
			slowest = &r->all[i];
	return slowest;
}

static json_t *clusters_json(const struct report *r, int *failed)
{
	json_t *list = json_array();
	int k, i;

	for (k = 0; k < gcoll_clusters(r->c->first); k++) {
		const struct gct_cp_outcome *slowest = find_slowest(r, k);
		json_t *o;
		int n = 0;

		if (!slowest)
			continue;
		for (i = 0; i < r->n; i++)
			n += r->all[i].writes && cluster_of(r, &r->all[i]) == k;
		o = json_object();
		gct_json_set(o, "name", text(gct_cp_cluster_name(r->c->first, k)), failed);
		gct_json_set(o, "receivers", json_integer(n), failed);
		gct_json_set(o, "duration_ns", gct_json_whole(duration_ns(r, slowest)), failed);
		gct_json_set(o, "bytes_per_s",
			gct_json_whole(per_second(r->moved, duration_ns(r, slowest))), failed);
		gct_json_set(o, "slowest", rank_json(r, (int)slowest->was, failed), failed);
		gct_json_append(list, o, failed);
	}
	return list;
}

static json_t *checksums_json(const struct report *r, int *failed)
{
	const struct gct_cp_manifest *m = &r->c->manifest;
	char hex[2 * sizeof(r->c->sums.files->sha256) + 1];
	json_t *list = json_array();
	uint32_t i;

	for (i = 0; i < m->nfiles; i++) {
		const struct gct_cp_sum *sum = &r->c->sums.files[i];
		char *name = gct_cp_name_in_dest(m, i);
		json_t *o = json_object();

		gct_json_set(o, "path", name ? text(name) : NULL, failed);
		gct_json_set(o, "bytes", gct_json_whole(m->files[i].size), failed);
		snprintf(hex, sizeof(hex), "%08" PRIx32, sum->crc);
		gct_json_set(o, "crc32c", json_string(hex), failed);
		if (r->c->sums.wants_sha256) {
			gci_format_hex(sum->sha256, sizeof(sum->sha256), hex);
			gct_json_set(o, "sha256", json_string(hex), failed);
		}
		gct_json_append(list, o, failed);
		gci_free(name);
	}
	return list;
}

static int print_json(const struct report *r, struct gci_buf *out)
{
	const struct gct_cp_manifest *m = &r->c->manifest;
	const struct gct_cp_outcome *slowest = find_slowest(r, -1);
	json_t *o = json_object();
	int failed = 0;

	gct_json_set(o, "version", json_integer(1), &failed);
	gct_json_set(o, "source", rank_json(r, r->c->root_was, &failed), &failed);
	gct_json_set(o, "bytes", gct_json_whole(r->nbytes), &failed);
	gct_json_set(o, "scattered", json_boolean(m->is_scattered), &failed);
	gct_json_set(o, "files", gct_json_whole(m->nfiles), &failed);
	gct_json_set(o, "directories", gct_json_whole(m->ndirs), &failed);
	gct_json_set(o, "links", gct_json_whole(m->nlinks), &failed);
	gct_json_set(o, "skipped", gct_json_whole(m->nskipped), &failed);
	gct_json_set(o, "receivers", gct_json_whole(r->nwriters), &failed);
	gct_json_set(o, "sharing", gct_json_whole(r->nsharing), &failed);
	gct_json_set(o, "copies", gct_json_whole(r->ncopies), &failed);
	gct_json_set(o, "resumed_bytes", gct_json_whole(r->had_nbytes), &failed);
	gct_json_set(o, "duration_ns", gct_json_whole(r->ns), &failed);
	gct_json_set(o, "bytes_per_s", gct_json_whole(per_second(r->moved, r->ns)), &failed);
	gct_json_set(o, "clusters", clusters_json(r, &failed), &failed);
	if (slowest)
		gct_json_set(o, "slowest", rank_json(r, (int)slowest->was, &failed), &failed);
	gct_json_set(o, "ranks", receivers_json(r, &failed), &failed);
	gct_json_set(o, "left_out", left_out_json(r, &failed), &failed);
	gct_json_set(o, "checksums", checksums_json(r, &failed), &failed);
	return gct_json_print(o, failed, out);
}

/* ---- files */

static int write_text(const char *path, int rc, struct gci_buf *out, struct gci_error *e)
{
	if (rc)
		gci_error_set(e, rc, "out of memory");
	else
		gci_file_write(path, out, e);
	gci_buf_free(out);
	return e->status;
}

int gct_cp_report(struct gct_cp_copy *c, const struct gct_cp_outcome *all, struct gci_error *e)
{
	const struct gct_cp_look look = {gct_cp_look_around, c};
	struct report r = {.c = c, .all = all, .n = gcoll_size(c->comm)};
	struct gci_buf out = {0};

	add_up(&r);
	if ((c->o->json || c->o->checksums) &&
		gct_cp_sums_rest(&c->sums, c->crcs, c->ncrcs, &look, e))
		return e->status;
	if (c->o->checksums &&
		write_text(c->o->checksums, gct_cp_sums_print(&c->sums, &out), &out, e))
		return e->status;
	if (c->o->json && write_text(c->o->json, print_json(&r, &out), &out, e))
		return e->status;
	if (!c->o->quiet)
		say(&r);
	say_left_out(c);
	return 0;
}
