/* SPDX-License-Identifier: MIT
 * A recorded run: when each rank began and ended each step of one operation. `gridcoll bench
 * --trace` writes it, `gridcoll plan --explain` compares it with what was predicted.
 *
 *	rc = gct_trace_parse(&t, text, len, "run.trace", &e);
 *	if (!rc)
 *		...				// t.windows[i].at[2 * step], [2 * step + 1]
 *	gct_trace_free(&t);
 *
 * As a file:
 *	{"version": 1, "operation": "bcast", "algorithm": "chain:segment=64KiB", "count": 262144,
 *	 "element_nbytes": 4, "root": 0, "streams": 4, "dilation": 20,
 *	 "topology_digest": "0123456789abcdef", "measured_ns": 500123456,
 *	 "hosts": ["k1", "k2"],
 *	 "windows": [{"rank": 0, "window": 0, "from_ns": [0, 120], "to_ns": [110, 400]}, ...]}
 * Times are of the clock of the run: in a lab, dilated; from the agreed start. hosts[rank] is its
 * host; from_ns and to_ns are by step of the rank's schedule.
 *
 * Pure. */
#ifndef GCT_TRACE_FILE_H
#define GCT_TRACE_FILE_H

#include "base/buf.h"
#include "collectives/tuner/candidate.h"

#define GCT_TRACE_MOST_STEPS  (1u << 18) /* of all ranks */
#define GCT_TRACE_MOST_NBYTES (16u << 20)
#define GCT_TRACE_MOST_RANKS  4096

/* One rank's part of one window. */
struct gct_trace_window {
	int rank;
	uint32_t window, nsteps;
	uint64_t *at; /* [2 * step]: began, [2 * step + 1]: ended */
};

struct gct_trace {
	enum gci_kind kind;
	struct gci_candidate how;
	uint64_t count; /* elements, as in struct gci_coll */
	uint32_t esize;
	int root, nranks;
	uint32_t streams, dilation;
	uint64_t topo_digest; /* of the topology that it ran on: dilated, in a lab */
	uint64_t ns;          /* what was measured */
	char **hosts;         /* [rank] */
	struct gct_trace_window *windows;
	size_t nwindows;
};

/* On failure GCOLL_ERR_PARSE ("NAME:LINE: what, expected what") or _NOMEM, with `t` empty. */
int gct_trace_parse(
	struct gct_trace *t, const char *text, size_t len, const char *name, struct gci_error *e);

/* As text that parses to the same. */
void gct_trace_print(const struct gct_trace *t, struct gci_buf *out);

void gct_trace_free(struct gct_trace *t);

#endif
