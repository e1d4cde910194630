/* SPDX-License-Identifier: MIT
 * What `gridcoll plan --explain` prints. Pure. */
#ifndef GCT_EXPLAIN_REPORT_H
#define GCT_EXPLAIN_REPORT_H

#include "base/buf.h"
#include "tools/explain.h"

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
