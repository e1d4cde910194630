/* SPDX-License-Identifier: MIT
 * `gridcoll bench`: options, one measurement, and how results are shown. */
#ifndef GCT_BENCH_H
#define GCT_BENCH_H

#include "collectives/planner/packed.h"
#include "comm/comm.h"
#include "tools/lib/cases.h"
#include "tools/lib/lab_info.h"

#include <jansson.h>

struct gct_bench_options {
	enum gci_kind kinds[GCI_NKINDS];
	int nkinds;
	uint64_t sizes[GCT_MAX_CASES]; /* bytes */
	int nsizes;
	const char *algorithms[GCT_MAX_CASES]; /* "auto", or as gcoll_comm_set takes them */
	int nalgorithms;                       /* 0: all of the registry */
	uint64_t iterations;                   /* 0: the default */
	uint64_t root;
	uint64_t streams; /* 0: as the grid says */
	const char *json, *file, *socket_buffer, *trace;
	const char *report; /* a directory */
	int predict, list;
	int sized;              /* sizes were asked for */
	const char *params;     /* for predictions; NULL: the grid alone */
	uint64_t wan_tolerance; /* percent; UINT64_MAX: none is asked for */
};

/* One operation, size and algorithm. Times are those of this machine's clock: in a lab, dilated. */
struct gct_bench_result {
	enum gci_kind kind;
	uint64_t asked_nbytes, nbytes; /* what was asked for, and what P equal blocks make of it */
	enum gcoll_type type;
	uint32_t esize;
	uint64_t count; /* elements of the vector, or of each block */
	char algorithm[GCI_CANDIDATE_NBYTES + 16];
	const char *asked_algorithm; /* the same where not "auto" was asked for */
	int column;                  /* number in the list of those asked for */
	char not_run[80]; /* why the algorithm cannot run this; "" when it was measured */
	uint64_t *ns;     /* [iterations], warm, sorted */
	uint64_t iterations;
	uint64_t cold_ns; /* of the row's first operation */
	uint64_t
		enough_ns; /* where that takes longer, no other is made: iterations is 0; 0: all are */
	uint64_t late_ns;      /* after the agreed start, at which the latest rank began */
	uint64_t limit_ns;     /* 0: unknown */
	uint64_t predicted_ns; /* 0: was not asked for */
	uint64_t wan_nbytes, schedule_wan_nbytes; /* per operation */
	int has_wan;
	uint64_t resent,
		wan_resent; /* segments, in all warm iterations: everywhere, between clusters */
	/* [from * clusters + to][bin]: bytes sent in the last iteration, in bins of 10 ms of this
	 * machine's clock; NULL: not wanted. */
	uint64_t *course;
	uint32_t ncourse;
	int cpu_percent; /* of the machine, over the warm iterations; < 0: unknown */
};

struct gct_bench_predictor; /* bench.c */
struct gct_bench_course;    /* trace.c */
struct gct_bench_trace;     /* what the last iteration did when: trace.c */

struct gct_bench {
	gcoll_comm *comm;
	gcoll_comm *own; /* for what is not measured: keeps its settings */
	struct gct_lab lab;
	int root;
	uint64_t seed;       /* of the data, new with each operation */
	char *send, *recv;   /* of the largest size; each 4-byte aligned */
	const char *pattern; /* file contents for bcast, or NULL */
	uint64_t longest_delay_ns;
	int quiet;         /* no padding is under way any more (flow/warm.h) */
	int64_t offset_ns; /* of this rank's clock from rank 0's */
	uint64_t clock_offset_ns, clock_error_ns; /* rank 0: the widest, and how sure it is */
	struct gct_bench_trace *trace; /* of what is measured now; NULL: none is wanted */
	const char *trace_file;
	char report_trace[4096];               /* its file, where it is one of a report */
	int wants_course;                      /* of each last iteration */
	struct gct_bench_predictor *predictor; /* rank 0's; NULL: none is wanted */
};

/* Of a communicator, which is b->comm already: its duplicate, the lab, the longest delay. 0 or a
 * GCOLL_ERR_* as gci_comm_error() says; gct_bench_close() either way. */
int gct_bench_open(struct gct_bench *b, int root);

/* Room for operations on so many bytes, touched. */
int gct_bench_buffers(struct gct_bench *b, uint64_t nbytes);

/* And leaves the job. */
void gct_bench_close(struct gct_bench *b);

/* One operation of r->kind on so many bytes (a vector, all blocks, or one rank's send buffer):
 * sets the sizes, type and count of `r`. */
void gct_bench_shape(const struct gct_bench *b, struct gct_bench_result *r, uint64_t nbytes);
static inline struct gci_coll gct_bench_coll(
	const struct gct_bench *b, const struct gct_bench_result *r)
{
	return (struct gci_coll){.kind = r->kind,
		.topo = &b->comm->topo,
		.count = r->count,
		.esize = r->esize,
		.root = b->root};
}

/* Estimates how far the ranks' clocks are apart; in a lab they are one. */
int gct_bench_clocks(struct gct_bench *b);

/* Measures one case on all ranks; the result is whole on rank 0. A GCOLL_ERR_*, with the text in
 * gcoll_last_error(); GCOLL_ERR_CORRUPT when a result was wrong. */
int gct_bench_measure(struct gct_bench *b, struct gct_bench_result *r);

/* Of the warm times, which are sorted. */
static inline uint64_t gct_bench_median(const struct gct_bench_result *r)
{
	uint64_t n = r->iterations;

	return n % 2 ? r->ns[n / 2] : (r->ns[n / 2 - 1] + r->ns[n / 2]) / 2;
}

/* Segments that TCP sends again between the two; `end` on all ranks. */
void gct_bench_resent_begin(const struct gct_bench *b, uint64_t before[2]);
int gct_bench_resent_end(
	const struct gct_bench *b, const uint64_t before[2], struct gct_bench_result *r);

/* What is sent between the two, as r->course; `start`, on this rank's clock, and `ns` say which
 * part of it. On all ranks. `end` frees it. */
int gct_bench_course_begin(const struct gct_bench *b, struct gct_bench_course **c);
int gct_bench_course_end(struct gct_bench *b, struct gct_bench_course *c, uint64_t start,
	uint64_t ns, struct gct_bench_result *r);

/* r->course; NULL: it has none, or there is no memory for it. */
json_t *gct_bench_course_json(const struct gct_bench *b, const struct gct_bench_result *r);

/* Without a result. */
void gct_bench_course_drop(struct gct_bench_course *c);

/* What is to be written, and what this needs: results.c. `begin` and `end` stand around each
 * case. All on all ranks, but `write`, which is rank 0's. */
int gct_bench_files_open(struct gct_bench *b, const struct gct_bench_options *o);
int gct_bench_files_begin(
	struct gct_bench *b, const struct gct_bench_options *o, const struct gct_bench_result *r);
void gct_bench_files_end(struct gct_bench *b);
int gct_bench_files_write(struct gct_bench *b, const struct gct_bench_options *o,
	const struct gct_bench_result *r, int n);

/* Records operations of b->comm between on and off; `start` is on this rank's clock. NULL: out of
 * memory. */
struct gct_bench_trace *gct_bench_trace_begin(struct gct_bench *b);
void gct_bench_trace_on(struct gct_bench_trace *x, uint64_t start);
void gct_bench_trace_off(struct gct_bench_trace *x);
void gct_bench_trace_end(struct gct_bench_trace *x);

/* On all ranks: what was recorded of `r`, which took `ns`, to a file of rank 0's. GCOLL_ERR_INVAL on
 * all of them where it has too many steps. */
int gct_bench_trace_write(
	struct gct_bench *b, const struct gct_bench_result *r, uint64_t ns, const char *path);

/* What the simulator says of a case, without parameters, on rank 0; 0 where there is no memory for
 * it. b->predictor is made with the files. */
uint64_t gct_bench_predict(
	struct gct_bench_predictor *p, const struct gci_coll *c, const struct gci_candidate *how);
void gct_bench_predict_end(struct gct_bench_predictor *p);

/* Rank 0's output. */
void gct_bench_print_header(const struct gct_bench *b, const struct gct_bench_options *o);
void gct_bench_print_group(const struct gct_bench *b, const struct gct_bench_result *r);
void gct_bench_print(const struct gct_bench *b, const struct gct_bench_result *r);
void gct_bench_print_footer(const struct gct_bench *b, const struct gct_bench_result *r, int n);

/* What stood in the way of rank 0's connections, if anything; and all that is known of them: NULL
 * when out of memory. */
void gct_bench_print_sockets(const struct gct_bench *b);
json_t *gct_bench_sockets_json(const struct gct_bench *b);

#endif
