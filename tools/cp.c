/* SPDX-License-Identifier: MIT
 * `gridcoll cp`: options, and the order in which things are done. */
#include "tools/cp.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/units.h"
#include "tools/tools.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PROGRESS_EVERY (100 * GCI_NS_PER_MS)

static const char help[] =
	"usage: gridcoll-run ... gridcoll cp [options] SOURCE... DEST\n"
	"Copies files of rank 0's host to DEST on every other rank. In DEST, %r is the\n"
	"rank, %h the host and %% a percent sign. A DEST that ends in / is a directory,\n"
	"and made if missing; so is, for several sources, any DEST. A file gets its name\n"
	"only when it is whole and its checksum agrees.\n"
	"  -a, --algorithm NAME   as in `gridcoll bench --list`, with parameters\n"
	"                         (default auto)\n"
	"  -s, --streams N        connections per WAN peer\n"
	"  -0, --include-source   rank 0 writes a copy too\n"
	"      --sync             each file is on the disk before it gets its name\n"
	"  -q, --quiet            no progress bar, no summary\n"
	"  -h, --help             this text\n";

struct options {
	const char *algorithm, *streams;
	int include_source, quiet, sync;
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
	struct gct_cp_move move;
	int writes;
	char *dest;
	int has_bar;
	uint64_t begun_ns, shown_ns;
};

static int operation_error(struct gci_error *e, int rc)
{
	return rc ? gci_error_set(e, rc, "%s", gcoll_last_error()) : 0;
}

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

/* "a//" is called "a" in messages. */
static void drop_slashes(char *path)
{
	size_t len = strlen(path);

	while (len > 1 && path[len - 1] == '/')
		path[--len] = '\0';
}

/* Where this rank's copies go; ready to be written to. */
static int prepare_dest(struct copy *c, struct gci_error *e)
{
	int rank = gcoll_rank(c->comm), into = c->manifest.into_directory;

	if (!c->writes)
		return 0;
	c->dest = gct_cp_expand(c->o->dest, rank, gcoll_host(c->comm, rank), e);
	if (!c->dest)
		return e->status;
	drop_slashes(c->dest);
	if (into && gct_cp_make_directories(c->dest, e))
		return e->status;
	/* One file onto an existing directory goes into it, as with cp. */
	into = into || is_directory(c->dest);
	if (gct_cp_sink_init(&c->sink, &c->manifest, c->dest, into, c->o->sync, e))
		return e->status;
	gct_cp_sink_guard(&c->sink);
	return gct_cp_sink_start(&c->sink, e);
}

static int scan(struct copy *c, struct gci_error *e)
{
	const struct options *o = c->o;
	size_t len = strlen(o->dest);

	if (gcoll_rank(c->comm))
		return 0;
	if (gct_cp_manifest_scan(&c->manifest, o->sources, o->nsources,
		    o->nsources > 1 || o->dest[len - 1] == '/', e))
		return e->status;
	gct_cp_source_init(&c->source, &c->manifest, o->sources);
	return 0;
}

/* No line of its own: the launcher wipes it from the terminal when there is something to say. */
static void show_progress(void *user, uint64_t done)
{
	struct copy *c = user;
	uint64_t now = gci_now_ns(), all = c->manifest.stream_nbytes;
	char line[120];

	if (!c->has_bar || now - c->shown_ns < PROGRESS_EVERY)
		return;
	c->shown_ns = now;
	gct_cp_progress_line(line, sizeof(line), done, all, now - c->begun_ns);
	fprintf(stderr, "%-78s\r", line);
	fflush(stderr);
}

/* All have written all they were to write: only now is it done. */
static int agree(struct copy *c, struct gci_error *e)
{
	uint64_t sums[2] = {(uint64_t)c->writes, c->sink.nfiles_done};
	uint64_t ns, nbytes, nfiles = c->manifest.nfiles;
	char bytes[16], t[16], rate[16];

	operation_error(
		e, gcoll_allreduce(GCOLL_IN_PLACE, sums, 2, GCOLL_UINT64, GCOLL_SUM, c->comm));
	if (e->status || gcoll_rank(c->comm) || c->o->quiet)
		return e->status;
	ns = gci_now_ns() - c->begun_ns;
	nbytes = c->manifest.stream_nbytes - nfiles * GCT_CP_TRAILER;
	fprintf(stderr,
		"copied %s in %" PRIu64 " file%s to %" PRIu64 " rank%s in %s, %s/s each: %" PRIu64
		" cop%s verified\n",
		gci_format_bytes(nbytes, bytes, sizeof(bytes)), nfiles, nfiles == 1 ? "" : "s",
		sums[0], sums[0] == 1 ? "" : "s", gci_format_time(ns, t, sizeof(t)),
		gci_format_bytes((uint64_t)((double)nbytes * 1e9 / (double)(ns ? ns : 1)), rate,
			sizeof(rate)),
		sums[1], sums[1] == 1 ? "y" : "ies");
	return 0;
}

static int copy_files(struct copy *c, struct gci_error *e)
{
	const char *bar = getenv("GRIDCOLL_PROGRESS");

	if (scan(c, e) || share_manifest(c, e) || prepare_dest(c, e))
		return e->status;
	/* Nobody's file is replaced before all can write theirs. */
	if (operation_error(e, gcoll_barrier(c->comm)))
		return e->status;
	c->move = (struct gct_cp_move){.comm = c->comm,
		.source = gcoll_rank(c->comm) ? NULL : &c->source,
		.sink = c->writes ? &c->sink : NULL,
		.nbytes = c->manifest.stream_nbytes,
		.progress = show_progress,
		.user = c};
	c->has_bar = !gcoll_rank(c->comm) && !c->o->quiet && bar && !strcmp(bar, "1");
	c->begun_ns = c->shown_ns = gci_now_ns(); /* a short transfer shows none */
	if (gct_cp_move(&c->move, e))
		return e->status;
	if (c->writes && gct_cp_sink_finish(&c->sink, e))
		return e->status;
	return agree(c, e);
}

/* What every rank finds wrong with the options, or nothing. */
static int set_up(struct copy *c, struct gci_error *e)
{
	int rc = 0;

	if (c->o->algorithm)
		rc = gcoll_comm_set(c->comm, "bcast", c->o->algorithm);
	if (!rc && c->o->streams)
		rc = gcoll_comm_set(c->comm, "streams", c->o->streams);
	return operation_error(e, rc);
}

static int check_operands(struct options *o, int argc, char **argv)
{
	struct gci_error e = {0};

	if (argc < 2)
		return gct_wrong("cp", "expected SOURCE... DEST, see gridcoll cp --help");
	o->sources = argv;
	o->nsources = argc - 1;
	o->dest = argv[argc - 1];
	if (!*o->dest)
		return gct_wrong("cp", "DEST is empty, expected a path");
	gci_free(gct_cp_expand(o->dest, 0, "", &e));
	return e.status ? gct_wrong("cp", "%s", e.text) : 0;
}

static int parse_options(struct options *o, int argc, char **argv)
{
	static const struct option longs[] = {{"algorithm", 1, NULL, 'a'},
		{"streams", 1, NULL, 's'}, {"include-source", 0, NULL, '0'}, {"sync", 0, NULL, 'S'},
		{"quiet", 0, NULL, 'q'}, {"help", 0, NULL, 'h'}, {NULL, 0, NULL, 0}};
	int c;

	optind = 1;
	while ((c = getopt_long(argc, argv, ":a:s:0qh", longs, NULL)) != -1) {
		switch (c) {
		case 'a':
			o->algorithm = optarg;
			break;
		case 's':
			o->streams = optarg;
			break;
		case '0':
			o->include_source = 1;
			break;
		case 'S':
			o->sync = 1;
			break;
		case 'q':
			o->quiet = 1;
			break;
		case 'h':
			gct_help(help);
			return -1;
		default:
			return gct_wrong_option("cp", argv, longs, c);
		}
	}
	return check_operands(o, argc - optind, argv + optind);
}

static void clean_up(struct copy *c)
{
	gct_cp_sink_close(&c->sink);
	gct_cp_source_close(&c->source);
	gcoll_finalize(c->comm);
	gct_cp_move_free(&c->move);
	gct_cp_manifest_free(&c->manifest);
	gci_free(c->dest);
}

int gct_cp(int argc, char **argv)
{
	struct options o = {0};
	struct copy c = {.o = &o, .sink = {.fd = -1}, .source = {.fd = -1}};
	struct gci_error e = {0};
	int rc = parse_options(&o, argc, argv);

	if (rc)
		return rc < 0 ? GCT_OK : rc;
	rc = gct_join("cp", &c.comm);
	if (rc)
		return rc;
	signal(SIGXFSZ, SIG_IGN); /* a limit on files' sizes is an error like a full disk */
	c.writes = gcoll_rank(c.comm) || o.include_source;
	if (set_up(&c, &e) || copy_files(&c, &e))
		gct_abort(c.comm, e.text);
	clean_up(&c);
	return e.status == GCOLL_ERR_INVAL ? GCT_USAGE : e.status ? GCT_FAILED : GCT_OK;
}
