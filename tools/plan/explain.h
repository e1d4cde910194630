/* SPDX-License-Identifier: MIT
 * A run beside its prediction, by parts: the messages of one phase between the same clusters.
 *
 *	rc = gct_explain_join(&actual, &predicted, &net, &trace, "run.trace", &e);
 *	if (!rc)
 *		rc = gct_explain_compare(&x, &predicted, &actual);
 *	...					// x.parts[0 .. x.n)
 *	gct_explain_free(&x);
 *	gct_timeline_free(&actual);
 *
 * Pure. */
#ifndef GCT_EXPLAIN_H
#define GCT_EXPLAIN_H

#include "base/buf.h"
#include "tools/lib/timeline.h"
#include "tools/lib/trace_file.h"

#define GCT_MOST_PAIRS 9 /* of clusters; of more, all WANs are one, and all insides */

/* When the first of a part's messages began to come (a copy or reduction: to be made), when the
 * last was there, and how long a rank that had any was at it, on average. */
struct gct_when {
	uint64_t start_ns, end_ns, busy_ns;
};

struct gct_part {
	uint32_t phase; /* from 1, without gaps; 0: copies and reductions */
	int from, to;   /* clusters; -1: several, alike if both are */
	int wan;        /* between clusters */
	uint64_t nmessages, nbytes;
	struct gct_when predicted, actual;
};

struct gct_explanation {
	struct gct_part *parts; /* in the order in which they were predicted to start */
	size_t n;
	int worst;     /* the part whose own time differs most; -1: none by 2 % of the whole */
	int late_rank; /* whose end differs most from the predicted one */
	int64_t late_ns;
};

/* What the trace tells of each step that was predicted (windows that were not simulated are left
 * out), in a new sorted timeline. A message is taken to come from when it was asked for and its
 * first byte can have been there. GCOLL_ERR_PARSE ("NAME: ...") where trace and prediction are not
 * of the same schedules, or _NOMEM; then `actual` is empty. */
int gct_explain_join(struct gct_timeline *actual, const struct gct_timeline *predicted,
	const struct gci_simnet *net, const struct gct_trace *t, const char *name,
	struct gci_error *e);

/* Two timelines of the same steps. 0 or GCOLL_ERR_NOMEM. */
int gct_explain_compare(struct gct_explanation *x, const struct gct_timeline *predicted,
	const struct gct_timeline *actual);
void gct_explain_free(struct gct_explanation *x);

/* ---- what `gridcoll plan --explain` prints */

struct gct_explain_report {
	const struct gct_trace *trace;
	const struct gct_explanation *x;
	const char *const *clusters;
	uint64_t nbytes;       /* of the message */
	uint64_t predicted_ns; /* times are of the run's clock, shown divided by its dilation */
	uint32_t left_out;     /* windows that were not simulated */
	const char *basis;
};

void gct_explain_text(const struct gct_explain_report *r, struct gci_buf *out);

/* 0 or GCOLL_ERR_NOMEM. */
int gct_explain_json(const struct gct_explain_report *r, struct gci_buf *out);

/* A part's name, as both print it: "2 kyoto > tokyo". */
void gct_explain_part_name(const struct gct_part *p, const char *const *clusters, char out[64]);

#endif
