/* SPDX-License-Identifier: MIT
 * What a copy says: names, the progress bar, and when all is done a line and the files of --json and
 * --manifest. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/units.h"
#include "comm/comm.h"
#include "tools/cp/copy.h"
#include "tools/cp/impl.h"
#include "tools/lib/json_out.h"
#include "tools/lib/progress.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Names, and the progress bar's text. */

#define COLUMNS 78 /* of the progress bar */

static int is_host(const char *name)
{
	const char *p;

	for (p = name; *p && !iscntrl((unsigned char)*p); p++)
		;
	return !*p && gct_cp_is_name(name);
}

char *gct_cp_expand(const char *pattern, int rank, const char *host, struct gci_error *e)
{
	struct gci_buf out = {0};
	int bad = 0, leads = 0;
	const char *p;
	char *result;

	for (p = pattern; *p && !bad && !leads; p++) {
		if (*p != '%')
			gci_buf_put_u8(&out, (uint8_t)*p);
		else if (*++p == 'r')
			gci_buf_printf(&out, "%d", rank);
		else if (*p == 'h' && !is_host(host))
			leads = 1;
		else if (*p == 'h')
			gci_buf_printf(&out, "%s", host);
		else if (*p == '%')
			gci_buf_put_u8(&out, '%');
		else
			bad = 1;
		if (bad)
			break;
	}
	result = bad || leads || out.failed ? NULL : gci_strdup(gci_buf_cstr(&out));
	if (bad)
		gci_error_set(e, GCOLL_ERR_INVAL,
			"path \"%s\": expected %%r (rank), %%h (host) or %%%% after %%", pattern);
	else if (leads)
		gci_error_set(e, GCOLL_ERR_INVAL,
			"path \"%s\": rank %d's host is called \"%s\", which is no name in a "
			"directory",
			pattern, rank, host);
	else if (!result)
		gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	gci_buf_free(&out);
	return result;
}

size_t gct_cp_fixed_length(const char *pattern)
{
	size_t n = 0, fixed = 0;
	const char *p;

	for (p = pattern; *p; p++, n++) {
		if (*p == '/')
			fixed = n + 1;
		if (*p == '%' && *++p != '%')
			return fixed;
	}
	return n;
}

static void format_left(char *out, size_t size, double seconds)
{
	uint64_t whole = seconds < 1e9 ? (uint64_t)seconds : 1000000000, s = whole;
	unsigned m;

	s += seconds > (double)whole && seconds < 1e9; /* 0:00 only at the end */
	m = (unsigned)(s / 60 % 60);
	if (s >= 3600)
		snprintf(
			out, size, "  %" PRIu64 ":%02u:%02u left", s / 3600, m, (unsigned)(s % 60));
	else
		snprintf(out, size, "  %u:%02u left", m, (unsigned)(s % 60));
}

static double rate_of(uint64_t nbytes, uint64_t ns)
{
	double per_s = ns ? (double)nbytes * GCI_NS_PER_S / (double)ns : 0;

	return per_s > 1e18 ? 1e18 : per_s; /* a clock that hardly moved */
}

static int compare_seen(const void *a, const void *b)
{
	const struct gct_cp_seen *x = a, *y = b;

	return (x->ns < y->ns) - (x->ns > y->ns);
}

/* Adds clusters to the line of so many bytes. */
static void add_clusters(char *out, size_t size, uint64_t done, struct gct_cp_seen *seen, int n)
{
	size_t len = strlen(out), more;
	char one[80], rate[16];
	int i, named = 0;

	if (n)
		qsort(seen, (size_t)n, sizeof(*seen), compare_seen);
	for (i = 0; i < n; i++) {
		if (!seen[i].cluster || rate_of(done, seen[i].ns) < 1)
			continue;
		gci_format_bytes((uint64_t)rate_of(done, seen[i].ns), rate, sizeof(rate));
		snprintf(one, sizeof(one), "%s%.16s %s/s%s%.16s%s", named ? ", " : "  ",
			seen[i].cluster, rate, named ? "" : " (", named ? "" : seen[i].last,
			named ? "" : ")");
		more = strlen(one);
		if (len + more > COLUMNS || len + more >= size)
			return;
		memcpy(out + len, one, more + 1);
		len += more;
		named = 1;
	}
}

void gct_cp_progress_line(char *out, size_t size, uint64_t done, uint64_t all, uint64_t elapsed_ns,
	struct gct_cp_seen *seen, int n)
{
	enum { WIDTH = 30, NARROW = 10 };
	unsigned width = n ? NARROW : WIDTH;
	char bar[WIDTH + 1], rate[16] = "- B", left[40] = "";
	unsigned percent = all ? (unsigned)((unsigned __int128)done * 100 / all) : 100;
	unsigned filled = percent * width / 100;
	double per_s = rate_of(done, elapsed_ns);

	memset(bar, ' ', width);
	memset(bar, '=', filled);
	if (filled < width)
		bar[filled] = '>';
	bar[width] = '\0';
	if (per_s >= 1)
		gci_format_bytes((uint64_t)per_s, rate, sizeof(rate));
	if (per_s >= 1 && done < all)
		format_left(left, sizeof(left), (double)(all - done) / per_s);
	snprintf(out, size, "%3u %% [%s] %s/s%s", percent, bar, rate, left);
	add_clusters(out, size, done, seen, n);
}

/* ---- The progress bar. No line of its own: the launcher wipes it from the terminal when there is
 * something to say. */

#define EVERY_NS (100 * GCI_NS_PER_MS)

/* True if it is time for another look at the line. */
static int is_due(struct gct_cp_copy *c, uint64_t *now_ns)
{
	*now_ns = gci_now_ns();
	if (!c->has_bar || *now_ns - c->shown_ns < EVERY_NS)
		return 0;
	c->shown_ns = *now_ns;
	return 1;
}

void gct_cp_show_compared(struct gct_cp_copy *c, uint64_t n)
{
	uint64_t now;
	char line[60];

	if (!is_due(c, &now))
		return;
	snprintf(line, sizeof(line), "%3d %% compared", (int)(100 * n / c->nwanted));
	gct_progress_line(line);
}

/* Without a bar: others' failures do not wait until all is read. A look for struct gct_cp_look. */
static int gct_cp_look_around(void *user, uint64_t n, struct gci_error *e)
{
	struct gct_cp_copy *c = user;

	(void)n;
	return gct_cp_progress(c->comm, 0, e);
}

const char *gct_cp_cluster_name(const gcoll_comm *comm, int cluster)
{
	const struct gci_grid *g = comm->engine->job.grid;

	return g ? g->clusters[comm->topo.in_grid[cluster]].name : "all";
}

void gct_cp_show(void *user, uint64_t done, const uint64_t *reached)
{
	struct gct_cp_copy *c = user;
	int i, n = reached ? gcoll_clusters(c->comm) : 0;
	struct gct_cp_seen *seen;
	uint64_t now;
	char line[120];

	if (!is_due(c, &now))
		return;
	seen = gci_calloc((size_t)n, sizeof(*seen));
	for (i = 0; seen && i < n; i++) {
		int last = GCT_CP_REACHED_RANK(reached[i]);

		if (!reached[i])
			continue;
		seen[i] = (struct gct_cp_seen){gct_cp_cluster_name(c->comm, i),
			gcoll_host(c->comm, last), GCT_CP_REACHED_NS(reached[i])};
	}
	gct_cp_progress_line(line, sizeof(line), done, c->manifest.stream_nbytes, now - c->begun_ns,
		seen, seen ? n : 0);
	gci_free(seen);
	gct_progress_line(line);
}

/* ---- What the root says when all is done: a line, and the files of --json and --manifest. */

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

/* The next receiver, from `rank` of the first world on, that is not in the last one; -1: none. */
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

/* Names need not be UTF-8; what is not is not shown. See set_path(). */
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

/* What JSON has no text for is there as bytes, too. */
static void set_path(json_t *o, const char *name, int *failed)
{
	size_t len = name ? strlen(name) : 0;
	json_t *whole = name ? json_string(name) : NULL;
	char *hex;

	gct_json_set(o, "path", name ? text(name) : NULL, failed);
	if (!whole) {
		hex = gci_calloc(2 * len + 1, 1);
		if (hex)
			gci_format_hex(name, len, hex);
		gct_json_set(o, "path_hex", hex ? json_string(hex) : NULL, failed);
		gci_free(hex);
	}
	json_decref(whole);
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

		set_path(o, name, failed);
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
