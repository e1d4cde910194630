/* SPDX-License-Identifier: MIT */
#include "tools/bench.h"

#include "base/mem.h"
#include "base/units.h"
#include "tools/cases.h"
#include "tools/progress.h"
#include "tools/tools.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char help[] =
	"usage: gridcoll-run ... gridcoll bench OPERATION... [options]\n"
	"Measures bcast, reduce, allreduce, reduce_scatter, scatter, gather, allgather,\n"
	"alltoall, barrier, or all of them: time from an agreed start to the last rank's\n"
	"end. Every result is verified.\n"
	"  -b, --bytes LIST       sizes, e.g. 8,64KiB,32MiB (default 1MiB): of the whole\n"
	"                         vector, of all ranks' blocks, in alltoall of those\n"
	"                         that one rank sends\n"
	"  -a, --algorithm LIST   names of --list with parameters, e.g.\n"
	"                         farfirst,vandegeijn-mod:senders=4; auto (default), all\n"
	"  -i, --iters N          warm iterations (default 5; 2 with --algorithm all)\n"
	"  -r, --root RANK        of bcast, reduce, scatter and gather (default 0)\n"
	"  -f, --file FILE        bcast this file's contents (rank 0 reads it), one size\n"
	"  -s, --streams N        connections per WAN peer\n"
	"      --socket-buffer B  fixed socket buffers, e.g. 3MB (default: auto)\n"
	"      --wan-tolerance P  fail if the WAN interfaces' counters are off the\n"
	"                         schedule's sum by more than P percent\n"
	"  -j, --json FILE        write results as JSON too\n"
	"  -t, --trace FILE       write what each rank did when in the last iteration,\n"
	"                         for gridcoll plan --explain; of one operation, size\n"
	"                         and algorithm\n"
	"  -p, --predict          show what the simulator predicts, from the grid file\n"
	"      --params FILE      the same, from a parameters file of gridcoll probe\n"
	"      --plot FILE        draw throughput against size, and the traffic between\n"
	"                         clusters over time, as SVG (needs gnuplot)\n"
	"      --report DIR       write grid, results, predictions and a recorded run of\n"
	"                         each operation to DIR, and a page that shows them all:\n"
	"                         DIR/report.html\n"
	"  -l, --list             list the algorithms and end\n"
	"  -h, --help             this text\n"
	"example: gridcoll-run -n 4 gridcoll bench bcast allreduce -b 64KiB,8MiB\n";

static int usage_error(const char *what, const char *value, const char *expected)
{
	return gct_wrong("bench", "%s \"%s\", expected %s", what, value, expected);
}

static int list_algorithms(void)
{
	const struct gci_algorithm *a;
	char text[400];
	int at;

	if (!gct_is_first())
		return GCT_OK;
	gci_each_algorithm (a) {
		at = printf("%-14s %-22s ", gci_kind_name(a->kind), a->name);
		snprintf(text, sizeof(text), "%s%s%s%s", a->summary,
			(a->traits & GCI_USES_SENDERS) ? " [:senders=N]" : "",
			(a->traits & GCI_USES_SEGMENT) ? " [:segment=BYTES]" : "",
			(a->traits & GCI_USES_DEGREE) ? " [:degree=D]" : "");
		gct_wrapped(stdout, text, at, at);
	}
	return GCT_OK;
}

static int parse_options(struct gct_bench_options *o, int argc, char **argv)
{
	static const struct option longs[] = {{"bytes", 1, NULL, 'b'}, {"algorithm", 1, NULL, 'a'},
		{"iters", 1, NULL, 'i'}, {"root", 1, NULL, 'r'}, {"file", 1, NULL, 'f'},
		{"streams", 1, NULL, 's'}, {"socket-buffer", 1, NULL, 'S'},
		{"wan-tolerance", 1, NULL, 'T'}, {"json", 1, NULL, 'j'}, {"trace", 1, NULL, 't'},
		{"predict", 0, NULL, 'p'}, {"params", 1, NULL, 'P'}, {"plot", 1, NULL, 'G'},
		{"report", 1, NULL, 'R'}, {"list", 0, NULL, 'l'}, {"help", 0, NULL, 'h'},
		{NULL, 0, NULL, 0}};
	int c, list = 0, sized = 0, rc = 0;

	*o = (struct gct_bench_options){.sizes = {1 << 20},
		.nsizes = 1,
		.algorithms = {"auto"},
		.nalgorithms = 1,
		.wan_tolerance = UINT64_MAX};
	optind = 1;
	while (!rc && (c = getopt_long(argc, argv, ":b:a:i:r:f:s:j:t:lhp", longs, NULL)) != -1) {
		switch (c) {
		case 'b':
			sized = 1;
			rc = gct_parse_sizes("bench", optarg, o->sizes, &o->nsizes);
			break;
		case 'a':
			rc = gct_parse_algorithms("bench", optarg, o->algorithms, &o->nalgorithms);
			break;
		case 'i':
			if (gci_parse_uint(optarg, 1000000, &o->iterations) || !o->iterations)
				rc = usage_error("--iters", optarg, "a number from 1 to 1000000");
			break;
		case 'r':
			if (gci_parse_uint(optarg, GCI_GRID_MAX_HOSTS, &o->root))
				rc = usage_error("--root", optarg, "a rank");
			break;
		case 'f':
			o->file = optarg;
			break;
		case 's':
			o->streams = optarg;
			break;
		case 'S':
			o->socket_buffer = optarg;
			break;
		case 'T':
			if (gci_parse_uint(optarg, 1000, &o->wan_tolerance))
				rc = usage_error("--wan-tolerance", optarg, "a number of percent");
			break;
		case 'j':
			o->json = optarg;
			break;
		case 'P':
			o->params = optarg;
			o->predict = 1;
			break;
		case 'p':
			o->predict = 1;
			break;
		case 't':
			o->trace = optarg;
			break;
		case 'G':
			o->plot = optarg;
			break;
		case 'R':
			o->report = optarg;
			o->predict = 1;
			break;
		case 'l':
			list = 1;
			break;
		case 'h':
			gct_help(help);
			return -2;
		default:
			return gct_wrong_option("bench", argv, longs, c);
		}
	}
	if (!rc && list)
		return optind == argc ? -1
				      : gct_wrong("bench",
						"\"%s\" after --list, see gridcoll bench --help",
						argv[optind]);
	if (!o->iterations)
		o->iterations = o->nalgorithms ? 5 : 2;
	if (!rc)
		rc = gct_parse_operations(
			"bench", argc - optind, argv + optind, o->kinds, &o->nkinds);
	if (!rc && o->trace && (o->nkinds != 1 || o->nsizes != 1 || o->nalgorithms != 1))
		rc = usage_error(
			"--trace", o->trace, "one operation, one size and one algorithm with it");
	for (c = 0; !rc && o->file && c < o->nkinds && o->kinds[c] != GCI_BCAST; c++)
		;
	if (!rc && o->file && c == o->nkinds)
		rc = usage_error("--file", o->file, "bcast, which sends it, among the operations");
	if (!rc && o->file && sized)
		rc = usage_error("--file", o->file, "no --bytes with it: it has a size");
	return rc;
}

/* Rank 0 reads the file; everybody gets it once, the plain way, to compare with later. */
static int share_file(struct gct_bench *b, struct gct_bench_options *o)
{
	uint64_t nbytes = 0;
	struct stat st;
	FILE *f = NULL;
	char *copy;
	int rc = 0, fd;

	if (!b->comm->rank) {
		fd = open(o->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO has no writer */
		f = fd < 0 ? NULL : fdopen(fd, "r");
		if (!f || fstat(fd, &st))
			rc = gci_comm_error(
				GCOLL_ERR_IO, "cannot read %s: %s", o->file, strerror(errno));
		else if (!S_ISREG(st.st_mode))
			rc = gci_comm_error(
				GCOLL_ERR_IO, "%s is no regular file, expected one", o->file);
		else
			nbytes = (uint64_t)st.st_size;
	}
	if (!rc)
		rc = gcoll_bcast(&nbytes, 1, GCOLL_UINT64, 0, b->own);
	copy = rc ? NULL : gci_calloc(nbytes, 1);
	if (!rc && !copy)
		rc = gci_comm_error(GCOLL_ERR_NOMEM, "%s: larger than memory", o->file);
	if (!rc && f && fread(copy, 1, nbytes, f) != nbytes)
		rc = gci_comm_error(GCOLL_ERR_IO, "%s: read error", o->file);
	if (f)
		fclose(f);
	if (!rc)
		rc = gcoll_bcast(copy, nbytes, GCOLL_BYTE, 0, b->own);
	b->pattern = copy;
	o->sizes[0] = nbytes;
	o->nsizes = 1;
	return rc;
}

static int set_up(struct gct_bench *b, struct gct_bench_options *o)
{
	uint64_t most = 1;
	int i, rc = gct_bench_open(b, (int)o->root);

	if (!rc)
		rc = gct_bench_files_open(b, o);
	if (!rc)
		rc = gct_bench_clocks(b);
	if (!rc && o->file)
		rc = share_file(b, o);
	for (i = 0; i < o->nsizes; i++)
		most = o->sizes[i] > most ? o->sizes[i] : most;
	return rc ? rc : gct_bench_buffers(b, most);
}

/* The algorithms of one operation: those asked for, or all. */
static int algorithm_names(
	const struct gct_bench_options *o, enum gci_kind kind, const char *names[GCT_MAX_CASES])
{
	const struct gci_algorithm *a;
	int n = 0;

	if (o->nalgorithms) {
		memcpy(names, o->algorithms, sizeof(o->algorithms));
		return o->nalgorithms;
	}
	gci_each_algorithm (a)
		if (a->kind == kind && n < GCT_MAX_CASES)
			names[n++] = a->name;
	return n;
}

/* `listed`: it was asked for by name, and then must run. */
static int measure_case(struct gct_bench *b, const struct gct_bench_options *o,
	const char *algorithm, int listed, struct gct_bench_result *r)
{
	int rc = gcoll_comm_set(b->comm, gci_kind_name(r->kind), algorithm);
	struct gci_coll coll = gct_bench_coll(b, r);
	char text[GCI_CANDIDATE_NBYTES];
	struct gci_decision d;
	const char *why = "";
	int chosen;

	if (rc)
		return rc;
	chosen = !gci_comm_choose(b->comm, &coll, 0, &d, &why);
	/* "auto" is told by what it stands for. */
	if (chosen && !strncmp(algorithm, "auto", 4)) {
		gci_candidate_print(&d.how, text);
		snprintf(r->algorithm, sizeof(r->algorithm), "%s (%s)", text,
			gci_decided_by_name(d.by));
	} else {
		snprintf(r->algorithm, sizeof(r->algorithm), "%s", algorithm);
	}
	if (!chosen && listed)
		return gci_comm_error(
			GCOLL_ERR_INVAL, "%s by %s: %s", gci_kind_name(r->kind), algorithm, why);
	if (!chosen) {
		snprintf(r->not_run, sizeof(r->not_run), "%s", why);
		return 0;
	}
	if (b->predictor) {
		coll = gct_bench_coll(b, r);
		r->predicted_ns = gct_bench_predict(b->predictor, &coll, &d.how);
	}
	r->ns = gci_calloc(o->iterations, sizeof(*r->ns));
	if (!r->ns)
		return gci_comm_error(GCOLL_ERR_NOMEM, "out of memory");
	return gct_bench_measure(b, r);
}

struct results {
	struct gct_bench_result *list;
	size_t n, cap;
};

static int check_wan(const struct gct_bench_options *o, const struct gct_bench_result *r)
{
	if (r->not_run[0] || o->wan_tolerance == UINT64_MAX ||
		gct_bench_wan_fits(r, o->wan_tolerance))
		return 0;
	return gci_comm_error(GCOLL_ERR_VERIFY,
		"%s by %s: bytes over the WAN are not what its schedule moves",
		gci_kind_name(r->kind), r->algorithm);
}

/* Rows in all. */
static size_t count_rows(const struct gct_bench_options *o)
{
	const char *names[GCT_MAX_CASES];
	size_t n = 0;
	int k;

	for (k = 0; k < o->nkinds; k++)
		n += (size_t)algorithm_names(o, o->kinds[k], names) *
		     (o->kinds[k] == GCI_BARRIER ? 1 : (size_t)o->nsizes);
	return n;
}

static int measure_size(struct gct_bench *b, const struct gct_bench_options *o, enum gci_kind kind,
	uint64_t nbytes, struct results *out)
{
	const char *names[GCT_MAX_CASES];
	size_t nrows = count_rows(o);
	int a, rc = 0, n = algorithm_names(o, kind, names);

	for (a = 0; a < n && !rc; a++) {
		struct gct_bench_result *r;

		if (gci_grow(&out->list, &out->cap, out->n + 1, sizeof(*out->list)))
			return gci_comm_error(GCOLL_ERR_NOMEM, "out of memory");
		r = &out->list[out->n++];
		*r = (struct gct_bench_result){.kind = kind,
			.iterations = o->iterations,
			.asked_algorithm = names[a],
			.column = a};
		gct_bench_shape(b, r, nbytes);
		gct_progress_stage(out->n, nrows);
		rc = gct_bench_files_begin(b, o, r);
		if (!rc)
			rc = measure_case(b, o, names[a], o->nalgorithms != 0, r);
		gct_bench_files_end(b);
		gct_progress_end();
		if (!rc && !b->comm->rank && !a)
			gct_bench_print_group(b, r);
		if (!rc && !b->comm->rank)
			gct_bench_print(b, r);
		if (!rc)
			rc = check_wan(o, r);
	}
	return rc;
}

static int measure_kind(struct gct_bench *b, const struct gct_bench_options *o, enum gci_kind kind,
	struct results *out)
{
	int s, rc = 0, nsizes = kind == GCI_BARRIER ? 1 : o->nsizes;

	for (s = 0; s < nsizes && !rc; s++)
		rc = measure_size(b, o, kind, o->sizes[s], out);
	return rc;
}

static int run(struct gct_bench *b, struct gct_bench_options *o)
{
	struct results results = {0};
	size_t i;
	int k, rc = set_up(b, o);

	if (!rc && !b->comm->rank)
		gct_bench_print_header(b, o);
	for (k = 0; k < o->nkinds && !rc; k++)
		rc = measure_kind(b, o, o->kinds[k], &results);
	if (!rc && !b->comm->rank)
		gct_bench_print_footer(b, results.list, (int)results.n);
	if (!rc && !b->comm->rank)
		rc = gct_bench_files_write(b, o, results.list, (int)results.n);
	for (i = 0; i < results.n; i++) {
		gci_free(results.list[i].ns);
		gci_free(results.list[i].course);
	}
	gci_free(results.list);
	return rc;
}

/* Names and parameters are checked before anything runs; every rank finds the same. */
static int check_settings(struct gct_bench *b, const struct gct_bench_options *o)
{
	int k, a, rc = 0;

	if (o->root >= (uint64_t)b->comm->size)
		return gci_comm_error(GCOLL_ERR_INVAL,
			"--root \"%llu\", expected a rank from 0 to %d",
			(unsigned long long)o->root, b->comm->size - 1);
	if (o->streams)
		rc = gcoll_comm_set(b->comm, "streams", o->streams);
	if (!rc && o->socket_buffer)
		rc = gcoll_comm_set(b->comm, "socket_buffer", o->socket_buffer);
	for (k = 0; k < o->nkinds && !rc; k++)
		for (a = 0; a < o->nalgorithms && !rc; a++)
			rc = gcoll_comm_set(b->comm, gci_kind_name(o->kinds[k]), o->algorithms[a]);
	return rc;
}

int gct_bench(int argc, char **argv)
{
	struct gct_bench_options o;
	struct gct_bench b = {0};
	int rc = parse_options(&o, argc, argv);

	if (rc == -1)
		return list_algorithms();
	if (rc)
		return rc == -2 ? GCT_OK : rc;
	rc = gct_join("bench", &b.comm);
	if (rc)
		return rc;
	rc = check_settings(&b, &o);
	if (!rc)
		rc = run(&b, &o);
	if (rc && !b.comm->engine->failure.status)
		gct_abort(b.comm, gcoll_last_error());
	gct_bench_files_end(&b);
	gct_bench_predict_end(b.predictor);
	gct_bench_close(&b);
	return rc == GCOLL_ERR_INVAL ? GCT_USAGE : rc ? GCT_FAILED : GCT_OK;
}
