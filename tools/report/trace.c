/* SPDX-License-Identifier: MIT
 * Recorded runs as charts, each beside its prediction by phases. */
#include "base/mem.h"
#include "base/units.h"
#include "collectives/planner/packed.h"
#include "tools/lib/gantt.h"
#include "tools/lib/timeline.h"
#include "tools/plan/explain.h"
#include "tools/plan/ways.h"
#include "tools/report/impl.h"

#include <stdlib.h>
#include <string.h>

/* ---- the charts */

#define MOST_STEPS  (1u << 20)
#define MOST_CHARTS 9

/* A trace, on its grid. */
struct run {
	struct gct_page *p;
	const char *name;
	struct gct_trace trace;
	struct gci_grid grid;
	int *hosts;            /* [rank]: number in the grid */
	const char **clusters; /* [cluster of the topology] */
	struct gci_topo topo;
	struct gci_simnet net;
	struct gci_coll coll;
	struct gct_timeline predicted, actual;
	struct gci_sim_result result;
	struct gct_explanation x;
};

static int on_other_grid(const struct run *u, struct gci_error *e)
{
	return gci_error_set(e, GCOLL_ERR_PARSE,
		"%s was recorded on another grid than that of the file grid", u->name);
}

/* As dilated as the run was. */
static int make_grid(struct run *u, struct gci_error *e)
{
	const struct gct_html *r = u->p->r;
	int i, rc;

	if (!r->grid)
		return gci_error_set(e, GCOLL_ERR_PARSE,
			"%s: no grid file is beside it, expected one that is called grid", u->name);
	rc = gci_grid_parse(&u->grid, r->grid, r->grid_len, "grid", e);
	if (rc)
		return rc;
	if (u->grid.dilation == 1 && u->trace.dilation > 1)
		gci_grid_dilate(&u->grid, u->trace.dilation);
	u->hosts = gci_calloc((size_t)u->trace.nranks, sizeof(*u->hosts));
	if (!u->hosts)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	for (i = 0; i < u->trace.nranks; i++) {
		u->hosts[i] = gci_grid_find_host(&u->grid, u->trace.hosts[i]);
		if (u->hosts[i] < 0)
			return on_other_grid(u, e);
	}
	return 0;
}

static int make_net(struct run *u, struct gci_error *e)
{
	int i;

	if (gci_topo_create(&u->topo, &u->grid, u->hosts, u->trace.nranks))
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	/* It may have run on one machine, whatever its hosts are called. */
	if (gci_topo_digest(&u->topo) != u->trace.topo_digest) {
		u->topo.one_host = 1;
		u->topo.per_host = u->trace.nranks;
	}
	if (gci_topo_digest(&u->topo) != u->trace.topo_digest)
		return on_other_grid(u, e);
	u->clusters = gci_calloc((size_t)u->topo.nclusters, sizeof(*u->clusters));
	if (!u->clusters || gci_simnet_init(&u->net, &u->topo, NULL))
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	for (i = 0; i < u->topo.nclusters; i++)
		u->clusters[i] = u->grid.clusters[u->topo.in_grid[i]].name;
	gci_simnet_streams(&u->net, u->trace.streams);
	return 0;
}

static int simulate(struct run *u, struct gci_error *e)
{
	const struct gct_trace *t = &u->trace;
	int rc;

	u->coll = (struct gci_coll){.kind = t->kind,
		.topo = &u->topo,
		.count = t->count,
		.esize = t->esize,
		.root = t->root};
	if (gci_ineligible(t->how.algorithm, &u->coll))
		return gci_error_set(e, GCOLL_ERR_PARSE, "%s: %s %s", u->name,
			t->how.algorithm->name, gci_ineligible(t->how.algorithm, &u->coll));
	rc = gct_way_simulate(&u->net, &u->coll, &t->how, MOST_STEPS, &u->predicted, &u->result);
	if (rc == GCOLL_ERR_INVAL || (!rc && u->predicted.cut))
		return gci_error_set(
			e, GCOLL_ERR_PARSE, "%s: more than %u steps", u->name, MOST_STEPS);
	if (!rc)
		rc = gct_explain_join(&u->actual, &u->predicted, &u->net, t, u->name, e);
	if (!rc)
		rc = gct_explain_compare(&u->x, &u->predicted, &u->actual);
	return rc ? gci_error_set(e, rc, "out of memory") : 0;
}

static uint64_t size_of(const struct gci_coll *c)
{
	uint64_t n = gci_kind_has_vector(c->kind) ? 1 : (uint64_t)c->topo->nranks;

	return n * c->count * c->esize;
}

static void put_phases(struct run *u)
{
	const uint32_t k = u->trace.dilation;
	struct gct_page *p = u->p;
	char t[4][16], name[64];
	size_t i;

	gci_buf_printf(p->out,
		"<details><summary>By phases, beside the prediction</summary><div class=\"scroll\">"
		"<table><thead><tr><th scope=\"col\">phase</th><th scope=\"col\">bytes</th>"
		"<th scope=\"col\">predicted start</th><th scope=\"col\">end</th>"
		"<th scope=\"col\">actual start</th><th scope=\"col\">end</th></tr></thead>"
		"<tbody>\n");
	for (i = 0; i < u->x.n; i++) {
		const struct gct_part *part = &u->x.parts[i];

		gct_explain_part_name(part, u->clusters, name);
		gci_buf_printf(p->out, "<tr><th scope=\"row\">");
		gct_put(p, name);
		gci_buf_printf(
			p->out, "</th><td>%s</td>", gci_format_bytes(part->nbytes, t[0], 16));
		gci_buf_printf(p->out, "<td>%s</td><td>%s</td><td>%s</td><td>%s</td></tr>\n",
			gci_format_time(part->predicted.start_ns / k, t[0], 16),
			gci_format_time(part->predicted.end_ns / k, t[1], 16),
			gci_format_time(part->actual.start_ns / k, t[2], 16),
			gci_format_time(part->actual.end_ns / k, t[3], 16));
	}
	gci_buf_printf(p->out, "</tbody></table></div></details>\n");
}

static int put_run(struct run *u, size_t number, int open)
{
	const struct gct_trace *t = &u->trace;
	char how[GCI_CANDIDATE_NBYTES], text[48], title[200], times[120], is[16], was[16], id[32];
	struct gct_gantt g = {.timeline = &u->actual,
		.title = title,
		.subtitle = times,
		.names = (const char *const *)t->hosts,
		.clusters = u->clusters,
		.limit_ns = gci_bound_ns(&u->coll, t->streams),
		.dilation = t->dilation,
		.id = id};

	gci_candidate_print(&t->how, how);
	snprintf(id, sizeof(id), "gantt%zu", number);
	snprintf(title, sizeof(title), "%s by %s",
		gct_case_text(u->coll.kind, size_of(&u->coll), text), how);
	snprintf(times, sizeof(times), "measured %s, predicted %s",
		gci_format_time(t->ns / t->dilation, is, 16),
		gci_format_time(u->result.ns / t->dilation, was, 16));
	gci_buf_printf(u->p->out, "<details class=\"gantt\"%s><summary>%s</summary>\n",
		open ? " open=\"open\"" : "", title);
	gci_buf_printf(u->p->out, "<div class=\"scroll\">\n");
	if (gct_gantt_print(&g, u->p->out))
		return GCOLL_ERR_NOMEM;
	gci_buf_printf(u->p->out, "</div>\n");
	put_phases(u);
	gci_buf_printf(u->p->out, "</details>\n");
	return 0;
}

static void free_run(struct run *u)
{
	gct_explain_free(&u->x);
	gct_timeline_free(&u->predicted);
	gct_timeline_free(&u->actual);
	gci_sim_result_free(&u->result);
	gci_simnet_free(&u->net);
	gci_topo_free(&u->topo);
	gci_free(u->clusters);
	gci_free(u->hosts);
	gci_grid_free(&u->grid);
	gct_trace_free(&u->trace);
}

static void put_trace(struct gct_page *p, size_t number, int open)
{
	const struct gct_html_text *file = &p->r->traces[number];
	struct run u = {.p = p, .name = file->name};
	struct gci_error e = {0};
	int rc = gct_trace_parse(&u.trace, file->text, file->len, file->name, &e);

	if (!rc)
		rc = make_grid(&u, &e);
	if (!rc)
		rc = make_net(&u, &e);
	if (!rc)
		rc = simulate(&u, &e);
	if (!rc)
		rc = put_run(&u, number, open);
	if (rc == GCOLL_ERR_NOMEM) {
		p->nomem = 1;
	} else if (rc) {
		gci_buf_printf(p->out, "<p class=\"note far\">No chart: ");
		gct_put(p, e.text);
		gci_buf_printf(p->out, "</p>\n");
		p->nomem |= gct_html_leave_out(p->r, e.text) != 0;
	}
	free_run(&u);
}

/* "bcast.trace" comes before "allreduce.trace", as elsewhere on the page; other names last. */
static int place_of(const char *name)
{
	int k;

	for (k = 0; k < GCI_NKINDS; k++) {
		size_t n = strlen(gci_kind_name((enum gci_kind)k));

		if (!strncmp(name, gci_kind_name((enum gci_kind)k), n) && name[n] == '.')
			return k;
	}
	return GCI_NKINDS;
}

void gct_html_gantts(struct gct_page *p)
{
	size_t i, n = 0;
	int k;

	if (!p->r->ntraces) {
		gct_put_none(p, "No run was recorded",
			"gridcoll bench bcast --bytes 32MiB --report DIR");
		return;
	}
	gci_buf_printf(p->out, "<p>Who did what when, in the last iteration.</p>\n");
	for (k = 0; k <= GCI_NKINDS; k++)
		for (i = 0; i < p->r->ntraces && n < MOST_CHARTS; i++)
			if (place_of(p->r->traces[i].name) == k)
				put_trace(p, i, !n++);
	if (n < p->r->ntraces)
		gci_buf_printf(p->out, "<p class=\"note\">The first %d of %zu.</p>\n", MOST_CHARTS,
			p->r->ntraces);
}
