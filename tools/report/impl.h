/* SPDX-License-Identifier: MIT
 * The parts of a report's page. Inside of report. */
#ifndef GCT_REPORT_IMPL_H
#define GCT_REPORT_IMPL_H

#include "collectives/grid/grid.h"
#include "tools/report/report.h"

#include <stdio.h>

#define GCT_HTML_COLOURS 8 /* s0 ... s7 in the page's style */

/* A page on its way to text. */
struct gct_page {
	struct gct_html *r;
	struct gci_buf *out;
	struct gci_grid grid; /* in the times of its file, undilated */
	int has_grid;
	int nomem;
};

/* ---- files: json.c. 0, or an error and nothing was added. */
int gct_html_json(
	struct gct_html *r, const char *name, const char *text, size_t len, struct gci_error *e);
/* Why a file is left out, at the end of the page. 0 or GCOLL_ERR_NOMEM. (json.c) */
int gct_html_leave_out(struct gct_html *r, const char *why);

/* ---- sections */
void gct_html_grid(struct gct_page *p);
void gct_html_throughput(struct gct_page *p);
void gct_html_traffic(struct gct_page *p);
void gct_html_gantts(struct gct_page *p);
void gct_html_predictions(struct gct_page *p);
void gct_html_plans(struct gct_page *p);
void gct_html_figures(struct gct_page *p);

/* ---- words and figures: report.c */

/* Escaped, in UTF-8: between tags and in attributes. */
void gct_put(struct gct_page *p, const char *text);
void gct_putf(struct gct_page *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* "32 MiB"; "12.3 MB" where it is no round number of them. */
char *gct_size_text(uint64_t nbytes, char out[24]);

/* "bcast of 32 MiB", "barrier" */
char *gct_case_text(enum gci_kind kind, uint64_t nbytes, char out[48]);

/* Of the run's clock, as people have it. */
char *gct_case_time(const struct gct_html_case *c, uint64_t ns, char out[16]);
double gct_case_bps(const struct gct_html_case *c, uint64_t ns);

/* Has a throughput. */
int gct_case_has_rate(const struct gct_html_case *c);

/* The name of a curve: what was asked for, and of which file where several have this operation. */
void gct_put_curve(struct gct_page *p, const struct gct_html_case *c);
int gct_same_curve(const struct gct_html_case *a, const struct gct_html_case *b);

/* The largest size that was measured of an operation; 0 also where none was. */
uint64_t gct_largest(const struct gct_html *r, enum gci_kind kind);

/* "<p class="none">NOTHING: COMMAND</p>" */
void gct_put_none(struct gct_page *p, const char *what, const char *command);

#endif
