/* SPDX-License-Identifier: MIT
 * Findings for programs. */
#include "tools/doctor.h"
#include "tools/json_out.h"

/* A key that is missing says that there is nothing to say. */
static void set_text(json_t *object, const char *key, const char *text, int *failed)
{
	if (text)
		gct_json_set(object, key, json_string(text), failed);
}

static json_t *finding_json(const struct gct_finding *g, int *failed)
{
	json_t *o = json_object();

	gct_json_set(o, "id", json_string(g->id), failed);
	gct_json_set(o, "level", json_string(gct_level_name(g->level)), failed);
	set_text(o, "what", g->what, failed);
	set_text(o, "is", g->is, failed);
	set_text(o, "should", g->should, failed);
	set_text(o, "why", g->why, failed);
	set_text(o, "command", g->command, failed);
	set_text(o, "sysctl", g->line, failed);
	return o;
}

static json_t *link_json(const struct gct_need *l, int *failed)
{
	json_t *o = json_object();

	gct_json_set(o, "link", json_string(l->name), failed);
	gct_json_set(o, "rate_bps", gct_json_whole(l->flight.bps), failed);
	gct_json_set(o, "rtt_ns", gct_json_whole(l->flight.rtt_ns), failed);
	gct_json_set(o, "in_flight_bytes", gct_json_whole(l->flight.nbytes), failed);
	gct_json_set(o, "streams", gct_json_whole(l->flight.streams), failed);
	gct_json_set(o, "stream_bytes", gct_json_whole(l->flight.stream_nbytes), failed);
	return o;
}

static void fill(json_t *o, const struct gct_report *r, const struct gct_needs *n,
	const struct gct_facts *f, int *failed)
{
	json_t *links = json_array(), *findings = json_array();
	size_t i;

	for (i = 0; i < n->nlinks; i++)
		gct_json_append(links, link_json(&n->links[i], failed), failed);
	for (i = 0; i < r->n; i++)
		gct_json_append(findings, finding_json(&r->list[i], failed), failed);
	gct_json_set(o, "version", json_integer(1), failed);
	gct_json_set(o, "host", json_string(f->host), failed);
	gct_json_set(o, "kernel", json_string(f->kernel), failed);
	if (n->has_grid)
		gct_json_set(o, "grid", json_string(n->file), failed);
	gct_json_set(o, "problems", gct_json_whole(gct_report_count(r, GCT_PROBLEM)), failed);
	gct_json_set(o, "advice", gct_json_whole(gct_report_count(r, GCT_ADVICE)), failed);
	gct_json_set(o, "links", links, failed);
	gct_json_set(o, "findings", findings, failed);
}

int gct_doctor_json(const struct gct_report *r, const struct gct_needs *n,
	const struct gct_facts *f, struct gci_buf *out)
{
	json_t *o = json_object();
	int failed = 0;

	fill(o, r, n, f, &failed);
	return gct_json_print(o, failed, out);
}
