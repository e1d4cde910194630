/* SPDX-License-Identifier: MIT */
#include "tools/cp.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/units.h"
#include "tools/tools.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK_NBYTES   (16u << 20)
#define CHUNKS         4 /* at once: under way, or waiting to be written */
#define PROGRESS_EVERY (100 * GCI_NS_PER_MS)

static const char help[] =
	"usage: gridcoll-run ... gridcoll cp [options] SOURCE... DEST\n"
	"Copies files of rank 0's host to DEST on every other rank. In DEST, %r is the rank and "
	"%h\n"
	"the host. A DEST that ends in / is a directory, and made if missing; so is, for several\n"
	"sources, any DEST. A file gets its name only when it is whole and its checksum agrees.\n"
	"  -a, --algorithm NAME   as in `gridcoll bench --list`, with parameters (default auto)\n"
	"  -s, --streams N        connections per WAN peer\n"
	"  -0, --include-source   rank 0 writes a copy too\n"
	"  -q, --quiet            no progress bar, no summary\n";

struct options {
	const char *algorithm, *streams;
	int include_source, quiet;
	char **sources;
	int nsources;
	const char *dest;
};

/* Everything one rank has in hand. */
struct copy {
	const struct options *o;
	gcoll_comm *comm;
	struct gct_cp_manifest manifest;
	struct gct_cp_source source; /* rank 0 */
	struct gct_cp_sink sink;     /* ranks that write */
	int writes;
	char *dest;
	char *chunk[CHUNKS];
	gcoll_req *req[CHUNKS];
	uint64_t nchunks, posted, arrived;
	uint64_t begun_ns, shown_ns;

	pthread_t writer;
	int writer_runs;
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t changed;
	uint64_t to_write, written; /* chunks */
	int stop;
	struct gci_error error; /* the writer's */
};

static size_t chunk_nbytes(const struct copy *c, uint64_t i)
{
	uint64_t at = i * CHUNK_NBYTES, left = c->manifest.stream_nbytes - at;

	return left < CHUNK_NBYTES ? (size_t)left : CHUNK_NBYTES;
}

/* ---- the writer: disks may be slow, and others wait for what we pass on */

static void *write_chunks(void *arg)
{
	struct copy *c = arg;
	struct gci_error e = {0};

	pthread_mutex_lock(&c->lock);
	for (;;) {
		uint64_t i = c->written;

		while (!c->stop && c->to_write == i)
			pthread_cond_wait(&c->changed, &c->lock);
		if (c->to_write == i)
			break;
		pthread_mutex_unlock(&c->lock);
		gct_cp_sink_write(&c->sink, c->chunk[i % CHUNKS], chunk_nbytes(c, i), &e);
		pthread_mutex_lock(&c->lock);
		c->error = e;
		c->written++;
		pthread_cond_broadcast(&c->changed);
		if (e.status)
			break;
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

static int start_writer(struct copy *c, struct gci_error *e)
{
	if (!c->writes)
		return 0;
	errno = pthread_create(&c->writer, NULL, write_chunks, c);
	if (errno)
		return gci_error_errno(e, "starting a thread");
	c->writer_runs = 1;
	return 0;
}

static void end_writer(struct copy *c, struct gci_error *e)
{
	if (!c->writer_runs)
		return;
	pthread_mutex_lock(&c->lock);
	c->stop = 1;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	pthread_join(c->writer, NULL);
	c->writer_runs = 0;
	if (c->error.status)
		gci_error_set(e, c->error.status, "%s", c->error.text);
}

/* Hands chunk `arrived` on; with `wait`, until a chunk's memory is free again. Returns the number
 * of chunks written so far. */
static uint64_t exchange(struct copy *c, int wait, struct gci_error *e)
{
	uint64_t written;

	if (!c->writes)
		return c->arrived;
	pthread_mutex_lock(&c->lock);
	if (c->to_write != c->arrived) {
		c->to_write = c->arrived;
		pthread_cond_broadcast(&c->changed);
	}
	while (wait && !c->error.status && c->written < c->arrived &&
		c->posted - c->written == CHUNKS)
		pthread_cond_wait(&c->changed, &c->lock);
	if (c->error.status)
		gci_error_set(e, c->error.status, "%s", c->error.text);
	written = c->written;
	pthread_mutex_unlock(&c->lock);
	return written;
}

/* ---- moving the stream */

static int operation_error(struct gci_error *e, int rc)
{
	return rc ? gci_error_set(e, rc, "%s", gcoll_last_error()) : 0;
}

static void show_progress(struct copy *c, int end)
{
	uint64_t now = gci_now_ns(), done = c->arrived * CHUNK_NBYTES;
	char line[120];

	if (gcoll_rank(c->comm) || c->o->quiet || !getenv("GRIDCOLL_PROGRESS"))
		return;
	if (!end && now - c->shown_ns < PROGRESS_EVERY)
		return;
	c->shown_ns = now;
	if (done > c->manifest.stream_nbytes)
		done = c->manifest.stream_nbytes;
	gct_cp_progress_line(
		line, sizeof(line), done, c->manifest.stream_nbytes, now - c->begun_ns);
	fprintf(stderr, "%-78s\r", line);
	if (end)
		fputc('\n', stderr);
	fflush(stderr);
}

static int post(struct copy *c, struct gci_error *e)
{
	uint64_t i = c->posted;
	char *chunk = c->chunk[i % CHUNKS];

	if (gcoll_rank(c->comm) == 0 &&
		gct_cp_source_read(&c->source, chunk, chunk_nbytes(c, i), e))
		return e->status;
	c->posted++;
	return operation_error(e, gcoll_ibcast(chunk, chunk_nbytes(c, i), GCOLL_BYTE, 0, c->comm,
					  &c->req[i % CHUNKS]));
}

static int move_stream(struct copy *c, struct gci_error *e)
{
	c->begun_ns = gci_now_ns();
	while (!e->status && c->arrived < c->nchunks) {
		uint64_t written = exchange(c, c->arrived == c->posted, e);

		while (!e->status && c->posted < c->nchunks && c->posted - written < CHUNKS)
			post(c, e);
		if (!e->status && c->arrived < c->posted) {
			operation_error(e, gcoll_wait(&c->req[c->arrived % CHUNKS]));
			c->arrived++;
			show_progress(c, 0);
		}
	}
	if (!e->status)
		exchange(c, 0, e);
	return e->status;
}

/* ---- before and after */

/* Everybody gets rank 0's list of files. */
static int share_manifest(struct copy *c, struct gci_error *e)
{
	struct gci_buf buf = {0};
	uint64_t len = 0;
	int rank = gcoll_rank(c->comm);

	if (!rank) {
		gct_cp_manifest_encode(&c->manifest, &buf);
		len = buf.len;
		if (buf.failed || len > GCT_CP_MAX_MANIFEST)
			gci_error_set(e, GCOLL_ERR_NOMEM, "too many files for one call");
	}
	if (!e->status)
		operation_error(e, gcoll_bcast(&len, 1, GCOLL_UINT64, 0, c->comm));
	if (!e->status && rank) {
		if (len > GCT_CP_MAX_MANIFEST)
			gci_error_set(e, GCOLL_ERR_PROTO, "the list of files is malformed");
		else
			buf.data = gci_calloc(len, 1);
		if (!e->status && !buf.data)
			gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	}
	if (!e->status)
		operation_error(e, gcoll_bcast(buf.data, len, GCOLL_BYTE, 0, c->comm));
	if (!e->status && rank)
		gct_cp_manifest_decode(&c->manifest, buf.data, len, e);
	gci_buf_free(&buf);
	return e->status;
}

static int is_directory(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* Where this rank's copies go. */
static int prepare_dest(struct copy *c, struct gci_error *e)
{
	size_t len;

	c->dest = gct_cp_expand(
		c->o->dest, gcoll_rank(c->comm), gcoll_host(c->comm, gcoll_rank(c->comm)), e);
	if (!c->dest)
		return e->status;
	if (!c->writes)
		return 0;
	len = strlen(c->dest);
	if (c->manifest.into_directory)
		return gct_cp_make_directories(c->dest, e);
	/* One file onto an existing directory goes into it, as with cp. */
	if (len && is_directory(c->dest))
		c->manifest.into_directory = 1;
	return 0;
}

static int allocate(struct copy *c, struct gci_error *e)
{
	int i;

	c->nchunks = (c->manifest.stream_nbytes + CHUNK_NBYTES - 1) / CHUNK_NBYTES;
	for (i = 0; i < CHUNKS && (uint64_t)i < c->nchunks; i++) {
		c->chunk[i] = gci_calloc(chunk_nbytes(c, 0), 1);
		if (!c->chunk[i])
			return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	}
	return 0;
}

static int scan(struct copy *c, struct gci_error *e)
{
	const struct options *o = c->o;
	size_t len = strlen(o->dest);

	if (gcoll_rank(c->comm))
		return 0;
	return gct_cp_manifest_scan(&c->manifest, o->sources, o->nsources,
		o->nsources > 1 || (len && o->dest[len - 1] == '/'), e);
}

/* All have written all they were to write: only now is it done. */
static int agree(struct copy *c, struct gci_error *e)
{
	uint64_t sums[2] = {c->writes, c->sink.nfiles_done};
	char bytes[16], t[16], rate[16];
	uint64_t ns;

	operation_error(
		e, gcoll_allreduce(GCOLL_IN_PLACE, sums, 2, GCOLL_UINT64, GCOLL_SUM, c->comm));
	if (e->status)
		return e->status;
	show_progress(c, 1);
	ns = gci_now_ns() - c->begun_ns;
	if (!gcoll_rank(c->comm) && !c->o->quiet)
		fprintf(stderr,
			"copied %s in %u file%s to %" PRIu64 " ranks in %s, %s/s each: "
			"%" PRIu64 " files verified\n",
			gci_format_bytes(c->manifest.stream_nbytes -
						 (uint64_t)c->manifest.nfiles * GCT_CP_TRAILER,
				bytes, sizeof(bytes)),
			c->manifest.nfiles, c->manifest.nfiles == 1 ? "" : "s", sums[0],
			gci_format_time(ns, t, sizeof(t)),
			gci_format_bytes((uint64_t)((double)c->manifest.stream_nbytes * 1e9 /
						    (double)(ns ? ns : 1)),
				rate, sizeof(rate)),
			sums[1]);
	return 0;
}

static int copy_files(struct copy *c, struct gci_error *e)
{
	scan(c, e);
	if (!e->status)
		share_manifest(c, e);
	if (!e->status)
		prepare_dest(c, e);
	if (!e->status)
		allocate(c, e);
	if (e->status)
		return e->status;
	gct_cp_source_init(&c->source, &c->manifest, c->o->sources);
	gct_cp_sink_init(&c->sink, &c->manifest, c->dest);
	start_writer(c, e);
	if (!e->status)
		move_stream(c, e);
	end_writer(c, e);
	if (!e->status)
		agree(c, e);
	return e->status;
}

static int set_up(struct copy *c, struct gci_error *e)
{
	int rc = 0;

	if (c->o->algorithm)
		rc = gcoll_comm_set(c->comm, "bcast", c->o->algorithm);
	if (!rc && c->o->streams)
		rc = gcoll_comm_set(c->comm, "streams", c->o->streams);
	return operation_error(e, rc);
}

static int parse_options(struct options *o, int argc, char **argv)
{
	static const struct option longs[] = {{"algorithm", 1, NULL, 'a'},
		{"streams", 1, NULL, 's'}, {"include-source", 0, NULL, '0'},
		{"quiet", 0, NULL, 'q'}, {"help", 0, NULL, 'h'}, {NULL, 0, NULL, 0}};
	struct gci_error e = {0};
	char *dest;
	int c;

	optind = 1;
	while ((c = getopt_long(argc, argv, "a:s:0qh", longs, NULL)) != -1) {
		if (c == 'a')
			o->algorithm = optarg;
		else if (c == 's')
			o->streams = optarg;
		else if (c == '0')
			o->include_source = 1;
		else if (c == 'q')
			o->quiet = 1;
		else {
			fputs(help, c == 'h' ? stdout : stderr);
			return c == 'h' ? -1 : GCT_USAGE;
		}
	}
	if (argc - optind < 2) {
		fprintf(stderr, "gridcoll cp: expected SOURCE... DEST\n%s", help);
		return GCT_USAGE;
	}
	o->sources = argv + optind;
	o->nsources = argc - optind - 1;
	o->dest = argv[argc - 1];
	dest = gct_cp_expand(o->dest, 0, "", &e);
	if (!dest || !*o->dest)
		fprintf(stderr, "gridcoll cp: %s\n",
			dest ? "DEST is empty, expected a path" : e.text);
	gci_free(dest);
	return dest && *o->dest ? 0 : GCT_USAGE;
}

static void clean_up(struct copy *c, int failed)
{
	int i;

	if (c->writes)
		gct_cp_sink_close(&c->sink);
	if (!gcoll_rank(c->comm))
		gct_cp_source_close(&c->source);
	/* The library may still look at chunks under way: it goes first. */
	gcoll_finalize(c->comm);
	if (failed && c->shown_ns)
		fputc('\n', stderr);
	for (i = 0; i < CHUNKS; i++)
		gci_free(c->chunk[i]);
	gct_cp_manifest_free(&c->manifest);
	gci_free(c->dest);
	pthread_mutex_destroy(&c->lock);
	pthread_cond_destroy(&c->changed);
}

int gct_cp(int argc, char **argv)
{
	struct options o = {0};
	struct copy c = {.o = &o, .sink = {.fd = -1}, .source = {.fd = -1}};
	struct gci_error e = {0};
	int rc = parse_options(&o, argc, argv);

	if (rc)
		return rc < 0 ? GCT_OK : rc;
	rc = gcoll_init(&c.comm);
	if (rc) {
		fprintf(stderr, "gridcoll cp: %s\n", gcoll_last_error());
		return rc == GCOLL_ERR_NOLAUNCHER || rc == GCOLL_ERR_INVAL ? GCT_USAGE : GCT_FAILED;
	}
	pthread_mutex_init(&c.lock, NULL);
	pthread_cond_init(&c.changed, NULL);
	c.writes = gcoll_rank(c.comm) || o.include_source;
	if (!set_up(&c, &e))
		copy_files(&c, &e);
	if (e.status) /* the launcher prints it, once, for all ranks */
		gcoll_abort(c.comm, e.text);
	clean_up(&c, e.status);
	return e.status == GCOLL_ERR_INVAL ? GCT_USAGE : e.status ? GCT_FAILED : GCT_OK;
}
