/* SPDX-License-Identifier: MIT
 * The files that bench writes: results, a recorded run, pictures; and all that a report is made
 * from. */
#include "base/mem.h"
#include "tools/bench.h"
#include "tools/report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* DIR/NAME */
static char *report_path(const struct gct_bench_options *o, const char *name)
{
	return gci_asprintf("%s/%s", o->report, name);
}

static int nomem(void)
{
	return gci_comm_error(GCOLL_ERR_NOMEM, "out of memory");
}

static int make_directory(const struct gct_bench_options *o)
{
	char *path;
	int rc;

	if (mkdir(o->report, 0777) && errno != EEXIST)
		return gci_comm_error(GCOLL_ERR_IO, "--report %s: %s", o->report, strerror(errno));
	path = report_path(o, "report.html");
	rc = path ? gct_try_to_write(path) : nomem();
	gci_free(path);
	return rc;
}

static int open_own(struct gct_bench *b, const struct gct_bench_options *o)
{
	struct gci_error e = {0};
	int rc = 0;

	if (o->json)
		rc = gct_try_to_write(o->json);
	if (!rc && o->trace)
		rc = gct_try_to_write(o->trace);
	if (!rc && o->plot)
		rc = gct_bench_can_plot();
	if (!rc && o->plot)
		rc = gct_try_to_write(o->plot);
	if (!rc && o->report)
		rc = make_directory(o);
	if (rc || !o->predict)
		return rc;
	b->predictor = gct_bench_predict_begin(b, o->params, &e);
	return b->predictor ? 0 : gci_comm_error(e.status, "%s", e.text);
}

int gct_bench_files_open(struct gct_bench *b, const struct gct_bench_options *o)
{
	if (o->wan_tolerance != UINT64_MAX && !b->lab.nlinks)
		return gci_comm_error(GCOLL_ERR_INVAL,
			"--wan-tolerance: no WAN link is counted here, expected a lab's");
	b->wants_course = (o->plot || o->report) && b->comm->engine->grid->nclusters > 1;
	return b->comm->rank ? 0 : open_own(b, o);
}

/* A report has one run of each operation: of the first algorithm at the largest size. */
static int is_reported(const struct gct_bench_options *o, const struct gct_bench_result *r)
{
	int i;

	if (!o->report || r->column)
		return 0;
	for (i = 0; i < o->nsizes; i++)
		if (r->kind != GCI_BARRIER && o->sizes[i] > r->asked_nbytes)
			return 0;
	return 1;
}

int gct_bench_files_begin(
	struct gct_bench *b, const struct gct_bench_options *o, const struct gct_bench_result *r)
{
	*b->report_trace = '\0';
	if (o->trace) {
		b->trace_file = o->trace;
	} else if (is_reported(o, r)) {
		snprintf(b->report_trace, sizeof(b->report_trace), "%s/%s.trace", o->report,
			gci_kind_name(r->kind));
		b->trace_file = b->report_trace;
	} else {
		return 0;
	}
	b->trace = gct_bench_trace_begin(b);
	return b->trace ? 0 : nomem();
}

void gct_bench_files_end(struct gct_bench *b)
{
	gct_bench_trace_end(b->trace);
	b->trace = NULL;
}

static int write_grid(const struct gct_bench *b, const char *path)
{
	struct gci_buf text = {0};
	int rc;

	gci_grid_print(b->comm->engine->grid, &text);
	rc = text.failed ? nomem() : gct_write(path, &text);
	gci_buf_free(&text);
	return rc;
}

static int write_report(struct gct_bench *b, const struct gct_bench_options *o,
	const struct gct_bench_result *r, int n)
{
	char *grid = report_path(o, "grid"), *json = report_path(o, "bench.json");
	char *page = report_path(o, "report.html");
	struct gci_error e = {0};
	int rc = grid && json && page ? write_grid(b, grid) : nomem();

	if (!rc)
		rc = gct_bench_write_json(b, r, n, json);
	if (!rc && gct_html_write(o->report, page, &e))
		rc = gci_comm_error(e.status, "--report: %s", e.text);
	if (!rc)
		printf("report: %s\n", page);
	gci_free(grid);
	gci_free(json);
	gci_free(page);
	return rc;
}

int gct_bench_files_write(struct gct_bench *b, const struct gct_bench_options *o,
	const struct gct_bench_result *r, int n)
{
	int rc = o->json ? gct_bench_write_json(b, r, n, o->json) : 0;

	if (!rc && o->plot)
		rc = gct_bench_plot(b, r, n, o->plot);
	return rc || !o->report ? rc : write_report(b, o, r, n);
}
