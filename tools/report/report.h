/* SPDX-License-Identifier: MIT
 * A report: what `gridcoll bench` and `gridcoll plan` left in files, as one page of HTML that needs
 * nothing else.
 *
 *	struct gct_html r = {.title = "/srv/results"};
 *	struct gci_buf page = {0};
 *
 *	rc = gct_html_add(&r, "bench.json", text, len, &e);	// for each file
 *	...
 *	rc = gct_html_print(&r, &page);
 *	gci_buf_free(&page);
 *	gct_html_free(&r);
 *
 * Pure. Files may hold anything: what is wrong is refused, and all text is escaped. */
#ifndef GCT_REPORT_H
#define GCT_REPORT_H

#include "base/buf.h"
#include "collectives/coll.h"

#define GCT_HTML_MOST_NBYTES (32u << 20) /* of one file */
#define GCT_HTML_MOST_CASES  4096        /* of one file */
#define GCT_HTML_MOST_WAYS   4096

/* What was sent from a cluster to another, bin by bin. */
struct gct_html_pair {
	char *from, *to;
	size_t number;         /* in the file: the same in all of a job's operations */
	uint64_t *nbytes, sum; /* [bin] */
};

struct gct_html_course {
	uint64_t bin_ns;
	uint32_t nbins; /* 0: there is none */
	size_t npairs;
	struct gct_html_pair *pairs; /* only those between which something was sent */
};

/* One operation, size and algorithm as it was measured. Times are of the run's clock. */
struct gct_html_case {
	enum gci_kind kind;
	uint64_t nbytes;
	int source; /* number of the file */
	char *algorithm, *asked;
	char *not_run; /* NULL: it was measured */
	uint64_t first_ns, least_ns, median_ns, most_ns;
	uint64_t limit_ns, predicted_ns; /* 0: unknown */
	uint64_t wan_nbytes, schedule_wan_nbytes, resent;
	int wan_measured, cpu_percent; /* cpu_percent < 0: unknown */
	uint32_t dilation;
	struct gct_html_course course;
};

struct gct_html_source {
	char *name;
	char *lab; /* "": not in a lab */
	uint64_t nranks;
	uint32_t dilation;
};

struct gct_html_way {
	char *algorithm, *why, *not_run; /* NULL: nothing is said */
	uint64_t ns;
};

/* Times are divided by the dilation. */
struct gct_html_plan {
	char *name, *choice, *chosen_by;
	enum gci_kind kind;
	uint64_t nbytes, nranks, limit_ns;
	struct gct_html_way *ways; /* the fastest first */
	size_t nways;
};

struct gct_html_text {
	char *name, *text;
	size_t len;
};

struct gct_html {
	const char *title;
	char *grid; /* the grid file's text, or NULL */
	size_t grid_len;
	struct gct_html_source *sources;
	size_t nsources;
	struct gct_html_case *cases;
	size_t ncases, cases_cap;
	struct gct_html_plan *plans;
	size_t nplans;
	struct gct_html_text *traces;
	size_t ntraces;
	char **left_out; /* why files were */
	size_t nleft_out;
};

/* A file by its name: "grid", "*.json" of bench or plan, "*.trace". 0; GCOLL_ERR_PARSE
 * ("NAME:LINE: ...") where it cannot be used: the report is as it was, but says so; or
 * GCOLL_ERR_NOMEM. */
int gct_html_add(
	struct gct_html *r, const char *name, const char *text, size_t len, struct gci_error *e);

/* True of names that gct_html_add() knows what to do with. */
int gct_html_knows(const char *name);

/* Adds to what was left out the runs that are not of this grid. 0 or GCOLL_ERR_NOMEM. */
int gct_html_print(struct gct_html *r, struct gci_buf *out);

void gct_html_free(struct gct_html *r);

/* All files of a directory, as a page. Of what is left out each is a line of standard error. 0, or
 * GCOLL_ERR_* with the reason: there is nothing in it to report of (GCOLL_ERR_INVAL), or a file or
 * directory cannot be read or written. */
int gct_html_write(const char *dir, const char *path, struct gci_error *e);

#endif
