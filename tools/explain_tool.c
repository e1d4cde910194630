/* SPDX-License-Identifier: MIT
 * gridcoll plan --explain: reads a recorded run, predicts the same, prints both. */
#include "base/file.h"
#include "base/mem.h"
#include "base/units.h"
#include "tools/explain_report.h"
#include "tools/gantt.h"
#include "tools/plan_impl.h"
#include "tools/tools.h"

#include <stdio.h>
#include <string.h>

#define MOST_STEPS (1u << 21)

struct explaining {
	const struct gct_plan_options *o;
	struct gct_trace trace;
	struct gct_site site;
	struct gci_coll coll;
	struct gct_timeline predicted, actual;
	struct gci_sim_result result;
	struct gct_explanation x;
	struct gct_explain_report report;
};

static int read_trace(struct explaining *x)
{
	struct gci_buf text = {0};
	struct gci_error e = {0};
	int rc = gci_file_read(x->o->explain, GCT_TRACE_MOST_NBYTES, &text, &e);

	if (!rc)
		rc = gct_trace_parse(&x->trace, gci_buf_cstr(&text), text.len, x->o->explain, &e);
	gci_buf_free(&text);
	return rc ? gct_plan_wrong_file(&e) : 0;
}

static int check_site(struct explaining *x)
{
	if (x->site.topo_digest == x->trace.topo_digest)
		return 0;
	return gct_wrong("plan",
		"%s was recorded on another grid than %s, or one dilated otherwise: "
		"expected the same",
		x->o->explain, x->o->run.grid ? x->o->run.grid : "the lab's");
}

static int predict(struct explaining *x)
{
	const struct gct_trace *t = &x->trace;
	struct gci_error e = {0};
	const char *why;
	int rc;

	x->coll = (struct gci_coll){.kind = t->kind,
		.topo = &x->site.topo,
		.count = t->count,
		.esize = t->esize,
		.root = t->root};
	why = gci_ineligible(t->how.algorithm, &x->coll);
	if (why)
		return gct_wrong("plan", "%s: %s %s", x->o->explain, t->how.algorithm->name, why);
	rc = gct_way_simulate(
		&x->site.net, &x->coll, &t->how, MOST_STEPS, &x->predicted, &x->result);
	if (rc == GCOLL_ERR_INVAL || (!rc && x->predicted.cut))
		return gct_wrong("plan", "%s: more than %u steps", x->o->explain, MOST_STEPS);
	if (!rc)
		rc = gct_explain_join(
			&x->actual, &x->predicted, &x->site.net, t, x->o->explain, &e);
	if (e.status)
		return gct_plan_complain(&e);
	if (!rc)
		rc = gct_explain_compare(&x->x, &x->predicted, &x->actual);
	return rc ? gct_plan_nomem() : 0;
}

static int write_chart(struct explaining *x)
{
	char how[GCI_CANDIDATE_NBYTES], bytes[16], time[16], title[200];
	struct gct_gantt g = {.timeline = &x->actual,
		.title = title,
		.subtitle = x->o->explain,
		.names = (const char *const *)x->trace.hosts,
		.clusters = x->site.clusters,
		.dilation = x->trace.dilation};
	struct gci_error e = {0};
	struct gci_buf svg = {0};
	int rc;

	gci_candidate_print(&x->trace.how, how);
	snprintf(title, sizeof(title), "%s of %s by %s: measured %s", gci_kind_name(x->coll.kind),
		gci_format_bytes(x->report.nbytes, bytes, 16), how,
		gci_format_time(x->trace.ns / x->trace.dilation, time, 16));
	rc = gct_gantt_print(&g, &svg) ? gct_plan_nomem() : 0;
	if (!rc && gci_file_write(x->o->gantt, &svg, &e))
		rc = gct_plan_complain(&e);
	gci_buf_free(&svg);
	return rc;
}

static uint64_t size_of(const struct gci_coll *c)
{
	uint64_t n = gci_kind_has_vector(c->kind) ? 1 : (uint64_t)c->topo->nranks;

	return n * c->count * c->esize;
}

/* Windows of which nothing was simulated step by step. */
static uint32_t windows_left_out(const struct explaining *x)
{
	uint32_t i, n = 0;

	for (i = 0; x->result.extrapolated && i < x->result.nwindows; i++)
		n += !gct_timeline_find(&x->predicted, x->coll.root, i, 0);
	return n;
}

static int report(struct explaining *x)
{
	struct gci_buf out = {0};
	int rc = 0;

	x->report = (struct gct_explain_report){.trace = &x->trace,
		.x = &x->x,
		.clusters = x->site.clusters,
		.nbytes = size_of(&x->coll),
		.predicted_ns = x->result.ns,
		.left_out = windows_left_out(x),
		.basis = x->site.basis};
	if (x->o->gantt)
		rc = write_chart(x);
	if (!rc && x->o->json)
		rc = gct_explain_json(&x->report, &out) ? gct_plan_nomem() : 0;
	else if (!rc)
		gct_explain_text(&x->report, &out);
	if (!rc && out.failed)
		rc = gct_plan_nomem();
	if (!rc)
		fputs(gci_buf_cstr(&out), stdout);
	gci_buf_free(&out);
	return rc;
}

int gct_explain(const struct gct_plan_options *o)
{
	struct explaining x = {.o = o};
	struct gct_site_wish wish = {.run = &o->run, .params = o->params};
	int rc = read_trace(&x);

	if (!rc) {
		wish.dilation = x.trace.dilation;
		wish.streams = o->streams ? o->streams : x.trace.streams;
		wish.hosts = (const char *const *)x.trace.hosts;
		wish.nhosts = x.trace.nranks;
		wish.topo_digest = x.trace.topo_digest;
		rc = gct_site_make(&x.site, &wish);
	}
	if (!rc)
		rc = check_site(&x);
	if (!rc)
		rc = predict(&x);
	if (!rc)
		rc = report(&x);
	gct_explain_free(&x.x);
	gct_timeline_free(&x.predicted);
	gct_timeline_free(&x.actual);
	gci_sim_result_free(&x.result);
	gct_site_free(&x.site);
	gct_trace_free(&x.trace);
	return rc;
}
